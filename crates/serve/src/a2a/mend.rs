//! Tasks that a process left unfinished when it ended, however it ended: they stand where their logs say.

use std::sync::Arc;

use multitap_a2a::TaskState;
use multitap_a2a::devtool::Spelling;
use multitap_hub::{Journal, JournalError, TaskFilter, TaskRecord};

use super::history::{End, Log, Stretch};
use super::name;

/// How many are looked at at a time.
const AT_A_TIME: usize = 100;

/// Sees to those that no living process has.
pub(super) async fn mend(journal: Arc<dyn Journal>) {
    for state in [TaskState::Submitted, TaskState::Working, TaskState::InputRequired] {
        if let Err(error) = mend_those(&journal, state).await {
            tracing::warn!(%error, "cannot see to tasks that were left unfinished");
        }
    }
}

async fn mend_those(journal: &Arc<dyn Journal>, state: TaskState) -> Result<(), JournalError> {
    let mut filter = TaskFilter { state: Some(state.word().to_owned()), limit: AT_A_TIME, ..TaskFilter::default() };
    loop {
        let page = journal.tasks(filter.clone()).await?;
        let Some(last) = page.tasks.last() else { return Ok(()) };
        filter.before = Some((last.updated, last.id.clone()));
        for task in page.tasks {
            mend_one(journal, task, state).await?;
        }
    }
}

async fn mend_one(journal: &Arc<dyn Journal>, task: TaskRecord, kept: TaskState) -> Result<(), JournalError> {
    let found = journal.find(task.session.to_string()).await?;
    let Some(session) = found.into_iter().find(|record| record.id == task.session) else { return Ok(()) };
    // Whoever has it keeps its tasks.
    if session.live.is_some() {
        return Ok(());
    }
    let log = Log::Kept { journal: journal.clone(), session: task.session.clone() };
    let stretch = Stretch { log, task: task.id.as_str().into(), first: task.first_seq, last: None, is_over: false };
    // Where one that lasts stands is said at the end of the log; a turn's own task may be some way before it.
    let messages = (!name::is_own_task(&task.id)).then_some(1);
    let end = stretch.read(messages, Spelling::Specified).await?.end;
    // What still runs by its log runs nowhere; what the log does not know was never begun.
    let over = End { state: TaskState::Failed, seq: session.last_seq, at: session.updated };
    let runs = |end: &End| matches!(end.state, TaskState::Working | TaskState::InputRequired);
    let End { state, seq, at } = end.filter(|end| !runs(end)).unwrap_or(over);
    if state == kept {
        return Ok(());
    }
    let last_seq = (state.is_terminal() && name::is_own_task(&task.id)).then_some(seq);
    journal.keep_task(TaskRecord { state: state.word().to_owned(), last_seq, updated: at, ..task }).await
}
