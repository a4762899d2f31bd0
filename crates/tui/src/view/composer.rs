//! The composer, between two rules.

use std::borrow::Cow;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::app::Model;
use crate::clean::clean_line;
use crate::composer::Composer;
use crate::theme::Theme;
use crate::wrap::{cells, width};

/// Maximum number of rows of text.
const ROWS: usize = 10;
const SIGN: &str = "> ";

pub(super) fn rows(field: &Field) -> usize {
    field.lines.len().min(ROWS) + 2
}

pub(super) fn draw(model: &Model, field: &Field, frame: &mut Frame<'_>, area: Rect) {
    let block = Block::new().borders(Borders::TOP | Borders::BOTTOM).border_style(model.theme.quiet());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let hint = match (&model.session.over, model.session.state.is_busy()) {
        (Some(_), _) => "this session has ended",
        (None, true) => "type to queue; Esc interrupts",
        (None, false) => "ask for something; ? shows the keys",
    };
    field.draw(hint, model.theme, frame, inner);
}

#[derive(Debug)]
pub(super) struct Field {
    lines: Vec<String>,
    /// The row and the column of the cursor.
    cursor: (usize, usize),
    is_empty: bool,
}

impl Field {
    pub(super) fn new(composer: &Composer, columns: usize) -> Self {
        let (lines, cursor) = lay_out(composer, columns);
        Self { lines, cursor, is_empty: composer.is_empty() }
    }

    /// Draws as many rows as there is room for, the cursor among them.
    pub(super) fn draw(&self, hint: &str, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
        let (row, column) = self.cursor;
        let rows = usize::from(area.height).max(1);
        let first = row.saturating_sub(rows - 1);
        let shown = self.lines.iter().skip(first).take(rows).map(|line| Line::raw(line.as_str()));
        let mut shown: Vec<Line<'_>> = shown.collect();
        if let Some(line) = shown.first_mut().filter(|_| self.is_empty) {
            line.spans.push(Span::styled(hint, theme.quiet()));
        }
        frame.render_widget(Paragraph::new(shown), area);
        let at = |base: u16, offset: usize| base.saturating_add(cells(offset));
        frame.set_cursor_position(Position::new(at(area.x, column), at(area.y, row - first)));
    }
}

/// The lines on the screen, and the row and column of the cursor.
fn lay_out(composer: &Composer, columns: usize) -> (Vec<String>, (usize, usize)) {
    let columns = columns.max(8);
    let (mut lines, mut line, mut used) = (Vec::new(), SIGN.to_owned(), width(SIGN));
    let mut cursor = None;
    for (at, grapheme) in composer.text().grapheme_indices(true) {
        let (shown, ends) = (visible(grapheme), grapheme.ends_with('\n'));
        let wide = width(&shown);
        if used + wide > columns {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            used = 2;
        }
        if at >= composer.cursor() && cursor.is_none() {
            cursor = Some((lines.len(), used));
        }
        line.push_str(&shown);
        used += wide;
        if ends {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            used = 2;
        }
    }
    let cursor = cursor.unwrap_or_else(|| {
        if used >= columns {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            used = 2;
        }
        (lines.len(), used)
    });
    lines.push(line);
    (lines, cursor)
}

/// A grapheme as the screen can show it: a tab as blanks, and a mark for anything invisible, so that everything that would
/// be sent can be seen and erased.
fn visible(grapheme: &str) -> Cow<'_, str> {
    match grapheme {
        "\n" => "".into(),
        "\r\n" => "␍".into(),
        "\t" => "    ".into(),
        ascii if ascii.bytes().all(|byte| (b' '..=b'~').contains(&byte)) => ascii.into(),
        other => clean_line(other).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::composer::Move;

    #[track_caller]
    fn check(text: &str, cursor: usize, lines: &[&str], at: (usize, usize)) {
        let mut composer = Composer::with(text);
        composer.go(Move::Start);
        while composer.cursor() < cursor {
            composer.go(Move::Right);
        }
        let (shown, place) = lay_out(&composer, 12);
        assert_eq!((shown.iter().map(|line| line.trim_end()).collect::<Vec<_>>(), place), (lines.to_vec(), at));
    }

    #[test]
    fn the_cursor_is_where_the_next_letter_goes() {
        check("ab", 2, &["> ab"], (0, 4));
        check("ab\ncd", 3, &["> ab", "  cd"], (1, 2));
        check("日本語日本語", 15, &["> 日本語日本", "  語"], (1, 2));
        check("0123456789", 10, &["> 0123456789", ""], (1, 2));
    }

    #[test]
    fn tabs_and_control_characters_are_seen() {
        check("a\tb", 2, &["> a    b"], (0, 7));
        check("a\u{1b}[31mb", 6, &["> a␛[31mb"], (0, 8));
        check("x\u{7f}\u{9b}y", 4, &["> x␡\\u009by"], (0, 10));
        check("a\r\nb", 3, &["> a␍", "  b"], (1, 2));
    }
}
