//! Sample agents: A2A servers on SDKs that others wrote, for tests that call remote agents. What they do is said in
//! `peers/agents.md`.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, bail};

use super::{Binding, Kind};
use crate::Scratch;

/// An agent that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct SampleAgent {
    pub url: String,
    child: Child,
    _scratch: Scratch,
}

impl SampleAgent {
    /// Starts one that speaks the dialect of its SDK, 1.0 if there are two, and demands this token.
    pub fn start(kind: Kind, binding: Binding, token: &str) -> Result<Self> {
        let dialect = if kind == Kind::JsV03 { "0.3" } else { "1.0" };
        Self::speaking(dialect, kind, binding, token)
    }

    /// The same in a dialect: 1.0 or 0.3.
    pub fn speaking(dialect: &str, kind: Kind, binding: Binding, token: &str) -> Result<Self> {
        let scratch = Scratch::without_model()?;
        let words = kind.serve(dialect, binding, token)?;
        let mut command = scratch.command(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start an agent on {}", kind.title()))?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).context("read its address")?;
        }
        let url = line.trim().to_owned();
        let agent = Self { url, child, _scratch: scratch };
        if agent.url.is_empty() {
            bail!("the agent on {} does not say where it listens", kind.title());
        }
        Ok(agent)
    }
}

impl Drop for SampleAgent {
    fn drop(&mut self) {
        self.child.kill().ok(); // it may have ended by itself
        self.child.wait().ok();
    }
}
