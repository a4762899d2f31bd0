//! Single events in ACP's words.

use agent_client_protocol_schema::v1::{
    ContentChunk, Cost, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, StopReason, UsageUpdate,
};
use multitap_event::{
    Door, Reasoning, Role, SystemNote, TextChunk, TodoList, TodoStatus, TurnEnd, TurnStatus, UserMessage,
};
use serde_json::{Value, json};

use super::{PromptEnd, meta, text_block};

/// What the native status of a turn says when a limit ended it.
const MAX_TURNS: &str = "max_turns";
const MAX_TOKENS: &str = "max_tokens";
const REFUSAL: &str = "refusal";

/// The text of a prompt, with its sender if it came through another door.
pub(super) fn shown_text(message: &UserMessage) -> String {
    let mark = message.from.as_ref().and_then(|from| match from.door {
        Door::A2a => Some("A2A"),
        Door::Web => Some("web"),
        Door::Terminal | Door::Acp | Door::Headless | Door::Library | Door::Host => None,
    });
    match mark {
        Some(mark) => format!("[{mark}] {}", message.content),
        None => message.content.clone(),
    }
}

pub(super) fn said(chunk: &TextChunk) -> SessionUpdate {
    let id = chunk.message_id.as_ref().map(|id| id.as_str().to_owned().into());
    let of = chunk.parent_tool_id.as_ref().map(|parent| meta(json!({ "parentToolCallId": parent })));
    let content = ContentChunk::new(text_block(chunk.content.clone())).message_id(id).meta(of);
    match chunk.role {
        Some(Role::User) => SessionUpdate::UserMessageChunk(content),
        Some(Role::Assistant) | None => SessionUpdate::AgentMessageChunk(content),
    }
}

pub(super) fn thought(piece: &Reasoning) -> SessionUpdate {
    let id = piece.message_id.as_ref().map(|id| id.as_str().to_owned().into());
    let of = piece.parent_tool_id.as_ref().map(|parent| meta(json!({ "parentToolCallId": parent })));
    let content = ContentChunk::new(text_block(piece.content.clone())).message_id(id).meta(of);
    SessionUpdate::AgentThoughtChunk(content)
}

pub(super) fn plan(list: &TodoList) -> SessionUpdate {
    let entries = list.items.iter().map(|item| {
        let status = match item.status {
            TodoStatus::Pending => PlanEntryStatus::Pending,
            TodoStatus::InProgress => PlanEntryStatus::InProgress,
            // A cancelled step needs no more work either.
            TodoStatus::Completed | TodoStatus::Cancelled => PlanEntryStatus::Completed,
        };
        PlanEntry::new(item.text.clone(), PlanEntryPriority::Medium, status)
    });
    SessionUpdate::Plan(Plan::new(entries.collect()))
}

pub(super) fn prompt_end(end: &TurnEnd) -> PromptEnd {
    let is = |word: &str| end.native_status.as_deref().is_some_and(|status| status.contains(word));
    match end.status {
        TurnStatus::Cancelled => PromptEnd::Stopped(StopReason::Cancelled),
        _ if is(MAX_TURNS) => PromptEnd::Stopped(StopReason::MaxTurnRequests),
        _ if is(MAX_TOKENS) => PromptEnd::Stopped(StopReason::MaxTokens),
        _ if is(REFUSAL) => PromptEnd::Stopped(StopReason::Refusal),
        TurnStatus::Completed => PromptEnd::Stopped(StopReason::EndTurn),
        TurnStatus::Failed | TurnStatus::Interrupted => {
            PromptEnd::Failed(end.error.clone().unwrap_or_else(|| "the turn failed".to_owned()))
        }
    }
}

/// How full the context is after a turn, if the agent reports how large it can be.
pub(super) fn turn_usage(end: &TurnEnd) -> Option<UsageUpdate> {
    let size = end.model_usage.values().filter_map(|model| model.context_window).max()?;
    let used = end.usage?.total_tokens;
    let cost = end.total_cost_usd.map(|amount| Cost::new(amount, "USD"));
    Some(UsageUpdate::new(used, size).cost(cost))
}

/// The same as an agent reports it by itself.
pub(super) fn context(note: &SystemNote) -> Option<UsageUpdate> {
    let number = |keys: [&str; 3]| keys.iter().find_map(|key| note.data.get(*key).and_then(Value::as_u64));
    let used = number(["usedTokens", "used", "totalTokens"])?;
    Some(UsageUpdate::new(used, number(["contextWindow", "size", "maxTokens"])?))
}
