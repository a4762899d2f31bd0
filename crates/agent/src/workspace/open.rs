//! Opens regular files of the workspace for reading and lists folders, never through a link.
//!
//! Pipes, devices and special files are refused before they could block.

use std::ffi::OsString;
use std::fs::File;
use std::io;

use super::Inside;

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("it does not exist")]
    Missing,
    #[error("it is a folder")]
    Folder,
    #[error("it is {0}, not a plain file")]
    Special(&'static str),
    /// It was resolved a moment ago, so somebody created the link since.
    #[error("a part of the path became a link meanwhile")]
    Link,
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
    /// A pipe, a device or the like.
    Special,
}

#[cfg(unix)]
pub(super) use at::{Missing, parent, plain};
#[cfg(unix)]
pub(crate) use at::{list, open};
#[cfg(not(unix))]
pub(crate) use by_path::{list, open};

#[cfg(unix)]
mod at {
    use std::ffi::{OsStr, OsString};
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Component, Path};

    use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat};
    use rustix::io::Errno;

    use super::{Entry, File, Inside, Kind, OpenError};

    /// How missing folders on the path are handled.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::workspace) enum Missing {
        Refuse,
        Create,
    }

    // A path handle is enough to descend; with it, a folder that may not be listed is no obstacle.
    #[cfg(target_os = "linux")]
    const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    #[cfg(not(target_os = "linux"))]
    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    pub(crate) fn open(inside: &Inside) -> Result<File, OpenError> {
        let (folder, name) = parent(inside, Missing::Refuse)?;
        plain(&folder, name).map(|(file, _)| file)
    }

    /// The entries of that folder, unordered.
    pub(crate) fn list(inside: &Inside) -> Result<Vec<Entry>, OpenError> {
        let folder = descend(inside, inside.below(), Missing::Refuse)?;
        let listed = openat(&folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let mut entries = Vec::new();
        for entry in Dir::new(listed.map_err(refusal)?).map_err(refusal)? {
            let entry = entry.map_err(refusal)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type with the name.
                FileType::Unknown => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue, // gone in the meantime
                },
                reported => reported,
            };
            entries.push(Entry { name: OsString::from(name), kind: kind.into() });
        }
        Ok(entries)
    }

    impl From<FileType> for Kind {
        fn from(kind: FileType) -> Self {
            match kind {
                FileType::RegularFile => Self::File,
                FileType::Directory => Self::Folder,
                FileType::Symlink => Self::Link,
                FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => Self::Special,
            }
        }
    }

    /// The parent folder, as a handle that no link can redirect, and the name in it.
    pub(in crate::workspace) fn parent(inside: &Inside, missing: Missing) -> Result<(OwnedFd, &OsStr), OpenError> {
        let below = inside.below();
        let (Some(name), Some(way)) = (below.file_name(), below.parent()) else { return Err(OpenError::Folder) };
        Ok((descend(inside, way, missing)?, name))
    }

    /// Descends that path from the folder of the workspace.
    fn descend(inside: &Inside, way: &Path, missing: Missing) -> Result<OwnedFd, OpenError> {
        let mut folder = openat(CWD, inside.folder(), FOLDER, Mode::empty()).map_err(refusal)?;
        for step in way.components() {
            let Component::Normal(step) = step else { return Err(OpenError::Link) };
            let next = || openat(&folder, step, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            folder = match next() {
                Err(Errno::NOENT) if missing == Missing::Create => {
                    match mkdirat(&folder, step, Mode::from_raw_mode(0o777)) {
                        // Another program created the folder meanwhile.
                        Ok(()) | Err(Errno::EXIST) => next(),
                        Err(error) => Err(error),
                    }
                }
                opened => opened,
            }
            .map_err(|error| in_the_way(&folder, step, error))?;
        }
        Ok(folder)
    }

    /// Opens a regular file of a folder.
    pub(in crate::workspace) fn plain(folder: &OwnedFd, name: &OsStr) -> Result<(File, Stat), OpenError> {
        // Checked before opening, since opening alone has side effects on some devices.
        check(&statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(refusal)?)?;
        let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(folder, name, how, Mode::empty()).map_err(refusal)?;
        let stat = fstat(&file).map_err(refusal)?;
        check(&stat)?;
        #[cfg(target_os = "linux")]
        if rustix::fs::fstatfs(&file).map_err(refusal)?.f_type == rustix::fs::PROC_SUPER_MAGIC {
            return Err(OpenError::Special("a file of the system's own"));
        }
        Ok((File::from(file), stat))
    }

    fn check(stat: &Stat) -> Result<(), OpenError> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(OpenError::Folder),
            FileType::Symlink => Err(OpenError::Link),
            FileType::Fifo => Err(OpenError::Special("a pipe")),
            FileType::Socket => Err(OpenError::Special("a socket")),
            FileType::CharacterDevice | FileType::BlockDevice => Err(OpenError::Special("a device")),
            FileType::Unknown => Err(OpenError::Special("something unknown")),
        }
    }

    /// A component that is not a folder may be a link: platforms report it with different errors.
    fn in_the_way(folder: &OwnedFd, step: &OsStr, error: Errno) -> OpenError {
        match statat(folder, step, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => OpenError::Link,
            _ => refusal(error),
        }
    }

    fn refusal(error: Errno) -> OpenError {
        match error {
            Errno::NOENT => OpenError::Missing,
            Errno::LOOP => OpenError::Link,
            other => OpenError::Io(other.into()),
        }
    }
}

#[cfg(not(unix))]
mod by_path {
    use super::{Entry, File, Inside, Kind, OpenError, io};

    /// Opens it for reading. Without handles to descend by, links are checked first.
    pub(crate) fn open(inside: &Inside) -> Result<File, OpenError> {
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing,
            _ => OpenError::Io(error),
        };
        let metadata = inside.path().symlink_metadata().map_err(missing)?;
        if metadata.is_dir() {
            return Err(OpenError::Folder);
        }
        if inside.path().canonicalize().map_err(missing)? != inside.path() {
            return Err(OpenError::Link);
        }
        if !metadata.is_file() {
            return Err(OpenError::Special("something"));
        }
        File::open(inside.path()).map_err(missing)
    }

    /// The entries of that folder, unordered.
    pub(crate) fn list(inside: &Inside) -> Result<Vec<Entry>, OpenError> {
        if inside.path().canonicalize()? != inside.path() {
            return Err(OpenError::Link);
        }
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(inside.path())? {
            let entry = entry?;
            let kind = match entry.file_type()? {
                kind if kind.is_symlink() => Kind::Link,
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_file() => Kind::File,
                _ => Kind::Special,
            };
            entries.push(Entry { name: entry.file_name(), kind });
        }
        Ok(entries)
    }
}
