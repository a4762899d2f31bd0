//! What holds for every stream of events, whatever the agent wrote.

use std::collections::HashMap;

use multitap_event::{Draft, EventKind};

use crate::recording::{Recording, play, recordings};

/// Checks what must hold even for nonsense: nothing lost, everything closed, one end.
pub(crate) fn check(from: &str, lines: &[String], told: &[Draft]) {
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.trim().is_empty()).collect();
    let raw: Vec<&str> = told.iter().flat_map(|draft| draft.raw.iter().map(AsRef::as_ref)).collect();
    assert_eq!(raw, lines, "{from}: every line stands in exactly one event, in order");

    let ends = told.iter().filter(|draft| matches!(draft.kind, EventKind::SessionEnded(_))).count();
    assert_eq!(ends, 1, "{from}: one end");
    assert!(
        matches!(told.last().map(|draft| &draft.kind), Some(EventKind::SessionEnded(_))),
        "{from}: the end is last"
    );
    let starts: Vec<usize> = positions(told, |kind| matches!(kind, EventKind::SessionStarted(_)));
    assert!(starts.len() <= 1, "{from}: one start");

    let mut tools: HashMap<&str, (u32, u32)> = HashMap::new();
    let mut turn = None;
    let mut questions: HashMap<&str, u32> = HashMap::new();
    for draft in told {
        match &draft.kind {
            EventKind::ToolStarted(tool) => {
                let counts = tools.entry(tool.tool_id.as_str()).or_default();
                assert_eq!(*counts, (0, 0), "{from}: {} begins twice", tool.tool_id);
                counts.0 = 1;
            }
            EventKind::ToolCompleted(tool) => tools.entry(tool.tool_id.as_str()).or_default().1 += 1,
            EventKind::TurnStarted { turn_id } => {
                assert_eq!(turn, None, "{from}: {turn_id} begins in another turn");
                turn = Some(turn_id);
            }
            EventKind::TurnCompleted(end) => {
                assert_eq!(turn.take(), end.turn_id.as_ref(), "{from}: the turn that ends is the one that runs");
            }
            EventKind::PermissionAsked(question) => *questions.entry(question.question_id.as_str()).or_default() += 1,
            EventKind::PermissionWithdrawn(gone) => *questions.entry(gone.question_id.as_str()).or_default() -= 1,
            _ => {}
        }
    }
    assert_eq!(turn, None, "{from}: a turn does not end");
    for (tool, counts) in tools {
        assert!(counts.1 == 1, "{from}: tool {tool} ended {} times", counts.1);
    }
    assert!(questions.values().all(|open| *open == 0), "{from}: a question stays open");
}

fn positions(told: &[Draft], is: impl Fn(&EventKind) -> bool) -> Vec<usize> {
    told.iter().enumerate().filter(|(_, draft)| is(&draft.kind)).map(|(at, _)| at).collect()
}

/// What holds for a real recording besides. `began` says whether a session begins in it.
pub(crate) fn check_recording(recording: &Recording, told: &[Draft], began: bool) {
    check(&recording.name, &recording.lines, told);
    let name = &recording.name;
    let is_unknown = |draft: &&Draft| matches!(draft.kind, EventKind::Unrecognized { .. });
    assert_eq!(told.iter().find(is_unknown), None, "{name}: everything is understood");
    let first = told.iter().find(|draft| !matches!(draft.kind, EventKind::RawDelta { .. }));
    assert_eq!(
        matches!(first.map(|draft| &draft.kind), Some(EventKind::SessionStarted(_))),
        began,
        "{name}: begins so"
    );

    // All that was said since the turn's last tool or break is what the turn says it said.
    let mut said = String::new();
    let mut last_message = None;
    for draft in told {
        match &draft.kind {
            EventKind::TextChunk(chunk) if chunk.parent_tool_id.is_none() => {
                if last_message != chunk.message_id {
                    said.clear();
                }
                last_message.clone_from(&chunk.message_id);
                said.push_str(&chunk.content);
            }
            EventKind::TurnCompleted(end) => {
                if let Some(text) = &end.text {
                    assert_eq!(said.trim_end(), text.trim_end(), "{name}: text is neither lost nor repeated");
                }
                said.clear();
            }
            _ => {}
        }
    }
}

#[test]
fn recordings_keep_the_rules() {
    for recording in recordings("claude") {
        let told = play(recording.lines.iter().map(String::as_str), true);
        let began = recording.lines.iter().any(|line| line.contains(r#""subtype":"init""#));
        check_recording(&recording, &told, began);
    }
}

/// A recording that was lost would be missed by nobody else.
#[test]
fn all_recordings_are_here() {
    for (agent, count) in
        [("claude", 74), ("codex", 41), ("gemini", 42), ("claude-agent-acp", 5), ("codex-acp", 6), ("opencode", 5)]
    {
        assert!(recordings(agent).len() >= count, "{agent}: {} recordings", recordings(agent).len());
    }
}
