//! Anything at all in an agent's files: reading them neither panics nor loses a line.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use multitap_adapter::{StoredSession, read};
use multitap_event::{AgentType, Draft};
use multitap_process::{Line, LineBuffer, MAX_LINE};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anything::{bent_line, value};
use crate::history::store;
use crate::invariants::check;
use crate::recording::fixtures;

static CLAUDE: LazyLock<Vec<String>> = LazyLock::new(|| real(AgentType::Claude, "claude/2.1.325", "claude/older"));
static CODEX: LazyLock<Vec<String>> = LazyLock::new(|| real(AgentType::Codex, "codex/0.166.0", "codex/older"));
static GEMINI: LazyLock<Vec<String>> = LazyLock::new(|| real(AgentType::Gemini, "gemini/0.61.0", "gemini/older"));

/// Every whole line of an agent's stores.
fn real(agent: AgentType, today: &str, older: &str) -> Vec<String> {
    let sessions =
        [today, older].into_iter().flat_map(|place| store(agent, &fixtures(place).join("stored")).list(None));
    let texts = sessions.flat_map(|session| session.files).filter_map(|path| fs::read_to_string(path).ok());
    let lines: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.into_iter().filter(|line| serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object())).collect()
}

const FIELDS: [&str; 24] = [
    "type",
    "message",
    "content",
    "id",
    "uuid",
    "parentUuid",
    "isSidechain",
    "isMeta",
    "toolUseResult",
    "attachment",
    "origin",
    "payload",
    "method",
    "params",
    "result",
    "timestamp",
    "role",
    "$set",
    "$rewindTo",
    "messages",
    "toolCalls",
    "thoughts",
    "tokens",
    "sessionId",
];

const TYPES: [&str; 14] = [
    "user",
    "assistant",
    "system",
    "attachment",
    "summary",
    "message",
    "tool_use",
    "session_meta",
    "event_msg",
    "response_item",
    "gemini",
    "info",
    "error",
    "something_new",
];

fn odd_line() -> impl Strategy<Value = String> {
    let fields = prop::collection::vec((prop::sample::select(&FIELDS[..]), value()), 0..6);
    (prop::sample::select(&TYPES[..]), fields).prop_map(|(kind, fields)| {
        let mut line = json!({ "type": kind });
        for (name, value) in fields {
            line[name] = value;
        }
        line.to_string()
    })
}

/// The bytes of a file: real lines, bent ones, nonsense.
fn bytes(real: &'static [String]) -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..40),
        2 => "[^\n]{0,60}".prop_map(String::into_bytes),
        3 => odd_line().prop_map(String::into_bytes),
        4 => bent_line(real).prop_map(String::into_bytes),
        8 => (0..real.len()).prop_map(|at| real[at].clone().into_bytes()),
        1 => (0..real.len(), any::<prop::sample::Index>()).prop_map(|(at, cut)| {
            real[at].as_bytes()[..cut.index(real[at].len())].to_vec()
        }),
    ];
    prop::collection::vec(line, 0..30).prop_map(|lines| lines.join(&b'\n'))
}

/// Reads those bytes as a conversation of that agent.
fn told(agent: AgentType, name: &str, bytes: &[u8]) -> (Vec<String>, Vec<Draft>) {
    let place = tempfile::tempdir().unwrap();
    let folder = match agent {
        AgentType::Claude => "projects/-workspace",
        AgentType::Codex => "sessions/2026/11/15",
        _ => ".gemini/tmp/workspace/chats",
    };
    let folder = place.path().join(folder);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    fs::write(&file, bytes).unwrap();
    // Looking at it must not do harm either.
    store(agent, place.path()).list(None);
    store(agent, place.path()).list(Some(Path::new("/workspace")));
    let session = StoredSession {
        agent,
        id: "x".to_owned(),
        folder: None,
        title: None,
        model: None,
        started: None,
        updated: None,
        agent_version: None,
        archived: false,
        files: vec![file],
    };
    let mut buffer = LineBuffer::new(MAX_LINE);
    buffer.push(bytes);
    buffer.finish();
    let text = |line| if let Line::Text(text) = line { text } else { panic!("too long") };
    let lines = std::iter::from_fn(|| buffer.pop()).map(text).collect();
    (lines, read(&session, true).unwrap().collect())
}

fn keeps_everything(agent: AgentType, name: &str, bytes: &[u8]) {
    let (lines, told) = told(agent, name, bytes);
    check(name, &lines, &told);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn claude_loses_nothing(bytes in bytes(&CLAUDE)) {
        keeps_everything(AgentType::Claude, "x.jsonl", &bytes);
    }

    #[test]
    fn codex_loses_nothing(bytes in bytes(&CODEX)) {
        keeps_everything(AgentType::Codex, "rollout-x.jsonl", &bytes);
    }

    #[test]
    fn gemini_loses_nothing(bytes in bytes(&GEMINI)) {
        keeps_everything(AgentType::Gemini, "session-x.jsonl", &bytes);
    }

    #[test]
    fn an_older_document_loses_nothing(document in value(), messages in prop::collection::vec(odd_line(), 0..8)) {
        let messages: Vec<Value> = messages.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let session = json!({ "sessionId": "x", "startTime": "2025-12-03T10:00:00.000Z", "messages": messages });
        keeps_everything(AgentType::Gemini, "session-x.json", serde_json::to_string_pretty(&session).unwrap().as_bytes());
        keeps_everything(AgentType::Gemini, "session-x.json", document.to_string().as_bytes());
    }
}
