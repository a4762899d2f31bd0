//! A conversation as text: messages, tool calls and their results, changed files.
//!
//! Pure: event in, text out.

use multitap_event::{
    EventKind, FileChangeType, Question, QuestionId, Role, Ruling, SystemSubtype, TodoStatus, ToolCompleted, ToolId,
    ToolOutcome, ToolStarted, TurnEnd, TurnStatus,
};

use crate::words::short;

/// State that later events depend on.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    tools: Vec<(ToolId, String)>,
    /// Open questions about tool calls.
    asked: Vec<(QuestionId, ToolId)>,
}

impl Transcript {
    /// The text for an event.
    pub(super) fn tell(&mut self, kind: &EventKind) -> String {
        match kind {
            EventKind::UserMessage(message) => {
                let pictures = match message.images.len() {
                    0 => String::new(),
                    count => format!("\n[{count} pictures]"),
                };
                format!("\n> {}{pictures}\n", message.content.trim_end().replace('\n', "\n> "))
            }
            EventKind::TextChunk(chunk) if chunk.parent_tool_id.is_some() => {
                let who = if chunk.role == Some(Role::User) { "asked" } else { "says" };
                format!("  [sub-agent {who}] {}\n", short(&chunk.content))
            }
            EventKind::TextChunk(chunk) => format!("\n{}\n", chunk.content.trim_end()),
            EventKind::Reasoning(thought) => format!("\n[thinks] {}\n", short(&thought.content)),
            EventKind::ToolStarted(tool) => {
                self.tools.push((tool.tool_id.clone(), line(tool)));
                String::new()
            }
            EventKind::PermissionAsked(Question { question_id, tool_id: Some(tool_id), .. }) => {
                self.asked.push((question_id.clone(), tool_id.clone()));
                String::new()
            }
            EventKind::PermissionSettled(ruling) => self.settled(ruling),
            EventKind::ToolCompleted(done) => self.tool_ended(done),
            EventKind::FileChanged(change) => {
                let what = match change.change_type {
                    FileChangeType::Created => "created",
                    FileChangeType::Modified => "changed",
                    FileChangeType::Deleted => "deleted",
                };
                format!("  [file] {what} {}\n", change.file_path)
            }
            EventKind::TodoList(list) => {
                let item = |status: TodoStatus, text: &str| {
                    let mark = match status {
                        TodoStatus::Pending => " ",
                        TodoStatus::InProgress => ">",
                        TodoStatus::Completed => "x",
                        TodoStatus::Cancelled => "-",
                    };
                    format!("  [{mark}] {}\n", short(text))
                };
                list.items.iter().map(|one| item(one.status, &one.text)).collect()
            }
            EventKind::TurnCompleted(end) => turn(end),
            EventKind::Error(error) => format!("\n[error] {}\n", error.message),
            EventKind::Retry(retry) => format!("  [retry] attempt {}\n", retry.attempt),
            EventKind::ModelChanged { model, .. } => format!("\n[model] {model}\n"),
            EventKind::ModeChanged { native_mode: Some(mode), .. } => format!("\n[mode] {mode}\n"),
            EventKind::System(note) if note.subtype == SystemSubtype::COMPACTED => {
                "\n[the conversation was summarized to make room]\n".to_owned()
            }
            EventKind::System(note) if note.subtype == "rewound" => {
                format!("\n[{}]\n", note.message.as_deref().unwrap_or("the conversation goes back"))
            }
            EventKind::Unrecognized { reason, .. } => format!("  [a line of the file was not understood: {reason}]\n"),
            EventKind::RuleAdded(rule) => format!("\n[{}]\n", short(&rule.added_summary())),
            EventKind::RuleRevoked(rule) => format!("\n[{}]\n", short(&rule.revoked_summary())),
            EventKind::System(_)
            | EventKind::TextRetracted(_)
            | EventKind::NativeSessionChanged { .. }
            | EventKind::Capabilities(_)
            | EventKind::McpServerStatus(_)
            | EventKind::SessionStarted(_)
            | EventKind::SessionEnded(_)
            | EventKind::TurnStarted { .. }
            | EventKind::ToolProgress(_)
            | EventKind::RawDelta { .. }
            | EventKind::AuthStatus(_)
            | EventKind::PromptQueued { .. }
            | EventKind::PromptWithdrawn { .. }
            | EventKind::PermissionAsked(_)
            | EventKind::PermissionWithdrawn(_)
            | EventKind::ModeChanged { .. }
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. } => String::new(),
        }
    }

    /// An edited call is shown as it ran.
    fn settled(&mut self, ruling: &Ruling) -> String {
        let at = self.asked.iter().position(|(question, _)| *question == ruling.question_id);
        let tool = at.map(|at| self.asked.swap_remove(at).1);
        let Some(runs) = &ruling.runs else { return String::new() };
        if let Some((_, line)) = self.tools.iter_mut().find(|(id, _)| Some(id) == tool.as_ref()) {
            let name = line.split(' ').next().unwrap_or_default();
            *line = format!("{name} {}", short(&runs.title));
        }
        format!("  [edited by {}] {}\n", ruling.settled_by.client, short(&runs.title))
    }

    fn tool_ended(&mut self, done: &ToolCompleted) -> String {
        let at = self.tools.iter().position(|(id, _)| *id == done.tool_id);
        let tool = at.map_or_else(|| "tool".to_owned(), |at| self.tools.swap_remove(at).1);
        let how = match (done.outcome, done.exit_code) {
            (ToolOutcome::Completed, _) => "done".to_owned(),
            (ToolOutcome::Failed, Some(code)) => format!("failed with exit code {code}"),
            (ToolOutcome::Failed, None) => "failed".to_owned(),
            (ToolOutcome::Denied, _) => "denied".to_owned(),
            (ToolOutcome::Cancelled, _) => "cancelled".to_owned(),
        };
        match done.error.as_deref().filter(|_| done.outcome == ToolOutcome::Failed) {
            Some(error) => format!("  [tool] {tool}: {how}: {}\n", short(error)),
            None => format!("  [tool] {tool}: {how}\n"),
        }
    }
}

fn line(tool: &ToolStarted) -> String {
    match tool.title.as_deref().filter(|title| *title != tool.tool_name) {
        Some(title) if title.starts_with(&tool.tool_name) => short(title),
        Some(title) => format!("{} {}", tool.tool_name, short(title)),
        None => tool.tool_name.clone(),
    }
}

fn turn(end: &TurnEnd) -> String {
    match end.status {
        TurnStatus::Completed => String::new(),
        TurnStatus::Failed => {
            format!(
                "\n[the turn failed{}]\n",
                end.error.as_deref().map(|why| format!(": {}", short(why))).unwrap_or_default()
            )
        }
        TurnStatus::Cancelled => "\n[the turn was cancelled]\n".to_owned(),
        TurnStatus::Interrupted => "\n[the turn was interrupted]\n".to_owned(),
    }
}
