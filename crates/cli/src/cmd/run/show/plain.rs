//! The text format: the answer on stdout as it arrives; everything else on stderr, in plain words.

use multitap_event::{
    AgentError, Door, Event, EventKind, FileChangeType, MessageId, Question, Retry, Role, Severity, SystemSubtype,
    TextChunk, ToolCompleted, ToolId, ToolOutcome, ToolProgress, ToolStarted, TurnEnd, TurnStatus, is_hidden, visible,
    visible_output,
};

use super::Shown;
use crate::words::short;

/// A longer line is shown before it ends.
const LONG_LINE: usize = 4096;

/// State on which the formatting of later events depends.
#[derive(Debug, Default)]
pub(in crate::cmd::run) struct Plain {
    to_terminal: bool,
    mid_line: bool,
    /// The end of the answer so far, which may belong to the next piece.
    held: String,
    speaking: Option<Option<MessageId>>,
    /// Part of this turn's answer was printed.
    spoke: bool,
    tools: Vec<(ToolId, String)>,
    /// The incomplete last lines of tool output.
    lines: Vec<(ToolId, String)>,
    questions: Vec<Question>,
    /// Tools whose denial was printed with its reason.
    denied: Vec<ToolId>,
    /// The last error printed, so that it is not repeated as the reason of the end.
    told: Option<String>,
}

impl Plain {
    /// `to_terminal`: the answer goes to a screen.
    pub(super) fn new(to_terminal: bool) -> Self {
        Self { to_terminal, ..Self::default() }
    }

    pub(super) fn event(&mut self, event: &Event) -> Shown {
        let mut shown = Shown::default();
        match &event.kind {
            EventKind::TextChunk(chunk) => shown.stdout = self.text(chunk),
            EventKind::TurnStarted { .. } => self.spoke = false,
            EventKind::ToolStarted(tool) => shown.stderr.push(self.tool_started(tool)),
            EventKind::ToolProgress(progress) => shown.stderr = self.output(progress),
            EventKind::ToolCompleted(done) => {
                shown
                    .stderr
                    .extend(self.rest_of_output(&done.tool_id).map(|line| format!("  {}", visible_output(&line))));
                shown.stderr.extend(self.tool_completed(done));
            }
            EventKind::FileChanged(change) => {
                let what = match change.change_type {
                    FileChangeType::Created => "created",
                    FileChangeType::Modified => "changed",
                    FileChangeType::Deleted => "deleted",
                };
                shown.stderr.push(format!("[file] {what} {}", change.file_path));
            }
            EventKind::Retry(retry) => shown.stderr.push(retry_line(retry)),
            EventKind::Error(error) => shown.stderr.extend(self.error(error)),
            EventKind::PermissionAsked(question) => self.questions.push(question.clone()),
            EventKind::PermissionSettled(ruling) => {
                let at = self.questions.iter().position(|question| question.question_id == ruling.question_id);
                let question = at.map(|at| self.questions.swap_remove(at));
                if ruling.kind.rejects() && ruling.settled_by.door == Door::Host {
                    self.denied.extend(question.as_ref().and_then(|question| question.tool_id.clone()));
                    let title = question.map_or_else(|| "a question".to_owned(), |question| question.title);
                    let why = ruling.feedback.as_deref().unwrap_or("nobody answered");
                    shown.stderr.push(format!("[denied] {title}: {why}"));
                }
            }
            EventKind::PermissionWithdrawn(gone) => {
                self.questions.retain(|question| question.question_id != gone.question_id);
            }
            EventKind::TextRetracted(text) => {
                let message = text.message.as_deref().unwrap_or("the model starts this text again");
                shown.stderr.push(format!("[retracted] {message}"));
            }
            EventKind::System(note) if ["sandbox", SystemSubtype::LOG].contains(&note.subtype.as_str()) => {
                let told = note.message.as_ref().map(|message| format!("[{}] {message}", note.subtype));
                shown.stderr.extend(told);
            }
            EventKind::TurnCompleted(end) => self.turn_completed(end, &mut shown),
            EventKind::SessionEnded(end) => {
                shown.stdout = self.end_line();
                if let Some(error) = &end.error {
                    shown.stderr.extend(self.tell("[error]", error));
                }
            }
            EventKind::SessionStarted(_)
            | EventKind::NativeSessionChanged { .. }
            | EventKind::Capabilities(_)
            | EventKind::McpServerStatus(_)
            | EventKind::RuleAdded(_)
            | EventKind::RuleRevoked(_)
            | EventKind::Reasoning(_)
            | EventKind::TodoList(_)
            | EventKind::System(_)
            | EventKind::RawDelta { .. }
            | EventKind::AuthStatus(_)
            | EventKind::UserMessage(_)
            | EventKind::PromptQueued { .. }
            | EventKind::PromptWithdrawn { .. }
            | EventKind::ModeChanged { .. }
            | EventKind::ModelChanged { .. }
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. }
            | EventKind::Unrecognized { .. } => {}
        }
        if !shown.stderr.is_empty() && shown.stdout.is_empty() {
            shown.stdout = self.end_line();
        }
        shown
    }

    fn text(&mut self, chunk: &TextChunk) -> String {
        // The text of a sub-agent or of the user is not the answer.
        if chunk.parent_tool_id.is_some() || chunk.role == Some(Role::User) {
            return String::new();
        }
        let mut text = String::new();
        let message = Some(chunk.message_id.clone());
        if self.speaking != message {
            text.push_str(&self.end_line());
            if self.spoke {
                text.push('\n');
            }
            self.speaking = message;
        }
        text.push_str(&self.answer(&chunk.content));
        if !chunk.is_partial {
            text.push_str(&self.end_line());
            self.speaking = None;
        }
        text
    }

    /// A piece of the answer, formatted for stdout.
    fn answer(&mut self, text: &str) -> String {
        if let Some(last) = text.chars().last() {
            self.mid_line = last != '\n';
            self.spoke = true;
        }
        if !self.to_terminal {
            return text.to_owned();
        }
        self.held.push_str(text);
        let end = open_end(&self.held);
        let rest = self.held.split_off(end);
        visible(&std::mem::replace(&mut self.held, rest)).into_owned()
    }

    /// Ends an open line of the answer.
    pub(super) fn end_line(&mut self) -> String {
        let mut text = visible(&std::mem::take(&mut self.held)).into_owned();
        if std::mem::take(&mut self.mid_line) {
            text.push('\n');
        }
        text
    }

    fn tool_started(&mut self, tool: &ToolStarted) -> String {
        let about = match &tool.title {
            Some(title) => short(title),
            None if tool.arguments.is_empty() => String::new(),
            None => short(&serde_json::Value::Object(tool.arguments.clone()).to_string()),
        };
        self.tools.push((tool.tool_id.clone(), tool.tool_name.clone()));
        if about.is_empty() || about == tool.tool_name {
            format!("[tool] {}", tool.tool_name)
        } else if about.starts_with(&tool.tool_name) {
            format!("[tool] {about}")
        } else {
            format!("[tool] {}: {about}", tool.tool_name)
        }
    }

    /// The complete lines of a tool's output.
    fn output(&mut self, progress: &ToolProgress) -> Vec<String> {
        let Some(output) = &progress.output else { return Vec::new() };
        let mut text = self.rest_of_output(&progress.tool_id).unwrap_or_default();
        text.push_str(output);
        let mut lines: Vec<_> = text.split('\n').map(|line| line.trim_end_matches('\r').to_owned()).collect();
        let last = lines.pop().unwrap_or_default();
        if last.len() > LONG_LINE {
            lines.push(last);
        } else if !last.is_empty() {
            self.lines.push((progress.tool_id.clone(), last));
        }
        lines.iter().map(|line| format!("  {}", visible_output(line))).collect()
    }

    fn rest_of_output(&mut self, tool: &ToolId) -> Option<String> {
        let at = self.lines.iter().position(|(id, _)| id == tool)?;
        Some(self.lines.swap_remove(at).1)
    }

    fn tool_completed(&mut self, done: &ToolCompleted) -> Option<String> {
        let at = self.tools.iter().position(|(id, _)| *id == done.tool_id);
        let name = at.map_or_else(|| "tool".to_owned(), |at| self.tools.swap_remove(at).1);
        let told = self.denied.iter().position(|id| *id == done.tool_id).map(|at| self.denied.swap_remove(at));
        let how = match done.outcome {
            ToolOutcome::Completed => return None,
            ToolOutcome::Denied if told.is_some() => return None,
            ToolOutcome::Failed => "failed",
            ToolOutcome::Denied => "was denied",
            ToolOutcome::Cancelled => "was cancelled",
        };
        match &done.error {
            Some(error) => Some(format!("[tool] {name} {how}: {}", short(error))),
            None => Some(format!("[tool] {name} {how}")),
        }
    }

    fn error(&mut self, error: &AgentError) -> Option<String> {
        let word = match error.severity {
            Severity::Error => "[error]",
            Severity::Warning => "[warning]",
        };
        let line = self.tell(word, &error.message)?;
        let native = error.native_error.as_deref().filter(|native| !line.contains(*native));
        Some(match native {
            Some(native) => format!("{line} ({})", short(native)),
            None => line,
        })
    }

    fn turn_completed(&mut self, end: &TurnEnd, shown: &mut Shown) {
        shown.stdout = self.end_line();
        self.speaking = None;
        match end.status {
            TurnStatus::Completed => {
                if let Some(text) = end.text.as_ref().filter(|text| !self.spoke && !text.is_empty()) {
                    let text = self.answer(text);
                    shown.stdout.push_str(&text);
                    shown.stdout.push_str(&self.end_line());
                }
            }
            TurnStatus::Failed => {
                let error = end.error.as_deref().unwrap_or("the turn failed");
                shown.stderr.extend(self.tell("[error]", error));
            }
            TurnStatus::Cancelled => shown.stderr.push("[cancelled]".to_owned()),
            TurnStatus::Interrupted => {
                shown.stderr.extend(self.tell("[error]", end.error.as_deref().unwrap_or("the turn was interrupted")));
            }
        }
        self.spoke = false;
    }

    /// An error line, unless it was printed last.
    fn tell(&mut self, word: &str, message: &str) -> Option<String> {
        if self.told.as_deref() == Some(message) {
            return None;
        }
        self.told = Some(message.to_owned());
        Some(format!("{word} {message}"))
    }
}

fn retry_line(retry: &Retry) -> String {
    let mut line = format!("[retry] attempt {}", retry.attempt);
    if let Some(most) = retry.max_attempts {
        line.push_str(&format!(" of {most}"));
    }
    if let Some(delay) = retry.delay_ms {
        line.push_str(&format!(" in {:.1} s", std::time::Duration::from_millis(delay).as_secs_f32()));
    }
    match (retry.status_code, &retry.reason) {
        (Some(status), Some(reason)) => line.push_str(&format!(": {reason} ({status})")),
        (Some(status), None) => line.push_str(&format!(": status {status}")),
        (None, Some(reason)) => line.push_str(&format!(": {reason}")),
        (None, None) => {}
    }
    line
}

/// An error with the agent's own message.
pub(in crate::cmd::run) fn with_native(error: &AgentError) -> String {
    match error.native_error.as_deref().filter(|native| !error.message.contains(*native)) {
        Some(native) => format!("{}\n{native}", error.message),
        None => error.message.clone(),
    }
}

/// The index at the end of a text from which it may continue an emoji, a joined letter or a line ending: an answer may
/// be split anywhere.
fn open_end(text: &str) -> usize {
    const LONGEST: usize = 8;
    let may_join = |c: char| {
        is_hidden(c) || matches!(c, '\u{600}'..='\u{dff}' | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
    };
    let end = text.char_indices().rev().take(LONGEST).take_while(|(_, c)| may_join(*c)).last();
    end.map_or(text.len(), |(at, _)| at)
}
