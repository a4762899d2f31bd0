//! Which files the session may touch: its folder and the added ones.
//!
//! A path is resolved as the system would, link by link, before it is judged. Access to the resolved place (`open`,
//! `put`) then descends from the folder without following links, so a link created in between leads nowhere. `walk`
//! visits everything below a place.
//!
//! Must not come in: tools, permissions.

pub(crate) mod open;
pub(crate) mod put;
pub(crate) mod walk;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Most links followed on one path; the system's own limit.
const MOST_LINKS: u32 = 40;

/// The folders of a session, all of them real paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    root: PathBuf,
    added: Vec<PathBuf>,
    /// The folder for `~`.
    home: Option<PathBuf>,
}

/// A folder that cannot be part of a workspace.
#[derive(Debug, thiserror::Error)]
#[error("cannot work in {path}")]
pub(crate) struct BadFolder {
    path: String,
    source: io::Error,
}

/// A resolved path inside, without links. The file need not exist.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Inside {
    folder: PathBuf,
    path: PathBuf,
}

/// A path that must not be touched, or that does not resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Outside {
    #[error("{path} lies outside the workspace: only files in {folders} can be touched")]
    Elsewhere { path: String, folders: String },
    #[error("{path} follows a link out of the workspace, to {leads}: only files in {folders} can be touched")]
    LeadsOut { path: String, leads: String, folders: String },
    #[error("{path} does not exist: {why} (the workspace is {folders})")]
    Nowhere { path: String, why: String, folders: String },
}

impl Inside {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn below(&self) -> &Path {
        self.path.strip_prefix(&self.folder).unwrap_or(Path::new(""))
    }

    pub(crate) fn entry(&self, name: &OsStr) -> Self {
        Self { folder: self.folder.clone(), path: self.path.join(name) }
    }
}

impl Workspace {
    pub(crate) fn new(root: &Path, added: &[PathBuf], home: Option<PathBuf>) -> Result<Self, BadFolder> {
        let root = real_folder(root)?;
        let added = added.iter().map(|folder| real_folder(&root.join(folder))).collect::<Result<_, _>>()?;
        Ok(Self { root, added, home })
    }

    /// All folders, the session's own first.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.root.as_path()).chain(self.added.iter().map(PathBuf::as_path))
    }

    pub(crate) fn places(&self) -> Vec<Inside> {
        self.folders().map(|folder| Inside { folder: folder.to_owned(), path: folder.to_owned() }).collect()
    }

    /// A path as people and models see it: relative if it lies in the session's folder.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
            Ok(below) => below.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// Resolves a path, if it lies inside. Relative to the session's folder; `~` is the user's home.
    pub(crate) fn resolve(&self, path: &str) -> Result<Inside, Outside> {
        let start = self.start(path);
        match follow(&start) {
            Ok(real) => self.inside(&real).ok_or_else(|| self.refusal(path, &start, &real)),
            Err((at, error)) if self.inside(&at).is_some() => {
                Err(Outside::Nowhere { path: path.to_owned(), why: error.to_string(), folders: self.named() })
            }
            // The error does not reveal what exists outside.
            Err(_) => Err(Outside::Elsewhere { path: path.to_owned(), folders: self.named() }),
        }
    }

    fn start(&self, path: &str) -> PathBuf {
        let home = self.home.as_ref().filter(|_| path == "~" || path.starts_with("~/"));
        match home {
            Some(home) => home.join(path[1..].trim_start_matches('/')),
            None => self.root.join(path),
        }
    }

    fn inside(&self, real: &Path) -> Option<Inside> {
        let folder = self.folders().find(|folder| real.starts_with(folder))?;
        Some(Inside { folder: folder.to_owned(), path: real.to_owned() })
    }

    fn refusal(&self, path: &str, start: &Path, real: &Path) -> Outside {
        let (path, folders) = (path.to_owned(), self.named());
        let plain = start.components().all(|step| step.as_os_str() != "..");
        if plain && self.inside(start).is_some() {
            return Outside::LeadsOut { path, leads: real.display().to_string(), folders };
        }
        Outside::Elsewhere { path, folders }
    }

    fn named(&self) -> String {
        self.folders().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    }
}

fn real_folder(path: &Path) -> Result<PathBuf, BadFolder> {
    let bad = |source| BadFolder { path: path.display().to_string(), source };
    let real = path.canonicalize().map_err(bad)?;
    if !real.is_dir() {
        return Err(bad(io::Error::from(io::ErrorKind::NotADirectory)));
    }
    Ok(real)
}

/// Follows an absolute path through every link to its end, whether that exists or not; on failure, says how far it
/// came.
///
/// `canonicalize` alone is not enough: it fails at the first missing component, and would not see where a link to a
/// missing file leads.
fn follow(path: &Path) -> Result<PathBuf, (PathBuf, io::Error)> {
    let mut at = PathBuf::new();
    let mut left = steps(path);
    let mut links = 0;
    while let Some(step) = left.pop() {
        if step == "." {
            continue;
        }
        if step == ".." {
            at.pop();
            continue;
        }
        // An absolute component, such as the first one of a link's target, replaces the path so far.
        let next = at.join(&step);
        match next.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MOST_LINKS {
                    return Err((at, io::Error::other("too many links, perhaps in a circle")));
                }
                match next.read_link() {
                    Ok(target) => left.extend(steps(&target)),
                    Err(error) => return Err((at, error)),
                }
            }
            Ok(_) => at = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => at = next,
            Err(error) => return Err((at, error)),
        }
    }
    spelled(&at).map_err(|error| (at, error))
}

/// The components of a path, last first.
fn steps(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
}

/// The path with its existing part spelled as the system spells it, where case and short names do not matter.
fn spelled(path: &Path) -> io::Result<PathBuf> {
    for there in path.ancestors() {
        match there.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
                return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(path.to_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
