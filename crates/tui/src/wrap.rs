//! Wraps styled text: between words if possible, anywhere if not.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A count of rows or columns as ratatui takes it.
pub(crate) fn cells(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Wraps a line. Lines after the first begin with `indent` spaces.
pub(crate) fn wrap(line: Line<'static>, columns: usize, indent: usize) -> Vec<Line<'static>> {
    let columns = columns.max(1);
    if line.width() <= columns {
        return vec![line];
    }
    let mut wrapping =
        Wrapping { columns, indent: indent.min(columns / 2), lines: Vec::new(), spans: Vec::new(), used: 0 };
    for span in line.spans {
        for word in words(&span.content) {
            wrapping.add(word, span.style);
        }
    }
    wrapping.end();
    wrapping.lines
}

/// The words of a text and what is between them. Punctuation stays with its word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut bounds = text.split_word_bound_indices().peekable();
    std::iter::from_fn(move || {
        let (from, first) = bounds.next()?;
        let mut to = from + first.len();
        if OPENING.contains(&first)
            && let Some((_, word)) = bounds.next_if(|(_, next)| !next.starts_with(char::is_whitespace))
        {
            to += word.len();
        }
        if !first.ends_with(char::is_whitespace) {
            while let Some((_, end)) = bounds.next_if(|(_, next)| CLOSING.contains(next)) {
                to += end.len();
            }
        }
        Some(&text[from..to])
    })
}

/// A line never ends with one of these.
const OPENING: [&str; 4] = ["(", "[", "{", "\""];
/// A line never begins with one of these.
const CLOSING: [&str; 14] = [",", ".", ";", ":", "!", "?", ")", "]", "}", "'", "\"", "。", "、", "，"];

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
            // Spaces at the end of a line are dropped.
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
        check("one, three, (four).", 10, &["one, ", "  three, ", "  (four)."]);
        check("abcdefghijklmno", 10, &["abcdefghij", "  klmno"]);
        check("one abcdefghij", 10, &["one ", "  abcdefgh", "  ij"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        check("日本語日本語", 5, &["日本", "  語", "  日", "  本", "  語"]);
    }
}
