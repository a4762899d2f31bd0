//! A call that is ready to run: its arguments are checked, its paths lie inside, its change is worked out.
//!
//! What a question about it shows and what the policy judges is read from here, so that people, rules and the tool
//! itself look at the same thing.

use std::path::{Path, PathBuf};

use multitap_event::{AskedQuestion, Details, Edit};

use crate::tools::ask::Ask;
use crate::tools::mcp::Mcp;
use crate::tools::todos::Todos;

/// One call, ready.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Job {
    Todos(Todos),
    Ask(Ask),
    Mcp(Mcp),
}

/// What a job would touch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Access<'a> {
    /// Nothing that is not the agent's own.
    Own,
    /// Reads inside the workspace.
    Look,
    /// Changes a file inside the workspace.
    Change {
        file: &'a Path,
    },
    Shell {
        command: &'a str,
        directory: &'a Path,
    },
    /// Reaches out to these addresses.
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

/// An answer's own content does not fit the job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} takes no other content")]
pub(crate) struct TakesNoContent(pub(crate) String);

impl Job {
    /// One line for people.
    pub(crate) fn title(&self) -> String {
        match self {
            Self::Todos(todos) => todos.title(),
            Self::Ask(ask) => ask.question.clone(),
            Self::Mcp(mcp) => mcp.title(),
        }
    }

    pub(crate) fn access(&self) -> Access<'_> {
        match self {
            Self::Todos(_) => Access::Own,
            Self::Ask(_) => Access::Ask,
            Self::Mcp(Mcp { server, tool, trusted, .. }) => Access::Mcp { server, tool, trusted: *trusted },
        }
    }

    /// What a question about it shows.
    pub(crate) fn details(&self) -> Details {
        match self {
            Self::Todos(todos) => Details::Text { text: todos.title(), arguments: serde_json::Map::new() },
            Self::Ask(ask) => {
                let asked = AskedQuestion {
                    question: ask.question.clone(),
                    labels: ask.choices.clone(),
                    ..AskedQuestion::default()
                };
                Details::Input { questions: vec![asked] }
            }
            Self::Mcp(Mcp { server, tool, arguments, .. }) => {
                Details::Mcp { server: server.clone(), tool: tool.clone(), arguments: arguments.clone() }
            }
        }
    }

    /// What an answer may bring along.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        match self {
            Self::Todos(_) | Self::Ask(_) => Vec::new(),
            Self::Mcp(_) => vec![Edit::NewInput],
        }
    }

    /// Does something else instead: another text for the file, another command.
    pub(crate) fn with_content(self, _content: String) -> Result<Self, TakesNoContent> {
        match self {
            Self::Todos(_) | Self::Ask(_) | Self::Mcp(_) => Err(TakesNoContent(self.title())),
        }
    }

    /// The folder it runs in, where that matters.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        match self.access() {
            Access::Shell { directory, .. } => Some(directory.to_owned()),
            Access::Own
            | Access::Look
            | Access::Change { .. }
            | Access::Fetch { .. }
            | Access::Mcp { .. }
            | Access::Ask => None,
        }
    }
}
