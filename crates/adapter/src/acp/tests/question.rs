//! Questions of the agent, and what becomes of them.

use super::*;

#[test]
fn questions_and_answers() {
    let mut story = String::new();
    for option in ["proceed_once", "proceed_always_server", "ok-too", "cancel", "cancel_always"] {
        let mut play = Play::open();
        play.prompt("go").story.clear();
        play.ask(7, &json!({ "toolCallId": "t1", "name": "mcp__tiny__echo", "kind": "other", "title": "echo", "rawInput": { "message": "hi" } }));
        if story.is_empty() {
            story += &play.story;
        }
        play.story.clear();
        play.decide("t1#7", option);
        play.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "on" } }));
        story += &format!("\n{option}\n{}", play.story);
    }
    insta::assert_snapshot!(story);
}

#[test]
fn what_a_question_is_about() {
    let mut story = String::new();
    for (at, call) in [
        json!({ "kind": "execute", "title": "ls -l", "rawInput": { "command": "ls -l", "description": "List" } }),
        json!({ "kind": "edit", "title": "Edit", "content": [{ "type": "diff", "path": "/w/a.txt", "oldText": "beta", "newText": "BETA" }] }),
        json!({ "kind": "edit", "title": "Write", "content": [{ "type": "diff", "path": "/w/new.txt", "newText": "x\n" }] }),
        json!({ "kind": "switch_mode", "title": "Ready?", "rawInput": { "plan": "1. do" } }),
        json!({ "kind": "fetch", "title": "Fetch", "content": [{ "type": "content", "content": { "type": "text", "text": "http://x/" } }] }),
        json!({ "kind": "switch_mode", "title": "Approve Plan", "rawInput": {}, "content": [] }),
    ]
    .into_iter()
    .enumerate()
    {
        let mut play = Play::open();
        play.prompt("go").story.clear();
        let mut call = call;
        call["toolCallId"] = format!("t{at}").into();
        play.ask(7, &call);
        story += &play.story;
    }
    insta::assert_snapshot!(story);
}

/// Whatever an agent shows beside a command must not hide it, nor how it runs.
#[test]
fn a_command_is_shown_with_all_it_is_given() {
    for (input, expected) in [
        (json!({ "command": "rm x", "sandbox": "off", "dry": false }), "command: rm x"),
        (json!({ "command": ["rm", "x"], "sandbox": "off" }), "command: [\"rm\",\"x\"]"),
    ] {
        let mut play = Play::open();
        let diff = json!([{ "type": "diff", "path": "/w/a.txt", "oldText": "beta", "newText": "BETA" }]);
        play.prompt("go").ask(
            7,
            &json!({ "toolCallId": "t", "kind": "execute", "title": "Update a.txt", "rawInput": input, "content": diff }),
        );
        let asked = play
            .story
            .lines()
            .find_map(|line| line.strip_prefix("! ").filter(|event| event.contains("permissionAsked")));
        let asked: Value = serde_json::from_str(asked.unwrap()).unwrap();
        let text = |key: &str| asked["details"][key].as_str().unwrap_or_default().to_owned();
        let shown = format!("command: {}\n{}", text("command"), text("description"));
        assert!(shown.contains(expected) && shown.contains("sandbox: \"off\"") && shown.contains("+BETA"), "{shown}");
        assert!(!shown.contains("dry"), "{shown}");
    }
}

#[test]
fn answers_that_do_not_fit_leave_the_question_open() {
    let mut play = Play::open();
    play.prompt("go");
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    play.story.clear();
    play.decide("t1#8", "proceed_once");
    play.decide("t1#7", "what");
    let mut edited = Decide::new(&"t1#7".into(), "proceed_once");
    edited.new_content = Some("rm".to_owned());
    play.command(Command::Decide(edited));
    play.decide("t1#7", "proceed_once");
    play.decide("t1#7", "cancel");
    insta::assert_snapshot!(play.story);
}

#[test]
fn a_question_that_is_withdrawn() {
    let mut play = Play::open();
    play.prompt("go");
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    play.story.clear();
    play.agent(&json!({ "method": "$/cancel_request", "params": { "requestId": 7 } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn cancel_answers_what_is_open() {
    let mut play = Play::open();
    play.command(Command::Cancel);
    play.prompt("go");
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    play.story.clear();
    play.command(Command::Cancel);
    play.agent(&json!({ "id": 3, "result": { "stopReason": "cancelled" } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn nobody_is_asked_after_a_cancel() {
    let mut play = Play::open();
    play.prompt("go");
    play.command(Command::Cancel);
    play.story.clear();
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    assert_eq!(play.story, "> {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}\n");
    play.agent(&json!({ "id": 3, "result": { "stopReason": "cancelled" } }));
    play.prompt("again");
    play.ask(8, &json!({ "toolCallId": "t2", "kind": "execute", "title": "ls" }));
    assert!(play.story.contains("permissionAsked"), "{}", play.story);
}
