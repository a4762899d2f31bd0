//! What a transcript is made of.

use multitap_event::{
    AgentError, ClientRef, Door, FileChange, Question, Retry, Ruling, SessionEnd, TodoList, ToolCompleted,
    ToolProgress, ToolStarted, TurnEnd,
};

use crate::clean::clean_line;

/// How much of a tool's output is at hand; all of it is in the log.
const OUTPUT: usize = 256 * 1024;

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Cell {
    User {
        text: String,
        /// Somebody else than whoever sits here.
        from: Option<ClientRef>,
        images: usize,
        nested: bool,
    },
    Said {
        text: String,
        nested: bool,
    },
    Thought {
        text: String,
        nested: bool,
    },
    Tool(Box<ToolCell>),
    Changed(Box<FileChange>),
    Ruled {
        ruling: Box<Ruling>,
        /// What it rules on, where it is known.
        question: Option<Box<Question>>,
        /// Whoever sits here gave the answer.
        own: bool,
    },
    Plan(TodoList),
    Wrong(Box<AgentError>),
    Retry(Retry),
    TurnEnd(Box<TurnEnd>),
    Ended(Box<SessionEnd>),
    Note(String),
    /// A prompt that waited, and will not be sent.
    TakenBack {
        by: Option<ClientRef>,
        /// How it begins, where that is known.
        begins: Option<String>,
    },
    /// It was shown elsewhere, or is no more.
    Gone,
}

impl Cell {
    /// What the agent says or thinks.
    pub(super) fn text(&self) -> &str {
        if let Self::Said { text, .. } | Self::Thought { text, .. } = self { text } else { "" }
    }

    pub(super) fn append(&mut self, more: &str) {
        if let Self::Said { text, .. } | Self::Thought { text, .. } = self {
            text.push_str(more);
        }
    }
}

/// A tool call.
#[derive(Debug)]
pub(crate) struct ToolCell {
    pub(crate) call: ToolStarted,
    pub(crate) run: ToolRun,
}

/// What became of a tool call.
#[derive(Debug, Default)]
pub(crate) struct ToolRun {
    pub(crate) output: String,
    pub(crate) message: Option<String>,
    pub(crate) asking: bool,
    pub(crate) change: Option<FileChange>,
    pub(crate) end: Option<ToolCompleted>,
}

impl ToolRun {
    pub(super) fn progressed(&mut self, progress: &ToolProgress) {
        if let Some(output) = &progress.output {
            self.put_out(output);
        }
        if progress.message.is_some() {
            self.message.clone_from(&progress.message);
        }
    }

    fn put_out(&mut self, output: &str) {
        self.output.push_str(output);
        // Cut only now and then, so that many small pieces cost no more than a few large ones.
        if self.output.len() > 2 * OUTPUT {
            let cut = (self.output.len() - OUTPUT..).find(|at| self.output.is_char_boundary(*at));
            self.output.drain(..cut.unwrap_or_default());
        }
    }

    pub(super) fn ended(&mut self, done: &ToolCompleted) {
        self.end = Some(done.clone());
        self.asking = false;
    }

    /// What became of it afterwards.
    pub(super) fn follow(&mut self, rest: Self) {
        self.put_out(&rest.output);
        self.message = rest.message.or(self.message.take());
        self.asking |= rest.asking;
        self.change = rest.change.or(self.change.take());
        if let Some(done) = &rest.end {
            self.ended(done);
        }
    }
}

/// How much of a prompt is enough to know it by.
const BEGINNING: usize = 120;

/// How a prompt begins: its first line, and a sign that there is more.
pub(super) fn beginning(text: &str) -> String {
    let text = text.trim();
    let first = text.lines().next().unwrap_or_default();
    let short: String = first.chars().take(BEGINNING).collect();
    if short.len() < text.len() { format!("{} …", short.trim_end()) } else { short }
}

/// What is said of a prompt that waited, and will not be sent.
pub(super) fn taken_back(by: Option<&ClientRef>, begins: Option<&str>) -> String {
    match (by.map(who), begins) {
        (Some(by), Some(begins)) => format!("{by} took back: {begins}"),
        (Some(by), None) => format!("{by} took back a prompt that waited"),
        (None, Some(begins)) => format!("taken back: {begins}"),
        (None, None) => "a prompt that waited was taken back".to_owned(),
    }
}

/// Who it was, marked with the door they came through.
pub(crate) fn who(client: &ClientRef) -> String {
    let name = clean_line(&client.client);
    format!("[{}] {}", mark(client.door), name.trim()).trim_end().to_owned()
}

/// The mark of a door.
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
    format!("{what} is now {to}{by}")
}
