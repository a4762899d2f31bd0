mod anything;

use std::path::Path;

use multitap_event::{AgentErrorKind, ChoiceKind, QuestionId, ToolOutcome, option};
use serde_json::json;

use super::trouble::ATTEMPTS;
use super::*;
use crate::model::ModelErrorKind;
use crate::tools::shell::Command;

/// A machine, and everything it ever wanted.
struct Table {
    machine: Machine,
    reported: Vec<EventKind>,
    effects: Vec<Effect>,
    /// The conversation as it would be resumed.
    kept: Vec<Message>,
    ids: u64,
}

impl Table {
    fn new(limits: Limits) -> Self {
        let machine = Machine::new(Conversation::default(), limits);
        Self { machine, reported: Vec::new(), effects: Vec::new(), kept: Vec::new(), ids: 0 }
    }

    fn step(&mut self, input: Input) {
        let ids = &mut self.ids;
        let mut id = || {
            *ids += 1;
            format!("id-{ids}")
        };
        let mut now = StepContext { at: Timestamp::from_millis(0), id: &mut id, jitter: 0.5 };
        self.effects.clear();
        for effect in self.machine.step(input, &mut now) {
            match &effect {
                Effect::StoreUpdate(StoreUpdate::Added(message)) => self.kept.push(message.clone()),
                Effect::StoreUpdate(StoreUpdate::All(talk)) => self.kept = talk.messages().to_vec(),
                _ => {}
            }
            match effect {
                Effect::Tell(kind) => self.reported.push(kind),
                other => self.effects.push(other),
            }
        }
        assert_eq!(self.kept, self.machine.talk.messages(), "what is kept is what was said");
    }

    fn kept_last(&self) -> Effect {
        Effect::StoreUpdate(StoreUpdate::Added(self.machine.talk.messages().last().unwrap().clone()))
    }

    fn say(&mut self, text: &str) {
        self.step(Input::Delta(Delta::Text(text.to_owned())));
    }

    fn call(&mut self, name: &str, key: u32) {
        let id = format!("call-{key}");
        let call = Call { id, name: name.to_owned(), arguments: json!({ "key": key }), signature: None };
        self.step(Input::Delta(Delta::Call(call)));
    }

    fn replied(&mut self) {
        self.step(Input::Replied(Ok(Reply { usage: Some(TokenUsage::of(100, 10)), cut_short: None })));
    }

    fn prepared(&self) -> Vec<ToolId> {
        let id = |effect: &Effect| if let Effect::Prepare(id, _) = effect { Some(id.clone()) } else { None };
        self.effects.iter().filter_map(id).collect()
    }

    fn ready(&mut self, id: &ToolId, verdict: Verdict) {
        let job = Ok((job(), verdict));
        self.step(Input::Ready(id.clone(), PreparedCall { kind: ToolKind::Other, server: None, job }));
    }

    fn question(&self) -> multitap_event::Question {
        let asked = self.reported.iter().rev().find_map(|kind| match kind {
            EventKind::PermissionAsked(question) => Some(question.clone()),
            _ => None,
        });
        asked.unwrap()
    }

    fn end(&self) -> &TurnEnd {
        let end = self.reported.iter().rev().find_map(|kind| match kind {
            EventKind::TurnCompleted(end) => Some(end),
            _ => None,
        });
        end.unwrap()
    }

    fn errors(&self) -> Vec<AgentErrorKind> {
        let error = |kind: &EventKind| if let EventKind::Error(error) = kind { Some(error.kind) } else { None };
        self.reported.iter().filter_map(error).collect()
    }

    fn outcomes(&self) -> Vec<ToolOutcome> {
        let outcome =
            |kind: &EventKind| if let EventKind::ToolCompleted(done) = kind { Some(done.outcome) } else { None };
        self.reported.iter().filter_map(outcome).collect()
    }

    fn answers(&self) -> Vec<(String, bool)> {
        let Some(Message::Results { answers }) =
            self.machine.talk.messages().iter().rev().find(|message| matches!(message, Message::Results { .. }))
        else {
            panic!("no answers")
        };
        answers.iter().map(|answer| (answer.id.clone(), answer.failed)).collect()
    }
}

/// A job that can be allowed once or for good.
fn job() -> Job {
    Job::Shell(Command::of("make", Path::new("/work")))
}

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError { kind, message: "the model is away".to_owned(), status: Some(529), retry_after: None }
}

/// A turn in which the model has made that many calls.
fn working(names: &[&str]) -> Table {
    let mut table = Table::new(Limits::default());
    table.machine.read_only = BTreeSet::from(["look".to_owned()]);
    table.step(Input::Prompt(UserText { text: "go".to_owned(), images: Vec::new() }));
    for (key, name) in (0..).zip(names) {
        table.call(name, key);
    }
    table.replied();
    table
}

#[test]
fn a_turn_ends_when_the_model_has_nothing_to_do() {
    let mut table = Table::new(Limits::default());
    table.step(Input::Prompt(UserText { text: "hello".to_owned(), images: Vec::new() }));
    assert_eq!(table.effects, [table.kept_last(), Effect::AskModel]);
    table.say("good ");
    table.say("day");
    table.replied();
    let end = table.end();
    assert_eq!((end.status, end.text.as_deref(), end.num_turns), (TurnStatus::Completed, Some("good day"), Some(1)));
    assert_eq!(end.usage, Some(TokenUsage::of(100, 10)));
    assert_eq!(table.machine.talk.messages(), [Message::user("hello"), Message::assistant("good day")]);
    assert!(!table.machine.is_busy());
}

#[test]
fn those_that_look_run_together_and_all_others_alone() {
    let mut table = working(&["look", "look", "change", "look"]);
    let looking = table.prepared();
    assert_eq!(looking.len(), 2);
    for id in &looking {
        table.ready(id, Verdict::Run);
    }
    table.step(Input::Done(looking[1].clone(), Outcome::done("second")));
    assert!(table.prepared().is_empty(), "the change waits for both");
    table.step(Input::Done(looking[0].clone(), Outcome::done("first")));
    let changing = table.prepared();
    assert_eq!(changing.len(), 1, "the look behind it waits");
    table.ready(&changing[0], Verdict::Run);
    table.step(Input::Done(changing[0].clone(), Outcome::done("third")));
    let last = table.prepared();
    table.ready(&last[0], Verdict::Run);
    table.step(Input::Done(last[0].clone(), Outcome::failed("no")));
    assert_eq!(table.effects, [table.kept_last(), Effect::AskModel]);
    let order: Vec<_> = ["call-0", "call-1", "call-2"].map(|id| (id.to_owned(), false)).into();
    assert_eq!(table.answers()[..3], order, "in the order of the calls");
    assert_eq!(table.answers()[3], ("call-3".to_owned(), true));
}

#[test]
fn only_an_offered_answer_runs_anything() {
    for (option, runs) in
        [(option::PROCEED_ONCE, true), (option::PROCEED_ALWAYS, true), (option::CANCEL, false), ("yes please", false)]
    {
        let mut table = working(&["change"]);
        let id = table.prepared()[0].clone();
        table.ready(&id, Verdict::Ask);
        let question = table.question();
        assert_eq!(question.tool_id.as_ref(), Some(&id));
        table.step(Input::Decided(Decide::new(&QuestionId::from("another"), option)));
        assert!(table.effects.is_empty(), "an answer to something else");
        table.step(Input::Decided(Decide::new(&question.question_id, option).with_feedback("because")));
        let started = table.effects.iter().any(|effect| matches!(effect, Effect::Run { consent: Consent::Given, .. }));
        assert_eq!(started, runs, "{option}");
        let always = table.effects.iter().any(|effect| matches!(effect, Effect::Always { .. }));
        let kind = question.choice(&option.into()).map(|choice| choice.kind);
        assert_eq!(always, kind == Some(ChoiceKind::AllowAlways), "{option}");
        if !runs {
            assert_eq!(table.outcomes(), [ToolOutcome::Denied]);
        }
        table.step(Input::Decided(Decide::new(&question.question_id, option::PROCEED_ONCE)));
        assert!(table.effects.is_empty(), "a second answer");
    }
}

#[test]
fn an_edit_is_another_job_and_no_rule() {
    let edits = [(Some("echo bye".to_owned()), None), (None, json!({ "command": "echo bye" }).as_object().cloned())];
    for (new_content, new_input) in edits {
        let mut table = working(&["change"]);
        let id = table.prepared()[0].clone();
        table.ready(&id, Verdict::Ask);
        let question = table.question();
        let once = Decide {
            new_content: new_content.clone(),
            new_input: new_input.clone(),
            ..Decide::new(&question.question_id, option::PROCEED_ONCE)
        };
        let (tool, edited) = table.machine.edited(&once).unwrap();
        assert_eq!(tool, "change");
        assert!(table.machine.edited(&Decide::new(&"another".into(), option::PROCEED_ONCE)).is_err());
        table.step(Input::Decided(once));
        match edited {
            Edited::Job { job, arguments } => {
                assert_eq!(arguments["command"], "echo bye");
                assert_eq!(table.effects, [Effect::Run { id, tool, job: *job, consent: Consent::Given }]);
            }
            Edited::Call(call) => assert_eq!(table.effects, [Effect::Prepare(id, call)]),
        }
        // With an option that makes a rule it does not fit.
        let mut table = working(&["change"]);
        let id = table.prepared()[0].clone();
        table.ready(&id, Verdict::Ask);
        let always =
            Decide { new_content, new_input, ..Decide::new(&table.question().question_id, option::PROCEED_ALWAYS) };
        table.step(Input::Decided(always));
        assert_eq!(table.outcomes(), [ToolOutcome::Denied]);
        assert!(!table.effects.iter().any(|effect| matches!(effect, Effect::Always { .. })));
    }
}

#[test]
fn what_is_denied_is_told_at_the_end_and_the_model_goes_on() {
    let mut table = working(&["change"]);
    let id = table.prepared()[0].clone();
    table.ready(&id, Verdict::Deny("plan mode".to_owned()));
    assert_eq!(table.effects, [table.kept_last(), Effect::AskModel]);
    table.say("then not");
    table.replied();
    assert_eq!(table.end().denials.len(), 1);
    assert_eq!(table.end().status, TurnStatus::Completed);
}

#[test]
fn what_passes_is_tried_again_with_longer_waits() {
    let mut table = Table::new(Limits::default());
    table.step(Input::Prompt(UserText::default()));
    let mut waits = Vec::new();
    for _ in 1..ATTEMPTS {
        table.step(Input::Replied(Err(error(ModelErrorKind::Overloaded))));
        let [Effect::Wait(time)] = table.effects[..] else { panic!("{:?}", table.effects) };
        waits.push(time.as_secs());
        table.step(Input::Again);
        assert_eq!(table.effects, [Effect::AskModel]);
    }
    assert_eq!(waits, [1, 2, 4, 8]);
    table.step(Input::Replied(Err(error(ModelErrorKind::Overloaded))));
    assert_eq!(table.end().status, TurnStatus::Failed);
    let reported = error(ModelErrorKind::RateLimited);
    table.step(Input::Prompt(UserText::default()));
    table.step(Input::Replied(Err(ModelError { retry_after: Some(Duration::from_secs(77)), ..reported })));
    assert_eq!(table.effects, [Effect::Wait(Duration::from_secs(77))], "the provider knows best");
    table.step(Input::Again);
    let reported = error(ModelErrorKind::RateLimited);
    table.step(Input::Replied(Err(ModelError { retry_after: Some(Duration::from_secs(86_400)), ..reported })));
    assert!(table.effects.is_empty() && !table.machine.is_busy(), "nobody waits a day");
}

#[test]
fn a_reply_that_broke_off_is_asked_for_anew() {
    let mut table = Table::new(Limits::default());
    table.step(Input::Prompt(UserText { text: "go".to_owned(), images: Vec::new() }));
    table.say("half a");
    table.call("change", 1);
    table.step(Input::Replied(Err(error(ModelErrorKind::Connection))));
    assert!(matches!(table.effects[..], [Effect::Wait(_)]), "{:?}", table.effects);
    let [.., EventKind::TextRetracted(text), EventKind::Retry(_)] = &table.reported[..] else {
        panic!("{:?}", table.reported)
    };
    assert_eq!(text.message_ids, ["id-2".into()]);
    table.step(Input::Again);
    assert_eq!(table.machine.talk.messages(), [Message::user("go")], "the half does not count");
    table.say("the whole");
    table.replied();
    assert_eq!((table.end().status, table.end().text.as_deref()), (TurnStatus::Completed, Some("the whole")));
}

#[test]
fn what_broke_off_for_good_is_kept_whole() {
    let mut table = Table::new(Limits::default());
    table.step(Input::Prompt(UserText { text: "go".to_owned(), images: Vec::new() }));
    table.say("half a");
    table.call("change", 1);
    table.step(Input::Replied(Err(error(ModelErrorKind::Refused))));
    assert_eq!(table.end().status, TurnStatus::Failed);
    assert_eq!(table.answers(), [("call-1".to_owned(), true)], "the conversation is whole");
    table.step(Input::Prompt(UserText { text: "go on".to_owned(), images: Vec::new() }));
    assert!(table.effects.contains(&Effect::AskModel));
}

#[test]
fn an_answer_that_has_to_be_json_is_given_as_such() {
    for (text, structured) in [("{\"colour\":\"red\"}", Some(json!({"colour": "red"}))), ("red", None)] {
        let mut table = Table::new(Limits { structured: true, ..Limits::default() });
        table.step(Input::Prompt(UserText::default()));
        table.say(text);
        table.replied();
        let expected = if structured.is_some() { TurnStatus::Completed } else { TurnStatus::Failed };
        assert_eq!((table.end().status, &table.end().structured_output), (expected, &structured));
    }
}

#[test]
fn a_wrong_key_is_not_tried_again() {
    let mut table = Table::new(Limits::default());
    table.step(Input::Prompt(UserText::default()));
    table.step(Input::Replied(Err(error(ModelErrorKind::Key))));
    assert_eq!(table.end().error.as_deref(), Some("the model is away"));
    assert_eq!(table.errors(), [AgentErrorKind::PermissionDenied]);
}

#[test]
fn circles_and_limits_end_a_turn() {
    let mut table = working(&["look"]);
    for _ in 1..SAME_CALLS {
        let id = table.prepared()[0].clone();
        table.ready(&id, Verdict::Run);
        table.step(Input::Done(id, Outcome::done("the same")));
        table.call("look", 0);
        table.replied();
    }
    assert_eq!(table.end().native_status.as_deref(), Some("loop_detected"));
    assert_eq!(table.errors(), [AgentErrorKind::Unknown]);
    assert_eq!(table.answers(), [("call-0".to_owned(), true)]);

    let mut table = Table::new(Limits { max_turns: Some(1), ..Limits::default() });
    table.step(Input::Prompt(UserText::default()));
    table.call("look", 0);
    table.replied();
    let id = table.prepared()[0].clone();
    table.ready(&id, Verdict::Run);
    table.step(Input::Done(id, Outcome::done("found")));
    assert_eq!(table.end().native_status.as_deref(), Some("max_turns"));
    assert_eq!(table.errors(), [AgentErrorKind::Unknown]);
}

#[test]
fn a_full_context_is_summed_up_first() {
    let mut table = Table::new(Limits { window: Some(120), ..Limits::default() });
    table.step(Input::Prompt(UserText { text: "one".to_owned(), images: Vec::new() }));
    table.say("done");
    table.replied();
    table.step(Input::Prompt(UserText { text: "two".to_owned(), images: Vec::new() }));
    assert_eq!(table.effects, [table.kept_last(), Effect::SumUp]);
    let usage = Some(TokenUsage::of(40, 4));
    table.step(Input::Summed(Ok(Summary { text: "one is done".to_owned(), usage })));
    assert_eq!(table.effects, [Effect::StoreUpdate(StoreUpdate::All(table.machine.talk.clone())), Effect::AskModel]);
    assert_eq!(table.machine.talk.messages().last(), Some(&Message::user("two")));
    let is_compacted = |kind: &EventKind| matches!(kind, EventKind::System(note) if note.subtype == "compacted");
    assert!(table.reported.iter().any(is_compacted));
    table.say("done too");
    table.replied();
    assert_eq!(table.end().usage, Some(TokenUsage::of(140, 14)), "what the summary took counts");
}

#[test]
fn who_wants_a_summary_gets_no_more() {
    let mut table = Table::new(Limits::default());
    table.step(Input::Prompt(UserText { text: "one".to_owned(), images: Vec::new() }));
    table.step(Input::Replied(Err(error(ModelErrorKind::Refused))));
    assert!(matches!(table.machine.talk.messages().last(), Some(Message::User(_))), "it was never answered");
    table.step(Input::Compress);
    table.step(Input::Summed(Ok(Summary { text: "short".to_owned(), usage: None })));
    assert_eq!(table.end().status, TurnStatus::Completed);
    assert!(!table.effects.contains(&Effect::AskModel), "{:?}", table.effects);
    let manual = |kind: &EventKind| matches!(kind, EventKind::System(note) if note.data["trigger"] == "manual");
    assert!(table.reported.iter().any(manual), "{:?}", table.reported);
}

#[test]
fn a_summary_is_tried_again_too() {
    let mut table = Table::new(Limits { window: Some(10), ..Limits::default() });
    table.step(Input::Prompt(UserText { text: "x".repeat(50), images: Vec::new() }));
    assert!(table.effects.contains(&Effect::SumUp));
    table.step(Input::Summed(Err(error(ModelErrorKind::RateLimited))));
    assert!(matches!(table.effects[..], [Effect::Wait(_)]), "{:?}", table.effects);
    table.step(Input::Again);
    assert_eq!(table.effects, [Effect::SumUp]);
    table.step(Input::Summed(Err(error(ModelErrorKind::Refused))));
    assert_eq!(table.end().status, TurnStatus::Failed);
}

#[test]
fn what_is_said_into_a_turn_goes_along_with_the_next_question() {
    let mut table = working(&["look"]);
    table.step(Input::Steer(UserText { text: "and be quick".to_owned(), images: Vec::new() }));
    let id = ToolId::from("id-3");
    table.ready(&id, Verdict::Run);
    table.step(Input::Done(id, Outcome::done("found")));
    assert_eq!(table.machine.talk.messages().last(), Some(&Message::user("and be quick")));
    table.step(Input::Steer(UserText { text: "wait".to_owned(), images: Vec::new() }));
    table.say("done");
    table.replied();
    assert!(table.machine.is_busy(), "it is answered before the turn ends");
}

#[test]
fn tools_that_stop_say_how_far_they_were() {
    let mut table = working(&["change", "look"]);
    let id = table.prepared()[0].clone();
    table.ready(&id, Verdict::Run);
    table.step(Input::Cancel);
    assert_eq!(table.effects, [Effect::Stop]);
    assert!(table.machine.is_busy());
    table.step(Input::Done(id, Outcome::done("it was written")));
    assert_eq!(table.outcomes(), [ToolOutcome::Completed]);
    assert_eq!(table.answers(), [("call-0".to_owned(), false), ("call-1".to_owned(), true)]);
    assert_eq!(table.end().status, TurnStatus::Cancelled);
}

#[test]
fn the_users_own_command_is_told_to_the_model_as_theirs() {
    let mut table = Table::new(Limits::default());
    let call = Call { id: "user".into(), name: "run".into(), arguments: json!({}), signature: None };
    table.step(Input::Do(call));
    let id = table.prepared()[0].clone();
    table.ready(&id, Verdict::Run);
    table.step(Input::Done(id, Outcome::done("files")));
    assert_eq!(table.end().status, TurnStatus::Completed);
    let [Message::User(said)] = table.machine.talk.messages() else { panic!() };
    assert!(said.text.ends_with("files"));
}
