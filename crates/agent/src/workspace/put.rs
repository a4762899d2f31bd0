//! Writes a file of the workspace: whole or not at all, never through a link, and only over the expected content.
//!
//! The text goes to a new file beside the old one, which is then renamed over it. Between the last check of the old
//! file and the rename somebody else may still write to it; no system call closes that gap for a regular file.

use std::io;

use super::Inside;
use super::open::OpenError;
use crate::seen::Stamp;

/// The content of a file when a change to it was computed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ExpectedContent {
    Nothing,
    Text(String),
    /// Not text, or too large.
    Other(Stamp),
}

/// The write failed; the file is unchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PutError {
    #[error("it changed on disk meanwhile")]
    Changed,
    #[error("it is read-only")]
    ReadOnly,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl ExpectedContent {
    fn is_in(&self, file: std::fs::File) -> io::Result<bool> {
        match self {
            Self::Nothing => Ok(false),
            Self::Text(text) => {
                let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
                if file.metadata()?.len() != length {
                    return Ok(false);
                }
                let mut now = Vec::with_capacity(text.len());
                io::Read::read_to_end(&mut io::Read::take(file, length.saturating_add(1)), &mut now)?;
                Ok(now == text.as_bytes())
            }
            Self::Other(stamp) => Ok(!stamp.differs(&Stamp::of(file)?)),
        }
    }
}

#[cfg(unix)]
pub(crate) use at::put;
#[cfg(not(unix))]
pub(crate) use by_path::put;

fn passing_name() -> String {
    format!(".multitap-{}.tmp", uuid::Uuid::now_v7().simple())
}

#[cfg(unix)]
mod at {
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::{self, Write};
    use std::os::fd::OwnedFd;

    use rustix::fs::{Access, AtFlags, Mode, OFlags, Stat, accessat, fchmod, fchown, openat, renameat, unlinkat};
    use rustix::io::Errno;

    use super::{ExpectedContent, Inside, OpenError, PutError, passing_name};
    use crate::workspace::open::{Missing, parent, plain};

    /// Writes the text, if the current content is the expected one. Creates missing folders.
    pub(crate) fn put(inside: &Inside, held: &ExpectedContent, text: &[u8]) -> Result<(), PutError> {
        let missing = if *held == ExpectedContent::Nothing { Missing::Create } else { Missing::Refuse };
        let (folder, name) = match parent(inside, missing) {
            Err(OpenError::Missing) => return Err(PutError::Changed),
            opened => opened?,
        };
        let old = match plain(&folder, name) {
            Ok((file, old)) => {
                if !held.is_in(file)? {
                    return Err(PutError::Changed);
                }
                // Renaming over it would bypass the file's own protection.
                if accessat(&folder, name, Access::WRITE_OK, AtFlags::empty()).is_err() {
                    return Err(PutError::ReadOnly);
                }
                Some(old)
            }
            Err(OpenError::Missing) if *held == ExpectedContent::Nothing => None,
            Err(OpenError::Missing) => return Err(PutError::Changed),
            Err(error) => return Err(error.into()),
        };
        let passing = passing_name();
        let written = write_new(&folder, &passing, old.as_ref(), text)
            .and_then(|()| take_name(&folder, &passing, name, old.as_ref()));
        if written.is_err() {
            // Leave nothing behind; if even that fails, the first error is the one to report.
            unlinkat(&folder, &passing, AtFlags::empty()).ok();
        }
        written
    }

    fn write_new(folder: &OwnedFd, name: &str, old: Option<&Stat>, text: &[u8]) -> Result<(), PutError> {
        let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A new file gets what the umask leaves; one that replaces another is private until it has the other's mode.
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let mut file = File::from(openat(folder, name, how, Mode::from_raw_mode(mode)).map_err(io::Error::from)?);
        file.write_all(text)?;
        if let Some(old) = old {
            // Only a privileged process can keep another owner.
            let owner = rustix::process::Uid::from_raw(old.st_uid);
            let group = rustix::process::Gid::from_raw(old.st_gid);
            fchown(&file, Some(owner), Some(group)).ok();
            fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o777)).map_err(io::Error::from)?;
        }
        file.sync_all()?;
        Ok(())
    }

    fn take_name(folder: &OwnedFd, passing: &str, name: &OsStr, old: Option<&Stat>) -> Result<(), PutError> {
        let other = |error: Errno| PutError::from(io::Error::from(error));
        if old.is_none() {
            match rename_to_new(folder, passing, name) {
                Err(Errno::EXIST) => return Err(PutError::Changed),
                // Not every system and file system supports it.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                renamed => return renamed.map_err(other),
            }
        }
        renameat(folder, passing, folder, name).map_err(other)
    }

    /// Renames it to a name that must not exist yet.
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    fn rename_to_new(folder: &OwnedFd, passing: &str, name: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(folder, passing, folder, name, rustix::fs::RenameFlags::NOREPLACE)
    }

    #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
    fn rename_to_new(_: &OwnedFd, _: &str, _: &OsStr) -> rustix::io::Result<()> {
        Err(Errno::NOSYS)
    }
}

#[cfg(not(unix))]
mod by_path {
    use std::fs;
    use std::io::{self, Write};

    use super::{ExpectedContent, Inside, OpenError, PutError, passing_name};
    use crate::workspace::open::open;

    /// Writes the text, if the current content is the expected one. Creates missing folders.
    pub(crate) fn put(inside: &Inside, held: &ExpectedContent, text: &[u8]) -> Result<(), PutError> {
        let folder = inside.path().parent().ok_or(OpenError::Folder)?;
        match open(inside) {
            Ok(file) if file.metadata()?.permissions().readonly() => return Err(PutError::ReadOnly),
            Ok(file) => {
                if !held.is_in(file)? {
                    return Err(PutError::Changed);
                }
            }
            Err(OpenError::Missing) if *held == ExpectedContent::Nothing => fs::create_dir_all(folder)?,
            Err(OpenError::Missing) => return Err(PutError::Changed),
            Err(error) => return Err(error.into()),
        }
        if folder.canonicalize()? != folder {
            return Err(OpenError::Link.into());
        }
        let passing = folder.join(passing_name());
        let write = || -> io::Result<()> {
            let mut file = fs::File::create_new(&passing)?;
            file.write_all(text)?;
            file.sync_all()?;
            fs::rename(&passing, inside.path())
        };
        write().map_err(|error| {
            // Leave nothing behind; if even that fails, the first error is the one to report.
            fs::remove_file(&passing).ok();
            error.into()
        })
    }
}
