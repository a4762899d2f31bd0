//! Records a real CLI: plays a scripted conversation over its pipes, and stores it as a [`Fixture`].
//!
//! A [`Case`] has the steps of the person and the host program; the model's replies are directives in the prompts. The
//! tables of cases are in one module for each CLI. Paths, ports and long lists are removed, so that two recordings of
//! the same behaviour differ only in ids and times.

mod acp;
mod case;
mod claude;
mod codex;
mod drive;
mod gemini;
mod rpc;
mod scrub;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::cli::Cli;
use crate::fake::Fake;
use crate::fixture::Fixture;
use crate::model::ModelServer;
use crate::scratch::Scratch;

/// One conversation to record.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: &'static str,
    /// The behaviour that the case shows.
    pub about: &'static str,
    args: Vec<String>,
    moves: Vec<Move>,
    /// A run in the same place before this one, which is not recorded.
    before: Option<Box<Case>>,
    /// Files to put in the workspace first.
    files: Vec<(&'static str, &'static str)>,
}

/// One step of the host.
#[derive(Debug, Clone)]
enum Move {
    Send(String),
    /// Waits for a line on stdout.
    Until(Wanted),
    /// Waits until it has closed its stdout and stderr, with its input still open.
    UntilEnd,
    /// Captures a value from the line that was waited for last; `{name}` in later input stands for it.
    Keep {
        name: &'static str,
        at: &'static str,
    },
    /// Answers the line that was waited for last.
    Answer(fn(&Value) -> Value),
    UntilHanging,
    Pause(Duration),
    /// Sends a signal by number.
    Signal(i32),
}

/// A line on stdout.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// By its `type` and, where given, its `subtype` (its own, or that of its `request`).
    Line { kind: &'static str, subtype: Option<&'static str> },
    /// The reply to the request with that id.
    Reply(u64),
    /// A request or a notification.
    Method(&'static str),
}

impl Wanted {
    fn is(&self, line: &Value) -> bool {
        match self {
            Self::Line { kind, subtype: wanted } => {
                let subtype = line.get("subtype").or_else(|| line.pointer("/request/subtype"));
                line["type"] == *kind && wanted.is_none_or(|wanted| subtype.is_some_and(|subtype| subtype == wanted))
            }
            Self::Reply(id) => line["id"] == *id && line.get("method").is_none(),
            Self::Method(method) => line["method"] == *method,
        }
    }
}

/// The cases for an agent; none if it has no table yet.
pub fn cases(agent: &str) -> Vec<Case> {
    match agent {
        "claude" => claude::cases(),
        "codex" => codex::cases(),
        "gemini" => gemini::cases(),
        "claude-agent-acp" => acp::claude(),
        "codex-acp" => acp::codex(),
        "opencode" => acp::opencode(),
        _ => Vec::new(),
    }
}

/// Runs a case with the CLI from the cache, and returns all lines on its pipes.
pub async fn record(cli: Cli, case: &Case) -> Result<Fixture> {
    let program = cli.installed().with_context(|| format!("{} {} is not installed", cli.package, cli.version))?;
    let server = ModelServer::start([])?;
    let stage = Stage { scratch: Scratch::new(&server)?, mcp: Fake::mcp()?, program, server };
    for (name, content) in &case.files {
        stage.scratch.write(name, &stage.fill(content))?;
    }
    if let Some(before) = &case.before {
        drive::run(&stage, before).await.with_context(|| format!("{} before {}", before.name, case.name))?;
    }
    let run = drive::run(&stage, case).await.with_context(|| format!("record {}", case.name))?;
    let fixture = Fixture {
        agent: cli.agent.to_owned(),
        version: cli.version.to_owned(),
        case: case.name.to_owned(),
        argv: [vec![cli.agent.to_owned()], run.args].concat(),
        cwd: stage.scratch.workspace().to_string_lossy().into_owned(),
        exit: run.exit,
        note: Some(case.about.to_owned()),
        lines: run.lines,
    };
    Ok(scrub::scrub(fixture, &stage))
}

/// The place in which a case is played.
#[derive(Debug)]
struct Stage {
    scratch: Scratch,
    /// An MCP server, for the cases that name `{mcp}`.
    mcp: Fake,
    program: PathBuf,
    server: ModelServer,
}

impl Stage {
    /// Replaces `{workspace}` and `{mcp}` by the real paths, and `{model}` by the model's address.
    fn fill(&self, text: &str) -> String {
        let workspace = self.scratch.workspace();
        text.replace("{workspace}", &workspace.to_string_lossy())
            .replace("{model}", &self.server.url())
            .replace("{mcp}", &self.mcp.program().to_string_lossy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case that is recorded again takes the place of the fixture with its name.
    #[test]
    fn each_case_has_a_name_of_its_own() {
        let agents = [("claude", 20), ("codex", 20), ("gemini", 20)];
        for (agent, least) in
            agents.into_iter().chain(["claude-agent-acp", "codex-acp", "opencode"].map(|acp| (acp, 5)))
        {
            let mut names: Vec<&str> = cases(agent).iter().map(|case| case.name).collect();
            let count = names.len();
            assert!(count >= least, "{agent} has {count} cases");
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{agent}");
        }
    }
}
