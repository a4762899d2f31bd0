//! Reads a recording and plays its lines through a codec.

use std::path::{Path, PathBuf};

use multitap_adapter::{ClaudeCodec, Codec, End, Step, drafts};
use multitap_event::{Draft, Event, SessionId, Timestamp};
use multitap_testkit::fixture;

/// What a CLI wrote to its stdout in one recorded run.
pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) lines: Vec<String>,
}

pub(crate) fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Every recording of an agent.
pub(crate) fn recordings(agent: &str) -> Vec<Recording> {
    let lines = |fixture: &fixture::Fixture| fixture.stdout().map(str::to_owned).collect();
    let all = fixture::all(agent).unwrap();
    all.into_iter().map(|fixture| Recording { lines: lines(&fixture), name: fixture.case }).collect()
}

pub(crate) fn now() -> Timestamp {
    Timestamp::parse("2026-11-15T12:00:00Z").unwrap()
}

/// The events of a recorded stream, with its lines kept if wished.
pub(crate) fn play<'a>(lines: impl IntoIterator<Item = &'a str>, keep_raw: bool) -> Vec<Draft> {
    play_as(&mut ClaudeCodec::recorded(), lines, keep_raw)
}

/// The same for a stream of any agent.
pub(crate) fn play_as<'a>(
    codec: &mut dyn Codec,
    lines: impl IntoIterator<Item = &'a str>,
    keep_raw: bool,
) -> Vec<Draft> {
    let mut told = Vec::new();
    for line in lines.into_iter().filter(|line| !line.trim().is_empty()) {
        let step: Step = codec.decode(line, now());
        told.extend(drafts(step, Some(line), keep_raw, now()));
    }
    told.extend(drafts(codec.end(&End::InputEnded, now()), None, keep_raw, now()));
    told
}

/// The same as entries of a log.
pub(crate) fn events(drafts: Vec<Draft>) -> Vec<Event> {
    let stamp = |(at, draft): (usize, Draft)| draft.stamp(SessionId::from("session"), at as u64 + 1);
    drafts.into_iter().enumerate().map(stamp).collect()
}
