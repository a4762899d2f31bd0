//! The question that waits: exactly what is to be done, and the answers there are.

use multitap_event::{Details, Question};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::composer::field;
use crate::app::{Asking, Model};
use crate::theme::Theme;
use crate::transcript::diff_lines;
use crate::wrap::{clean, wrap};

/// The rows that what is asked about has at least.
const DETAIL_ROWS: usize = 3;

/// The rows it takes up: as many as it needs, and two thirds of the screen at most.
pub(super) fn rows(model: &Model, asking: &Asking) -> usize {
    let columns = usize::from(model.columns).saturating_sub(4).max(1);
    let fixed = asking.question.options.len() + 4;
    let details = details(&asking.question, columns, model.theme).len();
    let most = usize::from(model.rows) * 2 / 3;
    (fixed + details).min(most.max(fixed + DETAIL_ROWS))
}

pub(super) fn draw(model: &Model, asking: &Asking, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    let others = model.state.questions.open().len().saturating_sub(1);
    let more = if others > 0 { format!(" ({others} more wait) ") } else { String::new() };
    let title = format!(" {}{more} ", clean(&asking.question.title).replace('\n', " "));
    let block = Block::new().borders(Borders::ALL).border_style(theme.warning()).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let options = u16::try_from(asking.question.options.len()).unwrap_or(u16::MAX);
    let [above, choices, last] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(options), Constraint::Length(1)]).areas(inner);
    let lines = details(&asking.question, usize::from(above.width), theme);
    let room = usize::from(above.height);
    let mut shown: Vec<Line<'_>> = lines.iter().take(room).cloned().collect();
    if lines.len() > room
        && let Some(line) = shown.last_mut()
    {
        *line = Line::styled(format!("… {} more lines", lines.len() - room + 1), theme.quiet());
    }
    frame.render_widget(Paragraph::new(shown), above);
    let lines = asking.question.options.iter().enumerate().map(|(at, choice)| {
        let style = if at == asking.chosen { theme.chosen() } else { ratatui::style::Style::new() };
        Line::from(Span::styled(format!("{}. {}", at + 1, choice.name), style))
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), choices);
    match &asking.words {
        Some(words) => field(words, "say something with the answer", theme, frame, last),
        None => {
            let hint = "1-9 or Enter answers · Tab adds words · Ctrl+G edits first · Esc refuses";
            frame.render_widget(Paragraph::new(Line::styled(hint, theme.quiet())), last);
        }
    }
}

/// What is asked about.
fn details(question: &Question, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = |text: &str, style| {
        let lines = clean(text);
        lines.split('\n').flat_map(|line| wrap(Line::styled(line.to_owned(), style), columns, 2)).collect::<Vec<_>>()
    };
    let mut lines = match &question.details {
        Details::Command { command, directory, description } => {
            let mut lines = text(command, theme.code());
            lines.extend(directory.iter().flat_map(|directory| text(&format!("in {directory}"), theme.quiet())));
            lines.extend(description.iter().flat_map(|words| text(words, theme.quiet())));
            lines
        }
        Details::FileEdit { file_path, diff, after, .. } => {
            let mut lines = text(file_path, theme.accent());
            match (diff, after) {
                (Some(diff), _) => lines.extend(diff_lines(diff, columns, None, theme)),
                (None, Some(after)) => lines.extend(text(after, theme.quiet())),
                (None, None) => {}
            }
            lines
        }
        Details::Mcp { server, tool, arguments } => {
            let mut lines = text(&format!("{tool} of {server}"), theme.code());
            if !arguments.is_empty() {
                let shown = serde_json::to_string_pretty(arguments).unwrap_or_default();
                lines.extend(text(&shown, theme.quiet()));
            }
            lines
        }
        Details::Plan { plan } => crate::markdown::lines(plan, columns, theme),
        Details::Input { questions } => {
            questions.iter().flat_map(|asked| text(&asked.question, ratatui::style::Style::new())).collect()
        }
        Details::Text { text: words, .. } => text(words, ratatui::style::Style::new()),
    };
    lines.extend(question.reason.iter().flat_map(|reason| text(reason, theme.quiet())));
    lines
}
