//! Stored sessions whose last process ended before it had stored all notifications: their logs are read to the end.

use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_event::SessionId;
use multitap_hub::{JournalError, SessionRecord};
use tokio_util::sync::CancellationToken;

use super::super::cursor::Cursor;
use super::super::frame::{Body, Frame, FrameScope, StateChange};
use super::super::history::Log;
use super::super::name;
use super::super::past::{MissingFrames, Past};
use super::super::project::Projector;
use super::super::repair::repair_task;
use super::Push;
use super::notice::{Notice, Watcher};
use super::watchers::Watchers;
use crate::http::Shared;

/// Most frames between two writes.
const BATCH: usize = 256;

#[derive(Debug, thiserror::Error)]
enum CatchUpError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Missing(#[from] MissingFrames),
}

/// One session after the other, until the door closes.
pub(super) async fn run(door: Shared, push: Arc<Push>, sessions: Vec<SessionId>) {
    let stop: CancellationToken = door.stop.clone();
    let all = async {
        for session in sessions {
            if let Err(error) = one(&door, &push, &session).await {
                tracing::warn!(%session, %error, "push notifications of an earlier process may be missing");
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = all => {}
    }
}

async fn one(door: &Shared, push: &Arc<Push>, session: &SessionId) -> Result<(), CatchUpError> {
    let found = door.host.journal().find(session.to_string()).await?;
    // The process in which it is live follows it.
    let stored = found.into_iter().find(|record| record.id == *session && record.live.is_none());
    let Some(SessionRecord { last_seq, epoch, .. }) = stored else { return Ok(()) };
    let log = Log::Kept { journal: door.host.journal(), session: session.clone() };
    let mut watchers = Watchers::new(push.clone(), log.clone(), epoch, last_seq);
    watchers.load().await?;
    let mut after = watchers.position();
    let is_over = |watcher: &Watcher| watcher.state.is_some_and(TaskState::is_terminal);
    if after.seq >= last_seq && watchers.list().iter().all(is_over) {
        return Ok(());
    }
    if after.seq < last_seq {
        let first = Projector::new(session.as_str());
        let mut past = Past::open(log, door.host.journal(), first, after).await;
        while let Some(frame) = past.next(after).await? {
            after = frame.cursor;
            watchers.take(&Arc::new(frame));
            for _ in 1..BATCH {
                let Some(frame) = past.try_next(after) else { break };
                after = frame.cursor;
                watchers.take(&Arc::new(frame));
            }
            watchers.store().await?;
        }
    }
    watchers.close_messages();
    tell_interrupted(door, &mut watchers, session, last_seq).await?;
    watchers.store().await?;
    watchers.advance(Some(last_seq)).await?;
    Ok(())
}

/// The log of a killed process does not say that its tasks are over: their rows are repaired, and do.
async fn tell_interrupted(
    door: &Shared,
    watchers: &mut Watchers,
    session: &SessionId,
    last_seq: u64,
) -> Result<(), JournalError> {
    let journal = door.host.journal();
    let mut told = Vec::new();
    for watcher in watchers.list() {
        repair_task(&journal, &watcher.task).await?;
        let Some(record) = journal.task(watcher.task.clone()).await? else { continue };
        let state = TaskState::of_word(&record.state).filter(|state| state.is_terminal());
        let was_running = watcher.state.map_or(name::is_own_task(&watcher.task), |told| !told.is_terminal());
        let Some(state) = state.filter(|_| was_running) else { continue };
        let mut scope = Arc::new(FrameScope::first(session.as_str()));
        let changed = FrameScope::make_mut(&mut scope);
        (changed.task, changed.state) = (watcher.task.as_str().into(), state);
        let body = Body::State(StateChange::default());
        let frame = Arc::new(Frame::new(Cursor::new(last_seq, u32::MAX - 1), record.updated, scope, body));
        let last = name::is_own_task(&watcher.task);
        told.push((watcher.key, Notice { frame, is_same_state: false, is_cut: false, last }));
    }
    told.into_iter().for_each(|(key, notice)| watchers.tell(key, notice));
    Ok(())
}
