//! Children always end: the binary is killed while the agent runs a tool that detached a process of its own.

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::wait;

use super::agent::{Agent, Api};
use super::seat::nothing_left;
use super::stage::{PATIENCE, Place};

/// What the tool leaves behind: a session of its own, no parent, no terminal.
pub(super) const DETACH: &str = "setsid sleep 300 >/dev/null 2>&1 </dev/null & touch started.txt; tail -f /dev/null";

fn check(agent: Agent, signal: &str) {
    if agent.program().is_none() {
        return; // said loudly, and counted
    }
    let place = Place::new(agent, [Reply::call(Tool::shell(DETACH))]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.prompt("leave something behind");
    let started = || {
        let left = wait::marked(&place.scratch);
        let detached = left.iter().any(|process| process.command == "sleep 300");
        (detached && place.scratch.path("started.txt").exists()).then_some(())
    };
    wait::until_blocking("the tool to run", PATIENCE, started).unwrap();
    place.scratch.command("/bin/kill").args([signal, &stage.pid().to_string()]).status().unwrap();
    nothing_left(&place);
}

#[test]
fn nothing_is_left_when_it_is_killed_over_claude() {
    check(Agent::Claude, "-KILL");
}

#[test]
fn nothing_is_left_when_it_is_terminated_over_claude() {
    check(Agent::Claude, "-TERM");
}

#[test]
fn nothing_is_left_when_it_is_killed_over_codex() {
    check(Agent::Codex, "-KILL");
}

#[test]
fn nothing_is_left_when_it_is_terminated_over_codex() {
    check(Agent::Codex, "-TERM");
}

#[test]
fn nothing_is_left_when_it_is_killed_over_gemini() {
    check(Agent::Gemini, "-KILL");
}

#[test]
fn nothing_is_left_when_it_is_terminated_over_gemini() {
    check(Agent::Gemini, "-TERM");
}

#[test]
fn nothing_is_left_when_it_is_killed_over_acp() {
    check(Agent::Acp, "-KILL");
}

#[test]
fn nothing_is_left_when_it_is_terminated_over_acp() {
    check(Agent::Acp, "-TERM");
}

#[test]
fn nothing_is_left_when_it_is_killed_over_builtin() {
    check(Agent::Builtin(Api::Anthropic), "-KILL");
}

#[test]
fn nothing_is_left_when_it_is_terminated_over_builtin() {
    check(Agent::Builtin(Api::Anthropic), "-TERM");
}
