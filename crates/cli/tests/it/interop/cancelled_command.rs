//! A cancelled turn leaves nothing of its command behind, and the agent goes on (R000-2).

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::wait;
use serde_json::json;

use super::agent::{Agent, Api};
use super::stage::{PATIENCE, Place};

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
