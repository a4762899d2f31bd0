//! The keys, over everything.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use crate::app::Model;
use crate::keys::BINDINGS;
use crate::theme::Theme;
use crate::wrap::wrap;

/// How wide the keys are, beside what they do.
const KEYS: usize = 32;
/// From here on there is room for both.
const BESIDE: usize = 70;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let lines = lines(usize::from(area.width).saturating_sub(2).max(1), model.theme);
    let top = model.help_top.min(hidden(model));
    let title =
        if hidden(model) > 0 { " Keys · arrows scroll, others close " } else { " Keys · any key closes this " };
    let block = Block::bordered().title(title).border_style(model.theme.quiet());
    let shown: Vec<Line<'_>> = lines.into_iter().skip(top).collect();
    frame.render_widget(Paragraph::new(shown).block(block), area);
}

/// How many lines do not fit.
pub(super) fn hidden(model: &Model) -> usize {
    let all = lines(usize::from(model.columns).saturating_sub(2).max(1), model.theme).len();
    all.saturating_sub(usize::from(model.rows).saturating_sub(2))
}

fn lines(columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let beside = columns >= BESIDE;
    let mut lines = Vec::new();
    for binding in BINDINGS {
        if beside {
            let keys = Span::styled(format!("{:KEYS$}", binding.keys), theme.accent());
            lines.extend(wrap(Line::from(vec![keys, Span::raw(binding.does)]), columns, KEYS));
        } else {
            lines.extend(wrap(Line::styled(binding.keys, theme.accent()), columns, 2));
            lines.extend(wrap(Line::raw(format!("  {}", binding.does)), columns, 2));
        }
    }
    lines
}
