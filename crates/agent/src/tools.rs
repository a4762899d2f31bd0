//! The tools: one file each, the same three parts in each: its spec, how a call becomes a job, how the job runs.
//!
//! Must not come in: models, turns, who may do what. A tool that is run has been allowed.

pub(crate) mod ask;
pub(crate) mod fetch;
pub(crate) mod memory;
pub(crate) mod shell;
pub(crate) mod todos;

use std::path::PathBuf;

use multitap_event::ToolKind;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::conversation::Call;
use crate::job::Job;
use crate::tool::{Doing, Outcome, Spec};

/// What our own tools are called.
pub(crate) const NAMES: [&str; 12] = [
    "read_file",
    "read_many_files",
    "list_directory",
    "glob",
    "search_file_content",
    "write_file",
    "replace",
    shell::NAME,
    fetch::NAME,
    memory::NAME,
    todos::NAME,
    ask::NAME,
];

/// All tools of a session. A part that is not there has no tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct Toolbox {
    pub(crate) shell: Option<shell::Shell>,
    pub(crate) web: Option<fetch::Screen>,
    /// The user's own memory file.
    pub(crate) memory: Option<PathBuf>,
}

/// A call that cannot be run; the model is told why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadCall(pub(crate) String);

impl Toolbox {
    /// What the model is told it can do.
    pub(crate) fn specs(&self) -> Vec<Spec> {
        let own = [todos::spec(), ask::spec()].into_iter();
        let shell = self.shell.iter().map(|_| shell::spec());
        let web = self.web.iter().map(|_| fetch::spec());
        let memory = self.memory.iter().map(|_| memory::spec());
        own.chain(shell).chain(web).chain(memory).collect()
    }

    pub(crate) fn spec(&self, name: &str) -> Option<Spec> {
        self.specs().into_iter().find(|spec| spec.name == name)
    }

    /// Checks a call and works out what it would do.
    pub(crate) async fn prepare(&self, call: &Call) -> Result<Job, BadCall> {
        match call.name.as_str() {
            shell::NAME => {
                let shell = self.shell.as_ref().ok_or_else(|| self.unknown(call))?;
                shell.prepare(arguments(call)?).map(Job::Shell)
            }
            fetch::NAME => {
                let web = self.web.as_ref().ok_or_else(|| self.unknown(call))?;
                fetch::prepare(arguments(call)?, web).map(Job::Fetch)
            }
            memory::NAME => {
                let file = self.memory.as_ref().ok_or_else(|| self.unknown(call))?;
                memory::prepare(arguments(call)?, file).await.map(Job::Remember)
            }
            todos::NAME => todos::prepare(arguments(call)?).map(Job::Todos),
            ask::NAME => ask::prepare(arguments(call)?).map(Job::Ask),
            _ => Err(self.unknown(call)),
        }
    }

    fn unknown(&self, call: &Call) -> BadCall {
        let known = self.specs().into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
        BadCall(format!("there is no tool '{}': there are {known}", call.name))
    }

    /// Does it. What it is given has been allowed.
    pub(crate) async fn run(&self, job: Job, doing: Doing) -> Outcome {
        match job {
            Job::Todos(todos) => todos.run(),
            Job::Shell(command) => match &self.shell {
                Some(shell) => shell.run(command, doing).await,
                None => Outcome::failed("this session has no shell"),
            },
            Job::Fetch(fetch) => match &self.web {
                Some(web) => fetch.run(web, doing).await,
                None => Outcome::failed("this session has no web"),
            },
            Job::Remember(remember) => remember.run().await,
            // Answered by the ruling; nothing is left to do.
            Job::Ask(ask) => Outcome::failed(format!("nobody answered \"{}\"", ask.question)),
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
