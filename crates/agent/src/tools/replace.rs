//! `replace`: replaces an exact piece of a file.

use multitap_event::ToolKind;
use serde::Deserialize;
use serde_json::json;

use super::change::{Change, LARGEST_MADE, Target};
use super::ending::Ending;
use super::files::Files;
use super::mismatch::{not_found, other_count};
use super::{BadCall, argument};
use crate::tool::Spec;
use crate::workspace::put::ExpectedContent;

pub(crate) const NAME: &str = "replace";

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    #[serde(alias = "absolute_path", alias = "path", alias = "filePath", alias = "file")]
    file_path: String,
    #[serde(alias = "oldString", alias = "old_str", alias = "old_text")]
    old_string: String,
    #[serde(alias = "newString", alias = "new_str", alias = "new_text")]
    new_string: String,
    #[serde(default, deserialize_with = "argument::whole")]
    expected_replacements: Option<u64>,
    #[serde(default, alias = "allow_multiple", alias = "replaceAll")]
    replace_all: Option<bool>,
}

/// How often the old text must occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Exactly(usize),
    Any,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Edit,
        "Replaces a piece of a file of the workspace. old_string must be in the file exactly as given, white space and \
         all, and as often as expected_replacements says (once if absent): give a few lines around the change to make \
         it the only place. An empty old_string makes a new file.",
        &json!({
            "file_path": { "type": "string", "description": "The file, absolute or relative to the workspace." },
            "old_string": { "type": "string", "description": "The exact text to replace." },
            "new_string": { "type": "string", "description": "The exact text to put in its place." },
            "expected_replacements": { "type": "integer", "description": "How many places to replace; 1 if absent." }
        }),
        &["file_path", "old_string", "new_string"],
    )
}

pub(super) fn prepare(files: &Files, arguments: Arguments) -> Result<Change, BadCall> {
    let Arguments { file_path, old_string, new_string, expected_replacements, replace_all } = arguments;
    let target = Target::find(files, &file_path)?;
    let shown = &target.shown;
    let text = match &target.held {
        ExpectedContent::Nothing if old_string.is_empty() => {
            let done = format!("Created {shown}.");
            return target.change(new_string, done);
        }
        ExpectedContent::Nothing => return Err(BadCall(format!("cannot change {shown}: it does not exist"))),
        ExpectedContent::Other(_) => {
            let why = "it is not a text of at most 4 MiB in UTF-8. Change it with a shell command";
            return Err(BadCall(format!("cannot change {shown}: {why}")));
        }
        ExpectedContent::Text(text) => text,
    };
    if old_string.is_empty() {
        return Err(BadCall(format!(
            "old_string is empty, but {shown} exists: say what to replace, or use write_file"
        )));
    }
    let expected = match (expected_replacements, replace_all) {
        (Some(0), _) => return Err(BadCall("expected_replacements is 0: there is nothing to do".to_owned())),
        (Some(count), _) => Expected::Exactly(usize::try_from(count).unwrap_or(usize::MAX)),
        (None, Some(true)) => Expected::Any,
        (None, _) => Expected::Exactly(1),
    };
    let ending = Ending::of(text);
    let plain = ending.plain(text);
    // The model sees `\n`, and may still send other line endings.
    let (old, new) = (ending.plain(&old_string), ending.plain(&new_string));
    let (after, count) =
        replaced(&plain, &old, &new, expected).map_err(|why| BadCall(format!("{shown} was not changed: {why}")))?;
    let places = if count == 1 { "1 place".to_owned() } else { format!("{count} places") };
    let done = format!("Replaced {places} in {shown}.");
    let after = ending.dress(&after);
    target.change(after, done)
}

/// The text after the replacement, and the number of occurrences; or why not, for the model.
fn replaced(text: &str, old: &str, new: &str, expected: Expected) -> Result<(String, usize), String> {
    if old == new {
        return Err("old_string and new_string are the same".to_owned());
    }
    let count = text.matches(old).count();
    match expected {
        _ if count == 0 => Err(not_found(text, old)),
        Expected::Exactly(wanted) if wanted != count => Err(other_count(text, old, count, wanted)),
        Expected::Exactly(_) | Expected::Any => {
            let made = (text.len() - count * old.len()).saturating_add(count.saturating_mul(new.len()));
            if made > LARGEST_MADE {
                return Err(format!(
                    "the file would have {made} bytes after {count} replacements, and at most {LARGEST_MADE} are possible"
                ));
            }
            Ok((text.replace(old, new), count))
        }
    }
}

#[cfg(test)]
mod tests;
