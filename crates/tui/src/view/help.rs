//! The keys, over everything.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};

use crate::app::Model;
use crate::keys::BINDINGS;

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    let lines: Vec<Line<'_>> = BINDINGS
        .iter()
        .map(|binding| {
            Line::from(vec![Span::styled(format!("{:32} ", binding.keys), theme.accent()), Span::raw(binding.does)])
        })
        .collect();
    let block = Block::bordered().title(" Keys · any key closes this ").border_style(theme.quiet());
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}
