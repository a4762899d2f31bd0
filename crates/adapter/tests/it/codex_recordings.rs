//! Every recording of the real Codex, and what became of it; and anything else in the place of its lines.

use std::sync::LazyLock;

use multitap_adapter::CodexCodec;
use multitap_event::Draft;
use proptest::prelude::*;
use serde_json::json;

use crate::anything::{bent_line, value};
use crate::invariants::{check, check_recording};
use crate::recording::{events, play_as, recordings};
use crate::shown::shown;

fn played(lines: &[String], keep_raw: bool) -> Vec<Draft> {
    play_as(&mut CodexCodec::recorded(), lines.iter().map(String::as_str), keep_raw)
}

#[test]
fn recordings_become_events() {
    for recording in recordings("codex") {
        insta::assert_snapshot!(recording.name.clone(), shown(&events(played(&recording.lines, false))));
    }
}

#[test]
fn recordings_keep_the_rules() {
    for recording in recordings("codex") {
        let began = |line: &String| line.contains(r#""thread.started""#) || line.contains(r#""thread":{"id""#);
        let began = recording.lines.iter().any(began);
        let told = played(&recording.lines, true);
        if recording.name != "as_badinput" {
            check_recording(&recording, &told, began);
        }
        check(&recording.name, &recording.lines, &told);
    }
}

static REAL: LazyLock<Vec<String>> =
    LazyLock::new(|| recordings("codex").into_iter().flat_map(|recording| recording.lines).collect());

const WORDS: [&str; 34] = [
    "thread.started",
    "turn.started",
    "turn.completed",
    "turn.failed",
    "item.started",
    "item.updated",
    "item.completed",
    "approval.required",
    "error",
    "session_meta",
    "turn_context",
    "event_msg",
    "response_item",
    "thread/started",
    "turn/started",
    "turn/completed",
    "turn/plan/updated",
    "turn/diff/updated",
    "item/started",
    "item/completed",
    "item/agentMessage/delta",
    "item/reasoning/summaryTextDelta",
    "item/commandExecution/outputDelta",
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
    "execCommandApproval",
    "applyPatchApproval",
    "serverRequest/resolved",
    "thread/tokenUsage/updated",
    "codex/event/token_count",
    "something/new",
];

const FIELDS: [&str; 24] = [
    "item",
    "id",
    "thread_id",
    "threadId",
    "turn",
    "turnId",
    "usage",
    "error",
    "message",
    "payload",
    "type",
    "status",
    "changes",
    "command",
    "text",
    "delta",
    "itemId",
    "requestId",
    "questions",
    "plan",
    "result",
    "tokenUsage",
    "availableDecisions",
    "_meta",
];

/// A line of a known kind with known fields, and anything in them.
fn odd_line() -> impl Strategy<Value = String> {
    let fields = || prop::collection::vec((prop::sample::select(&FIELDS[..]), value()), 0..6);
    (prop::sample::select(&WORDS[..]), fields(), fields(), any::<bool>()).prop_map(|(word, outer, inner, asks)| {
        let inner: serde_json::Map<_, _> = inner.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut line = match (word.contains('/'), asks) {
            (true, true) => json!({ "method": word, "id": 7, "params": inner }),
            (true, false) => json!({ "method": word, "params": inner }),
            (false, _) => json!({ "type": word, "item": inner }),
        };
        for (name, value) in outer {
            if line.get(name).is_none() {
                line[name] = value;
            }
        }
        line.to_string()
    })
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => "[^\n]{0,60}",
        5 => odd_line(),
        4 => bent_line(&REAL),
        6 => (0..REAL.len()).prop_map(|at| REAL[at].clone()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_lost_and_everything_ends(lines in prop::collection::vec(any_line(), 0..40)) {
        check("anything", &lines, &played(&lines, true));
    }
}
