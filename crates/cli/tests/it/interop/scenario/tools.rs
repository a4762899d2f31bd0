//! Tool calls: asked, allowed, denied, edited, failed.

use std::fs;

use multitap_testkit::model::{Reply, Tool};
use serde_json::{Value, json};

use crate::interop::agent::Agent;
use crate::interop::stage::{Place, Run, Stage};

fn outcome<'a>(run: &'a Run, tool: &Value) -> &'a Value {
    let fits = |event: &&&Value| event["toolId"] == tool["toolId"];
    run.all("toolCompleted").iter().find(fits).copied().unwrap_or_else(|| panic!("no end of {tool}\n{}", run.story()))
}

/// R002-31, R002-32, R002-44, R002-104, R002-106.
pub(crate) fn a_command_is_allowed_once(agent: Agent) {
    let place = Place::new(agent, [Reply::call(Tool::shell("touch made.txt && ls")), Reply::text("made it")]);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a file");
    let question = stage.question();
    assert_eq!(question["details"]["type"], "command");
    assert!(question["details"]["command"].as_str().unwrap().contains("touch made.txt && ls"));
    assert_eq!(question["details"]["directory"], place.scratch.workspace().to_str().unwrap());
    assert!(!place.scratch.path("made.txt").exists(), "nothing runs before the answer");
    stage.decide(&question, "proceed_once", &json!({}));
    let settled = stage.next("permissionSettled");
    assert_eq!(settled["selectedOptionId"], "proceed_once");
    assert_eq!(settled["settledBy"]["door"], "headless");
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    let tool = run.one("toolStarted");
    assert_eq!(tool["toolKind"], "shell");
    assert_eq!(tool["toolId"], question["toolId"]);
    assert_eq!(outcome(&run, tool)["success"], true);
    assert!(outcome(&run, tool)["result"].to_string().contains("made.txt"));
    assert!(place.scratch.path("made.txt").exists());
    assert_eq!(run.text(), "made it");
}

/// R002-35, R002-44, R002-46.
pub(crate) fn a_command_is_denied_with_feedback(agent: Agent) {
    let place = Place::new(agent, [Reply::call(Tool::shell("touch made.txt")), Reply::text("as you wish")]);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a file");
    let question = stage.question();
    stage.decide(&question, "cancel", &json!({"feedback": "use another name"}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert!(!place.scratch.path("made.txt").exists());
    let end = outcome(&run, run.one("toolStarted"));
    assert_eq!((&end["success"], &end["outcome"]), (&json!(false), &json!("denied")), "{}", run.story());
    assert_eq!(run.one("permissionSettled")["feedback"], "use another name");
    let heard = place.model.conversation().pop().unwrap();
    let told = heard.tool_results().into_iter().map(|result| result.text).chain(heard.user_texts());
    let hears = told.into_iter().any(|text| text.contains("use another name"));
    assert_eq!(hears, agent.hears_feedback(), "the model hears why, where it can");
    assert_eq!(run.text(), "as you wish", "the turn goes on");
}

/// R002-47.
pub(crate) fn a_command_is_allowed_always(agent: Agent) {
    let touch = || Reply::call(Tool::shell("touch made.txt"));
    let place = Place::new(agent, [touch(), Reply::text("one"), touch(), Reply::text("two")]);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a file");
    let question = stage.question();
    stage.decide(&question, "proceed_always", &json!({}));
    assert_eq!(stage.turn()["status"], "completed");
    fs::remove_file(place.scratch.path("made.txt")).unwrap();
    assert_eq!(stage.ask("once more")["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.all("permissionAsked").len(), 1, "the second call is not asked\n{}", run.story());
    assert_eq!(run.all("toolCompleted").iter().filter(|end| end["success"] == true).count(), 2);
    assert!(place.scratch.path("made.txt").exists());
    assert!(!place.scratch.path(".claude/settings.local.json").exists(), "for the session only");
    assert!(run.all("modeChanged").is_empty(), "a rule, not another mode\n{}", run.story());
}

/// An agent that cannot do it says so and runs nothing; the question stays open.
fn refuses_other_content(mut stage: Stage<'_>, question: &Value) {
    let refused = stage.next("error");
    assert!(refused["message"].as_str().unwrap().contains("newContent"), "{refused:#}");
    stage.send(&json!({"type": "cancel"}));
    assert_eq!(stage.next("permissionWithdrawn")["questionId"], question["questionId"]);
    assert_eq!(stage.turn()["status"], "cancelled");
    let run = stage.finish();
    assert!(run.all("toolCompleted").iter().all(|end| end["success"] == false), "{}", run.story());
    assert!(run.all("fileChanged").is_empty());
}

/// R002-44: the client rewrites the command.
pub(crate) fn a_command_is_edited_before_it_runs(agent: Agent) {
    let place = Place::new(agent, [Reply::call(Tool::shell("touch theirs.txt")), Reply::text("ok")]);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make a file");
    let question = stage.question();
    stage.decide(&question, "proceed_once", &json!({"newContent": "touch ours.txt"}));
    if !agent.takes_other_content() {
        return refuses_other_content(stage, &question);
    }
    assert_eq!(stage.next("permissionSettled")["edited"], true);
    assert_eq!(stage.turn()["status"], "completed");
    stage.finish().exits(0);
    assert!(place.scratch.path("ours.txt").exists());
    assert!(!place.scratch.path("theirs.txt").exists());
}

/// R002-107.
pub(crate) fn a_file_is_written_with_a_diff(agent: Agent) {
    let place = Place::new(agent, []);
    let path = place.path("new.txt");
    place.model.push(Reply::call(Tool::write(&path, "alpha\nbeta\n")));
    place.model.push(Reply::text("written"));
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("write a file");
    let question = stage.question();
    let details = &question["details"];
    assert_eq!((&details["type"], &details["filePath"]), (&json!("fileEdit"), &json!(path)));
    assert_eq!(details["after"], "alpha\nbeta\n");
    assert!(details["diff"].as_str().unwrap().contains("+alpha"), "{details:#}");
    assert!(details.get("before").is_none());
    stage.decide(&question, "proceed_once", &json!({}));
    stage.turn();
    let run = stage.finish();
    run.exits(0);
    let changed = run.one("fileChanged");
    assert_eq!((&changed["filePath"], &changed["changeType"]), (&json!(path), &json!("created")));
    assert_eq!(changed["after"], "alpha\nbeta\n");
    assert!(changed["diff"].as_str().unwrap().contains("+beta"));
    assert_eq!(changed["toolId"], run.one("toolStarted")["toolId"]);
    assert_eq!(run.one("toolStarted")["toolKind"], "edit");
    assert_eq!(place.scratch.read("new.txt").unwrap(), "alpha\nbeta\n");
}

/// R002-107.
pub(crate) fn a_file_is_edited_with_a_diff(agent: Agent) {
    let place = Place::new(agent, []);
    place.scratch.write("old.txt", "alpha\nbeta\ngamma\n").unwrap();
    let path = place.path("old.txt");
    place.model.push(Reply::call(Tool::read(&path)));
    place.model.push(Reply::call(Tool::edit(&path, "beta", "BETA")));
    place.model.push(Reply::text("edited"));
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("edit the file");
    if agent.asks_before_reading() {
        let question = stage.question();
        stage.decide(&question, "proceed_once", &json!({}));
    }
    let question = stage.question();
    let details = &question["details"];
    assert_eq!(details["before"], "alpha\nbeta\ngamma\n");
    assert_eq!(details["after"], "alpha\nBETA\ngamma\n");
    let diff = details["diff"].as_str().unwrap();
    assert!(diff.contains("-beta\n+BETA\n"), "{diff}");
    stage.decide(&question, "proceed_once", &json!({}));
    stage.turn();
    let run = stage.finish();
    run.exits(0);
    let changed = run.one("fileChanged");
    assert_eq!(changed["changeType"], "modified");
    assert_eq!(changed["before"], "alpha\nbeta\ngamma\n");
    assert!(changed["diff"].as_str().unwrap().contains("-beta\n+BETA\n"), "{changed:#}");
    assert_eq!(place.scratch.read("old.txt").unwrap(), "alpha\nBETA\ngamma\n");
}

/// The answer brings the file's text itself, for a new file and for an edit.
pub(crate) fn a_written_file_gets_other_content(agent: Agent) {
    let place = Place::new(agent, []);
    place.scratch.write("old.txt", "alpha\nbeta\n").unwrap();
    let (new, old) = (place.path("new.txt"), place.path("old.txt"));
    for reply in [
        Reply::call(Tool::write(&new, "theirs\n")),
        Reply::call(Tool::read(&old)),
        Reply::call(Tool::edit(&old, "beta", "BETA")),
        Reply::text("done"),
    ] {
        place.model.push(reply);
    }
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("write and edit");
    if !agent.takes_other_content() {
        let question = stage.question();
        stage.decide(&question, "proceed_once", &json!({"newContent": "ours\n"}));
        return refuses_other_content(stage, &question);
    }
    for text in ["ours\n", "alpha\nours too\n"] {
        let question = stage.question();
        stage.decide(&question, "proceed_once", &json!({"newContent": text}));
    }
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(place.scratch.read("new.txt").unwrap(), "ours\n");
    assert_eq!(place.scratch.read("old.txt").unwrap(), "alpha\nours too\n");
    let after: Vec<&Value> = run.all("fileChanged").iter().map(|changed| &changed["after"]).collect();
    assert_eq!(after, [&json!("ours\n"), &json!("alpha\nours too\n")]);
}

pub(crate) fn a_tool_fails(agent: Agent) {
    let place = Place::new(agent, [Reply::call(Tool::shell("echo before; exit 3")), Reply::text("it failed")]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    assert_eq!(stage.ask("fail")["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    let end = outcome(&run, run.one("toolStarted"));
    assert_eq!((&end["success"], &end["outcome"]), (&json!(false), &json!("failed")));
    assert_eq!(end["exitCode"], 3, "{end:#}");
    assert!(end["error"].as_str().unwrap().contains("before"), "{end:#}");
}

pub(crate) fn two_tools_run_in_one_reply(agent: Agent) {
    let both = Reply::call(Tool::shell("touch one.txt")).then_call(Tool::shell("touch two.txt"));
    let place = Place::new(agent, [both, Reply::text("both")]);
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.prompt("make two files");
    for _ in 0..2 {
        let question = stage.question();
        stage.decide(&question, "proceed_once", &json!({}));
    }
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert_eq!(run.all("toolStarted").len(), 2);
    assert!(run.all("toolCompleted").iter().all(|end| end["success"] == true), "{}", run.story());
    assert!(place.scratch.path("one.txt").exists() && place.scratch.path("two.txt").exists());
}

/// A tiny MCP server in POSIX shell: it greets, lists one tool, and answers each call.
pub(crate) const MCP_SERVER: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"shout","description":"Shouts","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"HELLO FROM MCP"}]}}\n' "$id" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

pub(crate) fn an_mcp_tool_is_called(agent: Agent) {
    let place =
        Place::new(agent, [Reply::call(Tool::mcp("echo", "shout", json!({"text": "hello"}))), Reply::text("heard")]);
    let server = place.scratch.write("server.sh", MCP_SERVER).unwrap();
    let server = agent.mcp_server(&place.scratch, "echo", &server);
    let options: Vec<&str> = ["--approval-mode", "ask"].into_iter().chain(server.iter().map(String::as_str)).collect();
    let mut stage = place.open(&options);
    stage.prompt("shout");
    let question = stage.question();
    let details = &question["details"];
    assert_eq!(
        (&details["type"], &details["server"], &details["tool"]),
        (&json!("mcp"), &json!("echo"), &json!("shout"))
    );
    stage.decide(&question, "proceed_once", &json!({}));
    assert_eq!(stage.turn()["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    let tool = run.one("toolStarted");
    assert_eq!((&tool["toolKind"], &tool["server"]), (&json!("mcp"), &json!("echo")));
    assert!(outcome(&run, tool)["result"].to_string().contains("HELLO FROM MCP"), "{}", run.story());
}

/// R002-33, R002-105.
pub(crate) fn a_long_tool_tells_its_progress(agent: Agent) {
    let command = "for n in 1 2 3 4 5; do echo tick $n; sleep 1; done";
    let place = Place::new(agent, [Reply::call(Tool::shell(command)), Reply::text("done")]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    assert_eq!(stage.ask("count slowly")["status"], "completed");
    let run = stage.finish();
    let tool = run.one("toolStarted");
    let progress = run.all("toolProgress");
    assert!(!progress.is_empty(), "{}", run.story());
    assert!(progress.iter().all(|event| event["toolId"] == tool["toolId"]));
    assert!(outcome(&run, tool)["result"].to_string().contains("tick 5"));
}
