//! What clients are shown of a session, checked without a server: the scripts that every encoder shares.

mod property;
mod rules;
mod shown;
mod snapshot;

use multitap_a2a::Encoding;
use multitap_a2a::devtool::Spelling;
use multitap_event::Event;
use multitap_testkit::script;
use serde_json::Value;

use super::frame::{Form, Frame};
use super::project::Projector;

const FORMS: [(&str, Form); 4] = [
    ("0.3", Form { encoding: Encoding::V0_3, spelling: Spelling::Specified }),
    ("0.3 as coderAgent", Form { encoding: Encoding::V0_3, spelling: Spelling::Coder }),
    ("1.0", Form { encoding: Encoding::V1_0, spelling: Spelling::Specified }),
    ("1.0 as coderAgent", Form { encoding: Encoding::V1_0, spelling: Spelling::Coder }),
];

/// The frames of these events.
fn frames(events: &[Event]) -> Vec<Frame> {
    let mut projector = Projector::new(events.first().map_or("none", |event| event.session_id.as_str()));
    let mut frames = Vec::new();
    for event in events {
        projector.apply(event, &mut frames);
    }
    frames
}

fn script_frames(name: &str) -> Vec<Frame> {
    frames(&script::events(name).unwrap())
}

/// Frames as clients of that form get them.
fn written(frames: &[Frame], form: Form) -> Vec<Value> {
    frames.iter().map(|frame| serde_json::from_str(frame.json(form)).unwrap()).collect()
}
