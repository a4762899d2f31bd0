//! Cells to lines, except for the texts of agents. Pure.

use multitap_event::{
    ChoiceKind, FileChange, FileChangeType, Question, Ruling, Severity, TodoStatus, ToolKind, ToolOutcome, TurnEnd,
    TurnStatus,
};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::cell::{self, Cell, ToolCell};
use super::label::{self, ToolLabel};
use crate::ansi::printed;
use crate::clean::{clean, clean_line};
use crate::diff::diff_lines;
use crate::number;
use crate::theme::Theme;
use crate::wrap::wrap;

const OUTPUT_LINES: usize = 12;
const DIFF_LINES: usize = 40;
/// Lines of a command that are shown in the line of its call.
const COMMAND_LINES: usize = 3;

/// The lines of a cell, with an empty line before it where it begins something.
pub(super) fn lines(cell: &Cell, columns: usize, unfolded: bool, theme: Theme) -> Vec<Line<'static>> {
    let draw = Draw { columns, unfolded, theme };
    let lines = draw.cell(cell);
    // On a narrow screen the margin may be too wide.
    if lines.iter().all(|line| line.width() <= columns) {
        return lines;
    }
    lines.into_iter().flat_map(|line| wrap(line, columns, 0)).collect()
}

#[derive(Clone, Copy)]
struct Draw {
    columns: usize,
    unfolded: bool,
    theme: Theme,
}

impl Draw {
    fn cell(self, cell: &Cell) -> Vec<Line<'static>> {
        let (draw, columns, theme) = (self, self.columns, self.theme);
        match cell {
            Cell::User { text, from, images, nested } => {
                let mut first = vec![Span::styled("> ", theme.user())];
                // Without colours the name ends at the colon.
                first.extend(from.as_ref().map(|from| Span::styled(format!("{}: ", cell::who(from)), theme.accent())));
                let indent = indent(*nested);
                let draw = Draw { columns: columns.saturating_sub(indent), ..draw };
                let lines = std::iter::once(Line::default()).chain(draw.block(&first, &clean(text), Style::new()));
                let pictures = images.iter().map(|image| Line::styled(format!("  {image}"), theme.quiet()));
                lines.chain(pictures).map(|line| indented(line, indent)).collect()
            }
            Cell::Tool(tool) => {
                let indent = indent(tool.call.parent_tool_id.is_some());
                let draw = Draw { columns: columns.saturating_sub(indent), ..draw };
                draw.tool(tool).into_iter().map(|line| indented(line, indent)).collect()
            }
            Cell::Changed { change, folder } => draw.change(change, folder.as_deref()),
            Cell::Answered { ruling, question, own } => draw.answered(ruling, question.as_deref(), *own),
            Cell::Plan(list) => {
                let mut lines = vec![Line::default(), Line::styled("Plan", theme.heading())];
                for item in &list.items {
                    let (sign, style) = match item.status {
                        TodoStatus::Pending => ("☐ ", Style::new()),
                        TodoStatus::InProgress => ("▸ ", theme.accent()),
                        TodoStatus::Completed => ("☑ ", theme.quiet()),
                        TodoStatus::Cancelled => ("☒ ", theme.quiet()),
                    };
                    lines.extend(draw.marked(sign, style, &item.text, style));
                }
                lines
            }
            Cell::Error(error) => {
                let (sign, style) = match error.severity {
                    Severity::Warning => ("! ", theme.warning()),
                    Severity::Error => ("✗ ", theme.bad()),
                };
                draw.marked(sign, style, &error.message, style)
            }
            Cell::Retry(retry) => {
                let of = retry.max_attempts.map(|max| format!(" of {max}")).unwrap_or_default();
                let why = retry.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                let wait = retry.delay_ms.map(|millis| format!(" in {}", number::time(millis))).unwrap_or_default();
                let words = format!("attempt {}{of}{wait}{why}", retry.attempt);
                draw.marked("↻ ", theme.warning(), &words, theme.quiet())
            }
            Cell::TurnEnd(end) => draw.turn_end(end),
            Cell::Ended(end) => {
                let why = end.error.clone().unwrap_or_else(|| "the agent has ended".to_owned());
                draw.marked("■ ", theme.quiet(), &why, theme.quiet())
            }
            Cell::Note(words) => draw.marked("· ", theme.quiet(), words, theme.quiet()),
            Cell::Mode { word, by } => {
                let words = cell::changed("mode", &clean_line(word), by.as_ref());
                draw.marked("· ", theme.mode(word), &words, theme.quiet())
            }
            Cell::Marker(words) => vec![Line::default(), draw.rule(&clean_line(words), theme.quiet())],
            Cell::Withdrawn { by, begins } => {
                let words = cell::withdrawn(by.as_ref(), begins.as_deref());
                draw.marked("· ", theme.quiet(), &words, theme.quiet())
            }
            // Texts are laid out as they grow.
            Cell::Text { .. } | Cell::Empty => Vec::new(),
        }
    }

    /// The client that answered, and its answer: the user sees that somebody else was first.
    fn answered(self, ruling: &Ruling, question: Option<&Question>, own: bool) -> Vec<Line<'static>> {
        let (sign, style) = if ruling.kind.allows() { ("✓ ", self.theme.good()) } else { ("✗ ", self.theme.bad()) };
        let option = question.and_then(|question| question.choice(&ruling.selected_option_id));
        let option = option.map_or(by_kind(ruling.kind), |choice| choice.name.as_str());
        let by = if own { String::new() } else { format!(" by {}", cell::who(&ruling.settled_by)) };
        let edited = match &ruling.runs {
            Some(runs) => format!(", edited to {}", runs.title),
            None if ruling.edited => ", edited".to_owned(),
            None => String::new(),
        };
        let why = ruling.feedback.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        self.marked(sign, style, &format!("answered{by}: {option}{edited}{why}"), self.theme.quiet())
    }

    fn marked(self, sign: &str, sign_style: Style, words: &str, style: Style) -> Vec<Line<'static>> {
        self.block(&[Span::styled(sign.to_owned(), sign_style)], &clean(words), style)
    }

    /// Text after these spans, with its other lines indented by two.
    fn block(self, first: &[Span<'static>], text: &str, style: Style) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (number, text) in text.split('\n').enumerate() {
            let mut spans = if number == 0 { first.to_vec() } else { vec![Span::raw("  ")] };
            spans.push(Span::styled(text.to_owned(), style));
            lines.extend(wrap(Line::from(spans), self.columns, 2));
        }
        lines
    }

    /// The last lines of the output of a tool, or all of it.
    fn output(self, text: &str) -> Vec<Line<'static>> {
        let all: Vec<&str> = text.split('\n').collect();
        let over = all.len().saturating_sub(OUTPUT_LINES);
        let hidden = if self.unfolded || over < 2 { 0 } else { over };
        // A line may be megabytes long: only the part that is shown is wrapped.
        let most = if self.unfolded { usize::MAX } else { OUTPUT_LINES * self.columns.max(1) };
        let shown: Vec<&str> = all[hidden..].iter().map(|line| tail(line, most)).collect();
        let cut: usize = all[hidden..].iter().zip(&shown).map(|(line, shown)| line.len() - shown.len()).sum();
        let hidden = hidden + cut.div_ceil(self.columns.max(1));
        let columns = self.columns.saturating_sub(2);
        let lines = printed(&shown.join("\n"), self.theme).into_iter().flat_map(|line| wrap(line, columns, 0));
        let lines = self.folded(lines.collect(), OUTPUT_LINES, hidden);
        lines.into_iter().map(|line| indented(line, 2)).collect()
    }

    /// The last of these lines, unless all are shown. `before` counts lines that were left out already.
    fn folded(self, mut lines: Vec<Line<'static>>, limit: usize, before: usize) -> Vec<Line<'static>> {
        let over = if self.unfolded { 0 } else { lines.len().saturating_sub(limit) };
        let hidden = before + over;
        // A mark for one hidden line takes as much room as the line.
        if hidden > 1 {
            lines.drain(..over);
            lines.insert(0, Line::styled(format!("… {hidden} more lines (Ctrl+O)"), self.theme.quiet()));
        }
        lines
    }

    fn tool(self, tool: &ToolCell) -> Vec<Line<'static>> {
        let theme = self.theme;
        let (sign, style) = match tool.run.end.as_ref().map(|end| end.outcome) {
            None if tool.run.asking => ("? ", theme.warning()),
            None => ("● ", theme.accent()),
            Some(ToolOutcome::Completed) => ("✓ ", theme.good()),
            Some(ToolOutcome::Failed) => ("✗ ", theme.bad()),
            Some(ToolOutcome::Denied | ToolOutcome::Cancelled) => ("⊘ ", theme.quiet()),
        };
        let (changes, folder) = (&tool.run.changes, tool.folder.as_deref());
        let mut lines = vec![Line::default()];
        lines.extend(self.named(Span::styled(sign, style), &tool.label(), changes, self.read_count(tool)));
        if !changes.is_empty() {
            for change in changes {
                if changes.len() > 1 {
                    let name = clean_line(label::relative(&change.file_path, folder));
                    let spans =
                        std::iter::once(Span::raw(format!("  {name}"))).chain(self.counts([change].into_iter()));
                    lines.extend(wrap(Line::from_iter(spans), self.columns, 4));
                }
                lines.extend(self.diff(change));
            }
            return lines;
        }
        let result = self.result(tool);
        if !result.trim().is_empty() {
            lines.extend(self.output(result.trim_end()));
        }
        lines
    }

    /// The line of a tool call: a sign, what is done, to what, and how many lines that changes.
    fn named(
        self,
        sign: Span<'static>,
        label: &ToolLabel,
        changes: &[FileChange],
        note: Option<String>,
    ) -> Vec<Line<'static>> {
        let first = [sign, Span::styled(clean_line(&label.verb), Style::new().add_modifier(Modifier::BOLD))];
        let target = clean(&label.target);
        let mut shown: Vec<&str> = target.split('\n').collect();
        let hidden = if self.unfolded { 0 } else { shown.len().saturating_sub(COMMAND_LINES) };
        // A mark for one hidden line takes as much room as the line.
        if hidden > 1 {
            shown.truncate(COMMAND_LINES);
        }
        let most = if self.unfolded { usize::MAX } else { COMMAND_LINES * self.columns.max(1) };
        let shown: Vec<&str> = shown.into_iter().map(|line| head(line, most)).collect();
        let cut = shown.iter().map(|line| line.len()).sum::<usize>() + shown.len() - 1 < target.len();
        let shown = match shown.join("\n") {
            text if text.is_empty() => text,
            text => format!(" {text}"),
        };
        let mut lines = self.block(&first, &shown, Style::new());
        if hidden > 1 {
            lines.push(Line::styled(format!("  … {hidden} more lines (Ctrl+O)"), self.theme.quiet()));
        } else if cut {
            lines.push(Line::styled("  … (Ctrl+O)", self.theme.quiet()));
        }
        let more = self.counts(changes.iter()).chain(note.map(|note| Span::styled(note, self.theme.quiet())));
        match lines.pop() {
            Some(mut last) => {
                last.spans.extend(more);
                lines.extend(wrap(last, self.columns, 2));
            }
            None => lines.push(Line::from_iter(more)),
        }
        lines
    }

    /// ` +3 −1`: the numbers of lines that changes add and remove.
    fn counts<'a>(self, changes: impl Iterator<Item = &'a FileChange>) -> impl Iterator<Item = Span<'static>> {
        let (added, removed) = label::counts(changes.filter_map(|change| change.diff.as_deref()));
        let span = |sign, count: usize, style| (count > 0).then(|| Span::styled(format!(" {sign}{count}"), style));
        [span('+', added, self.theme.good()), span('−', removed, self.theme.bad())].into_iter().flatten()
    }

    /// How many lines a tool read or found; they are folded.
    fn read_count(self, tool: &ToolCell) -> Option<String> {
        let end = tool.run.end.as_ref().filter(|end| end.error.is_none())?;
        let reads = matches!(tool.call.tool_kind, ToolKind::Read | ToolKind::Search) && !self.unfolded;
        let text = end.result.as_ref().filter(|_| reads)?.as_str()?;
        Some(match text.trim_end().lines().count() {
            0 => " (nothing)".to_owned(),
            1 => " (1 line)".to_owned(),
            count => format!(" ({count} lines)"),
        })
    }

    fn result(self, tool: &ToolCell) -> String {
        let Some(end) = &tool.run.end else {
            return if tool.run.output.is_empty() {
                tool.run.message.clone().unwrap_or_default()
            } else {
                tool.run.output.clone()
            };
        };
        if let Some(error) = &end.error {
            return error.clone();
        }
        // The text that a tool read is in the files, so it is folded.
        let reads = matches!(tool.call.tool_kind, ToolKind::Read | ToolKind::Search) && !self.unfolded;
        match &end.result {
            _ if reads => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(serde_json::Value::Null) | None => tool.run.output.clone(),
            Some(other) => other.to_string(),
        }
    }

    fn change(self, change: &FileChange, folder: Option<&str>) -> Vec<Line<'static>> {
        let target = label::relative(&change.file_path, folder).to_owned();
        let verb = match change.change_type {
            FileChangeType::Created => "Write",
            FileChangeType::Modified => "Edit",
            FileChangeType::Deleted => "Delete",
        };
        let label = ToolLabel { verb: verb.to_owned(), target: clean_line(&target), file: None };
        let mut lines = vec![Line::default()];
        let sign = Span::styled("● ", self.theme.accent());
        lines.extend(self.named(sign, &label, std::slice::from_ref(change), None));
        lines.extend(self.diff(change));
        lines
    }

    fn diff(self, change: &FileChange) -> Vec<Line<'static>> {
        let Some(diff) = &change.diff else { return Vec::new() };
        diff_lines(diff, &change.file_path, self.columns, (!self.unfolded).then_some(DIFF_LINES), self.theme)
    }

    /// A line across the screen, with words at its beginning.
    fn rule(self, words: &str, style: Style) -> Line<'static> {
        let words = if words.is_empty() { String::new() } else { format!("── {words} ") };
        let rest = self.columns.min(72).saturating_sub(crate::wrap::width(&words));
        Line::styled(format!("{words}{}", "─".repeat(rest)), style)
    }

    fn turn_end(self, end: &TurnEnd) -> Vec<Line<'static>> {
        let theme = self.theme;
        let (words, style) = match end.status {
            TurnStatus::Completed => ("", theme.quiet()),
            TurnStatus::Failed => ("failed", theme.bad()),
            TurnStatus::Cancelled => ("cancelled", theme.warning()),
            TurnStatus::Interrupted => ("interrupted", theme.bad()),
        };
        let mut parts: Vec<String> = Vec::new();
        parts.extend((!words.is_empty()).then(|| words.to_owned()));
        parts.extend(end.duration_ms.map(number::time));
        parts.extend(end.usage.map(|usage| format!("{} tokens", number::tokens(usage.total_tokens))));
        parts.extend(end.cost_usd.filter(|cost| *cost > 0.0).map(number::cost));
        let mut lines = vec![Line::default(), self.rule(&parts.join(" · "), style)];
        if let Some(error) = &end.error {
            lines.extend(self.marked("✗ ", theme.bad(), error, theme.bad()));
        }
        lines
    }
}

/// The beginning of a line, of at most that many characters.
fn head(line: &str, most: usize) -> &str {
    line.char_indices().nth(most).map_or(line, |(end, _)| &line[..end])
}

/// The end of a line, of at most that many characters. A program may have overwritten the beginning.
fn tail(line: &str, most: usize) -> &str {
    let from = line.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    &line[from..]
}

/// The name of an answer to an unknown question.
fn by_kind(kind: ChoiceKind) -> &'static str {
    match kind {
        ChoiceKind::AllowOnce => "Allow once",
        ChoiceKind::AllowAlways => "Always allow",
        ChoiceKind::RejectOnce => "Deny",
        ChoiceKind::RejectAlways => "Always deny",
    }
}

/// The indentation of what a sub-agent does.
pub(super) fn indent(nested: bool) -> usize {
    if nested { 2 } else { 0 }
}

fn indented(mut line: Line<'static>, by: usize) -> Line<'static> {
    if by > 0 && !line.spans.is_empty() {
        line.spans.insert(0, Span::raw(" ".repeat(by)));
    }
    line
}
