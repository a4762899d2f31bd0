//! Who plays: the agents of the table, what makes them do a thing, and what they cannot do.

use multitap_testkit::model::{Reply, Tool};
use serde_json::json;

use crate::interop::agent::{Agent, Api};
use crate::interop::stage::Place;

/// What the scripted model says when all is done.
pub(super) const DONE: &str = "All of it is done.";
/// What is thought before anything is done.
pub(super) const THOUGHT: &str = "**Weighing it**\n\nIt can be done.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cast {
    /// With the scripted model behind it.
    Agent(Agent),
    /// The built-in agent without any model.
    Rehearsal,
}

/// What an agent is made to do.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed<'a> {
    /// Writes one line into a file; thinks first.
    Write {
        path: &'a str,
        line: &'a str,
    },
    Run(&'a str),
    /// Calls the tool `shout` of the MCP server `echo`.
    Shout,
    /// Asks for something that is neither a command, nor a file, nor an MCP tool.
    Else,
    /// Says something.
    Speak,
}

impl Cast {
    pub(super) fn agent(self) -> Agent {
        match self {
            Self::Agent(agent) => agent,
            Self::Rehearsal => Agent::Builtin(Api::Anthropic),
        }
    }

    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Agent(_) => &[],
            Self::Rehearsal => &["--model", "rehearsal"],
        }
    }

    /// Sees to it that the agent does this, and says the prompt for it.
    pub(super) fn prompt(self, place: &Place, deed: Deed<'_>) -> String {
        match self {
            Self::Rehearsal => rehearse(deed),
            Self::Agent(agent) => {
                let replies = match deed {
                    Deed::Write { path, line } => {
                        vec![Reply::think(THOUGHT).then_call(Tool::write(path, &format!("{line}\n")))]
                    }
                    Deed::Run(command) => vec![Reply::call(Tool::shell(command))],
                    Deed::Shout => vec![Reply::call(Tool::mcp("echo", "shout", json!({"text": "hello"})))],
                    Deed::Else => vec![anything_else(agent)],
                    Deed::Speak => Vec::new(),
                };
                replies.into_iter().chain([Reply::text(DONE)]).for_each(|reply| place.model.push(reply));
                "Do what is in the script.".to_owned()
            }
        }
    }

    /// What it says at the end.
    pub(super) fn says(self, text: &str) -> bool {
        match self {
            Self::Agent(_) => text == DONE,
            Self::Rehearsal => !text.trim().is_empty(),
        }
    }

    /// Whether an answer may bring other content for a file.
    pub(super) fn takes_other_content(self) -> bool {
        self.agent().takes_other_content()
    }

    /// Whether it shows what a command writes while it runs.
    pub(super) fn shows_live_output(self) -> bool {
        match self.agent() {
            Agent::Codex | Agent::Builtin(_) => true,
            // Claude tells how long a command runs and not what it writes, Gemini nothing until the end.
            Agent::Claude | Agent::Acp | Agent::Gemini => false,
        }
    }

    /// Whether it is an MCP server that asks something back: Codex reads the web at its maker's end, and its model has
    /// no tool to ask with.
    pub(super) fn is_asked_by_a_server(self) -> bool {
        self.agent() == Agent::Codex
    }
}

fn rehearse(deed: Deed<'_>) -> String {
    match deed {
        Deed::Write { path, line } => format!("think about it then write {line} to {path}"),
        Deed::Run(command) => format!("run: {command}"),
        Deed::Shout => r#"call echo shout {"text": "hello"}"#.to_owned(),
        Deed::Else => "ask Which colour?".to_owned(),
        Deed::Speak => "Do go on.".to_owned(),
    }
}

/// A page that is not fetched: nobody allows it.
fn anything_else(agent: Agent) -> Reply {
    const PAGE: &str = "https://page.invalid/";
    match agent {
        Agent::Claude => agent.asks(&["Which colour?"], &["Red", "Blue"]),
        Agent::Acp => Reply::call(Tool::native("WebFetch", json!({"url": PAGE, "prompt": "Read it"}))),
        Agent::Gemini => Reply::call(Tool::native("web_fetch", json!({"prompt": format!("Read {PAGE}")}))),
        Agent::Builtin(_) => Reply::call(Tool::native("web_fetch", json!({"url": PAGE, "prompt": "Read it"}))),
        Agent::Codex => Reply::call(Tool::mcp("curious", "wonder", json!({}))),
    }
}
