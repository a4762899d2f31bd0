//! `--input-format stream-json`: a program drives the session by lines.

use serde_json::{Value, json};

use crate::scene::{Live, Scene, asker, of, the, types, whole};
use multitap_testkit::fake::Fake;

const ARGS: [&str; 5] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];

fn prompt(text: &str) -> Value {
    json!({"type": "prompt", "text": text})
}

fn start(fake: &Fake, more: &[&str]) -> (Scene, Live) {
    let scene = Scene::with(fake);
    let live = scene.start(&[&ARGS[..], more].concat());
    (scene, live)
}

#[test]
fn many_turns_in_one_process() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    live.until_type("sessionStarted");
    live.tell(&prompt("one"));
    live.until_type("turnCompleted");
    live.tell(&json!({"type": "message", "role": "user", "content": [{"type": "text", "text": "two"}]}));
    live.until_type("turnCompleted");
    live.tell(&json!({"type": "user", "message": {"role": "user", "content": "three"}}));
    let events = live.end().exits(0).events();
    whole(&events);
    let said: Vec<&Value> = of(&events, "userMessage").into_iter().map(|event| &event["content"]).collect();
    assert_eq!(said, ["one", "two", "three"]);
    assert_eq!(of(&events, "sessionStarted").len(), 1);
    assert_eq!(of(&events, "turnCompleted").len(), 3);
}

#[test]
fn all_lines_at_once_are_done_before_it_ends() {
    let fake = asker();
    let scene = Scene::with(&fake);
    let input = format!("{}\n{}\n\n{}\n", prompt("one"), prompt("two"), prompt("three"));
    let events = scene.run_with(&[&ARGS[..], &["first of all"]].concat(), &input).exits(0).events();
    whole(&events);
    let said: Vec<&Value> = of(&events, "userMessage").into_iter().map(|event| &event["content"]).collect();
    assert_eq!(said, ["first of all", "one", "two", "three"]);
    assert_eq!(of(&events, "turnCompleted").len(), 4);
}

#[test]
fn without_a_line_it_ends_well() {
    let fake = asker();
    let scene = Scene::with(&fake);
    let events = scene.run_with(&ARGS, "").exits(0).events();
    whole(&events);
}

#[test]
fn a_question_is_answered_by_a_line() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    live.tell(&prompt("ask"));
    let question = live.until_type("permissionAsked");
    assert_eq!(question["details"]["command"], "touch x");
    assert!(question["toolId"].is_string());
    let id = &question["questionId"];
    live.tell(&json!({"type": "decide", "questionId": id, "optionId": "proceed_once"}));
    let settled = live.until_type("permissionSettled");
    assert_eq!(settled["settledBy"]["door"], "headless");
    assert_eq!(settled["selectedOptionId"], "proceed_once");
    let done = live.until_type("toolCompleted");
    assert_eq!(done["success"], true);
    live.until_type("turnCompleted");
    live.tell(&json!({"type": "decide", "questionId": id, "optionId": "cancel"}));
    let late = live.until_type("error");
    assert!(late["message"].as_str().unwrap().contains("was settled by stdin"), "{late}");
    live.end().exits(0);
}

#[test]
fn a_denial_carries_its_words_and_an_edit_its_content() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    live.tell(&prompt("ask"));
    let question = live.until_type("permissionAsked");
    live.tell(
        &json!({"type": "decide", "questionId": question["questionId"], "optionId": "cancel", "feedback": "use git"}),
    );
    live.until_type("turnCompleted");
    live.tell(&prompt("ask again"));
    let question = live.until_type("permissionAsked");
    live.tell(&json!({"type": "decide", "questionId": question["questionId"], "optionId": "proceed_once", "newContent": "touch y"}));
    let settled = live.until_type("permissionSettled");
    assert_eq!(settled["edited"], true);
    live.until_type("turnCompleted");
    live.end().exits(0);
    let heard = fake.heard().unwrap().join("\n");
    assert!(heard.contains("use git") && heard.contains("touch y"), "{heard}");
}

#[test]
fn answers_that_do_not_count_are_refused_each_for_its_reason() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    live.tell(&prompt("ask"));
    let question = live.until_type("permissionAsked");
    let id = &question["questionId"];
    live.tell(&json!({"type": "decide", "questionId": id, "optionId": "yolo"}));
    let error = live.until_type("error");
    assert_eq!(error["kind"], "protocolError");
    assert_eq!(error["severity"], "warning");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("does not offer yolo") && message.contains("proceed_once"), "{message}");
    assert!(error["nativeError"].as_str().unwrap().contains("yolo"));
    live.tell(&json!({"type": "decide", "questionId": "nobody-asked", "optionId": "cancel"}));
    let error = live.until_type("error");
    assert!(error["message"].as_str().unwrap().contains("no question nobody-asked"), "{error}");
    live.tell(&json!({"type": "cancel"}));
    live.until_type("permissionWithdrawn");
    live.until_type("turnCompleted");
    live.tell(&json!({"type": "decide", "questionId": id, "optionId": "proceed_once"}));
    let error = live.until_type("error");
    assert!(error["message"].as_str().unwrap().contains("was withdrawn"), "{error}");
    live.tell(&prompt("and on"));
    let events = live.end().exits(0).events();
    whole(&events);
    assert_eq!(of(&events, "permissionSettled").len(), 0);
}

#[test]
fn bad_lines_are_quoted_and_the_session_goes_on() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    for (line, kind) in [
        ("hello", "jsonParseError"),
        (r#"{"type":"frobnicate"}"#, "protocolError"),
        (r#"{"type":"prompt"}"#, "protocolError"),
        (r#"{"type":"cancel"}"#, "protocolError"),
        (r#"{"type":"withdraw","promptId":"none"}"#, "protocolError"),
        ("[]", "protocolError"),
    ] {
        live.send(&format!("{line}\n"));
        let error = live.until_type("error");
        assert_eq!((&error["kind"], &error["nativeError"]), (&json!(kind), &json!(line)));
    }
    live.tell(&prompt("still there?"));
    live.until_type("turnCompleted");
    live.end().exits(0);
}

#[test]
fn cancel_ends_the_turn_and_not_the_session() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    live.tell(&prompt("slow"));
    live.until_type("textChunk");
    live.tell(&json!({"type": "cancel"}));
    assert_eq!(live.until_type("turnCompleted")["status"], "cancelled");
    live.tell(&prompt("quick"));
    assert_eq!(live.until_type("turnCompleted")["status"], "completed");
    live.end().exits(0);
}

#[test]
fn prompts_wait_in_line_and_can_be_withdrawn() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    live.tell(&prompt("slow"));
    live.until_type("textChunk");
    live.tell(&prompt("second"));
    live.until_type("promptQueued");
    live.tell(&prompt("third"));
    let third = live.until_type("promptQueued");
    live.tell(&json!({"type": "withdraw", "promptId": third["prompt"]["promptId"]}));
    live.until_type("promptWithdrawn");
    live.tell(&json!({"type": "cancel"}));
    let second = live.until_type("userMessage");
    assert_eq!(second["content"], "second");
    let events = live.end().exits(0).events();
    whole(&events);
    assert!(!fake.heard().unwrap().join("\n").contains("third"));
}

#[test]
fn a_prompt_may_interrupt() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &["--when-busy", "interrupt"]);
    live.tell(&prompt("slow"));
    live.until_type("textChunk");
    live.tell(&prompt("now"));
    assert_eq!(live.until_type("turnCompleted")["status"], "cancelled");
    assert_eq!(live.until_type("turnCompleted")["status"], "completed");
    live.end().exits(0);
}

#[test]
fn mode_model_thinking_and_questions_about_itself_reach_the_agent() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &[]);
    live.until_type("sessionStarted");
    live.tell(&json!({"type": "setMode", "mode": "plan"}));
    live.tell(&json!({"type": "setModel", "model": "opus"}));
    live.tell(&json!({"type": "setThinking", "tokens": 99}));
    live.tell(&json!({"type": "query", "what": "models"}));
    live.until(|event| event["type"] == "capabilities" && event["models"].is_array() && event["steering"].is_null());
    live.tell(&json!({"type": "setMode", "mode": "reckless"}));
    let error = live.until_type("error");
    assert!(error["message"].as_str().unwrap().contains("reckless"), "{error}");
    live.end().exits(0);
    let heard = fake.heard().unwrap().join("\n");
    for wanted in ["set_permission_mode", "plan", "set_model", "opus", "99"] {
        assert!(heard.contains(wanted), "no {wanted} in {heard}");
    }
}

#[test]
fn a_question_left_alone_is_denied_in_time() {
    let fake = asker();
    let (_scene, mut live) = start(&fake, &["--question-timeout", "0.3"]);
    live.tell(&prompt("ask"));
    live.until_type("permissionAsked");
    let settled = live.until_type("permissionSettled");
    assert_eq!(settled["settledBy"]["door"], "host");
    assert!(settled["feedback"].as_str().unwrap().contains("0.3 s"), "{settled}");
    live.until_type("turnCompleted");
    live.end().exits(4);
}

#[test]
fn the_end_of_input_leaves_no_question_open() {
    let fake = asker();
    let (scene, mut live) = start(&fake, &[]);
    live.tell(&prompt("ask"));
    live.until_type("permissionAsked");
    let run = live.end().exits(4);
    let events = run.events();
    whole(&events);
    assert_eq!(the(&events, "permissionSettled")["settledBy"]["door"], "host");
    scene.nothing_left();

    let input = format!("{}\n", prompt("ask"));
    let events = scene.run_with(&ARGS, &input).exits(4).events();
    assert!(types(&events).contains(&"permissionSettled"));
}

#[test]
fn text_may_come_out_where_lines_go_in() {
    let fake = asker();
    let scene = Scene::with(&fake);
    let input = format!("{}\n{}\n", prompt("one"), prompt("two"));
    let run = scene.run_with(&["-p", "--input-format", "stream-json"], &input).exits(0);
    assert_eq!(run.stdout, "answer\nanswer\n");
}
