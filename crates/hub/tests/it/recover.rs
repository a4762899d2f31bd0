//! After a crash: what was cut off is marked, a waiting prompt still waits, nothing is sent twice.

use std::time::Duration;

use multitap_event::{Decide, EventKind, SessionEndReason, SessionId, TurnStatus, option};
use multitap_hub::{Filter, Journal as _, JournalError, Linger, Open, OpenError, State, Which};

use tokio::time::{sleep, timeout};

use crate::memory::Memory;
use crate::scene::{
    Scene, Stage, asked, client, config, open, rest, soon, stored, text, turn_ended, turn_started, type_of, types,
    until,
};
use multitap_hub::JoinFrom;

/// A session that is in the middle of everything when its process is gone.
async fn crashed(journal: &std::sync::Arc<Memory>) -> SessionId {
    crashed_as(journal, "s").await
}

async fn crashed_as(journal: &std::sync::Arc<Memory>, id: &str) -> SessionId {
    let which = Which::New { id: id.into(), forked_from: None, history: None };
    let open = Open { which, linger: Linger::UntilClosed, ..open() };
    let mut scene = Stage::new(Some(journal.clone())).open(open).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.prompt("one").await;
    scene.hears_prompt().await;
    scene.tells(turn_started()).await;
    scene.tells(asked("q")).await;
    until(&mut feed, "permissionAsked").await;
    scene.prompt("two").await;
    let id = scene.session.id().clone();
    // As if by SIGKILL: nothing of this hub writes any more.
    journal.dies();
    journal.steal(&id);
    std::mem::forget(scene);
    journal.dies();
    id
}

#[tokio::test]
async fn what_was_cut_off_is_marked_once() {
    let journal = Memory::new();
    let id = crashed(&journal).await;
    let before = journal.log(&id).len();
    let stage = Stage::new(Some(journal.clone()));
    assert_eq!(stage.hub.list(Filter { interrupted: true, ..Filter::default() }).await.unwrap().len(), 1);
    assert_eq!(stage.hub.recover().await, Ok(1));
    assert_eq!(stage.hub.recover().await, Ok(0));
    let log = journal.log(&id);
    let added: Vec<_> = log[before..].iter().map(|entry| entry.event().unwrap().clone()).collect();
    assert_eq!(types(&added), ["permissionWithdrawn", "turnCompleted", "sessionEnded", "clientLeft"]);
    assert!(matches!(&added[1].kind, EventKind::TurnCompleted(end) if end.status == TurnStatus::Interrupted));
    assert!(matches!(&added[2].kind, EventKind::SessionEnded(end) if end.reason == SessionEndReason::Failed));
}

#[tokio::test]
async fn a_waiting_prompt_runs_when_the_session_is_taken_up_and_the_other_is_not_sent_again() {
    let journal = Memory::new();
    let id = crashed(&journal).await;
    let stage = Stage::new(Some(journal.clone()));
    let mut scene = stage.open(Open { linger: Linger::UntilClosed, ..stored() }).await;
    assert_eq!(scene.hears_prompt().await.text, "two");
    scene.tells(turn_ended()).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.session.end();
    scene.agent_ends().await;
    let events = rest(&mut feed).await;
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let said = events.iter().filter_map(|event| match &event.kind {
        EventKind::UserMessage(message) => Some(message.content.as_str()),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(journal.log(&id).len(), events.len());
}

/// Whoever takes it up with a prompt comes after those who have waited.
#[tokio::test]
async fn what_has_waited_comes_before_the_next_prompt() {
    let journal = Memory::new();
    crashed(&journal).await;
    let open = Open { config: config().with_prompt("three"), ..stored() };
    let mut scene = Stage::new(Some(journal.clone())).open(open).await;
    scene.prompt("four").await;
    for prompt in ["two", "three", "four"] {
        assert_eq!(scene.hears_prompt().await.text, prompt);
        scene.tells(turn_ended()).await;
    }
}

/// Of those who saw the end it is not said that something cut them off.
#[tokio::test]
async fn whoever_stayed_to_the_end_just_left() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.agent_ends().await;
    let seen = rest(&mut feed).await;
    drop(feed);
    let scene = Stage::new(Some(journal.clone())).open(stored()).await;
    let mut feed = scene.join("bob", JoinFrom::After { seq: seen.len() as u64, epoch: None }).await;
    let left = until(&mut feed, "clientLeft").await;
    assert!(matches!(left.kind, EventKind::ClientLeft { client, reason: None } if client.client == "ann"));
}

#[tokio::test]
async fn a_session_has_one_process() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    assert!(matches!(scene.stage.hub.open(stored()).await, Err(OpenError::Live(_))));
    let other = Stage::new(Some(journal.clone()));
    let error = other.hub.open(stored()).await.unwrap_err();
    assert!(matches!(error, OpenError::Journal(JournalError::LiveElsewhere { .. })), "{error}");
    let which = Which::Stored("nobody".into());
    let error = other.hub.open(Open { which, ..Open::new(config(), client("x")) }).await.unwrap_err();
    assert_eq!(error, OpenError::Journal(JournalError::NoSuchSession("nobody".into())));
}

#[tokio::test]
async fn what_was_said_elsewhere_comes_first() {
    let journal = Memory::new();
    let draft = |kind| multitap_event::Draft::new(crate::memory::now(), kind);
    let (told, history) = tokio::sync::mpsc::channel(4000);
    for number in 0..3000 {
        told.send(draft(text(&number.to_string()))).await.unwrap();
    }
    drop(told);
    let which = Which::New { id: "s".into(), forked_from: None, history: Some(history) };
    let scene = Stage::new(Some(journal.clone())).open(Open { which, ..open() }).await;
    assert_eq!(scene.session.opened_after(), 3000);
    let mut feed = scene.join("ann", JoinFrom::After { seq: scene.session.opened_after(), epoch: None }).await;
    assert_eq!(until(&mut feed, "sessionStarted").await.seq, 3001);
}

/// A copy of a session that goes on: what runs and waits there does neither here.
#[tokio::test]
async fn what_is_open_elsewhere_is_over_in_the_copy() {
    let journal = Memory::new();
    let first = crashed(&journal).await;
    let (told, history) = tokio::sync::mpsc::channel(100);
    for entry in journal.log(&first) {
        let event = entry.event().unwrap().clone();
        told.send(multitap_event::Draft::new(event.timestamp, event.kind)).await.unwrap();
    }
    drop(told);
    let which = Which::New { id: "copy".into(), forked_from: Some(first.clone()), history: Some(history) };
    let mut scene = Stage::new(Some(journal.clone())).open(Open { which, ..open() }).await;
    scene.prompt("three").await;
    assert_eq!(scene.hears_prompt().await.text, "three", "and not what waits elsewhere");
    let copied: Vec<_> = journal.log(scene.session.id()).iter().map(|entry| entry.event().unwrap().clone()).collect();
    let of_copy = &copied[..usize::try_from(scene.session.opened_after()).unwrap()];
    let added = types(&of_copy[journal.log(&first).len()..]);
    assert_eq!(added, ["permissionWithdrawn", "turnCompleted", "sessionEnded", "clientLeft", "promptWithdrawn"]);
}

/// However long it takes to tell, whoever wants to leave does not wait for it.
#[tokio::test]
async fn a_history_without_end_does_not_hold_up_the_end() {
    let stage = Stage::new(Some(Memory::new()));
    let (_told, history) = tokio::sync::mpsc::channel(1);
    let which = Which::New { id: "s".into(), forked_from: None, history: Some(history) };
    let leave = async {
        tokio::task::yield_now().await;
        stage.hub.shutdown().await;
    };
    let opening = Box::pin(stage.hub.open(Open { which, ..open() }));
    let (opened, ()) = soon(async { tokio::join!(opening, leave) }).await;
    assert!(matches!(opened, Err(OpenError::ShutDown)), "{opened:?}");
}

/// A long log is not read from its start: the state is kept now and then, and is the same.
#[tokio::test]
async fn the_state_is_kept_and_is_that_of_the_log() {
    let journal = Memory::new();
    let scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    for number in 0..2500 {
        scene.tells(text(&number.to_string())).await;
    }
    for _ in 0..2500 {
        until(&mut feed, "textChunk").await;
    }
    let id = scene.session.id().clone();
    let kept = journal.checkpoint(&id).unwrap();
    let mut state = State::default();
    for entry in journal.log(&id).iter().take(usize::try_from(kept.seq).unwrap()) {
        state.apply(entry.event().unwrap());
    }
    assert_eq!(serde_json::from_str::<State>(&kept.state).unwrap(), state);
    let live = *scene.session.snapshot().await.unwrap();
    journal.dies();
    let claim = journal.claim(id).await.unwrap();
    let dynamic: std::sync::Arc<dyn multitap_hub::Journal> = journal.clone();
    assert_eq!(multitap_hub::rebuild(&dynamic, &claim).await.unwrap(), live);
}

/// However long the log: what is read to take it up, and the state that is kept, do not grow with it.
#[tokio::test]
async fn a_long_log_is_taken_up_as_fast_as_a_short_one() {
    let mut costs = Vec::new();
    for turns in [7, 77] {
        let journal = Memory::new();
        let scene = Scene::lingering(&journal).await;
        let mut feed = scene.join("ann", JoinFrom::Start).await;
        for _ in 0..turns {
            scene.tells(turn_started()).await;
            for number in 0..198 {
                scene.tells(text(&number.to_string())).await;
            }
            scene.tells(turn_ended()).await;
            until(&mut feed, "turnCompleted").await;
        }
        let id = scene.session.id().clone();
        let state = journal.checkpoint(&id).unwrap().state.len();
        journal.dies();
        journal.steal(&id);
        std::mem::forget(scene);
        journal.dies();
        journal.reads.lock().unwrap().clear();
        drop(Stage::new(Some(journal.clone())).open(stored()).await);
        let read: usize = journal.reads.lock().unwrap().iter().sum();
        assert!(read <= 1000, "{read} of {} entries were read", journal.log(&id).len());
        costs.push((read, state));
    }
    let [(read, state), (read_long, state_long)] = costs[..] else { panic!() };
    assert!(read_long <= read + 200, "{read} entries, then {read_long}");
    assert!(state_long <= state + 100, "{state} bytes, then {state_long}");
}

/// Whoever stops waiting leaves nothing that only the end of the process would free.
#[tokio::test(start_paused = true)]
async fn an_opening_that_nobody_waits_for_lets_the_log_go() {
    // While the log is claimed, and while what was cut off is marked in it.
    for patience in [1, 7] {
        let journal = Memory::new();
        crashed(&journal).await;
        let stage = Stage::new(Some(journal.clone()));
        journal.takes(Duration::from_secs(5));
        timeout(Duration::from_secs(patience), Box::pin(stage.hub.open(stored()))).await.unwrap_err();
        sleep(Duration::from_secs(60)).await;
        journal.takes(Duration::ZERO);
        stage.open(stored()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_beginning_that_nobody_waits_for_leaves_no_log() {
    let journal = Memory::new();
    let stage = Stage::new(Some(journal.clone()));
    journal.takes(Duration::from_secs(5));
    timeout(Duration::from_secs(1), Box::pin(stage.hub.open(open()))).await.unwrap_err();
    sleep(Duration::from_secs(60)).await;
    assert!(journal.list(Filter::default()).await.unwrap().is_empty());
    assert!(stage.hub.live().is_empty());
}

#[tokio::test(start_paused = true)]
async fn mending_that_nobody_waits_for_lets_the_log_go() {
    let journal = Memory::new();
    crashed(&journal).await;
    let stage = Stage::new(Some(journal.clone()));
    journal.takes(Duration::from_secs(5));
    timeout(Duration::from_secs(7), stage.hub.recover()).await.unwrap_err();
    sleep(Duration::from_secs(60)).await;
    journal.takes(Duration::ZERO);
    stage.open(stored()).await;
}

#[tokio::test]
async fn a_log_that_cannot_be_mended_does_not_keep_the_others_from_it() {
    let journal = Memory::new();
    let damaged = crashed_as(&journal, "a").await;
    let sound = crashed_as(&journal, "b").await;
    journal.is_damaged(&damaged);
    let before = journal.log(&sound).len();
    assert_eq!(Stage::new(Some(journal.clone())).hub.recover().await, Ok(1));
    assert!(journal.log(&sound).len() > before);
}

/// Somebody ruled once: the copy shows it, and the audit trail has it where it happened.
#[tokio::test]
async fn a_copy_makes_no_ruling_again() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(asked("q")).await;
    until(&mut feed, "permissionAsked").await;
    let ruling = scene.session.decide(Decide::new(&"q".into(), option::CANCEL), client("ann")).await.unwrap();
    let (told, history) = tokio::sync::mpsc::channel(100);
    for event in journal.log(scene.session.id()).iter().filter_map(|entry| entry.event().cloned()) {
        told.send(multitap_event::Draft::new(event.timestamp, event.kind)).await.unwrap();
    }
    drop(told);
    let which = Which::New { id: "copy".into(), forked_from: Some("s".into()), history: Some(history) };
    let copy = Stage::new(Some(journal.clone())).open(Open { which, ..open() }).await;
    let copied = journal.log(copy.session.id());
    assert!(copied.iter().any(|entry| type_of(entry.event().unwrap()) == "permissionSettled"));
    assert_eq!(journal.rulings("copy".into()).await.unwrap(), []);
    assert_eq!(journal.rulings("s".into()).await.unwrap(), [ruling]);
}
