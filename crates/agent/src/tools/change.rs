//! A change to one file: computed first, shown in the question, and made only if the file has not changed since.
//!
//! `write_file` and `replace` end here: they decide the new content, this module writes it.

use std::fs::File;
use std::io::{self, Read};

use multitap_diff::of_file;
use multitap_event::{Details, Edit, FileChange, FileChangeType};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::BadCall;
use super::ending::Ending;
use super::files::Files;
use crate::job::Access;
use crate::seen::Stamp;
use crate::tool::Outcome;
use crate::workspace::Inside;
use crate::workspace::open::{OpenError, open};
use crate::workspace::put::{ExpectedContent, PutError, put};

const LARGEST_TEXT: u64 = 4 * 1024 * 1024;
/// Above this size only the diff is shown.
const LARGEST_SHOWN: usize = 1024 * 1024;
/// Largest result of a replacement: a short text in many places grows without limit.
pub(super) const LARGEST_MADE: usize = 16 * 1024 * 1024;
/// Most bytes of the user's changes that are reported to the model.
const MOST_TOLD: usize = 4000;

/// A file as it is before a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// The path as the model named it, to be resolved once more.
    named: String,
    pub(super) shown: String,
    file: Inside,
    pub(super) held: ExpectedContent,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    target: Target,
    after: String,
    /// The message for the model when it is made.
    done: String,
    /// The model's original text, if the user replaced it.
    meant: Option<String>,
    /// The preview for people, computed once: a diff of large texts is expensive.
    sides: Box<ChangePreview>,
}

impl Target {
    /// The file at a path, which need not exist; refused if it changed since the model saw it.
    pub(super) fn find(files: &Files, path: &str) -> Result<Self, BadCall> {
        let file = files.place(path)?;
        let shown = files.shown(&file);
        let cannot = |why: &dyn std::fmt::Display| BadCall(format!("cannot change {shown}: {why}"));
        let (held, now) = match open(&file) {
            Ok(opened) => held(opened).map(|(held, now)| (held, Some(now))).map_err(|error| cannot(&error))?,
            Err(OpenError::Missing) => (ExpectedContent::Nothing, None),
            Err(error) => return Err(cannot(&error)),
        };
        if now.is_some_and(|now| files.seen.is_stale(file.path(), &now)) {
            return Err(BadCall(format!(
                "{shown} changed on disk since you last read it: read it again before you change it"
            )));
        }
        Ok(Self { named: path.to_owned(), shown, file, held })
    }

    pub(super) fn change(self, after: String, done: String) -> Result<Change, BadCall> {
        if self.held == ExpectedContent::Text(after.clone()) {
            let shown = self.shown;
            return Err(BadCall(format!("{shown} holds exactly this already: there is nothing to change")));
        }
        let sides = Box::new(ChangePreview::of(&self, &after));
        Ok(Change { target: self, after, done, meant: None, sides })
    }

    /// A text with the line endings of the file.
    pub(super) fn fitted(&self, content: String) -> String {
        match &self.held {
            ExpectedContent::Text(before) => Ending::of(before).fit(&content),
            ExpectedContent::Nothing | ExpectedContent::Other(_) => content,
        }
    }
}

/// The content of an open file, and its stamp.
fn held(file: File) -> io::Result<(ExpectedContent, Stamp)> {
    let metadata = file.metadata()?;
    if metadata.len() > LARGEST_TEXT {
        let stamp = Stamp::of(file)?;
        return Ok((ExpectedContent::Other(stamp.clone()), stamp));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_TEXT).read_to_end(&mut bytes)?;
    let stamp = Stamp::hashed(&metadata, Sha256::new_with_prefix(&bytes));
    Ok(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => (ExpectedContent::Text(text), stamp),
        _ => (ExpectedContent::Other(stamp.clone()), stamp),
    })
}

impl Change {
    pub(crate) fn title(&self) -> String {
        match self.target.held {
            ExpectedContent::Nothing => format!("Create {}", self.target.shown),
            ExpectedContent::Text(_) | ExpectedContent::Other(_) => format!("Change {}", self.target.shown),
        }
    }

    /// The path as the model named it.
    pub(crate) fn named(&self) -> &str {
        &self.target.named
    }

    pub(crate) fn access(&self) -> Access<'_> {
        Access::Change { file: self.target.file.path() }
    }

    pub(crate) fn details(&self) -> Details {
        let ChangePreview { before, after, diff } = ChangePreview::clone(&self.sides);
        Details::FileEdit { file_path: self.target.file.path().display().to_string(), before, after, diff }
    }

    /// The content can be edited if the question shows it.
    pub(crate) fn edits(&self) -> Vec<Edit> {
        if self.sides.after.is_some() { vec![Edit::NewContent] } else { Vec::new() }
    }

    pub(crate) fn with_content(self, content: String) -> Self {
        let after = self.target.fitted(content);
        let meant = Some(self.meant.unwrap_or(self.after));
        let sides = Box::new(ChangePreview::of(&self.target, &after));
        Self { after, meant, sides, ..self }
    }

    pub(super) fn run(self, files: &Files, stop: &CancellationToken) -> Outcome {
        let shown = &self.target.shown;
        if stop.is_cancelled() {
            return Outcome::cancelled(format!("{shown} was not written: the turn was stopped"));
        }
        if files.workspace.resolve(&self.target.named).ok().as_ref() != Some(&self.target.file) {
            let named = &self.target.named;
            return Outcome::failed(format!("{named} leads to another file now: nothing was written"));
        }
        if self.target.held == ExpectedContent::Text(self.after.clone()) {
            return Outcome::done(format!("{shown} was left as it is: the user took the change out."));
        }
        match put(&self.target.file, &self.target.held, self.after.as_bytes()) {
            Ok(()) => {
                files.seen.note(self.target.file.path(), Stamp::holding(self.after.as_bytes()));
                self.made()
            }
            Err(PutError::Changed) => Outcome::failed(format!(
                "{shown} changed on disk after this change was worked out: nothing was written. Read it again first"
            )),
            Err(error) => Outcome::failed(format!("cannot write {shown}: {error}")),
        }
    }

    fn made(self) -> Outcome {
        let text = match &self.meant {
            Some(meant) => format!("{}{}", self.done, self.told_of_the_users(meant)),
            None => self.done.clone(),
        };
        let ChangePreview { before, after, diff } = *self.sides;
        let change = FileChange {
            file_path: self.target.file.path().display().to_string(),
            change_type: match self.target.held {
                ExpectedContent::Nothing => FileChangeType::Created,
                ExpectedContent::Text(_) | ExpectedContent::Other(_) => FileChangeType::Modified,
            },
            diff,
            before,
            after,
            tool_id: None,
            old_path: None,
        };
        Outcome { changes: vec![change], ..Outcome::done(text) }
    }

    fn told_of_the_users(&self, meant: &str) -> String {
        let diff = of_file(&self.target.shown, Some(meant), &self.after);
        if diff.is_empty() {
            return String::new();
        }
        if diff.len() > MOST_TOLD {
            return " The user wrote another text than yours: read the file before you go on.".to_owned();
        }
        format!(" The user changed your text before it was written:\n{diff}")
    }
}

/// The form in which a change is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChangePreview {
    before: Option<String>,
    after: Option<String>,
    diff: Option<String>,
}

impl ChangePreview {
    fn of(Target { shown, held, .. }: &Target, after: &str) -> Self {
        let (before, diff) = match held {
            ExpectedContent::Nothing => (None, Some(of_file(shown, None, after))),
            ExpectedContent::Text(before) => (Some(before), Some(of_file(shown, Some(before), after))),
            // The old content is not text.
            ExpectedContent::Other(_) => (None, None),
        };
        let is_long = |text: &str| text.len() > LARGEST_SHOWN;
        let is_large = before.is_some_and(|before| is_long(before)) || is_long(after);
        if is_large && diff.as_ref().is_some_and(|diff| !is_long(diff)) {
            return Self { before: None, after: None, diff };
        }
        Self { before: before.cloned(), after: Some(after.to_owned()), diff }
    }
}
