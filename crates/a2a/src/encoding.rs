//! How messages and tasks are written: the dialects, and HTTP+JSON of 0.3, whose bodies are the JSON form of its gRPC
//! messages.

use crate::dialect::Dialect;
use crate::model::{Role, Sent, Task, TaskList, TaskState, Update};
use crate::write::{Wire, text};

/// The JSON form of messages and tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// JSON-RPC of 0.3.
    V0_3,
    /// HTTP+JSON of 0.3.
    V0_3Rest,
    /// Every binding of 1.0.
    V1_0,
}

impl Encoding {
    pub const ALL: [Self; 3] = [Self::V0_3, Self::V0_3Rest, Self::V1_0];

    pub fn dialect(self) -> Dialect {
        match self {
            Self::V0_3 | Self::V0_3Rest => Dialect::V0_3,
            Self::V1_0 => Dialect::V1_0,
        }
    }

    /// The form that HTTP+JSON has in a dialect.
    pub fn of_rest(dialect: Dialect) -> Self {
        match dialect {
            Dialect::V0_3 => Self::V0_3Rest,
            Dialect::V1_0 => Self::V1_0,
        }
    }

    /// A frame of a stream.
    pub fn write_update(self, update: &Update) -> String {
        text(&Wire(self, update))
    }

    /// The answer to a message.
    pub fn write_sent(self, sent: &Sent) -> String {
        text(&Wire(self, sent))
    }

    /// The answer to getting or canceling a task.
    pub fn write_task(self, task: &Task) -> String {
        text(&Wire(self, task))
    }

    pub fn write_task_list(self, list: &TaskList) -> String {
        text(&Wire(self, list))
    }

    pub(crate) fn role_word(self, role: Role) -> &'static str {
        match (self, role) {
            (Self::V0_3, Role::User) => "user",
            (Self::V0_3, Role::Agent) => "agent",
            (Self::V0_3Rest | Self::V1_0, Role::User) => "ROLE_USER",
            (Self::V0_3Rest | Self::V1_0, Role::Agent) => "ROLE_AGENT",
        }
    }

    pub(crate) fn state_word(self, state: TaskState) -> &'static str {
        match (self, state) {
            (Self::V0_3, state) => state.words().0,
            // The gRPC message of 0.3 spells it with two l.
            (Self::V0_3Rest, TaskState::Canceled) => "TASK_STATE_CANCELLED",
            (Self::V0_3Rest | Self::V1_0, state) => state.words().1,
        }
    }
}

impl From<Dialect> for Encoding {
    /// The form that JSON-RPC has in a dialect.
    fn from(dialect: Dialect) -> Self {
        match dialect {
            Dialect::V0_3 => Self::V0_3,
            Dialect::V1_0 => Self::V1_0,
        }
    }
}
