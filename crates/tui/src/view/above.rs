//! What stands above the composer: prompts that wait, what is offered for what is typed, a search.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::app::Model;
use crate::complete::Item;
use crate::theme::Theme;
use crate::transcript::who;
use crate::wrap::{clean, width};

/// How many prompts that wait are shown.
const QUEUED: usize = 3;
/// How many things are offered at a time.
const OFFERED: usize = 8;

/// The rows it takes up.
pub(super) fn rows(model: &Model) -> usize {
    lines(model).len()
}

pub(super) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    frame.render_widget(Paragraph::new(lines(model)), area);
}

fn lines(model: &Model) -> Vec<Line<'static>> {
    let (theme, columns) = (model.theme, usize::from(model.columns));
    let mut lines = queued(model, columns);
    if let Some(search) = &model.history.search {
        let found = if search.is_found() { "" } else { " · nothing has these words" };
        let words = format!("search: {}{found} · Ctrl+R older · Enter takes it · Esc gives up", search.words);
        lines.push(Line::styled(fit(&words, columns), theme.accent()));
    } else if let Some(completion) = &model.completion {
        lines.extend(items(&completion.items, completion.chosen, OFFERED, columns, theme));
    }
    lines
}

fn queued(model: &Model, columns: usize) -> Vec<Line<'static>> {
    let (theme, queue) = (model.theme, &model.state.queue);
    let first = queue.len().saturating_sub(QUEUED);
    let mut lines: Vec<Line<'static>> = Vec::new();
    if first > 0 {
        lines.push(Line::styled(fit(&format!("  {first} more wait before these"), columns), theme.quiet()));
    }
    lines.extend(queue.iter().skip(first).map(|queued| {
        let whose = queued.from.as_ref().filter(|from| from.client_id != model.me.client_id);
        let whose = whose.map(|from| format!("{}: ", who(from))).unwrap_or_default();
        let text = clean(&queued.prompt.text).replace('\n', " ");
        Line::styled(fit(&format!("  waits: {whose}{text}"), columns), theme.quiet())
    }));
    if !queue.is_empty() && model.composer.is_empty() {
        lines.push(Line::styled(fit("  Up takes your last one back", columns), theme.quiet()));
    }
    lines
}

/// A list of which one is chosen; so many rows of it, that one among them.
pub(super) fn items(items: &[Item], chosen: usize, rows: usize, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let first = (chosen + 1).saturating_sub(rows);
    let shown = items.iter().skip(first).take(rows);
    let name = shown.clone().map(|item| width(&item.shown)).max().unwrap_or_default().min(columns * 2 / 3);
    let line = |(at, item): (usize, &Item)| {
        let text = fit(&clean(&item.shown).replace('\n', " "), name);
        let pad = " ".repeat(name.saturating_sub(width(&text)));
        let does = fit(&clean(&item.does).replace('\n', " "), columns.saturating_sub(name + 4));
        let style = if at + first == chosen { theme.chosen() } else { theme.accent() };
        Line::from(vec![Span::styled(format!(" {text}{pad} "), style), Span::styled(format!(" {does}"), theme.quiet())])
    };
    shown.enumerate().map(line).collect()
}

/// As much of it as fits.
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

#[cfg(test)]
mod tests {
    use multitap_event::{ClientId, ClientRef, Door, Prompt};
    use multitap_hub::Queued;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::app::update;
    use crate::around::Address;
    use crate::msg::Msg;

    /// The screen after these keys, at that width.
    fn screen(columns: u16, prepare: impl Fn(&mut Model)) -> String {
        let me = ClientRef { client_id: Some(ClientId::from("me")), ..ClientRef::new("ann", Door::Terminal) };
        let mut model = Model::new(me, "~/shop".to_owned(), Theme::new(true));
        (model.columns, model.rows) = (columns, 16);
        prepare(&mut model);
        let mut terminal = Terminal::new(TestBackend::new(columns, 16)).unwrap();
        terminal.draw(|frame| crate::view::view(&model, frame)).unwrap();
        terminal.backend().to_string()
    }

    fn type_in(model: &mut Model, text: &str) {
        for letter in text.chars() {
            update(model, Msg::Key(crossterm::event::KeyCode::Char(letter).into()));
        }
    }

    fn both(name: &str, prepare: impl Fn(&mut Model)) {
        for columns in [40, 80] {
            insta::assert_snapshot!(format!("{name}_{columns}"), screen(columns, &prepare));
        }
    }

    #[test]
    fn commands_are_offered() {
        both("commands", |model| type_in(model, "/s"));
    }

    #[test]
    fn prompts_that_wait_are_shown() {
        both("queue", |model| {
            for (text, from) in [("first", None), ("then\nmany lines", Some(ClientRef::new("phone", Door::A2a)))] {
                model.state.queue.push_back(Queued { prompt: Prompt::text(text), from });
            }
        });
    }

    #[test]
    fn a_choice_and_a_page_lie_over_the_screen() {
        both("modes", |model| {
            type_in(model, "/mode");
            update(model, Msg::Key(crossterm::event::KeyCode::Enter.into()));
        });
        both("share", |model| {
            let url = "http://127.0.0.1:4100".to_owned();
            let note = "Programs of this machine can join. No token is needed.".to_owned();
            update(model, Msg::Shared(Some(Address { url, token: None, note })));
        });
    }
}
