//! What a client may wish for its session: a folder under those of the host, and nothing that gives it more rights.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{Said, URI};
use crate::scene::Scene;

#[test]
fn a_session_works_in_the_folder_it_was_given() {
    let scene = Scene::bare();
    let sub = scene.scratch.path("sub");
    fs::create_dir(&sub).unwrap();
    let served = scene.a2a(&["--approval-mode", "auto-all"]);
    let sub = sub.canonicalize().unwrap();
    let shapes = [
        (URI, json!({ "workspace_path": sub })),
        (URI, json!({ "workspacePath": sub })),
        ("coderAgent", json!({ "kind": "agent-settings", "workspacePath": sub })),
    ];
    for (key, settings) in shapes {
        for in_message in [true, false] {
            let mut said = Said::text("run: pwd");
            if in_message {
                said = said.set(key, settings.clone());
            } else {
                said.0["metadata"] = json!({ key: settings });
            }
            let done = served.send(&said);
            let told = done["history"].to_string();
            assert!(told.contains(&format!("{}\\n", sub.display())), "{key} {settings}: {told}");
        }
    }
    served.stop(&scene);
}

#[test]
fn a_folder_elsewhere_is_refused_with_the_reason() {
    let scene = Scene::bare();
    let inside = scene.scratch.workspace();
    fs::write(inside.join("file"), "").unwrap();
    symlink("/etc", inside.join("out")).unwrap();
    let served = scene.a2a(&[]);
    let path = |name: &str| json!(inside.join(name));
    for (folder, reason) in [
        (json!("sub"), "absolute"),
        (json!(""), "absolute"),
        (json!("/etc"), "outside"),
        (path("../.."), "outside"),
        (path("out"), "outside"),
        (path("none"), "no folder"),
        (path("file"), "not a folder"),
        (json!(5), "string"),
        (json!(["/"]), "string"),
    ] {
        let refused = served.refusal("message/send", &Said::text("hi").set(URI, json!({ "workspace_path": folder })).0);
        assert!(refused.0 == -32602 && refused.1.contains(reason), "{folder}: {refused:?}");
        assert!(refused.1.contains("workspace_path"), "{refused:?}");
    }
    let task = served.send(&Said::text("hi").dev());
    let elsewhere = Said::text("hi").set(URI, json!({ "workspace_path": "/etc" })).task(task["id"].as_str().unwrap());
    let refused = served.refusal("message/send", &elsewhere.0);
    assert!(refused.0 == -32602 && refused.1.contains(inside.canonicalize().unwrap().to_str().unwrap()), "{refused:?}");
    assert_eq!(served.result("ListTasks", &json!({}))["totalSize"], 1, "the others opened nothing");
    served.stop(&scene);
}

#[test]
fn wishes_for_more_rights_are_not_granted() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let touched = scene.scratch.path("touched");
    let server = json!({ "x": { "command": "/usr/bin/touch", "args": [touched] } });
    for (wish, told) in [
        (json!({ "allowed_tools": ["run_shell_command"] }), true),
        (json!({ "allowedTools": ["run_shell_command"] }), true),
        (json!({ "mcp_servers": server }), true),
        (json!({ "mcpServers": server }), true),
        (json!({ "environment": { "A": "b" } }), true),
        (json!({ "auto_execute": true }), false),
        (json!({ "isTrusted": true }), false),
    ] {
        let frames = served.stream(&Said::text("run: touch made").set(URI, wish.clone()));
        assert_eq!(frames.last().unwrap().state(), "input-required", "{wish}");
        let warned = frames.iter().any(|frame| frame.json["metadata"][super::OURS].get("warning").is_some());
        assert_eq!(warned, told, "{wish}: {frames:#?}");
    }
    for (wish, code) in [
        (json!({ "approval_mode": "autoAll" }), -32602),
        (json!({ "approvalMode": "auto-all" }), -32602),
        (json!({ "agent": "acp:/bin/sh" }), -32602),
        (json!({ "agent": "nobody" }), -32602),
        // What is not understood could have been meant to be stricter.
        (json!({ "approval_mode": ["plan"] }), -32602),
        (json!({ "approvalMode": true }), -32602),
        (json!({ "agent": 5 }), -32602),
        (json!({ "model": {} }), -32602),
        (json!({ "allowed_tools": "run_shell_command" }), -32602),
        (json!({ "allowed_tools": [5] }), -32602),
        (json!({ "mcp_servers": [] }), -32602),
        (json!({ "environment": "A=b" }), -32602),
    ] {
        assert_eq!(served.refusal("message/send", &Said::text("hi").set(URI, wish.clone()).0).0, code, "{wish}");
    }
    // Stricter than the host is fine.
    let done = served.send(&Said::text("run: touch made").set(URI, json!({ "approval_mode": "plan" })));
    assert_eq!(done["status"]["state"], "completed");
    assert!(scene.file("made").is_none() && !touched.exists());
    served.stop(&scene);
}

#[test]
fn a_host_may_trust_its_clients() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--trust-client-settings"]);
    let wish = json!({ "allowed_tools": ["run_shell_command"] });
    assert_eq!(served.send(&Said::text("run: touch made").set(URI, wish))["status"]["state"], "completed");
    assert!(scene.file("made").is_some());
    served.stop(&scene);
}

#[test]
fn what_was_done_in_other_folders_is_nobodys_business() {
    let scene = Scene::bare();
    let sub = scene.scratch.path("sub");
    fs::create_dir(&sub).unwrap();
    let served = scene.a2a(&[]);
    let done = [served.send(&Said::text("my secret").dev()), served.send(&Said::text("my secret"))];
    served.stop(&scene);
    let served = scene.a2a(&["--root", sub.to_str().unwrap()]);
    for task in &done {
        let (id, context) = (task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
        let known = json!({ "id": id });
        for (method, params, code) in [
            ("tasks/get", &known, -32001),
            ("tasks/cancel", &known, -32001),
            ("GetTask", &known, -32001),
            ("message/send", &Said::text("hi").task(id).0, -32001),
            ("message/send", &Said::text("hi").context(context).0, -32602),
            ("commands/get", &json!({ "context_id": context }), -32602),
        ] {
            let refused = served.refusal(method, params);
            assert_eq!(refused.0, code, "{method} {params}: {refused:?}");
            assert!(refused.1.contains("there is no"), "it says no more than of one that there is not: {refused:?}");
        }
        let http = served.http.clone().with("Last-Event-ID", "1");
        let missed = http.call("tasks/resubscribe", &known).unwrap().events().unwrap();
        assert_eq!(missed[0].json["error"]["code"], -32001, "{missed:?}");
    }
    let listed = served.result("ListTasks", &json!({ "historyLength": 10 }));
    assert_eq!(listed["tasks"], json!([]));
    served.stop(&scene);
    let served = scene.a2a(&[]);
    assert_eq!(served.result("ListTasks", &json!({}))["tasks"].as_array().unwrap().len(), 2, "there they are");
    served.stop(&scene);
}
