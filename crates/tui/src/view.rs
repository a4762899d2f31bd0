//! The model on the screen, and nothing else.

mod above;
mod composer;
mod help;
mod overlay;
mod question;
mod status;
mod title;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::app::{Model, Overlay};
use crate::transcript::{COUNTED, Shape, mark};
use crate::wrap::width;

/// The rows under the transcript.
pub(crate) fn below(model: &Model) -> usize {
    let middle = match &model.asking {
        Some(asking) => question::rows(model, asking),
        None => above::rows(model) + composer::rows(model),
    };
    middle + status::rows(model)
}

/// How many lines of what is asked about are not on the screen.
pub(crate) fn hidden_details(model: &Model) -> usize {
    model.asking.as_ref().map_or(0, |asking| question::hidden(model, asking))
}

/// Whether a question on this screen can be read, and so answered.
pub(crate) fn is_readable(model: &Model) -> bool {
    question::is_readable(model)
}

/// How many lines of the help are not on the screen.
pub(crate) fn hidden_help(model: &Model) -> usize {
    help::hidden(model)
}

/// How many lines of the page that lies over the screen are not on it.
pub(crate) fn hidden_page(model: &Model) -> usize {
    match &model.overlay {
        Some(Overlay::Page(page)) => overlay::hidden(page, usize::from(model.columns), usize::from(model.rows)),
        Some(Overlay::Picker(_)) | None => 0,
    }
}

/// The title of the window.
pub(crate) fn title(model: &Model) -> String {
    title::title(model)
}

/// Draws everything.
pub(crate) fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    if model.help {
        return help::draw(model, frame, area);
    }
    let below = u16::try_from(below(model)).unwrap_or(u16::MAX).min(area.height);
    let last = u16::try_from(status::rows(model)).unwrap_or(1).min(area.height);
    let heights = [Constraint::Min(0), Constraint::Length(below.saturating_sub(last)), Constraint::Length(last)];
    let [above, middle, status] = Layout::vertical(heights).areas(area);
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
        let area = Rect { height: area.height.saturating_sub(last), ..area };
        overlay::draw(model, overlay, frame, area);
    }
}

fn transcript(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let shape = Shape { columns: usize::from(area.width), rows: usize::from(area.height), theme: model.theme };
    let mut lines = model.transcript.visible(model.scroll, shape);
    if let Some(search) = &model.search {
        lines.iter_mut().for_each(|line| mark(line, search.words.text(), model.theme.found()));
    }
    frame.render_widget(Paragraph::new(lines), area);
    if let Some(left) = model.left {
        below_hint(model, model.transcript.since(left, shape), frame, area);
    }
}

/// Says what is under the last line, in its right corner.
fn below_hint(model: &Model, new: usize, frame: &mut Frame<'_>, area: Rect) {
    let words = match new {
        0 => " ↓ Ctrl+End ".to_owned(),
        1 => " ↓ 1 new line below ".to_owned(),
        2..=COUNTED => format!(" ↓ {new} new lines below "),
        _ => format!(" ↓ more than {COUNTED} new lines below "),
    };
    let wide = u16::try_from(width(&words)).unwrap_or(u16::MAX).min(area.width);
    let at =
        Rect { x: area.right() - wide, y: area.bottom().saturating_sub(1), width: wide, height: area.height.min(1) };
    frame.render_widget(Paragraph::new(Line::styled(words, model.theme.chosen())), at);
}
