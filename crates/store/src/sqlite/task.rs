//! Tasks: written inside a transaction of the writer, read by the readers.

use multitap_event::SessionId;
use multitap_hub::{JournalError, TaskFilter, TaskPage, TaskRecord};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use super::error::StoreError;
use super::record::{number, signed, text, time, unreadable};
use super::session;

/// The columns of a task, for [`record`] to read.
const TASK: &str = "SELECT id, session_id, state, first_seq, last_seq, created, updated, metadata FROM tasks";

/// Stores a task. Refuses one of an unknown session before it writes anything.
pub(super) fn keep(connection: &Connection, task: &TaskRecord) -> Result<(), StoreError> {
    // Not "OR REPLACE": that deletes the row first, and dependent rows with it.
    let update = "UPDATE SET session_id = excluded.session_id, state = excluded.state, first_seq = excluded.first_seq, \
                  last_seq = excluded.last_seq, created = excluded.created, updated = excluded.updated, \
                  metadata = excluded.metadata";
    insert(connection, task, update)
}

/// Stores a task, unless its id exists.
pub(super) fn begin(connection: &Connection, task: &TaskRecord) -> Result<(), StoreError> {
    insert(connection, task, "NOTHING")
}

fn insert(connection: &Connection, task: &TaskRecord, on_conflict: &str) -> Result<(), StoreError> {
    if session::key(connection, &task.session)?.is_none() {
        return Err(JournalError::NoSuchSession(task.session.clone()).into());
    }
    let metadata = serde_json::to_string(&task.metadata)
        .map_err(|error| JournalError::Other(format!("the metadata of task {} cannot be written: {error}", task.id)))?;
    let insert = format!(
        "INSERT INTO tasks (id, session_id, state, first_seq, last_seq, created, updated, metadata) \
         VALUES (:id, :session, :state, :first, :last, :created, :updated, :metadata) \
         ON CONFLICT (id) DO {on_conflict}"
    );
    connection.prepare_cached(&insert)?.execute(named_params! {
        ":id": task.id,
        ":session": task.session.as_str(),
        ":state": task.state,
        ":first": signed(task.first_seq),
        ":last": task.last_seq.map(signed),
        ":created": task.created.as_millis(),
        ":updated": task.updated.as_millis(),
        ":metadata": metadata,
    })?;
    Ok(())
}

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<TaskRecord>, StoreError> {
    let mut select = connection.prepare_cached(&format!("{TASK} WHERE id = ?"))?;
    Ok(select.query_row([id], record).optional()?)
}

/// A page of tasks, and their total number.
pub(super) fn list(connection: &Connection, filter: &TaskFilter) -> Result<TaskPage, StoreError> {
    // Two statements, so that each uses its index; cursor and time are ranges of it, whether or not given.
    let of = if filter.session.is_some() { "session_id = :session" } else { ":session IS NULL" };
    let hidden = if filter.hidden.is_empty() {
        ":hidden IS NOT NULL"
    } else {
        "session_id NOT IN (SELECT value FROM json_each(:hidden))"
    };
    let wanted = format!("WHERE {of} AND {hidden} AND (:state IS NULL OR state = :state) AND updated >= :since");
    let hidden = serde_json::to_string(&filter.hidden).unwrap_or_default();
    let session = filter.session.as_ref().map(SessionId::as_str);
    let since = filter.updated_after.map_or(i64::MIN, |since| since.as_millis());
    let mut count = connection.prepare_cached(&format!("SELECT count(*) FROM tasks {wanted}"))?;
    let matching = named_params! { ":session": session, ":hidden": hidden, ":state": filter.state, ":since": since };
    let total = number(count.query_row(matching, |row| row.get(0))?);
    let page = format!("{TASK} {wanted} AND (updated, id) < (:time, :id) ORDER BY updated DESC, id DESC LIMIT :limit");
    let (time, id) = filter.before.as_ref().map_or((i64::MAX, ""), |(time, id)| (time.as_millis(), id.as_str()));
    let mut select = connection.prepare_cached(&page)?;
    let tasks = select.query_map(
        named_params! {
            ":session": session,
            ":hidden": hidden,
            ":state": filter.state,
            ":since": since,
            ":time": time,
            ":id": id,
            ":limit": i64::try_from(filter.limit).unwrap_or(i64::MAX),
        },
        record,
    )?;
    Ok(TaskPage { tasks: tasks.collect::<rusqlite::Result<_>>()?, total })
}

fn record(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    Ok(TaskRecord {
        id: row.get("id")?,
        session: text(row, "session_id")?.into(),
        state: row.get("state")?,
        first_seq: number(row.get("first_seq")?),
        last_seq: row.get::<_, Option<i64>>("last_seq")?.map(number),
        created: time(row, "created")?,
        updated: time(row, "updated")?,
        metadata: serde_json::from_str(&text(row, "metadata")?).map_err(|error| unreadable(row, "metadata", error))?,
    })
}
