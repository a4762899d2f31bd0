//! `write_file`: writes a whole text to a file, new or not.

use multitap_event::ToolKind;
use serde::Deserialize;
use serde_json::json;

use super::BadCall;
use super::change::{Change, Target};
use super::files::Files;
use crate::tool::Spec;
use crate::workspace::put::ExpectedContent;

pub(crate) const NAME: &str = "write_file";

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    #[serde(alias = "absolute_path", alias = "path", alias = "filePath", alias = "file")]
    file_path: String,
    #[serde(alias = "contents", alias = "text")]
    content: String,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Edit,
        "Writes a text into a file of the workspace, in place of what it held; makes the file and its folders if they \
         are not there. To change a part of a file use replace.",
        &json!({
            "file_path": { "type": "string", "description": "The file, absolute or relative to the workspace." },
            "content": { "type": "string", "description": "All that the file is to hold." }
        }),
        &["file_path", "content"],
    )
}

pub(super) fn prepare(files: &Files, arguments: Arguments) -> Result<Change, BadCall> {
    let target = Target::find(files, &arguments.file_path)?;
    let after = target.fitted(arguments.content);
    let verb = if target.held == ExpectedContent::Nothing { "Created" } else { "Wrote" };
    let lines = match after.lines().count() {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    };
    let done = format!("{verb} {} ({lines}).", target.shown);
    target.change(after, done)
}

#[cfg(test)]
mod tests;
