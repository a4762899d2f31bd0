//! A private folder with the list of remote agents, which contains tokens, for one session.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

/// Prefix of the folder names.
const PREFIX: &str = "a2a-";
/// File that the folder's owner keeps locked while it lives.
const LOCK: &str = "lock";

/// A folder that only the user can open. Dropping it deletes it; [`clear_leftovers`] deletes those of killed
/// processes.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    folder: TempDir,
    _lock: File,
}

impl PrivateFolder {
    /// Creates a folder in the user's data folder, which sandboxed commands cannot see, or else in the system's
    /// folder for temporary files.
    pub(crate) fn make(data: Option<&Path>) -> io::Result<Self> {
        let folder = match data.map(|data| private().tempdir_in(run(data)?)) {
            Some(Ok(folder)) => folder,
            Some(Err(_)) | None => private().tempdir()?,
        };
        // Under another name until it is locked: an unlocked one counts as a leftover.
        let (early, name) = (folder.path().join("new"), folder.path().join(LOCK));
        let lock = File::create_new(&early)?;
        lock.lock()?;
        fs::rename(early, name)?;
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file readable by the user only, atomically.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(text.as_bytes())?;
        let path = self.path(name);
        file.persist(&path)?;
        Ok(path)
    }
}

/// The folder for files of live sessions.
fn run(data: &Path) -> io::Result<PathBuf> {
    let run = data.join("run");
    fs::create_dir_all(&run)?;
    Ok(run)
}

fn private() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder
}

/// Deletes the folders of killed processes.
pub(crate) fn clear_leftovers(data: &Path) {
    // Missing before the first session.
    let Ok(entries) = fs::read_dir(data.join("run")) else { return };
    for folder in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let is_ours = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
        // Without a lock file it is just being created, and empty.
        let Some(lock) = File::open(folder.join(LOCK)).ok().filter(|_| is_ours) else { continue };
        match lock.try_lock() {
            Ok(()) => {
                fs::remove_dir_all(&folder).ok(); // another process may have removed it
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_dead_are_cleared() {
        let data = tempfile::tempdir().unwrap();
        let alive = PrivateFolder::make(Some(data.path())).unwrap();
        let file = alive.write("agents.json", "[]").unwrap();
        let dead = PrivateFolder::make(Some(data.path())).unwrap();
        let left = dead.path("agents.json");
        dead.write("agents.json", "[]").unwrap();
        // As if its process had been killed: the lock is gone, the folder is not.
        let PrivateFolder { folder, _lock } = dead;
        let folder = folder.keep();
        drop(_lock);
        let others = data.path().join("run/others");
        fs::create_dir_all(others.join("lock")).unwrap();
        clear_leftovers(data.path());
        assert!(file.exists() && others.exists());
        assert!(!left.exists() && !folder.exists());
        drop(alive);
        assert!(!file.exists(), "it goes with its owner");
    }
}
