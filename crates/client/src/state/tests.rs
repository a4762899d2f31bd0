use multitap_event::{
    AgentType, Choice, ChoiceKind, Details, Door, Question, SessionStart, SystemNote, TurnEnd, TurnId, option,
};
use proptest::prelude::*;

use super::*;

fn now() -> Timestamp {
    Timestamp::from_millis(1)
}

fn me() -> ClientRef {
    ClientRef::new("me", Door::Library)
}

fn state() -> State {
    State::new("s".into())
}

fn told(state: &mut State, kind: EventKind) -> Vec<Event> {
    state.told(Draft::new(now(), kind))
}

fn started() -> EventKind {
    EventKind::SessionStarted(SessionStart {
        agent_type: AgentType::Claude,
        config: None,
        native_session_id: Some("native".into()),
        native_mode: None,
        agent_version: None,
        transport: None,
    })
}

fn turn_started() -> EventKind {
    EventKind::TurnStarted { turn_id: TurnId::from("t") }
}

fn turn_ended(origin: Option<&str>) -> EventKind {
    EventKind::TurnCompleted(TurnEnd { origin: origin.map(str::to_owned), ..TurnEnd::of(TurnStatus::Completed) })
}

fn ended() -> EventKind {
    EventKind::SessionEnded(SessionEnd {
        reason: SessionEndReason::Completed,
        error: None,
        final_usage: None,
        exit_code: None,
    })
}

fn asked(id: &str) -> EventKind {
    EventKind::PermissionAsked(Question {
        question_id: id.into(),
        tool_id: None,
        tool_name: None,
        title: "may I?".into(),
        options: vec![Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce)],
        details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
        edits: Vec::new(),
        reason: None,
    })
}

fn types(events: &[Event]) -> Vec<String> {
    let name = |event: &Event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
    events.iter().map(name).collect()
}

#[test]
fn the_first_prompt_is_told_after_the_start() {
    let mut state = state();
    let (prompt, mut events) = state.hand_over(Prompt::text("hi"), me(), now());
    assert!(prompt.prompt_id.is_some());
    let note = SystemNote { subtype: "commands".into(), message: None, data: serde_json::Map::new() };
    events.extend(told(&mut state, EventKind::System(note)));
    events.extend(told(&mut state, started()));
    events.extend(told(&mut state, turn_started()));
    assert_eq!(types(&events), ["system", "sessionStarted", "userMessage", "turnStarted"]);
    assert_eq!(state.native(), Some("native"));
}

#[test]
fn an_agent_that_forgets_its_start_still_gets_the_prompt_into_the_log() {
    let mut state = state();
    let (_, mut events) = state.hand_over(Prompt::text("hi"), me(), now());
    events.extend(told(&mut state, turn_started()));
    assert_eq!(types(&events), ["userMessage", "turnStarted"]);
}

#[test]
fn a_prompt_waits_for_the_turn_and_goes_next() {
    let mut state = state();
    told(&mut state, started());
    state.hand_over(Prompt::text("one"), me(), now());
    let (two, _) = state.queue(Prompt::text("two"), me(), Place::Last, now()).unwrap();
    let (three, _) = state.queue(Prompt::text("three"), me(), Place::First, now()).unwrap();
    assert!(state.hand_over_next(now()).is_none());
    told(&mut state, turn_started());
    told(&mut state, turn_ended(None));
    let (prompt, events) = state.hand_over_next(now()).unwrap();
    assert_eq!(prompt.prompt_id, Some(three));
    assert_eq!(types(&events), ["userMessage"]);
    assert!(state.hand_over_next(now()).is_none(), "one at a time");
    assert_eq!(types(&[state.withdraw(&two, me(), now()).unwrap()]), ["promptWithdrawn"]);
    assert!(state.withdraw(&two, me(), now()).is_none());
    told(&mut state, turn_ended(None));
    assert!(state.at_rest());
}

#[test]
fn a_turn_of_the_agents_own_does_not_answer_the_prompt() {
    let mut state = state();
    told(&mut state, started());
    told(&mut state, turn_started());
    assert!(state.busy());
    told(&mut state, turn_ended(Some("task-notification")));
    assert!(!state.busy());
    state.hand_over(Prompt::text("one"), me(), now());
    told(&mut state, turn_started());
    told(&mut state, turn_ended(Some("task-notification")));
    assert!(state.busy());
    told(&mut state, turn_ended(None));
    assert!(!state.busy());
}

#[test]
fn the_queue_has_an_end() {
    let mut state = state();
    for _ in 0..PROMPT_QUEUE {
        state.queue(Prompt::text("more"), me(), Place::Last, now()).unwrap();
    }
    state.queue(Prompt::text("too much"), me(), Place::Last, now()).unwrap_err();
}

#[test]
fn the_end_takes_everything_down_and_nothing_follows() {
    let mut state = state();
    told(&mut state, started());
    state.hand_over(Prompt::text("one"), me(), now());
    state.queue(Prompt::text("two"), me(), Place::Last, now()).unwrap();
    told(&mut state, asked("q"));
    let events = told(&mut state, ended());
    assert_eq!(types(&events), ["permissionWithdrawn", "promptWithdrawn", "sessionEnded"]);
    assert!(told(&mut state, turn_started()).is_empty());
    assert!(state.gone(now()).is_empty());
    assert!(state.note(turn_started(), now()).is_none());
    let late = state.decide(&Decide::new(&"q".into(), option::CANCEL), me(), now()).unwrap_err();
    assert!(matches!(late, Refused::Withdrawn { .. }));
}

#[test]
fn an_agent_that_vanishes_is_told_as_an_end() {
    let mut state = state();
    told(&mut state, started());
    let events = state.gone(now());
    assert_eq!(types(&events), ["sessionEnded"]);
    assert!(state.ended());
}

#[derive(Debug, Clone)]
enum Happening {
    Told(Box<EventKind>),
    Prompt,
    Next,
    Queue,
    Answer(u8),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        Just(Happening::Told(started().into())),
        Just(Happening::Told(turn_started().into())),
        Just(Happening::Told(turn_ended(None).into())),
        (0..3_u8).prop_map(|id| Happening::Told(asked(&id.to_string()).into())),
        Just(Happening::Told(ended().into())),
        Just(Happening::Prompt),
        Just(Happening::Next),
        Just(Happening::Queue),
        (0..4_u8).prop_map(Happening::Answer),
    ]
}

proptest! {
    /// Whatever happens, events are numbered from 1 without a gap, and nothing follows the end.
    #[test]
    fn seq_has_no_gap(happenings in prop::collection::vec(happening(), 0..60)) {
        let mut state = state();
        let mut events = Vec::new();
        for happening in happenings {
            match happening {
                Happening::Told(kind) => events.extend(told(&mut state, *kind)),
                Happening::Prompt if !state.ended() => {
                    events.extend(state.hand_over(Prompt::text("x"), me(), now()).1);
                }
                Happening::Next => events.extend(state.hand_over_next(now()).into_iter().flat_map(|next| next.1)),
                Happening::Queue if !state.ended() => {
                    events.extend(state.queue(Prompt::text("y"), me(), Place::Last, now()).ok().map(|queued| queued.1));
                }
                Happening::Answer(id) => {
                    let decide = Decide::new(&id.to_string().as_str().into(), option::CANCEL);
                    events.extend(state.decide(&decide, me(), now()).ok().map(|settled| settled.1));
                }
                Happening::Prompt | Happening::Queue => {}
            }
        }
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        prop_assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
        let end = events.iter().position(|event| matches!(event.kind, EventKind::SessionEnded(_)));
        prop_assert!(end.is_none_or(|at| at + 1 == events.len()));
    }
}
