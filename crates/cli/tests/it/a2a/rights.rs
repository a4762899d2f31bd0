//! A client may be as strict as it likes, and no looser than the host.

use serde_json::json;

use super::{Said, asked, words};
use crate::scene::Scene;

/// By whatever way: what it wishes for, what it says, the commands it runs, the shell it is handed.
#[test]
fn nothing_a_client_says_runs_more_unasked_than_the_host_lets() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let (code, why) =
        served.refusal("message/send", &Said::text("hi").set(super::URI, json!({ "approval_mode": "auto-all" })).0);
    assert_eq!(code, -32602, "{why}");
    let wish = json!({ "auto_execute": true, "autoExecute": true, "isTrusted": true, "agent": "builtin" });
    let task = served.send(&Said::text("/mode auto-all").set(super::URI, wish));
    let told = task.to_string();
    assert!(told.contains("auto-all lets more run unasked than ask"), "{task:#}");
    let context = task["contextId"].as_str().unwrap();
    let params = json!({ "command_path": ["mode"], "args": "auto_edit", "context_id": context });
    let execution = served.result("command/execute", &params);
    let command = served.task(execution["execution_id"].as_str().unwrap());
    assert!(command.to_string().contains("auto-edit lets more run unasked"), "{command:#}");
    for line in ["! id > pwned", "run: id > pwned", "write mine to pwned"] {
        let frames = served.stream(&Said::text(line).context(context).dev());
        let call = asked(&frames);
        assert_eq!(call["status"], "PENDING", "{line}: {:?}", words(&frames));
        let task = frames[0].json["id"].as_str().unwrap();
        served.result("tasks/cancel", &json!({ "id": task }));
    }
    assert_eq!(scene.file("pwned"), None);
    let stricter = served.send(&Said::text("/mode plan").context(context).dev());
    assert!(stricter.to_string().contains("The approval mode is now plan"), "{stricter:#}");
    let back = served.send(&Said::text("/mode ask").context(context).dev());
    assert!(back.to_string().contains("The approval mode is now ask"), "{back:#}");
    served.stop(&scene);
}

#[test]
fn a_host_that_lets_more_run_lets_its_clients_choose_as_much() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--approval-mode", "auto-edit"]);
    let plan = json!({ "approval_mode": "plan" });
    let task = served.send(&Said::text("/mode auto-edit").set(super::URI, plan));
    assert!(task.to_string().contains("The approval mode is now auto-edit"), "{task:#}");
    let context = task["contextId"].as_str().unwrap();
    let beyond = served.send(&Said::text("/mode auto-all").context(context).dev());
    assert!(beyond.to_string().contains("auto-all lets more run unasked than auto-edit"), "{beyond:#}");
    served.stop(&scene);
}
