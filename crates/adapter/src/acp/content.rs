//! The content of a tool call: text, and changes to files.

use std::collections::HashMap;
use std::path::Path;

use multitap_diff::of_file;
use multitap_event::{FileChange, FileChangeType, ToolId};

use super::block::text_of;
use super::wire::{Location, ToolContent};
use crate::codec::{Files, MOST_READ};
use crate::json::JsonFields as _;

/// The current content of a call. An update replaces it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) path: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// A change to a file: the whole text, or only the changed part.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) after: String,
    deletes: bool,
}

impl Shown {
    pub(super) fn of(content: &[ToolContent], locations: &[Location]) -> Self {
        let texts: Vec<String> = content
            .iter()
            .filter(|one| one.kind == "content")
            .filter_map(|one| one.content.as_ref().map(text_of))
            .filter(|text| !text.is_empty())
            .collect();
        let changes: Vec<Change> = content.iter().filter_map(Change::of).collect();
        let path = changes.first().map(|change| change.path.clone());
        let path = path.or_else(|| locations.first().map(|location| location.path.clone()));
        Self { text: texts.join("\n"), path, changes }
    }
}

impl Change {
    fn of(content: &ToolContent) -> Option<Self> {
        let path = content.path.clone().filter(|_| content.kind == "diff")?;
        let kind = content.meta.text("kind");
        let is_new = kind == Some("add");
        Some(Self {
            path,
            before: content.old_text.clone().filter(|text| !(is_new && text.is_empty())),
            after: content.new_text.clone().unwrap_or_default(),
            deletes: kind == Some("delete"),
        })
    }

    /// Extends a change that is not made yet to the whole file, before and after. Some agents show only the changed
    /// part.
    pub(super) fn preview(self, files: &dyn Files) -> Self {
        let Some(old) = self.before.as_deref() else { return self };
        match files.read(Path::new(&self.path)) {
            // Some agents send an empty text for a file that does not exist.
            None if old.is_empty() => Self { before: None, ..self },
            _ if old.is_empty() => self,
            Some(now) if now != old && now.contains(old) => {
                let after = now.replacen(old, &self.after, 1);
                Self { before: Some(now), after, ..self }
            }
            _ => self,
        }
    }

    /// Extends a change that was made to the whole file, before and after.
    fn review(self, files: &dyn Files) -> Self {
        let Some(old) = self.before.as_deref() else { return self };
        match files.read(Path::new(&self.path)) {
            Some(now) if now != self.after && !self.after.is_empty() && now.contains(&self.after) => {
                let before = now.replacen(&self.after, old, 1);
                Self { before: Some(before), after: now, ..self }
            }
            _ => self,
        }
    }

    pub(super) fn diff(&self) -> Option<String> {
        Some(of_file(&self.path, self.before.as_deref(), &self.after)).filter(|diff| !diff.is_empty())
    }
}

fn by_path(changes: &[Change]) -> HashMap<&str, Vec<&Change>> {
    let mut by_path: HashMap<&str, Vec<&Change>> = HashMap::new();
    for change in changes {
        by_path.entry(&change.path).or_default().push(change);
    }
    by_path
}

/// The changes that a finished call made, one for each file. `foreseen` are the changes that its question showed.
pub(super) fn made(changes: &[Change], foreseen: &[Change], tool: &ToolId, files: &dyn Files) -> Vec<FileChange> {
    let mut made: Vec<FileChange> = Vec::new();
    let (by_path, seen_before) = (by_path(changes), by_path(foreseen));
    for change in changes {
        // One event per file, at its first change.
        let Some(pieces) = by_path.get(change.path.as_str()).filter(|pieces| std::ptr::eq(pieces[0], change)) else {
            continue;
        };
        let change_type = match change {
            Change { deletes: true, .. } => FileChangeType::Deleted,
            Change { before: None, .. } => FileChangeType::Created,
            Change { .. } => FileChangeType::Modified,
        };
        let (before, after, diff) = if let [one] = pieces.as_slice() {
            let seen = seen_before.get(one.path.as_str()).map_or(&[][..], Vec::as_slice);
            let known = seen.iter().find(|seen| seen.after.contains(&one.after));
            let whole = match known {
                Some(known) => (*known).clone(),
                None if made.len() < MOST_READ => (*one).clone().review(files),
                None => (*one).clone(),
            };
            let diff = whole.diff();
            (whole.before, Some(whole.after), diff)
        } else {
            let diffs: String = pieces.iter().filter_map(|piece| piece.diff()).collect();
            (None, None, Some(diffs).filter(|diff| !diff.is_empty()))
        };
        made.push(FileChange {
            after: after.filter(|_| change_type != FileChangeType::Deleted),
            diff,
            before,
            ..FileChange::of(change.path.as_str(), change_type, tool)
        });
    }
    made
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts what is read.
    struct Counting(Arc<AtomicUsize>);

    impl Files for Counting {
        fn read(&self, _: &Path) -> Option<String> {
            self.0.fetch_add(1, Ordering::Relaxed);
            None
        }
    }

    fn change(path: String) -> Change {
        Change { path, before: Some("a".to_owned()), after: "b".to_owned(), deletes: false }
    }

    /// Each change was once compared with all others: this took minutes.
    #[test]
    fn a_call_with_very_many_changes_is_told_at_once() {
        let read = Arc::new(AtomicUsize::new(0));
        let files = Counting(read.clone());
        let changes: Vec<Change> = (0..20_000).map(|at| change((at % 10_000).to_string())).collect();
        let reported = made(&changes, &changes, &ToolId::from("t"), &files);
        assert_eq!(reported.len(), 10_000);
        assert_eq!(reported[7].diff.as_deref().map(|diff| diff.matches("+b").count()), Some(2));
        let alone: Vec<Change> = (0..1000).map(|at| change(at.to_string())).collect();
        assert_eq!(made(&alone, &[], &ToolId::from("t"), &files).len(), 1000);
        assert_eq!(read.load(Ordering::Relaxed), MOST_READ);
    }
}
