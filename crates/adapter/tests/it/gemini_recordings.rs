//! Every recording of the real Gemini CLI, over ACP and not, and what became of it.

use multitap_adapter::{Codec, recorded};
use multitap_event::{AgentType, Draft, EventKind};

use crate::invariants::check;
use crate::recording::{Recording, events, play_as, recordings};
use crate::schema::Schemas;
use crate::shown::shown;

fn codec() -> Box<dyn Codec> {
    recorded(AgentType::Gemini).unwrap()
}

fn play(recording: &Recording, keep_raw: bool) -> Vec<Draft> {
    play_as(codec().as_mut(), recording.lines.iter().map(String::as_str), keep_raw)
}

#[test]
fn recordings_become_events() {
    for recording in recordings("gemini") {
        insta::assert_snapshot!(recording.name.clone(), shown(&events(play(&recording, false))));
    }
}

#[test]
fn recordings_keep_the_rules() {
    for recording in recordings("gemini") {
        let name = &recording.name;
        let told = play(&recording, true);
        check(name, &recording.lines, &told);
        // A list for people is no stream.
        if name != "sj_list_sessions" {
            let unknown = told.iter().find(|draft| matches!(draft.kind, EventKind::Unrecognized { .. }));
            assert_eq!(unknown, None, "{name}: everything is understood");
        }
        let first = told.iter().find(|draft| !matches!(draft.kind, EventKind::RawDelta { .. }));
        let began = recording.lines.iter().any(|line| line.contains("\"init\"") || line.contains("\"currentModeId\""));
        let starts = matches!(first.map(|draft| &draft.kind), Some(EventKind::SessionStarted(_)));
        assert_eq!(starts, began, "{name}: begins so");
        text_is_told_once(name, &told);
    }
}

/// All that was said in the turn's last message is what the turn says it said.
fn text_is_told_once(name: &str, told: &[Draft]) {
    let mut said = String::new();
    let mut last_message = None;
    for draft in told {
        match &draft.kind {
            EventKind::TextChunk(chunk) => {
                if last_message != chunk.message_id {
                    said.clear();
                }
                last_message.clone_from(&chunk.message_id);
                said.push_str(&chunk.content);
            }
            EventKind::TurnCompleted(end) => {
                if let Some(text) = &end.text {
                    assert_eq!(&said, text, "{name}: text is neither lost nor repeated");
                }
                said.clear();
            }
            _ => {}
        }
    }
}

#[test]
fn every_recording_fits_both_schemas() {
    let schemas = Schemas::new();
    for recording in recordings("gemini") {
        schemas.check(&recording.name, &events(play(&recording, true)));
    }
}
