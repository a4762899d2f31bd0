//! What clients that do not read keep in memory: counted event by event, not guessed from the size of the process.

use std::sync::{Arc, Weak};

use multitap_event::{Draft, Timestamp};
use multitap_hub::{Feed, FeedEnd, JoinFrom, Told};

use crate::memory::Memory;
use crate::scene::{Scene, next, soon, text};

/// How many events are told.
const EVENTS: u64 = 5000;
/// How large each is, about, in one of its two forms: as an event, and as its JSON.
const BYTES: usize = 1000;
/// How many clients stall.
const STALLED: usize = 8;
/// What the end of the log takes up that is at hand for all, and what one client may have taken of it at most.
const AT_HAND: usize = 1024 * 1024;
const TAKEN: usize = 256 * 1024;

/// Tells many events, of which `good` reads each. Gives the bytes of those that somebody still holds.
async fn flood(scene: &Scene, good: &mut Feed) -> usize {
    let mut told: Vec<Weak<str>> = Vec::new();
    for _ in 0..EVENTS {
        let line: Arc<str> = "x".repeat(BYTES).into();
        told.push(Arc::downgrade(&line));
        let draft = Draft { raw: vec![line], ..Draft::new(Timestamp::now(), text("")) };
        scene.agent.events.send(draft).await.unwrap();
        next(good).await;
    }
    // What was read last is on its way out of the session still.
    tokio::task::yield_now().await;
    told.iter().filter(|line| line.strong_count() > 0).count() * 2 * BYTES
}

#[tokio::test]
async fn clients_that_do_not_read_hold_next_to_nothing() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut good = scene.join("good", JoinFrom::Now).await;
    let alone = flood(&scene, &mut good).await;
    assert!((1..=AT_HAND).contains(&alone), "{alone} bytes without anybody who stalls");

    let mut stalled = Vec::new();
    for number in 0..STALLED {
        stalled.push(scene.join(&format!("stalled {number}"), JoinFrom::Now).await);
    }
    for _ in 0..STALLED {
        next(&mut good).await;
    }
    // Half of them stop in the midst of what they have taken, the others never come.
    for _ in 0..200 {
        scene.tells(text(&"x".repeat(BYTES))).await;
        next(&mut good).await;
    }
    for feed in stalled.iter_mut().take(STALLED / 2) {
        next(feed).await;
    }
    journal.reads.lock().unwrap().clear();
    let held = flood(&scene, &mut good).await;
    assert!(held <= alone + STALLED * TAKEN, "{held} bytes, {alone} without those who stall");
    assert_eq!(*journal.reads.lock().unwrap(), [0; 0], "nothing is read for those who do not ask");

    // They read on without a gap, and take no more at a time.
    let last = scene.session.last();
    for feed in &mut stalled {
        let mut seen = feed.last();
        while seen < last {
            let Some(Told::Event(entry)) = soon(feed.next()).await else { panic!("{:?}", feed.end()) };
            assert_eq!(entry.seq(), seen + 1);
            seen = entry.seq();
        }
        assert_eq!(feed.end(), FeedEnd::SessionOver);
    }
    let largest = journal.reads.lock().unwrap().iter().copied().max().unwrap();
    assert!(largest * BYTES <= TAKEN, "{largest} entries at a time");
}
