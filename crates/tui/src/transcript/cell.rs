//! What a transcript is made of.

use multitap_event::{
    AgentError, ClientRef, Door, FileChange, Retry, Ruling, SessionEnd, TodoList, ToolCompleted, ToolProgress,
    ToolStarted, TurnEnd,
};

/// How much of a tool's output is at hand; all of it is in the log.
const OUTPUT: usize = 256 * 1024;

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Cell {
    User {
        text: String,
        from: Option<ClientRef>,
        images: usize,
        waits: bool,
    },
    Said {
        text: String,
        nested: bool,
    },
    Thought {
        text: String,
    },
    Tool(Box<ToolCell>),
    Changed(Box<FileChange>),
    Ruled(Box<Ruling>),
    Plan(TodoList),
    Wrong(Box<AgentError>),
    Retry(Retry),
    TurnEnd(Box<TurnEnd>),
    Ended(Box<SessionEnd>),
    Note(String),
    /// It was shown elsewhere, or is no more.
    Gone,
}

impl Cell {
    pub(super) fn append(&mut self, more: &str) {
        if let Self::Said { text, .. } | Self::Thought { text } = self {
            text.push_str(more);
        }
    }
}

/// A tool call.
#[derive(Debug)]
pub(crate) struct ToolCell {
    pub(crate) call: ToolStarted,
    pub(crate) output: String,
    pub(crate) message: Option<String>,
    pub(crate) asking: bool,
    pub(crate) change: Option<FileChange>,
    pub(crate) end: Option<ToolCompleted>,
}

impl ToolCell {
    pub(super) fn new(call: ToolStarted) -> Self {
        Self { call, output: String::new(), message: None, asking: false, change: None, end: None }
    }

    pub(super) fn progressed(&mut self, progress: &ToolProgress) {
        if let Some(output) = &progress.output {
            self.output.push_str(output);
        }
        if progress.message.is_some() {
            self.message.clone_from(&progress.message);
        }
        // Cut only now and then, so that many small pieces cost no more than a few large ones.
        if self.output.len() > 2 * OUTPUT {
            let cut = (self.output.len() - OUTPUT..).find(|at| self.output.is_char_boundary(*at));
            self.output.drain(..cut.unwrap_or_default());
        }
    }
}

/// Who it was, marked with the door they came through.
pub(crate) fn who(client: &ClientRef) -> String {
    match mark(client.door) {
        Some(mark) => format!("[{mark}] {}", client.client),
        None => client.client.clone(),
    }
}

/// The mark of a door; none for those who sit here.
pub(crate) fn mark(door: Door) -> Option<&'static str> {
    match door {
        Door::A2a => Some("A2A"),
        Door::Acp => Some("ACP"),
        Door::Web => Some("web"),
        Door::Terminal | Door::Headless | Door::Library | Door::Host => None,
    }
}

pub(super) fn changed(what: &str, to: &str, by: Option<&ClientRef>) -> String {
    let by = by.map(|by| format!(" by {}", who(by))).unwrap_or_default();
    format!("{what} is now {to}{by}")
}
