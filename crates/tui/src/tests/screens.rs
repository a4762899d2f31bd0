//! What people see, at three widths.

use std::fmt::Write as _;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::{Event, EventKind};
use multitap_testkit::script;
use ratatui::layout::Size;
use ratatui::style::Color;
use serde_json::{Value, json};

use super::Play;
use crate::effect::Effect;
use crate::msg::Msg;
use crate::preferences::Colours;
use crate::theme::Theme;
use crate::transcript::Scroll;

const WIDTHS: [u16; 3] = [40, 80, 160];

/// A screen at each width, after the same things happened.
#[track_caller]
pub(super) fn check(name: &str, rows: u16, happen: impl Fn(&mut Play)) {
    let mut shown = String::new();
    for columns in WIDTHS {
        let mut play = Play::new(columns, rows);
        happen(&mut play);
        writeln!(shown, "{}\n{}", "▔".repeat(usize::from(columns)), play.screen()).unwrap();
    }
    insta::assert_snapshot!(name, shown);
}

/// The sessions that all doors show: when something is asked, and when all is over.
#[test]
fn scripts() {
    for name in script::names().unwrap() {
        let events: Vec<Event> = script::events(&name).unwrap();
        check(&format!("script_{name}"), 30, |play| {
            for event in &events {
                play.on(Msg::Event(Box::new(event.clone())));
            }
        });
        let asked = events.iter().rposition(|event| matches!(event.kind, EventKind::PermissionAsked(_)));
        if let Some(asked) = asked {
            check(&format!("script_{name}_asks"), 30, |play| {
                for event in &events[..=asked] {
                    play.on(Msg::Event(Box::new(event.clone())));
                }
                play.on(Msg::QuestionSeen);
            });
        }
    }
}

pub(super) fn said(text: &str) -> Value {
    json!({ "type": "textChunk", "content": text })
}

pub(super) fn asked(id: &str, command: &str) -> Value {
    json!({
        "type": "permissionAsked", "questionId": id, "title": format!("Run {command}"),
        "options": [
            { "id": "proceed_once", "name": "Allow once", "kind": "allowOnce" },
            { "id": "proceed_always", "name": "Allow for this session", "kind": "allowAlways" },
            { "id": "cancel", "name": "Deny", "kind": "rejectOnce" },
        ],
        "details": { "type": "command", "command": command, "directory": "/work" },
    })
}

pub(super) fn settled(id: &str, by: &Value) -> Value {
    json!({
        "type": "permissionSettled", "questionId": id, "selectedOptionId": "proceed_once", "kind": "allowOnce",
        "settledBy": by, "at": "2026-01-31T12:00:00Z",
    })
}

#[test]
fn a_message_of_a_client_is_marked_with_its_door() {
    // R003-30
    let mut play = Play::new(60, 12);
    for (door, mark) in [("a2a", "[A2A]"), ("acp", "[ACP]"), ("web", "[web]"), ("terminal", "[terminal]")] {
        play.tell(&json!({ "type": "userMessage", "content": "fix it", "from": { "client": "phone", "door": door } }));
        assert!(play.screen().contains(&format!("> {mark} phone: fix it")), "{}", play.screen());
    }
    play.tell(&json!({ "type": "userMessage", "content": "mine", "from": play.model.session.me }));
    assert!(play.screen().contains("> mine"), "{}", play.screen());
}

#[test]
fn an_edited_call_is_shown_as_what_ran() {
    // R002-44
    let mut play = Play::new(80, 20);
    let call = json!({ "type": "toolStarted", "toolId": "t", "toolName": "shell", "toolKind": "shell",
        "title": "Run echo hi", "arguments": { "command": "echo hi" } });
    play.tell(&call);
    let mut question = asked("q", "echo hi");
    question["toolId"] = "t".into();
    play.tell(&question);
    let mut ruling = settled("q", &json!({ "client": "phone", "door": "a2a", "clientId": "x" }));
    ruling["edited"] = true.into();
    ruling["runs"] = json!({ "title": "Run echo bye", "arguments": { "command": "echo bye" },
        "details": { "type": "command", "command": "echo bye" } });
    play.tell(&ruling);
    let screen = play.screen();
    assert!(screen.contains("edited to Run echo bye"), "{screen}");
    assert!(!screen.contains("echo hi"), "{screen}");
}

#[test]
fn who_answered_first_is_said_by_name_and_the_dialog_closes() {
    // R003-27, R003-28
    let mut play = Play::new(60, 20);
    play.tell(&asked("q", "ls"));
    assert!(play.screen().contains("1. Allow once"), "{}", play.screen());
    play.tell(&settled("q", &json!({ "client": "phone", "door": "a2a", "clientId": "x" })));
    let screen = play.screen();
    assert!(screen.contains("answered by [A2A] phone: Allow once"), "{screen}");
    assert!(!screen.contains("1. Allow once"), "{screen}");
    play.tell(&asked("r", "ls"));
    play.tell(&settled("r", &json!({ "client": "terminal", "door": "terminal", "clientId": "me" })));
    assert!(play.screen().contains("answered: Allow once"), "{}", play.screen());
}

#[test]
fn a_question_from_before_the_first_event_is_asked_and_settled() {
    let mut earlier = Play::new(60, 20);
    earlier.tell(&asked("q", "ls"));
    let mut play = Play::new(60, 20);
    play.seq = earlier.seq;
    play.model.begin(earlier.model.session.state);
    assert!(play.screen().contains("1. Allow once"), "{}", play.screen());
    play.tell(&settled("q", &json!({ "client": "phone", "door": "a2a", "clientId": "x" })));
    assert!(play.screen().contains("answered by [A2A] phone: Allow once"), "{}", play.screen());
}

#[test]
fn a_plan_takes_the_place_of_the_one_before() {
    let mut play = Play::new(60, 20);
    play.tell(&json!({ "type": "todoList", "items": [{ "text": "first", "status": "inProgress" }] }));
    play.tell(&said("on it"));
    play.tell(&json!({ "type": "todoList", "items": [{ "text": "first", "status": "completed" }] }));
    let screen = play.screen();
    assert_eq!(screen.matches("first").count(), 1, "{screen}");
    assert!(screen.find("on it") < screen.find("first"), "{screen}");
}

fn many(play: &mut Play) {
    for number in 1..=30 {
        play.tell(&json!({ "type": "userMessage", "content": format!("question {number}"), "from": { "client": "phone", "door": "a2a" } }));
        play.tell(&said(&format!("Answer **{number}**:\n\n```rust\nfn answer() -> u32 {{ {number} }}\n```")));
    }
}

#[test]
fn scrolled_up_it_says_what_came_below() {
    check("scrolled_up", 14, |play| {
        many(play);
        play.press(KeyCode::PageUp);
        play.tell(&said("one\n\ntwo"));
    });
    let mut play = Play::new(80, 14);
    many(&mut play);
    play.press(KeyCode::PageUp);
    assert!(play.screen().contains("↓ Ctrl+End"), "{}", play.screen());
    play.tell(&said("one\n\ntwo"));
    assert!(play.screen().contains("↓ 4 new lines below"), "{}", play.screen());
    play.on(Msg::Key(KeyEvent::new(KeyCode::End, KeyModifiers::CONTROL)));
    assert!(!play.screen().contains('↓') && play.screen().contains("two"), "{}", play.screen());
}

#[test]
fn a_page_up_leads_up_also_from_where_lines_are_gone() {
    let mut play = Play::new(80, 14);
    many(&mut play);
    play.model.scrollback.scroll = Scroll::At { cell: 6, line: 1000 };
    play.press(KeyCode::PageUp);
    assert!(matches!(play.model.scrollback.scroll, Scroll::At { cell: ..6, .. }), "{:?}", play.model.scrollback.scroll);
}

#[test]
fn who_reads_goes_on_where_they_were_in_a_terminal_of_another_width() {
    let mut play = Play::new(30, 14);
    many(&mut play);
    let words: Vec<String> = (0..400).map(|at| format!("w{at:03}")).collect();
    play.tell(&said(&words.join(" ")));
    (0..4).for_each(|_| drop(play.press(KeyCode::PageUp)));
    let first = |play: &Play| play.screen().split_whitespace().next().unwrap()[1..].parse::<i32>().unwrap();
    let begin = first(&play);
    for columns in [90, 50, 120, 30] {
        play.on(Msg::Resized(Size::new(columns, 14)));
        assert!((first(&play) - begin).abs() < 60, "{begin} at {columns}:\n{}", play.screen());
        assert!(!play.screen().contains("new line"), "{}", play.screen());
    }
}

#[test]
fn words_are_found_before_and_after() {
    check("search", 14, |play| {
        many(play);
        play.control('f');
        play.write("QUESTION 7");
    });
    let mut play = Play::new(80, 14);
    many(&mut play);
    play.control('f');
    play.write("question 1");
    // The last of those that begin so.
    assert!(play.screen().contains("question 19"), "{}", play.screen());
    for _ in 0..9 {
        play.press(KeyCode::Up);
    }
    assert!(play.screen().contains("question 10"), "{}", play.screen());
    play.press(KeyCode::Up);
    assert!(play.screen().contains("question 1\n"), "{}", play.screen());
    play.press(KeyCode::Up);
    assert!(play.screen().contains("no more matches"), "{}", play.screen());
    play.press(KeyCode::Down);
    assert!(play.screen().contains("question 10"), "{}", play.screen());
    let found = play.buffer().content().iter().filter(|cell| cell.bg == Color::Yellow).count();
    assert!(found >= "question 1".len(), "{found} cells are marked");
    play.press(KeyCode::Esc);
    assert!(play.screen().contains("question 10"), "it stays where it was found");
    play.control('f');
    play.write("nothing has this");
    assert!(play.screen().contains("not found"), "{}", play.screen());
}

#[test]
fn a_slash_searches_only_when_one_reads() {
    let mut play = Play::new(80, 14);
    many(&mut play);
    play.write("/x");
    assert_eq!(play.model.prompt.composer.text(), "/x");
    play.control('u');
    play.press(KeyCode::PageUp);
    play.write("/x");
    assert!(play.model.prompt.composer.is_empty() && play.model.scrollback.search.is_some());
}

#[test]
fn older_events_are_asked_for_at_the_top() {
    let mut play = Play::new(80, 14);
    play.seq = 100;
    many(&mut play);
    let home = || Msg::Key(KeyEvent::new(KeyCode::Home, KeyModifiers::CONTROL));
    assert_eq!(play.on(home()), [Effect::Fetch { before: 101 }]);
    assert_eq!(play.on(home()), [], "they are on their way");
    let top = play.screen();
    play.seq = 99;
    let older = play.event(EventKind::Error(
        serde_json::from_value(json!({ "kind": "unknown", "severity": "error", "message": "before all" })).unwrap(),
    ));
    play.on(Msg::Fetched(Ok(vec![older])));
    assert_eq!(play.screen(), top, "what is read does not move");
    assert_eq!(play.on(home()), [Effect::Fetch { before: 100 }]);
    assert!(play.screen().contains("before all"), "{}", play.screen());
    play.on(Msg::Fetched(Ok(Vec::new())));
    assert_eq!(play.on(home()), [], "there are no more");
}

#[test]
fn a_search_goes_on_in_what_came_before() {
    let mut play = Play::new(80, 14);
    play.seq = 100;
    many(&mut play);
    play.control('f');
    let mut effects = Vec::new();
    for letter in "needle".chars() {
        effects.extend(play.press(KeyCode::Char(letter)));
    }
    assert_eq!(effects, [Effect::Fetch { before: 101 }]);
    assert!(play.screen().contains("loading older events"), "{}", play.screen());
    let older = |play: &mut Play, seq: u64, content: &str| {
        play.seq = seq - 1;
        let kind = serde_json::from_value(said(content)).unwrap();
        let event = play.event(kind);
        play.on(Msg::Fetched(Ok(vec![event])))
    };
    assert_eq!(older(&mut play, 100, "hay"), [Effect::Fetch { before: 100 }]);
    older(&mut play, 99, "a needle");
    assert!(play.screen().contains("a needle"), "{}", play.screen());
}

#[test]
fn the_last_answer_and_the_last_code_are_copied() {
    let mut play = Play::new(80, 14);
    let alt = |letter| Msg::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::ALT));
    assert_eq!(play.on(alt('c')), []);
    assert!(play.screen().contains("there is no answer"), "{}", play.screen());
    play.tell(&said("See:\n\n```sh\nls\n```\n\nand\n\n```sh\ncargo test\n```\n"));
    play.tell(&said("Done."));
    assert_eq!(play.on(alt('c')), [Effect::Copy("Done.".to_owned())]);
    assert_eq!(play.on(alt('x')), [Effect::Copy("cargo test\n".to_owned())]);
}

#[test]
fn the_status_line_tells_what_matters_first() {
    check("status", 8, |play| {
        play.model.session.address = Some("http://127.0.0.1:41241".to_owned());
        play.tell(&json!({ "type": "sessionStarted", "agentType": "claude", "config": { "agentType": "claude", "model": "claude-opus-5-5", "approvalMode": "autoEdit" } }));
        play.tell(&json!({ "type": "clientJoined", "client": { "client": "phone", "door": "a2a", "clientId": "x" } }));
        play.tell(&json!({ "type": "system", "subtype": "context", "data": { "usedTokens": 46_000, "contextWindow": 200_000 } }));
        play.tell(&json!({ "type": "turnCompleted", "status": "completed", "durationMs": 8_400, "costUsd": 0.42, "usage": { "inputTokens": 12_000, "outputTokens": 345, "totalTokens": 12_345 } }));
    });
}

#[test]
fn help_and_an_empty_screen() {
    check("help", 24, |play| drop(play.press(KeyCode::Char('?'))));
    let mut play = Play::new(40, 12);
    play.press(KeyCode::Char('?'));
    for _ in 0..20 {
        play.press(KeyCode::PageDown);
    }
    assert!(play.screen().contains("this help"), "the end is reached:\n{}", play.screen());
    play.press(KeyCode::Char('x'));
    assert!(play.model.overlay.is_none() && play.model.prompt.composer.is_empty());
    check("empty", 8, |_| ());
}

#[test]
fn thoughts_and_output_are_folded() {
    let script = |play: &mut Play| {
        play.tell(&json!({ "type": "reasoning", "content": "one\ntwo\nthree\nfour\nfive" }));
        let output: String = (1..=20).map(|number| format!("line {number}\n")).collect();
        play.tell(&json!({ "type": "toolStarted", "toolId": "t", "toolName": "shell", "toolKind": "shell", "title": "seq 20", "arguments": {} }));
        play.tell(&json!({ "type": "toolCompleted", "toolId": "t", "success": true, "outcome": "completed", "result": output }));
    };
    check("folded", 30, script);
    check("unfolded", 30, |play| {
        script(play);
        play.control('o');
    });
}

#[test]
fn a_long_answer_is_one_though_it_comes_in_pieces() {
    let paragraph = |number| format!("Paragraph {number} has some words.\n\n");
    let whole: String = (0..400).map(paragraph).collect();
    let (mut pieces, mut one) = (Play::new(60, 2000), Play::new(60, 2000));
    let first = |screen: &str| screen.lines().find(|line| line.starts_with("Paragraph")).map(str::to_owned);
    let mut read = None;
    for number in 0..400 {
        pieces.tell(&json!({ "type": "textChunk", "content": paragraph(number), "isPartial": true, "messageId": "m" }));
        if number == 200 {
            // What somebody reads of it meanwhile does not move.
            pieces.set_rows(20);
            pieces.press(KeyCode::PageUp);
            read = first(&pieces.screen());
        }
        if number == 201 {
            assert!(pieces.screen().contains("2 new lines below"), "{}", pieces.screen());
        }
    }
    assert!(read.is_some());
    assert_eq!(first(&pieces.screen()), read);
    pieces.set_rows(2000);
    one.tell(&said(&whole));
    let below = |screen: String| screen.lines().take(900).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(below(pieces.screen()), below(one.screen()));
    let alt = || Msg::Key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::ALT));
    assert_eq!(pieces.on(alt()), [Effect::Copy(whole.trim().to_owned())]);
}

#[test]
fn what_went_wrong_is_told_once() {
    let mut play = Play::new(80, 20);
    play.tell(&json!({ "type": "error", "kind": "unknown", "severity": "error", "message": "no more credit" }));
    play.tell(&json!({ "type": "turnCompleted", "status": "failed", "error": "no more credit" }));
    play.tell(&json!({ "type": "sessionEnded", "reason": "failed", "error": "no more credit" }));
    assert_eq!(play.screen().matches("no more credit").count(), 1, "{}", play.screen());
}

#[test]
fn without_colours_there_are_none() {
    let mut play = Play::new(80, 30);
    play.model.theme = Theme::new(Colours::None);
    many(&mut play);
    play.tell(
        &json!({ "type": "fileChanged", "filePath": "a", "changeType": "modified", "diff": "@@ -1 +1 @@\n-a\n+b\n" }),
    );
    play.tell(&asked("q", "ls"));
    play.control('f');
    play.write("answer");
    for cell in play.buffer().content() {
        assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{:?}", cell.symbol());
    }
}
