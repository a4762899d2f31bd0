//! The private door of a session: a Unix socket for programs of the same user on this machine, with or without a door
//! for others.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use multitap_event::SessionId;
use multitap_hub::{Journal, Session};
use multitap_serve::{DoorError, Limits, OpenDoor};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::door::Shared;

/// The longest socket path that every system accepts.
const LONGEST: usize = 100;
/// Attempts, and the delay between them, if a socket is in use: the session may just have been closed.
const ATTEMPTS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(100);

/// An open private door.
#[derive(Debug)]
pub(crate) struct Private {
    door: OpenDoor,
    /// Folder of the socket, if the path in the data folder would be too long.
    _folder: Option<TempDir>,
}

impl Private {
    pub(crate) async fn open(data: &Path, session: Session, journal: Arc<dyn Journal>) -> Result<Self, DoorError> {
        let (socket, folder) = place(data, session.id())?;
        let only = Arc::new(Shared::of(session, journal));
        let mut attempt = 1;
        loop {
            match OpenDoor::open_private(&socket, Limits::default(), only.clone()).await {
                Ok(door) => return Ok(Self { door, _folder: folder }),
                Err(DoorError::PrivateInUse { .. }) if attempt < ATTEMPTS => sleep(BETWEEN).await,
                Err(error) => return Err(error),
            }
            attempt += 1;
        }
    }

    pub(crate) fn socket(&self) -> Option<&Path> {
        self.door.socket()
    }

    pub(crate) async fn stop(self) {
        self.door.stop().await;
    }
}

/// The folders with the sockets and notes of sessions.
pub(crate) fn folders(data: &Path) -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("multitap"));
    [data.join("run")].into_iter().chain(runtime.filter(|folder| folder.is_absolute())).collect()
}

/// The path of the socket: in the folder of the note, or in a folder with a shorter name.
fn place(data: &Path, session: &SessionId) -> Result<(PathBuf, Option<TempDir>), DoorError> {
    let name = format!("{session}.sock");
    let usual = data.join("run").join(&name);
    if usual.as_os_str().len() <= LONGEST {
        return Ok((usual, None));
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("multitap").join(&name));
    if let Some(short) = runtime.filter(|path| path.is_absolute() && path.as_os_str().len() <= LONGEST) {
        return Ok((short, None));
    }
    let failed = |source| DoorError::Private { path: usual.clone(), source };
    let folder = tempfile::Builder::new().prefix("mt-").tempdir().map_err(failed)?;
    Ok((folder.path().join("s.sock"), Some(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_lies_beside_its_note_unless_that_is_too_deep() {
        let id = SessionId::from("01a1");
        let (usual, folder) = place(Path::new("/home/ann/.local/share/multitap"), &id).unwrap();
        assert_eq!((usual, folder.is_none()), ("/home/ann/.local/share/multitap/run/01a1.sock".into(), true));
        let deep = PathBuf::from("/").join("d".repeat(120));
        let (short, _folder) = place(&deep, &id).unwrap();
        assert!(short.as_os_str().len() <= LONGEST, "{}", short.display());
    }
}
