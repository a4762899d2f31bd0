//! A tool call that is ready to run: its arguments are checked, its paths resolved, its change computed.
//!
//! The question shown to people and the policy both read it, so that people, rules and the tool see the same thing.

use std::path::Path;

use multitap_event::{AskedQuestion, Details, Edit};
use serde_json::{Map, Value};

use crate::tools::ask::Ask;
use crate::tools::change::Change;
use crate::tools::fetch::Fetch;
use crate::tools::files::FileTool;
use crate::tools::mcp::Mcp;
use crate::tools::memory::Remember;
use crate::tools::shell::Command;
use crate::tools::todos::Todos;

/// One call, ready to run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Job {
    FileTool(FileTool),
    Change(Change),
    Todos(Todos),
    Ask(Ask),
    Shell(Command),
    Fetch(Fetch),
    Remember(Remember),
    Mcp(Mcp),
}

/// The access that a job needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Access<'a> {
    /// Nothing but the agent's own state.
    Own,
    /// Reads inside the workspace.
    Read,
    /// Changes a file inside the workspace.
    Change {
        file: &'a Path,
    },
    /// Writes to the user's own memory file.
    Remember {
        file: &'a Path,
    },
    Shell {
        command: &'a str,
        directory: &'a Path,
    },
    Fetch {
        urls: &'a [String],
    },
    Mcp {
        server: &'a str,
        tool: &'a str,
        trusted: bool,
    },
    /// Asks the user something, which is a question by itself.
    Ask,
}

impl Job {
    pub(crate) fn title(&self) -> String {
        match self {
            Self::FileTool(look) => look.title(),
            Self::Change(change) => change.title(),
            Self::Todos(todos) => todos.title(),
            Self::Ask(ask) => ask.question.clone(),
            Self::Shell(command) => command.title(),
            Self::Fetch(fetch) => fetch.title(),
            Self::Remember(remember) => remember.title(),
            Self::Mcp(mcp) => mcp.title(),
        }
    }

    pub(crate) fn access(&self) -> Access<'_> {
        match self {
            Self::FileTool(_) => Access::Read,
            Self::Change(change) => change.access(),
            Self::Todos(_) => Access::Own,
            Self::Ask(_) => Access::Ask,
            Self::Shell(command) => Access::Shell { command: &command.command, directory: &command.directory },
            Self::Fetch(fetch) => Access::Fetch { urls: &fetch.urls },
            Self::Remember(remember) => Access::Remember { file: &remember.file },
            Self::Mcp(Mcp { server, tool, trusted, .. }) => Access::Mcp { server, tool, trusted: *trusted },
        }
    }

    pub(crate) fn details(&self) -> Details {
        match self {
            Self::Change(change) => change.details(),
            Self::FileTool(_) | Self::Todos(_) => Details::Text { text: self.title(), arguments: Map::new() },
            Self::Ask(ask) => {
                let asked = AskedQuestion {
                    question: ask.question.clone(),
                    labels: ask.choices.clone(),
                    ..AskedQuestion::default()
                };
                Details::Input { questions: vec![asked] }
            }
            Self::Shell(command) => command.details(),
            Self::Fetch(fetch) => fetch.details(),
            Self::Remember(remember) => remember.details(),
            Self::Mcp(Mcp { server, tool, arguments, .. }) => {
                Details::Mcp { server: server.clone(), tool: tool.clone(), arguments: arguments.clone() }
            }
        }
    }

    pub(crate) fn edits(&self) -> Vec<Edit> {
        match self {
            Self::Change(change) => change.edits(),
            Self::Shell(_) => vec![Edit::NewContent, Edit::NewInput],
            Self::Fetch(_) | Self::Remember(_) | Self::Mcp(_) => vec![Edit::NewInput],
            Self::FileTool(_) | Self::Todos(_) | Self::Ask(_) => Vec::new(),
        }
    }

    /// The job as the user runs it, not the model.
    pub(crate) fn by_user(self) -> Self {
        match self {
            Self::Shell(command) => Self::Shell(command.by_user()),
            other => other,
        }
    }

    /// The same job with other content, another text for the file or another command, and the arguments of such a call.
    pub(crate) fn with_content(
        self,
        content: String,
        mut arguments: Map<String, Value>,
    ) -> Result<(Self, Map<String, Value>), String> {
        Ok(match self {
            Self::Change(change) => {
                // The replacements of the original call no longer describe what is written.
                let path = ("file_path".to_owned(), change.named().into());
                let arguments = [path, ("content".to_owned(), content.clone().into())];
                (Self::Change(change.with_content(content)), arguments.into_iter().collect())
            }
            Self::Shell(command) => {
                arguments.insert("command".to_owned(), content.clone().into());
                (Self::Shell(command.with_command(content)), arguments)
            }
            Self::FileTool(_) | Self::Todos(_) | Self::Ask(_) | Self::Fetch(_) | Self::Remember(_) | Self::Mcp(_) => {
                return Err(format!("'{}' has no content that an answer can edit", self.title()));
            }
        })
    }
}
