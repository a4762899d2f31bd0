//! Reads facts from the raw frames that the library does not pass on: the signature of a hidden thought, and why a
//! reply failed or was cut.

use std::sync::{Arc, Mutex, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef};
use serde_json::Value;

/// A fact that the library does not pass on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RawReport {
    /// Signature of a thought that ends here.
    Signature(String),
    /// The provider's own error report.
    Failed(Value),
    Cut(String),
}

/// Raw reports since the last `drain`. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tap(Arc<Mutex<Vec<RawReport>>>);

impl Tap {
    pub(super) fn drain(&self) -> Vec<RawReport> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ChatFrameSink for Tap {
    fn on_frame(&self, _: &FrameCtx, frame: RawFrameRef<'_>) {
        if let Some(aside) = aside(frame.data) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(aside);
        }
    }
}

/// Only frames that contain one of these are parsed.
const WORDS: [&str; 5] =
    ["redacted_thinking", "encrypted_content", "response.failed", "response.incomplete", "blockReason"];

fn aside(data: &str) -> Option<RawReport> {
    if !WORDS.iter().any(|word| data.contains(word)) {
        return None;
    }
    let frame: Value = serde_json::from_str(data).ok()?;
    let text = |pointer: &str| {
        let text = frame.pointer(pointer).and_then(Value::as_str);
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    match frame["type"].as_str() {
        Some("content_block_start") if frame["content_block"]["type"] == "redacted_thinking" => {
            Some(RawReport::Signature(frame["content_block"].to_string()))
        }
        Some("response.output_item.done") if frame["item"]["type"] == "reasoning" => {
            text("/item/encrypted_content").map(RawReport::Signature)
        }
        Some("response.failed") => Some(RawReport::Failed(frame["response"].clone())),
        Some("response.incomplete") => text("/response/incomplete_details/reason").map(RawReport::Cut),
        None => text("/promptFeedback/blockReason").map(RawReport::Cut),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_said_aside_is_heard() {
        let hidden = json!({"type": "redacted_thinking", "data": "abc"});
        let heard = |frame: Value| aside(&frame.to_string());
        assert_eq!(
            heard(json!({"type": "content_block_start", "index": 0, "content_block": hidden})),
            Some(RawReport::Signature(hidden.to_string()))
        );
        let item = json!({"type": "reasoning", "encrypted_content": "xyz", "summary": []});
        assert_eq!(
            heard(json!({"type": "response.output_item.done", "item": item})),
            Some(RawReport::Signature("xyz".to_owned()))
        );
        let cut = json!({"incomplete_details": {"reason": "content_filter"}});
        assert_eq!(
            heard(json!({"type": "response.incomplete", "response": cut})),
            Some(RawReport::Cut("content_filter".to_owned()))
        );
        assert_eq!(
            heard(json!({"promptFeedback": {"blockReason": "SAFETY"}})),
            Some(RawReport::Cut("SAFETY".to_owned()))
        );
        // The word occurs in ordinary text.
        let talk =
            json!({"type": "response.output_text.delta", "delta": "response.failed encrypted_content blockReason"});
        assert_eq!(heard(talk), None);
        assert_eq!(heard(json!({"type": "response.output_item.done", "item": {"encrypted_content": null}})), None);
    }
}
