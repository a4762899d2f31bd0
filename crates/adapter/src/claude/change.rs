//! File changes: those that a file tool made, from its report; and those that it would make, for questions.

use std::path::{Path, PathBuf};

use multitap_diff::of_file;
use multitap_event::{FileChange, FileChangeType};
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::tools::OpenTool;
use super::wire::EditStep;
use crate::codec::Files;
use crate::diff;
use crate::json::JsonFields as _;

/// The change a finished call made to a file, if it made one.
pub(super) fn of(tool: &OpenTool, structured: Option<&RawValue>, said: Option<&str>) -> Option<FileChange> {
    if !matches!(tool.name.as_str(), "Write" | "Edit" | "MultiEdit" | "NotebookEdit") {
        return None;
    }
    let reported: Value = structured.and_then(|written| serde_json::from_str(written.get()).ok()).unwrap_or_default();
    let mut change = from_result(tool, &reported).or_else(|| from_arguments(tool, said))?;
    let whole_diff =
        |change: &FileChange| Some(of_file(&change.file_path, change.before.as_deref(), change.after.as_deref()?));
    change.diff = change.diff.take().or_else(|| whole_diff(&change)).filter(|diff| !diff.is_empty());
    Some(change)
}

/// The change that a file tool reports. Older versions wrote some keys with underscores.
fn from_result(tool: &OpenTool, reported: &Value) -> Option<FileChange> {
    let either = |key: &str, older: &str| reported.string(key).or_else(|| reported.string(older));
    let path = either("filePath", "notebook_path")?;
    let before = either("originalFile", "original_file");
    let created = reported.text("type").map_or(before.is_none(), |kind| kind == "create");
    let steps = match EditStep::deserialize(reported) {
        Ok(step) if reported.text("oldString").is_some() => vec![step],
        _ => reported.field("edits").and_then(|edits| Vec::deserialize(edits).ok()).unwrap_or_default(),
    };
    let after = either("content", "updated_file");
    let after = after.or_else(|| apply(before.as_deref().unwrap_or_default(), &steps));
    let hunks = Some(reported.list("structuredPatch")).filter(|hunks| !hunks.is_empty());
    let diff = hunks.map(|hunks| patch(&path, hunks));
    Some(FileChange { diff, before, after, ..FileChange::of(path, change_type(created), &tool.id) })
}

/// A sub-agent's calls, and those of older versions, come without a structured result.
fn from_arguments(tool: &OpenTool, said: Option<&str>) -> Option<FileChange> {
    let wanted = Wanted::of(&tool.name, &tool.arguments)?;
    let created = matches!(wanted.what, What::Whole(_)) && said.is_some_and(|said| said.contains("created"));
    let diff = wanted.fragment_diff();
    let after = match wanted.what {
        What::Whole(text) => Some(text),
        What::Steps(_) | What::Cell(_) => None,
    };
    Some(FileChange { diff, after, ..FileChange::of(wanted.path, change_type(created), &tool.id) })
}

fn change_type(created: bool) -> FileChangeType {
    if created { FileChangeType::Created } else { FileChangeType::Modified }
}

/// The change that a file tool is asked to make.
pub(super) struct Wanted {
    pub(super) path: String,
    pub(super) what: What,
}

pub(super) enum What {
    Whole(String),
    Steps(Vec<EditStep>),
    /// A cell of a notebook; the notebook's file is JSON, which is not shown.
    Cell(String),
}

impl Wanted {
    pub(super) fn of(tool: &str, arguments: &Map<String, Value>) -> Option<Self> {
        let text = |key: &str| arguments.string(key);
        let what = match tool {
            "Write" => What::Whole(text("content")?),
            "Edit" => What::Steps(vec![EditStep {
                old_string: text("old_string")?,
                new_string: text("new_string")?,
                replace_all: arguments.flag("replace_all"),
            }]),
            "MultiEdit" => What::Steps(Vec::deserialize(arguments.get("edits")?).ok()?),
            "NotebookEdit" => What::Cell(text("new_source")?),
            _ => return None,
        };
        let path = text(if tool == "NotebookEdit" { "notebook_path" } else { "file_path" })?;
        Some(Self { path, what })
    }

    /// The path of the file, for an agent that works in `cwd`.
    pub(super) fn path_in(&self, cwd: Option<&str>) -> PathBuf {
        Path::new(cwd.unwrap_or_default()).join(&self.path)
    }

    /// The file's text before and after the change, and the diff.
    pub(super) fn preview(
        &self,
        files: &dyn Files,
        cwd: Option<&str>,
    ) -> (Option<String>, Option<String>, Option<String>) {
        let before = files.read(&self.path_in(cwd));
        let after = match (&self.what, &before) {
            (What::Whole(text), _) => Some(text.clone()),
            (What::Steps(steps), Some(before)) => apply_as_claude(before, steps),
            (What::Steps(_), None) | (What::Cell(_), _) => None,
        };
        let diff = match &after {
            Some(after) => Some(of_file(&self.path, before.as_deref(), after)),
            None => self.fragment_diff(),
        };
        (before, after, diff.filter(|diff| !diff.is_empty()))
    }

    /// A diff from the arguments alone, without the file.
    fn fragment_diff(&self) -> Option<String> {
        match &self.what {
            What::Whole(_) => None,
            What::Steps(steps) => {
                // Part of a line is shown as a whole line.
                let line = |text: &str| {
                    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
                };
                let diff =
                    |step: &EditStep| of_file(&self.path, Some(&line(&step.old_string)), &line(&step.new_string));
                Some(steps.iter().map(diff).collect())
            }
            What::Cell(text) => Some(of_file(&self.path, None, text)),
        }
    }
}

/// Largest text that a preview may produce: replacing a short text in many places could grow without limit.
const LARGEST_AFTER: usize = 64 * 1024 * 1024;
/// Most bytes to search for all steps of one call; the first step is always tried.
const MOST_SEARCHED: usize = 256 * 1024 * 1024;

/// The text after the steps, if every step matches and the limits are not exceeded.
fn apply(before: &str, steps: &[EditStep]) -> Option<String> {
    if steps.is_empty() {
        return None;
    }
    let mut text = before.to_owned();
    let mut searched = 0;
    for step in steps {
        if searched > MOST_SEARCHED {
            return None;
        }
        searched += text.len();
        let (old, new) = (step.old_string.as_str(), step.new_string.as_str());
        text = match (old, step.replace_all) {
            ("", _) if text.is_empty() => new.to_owned(),
            ("", _) => return None,
            (_, true) => {
                let places = text.matches(old).count();
                let made = places.saturating_mul(new.len()).saturating_add(text.len() - places * old.len());
                if places == 0 || made > LARGEST_AFTER {
                    return None;
                }
                text.replace(old, new)
            }
            (_, false) => {
                let at = text.find(old)?;
                text.replace_range(at..at + old.len(), new);
                text
            }
        };
        if text.len() > LARGEST_AFTER {
            return None;
        }
    }
    Some(text)
}

/// Applies the steps as Claude does to a file on disk: it sees and writes lines without carriage returns, and restores
/// them.
fn apply_as_claude(before: &str, steps: &[EditStep]) -> Option<String> {
    if before.contains("\r\n") {
        return apply(&before.replace("\r\n", "\n"), steps).map(|after| after.replace('\n', "\r\n"));
    }
    apply(before, steps)
}

/// Claude's hunks as a unified diff.
fn patch(path: &str, hunks: &[Value]) -> String {
    let hunk = |hunk: &Value| {
        let [old, old_lines, new, new_lines] =
            ["oldStart", "oldLines", "newStart", "newLines"].map(|key| hunk.count(key));
        let lines: String = hunk.list("lines").iter().filter_map(Value::as_str).flat_map(|line| [line, "\n"]).collect();
        format!("@@ -{old},{old_lines} +{new},{new_lines} @@\n{lines}")
    };
    diff::headed(path, None, &hunks.iter().map(hunk).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(old: &str, new: &str, replace_all: bool) -> EditStep {
        EditStep { old_string: old.to_owned(), new_string: new.to_owned(), replace_all }
    }

    #[test]
    fn steps_are_applied_in_order() {
        let steps = [step("a", "b", false), step("b", "cc", true), step("c", "", false)];
        assert_eq!(apply("a b a", &steps).as_deref(), Some("c cc a"));
        assert_eq!(apply("", &[step("", "new", false)]).as_deref(), Some("new"));
        assert_eq!(apply("x", &[step("y", "", true)]), None);
    }

    /// Each step doubles the text: forty of them would be a terabyte.
    #[test]
    fn steps_that_multiply_the_text_are_given_up() {
        let doubles = vec![step("a", "aa", true); 40];
        assert_eq!(apply("a", &doubles[..20]).map(|text| text.len()), Some(1 << 20));
        assert_eq!(apply("a", &doubles), None);
        assert_eq!(apply(&"a".repeat(1 << 20), &[step("a", &"b".repeat(1 << 20), true)]), None);
    }

    #[test]
    fn many_steps_on_a_large_text_are_given_up() {
        let text = format!("{}a", "x".repeat(8 * 1024 * 1024));
        let steps: Vec<EditStep> = (0..100).flat_map(|_| [step("a", "b", false), step("b", "a", false)]).collect();
        assert_eq!(apply(&text, &steps), None);
        assert_eq!(apply(&text, &steps[..10]).as_deref(), Some(text.as_str()));
    }
}
