//! Decisions of the user, read from all their shapes.
//!
//! A decision lets a program run, so nothing is guessed here: what is of the wrong type, said twice differently, or said
//! in a way that would be passed over, is refused.

use serde_json::{Value, json};

use crate::devtool::{EditKind, ToolCallConfirmation};
use crate::error::Error;
use crate::read::Node;
use crate::write::present;

const CALL: [&str; 3] = ["tool_call_id", "toolCallId", "callId"];
const OPTION: [&str; 3] = ["selected_option_id", "selectedOptionId", "outcome"];
const CORRELATION: [&str; 2] = ["correlation_id", "correlationId"];
const CONTENT: [&str; 2] = ["new_content", "newContent"];
const FILE: [&str; 2] = ["file_details", "fileDetails"];
const EXECUTE: [&str; 2] = ["execute_details", "executeDetails"];
const PATH: [&str; 2] = ["file_path", "filePath"];
const FOLDER: [&str; 2] = ["working_directory", "workingDirectory"];
const MODIFIED: [&str; 2] = ["modified_details", "modifiedDetails"];

impl ToolCallConfirmation {
    /// Reads `{tool_call_id, selected_option_id}` with `modified_details`, `file_details` or `new_content`, and the
    /// shipped `{callId, outcome, newContent}`.
    pub fn read(value: &Value) -> Result<Self, Error> {
        let node = Node::of_client("ToolCallConfirmation", value)?;
        let is_coder = node.has("callId");
        let call = if is_coder { "callId" } else { "tool_call_id" };
        let option = if is_coder { "outcome" } else { "selected_option_id" };
        let edit = EditRead::of(&node)?;
        Ok(Self {
            tool_call_id: named(&node, &CALL, call)?,
            selected_option_id: named(&node, &OPTION, option)?,
            new_content: edit.content,
            edit_kind: edit.kind,
            edit_target: edit.target,
            feedback: node.opt_string("feedback")?,
            answers: node.get("answers").map(|_| node.map("answers")).transpose()?,
            correlation_id: node.any_string(&CORRELATION)?,
            is_coder,
        })
    }

    /// Writes a decision as a client sends it, in the specification's shape.
    pub fn write(&self) -> Value {
        let (name, content, place) = match self.edit_kind {
            Some(EditKind::Command) => ("execute_details", "command", "working_directory"),
            Some(EditKind::File) | None => ("file_details", "new_content", "file_path"),
        };
        let details = self.new_content.as_ref().map(|text| present(json!({ content: text, place: self.edit_target })));
        Value::Object(present(json!({
            "tool_call_id": self.tool_call_id,
            "selected_option_id": self.selected_option_id,
            name: details,
            "feedback": self.feedback,
            "answers": self.answers,
            "correlation_id": self.correlation_id,
        })))
    }
}

fn named(node: &Node<'_>, keys: &[&str], expected: &str) -> Result<String, Error> {
    match node.any_string(keys)? {
        Some(text) if text.is_empty() => Err(node.wrong_field(expected, "must not be empty")),
        Some(text) => Ok(text),
        None => Err(node.wrong_field(expected, "is missing")),
    }
}

/// The user's edit, from whichever field contains it; if several do, they must agree.
#[derive(Default)]
struct EditRead {
    content: Option<String>,
    kind: Option<EditKind>,
    /// Where it says that it goes.
    target: Option<String>,
}

impl EditRead {
    fn of(node: &Node<'_>) -> Result<Self, Error> {
        let mut edit = Self::default();
        edit.read(node)?;
        for key in MODIFIED {
            node.opt_inside(key, |inner| match edit.read(inner)? {
                true => Ok(()),
                false => Err(inner.wrong("must hold file_details with new_content")),
            })?;
        }
        Ok(edit)
    }

    /// Reads the details in an object. Returns whether there are any.
    fn read(&mut self, node: &Node<'_>) -> Result<bool, Error> {
        let bare = node.any_string(&CONTENT)?;
        let mut is_found = bare.is_some();
        if let Some(text) = bare {
            self.add(node, CONTENT[0], text, None)?;
        }
        let shapes: [(_, _, &[&str], _); 2] =
            [(FILE, EditKind::File, &CONTENT, PATH), (EXECUTE, EditKind::Command, &["command"], FOLDER)];
        for (keys, kind, content, place) in shapes {
            for key in keys {
                let details = node.opt_inside(key, |inner| {
                    let text = inner.any_string(content)?.ok_or_else(|| inner.wrong_field(content[0], "is missing"))?;
                    Ok((text, inner.any_string(&place)?))
                })?;
                let Some((text, target)) = details else { continue };
                self.add(node, key, text, Some(kind))?;
                if target.is_some() && self.target.as_ref().is_some_and(|before| Some(before) != target.as_ref()) {
                    return Err(node.wrong_field(key, "names another file or folder than before"));
                }
                self.target = target.or(self.target.take());
                is_found = true;
            }
        }
        Ok(is_found)
    }

    fn add(&mut self, node: &Node<'_>, key: &str, text: String, kind: Option<EditKind>) -> Result<(), Error> {
        let is_other_kind = self.kind.is_some() && kind.is_some() && self.kind != kind;
        if is_other_kind || self.content.as_ref().is_some_and(|before| *before != text) {
            return Err(node.wrong_field(key, "says something else than before"));
        }
        (self.content, self.kind) = (Some(text), self.kind.or(kind));
        Ok(())
    }
}
