//! Edited answers, and answers to questions that rules have overtaken: judged as what runs, when it runs (R002-44).

use multitap_event::{ApprovalMode, Command, Decide, Details, EventKind, Question, ToolOutcome, option};
use serde_json::json;

use crate::scene::Scene;

const BLOCK: [&str; 2] = ["run_shell_command(touch:*)", "web_fetch(blocked.example)"];

fn content(question: &Question, text: &str) -> Decide {
    Decide { new_content: Some(text.to_owned()), ..Decide::new(&question.question_id, option::PROCEED_ONCE) }
}

fn input(question: &Question, input: &serde_json::Value) -> Decide {
    Decide { new_input: input.as_object().cloned(), ..Decide::new(&question.question_id, option::PROCEED_ONCE) }
}

#[tokio::test]
async fn an_edited_command_is_judged_as_what_it_has_become() {
    let mut scene = Scene::blocking(&BLOCK, ApprovalMode::Ask, []).await;
    let question = scene.asked("run: echo hi").await;
    for (decide, why) in [
        (content(&question, "touch made"), "touch"),
        (content(&question, "echo hi; touch made"), "touch"),
        (input(&question, &json!({ "command": "touch made" })), "touch"),
        (input(&question, &json!({ "command": 5 })), "command"),
        (input(&question, &json!({ "comand": "echo" })), "command"),
        (input(&question, &json!({ "command": "ls", "directory": "/" })), "/"),
    ] {
        let refused = scene.review(&question, &decide).await.unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    for decide in [content(&question, "echo bye"), input(&question, &json!({ "command": "echo bye" }))] {
        let runs = scene.review(&question, &decide).await.unwrap();
        assert!(matches!(&runs.details, Details::Command { command, .. } if command == "echo bye"));
        assert_eq!(runs.arguments["command"], "echo bye");
    }
    let done = scene.answer(content(&question, "echo bye")).await;
    assert!(done.result.unwrap().as_str().unwrap().contains("bye"));
    assert!(!scene.path("made").exists());
    scene.close().await;
}

#[tokio::test]
async fn an_edit_that_nobody_reviewed_is_denied_when_it_would_run() {
    let mut scene = Scene::blocking(&BLOCK, ApprovalMode::Ask, []).await;
    let question = scene.asked("run: echo hi").await;
    let done = scene.answer(content(&question, "touch made")).await;
    assert_eq!(done.outcome, ToolOutcome::Denied, "{done:?}");
    let question = scene.asked("run: echo hi").await;
    let done = scene.answer(input(&question, &json!({ "command": "touch made" }))).await;
    assert_eq!(done.outcome, ToolOutcome::Denied, "{done:?}");
    let question = scene.asked("fetch http://allowed.example/").await;
    let other = json!({ "prompt": "http://blocked.example/" });
    let refused = scene.review(&question, &input(&question, &other)).await.unwrap_err();
    assert!(refused.contains("blocked"), "{refused}");
    assert_eq!(scene.answer(input(&question, &other)).await.outcome, ToolOutcome::Denied);
    assert!(!scene.path("made").exists());
    scene.close().await;
}

async fn set_mode(scene: &mut Scene, mode: &str) {
    scene.send(Command::SetMode { mode: mode.to_owned() }).await;
    scene.until("another mode", |kind| matches!(kind, EventKind::ModeChanged { .. }).then_some(())).await;
}

#[tokio::test]
async fn an_allow_counts_by_the_mode_of_the_moment() {
    let mut scene = Scene::start([]).await;
    for option in [option::PROCEED_ONCE, option::PROCEED_ALWAYS] {
        let question = scene.asked("run: touch made").await;
        set_mode(&mut scene, "plan").await;
        let refused = scene.review(&question, &content(&question, "touch other")).await.unwrap_err();
        assert!(refused.contains("plan mode"), "{refused}");
        let done = scene.answer(Decide::new(&question.question_id, option)).await;
        assert_eq!(done.outcome, ToolOutcome::Denied, "{done:?}");
        set_mode(&mut scene, "ask").await;
    }
    // No rule was made of an answer that allowed nothing.
    let question = scene.asked("run: touch made").await;
    scene.answer(Decide::new(&question.question_id, option::CANCEL)).await;
    assert!(!scene.path("made").exists() && !scene.path("other").exists());
    scene.close().await;
}

#[tokio::test]
async fn an_edited_text_goes_to_the_file_that_was_asked_about() {
    let mut scene = Scene::start([]).await;
    let question = scene.asked("write hello to a.txt").await;
    let runs = scene.review(&question, &content(&question, "bye\n")).await.unwrap();
    let Details::FileEdit { file_path, diff: Some(diff), before: None, after: None } = &runs.details else {
        panic!("{runs:?}")
    };
    assert!(file_path.ends_with("a.txt") && diff.contains("+bye"), "{diff}");
    assert_eq!(json!(runs.arguments), json!({ "file_path": "a.txt", "content": "bye\n" }));
    let done = scene.answer(content(&question, "bye\n")).await;
    assert_eq!(done.outcome, ToolOutcome::Completed);
    assert_eq!(std::fs::read_to_string(scene.path("a.txt")).unwrap(), "bye\n");
    scene.close().await;
}
