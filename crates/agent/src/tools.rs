//! The tools: one file each, with the same three parts: its spec, how a call becomes a job, how the job runs.
//!
//! Must not come in: models, turns, permissions. A tool runs only what the policy has approved.

mod argument;
pub(crate) mod ask;
pub(crate) mod change;
mod ending;
pub(crate) mod fetch;
pub(crate) mod files;
mod glob;
mod list;
pub(crate) mod mcp;
pub(crate) mod memory;
mod mismatch;
mod pattern;
mod read;
mod read_many;
mod replace;
mod search;
pub(crate) mod shell;
mod text;
pub(crate) mod todos;
mod write;

use std::path::PathBuf;

use multitap_event::ToolKind;
use multitap_outbound::Screen;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::change::Change;
use self::files::{FileTool, Files};
use crate::conversation::Call;
use crate::job::Job;
use crate::mcp::Servers;
use crate::policy::Approved;
use crate::tool::{Outcome, Spec, ToolContext};

type OwnTool = (&'static str, fn() -> Spec);

/// Our own tools, in the order in which models are shown them.
const OWN: [OwnTool; 12] = [
    (read::NAME, read::spec),
    (read_many::NAME, read_many::spec),
    (list::NAME, list::spec),
    (glob::NAME, glob::spec),
    (search::NAME, search::spec),
    (write::NAME, write::spec),
    (replace::NAME, replace::spec),
    (todos::NAME, todos::spec),
    (ask::NAME, ask::spec),
    (shell::NAME, shell::spec),
    (fetch::NAME, fetch::spec),
    (memory::NAME, memory::spec),
];

pub(crate) fn is_own(name: &str) -> bool {
    OWN.iter().any(|(own, _)| *own == name)
}

#[derive(Debug, Clone)]
pub(crate) struct Toolbox {
    pub(crate) files: Files,
    pub(crate) shell: shell::Shell,
    /// Which addresses may be reached.
    pub(crate) web: Screen,
    /// The user's own memory file; without it, nothing can be remembered.
    pub(crate) memory: Option<PathBuf>,
    pub(crate) mcp: Servers,
}

/// A call that cannot run; the model is told why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadCall(pub(crate) String);

impl Toolbox {
    pub(crate) fn specs(&self) -> Vec<Spec> {
        let is_there = |name: &str| name != memory::NAME || self.memory.is_some();
        let own = OWN.iter().filter(|(name, _)| is_there(name)).map(|(_, spec)| spec());
        own.chain(self.mcp.specs()).collect()
    }

    pub(crate) fn spec(&self, name: &str) -> Option<Spec> {
        self.specs().into_iter().find(|spec| spec.name == name)
    }

    /// Checks a call and computes what it would do.
    pub(crate) async fn prepare(&self, call: &Call) -> Result<Job, BadCall> {
        let files = &self.files;
        match call.name.as_str() {
            read::NAME => files.prepare(call, read::prepare).await.map(FileTool::Read).map(Job::FileTool),
            read_many::NAME => files.prepare(call, read_many::prepare).await.map(FileTool::ReadMany).map(Job::FileTool),
            list::NAME => files.prepare(call, list::prepare).await.map(FileTool::List).map(Job::FileTool),
            glob::NAME => files.prepare(call, glob::prepare).await.map(FileTool::Glob).map(Job::FileTool),
            search::NAME => files.prepare(call, search::prepare).await.map(FileTool::Search).map(Job::FileTool),
            write::NAME => files.prepare(call, write::prepare).await.map(Job::Change),
            replace::NAME => files.prepare(call, replace::prepare).await.map(Job::Change),
            shell::NAME => self.shell.prepare(arguments(call)?).map(Job::Shell),
            fetch::NAME => fetch::prepare(arguments(call)?, &self.web).map(Job::Fetch),
            memory::NAME => {
                let file = self.memory.as_ref().ok_or_else(|| self.unknown(call))?;
                memory::prepare(arguments(call)?, file).await.map(Job::Remember)
            }
            todos::NAME => todos::prepare(arguments(call)?).map(Job::Todos),
            ask::NAME => ask::prepare(arguments(call)?).map(Job::Ask),
            _ => mcp::prepare(&self.mcp, call).unwrap_or_else(|| Err(self.unknown(call))).map(Job::Mcp),
        }
    }

    fn unknown(&self, call: &Call) -> BadCall {
        let known = self.specs().into_iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
        BadCall(format!("there is no tool '{}': there are {known}", call.name))
    }

    pub(crate) async fn run(&self, job: Approved<Job>, context: ToolContext) -> Outcome {
        match job.into_inner() {
            Job::FileTool(look) => self.files.run(look, &context, FileTool::run).await,
            Job::Change(change) => self.files.run(change, &context, Change::run).await,
            Job::Todos(todos) => todos.run(),
            Job::Shell(command) => self.shell.run(command, context).await,
            Job::Fetch(fetch) => fetch.run(&self.web, context).await,
            Job::Remember(remember) => remember.run().await,
            // The answer to the question is already the result.
            Job::Ask(ask) => Outcome::failed(format!("nobody answered \"{}\"", ask.question)),
            Job::Mcp(call) => self.mcp.call(call, context).await,
        }
    }
}

fn arguments<T: DeserializeOwned>(call: &Call) -> Result<T, BadCall> {
    if !call.arguments.is_object() {
        let name = &call.name;
        return Err(BadCall(format!("the arguments of {name} must be a JSON object, not: {}", call.arguments)));
    }
    serde_path_to_error::deserialize(&call.arguments).map_err(|error| {
        let which = match error.path().to_string() {
            path if path == "." => String::new(),
            path => format!("{path}: "),
        };
        BadCall(format!("the arguments of {} do not fit: {which}{}", call.name, error.inner()))
    })
}

fn spec(name: &str, kind: ToolKind, description: &str, properties: &Value, required: &[&str]) -> Spec {
    Spec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({ "type": "object", "properties": properties, "required": required }),
        kind,
        server: None,
        // Several calls that only look may run at once.
        read_only: matches!(kind, ToolKind::Read | ToolKind::Search),
    }
}
