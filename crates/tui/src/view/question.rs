//! The question that waits: exactly what is to be done, and the answers there are.

use multitap_event::{Details, Question, ToolId};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::composer::field;
use crate::app::{Asking, Model};
use crate::theme::Theme;
use crate::transcript::diff_lines;
use crate::wrap::{clean, width, wrap};

/// The rows that what is asked about has at least.
const DETAIL_ROWS: usize = 3;
/// The rows of the frame and of the last line.
const AROUND: usize = 3;

/// The rows it takes up: as many as it needs, and two thirds of the screen at most.
pub(super) fn rows(model: &Model, asking: &Asking) -> usize {
    let fixed = options(model, asking).len() + AROUND;
    let details = details(model, asking).len();
    let most = (usize::from(model.rows) * 2 / 3).max(fixed + DETAIL_ROWS);
    // The status line is seen whatever is asked.
    (fixed + details).min(most).min(usize::from(model.rows).saturating_sub(1))
}

/// How many lines of what is asked about do not fit.
pub(super) fn hidden(model: &Model, asking: &Asking) -> usize {
    let room = rows(model, asking).saturating_sub(options(model, asking).len() + AROUND);
    details(model, asking).len().saturating_sub(room)
}

pub(super) fn draw(model: &Model, asking: &Asking, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    let block = Block::new().borders(Borders::ALL).border_style(theme.warning()).title(title(model, asking));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let options = u16::try_from(options(model, asking).len()).unwrap_or(u16::MAX);
    // On a low screen the options are what is needed.
    let options = options.min(inner.height);
    let last = inner.height.saturating_sub(options).min(1);
    let [above, choices, last] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(options), Constraint::Length(last)]).areas(inner);
    draw_details(model, asking, frame, above);
    draw_options(model, asking, frame, choices);
    match &asking.words {
        Some(words) => field(words, "say something with the answer", theme, frame, last),
        None => frame.render_widget(Paragraph::new(Line::styled(hint(model, asking, last.width), theme.quiet())), last),
    }
}

fn title(model: &Model, asking: &Asking) -> String {
    let open = model.state.questions.open();
    let at = open.iter().position(|open| open.question_id == asking.question.question_id).unwrap_or(0);
    let number = if open.len() > 1 { format!("{} of {} · ", at + 1, open.len()) } else { String::new() };
    let title = clean(&asking.question.title);
    let more = if title.trim().contains('\n') { " …" } else { "" };
    format!(" {number}{}{more} ", title.trim().lines().next().unwrap_or_default())
}

fn draw_details(model: &Model, asking: &Asking, frame: &mut Frame<'_>, area: Rect) {
    let lines = details(model, asking);
    let room = usize::from(area.height);
    let top = asking.top.min(lines.len().saturating_sub(room));
    let mut shown: Vec<Line<'_>> = lines.iter().skip(top).take(room).cloned().collect();
    let more = lines.len().saturating_sub(top + room);
    if more > 0
        && let Some(line) = shown.last_mut()
    {
        *line = Line::styled(format!("… {} more lines (PageDown)", more + 1), model.theme.quiet());
    }
    frame.render_widget(Paragraph::new(shown), area);
}

fn draw_options(model: &Model, asking: &Asking, frame: &mut Frame<'_>, area: Rect) {
    let rows = usize::from(area.height);
    let options = options(model, asking);
    // The chosen one is seen, also where there is not room for all.
    let chosen = asking.chosen.unwrap_or(0);
    let first = options.iter().position(|(at, _)| *at == chosen).unwrap_or(0);
    let end = options.iter().rposition(|(at, _)| *at == chosen).map_or(0, |last| last + 1);
    let skip = end.saturating_sub(rows).min(first);
    let lines = options.into_iter().skip(skip).take(rows).map(|(_, line)| line);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

/// The options in lines, each with the option it belongs to: what is allowed can be read to its end on any screen.
fn options(model: &Model, asking: &Asking) -> Vec<(usize, Line<'static>)> {
    let columns = columns(model);
    let mut lines = Vec::new();
    for (at, choice) in asking.question.options.iter().enumerate() {
        let style = if Some(at) == asking.chosen { model.theme.chosen() } else { ratatui::style::Style::new() };
        let words = format!("{}. {}", at + 1, clean(&choice.name).replace('\n', " "));
        lines.extend(wrap(Line::from(Span::styled(words, style)), columns, 3).into_iter().map(|line| (at, line)));
    }
    lines
}

/// The columns within the frame.
fn columns(model: &Model) -> usize {
    usize::from(model.columns).saturating_sub(2).max(1)
}

/// What can be done, as far as there is room to say it.
fn hint(model: &Model, asking: &Asking, columns: u16) -> String {
    let mut parts = match asking.chosen {
        None => vec!["choose first: you were typing"],
        Some(_) => vec!["1-9 or Enter answers", "Esc refuses"],
    };
    if model.state.questions.open().len() > 1 {
        parts.push("← → other questions");
    }
    parts.push("Tab adds words");
    if !asking.question.edits.is_empty() {
        parts.push("Ctrl+G edits first");
    }
    let mut hint = String::new();
    for part in parts {
        let more = if hint.is_empty() { part.to_owned() } else { format!(" · {part}") };
        if width(&hint) + width(&more) > usize::from(columns) {
            break;
        }
        hint.push_str(&more);
    }
    hint
}

/// What is asked about, and for whom, on the screen as it is.
fn details(model: &Model, asking: &Asking) -> Vec<Line<'static>> {
    let columns = columns(model);
    let mut lines = Vec::new();
    if let Some(parent) = asking.question.tool_id.as_ref().and_then(|tool| parent(model, tool)) {
        let words = format!("for the sub-agent: {}", clean(&parent).replace('\n', " "));
        lines.extend(wrap(Line::styled(words, model.theme.accent()), columns, 2));
    }
    lines.extend(about(&asking.question, columns, model.theme));
    lines
}

/// What the sub-agent is for that called a tool.
fn parent(model: &Model, tool: &ToolId) -> Option<String> {
    let started = |id: &ToolId| model.state.tools.iter().map(|call| &call.started).find(|call| call.tool_id == *id);
    let parent = started(started(tool)?.parent_tool_id.as_ref()?);
    Some(parent.map_or_else(|| "unknown".to_owned(), |call| call.title.clone().unwrap_or(call.tool_name.clone())))
}

/// What is asked about.
fn about(question: &Question, columns: usize, theme: Theme) -> Vec<Line<'static>> {
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
