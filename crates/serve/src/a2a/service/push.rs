//! Operations on push configs. Who may see a task may see that it has webhooks; controllers may add and delete them.

use std::sync::Arc;

use multitap_a2a::{Dialect, Error, ErrorKind, PushConfig, TaskState};
use multitap_event::{ClientRole, SessionId};
use multitap_hub::{
    PUSH_CONFIGS_PER_CLIENT, PUSH_CONFIGS_PER_TASK, PushConfigRecord, PushPosition, PushQueue, PushScope, PutPushConfig,
};
use serde_json::{Value, json};

use super::task::Known;
use super::{Call, Service};
use crate::a2a::cursor::Cursor;
use crate::a2a::history::TaskView;
use crate::a2a::push::Push;
use crate::a2a::push::config::{CheckedConfig, shown};
use crate::a2a::stage::{Now, Stage};
use crate::a2a::{keep, name};
use crate::error;
use crate::http::Shared;

impl Service {
    /// Adds a webhook to a task, or replaces the one with its id.
    pub(super) async fn create_push_config(
        &self,
        door: &Shared,
        call: &Call,
        task: &str,
        config: PushConfig,
    ) -> Result<Value, Error> {
        let Known { session, record } = self.known(door, task).await?;
        let config = self.check_push(door, call, config).await?;
        let is_over = name::is_own_task(task) && record.as_ref().is_some_and(|record| record.last_seq.is_some());
        let kept = record.and_then(|record| TaskState::of_word(&record.state));
        let (after, state) = match door.host.find(&session) {
            Some(live) => {
                let now = self.stage(door, &live).await?.now();
                (position(live.epoch(), now.cursor), if *now.task == *task { Some(now.state) } else { kept })
            }
            None => {
                let found = door.host.journal().find(session.to_string()).await;
                let found = found.map_err(|error| error::from_journal(&error))?;
                let stored = found.into_iter().find(|record| record.id == session);
                let (epoch, last) = stored.map_or((0, 0), |stored| (stored.epoch, stored.last_seq));
                (position(epoch, Cursor::new(last, u32::MAX)), kept)
            }
        };
        keep::ensure_begun(&door.host.journal(), &session, task, after.seq).await;
        let view = self.view(door, call, &session, task);
        put(door, config.stored((task, view), &session, after, state, is_over)).await?;
        Ok(call.form.dialect().write_push_config(task, &config.shown()))
    }

    /// Adds the webhook of a message that was accepted to its task. It gets the frames after `before`.
    pub(super) async fn put_config_of(
        &self,
        door: &Shared,
        stage: &Arc<Stage>,
        (task, view): (&str, TaskView),
        config: &CheckedConfig,
        before: &Now,
    ) -> Result<(), Error> {
        let session = stage.session();
        keep::ensure_begun(&door.host.journal(), session.id(), task, before.cursor.seq).await;
        let (after, state) =
            (position(session.epoch(), before.cursor), (*before.task == *task).then_some(before.state));
        let put = put(door, config.stored((task, view), session.id(), after, state, false)).await;
        put.map_err(|error| {
            let message = format!("the message was accepted as task {task}, but {}", error.message);
            Error { message, ..error }.with("taskId", task)
        })
    }

    /// The config with that id, or the newest.
    pub(super) async fn push_config(
        &self,
        door: &Shared,
        call: &Call,
        task: &str,
        id: Option<&str>,
    ) -> Result<Value, Error> {
        let found = self.configs(door, task).await?;
        let config = found.into_iter().find(|config| id.is_none_or(|id| config.id == id));
        let config = config.ok_or_else(|| {
            let which = id.map_or_else(String::new, |id| format!(" {id}"));
            let why = format!("task {task} has no push config{which}");
            Error::new(ErrorKind::TaskNotFound, why).with("taskId", task)
        })?;
        Ok(call.form.dialect().write_push_config(task, &shown(&config, &call.caller)))
    }

    pub(super) async fn push_configs(&self, door: &Shared, call: &Call, task: &str) -> Result<Value, Error> {
        let dialect = call.form.dialect();
        let found = self.configs(door, task).await?;
        let written = found.iter().map(|config| dialect.write_push_config(task, &shown(config, &call.caller)));
        let written: Vec<Value> = written.collect();
        Ok(match dialect {
            Dialect::V0_3 => written.into(),
            Dialect::V1_0 => json!({ "configs": written, "nextPageToken": "" }),
        })
    }

    /// Deleting one that does not exist succeeds: clients repeat requests.
    pub(super) async fn delete_push_config(
        &self,
        door: &Shared,
        call: &Call,
        task: String,
        id: String,
    ) -> Result<Value, Error> {
        let Known { session, .. } = self.known(door, &task).await?;
        let (push, queue) = may_change(door, call)?;
        queue.remove_config(task, id).await.map_err(|error| error::from_journal(&error))?;
        push.config_changed(&session);
        Ok(match call.form.dialect() {
            Dialect::V0_3 => Value::Null,
            Dialect::V1_0 => json!({}),
        })
    }

    /// Checks everything about a webhook that does not depend on its task.
    pub(super) async fn check_push(
        &self,
        door: &Shared,
        call: &Call,
        config: PushConfig,
    ) -> Result<CheckedConfig, Error> {
        let (push, queue) = may_change(door, call)?;
        let config = CheckedConfig::check(config, push.screen(), &call.caller, call.form.dialect()).await?;
        let all = queue.push_configs(PushScope::All).await.map_err(|error| error::from_journal(&error))?;
        let own = all.iter().filter(|other| other.client == config.client());
        if own.count() >= PUSH_CONFIGS_PER_CLIENT {
            return Err(too_many_of_client());
        }
        Ok(config)
    }

    /// Checks whether a task can have one more webhook.
    pub(super) async fn has_room_for(&self, door: &Shared, task: &str, config: &CheckedConfig) -> Result<(), Error> {
        let found = stored_configs(door, task).await?;
        let is_known = found.iter().any(|other| other.id == config.id());
        if found.len() >= PUSH_CONFIGS_PER_TASK && !is_known { Err(too_many_of_task()) } else { Ok(()) }
    }

    async fn configs(&self, door: &Shared, task: &str) -> Result<Vec<PushConfigRecord>, Error> {
        self.known(door, task).await?;
        stored_configs(door, task).await
    }

    /// Checks that clients of this door may see a task.
    pub(crate) async fn may_see(&self, door: &Shared, task: &str) -> Result<(), Error> {
        self.known(door, task).await.map(drop)
    }
}

async fn stored_configs(door: &Shared, task: &str) -> Result<Vec<PushConfigRecord>, Error> {
    let (_, queue) = supported(door)?;
    queue.push_configs(PushScope::Task(task.to_owned())).await.map_err(|error| error::from_journal(&error))
}

async fn put(door: &Shared, config: multitap_hub::NewPushConfig) -> Result<(), Error> {
    let (push, queue) = supported(door)?;
    let session: SessionId = config.session.clone();
    let found = stored_configs(door, &config.task).await?;
    if found.iter().any(|other| other.id == config.id && other.client != config.client) {
        let why =
            format!("the push config {} of this task is another client's: use another id, or delete it", config.id);
        return Err(Error::invalid_params(why));
    }
    match queue.put_config(config).await.map_err(|error| error::from_journal(&error))? {
        PutPushConfig::Stored(_) => push.config_changed(&session),
        PutPushConfig::NoTask => return Err(not_supported("this session is not stored")),
        PutPushConfig::TooManyOfTask => return Err(too_many_of_task()),
        PutPushConfig::TooManyOfClient => return Err(too_many_of_client()),
    }
    Ok(())
}

/// The push notifications of a door, for clients that may change them.
fn may_change<'d>(door: &'d Shared, call: &Call) -> Result<(&'d Push, &'d dyn PushQueue), Error> {
    let supported = supported(door)?;
    if call.caller.role == ClientRole::Observer {
        return Err(Error::new(ErrorKind::NotController, "an observer may not change push configs"));
    }
    Ok(supported)
}

fn supported(door: &Shared) -> Result<(&Push, &dyn PushQueue), Error> {
    let push = door.push.as_deref();
    push.and_then(|push| Some((push, push.queue()?))).ok_or_else(|| not_supported("this connection is private"))
}

fn not_supported(why: &str) -> Error {
    let message = format!(
        "push notifications are not supported here: {why}; subscribe to the task and resume with Last-Event-ID"
    );
    Error::new(ErrorKind::PushNotSupported, message)
}

fn position(epoch: u64, Cursor { seq, part }: Cursor) -> PushPosition {
    PushPosition { epoch, seq, part }
}

fn too_many_of_task() -> Error {
    let why = format!("push config: a task has at most {PUSH_CONFIGS_PER_TASK}: delete one first");
    Error::new(ErrorKind::UnsupportedOperation, why)
}

fn too_many_of_client() -> Error {
    let why =
        format!("push config: a client has at most {PUSH_CONFIGS_PER_CLIENT} for unfinished tasks: delete one first");
    Error::new(ErrorKind::UnsupportedOperation, why)
}
