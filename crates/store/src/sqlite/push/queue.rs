//! The queue of deliveries of each config, and the log of deliveries.

use multitap_event::Timestamp;
use multitap_hub::{
    DeliveriesOf, DeliveryOutcome, DeliveryRecord, DeliveryStatus, NewDelivery, PUSH_LOG, PUSH_QUEUE, PUSH_QUEUE_BYTES,
    PendingPush, PushKey, SettledAttempt, TakePush, TakenDelivery,
};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{position, session};
use crate::holder::Process;
use crate::sqlite::error::StoreError;
use crate::sqlite::record::{json, signed, time, unreadable};

/// A process, as a config's row names it.
#[derive(Debug, Serialize, Deserialize)]
struct Taker {
    pid: u32,
    boot: String,
    namespace: String,
    started: u64,
}

impl Taker {
    fn of(process: &Process) -> Self {
        let Process { pid, boot, namespace, started } = process.clone();
        Self { pid, boot, namespace, started }
    }

    fn process(self) -> Process {
        let Self { pid, boot, namespace, started } = self;
        Process { pid, boot, namespace, started }
    }
}

pub(super) fn enqueue(
    connection: &Connection,
    deliveries: &[NewDelivery],
    now: i64,
) -> rusqlite::Result<Vec<PendingPush>> {
    let mut keys: Vec<PushKey> = Vec::new();
    for new in deliveries {
        if enqueue_one(connection, new, now)? && !keys.contains(&new.config) {
            keys.push(new.config);
        }
    }
    let pending = keys.into_iter().map(|key| pending_of(connection, key));
    pending.filter_map(Result::transpose).collect()
}

/// Whether it was stored.
fn enqueue_one(connection: &Connection, new: &NewDelivery, now: i64) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached("SELECT epoch, seq, part FROM push_configs WHERE key = ?")?;
    let after = select.query_row([new.config.0], position).optional()?;
    if after.is_none_or(|after| new.at <= after) {
        return Ok(false);
    }
    let insert = "INSERT INTO push_deliveries \
                  (id, config, session_id, task_id, config_id, origin, state, body, status, created, updated) \
                  SELECT :id, key, session_id, task_id, id, origin, :state, :body, 'pending', :now, :now \
                  FROM push_configs WHERE key = :config";
    connection.prepare_cached(insert)?.execute(named_params! {
        ":id": Uuid::new_v4().to_string(),
        ":state": new.state,
        ":body": new.body,
        ":now": now,
        ":config": new.config.0,
    })?;
    let update = "UPDATE push_configs SET epoch = :epoch, seq = :seq, part = :part, state = :state, \
                  finished = finished OR :last, due = coalesce(due, :now) WHERE key = :config";
    connection.prepare_cached(update)?.execute(named_params! {
        ":epoch": signed(new.at.epoch),
        ":seq": signed(new.at.seq),
        ":part": new.at.part,
        ":state": new.state,
        ":last": new.last,
        ":now": now,
        ":config": new.config.0,
    })?;
    drop_surplus(connection, new.config, now)?;
    Ok(true)
}

/// Gives up the oldest untried deliveries of a queue that is too long.
fn drop_surplus(connection: &Connection, config: PushKey, now: i64) -> rusqlite::Result<()> {
    let waiting = "SELECT count(*), coalesce(sum(octet_length(body)), 0) FROM push_deliveries \
                   WHERE config = ? AND status = 'pending'";
    let oldest = "UPDATE push_deliveries SET status = 'givenUp', body = NULL, updated = ?1, \
                  error = 'the queue is full: newer notifications wait' WHERE key = \
                  (SELECT key FROM push_deliveries WHERE config = ?2 AND status = 'pending' AND attempts = 0 \
                   ORDER BY key LIMIT 1) RETURNING task_id";
    loop {
        let (count, bytes): (i64, i64) =
            connection.prepare_cached(waiting)?.query_row([config.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        // One delivery is never too many.
        if count <= 1 || (count <= PUSH_QUEUE as i64 && bytes <= PUSH_QUEUE_BYTES as i64) {
            return Ok(());
        }
        let task = connection.prepare_cached(oldest)?.query_row(params![now, config.0], |row| row.get::<_, String>(0));
        let Some(task) = task.optional()? else { return Ok(()) };
        trim(connection, &task)?;
    }
}

/// Deletes the oldest entries of a task's log that are not pending.
fn trim(connection: &Connection, task: &str) -> rusqlite::Result<()> {
    let old = "DELETE FROM push_deliveries WHERE key IN (SELECT key FROM push_deliveries \
               WHERE task_id = ? AND status <> 'pending' ORDER BY key DESC LIMIT -1 OFFSET ?)";
    connection.prepare_cached(old)?.execute(params![task, PUSH_LOG as i64])?;
    Ok(())
}

/// The first of a queue.
fn pending_of(connection: &Connection, config: PushKey) -> rusqlite::Result<Option<PendingPush>> {
    let select = "SELECT key, session_id, due FROM push_configs WHERE key = ? AND due IS NOT NULL";
    connection.prepare_cached(select)?.query_row([config.0], waiting).optional()
}

fn waiting(row: &Row<'_>) -> rusqlite::Result<PendingPush> {
    Ok(PendingPush { config: PushKey(row.get("key")?), session: session(row)?, due: time(row, "due")? })
}

pub(super) fn pending(connection: &Connection, this: &Process) -> Result<Vec<PendingPush>, StoreError> {
    let select = "SELECT key, session_id, due, taker, taken_until FROM push_configs WHERE due IS NOT NULL ORDER BY due";
    let mut select = connection.prepare_cached(select)?;
    let now = Timestamp::now();
    let found = select.query_map([], |row| free(row, this, now))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// When the first of a queue is due and nobody else has it.
fn free(row: &Row<'_>, this: &Process, now: Timestamp) -> rusqlite::Result<PendingPush> {
    let (mut push, taken) = (waiting(row)?, taken_until(row, this, now)?);
    push.due = taken.map_or(push.due, |until| push.due.max(until));
    Ok(push)
}

/// Until when a living process has the first delivery.
fn taken_until(row: &Row<'_>, this: &Process, now: Timestamp) -> rusqlite::Result<Option<Timestamp>> {
    let Some(taker) = row.get::<_, Option<String>>("taker")? else { return Ok(None) };
    let taker: Taker = serde_json::from_str(&taker).map_err(|error| unreadable(row, "taker", error))?;
    let until = time(row, "taken_until")?;
    Ok((now < until && this.sees(&taker.process(), until, now)).then_some(until))
}

/// Takes the first delivery of a queue, and counts the attempt.
pub(super) fn take(
    connection: &Connection,
    this: &Process,
    config: PushKey,
    until: Timestamp,
    now: i64,
) -> rusqlite::Result<TakePush> {
    let select = "SELECT key, session_id, due, taker, taken_until FROM push_configs WHERE key = ? AND due IS NOT NULL";
    let mut select = connection.prepare_cached(select)?;
    let first = select.query_row([config.0], |row| free(row, this, Timestamp::from_millis(now))).optional()?;
    match first {
        None => return Ok(TakePush::Empty),
        Some(first) if first.due.as_millis() > now => return Ok(TakePush::Wait(first)),
        Some(_) => {}
    }
    let count = "UPDATE push_deliveries SET attempts = attempts + 1, updated = ?1 WHERE key = \
                 (SELECT min(key) FROM push_deliveries WHERE config = ?2 AND status = 'pending') \
                 RETURNING id, attempts, created, body";
    let mut count = connection.prepare_cached(count)?;
    let (id, attempt, created, body) = count.query_row(params![now, config.0], |row| {
        let body = row.get::<_, Option<String>>("body")?.unwrap_or_default();
        Ok((row.get("id")?, row.get("attempts")?, time(row, "created")?, body))
    })?;
    let update = "UPDATE push_configs SET taker = ?, taken_until = ? WHERE key = ? RETURNING url, secrets, form";
    let mut update = connection.prepare_cached(update)?;
    update.query_row(params![json(&Taker::of(this)), until.as_millis(), config.0], |row| {
        let (url, secrets, form) = (row.get("url")?, row.get("secrets")?, row.get("form")?);
        Ok(TakePush::Taken(Box::new(TakenDelivery { config, id, attempt, created, url, secrets, form, body })))
    })
}

/// Records an outcome; the next of the queue. An attempt that lost its delivery changes nothing.
pub(super) fn settle(connection: &Connection, attempt: &SettledAttempt) -> rusqlite::Result<Option<PendingPush>> {
    let (status, due) = match attempt.outcome {
        DeliveryOutcome::Delivered => (DeliveryStatus::Delivered, attempt.at),
        DeliveryOutcome::Retry { at } => (DeliveryStatus::Pending, at),
        DeliveryOutcome::GivenUp | DeliveryOutcome::Gone => (DeliveryStatus::GivenUp, attempt.at),
    };
    let update = "UPDATE push_deliveries SET status = :status, http_status = :http, error = :error, updated = :now, \
                  body = CASE WHEN :status = 'pending' THEN body END \
                  WHERE config = :config AND status = 'pending' AND id = :id AND attempts = :attempt RETURNING task_id";
    let mut update = connection.prepare_cached(update)?;
    let task = update.query_row(
        named_params! {
            ":status": status.word(),
            ":http": attempt.http_status,
            ":error": attempt.error,
            ":now": attempt.at.as_millis(),
            ":config": attempt.config.0,
            ":id": attempt.id,
            ":attempt": attempt.attempt,
        },
        |row| row.get::<_, String>(0),
    );
    if let Some(task) = task.optional()? {
        trim(connection, &task)?;
        if attempt.outcome == DeliveryOutcome::Gone {
            super::remove(connection, attempt.config, "the receiver is gone", attempt.at.as_millis())?;
        }
        let next = "UPDATE push_configs SET taker = NULL, taken_until = NULL, due = CASE WHEN EXISTS \
                    (SELECT 1 FROM push_deliveries WHERE config = ?1 AND status = 'pending') THEN ?2 END WHERE key = ?1";
        connection.prepare_cached(next)?.execute(params![attempt.config.0, due.as_millis()])?;
    }
    pending_of(connection, attempt.config)
}

pub(super) fn list(
    connection: &Connection,
    of: &DeliveriesOf,
    limit: usize,
) -> Result<Vec<DeliveryRecord>, StoreError> {
    let (column, name) = match of {
        DeliveriesOf::Session(session) => ("session_id", session.as_str()),
        DeliveriesOf::Task(task) => ("task_id", task.as_str()),
    };
    let select = format!(
        "SELECT id, task_id, config_id, origin, state, status, attempts, http_status, error, created, updated, \
         CASE WHEN status = 'pending' AND key = (SELECT min(key) FROM push_deliveries AS first \
              WHERE first.config = push_deliveries.config AND first.status = 'pending') \
              THEN (SELECT due FROM push_configs WHERE push_configs.key = push_deliveries.config) END AS due \
         FROM push_deliveries WHERE {column} = ? ORDER BY key DESC LIMIT ?"
    );
    let mut select = connection.prepare_cached(&select)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = select.query_map(params![name, limit], record)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

fn record(row: &Row<'_>) -> rusqlite::Result<DeliveryRecord> {
    let status: String = row.get("status")?;
    let status = [DeliveryStatus::Pending, DeliveryStatus::Delivered]
        .into_iter()
        .find(|known| known.word() == status)
        .unwrap_or(DeliveryStatus::GivenUp);
    Ok(DeliveryRecord {
        id: row.get("id")?,
        task: row.get("task_id")?,
        config: row.get("config_id")?,
        origin: row.get("origin")?,
        state: row.get("state")?,
        status,
        attempts: row.get("attempts")?,
        http_status: row.get("http_status")?,
        error: row.get("error")?,
        created: time(row, "created")?,
        updated: time(row, "updated")?,
        due: row.get::<_, Option<i64>>("due")?.map(Timestamp::from_millis),
    })
}
