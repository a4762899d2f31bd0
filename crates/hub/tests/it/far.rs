//! A session that another process owns: what comes in, what is lost on the way, how it ends.

use std::sync::Arc;

use multitap_event::{
    ClientId, ClientRef, Command, Decide, Door, Event, EventId, EventKind, Prompt, PromptId, Ruling, SessionId,
    TextChunk, Timestamp,
};
use multitap_hub::{
    Answer, CancelError, CommandError, DecideError, Edge, Elsewhere, Entry, FarEnd, FarStart, FeedEnd, Join, JoinFrom,
    JournalError, KickError, Page, Part, PromptError, Reach, RevokeError, Session, State, Told, WhenBusy,
    WithdrawError,
};
use tokio_util::task::TaskTracker;

/// A process that has a log in which some events are lost, and does nothing that it is asked for.
#[derive(Debug)]
struct There(Vec<Entry>);

fn no<T: Send + 'static, E: Send + 'static>(error: E) -> Answer<T, E> {
    Box::pin(async { Err(error) })
}

impl Elsewhere for There {
    fn prompt(&self, _: Prompt, _: WhenBusy) -> Answer<PromptId, PromptError> {
        no(PromptError::Elsewhere("not today".into()))
    }
    fn withdraw(&self, prompt: PromptId) -> Answer<(), WithdrawError> {
        no(WithdrawError::NotWaiting(prompt))
    }
    fn decide(&self, _: Decide) -> Answer<Ruling, DecideError> {
        no(DecideError::Busy)
    }
    fn cancel(&self) -> Answer<(), CancelError> {
        no(CancelError::NoTurn)
    }
    fn pass(&self, _: Command) -> Answer<(), CommandError> {
        no(CommandError::NoAgent)
    }
    fn revoke(&self, rule_id: String) -> Answer<(), RevokeError> {
        no(RevokeError::NoSuchRule(rule_id))
    }
    fn kick(&self, client: ClientId) -> Answer<(), KickError> {
        no(KickError::NoSuchClient(client))
    }
    fn page(&self, part: Part) -> Answer<Page, JournalError> {
        let Edge::After(after) = part.edge else { return no(JournalError::Full) };
        let entries = self.0.iter().filter(|entry| entry.seq() > after).take(part.limit).cloned().collect();
        let last_seq = self.0.last().map_or(0, Entry::seq);
        Box::pin(async move { Ok(Page { entries, last_seq }) })
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
        end.told(entry(seq)).await.unwrap();
    }
    for seq in 1..=202 {
        assert!(matches!(feed.next().await, Some(Told::Event(entry)) if entry.seq() == seq), "{seq}");
    }
    // One that a later version tells of is passed on as it is.
    let unknown = r#"{"seq":203,"type":"ofTomorrow"}"#;
    end.told(Entry::stored(203, unknown)).await.unwrap();
    assert!(matches!(feed.next().await, Some(Told::Event(entry)) if entry.json() == unknown));
    assert_eq!(session.snapshot().await.unwrap().seq, 203);
    end.over("enough").await;
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
    end.skipped(21, Box::new(state)).await.unwrap();
    end.told(entry(21)).await.unwrap();
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
    end.cut_off("go").await;
    assert_eq!((feed.next().await, feed.end()), (None, FeedEnd::CutOff { last: 21 }));
    tasks.wait().await;
}

#[tokio::test]
async fn what_is_refused_there_is_refused_here_and_the_way_is_told_of() {
    let (session, end, tasks) = far(Vec::new(), 0);
    let me = ClientRef::new("eve", Door::Terminal);
    let refused = session.prompt(Prompt::text("go"), WhenBusy::Queue, me.clone()).await;
    assert_eq!(refused, Err(PromptError::Elsewhere("not today".into())));
    assert_eq!(session.cancel(me.clone()).await, Err(CancelError::NoTurn));
    assert!(matches!(session.stop().await, Err(CommandError::Elsewhere(_))), "it is not ours to stop");
    let mut reaches = session.reaches();
    end.lost("no network").await.unwrap();
    assert_eq!(reaches.changed().await, Reach::Lost("no network".into()));
    end.found(ClientRef::new("eve again", Door::Terminal)).await.unwrap();
    assert_eq!(reaches.changed().await, Reach::Here);
    assert_eq!(reaches.client().unwrap().client, "eve again");
    session.end();
    end.left().await;
    tasks.wait().await;
    assert_eq!(session.prompt(Prompt::text("go"), WhenBusy::Queue, me).await, Err(PromptError::SessionEnded));
}
