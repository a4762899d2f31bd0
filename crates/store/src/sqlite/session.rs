//! Creates, claims, releases and removes logs. Each runs inside a transaction of the writer.

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{Checkpoint, Claim, JournalError, NewSession, Owner};
use rusqlite::{Connection, OptionalExtension as _, named_params, params};
use uuid::Uuid;

use super::error::StoreError;
use super::gap_markers::GapMarkers;
use super::record::{self, SESSION, SessionRow, number, signed};
use crate::holder::Process;

/// Lease period, for processes that are not visible.
const LEASE_MILLIS: i64 = 30_000;

/// Events deleted at a time: some milliseconds of work, which does not delay the writer noticeably.
const SWEPT_AT_ONCE: i64 = 500;

/// A claim, with the key of its session.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) key: i64,
    pub(super) claim: Claim,
    /// The previous owner, if it did not release the session.
    pub(super) former: Option<Owner>,
}

pub(super) fn create(connection: &Connection, this: &Process, new: &NewSession) -> Result<Claimed, StoreError> {
    if key(connection, &new.id)?.is_some() {
        return Err(JournalError::Other(format!("there is a session {} already", new.id)).into());
    }
    let config = serde_json::to_string(&new.config)
        .map_err(|error| JournalError::Other(format!("the settings cannot be written: {error}")))?;
    let insert = "INSERT INTO sessions (id, agent, folder, created, forked_from, config) VALUES (?, ?, ?, ?, ?, ?)";
    connection.prepare_cached(insert)?.execute(params![
        new.id.as_str(),
        new.agent.to_string(),
        new.folder.as_deref().map(record::path_value),
        new.created.as_millis(),
        new.forked_from.as_ref().map(SessionId::as_str),
        config,
    ])?;
    let key = connection.last_insert_rowid();
    let insert = "INSERT INTO logs (session, updated) VALUES (?, ?)";
    connection.prepare_cached(insert)?.execute(params![key, new.created.as_millis()])?;
    let owner = lease(connection, this, key)?;
    let claim = Claim { owner, record: known(connection, this, &new.id)?.record, checkpoint: None };
    Ok(Claimed { key, claim, former: None })
}

pub(super) fn claim(
    connection: &Connection,
    this: &Process,
    gap_markers: &GapMarkers,
    id: &SessionId,
) -> Result<Claimed, StoreError> {
    let found = known(connection, this, id)?;
    check_not_live(&found, this)?;
    let SessionRow { key, lease: left, .. } = found;
    // The previous owner did not release it. If its machine crashed, unflushed events are lost; if the log could not
    // be written in the end, events that were sent out are missing.
    if left.as_ref().is_some_and(|left| this.may_have_lost(&left.process) || gap_markers.is_noted(&left.owner)) {
        connection.prepare_cached("UPDATE logs SET epoch = epoch + 1 WHERE session = ?")?.execute([key])?;
    }
    let owner = lease(connection, this, key)?;
    let record = known(connection, this, id)?.record;
    let claim = Claim { owner, record, checkpoint: checkpoint(connection, key)? };
    Ok(Claimed { key, claim, former: left.map(|left| left.owner) })
}

fn check_not_live(found: &SessionRow, this: &Process) -> Result<(), JournalError> {
    let session = found.record.id.clone();
    match (&found.record.live, &found.lease) {
        (Some(_), Some(lease)) if lease.process == *this => Err(JournalError::LiveHere(session)),
        (Some(holder), _) => Err(JournalError::LiveElsewhere { session, holder: holder.clone() }),
        (None, _) => Ok(()),
    }
}

/// Records this process as the owner of the log.
fn lease(connection: &Connection, this: &Process, key: i64) -> rusqlite::Result<Owner> {
    let owner = Owner(Uuid::new_v4().to_string());
    let now = Timestamp::now().as_millis();
    let update = "UPDATE logs SET owner = :owner, pid = :pid, boot = :boot, namespace = :namespace, \
                  started = :started, since = :since, until = :until WHERE session = :session";
    connection.prepare_cached(update)?.execute(named_params! {
        ":owner": owner.0,
        ":pid": this.pid,
        ":boot": this.boot,
        ":namespace": this.namespace,
        ":started": this.started.cast_signed(),
        ":since": now,
        ":until": now + LEASE_MILLIS,
        ":session": key,
    })?;
    Ok(owner)
}

/// Renews a lease. False: it is not ours any more.
pub(super) fn refresh(connection: &Connection, key: i64, owner: &Owner) -> rusqlite::Result<bool> {
    let until = Timestamp::now().as_millis() + LEASE_MILLIS;
    let update = "UPDATE logs SET until = ? WHERE session = ? AND owner = ?";
    Ok(connection.prepare_cached(update)?.execute(params![until, key, owner.0])? == 1)
}

/// Releases a log. If more events were sent out than it contains, their numbers will be reused: that is another
/// epoch.
pub(super) fn release(
    connection: &Connection,
    id: &SessionId,
    owner: &Owner,
    last_sent: u64,
) -> Result<(), StoreError> {
    let Some(key) = key(connection, id)? else { return Err(JournalError::NoSuchSession(id.clone()).into()) };
    let update = "UPDATE logs SET epoch = epoch + (last_seq < ?), owner = NULL, pid = NULL, boot = NULL, \
                  namespace = NULL, started = NULL, since = NULL, until = NULL WHERE session = ? AND owner = ?";
    match connection.prepare_cached(update)?.execute(params![signed(last_sent), key, owner.0])? {
        0 => Err(JournalError::Lost(id.clone()).into()),
        _ => Ok(()),
    }
}

/// Removes a session. [`sweep`] deletes its events in steps; the audit trail stays. Returns an owner that did not
/// release it.
pub(super) fn remove(connection: &Connection, this: &Process, id: &SessionId) -> Result<Option<Owner>, StoreError> {
    let found = known(connection, this, id)?;
    check_not_live(&found, this)?;
    let SessionRow { key, lease: left, .. } = found;
    connection.prepare_cached("INSERT INTO removed (session) VALUES (?)")?.execute([key])?;
    let words = "UPDATE rulings SET title = NULL, feedback = NULL, new_content = NULL, new_input = NULL, runs = NULL \
                 WHERE session_id = ?";
    connection.prepare_cached(words)?.execute([id.as_str()])?;
    // Its row in "logs", its checkpoint and its tasks are deleted with it.
    connection.prepare_cached("DELETE FROM sessions WHERE key = ?")?.execute([key])?;
    Ok(left.map(|left| left.owner))
}

/// Deletes some events of removed sessions. False: there is nothing left.
pub(super) fn sweep(connection: &Connection) -> rusqlite::Result<bool> {
    let select = "SELECT session FROM removed LIMIT 1";
    let Some(key) = connection.prepare_cached(select)?.query_row([], |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(false);
    };
    let some = "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE session = ? LIMIT ?)";
    if connection.prepare_cached(some)?.execute([key, SWEPT_AT_ONCE])? == 0 {
        connection.prepare_cached("DELETE FROM removed WHERE session = ?")?.execute([key])?;
    }
    Ok(true)
}

/// The session with that id, if there is one.
pub(super) fn find(connection: &Connection, this: &Process, id: &SessionId) -> rusqlite::Result<Option<SessionRow>> {
    let mut select = connection.prepare_cached(&format!("{SESSION} WHERE id = ?"))?;
    select.query_row([id.as_str()], |row| record::session(row, this)).optional()
}

fn known(connection: &Connection, this: &Process, id: &SessionId) -> Result<SessionRow, StoreError> {
    find(connection, this, id)?.ok_or_else(|| JournalError::NoSuchSession(id.clone()).into())
}

pub(super) fn key(connection: &Connection, id: &SessionId) -> rusqlite::Result<Option<i64>> {
    let mut select = connection.prepare_cached("SELECT key FROM sessions WHERE id = ?")?;
    select.query_row([id.as_str()], |row| row.get(0)).optional()
}

fn checkpoint(connection: &Connection, key: i64) -> rusqlite::Result<Option<Checkpoint>> {
    let mut select = connection.prepare_cached("SELECT seq, state FROM checkpoints WHERE session = ?")?;
    select.query_row([key], |row| Ok(Checkpoint { seq: number(row.get(0)?), state: row.get(1)? })).optional()
}
