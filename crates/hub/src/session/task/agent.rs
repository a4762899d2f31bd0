//! The agent of a session: starting, running, or gone.

use std::future::pending;

use multitap_event::{
    AgentError, AgentLink, Command, Draft, EditReview, EventKind, LaunchError, Resume, SessionConfig,
};
use tokio::sync::mpsc::{self, OwnedPermit, error::TrySendError};
use tokio::time::Instant;

use super::{DRAFTS, FIRST_READER, FirstReader, Linger, Phase, Restart, SessionTask, gone_without_a_word};
use crate::launch::Launching;
use crate::protocol::Refusal;
use crate::session::outbox::Effect;

/// Called when the agent runs, or could not start.
pub(super) type WhenUp = Box<dyn FnOnce(Result<(), LaunchError>) + Send>;

pub(super) enum Agent {
    Gone,
    Starting {
        launching: Launching,
        when_up: WhenUp,
    },
    Up {
        events: mpsc::Receiver<Draft>,
        /// Dropped to end the agent.
        commands: Option<mpsc::Sender<Command>>,
        steers: bool,
        reviews: mpsc::Sender<EditReview>,
        /// Whether the agent reported its end.
        ended: bool,
        /// Until its first event: the log of a session begins with it.
        when_up: Option<WhenUp>,
    },
}

/// Why an edited answer is not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotReviewed {
    NoAgent,
    Busy,
    /// The agent accepts no edited answers.
    TakesNone,
}

/// A report of the agent.
pub(super) enum News {
    Started(Result<AgentLink, LaunchError>),
    /// The agent sent events.
    Told,
    /// The agent can take a command.
    HasRoom,
    Gone,
}

/// The reports that the session waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ear {
    /// There is room for its events.
    pub(super) listens: bool,
    /// A command waits for it.
    pub(super) wants_room: bool,
}

/// The agent's next news. Cancel safe.
pub(super) async fn news(agent: &mut Agent, drafts: &mut Vec<Draft>, ear: Ear) -> News {
    match agent {
        Agent::Gone => pending().await,
        Agent::Starting { launching, .. } => News::Started(launching.await),
        Agent::Up { events, commands, .. } => tokio::select! {
            count = events.recv_many(drafts, DRAFTS), if ear.listens => if count == 0 { News::Gone } else { News::Told },
            () = has_room(commands.as_ref()), if ear.wants_room => News::HasRoom,
            else => pending().await,
        },
    }
}

/// Returns when there is room in the queue; never, if nobody reads it any more.
async fn has_room(commands: Option<&mpsc::Sender<Command>>) {
    let permit = match commands {
        Some(commands) => commands.reserve().await.ok(),
        None => None,
    };
    if permit.is_none() {
        pending().await
    }
}

impl Agent {
    /// A place in its queue.
    pub(super) fn permit(&self) -> Result<OwnedPermit<Command>, Refusal> {
        let Self::Up { commands: Some(commands), ended: false, .. } = self else { return Err(Refusal::NoAgent) };
        commands.clone().try_reserve_owned().map_err(|error| match error {
            TrySendError::Full(_) => Refusal::Busy,
            TrySendError::Closed(_) => Refusal::NoAgent,
        })
    }

    /// Sends an edited answer to the agent's judge.
    pub(super) fn review(&self, review: EditReview) -> Result<(), NotReviewed> {
        let Self::Up { reviews, commands: Some(_), ended: false, .. } = self else { return Err(NotReviewed::NoAgent) };
        reviews.try_send(review).map_err(|error| match error {
            TrySendError::Full(_) => NotReviewed::Busy,
            TrySendError::Closed(_) => NotReviewed::TakesNone,
        })
    }

    pub(super) fn steers(&self) -> bool {
        matches!(self, Self::Up { steers: true, .. })
    }

    /// Asks the agent to end; its last events still count.
    pub(super) fn let_go(&mut self) {
        if let Self::Up { commands, .. } = self {
            *commands = None;
        }
    }

    /// Asks the agent to end, and cancels a start.
    pub(super) fn end(&mut self) {
        self.let_go();
        if matches!(self, Self::Starting { .. }) {
            *self = Self::Gone;
        }
    }
}

impl SessionTask {
    /// Starts the agent with the current configuration.
    pub(super) fn start(&mut self, when_up: WhenUp) {
        self.agent = Agent::Starting { launching: self.launch.launch(self.config.clone()), when_up };
    }

    /// Restarts it with its conversation.
    pub(super) fn start_again(&mut self, when_up: WhenUp) {
        if let Some(native_id) = self.state.conversation() {
            let resume = Resume::Session { native_id: native_id.to_owned(), at: None };
            self.config = SessionConfig { resume, fork: false, ..self.config.clone() };
        }
        self.start(when_up);
    }

    pub(super) fn on_news(&mut self, news: News, drafts: &mut Vec<Draft>) {
        match news {
            News::Started(started) => self.on_started(started),
            News::Told => {
                for draft in drafts.drain(..) {
                    // Events after its end are ignored.
                    let Agent::Up { ended: ended @ false, when_up, .. } = &mut self.agent else { continue };
                    *ended = matches!(draft.kind, EventKind::SessionEnded(_));
                    let when_up = when_up.take_if(|_| *ended || matches!(draft.kind, EventKind::SessionStarted(_)));
                    self.on_draft(draft);
                    if let Some(when_up) = when_up {
                        self.outbox.then(Effect::Do(Box::new(move || when_up(Ok(())))));
                    }
                }
            }
            // A waiting command is handed over in the next step.
            News::HasRoom => {}
            News::Gone => self.on_gone(),
        }
    }

    fn on_started(&mut self, started: Result<AgentLink, LaunchError>) {
        let Agent::Starting { when_up, .. } = std::mem::replace(&mut self.agent, Agent::Gone) else { return };
        match started {
            Ok(AgentLink { events, commands, steers, reviews }) => {
                let (commands, when_up) = (Some(commands), Some(when_up));
                self.agent = Agent::Up { events, commands, steers, reviews, ended: false, when_up };
                self.restart = Restart::No;
            }
            Err(error) => {
                // Other clients have to know as well.
                if self.state.seq > 0 {
                    self.tell(EventKind::Error(AgentError::from(error.clone())));
                }
                when_up(Err(error));
            }
        }
    }

    fn on_gone(&mut self) {
        let agent = std::mem::replace(&mut self.agent, Agent::Gone);
        self.pending.clear();
        if self.first_reader != FirstReader::Joined {
            self.first_reader = FirstReader::AwaitedUntil(Instant::now() + FIRST_READER);
        }
        if let Agent::Up { ended: false, when_up, .. } = agent {
            if let Some(when_up) = when_up {
                self.outbox.then(Effect::Do(Box::new(move || when_up(Ok(())))));
            }
            self.tie_up();
            let end = gone_without_a_word(&self.state);
            self.tell(EventKind::SessionEnded(end));
        }
        let restarts = match std::mem::replace(&mut self.restart, Restart::No) {
            Restart::No => false,
            Restart::WhenGone => self.linger == Linger::UntilClosed && self.phase != Phase::Closing,
            Restart::WhenIdle => true,
        };
        if restarts {
            self.start_again(Box::new(|_| {}));
        }
    }
}
