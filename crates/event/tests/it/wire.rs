use multitap_event::*;
use serde_json::{Map, Value, json};

use crate::samples::{eight, others, stamped, usage};

fn all() -> Vec<Event> {
    stamped(eight().into_iter().chain(others()).collect())
}

#[track_caller]
fn check(schema: &Value, event: &Event) {
    let schema = jsonschema::draft202012::options().build(schema).unwrap();
    let json = serde_json::to_value(event).unwrap();
    let errors: Vec<String> = schema.iter_errors(&json).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{json:#}\n{errors:#?}");
}

/// R002-122, R002-124: the schema as the specification prints it.
#[test]
fn the_eight_types_fit_the_printed_schema() {
    let printed: Value = serde_json::from_str(include_str!("unified-event.schema.json")).unwrap();
    let schema = jsonschema::draft7::options().build(&printed).unwrap();
    for event in stamped(eight()) {
        let json = serde_json::to_value(&event).unwrap();
        assert!(schema.is_valid(&json), "{json:#}");
    }
}

#[test]
fn every_type_fits_our_own_schema() {
    let schema = schema();
    for event in all() {
        check(&schema, &event);
    }
}

#[test]
fn our_schema_knows_every_type_and_refuses_others() {
    let schema = jsonschema::draft202012::options().build(&schema()).unwrap();
    let mut json = serde_json::to_value(&all()[0]).unwrap();
    json["type"] = "somethingElse".into();
    assert!(!schema.is_valid(&json));
}

#[test]
fn every_event_comes_back_as_it_was() {
    for event in all() {
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains("null"), "absent, never null: {line}");
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }
}

#[test]
fn the_envelope_stands_before_the_fields() {
    let events = stamped(vec![EventKind::TurnStarted { turn_id: "turn-1".into() }]);
    let mut json = serde_json::to_value(&events[0]).unwrap();
    json["id"] = "e".into();
    assert_eq!(
        json.to_string(),
        r#"{"id":"e","sessionId":"s-1","timestamp":"2026-11-15T06:26:49.805Z","seq":1,"type":"turnStarted","turnId":"turn-1","raw":["{\"type\":\"x\"}"]}"#
    );
}

/// R002-110: the sum where the agent gives no total.
#[test]
fn usage_always_has_a_total() {
    let json = serde_json::to_value(usage()).unwrap();
    assert_eq!(
        json,
        json!({"inputTokens": 100, "outputTokens": 20, "cachedTokens": 3, "reasoningTokens": 1, "totalTokens": 120})
    );
    assert_eq!(usage().plus(usage()).total_tokens, 240);
    assert_eq!(usage().plus(TokenUsage::of(1, 1)).cached_tokens, Some(3));
}

#[test]
fn commands_are_lines() {
    let cases = [
        (json!({"type": "prompt", "text": "hi"}), Command::Prompt(Prompt::text("hi"))),
        (json!({"type": "cancel"}), Command::Cancel),
        (json!({"type": "setMode", "mode": "plan"}), Command::SetMode { mode: "plan".into() }),
        (json!({"type": "setModel", "model": "opus"}), Command::SetModel { model: "opus".into() }),
        (json!({"type": "setThinking", "tokens": 1000}), Command::SetThinking { tokens: Some(1000) }),
        (json!({"type": "setThinkingLevel", "level": "high"}), Command::SetThinkingLevel { level: "high".into() }),
        (json!({"type": "query", "what": "mcpStatus"}), Command::Query { what: Query::McpStatus }),
        (
            json!({"type": "decide", "questionId": "q", "optionId": "cancel", "feedback": "no"}),
            Command::Decide(Decide::new(&"q".into(), "cancel").with_feedback("no")),
        ),
    ];
    for (line, command) in cases {
        assert_eq!(serde_json::from_value::<Command>(line.clone()).unwrap(), command);
        assert_eq!(serde_json::to_value(&command).unwrap(), line);
    }
}

#[test]
fn nothing_secret_or_private_is_in_debug_output() {
    let mut config = SessionConfig::new(AgentKind::Claude).with_prompt("my secret plan");
    config.environment.insert("KEY".into(), "hunter2".into());
    config.program = Some(AgentProgram { env: [("T".into(), "hunter2".into())].into(), ..AgentProgram::default() });
    config.mcp_servers.insert(
        "m".into(),
        McpServer::from(McpReach::Http {
            url: "http://127.0.0.1".into(),
            headers: [("Authorization".into(), "hunter2".into())].into(),
        }),
    );
    let mut decide = Decide::new(&"q".into(), "proceed_once");
    decide.new_content = Some("hunter2".into());
    let image = Image { media_type: "image/png".into(), data: "hunter2".into() };
    let shown = format!("{config:?} {:?} {:?} {decide:?} {image:?}", config.program, config.mcp_servers);
    assert!(!shown.contains("hunter2") && !shown.contains("secret plan"), "{shown}");
}

#[test]
fn times_are_read_and_written_to_the_millisecond() {
    let time = Timestamp::parse("2026-11-15T06:26:49.8051Z").unwrap();
    assert_eq!(time.to_string(), "2026-11-15T06:26:49.805Z");
    assert_eq!(Timestamp::from_millis(time.as_millis()).to_string(), time.to_string());
    assert_eq!(Timestamp::from_millis(0).millis_since(time), 0);
    assert_eq!(Timestamp::from_millis(i64::MAX).to_string().len(), "9999-12-30T22:00:00.999Z".len());
    assert!(Timestamp::parse("yesterday").is_none());
}

#[test]
fn pictures_are_known_by_their_first_bytes() {
    assert_eq!(Image::media_type_of(b"\x89PNG\r\n\x1a\n"), Ok("image/png"));
    assert_eq!(Image::media_type_of(b"RIFF1234WEBPVP8 "), Ok("image/webp"));
    assert_eq!(Image::media_type_of(b"hello"), Err(ImageError));
}

/// What an edited answer brought is in its ruling, and of what ran only what no other event has.
#[test]
fn an_edited_ruling_fits_our_own_schema() {
    let file = Details::FileEdit {
        file_path: "/w/a".to_owned(),
        before: Some("old".to_owned()),
        after: Some("new".to_owned()),
        diff: Some("-old\n+new\n".to_owned()),
    };
    let arguments = Map::from_iter([("content".to_owned(), json!("new"))]);
    let ruling = Ruling {
        question_id: "q".into(),
        selected_option_id: option::PROCEED_ONCE.into(),
        kind: ChoiceKind::AllowOnce,
        settled_by: ClientRef::new("ann", Door::Terminal),
        at: Timestamp::from_millis(1),
        feedback: None,
        edited: true,
        new_content: Some("new".to_owned()),
        new_input: None,
        runs: Some(Box::new(EditedCall::new("Write /w/a", arguments, file))),
    };
    let event =
        Draft::new(Timestamp::from_millis(1), EventKind::PermissionSettled(ruling.clone())).stamp("s".into(), 1);
    check(&schema(), &event);
    let json = serde_json::to_value(&event).unwrap();
    assert_eq!((&json["newContent"], json.get("newInput")), (&json!("new"), None));
    let details = json!({ "type": "fileEdit", "filePath": "/w/a", "diff": "-old\n+new\n" });
    assert_eq!(json["runs"], json!({ "title": "Write /w/a", "arguments": { "content": "new" }, "details": details }));
    assert_eq!(serde_json::from_value::<Event>(json).unwrap(), event);
    let short = serde_json::to_value(ruling.without_edit()).unwrap();
    assert!(short["edited"] == true && short.get("runs").is_none() && short.get("newContent").is_none());
}
