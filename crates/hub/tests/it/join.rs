//! Joining at any point: the log from there on, then what happens; without a gap, without a repetition.

use std::time::Duration;

use multitap_event::{Door, EventKind};
use multitap_hub::{Edge, Entry, FeedEnd, Join, JoinFrom, JournalError, Part, Refusal, STUCK, Session, Told};
use tokio::time::sleep;

use crate::memory::Memory;
use crate::scene::{Scene, client, controller, next, rest, soon, text, type_of, types, until};

/// Larger than what is at hand: whoever is behind has to go on from the journal.
const LARGE: usize = 100_000;

#[tokio::test]
async fn everybody_sees_the_same_whenever_they_join() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut first = scene.join("first", JoinFrom::Start).await;
    for number in 0..200 {
        scene.tells(text(&format!("{number} {}", "x".repeat(LARGE / 10)))).await;
    }
    let mut late = scene.join("late", JoinFrom::Start).await;
    let mut middle = scene.join("middle", JoinFrom::After { seq: 100, epoch: Some(1) }).await;
    scene.agent_ends().await;
    let (first, late, middle) = (rest(&mut first).await, rest(&mut late).await, rest(&mut middle).await);
    assert_eq!(first, late);
    assert_eq!(first[100..], middle);
    assert_eq!(first.last().unwrap().seq, first.len() as u64);
}

#[tokio::test]
async fn a_late_client_may_begin_with_the_end_and_page_back() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut first = scene.join("first", JoinFrom::Start).await;
    for number in 0..50 {
        scene.tells(text(&number.to_string())).await;
    }
    while next(&mut first).await.seq < 52 {}
    let joined = scene.session.join(Join::new(client("late")).from(JoinFrom::Tail(10))).await.unwrap();
    let snapshot = joined.snapshot.unwrap();
    let mut feed = joined.feed;
    let tail = next(&mut feed).await;
    assert_eq!(tail.seq, snapshot.seq - 9);
    let part = Part { edge: Edge::Before(tail.seq), limit: 20, bytes: usize::MAX };
    let page = scene.session.page(part).await.unwrap();
    assert_eq!(page.entries.first().unwrap().seq(), tail.seq - 20);
    assert_eq!(page.entries.last().unwrap().seq(), tail.seq - 1);
}

#[tokio::test]
async fn coming_and_going_is_told() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut ann = scene.join("ann", JoinFrom::Now).await;
    let bob = scene.session.join(Join::new(client("bob")).from(JoinFrom::Now)).await.unwrap();
    let there = bob.snapshot.unwrap().clients;
    assert_eq!(there.iter().map(|client| client.client.as_str()).collect::<Vec<_>>(), ["ann", "bob"]);
    let EventKind::ClientJoined { client: joined } = next(&mut ann).await.kind else { panic!() };
    assert_eq!((joined.client.as_str(), joined.door), ("bob", Door::Library));
    assert_eq!(joined.client_id, bob.client.client_id);
    drop(bob.feed);
    let EventKind::ClientLeft { client: left, reason } = next(&mut ann).await.kind else { panic!() };
    assert_eq!((left, reason), (joined, None));
}

#[tokio::test]
async fn a_client_can_be_sent_away() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut ann = scene.join("ann", JoinFrom::Now).await;
    let bob = scene.session.join(Join::new(controller("bob")).from(JoinFrom::Now)).await.unwrap();
    let id = bob.client.client_id.unwrap();
    let mut feed = bob.feed;
    let waits = tokio::join!(soon(feed.next()), scene.session.kick(id.clone(), client("ann")));
    assert_eq!(waits, (None, Ok(())));
    assert!(matches!(feed.end(), FeedEnd::CutOff { .. }));
    until(&mut ann, "clientLeft").await;
    let again = scene.session.kick(id.clone(), client("ann")).await;
    assert_eq!(again, Err(Refusal::UnknownClient { client_id: id }));
}

/// A place beyond the end, or of a log whose end was lost: a snapshot, and plain words.
#[tokio::test]
async fn a_place_that_is_not_in_this_log_is_said() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    for (seq, epoch) in [(1000, None), (1, Some(7))] {
        let join = Join::new(client("ann")).from(JoinFrom::After { seq, epoch });
        let joined = scene.session.join(join).await.unwrap();
        let gap = joined.gap.unwrap();
        assert_eq!((gap.asked, gap.epoch), (seq, 1));
        let snapshot = joined.snapshot.unwrap();
        let mut feed = joined.feed;
        scene.tells(text("on")).await;
        assert!(next(&mut feed).await.seq == snapshot.seq + 1, "it goes on from the snapshot");
    }
    let join = Join::new(client("ann")).from(JoinFrom::After { seq: 1, epoch: Some(1) });
    assert_eq!(scene.session.join(join).await.unwrap().gap, None);
}

/// One that does not read is cut off and may come back to its place; nobody else notices.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_cut_off_and_comes_back() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut good = scene.join("good", JoinFrom::Now).await;
    let join = Join { patience: Some(STUCK), ..Join::new(client("stuck")).from(JoinFrom::Now) };
    let mut stuck = scene.session.join(join).await.unwrap().feed;
    let mut read = Vec::new();
    for number in 0..300 {
        scene.tells(text(&format!("{number} {}", "x".repeat(LARGE)))).await;
        sleep(Duration::from_millis(100)).await;
        while let Some(Told::Event(entry)) = good.try_next() {
            read.push(entry.event().unwrap().clone());
        }
    }
    assert_eq!(read.iter().filter(|event| matches!(event.kind, EventKind::TextChunk(_))).count(), 300);
    let reason = read.iter().find_map(|event| match &event.kind {
        EventKind::ClientLeft { reason, .. } => reason.clone(),
        _ => None,
    });
    assert!(reason.unwrap().contains("disconnected after event"));
    let mut seen = Vec::new();
    while let Some(Told::Event(entry)) = soon(stuck.next()).await {
        seen.push(entry.seq());
    }
    let FeedEnd::CutOff { last } = stuck.end() else { panic!("{:?}", stuck.end()) };
    let mut again = scene.join("stuck", JoinFrom::After { seq: last, epoch: None }).await;
    scene.agent_ends().await;
    seen.extend(rest(&mut again).await.iter().map(|event| event.seq));
    let first = seen[0];
    assert_eq!(seen, (first..first + seen.len() as u64).collect::<Vec<_>>());
    assert_eq!(types(&rest(&mut good).await).last().unwrap(), "sessionEnded");
}

/// One that reads slowly but reads is never cut off, however far behind it is.
#[tokio::test(start_paused = true)]
async fn a_slow_client_catches_up_from_the_journal() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let join = Join { patience: Some(STUCK), ..Join::new(client("slow")) };
    let mut slow = scene.session.join(join).await.unwrap().feed;
    for number in 0..300 {
        scene.tells(text(&format!("{number} {}", "x".repeat(LARGE)))).await;
    }
    scene.agent_ends().await;
    let mut seen = Vec::new();
    while let Some(Told::Event(entry)) = soon(slow.next()).await {
        seen.push(entry.seq());
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    assert!(seen.len() > 300);
    assert_eq!(slow.end(), FeedEnd::SessionOver);
}

/// Nor is it cut off while it takes one by one what it has at hand.
#[tokio::test(start_paused = true)]
async fn a_client_that_takes_an_event_now_and_then_reads() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let join = Join { patience: Some(STUCK), ..Join::new(client("slow")) };
    let mut slow = scene.session.join(join).await.unwrap().feed;
    for number in 0..200 {
        scene.tells(text(&number.to_string())).await;
    }
    for seq in 1..=200 {
        assert_eq!(next(&mut slow).await.seq, seq);
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(scene.session.snapshot().await.unwrap().clients.len(), 1);
}

/// Its time does not run while there is nothing to read: an event after a long silence finds it well.
#[tokio::test(start_paused = true)]
async fn a_client_with_nothing_to_read_is_not_stuck() {
    let journal = Memory::new();
    for _ in 0..20 {
        let scene = Scene::kept(&journal).await;
        let join = Join { patience: Some(STUCK), ..Join::new(client("idle")) };
        let mut idle = scene.session.join(join).await.unwrap().feed;
        let mut reading = tokio::task::JoinSet::new();
        reading.spawn(async move {
            rest(&mut idle).await;
            idle.end()
        });
        for _ in 0..5 {
            // Just when it is looked at who reads.
            sleep(Duration::from_secs(15)).await;
            scene.tells(text("at last")).await;
        }
        sleep(Duration::from_secs(2)).await;
        scene.agent_ends().await;
        assert_eq!(reading.join_all().await, [FeedEnd::SessionOver]);
    }
}

/// Where nothing is kept as well: a page ends just before its place, however little fits into it.
#[tokio::test]
async fn a_page_before_a_place_ends_there() {
    let scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    for _ in 0..20 {
        scene.tells(text(&"x".repeat(1000))).await;
    }
    let mut last = 0;
    while last < 22 {
        last = scene.session.last();
        tokio::task::yield_now().await;
    }
    let part = Part { edge: Edge::Before(last), limit: 10, bytes: 8000 };
    let page = scene.session.page(part).await.unwrap();
    let numbers: Vec<u64> = page.entries.iter().map(Entry::seq).collect();
    assert!((2..10).contains(&numbers.len()), "{numbers:?}");
    assert_eq!(numbers, (last - numbers.len() as u64..last).collect::<Vec<_>>());
    assert_eq!(next(&mut feed).await.seq, 1, "nothing was read yet");
}

#[tokio::test]
async fn what_is_at_hand_can_be_taken_without_waiting() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    let mut other = scene.join("bob", JoinFrom::Now).await;
    scene.tells(text("a")).await;
    scene.tells(text("b")).await;
    until(&mut other, "textChunk").await;
    until(&mut other, "textChunk").await;
    let mut seen = Vec::new();
    while let Some(Told::Event(entry)) = feed.try_next() {
        seen.push(type_of(entry.event().unwrap()));
    }
    assert_eq!(seen, ["clientJoined", "textChunk", "textChunk"]);
}

/// Those who look on unannounced take places too, and leave them when they go.
#[tokio::test]
async fn so_many_may_read_at_once_announced_or_not() {
    let scene = Scene::new().await;
    let unseen = |number: usize| Join { announce: false, ..Join::new(client(&number.to_string())) };
    let mut feeds = Vec::new();
    let full = loop {
        match scene.session.join(unseen(feeds.len())).await {
            Ok(joined) => feeds.push(joined.feed),
            Err(error) => break error,
        }
        assert!(feeds.len() < 10_000, "there is no limit");
    };
    assert_eq!(full, Refusal::TooManyClients);
    feeds.pop();
    scene.session.join(Join::new(client("seen"))).await.unwrap();
}

/// All of a log, read in pages from its start and from its end.
async fn paged(session: &Session, limit: usize) -> [Vec<u64>; 2] {
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    loop {
        let edge = Edge::After(forward.last().copied().unwrap_or(0));
        let page = session.page(Part { edge, limit, bytes: usize::MAX }).await.unwrap();
        assert_eq!(page.last_seq, session.last());
        if page.entries.is_empty() {
            break;
        }
        forward.extend(page.entries.iter().map(Entry::seq));
    }
    loop {
        let edge = Edge::Before(backward.last().copied().unwrap_or(session.last() + 1));
        let page = session.page(Part { edge, limit, bytes: usize::MAX }).await.unwrap();
        if page.entries.is_empty() {
            break;
        }
        backward.extend(page.entries.iter().rev().map(Entry::seq));
    }
    backward.reverse();
    [forward, backward]
}

/// Part of the log is on the disk only, part of it in memory only: pages have both, and nothing twice.
#[tokio::test]
async fn a_page_has_what_could_not_be_kept() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    for large in [true, false] {
        for number in 0..30 {
            let size = if large { LARGE } else { 1 };
            scene.tells(text(&format!("{number} {}", "x".repeat(size)))).await;
            until(&mut feed, "textChunk").await;
        }
        journal.fails(Some(JournalError::Full));
    }
    let last = scene.session.last();
    assert!((journal.log(scene.session.id()).len() as u64) < last);
    for limit in [7, 1000] {
        let [forward, backward] = paged(&scene.session, limit).await;
        assert_eq!(forward, (1..=last).collect::<Vec<_>>());
        assert_eq!(backward, (1..=last).collect::<Vec<_>>());
    }
}

/// Not even the log was begun.
#[tokio::test]
async fn a_page_of_a_log_that_could_not_be_begun() {
    let journal = Memory::new();
    journal.fails(Some(JournalError::Full));
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(text("a")).await;
    until(&mut feed, "textChunk").await;
    let last = scene.session.last();
    let [forward, backward] = paged(&scene.session, 2).await;
    assert_eq!(forward, (1..=last).collect::<Vec<_>>());
    assert_eq!(backward, forward);
}
