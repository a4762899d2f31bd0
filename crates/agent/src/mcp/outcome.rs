//! Turns a server's answer into the outcome of a tool. Content that is too large is cut, with a note.

use multitap_event::Image;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::tool::{Outcome, cut_before};

const MOST_TEXT: usize = 256 * 1024;
/// Maximum size of an image, in base64.
const LARGEST_IMAGE: usize = 7 * 1024 * 1024;
const MOST_IMAGES: usize = 8;
/// Picture types that models accept.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

pub(super) fn outcome(answer: CallToolResult) -> Outcome {
    let failed = answer.is_error == Some(true);
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for block in answer.content {
        match read(block) {
            Read::Text(text) => texts.push(text),
            Read::Picture(image) if images.len() == MOST_IMAGES => texts.push(left_out(&image.media_type, &image.data)),
            Read::Picture(image) => images.push(image),
        }
    }
    let structured = answer.structured_content.filter(|content| !content.is_null());
    if texts.is_empty() && images.is_empty() {
        texts.push(match &structured {
            Some(content) => shown(content),
            None if failed => "it failed and did not say why".to_owned(),
            None => "(no output)".to_owned(),
        });
    }
    let text = cut(texts.join("\n"));
    let made = if failed { Outcome::failed(text) } else { Outcome::done(text) };
    Outcome { result: structured.filter(|content| !failed && fits(content)), images, ..made }
}

enum Read {
    Text(String),
    Picture(Image),
}

fn read(block: ContentBlock) -> Read {
    match block {
        ContentBlock::Text(text) => Read::Text(text.text),
        ContentBlock::Image(image) => picture(image.mime_type, image.data),
        ContentBlock::Audio(audio) => Read::Text(left_out(&audio.mime_type, &audio.data)),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => Read::Text(format!("{uri}:\n{text}")),
            ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                picture(mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()), blob)
            }
            _ => Read::Text("[a resource of a kind that is not known]".to_owned()),
        },
        ContentBlock::ResourceLink(link) => Read::Text(format!("[{}: {}]", link.name, link.uri)),
        _ => Read::Text("[content of a kind that is not known]".to_owned()),
    }
}

fn picture(media_type: String, data: String) -> Read {
    if PICTURES.contains(&media_type.as_str()) && data.len() <= LARGEST_IMAGE {
        Read::Picture(Image { media_type, data })
    } else {
        Read::Text(left_out(&media_type, &data))
    }
}

fn left_out(media_type: &str, base64: &str) -> String {
    format!("[{media_type}, about {} bytes, left out]", base64.len() / 4 * 3)
}

/// Structured content as text: indented, unless it is too large.
fn shown(content: &Value) -> String {
    // Indentation can make a deeply nested value a hundred times as long.
    if fits(content) { serde_json::to_string_pretty(content).unwrap_or_default() } else { content.to_string() }
}

fn fits(content: &Value) -> bool {
    content.to_string().len() <= MOST_TEXT
}

pub(super) fn cut(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let end = cut_before(&text, MOST_TEXT);
        let more = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n… and {more} more bytes, which were left out"));
    }
    text
}

#[cfg(test)]
mod tests {
    use multitap_event::ToolOutcome;
    use serde_json::json;

    use super::*;

    fn of(answer: Value) -> Outcome {
        outcome(serde_json::from_value(answer).unwrap())
    }

    #[test]
    fn every_kind_of_content_has_its_place() {
        let outcome = of(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "image", "mimeType": "image/tiff", "data": "AAAA" },
            { "type": "audio", "mimeType": "audio/wav", "data": "AAAAAAAA" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "file:///b", "mimeType": "image/gif", "blob": "BBBB" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c" },
        ] }));
        assert_eq!(outcome.outcome, ToolOutcome::Completed);
        let expected = "one\n[image/tiff, about 3 bytes, left out]\n[audio/wav, about 6 bytes, left out]\n\
            file:///a:\ninside\n[c: file:///c]";
        assert_eq!(outcome.text, expected);
        let kinds: Vec<_> = outcome.images.iter().map(|image| image.media_type.as_str()).collect();
        assert_eq!(kinds, ["image/png", "image/gif"]);
    }

    #[test]
    fn an_error_is_a_failure() {
        let outcome = of(json!({ "content": [{ "type": "text", "text": "no" }], "isError": true }));
        assert_eq!((outcome.outcome, outcome.text.as_str()), (ToolOutcome::Failed, "no"));
        assert_eq!(of(json!({ "content": [], "isError": true })).text, "it failed and did not say why");
        assert_eq!(of(json!({ "content": [] })).text, "(no output)");
    }

    #[test]
    fn structured_content_is_for_people_and_for_models_where_it_is_all() {
        let both = of(json!({ "content": [{ "type": "text", "text": "3" }], "structuredContent": { "sum": 3 } }));
        assert_eq!((both.text.as_str(), both.result), ("3", Some(json!({ "sum": 3 }))));
        let alone = of(json!({ "content": [], "structuredContent": { "sum": 3 } }));
        assert_eq!(alone.text, "{\n  \"sum\": 3\n}");
    }

    /// What one answer may cost in memory: indented, this one had 130 MB.
    #[test]
    fn nested_content_is_no_longer_than_it_came() {
        let deep = (0..120).fold(json!(vec![0; 500_000]), |inner, _| json!([inner]));
        let size = deep.to_string().len();
        let text = shown(&deep);
        assert!(text.len() <= size, "{} from {size}", text.len());
        let outcome = of(json!({ "content": [], "structuredContent": deep }));
        assert!(outcome.text.len() < MOST_TEXT + 100 && outcome.result.is_none());
    }

    /// At a size at which a cost that grows with its square takes minutes.
    #[test]
    fn very_many_parts_are_read_in_linear_time() {
        let part = json!({ "type": "text", "text": "a" });
        let outcome = of(json!({ "content": vec![part; 300_000] }));
        assert!(outcome.text.ends_with("more bytes, which were left out"));
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" });
        assert_eq!(of(json!({ "content": vec![image; 100_000] })).images.len(), MOST_IMAGES);
    }

    #[test]
    fn what_is_too_large_is_cut_and_says_so() {
        let outcome = of(json!({ "content": [{ "type": "text", "text": "é".repeat(MOST_TEXT) }] }));
        assert!(outcome.text.len() < MOST_TEXT + 100 && outcome.text.ends_with("more bytes, which were left out"));
        let images = vec![json!({ "type": "image", "mimeType": "image/png", "data": "AAAA" }); 20];
        let outcome = of(json!({ "content": images }));
        assert_eq!((outcome.images.len(), outcome.text.lines().count()), (MOST_IMAGES, 12));
    }
}
