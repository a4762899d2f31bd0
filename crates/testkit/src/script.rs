//! Event scripts: short sessions as unified events, one a line, for everything that shows events to people or clients.
//!
//! They are the same for every encoder, so that something new shows in all of them at once. Made from runs of the
//! built-in agent's rehearsal and from recordings of the real CLIs; ids, times and folders are fixed, long texts cut.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/scripts")
}

pub fn names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder()).context("read the folder of scripts")? {
        let path = entry.context("read the folder of scripts")?.path();
        if path.extension().is_some_and(|kind| kind == "jsonl") {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// The events of a script, as whatever the test reads them.
pub fn events<T: DeserializeOwned>(name: &str) -> Result<Vec<T>> {
    let path = folder().join(format!("{name}.jsonl"));
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| serde_json::from_str(line).with_context(|| format!("{name}.jsonl, line {}", at + 1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_script_is_a_log_of_one_session() {
        let names = names().unwrap();
        assert!(names.len() > 30, "{names:?}");
        for name in names {
            let events: Vec<Value> = events(&name).unwrap();
            for (seq, event) in (1..).zip(&events) {
                assert_eq!(event["seq"], seq, "{name}");
                assert_eq!(event["sessionId"], events[0]["sessionId"], "{name}");
                assert!(
                    seq == 1 || event["timestamp"].as_str() >= events[seq - 2]["timestamp"].as_str(),
                    "{name} {seq}"
                );
            }
            assert_eq!(events[events.len() - 1]["type"], "sessionEnded", "{name}");
        }
    }
}
