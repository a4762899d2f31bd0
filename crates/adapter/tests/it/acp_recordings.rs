//! Every recording of the real ACP agents without a codec of their own, and what became of it.

use multitap_adapter::recorded;
use multitap_event::{AgentType, EventKind};

use crate::invariants::check;
use crate::recording::{events, play_as, recordings};
use crate::shown::shown;

const AGENTS: [&str; 3] = ["claude-agent-acp", "codex-acp", "opencode"];

#[test]
fn recordings_become_events() {
    for agent in AGENTS {
        for recording in recordings(agent) {
            let mut codec = recorded(AgentType::Acp).unwrap();
            let lines = recording.lines.iter().map(String::as_str);
            let told = play_as(codec.as_mut(), lines, false);
            insta::assert_snapshot!(format!("{agent}_{}", recording.name), shown(&events(told)));
        }
    }
}

#[test]
fn recordings_keep_the_rules() {
    for agent in AGENTS {
        for recording in recordings(agent) {
            let name = format!("{agent} {}", recording.name);
            let mut codec = recorded(AgentType::Acp).unwrap();
            let told = play_as(codec.as_mut(), recording.lines.iter().map(String::as_str), true);
            check(&name, &recording.lines, &told);
            let unknown = told.iter().find(|draft| matches!(draft.kind, EventKind::Unrecognized { .. }));
            assert_eq!(unknown, None, "{name}: everything is understood");
            let failed = told.iter().find(|draft| matches!(draft.kind, EventKind::Error(_)));
            assert_eq!(failed, None, "{name}: nothing goes wrong");
        }
    }
}
