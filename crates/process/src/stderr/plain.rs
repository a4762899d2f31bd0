//! Removes escape sequences from terminal output. Pure.

use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';

/// The text without escape sequences and control characters. A carriage return becomes a newline.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            ESCAPE => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\r' => {
                chars.next_if_eq(&'\n');
                plain.push('\n');
            }
            '\n' | '\t' => plain.push(char),
            _ if char.is_control() => {}
            _ => plain.push(char),
        }
    }
    plain
}

/// Skips the rest of an escape sequence.
fn skip_escape(chars: &mut Peekable<Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        _ => {
            while chars.next_if(|char| matches!(char, ' '..='/')).is_some() {}
            chars.next_if(|char| matches!(char, '0'..='~'));
        }
    }
}

/// Skips parameters and the final letter: colours, cursor moves.
fn skip_control_sequence(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|char| matches!(char, ' '..='?')).is_some() {}
    chars.next_if(|char| matches!(char, '@'..='~'));
}

/// Skips a string with a terminator: titles, links. An unterminated one ends at the line's end.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(char) = chars.next_if(|char| *char != '\n') {
        match char {
            '\u{7}' | '\u{9c}' => return,
            ESCAPE => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::plain;

    #[track_caller]
    fn check(terminal: &str, expected: &str) {
        assert_eq!(plain(terminal), expected);
    }

    #[test]
    fn colours_moves_titles_and_links_go() {
        check("\u{1b}[1;31merror\u{1b}[0m: bad", "error: bad");
        check("\u{1b}[38;2;1;2;3m漢字\u{1b}[m\u{1b}[2K\u{1b}[?25l!", "漢字!");
        check("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink");
        check("\u{1b}(B\u{1b}7\u{1b}=x\u{9b}1my", "xy");
    }

    #[test]
    fn a_sequence_that_breaks_off_takes_no_text_with_it() {
        check("a\u{1b}", "a");
        check("a\u{1b}[12", "a");
        check("a\u{1b}[1\nb", "a\nb");
        check("a\u{1b}]0;never closed\nb", "a\nb");
        check("a\u{1b}[31漢", "a漢");
    }

    #[test]
    fn a_spinner_becomes_lines() {
        check("50%\r100%\r\ndone\u{8}\u{0}\t.", "50%\n100%\ndone\t.");
    }

    proptest! {
        #[test]
        fn nothing_but_text_is_left(text in "[\u{1b}\u{9b}\u{9d}\u{7}\\[\\]\\\\0-9;mab漢\r\n\t]{0,40}") {
            let plain = plain(&text);
            prop_assert!(plain.chars().all(|char| !char.is_control() || matches!(char, '\n' | '\t')));
            prop_assert_eq!(super::plain(&plain), plain);
        }
    }
}
