//! What lies over the screen: a choice, or a page.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use super::above::{fit, items};
use crate::app::{Model, Overlay, Page, Picker};
use crate::clean::{clean, clean_line};
use crate::wrap::{width, wrap};

/// From here on there is room for two columns.
const BESIDE: usize = 70;

/// As low as it can be, so that what was said before stays in sight.
pub(super) fn draw(model: &Model, overlay: &Overlay, frame: &mut Frame<'_>, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(2);
    let rows = 2 + match overlay {
        Overlay::Picker(picker) => picker.items().len().max(1) + usize::from(!picker.filter.is_empty()),
        Overlay::Page(page) => text(page, columns).count() + page.code.len(),
    };
    let height = u16::try_from(rows).unwrap_or(u16::MAX).min(area.height);
    let area = Rect { y: area.bottom() - height, height, ..area };
    frame.render_widget(Clear, area);
    match overlay {
        Overlay::Picker(picker) => draw_picker(model, picker, frame, area),
        Overlay::Page(page) => draw_page(model, page, frame, area),
    }
}

fn draw_picker(model: &Model, picker: &Picker, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    let hint = " Enter chooses · Esc closes · type to narrow ";
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
    let found = picker.items();
    if found.is_empty() {
        lines.push(Line::styled("nothing like it", theme.quiet()));
    }
    lines.extend(items(&found, picker.chosen, rows, columns, theme));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_page(model: &Model, page: &Page, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    let block = Block::bordered()
        .title(format!(" {} ", page.title))
        .title_bottom(fit(" ↑ ↓ scroll · any other key closes ", usize::from(area.width).saturating_sub(2)))
        .border_style(theme.quiet());
    let inner = block.inner(area);
    // Black on white whatever the theme: a camera has to read it.
    let code = page.code.iter().map(|line| Line::styled(line.clone(), Style::new().fg(Color::Black).bg(Color::White)));
    let lines: Vec<Line<'_>> = text(page, usize::from(inner.width))
        .chain(code)
        .skip(page.top.min(hidden(page, usize::from(model.columns), usize::from(model.rows))))
        .take(usize::from(inner.height))
        .collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), area);
}

/// How many lines of a page do not fit.
pub(super) fn hidden(page: &Page, columns: usize, rows: usize) -> usize {
    let all = text(page, columns.saturating_sub(2)).count() + page.code.len();
    // The status line stays, and the frame takes two.
    all.saturating_sub(rows.saturating_sub(3))
}

/// What is written in two columns goes on in the second, or below the first where there is no room for both.
fn text(page: &Page, columns: usize) -> impl Iterator<Item = Line<'static>> {
    page.lines.iter().flat_map(move |line| {
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
    })
}
