//! Repairs the rows of tasks that a process left unfinished when it ended: their state is read from the log.

use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_a2a::devtool::Spelling;
use multitap_hub::{Journal, JournalError, TaskFilter, TaskRecord};

use super::history::{LastState, Log, TaskRange};
use super::name;

/// Number of tasks per page.
const AT_A_TIME: usize = 100;

/// Repairs the tasks that no running process owns.
pub(super) async fn repair_tasks(journal: Arc<dyn Journal>) {
    for state in [TaskState::Submitted, TaskState::Working, TaskState::InputRequired] {
        if let Err(error) = repair_in_state(&journal, state).await {
            tracing::warn!(%error, "cannot repair unfinished tasks");
        }
    }
}

/// Repairs one task, unless a running process owns it.
pub(super) async fn repair_task(journal: &Arc<dyn Journal>, id: &str) -> Result<(), JournalError> {
    let Some(task) = journal.task(id.to_owned()).await? else { return Ok(()) };
    match TaskState::of_word(&task.state) {
        Some(state) if !state.is_terminal() => repair_one(journal, task, state).await,
        _ => Ok(()),
    }
}

async fn repair_in_state(journal: &Arc<dyn Journal>, state: TaskState) -> Result<(), JournalError> {
    let mut filter = TaskFilter { state: Some(state.word().to_owned()), limit: AT_A_TIME, ..TaskFilter::default() };
    loop {
        let page = journal.tasks(filter.clone()).await?;
        let Some(last) = page.tasks.last() else { return Ok(()) };
        filter.before = Some((last.updated, last.id.clone()));
        for task in page.tasks {
            repair_one(journal, task, state).await?;
        }
    }
}

async fn repair_one(journal: &Arc<dyn Journal>, task: TaskRecord, kept: TaskState) -> Result<(), JournalError> {
    let found = journal.find(task.session.to_string()).await?;
    let Some(session) = found.into_iter().find(|record| record.id == task.session) else { return Ok(()) };
    // The owner of a live session writes its tasks.
    if session.live.is_some() {
        return Ok(());
    }
    let log = Log::Kept { journal: journal.clone(), session: task.session.clone() };
    let stretch = TaskRange { log, task: task.id.as_str().into(), first: task.first_seq, last: None, is_over: false };
    // The state of a lasting task is at the end of the log; that of a turn's own task may be earlier.
    let messages = (!name::is_own_task(&task.id)).then_some(1);
    let end = stretch.read(messages, Spelling::Specified).await?.end;
    // A task that runs by its log was interrupted; one that is missing in the log never began.
    let over = LastState { state: TaskState::Failed, seq: session.last_seq, at: session.updated };
    let runs = |end: &LastState| matches!(end.state, TaskState::Working | TaskState::InputRequired);
    let LastState { state, seq, at } = end.filter(|end| !runs(end)).unwrap_or(over);
    if state == kept {
        return Ok(());
    }
    let last_seq = (state.is_terminal() && name::is_own_task(&task.id)).then_some(seq);
    journal.keep_task(TaskRecord { state: state.word().to_owned(), last_seq, updated: at, ..task }).await
}
