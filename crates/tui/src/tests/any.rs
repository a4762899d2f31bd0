//! Whatever happens, in whatever order, on whatever screen: nothing panics, and nothing is wider than the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use multitap_event::Event;
use multitap_testkit::script;
use proptest::prelude::*;
use proptest::sample::select;
use ratatui::layout::Size;
use serde_json::{Value, json};

use super::Play;
use crate::msg::Msg;
use crate::transcript::{Scroll, Shape};

/// Text of all sorts: long words, wide and joined characters, none at all, marks of markdown and of terminals.
fn text() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "word ",
        "日本語",
        "👩‍👩‍👧",
        "e\u{301}",
        "\u{200b}",
        "\n",
        "\n\n",
        "\t",
        "\u{1b}[31m",
        "\r",
        "```rust\n",
        "```",
        "- ",
        "1. ",
        "> ",
        "| a | b |\n|---|--:|\n| 1 | 2 |\n",
        "**",
        "`",
        "[x](http://y.z)",
        "# ",
        "\"",
        "'",
        "/*",
        "--",
        "@@ -1,3 +1,4 @@\n",
        "+added\n",
        "-gone\n",
        "averyveryveryveryveryverylongwordthatfitsnowhere",
        "ﷺ",
        "İ",
        "\u{0}",
        "─",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn event() -> impl Strategy<Value = Value> {
    (0..20_u8, text(), text(), 0..4_u8, any::<bool>()).prop_map(|(kind, text, more, id, flag)| {
        let (tool, prompt, question) = (format!("tool{id}"), format!("prompt{id}"), format!("question{id}"));
        let from = json!({ "client": more, "door": if flag { "a2a" } else { "web" }, "clientId": format!("c{id}") });
        let parent = if flag { json!({ "parentToolId": "tool0" }) } else { json!({}) };
        let mut event = match kind {
            0 | 1 => json!({ "type": "textChunk", "content": text, "isPartial": flag, "messageId": format!("m{}", id / 2) }),
            2 => json!({ "type": "reasoning", "content": text, "isPartial": flag }),
            3 => json!({ "type": "toolStarted", "toolId": tool, "toolName": more, "toolKind": "shell", "title": text, "arguments": {} }),
            4 => json!({ "type": "toolProgress", "toolId": tool, "output": text, "message": more }),
            5 => json!({ "type": "toolCompleted", "toolId": tool, "success": flag, "outcome": if flag { "completed" } else { "failed" }, "result": text, "error": if flag { None } else { Some(more) } }),
            6 => json!({ "type": "fileChanged", "filePath": more, "changeType": "modified", "diff": text, "toolId": tool }),
            7 => json!({ "type": "todoList", "items": [{ "text": text, "status": "inProgress" }, { "text": more, "status": "completed" }] }),
            8 => json!({ "type": "userMessage", "content": text, "promptId": prompt, "from": from }),
            9 => json!({ "type": "promptQueued", "prompt": { "text": text, "promptId": prompt }, "from": from }),
            10 => json!({ "type": "promptWithdrawn", "promptId": prompt }),
            12 => json!({ "type": "permissionAsked", "questionId": question, "title": more,
                "options": [{ "id": "a", "name": "Answer", "kind": "allowOnce" }, { "id": "b", "name": "No", "kind": "rejectOnce" }],
                "details": { "type": "input", "questions": [
                    { "question": text, "labels": ["one", more], "multiSelect": flag }, { "question": more, "header": text },
                ] } }),
            11 => json!({ "type": "permissionAsked", "questionId": question, "toolId": tool, "title": more, "reason": text,
                "options": [{ "id": "a", "name": "Allow once", "kind": "allowOnce" }, { "id": "b", "name": text, "kind": "rejectOnce" }],
                "details": match id {
                    0 => json!({ "type": "command", "command": text, "directory": more }),
                    1 => json!({ "type": "fileEdit", "filePath": more, "diff": text }),
                    2 => json!({ "type": "plan", "plan": text }),
                    _ => json!({ "type": "text", "text": text }),
                } }),
            13 => json!({ "type": "permissionSettled", "questionId": question, "selectedOptionId": "a", "kind": "allowOnce", "settledBy": from, "at": "2026-01-31T12:00:00Z", "feedback": text }),
            14 => json!({ "type": "permissionWithdrawn", "questionId": question, "reason": text }),
            15 => json!({ "type": "turnCompleted", "status": if flag { "completed" } else { "failed" }, "error": text, "usage": { "inputTokens": 1, "outputTokens": 2, "totalTokens": 3 }, "costUsd": 0.25, "durationMs": 1234 }),
            16 => json!({ "type": "system", "subtype": "context", "message": text, "data": { "used": 10, "size": id } }),
            17 => json!({ "type": "error", "kind": "unknown", "severity": "error", "message": if id == 0 { text } else { "the same".to_owned() } }),
            18 => json!({ "type": "turnCompleted", "status": "failed", "error": "the same" }),
            _ => json!({ "type": "clientJoined", "client": from }),
        };
        if let (Some(event), Some(parent)) = (event.as_object_mut().filter(|_| kind <= 3), parent.as_object()) {
            event.extend(parent.clone());
        }
        event
    })
}

fn key() -> impl Strategy<Value = KeyEvent> {
    let codes = select(vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Char('1'),
        KeyCode::Char('a'),
        KeyCode::Char('y'),
        KeyCode::Char(' '),
        KeyCode::Char('/'),
        KeyCode::Char('?'),
        KeyCode::Char('f'),
        KeyCode::Char('o'),
        KeyCode::Char('c'),
        KeyCode::Char('日'),
    ]);
    let modifiers = select(vec![KeyModifiers::NONE, KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT]);
    (codes, modifiers).prop_map(|(code, modifiers)| KeyEvent::new(code, modifiers))
}

#[derive(Debug, Clone)]
enum Step {
    Tell(Value),
    Press(KeyEvent),
    Paste(String),
    Resize(u16, u16),
    Wheel(isize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => event().prop_map(Step::Tell),
        4 => key().prop_map(Step::Press),
        1 => text().prop_map(Step::Paste),
        1 => (0..120_u16, 0..40_u16).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        1 => (-20..20_isize).prop_map(Step::Wheel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("MULTITAP_SOAK").is_some() { 5000 } else { 150 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_nothing_is_wider_than_the_screen(steps in prop::collection::vec(step(), 1..40)) {
        let mut play = Play::new(60, 20);
        for step in steps {
            match step {
                Step::Tell(event) => drop(play.tell(&event)),
                Step::Press(key) => drop(play.on(Msg::Key(key))),
                Step::Paste(text) => drop(play.on(Msg::Paste(text))),
                Step::Resize(columns, rows) => drop(play.on(Msg::Resized(Size::new(columns, rows)))),
                Step::Wheel(by) => drop(play.on(Msg::Wheel(by))),
            }
            play.buffer();
            for columns in [4, 12, 40] {
                let shape = Shape { columns, rows: 1000, theme: play.model.theme };
                let lines = play.model.scrollback.transcript.visible(Scroll::Latest, shape);
                prop_assert!(lines.iter().all(|line| line.width() <= columns), "{columns}: {lines:#?}");
            }
        }
    }

    /// Wherever a log is cut, what is fetched later makes of it what it would have been.
    #[test]
    fn older_events_take_their_place(events in prop::collection::vec(event(), 1..30), cut in 0..30_usize) {
        let mut whole = Play::new(60, 20);
        let mut begun = std::collections::HashSet::new();
        // Nothing begins twice, nor after it is told of.
        let is_new = |event: &Value| match event["type"].as_str() {
            Some("toolStarted") => begun.insert(event["toolId"].to_string()),
            Some("promptQueued") => begun.insert(event["prompt"]["promptId"].to_string()),
            Some("permissionAsked") => begun.insert(event["questionId"].to_string()),
            _ => true,
        };
        let events: Vec<Value> = events.into_iter().filter(is_new).collect();
        let events: Vec<Event> = events.into_iter().map(|event| whole.event(serde_json::from_value(event).unwrap())).collect();
        check_cut(&events, cut.min(events.len()))?;
    }
}

#[test]
fn scripts_can_be_cut_anywhere() {
    for name in script::names().unwrap() {
        let events: Vec<Event> = script::events(&name).unwrap();
        for cut in 0..events.len() {
            check_cut(&events, cut).unwrap_or_else(|error| panic!("{name} cut at {cut}: {error}"));
        }
    }
}

fn check_cut(events: &[Event], cut: usize) -> Result<(), TestCaseError> {
    let shown = |first: usize| {
        let mut play = Play::new(60, 2000);
        for event in &events[first..] {
            play.on(Msg::Event(Box::new(event.clone())));
        }
        let older: Vec<Event> = events[..first].to_vec();
        let (newer, middle) = (older.len() / 2, older.len());
        if middle > 0 {
            play.on(Msg::Fetched(Ok(older[newer..].to_vec())));
            play.on(Msg::Fetched(Ok(older[..newer].to_vec())));
        }
        let shape = Shape { columns: 60, rows: 2000, theme: play.model.theme };
        let lines = play.model.scrollback.transcript.visible(Scroll::Latest, shape);
        lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    prop_assert_eq!(shown(cut), shown(0));
    Ok(())
}
