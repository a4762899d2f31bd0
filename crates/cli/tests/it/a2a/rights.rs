//! A client may be as strict as it likes, and no looser than the host.

use multitap_testkit::http::HttpClient;
use serde_json::{Value, json};

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
    assert!(told.contains("auto-all runs more without asking than ask"), "{task:#}");
    let context = task["contextId"].as_str().unwrap();
    let params = json!({ "command_path": ["mode"], "args": "auto_edit", "context_id": context });
    let execution = served.result("command/execute", &params);
    let command = served.task(execution["execution_id"].as_str().unwrap());
    assert!(command.to_string().contains("auto-edit runs more without asking"), "{command:#}");
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
    assert!(beyond.to_string().contains("auto-all runs more without asking than auto-edit"), "{beyond:#}");
    served.stop(&scene);
}

/// Three clients with a name and a role each; the file holds their tokens.
fn tokens(scene: &Scene) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let file = scene.scratch.path("tokens");
    std::fs::write(
        &file,
        "ann-secret controller ann\nbob-secret controller bob\nobs-secret observer\nown-secret owner\n",
    )
    .unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file.display().to_string()
}

impl super::Served {
    /// The same host, asked with that token.
    fn with(&self, token: &str) -> HttpClient {
        self.http.clone().with("Authorization", &format!("Bearer {token}"))
    }
}

#[track_caller]
fn result(http: &HttpClient, method: &str, params: &Value) -> Value {
    let answer = http.answer(method, params).unwrap();
    answer.get("result").unwrap_or_else(|| panic!("{method}: {answer:#}")).clone()
}

/// R003-16: what is refused was never a task.
#[test]
fn a_refused_message_leaves_no_task() {
    let scene = Scene::bare();
    let file = tokens(&scene);
    let served = scene.a2a(&["--token-file", &file]);
    let (ann, observer) = (served.with("ann-secret"), served.with("obs-secret"));
    let task = result(&ann, "message/send", &Said::text("hello").0);
    let context = task["contextId"].as_str().unwrap();
    let listed = || result(&ann, "ListTasks", &json!({ "contextId": context }));
    let before = listed();
    assert_eq!(before["totalSize"], 1, "{before:#}");
    for said in [Said::text("hi").context(context), Said::text("hi").context(context).dev()] {
        for method in ["message/send", "message/stream"] {
            let refused = observer.answer(method, &said.0).unwrap();
            assert_eq!(refused["error"]["code"], -32012, "{refused:#}");
        }
    }
    let command = json!({ "command_path": ["tools"], "context_id": context });
    let refused = observer.answer("command/execute", &command).unwrap();
    assert!(refused.to_string().contains("observer"), "{refused:#}");
    assert_eq!(listed(), before);
    served.stop(&scene);
}

/// A message that joins the running turn, or may not, does nothing to its task.
#[test]
fn a_steered_task_stays_at_work() {
    let scene = Scene::bare();
    let file = tokens(&scene);
    let served = scene.a2a(&["--token-file", &file]);
    let (ann, observer) = (served.with("ann-secret"), served.with("obs-secret"));
    let mut stream = super::Frames::of(ann.call("message/stream", &Said::text("slow 60").0).unwrap());
    let begun = stream.until(|frame| frame.kind() == "TEXT_CONTENT");
    let (task, context) = super::ids(&begun);
    let listed = || {
        let tasks = result(&ann, "ListTasks", &json!({ "contextId": context }));
        let states = tasks["tasks"].as_array().unwrap().iter();
        states.map(|task| (task["id"].clone(), task["status"]["state"].clone())).collect::<Vec<_>>()
    };
    let working = vec![(json!(task), json!("TASK_STATE_WORKING"))];
    assert_eq!(listed(), working);
    let steer = Said::text("and more").context(&context).set(super::OURS, json!({ "whenBusy": "steer" })).at_once();
    let refused = observer.answer("message/send", &steer.0).unwrap();
    assert_eq!(refused["error"]["code"], -32012, "{refused:#}");
    assert_eq!(listed(), working, "refused");
    let steered = result(&ann, "message/send", &steer.0);
    assert_eq!((&steered["id"], &steered["status"]["state"]), (&json!(task), &json!("working")), "{steered:#}");
    assert_eq!(listed(), working, "joined");
    result(&ann, "tasks/cancel", &json!({ "id": task }));
    drop(stream);
    served.stop(&scene);
}

/// Whoever is no owner saves no rule of the host's user.
#[test]
fn options_of_the_owner_are_marked_and_refused_to_others() {
    let scene = Scene::bare();
    let file = tokens(&scene);
    let served = scene.a2a(&["--token-file", &file]);
    let ann = served.with("ann-secret");
    let stream = super::Frames::of(ann.call("message/stream", &Said::text("run: touch made.txt").dev().0).unwrap());
    let frames = stream.rest();
    let call = asked(&frames);
    let options = call["confirmation_request"]["options"].as_array().unwrap();
    let marked: Vec<&str> = options
        .iter()
        .filter(|option| option["description"].as_str().is_some_and(|text| text.contains("owner")))
        .filter_map(|option| option["id"].as_str())
        .collect();
    assert_eq!(marked, ["proceed_always_and_save"], "{call:#}");
    let (task, _) = super::ids(&frames);
    let answer = |option: &str| Said::data(&super::answer(call, option)).task(&task).0;
    let refused = ann.answer("message/send", &answer("proceed_always_and_save")).unwrap();
    let error = &refused["error"];
    let open = json!(["proceed_once", "proceed_always", "cancel"]);
    assert_eq!((error["code"].as_i64(), &error["data"]["offered"]), (Some(-32012), &open));
    assert_eq!(result(&ann, "tasks/get", &json!({ "id": task }))["status"]["state"], "input-required");
    result(&served.with("own-secret"), "message/send", &answer("proceed_always_and_save"));
    assert_eq!(scene.file("made.txt").as_deref(), Some(""));
    served.stop(&scene);
}

/// R002: chats that were saved by name belong to who saved them, in the folder where that was.
#[test]
fn a_named_chat_is_for_who_saved_it_and_for_its_folder() {
    let scene = Scene::bare();
    let file = tokens(&scene);
    let folders = ["one", "two"].map(|name| {
        let folder = scene.scratch.path(name);
        std::fs::create_dir(&folder).unwrap();
        folder.display().to_string()
    });
    let served = scene.a2a(&["--token-file", &file, "--root", &folders[0], "--root", &folders[1]]);
    let says = |token: &str, folder: &str, text: &str| {
        let said = Said::text(text).set(super::URI, json!({ "workspace_path": folder }));
        result(&served.with(token), "message/send", &said.0).to_string()
    };
    let (one, two) = (folders[0].as_str(), folders[1].as_str());
    assert!(says("ann-secret", one, "/chat save mine").contains("Kept as mine"));
    assert!(says("ann-secret", one, "/chat list").contains("  mine"));
    for (token, folder) in [("bob-secret", one), ("ann-secret", two), ("own-secret", one)] {
        let listed = says(token, folder, "/chat list");
        assert!(listed.contains("There are no saved conversations"), "{token} {folder}: {listed}");
        let resumed = says(token, folder, "/chat resume mine");
        assert!(resumed.contains("there is no conversation 'mine'"), "{token} {folder}: {resumed}");
    }
    // A name of their own hides nobody's.
    assert!(says("bob-secret", one, "/chat save mine").contains("Kept as mine"));
    assert!(says("own-secret", one, "/chat delete mine").contains("there is no conversation 'mine'"));
    assert!(says("ann-secret", one, "/chat resume mine").contains("The conversation is mine now"));
    served.stop(&scene);
}
