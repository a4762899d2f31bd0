//! Cleans text of others for the screen: every character fills at least one column, or ends a line.
//!
//! Whatever agents, tools and clients send goes through here before it is drawn. `multitap_event::visible` replaces what a
//! terminal would obey or hide by marks; the rest depends on columns. Pure.

use std::borrow::Cow;

use multitap_event::{push_mark, visible, visible_line};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthChar as _;

use crate::wrap::width;

const STOPS: usize = 8;

/// Text with its lines; tabs as spaces.
pub(crate) fn clean(text: &str) -> String {
    let text = visible(text);
    let text = seen(&text);
    if text.contains('\t') { text.replace('\t', "    ") } else { text.into_owned() }
}

pub(crate) fn clean_line(text: &str) -> String {
    seen(&visible_line(text)).into_owned()
}

/// Marks the blanks of a shell command that the shell takes as letters, before it is cleaned like other text. After one
/// of them a `#` begins no comment.
pub(crate) fn with_marked_blanks(command: &str) -> String {
    let mut shown = String::with_capacity(command.len());
    for c in command.chars() {
        if c.is_whitespace() && !c.is_ascii() { push_mark(&mut shown, c) } else { shown.push(c) }
    }
    shown
}

/// Text that begins in that column, with its tabs as spaces.
pub(crate) fn with_stops(line: &str, mut column: usize) -> String {
    let mut shown = String::with_capacity(line.len());
    for (number, piece) in line.split('\t').enumerate() {
        if number > 0 {
            let space = STOPS - column % STOPS;
            shown.push_str(&" ".repeat(space));
            column += space;
        }
        shown.push_str(piece);
        column += width(piece);
    }
    shown
}

/// Replaces graphemes without a column by marks, such as a combining accent without a letter: the screen would drop them.
pub(crate) fn seen(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || !text.chars().any(|c| c.width() == Some(0)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for grapheme in text.graphemes(true) {
        if grapheme == "\n" || grapheme == "\t" || width(grapheme) > 0 {
            shown.push_str(grapheme);
        } else {
            grapheme.chars().for_each(|c| push_mark(&mut shown, c));
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_fills_a_column() {
        for (text, shown) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "␛[1;31mred␛[0m"),
            ("\u{1b}]0;a title\u{7}after", "␛]0;a title␇after"),
            ("bell\u{7} null\u{0} tab\t.", "bell␇ null␀ tab    ."),
            ("safe\u{202e}txt.exe", "safe\\u202etxt.exe"),
            ("\u{301}e\u{301}\n\u{301}\u{1161}", "\\u0301e\u{301}\n\\u0301\\u1161"),
            ("日本 é 👩‍👧", "日本 é 👩‍👧"),
        ] {
            assert_eq!(clean(text), shown, "{text:?}");
        }
        assert_eq!(clean_line("a\n\u{301}b"), "a␊\u{301}b");
    }
}
