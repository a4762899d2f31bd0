//! The ids of tasks. A task is a range of a session's log: all of it, or the turn of one prompt.

use std::sync::Arc;

use multitap_event::PromptId;

/// Prefix of a session's id: the task that lasts as long as the session.
const LASTING: &str = "task-";
/// Prefix of a prompt's own id: the turn of that prompt is a task of its own.
const TURN: &str = "turn-";
/// Prefix of the id of a slash command, whose turn is a task of its own.
const COMMAND: &str = "command-";

/// The task that lasts as long as the session does.
pub(crate) fn lasting(session: &str) -> String {
    format!("{LASTING}{session}")
}

/// The session whose lasting task this is.
pub(crate) fn session_of(task: &str) -> Option<&str> {
    task.strip_prefix(LASTING)
}

/// A prompt whose turn is a task of its own.
pub(crate) fn fresh_turn() -> PromptId {
    format!("{TURN}{}", PromptId::fresh()).into()
}

/// A prompt that is a slash command, and a task of its own.
pub(crate) fn fresh_command() -> PromptId {
    format!("{COMMAND}{}", PromptId::fresh()).into()
}

/// Whether a turn with that name is a task of its own.
pub(crate) fn is_own_task(turn: &str) -> bool {
    turn.starts_with(TURN) || turn.starts_with(COMMAND)
}

pub(crate) fn task_of(session: &str, turn: &str) -> Arc<str> {
    if is_own_task(turn) { turn.into() } else { lasting(session).into() }
}
