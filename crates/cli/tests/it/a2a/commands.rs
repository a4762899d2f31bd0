//! Slash commands in both shapes.

use serde_json::{Value, json};

use super::{Frame, Said, answer};
use crate::scene::Scene;

#[test]
fn commands_are_listed_with_arguments_and_sub_commands() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let listed = served.result("commands/get", &json!({}));
    let find = |list: &Value, name: &str| -> Value {
        list.as_array().unwrap().iter().find(|command| command["name"] == name).expect(name).clone()
    };
    let memory = find(&listed["commands"], "memory");
    assert!(!memory["description"].as_str().unwrap().is_empty());
    let add = find(&memory["sub_commands"], "add");
    let argument = &add["arguments"][0];
    assert_eq!((&argument["name"], &argument["is_required"]), (&json!("text"), &json!(true)));
    // Of a session that runs, the same.
    let context = served.send(&Said::text("hi"))["contextId"].clone();
    assert_eq!(served.result("commands/get", &json!({ "context_id": context })), listed);
    // And as Google's server has it.
    let shipped = served.http.get("/listCommands").unwrap().json().unwrap();
    let memory = find(&shipped["commands"], "memory");
    assert_eq!(memory["subCommands"][1]["name"], "memory add", "{memory}");
    assert_eq!(served.refusal("commands/get", &json!({ "contextId": "none" })).0, -32602);
    served.stop(&scene);
}

#[test]
fn a_command_is_a_task_that_starts_or_says_why_not() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let run =
        |path: &[&str], args: &str| served.result("command/execute", &json!({ "command_path": path, "args": args }));
    let started = run(&["memory", "add"], "I like tea");
    assert_eq!(started["status"], "AWAITING_ACTION_CONFIRMATION");
    let id = started["execution_id"].as_str().unwrap();
    // It would be there for every session of the user, and a client is not the user.
    let task = served.task(id);
    assert_eq!((&task["id"], &task["status"]["state"]), (&json!(id), &json!("input-required")));
    let decision = answer(&task["status"]["message"]["parts"][0]["data"], "proceed_once");
    let task = served.send(&Said::data(&decision).task(id));
    assert_eq!((&task["id"], &task["status"]["state"]), (&json!(id), &json!("completed")));
    assert_eq!(task["history"][0]["parts"][0]["text"], "/memory add I like tea");
    assert_eq!(run(&["memory", "show"], "")["status"], "STARTED");
    let tasks = || served.result("ListTasks", &json!({}))["totalSize"].clone();
    let before = tasks();
    for (path, args, why) in
        [(&["nope"][..], "", "/nope"), (&["memory", "nope"], "", "/memory nope"), (&["memory", "add"], " ", "text")]
    {
        let failed = run(path, args);
        assert_eq!(failed["status"], "FAILED_TO_START", "{failed}");
        assert!(failed["message"].as_str().unwrap().contains(why), "{failed}");
    }
    assert_eq!(tasks(), before, "nothing was begun");
    for params in
        [json!({}), json!({ "command_path": [] }), json!({ "command_path": "help" }), json!({ "command_path": [5] })]
    {
        assert_eq!(served.refusal("command/execute", &params).0, -32602, "{params}");
    }
    served.stop(&scene);
}

#[test]
fn what_a_command_says_streams_like_any_turn() {
    let scene = Scene::bare();
    let mut served = scene.a2a(&[]);
    let context = served.send(&Said::text("hi").dev())["contextId"].clone();
    served.http = served.http.with("Accept", "text/event-stream");
    let params = json!({ "command_path": ["help"], "args": "", "context_id": context });
    let mut stream = served.open("command/execute", &params);
    let first = stream.next().json;
    assert_eq!(first["status"], "STARTED");
    let frames = stream.rest();
    assert_eq!(frames[0].word(), "Task submitted");
    assert_eq!((&frames[0].json["id"], &frames[0].json["contextId"]), (&first["execution_id"], &context));
    assert!(frames.iter().map(Frame::said).collect::<String>().contains("/memory"), "{frames:#?}");
    assert_eq!(frames.last().unwrap().word(), "STATE_CHANGE completed final");
    served.stop(&scene);
}

#[test]
fn the_shipped_path_runs_a_command_to_its_end() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--max-sessions", "2"]);
    let run = |body: Value| {
        let response = served.http.post("/executeCommand", &body).unwrap();
        (response.status, response.json().unwrap())
    };
    // More often than there may be sessions: none is left behind.
    for _ in 0..5 {
        let (status, done) = run(json!({ "command": "memory show", "args": [] }));
        assert_eq!((status, &done["name"]), (200, &json!("memory show")), "{done}");
        assert!(done["data"].is_string(), "{done}");
    }
    assert_eq!(run(json!({ "command": "nope" })).0, 404);
    for body in [json!({}), json!({ "command": 5 }), json!([]), json!({ "command": "help", "args": 5 })] {
        let (status, error) = run(body.clone());
        assert!(status == 400 && error["error"].is_string(), "{body}: {error}");
    }
    served.stop(&scene);
}

/// A command of an agent that multitap drives, which asks before it runs a shell.
#[test]
fn a_command_that_asks_says_what_it_waits_for() {
    let asker = crate::scene::asker();
    let scene = Scene::with(&asker);
    let served = scene.a2a_with(&["--agent", "claude"]);
    let context = served.send(&Said::text("hi").dev())["contextId"].clone();
    let listed = served.result("commands/get", &json!({ "context_id": context }));
    assert_eq!(listed["commands"][0]["name"], "ask", "{listed}");
    let params = json!({ "command_path": ["ask"], "args": "", "context_id": context });
    let waiting = served.result("command/execute", &params);
    assert_eq!(waiting["status"], "AWAITING_SHELL_CONFIRMATION");
    let id = waiting["execution_id"].as_str().unwrap();
    let task = served.task(id);
    assert_eq!(task["status"]["state"], "input-required");
    // Its question is answered like any other, here without a stream.
    let mut decision = answer(&task["status"]["message"]["parts"][0]["data"], "proceed_once");
    decision["taskId"] = id.into();
    let done = served.result("toolCall/confirm", &decision);
    assert_eq!((&done["taskId"], &done["status"]), (&json!(id), &json!("EXECUTING")));
    let ended = || (served.state(id) == "completed").then_some(());
    multitap_testkit::wait::until_blocking("the command to end", crate::scene::PATIENCE, ended).unwrap();
    served.stop(&scene);
}

/// R000-50: what the shipped path runs to its end may ask on the way. It says so, and the question can be answered.
#[test]
fn the_shipped_path_says_that_a_command_asks() {
    let asker = crate::scene::asker();
    for (scene, options, command, args, status) in [
        (Scene::with(&asker), &["--agent", "claude"][..], "ask", json!([]), "AWAITING_SHELL_CONFIRMATION"),
        (
            Scene::bare(),
            &["--agent", "builtin", "--model", "rehearsal"],
            "memory add",
            json!(["I like tea"]),
            "AWAITING_ACTION_CONFIRMATION",
        ),
    ] {
        let served = scene.a2a_with(options);
        let response = served.http.post("/executeCommand", &json!({ "command": command, "args": args })).unwrap();
        let asked = response.json().unwrap();
        assert_eq!((&asked["name"], &asked["status"]), (&json!(command), &json!(status)), "{asked}");
        let id = asked["execution_id"].as_str().unwrap();
        let task = served.task(id);
        assert_eq!(task["status"]["state"], "input-required", "{task:#}");
        assert_eq!(task["contextId"], asked["context_id"]);
        let mut decision = answer(&task["status"]["message"]["parts"][0]["data"], "proceed_once");
        decision["taskId"] = id.into();
        served.result("toolCall/confirm", &decision);
        let ended = || (served.state(id) == "completed").then_some(());
        multitap_testkit::wait::until_blocking("the command to end", crate::scene::PATIENCE, ended).unwrap();
        served.stop(&scene);
    }
}

/// R000-44: an agent that has to be started for its list is started once, leaves no session, and not for an observer.
#[test]
fn the_commands_of_an_agent_that_does_not_run_are_listed() {
    let asker = crate::scene::asker();
    let scene = Scene::with(&asker);
    let served = scene.a2a_with(&["--agent", "claude"]);
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "commands/get", "params": {} });
    let observed = || served.http.post("/?role=observer", &request).unwrap().json().unwrap();
    assert_eq!(observed()["error"]["code"], -32012, "{}", observed());
    for _ in 0..3 {
        let listed = served.result("commands/get", &json!({}));
        assert_eq!(listed["commands"][0]["name"], "ask", "{listed}");
    }
    assert_eq!(observed()["result"]["commands"][0]["name"], "ask", "what is known is shown to everybody");
    let failed = served.result("command/execute", &json!({ "command_path": ["memory", "show"], "args": "" }));
    assert_eq!(failed["status"], "FAILED_TO_START", "the built-in agent's commands are not Claude's: {failed}");
    assert_eq!(served.result("ListTasks", &json!({}))["totalSize"], 0);
    served.stop(&scene);
    let sessions = scene.run(&["sessions", "--all", "--json"]).exits(0);
    assert!(!sessions.stdout.contains("claude"), "{sessions:#?}");
}
