//! The tools: one file each, the same three parts in each: its spec, how a call becomes a job, how the job runs.
//!
//! Must not come in: models, turns, who may do what. A tool that is run has been allowed.

pub(crate) mod ask;
pub(crate) mod mcp;
pub(crate) mod todos;

use multitap_event::ToolKind;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::conversation::Call;
use crate::job::Job;
use crate::mcp::Servers;
use crate::tool::{Doing, Outcome, Spec};

/// All tools of a session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Toolbox {
    pub(crate) mcp: Servers,
}

/// A call that cannot be run; the model is told why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadCall(pub(crate) String);

impl Toolbox {
    /// What the model is told it can do.
    pub(crate) fn specs(&self) -> Vec<Spec> {
        let mut specs = vec![todos::spec(), ask::spec()];
        specs.extend(self.mcp.specs());
        specs
    }

    pub(crate) fn spec(&self, name: &str) -> Option<Spec> {
        self.specs().into_iter().find(|spec| spec.name == name)
    }

    /// Checks a call and works out what it would do.
    pub(crate) async fn prepare(&self, call: &Call) -> Result<Job, BadCall> {
        match call.name.as_str() {
            todos::NAME => todos::prepare(arguments(call)?).map(Job::Todos),
            ask::NAME => ask::prepare(arguments(call)?).map(Job::Ask),
            other => {
                if let Some(found) = mcp::prepare(&self.mcp, call) {
                    return found.map(Job::Mcp);
                }
                let known = self.specs().into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
                Err(BadCall(format!("there is no tool '{other}': there are {known}")))
            }
        }
    }

    /// Does it. What it is given has been allowed.
    pub(crate) async fn run(&self, job: Job, doing: Doing) -> Outcome {
        match job {
            Job::Todos(todos) => todos.run(),
            // Answered by the ruling; nothing is left to do.
            Job::Ask(ask) => Outcome::failed(format!("nobody answered \"{}\"", ask.question)),
            Job::Mcp(call) => self.mcp.call(call, doing).await,
        }
    }
}

/// The arguments of a call as the tool wants them.
fn arguments<T: DeserializeOwned>(call: &Call) -> Result<T, BadCall> {
    if !call.arguments.is_object() {
        let name = &call.name;
        return Err(BadCall(format!("the arguments of {name} must be a JSON object, not: {}", call.arguments)));
    }
    serde_json::from_value(call.arguments.clone())
        .map_err(|error| BadCall(format!("the arguments of {} do not fit: {error}", call.name)))
}

/// A spec whose arguments are these properties.
fn spec(name: &str, kind: ToolKind, description: &str, properties: Value, required: &[&str]) -> Spec {
    Spec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({ "type": "object", "properties": properties, "required": required }),
        kind,
        server: None,
        looks: false,
    }
}
