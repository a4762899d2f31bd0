//! A session that another process owns: what comes in, what is lost on the way, how it ends.

use std::sync::Arc;

use multitap_event::{ClientRef, Door, Event, EventId, EventKind, Prompt, SessionId, TextChunk, Timestamp};
use multitap_hub::{
    Answer, Elsewhere, Entry, FarEnd, FarNews, FarStart, FeedEnd, Join, JoinFrom, PageCall, PageReply, Reach, Refusal,
    Session, SessionCall, SessionReply, State, Told, WhenBusy,
};
use tokio_util::task::TaskTracker;

/// A process that has a log in which some events are lost, and does nothing that it is asked for.
#[derive(Debug)]
struct There(Vec<Entry>);

impl Elsewhere for There {
    fn call(&self, call: SessionCall) -> Answer<SessionReply> {
        let refusal = match call {
            SessionCall::Cancel => Refusal::NoTurn,
            _ => Refusal::Unknown { code: Some("ofTomorrow".to_owned()), message: "not today".to_owned() },
        };
        Box::pin(async { Err(refusal) })
    }

    fn page(&self, page: PageCall) -> Answer<PageReply> {
        let after = page.after.unwrap();
        let entries = self.0.iter().filter(|entry| entry.seq() > after).take(page.limit.unwrap()).cloned().collect();
        let last = self.0.last().map_or(0, Entry::seq);
        Box::pin(async move { Ok(PageReply { entries, last }) })
    }
}

fn entry(seq: u64) -> Entry {
    let chunk = TextChunk::piece(format!("words {seq}"));
    Entry::new(Event {
        id: EventId::fresh(Timestamp::from_millis(0)),
        session_id: SessionId::from("far"),
        timestamp: Timestamp::now(),
        seq,
        kind: EventKind::TextChunk(chunk),
        raw: Vec::new(),
    })
}

fn far(log: Vec<Entry>, last: u64) -> (Session, FarEnd, TaskTracker) {
    let state = Box::new(State { seq: last, ..State::default() });
    let client = ClientRef::new("eve", Door::Terminal);
    let start = FarStart { id: "far".into(), epoch: 3, client, state };
    let (session, end, task) = Session::far(start, Arc::new(There(log)));
    let tasks = TaskTracker::new();
    tasks.spawn(task.run());
    tasks.close();
    (session, end, tasks)
}

async fn all(session: &Session) -> multitap_hub::Feed {
    let join = Join::new(ClientRef::new("ann", Door::Web)).from(JoinFrom::Start);
    let joined = session.join(join).await.unwrap();
    assert_eq!((joined.client.client.as_str(), joined.epoch), ("eve", 3), "who joins here is who we are there");
    joined.feed
}

#[tokio::test]
async fn what_was_before_is_asked_for_and_what_comes_twice_is_told_once() {
    let (session, end, tasks) = far((1..=200).map(entry).collect(), 200);
    let mut feed = all(&session).await;
    for seq in [199, 200, 201, 201, 202] {
        end.hear(FarNews::Told(entry(seq))).await.unwrap();
    }
    for seq in 1..=202 {
        assert!(matches!(feed.next().await, Some(Told::Event(entry)) if entry.seq() == seq), "{seq}");
    }
    // One that a later version tells of is passed on as it is.
    let unknown = r#"{"seq":203,"type":"ofTomorrow"}"#;
    end.hear(FarNews::Told(Entry::stored(203, unknown))).await.unwrap();
    assert!(matches!(feed.next().await, Some(Told::Event(entry)) if entry.json() == unknown));
    assert_eq!(session.snapshot().await.unwrap().seq, 203);
    end.hear(FarNews::Over("enough".into())).await.unwrap();
    assert_eq!((feed.next().await, feed.end()), (None, FeedEnd::SessionOver));
    assert_eq!(session.reach(), Reach::Gone("enough".into()));
    tasks.wait().await;
}

#[tokio::test]
async fn what_is_lost_there_is_a_gap_and_no_more_than_that() {
    let kept = (1..=5).chain(10..=20).map(entry).collect();
    let (session, end, tasks) = far(kept, 5);
    let mut feed = all(&session).await;
    let state = State { seq: 20, turns: 7, ..State::default() };
    end.hear(FarNews::Skipped { next: 21, state: Box::new(state) }).await.unwrap();
    end.hear(FarNews::Told(entry(21))).await.unwrap();
    let mut told = Vec::new();
    while told.last() != Some(&21) {
        match feed.next().await.unwrap() {
            Told::Event(entry) => told.push(entry.seq()),
            Told::Gap { after, next } => assert_eq!((after, next), (5, 10)),
        }
    }
    assert_eq!(told, (1..=5).chain(10..=21).collect::<Vec<_>>());
    let state = session.snapshot().await.unwrap();
    assert_eq!((state.seq, state.turns), (21, 7));
    end.hear(FarNews::CutOff("go".into())).await.unwrap();
    assert_eq!((feed.next().await, feed.end()), (None, FeedEnd::CutOff { last: 21 }));
    tasks.wait().await;
}

#[tokio::test]
async fn what_is_refused_there_is_refused_here_and_the_way_is_told_of() {
    let (session, end, tasks) = far(Vec::new(), 0);
    let me = ClientRef::new("eve", Door::Terminal);
    let refused = session.prompt(Prompt::text("go"), WhenBusy::Queue, me.clone()).await;
    assert!(matches!(&refused, Err(Refusal::Unknown { .. })), "{refused:?}");
    assert_eq!(session.cancel(me.clone()).await, Err(Refusal::NoTurn));
    assert!(matches!(session.stop().await, Err(Refusal::NotHere)), "it is not ours to stop");
    let mut reaches = session.reaches();
    end.hear(FarNews::Lost("no network".into())).await.unwrap();
    assert_eq!(reaches.changed().await, Reach::Lost("no network".into()));
    end.hear(FarNews::Found(ClientRef::new("eve again", Door::Terminal))).await.unwrap();
    assert_eq!(reaches.changed().await, Reach::Here);
    assert_eq!(reaches.client().unwrap().client, "eve again");
    session.end();
    end.left().await;
    tasks.wait().await;
    assert_eq!(session.prompt(Prompt::text("go"), WhenBusy::Queue, me).await, Err(Refusal::SessionEnded));
}
