//! The model on the screen, and nothing else.

mod above;
mod composer;
mod help;
mod overlay;
mod question;
mod status;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::widgets::Paragraph;

use crate::app::Model;

/// The rows under the transcript.
pub(crate) fn below(model: &Model) -> usize {
    let middle = match &model.asking {
        Some(asking) => question::rows(model, asking),
        None => above::rows(model) + composer::rows(model),
    };
    middle + 1
}

/// Draws everything.
pub(crate) fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if model.help {
        return help::draw(model, frame, area);
    }
    let below = u16::try_from(below(model)).unwrap_or(u16::MAX).min(area.height);
    let [above, middle, status] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(below.saturating_sub(1)), Constraint::Length(1)])
            .areas(area);
    transcript(model, frame, above);
    match &model.asking {
        Some(asking) => question::draw(model, asking, frame, middle),
        None => {
            let rows = u16::try_from(above::rows(model)).unwrap_or(u16::MAX);
            let [offered, typed] = Layout::vertical([Constraint::Length(rows), Constraint::Min(3)]).areas(middle);
            above::draw(model, frame, offered);
            composer::draw(model, frame, typed);
        }
    }
    status::draw(model, frame, status);
    if let Some(overlay) = &model.overlay {
        let area = Rect { height: area.height.saturating_sub(1), ..area };
        overlay::draw(model, overlay, frame, area);
    }
}

fn transcript(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let (columns, rows) = (usize::from(area.width), usize::from(area.height));
    let lines = model.transcript.visible(model.scroll, columns, rows, model.theme);
    frame.render_widget(Paragraph::new(lines), area);
}
