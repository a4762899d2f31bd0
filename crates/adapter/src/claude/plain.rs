//! Older shapes of the stream: `message` and `error` as lines of their own.

use multitap_event::{EventKind, Timestamp};
use serde_json::{Map, Value};

use super::decode::ClaudeCodec;
use super::message::{api_error, user_message};
use super::wire::PlainMessage;
use crate::codec::Step;
use crate::json::JsonFields as _;

impl ClaudeCodec {
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
        let error = line.field("error");
        let word = error.text("type").unwrap_or("unknown");
        let message = error.text("message").or(error.and_then(Value::as_str)).or(line.text("message"));
        let message = message.map_or_else(|| format!("the agent reports an error: {word}"), str::to_owned);
        out.events.push(EventKind::Error(api_error(word, &message)));
        self.emit.turns.failed_for_good(message);
    }
}
