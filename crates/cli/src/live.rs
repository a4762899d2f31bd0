//! A live session's file ("note") in the user's data folder, with which other processes find the session.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use multitap_event::{SessionId, Timestamp};
use multitap_hub::Journal;
use serde::{Deserialize, Serialize};

use crate::host::data;

/// `run/SESSION.json`, readable by its user only; deleted with the session.
#[derive(Debug)]
pub(crate) struct LiveNote {
    path: PathBuf,
    note: Note,
}

impl LiveNote {
    /// Writes the note, with the address at which other clients may join and the socket for programs of this user, if
    /// any. The note of a killed process is overwritten.
    pub(crate) fn leave(
        data: &Path,
        session: &SessionId,
        address: Option<&str>,
        socket: Option<&Path>,
    ) -> io::Result<Self> {
        let note = Note {
            session_id: session.clone(),
            pid: std::process::id(),
            since: Timestamp::now(),
            address: address.map(str::to_owned),
            socket: socket.map(Path::to_owned),
        };
        let left = Self { path: place(data, session), note };
        left.write()?;
        Ok(left)
    }

    /// Changes the address, or removes it.
    pub(crate) fn moved(&mut self, address: Option<&str>) -> io::Result<()> {
        self.note.address = address.map(str::to_owned);
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let run = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(run)?;
        // Written atomically, and never readable by others.
        let mut file = tempfile::Builder::new().prefix(".note").tempfile_in(run)?;
        writeln!(file, "{}", serde_json::to_string(&self.note)?)?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

fn place(data: &Path, session: &SessionId) -> PathBuf {
    data.join("run").join(format!("{session}.json"))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Note {
    pub(crate) session_id: SessionId,
    pub(crate) pid: u32,
    pub(crate) since: Timestamp,
    /// Address for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// Socket for programs of this user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<PathBuf>,
}

/// Whether clients can join the session, which is live in that process.
pub(crate) fn takes_others(data: &Path, session: &SessionId, pid: u32) -> bool {
    // A killed process may have left its note behind.
    read(&place(data, session)).is_some_and(|note| note.pid == pid && (note.address.is_some() || note.socket.is_some()))
}

/// All notes, newest first; some may belong to killed processes.
pub(crate) fn notes(data: &Path) -> Vec<Note> {
    let found = fs::read_dir(data.join("run")).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut notes: Vec<Note> = found.filter(|path| is_note(path)).filter_map(|path| read(&path)).collect();
    notes.sort_by_key(|note| std::cmp::Reverse(note.since));
    notes
}

fn read(path: &Path) -> Option<Note> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn is_note(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "json")
}

/// Deletes the notes of killed processes: those of stored sessions that no living process has.
pub(crate) async fn clear_away(journal: &dyn Journal) {
    let Some(run) = data().map(|data| data.join("run")) else { return };
    // Missing before the first session.
    let Ok(mut notes) = tokio::fs::read_dir(run).await else { return };
    while let Ok(Some(note)) = notes.next_entry().await {
        let path = note.path();
        let Some(name) = path.file_stem().filter(|_| is_note(&path)).and_then(|name| name.to_str()) else { continue };
        let Ok(left) = tokio::fs::read(&path).await else { continue };
        let Ok(found) = journal.find(name.to_owned()).await else { return };
        let is_over = found.iter().any(|record| record.id.as_str() == name && record.live.is_none());
        // Another process may have resumed it meanwhile, with a note of its own.
        if is_over && tokio::fs::read(&path).await.is_ok_and(|now| now == left) {
            tokio::fs::remove_file(&path).await.ok(); // another process may have removed it
            tokio::fs::remove_file(path.with_extension("sock")).await.ok(); // and its socket, if it had one
        }
    }
}

impl Drop for LiveNote {
    fn drop(&mut self) {
        // It may have been deleted already.
        fs::remove_file(&self.path).ok();
    }
}
