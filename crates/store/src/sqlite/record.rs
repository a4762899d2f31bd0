//! Converts rows to the hub's types, and back.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use multitap_event::{ClientRef, Ruling, SessionId, Timestamp};
use multitap_hub::{About, Holder, Owner, SessionRecord};
use rusqlite::Row;
use rusqlite::types::{FromSqlError, Value, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::holder::Process;

/// The columns of a session, for [`session`] to read.
pub(super) const SESSION: &str = "SELECT id, agent, folder, created, forked_from, config, title, native_id, model, \
     last_seq, epoch, updated, open, owner, pid, boot, namespace, started, since, until, key \
     FROM sessions JOIN logs ON logs.session = sessions.key";

#[derive(Debug)]
pub(super) struct SessionRow {
    pub(super) key: i64,
    pub(super) record: SessionRecord,
    pub(super) lease: Option<Lease>,
}

/// A process's right to write a log, which it may have taken to its grave.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) owner: Owner,
    pub(super) process: Process,
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl Lease {
    pub(super) fn holder(&self) -> Holder {
        Holder { pid: self.process.pid, since: self.since }
    }
}

/// Reads a row of [`SESSION`]. `this` process judges whether the holder is alive.
pub(super) fn session(row: &Row<'_>, this: &Process) -> rusqlite::Result<SessionRow> {
    let lease = match row.get::<_, Option<String>>("owner")? {
        Some(owner) => Some(Lease {
            owner: Owner(owner),
            process: Process {
                pid: row.get("pid")?,
                boot: row.get("boot")?,
                namespace: row.get("namespace")?,
                started: row.get::<_, i64>("started")?.cast_unsigned(),
            },
            since: time(row, "since")?,
            until: time(row, "until")?,
        }),
        None => None,
    };
    let living = lease.as_ref().filter(|lease| this.sees(&lease.process, lease.until, Timestamp::now()));
    let record = SessionRecord {
        id: row.get::<_, String>("id")?.into(),
        agent: text(row, "agent")?.parse().map_err(|error| unreadable(row, "agent", error))?,
        folder: path(row.get_ref("folder")?).map_err(|error| unreadable(row, "folder", error))?,
        created: time(row, "created")?,
        updated: time(row, "updated")?,
        forked_from: row.get::<_, Option<String>>("forked_from")?.map(SessionId::from),
        config: serde_json::from_str(&text(row, "config")?).map_err(|error| unreadable(row, "config", error))?,
        about: About {
            title: row.get("title")?,
            native_id: row.get("native_id")?,
            model: row.get("model")?,
            open: row.get("open")?,
        },
        last_seq: number(row.get("last_seq")?),
        epoch: number(row.get("epoch")?),
        live: living.map(Lease::holder),
    };
    Ok(SessionRow { key: row.get("key")?, record, lease })
}

/// The columns of a ruling, for [`ruling`] to read.
pub(super) const RULINGS: &str = "SELECT question_id, option_id, kind, client, door, client_id, role, settled, \
     feedback, edited, new_content, new_input, runs FROM rulings WHERE session_id = ?1 AND option_id IS NOT NULL ORDER BY id";

pub(super) fn ruling(row: &Row<'_>) -> rusqlite::Result<Ruling> {
    let role = match row.get::<_, Option<String>>("role")? {
        Some(_) => Some(from_word(row, "role")?),
        None => None,
    };
    Ok(Ruling {
        question_id: text(row, "question_id")?.into(),
        selected_option_id: text(row, "option_id")?.into(),
        kind: from_word(row, "kind")?,
        settled_by: ClientRef {
            client: row.get("client")?,
            door: from_word(row, "door")?,
            client_id: row.get::<_, Option<String>>("client_id")?.map(Into::into),
            role,
            account: None,
        },
        at: time(row, "settled")?,
        feedback: row.get("feedback")?,
        edited: row.get("edited")?,
        new_content: row.get("new_content")?,
        new_input: from_json(row, "new_input")?,
        runs: from_json(row, "runs")?,
    })
}

/// A value as JSON text; `None` if it cannot be represented.
pub(super) fn json(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<T>> {
    let Some(text) = row.get::<_, Option<String>>(column)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| unreadable(row, column, error))
}

/// The value's name in JSON: `allowOnce`, `a2a`.
pub(super) fn word(value: &impl Serialize) -> Option<String> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Some(word),
        _ => None,
    }
}

fn from_word<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> rusqlite::Result<T> {
    let word = serde_json::Value::String(text(row, column)?);
    serde_json::from_value(word).map_err(|error| unreadable(row, column, error))
}

pub(super) fn text(row: &Row<'_>, column: &str) -> rusqlite::Result<String> {
    row.get(column)
}

pub(super) fn time(row: &Row<'_>, column: &str) -> rusqlite::Result<Timestamp> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

/// SQLite integers are signed; we never write negative numbers.
pub(super) fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// As SQLite stores it; no log is long enough to overflow.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The value is unknown to this version.
pub(super) fn unreadable(
    row: &Row<'_>,
    column: &str,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    let index = row.as_ref().column_index(column).unwrap_or(usize::MAX);
    rusqlite::Error::FromSqlConversionFailure(index, rusqlite::types::Type::Text, Box::new(error))
}

/// A path as text; as bytes if it is not valid UTF-8.
pub(super) fn path_value(path: &Path) -> Value {
    match path.to_str() {
        Some(text) => Value::Text(text.to_owned()),
        None => Value::Blob(path_bytes(path).into_owned()),
    }
}

#[cfg(unix)]
fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Borrowed(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()))
}

#[cfg(not(unix))]
fn path_bytes(path: &Path) -> Cow<'_, [u8]> {
    Cow::Owned(path.to_string_lossy().into_owned().into_bytes())
}

fn path(value: ValueRef<'_>) -> Result<Option<PathBuf>, FromSqlError> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => Ok(Some(path_from_bytes(bytes))),
        other => Ok(Some(other.as_str()?.into())),
    }
}

#[cfg(unix)]
fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    String::from_utf8_lossy(bytes).into_owned().into()
}
