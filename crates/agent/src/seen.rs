//! The state of each file when the model last saw it, so that no later change is overwritten unseen.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// Files to remember; above that, all are forgotten.
const MOST_FILES: usize = 10_000;
/// Larger files are compared by length and modification time only.
const MOST_HASHED: u64 = 64 * 1024 * 1024;

/// Identifies the state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Hash of the content, if all of it was read.
    hash: Option<[u8; 32]>,
}

impl Stamp {
    /// The stamp of an open file that was not read yet; reads the file unless it is huge.
    pub(crate) fn of(mut file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.len() > MOST_HASHED {
            return Ok(Self::unread(&metadata));
        }
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match file.read(&mut chunk)? {
                0 => return Ok(Self::hashed(&metadata, hash)),
                count => hash.update(&chunk[..count]),
            }
        }
    }

    pub(crate) fn holding(text: &[u8]) -> Self {
        let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
        Self { length, modified: None, hash: Some(Sha256::digest(text).into()) }
    }

    pub(crate) fn unread(metadata: &Metadata) -> Self {
        Self { length: metadata.len(), modified: metadata.modified().ok(), hash: None }
    }

    pub(crate) fn hashed(metadata: &Metadata, hash: Sha256) -> Self {
        Self { hash: Some(hash.finalize().into()), ..Self::unread(metadata) }
    }

    pub(crate) fn differs(&self, other: &Self) -> bool {
        match (self.hash, other.hash) {
            (Some(one), Some(two)) => one != two,
            _ => (self.length, self.modified) != (other.length, other.modified),
        }
    }
}

/// The files the model has seen in this session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    files: Arc<Mutex<HashMap<PathBuf, Stamp>>>,
}

impl Seen {
    fn files(&self) -> MutexGuard<'_, HashMap<PathBuf, Stamp>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, path: &Path, stamp: Stamp) {
        let mut files = self.files();
        if files.len() >= MOST_FILES {
            files.clear();
        }
        files.insert(path.to_owned(), stamp);
    }

    /// Whether the model has seen the file, but not in its current state.
    pub(crate) fn is_stale(&self, path: &Path, now: &Stamp) -> bool {
        self.files().get(path).is_some_and(|then| then.differs(now))
    }
}
