//! Marker files beside the database, one per lease: events were sent out that the log does not contain.
//!
//! If the log cannot be written its session continues in memory, and the log cannot record that itself. An empty file
//! can usually still be created: it takes no space on a full disk, and nobody has it locked. It is deleted when the
//! log has recorded the gap.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::PathBuf;

use multitap_hub::Owner;

#[derive(Debug)]
pub(super) struct GapMarkers {
    log: PathBuf,
}

impl GapMarkers {
    /// The markers beside that file.
    pub(super) fn of(log: PathBuf) -> Self {
        Self { log }
    }

    fn place(&self, owner: &Owner) -> PathBuf {
        let mut path = self.log.clone().into_os_string();
        path.push("-unkept-");
        path.push(&owner.0);
        path.into()
    }

    /// Creates the marker. If this fails too, nothing can be done.
    pub(super) fn note(&self, owner: &Owner) {
        let mut file = OpenOptions::new();
        file.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut file, 0o600);
        match file.open(self.place(owner)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => {
                tracing::warn!(%error, "cannot record that the log lacks events that clients have seen")
            }
        }
    }

    pub(super) fn is_noted(&self, owner: &Owner) -> bool {
        // If this fails, assume that it exists: an unneeded new epoch costs a snapshot, a missing one a wrong log.
        self.place(owner).try_exists().unwrap_or(true)
    }

    /// The log records it now, or there is nothing to record.
    pub(super) fn forget(&self, owner: &Owner) {
        // Usually there is none.
        fs::remove_file(self.place(owner)).ok();
    }
}
