//! Answers that bring their own content or input: judged as what the call has become, before they count (R002-44).

use serde_json::{Value, json};

use crate::scene::{Live, Scene, of, the};

const ARGS: [&str; 9] = [
    "--agent",
    "builtin",
    "--model",
    "rehearsal",
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
];

impl Live {
    /// Answers the question with these fields beside the option.
    fn answer(&mut self, question: &Value, option: &str, fields: &Value) {
        let mut line = fields.clone();
        line["type"] = "decide".into();
        line["questionId"] = question["questionId"].clone();
        line["optionId"] = option.into();
        self.tell(&line);
    }

    /// The same, and it is refused for that reason.
    #[track_caller]
    fn is_refused(&mut self, question: &Value, fields: &Value, why: &str) {
        self.answer(question, "proceed_once", fields);
        let error = self.until_type("error");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("edit") && message.contains(why), "{error:#}");
    }
}

fn start(scene: &Scene, prompt: &str, options: &[&str]) -> (Live, Value) {
    let mut live = scene.start(&[&ARGS[..], options].concat());
    live.tell(&json!({ "type": "prompt", "text": prompt }));
    let question = live.until_type("permissionAsked");
    (live, question)
}

#[test]
fn an_edit_to_a_blocked_command_is_refused_and_the_question_stays_open() {
    let scene = Scene::bare();
    let (mut live, question) = start(&scene, "run: echo hi", &["--block-tool", "run_shell_command(touch:*)"]);
    live.is_refused(&question, &json!({ "newContent": "touch made" }), "touch");
    live.is_refused(&question, &json!({ "newInput": { "command": "touch made" } }), "touch");
    live.is_refused(&question, &json!({ "newInput": { "command": "env touch made" } }), "touch");
    live.is_refused(&question, &json!({ "newInput": { "comand": "echo bye" } }), "missing field");
    // The question is still open, and nothing is settled.
    live.answer(&question, "proceed_once", &json!({ "newContent": "echo bye" }));
    live.until_type("turnCompleted");
    let events = live.end().exits(0).events();
    let settled = the(&events, "permissionSettled");
    assert_eq!((&settled["edited"], &settled["newContent"]), (&json!(true), &json!("echo bye")), "{settled:#}");
    assert_eq!(settled["runs"]["details"]["command"], "echo bye", "the log has what runs");
    assert!(the(&events, "toolCompleted")["result"].as_str().unwrap().contains("bye"));
    assert!(!scene.scratch.path("made").exists());
    let shown = scene.run(&["sessions", "show", events[0]["sessionId"].as_str().unwrap()]).exits(0);
    assert!(shown.stdout.contains("echo bye"), "{shown:#?}");
}

#[test]
fn a_question_of_plan_mode_is_no_way_to_change_things() {
    let scene = Scene::bare();
    let (mut live, question) = start(&scene, "run: ls", &["--approval-mode", "plan"]);
    live.is_refused(&question, &json!({ "newContent": "touch made" }), "plan mode");
    live.answer(&question, "proceed_once", &json!({ "newContent": "ls -a" }));
    live.until_type("turnCompleted");
    let events = live.end().exits(0).events();
    assert_eq!(of(&events, "permissionSettled").len(), 1);
    assert_eq!(the(&events, "toolCompleted")["success"], true);
    assert!(!scene.scratch.path("made").exists());
}

#[test]
fn an_allow_is_judged_by_the_mode_of_the_moment() {
    let scene = Scene::bare();
    let (mut live, question) = start(&scene, "run: touch made", &[]);
    live.tell(&json!({ "type": "setMode", "mode": "plan" }));
    live.until_type("modeChanged");
    live.answer(&question, "proceed_once", &json!({}));
    let done = live.until_type("toolCompleted");
    assert_eq!(done["outcome"], "denied", "{done:#}");
    assert!(done["error"].as_str().unwrap().contains("plan mode"), "{done:#}");
    live.until_type("turnCompleted");
    live.end().exits(0);
    assert!(!scene.scratch.path("made").exists());
}

#[test]
fn a_file_that_must_not_be_read_is_not_put_behind_a_prompt() {
    let scene = Scene::bare();
    std::fs::write(scene.scratch.path("secret.txt"), "the secret\n").unwrap();
    std::fs::create_dir(scene.scratch.path("folder")).unwrap();
    std::fs::write(scene.scratch.path("folder/hidden.txt"), "").unwrap();
    let blocks = ["--block-tool", "read_file", "--block-tool", "list_directory"];
    let args = ["-p", "think about @secret.txt @folder", "--output-format", "stream-json"];
    let builtin = ["--agent", "builtin", "--model", "rehearsal"];
    let thought = |options: &[&str]| {
        let events = scene.run(&[&args[..], &builtin[..], options].concat()).exits(0).events();
        of(&events, "reasoning").iter().filter_map(|event| event["content"].as_str()).collect::<String>()
    };
    let open = thought(&[]);
    assert!(open.contains("the secret") && open.contains("hidden"), "{open}");
    let blocked = thought(&blocks);
    assert!(!blocked.contains("the secret") && !blocked.contains("hidden"), "{blocked}");
}
