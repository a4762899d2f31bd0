//! The files that `@` offers: those that no ignore file hides, the best match first. Blocking.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ignore::WalkBuilder;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

/// Maximum number of files and folders that are read.
const MOST: usize = 50_000;
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the list is used before it is read again.
const FRESH: Duration = Duration::from_secs(5);
/// How many matches are shown.
pub(crate) const SHOWN: usize = 8;

#[derive(Debug)]
pub struct FileIndex {
    root: PathBuf,
    known: Mutex<Option<(Instant, Arc<Vec<String>>)>>,
}

impl FileIndex {
    pub fn new(root: PathBuf) -> Self {
        Self { root, known: Mutex::default() }
    }

    /// The best matches. Folders end with a slash.
    pub fn find(&self, query: &str) -> Vec<String> {
        let all = self.all();
        if query.is_empty() {
            return all.iter().take(SHOWN).cloned().collect();
        }
        let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
        let pattern = Pattern::new(query, CaseMatching::Smart, Normalization::Smart, AtomKind::Fuzzy);
        let found = pattern.match_list(all.iter(), &mut matcher);
        found.into_iter().take(SHOWN).map(|(path, _)| path.clone()).collect()
    }

    fn all(&self) -> Arc<Vec<String>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((at, all)) if at.elapsed() < FRESH => all.clone(),
            _ => {
                let all = Arc::new(walk(&self.root));
                *known = Some((Instant::now(), all.clone()));
                all
            }
        }
    }
}

/// All files, those near the root first.
fn walk(root: &Path) -> Vec<String> {
    let begun = Instant::now();
    let walk = WalkBuilder::new(root).require_git(false).build();
    let entries = walk.filter_map(Result::ok).take_while(|_| begun.elapsed() < PATIENCE);
    let paths = entries.filter_map(|entry| {
        let path = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
        let end = if entry.file_type().is_some_and(|kind| kind.is_dir()) { "/" } else { "" };
        (!path.is_empty()).then(|| format!("{path}{end}"))
    });
    let mut all: Vec<String> = paths.take(MOST).collect();
    all.sort_by_cached_key(|path| (path.trim_end_matches('/').matches('/').count(), path.clone()));
    all
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_best_match_comes_first_and_what_is_ignored_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "src/view/question.rs", "docs/questions.md", "target/question.rs", ".git/question"]
        {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(folder.path().join(".gitignore"), "target\n").unwrap();
        let files = FileIndex::new(folder.path().to_owned());
        assert_eq!(
            files.find(""),
            ["docs/", "src/", "docs/questions.md", "src/main.rs", "src/view/", "src/view/question.rs"]
        );
        assert_eq!(files.find("srcmain"), ["src/main.rs"]);
        let found = files.find("question");
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(files.find("no matches"), Vec::<String>::new());
    }
}
