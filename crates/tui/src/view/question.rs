//! The question that waits: exactly what is to be done, and the answers there are.

mod changed;

use multitap_event::{Details, Question, ToolId};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use self::changed::changed_lines;
use super::above::fit;
use super::composer::field;
use crate::app::{Asking, Form, Model, Row};
use crate::clean::{clean, clean_line};
use crate::theme::Theme;
use crate::transcript::diff_lines;
use crate::wrap::{width, wrap};

/// The rows that what is asked about has at least.
const DETAIL_ROWS: usize = 3;
/// The rows of it that are seen on any screen: a line, and how many more there are.
const BEGINNING: u16 = 2;
/// The rows of the frame and of the last line.
const AROUND: usize = 3;
/// So many empty lines are counted rather than shown.
const EMPTY: usize = 4;
/// The rows that the list of questions that wait has at most: four of them, and a rule.
const LIST: usize = 5;

/// The rows it takes up: as many as it needs, and two thirds of the screen at most.
pub(super) fn rows(model: &Model, asking: &Asking) -> usize {
    let fixed = options(model, asking).len() + list(model, asking, LIST).len() + AROUND;
    let details = details(model, asking).len();
    let most = (usize::from(model.rows) * 2 / 3).max(fixed + DETAIL_ROWS);
    // The status line is seen whatever is asked.
    (fixed + details).min(most).min(usize::from(model.rows).saturating_sub(1))
}

/// How many lines of what is asked about do not fit.
pub(super) fn hidden(model: &Model, asking: &Asking) -> usize {
    let fixed = options(model, asking).len() + list(model, asking, LIST).len() + AROUND;
    let room = rows(model, asking).saturating_sub(fixed);
    details(model, asking).len().saturating_sub(room)
}

/// Whether what is asked about can be seen: nobody allows what they cannot read.
pub(super) fn is_readable(model: &Model) -> bool {
    const LEAST: (u16, u16) = (20, 8);
    model.columns >= LEAST.0 && model.rows >= LEAST.1
}

pub(super) fn draw(model: &Model, asking: &Asking, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    if !is_readable(model) {
        let words = "a question: make the screen larger to answer; Esc refuses";
        let lines = wrap(Line::styled(words, theme.warning()), usize::from(area.width).max(1), 0);
        return frame.render_widget(Paragraph::new(lines), area);
    }
    let block = Block::new().borders(Borders::ALL).border_style(theme.warning()).title(title(model, asking));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let options = u16::try_from(options(model, asking).len()).unwrap_or(u16::MAX);
    // On a low screen the options are what is needed, and the beginning of what they are about.
    let beginning = u16::try_from(details(model, asking).len()).unwrap_or(u16::MAX).min(BEGINNING);
    let options = options.min(inner.height.saturating_sub(beginning));
    let last = inner.height.saturating_sub(options + beginning).min(1);
    let above = inner.height.saturating_sub(options + last);
    let listed = list(model, asking, usize::from(above.saturating_sub(beginning)).min(LIST));
    let list = u16::try_from(listed.len()).unwrap_or(u16::MAX);
    let heights = [list, above - list, options, last].map(Constraint::Length);
    let [list, above, choices, last] = Layout::vertical(heights).areas(inner);
    frame.render_widget(Paragraph::new(listed), list);
    draw_details(model, asking, frame, above);
    draw_options(model, asking, frame, choices);
    match &asking.words {
        Some(words) if asking.form.is_some() => field(words, "type your answer", theme, frame, last),
        Some(words) => {
            let label = goes_with(asking, usize::from(last.width) / 2);
            let wide = u16::try_from(width(&label)).unwrap_or(u16::MAX);
            let [option, typed] = Layout::horizontal([Constraint::Length(wide), Constraint::Min(1)]).areas(last);
            frame.render_widget(Paragraph::new(Line::styled(label, theme.warning())), option);
            field(words, "your comment; ↑ ↓ choose another option", theme, frame, typed);
        }
        None => frame.render_widget(Paragraph::new(Line::styled(hint(model, asking, last.width), theme.quiet())), last),
    }
}

/// The option that a comment goes with.
fn goes_with(asking: &Asking, columns: usize) -> String {
    let chosen =
        asking.chosen.and_then(|at| asking.names().get(at).map(|name| format!("{}. {}", at + 1, clean_line(name))));
    let named = chosen.map_or_else(|| "choose an option: ↑ ↓".to_owned(), |option| format!("with {option}"));
    fit(&named, columns.saturating_sub(1)) + " "
}

fn title(model: &Model, asking: &Asking) -> String {
    let open = model.state.questions.open();
    let number =
        if open.len() > 1 { format!("{} of {} · ", place(model, asking) + 1, open.len()) } else { String::new() };
    let part = match &asking.form {
        Some(form) if form.parts().len() > 1 && form.part().is_none() => " · your answers".to_owned(),
        Some(form) if form.parts().len() > 1 => format!(" · part {} of {}", form.at() + 1, form.parts().len()),
        None if asking.edited.is_some() => " · with your edit".to_owned(),
        _ => String::new(),
    };
    let room = usize::from(model.columns).saturating_sub(4 + width(&number) + width(&part));
    format!(" {number}{}{part} ", fit(&one_line(&asking.question.title), room))
}

/// The first line of a text, and whether there are more.
fn one_line(text: &str) -> String {
    let text = clean(text);
    let more = if text.trim().contains('\n') { " …" } else { "" };
    format!("{}{more}", text.trim().lines().next().unwrap_or_default())
}

/// Which of the open questions it is.
fn place(model: &Model, asking: &Asking) -> usize {
    let open = model.state.questions.open();
    open.iter().position(|open| open.question_id == asking.question.question_id).unwrap_or(0)
}

/// The questions that wait, if there are several: as many as there is room for, the one that is shown among them, and
/// which of them these are.
fn list(model: &Model, asking: &Asking, rows: usize) -> Vec<Line<'static>> {
    let (open, at, theme) = (model.state.questions.open(), place(model, asking), model.theme);
    let listed = rows.saturating_sub(1).min(open.len());
    if open.len() < 2 || listed == 0 {
        return Vec::new();
    }
    // The next one is seen too, where there is one.
    let first = (at + 2).saturating_sub(listed).min(at).min(open.len() - listed);
    let line = |(number, question): (usize, &Question)| {
        let (sign, style) = if number == at { ('›', theme.accent()) } else { (' ', theme.quiet()) };
        let words = format!("{sign} {} {}", number + 1, one_line(&question.title));
        Line::styled(fit(&words, columns(model)), style)
    };
    let mut lines: Vec<Line<'_>> = open.iter().enumerate().skip(first).take(listed).map(line).collect();
    let which = match listed {
        _ if listed == open.len() => String::new(),
        1 => format!("── {} of {} ", first + 1, open.len()),
        _ => format!("── {} to {} of {} ", first + 1, first + listed, open.len()),
    };
    let rest = columns(model).saturating_sub(width(&which));
    lines.push(Line::styled(format!("{which}{}", "─".repeat(rest)), theme.quiet()));
    lines
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
    for (at, name) in asking.names().into_iter().enumerate() {
        let style = if Some(at) == asking.chosen { model.theme.chosen() } else { Style::new() };
        let words = format!("{}. {}", at + 1, marked(asking, at, &clean_line(name)));
        lines.extend(wrap(Line::from(Span::styled(words, style)), columns, 3).into_iter().map(|line| (at, line)));
    }
    lines
}

/// What can be chosen, and whether it is.
fn marked(asking: &Asking, at: usize, name: &str) -> String {
    let Some((form, part)) = asking.form.as_ref().and_then(|form| Some((form, form.part()?))) else {
        return name.to_owned();
    };
    match form.rows(&asking.question).get(at) {
        Some(Row::Label(label)) if part.asked.multi_select => {
            format!("[{}] {name}", if part.is_picked(*label) { 'x' } else { ' ' })
        }
        Some(Row::Label(label)) if part.is_picked(*label) => format!("{name} ✓"),
        Some(Row::OwnWords) if !part.words.is_empty() => format!("{name}: {}", one_line(&part.words)),
        _ => name.to_owned(),
    }
}

/// The columns within the frame.
fn columns(model: &Model) -> usize {
    usize::from(model.columns).saturating_sub(2).max(1)
}

/// What can be done, as far as there is room to say it.
fn hint(model: &Model, asking: &Asking, columns: u16) -> String {
    if asking.is_fresh {
        return "new: keys answer it in a moment".to_owned();
    }
    let several = model.state.questions.open().len() > 1;
    let mut parts = match (asking.chosen, &asking.form) {
        (None, _) => vec!["choose first: you were typing"],
        (Some(_), None) => vec!["1-9 or Enter answers", "Esc refuses"],
        (Some(_), Some(form)) => match form.part() {
            Some(part) if part.asked.multi_select => vec!["1-9 or Space picks", "Enter goes on", "Esc refuses"],
            Some(_) => vec!["1-9 or Enter answers", "Esc refuses"],
            None => vec!["Enter sends", "← back", "Esc refuses"],
        },
    };
    let has_parts = asking.form.as_ref().is_some_and(|form| form.parts().len() > 1);
    match (has_parts, several) {
        (true, _) if asking.form.as_ref().is_some_and(|form| form.part().is_some()) => parts.push("← → other parts"),
        (false, true) => parts.push("← → other questions"),
        _ => {}
    }
    if asking.form.as_ref().is_none_or(|form| form.part().is_some()) {
        parts.push(if asking.form.is_some() { "Tab: own words" } else { "Tab adds words" });
    }
    if asking.content().is_some() {
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
        let words = format!("for the sub-agent: {}", clean_line(&parent));
        lines.extend(wrap(Line::styled(words, model.theme.accent()), columns, 2));
    }
    match &asking.form {
        Some(form) => lines.extend(wanted(form, &asking.question, columns, model.theme)),
        None => lines.extend(about(&asking.question, asking.edited.as_deref(), columns, model.theme)),
    }
    lines
}

/// What the agent wants to know: one part of it, or everything with its answers.
fn wanted(form: &Form, question: &Question, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(part) = form.part() {
        let header = part.asked.header.iter().filter(|header| *header != &part.asked.question);
        lines.extend(header.flat_map(|header| text(header, columns, theme.heading())));
        lines.extend(text(&part.asked.question, columns, Style::new()));
        lines.extend(question.reason.iter().flat_map(|reason| text(reason, columns, theme.quiet())));
        return lines;
    }
    for part in form.parts() {
        lines.extend(text(&part.asked.question, columns, theme.quiet()));
        let (said, style) = match part.said()[..] {
            [] if part.is_answered() => ("(left empty)".to_owned(), theme.quiet()),
            [] => ("(no answer yet)".to_owned(), theme.warning()),
            ref said => (said.join(", "), theme.accent()),
        };
        lines.extend(text(&format!("  {said}"), columns, style));
    }
    lines
}

/// Words in lines that fit.
fn text(words: &str, columns: usize, style: Style) -> Vec<Line<'static>> {
    let words = clean(words);
    let (mut lines, mut rest) = (Vec::new(), words.split('\n').peekable());
    while let Some(line) = rest.next() {
        let mut empty = vec![line];
        if is_empty(line) {
            empty.extend(std::iter::from_fn(|| rest.next_if(|next| is_empty(next))));
        }
        match empty.len() {
            // Nobody puts what follows out of sight.
            count @ EMPTY.. => lines.push(Line::styled(format!("⋮ {count} empty lines"), style)),
            _ => {
                lines.extend(empty.into_iter().flat_map(|line| wrap(Line::styled(line.to_owned(), style), columns, 2)))
            }
        }
    }
    lines
}

fn is_empty(line: &str) -> bool {
    line.chars().all(char::is_whitespace)
}

/// What the sub-agent is for that called a tool.
fn parent(model: &Model, tool: &ToolId) -> Option<String> {
    let started = |id: &ToolId| model.state.tools.iter().map(|call| &call.started).find(|call| call.tool_id == *id);
    let parent = started(started(tool)?.parent_tool_id.as_ref()?);
    Some(parent.map_or_else(|| "unknown".to_owned(), |call| call.title.clone().unwrap_or(call.tool_name.clone())))
}

/// What is asked about, as it would be done: with what an editor made of it.
fn about(question: &Question, edited: Option<&str>, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let text = |words: &str, style| text(words, columns, style);
    // A name has one line: it must not pretend to be what follows it.
    let name = |words: &str, style| wrap(Line::styled(clean_line(words), style), columns, 2);
    let mut lines = match &question.details {
        Details::Command { command, directory, description } => {
            let mut lines = text(edited.unwrap_or(command), theme.code());
            if edited.is_some() {
                lines.extend(text("instead of", theme.quiet()));
                lines.extend(text(command, theme.quiet()));
            }
            lines.extend(directory.iter().flat_map(|directory| name(&format!("in {directory}"), theme.quiet())));
            lines.extend(description.iter().flat_map(|words| text(words, theme.quiet())));
            lines
        }
        Details::FileEdit { file_path, before, diff, after } => {
            let mut lines = name(file_path, theme.accent());
            let edited = edited.map(|edited| changed_lines(before.as_deref().unwrap_or_default(), edited));
            match (edited.as_ref().or(diff.as_ref()), after) {
                (Some(diff), _) => lines.extend(diff_lines(diff, file_path, columns, None, theme)),
                (None, Some(after)) => lines.extend(text(after, theme.quiet())),
                (None, None) => {}
            }
            lines
        }
        Details::Mcp { server, tool, arguments } => {
            let mut lines = name(&format!("{tool} of {server}"), theme.code());
            if !arguments.is_empty() {
                let shown = serde_json::to_string_pretty(arguments).unwrap_or_default();
                lines.extend(text(&shown, theme.quiet()));
            }
            lines
        }
        Details::Plan { plan } => crate::markdown::lines(plan, columns, theme),
        Details::Input { questions } => {
            questions.iter().flat_map(|asked| text(&asked.question, Style::new())).collect()
        }
        Details::Text { text: words, .. } => text(words, Style::new()),
    };
    lines.extend(question.reason.iter().flat_map(|reason| text(reason, theme.quiet())));
    lines
}
