//! Handles requests in two steps: [`Service::prepare`] checks a request and determines the frames that answer it,
//! [`Opening::begin`] executes it.
//!
//! A connection with many streams must know where the frames go before the first one comes.

use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::devtool::{CommandExecution, CommandStatus};
use multitap_a2a::{Dialect, Error, Request, Sent};
use multitap_event::{AgentError, ClientRef, Decide, Prompt};
use multitap_hub::{Refusal, WhenBusy};

use super::command::{awaited_confirmation, not_started};
use super::{Answer, Call, Frames, Service, Stream, TurnResults, message};
use crate::a2a::cursor::Cursor;
use crate::a2a::follow::{Follow, Step};
use crate::a2a::frame::{Ends, Form};
use crate::a2a::history::TaskView;
use crate::a2a::push::config::CheckedConfig;
use crate::a2a::stage::Stage;
use crate::a2a::{card, keep, name};
use crate::error;
use crate::http::Shared;

/// How long a command may take to ask something before it is reported as started.
const ASK_PATIENCE: Duration = Duration::from_secs(1);
/// Maximum length of an id in bytes.
const ID: usize = 1024;

/// How a request is answered.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// The request is done: the `result` as JSON.
    Result(String),
    /// By frames, after [`Opening::begin`].
    Frames(Box<Opening>),
}

/// A checked request that frames will answer.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) stage: Arc<Stage>,
    /// Selects the frames after `after` that answer it.
    pub(crate) follow: Follow,
    pub(crate) after: Cursor,
    pub(crate) form: Form,
    /// The task for its client.
    pub(super) task: Arc<str>,
    pub(super) by: ClientRef,
    /// How the client sees the task.
    pub(super) view: TaskView,
    pub(super) action: Action,
    /// The webhook to notify of the task from then on.
    pub(super) push: Option<CheckedConfig>,
}

/// The action that causes the frames.
#[derive(Debug)]
pub(super) enum Action {
    Prompt {
        prompt: Prompt,
        when_busy: WhenBusy,
    },
    Decide(Box<Decide>),
    Command {
        line: String,
        notices: Vec<AgentError>,
    },
    /// No action: the client only follows, perhaps after the last frame that it has.
    Subscribe(Option<Cursor>),
}

/// The outcome of an opening.
#[derive(Debug)]
pub(crate) enum Begun {
    /// Without frames: the `result` as JSON.
    Result(String),
    Stream {
        /// A `result` as JSON, before the frames.
        first: Option<String>,
        /// The frames after this one are the answer.
        after: Cursor,
    },
}

impl Prepared {
    pub(super) fn frames(opening: Opening) -> Self {
        Self::Frames(Box::new(opening))
    }
}

impl Opening {
    /// The results of its turn, if its stream has them as artifacts. Clients of 0.3, such as Gemini CLI, join messages
    /// and artifacts of a stream to one answer, which would have its text twice.
    fn results(&self, door: &Shared) -> Option<TurnResults> {
        let is_turn = match self.action {
            Action::Prompt { .. } | Action::Decide(_) => true,
            Action::Subscribe(_) => name::is_own_task(&self.task),
            Action::Command { .. } => false,
        };
        let has_them = self.view.artifacts && is_turn && self.form.dialect() == Dialect::V1_0;
        has_them.then(|| TurnResults {
            door: door.clone(),
            stage: self.stage.clone(),
            task: self.task.clone(),
            view: self.view,
        })
    }

    /// Executes the action.
    pub(crate) async fn begin(self, door: &Shared) -> Result<Begun, Error> {
        let Self { stage, follow, after, form, task, by, view, action, push } = self;
        let push = push.map(|config| (config, stage.now()));
        match action {
            Action::Prompt { prompt, when_busy } => {
                let prompted = begin_turn(door, &stage, &task, prompt, when_busy, by).await;
                prompted.map_err(|error| error::from_refusal(&error))?;
            }
            Action::Decide(decide) => {
                message::decide_on(stage.session(), *decide, by).await?;
            }
            Action::Command { line, notices } => {
                let prompt = Prompt { prompt_id: Some((&*task).into()), notices, ..Prompt::text(line) };
                if let Err(error) = begin_turn(door, &stage, &task, prompt, WhenBusy::Queue, by).await {
                    return Ok(Begun::Result(not_started(&task, error.to_string())));
                }
                let status = first_confirmation(&stage, follow, after).await;
                let execution = CommandExecution { execution_id: task.to_string(), status, message: None };
                return Ok(Begun::Stream { first: serde_json::to_string(&execution).ok(), after });
            }
            Action::Subscribe(asked) => {
                let (first, after) = door.a2a.catch_up(door, &stage, &task, (form, view), asked, None).await?;
                return Ok(Begun::Stream { first, after });
            }
        }
        if let Some((config, before)) = push {
            door.a2a.put_config_of(door, &stage, (&task, view), &config, &before).await?;
        }
        Ok(Begun::Stream { first: None, after })
    }
}

/// Sends a prompt, and stores the task that its turn may be.
async fn begin_turn(
    door: &Shared,
    stage: &Stage,
    task: &str,
    prompt: Prompt,
    when_busy: WhenBusy,
    by: ClientRef,
) -> Result<(), Refusal> {
    let begun = keep::NewTask::before(stage.session(), task);
    stage.session().prompt(prompt, when_busy, by).await?;
    begun.accepted(&door.host.journal()).await;
    Ok(())
}

/// Ids are stored, and written into every frame of their task.
fn check_ids(request: &Request) -> Result<(), Error> {
    let ids: Vec<(&str, Option<&String>)> = match request {
        Request::SendMessage(send) | Request::StreamMessage(send) => vec![
            ("messageId", Some(&send.message.message_id)),
            ("taskId", send.message.task_id.as_ref()),
            ("contextId", send.message.context_id.as_ref()),
        ],
        Request::GetTask { id, .. } | Request::CancelTask { id, .. } | Request::Subscribe { id } => {
            vec![("id", Some(id))]
        }
        Request::ListTasks(list) => {
            vec![("contextId", list.context_id.as_ref()), ("pageToken", list.page_token.as_ref())]
        }
        Request::CreatePushConfig { task_id, .. } | Request::ListPushConfigs { task_id } => {
            vec![("taskId", Some(task_id))]
        }
        Request::GetPushConfig { task_id, config_id } => vec![("taskId", Some(task_id)), ("id", config_id.as_ref())],
        Request::DeletePushConfig { task_id, config_id } => vec![("taskId", Some(task_id)), ("id", Some(config_id))],
        Request::GetExtendedCard
        | Request::GetCommands { .. }
        | Request::ExecuteCommand(_)
        | Request::ConfirmToolCall { .. } => return Ok(()),
    };
    match ids.into_iter().find(|(_, id)| id.is_some_and(|id| id.len() > ID)) {
        Some((name, _)) => Err(Error::invalid_params(format!("{name}: has at most {ID} bytes"))),
        None => Ok(()),
    }
}

/// The question of a new command, if it asks one within a moment.
async fn first_confirmation(stage: &Arc<Stage>, mut follow: Follow, after: Cursor) -> CommandStatus {
    let mut reader = stage.read(after);
    let asked = async {
        let mut status = CommandStatus::Started;
        // An unreadable log is reported by the stream that follows.
        while let Ok(Some(frame)) = reader.next().await {
            match follow.step(&frame) {
                Step::Skip => {}
                Step::Pass => status = awaited_confirmation(&frame.body).unwrap_or(status),
                Step::Last if frame.ends == Some(Ends::Asked) => return status,
                Step::Last => return CommandStatus::Started,
            }
        }
        CommandStatus::Started
    };
    tokio::time::timeout(ASK_PATIENCE, asked).await.unwrap_or(CommandStatus::Started)
}

impl Service {
    /// Executes a request; or prepares it, if frames answer it.
    pub(crate) async fn prepare(&self, door: &Shared, call: Call, request: Request) -> Result<Prepared, Error> {
        check_ids(&request)?;
        let encoding = call.form.encoding;
        let result = match request {
            Request::SendMessage(send) => {
                let (at_once, history) = (send.configuration.return_immediately, send.configuration.history_length);
                let opening = self.message(door, &call, send).await?;
                encoding.write_sent(&self.send(door, opening, at_once, history).await?)
            }
            Request::StreamMessage(send) => return self.message(door, &call, send).await.map(Prepared::frames),
            Request::Subscribe { id } => return self.subscription(door, &call, &id).await.map(Prepared::frames),
            Request::ExecuteCommand(execute) => return self.command(door, &call, &execute).await,
            Request::GetTask { id, history_length } => {
                encoding.write_task(&self.get(door, &call, &id, history_length).await?)
            }
            Request::ListTasks(list) => encoding.write_task_list(&self.list(door, &call, list).await?),
            Request::CancelTask { id, .. } => encoding.write_task(&self.cancel(door, &call, &id).await?),
            Request::GetExtendedCard => card::extended(door).write(card::form_of(encoding)).to_string(),
            Request::GetCommands { context_id } => self.commands(door, &call, context_id).await?,
            Request::ConfirmToolCall { confirmation, task_id, context_id } => {
                self.confirm(door, &call, &confirmation, task_id, context_id).await?.to_string()
            }
            Request::CreatePushConfig { task_id, config } => {
                self.create_push_config(door, &call, &task_id, config).await?.to_string()
            }
            Request::GetPushConfig { task_id, config_id } => {
                self.push_config(door, &call, &task_id, config_id.as_deref()).await?.to_string()
            }
            Request::ListPushConfigs { task_id } => self.push_configs(door, &call, &task_id).await?.to_string(),
            Request::DeletePushConfig { task_id, config_id } => {
                self.delete_push_config(door, &call, task_id, config_id).await?.to_string()
            }
        };
        Ok(Prepared::Result(result))
    }

    /// Executes a request, and reads the frames that answer it.
    pub(crate) async fn answer(&self, door: &Shared, call: Call, request: Request) -> Result<Answer, Error> {
        check_ids(&request)?;
        if let Request::Subscribe { id } = &request
            && let Some(missed) = self.replay(door, &call, id).await?
        {
            return Ok(Answer::Stream(missed));
        }
        let opening = match self.prepare(door, call, request).await? {
            Prepared::Result(result) => return Ok(Answer::Result(result)),
            Prepared::Frames(opening) => opening,
        };
        let (stage, follow, form) = (opening.stage.clone(), opening.follow.clone(), opening.form);
        let results = opening.results(door);
        let is_command = matches!(opening.action, Action::Command { .. });
        let (first, after) = match opening.begin(door).await? {
            Begun::Result(result) => return Ok(Answer::Result(result)),
            Begun::Stream { first, after } => (first, after),
        };
        let stream = Stream::new(first, Frames::Live(stage.read(after)), follow, form).with_results(results);
        Ok(if is_command { Answer::Command(stream) } else { Answer::Stream(stream) })
    }

    /// Executes it without a stream: answers with the task when the turn ends or asks a question, or at once.
    async fn send(&self, door: &Shared, opening: Opening, at_once: bool, history: Option<u32>) -> Result<Sent, Error> {
        let (stage, task) = (opening.stage.clone(), opening.task.clone());
        let view = TaskView { history, ..opening.view };
        let (mut reader, mut follow) = (stage.read(opening.after), opening.follow.clone());
        opening.begin(door).await?;
        // The first frame shows that the message was accepted.
        while let Some(frame) = reader.next().await.map_err(|missing| Error::from(&missing))? {
            match follow.step(&frame) {
                Step::Skip => {}
                Step::Pass if at_once => break,
                Step::Pass => {}
                Step::Last => break,
            }
        }
        self.snapshot(door, &stage, &stage.now(), &task, view).await.map(Sent::Task)
    }
}
