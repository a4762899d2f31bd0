//! Writing: what both dialects do alike when they turn the model into JSON.

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::model::Map;

/// The text of a value that has nothing in it that JSON could not say.
pub(crate) fn text(value: &impl Serialize) -> String {
    // All keys are strings and nothing here fails by itself, so there is no error to tell anybody of.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

/// As [`text`], as a tree.
pub(crate) fn tree(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Fields that are left out when they have nothing to say.
pub(crate) trait Fields: SerializeMap {
    fn optional<T: Serialize>(&mut self, key: &'static str, value: Option<&T>) -> Result<(), Self::Error> {
        value.map_or(Ok(()), |value| self.serialize_entry(key, value))
    }

    fn unless_empty(&mut self, key: &'static str, text: &str) -> Result<(), Self::Error> {
        if text.is_empty() { Ok(()) } else { self.serialize_entry(key, text) }
    }

    fn list(&mut self, key: &'static str, list: &[String]) -> Result<(), Self::Error> {
        if list.is_empty() { Ok(()) } else { self.serialize_entry(key, list) }
    }

    fn metadata(&mut self, metadata: &Map) -> Result<(), Self::Error> {
        if metadata.is_empty() { Ok(()) } else { self.serialize_entry("metadata", metadata) }
    }
}

impl<M: SerializeMap> Fields for M {}
