//! The two dialects, and the one face they have: everything of the model written and read in either.

use serde_json::Value;

use crate::error::Error;
use crate::model::{Message, Sent, Task, TaskList, Update};
use crate::read::Node;
use crate::request::{PushConfig, Request, write_command};
use crate::write::{text, tree};
use crate::{v0_3, v1_0};

/// A version of A2A on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    V0_3,
    V1_0,
}

/// Writes a borrowed thing of the model by the dialect's own `Wire`.
macro_rules! write_as {
    ($dialect:expr, $how:ident, $thing:expr) => {
        match $dialect {
            Self::V0_3 => $how(&v0_3::write::Wire($thing)),
            Self::V1_0 => $how(&v1_0::write::Wire($thing)),
        }
    };
}

/// Reads an agent's answer by the dialect's own function.
macro_rules! read_as {
    ($dialect:expr, $what:ident, $value:expr) => {{
        let node = Node::of_agent(stringify!($what), $value)?;
        match $dialect {
            Self::V0_3 => v0_3::read::$what(&node),
            Self::V1_0 => v1_0::read::$what(&node),
        }
    }};
}

impl Dialect {
    /// As in the header `A2A-Version`.
    pub fn version(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// The dialect in which a version is spoken. 0.2 has the words of 0.3; any 1 is understood by any other; what comes
    /// after the minor does not matter.
    pub fn of_version(version: &str) -> Option<Self> {
        let mut parts = version.trim().split('.').map(|part| part.parse::<u32>().ok());
        match (parts.next().flatten()?, parts.next()) {
            (0, Some(Some(2 | 3))) => Some(Self::V0_3),
            (1, None | Some(Some(_))) => Some(Self::V1_0),
            _ => None,
        }
    }

    /// The `result` of a frame of a stream.
    pub fn write_update(self, update: &Update) -> String {
        write_as!(self, text, update)
    }

    /// The `result` of a message that was sent.
    pub fn write_sent(self, sent: &Sent) -> String {
        write_as!(self, text, sent)
    }

    /// The `result` of getting or canceling a task.
    pub fn write_task(self, task: &Task) -> String {
        write_as!(self, text, task)
    }

    /// The `result` of listing tasks. JSON-RPC of 0.3 has no such method; its REST has.
    pub fn write_task_list(self, list: &TaskList) -> String {
        write_as!(self, text, list)
    }

    pub fn write_message(self, message: &Message) -> Value {
        write_as!(self, tree, message)
    }

    /// The `result` of creating or getting a push config.
    pub fn write_push_config(self, task_id: &str, config: &PushConfig) -> Value {
        match self {
            Self::V0_3 => v0_3::write::task_push_config(task_id, config),
            Self::V1_0 => v1_0::write::push_config(Some(task_id), config),
        }
    }

    /// The `result` of listing a task's push configs.
    pub fn write_push_configs(self, task_id: &str, configs: &[PushConfig]) -> Value {
        let configs = configs.iter().map(|config| self.write_push_config(task_id, config)).collect();
        match self {
            Self::V0_3 => Value::Array(configs),
            Self::V1_0 => Value::from_iter([("configs", Value::Array(configs)), ("nextPageToken", Value::from(""))]),
        }
    }

    pub fn read_update(self, value: &Value) -> Result<Update, Error> {
        read_as!(self, update, value)
    }

    pub fn read_sent(self, value: &Value) -> Result<Sent, Error> {
        read_as!(self, sent, value)
    }

    pub fn read_task(self, value: &Value) -> Result<Task, Error> {
        read_as!(self, task, value)
    }

    pub fn read_task_list(self, value: &Value) -> Result<TaskList, Error> {
        read_as!(self, task_list, value)
    }

    pub fn read_message(self, value: &Value) -> Result<Message, Error> {
        read_as!(self, message, value)
    }

    /// A push config and the id of its task.
    pub fn read_push_config(self, value: &Value) -> Result<(String, PushConfig), Error> {
        read_as!(self, task_push_config, value)
    }

    pub fn read_push_configs(self, value: &Value) -> Result<Vec<(String, PushConfig)>, Error> {
        match (self, value) {
            (Self::V0_3, Value::Array(configs)) => configs.iter().map(|config| self.read_push_config(config)).collect(),
            (Self::V0_3, other) => self.read_push_config(other).map(|config| vec![config]),
            (Self::V1_0, value) => {
                Node::of_agent("result", value)?.each_object("configs", v1_0::read::task_push_config)
            }
        }
    }

    /// The method by which this is asked for; none if the dialect has none.
    pub fn method(self, request: &Request) -> Option<&'static str> {
        self.write_request(request).map(|(method, _)| method)
    }

    /// The parameters of [`Self::method`]; `null` if the dialect has none.
    pub fn write_params(self, request: &Request) -> Value {
        self.write_request(request).map(|(_, params)| params).unwrap_or_default()
    }

    /// The method by which this is asked for, and its parameters.
    pub fn write_request(self, request: &Request) -> Option<(&'static str, Value)> {
        let of_dialect = match self {
            Self::V0_3 => v0_3::params::write(request),
            Self::V1_0 => v1_0::params::write(request),
        };
        of_dialect.or_else(|| write_command(request))
    }
}
