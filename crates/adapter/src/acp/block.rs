//! Content blocks: what an agent or a user says, most often text.

use std::fmt;

use multitap_event::Image;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::line::Word;

/// A content block. Text comes by the hundred and is read as such; for the rest any shape will do.
#[derive(Debug, PartialEq)]
pub(super) enum Content {
    Text(String),
    Other(Value),
}

impl Content {
    /// The block as text; what is no text is named.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Other(block) => text_of(&block),
        }
    }

    /// The picture that it is.
    pub(super) fn image(&self) -> Option<Image> {
        let Self::Other(block) = self else { return None };
        let text = |key: &str| block.get(key).and_then(Value::as_str).map(str::to_owned);
        if text("type")? != "image" {
            return None;
        }
        Some(Image { media_type: text("mimeType")?, data: text("data")? })
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Other(Value::Null)
    }
}

/// A content block as text; what is no text is named.
pub(super) fn text_of(block: &Value) -> String {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some("resource_link") => text("uri").or(text("name")).unwrap_or_default().to_owned(),
        Some("resource") => {
            let resource = block.get("resource");
            let of = |key: &str| resource.and_then(|resource| resource.get(key)?.as_str());
            of("text").or(of("uri")).unwrap_or_default().to_owned()
        }
        Some(other) => format!("[{other}]"),
        None => block.as_str().unwrap_or_default().to_owned(),
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Block)
    }
}

struct Block;

impl<'de> Visitor<'de> for Block {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a content block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let (mut is_text, mut said, mut other) = (false, None, Map::new());
        while let Some(key) = entries.next_key::<Word<'_>>()? {
            match (&*key, entries.next_value()?) {
                ("type", Value::String(sort)) if sort == "text" => is_text = true,
                ("text", Value::String(text)) => said = Some(text),
                (_, value) => {
                    other.insert(key.0.into_owned(), value);
                }
            }
        }
        if is_text {
            return Ok(Content::Text(said.unwrap_or_default()));
        }
        other.extend(said.map(|text| ("text".to_owned(), text.into())));
        Ok(Content::Other(other.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    // A call shows a list under the same name, which is read elsewhere. The rest says nothing.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Content::default())
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_of_any_shape_reads() {
        let read = |value: Value| serde_json::from_str::<Content>(&value.to_string()).unwrap();
        assert_eq!(read(json!({"text": "hi", "annotations": null, "type": "text"})), Content::Text("hi".to_owned()));
        assert_eq!(read(json!("hi")), Content::Text("hi".to_owned()));
        assert_eq!(read(json!({"type": "text", "text": 1})), Content::Text(String::new()));
        for odd in [json!(null), json!(true), json!(-1), json!(1), json!(0.5), json!([{"type": "content"}])] {
            assert_eq!(read(odd).into_text(), "");
        }
        assert_eq!(read(json!({"type": "audio", "text": "no"})).into_text(), "[audio]");
        let image = read(json!({"type": "image", "mimeType": "image/png", "data": "AAAA"})).image().unwrap();
        assert_eq!((image.media_type.as_str(), image.data.as_str()), ("image/png", "AAAA"));
    }
}
