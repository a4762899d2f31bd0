//! Asks Codex about its sandbox before a session, by starting the program for a moment.
//!
//! A failed probe is no error: the session itself shows what is wrong.

use std::path::PathBuf;
use std::time::Duration;

use multitap_process::{Child, Keeper, Line, Patience, Program, StdinMode, spawn};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::rpc::greeting;
use super::sandbox::{OwnSandbox, SandboxProbe, settings_request};
use super::wire::{Fields, Reply};
use crate::json::JsonFields as _;

/// Time limit of a probe. Beyond it the probe has no result.
const PATIENCE: Duration = Duration::from_secs(10);

/// The arguments that run nothing in Codex's sandbox, to see whether it works.
const RUN_NOTHING: [&str; 3] = ["sandbox", "--", "true"];

/// Why Codex cannot set up its sandbox on this machine. `None`: it can, or the probe failed.
/// `hidden_env` are variables that it must not see.
pub async fn sandbox_trouble(codex: PathBuf, hidden_env: &[&str], keeper: &Keeper) -> Option<String> {
    let program = Program {
        program: codex,
        args: Vec::new(),
        env: Vec::new(),
        env_remove: hidden_env.iter().map(Into::into).collect(),
        // Codex does not even start in a folder that is gone.
        cwd: std::env::current_dir().is_err().then(std::env::temp_dir),
        stdin: StdinMode::Null,
    };
    no_sandbox(program, keeper).await
}

/// Runs the test with a Codex that is started like this.
pub(super) async fn no_sandbox(mut codex: Program, keeper: &Keeper) -> Option<String> {
    codex.args.extend(RUN_NOTHING.map(Into::into));
    codex.stdin = StdinMode::Null;
    let mut child = spawn(codex, keeper).await.ok()?;
    let Ok(exit) = timeout(PATIENCE, child.wait()).await else {
        child.stop(Patience::default()).await;
        return None;
    };
    let said = exit.stderr_tail.lines().rev().find(|line| !line.trim().is_empty());
    (!exit.success()).then(|| said.map_or_else(|| exit.to_string(), |line| line.trim().to_owned()))
}

/// The facts about the sandbox that `codex exec` does not report.
pub(super) async fn probe_turns(codex: Program, agent_args: &[String], keeper: &Keeper) -> SandboxProbe {
    let mut server = codex.clone();
    server.args.push("app-server".into());
    server.args.extend(agent_args.iter().map(Into::into));
    server.stdin = StdinMode::Piped;
    let (no_sandbox, own_sandbox) = tokio::join!(no_sandbox(codex, keeper), own_sandbox(server, keeper));
    SandboxProbe { no_sandbox, own_sandbox }
}

async fn own_sandbox(server: Program, keeper: &Keeper) -> OwnSandbox {
    let cwd = server.cwd.as_ref().and_then(|cwd| cwd.to_str()).map(str::to_owned);
    let Ok(mut child) = spawn(server, keeper).await else { return OwnSandbox::Unknown };
    let (method, params) = settings_request(cwd.as_deref());
    let reply = timeout(PATIENCE, ask(&mut child, method, &params)).await;
    child.stop(Patience::default()).await;
    let reply = reply.ok().flatten();
    reply.map_or(OwnSandbox::Unknown, |reply| OwnSandbox::read(&Fields::of(reply.result.as_ref())))
}

/// Sends one request to a running app-server that serves no other purpose; `None` if it ends first.
pub(super) async fn ask(child: &mut Child, method: &str, params: &Value) -> Option<Reply> {
    let lines = [
        json!({ "id": 1, "method": "initialize", "params": greeting() }),
        json!({ "method": "initialized" }),
        json!({ "id": 2, "method": method, "params": params }),
    ];
    for line in lines {
        child.stdin.write(line.to_string(), PATIENCE).await.ok()?;
    }
    loop {
        let Line::Text(line) = child.stdout.next().await.ok()?? else { continue };
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        // A request of Codex may have the same id.
        if message.number("id") == Some(2) && message.field("method").is_none() {
            return Reply::deserialize(message).ok();
        }
    }
}
