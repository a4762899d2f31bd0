//! Decides what happens next in a turn: the model is asked, its calls are prepared, asked about and run, until it is
//! done.
//!
//! Pure: inputs in, effects out. No clock, channel or file; time and ids come in as values. The runner carries the
//! effects out and returns their results. Whatever comes in whatever order, the conversation stays complete: every
//! call has an answer before the model is asked again.

mod call;
mod elicit;
mod reply;
#[cfg(test)]
mod tests;
mod trouble;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use multitap_event::{
    Decide, Denial, Elicitation, ElicitationAnswer, EventKind, MessageId, QuestionId, SystemNote, SystemSubtype,
    Timestamp, TokenUsage, ToolId, ToolKind, TurnEnd, TurnId, TurnStatus,
};
use serde_json::{Map, Value, json};

use self::call::CallBatch;
pub(crate) use self::call::Edited;
use self::reply::Gathered;
use crate::conversation::{Call, Conversation, Message, UserText};
use crate::job::Job;
use crate::model::{Delta, ModelError, Reply};
use crate::policy::{Consent, Verdict};
use crate::tool::{Outcome, Progress};

/// Number of equal calls in a row that make a loop.
const SAME_CALLS: usize = 4;
/// Told to the model about interrupted calls.
const STOPPED: &str = "the user stopped it";
/// Share of the context window that may be used before the conversation is summarised.
const FULL: f64 = 0.8;

#[derive(Debug)]
pub(crate) enum Input {
    Prompt(UserText),
    Steer(UserText),
    /// Begin a turn that only shows this text; the model does not see it.
    Say(Result<String, String>),
    /// Begin a turn that runs one call of the user.
    Do(Call),
    /// Begin a turn that only summarises the conversation.
    Compress,
    Delta(Delta),
    Replied(Result<Reply, ModelError>),
    /// The wait before a retry is over.
    Again,
    /// A call is ready, or cannot be run.
    Ready(ToolId, PreparedCall),
    Decided(Decide),
    Progress(ToolId, Progress),
    Done(ToolId, Outcome),
    /// An MCP server asks the user for something.
    Elicited(QuestionId, Elicitation),
    /// The question was withdrawn.
    Withdrawn(QuestionId),
    Summed(Result<Summary, ModelError>),
    Cancel,
    /// The time limit for stopping tools is over.
    Force,
}

/// A summary of the conversation, and the tokens it took.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) text: String,
    pub(crate) usage: Option<TokenUsage>,
}

#[derive(Debug)]
pub(crate) struct PreparedCall {
    pub(crate) kind: ToolKind,
    pub(crate) server: Option<String>,
    /// The job and its verdict, or why it cannot run.
    pub(crate) job: Result<(Job, Verdict), String>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Tell(EventKind),
    /// Ask the model with the conversation as it is.
    AskModel,
    /// Wait, then say [`Input::Again`].
    Wait(Duration),
    /// Make the call ready, then say [`Input::Ready`].
    Prepare(ToolId, Call),
    /// Run the job if the policy approves it. In either case, say [`Input::Done`] afterwards.
    Run {
        id: ToolId,
        tool: String,
        job: Job,
        consent: Consent,
    },
    /// An answer that also holds for later calls.
    Always {
        option: multitap_event::OptionId,
        tool: String,
        job: Job,
    },
    /// Tell the MCP server that asked.
    Answer(QuestionId, ElicitationAnswer),
    /// Sum the conversation up, then say [`Input::Summed`].
    SumUp,
    /// The conversation grew, or was replaced.
    StoreUpdate(StoreUpdate),
    /// Drop the model request, the wait and all preparations, and stop the tools. Each tool still sends
    /// [`Input::Done`]; if that takes too long, [`Input::Force`] follows.
    Stop,
}

/// The change of the conversation to store. Part of the effect, because the conversation may grow further before the
/// step ends.
#[derive(Debug, PartialEq)]
pub(crate) enum StoreUpdate {
    Added(Message),
    All(Conversation),
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    /// How often the model may be asked in one turn.
    pub(crate) max_turns: Option<u32>,
    pub(crate) window: Option<u64>,
    /// The last message of a turn must be JSON, which is also reported as a value.
    pub(crate) structured: bool,
}

/// Time and ids, for one step.
pub(crate) struct StepContext<'a> {
    pub(crate) at: Timestamp,
    pub(crate) id: &'a mut dyn FnMut() -> String,
    /// Between 0 and 1, so that many agents do not retry at the same moment.
    pub(crate) jitter: f64,
}

/// A step that is being taken: its time and ids, and the effects so far.
struct Step<'a> {
    at: Timestamp,
    id: &'a mut dyn FnMut() -> String,
    jitter: f64,
    out: Vec<Effect>,
}

impl Step<'_> {
    fn tell(&mut self, kind: EventKind) {
        self.out.push(Effect::Tell(kind));
    }
}

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) talk: Conversation,
    pub(crate) limits: Limits,
    /// The read-only tools: several may run at once.
    pub(crate) read_only: BTreeSet<String>,
    /// Tokens of the conversation when it was last counted.
    pub(crate) used: Option<u64>,
    turn: Option<Turn>,
}

#[derive(Debug)]
struct Turn {
    id: TurnId,
    began: Timestamp,
    stage: Phase,
    asked: u32,
    usage: Option<TokenUsage>,
    denials: Vec<Denial>,
    text: Option<String>,
    /// Messages to send with the next model request.
    steers: Vec<UserText>,
    /// The last replies that only called tools, to detect a loop.
    recent: VecDeque<String>,
    /// Whether the conversation was summarised since the last model request; prevents repeated summaries.
    summed: bool,
    /// The user wants a summary, and nothing else.
    compress: bool,
}

#[derive(Debug)]
enum Phase {
    Asking {
        attempt: u32,
        gathered: Gathered,
    },
    Waiting {
        attempt: u32,
        then: RetryOf,
    },
    Working(CallBatch),
    /// The user stopped the turn, and tools have not reported yet.
    Stopping(CallBatch),
    SummingUp {
        attempt: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetryOf {
    Ask,
    SumUp,
}

impl Machine {
    pub(crate) fn new(talk: Conversation, limits: Limits) -> Self {
        Self { talk, limits, read_only: BTreeSet::new(), used: None, turn: None }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.turn.is_some()
    }

    /// Handles an input; returns the effects, in order.
    pub(crate) fn step(&mut self, input: Input, now: &mut StepContext<'_>) -> Vec<Effect> {
        let mut step = Step { at: now.at, id: now.id, jitter: now.jitter, out: Vec::new() };
        match input {
            Input::Prompt(said) => self.begin(said, &mut step),
            Input::Steer(said) => match &mut self.turn {
                Some(turn) => turn.steers.push(said),
                None => self.begin(said, &mut step),
            },
            Input::Say(words) => self.say(words, &mut step),
            Input::Do(call) => self.do_call(call, &mut step),
            Input::Compress => {
                self.open(&mut step);
                if let Some(turn) = &mut self.turn {
                    turn.compress = true;
                }
                step.out.push(Effect::SumUp);
            }
            Input::Delta(delta) => self.delta(delta, &mut step),
            Input::Replied(Ok(reply)) => self.replied(reply, &mut step),
            Input::Replied(Err(error)) => self.failed(error, &mut step),
            Input::Again => self.again(&mut step),
            Input::Ready(id, readied) => self.ready(&id, readied, &mut step),
            Input::Decided(decide) if self.answered(&decide, &mut step) => {}
            Input::Decided(decide) => self.decided(&decide, &mut step),
            Input::Progress(id, progress) => self.progress(&id, progress, &mut step),
            Input::Done(id, outcome) if self.runs(&id) => self.done(&id, outcome, &mut step),
            Input::Done(..) => {}
            Input::Elicited(id, elicitation) => self.elicited(id, &elicitation, &mut step),
            Input::Withdrawn(id) => self.withdrawn(&id, &mut step),
            Input::Summed(summary) => self.summed(summary, &mut step),
            Input::Cancel => self.cancel(&mut step),
            Input::Force => self.force(&mut step),
        }
        step.out
    }

    fn begin(&mut self, said: UserText, step: &mut Step<'_>) {
        self.open(step);
        self.keep(Message::User(said), step);
        self.ask(step);
    }

    fn say(&mut self, words: Result<String, String>, step: &mut Step<'_>) {
        self.open(step);
        match words {
            Ok(text) => {
                let mut gathered = Gathered::new(MessageId::from((step.id)()));
                step.out.extend(gathered.take(Delta::Text(text)).map(Effect::Tell));
                if let Some(turn) = &mut self.turn {
                    turn.text = gathered.text();
                }
                self.end(TurnStatus::Completed, None, None, step);
            }
            Err(why) => self.fail(None, why, step),
        }
    }

    fn do_call(&mut self, call: Call, step: &mut Step<'_>) {
        self.open(step);
        if let Some(turn) = &mut self.turn {
            turn.stage = Phase::Working(CallBatch::of_the_user(call));
        }
        self.next_calls(step);
    }

    fn open(&mut self, step: &mut Step<'_>) {
        let id = TurnId::from((step.id)());
        step.tell(EventKind::TurnStarted { turn_id: id.clone() });
        self.turn = Some(Turn {
            id,
            began: step.at,
            stage: Phase::SummingUp { attempt: 1 },
            asked: 0,
            usage: None,
            denials: Vec::new(),
            text: None,
            steers: Vec::new(),
            recent: VecDeque::new(),
            summed: false,
            compress: false,
        });
    }

    fn keep(&mut self, message: Message, step: &mut Step<'_>) {
        self.talk.push(message.clone());
        step.out.push(Effect::StoreUpdate(StoreUpdate::Added(message)));
    }

    /// Asks the model, unless the turn has used its limit or the conversation has to be summarised first.
    fn ask(&mut self, step: &mut Step<'_>) {
        let Some(turn) = &mut self.turn else { return };
        for said in std::mem::take(&mut turn.steers) {
            self.keep(Message::User(said), step);
        }
        let Some(turn) = &mut self.turn else { return };
        if let Some(max) = self.limits.max_turns.filter(|max| turn.asked >= *max) {
            let why = format!("the turn reached {max} model requests, the limit of --max-turns");
            return self.fail(Some("max_turns"), why, step);
        }
        let used = self.used.unwrap_or_else(|| self.talk.guessed_tokens());
        #[expect(clippy::cast_precision_loss, reason = "a share of tokens need not be exact")]
        let full = self.limits.window.is_some_and(|window| used as f64 > window as f64 * FULL);
        if full && !turn.summed {
            turn.summed = true;
            return turn.sum_up(1, step);
        }
        turn.asked += 1;
        turn.ask(1, step);
    }

    fn delta(&mut self, delta: Delta, step: &mut Step<'_>) {
        let Some(Turn { stage: Phase::Asking { gathered, .. }, .. }) = &mut self.turn else { return };
        step.out.extend(gathered.take(delta).map(Effect::Tell));
    }

    fn replied(&mut self, reply: Reply, step: &mut Step<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let Phase::Asking { gathered, .. } = &mut turn.stage else { return };
        let gathered = std::mem::replace(gathered, Gathered::new(MessageId::from("")));
        if let Some(usage) = reply.usage {
            turn.count(usage);
            self.used = Some(usage.total_tokens);
        }
        turn.summed = false;
        if let Some(text) = gathered.text() {
            turn.text = Some(text);
        }
        let calls = gathered.calls();
        let parts = gathered.parts;
        if !parts.is_empty() {
            self.keep(Message::Assistant { parts }, step);
        }
        if calls.is_empty() {
            return self.rest(reply.cut_short, step);
        }
        if self.loops(&calls) {
            self.answer_all(&calls, "not run: the model repeats the same calls", step);
            let why = format!("the model made the same calls {SAME_CALLS} times in a row");
            return self.fail(Some("loop_detected"), why, step);
        }
        let Some(turn) = &mut self.turn else { return };
        turn.stage = Phase::Working(CallBatch::new(calls));
        self.next_calls(step);
    }

    fn rest(&mut self, cut_short: Option<String>, step: &mut Step<'_>) {
        if let Some(why) = cut_short {
            return self.fail(Some("cut_short"), why, step);
        }
        let Some(turn) = &self.turn else { return };
        if !turn.steers.is_empty() {
            return self.ask(step);
        }
        // If the model was not asked, as for a summary, no JSON is required.
        if self.limits.structured && turn.asked > 0 && turn.structured().is_none() {
            let why = "the answer does not match --output-schema".to_owned();
            return self.fail(Some("not_structured"), why, step);
        }
        self.end(TurnStatus::Completed, None, None, step);
    }

    fn loops(&mut self, calls: &[Call]) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        let this = calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect::<Vec<_>>().join("\n");
        if turn.recent.back().is_some_and(|last| *last != this) {
            turn.recent.clear();
        }
        turn.recent.push_back(this);
        turn.recent.len() >= SAME_CALLS
    }

    fn answer_all(&mut self, calls: &[Call], why: &str, step: &mut Step<'_>) {
        let answers = calls.iter().map(|call| call.unanswered(why)).collect();
        self.keep(Message::Results { answers }, step);
    }

    fn summed(&mut self, summary: Result<Summary, ModelError>, step: &mut Step<'_>) {
        let Some(turn) = &mut self.turn else { return };
        let Phase::SummingUp { attempt } = turn.stage else { return };
        match summary {
            Ok(Summary { text, usage }) => {
                usage.into_iter().for_each(|usage| turn.count(usage));
                let only = turn.compress;
                step.tell(self.sum_up(&text));
                step.out.push(Effect::StoreUpdate(StoreUpdate::All(self.talk.clone())));
                match self.talk.messages().last() {
                    Some(Message::User(_)) if !only => self.ask(step),
                    _ => self.rest(None, step),
                }
            }
            Err(error) => self.not_summed(error, attempt, step),
        }
    }

    /// Replaces the conversation by a summary; returns the event for it.
    pub(crate) fn sum_up(&mut self, summary: &str) -> EventKind {
        let before = self.used.take().unwrap_or_else(|| self.talk.guessed_tokens());
        self.talk.sum_up(summary);
        let trigger = if self.turn.as_ref().is_some_and(|turn| turn.compress) { "manual" } else { "auto" };
        let data = json!({ "trigger": trigger, "tokensBefore": before, "tokensAfter": self.talk.guessed_tokens() });
        EventKind::System(SystemNote {
            subtype: SystemSubtype::COMPACTED.to_owned(),
            message: Some("the conversation was summarized to make room".to_owned()),
            data: data.as_object().cloned().unwrap_or_else(Map::new),
        })
    }

    fn cancel(&mut self, step: &mut Step<'_>) {
        if self.turn.is_none() {
            return;
        }
        step.out.push(Effect::Stop);
        self.break_off(STOPPED, step);
        if !self.stop_calls(step) {
            self.stopped(step);
        }
    }

    fn force(&mut self, step: &mut Step<'_>) {
        if matches!(self.turn, Some(Turn { stage: Phase::Stopping(_), .. })) {
            self.give_up_calls(step);
            self.stopped(step);
        }
    }

    fn stopped(&mut self, step: &mut Step<'_>) {
        // The next prompt must not read as a continuation of this one.
        if matches!(self.talk.messages().last(), Some(Message::User(_))) {
            self.keep(Message::assistant("(The user stopped me here.)"), step);
        }
        self.end(TurnStatus::Cancelled, None, None, step);
    }

    fn end(&mut self, status: TurnStatus, native: Option<&str>, error: Option<String>, step: &mut Step<'_>) {
        let Some(turn) = self.turn.take() else { return };
        let structured = self.limits.structured && status == TurnStatus::Completed;
        step.tell(EventKind::TurnCompleted(TurnEnd {
            structured_output: structured.then(|| turn.structured()).flatten(),
            turn_id: Some(turn.id),
            usage: turn.usage,
            duration_ms: Some(step.at.millis_since(turn.began)),
            text: turn.text,
            error,
            native_status: native.map(str::to_owned),
            num_turns: Some(u64::from(turn.asked)),
            denials: turn.denials,
            ..TurnEnd::of(status)
        }));
        // Messages that came too late to steer this turn begin the next.
        let mut steers = turn.steers.into_iter();
        if let Some(first) = steers.next()
            && status != TurnStatus::Cancelled
        {
            self.begin(first, step);
            if let Some(turn) = &mut self.turn {
                turn.steers.extend(steers);
            }
        }
    }
}

impl Turn {
    fn ask(&mut self, attempt: u32, step: &mut Step<'_>) {
        self.stage = Phase::Asking { attempt, gathered: Gathered::new(MessageId::from((step.id)())) };
        step.out.push(Effect::AskModel);
    }

    fn sum_up(&mut self, attempt: u32, step: &mut Step<'_>) {
        self.stage = Phase::SummingUp { attempt };
        step.out.push(Effect::SumUp);
    }

    fn count(&mut self, usage: TokenUsage) {
        self.usage = TokenUsage::sum(self.usage, Some(usage));
    }

    /// Its last message as JSON, if it is JSON.
    fn structured(&self) -> Option<Value> {
        serde_json::from_str(self.text.as_deref()?).ok()
    }
}
