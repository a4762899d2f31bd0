//! The note that a live session leaves in the user's data folder, so that others can find it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use multitap_event::{SessionId, Timestamp};
use multitap_hub::Journal;
use serde::Deserialize;
use serde_json::json;

use crate::host::data;

/// `run/SESSION.json`, for the user's eyes only; gone with the session.
#[derive(Debug)]
pub(crate) struct LiveNote {
    path: PathBuf,
}

impl LiveNote {
    /// Leaves the note, with the address at which others may join the session if there is one. A note that a process
    /// left which was killed is overwritten.
    pub(crate) fn leave(data: &Path, session: &SessionId, address: Option<&str>) -> io::Result<Self> {
        let run = data.join("run");
        fs::create_dir_all(&run)?;
        let path = place(data, session);
        let mut note = json!({ "sessionId": session, "pid": std::process::id(), "since": Timestamp::now() });
        if let Some(address) = address {
            note["address"] = address.into();
        }
        // Never half a note, and never one that others may read.
        let mut file = tempfile::Builder::new().prefix(".note").tempfile_in(&run)?;
        writeln!(file, "{note}")?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(Self { path })
    }
}

/// Where such a note lies.
fn place(data: &Path, session: &SessionId) -> PathBuf {
    data.join("run").join(format!("{session}.json"))
}

/// Where others may join a session that is live in that process, if it takes them in.
pub(crate) fn address(data: &Path, session: &SessionId, pid: u32) -> Option<String> {
    #[derive(Deserialize)]
    struct Note {
        pid: u32,
        address: Option<String>,
    }
    let note: Note = serde_json::from_slice(&fs::read(place(data, session)).ok()?).ok()?;
    // One that was killed may have left its note behind.
    note.address.filter(|_| note.pid == pid)
}

/// Removes the notes of processes that were killed: those of sessions that are kept and that no living process has.
pub(crate) async fn clear_away(journal: &dyn Journal) {
    let Some(run) = data().map(|data| data.join("run")) else { return };
    // None are there before the first session.
    let Ok(notes) = fs::read_dir(run) else { return };
    for path in notes.filter_map(|note| Some(note.ok()?.path())) {
        let is_note = path.extension().is_some_and(|end| end == "json");
        let Some(name) = path.file_stem().filter(|_| is_note).and_then(|name| name.to_str()) else { continue };
        let Ok(left) = fs::read(&path) else { continue };
        let Ok(found) = journal.find(name.to_owned()).await else { return };
        let is_over = found.iter().any(|record| record.id.as_str() == name && record.live.is_none());
        // Somebody may have taken it up meanwhile, and left a note of its own.
        if is_over && fs::read(&path).is_ok_and(|now| now == left) {
            fs::remove_file(&path).ok(); // somebody else may have been quicker
        }
    }
}

impl Drop for LiveNote {
    fn drop(&mut self) {
        // It may have been cleared away already.
        fs::remove_file(&self.path).ok();
    }
}
