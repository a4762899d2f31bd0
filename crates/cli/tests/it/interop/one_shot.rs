//! The real CLIs as a process for each turn: what the other transport has rows for, as far as this one can do it.

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::wait;
use serde_json::json;

use super::agent::Agent;
use super::seat::nothing_left;
use super::stage::{HANGING, Place};

/// In this place the agent is run turn by turn; nothing if it is not to be run at all.
fn place(agent: Agent, replies: impl IntoIterator<Item = Reply>) -> Option<Place> {
    agent.program()?; // said loudly, and counted
    let place = Place::new(agent, replies.into_iter().collect::<Vec<_>>());
    place.settings(&json!({ "agents": { agent.word(): { "transport": "oneShot" } } }));
    Some(place)
}

fn turns_and_a_cancel(agent: Agent) {
    let replies = [Reply::text("noted"), Reply::call(Tool::shell(HANGING)), Reply::text("alive")];
    let Some(place) = place(agent, replies) else { return };
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    let started = stage.next("sessionStarted");
    assert_eq!(started.get("nativeSessionId"), None, "there is no conversation before the first prompt: {started}");
    assert_eq!(stage.ask("remember plum")["status"], "completed");
    stage.hang_in_a_tool();
    stage.send(&json!({"type": "cancel"}));
    assert_eq!(stage.turn()["status"], "cancelled");
    assert_eq!(stage.ask("go on")["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.one("toolCompleted")["outcome"], "cancelled", "{}", run.story());
    assert_eq!(run.all("nativeSessionChanged").len(), 1, "{}", run.story());
    let heard = place.model.conversation().pop().unwrap().user_texts();
    assert!(heard.iter().any(|text| text.contains("remember plum")), "{heard:?}");
    assert!(wait::marked(&place.scratch).is_empty(), "{:#?}", wait::marked(&place.scratch));
}

fn a_kill_leaves_nothing(agent: Agent) {
    let Some(place) = place(agent, [Reply::call(Tool::shell(HANGING))]) else { return };
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.hang_in_a_tool();
    place.scratch.command("/bin/kill").args(["-KILL", &stage.pid().to_string()]).status().unwrap();
    nothing_left(&place);
}

#[test]
fn interop_codex_turn_by_turn() {
    turns_and_a_cancel(Agent::Codex);
}

#[test]
fn interop_gemini_turn_by_turn() {
    turns_and_a_cancel(Agent::Gemini);
}

#[test]
fn interop_codex_killed_in_a_turn() {
    a_kill_leaves_nothing(Agent::Codex);
}

#[test]
fn interop_gemini_killed_in_a_turn() {
    a_kill_leaves_nothing(Agent::Gemini);
}
