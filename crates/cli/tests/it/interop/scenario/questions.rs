//! Questions and who may answer them how.

use multitap_testkit::model::{Reply, Tool};
use serde_json::{Value, json};

use crate::interop::agent::Agent;
use crate::interop::stage::Place;

fn touch() -> [Reply; 2] {
    [Reply::call(Tool::shell("touch made.txt")), Reply::text("done")]
}

/// An unknown option, an unknown question and a late answer each get an error that says so, and approve nothing.
pub(crate) fn an_answer_that_was_not_offered_approves_nothing(agent: Agent) {
    let place = Place::new(agent, touch());
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a file");
    let question = stage.question();
    stage.decide(&question, "allow_everything_forever", &json!({}));
    let refused = stage.next("error");
    assert!(refused["message"].as_str().unwrap().contains("proceed_once"), "it names what is offered: {refused:#}");
    stage.decide(&json!({"questionId": "no-such-question"}), "proceed_once", &json!({}));
    assert!(stage.next("error")["message"].as_str().unwrap().contains("no-such-question"));
    stage.send(&json!({"type": "dance"}));
    assert!(stage.next("error")["message"].as_str().unwrap().contains("dance"));
    assert!(!place.scratch.path("made.txt").exists());
    stage.decide(&question, "proceed_once", &json!({}));
    stage.decide(&question, "cancel", &json!({}));
    let late = stage.next("error");
    assert!(late["message"].as_str().unwrap().contains("settled by"), "{late:#}");
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.one("permissionSettled")["selectedOptionId"], "proceed_once");
    assert!(place.scratch.path("made.txt").exists());
}

/// Content where none is taken, and an answer to half of what was asked: refused, and the question stays open.
pub(crate) fn an_answer_that_does_not_fit_is_refused(agent: Agent) {
    let ask = agent.asks(&["Which colour?", "Which size?"], &["Red", "Big"]);
    let place = Place::new(agent, [ask, Reply::text("big and red")]);
    let mut stage = place.open(&[]);
    stage.prompt("ask me");
    let asked = stage.question();
    stage.decide(&asked, "proceed_once", &json!({"answers": {"Which colour?": "Red"}}));
    assert!(stage.next("error")["message"].as_str().unwrap().contains("Which size?"));
    stage.decide(&asked, "proceed_once", &json!({"newContent": "zzz"}));
    assert!(stage.next("error")["message"].as_str().unwrap().contains("newContent"));
    stage.decide(&asked, "proceed_once", &json!({"answers": {"Which colour?": "Red", "Which size?": "Big"}}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.all("permissionSettled").len(), 1, "{}", run.story());
    let told = place.model.conversation().last().unwrap().tool_results();
    assert!(told.iter().any(|result| result.text.contains("Big")), "{told:?}");
}

/// R002-44: a blocked command and another path are refused and leave the question open; what may run is in the log.
pub(crate) fn an_edit_that_must_not_run_is_refused(agent: Agent) {
    if !agent.takes_other_content() {
        return; // `a_command_is_edited_before_it_runs` shows that it refuses every edit
    }
    let place = Place::new(agent, [Reply::call(Tool::shell("mkdir asked"))]);
    let (asked, other) = (place.path("asked.txt"), place.path("other.txt"));
    place.model.push(Reply::call(Tool::write(&asked, "theirs\n")));
    place.model.push(Reply::text("done"));
    let mut stage = place.open(&["--approval-mode", "ask", "--block-tool", "Bash(touch:*)"]);
    stage.prompt("work");
    let question = stage.question();
    let edits = [
        json!({"newContent": "touch made.txt"}),
        json!({"newContent": "mkdir asked; env touch made.txt"}),
        json!({"newInput": {"command": "touch made.txt"}}),
    ];
    for edit in edits {
        stage.decide(&question, "proceed_once", &edit);
        let refused = stage.next("error");
        assert_eq!(refused["kind"], "permissionDenied", "{refused:#}");
        assert!(refused["message"].as_str().unwrap().contains("touch"), "{refused:#}");
    }
    stage.decide(&question, "proceed_once", &json!({"newContent": "mkdir edited"}));
    let settled = stage.next("permissionSettled");
    assert_eq!((&settled["edited"], &settled["newContent"]), (&json!(true), &json!("mkdir edited")));
    assert_eq!(settled["runs"]["details"]["command"], "mkdir edited", "{settled:#}");
    let question = stage.question();
    let elsewhere = json!({"newInput": {"file_path": other, "content": "ours\n"}});
    stage.decide(&question, "proceed_once", &elsewhere);
    let refused = stage.next("error");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("file_path") || message.contains("newInput"), "{refused:#}");
    stage.decide(&question, "proceed_once", &json!({"newContent": "ours\n"}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.all("permissionSettled").len(), 2, "{}", run.story());
    let there = ["made.txt", "asked", "edited", "other.txt"].map(|name| place.scratch.path(name).exists());
    assert_eq!(there, [false, false, true, false]);
    assert_eq!(place.scratch.read("asked.txt").unwrap(), "ours\n");
}

pub(crate) fn no_command_is_edited_in_plan_mode(agent: Agent) {
    if !agent.takes_other_content() {
        return;
    }
    let place = Place::new(agent, [Reply::call(Tool::shell("mkdir asked")), Reply::text("ok")]);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a folder");
    let question = stage.question();
    // The mode of the moment counts, not the one in which it was asked.
    stage.send(&json!({"type": "setMode", "mode": "plan"}));
    assert_eq!(stage.next("modeChanged")["mode"], "plan");
    stage.decide(&question, "proceed_once", &json!({"newContent": "mkdir made"}));
    let refused = stage.next("error");
    assert!(refused["message"].as_str().unwrap().contains("plan mode"), "{refused:#}");
    stage.decide(&question, "cancel", &json!({}));
    assert_eq!(stage.turn()["status"], "completed");
    stage.finish();
    assert!(!place.scratch.path("made").exists());
}

/// In a plain `-p` nobody can answer: denied at once, visible, exit code 4.
pub(crate) fn nobody_to_ask_is_a_refusal(agent: Agent) {
    let place = Place::new(agent, touch());
    let run = place.once("make a file", &["--approval-mode", "ask"]);
    run.exits(4);
    assert!(!place.scratch.path("made.txt").exists());
    let settled = run.one("permissionSettled");
    assert_eq!(settled["settledBy"]["door"], "host");
    assert!(settled["feedback"].is_string(), "it says why: {settled:#}");
    assert_eq!(run.one("toolCompleted")["outcome"], "denied");
}

pub(crate) fn a_question_times_out(agent: Agent) {
    let place = Place::new(agent, touch());
    let mut stage = place.open(&["--approval-mode", "ask", "--question-timeout", "1"]);
    stage.prompt("make a file");
    stage.question();
    assert_eq!(stage.next("permissionSettled")["settledBy"]["door"], "host");
    stage.turn();
    stage.finish().exits(4);
    assert!(!place.scratch.path("made.txt").exists());
}

/// One option a label.
pub(crate) fn the_agent_asks_something_back(agent: Agent) {
    let place = Place::new(agent, [agent.asks(&["Which colour?"], &["Red", "Blue"]), Reply::text("blue it is")]);
    let mut stage = place.open(&[]);
    stage.prompt("ask me");
    let question = stage.question();
    assert_eq!(question["details"]["type"], "input");
    assert_eq!(question["details"]["questions"][0]["question"], "Which colour?");
    let blue = question["options"].as_array().unwrap().iter().find(|option| option["name"] == "Blue").unwrap();
    let blue = blue["id"].as_str().unwrap().to_owned();
    stage.decide(&question, &blue, &json!({}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    let told = place.model.conversation().last().unwrap().tool_results();
    assert!(told.iter().any(|result| result.text.contains("Blue")), "{told:?}");
}

/// Claude's `ExitPlanMode`: approving the plan ends the plan mode.
pub(crate) fn a_plan_is_approved(agent: Agent) {
    let plan = Tool::native("ExitPlanMode", json!({"plan": "1. Look\n2. Leap"}));
    let place = Place::new(agent, []);
    let write = || Reply::call(Tool::write(place.path("leap.txt"), "x\n"));
    // Behind ACP it is the agent's own business what it asks about in its plan mode.
    let too_early = match agent {
        Agent::Acp => Vec::new(),
        _ => vec![write(), Reply::call(Tool::shell("touch leap.txt"))],
    };
    let replies = too_early.into_iter().chain([Reply::call(plan), write(), Reply::text("leaping")]);
    replies.for_each(|reply| place.model.push(reply));
    let mut stage = place.open(&["--approval-mode", "plan"]);
    stage.prompt("plan it");
    // Before the plan is approved nobody can allow a change.
    let question = stage.question();
    assert_eq!(question["details"]["type"], "plan", "{question:#}");
    assert!(!place.scratch.path("leap.txt").exists());
    stage.decide(&question, "proceed_once", &json!({}));
    let question = stage.question();
    assert_eq!(question["details"]["type"], "fileEdit", "{question:#}");
    stage.decide(&question, "proceed_once", &json!({}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    let modes: Vec<&Value> = run.all("modeChanged").iter().map(|event| &event["mode"]).collect();
    assert_eq!(modes, [&json!("ask")], "{}", run.story());
    assert!(place.scratch.path("leap.txt").exists(), "{}", run.story());
}

/// `agents.claude.permission = "mcp"`: R002-45, R002-46.
pub(crate) fn permission_goes_through_an_mcp_tool(agent: Agent) {
    let shell = |command| Reply::call(Tool::shell(command));
    let place = Place::new(
        agent,
        [shell("touch one.txt"), shell("touch two.txt"), shell("touch three.txt"), Reply::text("done")],
    );
    place.settings(&json!({"agents": {agent.word(): {"permission": "mcp"}}}));
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make three files");
    let question = stage.question();
    assert_eq!(question["details"]["type"], "command", "{question:#}");
    stage.decide(&question, "proceed_once", &json!({}));
    let question = stage.question();
    stage.decide(&question, "proceed_once", &json!({"newContent": "touch other.txt"}));
    let question = stage.question();
    stage.decide(&question, "cancel", &json!({"feedback": "two are enough"}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    let there = |name| place.scratch.path(name).exists();
    assert_eq!(["one.txt", "two.txt", "other.txt", "three.txt"].map(there), [true, false, true, false]);
    let told = place.model.conversation().last().unwrap().tool_results();
    assert!(told.iter().any(|result| result.text.contains("two are enough")), "{told:?}");
    assert!(run.all("toolStarted").iter().all(|tool| tool["toolKind"] == "shell"), "{}", run.story());
}

/// R002-47.
pub(crate) fn always_holds_for_the_mcp_tool_too(agent: Agent) {
    let shell = |command| Reply::call(Tool::shell(command));
    let place = Place::new(agent, [shell("touch one.txt"), shell("touch one.txt"), Reply::text("done")]);
    place.settings(&json!({"agents": {agent.word(): {"permission": "mcp"}}}));
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a file twice");
    let question = stage.question();
    let options = question["options"].as_array().unwrap();
    let always = options.iter().find(|option| option["kind"] == "allowAlways").expect("an always option");
    let always = always["id"].as_str().unwrap().to_owned();
    stage.decide(&question, &always, &json!({}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.all("permissionAsked").len(), 1, "{}", run.story());
    assert_eq!(run.all("toolCompleted").iter().filter(|end| end["success"] == true).count(), 2);
}
