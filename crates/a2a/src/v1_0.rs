//! Dialect 1.0: methods like `SendMessage`, and `ProtoJSON`: no `kind` but a field for each kind of object, enum names
//! in capitals, empty fields left out. No field marks the end of a stream; it just ends.

use serde::Serializer;
use serde::ser::SerializeMap as _;

use crate::dialect::Dialect;
use crate::error::Error;
use crate::model::{Content, Part, Update};
use crate::read::Node;
use crate::read::model::{artifact_update, message, status_update, task};
use crate::write::Fields as _;

const DIALECT: Dialect = Dialect::V1_0;

pub(crate) fn update(node: &Node<'_>) -> Result<Update, Error> {
    match only(node, &["task", "message", "statusUpdate", "artifactUpdate"])? {
        "task" => node.inside("task", |node| task(DIALECT, node)).map(Update::Task),
        "message" => node.inside("message", |node| message(DIALECT, node)).map(Update::Message),
        "statusUpdate" => node.inside("statusUpdate", |node| status_update(DIALECT, node)).map(Update::Status),
        _ => node.inside("artifactUpdate", |node| artifact_update(DIALECT, node)).map(Update::Artifact),
    }
}

/// The one of these fields that is present.
fn only<'k>(node: &Node<'_>, keys: &[&'k str]) -> Result<&'k str, Error> {
    let found: Vec<_> = keys.iter().copied().filter(|key| node.has(key)).collect();
    match found[..] {
        [key] => Ok(key),
        [] => Err(node.wrong(format_args!("must hold one of {}", keys.join(", ")))),
        _ => Err(node.wrong(format_args!("must hold only one of {}", found.join(", ")))),
    }
}

pub(crate) fn part(node: &Node<'_>) -> Result<Part, Error> {
    // Data may be any JSON, even `null`.
    let is_data = ["text", "raw", "url"].iter().all(|key| !node.has(key)) && node.value().get("data").is_some();
    let content = if is_data {
        Content::Data(node.value().get("data").cloned().unwrap_or_default())
    } else {
        match only(node, &["text", "raw", "url", "data"])? {
            "text" => Content::Text(node.string("text")?),
            "raw" => Content::Raw(node.string("raw")?),
            _ => Content::Url(node.string("url")?),
        }
    };
    Ok(Part {
        content,
        filename: node.opt_string("filename")?,
        media_type: node.opt_string("mediaType")?,
        metadata: node.map("metadata")?,
    })
}

pub(crate) fn write_part<S: Serializer>(part: &Part, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    match &part.content {
        Content::Text(text) => map.serialize_entry("text", text)?,
        Content::Raw(bytes) => map.serialize_entry("raw", bytes)?,
        Content::Url(url) => map.serialize_entry("url", url)?,
        Content::Data(data) => map.serialize_entry("data", data)?,
    }
    map.optional("filename", part.filename.as_ref())?;
    map.optional("mediaType", part.media_type.as_ref())?;
    map.metadata(&part.metadata)?;
    map.end()
}
