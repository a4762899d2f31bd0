//! Readers: a few connections on threads that may block. Readers and the writer do not wait for each other.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use multitap_event::{Ruling, SessionId};
use multitap_hub::{Edge, Entry, Filter, JournalError, Page, Part, SessionRecord};
use rusqlite::{Connection, Error, OptionalExtension as _, Rows, params};
use tokio::sync::Semaphore;

use super::error::StoreError;
use super::record::{self, RULINGS, SESSION, SessionRow, number, signed};
use super::{schema, session};
use crate::holder::Process;

/// Most concurrent reads; others queue.
const READERS: usize = 4;

/// A pool of connections, opened on demand.
pub(super) struct Readers {
    path: PathBuf,
    this: Process,
    turns: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Readers {
    pub(super) fn new(path: PathBuf, this: Process) -> Self {
        Self { path, this, turns: Arc::new(Semaphore::new(READERS)), idle: Arc::default() }
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection, &Process) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let closed = |_| JournalError::Other("the log was closed".to_owned());
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(closed)?;
        let (path, this, idle) = (self.path.clone(), self.this.clone(), Arc::clone(&self.idle));
        let reading = tokio::task::spawn_blocking(move || {
            // A caller that stops waiting does not free its slot before the read is done.
            let _turn = turn;
            let spare = lock(&idle).pop();
            let connection = match spare {
                Some(connection) => connection,
                None => schema::reader(&path)?,
            };
            let result = in_one_view(&connection, |connection| read(connection, &this));
            // A connection with an error is not reused.
            if !matches!(result, Err(StoreError::Sql(_))) {
                lock(&idle).push(connection);
            }
            result.map_err(|trouble| trouble.into_journal_error(&path))
        });
        reading.await.map_err(|error| JournalError::Other(format!("reading the log failed: {error}")))?
    }
}

fn lock(idle: &Mutex<Vec<Connection>>) -> std::sync::MutexGuard<'_, Vec<Connection>> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs several statements on one snapshot.
fn in_one_view<T>(
    connection: &Connection,
    read: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let result = read(connection);
    let ended = connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
    let value = result?;
    ended?;
    Ok(value)
}

/// Part of a log. Its cost depends on the part, not on the log.
pub(super) fn page(connection: &Connection, id: &SessionId, part: Part) -> Result<Page, StoreError> {
    let mut select = connection
        .prepare_cached("SELECT session, last_seq FROM logs WHERE session = (SELECT key FROM sessions WHERE id = ?)")?;
    let found = select.query_row([id.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
    let Some((key, last_seq)) = found.optional()? else {
        return Err(JournalError::NoSuchSession(id.clone()).into());
    };
    let limit = i64::try_from(part.limit).unwrap_or(i64::MAX);
    let entries = match part.edge {
        Edge::After(seq) => {
            let select = "SELECT seq, json FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?";
            let mut select = connection.prepare_cached(select)?;
            take(select.query(params![key, signed(seq), limit])?, part.bytes)?
        }
        Edge::Before(seq) => {
            let select = "SELECT seq, json FROM events WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?";
            let mut select = connection.prepare_cached(select)?;
            let mut entries = take(select.query(params![key, signed(seq), limit])?, part.bytes)?;
            entries.reverse();
            entries
        }
    };
    Ok(Page { entries, last_seq: number(last_seq) })
}

/// Entries of at most this many bytes, but at least one entry.
fn take(mut rows: Rows<'_>, bytes: usize) -> rusqlite::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut taken = 0;
    while let Some(row) = rows.next()? {
        let json = row.get_ref(1)?.as_str()?;
        taken += json.len();
        if taken > bytes && !entries.is_empty() {
            break;
        }
        entries.push(Entry::stored(number(row.get(0)?), json));
    }
    Ok(entries)
}

pub(super) fn list(connection: &Connection, this: &Process, filter: &Filter) -> Result<Vec<SessionRecord>, StoreError> {
    let limit = filter.limit.unwrap_or(usize::MAX);
    // SQLite cannot know which processes live. If that does not matter, it can apply the limit itself.
    let rows = if filter.interrupted { -1 } else { i64::try_from(limit).unwrap_or(-1) };
    let select = format!(
        "{SESSION} WHERE (?1 IS NULL OR folder = ?1) AND (NOT ?2 OR open) ORDER BY updated DESC, key DESC LIMIT ?3"
    );
    let mut select = connection.prepare_cached(&select)?;
    let folder = filter.folder.as_deref().map(record::path_value);
    let rows = select.query(params![folder, filter.interrupted, rows])?;
    records(rows, this, |record| !filter.interrupted || record.live.is_none(), limit)
}

pub(super) fn find(connection: &Connection, this: &Process, name: &str) -> Result<Vec<SessionRecord>, StoreError> {
    if name.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(SessionRow { record, .. }) = session::find(connection, this, &name.into())? {
        return Ok(vec![record]);
    }
    let select = format!(
        "{SESSION} WHERE (id >= ?1 AND id < ?1 || char(1114111)) OR native_id = ?1 ORDER BY updated DESC, key DESC"
    );
    let mut select = connection.prepare_cached(&select)?;
    let rows = select.query([name])?;
    records(rows, this, |_| true, usize::MAX)
}

/// A row that this version cannot read does not hide the others.
fn records(
    mut rows: Rows<'_>,
    this: &Process,
    wanted: impl Fn(&SessionRecord) -> bool,
    limit: usize,
) -> Result<Vec<SessionRecord>, StoreError> {
    let mut records = Vec::new();
    while records.len() < limit
        && let Some(row) = rows.next()?
    {
        match record::session(row, this) {
            Ok(found) if wanted(&found.record) => records.push(found.record),
            Ok(_) => {}
            Err(error @ Error::FromSqlConversionFailure(..)) => tracing::warn!(%error, "a session cannot be read"),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(records)
}

pub(super) fn rulings(connection: &Connection, id: &SessionId) -> Result<Vec<Ruling>, StoreError> {
    let mut select = connection.prepare_cached(RULINGS)?;
    let rulings = select.query_map([id.as_str()], record::ruling)?.collect::<rusqlite::Result<_>>()?;
    Ok(rulings)
}
