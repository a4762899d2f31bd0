//! What a tool call shows: text, and changes to files.

use std::path::Path;

use multitap_event::{FileChange, FileChangeType, ToolId};

use super::block::text_of;
use super::wire::{Location, ToolContent};
use crate::codec::Files;
use crate::diff;

/// What a call shows now. An update replaces it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) text: String,
    /// The file it is about.
    pub(super) path: Option<String>,
    pub(super) changes: Vec<Change>,
}

/// A change to a file, whole or as the piece of it that changes.
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
        let kind = content.meta.as_ref().and_then(|meta| meta.kind.as_deref());
        let is_new = kind == Some("add");
        Some(Self {
            path,
            before: content.old_text.clone().filter(|text| !(is_new && text.is_empty())),
            after: content.new_text.clone().unwrap_or_default(),
            deletes: kind == Some("delete"),
        })
    }

    /// Before it is made: the whole file now and as it would be. Some agents show only the piece that changes.
    pub(super) fn preview(self, files: &dyn Files) -> Self {
        let Some(old) = self.before.as_deref() else { return self };
        match files.read(Path::new(&self.path)) {
            // Some show nothing as the text of a file that is not there.
            None if old.is_empty() => Self { before: None, ..self },
            _ if old.is_empty() => self,
            Some(now) if now != old && now.contains(old) => {
                let after = now.replacen(old, &self.after, 1);
                Self { before: Some(now), after, ..self }
            }
            _ => self,
        }
    }

    /// After it was made: the whole file as it was and is.
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
        Some(diff::unified(&self.path, self.before.as_deref(), &self.after)).filter(|diff| !diff.is_empty())
    }
}

/// The changes that a finished call made, one for each file. `foreseen` is what was shown when it was asked about.
pub(super) fn made(changes: &[Change], foreseen: &[Change], tool: &ToolId, files: &dyn Files) -> Vec<FileChange> {
    let mut made: Vec<FileChange> = Vec::new();
    for change in changes {
        if made.iter().any(|other| other.file_path == change.path) {
            continue;
        }
        let pieces: Vec<&Change> = changes.iter().filter(|other| other.path == change.path).collect();
        let change_type = match change {
            Change { deletes: true, .. } => FileChangeType::Deleted,
            Change { before: None, .. } => FileChangeType::Created,
            Change { .. } => FileChangeType::Modified,
        };
        let (before, after, diff) = if let [one] = pieces.as_slice() {
            let known = foreseen.iter().find(|seen| seen.path == one.path && seen.after.contains(&one.after));
            let whole = known.cloned().unwrap_or_else(|| (*one).clone().review(files));
            let diff = whole.diff();
            (whole.before, Some(whole.after), diff)
        } else {
            let diffs: String = pieces.iter().filter_map(|piece| piece.diff()).collect();
            (None, None, Some(diffs).filter(|diff| !diff.is_empty()))
        };
        made.push(FileChange {
            file_path: change.path.clone(),
            after: after.filter(|_| change_type != FileChangeType::Deleted),
            change_type,
            diff,
            before,
            tool_id: Some(tool.clone()),
            old_path: None,
        });
    }
    made
}
