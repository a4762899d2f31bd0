//! The A2A language, for both directions: one [model](Message) of messages, tasks and what a stream tells of them, the
//! [dialects](Dialect) 0.3 and 1.0 it is written in, the agent card, errors, and the `development-tool` extension.
//!
//! With the feature `client`, which is on by default, there is also a [client](client::Client) for other agents.
//!
//! Knows nothing of Multitap: another program could use it as it is. Must not come in: sessions, agents, a server.

pub mod card;
#[cfg(feature = "client")]
pub mod client;
pub mod devtool;
mod dialect;
mod encoding;
mod error;
pub mod extension;
pub mod grpc;
pub mod hops;
pub mod json;
mod model;
mod params;
mod proto;
mod read;
mod request;
mod rest;
mod v0_3;
mod v1_0;
mod write;

pub use dialect::Dialect;
pub use encoding::Encoding;
pub use error::{Error, ErrorKind};
pub use model::{
    Artifact, ArtifactUpdate, Content, Map, Message, Part, Role, Sent, StatusUpdate, Task, TaskList, TaskState,
    TaskStatus, Update,
};
pub use request::{Authentication, CommandExecute, ListTasks, PushConfig, Request, SendConfiguration, SendMessage};
pub use rest::{NoRestCall, RestCall};
