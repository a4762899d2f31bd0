//! The specification's example from end to end: a file is written when somebody else says yes.

use serde_json::{Value, json};

use super::{Said, URI, answer, asked, ids, words};
use crate::scene::Scene;

const ASKED: [&str; 5] = [
    "Task submitted",
    "STATE_CHANGE working",
    "TEXT_CONTENT working",
    "TOOL_CALL_UPDATE PENDING asked",
    "STATE_CHANGE input-required final",
];
const ANSWERED: [&str; 4] = [
    "TOOL_CALL_UPDATE EXECUTING",
    "TOOL_CALL_UPDATE SUCCEEDED",
    "TEXT_CONTENT working",
    "STATE_CHANGE completed final",
];

fn in_the_workspace(scene: &Scene) -> Value {
    json!({ "workspace_path": scene.scratch.workspace() })
}

#[test]
fn a_write_is_asked_approved_from_elsewhere_and_done() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let frames = served.stream(&Said::text("write hello to a.txt").set(URI, in_the_workspace(&scene)));
    assert_eq!(words(&frames), ASKED);
    assert_eq!(scene.file("a.txt"), None);
    let (task, context) = ids(&frames);
    for frame in &frames[1..] {
        assert_eq!((&frame.json["taskId"], &frame.json["contextId"]), (&json!(task), &json!(context)));
    }
    // The server's folder stands in the first state.
    let folder = scene.scratch.workspace().canonicalize().unwrap();
    assert_eq!(frames[1].json["metadata"][super::OURS]["workspacePath"], folder.to_str().unwrap());
    let call = asked(&frames);
    let details = &call["confirmation_request"]["file_edit_details"];
    assert_eq!(details["file_path"], folder.join("a.txt").to_str().unwrap());
    assert_eq!((&details["new_content"], details.get("old_content")), (&json!("hello\n"), None));
    assert_eq!(served.state(&task), "input-required");
    // Another connection, as every request here is.
    let frames = served.stream(&Said::data(&answer(call, "proceed_once")).task(&task).context(&context));
    assert_eq!(words(&frames), ANSWERED);
    assert_eq!(frames[1].data()["output"]["diff"]["new_content"], "hello\n");
    assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"));
    assert_eq!(served.state(&task), "completed");
    // It goes on with another message of the same task, and what was said is known.
    let frames = served.stream(&Said::text("read a.txt").task(&task));
    assert_eq!(ids(&frames), (task.clone(), context));
    assert!(frames.iter().any(|frame| frame.said().contains("hello")), "{frames:#?}");
    let history = served.task(&task)["history"].as_array().unwrap().len();
    assert!(history >= 6, "{history}");
    served.stop(&scene);
}

#[test]
fn an_answer_may_bring_the_text_to_write_instead() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    for (key, edit) in [
        ("modified_details", json!({ "file_details": { "new_content": "edited\n" } })),
        ("file_details", json!({ "new_content": "edited\n" })),
    ] {
        let frames = served.stream(&Said::text("write hello to a.txt").dev());
        let mut decision = answer(asked(&frames), "proceed_once");
        decision[key] = edit;
        let frames = served.stream(&Said::data(&decision).task(&ids(&frames).0));
        assert_eq!(words(&frames), ANSWERED);
        assert_eq!(frames[1].data()["output"]["diff"]["new_content"], "edited\n", "the result shows the edit");
        assert_eq!(scene.file("a.txt").as_deref(), Some("edited\n"));
        std::fs::remove_file(scene.scratch.path("a.txt")).unwrap();
    }
    served.stop(&scene);
}

#[test]
fn a_refusal_skips_the_call_and_the_turn_goes_on() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let frames = served.stream(&Said::text("write hello to a.txt").dev());
    let frames = served.stream(&Said::data(&answer(asked(&frames), "cancel")).task(&ids(&frames).0));
    let expected = ["TOOL_CALL_UPDATE CANCELLED", "TEXT_CONTENT working", "STATE_CHANGE completed final"];
    assert_eq!(words(&frames), expected);
    assert_eq!(frames[0].data()["error"]["type"], "denied");
    assert_eq!(scene.file("a.txt"), None);
    served.stop(&scene);
}

#[test]
fn the_shipped_spelling_is_spoken_with_those_who_speak_it() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let settings = json!({ "kind": "agent-settings", "workspacePath": scene.scratch.workspace() });
    let frames = served.stream(&Said::text("write hello to a.txt").set("coderAgent", settings));
    let kinds = |frames: &[super::Frame]| -> Vec<String> {
        let kind = |frame: &super::Frame| frame.json["metadata"]["coderAgent"]["kind"].as_str().unwrap().to_owned();
        let mut kinds: Vec<String> = frames.iter().map(kind).collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds(&frames), ["state-change", "text-content", "tool-call-confirmation", "state-change"]);
    let call = frames[frames.len() - 2].data();
    assert_eq!(call["status"], "awaiting_approval");
    assert_eq!(call["confirmationDetails"]["type"], "edit");
    let reply = json!({ "callId": call["request"]["callId"], "outcome": "proceed_once", "newContent": "bye\n" });
    let (task, _) = ids(&frames);
    let frames = served.stream(&Said::data(&reply).task(&task));
    assert_eq!(frames[0].data()["status"], "executing");
    assert_eq!(frames[1].data()["status"], "success");
    let last = frames.last().unwrap();
    assert_eq!((last.state(), last.is_final()), ("input-required", true), "it never completes");
    assert_eq!(scene.file("a.txt").as_deref(), Some("bye\n"));
    assert_eq!(served.state(&task), "input-required");
    // A connection may say so too, and others are not touched by it.
    let frames = served.stream(&Said::text("hello").dev());
    assert_eq!(frames.last().unwrap().state(), "completed");
    served.stop(&scene);
}

#[test]
fn the_same_in_1_0() {
    let scene = Scene::bare();
    let mut served = scene.a2a(&[]);
    served.http = served.http.with("A2A-Version", "1.0");
    let mut stream = served.open("SendStreamingMessage", &Said::text("write hello to a.txt").dev().v1());
    let task = stream.next().json["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_SUBMITTED");
    let updates: Vec<Value> = stream.rest().into_iter().map(|frame| frame.json["statusUpdate"].clone()).collect();
    let states: Vec<&str> = updates.iter().map(|update| update["status"]["state"].as_str().unwrap()).collect();
    assert_eq!(states.last(), Some(&"TASK_STATE_INPUT_REQUIRED"));
    let call = updates.iter().find_map(|update| {
        let data = &update["status"]["message"]["parts"][0]["data"];
        data.get("confirmation_request").map(|_| data.clone())
    });
    let said = Said::data(&answer(&call.unwrap(), "proceed_once")).task(task["id"].as_str().unwrap());
    let frames = served.open("SendStreamingMessage", &said.v1()).rest();
    let last = &frames.last().unwrap().json["statusUpdate"];
    assert_eq!(last["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(last.get("final"), None);
    assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"));
    // And without a stream.
    let sent = served.result("SendMessage", &Said::text("hello").task(task["id"].as_str().unwrap()).v1());
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    served.stop(&scene);
}

#[test]
fn live_output_grows_and_is_replaced_by_the_result() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--approval-mode", "auto-all"]);
    let frames = served.stream(&Said::text("run: echo one; sleep 0.4; echo two; sleep 0.4; echo three").dev());
    let live: Vec<&str> = frames.iter().filter_map(|frame| frame.data()["live_content"].as_str()).collect();
    assert!(live.len() >= 2 && live[0] == "one\n", "{live:?}");
    assert!(live.windows(2).all(|pair| pair[1].len() > pair[0].len() && pair[1].starts_with(pair[0])), "{live:?}");
    let done = frames.iter().find(|frame| frame.data()["status"] == "SUCCEEDED").unwrap().data();
    assert!(done["output"]["text"].as_str().unwrap().starts_with("one\ntwo\nthree"), "{done}");
    assert_eq!(done.get("live_content"), None);
    // In the shipped spelling it is an artifact, replaced each time.
    let http = served.http.clone();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/stream",
        "params": Said::text("run: echo one; sleep 0.3; echo two; sleep 0.3").dev().0 });
    let frames = super::Frames::of(http.post("/?ext=coderAgent", &body).unwrap()).rest();
    let screens: Vec<&Value> =
        frames.iter().map(|frame| &frame.json).filter(|json| json["kind"] == "artifact-update").collect();
    assert!(screens.len() >= 2, "{frames:#?}");
    assert_eq!(screens[1]["artifact"]["parts"][0]["text"], "one\ntwo\n");
    assert_eq!(screens[1]["append"], false);
    served.stop(&scene);
}
