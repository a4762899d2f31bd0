//! What ACP clients are shown of a session, checked without a connection: the scripts that every encoder shares.

use agent_client_protocol_schema::v1::SessionUpdate;
use multitap_event::{
    AgentError, AgentErrorKind, ApprovalMode, ClientRef, ClientRole, Decide, Door, Event, EventKind, PromptId,
    Question, SystemNote, SystemSubtype, Timestamp,
};
use multitap_hub::{AgentSummary, ModeLimit, State};
use multitap_testkit::script;
use serde_json::{Value, json};

use super::config::{self, Choices};
use super::encode::{Encoder, Output, PromptEnd};
use super::features::ClientFeatures;
use super::question::Ask;

const PLAIN: ClientFeatures =
    ClientFeatures { notices: false, compaction: false, terminal_output: false, forms: false, attach: false };
const RICH: ClientFeatures =
    ClientFeatures { notices: true, compaction: true, terminal_output: true, forms: true, attach: true };

/// Those of an owner who did not open the session.
fn choices() -> Choices {
    Choices { modes: ModeLimit::Any, agents: Vec::new() }
}

fn outputs(events: &[Event], features: ClientFeatures) -> Vec<Output> {
    let mut encoder = Encoder::new(features, choices());
    let mut out = Vec::new();
    encoder.settings(&mut out);
    for event in events {
        encoder.apply(event, &mut out);
    }
    encoder.tick(Timestamp::from_millis(i64::MAX), &mut out);
    out
}

fn owner() -> ClientRef {
    ClientRef { role: Some(ClientRole::Owner), ..ClientRef::new("editor", Door::Acp) }
}

fn update(update: &SessionUpdate) -> Value {
    serde_json::to_value(update).unwrap()
}

fn ids(prompts: &[PromptId]) -> String {
    prompts.iter().map(|prompt| prompt.as_str()).collect::<Vec<_>>().join(" ")
}

/// One line for each thing that happens.
fn shown(name: &str) -> String {
    let events: Vec<Event> = script::events(name).unwrap();
    let mut text = String::new();
    for (title, features) in [("plain", PLAIN), ("rich", RICH)] {
        text.push_str(&format!("## {title}\n"));
        for output in outputs(&events, features) {
            let line = match output {
                Output::Update(one) => update(&one).to_string(),
                Output::UserMessage { prompt, update: one, .. } => {
                    format!("prompt {} {}", prompt.map(|id| id.to_string()).unwrap_or_default(), update(&one))
                }
                Output::Asked(question) => match Ask::of("SESSION", &question, &owner(), features) {
                    Some(ask) => format!("ask {} {}", ask.method, ask.params),
                    None => "ask nothing".to_owned(),
                },
                Output::Closed { question, ruling } => {
                    let by = ruling.map(|ruling| ruling.selected_option_id.to_string());
                    format!("closed {question} {}", by.unwrap_or_else(|| "withdrawn".to_owned()))
                }
                Output::Failure { prompts, update: one } => format!("failure [{}] {}", ids(&prompts), update(&one)),
                Output::TurnOver { prompts, end } => {
                    let end = match end {
                        PromptEnd::Stopped(reason) => json!(reason).to_string(),
                        PromptEnd::Failed(why) => format!("failed: {why}"),
                    };
                    format!("over [{}] {end}", ids(&prompts))
                }
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

#[test]
fn every_script_for_a_plain_and_a_rich_client() {
    for name in script::names().unwrap() {
        insta::assert_snapshot!(name.clone(), shown(&name));
    }
}

/// Whoever joins at any event is shown the same from there on as who read everything.
#[test]
fn a_late_client_is_shown_the_same() {
    for name in script::names().unwrap() {
        let events: Vec<Event> = script::events(&name).unwrap();
        let mut state = State::default();
        let mut states = Vec::new();
        for event in &events {
            state.apply(event);
            states.push(state.clone());
        }
        for (at, state) in states.into_iter().enumerate() {
            let mut late = Encoder::amid(PLAIN, choices(), state);
            let (mut asked, mut rest) = (Vec::new(), Vec::new());
            late.overview(&mut asked);
            late.questions(&mut asked);
            for event in &events[at + 1..] {
                late.apply(event, &mut rest);
            }
            let ends = |outputs: &[Output]| {
                let end = |output: &&Output| matches!(output, Output::TurnOver { .. } | Output::Closed { .. });
                outputs.iter().filter(end).cloned().collect::<Vec<_>>()
            };
            let mut all = Encoder::new(PLAIN, choices());
            let mut whole = Vec::new();
            for (index, event) in events.iter().enumerate() {
                if index == at + 1 {
                    whole.clear();
                }
                all.apply(event, &mut whole);
            }
            if at + 1 < events.len() {
                let of = |outputs: Vec<Output>| -> Vec<Output> {
                    // A prompt that joined the turn before is known only to who saw it.
                    outputs.into_iter().filter(|output| !matches!(output, Output::TurnOver { .. })).collect()
                };
                assert_eq!(of(ends(&rest)), of(ends(&whole)), "{name} after event {}", at + 1);
            }
        }
    }
}

fn questions(name: &str) -> Vec<Question> {
    let events: Vec<Event> = script::events(name).unwrap();
    let asked = outputs(&events, RICH).into_iter().filter_map(|output| match output {
        Output::Asked(question) => Some(*question),
        _ => None,
    });
    asked.collect()
}

#[test]
fn an_answer_decides_only_what_it_says() {
    for name in script::names().unwrap() {
        for question in questions(&name) {
            let ask = Ask::of("s", &question, &owner(), PLAIN).unwrap();
            for choice in &question.options {
                let answer = json!({ "outcome": { "outcome": "selected", "optionId": choice.id } });
                let decide = ask.decision(&question, answer).unwrap();
                assert_eq!(decide.option_id, choice.id);
            }
            let dismissed = ask.decision(&question, json!({ "outcome": { "outcome": "cancelled" } }));
            let refusal = question.refusal().map(|choice| Decide::new(&question.question_id, choice.id.clone()));
            assert_eq!(dismissed, refusal, "{name}");
            for garbage in
                [json!(null), json!({}), json!({ "outcome": "selected" }), json!({ "optionId": "x" }), json!([])]
            {
                assert_eq!(ask.decision(&question, garbage), None);
            }
        }
    }
}

/// What saves a rule is the owner's: nobody else is offered it.
#[test]
fn a_controller_is_offered_no_option_of_the_owner() {
    let mut question = questions("write_allowed").remove(0);
    question.options[0].owner_only = true;
    let controller = ClientRef { role: Some(ClientRole::Controller), ..owner() };
    let offered = |client: &ClientRef| {
        let ask = Ask::of("s", &question, client, PLAIN).unwrap();
        ask.params["options"].as_array().unwrap().len()
    };
    assert_eq!(offered(&controller) + 1, offered(&owner()));
}

#[test]
fn a_form_is_asked_and_answered_as_one() {
    let question = questions("questions_asked").remove(0);
    let ask = Ask::of("s", &question, &owner(), RICH).unwrap();
    assert_eq!(ask.method, "elicitation/create");
    let properties = ask.params["requestedSchema"]["properties"].as_object().unwrap();
    let content: serde_json::Map<String, Value> = properties
        .iter()
        .map(|(key, schema)| {
            let value = match schema["type"].as_str() {
                Some("array") => json!([schema["items"]["enum"][0]]),
                _ if schema["enum"].is_array() => schema["enum"][0].clone(),
                _ => json!("words"),
            };
            (key.clone(), value)
        })
        .collect();
    let decide = ask.decision(&question, json!({ "action": "accept", "content": content })).unwrap();
    assert_eq!(decide.answers.as_ref().unwrap().len(), properties.len());
    question.check(&decide).unwrap();
    for action in ["decline", "cancel"] {
        let decide = ask.decision(&question, json!({ "action": action })).unwrap();
        assert!(question.check(&decide).unwrap().kind.rejects());
    }
    // A form that is not filled chooses nothing, nor does an answer that was not offered.
    assert_eq!(ask.decision(&question, json!({ "action": "accept", "content": {} })), None);
    assert_eq!(ask.decision(&question, json!({ "action": "accept", "content": { "answer_1": "Green" } })), None);
}

/// The state after a script.
fn state(name: &str) -> State {
    let mut state = State::default();
    script::events(name).unwrap().iter().for_each(|event: &Event| state.apply(event));
    state
}

fn next(events: &[Event], kind: EventKind) -> Event {
    let last = events.last().unwrap();
    Event { seq: last.seq + 1, kind, ..last.clone() }
}

/// An error that does not end the turn is shown to everybody, in its place or a moment later.
#[test]
fn an_error_that_ends_nothing_is_shown() {
    let events: Vec<Event> = script::events("text").unwrap();
    let begun = events.iter().position(|event| matches!(event.kind, EventKind::TurnStarted { .. })).unwrap();
    let error = next(&events[..=begun], EventKind::Error(AgentError::new(AgentErrorKind::Unknown, "a hiccup")));
    let mut encoder = Encoder::new(PLAIN, choices());
    let mut out = Vec::new();
    for event in events[..=begun].iter().chain([&error]) {
        encoder.apply(event, &mut out);
    }
    let shown = |out: &[Output]| out.iter().any(|output| format!("{output:?}").contains("a hiccup"));
    assert!(!shown(&out), "it may be why the turn fails");
    let due = encoder.due().unwrap();
    encoder.tick(Timestamp::from_millis(due.as_millis() - 1), &mut out);
    assert!(!shown(&out));
    encoder.tick(due, &mut out);
    assert!(shown(&out) && encoder.due().is_none());
    out.clear();
    encoder.apply(&error, &mut out);
    encoder.apply(&next(&events[..=begun], EventKind::RawDelta { native_type: None }), &mut out);
    assert!(shown(&out));
}

#[test]
fn a_compaction_is_shown_to_those_who_declared_it() {
    let events: Vec<Event> = script::events("text").unwrap();
    let note = SystemNote { subtype: SystemSubtype::COMPACTED.to_owned(), message: None, data: Default::default() };
    let compacted = next(&events, EventKind::System(note));
    for (features, count) in [(PLAIN, 0), (RICH, 1)] {
        let mut out = Vec::new();
        Encoder::amid(features, choices(), state("text")).apply(&compacted, &mut out);
        let shown: Vec<Value> = out
            .iter()
            .map(|output| match output {
                Output::Update(one) => update(one),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(shown.len(), count);
        let completed = |one: &Value| one["sessionUpdate"] == "compaction_update" && one["status"] == "completed";
        assert!(shown.iter().all(completed), "{shown:?}");
    }
}

/// What an owner did not allow is not offered to others, apart from the current mode.
#[test]
fn a_client_is_offered_only_the_modes_that_it_may_choose() {
    let offered = |limit: ModeLimit, mode: ApprovalMode| -> Vec<String> {
        let state = State { mode: Some(mode), ..state("text") };
        let modes = config::modes(&state, limit).unwrap();
        modes.available_modes.iter().map(|mode| mode.id.0.to_string()).collect()
    };
    let all = offered(ModeLimit::Any, ApprovalMode::Ask);
    assert!(all.len() > 3, "{all:?}");
    assert_eq!(offered(ModeLimit::Within(ApprovalMode::Ask), ApprovalMode::Ask), ["ask", "plan", "dontAsk"]);
    assert_eq!(offered(ModeLimit::Within(ApprovalMode::Plan), ApprovalMode::AutoEdit), ["autoEdit", "plan"]);
    assert_eq!(offered(ModeLimit::None, ApprovalMode::Ask), ["ask"]);
}

/// The agent may change until the first prompt, if the client opened the session.
#[test]
fn the_agent_is_an_option_until_the_first_prompt() {
    let agent = |name: &str, is_installed| AgentSummary {
        name: name.to_owned(),
        is_default: false,
        is_installed,
        install: None,
        sign_in: None,
    };
    let agents = vec![agent("claude", true), agent("codex", true), agent("gemini", false), agent("builtin", true)];
    let offer = Choices { agents, ..choices() };
    let offered = |options: &Value| -> Vec<String> {
        let agent = options.as_array().unwrap().iter().find(|option| option["id"] == "agent").unwrap();
        assert_eq!(agent["currentValue"], "builtin");
        agent["options"].as_array().unwrap().iter().map(|one| one["value"].as_str().unwrap().to_owned()).collect()
    };
    let events: Vec<Event> = script::events("failed").unwrap();
    let start = events.iter().position(|event| matches!(event.kind, EventKind::SessionStarted(_))).unwrap();
    let mut encoder = Encoder::new(PLAIN, offer.clone());
    let mut out = Vec::new();
    let mut before = State::default();
    for event in &events[..=start] {
        encoder.apply(event, &mut out);
        before.apply(event);
    }
    encoder.settings(&mut out);
    out.clear();
    assert_eq!(offered(&json!(config::options(&before, &offer))), ["claude", "codex", "builtin"]);
    assert!(config::options(&before, &choices()).iter().all(|option| *option.id.0 != *config::AGENT));
    for event in &events[start + 1..] {
        encoder.apply(event, &mut out);
    }
    let updates = out.iter().filter_map(|output| match output {
        Output::Update(one) => Some(update(one)),
        _ => None,
    });
    let changed: Vec<Value> = updates.filter(|one| one["sessionUpdate"] == "config_option_update").collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(offered(&changed[0]["configOptions"]), ["builtin"]);
}
