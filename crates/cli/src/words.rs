//! Text of agents and clients made fit for people: short, and harmless to a terminal; and JSON that is harmless to one
//! as well.

use std::borrow::Cow;

use anyhow::Context as _;
use serde::Serialize;

/// How much of a tool's arguments or error a line for people shows.
const SHOWN: usize = 200;

/// The first line, cut where it gets long.
pub(crate) fn short(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    let head = head(first, SHOWN);
    let more = if head.len() < text.trim().len() { " …" } else { "" };
    format!("{head}{more}")
}

/// At most so many bytes of the text, and no half characters.
pub(crate) fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Without characters that would move a terminal's cursor, change its state or turn writing around, except for line ends.
/// Also where it goes to a pipe: what is at its end is a terminal more often than not.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || turns(*c))).collect()
}

/// JSON with the same value, in which nothing is left that a terminal could obey: what JSON itself lets stand, beside
/// the control characters that it does not, is written as `\uXXXX`.
pub(crate) fn plain_json(text: &str) -> Cow<'_, str> {
    // Nearly all of it has not a single byte that such a character begins with.
    if !text.bytes().any(|byte| matches!(byte, 0x7f | 0xc2 | 0xd8 | 0xe2)) {
        return Cow::Borrowed(text);
    }
    let obeyed = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}') || turns(c);
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // All of them are of the first 65 536 characters: one group of four digits says each.
        if obeyed(c) { plain.push_str(&format!("\\u{:04x}", u32::from(c))) } else { plain.push(c) }
    }
    Cow::Owned(plain)
}

/// A value as indented JSON, with a line's end.
pub(crate) fn pretty_json(value: &impl Serialize) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(value).context("write JSON")?;
    Ok(format!("{}\n", plain_json(&text)))
}

/// A value as one line of JSON.
pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string(value)?;
    Ok(format!("{}\n", plain_json(&text)))
}

/// Whether a character changes the direction in which others are written.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_a_cursor_or_turns_writing_around() {
        let text = "a\u{1b}]52;c;eA==\u{7}b\u{9b}31mc\u{202e}d\u{2066}e\u{61c}f\tg\nh\u{200d}é";
        assert_eq!(clean(text), "a]52;c;eA==b31mcdef\tg\nh\u{200d}é");
    }

    #[test]
    fn json_says_the_same_without_anything_to_obey() {
        let said = "é\u{9b}31m\u{7f}\u{85}\u{202e}\u{2067}\u{61c}\u{2028}\u{200f} \"\\ — 日本 \u{1f600} \u{1b}";
        let value = serde_json::json!({ said: [said] });
        let line = json_line(&value).unwrap();
        let pretty = pretty_json(&value).unwrap();
        for text in [&line, &pretty] {
            assert_eq!(clean(text), **text);
            assert!(text.contains("\\u009b31m\\u007f\\u0085\\u202e") && text.contains("日本 \u{1f600}"), "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), value);
        }
        assert!(matches!(plain_json("{\"as it is\":\"— été\"}"), Cow::Borrowed(_)));
    }
}
