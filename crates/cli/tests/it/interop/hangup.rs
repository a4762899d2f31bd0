//! The terminal goes away while a tool runs: nothing of the agent is left, the log is whole, and the agent remembers.

use multitap_testkit::interop;
use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::terminal::Terminal;
use multitap_testkit::wait::{marked, until_blocking};

use super::agent::{Agent, Api};
use super::kill::DETACH;
use super::seat::{leave, log, nothing_left, place, rests, show};
use super::stage::{PATIENCE, Place};

/// One test for each way to go, for one agent.
macro_rules! column {
    ($agent:expr) => {
        use super::*;

        #[test]
        fn the_terminal_is_closed() {
            check($agent, close);
        }

        #[test]
        fn the_terminal_is_killed() {
            check($agent, kill_terminal);
        }

        #[test]
        fn multitap_is_killed() {
            check($agent, kill_multitap);
        }
    };
}

mod claude {
    column!(Agent::Claude);
}

mod codex {
    column!(Agent::Codex);
}

mod gemini {
    column!(Agent::Gemini);
}

mod acp {
    column!(Agent::Acp);
}

mod builtin {
    column!(Agent::Builtin(Api::Anthropic));
}

const WORDS: &str = "leave something behind";

/// Somebody works alone, and then the terminal is gone in one way or another.
fn check(agent: Agent, end: fn(&Place, &Terminal<'_>)) {
    if agent.program().is_none() || interop::tmux().is_none() {
        return; // said loudly, and counted
    }
    let place = place(agent);
    place.model.push(Reply::call(Tool::shell(DETACH)));
    let terminal = show(&place, &["--approval-mode", "auto-all"]);
    terminal.enter(WORDS).unwrap();
    let runs = || {
        let is_there = marked(&place.scratch).iter().any(|process| process.command == "sleep 300");
        (is_there && place.scratch.path("started.txt").exists()).then_some(())
    };
    until_blocking("the tool to run", PATIENCE, runs).unwrap();
    // An agent may begin before it says so.
    terminal.shows("setsid sleep 300").unwrap();
    end(&place, &terminal);
    nothing_left(&place);
    drop(terminal);
    let before = log(&place);
    assert!(before.iter().any(|event| event["type"] == "toolStarted"), "{before:#?}");

    place.model.push(Reply::text("Where were we?"));
    let terminal = show(&place, &["--approval-mode", "auto-all", "-c"]);
    terminal.shows(&format!("> {WORDS}")).unwrap();
    terminal.enter("go on").unwrap();
    terminal.shows("Where were we?").unwrap();
    rests(&terminal);
    let after = leave(&place, &terminal);
    let heard = place.model.conversation().pop().unwrap().body.to_string();
    assert!(heard.contains(WORDS) && heard.contains("go on"), "{heard}");
    assert_eq!(after[..before.len()], before[..], "it is the same session, and nothing of it changed");
    let ends = after.iter().filter(|event| event["type"] == "turnCompleted").map(|event| event["status"].as_str());
    let ends: Vec<_> = ends.flatten().collect();
    assert!(matches!(ends[..], ["interrupted" | "cancelled", "completed"]), "{ends:?}");
    let tools = |kind: &str| after.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(tools("toolStarted"), tools("toolCompleted"), "{after:#?}");
}

/// Somebody closes the window: SIGHUP.
fn close(_: &Place, terminal: &Terminal<'_>) {
    terminal.close().unwrap();
}

/// The terminal's own process is killed: nobody tells us, but the line is dead.
fn kill_terminal(_: &Place, terminal: &Terminal<'_>) {
    terminal.kill().unwrap();
}

/// Nobody has a chance to say goodbye.
fn kill_multitap(place: &Place, terminal: &Terminal<'_>) {
    let pid = terminal.pid().unwrap().to_string();
    assert!(place.scratch.command("kill").args(["-KILL", &pid]).status().unwrap().success());
    assert_eq!(terminal.ended().unwrap(), 128 + 9);
    terminal.close().unwrap();
}
