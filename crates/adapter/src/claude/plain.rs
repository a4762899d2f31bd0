//! Older shapes of the stream: `init`, `message`, `error` as lines of their own.

use multitap_event::{EventKind, Timestamp};
use serde_json::{Map, Value};

use super::decode::ClaudeCodec;
use super::message::{api_error, user_message};
use super::wire::PlainMessage;
use crate::codec::Step;

impl ClaudeCodec {
    pub(super) fn plain_init(&mut self, line: Map<String, Value>, out: &mut Step) {
        out.ready = true;
        self.session.plain_init(line, out);
    }

    pub(super) fn plain_message(&mut self, line: PlainMessage, now: Timestamp, out: &mut Step) {
        let PlainMessage { id, role, partial, content } = line;
        if role.as_deref() == Some("user") {
            out.events.extend(user_message(&content, id));
            return;
        }
        self.texts.plain(id.as_deref());
        for block in content {
            match block.text.as_deref().filter(|_| partial == Some(true)) {
                Some(piece) => self.text_piece(0, piece, out),
                None => self.assistant_block(block, None, now, out),
            }
        }
    }

    pub(super) fn plain_error(&mut self, line: &Map<String, Value>, out: &mut Step) {
        let error = line.get("error").unwrap_or(&Value::Null);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let word = text(error, "type").unwrap_or_else(|| "unknown".to_owned());
        let message = text(error, "message").or_else(|| error.as_str().map(str::to_owned));
        let message = message.or_else(|| line.get("message").and_then(Value::as_str).map(str::to_owned));
        let message = message.unwrap_or_else(|| format!("the agent reports an error: {word}"));
        out.events.push(EventKind::Error(api_error(&word, &message)));
        self.emit.turns.failed_for_good(message);
    }
}
