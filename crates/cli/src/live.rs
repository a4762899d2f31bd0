//! The note that a live session leaves in the user's data folder, so that others can find it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use multitap_event::{SessionId, Timestamp};
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
        let path = run.join(format!("{session}.json"));
        let note = json!({ "sessionId": session, "pid": std::process::id(), "since": Timestamp::now() });
        // Never half a note, and never one that others may read.
        let mut file = tempfile::Builder::new().prefix(".note").tempfile_in(&run)?;
        writeln!(file, "{note}")?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok(Self { path })
    }
}

impl Drop for LiveNote {
    fn drop(&mut self) {
        // It may have been cleared away already.
        fs::remove_file(&self.path).ok();
    }
}
