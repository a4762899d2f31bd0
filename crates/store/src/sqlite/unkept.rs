//! Notes beside the file, one for a lease: events were told that the log does not have.
//!
//! When the log cannot be written its session goes on in memory, and the log cannot say so itself. An empty file can
//! mostly still be made: it takes no room on a full disk, and nobody has it locked. It is gone when the log has said it.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::PathBuf;

use multitap_hub::Owner;

#[derive(Debug)]
pub(super) struct Unkept {
    log: PathBuf,
}

impl Unkept {
    /// The notes beside that file.
    pub(super) fn of(log: PathBuf) -> Self {
        Self { log }
    }

    fn place(&self, owner: &Owner) -> PathBuf {
        let mut path = self.log.clone().into_os_string();
        path.push("-unkept-");
        path.push(&owner.0);
        path.into()
    }

    /// Leaves the note. If not even that can be done, nothing can.
    pub(super) fn note(&self, owner: &Owner) {
        let mut file = OpenOptions::new();
        file.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
        match file.open(self.place(owner)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => tracing::warn!(%error, "it cannot be noted that events are told which are not kept"),
        }
    }

    pub(super) fn is_noted(&self, owner: &Owner) -> bool {
        // One that cannot be looked for may be there: a new epoch too many costs a snapshot, one too few a lie.
        self.place(owner).try_exists().unwrap_or(true)
    }

    /// The log has it now, or there is nothing to say.
    pub(super) fn forget(&self, owner: &Owner) {
        // Most often there is none.
        fs::remove_file(self.place(owner)).ok();
    }
}
