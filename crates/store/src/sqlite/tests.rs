//! What only the inside can bring about: the keeper's calls, without waiting for them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use multitap_event::{AgentKind, Draft, EventKind, SessionId, Timestamp};
use multitap_hub::{Batch, Claim, Entry, Flush, Journal as _, NewSession, TaskFilter, TaskRecord};

use super::writer::Message;
use super::{Store, task};

async fn begin(store: &Store) -> Claim {
    let new = NewSession {
        id: SessionId::fresh(),
        agent: AgentKind::Gemini,
        folder: None,
        created: Timestamp::now(),
        forked_from: None,
        config: serde_json::Map::new(),
    };
    store.create(new).await.unwrap()
}

fn batch(claim: &Claim, seqs: std::ops::RangeInclusive<u64>) -> Batch {
    let session = claim.record.id.clone();
    let kind = |seq: u64| EventKind::RawDelta { native_type: Some(format!("{seq} {}", "x".repeat(10_000))) };
    let entries =
        seqs.map(|seq| Entry::new(Draft::new(Timestamp::now(), kind(seq)).stamp(session.clone(), seq))).collect();
    Batch { session, owner: claim.owner.clone(), entries, flush: Flush::Soon, checkpoint: None, about: None }
}

fn number(path: &Path, select: &str) -> i64 {
    rusqlite::Connection::open(path).unwrap().query_row(select, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn leases_are_moved_on_but_not_those_that_were_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = Store::open(&path).unwrap();
    let (ours, lost) = (begin(&store).await, begin(&store).await);
    let tamper = rusqlite::Connection::open(&path).unwrap();
    tamper.execute("UPDATE logs SET until = 1", []).unwrap();
    tamper.execute("UPDATE logs SET owner = 'another' WHERE session = 2", []).unwrap();
    store.open.as_ref().unwrap().writer.send(Message::Refresh).await.unwrap();
    // Whatever is handed in later is done later.
    store.append(batch(&ours, 1..=1)).await.unwrap();
    store.append(batch(&lost, 1..=1)).await.unwrap_err();
    assert!(number(&path, "SELECT until FROM logs WHERE session = 1") > Timestamp::now().as_millis());
    assert_eq!(number(&path, "SELECT until FROM logs WHERE session = 2"), 1);
    // Nor are they given back.
    store.close().await;
    assert_eq!(number(&path, "SELECT count(*) FROM logs WHERE owner IS NULL"), 1);
    assert_eq!(number(&path, "SELECT count(*) FROM logs WHERE owner = 'another'"), 1);
}

/// Other processes want it too, and only this one can say that nobody has it.
#[tokio::test]
async fn what_could_not_be_given_back_is_given_back_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = Store::open(&path).unwrap();
    let (given_up, held) = (begin(&store).await, begin(&store).await);
    let locker = rusqlite::Connection::open(&path).unwrap();
    locker.execute_batch("BEGIN EXCLUSIVE").unwrap();
    store.release(given_up.record.id, given_up.owner, 0).await.unwrap_err();
    locker.execute_batch("ROLLBACK").unwrap();
    assert_eq!(number(&path, "SELECT count(*) FROM logs WHERE owner IS NULL"), 0);
    store.open.as_ref().unwrap().writer.send(Message::Refresh).await.unwrap();
    // The first may be done together with it, and comes first then.
    store.append(batch(&held, 1..=1)).await.unwrap();
    store.append(batch(&held, 2..=2)).await.unwrap();
    assert_eq!(number(&path, "SELECT count(*) FROM logs WHERE owner IS NULL"), 1);
}

/// Without anybody to move it into the file, more than 100 MB would gather beside it.
#[tokio::test]
async fn the_write_ahead_log_stays_small_while_much_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = Store::open(&path).unwrap();
    let claim = begin(&store).await;
    for first in (1..10_000).step_by(100) {
        store.append(batch(&claim, first..=first + 99)).await.unwrap();
    }
    let written = std::fs::metadata(&path).unwrap().len();
    assert!(written > 20 << 20, "only {written} bytes were moved");
    let wal = std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    assert!(wal < 80 << 20, "{wal} bytes");
    assert_eq!(number(&path, "SELECT count(*) FROM events"), 10_000);
}

/// Work is counted in SQLite's own steps.
#[tokio::test]
async fn a_page_of_tasks_costs_the_same_however_many_there_are() {
    const PAGE: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.db");
    let store = Store::open(&path).unwrap();
    let session = begin(&store).await.record.id;
    let mut connection = rusqlite::Connection::open(&path).unwrap();
    let task = |number: usize| TaskRecord {
        id: format!("turn-{number:08}"),
        session: session.clone(),
        state: "working".to_owned(),
        first_seq: 1,
        last_seq: None,
        created: Timestamp::from_millis(0),
        // Many change at once, and the id decides then.
        updated: Timestamp::from_millis(i64::try_from(number / 1000).unwrap()),
        metadata: serde_json::Map::new(),
    };
    let mut costs = Vec::new();
    let mut known = 0;
    for size in [2_000, 20_000] {
        let writing = connection.transaction().unwrap();
        (known..size).for_each(|number| task::keep(&writing, &task(number)).unwrap());
        writing.commit().unwrap();
        known = size;
        for session in [None, Some(session.clone())] {
            for before in [size, size / 2, PAGE] {
                let last = task(before);
                let filter = TaskFilter {
                    session: session.clone(),
                    before: Some((last.updated, last.id)),
                    limit: PAGE,
                    ..TaskFilter::default()
                };
                let counted = steps(&mut connection, &TaskFilter { limit: 0, ..filter.clone() });
                let whole = steps(&mut connection, &filter);
                assert!(counted < 20 * size as u64, "{counted} steps to count {size} tasks");
                costs.push(whole - counted);
            }
        }
    }
    let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
    assert!(*most < 2 * least, "{costs:?}");
}

/// How many steps a list of tasks takes.
fn steps(connection: &mut rusqlite::Connection, filter: &TaskFilter) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let step = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    connection.progress_handler(1, Some(step)).unwrap();
    let page = task::list(connection, filter).unwrap();
    connection.progress_handler(0, None::<fn() -> bool>).unwrap();
    assert_eq!(page.tasks.len(), filter.limit);
    count.load(Ordering::Relaxed)
}
