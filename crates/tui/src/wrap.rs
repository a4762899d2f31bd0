//! Styled text cut into lines that fit the screen: between words where it can be, anywhere where it must.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The columns a text takes up.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Makes what is not for a screen visible: tabs as spaces, other control characters not at all.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect::<String>().replace('\t', "    ")
}

/// Cuts a line; those after the first begin with `indent` spaces.
pub(crate) fn wrap(line: Line<'static>, columns: usize, indent: usize) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    if line.width() <= columns {
        return vec![line];
    }
    let mut wrapping =
        Wrapping { columns, indent: indent.min(columns / 2), lines: Vec::new(), spans: Vec::new(), used: 0 };
    for span in line.spans {
        for word in span.content.split_word_bounds() {
            wrapping.add(word, span.style);
        }
    }
    wrapping.end();
    wrapping.lines
}

struct Wrapping {
    columns: usize,
    indent: usize,
    lines: Vec<Line<'static>>,
    spans: Vec<Span<'static>>,
    used: usize,
}

impl Wrapping {
    fn add(&mut self, word: &str, style: Style) {
        let wide = width(word);
        if self.used + wide > self.columns {
            // A space at the end of a line is not seen.
            if word.chars().all(char::is_whitespace) {
                return self.end();
            }
            if self.used > self.margin() {
                self.end();
            }
        }
        if self.used + wide <= self.columns {
            return self.push(word, style);
        }
        for grapheme in word.graphemes(true) {
            if self.used + width(grapheme) > self.columns {
                self.end();
            }
            self.push(grapheme, style);
        }
    }

    fn margin(&self) -> usize {
        if self.lines.is_empty() { 0 } else { self.indent }
    }

    fn push(&mut self, text: &str, style: Style) {
        if self.spans.is_empty() && self.margin() > 0 {
            self.spans.push(Span::raw(" ".repeat(self.margin())));
            self.used = self.margin();
        }
        self.used += width(text);
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(text),
            _ => self.spans.push(Span::styled(text.to_owned(), style)),
        }
    }

    fn end(&mut self) {
        if !self.spans.is_empty() {
            self.lines.push(Line::from(std::mem::take(&mut self.spans)));
        }
        self.used = self.margin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, columns: usize, expected: &[&str]) {
        let lines = wrap(Line::raw(text.to_owned()), columns, 2);
        let shown: Vec<String> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(shown, expected);
        assert!(lines.iter().all(|line| line.width() <= columns));
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        check("short", 10, &["short"]);
        check("one two three four", 10, &["one two ", "  three ", "  four"]);
        check("abcdefghijklmno", 10, &["abcdefghij", "  klmno"]);
        check("one abcdefghij", 10, &["one ", "  abcdefgh", "  ij"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        check("日本語日本語", 5, &["日本", "  語", "  日", "  本", "  語"]);
    }
}
