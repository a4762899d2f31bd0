//! Following a stream to its end, over as many connections as it takes.
//!
//! A connection that breaks, or that ends while the task still works, is made again: from the last event on, where the
//! agent numbers its events, else from the state of the task. What was told is not told again.

mod seen;
mod source;

use std::time::Duration;

use seen::Seen;
use source::Next;
pub(super) use source::Source;

use super::Client;
use super::error::ClientError;
use super::line::Repeat;
use super::updates::Told;
use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::model::{TaskState, Update};

/// How long an agent may take to close a stream that has told everything.
const GRACE: Duration = Duration::from_secs(2);

/// How the stream came to be.
pub(super) enum Opening {
    /// By a message: it is about one turn.
    Message,
    /// By the wish to follow a task, from a cursor on.
    Subscription { task: String, after: Option<String> },
}

pub(super) struct Follower {
    client: Client,
    /// None: nothing more comes.
    source: Option<Source>,
    is_of_message: bool,
    /// The task to come back to.
    task: Option<String>,
    /// The last event that has a number.
    cursor: Option<String>,
    seen: Seen,
    rest: Rest,
    /// How often it was taken up again since something new came.
    attempts: u32,
    /// Whether it was ever taken up again.
    is_resumed: bool,
    /// Taken up again, and nothing came yet: what comes first may be a refusal.
    is_fresh: bool,
}

/// Whether the last thing that was told may be the last of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// There is more to come.
    Works,
    /// The stream may end here, or go on.
    Waits,
    /// Nothing more comes of this turn.
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
            rest: Rest::Works,
            attempts: 0,
            is_resumed: false,
            is_fresh: false,
        }
    }

    pub(super) async fn next(&mut self) -> Option<Result<Told, ClientError>> {
        loop {
            let limit = if self.is_told() { Some(GRACE) } else { self.client.timeouts.silence };
            let told = match self.source.as_mut()?.next(&self.client, limit).await {
                Next::Told(id, text, update) => match self.take(id, &text, *update) {
                    Some(told) => return Some(Ok(told)),
                    None => continue,
                },
                // It was answered, but by a refusal.
                Next::Failed(ClientError::Agent(error)) if self.is_fresh => self.refused(*error).await,
                Next::Failed(error) if error.may_pass() && self.is_told() => Ok(None),
                Next::Failed(error) if error.may_pass() => self.resume(Some(error)).await,
                Next::Failed(error) => Err(error),
                Next::Silent if self.is_told() => Ok(None),
                Next::Silent => self.resume(Some(self.silence())).await,
                Next::End if self.rest == Rest::Works => self.resume(None).await,
                Next::End => Ok(None),
            };
            match told {
                // It goes on with another connection.
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

    /// Whether all was told that the caller waits for, whether or not the stream ends. A stream that was taken up again
    /// follows the task; one that began with a message would have ended where the task rests.
    fn is_told(&self) -> bool {
        let rests = self.rest == Rest::Done || (self.is_resumed && self.rest == Rest::Waits);
        self.is_of_message && rests
    }

    /// None if it was told before.
    fn take(&mut self, id: Option<String>, text: &str, update: Update) -> Option<Told> {
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
        self.rest = rest(self.client.dialect(), &update);
        if let Some(task) = task_of(&update) {
            self.task = Some(task.to_owned());
        }
        Some(Told { cursor: id, update })
    }

    /// Makes the connection again. Without a cause it had ended as if all were told. None: that is the end.
    async fn resume(&mut self, mut cause: Option<ClientError>) -> Result<Option<Resumed>, ClientError> {
        let Some(task) = self.task.clone() else {
            // Nothing is known of what became of the message: the caller decides.
            return cause.map_or(Ok(None), Err);
        };
        loop {
            self.attempts += 1;
            let Some(wait) = self.client.agent.line.retry.wait(self.attempts, None) else {
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
                Err(error) if error.may_pass() || matches!(error, ClientError::Timeout { .. }) => cause = Some(error),
                Err(error) => return Err(broken(error)),
            }
        }
    }

    /// The agent does not let the task be followed. If that is because it is over, its state is what was missed.
    async fn refused(&self, error: Error) -> Result<Option<Resumed>, ClientError> {
        if self.rest != Rest::Works {
            return Ok(None);
        }
        let may_be_over = matches!(error.kind, ErrorKind::UnsupportedOperation | ErrorKind::MethodNotFound);
        if let (true, Some(task)) = (may_be_over, &self.task)
            && let Ok(task) = self.client.get(task, None).await
        {
            let update = Update::Task(task);
            if rest(self.client.dialect(), &update) != Rest::Works {
                return Ok(Some(Resumed::Last(Box::new(Told { cursor: None, update }))));
            }
        }
        Err(broken(error.into()))
    }

    fn silence(&self) -> ClientError {
        let url = super::place::shown(&self.client.agent.way.url);
        ClientError::Timeout { url, limit: self.client.timeouts.silence.unwrap_or_default() }
    }
}

/// What became of a stream that was to be taken up again.
enum Resumed {
    Live,
    /// It is over, and this is how.
    Last(Box<Told>),
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

fn rest(dialect: Dialect, update: &Update) -> Rest {
    let of = |state: TaskState| match state {
        state if state.is_terminal() => Rest::Done,
        state if state.is_interrupted() => Rest::Waits,
        _ => Rest::Works,
    };
    match update {
        Update::Message(_) => Rest::Done,
        Update::Task(task) => of(task.status.state),
        Update::Status(update) if dialect == Dialect::V0_3 && update.is_final => Rest::Done,
        Update::Status(update) => of(update.status.state),
        Update::Artifact(_) => Rest::Works,
    }
}
