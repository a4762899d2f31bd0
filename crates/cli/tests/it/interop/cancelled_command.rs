//! A cancelled turn leaves nothing of its command behind, and the agent goes on (R000-2).

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::wait;
use serde_json::json;

use super::agent::{Agent, Api};
use super::scenario::tools::MCP_SERVER;
use super::stage::{PATIENCE, Place, Stage};

/// A command with a process in the foreground, one in the background, and one that detached.
const COMMAND: &str =
    "sleep 981 & (setsid sleep 982 >/dev/null 2>&1 </dev/null &); touch started.txt; sleep 983; touch done.txt";
/// One without the processes that leave their group: some agents end the group alone.
const SIMPLE: &str = "touch started.txt; sleep 983; touch done.txt";

fn sleepers(place: &Place) -> Vec<String> {
    let all = wait::marked(&place.scratch).into_iter().map(|process| process.command);
    all.filter(|command| command.starts_with("sleep 98")).collect()
}

fn check(agent: Agent, command: &str, options: &[&str]) {
    if agent.program().is_none() {
        return; // said loudly, and counted
    }
    let count = command.matches("sleep 98").count();
    let place = Place::new(agent, [Reply::call(Tool::shell(command)), Reply::text("alive")]);
    let mut stage = place.open(&[&["--approval-mode", "auto-all"], options].concat());
    stage.prompt("run it");
    let runs = || (sleepers(&place).len() == count && place.scratch.path("started.txt").exists()).then_some(());
    wait::until_blocking("the command to run", PATIENCE, runs).unwrap();
    let agent_pid = stage.agent_pid();
    stage.send(&json!({"type": "cancel"}));
    assert_eq!(stage.turn()["status"], "cancelled", "{}", stage.story());
    let left = || sleepers(&place).is_empty().then_some(());
    let ended = wait::until_blocking("the command to end", PATIENCE, left);
    assert!(ended.is_ok(), "left: {:?}\n{}", sleepers(&place), stage.story());
    assert!(!place.scratch.path("done.txt").exists());
    // The agent itself lives on, and works.
    assert_eq!(stage.agent_pid(), agent_pid);
    assert_eq!(stage.ask("and now?")["status"], "completed", "{}", stage.story());
    stage.finish().exits(0);
}

#[test]
fn interop_codex_in_its_sandbox_leaves_nothing_of_a_cancelled_command() {
    check(Agent::Codex, COMMAND, &["--sandbox", "workspace-write"]);
}

#[test]
fn interop_codex_without_sandbox_leaves_nothing_of_a_cancelled_command() {
    check(Agent::Codex, COMMAND, &["--sandbox", "full-access"]);
}

#[test]
fn interop_claude_leaves_nothing_of_a_cancelled_command() {
    check(Agent::Claude, SIMPLE, &[]);
}

#[test]
fn interop_gemini_leaves_nothing_of_a_cancelled_command() {
    check(Agent::Gemini, SIMPLE, &[]);
}

#[test]
fn interop_builtin_leaves_nothing_of_a_cancelled_command() {
    check(Agent::Builtin(Api::Anthropic), COMMAND, &[]);
}

/// The MCP server's process, and the one that the server started during the turn.
fn servers(stage: &Stage<'_>) -> Vec<u32> {
    let is_server = |command: &str| command.starts_with("/bin/sh") && command.ends_with("server.sh");
    let all = wait::descendants(stage.pid()).into_iter();
    all.filter(|process| is_server(&process.command) || process.command == "sleep 977")
        .map(|process| process.pid)
        .collect()
}

/// What a cancelled turn left is ended, but an MCP server serves the next turns as well. `calls` says whether its tool may
/// be called: in its sandbox Codex asks about that, and nobody answers.
fn check_mcp(options: &[&str], calls: bool) {
    let agent = Agent::Codex;
    if agent.program().is_none() {
        return; // said loudly, and counted
    }
    let shout = || Reply::call(Tool::mcp("echo", "shout", json!({"text": "hello"})));
    let place = Place::new(agent, [shout(), Reply::call(Tool::shell(COMMAND)), shout(), Reply::text("alive")]);
    let working = MCP_SERVER.replacen(
        "*'\"method\":\"tools/call\"'*) ",
        "*'\"method\":\"tools/call\"'*) if [ -z \"$worker\" ]; then sleep 977 </dev/null >/dev/null 2>&1 & worker=1; fi; ",
        1,
    );
    assert!(working.contains("sleep 977"));
    let script = place.scratch.write("server.sh", &working).unwrap();
    let server = agent.mcp_server(&place.scratch, "echo", &script);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut stage = place.open(&[&["--approval-mode", "auto-all"], options, &server].concat());
    stage.prompt("run it");
    let runs = || (sleepers(&place).len() == 3 && place.scratch.path("started.txt").exists()).then_some(());
    let started = wait::until_blocking("the command to run", PATIENCE, runs);
    assert!(started.is_ok(), "{:?}\n{:?}", sleepers(&place), wait::descendants(stage.pid()));
    let before = servers(&stage);
    assert_eq!(before.len(), if calls { 2 } else { 1 }, "{:?}", wait::descendants(stage.pid()));
    stage.send(&json!({"type": "cancel"}));
    assert_eq!(stage.turn()["status"], "cancelled", "{}", stage.story());
    let left = || sleepers(&place).is_empty().then_some(());
    let ended = wait::until_blocking("the command to end", PATIENCE, left);
    assert!(ended.is_ok(), "left: {:?}\n{}", sleepers(&place), stage.story());
    assert_eq!(servers(&stage), before, "the server lives on, with what it started");
    assert_eq!(stage.ask("and now?")["status"], "completed", "{}", stage.story());
    assert_eq!(servers(&stage), before, "the same server answered");
    let run = stage.finish();
    run.exits(0);
    let heard =
        run.all("toolCompleted").iter().filter(|end| end["result"].to_string().contains("HELLO FROM MCP")).count();
    assert_eq!(heard, if calls { 2 } else { 0 }, "{}", run.story());
}

#[test]
fn interop_codex_in_its_sandbox_keeps_its_mcp_server_over_a_cancel() {
    check_mcp(&["--sandbox", "workspace-write"], false);
}

#[test]
fn interop_codex_without_sandbox_keeps_its_mcp_server_over_a_cancel() {
    check_mcp(&["--sandbox", "full-access"], true);
}
