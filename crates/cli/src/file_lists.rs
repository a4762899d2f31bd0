//! Lists of files for completing paths, one per folder, each reused for a while.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use multitap_tui::FileIndex;

/// Maximum number of folders whose lists are held.
const FOLDERS: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct FileLists {
    folders: Mutex<HashMap<PathBuf, Arc<FileIndex>>>,
}

impl FileLists {
    /// The best matches. Blocking.
    pub(crate) fn find(&self, folder: &Path, query: &str) -> Vec<String> {
        self.list(folder).find(query)
    }

    fn list(&self, folder: &Path) -> Arc<FileIndex> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if folders.len() >= FOLDERS && !folders.contains_key(folder) {
            folders.clear();
        }
        folders.entry(folder.to_owned()).or_insert_with(|| Arc::new(FileIndex::new(folder.to_owned()))).clone()
    }
}
