//! Dialect 1.0: methods like `SendMessage`, and `ProtoJSON`: no `kind` but a field for each kind of thing, names of enums
//! in capitals, what is empty left out. It has no word for the last event of a stream; there the stream just ends.

pub(crate) mod params;
pub(crate) mod read;
pub(crate) mod write;

use crate::model::{Role, TaskState};

pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

pub(crate) fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Unknown => "TASK_STATE_UNSPECIFIED",
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
    }
}
