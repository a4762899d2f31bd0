use std::collections::{BTreeMap, BTreeSet};

use multitap_a2a::Encoding;
use multitap_a2a::devtool::Spelling;
use multitap_event::{
    Choice, ChoiceKind, ClientRef, Details, Door, Event, EventKind, Question, Ruling, TextChunk, Timestamp, TurnEnd,
    TurnStatus, UserMessage, option,
};
use proptest::prelude::*;

use super::*;
use crate::a2a::name;
use crate::a2a::project::Projector;

const FORM: Form = Form { encoding: Encoding::V0_3, spelling: Spelling::Specified };

/// Frames as a session makes them.
struct Session {
    projector: Projector,
    seq: u64,
}

impl Session {
    fn new() -> Self {
        Self { projector: Projector::new("s"), seq: 0 }
    }

    fn tells(&mut self, kind: EventKind) -> Vec<Frame> {
        self.seq += 1;
        let timestamp = Timestamp::from_millis(1_000 * i64::try_from(self.seq).unwrap());
        let (id, session_id) = (format!("e{}", self.seq).as_str().into(), "s".into());
        let event = Event { id, session_id, timestamp, seq: self.seq, kind, raw: Vec::new() };
        let mut frames = Vec::new();
        self.projector.apply(&event, &mut frames);
        frames
    }

    fn prompted(&mut self, id: &str) -> Vec<Frame> {
        self.tells(EventKind::UserMessage(UserMessage {
            content: id.to_owned(),
            images: Vec::new(),
            prompt_id: Some(id.into()),
            from: None,
            ..UserMessage::default()
        }))
    }

    fn says(&mut self) -> Vec<Frame> {
        let chunk = TextChunk { message_id: Some("m".into()), ..TextChunk::piece("so") };
        self.tells(EventKind::TextChunk(chunk))
    }

    fn asks(&mut self, id: &str) -> Vec<Frame> {
        self.tells(EventKind::PermissionAsked(Question {
            question_id: id.into(),
            tool_id: None,
            tool_name: None,
            title: "may I?".to_owned(),
            options: vec![Choice::new(option::PROCEED_ONCE, "Yes", ChoiceKind::AllowOnce)],
            details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
            edits: Vec::new(),
            reason: None,
        }))
    }

    fn settles(&mut self, id: &str) -> Vec<Frame> {
        self.tells(EventKind::PermissionSettled(Ruling {
            question_id: id.into(),
            selected_option_id: option::PROCEED_ONCE.into(),
            kind: ChoiceKind::AllowOnce,
            settled_by: ClientRef::new("ann", Door::A2a),
            at: Timestamp::from_millis(1),
            feedback: None,
            edited: false,
            new_content: None,
            new_input: None,
            runs: None,
        }))
    }

    fn ends(&mut self) -> Vec<Frame> {
        self.tells(EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Completed)))
    }
}

fn answer(turn: &str, question: &str) -> Follow {
    Follow::Turn { turn: turn.into(), answered: Some(question.into()) }
}

fn task() -> Follow {
    Follow::Task { task: name::lasting("s").into(), own: false }
}

fn to(route: Route) -> Option<u64> {
    let Route::Go { to, .. } = route else { panic!("it waits") };
    to.map(|(id, _)| number(&id))
}

fn number(id: &RequestId) -> u64 {
    let RequestId::Number(number) = id else { panic!("{id:?}") };
    number.as_u64().unwrap()
}

fn open(switch: &mut Switch, id: u64, follow: Follow) {
    switch.hold(id.into(), follow, FORM, Cursor::default());
    switch.open(&id.into(), Cursor::default());
}

#[test]
fn a_turn_goes_to_who_began_it_and_then_to_who_answered_in_it() {
    let (mut session, mut switch) = (Session::new(), Switch::default());
    open(&mut switch, 1, Follow::turn("p"));
    open(&mut switch, 2, task());
    for frame in session.prompted("p").iter().chain(&session.says()) {
        assert_eq!(to(switch.route(frame)), Some(1), "who began a turn is nearer to it than who follows the task");
    }
    let asked = session.asks("q");
    assert_eq!(to(switch.route(&asked[0])), Some(1));
    let last = switch.route(&asked[1]);
    assert_eq!(last, Route::Go { to: Some((1.into(), FORM)), ended: vec![1.into()] });
    open(&mut switch, 3, answer("p", "q"));
    for frame in session.settles("q").iter().chain(&session.says()) {
        assert_eq!(to(switch.route(frame)), Some(3));
    }
    let over = session.ends();
    assert_eq!(switch.route(&over[0]), Route::Go { to: Some((3.into(), FORM)), ended: vec![3.into()] });
    assert_eq!(to(switch.route(&session.prompted("other")[0])), Some(2), "the task goes on");
}

#[test]
fn what_somebody_elses_answer_brings_is_not_the_losers() {
    let (mut session, mut switch) = (Session::new(), Switch::default());
    session.prompted("p");
    session.asks("q");
    switch.hold(1.into(), answer("p", "q"), FORM, Cursor::default());
    let settled = session.settles("q");
    assert_eq!(switch.route(&settled[0]), Route::Wait, "whose answer it was is not known yet");
    assert_eq!(switch.route(&settled[0]), Route::Wait, "and asking changes nothing");
    assert!(!switch.close(&1.into()), "it was not open");
    assert_eq!(to(switch.route(&settled[0])), None);
}

#[test]
fn all_streams_of_a_turn_end_with_it() {
    let (mut session, mut switch) = (Session::new(), Switch::default());
    open(&mut switch, 1, Follow::turn("p"));
    open(&mut switch, 2, Follow::turn("p"));
    session.prompted("p");
    let route = switch.route(&session.ends()[0]);
    assert_eq!(route, Route::Go { to: Some((2.into(), FORM)), ended: vec![1.into(), 2.into()] });
    assert!(switch.is_empty());
}

#[test]
fn what_came_before_is_not_its_business() {
    let (mut session, mut switch) = (Session::new(), Switch::default());
    session.prompted("p");
    let (before, after) = (session.says(), session.says());
    switch.hold(1.into(), Follow::turn("p"), FORM, Cursor::default());
    switch.open(&1.into(), before[0].cursor);
    assert_eq!(to(switch.route(&before[0])), None);
    assert_eq!(to(switch.route(&after[0])), Some(1));
}

/// What happens, in any order.
#[derive(Debug, Clone)]
enum Happening {
    Prompted(u8),
    Says,
    Asks(u8),
    Settles(u8),
    Ends,
    /// A request that may have a stream: it begins a turn, answers a question, or follows the task.
    Hold(u8),
    Opens(usize),
    Fails(usize),
    Cancels(usize),
    /// Sends up to this many frames.
    Carry(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => (0..3_u8).prop_map(Happening::Prompted),
        4 => Just(Happening::Says),
        2 => (0..3_u8).prop_map(Happening::Asks),
        2 => (0..3_u8).prop_map(Happening::Settles),
        2 => Just(Happening::Ends),
        4 => (0..7_u8).prop_map(Happening::Hold),
        4 => (0..4_usize).prop_map(Happening::Opens),
        1 => (0..4_usize).prop_map(Happening::Fails),
        1 => (0..4_usize).prop_map(Happening::Cancels),
        5 => (1..6_usize).prop_map(Happening::Carry),
    ]
}

/// A connection, and the frames that its client received.
#[derive(Default)]
struct Told {
    switch: Switch,
    frames: Vec<Frame>,
    at: usize,
    held: Vec<u64>,
    open: Vec<u64>,
    told: Vec<(Cursor, Option<u64>)>,
    ends: BTreeMap<u64, usize>,
}

impl Told {
    /// Sends frames until one has to wait. Returns whether one did.
    fn carry(&mut self, most: usize) -> bool {
        for _ in 0..most {
            let Some(frame) = self.frames.get(self.at) else { return false };
            let (to, ended) = match self.switch.route(frame) {
                Route::Wait => return true,
                Route::Go { to, ended } => (to.map(|(id, _)| number(&id)), ended),
            };
            assert!(to.is_none_or(|id| self.open.contains(&id)), "a stream that is not open was told something");
            self.told.push((frame.cursor, to));
            self.at += 1;
            for id in ended.iter().map(number) {
                self.open.retain(|open| *open != id);
                *self.ends.entry(id).or_default() += 1;
            }
        }
        false
    }
}

proptest! {
    #[test]
    fn every_frame_goes_out_once_and_in_order(happenings in proptest::collection::vec(happening(), 0..80)) {
        let (mut session, mut client, mut last) = (Session::new(), Told::default(), 0_u64);
        for happening in happenings {
            match happening {
                Happening::Prompted(n) => client.frames.extend(session.prompted(&format!("p{n}"))),
                Happening::Says => client.frames.extend(session.says()),
                Happening::Asks(n) => client.frames.extend(session.asks(&format!("q{n}"))),
                Happening::Settles(n) => client.frames.extend(session.settles(&format!("q{n}"))),
                Happening::Ends => client.frames.extend(session.ends()),
                Happening::Hold(what) => {
                    last += 1;
                    let turn = session.projector.turn().map_or("p0".to_owned(), ToString::to_string);
                    let follow = match what {
                        0..=2 => Follow::turn(format!("p{what}")),
                        3..=5 => answer(&turn, &format!("q{}", what - 3)),
                        _ => task(),
                    };
                    client.switch.hold(last.into(), follow, FORM, Cursor::default());
                    client.held.push(last);
                }
                Happening::Opens(at) if at < client.held.len() => {
                    let id = client.held.remove(at);
                    client.switch.open(&id.into(), Cursor::default());
                    client.open.push(id);
                }
                Happening::Fails(at) if at < client.held.len() => {
                    let id = client.held.remove(at);
                    prop_assert!(!client.switch.close(&id.into()));
                }
                Happening::Cancels(at) if at < client.open.len() => {
                    let id = client.open.remove(at);
                    prop_assert!(client.switch.close(&id.into()));
                }
                Happening::Opens(_) | Happening::Fails(_) | Happening::Cancels(_) => {}
                Happening::Carry(most) => {
                    let waits = client.carry(most);
                    prop_assert!(!waits || !client.held.is_empty(), "nothing waits for nobody");
                }
            }
        }
        for id in std::mem::take(&mut client.held) {
            client.switch.close(&id.into());
        }
        prop_assert!(!client.carry(usize::MAX));
        let made: Vec<Cursor> = client.frames.iter().map(|frame| frame.cursor).collect();
        let told: Vec<Cursor> = client.told.iter().map(|(cursor, _)| *cursor).collect();
        prop_assert_eq!(&told, &made);
        prop_assert_eq!(told.iter().collect::<BTreeSet<_>>().len(), told.len());
        prop_assert!(client.ends.values().all(|ends| *ends == 1));
        prop_assert_eq!(client.switch.dialects().len(), client.open.len());
    }
}
