//! Nothing is told, acknowledged or handed to the agent before it is in the log; and what happens when it cannot be.

use std::time::Duration;

use multitap_event::{Command, Event, EventKind, Prompt, SessionConfig, SystemSubtype};
use multitap_hub::{Filter, Join, JoinFrom, Journal as _, JournalError, Linger, Open, OpenError, Refusal, WhenBusy};
use tokio::time::{sleep, timeout};

use crate::memory::Memory;
use crate::scene::{Scene, Stage, client, config, next, open, rest, soon, stored, text, type_of, types, until};

#[tokio::test(start_paused = true)]
async fn nobody_hears_what_is_not_kept() {
    let journal = Memory::new();
    let mut scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    journal.takes(Duration::from_secs(5));
    let session = scene.session.clone();
    let prompt = session.prompt(Prompt::text("one"), WhenBusy::Queue, client("ann"));
    let mut prompt = std::pin::pin!(prompt);
    timeout(Duration::from_secs(4), &mut prompt).await.unwrap_err();
    assert!(scene.agent.commands.try_recv().is_err(), "the agent has it before the log");
    timeout(Duration::from_millis(1), feed.next()).await.unwrap_err();
    let kept = journal.log(scene.session.id()).len();
    prompt.await.unwrap();
    assert_eq!(journal.log(scene.session.id()).len(), kept + 1);
    assert!(matches!(scene.hears().await, Command::Prompt(_)));
    assert_eq!(type_of(&next(&mut feed).await), "userMessage");
}

/// While one batch is on its way the next one gathers: many events, few writes.
#[tokio::test(start_paused = true)]
async fn what_gathers_is_kept_together() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    let before = *journal.writes.lock().unwrap();
    journal.takes(Duration::from_millis(10));
    for number in 0..1000 {
        scene.tells(text(&number.to_string())).await;
    }
    for _ in 0..1000 {
        until(&mut feed, "textChunk").await;
    }
    let after = *journal.writes.lock().unwrap();
    assert!(after.0 - before.0 < 50, "{} writes", after.0 - before.0);
    assert_eq!(after.1, before.1, "text is not worth a flush");
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_said_and_the_session_goes_on_and_is_kept_again() {
    let journal = Memory::new();
    let mut scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    journal.fails(Some(JournalError::Full));
    scene.prompt("one").await;
    assert_eq!(scene.hears_prompt().await.text, "one");
    let note = until(&mut feed, "system").await;
    let EventKind::System(note) = note.kind else { panic!() };
    assert_eq!(note.subtype, SystemSubtype::LOG);
    assert!(note.message.unwrap().contains("disk is full"));
    assert_eq!(note.data["durable"], false);
    for number in 0..100 {
        scene.tells(text(&number.to_string())).await;
    }
    // Somebody who joins now gets what is in memory.
    let mut late = scene.join("late", JoinFrom::Start).await;
    journal.fails(None);
    sleep(Duration::from_secs(10)).await;
    scene.tells(text("kept")).await;
    let id = scene.session.id().clone();
    scene.agent_ends().await;
    let (seen, late) = (rest(&mut feed).await, rest(&mut late).await);
    assert!(types(&seen).contains(&"system".to_owned()), "kept again is said too");
    assert_eq!(late.last(), seen.last());
    let kept = journal.log(&id);
    assert_eq!(kept.len() as u64, seen.last().unwrap().seq, "nothing was lost");
}

#[tokio::test]
async fn a_log_that_cannot_be_begun_does_not_stop_the_session() {
    let journal = Memory::new();
    journal.fails(Some(JournalError::Damaged("header".into())));
    let mut scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    assert_eq!(type_of(&next(&mut feed).await), "sessionStarted");
    let EventKind::System(note) = next(&mut feed).await.kind else { panic!() };
    assert!(note.message.unwrap().contains("damaged"));
    scene.prompt("one").await;
    assert_eq!(scene.hears_prompt().await.text, "one");
}

/// There is room again, at the latest when it ends: nothing of it was lost.
#[tokio::test(start_paused = true)]
async fn a_log_that_could_not_be_begun_is_begun_when_there_is_room() {
    for while_it_runs in [true, false] {
        let journal = Memory::new();
        journal.fails(Some(JournalError::Full));
        let scene = Scene::kept(&journal).await;
        let mut feed = scene.join("ann", JoinFrom::Start).await;
        for number in 0..100 {
            scene.tells(text(&number.to_string())).await;
        }
        sleep(Duration::from_secs(22)).await;
        assert!(journal.list(Filter::default()).await.unwrap().is_empty());
        journal.fails(None);
        if while_it_runs {
            sleep(Duration::from_secs(10)).await;
            scene.tells(text("kept")).await;
        }
        let id = scene.session.id().clone();
        scene.agent_ends().await;
        let seen = rest(&mut feed).await;
        let again = |event: &&Event| matches!(&event.kind, EventKind::System(note) if note.data["durable"] == true);
        assert_eq!(seen.iter().filter(again).count(), usize::from(while_it_runs), "kept again is said");
        let kept: Vec<Event> = journal.log(&id).iter().map(|entry| entry.event().unwrap().clone()).collect();
        assert_eq!(kept, seen);
        let record = journal.list(Filter::default()).await.unwrap().remove(0);
        assert_eq!(record.about.native_id.as_deref(), Some("native"));
        // It was let go of, and can be taken up.
        drop(Stage::new(Some(journal.clone())).open(stored()).await);
    }
}

/// Nothing is left of a session whose agent did not start, whatever the log did meanwhile.
#[tokio::test(start_paused = true)]
async fn a_session_that_neither_began_nor_was_kept_leaves_nothing() {
    let journal = Memory::new();
    journal.fails(Some(JournalError::Full));
    let stage = Stage::new(Some(journal.clone()));
    let config = SessionConfig { model: Some("broken".into()), ..config() };
    let opened = stage.hub.open(Open { config, ..open() }).await;
    assert!(matches!(opened, Err(OpenError::Launch(_))), "{opened:?}");
    assert!(journal.list(Filter::default()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_session_that_another_process_took_ends_here() {
    let journal = Memory::new();
    let stage = Stage::new(Some(journal.clone()));
    let mut scene = stage.open(Open { linger: Linger::UntilClosed, ..open() }).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    journal.steal(scene.session.id());
    scene.tells(text("x")).await;
    let error = until(&mut feed, "error").await;
    assert!(matches!(error.kind, EventKind::Error(error) if error.message.contains("another process")));
    assert_eq!(soon(scene.agent.commands.recv()).await, None, "its agent goes");
    scene.agent_ends().await;
}

/// What the other process's log does not have, the agent here does not get: it may be sent from there.
#[tokio::test]
async fn a_session_that_was_lost_hands_nothing_over() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    journal.steal(scene.session.id());
    let prompt = Prompt::text("twice?");
    assert_eq!(scene.session.prompt(prompt, WhenBusy::Queue, client("ann")).await, Err(Refusal::SessionEnded));
    assert_eq!(soon(scene.agent.commands.recv()).await, None);
    scene.agent_ends().await;
}

/// The journal kept it and could not say so: it is handed in again, and stands there once.
#[tokio::test(start_paused = true)]
async fn what_was_kept_after_all_is_kept_once() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    journal.is_unclear();
    journal.fails(Some(JournalError::Other("nobody knows".into())));
    for number in 0..10 {
        scene.tells(text(&number.to_string())).await;
        until(&mut feed, "textChunk").await;
    }
    journal.fails(None);
    sleep(Duration::from_secs(10)).await;
    let id = scene.session.id().clone();
    scene.agent_ends().await;
    let last = rest(&mut feed).await.last().unwrap().seq;
    let kept: Vec<u64> = journal.log(&id).iter().map(multitap_hub::Entry::seq).collect();
    assert_eq!(kept, (1..=last).collect::<Vec<_>>());
}

/// Numbers that somebody saw and that are not in the log are used again: a place of that time is not good any more.
#[tokio::test(start_paused = true)]
async fn what_was_lost_with_a_full_disk_is_a_gap_to_those_who_saw_it() {
    for killed in [false, true] {
        let journal = Memory::new();
        let scene = Scene::lingering(&journal).await;
        let mut feed = scene.join("ann", JoinFrom::Now).await;
        journal.fails(Some(JournalError::Full));
        for number in 0..10 {
            scene.tells(text(&number.to_string())).await;
        }
        let mut seen = 0;
        while seen < 10 {
            seen += usize::from(type_of(&next(&mut feed).await) == "textChunk");
        }
        let (place, epoch) = (scene.session.last(), scene.session.epoch());
        let id = scene.session.id().clone();
        if killed {
            std::mem::forget(scene);
            journal.dies();
        } else {
            scene.session.end();
            scene.agent_ends().await;
        }
        journal.fails(None);
        let again = Stage::new(Some(journal.clone())).open(stored()).await;
        assert_eq!(again.session.epoch(), epoch + 1, "killed: {killed}");
        for number in 0..100 {
            again.tells(text(&number.to_string())).await;
        }
        let mut tail = again.join("bob", JoinFrom::Start).await;
        while next(&mut tail).await.seq < place {}
        let from = JoinFrom::After { seq: place, epoch: Some(epoch) };
        let joined = again.session.join(Join::new(client("ann")).from(from)).await.unwrap();
        assert_eq!(joined.gap.unwrap().asked, place, "killed: {killed}");
        assert!(joined.snapshot.is_some());
        assert_eq!(journal.find(id.to_string()).await.unwrap()[0].epoch, epoch + 1);
    }
}

/// The disk has room again when the session ends, and nobody had noticed yet.
#[tokio::test(start_paused = true)]
async fn the_end_is_kept_if_it_can_be() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    journal.fails(Some(JournalError::Full));
    scene.tells(text("one")).await;
    until(&mut feed, "textChunk").await;
    journal.fails(None);
    let (id, epoch) = (scene.session.id().clone(), scene.session.epoch());
    scene.agent_ends().await;
    let last = rest(&mut feed).await.pop().unwrap();
    assert_eq!(type_of(&last), "sessionEnded");
    assert_eq!(journal.log(&id).len() as u64, last.seq);
    let record = journal.find(id.to_string()).await.unwrap().remove(0);
    assert!(!record.about.open);
    assert_eq!(journal.claim(id).await.unwrap().record.epoch, epoch);
}
