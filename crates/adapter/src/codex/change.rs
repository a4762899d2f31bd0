//! File changes as Codex describes them: whole texts for new and removed files, hunks for changed ones.

use std::borrow::Cow;
use std::path::Path;

use multitap_diff::of_file;
use multitap_event::{Details, FileChange, FileChangeType, ToolId};
use serde_json::{Map, Value};

use super::wire::Fields;
use crate::codec::{Files, MOST_READ, NoFiles};
use crate::diff;
use crate::json::{JsonFields as _, present};

/// The changes that an item reports. The text before and after is read from the disk.
pub(super) fn of_item(item: &Fields, tool: &ToolId, files: &dyn Files) -> Vec<FileChange> {
    match item.get("changes") {
        Some(Value::Array(list)) => {
            let list = list.iter().enumerate();
            list.filter_map(|(at, change)| one(&Fields::of(Some(change)), None, tool, first_only(at, files))).collect()
        }
        Some(Value::Object(by_path)) => of_map(by_path, tool, files),
        // A single file, in an older format.
        _ => one(item, None, tool, files).into_iter().collect(),
    }
}

/// Changes by path, the format of older requests and stored sessions.
pub(super) fn of_map(by_path: &Map<String, Value>, tool: &ToolId, files: &dyn Files) -> Vec<FileChange> {
    let changes = by_path.iter().enumerate();
    let one = |(at, (path, change)): (usize, (&String, &Value))| {
        one(&Fields::of(Some(change)), Some(path), tool, first_only(at, files))
    };
    changes.filter_map(one).collect()
}

/// Access to the disk for the first files of an item only: nobody looks at the whole texts of hundreds of files.
fn first_only(at: usize, files: &dyn Files) -> &dyn Files {
    if at < MOST_READ { files } else { &NoFiles }
}

fn one(change: &Fields, path: Option<&str>, tool: &ToolId, files: &dyn Files) -> Option<FileChange> {
    let path = path.or_else(|| change.text("path")).or_else(|| change.text("filePath"))?;
    let kind = change.fields("kind");
    let word = kind.text("type").or_else(|| change.text("kind"));
    let word = word.or_else(|| change.text("type").filter(|word| matches!(*word, "add" | "delete" | "update")));
    let reported = change.text("diff").or_else(|| change.text("unifiedDiff")).or_else(|| change.text("content"));
    let moved = kind.text("movePath").or_else(|| change.text("movePath")).filter(|to| *to != path);
    let change_type = match word {
        Some("add" | "create" | "created") => FileChangeType::Created,
        Some("delete" | "remove" | "deleted") => FileChangeType::Deleted,
        Some(_) => FileChangeType::Modified,
        None => by_diff(reported.unwrap_or_default()),
    };
    let mut made = FileChange::of(moved.unwrap_or(path), change_type, tool);
    made.old_path = moved.map(|_| path.to_owned());
    let Some(reported) = reported else { return Some(made) };
    match made.change_type {
        FileChangeType::Created if !is_diff(reported) => {
            made.diff = Some(of_file(path, None, reported));
            made.after = Some(reported.to_owned());
        }
        FileChangeType::Deleted if !is_diff(reported) => {
            made.diff = Some(diff::removed(path, reported));
            made.before = Some(reported.to_owned());
        }
        FileChangeType::Created | FileChangeType::Deleted => made.diff = Some(reported.to_owned()),
        FileChangeType::Modified => {
            // The new path of a moved file is also at the end of the hunks.
            let reported =
                moved.and_then(|to| reported.strip_suffix(&format!("\n\nMoved to: {to}"))).unwrap_or(reported);
            let hunks = reported.find("@@").map_or(reported, |at| &reported[at..]);
            if let Some((before, after)) = both_texts(path, moved, hunks, files) {
                (made.before, made.after) = (Some(before), Some(after));
            }
            made.diff = Some(if is_diff(reported) { reported.to_owned() } else { diff::headed(path, moved, reported) });
        }
    }
    made.diff = made.diff.filter(|diff| !diff.is_empty());
    Some(made)
}

/// The text before and after, whether the change was made already or not.
fn both_texts(path: &str, moved: Option<&str>, hunks: &str, files: &dyn Files) -> Option<(String, String)> {
    if let Some(text) = files.read(Path::new(path)) {
        if let Some(after) = diff::apply(&text, hunks) {
            return Some((text, after));
        }
        if moved.is_none() {
            return diff::revert(&text, hunks).map(|before| (before, text));
        }
    }
    let after = files.read(Path::new(moved?))?;
    diff::revert(&after, hunks).map(|before| (before, after))
}

fn is_diff(text: &str) -> bool {
    text.starts_with("--- ") || text.starts_with("diff --git ")
}

fn by_diff(diff: &str) -> FileChangeType {
    if diff.contains("--- /dev/null") {
        FileChangeType::Created
    } else if diff.contains("+++ /dev/null") {
        FileChangeType::Deleted
    } else {
        FileChangeType::Modified
    }
}

/// The details of a question about changes. If it names none, they are what else the request has.
pub(super) fn details(changes: &[FileChange], request: &Fields) -> Details {
    match changes {
        [] => {
            let known = present(request.0.clone()).into_iter().filter(|(key, _)| !key.ends_with("Id"));
            let text = "Codex did not say which files it would change, or how.".to_owned();
            Details::Text { text, arguments: known.collect() }
        }
        [one] => Details::FileEdit {
            file_path: one.file_path.clone(),
            before: one.before.clone(),
            after: one.after.clone(),
            diff: one.diff.clone(),
        },
        [first, ..] => Details::FileEdit {
            file_path: first.file_path.clone(),
            before: None,
            after: None,
            diff: Some(changes.iter().map(named_diff).collect()),
        },
    }
}

/// The diff of one change among several. It names its file even if no line changes, as with an empty file.
fn named_diff(change: &FileChange) -> Cow<'_, str> {
    match &change.diff {
        Some(diff) => diff.into(),
        None => {
            let from = change.old_path.as_ref().unwrap_or(&change.file_path);
            diff::headed(from, Some(&change.file_path), "").into()
        }
    }
}

pub(super) fn title(changes: &[FileChange]) -> String {
    let [first, rest @ ..] = changes else { return "Change files that Codex did not name".to_owned() };
    let verb = match first.change_type {
        FileChangeType::Created => "Write",
        FileChangeType::Modified => "Edit",
        FileChangeType::Deleted => "Delete",
    };
    match rest.len() {
        0 => format!("{verb} {}", first.file_path),
        1 => format!("{verb} {} and one more file", first.file_path),
        more => format!("{verb} {} and {more} more files", first.file_path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_about_several_files_names_each() {
        let change = |path: &str, diff: Option<&str>, old_path: Option<&str>| FileChange {
            file_path: path.to_owned(),
            change_type: FileChangeType::Modified,
            diff: diff.map(str::to_owned),
            before: None,
            after: None,
            tool_id: None,
            old_path: old_path.map(str::to_owned),
        };
        let changes = [
            change("/w/a", Some("--- a/w/a\n"), None),
            change("/w/empty", None, None),
            change("/w/b", None, Some("/w/c")),
        ];
        let Details::FileEdit { diff: Some(diff), .. } = details(&changes, &Fields::of(None)) else {
            panic!("no diff")
        };
        assert_eq!(diff, "--- a/w/a\n--- a/w/empty\n+++ b/w/empty\n--- a/w/c\n+++ b/w/b\n");
    }
}
