//! Whatever happens in whatever order: every client's view is the same run of numbers, each question has one ruling,
//! and the state made from the log is the live one.

use std::collections::BTreeMap;
use std::time::Duration;

use multitap_event::{Decide, Event, EventKind, Prompt, option};
use multitap_hub::{Feed, Join, JoinFrom, STUCK, State, Told, WhenBusy};
use proptest::prelude::*;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::memory::Memory;
use crate::scene::{
    Scene, asked, asked_about_command, client, edited, edited_call, ended, soon, text, turn_ended, turn_started,
};

#[derive(Debug, Clone)]
enum Happening {
    Told(u8),
    Asked(u8),
    Join {
        from: u8,
        at: u64,
    },
    Leave(usize),
    /// A client reads so many events.
    Read(usize, usize),
    Prompt(u8),
    Answer {
        question: u8,
        option: u8,
    },
    /// An answer that brings another command.
    Edit(u8),
    /// The agent judges the oldest edit that waits: it may run, or not.
    Judge(bool),
    Cancel,
    /// Time goes by.
    Wait(u64),
    /// The journal becomes slow, or quick again.
    Slow(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (0..4_u8).prop_map(Happening::Told),
        2 => (0..3_u8).prop_map(Happening::Asked),
        3 => (0..4_u8, 0..40_u64).prop_map(|(from, at)| Happening::Join { from, at }),
        1 => (0..6_usize).prop_map(Happening::Leave),
        4 => (0..6_usize, 1..20_usize).prop_map(|(who, count)| Happening::Read(who, count)),
        2 => (0..3_u8).prop_map(Happening::Prompt),
        4 => (0..4_u8, 0..3_u8).prop_map(|(question, option)| Happening::Answer { question, option }),
        4 => (0..4_u8).prop_map(Happening::Edit),
        4 => any::<bool>().prop_map(Happening::Judge),
        1 => Just(Happening::Cancel),
        1 => (0..12_000_u64).prop_map(Happening::Wait),
        1 => (0..50_u64).prop_map(Happening::Slow),
    ]
}

/// One client and what it saw.
struct Seat {
    feed: Feed,
    seen: Vec<Event>,
    /// The number of the first event it must see.
    first: u64,
}

impl Seat {
    async fn read(&mut self, most: usize) {
        for _ in 0..most {
            // Nothing more may come for a while: that is no failure.
            match tokio::time::timeout(Duration::from_millis(200), self.feed.next()).await {
                Ok(Some(Told::Event(entry))) => self.seen.push(entry.event().unwrap().clone()),
                Ok(Some(Told::Gap { after, next })) => panic!("a gap between {after} and {next}"),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn check(&self) {
        for (number, event) in (self.first..).zip(&self.seen) {
            assert_eq!(event.seq, number, "a gap or a repetition");
        }
    }
}

async fn join(scene: &Scene, from: u8, at: u64) -> Seat {
    let last = scene.session.last();
    let from = match from {
        0 => JoinFrom::Start,
        1 => JoinFrom::After { seq: at.min(last), epoch: None },
        2 => JoinFrom::Tail(at),
        _ => JoinFrom::Now,
    };
    let join = Join { patience: Some(STUCK), ..Join::new(client("someone")).from(from) };
    let joined = scene.session.join(join).await.unwrap();
    Seat { first: joined.feed.last() + 1, feed: joined.feed, seen: Vec::new() }
}

async fn play(happenings: Vec<Happening>) {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut seats: Vec<Seat> = Vec::new();
    let mut edits = JoinSet::new();
    for happening in happenings {
        match happening {
            Happening::Told(0) => scene.tells(turn_started()).await,
            Happening::Told(1) => scene.tells(turn_ended()).await,
            Happening::Told(2) => scene.tells(text(&"x".repeat(200_000))).await,
            Happening::Told(_) => scene.tells(text("x")).await,
            Happening::Asked(0) => scene.tells(asked("0")).await,
            Happening::Asked(id) => scene.tells(asked_about_command(&id.to_string())).await,
            Happening::Join { from, at } if seats.len() < 6 => seats.push(join(&scene, from, at).await),
            Happening::Join { .. } => {}
            Happening::Leave(who) if who < seats.len() => seats.swap_remove(who).check(),
            Happening::Leave(_) => {}
            Happening::Read(who, count) => {
                if let Some(seat) = seats.get_mut(who) {
                    seat.read(count).await;
                }
            }
            Happening::Prompt(when) => {
                let when = [WhenBusy::Queue, WhenBusy::Steer, WhenBusy::Interrupt][usize::from(when)];
                scene.session.prompt(Prompt::text("do"), when, client("ann")).await.ok();
            }
            Happening::Answer { question, option } => {
                let option = [option::PROCEED_ONCE, option::CANCEL, "nonsense"][usize::from(option)];
                let decide = Decide::new(&question.to_string().as_str().into(), option);
                scene.session.decide(decide, client("ann")).await.ok();
            }
            Happening::Edit(question) => {
                let (session, decide) = (scene.session.clone(), edited(&question.to_string(), "echo bye"));
                edits.spawn(async move { session.decide(decide, client("bob")).await });
                tokio::task::yield_now().await;
            }
            Happening::Judge(may_run) => {
                if let Ok(review) = scene.agent.reviews.try_recv() {
                    let verdict = if may_run { Ok(edited_call("echo bye")) } else { Err("blocked".to_owned()) };
                    review.reply.send(verdict).ok();
                }
            }
            Happening::Cancel => drop(scene.session.cancel(client("ann")).await),
            Happening::Wait(millis) => sleep(Duration::from_millis(millis)).await,
            Happening::Slow(millis) => journal.takes(Duration::from_millis(millis)),
        }
        // The agent takes what it is given.
        while scene.agent.commands.try_recv().is_ok() {}
    }
    // What nobody judges is refused in time.
    let answers = soon(edits.join_all()).await;
    scene.session.snapshot().await.unwrap();
    let live = *scene.session.snapshot().await.unwrap();
    let log: Vec<Event> = journal.log(scene.session.id()).iter().map(|entry| entry.event().unwrap().clone()).collect();
    let mut state = State::default();
    log.iter().take(usize::try_from(live.seq).unwrap()).for_each(|event| state.apply(event));
    assert_eq!(state, live);

    scene.session.end();
    let id = scene.session.id().clone();
    scene.tells(ended()).await;
    let session = scene.session.clone();
    drop(scene);
    soon(session.over()).await;
    let log: Vec<Event> = journal.log(&id).iter().map(|entry| entry.event().unwrap().clone()).collect();
    for seat in &mut seats {
        seat.read(usize::MAX).await;
        seat.check();
        for event in &seat.seen {
            assert_eq!(*event, log[usize::try_from(event.seq).unwrap() - 1]);
        }
    }
    for (number, event) in (1..).zip(&log) {
        assert_eq!(event.seq, number);
    }
    rulings(&log);
    let edited = log.iter().filter(|event| matches!(&event.kind, EventKind::PermissionSettled(it) if it.edited));
    assert_eq!(edited.count(), answers.iter().filter(|answer| answer.is_ok()).count());
}

/// Between a question and the next of its name there is at most one ruling, and none after it was withdrawn.
fn rulings(log: &[Event]) {
    let mut open: BTreeMap<&str, bool> = BTreeMap::new();
    for event in log {
        match &event.kind {
            EventKind::PermissionAsked(question) => drop(open.insert(question.question_id.as_str(), true)),
            EventKind::PermissionSettled(ruling) => {
                assert_eq!(open.insert(ruling.question_id.as_str(), false), Some(true), "a second ruling");
                assert_eq!(ruling.edited, ruling.runs.is_some(), "an edit that nobody judged");
            }
            EventKind::PermissionWithdrawn(gone) => drop(open.insert(gone.question_id.as_str(), false)),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 400, ..ProptestConfig::default() })]
    #[test]
    fn every_view_is_the_log(happenings in prop::collection::vec(happening(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(play(happenings));
    }
}
