//! A private door: a Unix socket for programs of its own user on this machine.
//!
//! The folder has mode 0700 and the socket 0600. Where the system reports it, the user of each connection is checked
//! too.

use std::io;
use std::path::{Path, PathBuf};

use super::DoorError;

/// The socket file, removed on drop.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
}

impl SocketFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // It may have been removed already.
        std::fs::remove_file(&self.path).ok();
    }
}

pub(super) fn not_there(path: &Path, source: io::Error) -> DoorError {
    DoorError::Private { path: path.to_owned(), source }
}

#[cfg(unix)]
pub(super) use self::unix::{is_same_user, listen};

#[cfg(unix)]
mod unix {
    use std::fs::{self, DirBuilder, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
    use std::os::unix::net::UnixStream as Probe;
    use std::path::Path;

    use tokio::net::{UnixListener, UnixStream};

    use super::super::DoorError;
    use super::{SocketFile, not_there};

    /// Listens on that path. Replaces a socket that a killed process left, but not one that is in use.
    pub(in crate::http) fn listen(path: &Path) -> Result<(UnixListener, SocketFile), DoorError> {
        let failed = |source| not_there(path, source);
        private_folder(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        if path.symlink_metadata().is_ok() {
            if Probe::connect(path).is_ok() {
                return Err(DoorError::PrivateInUse { path: path.to_owned() });
            }
            fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let file = SocketFile { path: path.to_owned() };
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok((listener, file))
    }

    /// Creates the folder and makes it private.
    fn private_folder(folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let found = fs::symlink_metadata(folder)?;
        if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
            let why = format!("{} is not a folder of this user", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(folder, Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// Whether the peer is the same user. If the system does not report it, the folder's mode has ensured it.
    pub(in crate::http) fn is_same_user(stream: &UnixStream) -> bool {
        stream.peer_cred().map_or(true, |peer| peer.uid() == rustix::process::geteuid().as_raw())
    }
}
