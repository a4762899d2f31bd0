//! Turns: from a prompt to the reply to it, and the end of it all.

use std::collections::BTreeMap;

use multitap_event::{AgentError, AgentErrorKind, EventKind, ModelUsage, Timestamp, TokenUsage, TurnEnd, TurnStatus};
use serde_json::{Map, Value};

use super::decode::AcpCodec;
use super::open::said;
use super::tools::Native;
use super::wire::{PromptDone, Quota, RpcError, Usage};
use crate::codec::{End, Step};
use crate::emit::{DENIED, EndFacts, NoEnd, OpenTool};

/// What the session has used and cost so far.
#[derive(Debug, Default)]
pub(super) struct SessionUsage {
    models: BTreeMap<String, ModelUsage>,
    cost: Option<f64>,
    /// What it had cost when the last turn ended.
    cost_before: f64,
}

impl SessionUsage {
    /// `usage_update`: the cost of the whole session.
    pub(super) fn cost_is(&mut self, update: &Map<String, Value>) {
        let Some(cost) = update.get("cost") else { return };
        let dollars = cost.get("currency").and_then(Value::as_str).is_none_or(|currency| currency == "USD");
        if let Some(amount) = cost.get("amount").and_then(Value::as_f64).filter(|_| dollars) {
            self.cost = Some(amount);
        }
    }

    fn models(&mut self, quota: &Quota) {
        for one in &quota.model_usage {
            let count = &one.token_count;
            if let (Some(input), Some(output)) = (count.input_so_far, count.output_so_far) {
                self.models.entry(one.model.clone()).or_default().usage = TokenUsage::of(input, output);
            } else if count.input_tokens.is_some() || count.output_tokens.is_some() {
                let turn = TokenUsage::of(count.input_tokens.unwrap_or(0), count.output_tokens.unwrap_or(0));
                let sum = self.models.entry(one.model.clone()).or_default();
                sum.usage = sum.usage.plus(turn);
            }
        }
    }

    fn turn_cost(&mut self) -> Option<f64> {
        let cost = self.cost?;
        Some(cost - std::mem::replace(&mut self.cost_before, cost)).filter(|turn| *turn >= 0.0)
    }
}

impl AcpCodec {
    pub(super) fn prompt_done(&mut self, done: PromptDone, now: Timestamp, out: &mut Step) {
        self.session.history_over();
        self.emit.turns.begin(now, out);
        let word = done.stop_reason;
        let (status, error) = match word.as_str() {
            "cancelled" => (TurnStatus::Cancelled, None),
            "max_tokens" => (TurnStatus::Failed, Some("the answer is incomplete: it reached the model's token limit")),
            "max_turn_requests" => (TurnStatus::Failed, Some("the turn reached the limit of model requests")),
            "refusal" => (TurnStatus::Failed, Some("the model refuses to continue this conversation")),
            _ => (TurnStatus::Completed, None),
        };
        if let Some(why) = error {
            let error = AgentError::new(AgentErrorKind::Unknown, why).of(self.flavor.agent()).code(&word);
            out.events.push(EventKind::Error(error));
        }
        let quota = done.meta.and_then(|meta| meta.quota);
        if let Some(quota) = &quota {
            self.spent.models(quota);
        }
        let counted = quota.map(|quota| quota.token_count);
        let usage = done
            .usage
            .as_ref()
            .map(tokens)
            .or_else(|| counted.map(|count| TokenUsage::of(count.input_tokens, count.output_tokens)));
        let text = self.messages.closing_words().filter(|_| status == TurnStatus::Completed);
        let turn = TurnEnd {
            usage,
            cost_usd: self.spent.turn_cost(),
            total_cost_usd: self.spent.cost,
            model_usage: self.spent.models.clone(),
            text,
            error: error.map(str::to_owned),
            native_status: Some(word),
            ..TurnEnd::of(status)
        };
        self.turn_over(turn, now, out);
    }

    /// The prompt was answered with an error.
    pub(super) fn prompt_failed(&mut self, error: &RpcError, now: Timestamp, out: &mut Step) {
        self.emit.turns.begin(now, out);
        let said = plain(&said(error));
        let kind = match error.code {
            -32000 | 401 | 403 => AgentErrorKind::PermissionDenied,
            code if (-32700..=-32600).contains(&code) => AgentErrorKind::ProtocolError,
            _ => AgentErrorKind::Unknown,
        };
        let reported = AgentError::new(kind, &said).of(self.flavor.agent()).code(error.code.to_string());
        out.events.push(EventKind::Error(reported.native(&error.message)));
        let status = if self.emit.turns.is_cancelling() { TurnStatus::Cancelled } else { TurnStatus::Failed };
        self.turn_over(TurnEnd { error: Some(said), ..TurnEnd::of(status) }, now, out);
    }

    /// Ends the turn, after all that must not outlive it; then the prompt that waits, if one does.
    pub(super) fn turn_over(&mut self, turn: TurnEnd, now: Timestamp, out: &mut Step) {
        self.close_turn_work(now, out);
        let turn = TurnEnd { denials: self.emit.tools.take_denials(), ..turn };
        self.messages.turn_over();
        self.emit.turns.complete(turn, self.clock(now), out);
        self.prompt_next(now, out);
    }

    fn close_turn_work(&mut self, now: Timestamp, out: &mut Step) {
        self.emit.questions.withdraw("the turn is over", |_| true, out);
        self.close_tools(|_| true, now, out);
    }

    /// Ends the denied calls, of which some agents report no end.
    pub(super) fn close_denied(&mut self, now: Timestamp, out: &mut Step) {
        self.close_tools(|tool| tool.denied, now, out);
    }

    fn close_tools(&mut self, is_over: impl FnMut(&OpenTool<Native>) -> bool, now: Timestamp, out: &mut Step) {
        let no_end = NoEnd { why: self.emit.turns.why_no_end(), why_denied: Some(DENIED) };
        let clock = self.clock(now);
        self.emit.tools.close(is_over, no_end, clock, out);
    }

    pub(super) fn ended(&mut self, end: End<'_>, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_over() {
            return;
        }
        self.close_turn_work(now, out);
        if let Some(why) = self.session.never_began() {
            self.emit.turns.failed_for_good(why);
        }
        self.emit.turns.end(end, EndFacts::default(), self.clock(now), out);
    }
}

fn tokens(usage: &Usage) -> TokenUsage {
    let sum = TokenUsage::of(usage.input_tokens, usage.output_tokens);
    TokenUsage {
        cached_tokens: usage.cached_read_tokens,
        cache_creation_tokens: usage.cached_write_tokens,
        reasoning_tokens: usage.thought_tokens,
        total_tokens: usage.total_tokens.unwrap_or(sum.total_tokens),
        ..sum
    }
}

/// The message inside an error that is itself JSON, as model servers write them.
fn plain(said: &str) -> String {
    let inner = serde_json::from_str::<Value>(said).ok();
    let inner = inner.and_then(|value| value.get("error")?.get("message")?.as_str().map(str::to_owned));
    inner.unwrap_or_else(|| said.to_owned())
}
