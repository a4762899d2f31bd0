//! Removes colours from terminal output, and nothing that could carry text. Pure.
//!
//! All other control characters stay, so that people see what a program hid in a title or a link. Whoever shows the text
//! makes them visible: this crate knows no screen.

const ESCAPE: char = '\u{1b}';

/// The text without colours and erased line ends. A carriage return becomes a newline.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find([ESCAPE, '\r']) {
        let (before, control) = rest.split_at(at);
        plain.push_str(before);
        rest = &control[1..];
        if control.starts_with('\r') {
            plain.push('\n');
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        } else if let Some(after) = after_colour(rest) {
            rest = after;
        } else {
            plain.push(ESCAPE);
        }
    }
    plain.push_str(rest);
    plain
}

/// The text after `[ … m` or `[ … K`, which contain digits only.
fn after_colour(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('[')?;
    let end = digits.trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, ';' | ':'));
    end.strip_prefix(['m', 'K'])
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
    fn colours_go() {
        check("\u{1b}[1;31merror\u{1b}[0m: bad", "error: bad");
        check("\u{1b}[38;2;1;2;3m漢字\u{1b}[m\u{1b}[2K!", "漢字!");
    }

    #[test]
    fn what_could_carry_text_stays() {
        for text in [
            "\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\",
            "fails\u{1b}]; touch /tmp/x\u{7}",
            "\u{9d}hidden\u{9c}\u{90}too\u{1b}\\",
            "\u{1b}[?25l\u{1b}[3A\u{1b}(Bx",
            "a\u{1b}",
            "a\u{1b}[12",
            "a\u{1b}[1\nb",
            "done\u{8}\u{0}\t.",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_spinner_becomes_lines() {
        check("50%\r100%\r\ndone", "50%\n100%\ndone");
    }

    proptest! {
        #[test]
        fn only_escapes_digits_and_two_letters_go(text in "[\u{1b}\u{9b}\u{9d}\u{7}\\[\\]\\\\0-9;mKab漢\n\t]{0,40}") {
            let is_text = |char: &char| !matches!(char, '\u{1b}' | '[' | '0'..='9' | ';' | 'm' | 'K');
            let plain = plain(&text);
            prop_assert!(plain.chars().filter(is_text).eq(text.chars().filter(is_text)));
            if !text.contains("\u{1b}[") {
                prop_assert_eq!(plain, text);
            }
        }
    }
}
