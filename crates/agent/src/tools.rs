//! The tools: one file each, with the same three parts: its spec, how a call becomes a job, how the job runs.
//!
//! Must not come in: models, turns, permissions. A tool runs only what the policy has approved.

mod argument;
pub(crate) mod ask;
pub(crate) mod change;
mod ending;
pub(crate) mod fetch;
pub(crate) mod file_tool;
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
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::change::Change;
use self::file_tool::FileTool;
use self::files::Files;
use crate::conversation::Call;
use crate::job::Job;
use crate::mcp::Servers;
use crate::policy::Approved;
use crate::tool::{Outcome, Spec, ToolContext};

/// The names of our own tools.
pub(crate) const NAMES: [&str; 12] = [
    read::NAME,
    read_many::NAME,
    list::NAME,
    glob::NAME,
    search::NAME,
    write::NAME,
    replace::NAME,
    shell::NAME,
    fetch::NAME,
    memory::NAME,
    todos::NAME,
    ask::NAME,
];

/// All tools of a session. If a part is `None`, its tools are missing.
#[derive(Debug, Clone)]
pub(crate) struct Toolbox {
    pub(crate) files: Files,
    pub(crate) shell: Option<shell::Shell>,
    pub(crate) web: Option<multitap_outbound::Screen>,
    /// The user's own memory file.
    pub(crate) memory: Option<PathBuf>,
    pub(crate) mcp: Servers,
}

/// A call that cannot run; the model is told why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadCall(pub(crate) String);

impl Toolbox {
    /// Tools for these files and nothing else.
    pub(crate) fn new(files: Files) -> Self {
        Self { files, shell: None, web: None, memory: None, mcp: Servers::default() }
    }

    /// The tools as they are described to the model.
    pub(crate) fn specs(&self) -> Vec<Spec> {
        let own = [
            read::spec(),
            read_many::spec(),
            list::spec(),
            glob::spec(),
            search::spec(),
            write::spec(),
            replace::spec(),
            todos::spec(),
            ask::spec(),
        ]
        .into_iter();
        let shell = self.shell.iter().map(|_| shell::spec());
        let web = self.web.iter().map(|_| fetch::spec());
        let memory = self.memory.iter().map(|_| memory::spec());
        own.chain(shell).chain(web).chain(memory).chain(self.mcp.specs()).collect()
    }

    pub(crate) fn spec(&self, name: &str) -> Option<Spec> {
        self.specs().into_iter().find(|spec| spec.name == name)
    }

    /// Checks a call and computes what it would do.
    pub(crate) async fn prepare(&self, call: &Call) -> Result<Job, BadCall> {
        let files = &self.files;
        match call.name.as_str() {
            read::NAME => files.prepare(arguments(call)?, read::prepare).await.map(FileTool::Read).map(Job::FileTool),
            read_many::NAME => {
                files.prepare(arguments(call)?, read_many::prepare).await.map(FileTool::ReadMany).map(Job::FileTool)
            }
            list::NAME => files.prepare(arguments(call)?, list::prepare).await.map(FileTool::List).map(Job::FileTool),
            glob::NAME => files.prepare(arguments(call)?, glob::prepare).await.map(FileTool::Glob).map(Job::FileTool),
            search::NAME => {
                files.prepare(arguments(call)?, search::prepare).await.map(FileTool::Search).map(Job::FileTool)
            }
            write::NAME => files.prepare(arguments(call)?, write::prepare).await.map(Job::Change),
            replace::NAME => files.prepare(arguments(call)?, replace::prepare).await.map(Job::Change),
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
            Job::Shell(command) => match &self.shell {
                Some(shell) => shell.run(command, context).await,
                None => Outcome::failed("this session has no shell"),
            },
            Job::Fetch(fetch) => match &self.web {
                Some(web) => fetch.run(web, context).await,
                None => Outcome::failed("this session has no web"),
            },
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

/// A spec whose arguments are these properties.
fn spec(name: &str, kind: ToolKind, description: &str, properties: &Value, required: &[&str]) -> Spec {
    Spec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({ "type": "object", "properties": properties, "required": required }),
        kind,
        server: None,
        read_only: false,
    }
}
