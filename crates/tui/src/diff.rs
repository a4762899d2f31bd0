//! Unified diffs for people: line numbers, syntax colours, and the words that changed within a line. Pure.

use std::ops::Range;

use multitap_diff::changed_words;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar as _;

use crate::clean::{clean, clean_line};
use crate::highlight::Code;
use crate::theme::{DiffSide, Theme};
use crate::wrap::wrap;

/// What the comparison of words may cost in one diff.
const WORDS_BUDGET: u64 = 1_000_000;
/// Longest line that is coloured by its syntax, and whose words are compared.
const LONGEST: usize = 2_000;

/// The lines of a unified diff. Every line is shown, except for a header that only names the file which the reader
/// knows: a diff may change several files, or move one. `limit` folds what comes after so many lines.
pub(crate) fn diff_lines(
    diff: &str,
    path: &str,
    columns: usize,
    limit: Option<usize>,
    theme: Theme,
) -> Vec<Line<'static>> {
    let rows = rows(diff, path);
    let last = rows.iter().filter_map(|row| if let Row::Line(line) = row { Some(line.number) } else { None }).max();
    let digits = last.unwrap_or_default().to_string().len().max(3);
    let mut drawing = Drawing { columns, digits, theme, budget: WORDS_BUDGET, code: Codes::new(path, theme) };
    let mut lines = Vec::new();
    let mut at = 0;
    while at < rows.len() && limit.is_none_or(|limit| lines.len() <= limit) {
        let most = limit.map_or(usize::MAX, |limit| limit + 1 - lines.len());
        at += drawing.draw(&rows[at..], most, &mut lines);
    }
    if let Some(limit) = limit {
        let hidden = lines.len().saturating_sub(limit) + (rows.len() - at);
        // A mark for one hidden line takes as much room as the line.
        if hidden > 1 && lines.len() > limit {
            lines.truncate(limit);
            lines.push(Line::styled(format!("{:digits$} … {hidden} more lines (Ctrl+O)", ""), theme.quiet()));
        }
    }
    lines
}

#[derive(Debug, Clone, Copy)]
enum Row<'a> {
    /// The header of a file: its old and its new name.
    File(&'a str, &'a str),
    /// The beginning of a hunk, and what it is in.
    Hunk(&'a str),
    Line(DiffLine<'a>),
}

#[derive(Debug, Clone, Copy)]
struct DiffLine<'a> {
    /// `None` for an unchanged line.
    side: Option<DiffSide>,
    number: u64,
    /// With its sign, if it has one.
    raw: &'a str,
}

fn rows<'a>(diff: &'a str, path: &str) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let (mut old, mut new) = (0_u64, 0_u64);
    // How many lines the hunk still has, as its header says.
    let (mut old_left, mut new_left) = (0_u64, 0_u64);
    let mut rest = diff.split_terminator('\n').peekable();
    if let [Some(from), Some(to)] = [rest.clone().next(), rest.clone().nth(1)]
        && names(from, "--- ", path)
        && names(to, "+++ ", path)
    {
        rest.nth(1);
    }
    while let Some(raw) = rest.next() {
        if let Some(head) = raw.strip_prefix("@@") {
            let section = match numbers(head) {
                Some((hunk, section)) => {
                    ((old, old_left), (new, new_left)) = hunk;
                    section
                }
                None => head,
            };
            rows.push(Row::Hunk(section.trim()));
            continue;
        }
        // Inside a hunk these are changed lines that begin with `-- ` or `++ `.
        let is_outside = old_left == 0 && new_left == 0;
        if is_outside
            && raw.starts_with("--- ")
            && let Some(to) = rest.next_if(|next| next.starts_with("+++ "))
        {
            rows.push(Row::File(raw, to));
            continue;
        }
        if raw.trim_end() == "\\ No newline at end of file" {
            continue;
        }
        let (number, side) = match raw.as_bytes().first() {
            Some(b'+') => {
                new_left = new_left.saturating_sub(1);
                (&mut new, Some(DiffSide::Added))
            }
            Some(b'-') => {
                old_left = old_left.saturating_sub(1);
                (&mut old, Some(DiffSide::Removed))
            }
            _ => {
                (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
                old += 1;
                (&mut new, None)
            }
        };
        rows.push(Row::Line(DiffLine { side, number: *number, raw }));
        *number += 1;
    }
    rows
}

struct Drawing {
    columns: usize,
    digits: usize,
    theme: Theme,
    /// What the comparison of words may still cost.
    budget: u64,
    code: Codes,
}

impl Drawing {
    /// Draws the next rows, at most that many, and returns how many: removed lines and the added ones that replace them
    /// are drawn together.
    fn draw(&mut self, rows: &[Row<'_>], most: usize, lines: &mut Vec<Line<'static>>) -> usize {
        let (digits, quiet) = (self.digits, self.theme.quiet());
        match rows {
            [] => 0,
            [Row::File(from, to), ..] => {
                self.code.restart();
                for name in [from, to] {
                    lines.extend(wrap(Line::styled(clean_line(name), self.theme.accent()), self.columns, 4));
                }
                1
            }
            [Row::Hunk(section), ..] => {
                self.code.restart();
                if !lines.is_empty() || !section.is_empty() {
                    let line = format!("{:digits$} ⋮ {}", "", clean(section));
                    lines.extend(wrap(Line::styled(line.trim_end().to_owned(), quiet), self.columns, digits + 3));
                }
                1
            }
            [Row::Line(line), ..] if line.side.is_none() => {
                lines.extend(self.line(*line, sign(line.raw), &[]));
                1
            }
            [Row::Line(_), ..] => {
                let removed = run(rows, DiffSide::Removed, most);
                let added = run(&rows[removed.len()..], DiffSide::Added, most - removed.len());
                let mut changed = Vec::new();
                for (old, new) in removed.iter().zip(&added) {
                    let (old, new) = (sign(old.raw).1, sign(new.raw).1);
                    let both = is_divisible(&old) && is_divisible(&new);
                    changed.push(changed_words(&old, &new, &mut self.budget).filter(|_| both));
                }
                let words = |at: usize| changed.get(at).and_then(Option::as_ref);
                for (at, line) in removed.iter().enumerate() {
                    lines.extend(self.line(*line, sign(line.raw), words(at).map_or(&[], |words| &words.old)));
                }
                for (at, line) in added.iter().enumerate() {
                    lines.extend(self.line(*line, sign(line.raw), words(at).map_or(&[], |words| &words.new)));
                }
                removed.len() + added.len()
            }
        }
    }

    fn line(&mut self, line: DiffLine<'_>, (sign, text): (&str, String), words: &[Range<usize>]) -> Vec<Line<'static>> {
        let (theme, digits) = (self.theme, self.digits);
        let base = line.side.map_or_else(|| theme.unchanged(), |side| theme.changed(side));
        let mut spans = self.code.line(line.side, &text);
        if let Some(side) = line.side {
            spans.iter_mut().for_each(|span| span.style = theme.on_bar(span.style));
            spans = emphasised(spans, words, theme.changed_word(side));
        }
        let first = [Span::styled(format!("{:>digits$} ", line.number), theme.quiet()), Span::raw(sign.to_owned())];
        let mut drawn = wrap(Line::from_iter(first.into_iter().chain(spans)), self.columns, digits + 2);
        for row in &mut drawn {
            row.spans.iter_mut().for_each(|span| span.style = base.patch(span.style));
            if base.bg.is_some() {
                let rest = self.columns.saturating_sub(row.width());
                row.spans.push(Span::styled(" ".repeat(rest), base));
            }
        }
        drawn
    }
}

/// The lines of that side at the beginning, at most so many.
fn run<'a>(rows: &[Row<'a>], side: DiffSide, most: usize) -> Vec<DiffLine<'a>> {
    let line = |row: &Row<'a>| match row {
        Row::Line(line) if line.side == Some(side) => Some(*line),
        _ => None,
    };
    rows.iter().take(most).map_while(line).collect()
}

/// The syntax of both sides of a diff.
struct Codes {
    start: Code,
    old: Code,
    new: Code,
}

impl Codes {
    fn new(path: &str, theme: Theme) -> Self {
        let name = path.rsplit('/').next().unwrap_or_default();
        // Without a bar behind a line, its colour says on which side it is.
        let name = if theme.has_bars() { name.rsplit('.').next().unwrap_or_default() } else { "" };
        let start = Code::new(name, theme);
        Self { old: start.clone(), new: start.clone(), start }
    }

    /// A hunk begins somewhere: what an earlier one left open is unknown.
    fn restart(&mut self) {
        (self.old, self.new) = (self.start.clone(), self.start.clone());
    }

    /// The text of a line, after its sign.
    fn line(&mut self, side: Option<DiffSide>, text: &str) -> Vec<Span<'static>> {
        let line = match side {
            _ if !is_divisible(text) => return vec![Span::raw(text.to_owned())],
            Some(DiffSide::Removed) => self.old.line(text),
            Some(DiffSide::Added) => self.new.line(text),
            None => {
                self.old.line(text);
                self.new.line(text)
            }
        };
        line.spans
    }
}

/// Whether parts of a line may have styles of their own. The screen would drop a combining character that begins a part.
fn is_divisible(text: &str) -> bool {
    text.len() <= LONGEST && (text.is_ascii() || text.chars().all(|c| c.width() != Some(0)))
}

/// The sign of a line, and its text.
fn sign(raw: &str) -> (&str, String) {
    let (sign, text) = raw.split_at(usize::from(raw.starts_with([' ', '+', '-'])));
    (sign, clean(text))
}

/// The spans with these byte ranges in that style.
fn emphasised(spans: Vec<Span<'static>>, ranges: &[Range<usize>], style: Style) -> Vec<Span<'static>> {
    if ranges.is_empty() {
        return spans;
    }
    let mut pieces = Vec::new();
    let mut ranges = ranges.iter().peekable();
    let mut at = 0;
    for span in spans {
        let mut rest = span.content.as_ref();
        while !rest.is_empty() {
            while ranges.next_if(|range| range.end <= at).is_some() {}
            let (end, is_inside) = match ranges.peek() {
                Some(range) if range.start <= at => (range.end, true),
                Some(range) => (range.start, false),
                None => (usize::MAX, false),
            };
            let (piece, after) = rest.split_at_checked(end - at).unwrap_or((rest, ""));
            pieces.push(Span::styled(piece.to_owned(), if is_inside { span.style.patch(style) } else { span.style }));
            (at, rest) = (at + piece.len(), after);
        }
    }
    pieces
}

/// Whether a header line of a diff names that file, or none.
fn names(line: &str, sign: &str, path: &str) -> bool {
    let Some(name) = line.strip_prefix(sign) else { return false };
    let bare = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
    let (bare, path) = (bare.trim_start_matches('/'), path.trim_start_matches('/'));
    let is_end_of_path = path.strip_suffix(bare).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
    name == "/dev/null" || (!bare.is_empty() && is_end_of_path)
}

/// First line and number of lines, in the old and the new file.
type Hunk = ((u64, u64), (u64, u64));

/// The header of a hunk, ` -1,3 +1,4 @@ section`, and the section.
fn numbers(head: &str) -> Option<(Hunk, &str)> {
    let (numbers, section) = head.split_once("@@")?;
    let mut parts = numbers.split_whitespace();
    let mut next = |sign: char| {
        let part = parts.next()?.strip_prefix(sign)?;
        let (first, count) = part.split_once(',').unwrap_or((part, "1"));
        Some((first.parse().ok()?, count.parse().ok()?))
    };
    let hunk = (next('-')?, next('+')?);
    parts.next().is_none().then_some((hunk, section))
}
