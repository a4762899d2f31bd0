//! The output of programs in their colours. Pure.
//!
//! Of everything that a program can tell a terminal, only colours and styles are obeyed, and only so that no text can
//! hide: colours become those of the palette that are read on any ground, a background becomes reversed text, and
//! concealed text is shown. The rest is cleaned like other text.

use multitap_event::{output_pieces, visible};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::clean::{seen, with_stops};
use crate::theme::Theme;
use crate::wrap::width;

/// The lines of an output, as a terminal would show it. Text without a style is quiet.
pub(crate) fn printed(text: &str, theme: Theme) -> Vec<Line<'static>> {
    let mut pen = Pen::default();
    text.split('\n').map(|line| pen.line(line, theme)).collect()
}

/// How the next text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Pen {
    front: Option<Color>,
    back: Option<Color>,
    marks: Modifier,
}

impl Pen {
    fn line(&mut self, line: &str, theme: Theme) -> Line<'static> {
        let mut parts: Vec<(Style, &str)> = Vec::new();
        for piece in output_pieces(line) {
            self.change(piece.colour);
            parts.push((self.style(theme), piece.text));
        }
        while let Some((style, text)) = parts.pop() {
            let text = text.trim_end_matches('\r');
            if !text.is_empty() {
                parts.push((style, text));
                break;
            }
        }
        let mut spans: Vec<Span<'static>> = Vec::new();
        // A line that was overwritten is shown in its last state.
        if let Some(at) = parts.iter().rposition(|(_, text)| text.contains('\r')) {
            let (before, after) = parts[at].1.rsplit_once('\r').unwrap_or_default();
            let has_text = |text: &str| text.contains(|c| c != '\r');
            if has_text(before) || parts[..at].iter().any(|(_, text)| has_text(text)) {
                spans.push(Span::styled("␍", theme.quiet()));
            }
            parts[at].1 = after;
            parts.drain(..at);
        }
        let mut column = spans.len();
        for (style, text) in parts {
            let text = with_stops(&seen(&visible(text)), column);
            column += width(&text);
            spans.push(Span::styled(text, style));
        }
        Line::from(spans)
    }

    fn style(self, theme: Theme) -> Style {
        if self == Self::default() {
            return theme.quiet();
        }
        // A background is the colour of reversed text: beside the terminal's own ground any text is seen.
        let marks = if self.back.is_some() { self.marks ^ Modifier::REVERSED } else { self.marks };
        theme.of_program(self.back.or(self.front)).add_modifier(marks)
    }

    /// Obeys the parameters of `ESC [ … m`.
    fn change(&mut self, colour: Option<&str>) {
        let Some(parameters) = colour else { return };
        let mut rest = parameters.split(';');
        while let Some(parameter) = rest.next() {
            let mut parts = parameter.split(':').map(|number| number.parse::<u8>().unwrap_or(0));
            let code = parts.next().unwrap_or(0);
            match code {
                0 => *self = Self::default(),
                // The numbers of a colour follow, in the same parameter or in the next ones.
                38 | 48 | 58 => {
                    let given: Vec<u8> = parts.collect();
                    let hue = if given.is_empty() { extended(&mut rest) } else { extended_of(&given) };
                    match code {
                        38 => self.front = hue,
                        48 => self.back = hue,
                        _ => {}
                    }
                }
                4 if parts.next() == Some(0) => self.marks.remove(Modifier::UNDERLINED),
                30..=37 => self.front = palette(code - 30),
                40..=47 => self.back = palette(code - 40),
                90..=97 => self.front = palette(code - 90 + 8),
                100..=107 => self.back = palette(code - 100 + 8),
                39 => self.front = None,
                49 => self.back = None,
                22 => self.marks.remove(Modifier::BOLD | Modifier::DIM),
                23..=29 => self.marks.remove(mark(code - 20)),
                code => self.marks.insert(mark(code)),
            }
        }
    }
}

/// The style of that number. Blinking and concealed text is shown like other text.
fn mark(code: u8) -> Modifier {
    match code {
        1 => Modifier::BOLD,
        2 => Modifier::DIM,
        3 => Modifier::ITALIC,
        4 => Modifier::UNDERLINED,
        7 => Modifier::REVERSED,
        9 => Modifier::CROSSED_OUT,
        _ => Modifier::empty(),
    }
}

/// `5;N` or `2;R;G;B`.
fn extended<'a>(rest: &mut impl Iterator<Item = &'a str>) -> Option<Color> {
    let mut next = || rest.next()?.parse().ok();
    match next()? {
        5 => indexed(next()?),
        2 => rgb(next()?, next()?, next()?),
        _ => None,
    }
}

/// `5:N`, `2:R:G:B` or `2::R:G:B`.
fn extended_of(numbers: &[u8]) -> Option<Color> {
    match *numbers {
        [5, index, ..] => indexed(index),
        [2, r, g, b] | [2, _, r, g, b, ..] => rgb(r, g, b),
        _ => None,
    }
}

/// A colour of the palette. Black, white and greys may be the terminal's ground, so they are its own colour.
fn palette(index: u8) -> Option<Color> {
    match index {
        1 => Some(Color::Red),
        2 => Some(Color::Green),
        3 => Some(Color::Yellow),
        4 => Some(Color::Blue),
        5 => Some(Color::Magenta),
        6 => Some(Color::Cyan),
        9 => Some(Color::LightRed),
        10 => Some(Color::LightGreen),
        11 => Some(Color::LightYellow),
        12 => Some(Color::LightBlue),
        13 => Some(Color::LightMagenta),
        14 => Some(Color::LightCyan),
        _ => None,
    }
}

fn indexed(index: u8) -> Option<Color> {
    let level = |at: u8| [0, 95, 135, 175, 215, 255][usize::from(at % 6)];
    match index {
        0..16 => palette(index),
        16..232 => rgb(level((index - 16) / 36), level((index - 16) / 6), level(index - 16)),
        232.. => None,
    }
}

/// The colour of the palette with the closest hue.
fn rgb(r: u8, g: u8, b: u8) -> Option<Color> {
    let (most, least) = (r.max(g).max(b), r.min(g).min(b));
    if most - least < 40 {
        return None;
    }
    let middle = least + (most - least) / 2;
    let bit = |part: u8, bit: u8| if part > middle { bit } else { 0 };
    palette(bit(r, 1) | bit(g, 2) | bit(b, 4))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::preferences::Colours;

    fn text(output: &str) -> String {
        let lines = printed(output, Theme::new(Colours::Sixteen));
        lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_line_that_was_written_over_is_what_it_was_in_the_end() {
        for (output, shown) in [
            ("one\r\ntwo\r\n", "one\ntwo\n"),
            ("10%\r50%\r100%", "␍100%"),
            ("\u{1b}[32m10%\u{1b}[0m\r\u{1b}[31m50%\u{1b}[0m\r", "␍50%"),
            ("a\tb\n12345678\tc", "a       b\n12345678        c"),
            ("\u{1b}[1ma\u{1b}[0m\tb", "a       b"),
            ("日\tb", "日      b"),
            ("\r\u{1b}[Kdone", "done"),
        ] {
            assert_eq!(text(output), shown, "{output:?}");
        }
    }

    #[test]
    fn colours_are_those_that_can_be_read_on_any_ground() {
        let style = |parameters: &str| {
            let mut pen = Pen::default();
            pen.change(Some(parameters));
            pen.style(Theme::new(Colours::Sixteen))
        };
        let plain = Theme::new(Colours::Sixteen).quiet();
        for (parameters, expected) in [
            ("31", Style::new().fg(Color::Red)),
            ("1;92", Style::new().fg(Color::LightGreen).add_modifier(Modifier::BOLD)),
            ("38;5;196", Style::new().fg(Color::Red)),
            ("38;2;20;200;30", Style::new().fg(Color::Green)),
            ("38:2::20:30:200;4", Style::new().fg(Color::Blue).add_modifier(Modifier::UNDERLINED)),
            ("42;30", Style::new().fg(Color::Green).add_modifier(Modifier::REVERSED)),
            ("58;5;1;3", Style::new().add_modifier(Modifier::ITALIC)),
            // Black on black, white on white, concealed: text like other text.
            ("30;40", plain),
            ("38;5;255;48;2;250;250;250", plain),
            ("8", plain),
            ("31;0", plain),
            ("1;22", plain),
            ("", plain),
            ("999", plain),
        ] {
            assert_eq!(style(parameters), expected, "{parameters}");
        }
        let mut pen = Pen::default();
        pen.change(Some("31"));
        assert_eq!(pen.style(Theme::new(Colours::None)), Style::new(), "NO_COLOR");
    }

    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a",
            "b c",
            "\t",
            "\r",
            "\n",
            "\u{1b}[31m",
            "\u{1b}[0;8m",
            "\u{1b}[38;5;0m",
            "\u{1b}[K",
            "\u{1b}[2J",
            "\u{1b}]0;t\u{7}",
            "\u{202e}",
            "日",
            "\u{1b}[",
            "1;2m",
            "\u{301}",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// The text is the same as elsewhere, where the colours are left out.
        #[test]
        fn colours_change_no_text(output in pieces()) {
            let visible = multitap_event::visible_output(&output);
            let without_tabs = |text: &str| text.replace([' ', '\t'], "");
            // A combining character after a colour is marked, so it is compared by its mark.
            if !output.contains('\u{301}') {
                prop_assert_eq!(without_tabs(&text(&output)), without_tabs(&visible));
            }
            prop_assert!(!text(&output).contains(|c: char| c.is_control() && c != '\n'));
        }
    }
}
