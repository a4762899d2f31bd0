//! Edited answers over A2A: refused at the door they came through, with the question left open (R000-42).

use serde_json::{Value, json};

use super::{Frame, OURS, Said, answer, asked, ids};
use crate::scene::Scene;

const BLOCKED: [&str; 2] = ["--block-tool", "run_shell_command(touch:*)"];

/// Every shape in which an edited command comes.
fn shapes(command: &str) -> [(&'static str, Value); 5] {
    let details = json!({ "execute_details": { "command": command } });
    [
        ("modified_details", details),
        ("execute_details", json!({ "command": command })),
        ("modified_details", json!({ "new_content": command })),
        ("new_content", json!(command)),
        ("newContent", json!(command)),
    ]
}

#[test]
fn an_edit_that_a_rule_forbids_is_refused_and_the_task_still_waits() {
    let scene = Scene::bare();
    let served = scene.a2a(&BLOCKED);
    let frames = served.stream(&Said::text("run: echo hi").dev());
    let ((task, _), call) = (ids(&frames), asked(&frames));
    let v1 = served.http.clone().with("A2A-Version", "1.0");
    for (key, edit) in shapes("touch made") {
        let mut decision = answer(call, "proceed_once");
        decision[key] = edit;
        let said = Said::data(&decision).task(&task);
        for method in ["message/send", "message/stream"] {
            let (code, message) = served.refusal(method, &said.0);
            assert_eq!(code, -32602, "{message}");
            assert!(message.contains("touch") && message.contains("edit"), "{message}");
        }
        let answer = v1.answer("SendMessage", &said.v1()).unwrap();
        assert_eq!(answer["error"]["code"], -32602, "{answer:#}");
        let told = answer["error"].to_string();
        assert!(told.contains("editRefused") && told.contains("proceed_always"), "why, and what still counts: {told}");
        decision["taskId"] = task.as_str().into();
        assert_eq!(served.refusal("toolCall/confirm", &decision).0, -32602);
        assert_eq!(served.state(&task), "input-required");
    }
    // The text of a file never runs as a command.
    let mut decision = answer(call, "proceed_once");
    decision["file_details"] = json!({ "new_content": "echo bye" });
    let (code, message) = served.refusal("message/send", &Said::data(&decision).task(&task).0);
    assert!(code == -32602 && message.contains("execute_details"), "{message}");
    assert_eq!(served.state(&task), "input-required");
    // What may run runs, and every frame after the ruling shows it.
    let mut decision = answer(call, "proceed_once");
    decision["modified_details"] = json!({ "execute_details": { "command": "echo bye" } });
    let frames = served.stream(&Said::data(&decision).task(&task));
    let calls: Vec<&Value> =
        frames.iter().filter(|frame| frame.kind() == "TOOL_CALL_UPDATE").map(Frame::data).collect();
    assert_eq!(calls[0]["status"], "EXECUTING");
    assert_eq!(calls[calls.len() - 1]["status"], "SUCCEEDED");
    for call in calls {
        assert_eq!(call["input_parameters"]["command"], "echo bye", "{call:#}");
        assert!(call["description"].as_str().unwrap().contains("echo bye"), "{call:#}");
    }
    assert_eq!(scene.file("made"), None);
    served.stop(&scene);
}

#[test]
fn an_edited_text_shows_in_the_frame_that_runs() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let frames = served.stream(&Said::text("write hello to a.txt").dev());
    let mut decision = answer(asked(&frames), "proceed_once");
    decision["file_details"] = json!({ "file_path": "b.txt", "new_content": "bye\n" });
    let (task, _) = ids(&frames);
    let (code, message) = served.refusal("message/send", &Said::data(&decision).task(&task).0);
    assert!(code == -32602 && message.contains("b.txt"), "an edit never changes the path: {message}");
    let mut command = answer(asked(&frames), "proceed_once");
    command["execute_details"] = json!({ "command": "bye\n" });
    let (code, message) = served.refusal("message/send", &Said::data(&command).task(&task).0);
    assert!(code == -32602 && message.contains("file_details"), "{message}");
    decision["file_details"]["file_path"] =
        asked(&frames)["confirmation_request"]["file_edit_details"]["file_path"].clone();
    let frames = served.stream(&Said::data(&decision).task(&task));
    assert_eq!(frames[0].data()["status"], "EXECUTING");
    assert_eq!(frames[0].data()["input_parameters"]["content"], "bye\n", "{:#}", frames[0].data());
    // R000-18: the change is that of the edit.
    let changes = &frames[0].json["metadata"][OURS]["changes"];
    assert_eq!(changes.as_array().map(Vec::len), Some(1), "{:#}", frames[0].json);
    assert_eq!(
        (&changes[0]["new_content"], &changes[0]["file_name"]),
        (&json!("bye\n"), &json!("a.txt")),
        "{changes:#}"
    );
    let diff = changes[0]["formatted_diff"].as_str().unwrap();
    assert!(diff.contains("+bye") && !diff.contains("hello"), "{diff}");
    assert_eq!(scene.file("a.txt").as_deref(), Some("bye\n"));
    served.stop(&scene);
}
