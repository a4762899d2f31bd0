//! The operations of the A2A door, for any transport.

mod command;
mod listed;
mod message;
mod notices;
mod opening;
mod push;
mod task;
mod wish;

use std::collections::VecDeque;
use std::sync::Arc;

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{ArtifactUpdate, Error, Map, Task, TaskState, Update};
use multitap_event::{ClientId, ClientRef, Door, SessionId};
use multitap_hub::Session;
use tokio::sync::OnceCell;

pub(crate) use self::command::Ran;
pub(crate) use self::listed::slash_command;
pub(crate) use self::message::shows_coder;
use self::notices::Notices;
pub(crate) use self::opening::{Begun, Opening, Prepared};
use super::coders::Coders;
use super::cursor::Cursor;
use super::follow::{Follow, Step};
use super::frame::{Ends, Form, Frame};
use super::history::TaskView;
use super::keep::TaskKeeper;
use super::past::{MissingFrames, Past};
use super::push::follow;
use super::repair;
use super::stage::{Reader, Stage};
use super::stages::Stages;
use crate::error;
use crate::guard::Caller;
use crate::http::Shared;

/// The client, and the form of its answers.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) form: Form,
    /// The `development-tool` extension was activated.
    pub(crate) extension: bool,
    /// The last frame the client has.
    pub(crate) after: Option<Cursor>,
    /// The client's id in the session, if it has joined.
    pub(crate) client_id: Option<ClientId>,
}

impl Call {
    /// The client, as the session knows it.
    pub(crate) fn client(&self) -> ClientRef {
        ClientRef { client_id: self.client_id.clone(), ..self.caller.client(Door::A2a) }
    }
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// The `result` as JSON.
    Result(String),
    Stream(Stream),
    /// The first state of a command, and the frames that follow it.
    Command(Stream),
}

/// The frames of a session that a client follows.
#[derive(Debug)]
pub(crate) struct Stream {
    /// A `result` as JSON, before the frames.
    first: Option<String>,
    frames: Frames,
    follow: Follow,
    pub(crate) form: Form,
    /// The results of the turn come before its last frame.
    results: Option<TurnResults>,
    /// The last frame, while the results are read.
    last: Option<Arc<Frame>>,
    /// The results and the last frame.
    ready: VecDeque<Item>,
    over: bool,
}

#[derive(Debug)]
pub(crate) enum Frames {
    Live(Reader),
    /// A stored session: it has only its log.
    Kept {
        past: Past,
        after: Cursor,
    },
}

impl Frames {
    async fn next(&mut self) -> Result<Option<Arc<Frame>>, MissingFrames> {
        match self {
            Self::Live(reader) => reader.next().await,
            Self::Kept { past, after } => {
                let Some(frame) = past.next(*after).await? else { return Ok(None) };
                *after = frame.cursor;
                Ok(Some(Arc::new(frame)))
            }
        }
    }

    fn try_next(&mut self) -> Option<Arc<Frame>> {
        match self {
            Self::Live(reader) => reader.try_next(),
            Self::Kept { past, after } => {
                let frame = past.try_next(*after)?;
                *after = frame.cursor;
                Some(Arc::new(frame))
            }
        }
    }
}

/// An item of a stream.
#[derive(Debug)]
pub(crate) enum Item {
    First(String),
    Frame(Arc<Frame>),
    /// A result of the turn as JSON. It belongs to no event, so it has no cursor.
    Artifact(String),
    /// Frames are missing. It is the last item.
    Failed(Error),
}

impl Stream {
    pub(crate) fn new(first: Option<String>, frames: Frames, follow: Follow, form: Form) -> Self {
        Self { first, frames, follow, form, results: None, last: None, ready: VecDeque::new(), over: false }
    }

    /// The results of the turn are sent as artifacts.
    pub(super) fn with_results(self, results: Option<TurnResults>) -> Self {
        Self { results, ..self }
    }

    /// The session, if it is live.
    pub(crate) fn session(&self) -> Option<&Session> {
        match &self.frames {
            Frames::Live(reader) => Some(reader.session()),
            Frames::Kept { .. } => None,
        }
    }

    /// The `result` before the frames, to be sent without them.
    pub(crate) fn take_first(&mut self) -> Option<String> {
        self.first.take()
    }

    /// The next item, if it is in memory.
    pub(crate) fn try_next(&mut self) -> Option<Item> {
        if let Some(item) = self.ready.pop_front() {
            return Some(item);
        }
        while !self.over && self.first.is_none() {
            let frame = self.frames.try_next()?;
            if let Some(item) = self.step(frame) {
                return Some(item);
            }
        }
        None
    }

    /// The next item; `None` at the end. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Item> {
        if let Some(first) = self.first.take() {
            return Some(Item::First(first));
        }
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.last.is_some() {
                let made = match &self.results {
                    Some(results) => results.artifacts(self.form).await,
                    None => Vec::new(),
                };
                self.ready.extend(made.into_iter().map(Item::Artifact));
                self.ready.extend(self.last.take().map(Item::Frame));
                continue;
            }
            if self.over {
                return None;
            }
            let frame = match self.frames.next().await {
                Ok(frame) => frame?,
                Err(missing) => {
                    self.over = true;
                    return Some(Item::Failed(Error::from(&missing)));
                }
            };
            if let Some(item) = self.step(frame) {
                return Some(item);
            }
        }
    }

    fn step(&mut self, frame: Arc<Frame>) -> Option<Item> {
        match self.follow.step(&frame) {
            Step::Skip => return None,
            Step::Pass => {}
            Step::Last => {
                self.over = true;
                let has_results = frame.ends == Some(Ends::Turn) && frame.scope.state == TaskState::Completed;
                if self.results.is_some() && has_results {
                    self.last = Some(frame);
                    return None;
                }
            }
        }
        Some(Item::Frame(frame))
    }
}

/// Where the results of a turn are found once it ends.
#[derive(Debug)]
pub(super) struct TurnResults {
    door: Shared,
    stage: Arc<Stage>,
    task: Arc<str>,
    view: TaskView,
}

impl TurnResults {
    /// The results, each as an update of its own.
    async fn artifacts(&self, form: Form) -> Vec<String> {
        let Self { door, stage, task, view } = self;
        let view = TaskView { history: Some(0), ..*view };
        let snapshot = match door.a2a.snapshot(door, stage, &stage.now(), task, view).await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                // The task has them when it is asked for.
                tracing::warn!(%task, %error, "cannot read the results of a turn");
                return Vec::new();
            }
        };
        let Task { id, context_id, artifacts, .. } = snapshot;
        let update = |artifact| ArtifactUpdate {
            task_id: id.clone(),
            context_id: context_id.clone(),
            artifact,
            append: false,
            last_chunk: true,
            metadata: Map::new(),
        };
        let updates = artifacts.into_iter().map(|artifact| Update::Artifact(update(artifact)));
        updates.map(|update| form.encoding.write_update(&update)).collect()
    }
}

/// The state of the A2A door.
#[derive(Debug, Default)]
pub(crate) struct Service {
    stages: Stages,
    /// Sessions whose clients use the shipped spelling.
    coders: Arc<Coders>,
    /// Settings that were not granted, by session, until its next prompt.
    notices: Notices,
    /// Whether the tasks that earlier processes left unfinished were repaired.
    repaired: OnceCell<()>,
}

impl Service {
    /// Repairs the tasks of earlier processes, before any are read.
    async fn repair_tasks(&self, door: &Shared) {
        self.repaired.get_or_init(|| repair::repair_tasks(door.host.journal())).await;
    }

    /// The stage of a session: its frames are made once for all its clients.
    pub(crate) async fn stage(&self, door: &Shared, session: &Session) -> Result<Arc<Stage>, Error> {
        let journal = door.host.journal();
        let keep_tasks = |stage: Arc<Stage>| {
            if let Some(push) = &door.push {
                door.tasks.spawn(follow(push.clone(), stage.clone(), door.stop.clone()));
            }
            TaskKeeper::new(stage, journal.clone(), self.coders.clone()).run()
        };
        let stage = self.stages.get(session, &journal, keep_tasks, &door.tasks, &door.stop).await;
        stage.map_err(|error| error::from_refusal(&error))
    }

    fn form(&self, door: &Shared, call: &Call, session: &SessionId) -> Form {
        let is_shared = door.host.shared().is_some();
        let shown = !is_shared && self.coders.has(session);
        Form { spelling: if shown { Spelling::Coder } else { call.form.spelling }, ..call.form }
    }
}
