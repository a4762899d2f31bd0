//! The app-server's notifications.

use multitap_event::{AuthStatus, EventKind, McpServerStatus, SystemSubtype, Timestamp, one_line};
use serde_json::{Map, Value};

use super::decode::{APP_SERVER, CodexCodec};
use super::item::{Phase, thought_id};
use super::session::policy_word;
use super::tools::Unended;
use super::turn::{TurnOutcome, failure};
use super::wire::{Delta, Fields};
use crate::codec::Step;
use crate::emit::{self, Voice};
use crate::json::JsonFields as _;
use crate::json::present;
use crate::line::unrecognized;

/// A `system` event with the fields of a line, except for those that only the transport needs.
pub(super) fn note(subtype: &str, message: Option<String>, mut data: Map<String, Value>) -> EventKind {
    for key in ["type", "threadId", "turnId"] {
        data.shift_remove(key);
    }
    emit::note(subtype, message, present(data))
}

/// Messages that other lines report as well, or that mean nothing to people.
const SILENT: [&str; 24] = [
    "thread/status/changed",
    "thread/readState/changed",
    "thread/queue/changed",
    "thread/goal/cleared",
    "thread/prediction/updated",
    "thread/environment/connected",
    "account/rateLimits/updated",
    "remoteControl/status/changed",
    "item/reasoning/summaryPartAdded",
    "item/fileChange/outputDelta",
    "rawResponseItem/completed",
    "rawResponse/completed",
    "command/exec/outputDelta",
    "process/outputDelta",
    "process/exited",
    "fs/changed",
    "app/list/updated",
    "fuzzyFileSearch/sessionUpdated",
    "fuzzyFileSearch/sessionCompleted",
    "thread/realtime/outputAudio/delta",
    "thread/realtime/sdp",
    "turn/moderationMetadata",
    "model/safetyBuffering/updated",
    "skills/changed",
];

/// Messages that are reported unchanged.
const NOTED: [&str; 41] = [
    "thread/archived",
    "thread/deleted",
    "thread/unarchived",
    "thread/closed",
    "thread/reverted",
    "thread/name/updated",
    "thread/attachment/updated",
    "thread/goal/updated",
    "thread/project/updated",
    "thread/environment/disconnected",
    "project/changed",
    "hook/started",
    "hook/completed",
    "item/autoApprovalReview/started",
    "item/autoApprovalReview/completed",
    "autoApprovalReview/strictReviewRequired",
    "mcpServer/oauthLogin/completed",
    "mcpServer/event/stream/notification",
    "account/updated",
    "account/gatewayOAuth/changed",
    "externalAgentConfig/import/progress",
    "externalAgentConfig/import/completed",
    "model/verification",
    "warning",
    "guardianWarning",
    "deprecationNotice",
    "configWarning",
    "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
    "thread/realtime/started",
    "thread/realtime/itemAdded",
    "thread/realtime/item/started",
    "thread/realtime/item/transcript/delta",
    "thread/realtime/item/completed",
    "thread/realtime/transcript/delta",
    "thread/realtime/transcript/done",
    "thread/realtime/error",
    "thread/realtime/closed",
    "item/commandExecution/terminalInteraction",
    "loginChatGptComplete",
    "sessionConfigured",
];

/// Whether the message makes no event.
pub(super) fn is_silent(method: &str) -> bool {
    SILENT.contains(&method)
}

/// Whether the message occurs only in a conversation that has begun.
pub(super) fn is_of_a_turn(method: &str) -> bool {
    method.starts_with("turn/") || method.starts_with("item/")
}

impl CodexCodec {
    /// A piece of text that belongs to an item.
    pub(super) fn delta(&mut self, method: &str, delta: Delta<'_>, out: &mut Step) {
        if self.reviewing && method == "item/agentMessage/delta" {
            return;
        }
        let parent = self.threads.parent(delta.thread_id.as_deref());
        let index = delta.summary_index.unwrap_or(0);
        let (id, voice) = match method {
            "item/agentMessage/delta" | "item/plan/delta" => (delta.item_id.0, Voice::Speech),
            "item/reasoning/summaryTextDelta" => (thought_id(&delta.item_id, "summary", index).into(), Voice::Thought),
            "item/reasoning/textDelta" => (thought_id(&delta.item_id, "text", index).into(), Voice::Thought),
            _ => {
                self.emit.tools.new_output(&delta.item_id, &delta.delta, out);
                return;
            }
        };
        self.emit.texts.piece(&id, voice, delta.delta, parent.as_ref(), out);
    }

    pub(super) fn notification(
        &mut self,
        method: &str,
        mut params: Fields,
        line: &str,
        now: Timestamp,
        out: &mut Step,
    ) {
        let thread = params.string("threadId").or_else(|| params.string("conversationId"));
        let ours = self.threads.is_ours(thread.as_deref());
        match method {
            "thread/started" => self.thread_started(&params, out),
            "turn/started" if ours => {
                let turn = params.take("turn");
                self.begin_turn(turn.text("id").or_else(|| params.text("turnId")), out);
                self.turn_is_part_of(turn.string("rootTurnId"));
                self.cancel_if_wanted(out);
            }
            "turn/completed" if ours => self.turn_completed(params, now, out),
            "turn/started" | "turn/completed" => {
                if let Some(above) = self.threads.parent(thread.as_deref()).filter(|_| method == "turn/completed") {
                    self.close_unended(Unended::OfAgent(&above), now, out);
                }
                out.events.push(note("subAgent", None, params.0));
            }
            "item/started" => self.item(&params.take("item"), Phase::Started, thread.as_deref(), now, out),
            "item/updated" => self.item(&params.take("item"), Phase::Updated, thread.as_deref(), now, out),
            "item/completed" => self.item(&params.take("item"), Phase::Completed, thread.as_deref(), now, out),
            "item/fileChange/patchUpdated" => {
                let id = params.text("itemId").unwrap_or_default();
                let changes = super::change::of_item(&params, &id.into(), self.files.as_ref());
                self.emit.tools.would_change(id, changes);
            }
            "item/mcpToolCall/progress" => {
                let id = params.text("itemId").unwrap_or_default();
                self.emit.tools.progress(id, params.text("message").unwrap_or_default(), out);
            }
            "turn/plan/updated" if ours => self.todos.planned(&params, out),
            "turn/plan/updated" | "turn/diff/updated" if !ours => {}
            "turn/diff/updated" => self.turn_diff(params, out),
            "thread/tokenUsage/updated" if ours => {
                let in_turn = self.is_current_turn(params.text("turnId"));
                self.turn.usage.reported(&params.take("tokenUsage"), in_turn);
            }
            "thread/tokenUsage/updated" => {}
            "thread/compacted" => out.events.push(note(SystemSubtype::COMPACTED, None, params.0)),
            "thread/settings/updated" if ours => {
                let settings = params.fields("threadSettings");
                self.policy_is(settings.get("approvalPolicy").map(policy_word), out);
                self.emit.session.model_is(settings.string("model"), out);
            }
            "thread/settings/updated" => {}
            "model/rerouted" if ours => self.emit.session.model_is(params.string("toModel"), out),
            "error" if !ours => {
                let message = params.fields("error").text("message").map(one_line);
                out.events.push(note("subAgent", message, params.0));
            }
            "error" => {
                self.trouble(&params.fields("error"), Some(params.get("willRetry") == Some(&Value::Bool(true))), out)
            }
            "serverRequest/resolved" => {
                let id = params.get("requestId").cloned().unwrap_or_default();
                self.emit.questions.withdraw("the agent no longer asks", |open| open.native.request == id, out);
            }
            "mcpServer/startupStatus/updated" => self.mcp_server(&params, out),
            "modelProvider/authRecoveryStarted" | "modelProvider/authRecoveryCompleted" | "account/login/completed" => {
                let output = params.string("message").into_iter().collect();
                let is_authenticating = method.ends_with("Started");
                let error = params.string("error");
                out.events.push(EventKind::AuthStatus(AuthStatus { is_authenticating, output, error }));
            }
            _ if method.starts_with("codex/event/") => {
                let message = params.fields("msg");
                self.stored_event(if message.is_empty() { &params } else { &message }, now, out);
            }
            _ if is_silent(method) => {}
            _ if NOTED.contains(&method) || method == "model/rerouted" => {
                let message = ["summary", "message", "name", "error"].into_iter().find_map(|key| params.text(key));
                out.events.push(note(method, message.map(one_line), params.0));
            }
            _ => out.events.push(unrecognized(line, format!("unknown method '{method}'"))),
        }
    }

    fn thread_started(&mut self, params: &Fields, out: &mut Step) {
        let thread = params.fields("thread");
        let id = thread.string("id").or_else(|| params.string("threadId"));
        let above = thread.text("parentThreadId");
        if self.emit.session.is_live() || above.is_some() {
            if !self.threads.is_ours(id.as_deref()) {
                out.events.push(note("subAgent", thread.text("agentNickname").map(str::to_owned), thread.0));
            }
            return;
        }
        // A recording may hold several conversations, one after the other.
        if let Some(id) = id.as_deref() {
            self.threads.ours_is(id);
        }
        self.began(id.as_deref(), APP_SERVER, &thread, out);
    }

    fn turn_completed(&mut self, mut params: Fields, now: Timestamp, out: &mut Step) {
        let turn = params.take("turn");
        let error = turn.fields("error");
        let over = TurnOutcome {
            error: (!error.is_empty()).then(|| failure(&error)),
            duration_ms: turn.number("durationMs"),
            ..TurnOutcome::of(turn.text("status").unwrap_or("completed"))
        };
        self.announce_turn(turn.text("id"));
        self.turn_over(over, now, out);
    }

    /// The diff of the turn so far; Codex sends it again with every request to the model.
    fn turn_diff(&mut self, params: Fields, out: &mut Step) {
        let diff = params.string("diff");
        if diff.is_some() && self.diff != diff {
            self.diff = diff;
            out.events.push(note("turnDiff", None, params.0));
        }
    }

    /// The status of an MCP server; Codex repeats it every turn.
    fn mcp_server(&mut self, params: &Fields, out: &mut Step) {
        let name = params.string("name").unwrap_or_default();
        let status = params.string("status").unwrap_or_default();
        if self.mcp_servers.insert(name.clone(), status.clone()).as_ref() != Some(&status) {
            let error = params.string("error");
            out.events
                .push(EventKind::McpServerStatus(McpServerStatus { error, ..McpServerStatus::new(name, status) }));
        }
    }
}
