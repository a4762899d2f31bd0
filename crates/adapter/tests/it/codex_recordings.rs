//! Every recording of the real Codex, and what became of it.

use multitap_adapter::CodexCodec;

use crate::recording::{events, play_as, recordings};
use crate::shown::shown;

#[test]
fn recordings_become_events() {
    for recording in recordings("codex") {
        let played = play_as(CodexCodec::recorded(), recording.lines.iter().map(String::as_str), false);
        insta::assert_snapshot!(recording.name.clone(), shown(&events(played)));
    }
}
