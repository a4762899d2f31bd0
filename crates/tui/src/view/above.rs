//! The lines above the composer: queued prompts, completions, the search in the history.

use ratatui::text::{Line, Span};

use crate::app::Model;
use crate::clean::clean_line;
use crate::complete::Item;
use crate::number;
use crate::theme::Theme;
use crate::transcript::who;
use crate::wrap::width;

/// Maximum number of queued prompts that are shown.
const QUEUED: usize = 3;
/// Maximum number of completions that are shown.
const OFFERED: usize = 8;
/// Below this width, names get most of the room.
const NARROW: usize = 60;

pub(super) fn lines(model: &Model, columns: usize) -> Vec<Line<'static>> {
    let theme = model.theme;
    let mut lines = queued(model, columns);
    if let Some(search) = &model.prompt.history.search {
        let found = if search.is_found() { "" } else { " · no match" };
        let words =
            format!("search: {}{found} · Ctrl+R older · Enter accepts · Esc cancels", clean_line(&search.words));
        lines.push(Line::styled(fit(&words, columns), theme.accent()));
    } else if let Some(completion) = &model.prompt.completion {
        lines.extend(items(&completion.items, completion.chosen, OFFERED, columns, theme));
    }
    lines
}

fn queued(model: &Model, columns: usize) -> Vec<Line<'static>> {
    let (theme, queue) = (model.theme, &model.session.state.queue);
    let first = queue.len().saturating_sub(QUEUED);
    let mut lines: Vec<Line<'static>> = Vec::new();
    if first > 0 {
        lines.push(Line::styled(fit(&format!("  {first} more queued before these"), columns), theme.quiet()));
    }
    lines.extend(queue.iter().skip(first).map(|queued| {
        let whose = queued.from.as_ref().filter(|_| !model.is_mine(queued));
        let whose = whose.map(|from| format!("{}: ", who(from))).unwrap_or_default();
        let text = clean_line(&queued.prompt.text) + &number::images(queued.prompt.images.len());
        Line::styled(fit(&format!("  queued: {whose}{text}"), columns), theme.quiet())
    }));
    if queue.iter().any(|queued| model.is_mine(queued)) && model.prompt.composer.is_empty() {
        lines.push(Line::styled(fit("  Up withdraws your last one", columns), theme.quiet()));
    }
    lines
}

/// A list: as many rows as given, the chosen one among them.
pub(super) fn items(items: &[Item], chosen: usize, rows: usize, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let first = (chosen + 1).saturating_sub(rows);
    let shown = items.iter().skip(first).take(rows).map(|item| (clean_line(&item.shown), clean_line(&item.does)));
    let shown: Vec<(String, String)> = shown.collect();
    let share = columns * 2 / 3;
    let names = shown.iter().map(|(name, _)| width(name));
    let name = names.map(|wide| if wide <= share || columns >= NARROW { wide.min(share) } else { 0 }).max();
    let name = name.unwrap_or_default();
    let line = |(at, (text, does)): (usize, &(String, String))| {
        // Without room for both, the name matters more than the description.
        let most = if columns < NARROW || does.is_empty() { columns.saturating_sub(2) } else { name };
        let text = fit(text, most);
        let name = name.max(width(&text));
        let pad = " ".repeat(name.saturating_sub(width(&text)));
        let does = fit(does, columns.saturating_sub(name + 4));
        let style = if at + first == chosen { theme.chosen() } else { theme.accent() };
        Line::from(vec![Span::styled(format!(" {text}{pad} "), style), Span::styled(format!(" {does}"), theme.quiet())])
    };
    shown.iter().enumerate().map(line).collect()
}

/// The text, shortened to that width.
pub(super) fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if width(&short) + width(letter.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        short.push(letter);
    }
    if columns > 0 {
        short.push('…');
    }
    short
}
