//! Draws the model. `Layout` says where everything is: it is computed once per frame, `view` draws by it, and `update`
//! gets it for everything that depends on what the user sees.

mod above;
mod composer;
mod overlay;
mod question;
mod status;

use std::num::NonZeroU16;

use ratatui::Frame;
use ratatui::buffer::{Buffer, CellDiffOption};
use ratatui::layout::{Constraint, Rect, Size};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use self::composer::Field;
pub(crate) use self::status::title;
use crate::app::{Model, Overlay};
use crate::transcript::{COUNTED, PathLink, Shape, mark};
use crate::wrap::{cells, width};

/// Where everything is in one frame, with the lines of whatever the layout depends on.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) size: Size,
    /// The layout parameters of the transcript's lines.
    pub(crate) shape: Shape,
    middle: Middle,
    status: Vec<Line<'static>>,
    overlay: Option<overlay::Content>,
}

/// The area between the transcript and the status line.
#[derive(Debug)]
enum Middle {
    Question(question::Content),
    Prompt { above: Vec<Line<'static>>, field: Field },
}

impl Layout {
    pub(crate) fn new(model: &Model, size: Size) -> Self {
        let columns = usize::from(size.width);
        let middle = match &model.questions.shown {
            Some(dialog) => Middle::Question(question::Content::new(model, dialog, size)),
            None => Middle::Prompt {
                above: above::lines(model, columns),
                field: Field::new(&model.prompt.composer, columns),
            },
        };
        let status = status::lines(model, size);
        let rows = usize::from(size.height).saturating_sub(middle.rows() + status.len()).max(1);
        let overlay = model.overlay.as_ref().map(|overlay| overlay::Content::new(overlay, size, model.theme));
        Self { size, shape: Shape { columns, rows, theme: model.theme }, middle, status, overlay }
    }

    pub(crate) fn hidden(&self) -> usize {
        self.overlay.as_ref().map_or(0, overlay::Content::hidden)
    }

    /// Number of lines of a question's details that do not fit.
    pub(crate) fn hidden_details(&self) -> usize {
        if let Middle::Question(content) = &self.middle { content.hidden } else { 0 }
    }

    /// Number of lines that a page of a question's details has.
    pub(crate) fn details_page(&self) -> usize {
        // One line stays, so that readers find their place.
        if let Middle::Question(content) = &self.middle { content.room.saturating_sub(2).max(1) } else { 1 }
    }

    /// Whether the screen is large enough to read a question: users must not allow what they cannot read.
    pub(crate) fn is_question_readable(&self) -> bool {
        question::is_readable(self.size)
    }
}

impl Middle {
    fn rows(&self) -> usize {
        match self {
            Self::Question(content) => content.rows,
            Self::Prompt { above, field } => above.len() + composer::rows(field),
        }
    }
}

pub(crate) fn view(model: &Model, layout: &Layout, frame: &mut Frame<'_>) {
    let area = frame.area();
    if let (Some(Overlay::Keys { top }), Some(content)) = (&model.overlay, &layout.overlay) {
        return overlay::draw_keys(content, *top, model.theme, frame, area);
    }
    let last = cells(layout.status.len()).min(area.height);
    let below = cells(layout.middle.rows() + layout.status.len()).min(area.height);
    let heights = [Constraint::Min(0), Constraint::Length(below.saturating_sub(last)), Constraint::Length(last)];
    let [above, middle, status] = ratatui::layout::Layout::vertical(heights).areas(area);
    transcript(model, layout, frame, above);
    match (&layout.middle, &model.questions.shown) {
        (Middle::Question(content), Some(dialog)) => question::draw(model, dialog, content, frame, middle),
        (Middle::Prompt { above, field }, _) => {
            let heights = [Constraint::Length(cells(above.len())), Constraint::Min(3)];
            let [offered, typed] = ratatui::layout::Layout::vertical(heights).areas(middle);
            frame.render_widget(Paragraph::new(above.clone()), offered);
            composer::draw(model, field, frame, typed);
        }
        (Middle::Question(_), None) => {}
    }
    status::draw(model, &layout.status, frame, status);
    if let (Some(overlay), Some(content)) = (&model.overlay, &layout.overlay) {
        let area = Rect { height: area.height.saturating_sub(last), ..area };
        overlay::draw(overlay, content, model.theme, frame, area);
    }
}

fn transcript(model: &Model, layout: &Layout, frame: &mut Frame<'_>, area: Rect) {
    let shape = Shape { rows: usize::from(area.height), ..layout.shape };
    let mut lines = model.scrollback.transcript.visible(model.scrollback.scroll, shape);
    if let Some(search) = &model.scrollback.search {
        lines.iter_mut().for_each(|line| mark(line, search.words.text(), model.theme.found()));
    }
    frame.render_widget(Paragraph::new(lines), area);
    if model.has_links {
        let links = model.scrollback.transcript.links(model.scrollback.scroll, shape);
        links.iter().for_each(|link| draw_link(link, frame.buffer_mut(), area));
    }
    if let Some(left) = model.scrollback.left {
        below_hint(model, model.scrollback.transcript.since(left, shape), frame, area);
    }
}

/// Makes cells a link. Each of them has the whole address: only those that change are written again.
fn draw_link(link: &PathLink, buffer: &mut Buffer, area: Rect) {
    let y = area.y.saturating_add(cells(link.row));
    let mut x = area.x.saturating_add(cells(link.columns.start));
    let end = area.x.saturating_add(cells(link.columns.end)).min(area.right());
    while let Some(cell) = buffer.cell_mut((x, y)).filter(|_| x < end) {
        let wide = NonZeroU16::new(cells(width(cell.symbol()))).unwrap_or(NonZeroU16::MIN);
        // The same id makes one link of all cells.
        let linked = format!("\x1b]8;id=file;{}\x1b\\{}\x1b]8;;\x1b\\", link.url, cell.symbol());
        cell.set_symbol(&linked).set_diff_option(CellDiffOption::ForcedWidth(wide));
        x += wide.get();
    }
}

/// Shows in the right corner how many lines follow below.
fn below_hint(model: &Model, new: usize, frame: &mut Frame<'_>, area: Rect) {
    let words = match new {
        0 => " ↓ Ctrl+End ".to_owned(),
        1 => " ↓ 1 new line below ".to_owned(),
        2..=COUNTED => format!(" ↓ {new} new lines below "),
        _ => format!(" ↓ more than {COUNTED} new lines below "),
    };
    let wide = cells(width(&words)).min(area.width);
    let at =
        Rect { x: area.right() - wide, y: area.bottom().saturating_sub(1), width: wide, height: area.height.min(1) };
    frame.render_widget(Paragraph::new(Line::styled(words, model.theme.chosen())), at);
}
