//! What a session without a screen prints: events, one object, or the answer as text.
//!
//! Pure: event in, text for stdout and lines for stderr out.

use multitap_client::Outcome;
use multitap_event::{
    AgentError, Door, Event, EventKind, FileChangeType, MessageId, Question, Retry, Role, Severity, TextChunk,
    ToolCompleted, ToolId, ToolOutcome, ToolStarted, TurnEnd, TurnStatus,
};

use crate::args::OutputFormat;
use crate::words::{clean, short};

/// One of the output formats, with what it has to remember.
#[derive(Debug)]
pub(super) enum Show {
    Text(Plain),
    Json(Box<Outcome>),
    Stream,
}

/// What to print for one event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) stdout: String,
    pub(super) stderr: Vec<String>,
}

impl Show {
    /// `to_terminal`: the answer goes to a screen, which must not be made to obey what an agent says.
    pub(super) fn new(format: OutputFormat, to_terminal: bool) -> Self {
        match format {
            OutputFormat::Text => Self::Text(Plain { to_terminal, ..Plain::default() }),
            OutputFormat::Json => Self::Json(Box::default()),
            OutputFormat::StreamJson => Self::Stream,
        }
    }

    pub(super) fn event(&mut self, event: &Event) -> Shown {
        match self {
            Self::Text(plain) => plain.event(event),
            Self::Json(outcome) => {
                outcome.apply(event);
                outcome.session_id.get_or_insert_with(|| event.session_id.clone());
                Shown::default()
            }
            Self::Stream => Shown { stdout: line(event), stderr: Vec::new() },
        }
    }

    /// What is left to print when the session is over.
    pub(super) fn end(&mut self) -> String {
        match self {
            Self::Text(plain) => plain.end_line(),
            Self::Json(outcome) => {
                if outcome.status.is_none() && outcome.error.is_some() {
                    outcome.status = Some(TurnStatus::Failed);
                }
                line(outcome)
            }
            Self::Stream => String::new(),
        }
    }
}

fn line(value: &impl serde::Serialize) -> String {
    match serde_json::to_string(value) {
        Ok(mut text) => {
            text.push('\n');
            text
        }
        Err(error) => {
            tracing::error!(%error, "an event cannot be written as JSON");
            String::new()
        }
    }
}

/// The answer on stdout as it comes; everything else in plain words on stderr.
#[derive(Debug, Default)]
pub(super) struct Plain {
    to_terminal: bool,
    mid_line: bool,
    speaking: Option<Option<MessageId>>,
    /// Something of this turn's answer was printed.
    spoke: bool,
    tools: Vec<(ToolId, String)>,
    questions: Vec<Question>,
    /// Tools whose denial was told with its reason.
    denied: Vec<ToolId>,
    /// The last error that was told, so that it is not told again as the reason of the end.
    told: Option<String>,
}

impl Plain {
    fn event(&mut self, event: &Event) -> Shown {
        let mut shown = Shown::default();
        match &event.kind {
            EventKind::TextChunk(chunk) => shown.stdout = self.text(chunk),
            EventKind::TurnStarted { .. } => self.spoke = false,
            EventKind::ToolStarted(tool) => shown.stderr.push(self.tool_started(tool)),
            EventKind::ToolCompleted(done) => shown.stderr.extend(self.tool_completed(done)),
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
            EventKind::System(note) if note.subtype == "discarded" => {
                let message = note.message.as_deref().unwrap_or("the agent begins this text again");
                shown.stderr.push(format!("[discarded] {message}"));
            }
            EventKind::System(note) if note.subtype == "sandbox" => {
                shown.stderr.extend(note.message.as_ref().map(|message| format!("[sandbox] {message}")));
            }
            EventKind::TurnCompleted(end) => self.turn_completed(end, &mut shown),
            EventKind::SessionEnded(end) => {
                shown.stdout = self.end_line();
                if let Some(error) = &end.error {
                    shown.stderr.extend(self.tell("[error]", error));
                }
            }
            EventKind::SessionStarted(_)
            | EventKind::Reasoning(_)
            | EventKind::ToolProgress(_)
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
        for line in &mut shown.stderr {
            *line = clean(line);
        }
        shown
    }

    fn text(&mut self, chunk: &TextChunk) -> String {
        // What a sub-agent says and what the user said is not the answer.
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

    /// A piece of the answer, as stdout may have it.
    fn answer(&mut self, text: &str) -> String {
        let text = if self.to_terminal { clean(text) } else { text.to_owned() };
        if let Some(last) = text.chars().last() {
            self.mid_line = last != '\n';
            self.spoke = true;
        }
        text
    }

    fn end_line(&mut self) -> String {
        if std::mem::take(&mut self.mid_line) { "\n".to_owned() } else { String::new() }
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
                shown.stderr.extend(self.tell("[error]", end.error.as_deref().unwrap_or("the turn was cut off")));
            }
        }
        self.spoke = false;
    }

    /// An error line, unless this is what was told last.
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

/// An error with what the agent itself said about it.
pub(super) fn with_native(error: &AgentError) -> String {
    match error.native_error.as_deref().filter(|native| !error.message.contains(*native)) {
        Some(native) => format!("{}\n{native}", error.message),
        None => error.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{
        AgentErrorKind, Choice, ChoiceKind, ClientRef, Details, Draft, Ruling, SessionEnd, SessionEndReason, Timestamp,
        TokenUsage, ToolKind, option,
    };
    use serde_json::json;

    use super::*;

    fn stamp(kind: EventKind) -> Event {
        Draft::new(Timestamp::from_millis(0), kind).stamp("s".into(), 1)
    }

    fn text(content: &str, message: &str, is_partial: bool) -> EventKind {
        EventKind::TextChunk(TextChunk {
            content: content.into(),
            is_partial,
            role: Some(Role::Assistant),
            message_id: Some(message.into()),
            parent_tool_id: None,
        })
    }

    fn tool(name: &str, arguments: &serde_json::Value) -> EventKind {
        EventKind::ToolStarted(ToolStarted {
            tool_id: "t".into(),
            tool_name: name.into(),
            tool_kind: ToolKind::Shell,
            title: None,
            arguments: arguments.as_object().unwrap().clone(),
            server: None,
            parent_tool_id: None,
        })
    }

    fn play(format: OutputFormat, kinds: Vec<EventKind>) -> (String, Vec<String>) {
        let mut show = Show::new(format, true);
        let (mut stdout, mut stderr) = (String::new(), Vec::new());
        for kind in kinds {
            let shown = show.event(&stamp(kind));
            stdout.push_str(&shown.stdout);
            stderr.extend(shown.stderr);
        }
        stdout.push_str(&show.end());
        (stdout, stderr)
    }

    #[test]
    fn the_answer_goes_to_stdout_and_tools_to_stderr() {
        let (stdout, stderr) = play(
            OutputFormat::Text,
            vec![
                text("I will ", "a", true),
                text("look.", "a", true),
                tool("Bash", &json!({"command": "ls"})),
                text("Done.\n", "b", false),
                EventKind::TurnCompleted(TurnEnd {
                    text: Some("Done.\n".into()),
                    ..TurnEnd::of(TurnStatus::Completed)
                }),
            ],
        );
        assert_eq!(stdout, "I will look.\n\nDone.\n");
        assert_eq!(stderr, [r#"[tool] Bash: {"command":"ls"}"#]);
    }

    #[test]
    fn closing_words_that_were_not_streamed_are_printed() {
        let end = TurnEnd { text: Some("Cost: 0".into()), ..TurnEnd::of(TurnStatus::Completed) };
        let (stdout, _) = play(OutputFormat::Text, vec![EventKind::TurnCompleted(end)]);
        assert_eq!(stdout, "Cost: 0\n");
    }

    #[test]
    fn a_terminal_does_not_obey_the_agent() {
        let (stdout, stderr) =
            play(OutputFormat::Text, vec![text("a\u{1b}[2Jb\u{7}", "a", false), tool("Ba\u{1b}sh", &json!({}))]);
        assert_eq!(stdout, "a[2Jb\n");
        assert_eq!(stderr, ["[tool] Bash"]);
    }

    #[test]
    fn an_error_is_told_once() {
        let error = AgentError::new(AgentErrorKind::Unknown, "overloaded");
        let end = TurnEnd { error: Some("overloaded".into()), ..TurnEnd::of(TurnStatus::Failed) };
        let session = SessionEnd {
            reason: SessionEndReason::Failed,
            error: Some("overloaded".into()),
            final_usage: None,
            exit_code: None,
        };
        let kinds = vec![EventKind::Error(error), EventKind::TurnCompleted(end), EventKind::SessionEnded(session)];
        let (stdout, stderr) = play(OutputFormat::Text, kinds);
        assert_eq!(stdout, "");
        assert_eq!(stderr, ["[error] overloaded"]);
    }

    #[test]
    fn a_denial_by_the_host_is_told_with_its_reason() {
        let question = Question {
            question_id: "q".into(),
            tool_id: Some("t".into()),
            tool_name: None,
            title: "Run rm -rf /".into(),
            options: vec![Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce)],
            details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
            edits: Vec::new(),
            reason: None,
        };
        let ruling = Ruling {
            question_id: "q".into(),
            selected_option_id: option::CANCEL.into(),
            kind: ChoiceKind::RejectOnce,
            settled_by: ClientRef::new("multitap", Door::Host),
            at: Timestamp::from_millis(0),
            feedback: Some("nobody is there".into()),
            edited: false,
        };
        let denied = ToolCompleted {
            tool_id: "t".into(),
            success: false,
            outcome: ToolOutcome::Denied,
            result: None,
            error: Some("nobody is there".into()),
            exit_code: None,
            duration_ms: None,
        };
        let kinds = vec![
            tool("Bash", &json!({})),
            EventKind::PermissionAsked(question),
            EventKind::PermissionSettled(ruling),
            EventKind::ToolCompleted(denied.clone()),
        ];
        let (_, stderr) = play(OutputFormat::Text, kinds);
        assert_eq!(stderr, ["[tool] Bash", "[denied] Run rm -rf /: nobody is there"]);
        // A denial that was not ours is told where it shows.
        let (_, stderr) = play(OutputFormat::Text, vec![tool("Bash", &json!({})), EventKind::ToolCompleted(denied)]);
        assert_eq!(stderr, ["[tool] Bash", "[tool] Bash was denied: nobody is there"]);
    }

    #[test]
    fn what_the_sandbox_does_is_told() {
        let note = |subtype: &str, message: &str| {
            let (subtype, message) = (subtype.to_owned(), Some(message.to_owned()));
            EventKind::System(multitap_event::SystemNote { subtype, message, data: serde_json::Map::new() })
        };
        let kinds = vec![note("sandbox", "every command will fail"), note("mcpServer", "tiny: ready")];
        let (stdout, stderr) = play(OutputFormat::Text, kinds);
        assert_eq!((stdout.as_str(), stderr), ("", vec!["[sandbox] every command will fail".to_owned()]));
    }

    #[test]
    fn json_is_one_object_at_the_end() {
        let end = TurnEnd {
            text: Some("Done.".into()),
            usage: Some(TokenUsage::of(1, 2)),
            cost_usd: Some(0.5),
            ..TurnEnd::of(TurnStatus::Completed)
        };
        let kinds = vec![tool("Bash", &json!({"command": "ls"})), EventKind::TurnCompleted(end)];
        let (stdout, stderr) = play(OutputFormat::Json, kinds);
        assert!(stderr.is_empty());
        let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(value["text"], "Done.");
        assert_eq!(value["status"], "completed");
        assert_eq!(value["usage"]["totalTokens"], 3);
        assert_eq!(value["tools"][0]["toolName"], "Bash");
        assert_eq!(value["costUsd"], 0.5);
        assert_eq!(value["files"], json!([]));
        assert!(value.get("error").is_none());
        assert_eq!(stdout.lines().count(), 1);
    }

    #[test]
    fn stream_is_one_event_a_line() {
        let (stdout, stderr) = play(OutputFormat::StreamJson, vec![text("a\nb", "a", true), text("c", "a", true)]);
        assert_eq!(stdout.lines().count(), 2);
        assert!(stderr.is_empty());
        assert!(stdout.lines().all(|line| serde_json::from_str::<Event>(line).is_ok()));
    }
}
