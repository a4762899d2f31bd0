//! Maps single events to frames: whether they show anything, and with which text.

use multitap_a2a::TaskState;
use multitap_event::{ClientRef, EventKind, Prompt, SystemNote, SystemSubtype, ToolId, TurnStatus, UserMessage};
use serde_json::Value;

use crate::a2a::frame::StateChange;

/// Whether no frame shows the event: it only affects later frames, or A2A has no form for it.
pub(super) fn is_quiet(kind: &EventKind) -> bool {
    if let EventKind::System(note) = kind {
        return news(note).is_none();
    }
    matches!(
        kind,
        EventKind::Reasoning(_)
            | EventKind::ToolStarted(_)
            | EventKind::FileChanged(_)
            | EventKind::SessionStarted(_)
            | EventKind::NativeSessionChanged { .. }
            | EventKind::Capabilities(_)
            | EventKind::McpServerStatus(_)
            | EventKind::RuleAdded(_)
            | EventKind::RuleRevoked(_)
            | EventKind::RawDelta { .. }
            | EventKind::TodoList(_)
            | EventKind::Retry(_)
            | EventKind::AuthStatus(_)
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. }
            | EventKind::Unrecognized { .. }
    )
}

/// The part of a notice that clients need: whether the log is durable.
pub(super) fn news(note: &SystemNote) -> Option<StateChange> {
    match note.subtype.as_str() {
        SystemSubtype::LOG => {
            let durable = note.data.get("durable").and_then(Value::as_bool)?;
            let mut change = more("durable", durable.into());
            change.more.extend(note.message.clone().filter(|_| !durable).map(|message| ("warning", message.into())));
            Some(change)
        }
        _ => None,
    }
}

/// The call that a question is about.
pub(super) fn asked_about(kind: &EventKind) -> Option<&ToolId> {
    if let EventKind::PermissionAsked(question) = kind { question.tool_id.as_ref() } else { None }
}

pub(super) fn waiting(prompt: &Prompt, from: Option<ClientRef>) -> UserMessage {
    UserMessage {
        content: prompt.text.clone(),
        images: prompt.images.clone(),
        prompt_id: prompt.prompt_id.clone(),
        from,
        sent_as: prompt.sent_as.clone(),
        ..UserMessage::default()
    }
}

pub(super) fn more(key: &'static str, value: Value) -> StateChange {
    StateChange { more: vec![(key, value)], ..StateChange::default() }
}

pub(super) fn end_state(status: TurnStatus) -> TaskState {
    match status {
        TurnStatus::Completed => TaskState::Completed,
        TurnStatus::Cancelled => TaskState::Canceled,
        TurnStatus::Failed | TurnStatus::Interrupted => TaskState::Failed,
    }
}
