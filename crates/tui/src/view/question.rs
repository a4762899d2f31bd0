//! The dialog of a question: exactly what would be done, and the options.

mod sentence;

use std::rc::Rc;

use multitap_event::{Details, Question, ToolId};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect, Size};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};
use serde_json::{Map, Value};

use self::sentence::{is_said, one_line, sentence};
use super::above::fit;
use super::composer::Field;
use crate::app::{Dialog, Form, Model, Row};
use crate::clean::{clean, clean_line, with_marked_blanks};
use crate::diff::diff_lines;
use crate::theme::Theme;
use crate::wrap::{cells, width, wrap};

/// Minimum number of rows for the details.
const DETAIL_ROWS: usize = 3;
/// Rows that the transcript and the status line keep beside a long question.
const TRANSCRIPT_ROWS: usize = 5;
/// From this many rows on, a reason comes after what would be done: it must not push that out of sight.
const LONG_REASON: usize = 3;
/// Rows of the details on any screen: one line, and how many more there are.
const BEGINNING: u16 = 2;
/// Rows of the frame and of the last line.
const FRAME: usize = 3;
/// From this many on, empty lines are counted instead of shown.
const EMPTY: usize = 4;
/// Maximum rows of the list of open questions: four of them, and a rule.
const LIST: usize = 5;

/// The content of the dialog, and its number of rows.
#[derive(Debug)]
pub(super) struct Content {
    /// The options in lines, each with the option it belongs to.
    options: Vec<(usize, Line<'static>)>,
    details: Shown,
    /// The columns within the frame.
    columns: usize,
    pub(super) rows: usize,
    /// How many lines of the details do not fit.
    pub(super) hidden: usize,
    /// How many lines of the details are visible.
    pub(super) room: usize,
    is_readable: bool,
}

impl Content {
    pub(super) fn new(model: &Model, dialog: &Dialog, size: Size) -> Self {
        let (columns, rows) = (usize::from(size.width).saturating_sub(2).max(1), usize::from(size.height));
        let (options, details) = (options(dialog, columns, model.theme), details(model, dialog, columns));
        let fixed = options.len() + list(model, dialog, columns, LIST).len() + FRAME;
        // As high as it is, except for some rows of the transcript, and always a row for the status line.
        let most = rows.saturating_sub(TRANSCRIPT_ROWS).max(fixed + DETAIL_ROWS);
        let rows = (fixed + details.len()).min(most).min(rows.saturating_sub(1));
        let room = rows.saturating_sub(fixed);
        let hidden = details.len().saturating_sub(room);
        Self { options, details, columns, rows, hidden, room, is_readable: is_readable(size) }
    }
}

/// Whether a question can be read on a screen of that size.
pub(super) fn is_readable(size: Size) -> bool {
    size.width >= 20 && size.height >= 8
}

pub(super) fn draw(model: &Model, dialog: &Dialog, content: &Content, frame: &mut Frame<'_>, area: Rect) {
    let theme = model.theme;
    if !content.is_readable {
        let words = "a question: enlarge the terminal to answer; Esc refuses";
        let lines = wrap(Line::styled(words, theme.warning()), usize::from(area.width).max(1), 0);
        return frame.render_widget(Paragraph::new(lines), area);
    }
    let title = heading(model, dialog, content.columns).0;
    let block = Block::new().borders(Borders::ALL).border_style(theme.warning()).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    // On a low screen the options come first, then the beginning of the details.
    let beginning = cells(content.details.len()).min(BEGINNING);
    let options = cells(content.options.len()).min(inner.height.saturating_sub(beginning));
    let last = inner.height.saturating_sub(options + beginning).min(1);
    let above = inner.height.saturating_sub(options + last);
    let listed = list(model, dialog, content.columns, usize::from(above.saturating_sub(beginning)).min(LIST));
    let list = cells(listed.len());
    let heights = [list, above - list, options, last].map(Constraint::Length);
    let [list, above, choices, last] = Layout::vertical(heights).areas(inner);
    frame.render_widget(Paragraph::new(listed), list);
    draw_details(content, dialog.top, theme, frame, above);
    draw_options(content, dialog.chosen.unwrap_or(0), frame, choices);
    match &dialog.comment {
        Some(words) if dialog.form.is_some() => {
            Field::new(words, usize::from(last.width)).draw("type your answer", theme, frame, last);
        }
        Some(words) => {
            let label = goes_with(dialog, usize::from(last.width) / 2);
            let widths = [Constraint::Length(cells(width(&label))), Constraint::Min(1)];
            let [option, typed] = Layout::horizontal(widths).areas(last);
            frame.render_widget(Paragraph::new(Line::styled(label, theme.warning())), option);
            let hint = "your comment; ↑ ↓ choose another option";
            Field::new(words, usize::from(typed.width)).draw(hint, theme, frame, typed);
        }
        None => frame.render_widget(Paragraph::new(Line::styled(hint(model, dialog, last.width), theme.quiet())), last),
    }
}

/// The option that the comment is sent with.
fn goes_with(dialog: &Dialog, columns: usize) -> String {
    let chosen =
        dialog.chosen.and_then(|at| dialog.names().get(at).map(|name| format!("{}. {}", at + 1, clean_line(name))));
    let named = chosen.map_or_else(|| "choose an option: ↑ ↓".to_owned(), |option| format!("with {option}"));
    fit(&named, columns.saturating_sub(1)) + " "
}

/// The title of the dialog: what it asks. Also the whole sentence, if it is too long for the title.
fn heading(model: &Model, dialog: &Dialog, columns: usize) -> (String, Option<String>) {
    let open = model.session.state.questions.open();
    let number =
        if open.len() > 1 { format!("{} of {} · ", dialog.place(open) + 1, open.len()) } else { String::new() };
    let part = match &dialog.form {
        Some(form) if form.parts.len() > 1 && form.part().is_none() => " · your answers".to_owned(),
        Some(form) if form.parts.len() > 1 => format!(" · part {} of {}", form.at + 1, form.parts.len()),
        None if dialog.edited.is_some() => " · with your edit".to_owned(),
        _ => String::new(),
    };
    let start = model.session.state.start.as_ref();
    let folder = start.and_then(|start| start.config.as_ref()?.working_directory.as_deref());
    let asks = sentence(dialog, start.map(|start| start.agent_type), folder);
    let room = columns.saturating_sub(2 + width(&number) + width(&part));
    let title = format!(" {number}{}{part} ", fit(&asks, room));
    // A command is shown whole in any case.
    let is_shown = dialog.form.is_some() || matches!(dialog.question.details, Details::Command { .. });
    (title, (width(&asks) > room && !is_shown).then_some(asks))
}

/// The list of open questions, if there are several: as many as fit, the shown one among them, and their numbers.
fn list(model: &Model, dialog: &Dialog, columns: usize, rows: usize) -> Vec<Line<'static>> {
    let (open, theme) = (model.session.state.questions.open(), model.theme);
    let at = dialog.place(open);
    let listed = rows.saturating_sub(1).min(open.len());
    if open.len() < 2 || listed == 0 {
        return Vec::new();
    }
    // The next question is listed, too.
    let first = (at + 2).saturating_sub(listed).min(at).min(open.len() - listed);
    let line = |(number, question): (usize, &Question)| {
        let (sign, style) = if number == at { ('›', theme.accent()) } else { (' ', theme.quiet()) };
        let words = format!("{sign} {} {}", number + 1, one_line(&question.title));
        Line::styled(fit(&words, columns), style)
    };
    let mut lines: Vec<Line<'_>> = open.iter().enumerate().skip(first).take(listed).map(line).collect();
    let which = match listed {
        _ if listed == open.len() => String::new(),
        1 => format!("── {} of {} ", first + 1, open.len()),
        _ => format!("── {} to {} of {} ", first + 1, first + listed, open.len()),
    };
    let rest = columns.saturating_sub(width(&which));
    lines.push(Line::styled(format!("{which}{}", "─".repeat(rest)), theme.quiet()));
    lines
}

fn draw_details(content: &Content, top: usize, theme: Theme, frame: &mut Frame<'_>, area: Rect) {
    let (details, room) = (&content.details, usize::from(area.height));
    let top = top.min(details.len().saturating_sub(room));
    let lines = details.first.iter().chain(details.action.iter());
    let mut shown: Vec<Line<'_>> = lines.skip(top).take(room).cloned().collect();
    let more = details.len().saturating_sub(top + room);
    if let Some(line) = shown.last_mut().filter(|_| more > 0) {
        *line = Line::styled(format!("… {} more lines (PageDown)", more + 1), theme.quiet());
    }
    frame.render_widget(Paragraph::new(shown), area);
}

/// Draws the options that fit, the chosen one among them.
fn draw_options(content: &Content, chosen: usize, frame: &mut Frame<'_>, area: Rect) {
    let (options, rows) = (&content.options, usize::from(area.height));
    let first = options.iter().position(|(at, _)| *at == chosen).unwrap_or(0);
    let end = options.iter().rposition(|(at, _)| *at == chosen).map_or(0, |last| last + 1);
    let skip = end.saturating_sub(rows).min(first);
    let lines = options.iter().skip(skip).take(rows).map(|(_, line)| line.clone());
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), area);
}

/// The options in lines, each with the option it belongs to. They are wrapped, never cut.
fn options(dialog: &Dialog, columns: usize, theme: Theme) -> Vec<(usize, Line<'static>)> {
    let mut lines = Vec::new();
    for (at, name) in dialog.names().into_iter().enumerate() {
        let style = if Some(at) == dialog.chosen { theme.chosen() } else { Style::new() };
        let words = format!("{}. {}", at + 1, marked(dialog, at, &clean_line(name)));
        lines.extend(wrap(Line::from(Span::styled(words, style)), columns, 3).into_iter().map(|line| (at, line)));
        if let Some(words) = described(dialog, at) {
            let line = Line::styled(format!("   {}", clean_line(words)), theme.quiet());
            lines.extend(wrap(line, columns, 3).into_iter().map(|line| (at, line)));
        }
    }
    lines
}

/// What the agent says about an option.
fn described(dialog: &Dialog, at: usize) -> Option<&str> {
    let form = dialog.form.as_ref()?;
    let Some(Row::Label(label)) = form.rows(&dialog.question).get(at).copied() else { return None };
    form.part()?.asked.descriptions.get(label).map(String::as_str).filter(|words| !words.is_empty())
}

/// A row with a mark if it is selected.
fn marked(dialog: &Dialog, at: usize, name: &str) -> String {
    let Some((form, part)) = dialog.form.as_ref().and_then(|form| Some((form, form.part()?))) else {
        return name.to_owned();
    };
    match form.rows(&dialog.question).get(at) {
        Some(Row::Label(label)) if part.asked.multi_select => {
            format!("[{}] {name}", if part.is_selected(*label) { 'x' } else { ' ' })
        }
        Some(Row::Label(label)) if part.is_selected(*label) => format!("{name} ✓"),
        Some(Row::OwnWords) if !part.words.is_empty() => format!("{name}: {}", one_line(&part.words)),
        _ => name.to_owned(),
    }
}

/// The keys that do something now, as far as they fit.
fn hint(model: &Model, dialog: &Dialog, columns: u16) -> String {
    if dialog.is_fresh {
        return "new: keys are ignored for a moment".to_owned();
    }
    let several = model.session.state.questions.open().len() > 1;
    let mut parts = match (dialog.chosen, &dialog.form) {
        (None, _) => vec!["select an option first: you were typing"],
        (Some(_), None) => vec!["1-9 or Enter answers", "Esc refuses"],
        (Some(_), Some(form)) => match form.part() {
            Some(part) if part.asked.multi_select => vec!["1-9 or Space toggles", "Enter continues", "Esc refuses"],
            Some(_) => vec!["1-9 or Enter answers", "Esc refuses"],
            None => vec!["Enter sends", "← back", "Esc refuses"],
        },
    };
    let has_parts = dialog.form.as_ref().is_some_and(|form| form.parts.len() > 1);
    match (has_parts, several) {
        (true, _) if dialog.form.as_ref().is_some_and(|form| form.part().is_some()) => parts.push("← → other parts"),
        (false, true) => parts.push("← → other questions"),
        _ => {}
    }
    if dialog.form.as_ref().is_none_or(|form| form.part().is_some()) {
        parts.push(if dialog.form.is_some() { "Tab: your own words" } else { "Tab adds a comment" });
    }
    if dialog.content().is_some() {
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

/// The lines above the options.
#[derive(Debug)]
struct Shown {
    /// For which sub-agent, and why.
    first: Vec<Line<'static>>,
    /// What would be done or is asked.
    action: Rc<Vec<Line<'static>>>,
}

impl Shown {
    fn len(&self) -> usize {
        self.first.len() + self.action.len()
    }
}

fn details(model: &Model, dialog: &Dialog, columns: usize) -> Shown {
    let (question, theme) = (&dialog.question, model.theme);
    let mut first = Vec::new();
    if let Some(asks) = heading(model, dialog, columns).1 {
        first.extend(wrap(Line::raw(asks), columns, 2));
    }
    if let Some(parent) = question.tool_id.as_ref().and_then(|tool| parent(model, tool)) {
        let words = format!("for the sub-agent: {}", clean_line(&parent));
        first.extend(wrap(Line::styled(words, theme.accent()), columns, 2));
    }
    let action = match &dialog.form {
        Some(form) => Rc::new(form_details(form, question, columns, theme)),
        None => {
            // It must not look like what would be done: it is named, and takes one line if it comes first.
            let reason = question.reason.as_ref().map(|reason| format!("Reason: {reason}")).unwrap_or_default();
            let fits = reason.len() < LONG_REASON * columns;
            let short =
                if fits { wrap(Line::styled(clean_line(&reason), theme.warning()), columns, 2) } else { Vec::new() };
            let is_first = (1..LONG_REASON).contains(&short.len());
            first.extend(short.into_iter().filter(|_| is_first && !reason.is_empty()));
            dialog.action.lines(columns, || {
                let mut lines = action(dialog, columns, theme);
                if !is_first {
                    lines.extend(text(&reason, columns, theme.quiet()));
                }
                lines
            })
        }
    };
    Shown { first, action }
}

/// A form: one part, or the overview of all answers.
fn form_details(form: &Form, question: &Question, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(part) = form.part() {
        let header = part.asked.header.iter().filter(|header| *header != &part.asked.question);
        lines.extend(header.flat_map(|header| text(header, columns, theme.heading())));
        lines.extend(text(&part.asked.question, columns, Style::new()));
        lines.extend(question.reason.iter().flat_map(|reason| text(reason, columns, theme.quiet())));
        return lines;
    }
    for part in &form.parts {
        lines.extend(text(&part.asked.question, columns, theme.quiet()));
        let (said, style) = match part.answers()[..] {
            [] if part.is_answered() => ("(left empty)".to_owned(), theme.quiet()),
            [] => ("(no answer yet)".to_owned(), theme.warning()),
            ref said => (said.join(", "), theme.accent()),
        };
        lines.extend(text(&format!("  {said}"), columns, style));
    }
    lines
}

/// A shell command. Lines of one with several are numbered, so that none looks like the rest of a wrapped comment.
fn command_text(command: &str, columns: usize, style: Style, theme: Theme) -> Vec<Line<'static>> {
    let command = with_marked_blanks(command);
    let count = clean(&command).split('\n').count();
    if count == 1 {
        return text(&command, columns, style);
    }
    let gutter = count.to_string().len() + 1;
    let mut lines = Vec::new();
    for (number, mut line) in numbered(&command, columns.saturating_sub(gutter), style) {
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        line.spans.insert(0, Span::styled(format!("{number:>width$} ", width = gutter - 1), theme.quiet()));
        lines.push(line);
    }
    lines
}

fn text(words: &str, columns: usize, style: Style) -> Vec<Line<'static>> {
    numbered(words, columns, style).into_iter().map(|(_, line)| line).collect()
}

/// Wrapped text, with a number where a line of the text begins.
fn numbered(words: &str, columns: usize, style: Style) -> Vec<(Option<usize>, Line<'static>)> {
    let words = clean(words);
    let (mut lines, mut rest) = (Vec::new(), words.split('\n').peekable());
    let mut number = 1;
    while let Some(line) = rest.next() {
        let mut empty = vec![line];
        if is_empty(line) {
            empty.extend(std::iter::from_fn(|| rest.next_if(|next| is_empty(next))));
        }
        let count = empty.len();
        match count {
            // Empty lines must not push what follows out of sight.
            EMPTY.. => lines.push((Some(number), Line::styled(format!("⋮ {count} empty lines"), style))),
            _ => {
                for (at, line) in empty.into_iter().enumerate() {
                    let wrapped = wrap(Line::styled(line.to_owned(), style), columns, 2).into_iter().enumerate();
                    lines.extend(wrapped.map(|(row, line)| ((row == 0).then_some(number + at), line)));
                }
            }
        }
        number += count;
    }
    lines
}

fn is_empty(line: &str) -> bool {
    line.chars().all(char::is_whitespace)
}

/// The task of the sub-agent that called a tool.
fn parent(model: &Model, tool: &ToolId) -> Option<String> {
    let started =
        |id: &ToolId| model.session.state.tools.iter().map(|call| &call.started).find(|call| call.tool_id == *id);
    let parent = started(started(tool)?.parent_tool_id.as_ref()?);
    Some(parent.map_or_else(|| "unknown".to_owned(), |call| call.title.clone().unwrap_or(call.tool_name.clone())))
}

/// The call in question, with the user's edit.
fn action(dialog: &Dialog, columns: usize, theme: Theme) -> Vec<Line<'static>> {
    let (question, edited) = (&dialog.question, dialog.edited.as_deref());
    let text = |words: &str, style| text(words, columns, style);
    // A name takes one line: it must not imitate what follows.
    let name = |words: &str, style| wrap(Line::styled(clean_line(words), style), columns, 2);
    let given = |arguments: &Map<String, Value>| match arguments.is_empty() {
        true => Vec::new(),
        false => text(&serde_json::to_string_pretty(arguments).unwrap_or_default(), theme.quiet()),
    };
    match &question.details {
        Details::Command { command, directory, description } => {
            let mut lines = command_text(edited.unwrap_or(command), columns, theme.code(), theme);
            if edited.is_some() {
                lines.extend(text("instead of", theme.quiet()));
                lines.extend(command_text(command, columns, theme.quiet(), theme));
            }
            lines.extend(directory.iter().flat_map(|directory| name(&format!("in {directory}"), theme.quiet())));
            lines.extend(description.iter().flat_map(|words| text(words, theme.quiet())));
            lines
        }
        Details::FileEdit { file_path, diff, after, .. } => {
            match (dialog.edited_diff.as_ref().or(diff.as_ref()), after) {
                (Some(diff), _) => diff_lines(diff, file_path, columns, None, theme),
                (None, Some(after)) => text(after, theme.quiet()),
                (None, None) => Vec::new(),
            }
        }
        Details::Mcp { arguments, .. } => given(arguments),
        Details::Plan { plan } => crate::markdown::lines(plan, columns, theme),
        Details::Input { questions } => {
            questions.iter().flat_map(|asked| text(&asked.question, Style::new())).collect()
        }
        // The text may be the agent's own words; what would be done is in the arguments.
        Details::Text { text: words, arguments } => {
            let mut lines = if is_said(question, words) { Vec::new() } else { text(words, Style::new()) };
            lines.extend(given(arguments));
            lines
        }
    }
}
