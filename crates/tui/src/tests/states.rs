//! Every state that the screen can be in, at three widths: one row of the table each.

use crossterm::event::KeyCode;
use serde_json::{Value, json};

use super::Play;
use super::screens::{asked, check, said};
use crate::effect::Effect;
use crate::history::History;
use crate::host::{ClipboardContent, JoinAddress, ResumableSession};
use crate::msg::Msg;

/// A name, the rows of the screen, and what leads there.
type State = (&'static str, u16, fn(&mut Play));

const STATES: &[State] = &[
    ("composer_lines", 12, |play| {
        play.write("first line");
        play.control('j');
        play.write("a second one that is far longer than a narrow screen is wide, 日本語 and all");
    }),
    ("composer_pasted", 10, |play| {
        play.write("why does ");
        play.on(Msg::Paste("line\n".repeat(30)));
        play.write(" fail?");
    }),
    ("composer_picture", 10, |play| {
        play.write("what is on ");
        let image = multitap_event::Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
        play.on(Msg::Clipped(Ok(ClipboardContent::Picture(image))));
    }),
    ("composer_busy", 10, |play| drop(play.tell(&json!({ "type": "turnStarted", "turnId": "t" })))),
    ("complete_command", 16, |play| {
        started(play);
        play.tell(&json!({ "type": "capabilities", "commands": [
            { "name": "review", "description": "look at the changes of this branch, and say what is wrong with them", "arguments": [{ "name": "BRANCH" }] },
        ] }));
        play.write("/");
        play.press(KeyCode::Down);
    }),
    ("complete_argument", 14, |play| {
        started(play);
        play.write("/mode a");
    }),
    ("complete_file", 14, |play| {
        play.write("see @mai");
        let wanted = crate::complete::wanted("see @mai", 8).unwrap();
        let paths = ["src/main.rs", "docs/maintaining the release branches of this and other projects.md"];
        play.on(Msg::Found { wanted, paths: paths.map(str::to_owned).to_vec() });
    }),
    ("history_search", 12, |play| {
        play.model.prompt.history = History::new(vec!["fix the tests".to_owned(), "explain main.rs".to_owned()]);
        play.control('r');
        play.write("fix");
    }),
    ("history_not_found", 12, |play| {
        play.model.prompt.history = History::new(vec!["fix the tests".to_owned()]);
        play.control('r');
        play.write("nothing");
    }),
    ("search_begun", 12, |play| {
        play.tell(&said("something to look for"));
        play.control('f');
    }),
    ("search_not_found", 12, |play| {
        play.tell(&said("something to look for"));
        play.control('f');
        play.write("else");
    }),
    ("queue", 16, |play| {
        play.tell(&json!({ "type": "turnStarted", "turnId": "t" }));
        for (id, text, who) in [
            ("1", "first", "me"),
            ("2", "then\nmany lines", "x"),
            ("3", "a third that is longer than a narrow screen", "me"),
            ("4", "last", "me"),
        ] {
            let from = json!({ "client": if who == "me" { "terminal" } else { "phone" }, "door": if who == "me" { "terminal" } else { "a2a" }, "clientId": who });
            play.tell(&json!({ "type": "promptQueued", "prompt": { "text": text, "promptId": id }, "from": from }));
        }
    }),
    ("modes", 16, |play| {
        started(play);
        command(play, "/mode");
    }),
    ("models", 16, |play| {
        started(play);
        command(play, "/model");
        play.tell(&json!({ "type": "capabilities", "models": [
            { "id": "opus", "name": "Opus", "description": "for hard things, and for those that take a while" }, { "id": "sonnet" },
        ] }));
    }),
    ("sessions", 16, |play| {
        let one = |id: &str, title: &str, about: &str| ResumableSession {
            id: id.into(),
            title: title.into(),
            about: about.into(),
        };
        play.on(Msg::Sessions(vec![
            one("1", "fix the shop", "claude · 2 minutes ago"),
            one("2", "a title that is so long that a narrow screen has no room for it", "builtin · 3 days ago"),
        ]));
    }),
    ("sessions_narrowed", 16, |play| {
        let one =
            |id: &str, title: &str| ResumableSession { id: id.into(), title: title.into(), about: "codex".into() };
        play.on(Msg::Sessions(vec![one("1", "fix the shop"), one("2", "explain")]));
        play.write("shp");
    }),
    ("clients", 16, |play| {
        joined(play);
        command(play, "/clients");
    }),
    ("client_kicked", 16, |play| {
        joined(play);
        command(play, "/clients");
        play.write("phone");
        play.press(KeyCode::Enter);
    }),
    ("leaving", 16, |play| {
        joined(play);
        play.model.session.is_host = true;
        play.control('d');
    }),
    ("leaving_twice", 10, |play| drop(play.control('c'))),
    ("agents", 16, |play| {
        let lines = ["✓ claude   2.1.325", "✗ codex    not found: npm install -g @openai/codex"];
        play.on(Msg::Agents(lines.map(str::to_owned).to_vec()));
    }),
    ("share", 30, |play| {
        let note = "Programs on this machine can join, with the token.".to_owned();
        let address = JoinAddress { url: "http://127.0.0.1:4100".to_owned(), token: Some("secret".to_owned()), note };
        play.on(Msg::Shared(Some(address)));
    }),
    ("share_ended", 10, |play| drop(play.on(Msg::Shared(None)))),
    ("stats", 24, |play| {
        started(play);
        play.tell(&json!({ "type": "turnCompleted", "status": "completed", "durationMs": 8_400, "costUsd": 0.42, "usage": { "inputTokens": 12_000, "outputTokens": 345, "totalTokens": 12_345 } }));
        command(play, "/stats");
    }),
    ("commands", 40, |play| {
        started(play);
        command(play, "/help");
    }),
    ("connection_lost", 10, |play| {
        play.tell(&said("so far"));
        play.on(Msg::Refused("connection lost, trying again (connection reset by peer)".to_owned()));
    }),
    ("session_gone", 10, |play| {
        play.tell(&said("so far"));
        play.on(Msg::Over("the session is over".to_owned()));
    }),
    ("events_lost", 10, |play| drop(play.on(Msg::Gap { after: 10, next: 20 }))),
    ("asked_command", 18, |play| {
        let mut question = asked("q", "cargo test --workspace --all-features -- --nocapture --test-threads=1");
        question["details"]["description"] = "run all tests".into();
        question["reason"] = "The sandbox does not allow it.".into();
        question["edits"] = json!(["newContent"]);
        play.tell(&question);
    }),
    ("asked_edit", 18, |play| {
        let diff = "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1,3 +1,3 @@\n fn main() {\n-    println!(\"hello\");\n+    println!(\"hello, everybody who reads this\");\n }\n";
        ask(play, &json!({ "type": "fileEdit", "filePath": "src/main.rs", "diff": diff }));
    }),
    ("asked_new_file", 18, |play| {
        ask(play, &json!({ "type": "fileEdit", "filePath": "src/new.rs", "after": "fn new() {}\n\nfn other() {}\n" }));
    }),
    ("asked_mcp", 18, |play| {
        ask(
            play,
            &json!({ "type": "mcp", "server": "tickets", "tool": "create", "arguments": { "title": "It is broken", "labels": ["bug", "now"] } }),
        );
    }),
    ("asked_plan", 18, |play| {
        ask(
            play,
            &json!({ "type": "plan", "plan": "## Plan\n\n1. Read the code\n2. **Change** it\n   - carefully\n" }),
        );
    }),
    ("asked_text", 18, |play| {
        ask(play, &json!({ "type": "text", "text": "Fetch https://example.org/a/rather/long/path?with=a&query=too" }))
    }),
    ("asked_with_words", 18, |play| {
        play.tell(&asked("q", "rm -rf build"));
        play.press(KeyCode::Down);
        play.press(KeyCode::Down);
        play.press(KeyCode::Tab);
        play.write("use cargo clean");
    }),
    ("output_of_programs", 26, |play| {
        tool(
            play,
            "\u{1b}[32mok\u{1b}[0m one\ttwo\r\n10%\r50%\r100%\nname\tsize\nmain.rs\t12\n\u{1b}]0;title\u{7}日本語の出力が長いとき、狭い画面では折り返される。\n",
        );
        tool(play, &"one_endless_word".repeat(100));
    }),
    ("table", 24, |play| {
        play.tell(&said("| crate | what lives there | lines |\n|---|---|--:|\n| event | the vocabulary: events, commands, questions, and the mode table | 2100 |\n| hub | live sessions | 4000 |\n"));
    }),
];

#[test]
fn states() {
    for (name, rows, lead) in STATES {
        check(&format!("state_{name}"), *rows, lead);
    }
}

fn started(play: &mut Play) {
    play.tell(&json!({ "type": "sessionStarted", "agentType": "claude", "nativeSessionId": "n", "config": { "agentType": "claude", "model": "opus", "approvalMode": "ask" } }));
}

fn joined(play: &mut Play) {
    for (id, name, door, role) in
        [("me", "terminal", "terminal", "owner"), ("x", "phone", "a2a", "controller"), ("y", "wall", "web", "observer")]
    {
        play.tell(&json!({ "type": "clientJoined", "client": { "client": name, "door": door, "clientId": id, "role": role } }));
    }
}

/// Gives a command, in whatever way it is offered.
fn command(play: &mut Play, words: &str) -> Vec<Effect> {
    play.write(words);
    play.press(KeyCode::Enter)
}

fn ask(play: &mut Play, details: &Value) {
    let mut question = asked("q", "it");
    (question["details"], question["title"]) = (details.clone(), "Something is to be done".into());
    play.tell(&question);
}

fn tool(play: &mut Play, output: &str) {
    play.tell(&json!({ "type": "toolStarted", "toolId": "t", "toolName": "shell", "toolKind": "shell", "title": "make", "arguments": {} }));
    play.tell(
        &json!({ "type": "toolCompleted", "toolId": "t", "success": true, "outcome": "completed", "result": output }),
    );
}

#[test]
fn the_status_line_says_that_a_question_waits() {
    let mut play = Play::new(100, 20);
    play.tell(&json!({ "type": "turnStarted", "turnId": "t" }));
    assert!(play.screen().contains("working"), "{}", play.screen());
    play.tell(&asked("q", "ls"));
    assert!(
        play.screen().contains("waiting for your answer") && !play.screen().contains("working"),
        "{}",
        play.screen()
    );
}

#[test]
fn clearing_takes_what_was_said_off_the_screen() {
    let mut play = Play::new(80, 12);
    play.tell(&json!({ "type": "userMessage", "content": "the first prompt" }));
    play.tell(&said("what was said before"));
    assert!(crate::view::title(&play.model).contains("the first prompt"));
    play.tell(&json!({ "type": "userMessage", "content": "/clear" }));
    assert_eq!(crate::view::title(&play.model), "app · multitap");
    play.tell(&said("forgotten"));
    for _ in 0..3 {
        assert!(!play.screen().contains("said before") && play.screen().contains("forgotten"), "{}", play.screen());
        assert_eq!(play.press(KeyCode::PageUp), [], "nothing before it is fetched again");
    }
}

#[test]
fn the_title_of_the_window_says_how_the_session_is() {
    let mut play = Play::new(80, 20);
    let title = |play: &Play| crate::view::title(&play.model);
    assert_eq!(title(&play), "app · multitap");
    play.tell(&json!({ "type": "userMessage", "content": "fix\u{1b}]0;x\u{7} the tests \u{202e}that have failed since the day before" }));
    play.tell(&json!({ "type": "turnStarted", "turnId": "t" }));
    let about = title(&play);
    assert!(about.starts_with("● fix␛]0;x␇ the tests \\u202e") && about.ends_with("… · app · multitap"), "{about}");
    play.tell(&asked("q", "ls"));
    assert!(title(&play).starts_with("? fix"), "{}", title(&play));
    play.on(Msg::Over("the session is over".to_owned()));
    assert!(title(&play).starts_with("■ fix"), "{}", title(&play));
}
