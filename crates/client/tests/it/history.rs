//! Stored conversations, as a program meets them.

use std::collections::BTreeMap;
use std::fs;

use multitap_client::{AgentType, EventKind, History, HistoryError, TurnStatus, read_stored};
use multitap_testkit::Scratch;

const STORED: &str = r#"{"type":"user","cwd":"/w","sessionId":"6f1c","uuid":"u","timestamp":"2026-11-15T10:00:00Z","message":{"role":"user","content":"hello"}}
{"type":"assistant","cwd":"/w","sessionId":"6f1c","uuid":"a","timestamp":"2026-11-15T10:00:02Z","message":{"id":"m","role":"assistant","model":"opus","content":[{"type":"text","text":"hi"}]}}
"#;

#[test]
fn a_program_lists_and_reads_what_an_agent_keeps() {
    let scratch = Scratch::without_model().unwrap();
    let folder = scratch.home().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("6f1c.jsonl"), STORED).unwrap();
    let env = BTreeMap::from([
        ("HOME".to_owned(), scratch.home().display().to_string()),
        ("CLAUDE_CONFIG_DIR".to_owned(), String::new()),
    ]);
    let history = History::of(AgentType::Claude, &env).unwrap();
    let sessions = history.list(Some("/w".as_ref()));
    assert_eq!(sessions.len(), 1);
    assert_eq!((sessions[0].id.as_str(), sessions[0].title.as_deref()), ("6f1c", Some("hello")));
    let events: Vec<_> = read_stored(&sessions[0], false).unwrap().collect();
    assert!((1..).zip(&events).all(|(seq, event)| event.seq == seq && event.session_id.as_str() == "6f1c"));
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::TurnCompleted(end) => Some((end.status, end.text.as_deref(), end.duration_ms)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(TurnStatus::Completed, Some("hi"), Some(2000))]);
    assert!(matches!(history.find("nothing", "/w".as_ref()), Err(HistoryError::NotFound { .. })));
}
