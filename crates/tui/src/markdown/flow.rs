//! A text that grows, laid out as far as it goes. What is finished of it is laid out once: what a little more costs
//! does not depend on how much there is. Pure.
//!
//! The text is parted where that does not show: where a paragraph, a heading or code begins after an empty line, outside
//! of code, lists and HTML (links that are defined elsewhere do not find their definition then), and between the lines of
//! code. Where there is no such place for long, between two lines or words, which may show. Where it is parted depends on
//! the text alone, not on the pieces in which it came, nor on the width: at another width its end is laid out without its
//! beginning, from a place that was remembered.

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

/// How a text looks beside what it says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dress {
    /// Whether an empty line stands before it.
    pub(crate) apart: bool,
    /// What stands before its first line, and how wide that is: the other lines begin there too.
    pub(crate) sign: &'static str,
    pub(crate) indent: usize,
    pub(crate) style: Style,
}

/// How long a part is.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// From here on it ends at the first place where that does not show.
    part: usize,
    /// From here on it ends where it can.
    longest: usize,
    /// So far apart are places from which it can be laid out.
    place: usize,
}

const LIMITS: Limits = Limits { part: 4096, longest: 8192, place: 64 * 1024 };

/// A text under way.
#[derive(Debug)]
pub(crate) struct Flow {
    columns: usize,
    theme: Theme,
    dress: Dress,
    limits: Limits,
    lines: Rc<Vec<Line<'static>>>,
    /// How many lines there are of the text that is settled. Those after them are made again.
    settled: usize,
    at: Place,
    length: usize,
    /// Places from which it can be laid out at another width, in their order.
    places: Vec<Place>,
    /// It is laid out from its beginning.
    is_whole: bool,
}

impl Flow {
    pub(crate) fn new(columns: usize, theme: Theme, dress: Dress) -> Self {
        let first: Vec<Line<'static>> = dress.apart.then(Line::default).into_iter().collect();
        Self {
            columns,
            theme,
            dress,
            limits: LIMITS,
            settled: first.len(),
            lines: Rc::new(first),
            at: Place::first(),
            length: 0,
            places: Vec::new(),
            is_whole: true,
        }
    }

    /// The same text at another width. What of it is laid out depends on what is wanted first.
    pub(crate) fn anew(self, columns: usize) -> Self {
        Self { places: self.places, limits: self.limits, ..Self::new(columns, self.theme, self.dress) }
    }

    /// Goes on to the end of this text: all of it, or, where it was laid out before, as much of its end as has so many
    /// lines.
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

    /// Goes on to the end of this text, and has all of its lines.
    pub(crate) fn lay_out_whole(&mut self, text: &str) {
        if !self.is_whole {
            *self = std::mem::replace(self, Self::new(self.columns, self.theme, self.dress)).anew(self.columns);
        }
        self.lay_out(text);
    }

    /// The lines that are laid out.
    pub(crate) fn lines(&self) -> Rc<Vec<Line<'static>>> {
        self.lines.clone()
    }

    /// Goes on to the end of this text, which begins with what was laid out before.
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

    /// Parts the text before the line that goes on to `end` at least, or in it, if it is time.
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

    /// Keeps the place for another width, now and then.
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
        // What stands further in, or in a table, belongs to what is before it.
        let belongs = line.starts_with([' ', '\t', '|']);
        if size >= 2 * self.limits.longest || (size >= self.limits.longest && !belongs) {
            self.settle_page(text, at, false);
        }
    }

    /// What a whole line means for those after it.
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

    /// Lays the text out up to there, for good.
    fn settle_page(&mut self, text: &str, to: usize, keeps_apart: bool) {
        let apart = self.put_page(&text[self.at.done..to]);
        self.at.within = Within::Page { apart: apart && keeps_apart };
        self.at.in_html = false;
        (self.at.done, self.settled) = (to, self.lines.len());
    }

    fn put_page(&mut self, text: &str) -> bool {
        let Within::Page { apart } = self.at.within else { return false };
        let mut page = Page::new(self.columns.saturating_sub(self.dress.indent), self.theme);
        (page.apart, page.is_first) = (apart, self.at.done == 0);
        let (lines, apart) = page.read(text);
        lines.into_iter().for_each(|line| self.put(line));
        apart
    }

    /// From the fence on the text is code, whose lines can be laid out one by one.
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
        let columns = self.columns.saturating_sub(self.dress.indent + before.len());
        for mut piece in wrap(line, columns, 2) {
            piece.spans.insert(0, Span::raw(before.clone()));
            self.put(piece);
        }
    }

    /// What is not settled yet.
    fn show_rest(&mut self, text: &str) {
        let rest = &text[self.at.done..];
        let closes = self.at.fence.as_ref().is_some_and(|fence| fence.is_closed_by(rest));
        match &self.at.within {
            Within::Page { .. } => {
                self.put_page(rest);
            }
            Within::Code { .. } if rest.is_empty() || closes => {}
            Within::Code { code, indent, blanks } => {
                // What is shown of a line under way does not count for the next.
                let now = Within::Code { code: code.clone(), indent: *indent, blanks: *blanks };
                self.put_code(rest);
                self.at.within = now;
            }
        }
    }

    /// A line that fits, dressed up.
    fn put(&mut self, mut line: Line<'static>) {
        let is_first = self.is_whole && self.lines.len() == usize::from(self.dress.apart);
        for span in &mut line.spans {
            span.style = self.dress.style.patch(span.style);
        }
        let before = match is_first {
            true => self.dress.sign.to_owned(),
            false => " ".repeat(self.dress.indent),
        };
        if !before.is_empty() && (is_first || !line.spans.is_empty()) {
            line.spans.insert(0, Span::styled(before, self.dress.style));
        }
        let lines = Rc::make_mut(&mut self.lines);
        // Whatever stands before a line, on a narrow screen it may be too much.
        if line.width() <= self.columns {
            lines.push(line);
        } else {
            lines.extend(wrap(line, self.columns, 0));
        }
    }
}

/// The last place before so many bytes where a word begins; or just there.
fn last_word(text: &str, from: usize, bytes: usize) -> usize {
    let end = (from..=from + bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let starts = text[from..end].char_indices().zip(text[from..end].chars().skip(1));
    let begins = |((at, blank), word): ((usize, char), char)| {
        (blank.is_whitespace() && word.is_alphabetic()).then(|| from + at + blank.len_utf8())
    };
    starts.filter_map(begins).last().unwrap_or(end)
}
