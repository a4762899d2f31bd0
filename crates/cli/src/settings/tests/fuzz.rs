//! Any text at all as settings: it is read, or refused in words; and a project that is not trusted allows nothing.
//!
//! A few hundred texts with every test run; `cargo xtask fuzz` goes on for as long as it is told.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::super::*;

/// Texts that are nearly right, to begin from.
const SEEDS: [&str; 6] = [
    r#"{"agent": "claude", "keepRaw": true, "approvalMode": "auto-all", "trustedFolders": ["/"]}"#,
    "{\n  // mine\n  \"agents\": { \"claude\": { \"command\": \"/opt/x\", \"args\": [\"$HOME\"], \"env\": {\"A\": \"${B}\"} }, },\n}",
    r#"{"tools": {"allowed": ["run_shell_command(git log:*)"], "exclude": ["edit"], "privateAddresses": true}}"#,
    r#"{"agents": {"acp": {"command": "x"}, "builtin": {"model": "m"}, "codex": {"transport": "oneShot"}}}"#,
    r#"{"mcpServers": {"a": {"command": "x", "timeout": 1, "trust": true, "includeTools": ["b"]}, "c": {"url": "http://d"}}}"#,
    "/* a */ { \"agent\" : \"acp:/bin/x\" /* b */ , } // c",
];

const KEYS: [&str; 27] = [
    "agent",
    "agents",
    "keepRaw",
    "approvalMode",
    "tools",
    "trustedFolders",
    "$schema",
    "claude",
    "codex",
    "gemini",
    "acp",
    "builtin",
    "command",
    "args",
    "env",
    "permission",
    "transport",
    "checkpointing",
    "model",
    "allowed",
    "exclude",
    "privateAddresses",
    "mcpServers",
    "url",
    "headers",
    "timeout",
    "trust",
];

const WORDS: [&str; 12] = [
    "claude",
    "acp:/bin/evil",
    "auto-all",
    "autoAll",
    "plan",
    "ask-dangerous",
    "$HOME",
    "${",
    "mcp",
    "oneShot",
    "\u{0}",
    "é\u{2028}\"",
];

/// Random JSON with the keys and values of our settings.
fn near_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        proptest::sample::select(&WORDS[..]).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let key = prop_oneof![9 => proptest::sample::select(&KEYS[..]).prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// A text with a few places changed.
fn changed() -> impl Strategy<Value = String> {
    let seed = prop_oneof![
        proptest::sample::select(&SEEDS[..]).prop_map(str::to_owned),
        near_json().prop_map(|value| value.to_string()),
    ];
    let edits = proptest::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<char>()), 0..6);
    (seed, edits).prop_map(|(text, edits)| {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, how, new) in edits {
            let at = at.index(chars.len() + 1);
            match how {
                0 => chars.insert(at, new),
                1 => chars.truncate(at),
                2 if at < chars.len() => {
                    chars.remove(at);
                }
                _ => chars.insert(at, ['{', '}', '"', '/', '*', ',', '[', '$'][new as usize % 8]),
            }
        }
        chars.into_iter().collect()
    })
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![1 => any::<String>(), 2 => near_json().prop_map(|value| value.to_string()), 3 => changed()]
}

/// What must hold for any text.
fn check(text: &str) {
    for source in [Source::User, Source::Project { trusted: true }, Source::Project { trusted: false }] {
        let mut settings = Settings::default();
        match settings.take(text, source, &mut Vec::new()) {
            Err(why) => assert!(!why.is_empty()),
            Ok(()) if source == Source::User => {}
            Ok(()) => {
                assert!(settings.agents.is_empty(), "a project chose a program: {text}");
                assert!(settings.mcp_servers.is_empty(), "a project named a server: {text}");
                assert!(!matches!(settings.agent, Some(AgentChoice::Kind(AgentKind::Acp { .. }))), "{text}");
            }
        }
        if source == (Source::Project { trusted: false }) {
            assert!(settings.permissions.gives_nothing(), "an untrusted project allowed something: {text}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in texts()) {
        check(&text);
    }
}

/// For as many seconds as `MULTITAP_FUZZ` says.
#[test]
fn longer() {
    let Some(seconds) = std::env::var("MULTITAP_FUZZ").ok().and_then(|seconds| seconds.parse().ok()) else { return };
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runner = TestRunner::new(Config::default());
    let mut count = 0_u64;
    while Instant::now() < end {
        let text = texts().new_tree(&mut runner).unwrap().current();
        let checked = std::panic::catch_unwind(|| check(&text));
        assert!(checked.is_ok(), "after {count} texts: {text:?}");
        count += 1;
    }
    assert!(count > 0);
}
