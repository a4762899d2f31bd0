//! Reads a recording and plays its lines through a codec.

use std::fs;
use std::path::{Path, PathBuf};

use multitap_adapter::{ClaudeCodec, Codec, End, Step, drafts};
use multitap_event::{Draft, Event, SessionId, Timestamp};
use serde_json::Value;

/// One recorded run of a CLI.
pub(crate) struct Recording {
    pub(crate) name: String,
    /// What it wrote to its stdout.
    pub(crate) lines: Vec<String>,
}

pub(crate) fn fixtures(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(agent)
}

/// Every recording of an agent, whatever its version, by name.
pub(crate) fn recordings(agent: &str) -> Vec<Recording> {
    let mut files = Vec::new();
    for version in fs::read_dir(fixtures(agent)).unwrap() {
        let version = version.unwrap().path();
        files.extend(fs::read_dir(version).unwrap().map(|file| file.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(file: &Path) -> Recording {
    let text = fs::read_to_string(file).unwrap();
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["dir"] == "out").then(|| line["line"].as_str().unwrap().to_owned())
    };
    let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
    Recording { name, lines: text.lines().filter_map(line).collect() }
}

pub(crate) fn now() -> Timestamp {
    Timestamp::parse("2026-11-15T12:00:00Z").unwrap()
}

/// The events of a recorded stream, with its lines kept if wished.
pub(crate) fn play<'a>(lines: impl IntoIterator<Item = &'a str>, keep_raw: bool) -> Vec<Draft> {
    play_as(ClaudeCodec::recorded(), lines, keep_raw)
}

/// The same for a stream of any agent.
pub(crate) fn play_as<'a>(
    mut codec: impl Codec,
    lines: impl IntoIterator<Item = &'a str>,
    keep_raw: bool,
) -> Vec<Draft> {
    let mut told = Vec::new();
    for line in lines.into_iter().filter(|line| !line.trim().is_empty()) {
        let step: Step = codec.decode(line, now());
        told.extend(drafts(step, Some(line), keep_raw, now()));
    }
    told.extend(drafts(codec.end(End::InputEnded, now()), None, keep_raw, now()));
    told
}

/// The same as entries of a log.
pub(crate) fn events(drafts: Vec<Draft>) -> Vec<Event> {
    let stamp = |(at, draft): (usize, Draft)| draft.stamp(SessionId::from("session"), at as u64 + 1);
    drafts.into_iter().enumerate().map(stamp).collect()
}
