//! Requests in two steps: first it is known what they come to, then it is done.
//!
//! A connection that carries many streams has to know between the two where the frames will go.

use std::sync::Arc;

use multitap_a2a::{Error, Request};

use super::command::Execution;
use super::plan::Plan;
use super::task::Subscription;
use super::{Answer, Call, Service, Stream, no_push};
use crate::a2a::card;
use crate::a2a::cursor::Cursor;
use crate::a2a::follow::Follow;
use crate::a2a::frame::Form;
use crate::a2a::stage::Stage;
use crate::http::Shared;

/// What a request comes to.
#[derive(Debug)]
pub(crate) enum Beginning {
    /// It is done: the `result` as JSON.
    Result(String),
    /// Frames will answer it.
    Opening(Opening),
}

/// A request that frames will answer, before it is done.
#[derive(Debug)]
pub(crate) enum Opening {
    Message(Box<Plan>),
    Subscription(Subscription),
    Command(Execution),
}

/// What such a request comes to when it is done.
#[derive(Debug)]
pub(crate) enum Begun {
    /// There is nothing to follow: the `result` as JSON.
    Result(String),
    Stream {
        /// What comes before the frames: a `result` as JSON.
        first: Option<String>,
        /// The frames after this one are its answer.
        after: Cursor,
    },
}

impl Opening {
    /// The session whose frames they are.
    pub(crate) fn stage(&self) -> &Arc<Stage> {
        match self {
            Self::Message(plan) => &plan.stage,
            Self::Subscription(wanted) => &wanted.stage,
            Self::Command(execution) => &execution.stage,
        }
    }

    /// Which frames.
    pub(crate) fn follow(&self) -> Follow {
        match self {
            Self::Message(plan) => plan.follow.clone(),
            Self::Subscription(wanted) => wanted.follow(),
            Self::Command(execution) => execution.follow(),
        }
    }

    pub(crate) fn form(&self) -> Form {
        match self {
            Self::Message(plan) => plan.form,
            Self::Subscription(wanted) => wanted.form,
            Self::Command(execution) => execution.form,
        }
    }

    /// None up to this one will be among them.
    pub(crate) fn after(&self) -> Cursor {
        match self {
            Self::Message(plan) => plan.after,
            Self::Subscription(wanted) => wanted.asked.unwrap_or_else(|| wanted.stage.now().cursor),
            Self::Command(execution) => execution.after,
        }
    }

    /// Does it.
    pub(crate) async fn begin(self, door: &Shared) -> Result<Begun, Error> {
        match self {
            Self::Message(plan) => {
                let after = plan.after;
                plan.act().await.map(|()| Begun::Stream { first: None, after })
            }
            Self::Subscription(wanted) => {
                let (first, after) = door.a2a().enter(door, &wanted).await?;
                Ok(Begun::Stream { first, after })
            }
            Self::Command(execution) => Ok(execution.run().await),
        }
    }
}

impl Service {
    /// Does what a client asks, or gets it ready where frames will answer it.
    pub(crate) async fn begin(&self, door: &Shared, call: Call, request: Request) -> Result<Beginning, Error> {
        let dialect = call.form.dialect;
        let result = match request {
            Request::SendMessage(send) => {
                let now = send.configuration.return_immediately;
                let history = send.configuration.history_length;
                let plan = self.plan(door, call, send).await?;
                dialect.write_sent(&self.send(door, plan, now, history).await?)
            }
            Request::StreamMessage(send) => {
                let plan = self.plan(door, call, send).await?;
                return Ok(Beginning::Opening(Opening::Message(Box::new(plan))));
            }
            Request::Subscribe { id } => {
                let wanted = self.subscription(door, &call, &id).await?;
                return Ok(Beginning::Opening(Opening::Subscription(wanted)));
            }
            Request::ExecuteCommand(execute) => return self.execution(door, &call, &execute).await,
            Request::GetTask { id, history_length } => {
                dialect.write_task(&self.get(door, &call, &id, history_length).await?)
            }
            Request::ListTasks(list) => dialect.write_task_list(&self.list(door, &call, list).await?),
            Request::CancelTask { id, .. } => dialect.write_task(&self.cancel(door, &call, &id).await?),
            Request::GetExtendedCard => card::of(door).write(card::form_of(dialect)).to_string(),
            Request::GetCommands { context_id } => self.commands(door, &call, context_id).await?,
            Request::ConfirmToolCall { confirmation, task_id, context_id } => {
                self.confirm(door, &call, &confirmation, task_id, context_id).await?.to_string()
            }
            Request::CreatePushConfig { .. }
            | Request::GetPushConfig { .. }
            | Request::ListPushConfigs { .. }
            | Request::DeletePushConfig { .. } => return Err(no_push()),
        };
        Ok(Beginning::Result(result))
    }

    /// Does what a client asks, with a way through the frames of its own.
    pub(crate) async fn answer(&self, door: &Shared, call: Call, request: Request) -> Result<Answer, Error> {
        if let Request::Subscribe { id } = &request
            && let Some(missed) = self.replay(door, &call, id).await?
        {
            return Ok(Answer::Stream(missed));
        }
        let opening = match self.begin(door, call, request).await? {
            Beginning::Result(result) => return Ok(Answer::Result(result)),
            Beginning::Opening(opening) => opening,
        };
        let (stage, follow, form) = (opening.stage().clone(), opening.follow(), opening.form());
        let is_command = matches!(opening, Opening::Command(_));
        let (first, after) = match opening.begin(door).await? {
            Begun::Result(result) => return Ok(Answer::Result(result)),
            Begun::Stream { first, after } => (first, after),
        };
        let stream = Stream::new(first, stage.read(after), follow, form);
        Ok(if is_command { Answer::Command(stream) } else { Answer::Stream(stream) })
    }
}
