//! Turns: from `system/init` to `result`, and the end of it all.

use std::collections::{BTreeMap, HashSet};

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, Denial, EventKind, ModelUsage, Timestamp, TokenUsage, ToolId, TurnEnd,
    TurnStatus,
};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::decode::ClaudeCodec;
use super::message::api_error;
use super::question::Open;
use super::wire::{OneModelUsage, TurnResult, Usage};
use crate::codec::{End, Step};
use crate::emit::{EndFacts, NoEnd};

/// What Claude has for a turn beside what others have.
#[derive(Debug, Default)]
pub(super) struct TurnFacts {
    /// The running turn is taken to be that of a prompt.
    for_prompt: bool,
    /// What the session has cost so far.
    cost: f64,
    /// Claude's id of the last message, to resume at.
    pub(super) last_message: Option<String>,
}

impl ClaudeCodec {
    /// A turn begins, unless one runs.
    pub(super) fn begin_turn(&mut self, out: &mut Step) {
        let turns = &mut self.emit.turns;
        if turns.is_open() {
            return;
        }
        self.turn.for_prompt = turns.waiting > 0;
        self.turn.last_message = None;
        turns.waiting = turns.waiting.saturating_sub(1);
        turns.reported = None;
        turns.begin_as(None, None, out);
    }

    /// A result ends a turn, also one without a beginning: a further one to the same prompt. Only the older shapes have
    /// results without turns.
    fn begin_turn_for_result(&mut self, out: &mut Step) {
        let turns = &mut self.emit.turns;
        if turns.is_open() || (turns.waiting == 0 && turns.count() == 0) {
            return;
        }
        // What came since the last turn belongs to this one.
        let (reported, last_message) = (turns.reported.take(), self.turn.last_message.take());
        self.begin_turn(out);
        (self.emit.turns.reported, self.turn.last_message) = (reported, last_message);
    }

    pub(super) fn result(&mut self, result: TurnResult, now: Timestamp, out: &mut Step) {
        self.session.identified(result.session_id.as_deref(), out);
        self.begin_turn_for_result(out);
        let status = self.status(&result);
        let why = (status == TurnStatus::Failed).then(|| why(&result));
        if let Some(why) = &why
            && self.emit.turns.reported.is_none()
        {
            out.events.push(EventKind::Error(failure(&result, why)));
        }
        let by_itself = result.origin.is_some();
        let (cost_usd, total_cost_usd) = self.turn.cost(result.total_cost_usd, result.model_usage_since_last_result);
        let turn = TurnEnd {
            usage: result.usage.map(tokens),
            duration_ms: result.duration_ms.map(whole_millis),
            cost_usd,
            total_cost_usd,
            model_usage: model_usage(result.model_usage.unwrap_or_default()),
            text: result.result.filter(|text| !text.is_empty() && status == TurnStatus::Completed),
            error: why,
            native_status: result.subtype.or(result.status),
            num_turns: result.num_turns,
            structured_output: result.structured_output,
            denials: denials(result.permission_denials),
            origin: result.origin.and_then(|origin| origin.kind),
            ..TurnEnd::of(status)
        };
        self.turn_over(turn, now, out);
        // It was background work that came first; the prompt's own turn is yet to begin.
        if by_itself && self.turn.for_prompt && result.queued_turn_count > Some(0) {
            self.emit.turns.waiting += 1;
        }
    }

    /// The running turn is over: what must not outlive it ends, and its end is reported.
    pub(super) fn turn_over(&mut self, turn: TurnEnd, now: Timestamp, out: &mut Step) {
        self.close_turn_work(false, now, out);
        self.texts.turn_over();
        // Claude lists the denials of a turn itself.
        self.emit.tools.take_denials();
        let message_id = self.turn.last_message.take().map(Into::into);
        self.emit.turns.complete(TurnEnd { message_id, ..turn }, None, out);
    }

    fn status(&self, result: &TurnResult) -> TurnStatus {
        let word = result.subtype.as_deref().or(result.status.as_deref()).unwrap_or("success");
        let is_error = result.is_error.unwrap_or(word != "success" && word != "completed");
        let aborted = result.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted"));
        let stopped = self.emit.turns.is_cancelling() && is_error && word == "error_during_execution";
        if aborted || stopped || matches!(word, "cancelled" | "interrupted") {
            TurnStatus::Cancelled
        } else if is_error {
            TurnStatus::Failed
        } else {
            TurnStatus::Completed
        }
    }

    /// Ends what must not outlive a turn: calls without an end, questions without an answer. Background work may.
    fn close_turn_work(&mut self, also_background: bool, now: Timestamp, out: &mut Step) {
        let clock = self.session.clock(now);
        let tools = &mut self.emit.tools;
        let left = if also_background { HashSet::new() } else { self.background.open_calls(tools) };
        let no_end = NoEnd { why: "the agent did not report how this call ended", why_denied: None };
        tools.close(|tool| !left.contains(&tool.id), no_end, clock, out);
        // A question about no tool in particular goes too.
        let is_gone = |tool: &ToolId| also_background || tools.find(tool.as_str()).is_none();
        let is_moot = |open: &Open| open.question.tool_id.as_ref().is_none_or(is_gone);
        self.emit.questions.withdraw("the turn is over", is_moot, out);
    }

    pub(super) fn ended(&mut self, end: End<'_>, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_over() {
            return;
        }
        self.close_turn_work(true, now, out);
        self.emit.turns.end(end, EndFacts::default(), None, out);
    }
}

impl TurnFacts {
    /// What the turn cost and what the session has cost so far.
    pub(super) fn cost(
        &mut self,
        total: Option<f64>,
        models: Option<Map<String, Value>>,
    ) -> (Option<f64>, Option<f64>) {
        let Some(total) = total else { return (None, None) };
        let by_model =
            models.map(|models| models.values().filter_map(|model| model.get("costUSD")?.as_f64()).sum::<f64>());
        let turn = by_model.unwrap_or(total - self.cost);
        self.cost = total;
        (Some(money(turn)), Some(money(total)))
    }
}

/// Without the dust that adding floating-point numbers leaves.
fn money(dollars: f64) -> f64 {
    if dollars > 0.0 { (dollars * 1e10).round() / 1e10 } else { 0.0 }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole_millis(millis: f64) -> u64 {
    millis.round() as u64
}

pub(super) fn tokens(usage: Usage) -> TokenUsage {
    TokenUsage {
        cached_tokens: usage.cache_read_input_tokens,
        cache_creation_tokens: usage.cache_creation_input_tokens,
        reasoning_tokens: usage.output_tokens_details.and_then(|details| details.thinking_tokens).filter(|n| *n > 0),
        ..TokenUsage::of(usage.input_tokens.unwrap_or(0), usage.output_tokens.unwrap_or(0))
    }
}

fn model_usage(models: Map<String, Value>) -> BTreeMap<String, ModelUsage> {
    let one = |(name, value): (String, Value)| {
        let model = OneModelUsage::deserialize(value).ok()?;
        let usage = TokenUsage {
            cached_tokens: model.cache_read_input_tokens,
            cache_creation_tokens: model.cache_creation_input_tokens,
            reasoning_tokens: model.thinking_tokens.filter(|n| *n > 0),
            ..TokenUsage::of(model.input_tokens, model.output_tokens)
        };
        let cost_usd = model.cost_usd.map(money);
        Some((name, ModelUsage { usage, cost_usd, context_window: model.context_window }))
    };
    models.into_iter().filter_map(one).collect()
}

fn denials(denied: Option<Vec<super::wire::Denied>>) -> Vec<Denial> {
    let denied = denied.unwrap_or_default().into_iter();
    denied
        .map(|denied| Denial {
            tool_name: denied.tool_name,
            tool_id: denied.tool_use_id.map(Into::into),
            arguments: denied.tool_input,
        })
        .collect()
}

/// Why a turn failed, for people.
fn why(result: &TurnResult) -> String {
    let errors = result.errors.as_deref().unwrap_or_default();
    let reported = if errors.is_empty() { None } else { Some(errors.join("; ")) };
    let plain = result
        .error
        .as_ref()
        .and_then(|error| error.as_str().or_else(|| error.get("message")?.as_str()).map(str::to_owned));
    reported
        .or(plain)
        .or_else(|| result.result.clone())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| format!("the turn failed: {}", result.subtype.as_deref().unwrap_or("no reason given")))
}

fn failure(result: &TurnResult, why: &str) -> AgentError {
    if why.contains("No conversation found")
        || why.contains("requires a valid session")
        || why.contains("No message found")
    {
        return AgentError::new(AgentErrorKind::SessionNotFound, why).of(AgentType::Claude);
    }
    let word = result.api_error_type.as_deref().or(result.subtype.as_deref()).or(result.status.as_deref());
    api_error(word.unwrap_or("unknown"), why)
}
