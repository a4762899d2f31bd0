//! Lays out a text that grows. Finished parts are laid out once, so the cost of one more piece does not depend on the
//! length of the text. Pure.
//!
//! The text is split where that is invisible: where a paragraph, a heading or code begins after an empty line, outside of
//! code, lists and HTML, and between lines of code (a link does not find its definition in another part). After a long
//! stretch without such a place it is split between two lines or words, which may be visible. The splits depend on the text
//! alone, not on its pieces or the width. So at another width the end can be laid out from a stored place, without the
//! beginning.

mod fence;
mod place;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use self::fence::Fence;
use self::place::{Place, Within};
use super::{Page, hidden};
use crate::clean::clean;
use crate::highlight::Code;
use crate::theme::Theme;
use crate::wrap::wrap;

#[derive(Debug, Clone, Copy)]
pub(crate) struct TextStyle {
    /// An empty line comes before it.
    pub(crate) apart: bool,
    /// The sign before its first line, and its width: the other lines are indented by it.
    pub(crate) sign: &'static str,
    pub(crate) indent: usize,
    pub(crate) style: Style,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// From this length on, a part ends where that is invisible.
    part: usize,
    /// From this length on, a part ends wherever it can.
    longest: usize,
    place: usize,
}

const LIMITS: Limits = Limits { part: 4096, longest: 8192, place: 64 * 1024 };

#[derive(Debug)]
pub(crate) struct Flow {
    columns: usize,
    theme: Theme,
    style: TextStyle,
    limits: Limits,
    lines: Rc<Vec<Line<'static>>>,
    /// How many lines are final. Those after them are laid out again.
    settled: usize,
    at: Place,
    length: usize,
    /// Places from which the text can be laid out at another width, in their order.
    places: Vec<Place>,
    /// The text is laid out from its beginning.
    is_whole: bool,
}

impl Flow {
    pub(crate) fn new(columns: usize, theme: Theme, style: TextStyle) -> Self {
        let first: Vec<Line<'static>> = style.apart.then(Line::default).into_iter().collect();
        Self {
            columns,
            theme,
            style,
            limits: LIMITS,
            settled: first.len(),
            lines: Rc::new(first),
            at: Place::first(),
            length: 0,
            places: Vec::new(),
            is_whole: true,
        }
    }

    /// The same text at another width. Nothing is laid out before it is needed.
    pub(crate) fn resized(self, columns: usize) -> Self {
        Self { places: self.places, limits: self.limits, ..Self::new(columns, self.theme, self.style) }
    }

    /// Lays out the end of the text: at least that many lines, if there are as many.
    pub(crate) fn lay_out_end(&mut self, text: &str, rows: usize) {
        if self.length > 0 {
            self.lay_out(text);
        }
        for place in (0..self.places.len()).rev() {
            if self.length > 0 && (self.is_whole || self.lines.len() >= rows) {
                return;
            }
            let at = self.places[place].clone();
            (self.at, self.lines, self.settled, self.length, self.is_whole) = (at, Rc::default(), 0, 0, false);
            self.lay_out(text);
        }
        if self.length == 0 || self.lines.len() < rows {
            self.lay_out_whole(text);
        }
    }

    pub(crate) fn lay_out_whole(&mut self, text: &str) {
        if !self.is_whole {
            *self = std::mem::replace(self, Self::new(self.columns, self.theme, self.style)).resized(self.columns);
        }
        self.lay_out(text);
    }

    pub(crate) fn lines(&self) -> Rc<Vec<Line<'static>>> {
        self.lines.clone()
    }

    /// Lays out the rest of the text. It begins with what was laid out before.
    fn lay_out(&mut self, text: &str) {
        if text.len() == self.length {
            return;
        }
        self.length = text.len();
        Rc::make_mut(&mut self.lines).truncate(self.settled);
        while let Some(end) = text[self.at.searched..].find('\n').map(|at| self.at.searched + at) {
            self.look_at(text, end);
            self.read(&text[self.at.scanned..end]);
            (self.at.scanned, self.at.searched, self.at.is_long) = (end + 1, end + 1, false);
            if self.is_code() {
                self.settle_code(text, end + 1);
            }
            self.remember();
        }
        self.at.searched = text.len();
        self.look_at(text, text.len());
        self.show_rest(text);
    }

    fn is_code(&self) -> bool {
        matches!(self.at.within, Within::Code { .. })
    }

    /// Splits the text before the line that reaches to `end` or beyond, or in that line, if the part is long enough.
    fn look_at(&mut self, text: &str, end: usize) {
        let at = self.at.scanned;
        let is_whole = text[end..].starts_with('\n');
        let length = end - at;
        if !self.at.is_long && (is_whole || length > self.limits.longest) {
            self.part_before(text, at);
            self.at.is_long = length > self.limits.longest;
        }
        if !self.at.is_long {
            return;
        }
        self.at.after_blank = false;
        let mut from = self.at.done.max(at);
        while end - from > self.limits.longest {
            let to = last_word(text, from, self.limits.longest);
            if self.at.fence.is_some() {
                self.begin_code(text);
                self.settle_code(text, to);
            } else {
                self.settle_page(text, to, false);
            }
            from = to;
            self.remember();
        }
    }

    /// Stores the place for another width, now and then.
    fn remember(&mut self) {
        let last = self.places.last().map_or(0, |place| place.done);
        if self.at.done >= last + self.limits.place {
            self.places.push(self.at.clone());
        }
    }

    fn part_before(&mut self, text: &str, at: usize) {
        let (size, line) = (at.saturating_sub(self.at.done), &text[at..]);
        if self.is_code() || size == 0 {
            return;
        }
        if self.at.fence.is_some() {
            if size >= self.limits.longest {
                self.begin_code(text);
                self.settle_code(text, at);
            }
            return;
        }
        let begins = |c: char| c.is_alphabetic() || matches!(c, '#' | '`');
        if size >= self.limits.part && self.at.after_blank && !self.at.in_html && line.starts_with(begins) {
            return self.settle_page(text, at, true);
        }
        // Indented lines and rows of a table belong to what is before them.
        let belongs = line.starts_with([' ', '\t', '|']);
        if size >= 2 * self.limits.longest || (size >= self.limits.longest && !belongs) {
            self.settle_page(text, at, false);
        }
    }

    fn read(&mut self, line: &str) {
        if self.at.is_long {
            return;
        }
        match &self.at.fence {
            Some(fence) if fence.is_closed_by(line) => {
                self.at.fence = None;
                if let Within::Code { .. } = self.at.within {
                    self.at.within = Within::Page { apart: true };
                    self.at.done = self.at.scanned + line.len() + 1;
                }
            }
            Some(_) => {}
            None => {
                self.at.fence = Fence::open(line, self.at.scanned);
                self.at.in_html |= line.trim_start().starts_with('<');
            }
        }
        self.at.after_blank = self.at.fence.is_none() && line.trim().is_empty();
    }

    /// Lays out the text up to there, finally.
    fn settle_page(&mut self, text: &str, to: usize, keeps_apart: bool) {
        let apart = self.put_page(&text[self.at.done..to]);
        self.at.within = Within::Page { apart: apart && keeps_apart };
        self.at.in_html = false;
        (self.at.done, self.settled) = (to, self.lines.len());
    }

    fn put_page(&mut self, text: &str) -> bool {
        let Within::Page { apart } = self.at.within else { return false };
        let mut page = Page::new(self.columns.saturating_sub(self.style.indent), self.theme);
        (page.apart, page.is_first) = (apart, self.at.done == 0);
        let (lines, apart) = page.read(text);
        lines.into_iter().for_each(|line| self.put(line));
        apart
    }

    /// Goes over to code, whose lines are laid out one by one.
    fn begin_code(&mut self, text: &str) {
        let (false, Some(fence)) = (self.is_code(), &self.at.fence) else { return };
        let (from, code, indent) = (fence.from, fence.code, fence.indent);
        let lexer = Code::new(hidden::language(&fence.language), self.theme);
        let beside = hidden::beside_language(&fence.language).map(clean);
        if from > self.at.done {
            self.settle_page(text, from, true);
        }
        let Within::Page { apart } = self.at.within else { return };
        if apart {
            self.put(Line::default());
        }
        if let Some(beside) = beside {
            self.put_code_line(Line::styled(beside, self.theme.quiet()), indent);
        }
        self.at.within = Within::Code { code: lexer, indent, blanks: 0 };
        (self.at.done, self.settled) = (code, self.lines.len());
    }

    fn settle_code(&mut self, text: &str, to: usize) {
        if to > self.at.done {
            self.put_code(&text[self.at.done..to]);
            (self.at.done, self.settled) = (to, self.lines.len());
        }
    }

    fn put_code(&mut self, text: &str) {
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let Within::Code { code, indent, blanks } = &mut self.at.within else { return };
            let spaces = line.len() - line.trim_start_matches(' ').len();
            let line = clean(line[spaces.min(*indent)..].trim_end_matches('\r'));
            if line.trim().is_empty() {
                *blanks += 1;
                continue;
            }
            let (empty, indent, line) = (std::mem::take(blanks), *indent, code.line(&line));
            (0..empty).for_each(|_| self.put(Line::raw(" ".repeat(indent + 2))));
            self.put_code_line(line, indent);
        }
    }

    fn put_code_line(&mut self, line: Line<'static>, indent: usize) {
        let before = " ".repeat(indent + 2);
        let columns = self.columns.saturating_sub(self.style.indent + before.len());
        for mut piece in wrap(line, columns, 2) {
            piece.spans.insert(0, Span::raw(before.clone()));
            self.put(piece);
        }
    }

    fn show_rest(&mut self, text: &str) {
        let rest = &text[self.at.done..];
        let closes = self.at.fence.as_ref().is_some_and(|fence| fence.is_closed_by(rest));
        match &self.at.within {
            Within::Page { .. } => {
                self.put_page(rest);
            }
            Within::Code { .. } if rest.is_empty() || closes => {}
            Within::Code { code, indent, blanks } => {
                // The incomplete line will be laid out again.
                let now = Within::Code { code: code.clone(), indent: *indent, blanks: *blanks };
                self.put_code(rest);
                self.at.within = now;
            }
        }
    }

    /// Adds a line with its margin and style.
    fn put(&mut self, mut line: Line<'static>) {
        let is_first = self.is_whole && self.lines.len() == usize::from(self.style.apart);
        for span in &mut line.spans {
            span.style = self.style.style.patch(span.style);
        }
        let before = match is_first {
            true => self.style.sign.to_owned(),
            false => " ".repeat(self.style.indent),
        };
        if !before.is_empty() && (is_first || !line.spans.is_empty()) {
            line.spans.insert(0, Span::styled(before, self.style.style));
        }
        let lines = Rc::make_mut(&mut self.lines);
        // On a narrow screen the margin may be too wide.
        if line.width() <= self.columns {
            lines.push(line);
        } else {
            lines.extend(wrap(line, self.columns, 0));
        }
    }
}

/// Where the last word within that many bytes begins, or else the end of these bytes.
fn last_word(text: &str, from: usize, bytes: usize) -> usize {
    let end = (from..=from + bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let starts = text[from..end].char_indices().zip(text[from..end].chars().skip(1));
    let begins = |((at, blank), word): ((usize, char), char)| {
        (blank.is_whitespace() && word.is_alphabetic()).then(|| from + at + blank.len_utf8())
    };
    starts.filter_map(begins).last().unwrap_or(end)
}
