//! What goes wrong at the model, and with the agent itself.

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::wait;
use serde_json::json;

use crate::interop::agent::Agent;
use crate::interop::stage::{HANGING, Place};

pub(crate) fn too_many_requests_then_fine(agent: Agent) {
    let place = Place::new(agent, [Reply::status(429).retry_after(0), Reply::text("at last")]);
    let run = place.once("hello", &[]);
    run.exits(0);
    assert_eq!(run.text(), "at last");
    let retry = run.all("retry").first().copied().unwrap_or_else(|| panic!("no retry told\n{}", run.story()));
    assert_eq!(retry["statusCode"], 429);
    assert_eq!(retry["attempt"], 1);
}

/// The model answers 500 until the agent gives up: one error, a failed turn, exit 1; the session would go on.
pub(crate) fn the_model_fails_for_good(agent: Agent) {
    let place = Place::new(agent, vec![Reply::status(500).retry_after(0); 12]);
    let mut stage = place.open(agent.few_retries());
    assert_eq!(stage.ask("hello")["status"], "failed");
    let told = stage.story();
    // What is left of the failures, so that the next turn works.
    while place.model.queued() > 0 {
        let _ = stage.ask("still there?");
    }
    place.model.push(Reply::text("back again"));
    assert_eq!(stage.ask("and now?")["status"], "completed", "{told}");
    let run = stage.finish();
    run.exits(0);
    let error = run.all("error")[0];
    assert_eq!((&error["agentType"], &error["severity"]), (&json!(agent.word()), &json!("error")));
    assert!(run.text().ends_with("back again"));
}

/// R002-25.
pub(crate) fn the_key_is_wrong(agent: Agent) {
    let place = Place::new(agent, vec![Reply::status(401); 8]);
    let run = place.once("hello", agent.few_retries());
    run.exits(1);
    let error = run.one("error");
    assert_eq!((&error["kind"], &error["agentType"]), (&json!("permissionDenied"), &json!(agent.word())), "{error:#}");
    assert_eq!(run.one("turnCompleted")["status"], "failed");
    assert_eq!(run.one("sessionEnded")["reason"], "failed");
}

/// Text before the break is told once; the agent tries again.
pub(crate) fn the_stream_breaks_off(agent: Agent) {
    let place = Place::new(agent, [Reply::text("half a sen").then_cut(), Reply::text("the whole sentence")]);
    let run = place.once("hello", agent.few_retries());
    run.exits(0);
    assert!(run.text().ends_with("the whole sentence"), "{}", run.story());
    assert_eq!(run.text().matches("the whole sentence").count(), 1, "{}", run.story());
    assert!(run.text().matches("half a sen").count() <= 1, "{}", run.story());
}

pub(crate) fn too_many_turns(agent: Agent) {
    let place = Place::new(agent, vec![Reply::call(Tool::shell("echo again")); 5]);
    let run = place.once("loop", &["--approval-mode", "auto-all", "--max-turns", "2"]);
    run.exits(1);
    let end = run.one("turnCompleted");
    assert_eq!(end["status"], "failed");
    assert!(end["error"].as_str().unwrap().contains("turns"), "{end:#}");
    assert!(!run.all("error").is_empty());
}

/// R002-129: exit error, with what the tools and the turn left open closed.
pub(crate) fn the_agent_is_killed_from_outside(agent: Agent) {
    let place = Place::new(agent, [Reply::call(Tool::shell(HANGING))]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.hang_in_a_tool();
    place.scratch.command("/bin/kill").args(["-KILL", &stage.agent_pid().to_string()]).status().unwrap();
    assert_eq!(stage.turn()["status"], "interrupted");
    let run = stage.finish();
    run.exits(1);
    let error = run.one("error");
    assert_eq!(error["kind"], "processExitError", "{error:#}");
    assert!(error["message"].as_str().unwrap().contains("signal 9"), "{error:#}");
    assert_eq!(run.one("toolCompleted")["outcome"], "cancelled");
    assert_eq!(run.one("sessionEnded")["reason"], "failed");
    assert!(wait::marked(&place.scratch).is_empty(), "{:#?}", wait::marked(&place.scratch));
}
