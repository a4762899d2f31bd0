//! Turns, from `system/init` to `result`, and the end of the session.

use std::collections::{BTreeMap, HashSet};

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, Denial, EventKind, ModelUsage, Timestamp, TokenUsage, ToolId, TurnEnd,
    TurnStatus,
};
use serde_json::{Map, Value};

use super::decode::ClaudeCodec;
use super::message::api_error;
use super::question::Open;
use crate::codec::{End, Step};
use crate::emit::{EndFacts, NoEnd};
use crate::json::JsonFields as _;

/// The state of a turn that only Claude's codec needs.
#[derive(Debug, Default)]
pub(super) struct TurnFacts {
    /// Whether the running turn is assumed to belong to a prompt.
    for_prompt: bool,
    /// The cost of the session so far.
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

    /// Begins a turn for a result without one: a second result for the same prompt. Only older formats have results
    /// without turns.
    fn begin_turn_for_result(&mut self, out: &mut Step) {
        let turns = &mut self.emit.turns;
        if turns.is_open() || (turns.waiting == 0 && turns.count() == 0) {
            return;
        }
        // Reports since the last turn belong to this one.
        let (reported, last_message) = (turns.reported.take(), self.turn.last_message.take());
        self.begin_turn(out);
        (self.emit.turns.reported, self.turn.last_message) = (reported, last_message);
    }

    pub(super) fn result(&mut self, result: &Map<String, Value>, now: Timestamp, out: &mut Step) {
        self.emit.session.identified(result.text("session_id"), out);
        self.begin_turn_for_result(out);
        let status = self.status(result);
        let why = (status == TurnStatus::Failed).then(|| why(result));
        if let Some(why) = &why
            && self.emit.turns.reported.is_none()
        {
            out.events.push(EventKind::Error(failure(result, why)));
        }
        let total = result.field("total_cost_usd").and_then(Value::as_f64);
        let (cost_usd, total_cost_usd) = self.turn.cost(total, result.object("model_usage_since_last_result"));
        let turn = TurnEnd {
            usage: result.field("usage").filter(|usage| usage.is_object()).map(tokens),
            duration_ms: result.field("duration_ms").and_then(Value::as_f64).map(whole_millis),
            cost_usd,
            total_cost_usd,
            model_usage: result.object("modelUsage").map(model_usage).unwrap_or_default(),
            text: result.string("result").filter(|text| !text.is_empty() && status == TurnStatus::Completed),
            error: why,
            native_status: result.string("subtype").or(result.string("status")),
            num_turns: result.number("num_turns"),
            structured_output: result.field("structured_output").cloned(),
            denials: result.list("permission_denials").iter().map(denial).collect(),
            origin: result.field("origin").string("kind"),
            ..TurnEnd::of(status)
        };
        self.turn_over(turn, now, out);
        // This result ends background work that ran first; the prompt's own turn has not begun.
        if result.object("origin").is_some() && self.turn.for_prompt && result.count("queued_turn_count") > 0 {
            self.emit.turns.waiting += 1;
        }
    }

    /// Ends the running turn: first everything that must not outlive it, then the turn itself.
    pub(super) fn turn_over(&mut self, turn: TurnEnd, now: Timestamp, out: &mut Step) {
        self.close_turn_work(false, now, out);
        self.texts.turn_over();
        // Claude lists the denials of a turn itself.
        self.emit.tools.take_denials();
        let message_id = self.turn.last_message.take().map(Into::into);
        self.emit.complete_turn(TurnEnd { message_id, ..turn }, now, out);
    }

    fn status(&self, result: &Map<String, Value>) -> TurnStatus {
        let word = result.text("subtype").or(result.text("status")).unwrap_or("success");
        let is_error = result.field("is_error").and_then(Value::as_bool);
        let is_error = is_error.unwrap_or(word != "success" && word != "completed");
        let aborted = result.text("terminal_reason").is_some_and(|reason| reason.starts_with("aborted"));
        let stopped = self.emit.turns.is_cancelling() && is_error && word == "error_during_execution";
        if aborted || stopped || matches!(word, "cancelled" | "interrupted") {
            TurnStatus::Cancelled
        } else if is_error {
            TurnStatus::Failed
        } else {
            TurnStatus::Completed
        }
    }

    /// Ends everything that must not outlive a turn: calls without an end, questions without an answer. Background work
    /// may outlive it.
    fn close_turn_work(&mut self, also_background: bool, now: Timestamp, out: &mut Step) {
        let left = if also_background { HashSet::new() } else { self.background.open_calls(&self.emit.tools) };
        self.emit.close_tools(|tool| !left.contains(&tool.id), NoEnd::UNKNOWN, now, out);
        // A question that is about no tool ends too.
        let tools = &self.emit.tools;
        let is_gone = |tool: &ToolId| also_background || tools.find(tool.as_str()).is_none();
        let is_moot = |open: &Open| open.question.tool_id.as_ref().is_none_or(is_gone);
        self.emit.questions.withdraw("the turn is over", is_moot, out);
    }

    pub(super) fn ended(&mut self, end: &End, now: Timestamp, out: &mut Step) {
        if self.emit.turns.is_over() {
            return;
        }
        self.close_turn_work(true, now, out);
        self.emit.end_session(end, EndFacts::default(), now, out);
    }
}

impl TurnFacts {
    /// The cost of the turn, and of the session so far.
    pub(super) fn cost(
        &mut self,
        total: Option<f64>,
        models: Option<&Map<String, Value>>,
    ) -> (Option<f64>, Option<f64>) {
        let Some(total) = total else { return (None, None) };
        let by_model = models.map(|models| models.values().filter_map(cost_of).sum::<f64>());
        let turn = by_model.unwrap_or(total - self.cost);
        self.cost = total;
        (Some(money(turn)), Some(money(total)))
    }
}

/// Rounds away the error of adding floating-point numbers.
fn money(dollars: f64) -> f64 {
    if dollars > 0.0 { (dollars * 1e10).round() / 1e10 } else { 0.0 }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole_millis(millis: f64) -> u64 {
    millis.round() as u64
}

pub(super) fn tokens(usage: &Value) -> TokenUsage {
    TokenUsage {
        cached_tokens: usage.number("cache_read_input_tokens"),
        cache_creation_tokens: usage.number("cache_creation_input_tokens"),
        reasoning_tokens: usage.field("output_tokens_details").number("thinking_tokens").filter(|n| *n > 0),
        ..TokenUsage::of(usage.count("input_tokens"), usage.count("output_tokens"))
    }
}

fn cost_of(model: &Value) -> Option<f64> {
    model.get("costUSD")?.as_f64()
}

fn model_usage(models: &Map<String, Value>) -> BTreeMap<String, ModelUsage> {
    let one = |model: &Value| ModelUsage {
        usage: TokenUsage {
            cached_tokens: model.number("cacheReadInputTokens"),
            cache_creation_tokens: model.number("cacheCreationInputTokens"),
            reasoning_tokens: model.number("thinkingTokens").filter(|n| *n > 0),
            ..TokenUsage::of(model.count("inputTokens"), model.count("outputTokens"))
        },
        cost_usd: cost_of(model).map(money),
        context_window: model.number("contextWindow"),
    };
    models.iter().filter(|(_, model)| model.is_object()).map(|(name, model)| (name.clone(), one(model))).collect()
}

fn denial(denied: &Value) -> Denial {
    Denial {
        tool_name: denied.string("tool_name").unwrap_or_default(),
        tool_id: denied.text("tool_use_id").map(Into::into),
        arguments: denied.object("tool_input").cloned().unwrap_or_default(),
    }
}

fn why(result: &Map<String, Value>) -> String {
    let errors: Vec<&str> = result.list("errors").iter().filter_map(Value::as_str).collect();
    let error = result.field("error");
    let said = Some(errors.join("; ")).filter(|_| !errors.is_empty());
    said.or_else(|| {
        error.and_then(Value::as_str).or(error.text("message")).or(result.text("result")).map(str::to_owned)
    })
    .filter(|text| !text.is_empty())
    .unwrap_or_else(|| format!("the turn failed: {}", result.text("subtype").unwrap_or("no reason given")))
}

fn failure(result: &Map<String, Value>, why: &str) -> AgentError {
    if why.contains("No conversation found")
        || why.contains("requires a valid session")
        || why.contains("No message found")
    {
        return AgentError::new(AgentErrorKind::SessionNotFound, why).of(AgentType::Claude);
    }
    let word = result.text("api_error_type").or(result.text("subtype")).or(result.text("status"));
    api_error(word.unwrap_or("unknown"), why)
}
