//! Turns, from a prompt to the reply to it, and the end of the session.

use std::collections::BTreeMap;

use multitap_event::{AgentError, AgentErrorKind, EventKind, ModelUsage, Timestamp, TokenUsage, TurnEnd, TurnStatus};
use serde_json::{Map, Value};

use super::decode::AcpCodec;
use super::open::said;
use super::tools::Native;
use super::wire::RpcError;
use crate::codec::{End, Step};
use crate::emit::{EndFacts, NoEnd, OpenTool};
use crate::json::JsonFields as _;
use crate::line::message_in;

#[derive(Debug, Default)]
pub(super) struct SessionUsage {
    models: BTreeMap<String, ModelUsage>,
    cost: Option<f64>,
    /// The cost of the session when the last turn ended.
    cost_before: f64,
}

impl SessionUsage {
    /// `usage_update`: the cost of the whole session.
    pub(super) fn cost_is(&mut self, update: &Map<String, Value>) {
        let cost = update.field("cost");
        let in_dollars = cost.text("currency").is_none_or(|currency| currency == "USD");
        if let Some(amount) = cost.field("amount").and_then(Value::as_f64).filter(|_| in_dollars) {
            self.cost = Some(amount);
        }
    }

    fn models(&mut self, usage: &[Value]) {
        for one in usage {
            let (Some(model), Some(turn)) = (one.string("model"), counted(one.field("token_count"))) else { continue };
            let sum = self.models.entry(model).or_default();
            sum.usage = sum.usage.plus(turn);
        }
    }

    fn turn_cost(&mut self) -> Option<f64> {
        let cost = self.cost?;
        Some(cost - std::mem::replace(&mut self.cost_before, cost)).filter(|turn| *turn >= 0.0)
    }
}

impl AcpCodec {
    pub(super) fn prompt_done(&mut self, reply: &Value, now: Timestamp, out: &mut Step) {
        self.session.in_history = false;
        self.emit.turns.begin(now, out);
        let word = reply.string("stopReason").unwrap_or_default();
        let failed = match word.as_str() {
            "max_tokens" => Some("the answer was interrupted: the model's limit of tokens is reached"),
            "max_turn_requests" => Some("the turn reached the limit of model requests"),
            "refusal" => Some("the model refuses to continue this conversation"),
            _ => None,
        };
        let status = match (failed, word.as_str()) {
            (Some(_), _) => TurnStatus::Failed,
            (None, "cancelled") => TurnStatus::Cancelled,
            (None, _) => TurnStatus::Completed,
        };
        if let Some(why) = failed {
            let error = AgentError::new(AgentErrorKind::Unknown, why).of(self.flavor.agent()).code(&word);
            out.events.push(EventKind::Error(error));
        }
        let quota = reply.field("_meta").field("quota");
        self.spent.models(quota.list("model_usage"));
        let text = self.emit.messages.closing_words().filter(|_| status == TurnStatus::Completed);
        let turn = TurnEnd {
            usage: reply
                .field("usage")
                .filter(|usage| usage.is_object())
                .map(tokens)
                .or(counted(quota.field("token_count"))),
            cost_usd: self.spent.turn_cost(),
            total_cost_usd: self.spent.cost,
            model_usage: self.spent.models.clone(),
            text,
            error: failed.map(str::to_owned),
            native_status: Some(word),
            ..TurnEnd::of(status)
        };
        self.turn_over(turn, now, out);
    }

    pub(super) fn prompt_failed(&mut self, error: &RpcError, now: Timestamp, out: &mut Step) {
        self.emit.turns.begin(now, out);
        let said = said(error);
        let said = message_in(&said).unwrap_or(said);
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

    /// Ends the turn after everything that must not outlive it, then sends the next queued prompt.
    pub(super) fn turn_over(&mut self, turn: TurnEnd, now: Timestamp, out: &mut Step) {
        self.close_turn_work(now, out);
        self.emit.complete_turn(turn, now, out);
        self.prompt_next(now, out);
    }

    fn close_turn_work(&mut self, now: Timestamp, out: &mut Step) {
        self.withdraw_all("the turn is over", out);
        self.close_tools(|_| true, now, out);
    }

    /// Ends the denied calls. Some agents do not report their end.
    pub(super) fn close_denied(&mut self, now: Timestamp, out: &mut Step) {
        self.close_tools(|tool| tool.denied, now, out);
    }

    fn close_tools(&mut self, is_over: impl FnMut(&OpenTool<Native>) -> bool, now: Timestamp, out: &mut Step) {
        let no_end = NoEnd::of_silent_agent(self.emit.turns.is_cancelling());
        self.emit.close_tools(is_over, no_end, now, out);
    }

    pub(super) fn ended(&mut self, end: &End, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_over() {
            return;
        }
        self.close_turn_work(now, out);
        if let Some(why) = self.session.refusal.take().filter(|_| !self.emit.session.started) {
            self.emit.turns.failed_for_good(why);
        }
        self.emit.end_session(end, EndFacts::default(), now, out);
    }
}

/// The tokens in `_meta.quota`. Gemini writes its names in snake case, the agents for Claude and Codex in camel case.
fn counted(count: Option<&Value>) -> Option<TokenUsage> {
    let either = |camel, snake| count.number(camel).or(count.number(snake));
    let (input, output) = (either("inputTokens", "input_tokens"), either("outputTokens", "output_tokens"));
    let sum = TokenUsage::of(input.unwrap_or(0), output.unwrap_or(0));
    input.or(output).map(|_| TokenUsage { cached_tokens: count.number("cachedInputTokens"), ..sum })
}

fn tokens(usage: &Value) -> TokenUsage {
    let sum = TokenUsage::of(usage.count("inputTokens"), usage.count("outputTokens"));
    TokenUsage {
        cached_tokens: usage.number("cachedReadTokens"),
        cache_creation_tokens: usage.number("cachedWriteTokens"),
        reasoning_tokens: usage.number("thoughtTokens"),
        total_tokens: usage.number("totalTokens").unwrap_or(sum.total_tokens),
        ..sum
    }
}
