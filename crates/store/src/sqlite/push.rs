//! Push configs and their queues of deliveries.

mod queue;

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{
    DeliveriesOf, DeliveryRecord, Flush, JournalError, Kept, NewDelivery, NewPushConfig, PUSH_CONFIGS_PER_CLIENT,
    PUSH_CONFIGS_PER_TASK, PendingPush, PushConfigRecord, PushKey, PushPosition, PushQueue, PushScope, PutPushConfig,
    SettledAttempt, TakePush,
};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params, params};

use super::error::StoreError;
use super::record::{number, signed};
use super::writer::{Work, Written};
use super::{Store, task};
use crate::holder::Process;

/// What the writer does.
#[derive(Debug)]
pub(super) enum PushWork {
    Put(Box<NewPushConfig>),
    Remove { task: String, id: String },
    Enqueue(Vec<NewDelivery>),
    Advance(Vec<(PushKey, PushPosition)>),
    Take { config: PushKey, until: Timestamp },
    Settle(Box<SettledAttempt>),
}

#[derive(Debug)]
pub(super) enum PushWritten {
    Put(PutPushConfig),
    Removed(bool),
    Pending(Vec<PendingPush>),
    Taken(TakePush),
    Nothing,
}

impl PushWork {
    pub(super) fn flush(&self) -> Flush {
        match self {
            Self::Put(_) | Self::Remove { .. } | Self::Enqueue(_) | Self::Take { .. } => Flush::Now,
            // After a power failure they are repeated, and the attempt says so.
            Self::Advance(_) | Self::Settle(_) => Flush::Soon,
        }
    }
}

/// Does it, inside a transaction of the writer.
pub(super) fn perform(
    connection: &Connection,
    this: &Process,
    work: &PushWork,
    now: i64,
) -> Result<PushWritten, StoreError> {
    match work {
        PushWork::Put(config) => put(connection, config, now).map(PushWritten::Put),
        PushWork::Remove { task, id } => {
            let Some(key) = find(connection, task, id)? else { return Ok(PushWritten::Removed(false)) };
            remove(connection, key, "its config was deleted", now)?;
            Ok(PushWritten::Removed(true))
        }
        PushWork::Enqueue(deliveries) => Ok(PushWritten::Pending(queue::enqueue(connection, deliveries, now)?)),
        PushWork::Advance(configs) => {
            for (key, position) in configs {
                advance(connection, *key, *position)?;
            }
            Ok(PushWritten::Nothing)
        }
        PushWork::Take { config, until } => {
            Ok(PushWritten::Taken(queue::take(connection, this, *config, *until, now)?))
        }
        PushWork::Settle(attempt) => {
            Ok(PushWritten::Pending(queue::settle(connection, attempt)?.into_iter().collect()))
        }
    }
}

fn put(connection: &Connection, new: &NewPushConfig, now: i64) -> Result<PutPushConfig, StoreError> {
    let count = |select: &str, name: &str, most: usize| -> rusqlite::Result<bool> {
        let count: i64 = connection.prepare_cached(select)?.query_row([name], |row| row.get(0))?;
        Ok(count >= i64::try_from(most).unwrap_or(i64::MAX))
    };
    if task::find(connection, &new.task)?.is_none() {
        return Ok(PutPushConfig::NoTask);
    }
    let before = find(connection, &new.task, &new.id)?;
    let of_task = "SELECT count(*) FROM push_configs WHERE task_id = ?";
    if before.is_none() && count(of_task, &new.task, PUSH_CONFIGS_PER_TASK)? {
        return Ok(PutPushConfig::TooManyOfTask);
    }
    let of_client = "SELECT count(*) FROM push_configs WHERE client = ? AND finished = 0";
    if before.is_none() && count(of_client, &new.client, PUSH_CONFIGS_PER_CLIENT)? {
        return Ok(PutPushConfig::TooManyOfClient);
    }
    if let Some(key) = before {
        remove(connection, key, "its config was replaced", now)?;
    }
    let insert = "INSERT INTO push_configs \
         (task_id, session_id, id, client, url, origin, secrets, form, created, epoch, seq, part, state, finished) \
         VALUES (:task, :session, :id, :client, :url, :origin, :secrets, :form, :created, :epoch, :seq, :part, :state, \
         :finished)";
    connection.prepare_cached(insert)?.execute(named_params! {
        ":task": new.task,
        ":session": new.session.as_str(),
        ":id": new.id,
        ":client": new.client,
        ":url": new.url,
        ":origin": new.origin,
        ":secrets": new.secrets,
        ":form": new.form,
        ":created": new.created.as_millis(),
        ":epoch": signed(new.after.epoch),
        ":seq": signed(new.after.seq),
        ":part": new.after.part,
        ":state": new.state,
        ":finished": new.finished,
    })?;
    let key = PushKey(connection.last_insert_rowid());
    // Configs of finished tasks are only of interest for a while.
    let old = "DELETE FROM push_configs WHERE due IS NULL AND key IN \
               (SELECT key FROM push_configs WHERE client = ? AND finished = 1 ORDER BY key DESC LIMIT -1 OFFSET ?)";
    connection.prepare_cached(old)?.execute(params![new.client, PUSH_CONFIGS_PER_CLIENT as i64])?;
    Ok(PutPushConfig::Stored(key))
}

fn find(connection: &Connection, task: &str, id: &str) -> rusqlite::Result<Option<PushKey>> {
    let mut select = connection.prepare_cached("SELECT key FROM push_configs WHERE task_id = ? AND id = ?")?;
    select.query_row([task, id], |row| row.get(0).map(PushKey)).optional()
}

/// Deletes a config and gives up what waits.
fn remove(connection: &Connection, key: PushKey, why: &str, now: i64) -> rusqlite::Result<()> {
    let give_up = "UPDATE push_deliveries SET status = 'givenUp', body = NULL, error = ?, updated = ? \
                   WHERE config = ? AND status = 'pending'";
    connection.prepare_cached(give_up)?.execute(params![why, now, key.0])?;
    connection.prepare_cached("DELETE FROM push_configs WHERE key = ?")?.execute([key.0])?;
    Ok(())
}

fn advance(connection: &Connection, key: PushKey, to: PushPosition) -> rusqlite::Result<()> {
    let update = "UPDATE push_configs SET epoch = ?1, seq = ?2, part = ?3 \
                  WHERE key = ?4 AND (epoch, seq, part) < (?1, ?2, ?3)";
    connection.prepare_cached(update)?.execute(params![signed(to.epoch), signed(to.seq), to.part, key.0])?;
    Ok(())
}

fn list(connection: &Connection, of: &PushScope) -> Result<Vec<PushConfigRecord>, StoreError> {
    let (wanted, name) = match of {
        PushScope::Task(task) => ("task_id = ?", Some(task.as_str())),
        PushScope::Session(session) => ("session_id = ? AND NOT finished", Some(session.as_str())),
        PushScope::All => ("? IS NULL AND NOT finished", None),
    };
    let select = format!(
        "SELECT key, task_id, session_id, id, client, url, secrets, form, epoch, seq, part, state, finished \
         FROM push_configs WHERE {wanted} ORDER BY key DESC"
    );
    let mut select = connection.prepare_cached(&select)?;
    let found = select.query_map([name], config)?.collect::<rusqlite::Result<_>>()?;
    Ok(found)
}

fn config(row: &Row<'_>) -> rusqlite::Result<PushConfigRecord> {
    Ok(PushConfigRecord {
        key: PushKey(row.get("key")?),
        task: row.get("task_id")?,
        id: row.get("id")?,
        session: session(row)?,
        client: row.get("client")?,
        url: row.get("url")?,
        secrets: row.get("secrets")?,
        form: row.get("form")?,
        after: position(row)?,
        state: row.get("state")?,
        finished: row.get("finished")?,
    })
}

fn session(row: &Row<'_>) -> rusqlite::Result<SessionId> {
    Ok(row.get::<_, String>("session_id")?.into())
}

fn position(row: &Row<'_>) -> rusqlite::Result<PushPosition> {
    Ok(PushPosition { epoch: number(row.get("epoch")?), seq: number(row.get("seq")?), part: row.get("part")? })
}

impl Store {
    async fn push(&self, work: PushWork) -> Result<PushWritten, JournalError> {
        match self.write(Work::Push(work)).await? {
            Written::Push(written) => Ok(written),
            Written::Nothing | Written::Claim(_) => Ok(PushWritten::Nothing),
        }
    }

    async fn pushed(&self, work: PushWork) -> Result<Vec<PendingPush>, JournalError> {
        match self.push(work).await? {
            PushWritten::Pending(pending) => Ok(pending),
            _ => Ok(Vec::new()),
        }
    }
}

impl PushQueue for Store {
    fn put_config(&self, config: NewPushConfig) -> Kept<'_, PutPushConfig> {
        Box::pin(async {
            match self.push(PushWork::Put(Box::new(config))).await? {
                PushWritten::Put(put) => Ok(put),
                _ => Err(JournalError::Other("the push config was not stored".to_owned())),
            }
        })
    }

    fn push_configs(&self, of: PushScope) -> Kept<'_, Vec<PushConfigRecord>> {
        Box::pin(self.read(move |connection, _| list(connection, &of)))
    }

    fn remove_config(&self, task: String, id: String) -> Kept<'_, bool> {
        Box::pin(async { Ok(matches!(self.push(PushWork::Remove { task, id }).await?, PushWritten::Removed(true))) })
    }

    fn enqueue(&self, deliveries: Vec<NewDelivery>) -> Kept<'_, Vec<PendingPush>> {
        Box::pin(self.pushed(PushWork::Enqueue(deliveries)))
    }

    fn advance(&self, configs: Vec<(PushKey, PushPosition)>) -> Kept<'_, ()> {
        Box::pin(async { self.push(PushWork::Advance(configs)).await.map(drop) })
    }

    fn pending(&self) -> Kept<'_, Vec<PendingPush>> {
        Box::pin(self.read(queue::pending))
    }

    fn take(&self, config: PushKey, until: Timestamp) -> Kept<'_, TakePush> {
        Box::pin(async move {
            match self.push(PushWork::Take { config, until }).await? {
                PushWritten::Taken(taken) => Ok(taken),
                _ => Ok(TakePush::Empty),
            }
        })
    }

    fn settle(&self, attempt: SettledAttempt) -> Kept<'_, Option<PendingPush>> {
        Box::pin(async { Ok(self.pushed(PushWork::Settle(Box::new(attempt))).await?.pop()) })
    }

    fn deliveries(&self, of: DeliveriesOf, limit: usize) -> Kept<'_, Vec<DeliveryRecord>> {
        Box::pin(self.read(move |connection, _| queue::list(connection, &of, limit)))
    }
}
