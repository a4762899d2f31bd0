//! The cells of a transcript.

use std::sync::Arc;

use multitap_event::{
    AgentError, ClientRef, Door, FileChange, Question, Retry, Ruling, SessionEnd, TodoList, ToolCompleted,
    ToolProgress, ToolStarted, TurnEnd,
};

use super::label::ToolLabel;
use crate::clean::clean_line;

/// Maximum size of the output of a tool in memory. The log has all of it.
const OUTPUT: usize = 256 * 1024;

#[derive(Debug)]
pub(crate) enum Cell {
    User {
        text: String,
        /// The client, if it is not this one.
        from: Option<ClientRef>,
        /// What each picture is, in words.
        images: Vec<String>,
        nested: bool,
    },
    Text {
        kind: TextKind,
        text: String,
        nested: bool,
    },
    Tool(Box<ToolCell>),
    Changed {
        change: Box<FileChange>,
        folder: Option<Arc<str>>,
    },
    Answered {
        ruling: Box<Ruling>,
        question: Option<Box<Question>>,
        own: bool,
    },
    Plan(TodoList),
    Error(Box<AgentError>),
    Retry(Retry),
    TurnEnd(Box<TurnEnd>),
    Ended(Box<SessionEnd>),
    Note(String),
    /// The approval mode changed. Consecutive changes are one line.
    Mode {
        word: String,
        by: Option<ClientRef>,
    },
    /// A line across the screen: from here on the conversation is another one.
    Marker(String),
    Withdrawn {
        by: Option<ClientRef>,
        begins: Option<String>,
    },
    /// An empty cell: its content is shown in another cell, or was replaced.
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    Message,
    Reasoning,
}

impl Cell {
    pub(super) fn text(&self) -> &str {
        if let Self::Text { text, .. } = self { text } else { "" }
    }

    pub(super) fn append(&mut self, more: &str) {
        if let Self::Text { text, .. } = self {
            text.push_str(more);
        }
    }

    pub(super) fn is_reasoning(&self) -> bool {
        matches!(self, Self::Text { kind: TextKind::Reasoning, .. })
    }

    pub(super) fn is_nested(&self) -> bool {
        matches!(self, Self::Text { nested: true, .. })
    }
}

#[derive(Debug)]
pub(crate) struct ToolCell {
    pub(crate) call: ToolStarted,
    pub(crate) run: ToolRun,
    /// The folder of the session, as agents name it.
    pub(crate) folder: Option<Arc<str>>,
}

impl ToolCell {
    pub(super) fn label(&self) -> ToolLabel {
        ToolLabel::of(&self.call, &self.run.changes, self.folder.as_deref())
    }
}

#[derive(Debug, Default)]
pub(crate) struct ToolRun {
    pub(crate) output: String,
    pub(crate) message: Option<String>,
    pub(crate) asking: bool,
    /// One for each file.
    pub(crate) changes: Vec<FileChange>,
    pub(crate) end: Option<ToolCompleted>,
}

impl ToolRun {
    pub(super) fn progressed(&mut self, progress: &ToolProgress) {
        if let Some(output) = &progress.output {
            self.print(output);
        }
        if progress.message.is_some() {
            self.message.clone_from(&progress.message);
        }
    }

    fn print(&mut self, output: &str) {
        self.output.push_str(output);
        // Cutting rarely keeps the cost of many small pieces linear.
        if self.output.len() > 2 * OUTPUT {
            let cut = (self.output.len() - OUTPUT..).find(|at| self.output.is_char_boundary(*at));
            self.output.drain(..cut.unwrap_or_default());
        }
    }

    /// Adds a change, or replaces an earlier one of the same file.
    pub(super) fn changed(&mut self, change: &FileChange) {
        match self.changes.iter_mut().find(|earlier| earlier.file_path == change.file_path) {
            Some(earlier) => earlier.clone_from(change),
            None => self.changes.push(change.clone()),
        }
    }

    pub(super) fn ended(&mut self, done: &ToolCompleted) {
        self.end = Some(done.clone());
        self.asking = false;
    }

    /// Appends the later part of the same call.
    pub(super) fn extend(&mut self, rest: Self) {
        self.print(&rest.output);
        self.message = rest.message.or(self.message.take());
        self.asking |= rest.asking;
        rest.changes.iter().for_each(|change| self.changed(change));
        if let Some(done) = &rest.end {
            self.ended(done);
        }
    }
}

/// Length of a prompt where only its beginning is shown.
const BEGINNING: usize = 120;

/// The first line of a prompt, and a mark if there is more.
pub(super) fn beginning(text: &str) -> String {
    let text = text.trim();
    let first = text.lines().next().unwrap_or_default();
    let short: String = first.chars().take(BEGINNING).collect();
    if short.len() < text.len() { format!("{} …", short.trim_end()) } else { short }
}

pub(super) fn withdrawn(by: Option<&ClientRef>, begins: Option<&str>) -> String {
    match (by.map(who), begins) {
        (Some(by), Some(begins)) => format!("{by} withdrew: {begins}"),
        (Some(by), None) => format!("{by} withdrew a queued prompt"),
        (None, Some(begins)) => format!("withdrawn: {begins}"),
        (None, None) => "a queued prompt was withdrawn".to_owned(),
    }
}

/// A client by name, marked with its door.
pub(crate) fn who(client: &ClientRef) -> String {
    let name = clean_line(&client.client);
    format!("[{}] {}", mark(client.door), name.trim()).trim_end().to_owned()
}

fn mark(door: Door) -> &'static str {
    match door {
        Door::A2a => "A2A",
        Door::Acp => "ACP",
        Door::Web => "web",
        Door::Terminal => "terminal",
        Door::Headless => "headless",
        Door::Library => "library",
        Door::Host => "multitap",
    }
}

pub(super) fn changed(what: &str, to: &str, by: Option<&ClientRef>) -> String {
    let by = by.map(|by| format!(" by {}", who(by))).unwrap_or_default();
    format!("{what} changed to {to}{by}")
}
