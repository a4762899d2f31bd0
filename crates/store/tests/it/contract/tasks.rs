//! What every journal owes those who keep tasks in it.

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{Journal, JournalError, TaskFilter, TaskPage, TaskRecord};

use crate::scene::{Place, begin};

/// A task that goes on, which changed at that time.
fn task(id: &str, session: &SessionId, updated: i64) -> TaskRecord {
    TaskRecord {
        id: id.to_owned(),
        session: session.clone(),
        state: "working".to_owned(),
        first_seq: 3,
        last_seq: None,
        created: Timestamp::from_millis(1_700_000_000_123),
        updated: Timestamp::from_millis(updated),
        metadata: serde_json::from_str(r#"{"dialect":"1.0","sent":{"a":[1,null,"ä"]}}"#).unwrap(),
    }
}

async fn keep(journal: &dyn Journal, tasks: &[TaskRecord]) {
    for task in tasks {
        journal.keep_task(task.clone()).await.unwrap();
    }
}

fn ids(page: &TaskPage) -> Vec<&str> {
    page.tasks.iter().map(|task| task.id.as_str()).collect()
}

/// All that match, in one page.
fn whole() -> TaskFilter {
    TaskFilter { limit: usize::MAX, ..TaskFilter::default() }
}

pub(super) async fn a_task_comes_back_as_it_was_last_kept(place: &impl Place) {
    let journal = place.open();
    let session = begin(&*journal).await.record.id;
    let first = task("t", &session, 10);
    keep(&*journal, std::slice::from_ref(&first)).await;
    assert_eq!(journal.task("t".to_owned()).await.unwrap(), Some(first.clone()));
    let over = TaskRecord {
        state: "completed".to_owned(),
        last_seq: Some(9),
        updated: Timestamp::from_millis(20),
        metadata: serde_json::Map::new(),
        ..first
    };
    keep(&*journal, std::slice::from_ref(&over)).await;
    // And to whoever opens it next.
    for journal in [&journal, &place.open()] {
        assert_eq!(journal.task("t".to_owned()).await.unwrap(), Some(over.clone()));
        assert_eq!(journal.tasks(whole()).await.unwrap(), TaskPage { tasks: vec![over.clone()], total: 1 });
        assert_eq!(journal.task("T".to_owned()).await.unwrap(), None);
    }
}

/// Who follows a task may store it before whoever began it.
pub(super) async fn a_task_begins_once(place: &impl Place) {
    let journal = place.open();
    let session = begin(&*journal).await.record.id;
    let first = task("t", &session, 10);
    journal.begin_task(first.clone()).await.unwrap();
    let later = TaskRecord { state: "submitted".to_owned(), ..task("t", &session, 20) };
    journal.begin_task(later.clone()).await.unwrap();
    assert_eq!(journal.task("t".to_owned()).await.unwrap(), Some(first));
    keep(&*journal, std::slice::from_ref(&later)).await;
    assert_eq!(journal.task("t".to_owned()).await.unwrap(), Some(later));
    let error = journal.begin_task(task("u", &SessionId::from("nobody"), 1)).await.unwrap_err();
    assert!(matches!(error, JournalError::NoSuchSession(_)), "{error}");
}

pub(super) async fn a_task_needs_its_session(place: &impl Place) {
    let journal = place.open();
    let nobody = SessionId::from("nobody");
    let error = journal.keep_task(task("t", &nobody, 1)).await.unwrap_err();
    assert_eq!(error, JournalError::NoSuchSession(nobody));
    assert_eq!(journal.task("t".to_owned()).await.unwrap(), None);
}

/// Those beside it in one commit are kept.
pub(super) async fn a_task_without_a_session_does_not_hurt_others(place: &impl Place) {
    let journal = place.open();
    let session = begin(&*journal).await.record.id;
    let mut writing = tokio::task::JoinSet::new();
    for number in 0..20 {
        let owner = if number % 2 == 0 { session.clone() } else { "nobody".into() };
        let (journal, task) = (std::sync::Arc::clone(&journal), task(&format!("t{number}"), &owner, number));
        writing.spawn(async move { (number, journal.keep_task(task).await) });
    }
    while let Some(written) = writing.join_next().await {
        let (number, result) = written.unwrap();
        assert_eq!(result.is_ok(), number % 2 == 0, "{result:?}");
    }
    assert_eq!(journal.tasks(whole()).await.unwrap().total, 10);
}

pub(super) async fn tasks_are_listed_by_when_they_changed(place: &impl Place) {
    let journal = place.open();
    let session = begin(&*journal).await.record.id;
    let tasks = [("b", 5), ("a", 5), ("c", 5), ("d", 9), ("e", 1), ("ä", 5)];
    keep(&*journal, &tasks.map(|(id, updated)| task(id, &session, updated))).await;
    assert_eq!(ids(&journal.tasks(whole()).await.unwrap()), ["d", "ä", "c", "b", "a", "e"]);
    // One that changes moves to its new place.
    keep(&*journal, &[task("e", &session, 10)]).await;
    assert_eq!(ids(&journal.tasks(whole()).await.unwrap()), ["e", "d", "ä", "c", "b", "a"]);
}

pub(super) async fn tasks_are_listed_by_session_state_and_time(place: &impl Place) {
    let journal = place.open();
    let (one, other) = (begin(&*journal).await.record.id, begin(&*journal).await.record.id);
    let done = |task| TaskRecord { state: "completed".to_owned(), ..task };
    let kept = [task("a", &one, 1), done(task("b", &one, 2)), task("c", &other, 3), done(task("d", &other, 4))];
    keep(&*journal, &kept).await;
    let of = |session: &SessionId| TaskFilter { session: Some(session.clone()), ..whole() };
    let in_state = |state: &str| TaskFilter { state: Some(state.to_owned()), ..whole() };
    let since = |time| TaskFilter { updated_after: Some(Timestamp::from_millis(time)), ..whole() };
    let without =
        |sessions: &[&SessionId]| TaskFilter { hidden: sessions.iter().map(|id| (*id).clone()).collect(), ..whole() };
    let cases: [(TaskFilter, &[&str]); 12] = [
        (without(&[&one]), &["d", "c"]),
        (without(&[&one, &other]), &[]),
        (TaskFilter { hidden: vec![one.clone()], ..of(&one) }, &[]),
        (of(&one), &["b", "a"]),
        (of(&"nobody".into()), &[]),
        (in_state("completed"), &["d", "b"]),
        (in_state("complete"), &[]),
        (since(3), &["d", "c"]),
        (since(5), &[]),
        (since(-1), &["d", "c", "b", "a"]),
        (TaskFilter { state: Some("working".to_owned()), ..of(&other) }, &["c"]),
        (TaskFilter { session: Some(other.clone()), state: Some("working".to_owned()), ..since(4) }, &[]),
    ];
    for (filter, expected) in cases {
        let page = journal.tasks(filter.clone()).await.unwrap();
        assert_eq!(ids(&page), expected, "{filter:?}");
        assert_eq!(page.total, expected.len() as u64, "{filter:?}");
    }
}

/// Whatever changes at the same time, and whatever comes between two pages.
pub(super) async fn pages_of_tasks_have_each_once(place: &impl Place) {
    let journal = place.open();
    let (session, other) = (begin(&*journal).await.record.id, begin(&*journal).await.record.id);
    for number in 0..23 {
        keep(&*journal, &[task(&format!("t{number:02}"), &session, number / 5)]).await;
        keep(&*journal, &[task(&format!("o{number:02}"), &other, number / 5)]).await;
    }
    for session in [Some(session), None] {
        let all = TaskFilter { session: session.clone(), ..whole() };
        let expected = journal.tasks(all.clone()).await.unwrap();
        for limit in [1, 2, 5, 7, 100] {
            let mut seen = Vec::new();
            let mut before = None;
            loop {
                let page = journal.tasks(TaskFilter { before, limit, ..all.clone() }).await.unwrap();
                assert_eq!(page.total, expected.total, "it is that of all pages");
                assert!(page.tasks.len() <= limit);
                let Some(last) = page.tasks.last() else { break };
                before = Some((last.updated, last.id.clone()));
                seen.extend(page.tasks);
            }
            assert_eq!(seen, expected.tasks, "{limit} at a time");
        }
    }
    let counted = journal.tasks(TaskFilter::default()).await.unwrap();
    assert_eq!((counted.tasks.len(), counted.total), (0, 46));
    // A place need not be that of a task.
    let before = Some((Timestamp::from_millis(1), "t".to_owned()));
    let page = journal.tasks(TaskFilter { before, limit: 2, ..TaskFilter::default() }).await.unwrap();
    assert_eq!(ids(&page), ["o09", "o08"]);
}

pub(super) async fn tasks_go_with_their_session(place: &impl Place) {
    let journal = place.open();
    let (one, other) = (begin(&*journal).await, begin(&*journal).await);
    let (gone, stays) = (&one.record.id, &other.record.id);
    keep(&*journal, &[task("a", gone, 1), task("b", stays, 2), task("c", gone, 3)]).await;
    journal.release(gone.clone(), one.owner, 0).await.unwrap();
    journal.remove(gone.clone()).await.unwrap();
    assert_eq!(journal.task("a".to_owned()).await.unwrap(), None);
    let page = journal.tasks(whole()).await.unwrap();
    assert_eq!((ids(&page), page.total), (vec!["b"], 1));
    let error = journal.keep_task(task("a", gone, 4)).await.unwrap_err();
    assert_eq!(error, JournalError::NoSuchSession(gone.clone()));
}
