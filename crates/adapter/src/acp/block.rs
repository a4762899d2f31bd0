//! Content blocks of messages, most often text.

use multitap_event::Image;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json::JsonFields as _;

/// A content block in any shape.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Content<'a>(#[serde(borrow)] Option<&'a RawValue>);

/// A block in its usual form. Blocks with other fields do not parse as this.
#[derive(Deserialize)]
struct TextBlock {
    #[serde(rename = "type")]
    kind: TextKind,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TextKind {
    Text,
}

impl Content<'_> {
    /// The block as text. Other content becomes its name.
    pub(super) fn text(self) -> String {
        let Some(written) = self.0 else { return String::new() };
        match serde_json::from_str(written.get()) {
            Ok(TextBlock { kind: TextKind::Text, text }) => text,
            Err(_) => text_of(&self.value()),
        }
    }

    pub(super) fn image(self) -> Option<Image> {
        let block = self.value();
        let media_type = block.string("mimeType").filter(|_| block.text("type") == Some("image"))?;
        Some(Image { media_type, data: block.string("data")? })
    }

    fn value(self) -> Value {
        self.0.and_then(|written| serde_json::from_str(written.get()).ok()).unwrap_or_default()
    }
}

/// A content block as text; other content becomes its name. A call's list of the same name is read elsewhere.
pub(super) fn text_of(block: &Value) -> String {
    let text = match block.text("type") {
        Some("text") => block.text("text"),
        Some("resource_link") => block.text("uri").or(block.text("name")),
        Some("resource") => block.field("resource").text("text").or(block.field("resource").text("uri")),
        Some(other) => return format!("[{other}]"),
        None => block.as_str(),
    };
    text.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_block_of_any_shape_reads() {
        let read = |value: Value| {
            let written = value.to_string();
            let content: Content<'_> = serde_json::from_str(&written).unwrap();
            (content.text(), content.image())
        };
        assert_eq!(read(json!({"text": "hi", "annotations": null, "type": "text"})).0, "hi");
        assert_eq!(read(json!("hi")).0, "hi");
        assert_eq!(read(json!({"type": "text", "text": 1})).0, "");
        for odd in [json!(null), json!(true), json!(-1), json!(1), json!(0.5), json!([{"type": "content"}])] {
            assert_eq!(read(odd), (String::new(), None));
        }
        assert_eq!(read(json!({"type": "audio", "text": "no"})).0, "[audio]");
        let image = read(json!({"type": "image", "mimeType": "image/png", "data": "AAAA"})).1.unwrap();
        assert_eq!((image.media_type.as_str(), image.data.as_str()), ("image/png", "AAAA"));
    }
}
