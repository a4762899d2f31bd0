//! The requests of clients, in any dialect.

mod commands;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::model::{Map, Message, TaskState};
use crate::params::{self, Method};
use crate::read::{Node, short};

pub(crate) use commands::write as write_command;

/// A request with its parameters, whose types were checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    SendMessage(SendMessage),
    StreamMessage(SendMessage),
    GetTask {
        id: String,
        history_length: Option<u32>,
    },
    ListTasks(ListTasks),
    CancelTask {
        id: String,
        metadata: Map,
    },
    Subscribe {
        id: String,
    },
    CreatePushConfig {
        task_id: String,
        config: PushConfig,
    },
    GetPushConfig {
        task_id: String,
        config_id: Option<String>,
    },
    ListPushConfigs {
        task_id: String,
    },
    DeletePushConfig {
        task_id: String,
        config_id: String,
    },
    GetExtendedCard,
    /// `commands/get` of the `development-tool` extension.
    GetCommands {
        context_id: Option<String>,
    },
    /// `command/execute` of the `development-tool` extension.
    ExecuteCommand(CommandExecute),
    /// `toolCall/confirm`: an answer without a stream. [`crate::devtool`] reads it.
    ConfirmToolCall {
        confirmation: Value,
        task_id: Option<String>,
        context_id: Option<String>,
    },
}

impl Request {
    /// Reads a request. Its method determines the dialect; for the methods of the `development-tool` extension, which
    /// both dialects share, it is 0.3 ([`Self::dialect_of`] distinguishes them).
    pub fn read(method: &str, params: Option<Value>) -> Result<(Dialect, Self), Error> {
        let given = params.filter(|params| !params.is_null()).unwrap_or_else(|| Value::Object(Map::new()));
        let params = || Node::of_client("params", &given);
        match Method::of_name(method) {
            Some((dialect, known)) => Ok((dialect, params::read(dialect, known, &params()?)?)),
            None if commands::NAMES.contains(&method) => Ok((Dialect::V0_3, commands::read(method, &params()?)?)),
            None => Err(unknown(method)),
        }
    }

    /// The dialect of this method; `None` for a method that is the same in both, or unknown.
    pub fn dialect_of(method: &str) -> Option<Dialect> {
        Method::of_name(method).map(|(dialect, _)| dialect)
    }
}

fn unknown(method: &str) -> Error {
    let method = short(&Value::from(method));
    Error::new(ErrorKind::MethodNotFound, format!("there is no method {method}"))
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SendMessage {
    pub message: Message,
    pub configuration: SendConfiguration,
    pub metadata: Map,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SendConfiguration {
    /// Answer at once, without waiting for the task.
    pub return_immediately: bool,
    pub history_length: Option<u32>,
    pub accepted_output_modes: Vec<String>,
    pub push: Option<PushConfig>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListTasks {
    pub context_id: Option<String>,
    pub state: Option<TaskState>,
    pub page_size: Option<u32>,
    pub page_token: Option<String>,
    pub history_length: Option<u32>,
    /// RFC 3339.
    pub status_timestamp_after: Option<String>,
    pub include_artifacts: bool,
}

/// The address for a client's push notifications about a task.
#[derive(Clone, Default, PartialEq)]
pub struct PushConfig {
    pub id: Option<String>,
    pub url: String,
    pub token: Option<String>,
    pub authentication: Option<Authentication>,
}

impl std::fmt::Debug for PushConfig {
    /// A token is not for logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushConfig").field("id", &self.id).field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Clone, Default, PartialEq, Eq)]
pub struct Authentication {
    /// The authentication schemes. 0.3 may name several, 1.0 names one.
    pub schemes: Vec<String>,
    pub credentials: Option<String>,
}

impl std::fmt::Debug for Authentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authentication").field("schemes", &self.schemes).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandExecute {
    /// Such as `memory`, `add`.
    pub command_path: Vec<String>,
    pub args: String,
    pub context_id: Option<String>,
}
