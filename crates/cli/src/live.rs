//! The note that a live session leaves in the user's data folder, so that others can find it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use multitap_event::{SessionId, Timestamp};
use serde::Deserialize;
use serde_json::json;

/// `run/SESSION.json`, for the user's eyes only; gone with the session.
#[derive(Debug)]
pub(crate) struct LiveNote {
    path: PathBuf,
}

impl LiveNote {
    /// Leaves the note. One that a process left which was killed is overwritten.
    pub(crate) fn leave(data: &Path, session: &SessionId) -> io::Result<Self> {
        let run = data.join("run");
        fs::create_dir_all(&run)?;
        let path = place(data, session);
        let note = json!({ "sessionId": session, "pid": std::process::id(), "since": Timestamp::now() });
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

impl Drop for LiveNote {
    fn drop(&mut self) {
        // It may have been cleared away already.
        fs::remove_file(&self.path).ok();
    }
}
