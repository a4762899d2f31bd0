//! The outcome of a session: its answer, its cost, its changes.

use multitap_event::{
    AgentError, AgentErrorKind, Denial, Event, EventKind, FileChangeType, MessageId, Role, SessionId, Severity,
    TextChunk, TokenUsage, ToolId, ToolOutcome, TurnEnd, TurnStatus,
};
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

const BETWEEN: &str = "\n\n";

/// The outcome of a session, collected from its events. With several turns, text and status are those of the last.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOutcome {
    /// The agent's answer.
    pub text: String,
    pub status: Option<TurnStatus>,
    pub session_id: Option<SessionId>,
    /// The id that [`AgentClient::resume`](crate::AgentClient::resume) takes.
    pub native_session_id: Option<String>,
    pub usage: Option<TokenUsage>,
    pub cost_usd: Option<f64>,
    pub tools: Vec<ToolUse>,
    pub files: Vec<TouchedFile>,
    pub denials: Vec<Denial>,
    /// The answer according to the output schema.
    pub structured_output: Option<Value>,
    /// Why the last turn failed.
    pub error: Option<AgentError>,
    /// Everything that happened. Filled by [`AgentClient::prompt_once`](crate::AgentClient::prompt_once).
    #[serde(skip)]
    pub events: Vec<Event>,
    /// The messages of this turn that make up `text`.
    #[serde(skip)]
    said: Vec<MessageText>,
}

#[derive(Debug, Clone, PartialEq)]
struct MessageText {
    message: Option<MessageId>,
    text: String,
    is_whole: bool,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolUse {
    pub tool_id: ToolId,
    pub tool_name: String,
    pub title: Option<String>,
    pub arguments: Map<String, Value>,
    /// Absent if the call never ended.
    pub outcome: Option<ToolOutcome>,
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TouchedFile {
    pub file_path: String,
    pub change_type: FileChangeType,
}

impl SessionOutcome {
    pub fn apply(&mut self, event: &Event) {
        match &event.kind {
            EventKind::SessionStarted(start) => {
                self.session_id = Some(event.session_id.clone());
                if start.native_session_id.is_some() {
                    self.native_session_id.clone_from(&start.native_session_id);
                }
            }
            EventKind::NativeSessionChanged { native_session_id } => {
                self.native_session_id = Some(native_session_id.clone());
            }
            EventKind::TextRetracted(text) => self.retract(&text.message_ids),
            EventKind::UserMessage(_) => {
                self.text.clear();
                self.said.clear();
                self.status = None;
                self.error = None;
            }
            EventKind::TextChunk(chunk) => {
                if chunk.parent_tool_id.is_some() || chunk.role == Some(Role::User) {
                    return;
                }
                self.say(chunk);
            }
            EventKind::ToolStarted(tool) => self.tools.push(ToolUse {
                tool_id: tool.tool_id.clone(),
                tool_name: tool.tool_name.clone(),
                title: tool.title.clone(),
                arguments: tool.arguments.clone(),
                outcome: None,
                error: None,
            }),
            EventKind::ToolCompleted(done) => {
                if let Some(tool) = self.tools.iter_mut().rev().find(|tool| tool.tool_id == done.tool_id) {
                    tool.outcome = Some(done.outcome);
                    tool.error.clone_from(&done.error);
                }
            }
            EventKind::FileChanged(change) => {
                let file = TouchedFile { file_path: change.file_path.clone(), change_type: change.change_type };
                if !self.files.contains(&file) {
                    self.files.push(file);
                }
            }
            EventKind::Error(error) if error.severity == Severity::Error => self.error = Some(error.clone()),
            EventKind::TurnCompleted(end) => self.turn_ended(end),
            EventKind::SessionEnded(end) => {
                if let (None, Some(error)) = (&self.error, &end.error) {
                    self.error = Some(AgentError::new(AgentErrorKind::Unknown, error).exited(end.exit_code));
                }
                if self.usage.is_none() {
                    self.usage = end.final_usage;
                }
            }
            EventKind::Error(_)
            | EventKind::System(_)
            | EventKind::Capabilities(_)
            | EventKind::McpServerStatus(_)
            | EventKind::RuleAdded(_)
            | EventKind::RuleRevoked(_)
            | EventKind::TurnStarted { .. }
            | EventKind::Reasoning(_)
            | EventKind::ToolProgress(_)
            | EventKind::TodoList(_)
            | EventKind::RawDelta { .. }
            | EventKind::Retry(_)
            | EventKind::AuthStatus(_)
            | EventKind::PromptQueued { .. }
            | EventKind::PromptWithdrawn { .. }
            | EventKind::PermissionAsked(_)
            | EventKind::PermissionSettled(_)
            | EventKind::PermissionWithdrawn(_)
            | EventKind::ModeChanged { .. }
            | EventKind::ModelChanged { .. }
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. }
            | EventKind::Unrecognized { .. } => {}
        }
    }

    fn say(&mut self, chunk: &TextChunk) {
        match self.said.last_mut() {
            Some(last) if last.message == chunk.message_id && !last.is_whole => last.text.push_str(&chunk.content),
            _ => {
                if !self.text.is_empty() {
                    self.text.push_str(BETWEEN);
                }
                self.said.push(MessageText {
                    message: chunk.message_id.clone(),
                    text: chunk.content.clone(),
                    is_whole: !chunk.is_partial,
                });
            }
        }
        self.text.push_str(&chunk.content);
    }

    /// The agent retracted these messages and sends them again.
    fn retract(&mut self, messages: &[MessageId]) {
        self.said.retain(|said| !said.message.as_ref().is_some_and(|id| messages.contains(id)));
        self.text = self.said.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join(BETWEEN);
    }

    fn turn_ended(&mut self, end: &TurnEnd) {
        self.status = Some(end.status);
        self.said.clear();
        if let Some(text) = end.text.as_ref().filter(|text| !text.is_empty()) {
            self.text.clone_from(text);
        }
        if let Some(usage) = end.usage {
            self.usage = TokenUsage::sum(self.usage, Some(usage));
        }
        self.cost_usd =
            end.total_cost_usd.or(end.cost_usd.map(|cost| cost + self.cost_usd.unwrap_or(0.0))).or(self.cost_usd);
        self.denials.extend(end.denials.iter().cloned());
        if end.structured_output.is_some() {
            self.structured_output.clone_from(&end.structured_output);
        }
        match end.status {
            TurnStatus::Completed => self.error = None,
            TurnStatus::Failed | TurnStatus::Cancelled | TurnStatus::Interrupted => {
                if let (None, Some(error)) = (&self.error, &end.error) {
                    self.error = Some(AgentError::new(AgentErrorKind::Unknown, error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{Draft, TextRetraction, Timestamp, UserMessage};

    use super::*;

    fn apply(outcome: &mut SessionOutcome, kind: EventKind) {
        outcome.apply(&Draft::new(Timestamp::from_millis(0), kind).stamp("s".into(), 1));
    }

    fn text(content: &str, message: &str, is_partial: bool) -> EventKind {
        let message_id = Some(message.into());
        EventKind::TextChunk(TextChunk {
            content: content.into(),
            is_partial,
            role: Some(Role::Assistant),
            message_id,
            parent_tool_id: None,
        })
    }

    #[test]
    fn partial_text_joins_and_messages_stand_apart() {
        let mut outcome = SessionOutcome::default();
        apply(&mut outcome, text("Hel", "a", true));
        apply(&mut outcome, text("lo", "a", true));
        apply(&mut outcome, text("Done.", "b", false));
        assert_eq!(outcome.text, "Hello\n\nDone.");
    }

    #[test]
    fn retracted_text_is_gone() {
        let mut outcome = SessionOutcome::default();
        apply(&mut outcome, text("First.", "a", false));
        apply(&mut outcome, text("interr", "b", true));
        apply(&mut outcome, EventKind::TextRetracted(TextRetraction::interrupted(vec!["b".into()])));
        apply(&mut outcome, text("interrupted", "c", true));
        assert_eq!(outcome.text, "First.\n\ninterrupted");
    }

    #[test]
    fn usage_adds_up_and_the_last_turn_speaks() {
        let mut outcome = SessionOutcome::default();
        for words in ["one", "two"] {
            apply(
                &mut outcome,
                EventKind::UserMessage(UserMessage {
                    content: words.into(),
                    images: Vec::new(),
                    prompt_id: None,
                    from: None,
                    steering: false,
                    message_id: None,
                    ..UserMessage::default()
                }),
            );
            apply(&mut outcome, text(words, words, false));
            let end = TurnEnd { usage: Some(TokenUsage::of(1, 2)), ..TurnEnd::of(TurnStatus::Completed) };
            apply(&mut outcome, EventKind::TurnCompleted(end));
        }
        assert_eq!(outcome.text, "two");
        assert_eq!(outcome.usage, Some(TokenUsage::of(2, 4)));
    }

    #[test]
    fn a_failed_turn_keeps_its_error_and_a_recovered_one_does_not() {
        let mut outcome = SessionOutcome::default();
        let error = AgentError::new(AgentErrorKind::Unknown, "overloaded");
        apply(&mut outcome, EventKind::Error(error.clone()));
        apply(&mut outcome, EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Failed)));
        assert_eq!(outcome.error, Some(error));
        apply(&mut outcome, EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Completed)));
        assert_eq!(outcome.error, None);
    }
}
