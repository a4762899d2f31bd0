//! Dialect 0.3: slash names, `kind` in every object, `final` at the end of a stream.
//!
//! It has fewer fields than the model. It has a file's name and type, but not those of a text or of data, which are
//! left out. Data that is no object is wrapped as `{"value": …}` and marked by [`WRAPPED`] in the part's metadata, like
//! in the SDKs of the protocol; such a part is unwrapped when read.

pub(crate) mod rest;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::dialect::Dialect;
use crate::error::Error;
use crate::model::{Content, Map, Part, Update};
use crate::read::model::{artifact_update, message, status_update, task};
use crate::read::{Node, short};
use crate::write::Fields as _;

const DIALECT: Dialect = Dialect::V0_3;

/// Marks a data part that was wrapped because the dialect requires an object.
const WRAPPED: &str = "data_part_compat";

pub(crate) fn update(node: &Node<'_>) -> Result<Update, Error> {
    match node.need("kind")?.str()? {
        "task" => task(DIALECT, node).map(Update::Task),
        "message" => message(DIALECT, node).map(Update::Message),
        "status-update" => status_update(DIALECT, node).map(Update::Status),
        "artifact-update" => artifact_update(DIALECT, node).map(Update::Artifact),
        _ => Err(wrong_kind(node, "task, message, status-update or artifact-update")),
    }
}

fn wrong_kind(node: &Node<'_>, known: &str) -> Error {
    let found = node.get("kind").map(|kind| short(kind.value())).unwrap_or_default();
    node.wrong_field("kind", format_args!("must be {known}, not {found}"))
}

pub(crate) fn part(node: &Node<'_>) -> Result<Part, Error> {
    let mut part = match node.need("kind")?.str()? {
        "text" => Part::text(node.string("text")?),
        "file" => node.inside("file", file)?,
        "data" => data(node)?,
        _ => return Err(wrong_kind(node, "text, file or data")),
    };
    part.metadata = node.map("metadata")?;
    unwrap(&mut part);
    Ok(part)
}

fn file(node: &Node<'_>) -> Result<Part, Error> {
    let content = match (node.opt_string("bytes")?, node.opt_string("uri")?) {
        (Some(bytes), None) => Content::Raw(bytes),
        (None, Some(uri)) => Content::Url(uri),
        (None, None) => return Err(node.wrong("must hold bytes or uri")),
        (Some(_), Some(_)) => return Err(node.wrong("must hold either bytes or uri, not both")),
    };
    Ok(Part { filename: node.opt_string("name")?, media_type: node.opt_string("mimeType")?, ..Part::of(content) })
}

fn data(node: &Node<'_>) -> Result<Part, Error> {
    let data = node.need("data")?;
    if data.value().is_object() || node.is_of_agent() {
        Ok(Part::data(data.value().clone()))
    } else {
        Err(data.mismatch("an object"))
    }
}

/// Unwraps data that was wrapped because the dialect requires an object.
fn unwrap(part: &mut Part) {
    let Content::Data(Value::Object(map)) = &mut part.content else { return };
    if map.len() != 1 || part.metadata.get(WRAPPED) != Some(&Value::Bool(true)) {
        return;
    }
    if let Some(value) = map.shift_remove("value") {
        part.content = Content::Data(value);
        part.metadata.shift_remove(WRAPPED);
    }
}

pub(crate) fn write_part<S: Serializer>(part: &Part, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    match &part.content {
        Content::Text(text) => {
            map.serialize_entry("kind", "text")?;
            map.serialize_entry("text", text)?;
        }
        Content::Raw(_) | Content::Url(_) => {
            map.serialize_entry("kind", "file")?;
            map.serialize_entry("file", &File(part))?;
        }
        Content::Data(data) if data.is_object() => {
            map.serialize_entry("kind", "data")?;
            map.serialize_entry("data", data)?;
        }
        Content::Data(data) => {
            map.serialize_entry("kind", "data")?;
            map.serialize_entry("data", &Value::from_iter([("value", data.clone())]))?;
            map.serialize_entry("metadata", &wrapped(&part.metadata))?;
            return map.end();
        }
    }
    map.metadata(&part.metadata)?;
    map.end()
}

fn wrapped(metadata: &Map) -> Map {
    let mut metadata = metadata.clone();
    metadata.insert(WRAPPED.to_owned(), Value::Bool(true));
    metadata
}

/// The `file` of a part that holds one.
struct File<'a>(&'a Part);

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.content {
            Content::Raw(bytes) => map.serialize_entry("bytes", bytes)?,
            Content::Url(uri) => map.serialize_entry("uri", uri)?,
            Content::Text(_) | Content::Data(_) => {}
        }
        map.optional("name", self.0.filename.as_ref())?;
        map.optional("mimeType", self.0.media_type.as_ref())?;
        map.end()
    }
}
