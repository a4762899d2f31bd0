//! The two dialects behind one interface: reads and writes everything of the model in either.

use serde_json::Value;

use crate::error::Error;
use crate::model::{Message, Sent, Task, TaskList, Update};
use crate::params;
use crate::read::{Node, model};
use crate::request::{PushConfig, Request, write_command};
use crate::write::{Wire, tree};

/// A version of A2A on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    V0_3,
    V1_0,
}

impl Dialect {
    /// As in the header `A2A-Version`.
    pub fn version(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// The dialect for a version. 0.2 has the words of 0.3; all versions with major 1 understand each other; everything
    /// after the minor is ignored.
    pub fn of_version(version: &str) -> Option<Self> {
        let mut parts = version.trim().split('.').map(|part| part.parse::<u32>().ok());
        match (parts.next().flatten()?, parts.next()) {
            (0, Some(Some(2 | 3))) => Some(Self::V0_3),
            (1, None | Some(Some(_))) => Some(Self::V1_0),
            _ => None,
        }
    }

    pub fn write_message(self, message: &Message) -> Value {
        tree(&Wire(self.into(), message))
    }

    /// The `result` of creating or getting a push config.
    pub fn write_push_config(self, task_id: &str, config: &PushConfig) -> Value {
        params::write_task_push_config(self, task_id, config)
    }

    pub fn read_update(self, value: &Value) -> Result<Update, Error> {
        model::update(self, &Node::of_agent("update", value)?)
    }

    pub fn read_sent(self, value: &Value) -> Result<Sent, Error> {
        let node = Node::of_agent("sent", value)?;
        match model::update(self, &node)? {
            Update::Task(task) => Ok(Sent::Task(task)),
            Update::Message(message) => Ok(Sent::Message(message)),
            Update::Status(_) | Update::Artifact(_) => Err(node.wrong("must be a task or a message")),
        }
    }

    pub fn read_task(self, value: &Value) -> Result<Task, Error> {
        model::task(self, &Node::of_agent("task", value)?)
    }

    pub fn read_task_list(self, value: &Value) -> Result<TaskList, Error> {
        model::task_list(self, &Node::of_agent("task_list", value)?)
    }

    pub fn read_message(self, value: &Value) -> Result<Message, Error> {
        model::message(self, &Node::of_agent("message", value)?)
    }

    /// A push config and the id of its task.
    pub fn read_push_config(self, value: &Value) -> Result<(String, PushConfig), Error> {
        params::task_push_config(self, &Node::of_agent("task_push_config", value)?)
    }

    pub fn read_push_configs(self, value: &Value) -> Result<Vec<(String, PushConfig)>, Error> {
        match (self, value) {
            (Self::V0_3, Value::Array(configs)) => configs.iter().map(|config| self.read_push_config(config)).collect(),
            (Self::V0_3, other) => self.read_push_config(other).map(|config| vec![config]),
            (Self::V1_0, value) => {
                let node = Node::of_agent("result", value)?;
                node.each_object("configs", |node| params::task_push_config(self, node))
            }
        }
    }

    /// Method and parameters of this request; `None` if the dialect has no such method.
    pub fn write_request(self, request: &Request) -> Option<(&'static str, Value)> {
        params::write(self, request).or_else(|| write_command(request))
    }
}
