//! The form of the SQLite file: earlier ones that go on, and what hangs on what in it.

use std::fs;

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{Journal as _, TaskRecord};

use crate::scene::{File, all, batch, begin, some};

/// Whatever an earlier version kept is there, and what it could not keep can be kept.
#[tokio::test]
async fn a_log_of_the_first_form_goes_on() {
    let file = File::new();
    fs::create_dir_all(file.path().parent().unwrap()).unwrap();
    let made = file.sqlite();
    made.execute_batch(include_str!("../../migrations/sqlite/0001_init.sql")).unwrap();
    made.execute_batch(
        "INSERT INTO sessions (id, agent, created, config) VALUES ('old', 'claude', 1, '{}');
         INSERT INTO logs (session, last_seq, updated) VALUES (1, 1, 1);
         INSERT INTO events (session, seq, json) VALUES (1, 1, '{}');
         PRAGMA application_id = 0x4d544150; PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(made);
    let store = file.store();
    let old = SessionId::from("old");
    assert_eq!(all(&store, &old).await.len(), 1);
    let claim = store.claim(old.clone()).await.unwrap();
    store.append(batch(&old, &claim.owner, some(&old, 2..=2))).await.unwrap();
    store.keep_task(task(&old)).await.unwrap();
    store.close().await;
    assert_eq!(file.store().task("t".to_owned()).await.unwrap(), Some(task(&old)));
}

/// What clients want to be told of a task hangs on it, however often it changes.
#[tokio::test]
async fn a_task_that_changes_keeps_what_hangs_on_it() {
    let file = File::new();
    let store = file.store();
    let claim = begin(&store).await;
    let id = &claim.record.id;
    store.keep_task(task(id)).await.unwrap();
    let insert = "INSERT INTO push_configs (task_id, session_id, id, client, url, origin, form, created, epoch, seq, part) \
                  SELECT 't', id, 'p', 'c', 'http://127.0.0.1/', 'o', '1.0', 1, 1, 1, 0 FROM sessions";
    file.sqlite().execute(insert, []).unwrap();
    store.keep_task(TaskRecord { state: "completed".to_owned(), ..task(id) }).await.unwrap();
    let left = || file.sqlite().query_row("SELECT count(*) FROM push_configs", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(left(), 1);
    store.release(id.clone(), claim.owner, 0).await.unwrap();
    store.remove(id.clone()).await.unwrap();
    assert_eq!(left(), 0, "it goes with the session");
}

fn task(session: &SessionId) -> TaskRecord {
    let (created, updated) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
    TaskRecord {
        id: "t".to_owned(),
        session: session.clone(),
        state: "working".to_owned(),
        first_seq: 1,
        last_seq: None,
        created,
        updated,
        metadata: serde_json::Map::new(),
    }
}
