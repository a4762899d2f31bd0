//! What each form prints of the same events.

use multitap_event::{
    AgentError, AgentErrorKind, Choice, ChoiceKind, ClientRef, Details, Door, Draft, EventKind, Question, Role, Ruling,
    SessionEnd, SessionEndReason, TextChunk, Timestamp, TokenUsage, ToolCompleted, ToolKind, ToolOutcome, ToolStarted,
    TurnEnd, option,
};
use serde_json::json;

use super::*;

fn stamp(kind: EventKind) -> Event {
    Draft::new(Timestamp::from_millis(0), kind).stamp("s".into(), 1)
}

fn text(content: &str, message: &str, is_partial: bool) -> EventKind {
    EventKind::TextChunk(TextChunk {
        content: content.into(),
        is_partial,
        role: Some(Role::Assistant),
        message_id: Some(message.into()),
        parent_tool_id: None,
    })
}

fn tool(name: &str, arguments: &serde_json::Value) -> EventKind {
    EventKind::ToolStarted(ToolStarted {
        tool_id: "t".into(),
        tool_name: name.into(),
        tool_kind: ToolKind::Shell,
        title: None,
        arguments: arguments.as_object().unwrap().clone(),
        server: None,
        parent_tool_id: None,
    })
}

fn play(format: OutputFormat, kinds: Vec<EventKind>) -> (String, Vec<String>) {
    let mut show = Show::new(format, true);
    let (mut stdout, mut stderr) = (String::new(), Vec::new());
    for kind in kinds {
        let shown = show.event(&stamp(kind));
        stdout.push_str(&shown.stdout);
        stderr.extend(shown.stderr);
    }
    stdout.push_str(&show.end());
    (stdout, stderr)
}

#[test]
fn the_answer_goes_to_stdout_and_tools_to_stderr() {
    let (stdout, stderr) = play(
        OutputFormat::Text,
        vec![
            text("I will ", "a", true),
            text("look.", "a", true),
            tool("Bash", &json!({"command": "ls"})),
            text("Done.\n", "b", false),
            EventKind::TurnCompleted(TurnEnd { text: Some("Done.\n".into()), ..TurnEnd::of(TurnStatus::Completed) }),
        ],
    );
    assert_eq!(stdout, "I will look.\n\nDone.\n");
    assert_eq!(stderr, [r#"[tool] Bash: {"command":"ls"}"#]);
}

#[test]
fn closing_words_that_were_not_streamed_are_printed() {
    let end = TurnEnd { text: Some("Cost: 0".into()), ..TurnEnd::of(TurnStatus::Completed) };
    let (stdout, _) = play(OutputFormat::Text, vec![EventKind::TurnCompleted(end)]);
    assert_eq!(stdout, "Cost: 0\n");
}

#[test]
fn a_terminal_does_not_obey_the_agent() {
    let (stdout, stderr) =
        play(OutputFormat::Text, vec![text("a\u{1b}[2Jb\u{7}", "a", false), tool("Ba\u{1b}sh", &json!({}))]);
    assert_eq!(stdout, "a␛[2Jb␇\n");
    // `out::say` makes the rest visible; what a program printed is told here, without its colours.
    assert_eq!(stderr, ["[tool] Ba\u{1b}sh"]);
}

#[test]
fn an_emoji_that_comes_in_pieces_stays_one() {
    let pieces = ["hi 👩", "\u{200d}", "👧 ", "☺", "\u{fe0f}", " x\r", "\ny", "\u{200d}", "z", "\u{200b}"];
    let mut chunks: Vec<_> = pieces.iter().map(|piece| text(piece, "a", true)).collect();
    chunks.push(tool("Bash", &json!({})));
    let (stdout, _) = play(OutputFormat::Text, chunks);
    assert_eq!(stdout, "hi 👩\u{200d}👧 ☺\u{fe0f} x\ny\\u200dz\\u200b\n");
}

#[test]
fn an_error_is_told_once() {
    let error = AgentError::new(AgentErrorKind::Unknown, "overloaded");
    let end = TurnEnd { error: Some("overloaded".into()), ..TurnEnd::of(TurnStatus::Failed) };
    let session = SessionEnd { error: Some("overloaded".into()), ..SessionEnd::of(SessionEndReason::Failed) };
    let kinds = vec![EventKind::Error(error), EventKind::TurnCompleted(end), EventKind::SessionEnded(session)];
    let (stdout, stderr) = play(OutputFormat::Text, kinds);
    assert_eq!(stdout, "");
    assert_eq!(stderr, ["[error] overloaded"]);
}

#[test]
fn a_denial_by_the_host_is_told_with_its_reason() {
    let question = Question {
        question_id: "q".into(),
        tool_id: Some("t".into()),
        tool_name: None,
        title: "Run rm -rf /".into(),
        options: vec![Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce)],
        details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
        edits: Vec::new(),
        reason: None,
    };
    let ruling = Ruling {
        question_id: "q".into(),
        selected_option_id: option::CANCEL.into(),
        kind: ChoiceKind::RejectOnce,
        settled_by: ClientRef::new("multitap", Door::Host),
        at: Timestamp::from_millis(0),
        feedback: Some("nobody is there".into()),
        edited: false,
        new_content: None,
        new_input: None,
        runs: None,
    };
    let denied = ToolCompleted {
        tool_id: "t".into(),
        success: false,
        outcome: ToolOutcome::Denied,
        result: None,
        error: Some("nobody is there".into()),
        exit_code: None,
        duration_ms: None,
    };
    let kinds = vec![
        tool("Bash", &json!({})),
        EventKind::PermissionAsked(question),
        EventKind::PermissionSettled(ruling),
        EventKind::ToolCompleted(denied.clone()),
    ];
    let (_, stderr) = play(OutputFormat::Text, kinds);
    assert_eq!(stderr, ["[tool] Bash", "[denied] Run rm -rf /: nobody is there"]);
    // A denial that was not ours is told where it shows.
    let (_, stderr) = play(OutputFormat::Text, vec![tool("Bash", &json!({})), EventKind::ToolCompleted(denied)]);
    assert_eq!(stderr, ["[tool] Bash", "[tool] Bash was denied: nobody is there"]);
}

#[test]
fn what_the_sandbox_does_is_told() {
    let note = |subtype: &str, message: &str| {
        let (subtype, message) = (subtype.to_owned(), Some(message.to_owned()));
        EventKind::System(multitap_event::SystemNote { subtype, message, data: serde_json::Map::new() })
    };
    let kinds = vec![note("sandbox", "every command will fail"), note("mcpServer", "tiny: ready")];
    let (stdout, stderr) = play(OutputFormat::Text, kinds);
    assert_eq!((stdout.as_str(), stderr), ("", vec!["[sandbox] every command will fail".to_owned()]));
}

#[test]
fn json_is_one_object_at_the_end() {
    let end = TurnEnd {
        text: Some("Done.".into()),
        usage: Some(TokenUsage::of(1, 2)),
        cost_usd: Some(0.5),
        ..TurnEnd::of(TurnStatus::Completed)
    };
    let kinds = vec![tool("Bash", &json!({"command": "ls"})), EventKind::TurnCompleted(end)];
    let (stdout, stderr) = play(OutputFormat::Json, kinds);
    assert!(stderr.is_empty());
    let value: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(value["text"], "Done.");
    assert_eq!(value["status"], "completed");
    assert_eq!(value["usage"]["totalTokens"], 3);
    assert_eq!(value["tools"][0]["toolName"], "Bash");
    assert_eq!(value["costUsd"], 0.5);
    assert_eq!(value["files"], json!([]));
    assert!(value.get("error").is_none());
    assert_eq!(stdout.lines().count(), 1);
}

#[test]
fn stream_is_one_event_a_line() {
    let (stdout, stderr) = play(OutputFormat::StreamJson, vec![text("a\nb", "a", true), text("c", "a", true)]);
    assert_eq!(stdout.lines().count(), 2);
    assert!(stderr.is_empty());
    assert!(stdout.lines().all(|line| serde_json::from_str::<Event>(line).is_ok()));
}
