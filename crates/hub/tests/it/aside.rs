//! Clients that are there and read nothing: they are told when they are cut off, and nobody waits for them.

use std::time::Duration;

use multitap_event::EventKind;
use multitap_hub::{FeedEnd, Join, JoinFrom, STUCK, Told};
use tokio::time::{sleep, timeout};

use crate::memory::Memory;
use crate::scene::{Scene, asked, client, controller, next, rest, soon, text, until};

/// What is told in all is more than waits in memory for somebody who reads.
const LARGE: usize = 100_000;
const EVENTS: usize = 100;

#[tokio::test]
async fn it_hears_that_it_was_sent_away() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut ann = scene.join("ann", JoinFrom::Now).await;
    let bob = scene.session.join(Join::new(controller("bob")).from(JoinFrom::Now)).await.unwrap();
    let (id, mut feed) = (bob.client.client_id.unwrap(), bob.feed);
    let (last, kick) = (feed.last(), scene.session.kick(id, client("ann")));
    assert_eq!(tokio::join!(soon(feed.until_cut()), kick), (FeedEnd::CutOff { last }, Ok(())));
    let EventKind::ClientLeft { client: left, .. } = until(&mut ann, "clientLeft").await.kind else { panic!() };
    assert_eq!(left.client, "bob");
    assert_eq!(soon(feed.until_cut()).await, FeedEnd::CutOff { last }, "it stays so");
}

#[tokio::test]
async fn it_hears_that_the_session_is_over() {
    let scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let (end, _) = tokio::join!(soon(feed.until_cut()), scene.agent_ends());
    assert_eq!(end, FeedEnd::SessionOver);
    assert_eq!(soon(feed.until_cut()).await, FeedEnd::SessionOver, "it stays so");
}

/// Where nothing is kept, the agent waits for those who read, and only for them.
#[tokio::test]
async fn nobody_waits_for_it_where_nothing_is_kept() {
    let scene = Scene::new().await;
    let mut aside = scene.join("aside", JoinFrom::Start).await;
    let mut reads = scene.join("reads", JoinFrom::Start).await;
    let mut there = tokio::task::JoinSet::new();
    there.spawn(async move { (aside.until_cut().await, aside) });
    let session = scene.session.clone();
    let reading = async {
        for number in 0..EVENTS {
            until(&mut reads, "textChunk").await;
            if number == EVENTS / 2 {
                // It is still one of those who are there.
                assert_eq!(session.snapshot().await.unwrap().clients.len(), 2);
            }
        }
    };
    let telling = async {
        for _ in 0..EVENTS {
            scene.tells(text(&"x".repeat(LARGE))).await;
        }
    };
    soon(async { tokio::join!(telling, reading) }).await;
    scene.agent_ends().await;
    let (end, mut aside) = soon(there.join_next()).await.unwrap().unwrap();
    assert_eq!(end, FeedEnd::SessionOver);
    // If it wants to read after all, it hears what it cannot have.
    assert!(matches!(soon(aside.next()).await, Some(Told::Gap { after: 0, .. })));
}

/// Where events are lost the state is not: what was asked meanwhile still waits for an answer.
#[tokio::test]
async fn what_was_asked_in_a_gap_is_in_the_snapshot() {
    let scene = Scene::new().await;
    let mut reader = scene.join("reads", JoinFrom::Start).await;
    let mut aside = scene.join("aside", JoinFrom::Start).await;
    assert!(timeout(Duration::from_millis(1), aside.until_cut()).await.is_err());
    scene.tells(asked("q")).await;
    scene.tells(text("after it")).await;
    until(&mut reader, "textChunk").await;
    let Some(Told::Gap { after: 0, next: first }) = soon(aside.next()).await else { panic!("nothing is kept") };
    let snapshot = scene.session.snapshot().await.unwrap();
    let open: Vec<&str> = snapshot.questions.open().iter().map(|question| question.question_id.as_str()).collect();
    assert_eq!(open, ["q"]);
    assert!(snapshot.seq + 1 >= first, "it has all that is lost");
    scene.tells(text("on")).await;
    assert_eq!(next(&mut aside).await.seq, first);
}

/// The agent that waits for a client goes on as soon as the client wants nothing more.
#[tokio::test]
async fn standing_aside_lets_the_agent_go_on() {
    let scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let telling = async {
        for _ in 0..EVENTS * 10 {
            scene.tells(text(&"x".repeat(LARGE))).await;
        }
    };
    let mut telling = std::pin::pin!(telling);
    assert!(timeout(Duration::from_millis(200), &mut telling).await.is_err(), "it waits for whoever reads");
    tokio::select! {
        end = feed.until_cut() => panic!("{end:?}"),
        () = soon(&mut telling) => {}
    }
}

/// Not while it waits, and not between: a door has other things to do.
#[tokio::test(start_paused = true)]
async fn it_is_never_stuck_and_reads_on_if_it_wants_to() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let join = Join { patience: Some(STUCK), ..Join::new(client("aside")) };
    let mut feed = scene.session.join(join).await.unwrap().feed;
    assert_eq!(next(&mut feed).await.seq, 1);
    for number in 0..60 {
        assert!(timeout(Duration::from_millis(1), feed.until_cut()).await.is_err());
        scene.tells(text(&format!("{number} {}", "x".repeat(LARGE)))).await;
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(scene.session.snapshot().await.unwrap().clients.len(), 1);
    scene.agent_ends().await;
    let seqs: Vec<u64> = rest(&mut feed).await.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (2..2 + seqs.len() as u64).collect::<Vec<_>>(), "nothing was taken from it");
    assert!(seqs.len() > 60);
}

/// Once it reads again, it has to.
#[tokio::test(start_paused = true)]
async fn one_that_read_again_can_be_stuck() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let join = Join { patience: Some(STUCK), ..Join::new(client("aside")) };
    let mut feed = scene.session.join(join).await.unwrap().feed;
    assert!(timeout(STUCK * 3, feed.until_cut()).await.is_err());
    next(&mut feed).await;
    scene.tells(text("more")).await;
    sleep(STUCK * 2).await;
    assert!(matches!(soon(feed.until_cut()).await, FeedEnd::CutOff { last: 1 }));
}
