//! What lies over the screen: the table of keys, a list to choose from, or a page to read.

use ratatui::Frame;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::above::{fit, items};
use crate::app::{Overlay, Page, Picker};
use crate::clean::{clean, clean_line};
use crate::complete::Item;
use crate::keys::BINDINGS;
use crate::theme::Theme;
use crate::wrap::{cells, width, wrap};

/// The width of the column of keys.
const KEYS: usize = 32;
/// From this width on there is room for two columns.
const BESIDE: usize = 70;

#[derive(Debug)]
pub(super) enum Content {
    Items(Vec<Item>),
    /// Lines to read, and how many of them fit.
    Lines(Vec<Line<'static>>, usize),
}

impl Content {
    pub(super) fn new(overlay: &Overlay, size: Size, theme: Theme) -> Self {
        let (columns, rows) = (usize::from(size.width).saturating_sub(2), usize::from(size.height));
        match overlay {
            Overlay::Picker(picker) => Self::Items(picker.items()),
            Overlay::Keys { .. } => Self::Lines(keys(columns.max(1), theme), rows.saturating_sub(2)),
            // The status line stays, and the frame takes two.
            Overlay::Page(page) => Self::Lines(text(page, columns), rows.saturating_sub(3)),
        }
    }

    /// How many lines do not fit.
    pub(super) fn hidden(&self) -> usize {
        if let Self::Lines(lines, room) = self { lines.len().saturating_sub(*room) } else { 0 }
    }

    /// The lines from that one on, or the last lines that fill the room.
    pub(super) fn from(&self, top: usize) -> Vec<Line<'static>> {
        let Self::Lines(lines, _) = self else { return Vec::new() };
        lines[top.min(self.hidden())..].to_vec()
    }
}

/// Draws it at the bottom, so that the end of the transcript stays in sight.
pub(super) fn draw(overlay: &Overlay, content: &Content, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let (filter, count) = match (overlay, content) {
        (Overlay::Picker(picker), Content::Items(items)) => (!picker.filter.is_empty(), items.len().max(1)),
        (_, Content::Items(items)) => (false, items.len()),
        (_, Content::Lines(lines, _)) => (false, lines.len()),
    };
    let height = cells(2 + count + usize::from(filter)).min(area.height);
    let area = Rect { y: area.bottom() - height, height, ..area };
    frame.render_widget(Clear, area);
    match (overlay, content) {
        (Overlay::Picker(picker), Content::Items(items)) => draw_picker(picker, items, theme, frame, area),
        (Overlay::Page(page), _) => draw_page(page, content, theme, frame, area),
        _ => {}
    }
}

fn draw_picker(picker: &Picker, found: &[Item], theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let hint = " Enter selects · Esc closes · type to filter ";
    let block = Block::bordered()
        .title(format!(" {} ", fit(&clean_line(&picker.title), usize::from(area.width).saturating_sub(4))))
        .title_bottom(fit(hint, usize::from(area.width).saturating_sub(2)))
        .border_style(theme.accent());
    let inner = block.inner(area);
    let mut lines = Vec::new();
    if !picker.filter.is_empty() {
        lines.push(Line::styled(format!("> {}", clean_line(&picker.filter)), theme.quiet()));
    }
    let (rows, columns) = (usize::from(inner.height).saturating_sub(lines.len()).max(1), usize::from(inner.width));
    if found.is_empty() {
        lines.push(Line::styled("no matches", theme.quiet()));
    }
    lines.extend(items(found, picker.chosen, rows, columns, theme));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_page(page: &Page, content: &Content, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let block = Block::bordered()
        .title(format!(" {} ", page.title))
        .title_bottom(fit(" ↑ ↓ scroll · any other key closes ", usize::from(area.width).saturating_sub(2)))
        .border_style(theme.quiet());
    let mut lines = content.from(page.top);
    lines.truncate(usize::from(block.inner(area).height));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}

/// The lines of a page. Lines of two columns are wrapped in the second one, or below the first on a narrow screen.
fn text(page: &Page, columns: usize) -> Vec<Line<'static>> {
    let lines = page.lines.iter().flat_map(move |line| {
        let line = clean(line);
        let Some((name, does)) = line.split_once("  ").filter(|(name, _)| width(&line) > columns && !name.is_empty())
        else {
            return wrap(Line::raw(line), columns, 4);
        };
        let does = does.trim_start();
        if columns >= BESIDE {
            let second = width(&line) - width(does);
            return wrap(Line::raw(line), columns, second);
        }
        let mut lines = wrap(Line::raw(name.to_owned()), columns, 4);
        lines.extend(wrap(Line::raw(format!("    {does}")), columns, 4));
        lines
    });
    // Black on white whatever the theme: a camera has to read it.
    let code = page.code.iter().map(|line| Line::styled(line.clone(), Style::new().fg(Color::Black).bg(Color::White)));
    lines.chain(code).collect()
}

/// Draws the table of keys, over everything.
pub(super) fn draw_keys(content: &Content, top: usize, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let title =
        if content.hidden() > 0 { " Keys · arrows scroll, others close " } else { " Keys · any key closes this " };
    let block = Block::bordered().title(title).border_style(theme.quiet());
    frame.render_widget(Paragraph::new(content.from(top)).block(block), area);
}

fn keys(columns: usize, theme: Theme) -> Vec<Line<'static>> {
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
