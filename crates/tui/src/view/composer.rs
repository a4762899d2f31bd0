//! What is being typed, between two rules.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::app::Model;
use crate::composer::Composer;
use crate::theme::Theme;
use crate::wrap::width;

/// How many rows of text are shown at most.
const ROWS: usize = 10;
const SIGN: &str = "> ";

/// The rows it takes up.
pub(super) fn rows(model: &Model) -> usize {
    let (lines, _) = laid_out(&model.composer, usize::from(model.columns));
    lines.len().min(ROWS) + 2
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let block = Block::new().borders(Borders::TOP | Borders::BOTTOM).border_style(model.theme.quiet());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let hint = match (&model.over, model.state.is_busy()) {
        (Some(_), _) => "nothing can be sent any more",
        (None, true) => "type to queue; Esc interrupts",
        (None, false) => "ask for something; ? shows the keys",
    };
    field(&model.composer, hint, model.theme, frame, inner);
}

/// A field to type in, with the cursor where it is.
pub(super) fn field(composer: &Composer, hint: &str, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let (lines, (row, column)) = laid_out(composer, usize::from(area.width));
    let rows = usize::from(area.height).max(1);
    let first = row.saturating_sub(rows - 1);
    let mut shown: Vec<Line<'_>> = lines.into_iter().skip(first).take(rows).map(Line::raw).collect();
    if composer.is_empty()
        && let Some(line) = shown.first_mut()
    {
        line.spans.push(Span::styled(hint.to_owned(), theme.quiet()));
    }
    frame.render_widget(Paragraph::new(shown), area);
    let at = |base: u16, offset: usize| base.saturating_add(u16::try_from(offset).unwrap_or(u16::MAX));
    frame.set_cursor_position(Position::new(at(area.x, column), at(area.y, row - first)));
}

/// The lines on the screen, and the row and column of the cursor.
fn laid_out(composer: &Composer, columns: usize) -> (Vec<String>, (usize, usize)) {
    let columns = columns.max(8);
    let (mut lines, mut line, mut used) = (Vec::new(), SIGN.to_owned(), width(SIGN));
    let mut cursor = (0, used);
    for (at, grapheme) in composer.text().grapheme_indices(true) {
        let shown = match grapheme {
            "\t" => "    ",
            other if other != "\n" && other.contains(char::is_control) => "\u{fffd}",
            other => other,
        };
        let wide = width(shown);
        if grapheme != "\n" && used + wide > columns {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            used = 2;
        }
        if at == composer.cursor() {
            cursor = (lines.len(), used);
        }
        if grapheme == "\n" {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            used = 2;
        } else {
            line.push_str(shown);
            used += wide;
        }
    }
    if composer.cursor() == composer.text().len() {
        if used >= columns {
            lines.push(std::mem::replace(&mut line, "  ".to_owned()));
            used = 2;
        }
        cursor = (lines.len(), used);
    }
    lines.push(line);
    (lines, cursor)
}
