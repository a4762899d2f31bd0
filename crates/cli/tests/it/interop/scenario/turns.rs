//! Turns: several in one process, waiting, cancelled.

use std::time::Duration;

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::wait;
use serde_json::json;

use crate::interop::agent::Agent;
use crate::interop::stage::{HANGING, Place, Stage};

/// R002-2, R002-3, R002-21.
pub(crate) fn two_turns_in_one_process(agent: Agent) {
    let place = Place::new(agent, [Reply::text("first"), Reply::text("second")]);
    let mut stage = place.open(&[]);
    assert_eq!(stage.ask("remember the word plum")["status"], "completed");
    let pid = stage.agent_pid();
    assert_eq!(stage.ask("which word?")["status"], "completed");
    assert_eq!(stage.agent_pid(), pid);
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.all("turnStarted").len(), 2);
    let texts = place.model.conversation().last().unwrap().user_texts();
    assert!(texts.iter().any(|text| text.contains("plum")), "turn 2 remembers turn 1: {texts:?}");
}

/// R002-19: the second prompt is queued, visibly, and answered as a turn of its own.
pub(crate) fn a_prompt_waits_its_turn(agent: Agent) {
    let place = Place::new(agent, [Reply::text("first").then_hang(), Reply::text("second"), Reply::text("third")]);
    let mut stage = place.open(&[]);
    stage.prompt("one");
    stage.next("textChunk");
    stage.prompt("two");
    assert_eq!(stage.next("promptQueued")["prompt"]["text"], "two");
    stage.prompt("three");
    let third = stage.next("promptQueued");
    stage.send(&json!({"type": "withdraw", "promptId": third["prompt"]["promptId"]}));
    stage.next("promptWithdrawn");
    place.model.release();
    stage.turn();
    stage.turn();
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.text(), "firstsecond");
    let asked: Vec<&str> = run.all("userMessage").iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(asked, ["one", "two"]);
}

#[track_caller]
fn cancelled_then_another(mut stage: Stage<'_>) {
    stage.send(&json!({"type": "cancel"}));
    let end = stage.turn();
    assert_eq!(end["status"], "cancelled", "{}", stage.story());
    stage.place.model.push(Reply::text("still here"));
    assert_eq!(stage.ask("are you there?")["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert!(run.text().ends_with("still here"), "{}", run.story());
    assert!(run.all("error").is_empty(), "a cancelled turn is no error\n{}", run.story());
}

pub(crate) fn cancel_in_mid_text(agent: Agent) {
    let place = Place::new(agent, [Reply::text("a long story").then_hang()]);
    let mut stage = place.open(&[]);
    stage.prompt("tell me a story");
    stage.next("textChunk");
    cancelled_then_another(stage);
}

pub(crate) fn cancel_in_a_running_tool(agent: Agent) {
    let place = Place::new(agent, [Reply::call(Tool::shell(HANGING))]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.hang_in_a_tool();
    cancelled_then_another(stage);
    let gone = || {
        let left = wait::marked(&place.scratch);
        left.iter().all(|process| !process.command.contains("tail -f")).then_some(())
    };
    wait::until_blocking("the tool to end", Duration::from_secs(10), gone).unwrap();
}

pub(crate) fn cancel_with_a_question_open(agent: Agent) {
    let place = Place::new(agent, [Reply::call(Tool::shell("touch made.txt"))]);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a file");
    let question = stage.question();
    stage.send(&json!({"type": "cancel"}));
    let withdrawn = stage.next("permissionWithdrawn");
    assert_eq!(withdrawn["questionId"], question["questionId"]);
    assert_eq!(stage.turn()["status"], "cancelled");
    stage.decide(&question, "proceed_once", &json!({}));
    assert!(stage.next("error")["message"].as_str().unwrap().contains("withdrawn"), "{}", stage.story());
    assert!(!place.scratch.path("made.txt").exists());
    place.model.push(Reply::text("still here"));
    assert_eq!(stage.ask("are you there?")["status"], "completed");
    stage.finish().exits(0);
}

/// R002-6: slash commands are plain prompts.
pub(crate) fn a_slash_command(agent: Agent) {
    let place = Place::new(agent, [Reply::text("the model was asked")]);
    let mut stage = place.open(&[]);
    assert_eq!(stage.ask(agent.local_command())["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert!(!run.text().is_empty(), "{}", run.story());
    assert!(place.model.conversation().is_empty(), "answered without the model");
}

/// A sub-agent: what it does belongs to the call that started it; its end begins a turn nobody asked for.
pub(crate) fn work_in_the_background_has_a_turn_of_its_own(agent: Agent) {
    let sub = json!({"description": "sub", "prompt": "look around inside", "subagent_type": "general-purpose"});
    let place = Place::new(
        agent,
        [
            Reply::call(Tool::native("Agent", sub)),
            Reply::call(Tool::shell("echo in-sub")).when_asked("look around inside"),
            Reply::text("looked around"),
            Reply::text("started it"),
            Reply::text("it is done"),
            Reply::text("spare"),
        ],
    );
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.prompt("start a sub-agent");
    stage.turn();
    let second = stage.turn();
    assert!(second["origin"].is_string(), "nobody asked for it: {second:#}");
    let run = stage.finish();
    run.exits(0);
    let started = run.all("toolStarted");
    let parent = started.iter().find(|tool| tool["toolKind"] == "agent").expect("the sub-agent's call");
    let inside = started.iter().find(|tool| tool["toolKind"] == "shell").expect("the sub-agent's command");
    assert_eq!(inside["parentToolId"], parent["toolId"], "{}", run.story());
}

/// R002-121: the agent's own list of tasks.
pub(crate) fn a_plan_is_kept(agent: Agent) {
    let (mut replies, options) = agent.plans();
    replies.push(Reply::text("planned"));
    let place = Place::new(agent, replies);
    let run = place.once("plan", options);
    run.exits(0);
    let last = run.all("todoList").last().copied().unwrap_or_else(|| panic!("no plan\n{}", run.story()));
    let items: Vec<_> = last["items"].as_array().unwrap().iter().map(|item| (&item["text"], &item["status"])).collect();
    assert_eq!(items, [(&json!("Look"), &json!("inProgress")), (&json!("Leap"), &json!("pending"))]);
}
