//! What is told, and how it stands on the screen: messages that stay one, whoever comes and goes meanwhile; what is found
//! though it is folded; who said what.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{ClientRef, Door};
use ratatui::style::Modifier;
use serde_json::{Value, json};

use super::Play;
use crate::effect::Effect;
use crate::msg::Msg;
use crate::preferences::Colours;
use crate::theme::Theme;

fn piece(text: &str) -> Value {
    json!({ "type": "textChunk", "content": text, "isPartial": true, "messageId": "m" })
}

fn thought(text: &str) -> Value {
    json!({ "type": "reasoning", "content": text, "isPartial": true })
}

fn joined() -> Value {
    json!({ "type": "clientJoined", "client": { "client": "phone", "door": "a2a", "clientId": "x" } })
}

/// What others do while a message comes.
fn meanwhile() -> [Value; 5] {
    let from = json!({ "client": "phone", "door": "a2a", "clientId": "x" });
    [
        joined(),
        json!({ "type": "promptQueued", "prompt": { "text": "and then", "promptId": "p" }, "from": from }),
        json!({ "type": "modeChanged", "mode": "plan", "by": from }),
        json!({ "type": "modelChanged", "model": "opus", "by": from }),
        json!({ "type": "clientLeft", "client": from }),
    ]
}

#[test]
fn a_message_stays_one_whoever_comes_meanwhile() {
    for event in meanwhile() {
        let mut play = Play::new(60, 20);
        play.tell(&piece("See:\n\n```sh\ncargo "));
        play.tell(&event);
        play.tell(&piece("test\n```\n"));
        let screen = play.screen();
        assert!(screen.contains("\nSee:\n\n  cargo test\n"), "{event}:\n{screen}");
        let alt = Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::ALT));
        assert_eq!(play.on(alt), [Effect::Copy("See:\n\n```sh\ncargo test\n```".to_owned())], "{event}");
    }
    let mut play = Play::new(60, 20);
    play.tell(&thought("first "));
    play.tell(&joined());
    play.tell(&thought("second"));
    let screen = play.screen();
    assert!(screen.contains("∴ first second\n· [A2A] phone joined"), "{screen}");
}

#[test]
fn a_request_to_the_model_is_no_news() {
    let mut play = Play::new(60, 20);
    for word in ["requesting", "compacting"] {
        play.tell(&json!({ "type": "system", "subtype": "status", "message": word, "data": { "status": word } }));
    }
    let screen = play.screen();
    assert!(screen.contains("· compacting") && !screen.contains("requesting"), "{screen}");
}

#[test]
fn words_of_a_protocol_are_no_news() {
    let mut play = Play::new(60, 20);
    for (subtype, message) in [("attachment", "date"), ("note", "auto_mode_exit"), ("title", "About the bug")] {
        play.tell(&json!({ "type": "system", "subtype": subtype, "message": message }));
    }
    play.tell(&json!({ "type": "system", "subtype": "note", "message": "read AGENTS_2.md" }));
    let screen = play.screen();
    assert_eq!(screen.matches('·').count(), 1 + screen.matches("app (main) ·").count(), "{screen}");
    assert!(screen.contains("· read AGENTS_2.md"), "{screen}");
}

#[test]
fn modes_that_are_turned_through_are_one_line() {
    let mut play = Play::new(60, 20);
    for mode in ["autoEdit", "plan", "ask"] {
        play.tell(&json!({ "type": "modeChanged", "mode": mode, "by": play.model.session.me }));
    }
    play.tell(&json!({ "type": "textChunk", "content": "well" }));
    play.tell(&json!({ "type": "modeChanged", "mode": "autoEdit", "by": play.model.session.me }));
    let screen = play.screen();
    assert_eq!(screen.matches("mode changed to").count(), 2, "{screen}");
    assert!(screen.contains("mode changed to ask\n") && screen.contains("mode changed to auto-edit\n"), "{screen}");
}

#[test]
fn a_conversation_that_goes_on_is_marked() {
    super::screens::check("state_resumed", 16, |play| {
        let start = json!({ "type": "sessionStarted", "agentType": "builtin" });
        play.tell(&start);
        play.tell(&json!({ "type": "userMessage", "content": "hello" }));
        play.tell(&json!({ "type": "sessionEnded", "reason": "completed" }));
        play.tell(&start);
        play.tell(&json!({ "type": "userMessage", "content": "and now?" }));
        play.tell(&json!({ "type": "system", "subtype": "forked", "message": "forked from session 7f3a" }));
        play.tell(&start);
    });
    let mut play = Play::new(60, 20);
    play.tell(&json!({ "type": "sessionStarted", "agentType": "builtin" }));
    assert!(!play.screen().contains("resumed"), "it begins:\n{}", play.screen());
}

#[test]
fn tools_are_named_with_their_targets() {
    super::screens::check("state_tool_lines", 40, |play| {
        play.tell(
            &json!({ "type": "sessionStarted", "agentType": "codex", "config": { "workingDirectory": "/work" } }),
        );
        let mut number = 0;
        let mut call = |kind: &str, name: &str, title: &str, arguments: Value, result: &str| {
            number += 1;
            let id = format!("t{number}");
            play.tell(&json!({ "type": "toolStarted", "toolId": id, "toolName": name, "toolKind": kind, "title": title, "arguments": arguments }));
            if kind == "edit" {
                for file in ["/work/src/main.rs", "/work/src/lib.rs"] {
                    let diff = format!("--- a{file}\n+++ b{file}\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n");
                    play.tell(&json!({ "type": "fileChanged", "filePath": file, "changeType": "modified", "diff": diff, "toolId": id }));
                }
            }
            play.tell(&json!({ "type": "toolCompleted", "toolId": id, "success": true, "outcome": "completed", "result": result }));
        };
        call(
            "shell",
            "Bash",
            "for",
            json!({ "command": "for file in *\ndo\n  cat $file\n  echo done\n  sleep 1\ndone" }),
            "",
        );
        call("read", "Read", "Read /work/src/main.rs", json!({ "file_path": "/work/src/main.rs" }), "a\nb\n");
        call("search", "Grep", "Grep fn main", json!({ "pattern": "fn main", "path": "/work/src" }), "");
        call("edit", "apply_patch", "Edit /work/src/main.rs and one more file", json!({}), "");
        call("mcp", "mcp__tiny__echo", "echo (tiny)", json!({}), "hi");
    });
}

#[test]
fn a_tool_or_a_prompt_ends_a_message() {
    for event in [
        json!({ "type": "toolStarted", "toolId": "t", "toolName": "ls", "toolKind": "shell", "arguments": {} }),
        json!({ "type": "userMessage", "content": "stop" }),
        json!({ "type": "retry", "attempt": 2 }),
    ] {
        let mut play = Play::new(60, 20);
        play.tell(&piece("one"));
        play.tell(&event);
        play.tell(&piece("two"));
        assert!(!play.screen().contains("onetwo"), "{event}:\n{}", play.screen());
    }
}

#[test]
fn lines_that_come_above_a_note_are_new_too() {
    let mut play = Play::new(60, 14);
    (0..30).for_each(|_| drop(play.tell(&piece("line\n\n"))));
    play.tell(&joined());
    play.press(KeyCode::PageUp);
    play.tell(&piece("one\n\ntwo\n\n"));
    assert!(play.screen().contains("4 new lines below"), "{}", play.screen());
}

#[test]
fn what_is_folded_is_found_and_shown() {
    let mut play = Play::new(60, 20);
    let output: String = (1..=100).map(|number| format!("number {number} of many\n")).collect();
    let tool = json!({ "type": "toolStarted", "toolId": "t", "toolName": "seq", "toolKind": "read", "arguments": {} });
    play.tell(&tool);
    play.tell(
        &json!({ "type": "toolCompleted", "toolId": "t", "success": true, "outcome": "completed", "result": output }),
    );
    play.tell(&thought("**About tea**\n\nhidden thought\n\ntwo\n\nthree\n\nfour"));
    for words in ["number 7 of", "number 100 of", "hidden thought"] {
        play.control('f');
        assert!(!play.screen().contains(words), "{words} is folded:\n{}", play.screen());
        play.write(words);
        assert!(play.screen().contains(words), "{words} is shown:\n{}", play.screen());
        play.press(KeyCode::Esc);
        play.control('o');
        play.control('o');
        play.on(Msg::Key(KeyEvent::new(KeyCode::End, KeyModifiers::CONTROL)));
    }
    play.control('f');
    play.write("number 9");
    for number in [98, 97, 96] {
        play.press(KeyCode::Up);
        assert!(play.screen().contains(&format!("number {number} of")), "{}", play.screen());
    }
}

#[test]
fn what_is_found_is_on_the_screen_wherever_it_stands() {
    for rows in [8, 14, 20] {
        let mut play = Play::new(60, rows);
        let lines: String = (1..=40).map(|number| format!("- item {number} of them\n")).collect();
        play.tell(&json!({ "type": "textChunk", "content": lines }));
        play.tell(&json!({ "type": "textChunk", "content": "the end of it" }));
        for words in (1..=40).map(|number| format!("item {number} of them")).chain(["the end of it".to_owned()]) {
            play.control('f');
            play.write(&words);
            let screen = play.screen();
            // The words stand in the last line too, where they are typed.
            let transcript = screen.rsplit_once("> ask for").map(|(transcript, _)| transcript);
            assert!(transcript.is_some_and(|above| above.contains(&words)), "{words}, {rows} rows:\n{screen}");
            play.press(KeyCode::Esc);
        }
    }
}

#[test]
fn words_are_found_across_signs_and_lines() {
    let mut play = Play::new(30, 12);
    play.tell(&json!({ "type": "textChunk", "content": "the **bold** word is here, and these words go on below" }));
    for words in ["the bold word", "these words go on"] {
        play.control('f');
        play.write(words);
        assert!(!play.screen().contains("not found"), "{words}:\n{}", play.screen());
        play.press(KeyCode::Esc);
    }
    play.control('f');
    play.write("these words went");
    assert!(play.screen().contains("not found"), "{}", play.screen());
}

#[test]
fn a_thought_begins_with_what_it_is_about() {
    let mut play = Play::new(60, 14);
    play.tell(&thought("**Thinking it "));
    play.tell(&thought("over**\n\nFirst *this*.\nThen `that`.\nThen more.\nThen the end."));
    let screen = play.screen();
    assert!(screen.starts_with("∴ Thinking it over\n  … 2 more lines (Ctrl+O)\n  Then that.\n"), "{screen}");
    let buffer = play.buffer();
    let (subject, rest) = (buffer[(2, 0)].modifier, buffer[(2, 2)].modifier);
    assert!(subject.contains(Modifier::BOLD | Modifier::DIM) && !rest.contains(Modifier::BOLD));
    assert!(rest.contains(Modifier::DIM | Modifier::ITALIC));
    play.control('o');
    assert!(play.screen().starts_with("∴ Thinking it over\n\n  First this.\n  Then that.\n"), "{}", play.screen());
}

#[test]
fn everybody_but_this_screen_is_named() {
    let mut play = Play::new(60, 24);
    play.model.theme = Theme::new(Colours::None);
    let prompt = |from: &Value| json!({ "type": "userMessage", "content": "fix it", "from": from });
    let terminal = |id: &str| json!({ "client": "terminal", "door": "terminal", "clientId": id });
    play.tell(&prompt(&terminal("me")));
    assert!(play.screen().contains("\n> fix it\n"), "{}", play.screen());
    play.tell(&prompt(&terminal("other")));
    assert!(play.screen().contains("\n> [terminal] terminal: fix it\n"), "{}", play.screen());
    play.tell(&json!({ "type": "permissionSettled", "questionId": "q", "selectedOptionId": "a", "kind": "allowOnce",
        "settledBy": terminal("other"), "at": "2026-01-31T12:00:00Z" }));
    assert!(play.screen().contains("answered by [terminal] terminal: Allow once"), "{}", play.screen());
    play.tell(&prompt(&json!({ "client": "", "door": "a2a" })));
    assert!(play.screen().contains("\n> [A2A]: fix it\n"), "{}", play.screen());
    // A connection that was lost and found.
    play.model.session.me =
        ClientRef { client_id: Some("me again".into()), ..ClientRef::new("terminal", Door::Terminal) };
    play.tell(&json!({ "type": "userMessage", "content": "mine", "from": play.model.session.me }));
    assert!(play.screen().contains("\n> mine\n"), "{}", play.screen());
}

#[test]
fn whoever_runs_the_session_is_not_named_to_themselves_when_it_goes_on() {
    let mut play = Play::new(60, 24);
    play.model.session.is_host = true;
    let prompt = |text: &str, from: &Value| json!({ "type": "userMessage", "content": text, "from": from });
    let terminal = |id: &str| json!({ "client": "terminal", "door": "terminal", "clientId": id });
    play.tell(&json!({ "type": "clientJoined", "client": terminal("yesterday") }));
    play.tell(&prompt("yesterday's", &terminal("yesterday")));
    play.tell(&json!({ "type": "clientJoined", "client": terminal("me") }));
    play.tell(&prompt("the first", &json!({ "client": "terminal", "door": "terminal" })));
    play.tell(&prompt("beside", &terminal("attached")));
    let screen = play.screen();
    for line in ["\n> yesterday's\n", "\n> the first\n", "\n> [terminal] terminal: beside\n"] {
        assert!(screen.contains(line), "{line}:\n{screen}");
    }
    assert!(!screen.contains("joined"), "{screen}");
}
