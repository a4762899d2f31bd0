//! The table of keys, over everything.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use super::overlay::Content;
use crate::keys::BINDINGS;
use crate::theme::Theme;
use crate::wrap::wrap;

/// The width of the column of keys.
const KEYS: usize = 32;
/// From this width on there is room for two columns.
const BESIDE: usize = 70;

pub(super) fn draw(content: &Content, top: usize, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let title =
        if content.hidden() > 0 { " Keys · arrows scroll, others close " } else { " Keys · any key closes this " };
    let block = Block::bordered().title(title).border_style(theme.quiet());
    frame.render_widget(Paragraph::new(content.from(top)).block(block), area);
}

pub(super) fn lines(columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (keys, does) in BINDINGS {
        if columns >= BESIDE {
            let keys = Span::styled(format!("{keys:KEYS$}"), theme.accent());
            lines.extend(wrap(Line::from(vec![keys, Span::raw(*does)]), columns, KEYS));
        } else {
            lines.extend(wrap(Line::styled(*keys, theme.accent()), columns, 2));
            lines.extend(wrap(Line::raw(format!("  {does}")), columns, 2));
        }
    }
    lines
}
