//! Follows a stream to its end, over as many connections as needed.
//!
//! A connection that breaks, or that ends while the task is still working, is resumed: after the last event if the agent
//! numbers its events, else from the state of the task. No update is delivered twice.

mod seen;
mod source;

use std::time::Duration;

use seen::Seen;
use source::Next;
pub(super) use source::Source;

use super::Client;
use super::error::ClientError;
use super::http::Repeat;
use super::updates::StreamUpdate;
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::model::{TaskState, Update};

/// How long an agent may take to close a stream after the last update.
const GRACE: Duration = Duration::from_secs(2);

/// The first answer of a stream.
pub(super) enum Opening {
    /// A message: it is about one turn.
    Message,
    /// A subscription to a task, from a cursor on.
    Subscription { task: String, after: Option<String> },
}

pub(super) struct Follower {
    client: Client,
    /// `None` once the stream has ended.
    source: Option<Source>,
    is_of_message: bool,
    /// The task to resubscribe to.
    task: Option<String>,
    /// The last event that has a number.
    cursor: Option<String>,
    seen: Seen,
    progress: Progress,
    /// Attempts to resume since the last new update.
    attempts: u32,
    /// Whether it was ever resumed.
    is_resumed: bool,
    /// Whether the stream was just resumed, so that the first event may be a refusal.
    is_fresh: bool,
}

/// State of the task after the last update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// More updates come.
    Working,
    /// The stream may end here, or go on.
    Interrupted,
    /// The turn has no more updates.
    Done,
}

impl Follower {
    pub(super) fn new(client: Client, source: Source, opening: Opening) -> Self {
        let (is_of_message, task, cursor) = match opening {
            Opening::Message => (true, None, None),
            Opening::Subscription { task, after } => (false, Some(task), after),
        };
        Self {
            client,
            source: Some(source),
            is_of_message,
            task,
            cursor,
            seen: Seen::default(),
            progress: Progress::Working,
            attempts: 0,
            is_resumed: false,
            is_fresh: false,
        }
    }

    pub(super) async fn next(&mut self) -> Option<Result<StreamUpdate, ClientError>> {
        loop {
            let limit = if self.is_complete() { Some(GRACE) } else { self.client.timeouts.silence };
            let told = match self.source.as_mut()?.next(&self.client, limit).await {
                Next::Update(id, text, update) => match self.take(id, &text, *update) {
                    Some(told) => return Some(Ok(told)),
                    None => continue,
                },
                // The agent answered with a refusal.
                Next::Failed(ClientError::Agent(error)) if self.is_fresh => self.refused(*error).await,
                Next::Failed(error) if error.is_transient() && self.is_complete() => Ok(None),
                Next::Failed(error) if error.is_transient() => self.resume(Some(error)).await,
                Next::Failed(error) => Err(error),
                Next::Silent if self.is_complete() => Ok(None),
                Next::Silent => self.resume(Some(self.silence())).await,
                Next::End if self.progress == Progress::Working => self.resume(None).await,
                Next::End => Ok(None),
            };
            match told {
                // The next connection continues the stream.
                Ok(Some(Resumed::Live)) => {}
                Ok(Some(Resumed::Last(told))) => {
                    self.source = None;
                    return Some(Ok(*told));
                }
                Ok(None) => self.source = None,
                Err(error) => {
                    self.source = None;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Whether the caller has everything that it waits for, although the stream goes on. A resumed stream follows the
    /// task, but the stream of a message ends when the task needs input.
    fn is_complete(&self) -> bool {
        let is_done = self.progress == Progress::Done || (self.is_resumed && self.progress == Progress::Interrupted);
        self.is_of_message && is_done
    }

    /// `None` if it was delivered before.
    fn take(&mut self, id: Option<String>, text: &str, update: Update) -> Option<StreamUpdate> {
        let is_new = self.seen.insert(id.as_deref(), text);
        self.is_fresh = false;
        if is_new {
            self.attempts = 0;
        } else if id.is_some() {
            return None;
        }
        if id.is_some() {
            self.cursor.clone_from(&id);
        }
        self.progress = progress(self.client.dialect(), &update);
        if let Some(task) = task_of(&update) {
            self.task = Some(task.to_owned());
        }
        Some(StreamUpdate { cursor: id, update })
    }

    /// Connects again. Without a cause, the connection was closed regularly. `None` at the end of the stream.
    async fn resume(&mut self, mut cause: Option<ClientError>) -> Result<Option<Resumed>, ClientError> {
        let Some(task) = self.task.clone() else {
            // The outcome of the message is unknown: the caller decides.
            return cause.map_or(Ok(None), Err);
        };
        loop {
            self.attempts += 1;
            let Some(wait) = self.client.agent.http.retry.wait(self.attempts, None) else {
                return cause.map_or(Ok(None), |cause| Err(broken(cause)));
            };
            tokio::time::sleep(wait).await;
            match self.client.subscribe(&task, self.cursor.as_deref(), Repeat::Never).await {
                Ok(source) => {
                    self.source = Some(source);
                    (self.is_resumed, self.is_fresh) = (true, true);
                    return Ok(Some(Resumed::Live));
                }
                Err(ClientError::Agent(error)) => return self.refused(*error).await,
                Err(error) if error.is_transient() || matches!(error, ClientError::Timeout { .. }) => {
                    cause = Some(error)
                }
                Err(error) => return Err(broken(error)),
            }
        }
    }

    /// The agent refuses the subscription. If the task is over, its final state is the last update.
    async fn refused(&self, error: Error) -> Result<Option<Resumed>, ClientError> {
        if self.progress != Progress::Working {
            return Ok(None);
        }
        let may_be_over = matches!(error.kind, ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound);
        if let (true, Some(task)) = (may_be_over, &self.task)
            && let Ok(task) = self.client.get(task, None).await
        {
            let update = Update::Task(task);
            if progress(self.client.dialect(), &update) != Progress::Working {
                return Ok(Some(Resumed::Last(Box::new(StreamUpdate { cursor: None, update }))));
            }
        }
        Err(broken(error.into()))
    }

    fn silence(&self) -> ClientError {
        let url = super::address::shown(&self.client.agent.binding.url);
        ClientError::Timeout { url, limit: self.client.timeouts.silence.unwrap_or_default() }
    }
}

/// Outcome of an attempt to resume.
enum Resumed {
    Live,
    /// The task is over: its final state.
    Last(Box<StreamUpdate>),
}

fn broken(error: ClientError) -> ClientError {
    ClientError::Broken(Box::new(error))
}

fn task_of(update: &Update) -> Option<&str> {
    match update {
        Update::Task(task) => Some(&task.id),
        Update::Status(update) => Some(&update.task_id),
        Update::Artifact(update) => Some(&update.task_id),
        Update::Message(message) => message.task_id.as_deref(),
    }
}

fn progress(dialect: Dialect, update: &Update) -> Progress {
    let of = |state: TaskState| match state {
        state if state.is_terminal() => Progress::Done,
        state if state.is_interrupted() => Progress::Interrupted,
        _ => Progress::Working,
    };
    match update {
        Update::Message(_) => Progress::Done,
        Update::Task(task) => of(task.status.state),
        Update::Status(update) if dialect == Dialect::V0_3 && update.is_final => Progress::Done,
        Update::Status(update) => of(update.status.state),
        Update::Artifact(_) => Progress::Working,
    }
}
