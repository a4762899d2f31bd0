//! Text of others, made fit for a screen: nothing in it moves the cursor, changes a colour or hides what is there.
//!
//! Whatever an agent, a tool or a client sent goes through here before it is drawn. Pure.

use std::borrow::Cow;

/// How far apart the stops are that a terminal has for tabs.
const STOPS: usize = 8;

/// What somebody wrote: without control characters and escape sequences, tabs as spaces.
pub(crate) fn clean(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\n') {
        return text.to_owned();
    }
    text_only(text).filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect::<String>().replace('\t', "    ")
}

/// What somebody wrote, with everything that has a meaning to those who read marks in it: without escape sequences.
pub(crate) fn unescaped(text: &str) -> Cow<'_, str> {
    if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
        return text_only(text).collect::<String>().into();
    }
    text.into()
}

/// What a program printed, as it would stand on a terminal: a line that was written over is what it was in the end.
pub(crate) fn printed(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\n') {
        return text.to_owned();
    }
    let text: String = text_only(text).collect();
    let lines: Vec<String> = text.split('\n').map(printed_line).collect();
    lines.join("\n")
}

fn printed_line(line: &str) -> String {
    // The last thing that was written from the left on.
    let line = line.trim_end_matches('\r');
    let line = &line[line.rfind('\r').map_or(0, |at| at + 1)..];
    let (mut shown, mut column) = (String::new(), 0);
    for letter in line.chars() {
        match letter {
            '\t' => {
                let space = STOPS - column % STOPS;
                shown.push_str(&" ".repeat(space));
                column += space;
            }
            '\u{8}' => {
                if let Some(gone) = shown.pop() {
                    column -= wide(gone).min(column);
                }
            }
            letter if letter.is_control() => {}
            letter => {
                shown.push(letter);
                column += wide(letter);
            }
        }
    }
    shown
}

fn wide(letter: char) -> usize {
    crate::wrap::width(letter.encode_utf8(&mut [0; 4]))
}

/// The letters without escape sequences, and with a sign in place of what would turn them around.
fn text_only(text: &str) -> impl Iterator<Item = char> {
    let mut rest = text.chars();
    std::iter::from_fn(move || {
        loop {
            match rest.next()? {
                '\u{1b}' => {
                    let after = rest.clone().next();
                    match after {
                        Some('[') => skip_control(&mut rest, 1),
                        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                        // Designates a set of characters, which is named by the next letter.
                        Some('(' | ')' | '*' | '+' | '#' | '%') => {
                            rest.nth(1);
                        }
                        Some(' '..='~') => {
                            rest.next();
                        }
                        _ => {}
                    }
                }
                // The same in one letter.
                '\u{9b}' => skip_control(&mut rest, 0),
                '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => return Some('\u{fffd}'),
                '\u{61c}' | '\u{200e}' | '\u{200f}' => {}
                letter => return Some(letter),
            }
        }
    })
}

/// A control sequence: figures, then a letter. One that breaks off takes nothing else with it.
fn skip_control(rest: &mut std::str::Chars<'_>, introducer: usize) {
    for _ in 0..introducer {
        rest.next();
    }
    while let Some(letter) = rest.clone().next() {
        match letter {
            ' '..='~' => rest.next(),
            _ => return,
        };
        if letter >= '@' {
            return;
        }
    }
}

/// A string for the terminal, up to its end or to the end of the line: a title, a link, a picture.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    while let Some(letter) = rest.clone().next() {
        match letter {
            '\n' => return,
            '\u{7}' | '\u{9c}' => {
                rest.next();
                return;
            }
            '\u{1b}' => {
                rest.next();
                if rest.clone().next() == Some('\\') {
                    rest.next();
                }
                return;
            }
            _ => {
                rest.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_taken_out_whole() {
        for (text, shown) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}]0;a title\u{7}after", "after"),
            ("\u{1b}]8;;http://x.y\u{1b}\\link\u{1b}]8;;\u{1b}\\!", "link!"),
            ("\u{1b}Pq#0;2;0;0\u{1b}\\picture", "picture"),
            ("\u{1b}(Bplain\u{1b}=\u{1b}>", "plain"),
            ("\u{1b}[2J\u{1b}[Hhome", "home"),
            ("cut off \u{1b}[31", "cut off "),
            ("cut off \u{1b}]0;tit\nnext", "cut off \nnext"),
            ("broken \u{1b}[3\nnext", "broken \nnext"),
            ("bell\u{7} null\u{0} tab\t.", "bell null tab    ."),
            ("safe\u{202e}txt.exe", "safe\u{fffd}txt.exe"),
            ("left\u{200f}\u{200e}\u{61c}right", "leftright"),
            ("日本 é 👩‍👧", "日本 é 👩‍👧"),
        ] {
            assert_eq!(clean(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_line_that_was_written_over_is_what_it_was_in_the_end() {
        for (text, shown) in [
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("10%\r50%\r100%", "100%"),
            ("10%\r50%\r", "50%"),
            ("a\tb\n12345678\tc", "a       b\n12345678        c"),
            ("日\tb", "日      b"),
            ("b\u{8}bo\u{8}old", "bold"),
            ("\u{8}x", "x"),
            ("\r\u{1b}[Kdone", "done"),
        ] {
            assert_eq!(printed(text), shown, "{text:?}");
        }
    }
}
