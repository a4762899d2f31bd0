//! Anything at all in the place of an ACP agent's or Gemini's lines: the codec neither panics nor loses a line.

use std::sync::LazyLock;

use multitap_adapter::recorded;
use multitap_event::AgentType;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::anything::{bent_line, value};
use crate::invariants::check;
use crate::recording::{play_as, recordings};

static REAL: LazyLock<Vec<String>> = LazyLock::new(|| {
    let all = recordings("gemini").into_iter().filter(|recording| recording.name != "sj_list_sessions");
    all.flat_map(|recording| recording.lines).collect()
});

const UPDATES: [&str; 12] = [
    "agent_message_chunk",
    "agent_thought_chunk",
    "user_message_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "usage_update",
    "session_info_update",
    "something_new",
];

const FIELDS: [&str; 16] = [
    "content",
    "messageId",
    "toolCallId",
    "status",
    "kind",
    "title",
    "rawInput",
    "rawOutput",
    "locations",
    "entries",
    "availableCommands",
    "currentModeId",
    "configOptions",
    "cost",
    "_meta",
    "name",
];

const METHODS: [&str; 6] = [
    "session/request_permission",
    "fs/read_text_file",
    "terminal/create",
    "elicitation/create",
    "$/cancel_request",
    "_x/y",
];

fn status() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!("pending")), Just(json!("in_progress")), Just(json!("completed")), Just(json!("failed"))]
}

/// An update of a known kind with known fields, and anything in them.
fn odd_update() -> impl Strategy<Value = String> {
    let fields = prop::collection::vec((prop::sample::select(&FIELDS[..]), value()), 0..6);
    (prop::sample::select(&UPDATES[..]), fields, prop::option::of(status())).prop_map(|(kind, fields, status)| {
        let mut update = json!({ "sessionUpdate": kind, "toolCallId": "t1" });
        for (name, value) in fields {
            update[name] = value;
        }
        if let Some(status) = status {
            update["status"] = status;
        }
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
            .to_string()
    })
}

/// A request, notification or reply with anything in it.
fn odd_message() -> impl Strategy<Value = String> {
    (prop::option::of(prop::sample::select(&METHODS[..])), prop::option::of(0..6_u64), value(), value()).prop_map(
        |(method, id, params, result)| {
            let mut message = json!({ "jsonrpc": "2.0" });
            match method {
                Some(method) => {
                    message["method"] = method.into();
                    message["params"] = params;
                }
                None => message["result"] = result,
            }
            if let Some(id) = id {
                message["id"] = id.into();
            }
            message.to_string()
        },
    )
}

fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => "[^\n]{0,60}",
        1 => value().prop_map(|value| value.to_string()),
        4 => odd_update(),
        2 => odd_message(),
        4 => bent_line(&REAL),
        6 => (0..REAL.len()).prop_map(|at| REAL[at].clone()),
        1 => (0..REAL.len(), any::<prop::sample::Index>()).prop_map(|(at, cut)| {
            REAL[at].chars().take(cut.index(REAL[at].len())).collect()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_lost_and_everything_ends(
        lines in prop::collection::vec(any_line(), 0..40),
        agent in prop::sample::select(&[AgentType::Gemini, AgentType::Acp][..]),
    ) {
        let told = play_as(recorded(agent).unwrap().as_mut(), lines.iter().map(String::as_str), true);
        check("anything", &lines, &told);
    }
}
