//! Sample agents: A2A servers on SDKs of other projects, for tests that call remote agents. `peers/agents.md` describes
//! what they do.

use std::process::{Child, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::{Binding, Kind, lines};
use crate::Scratch;

/// Time limit for a line of its output.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct SampleAgent {
    pub url: String,
    child: Child,
    lines: Receiver<String>,
    _scratch: Scratch,
}

impl SampleAgent {
    /// Starts an agent that speaks the dialect of its SDK (1.0 if there are two) and requires this token.
    pub fn start(kind: Kind, binding: Binding, token: &str) -> Result<Self> {
        let dialect = if kind == Kind::JsV03 { "0.3" } else { "1.0" };
        Self::speaking(dialect, kind, binding, token)
    }

    /// A sample agent that speaks one dialect: 1.0 or 0.3.
    pub fn speaking(dialect: &str, kind: Kind, binding: Binding, token: &str) -> Result<Self> {
        let scratch = Scratch::without_model()?;
        let words = kind.serve(dialect, binding, token)?;
        let mut command = scratch.command(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start an agent on {}", kind.title()))?;
        let lines = lines(child.stdout.take().context("its output")?);
        // Created before its address is known, so that it ends on every error.
        let mut agent = Self { url: String::new(), child, lines, _scratch: scratch };
        agent.url = agent.line().unwrap_or_default();
        if agent.url.is_empty() {
            bail!("the agent on {} does not say where it listens", kind.title());
        }
        Ok(agent)
    }

    /// The id of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of its output.
    pub fn line(&self) -> Result<String> {
        self.lines.recv_timeout(PATIENCE).context("the agent says nothing")
    }
}

impl Drop for SampleAgent {
    fn drop(&mut self) {
        self.child.kill().ok(); // it may have ended by itself
        self.child.wait().ok();
    }
}
