//! Text of others on the screen: every character of it takes up at least one column, or is the end of a line.
//!
//! Whatever an agent, a tool or a client sent goes through here before it is drawn. `multitap_event::visible` makes marks
//! of what a terminal would obey or hide; what is left to do here depends on columns. Pure.

use std::borrow::Cow;

use multitap_event::{push_mark, visible, visible_line, visible_output};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthChar as _;

use crate::wrap::width;

/// How far apart the stops are that a terminal has for tabs.
const STOPS: usize = 8;

/// What somebody wrote, in lines; tabs as spaces.
pub(crate) fn clean(text: &str) -> String {
    let text = visible(text);
    let text = seen(&text);
    if text.contains('\t') { text.replace('\t', "    ") } else { text.into_owned() }
}

/// What somebody wrote, in one line.
pub(crate) fn clean_line(text: &str) -> String {
    seen(&visible_line(text)).into_owned()
}

/// Text in which signs still have a meaning to whoever reads them, such as markdown.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    visible(text)
}

/// What a program printed, as it would stand on a terminal.
pub(crate) fn printed(text: &str) -> String {
    let text = visible_output(text);
    let text = seen(&text);
    if !text.contains('\t') {
        return text.into_owned();
    }
    let lines: Vec<String> = text.split('\n').map(with_stops).collect();
    lines.join("\n")
}

/// Tabs as spaces up to the next stop.
fn with_stops(line: &str) -> String {
    let (mut shown, mut column) = (String::with_capacity(line.len()), 0);
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

/// Marks in place of graphemes without a column, such as a combining accent that has no letter before it: the screen
/// would leave them out.
fn seen(text: &str) -> Cow<'_, str> {
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
    fn every_character_takes_up_a_column() {
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

    #[test]
    fn a_line_that_was_written_over_is_what_it_was_in_the_end() {
        for (text, shown) in [
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("10%\r50%\r100%", "␍100%"),
            ("a\tb\n12345678\tc", "a       b\n12345678        c"),
            ("日\tb", "日      b"),
            ("\r\u{1b}[Kdone", "done"),
        ] {
            assert_eq!(printed(text), shown, "{text:?}");
        }
    }
}
