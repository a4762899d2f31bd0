//! Every recording of the real Claude Code, and what became of it.

use crate::recording::{events, play, recordings};
use crate::shown::shown;

#[test]
fn recordings_become_events() {
    for recording in recordings("claude") {
        let played = play(recording.lines.iter().map(String::as_str), false);
        insta::assert_snapshot!(recording.name.clone(), shown(&events(played)));
    }
}
