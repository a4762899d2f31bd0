//! Operations on tasks: find, get, list, cancel, follow.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Error, ErrorKind, ListTasks, Map, Task, TaskList, TaskState, Update};
use multitap_event::{PromptId, SessionId, Timestamp};
use multitap_hub::{Filter, Refusal, Session, SessionRecord, TaskFilter, TaskRecord};
use serde_json::json;

use super::opening::{Action, Opening};
use super::{Call, Frames, Service, Stream};
use crate::a2a::cursor::Cursor;
use crate::a2a::encode::OURS;
use crate::a2a::follow::{Follow, Step};
use crate::a2a::frame::Form;
use crate::a2a::history::{Log, TaskRange, TaskView, last_state};
use crate::a2a::past::Past;
use crate::a2a::project::Projector;
use crate::a2a::stage::{Now, Stage};
use crate::a2a::{keep, name};
use crate::error;
use crate::http::Shared;

/// How long a turn may take to end after a cancel, before the client gets the state of the task.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);
/// The default number of tasks on a page.
const PAGE_SIZE: u32 = 50;

pub(super) struct Known {
    pub(super) session: SessionId,
    pub(super) record: Option<TaskRecord>,
}

impl Service {
    /// The session of a task, resumed if it is not live; and whether the task lasts as long as the session.
    pub(super) async fn session_of(&self, door: &Shared, call: &Call, task: &str) -> Result<(Session, bool), Error> {
        let known = self.known(door, task).await?;
        let session = self.live(door, call, &known.session).await?.ok_or_else(|| not_found(task))?;
        Ok((session, !name::is_own_task(task)))
    }

    pub(super) async fn known(&self, door: &Shared, task: &str) -> Result<Known, Error> {
        self.repair_tasks(door).await;
        let record = door.host.journal().task(task.to_owned()).await;
        let (session, record) = match name::session_of(task) {
            // It lasts as long as its session, whether or not it was stored.
            Some(session) => (session.into(), record.unwrap_or(None)),
            None => {
                let record = record.map_err(|error| error::from_journal(&error))?.ok_or_else(|| not_found(task))?;
                (record.session.clone(), Some(record))
            }
        };
        let belongs = door.host.shared().is_none_or(|shared| *shared.id() == session);
        if !belongs || !self.is_shown(door, &session).await? {
            return Err(not_found(task));
        }
        record.iter().for_each(|record| self.coders.recall(record));
        Ok(Known { session, record })
    }

    /// The sessions that clients of this door may not see.
    async fn hidden(&self, door: &Shared) -> Result<Vec<SessionId>, Error> {
        let sessions =
            door.host.journal().list(Filter::default()).await.map_err(|error| error::from_journal(&error))?;
        let mut folders = HashMap::new();
        let mut is_shown =
            |record: &SessionRecord| *folders.entry(record.folder.clone()).or_insert_with(|| door.host.shows(record));
        let is_hidden = |record: &SessionRecord| !is_shown(record) && door.host.find(&record.id).is_none();
        Ok(sessions.into_iter().filter(is_hidden).map(|record| record.id).collect())
    }

    /// Whether clients of this door may see such a session.
    async fn is_shown(&self, door: &Shared, session: &SessionId) -> Result<bool, Error> {
        let host = &door.host;
        if host.find(session).is_some() {
            return Ok(true);
        }
        let found = host.journal().find(session.to_string()).await.map_err(|error| error::from_journal(&error))?;
        Ok(found.iter().any(|record| record.id == *session && host.shows(record)))
    }

    /// The current state of a task.
    pub(super) async fn get(&self, door: &Shared, call: &Call, id: &str, history: Option<u32>) -> Result<Task, Error> {
        let Known { session, record } = self.known(door, id).await?;
        let view = TaskView { history, ..self.view(door, call, &session, id) };
        self.current(door, &session, id, record.as_ref(), view).await
    }

    pub(super) fn view(&self, door: &Shared, call: &Call, session: &SessionId, id: &str) -> TaskView {
        view(door, call, self.form(door, call, session).spelling, id)
    }

    async fn current(
        &self,
        door: &Shared,
        session: &SessionId,
        id: &str,
        record: Option<&TaskRecord>,
        view: TaskView,
    ) -> Result<Task, Error> {
        if let Some(live) = door.host.find(session) {
            let stage = self.stage(door, &live).await?;
            return self.snapshot(door, &stage, &stage.now(), &id.into(), view).await;
        }
        let log = Log::Kept { journal: door.host.journal(), session: session.clone() };
        task(log, session, id, record, None, view).await
    }

    /// A task of a live session at that moment: with the frames up to then, and no later ones.
    pub(super) async fn snapshot(
        &self,
        door: &Shared,
        stage: &Arc<Stage>,
        now: &Now,
        id: &Arc<str>,
        view: TaskView,
    ) -> Result<Task, Error> {
        let record = door.host.journal().task(id.to_string()).await.unwrap_or(None);
        let session = stage.session();
        task(Log::Live(session.clone()), session.id(), id, record.as_ref(), Some(now), view).await
    }

    pub(super) async fn list(&self, door: &Shared, call: &Call, list: ListTasks) -> Result<TaskList, Error> {
        self.repair_tasks(door).await;
        if let Some(session) = door.host.shared() {
            // All turns of the session may come from elsewhere, such as the terminal, or there may be none yet.
            let stage = self.stage(door, &session).await?;
            keep::ensure(&door.host.journal(), &session, &stage.now()).await;
        }
        let shared = door.host.shared().map(|session| session.id().clone());
        let context = list.context_id.as_deref().map(SessionId::from);
        let page_size = list.page_size.unwrap_or(PAGE_SIZE);
        if let (Some(shared), Some(context)) = (&shared, &context)
            && shared != context
        {
            return Ok(TaskList { page_size, ..TaskList::default() });
        }
        let after = list.status_timestamp_after.as_deref().map(|text| {
            let wrong = || Error::invalid_params("statusTimestampAfter: a time such as 2026-01-31T12:00:00Z");
            Timestamp::parse(text).ok_or_else(wrong)
        });
        let hidden = match context.as_ref().or(shared.as_ref()) {
            None => self.hidden(door).await?,
            Some(session) if shared.is_none() && !self.is_shown(door, session).await? => vec![session.clone()],
            Some(_) => Vec::new(),
        };
        let filter = TaskFilter {
            session: context.or(shared),
            hidden,
            state: list.state.map(|state| state.word().to_owned()),
            updated_after: after.transpose()?,
            before: list.page_token.as_deref().filter(|token| !token.is_empty()).map(read_token).transpose()?,
            // One more shows whether another page follows.
            limit: page_size as usize + 1,
        };
        let mut page = door.host.journal().tasks(filter).await.map_err(|error| error::from_journal(&error))?;
        let has_more = page.tasks.len() > page_size as usize;
        page.tasks.truncate(page_size as usize);
        let next = page.tasks.last().filter(|_| has_more).map(write_token).unwrap_or_default();
        let mut tasks = Vec::with_capacity(page.tasks.len());
        for record in &page.tasks {
            self.coders.recall(record);
            let history = Some(list.history_length.unwrap_or(0));
            let mut view = TaskView { history, ..self.view(door, call, &record.session, &record.id) };
            view.artifacts &= list.include_artifacts;
            tasks.push(self.current(door, &record.session, &record.id, Some(record), view).await?);
        }
        Ok(TaskList { tasks, next_page_token: next, page_size, total_size: page.total })
    }

    pub(super) async fn cancel(&self, door: &Shared, call: &Call, id: &str) -> Result<Task, Error> {
        let Known { session, record } = self.known(door, id).await?;
        let view = self.view(door, call, &session, id);
        let idle = |state: &str| {
            Error::new(ErrorKind::TaskNotCancelable, format!("task {id} is {state}: there is nothing to cancel"))
        };
        let kept = record.as_ref().map_or("idle", |record| record.state.as_str());
        let live = door.host.find(&session).ok_or_else(|| idle(kept))?;
        let stage = self.stage(door, &live).await?;
        let now = stage.now();
        let queued = name::is_own_task(id) && is_queued(&live, &id.into()).await;
        let mut reader = stage.read(now.cursor);
        let mut follow = if queued {
            live.withdraw(id.into(), call.client()).await.map_err(|refusal| match refusal {
                // The prompt ran, or the session ended meanwhile.
                Refusal::SessionEnded | Refusal::PromptNotQueued { .. } => {
                    Error::new(ErrorKind::TaskNotCancelable, refusal.to_string())
                }
                other => error::from_refusal(&other),
            })?;
            Follow::turn(id)
        } else {
            let turn = now.turn.clone().filter(|_| *now.task == *id || !name::is_own_task(id));
            let turn = turn.ok_or_else(|| idle(if *now.task == *id { now.state.word() } else { kept }))?;
            live.cancel(call.client()).await.map_err(|error| error::from_refusal(&error))?;
            Follow::turn(turn)
        };
        let ended = async {
            // The snapshot below has the state of the task, whether or not its frames can be read.
            while let Ok(Some(frame)) = reader.next().await {
                // A question that is withdrawn meanwhile does not end the task.
                if follow.step(&frame) == Step::Last && frame.scope.state.is_terminal() {
                    break;
                }
            }
        };
        if tokio::time::timeout(CANCEL_PATIENCE, ended).await.is_err() {
            tracing::warn!(task = id, "a cancelled turn goes on");
        }
        self.snapshot(door, &stage, &stage.now(), &id.into(), view).await
    }

    /// `tasks/resubscribe`, if the task can be followed.
    pub(super) async fn subscription(&self, door: &Shared, call: &Call, id: &str) -> Result<Opening, Error> {
        let Known { session, record } = self.known(door, id).await?;
        let live = door.host.find(&session).ok_or_else(|| not_live(id))?;
        // A client that has the last frame would wait forever.
        let last = record.filter(|_| name::is_own_task(id)).and_then(|record| record.last_seq);
        if last.is_some_and(|last| call.after.is_some_and(|after| after.seq >= last)) {
            return Err(nothing_more(id, "over"));
        }
        let stage = self.stage(door, &live).await?;
        Ok(Opening {
            follow: Follow::task(id),
            after: call.after.unwrap_or_else(|| stage.now().cursor),
            form: self.form(door, call, &session),
            task: id.into(),
            by: call.client(),
            view: self.view(door, call, &session, id),
            action: Action::Subscribe(call.after),
            push: None,
            stage,
        })
    }

    /// The first item for a follower of a task, and the frame after which the others follow. `asked` is the last frame
    /// that the client has, in that epoch if it names one.
    pub(crate) async fn catch_up(
        &self,
        door: &Shared,
        stage: &Arc<Stage>,
        id: &Arc<str>,
        (form, view): (Form, TaskView),
        asked: Option<Cursor>,
        epoch: Option<u64>,
    ) -> Result<(Option<String>, Cursor), Error> {
        let session = stage.session();
        let is_in_log =
            |cursor: &Cursor| cursor.seq <= session.last() && epoch.is_none_or(|epoch| epoch == session.epoch());
        if let Some(after) = asked.filter(is_in_log) {
            return Ok((None, after));
        }
        let now = stage.now();
        let mut task = self.snapshot(door, stage, &now, id, view).await?;
        if name::is_own_task(id) && task.status.state.is_terminal() && asked.is_none() {
            return Err(nothing_more(id, task.status.state.word()));
        }
        let mut ours = Map::from_iter([("cursor".to_owned(), now.cursor.to_string().into())]);
        if let Some(asked) = asked {
            let gap = json!({ "asked": asked.to_string(), "last": now.cursor.to_string(), "epoch": session.epoch() });
            ours.insert("replayGap".to_owned(), gap);
        }
        task.metadata.insert(OURS.to_owned(), ours.into());
        Ok((Some(form.encoding.write_update(&Update::Task(task))), now.cursor))
    }

    /// The frames that a client missed of a task whose session is only stored; `None` if it is live.
    pub(super) async fn replay(&self, door: &Shared, call: &Call, id: &str) -> Result<Option<Stream>, Error> {
        let Known { session, .. } = self.known(door, id).await?;
        if door.host.find(&session).is_some() {
            return Ok(None);
        }
        let form = self.form(door, call, &session);
        let after = call.after.ok_or_else(|| not_live(id))?;
        let (journal, start) = (door.host.journal(), Projector::new(session.as_str()));
        let mut past = Past::open(Log::Kept { journal: journal.clone(), session }, journal, start, after).await;
        if !past.look(after).await.map_err(|missing| Error::from(&missing))? {
            return Err(not_live(id));
        }
        Ok(Some(Stream::new(None, Frames::Kept { past, after }, Follow::task(id), form)))
    }

    /// Restores the spelling of a session after a restart.
    pub(super) async fn recall(&self, door: &Shared, session: &Session) {
        let lasting = name::lasting(session.id().as_str());
        let record = door.host.journal().task(lasting).await.unwrap_or(None);
        record.iter().for_each(|record| self.coders.recall(record));
    }
}

/// How a client sees a task. With the extension, results are in tool calls and messages alone: its clients would show
/// them twice.
pub(super) fn view(door: &Shared, call: &Call, spelling: Spelling, task: &str) -> TaskView {
    let is_core = !call.extension && (name::is_own_task(task) || door.host.shared().is_some());
    TaskView { spelling, history: None, artifacts: is_core && spelling == Spelling::Specified }
}

fn not_live(task: &str) -> Error {
    let why = format!("task {task} is not live: a message to it resumes its session");
    Error::new(ErrorKind::UnsupportedOperation, why)
}

fn nothing_more(task: &str, state: &str) -> Error {
    Error::new(ErrorKind::UnsupportedOperation, format!("task {task} is {state}: no more events follow"))
}

async fn is_queued(session: &Session, prompt: &PromptId) -> bool {
    let state = session.snapshot().await;
    state.is_some_and(|state| state.queue.iter().any(|queued| queued.prompt.prompt_id.as_ref() == Some(prompt)))
}

/// A task from its log and its record; for a live session, at the moment `now`.
async fn task(
    log: Log,
    session: &SessionId,
    id: &str,
    record: Option<&TaskRecord>,
    now: Option<&Now>,
    view: TaskView,
) -> Result<Task, Error> {
    let first = record.map_or(1, |record| record.first_seq);
    let recorded = record.map_or(TaskState::Submitted, |record| TaskState::of_word(&record.state).unwrap_or_default());
    let last = record.and_then(|record| record.last_seq);
    let last = [last, now.map(|now| now.seq)].into_iter().flatten().min();
    let is_over = now.is_none() && recorded.is_terminal();
    let stretch = TaskRange { log, task: id.into(), first, last, is_over };
    // Its record may lag, and its end may be well before the end of the log.
    let is_late = now.is_none() && !recorded.is_terminal() && name::is_own_task(id);
    let messages = view.history.filter(|_| !is_late);
    let mut told = stretch.read(messages, view.spelling).await.map_err(|error| error::from_journal(&error))?;
    let surplus = view.history.map_or(0, |limit| told.history.len().saturating_sub(limit as usize));
    told.history.drain(..surplus);
    let seen = last_state(recorded, told.end, now.is_some());
    let current = now.filter(|now| *now.task == *id).map(|now| now.state);
    let state = current.or(seen.map(|end| end.state)).unwrap_or(recorded);
    let since = seen.map(|end| end.at).or(record.map(|record| record.updated));
    let mut task = told.into_task(id, session, state, since, view);
    if view.history == Some(0) {
        task.history.clear();
    }
    Ok(task)
}

/// The token for the page after this task.
fn write_token(record: &TaskRecord) -> String {
    format!("{}.{}", record.updated.as_millis(), record.id)
}

fn read_token(token: &str) -> Result<(Timestamp, String), Error> {
    let wrong = || Error::invalid_params("pageToken: give back the nextPageToken of the page before");
    let (millis, id) = token.split_once('.').ok_or_else(wrong)?;
    Ok((Timestamp::from_millis(millis.parse().map_err(|_| wrong())?), id.to_owned()))
}

pub(super) fn not_found(task: &str) -> Error {
    Error::new(ErrorKind::TaskNotFound, format!("there is no task {task}")).with("taskId", task)
}
