//! Messages of the model and the user: text and thoughts, streamed or whole, each reported once.

use std::collections::{HashMap, VecDeque};

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, Image, MessageId, Role, TextChunk, Timestamp, ToolId, UserMessage,
};
use serde_json::{Map, Value};

use super::decode::{ClaudeCodec, note};
use super::wire::{Assistant, Block, Stream, User};
use crate::codec::Step;
use crate::emit::{Voice, retract};
use crate::json::JsonFields as _;

/// Messages in progress: the main one, and one for each sub-agent (by the tool call that started it).
#[derive(Debug, Default)]
pub(super) struct Texts {
    main: StreamedMessage,
    agents: HashMap<String, StreamedMessage>,
}

#[derive(Debug, Default)]
struct StreamedMessage {
    id: Option<String>,
    /// Text and thoughts that were streamed, by block, until the whole block comes; the newest [`MOST_STREAMED`].
    streamed: VecDeque<StreamedBlock>,
    /// Number of whole blocks so far.
    whole: u64,
}

#[derive(Debug)]
struct StreamedBlock {
    index: u64,
    id: Option<MessageId>,
    voice: Voice,
    text: String,
}

/// Maximum number of blocks of one message in progress. Claude streams one after the other.
const MOST_STREAMED: usize = 64;

/// The part of a whole block that was not emitted yet.
enum Rest {
    Nothing,
    /// The end of a block whose beginning was streamed.
    Tail(u64, String),
    Whole(u64),
}

impl StreamedMessage {
    /// A message begins; it may be the one in progress.
    fn begin(&mut self, id: Option<&str>) {
        let nameless = self.id.is_none() && !self.streamed.is_empty();
        if nameless {
            self.id = id.map(str::to_owned);
        } else if id.is_none() || self.id.as_deref() != id {
            *self = Self { id: id.map(str::to_owned), ..Self::default() };
        }
    }

    /// Adds a piece to a block. Returns the id of the block's message.
    fn piece(&mut self, index: u64, voice: Voice, piece: &str) -> Option<MessageId> {
        let at = self.streamed.iter().position(|block| block.index == index).unwrap_or_else(|| {
            if self.streamed.len() == MOST_STREAMED {
                self.streamed.pop_front();
            }
            self.streamed.push_back(StreamedBlock { index, id: None, voice, text: String::new() });
            self.streamed.len() - 1
        });
        // The id is chosen once for all pieces of the block; the message may get its own id only later.
        if self.streamed[at].id.is_none() {
            self.streamed[at].id = self.block_id(index);
        }
        let block = &mut self.streamed[at];
        block.text.push_str(piece);
        block.id.clone()
    }

    /// A whole block came: returns the part that was not streamed.
    fn rest(&mut self, voice: Voice, whole: &str) -> Rest {
        let index = self.whole;
        self.whole += 1;
        // The whole block may be trimmed: then it contains nothing beyond the streamed text.
        let is_it = |block: &StreamedBlock| {
            block.voice == voice && (whole.starts_with(&block.text) || block.text.contains(whole.trim()))
        };
        let at = self.streamed.iter().position(is_it);
        let Some(block) = at.and_then(|at| self.streamed.remove(at)) else { return Rest::Whole(index) };
        match whole.strip_prefix(block.text.as_str()) {
            None | Some("") => Rest::Nothing,
            Some(tail) => Rest::Tail(block.index, tail.to_owned()),
        }
    }

    /// The blocks that were streamed but never came whole. If the model starts another message, it repeats them.
    fn unfinished(&self) -> Vec<MessageId> {
        self.streamed.iter().filter_map(|block| self.block_id(block.index)).collect()
    }

    fn block_id(&self, index: u64) -> Option<MessageId> {
        Some(format!("{}:{index}", self.id.as_deref()?).into())
    }
}

impl Texts {
    fn of(&mut self, parent: Option<&str>) -> &mut StreamedMessage {
        match parent {
            None => &mut self.main,
            Some(parent) => self.agents.entry(parent.to_owned()).or_default(),
        }
    }

    /// A message in the older format continues, or another one begins.
    pub(super) fn plain(&mut self, id: Option<&str>) {
        if id.is_some() {
            self.of(None).begin(id);
        }
    }

    /// The turn is over: a whole block that comes later does not repeat a block streamed in it.
    pub(super) fn turn_over(&mut self) {
        self.main = StreamedMessage::default();
    }
}

impl ClaudeCodec {
    pub(super) fn stream_event(&mut self, line: Stream<'_>, out: &mut Step) {
        let Stream { event, parent_tool_use_id: parent } = line;
        let message = self.texts.of(parent.as_deref());
        match &*event.kind {
            "message_start" => {
                retract(message.unfinished(), out);
                let id = event.message.and_then(|message| message.id);
                *message = StreamedMessage { id, ..StreamedMessage::default() };
            }
            "content_block_delta" => {
                let Some(delta) = event.delta else { return };
                let (voice, piece) = match (delta.text, delta.thinking) {
                    (Some(text), _) => (Voice::Speech, text),
                    (None, Some(thinking)) => (Voice::Thought, thinking),
                    (None, None) => return,
                };
                if piece.is_empty() {
                    return;
                }
                let id = message.piece(event.index, voice, &piece);
                out.events.push(voice.event(piece, true, id, parent.as_deref().map(ToolId::from)));
            }
            _ => {}
        }
    }

    pub(super) fn assistant(&mut self, line: Assistant, now: Timestamp, out: &mut Step) {
        let Assistant { message, parent_tool_use_id: parent, error, is_api_error_message, uuid } = line;
        let parent = parent.filter(|parent| !parent.is_empty());
        if parent.is_none() {
            self.turn.last_message = uuid.clone().or(self.turn.last_message.take());
        }
        if error.is_some() || is_api_error_message == Some(true) {
            let word = error.as_deref().unwrap_or("unknown");
            let text = plain_text(&message.content);
            let said = if text.is_empty() { format!("the model could not answer: {word}") } else { text };
            out.events.push(EventKind::Error(api_error(word, &said)));
            self.emit.turns.reported = Some(said);
            if is_api_error_message == Some(true) {
                return;
            }
        }
        self.texts.of(parent.as_deref()).begin(message.id.as_deref().or(uuid.as_deref()));
        for block in message.content {
            self.assistant_block(block, parent.as_deref(), now, out);
        }
    }

    pub(super) fn text_piece(&mut self, index: u64, piece: &str, out: &mut Step) {
        let id = self.texts.of(None).piece(index, Voice::Speech, piece);
        out.events.push(Voice::Speech.event(piece.to_owned(), true, id, None));
    }

    pub(super) fn assistant_block(&mut self, block: Block, parent: Option<&str>, now: Timestamp, out: &mut Step) {
        let (voice, whole) = match block.kind.as_str() {
            "text" => (Voice::Speech, block.text.unwrap_or_default()),
            "thinking" => (Voice::Thought, block.thinking.unwrap_or_default()),
            kind => {
                self.texts.of(parent).whole += 1;
                match kind {
                    "tool_use" | "server_tool_use" | "mcp_tool_use" => self.tool_use(block, parent, now, out),
                    "redacted_thinking" => {}
                    _ if block.tool_use_id.is_some() => self.tool_result(block, None, None, now, out),
                    other => out.events.push(note("contentBlock", Some(other.to_owned()), Map::new())),
                }
                return;
            }
        };
        let message = self.texts.of(parent);
        match message.rest(voice, &whole) {
            Rest::Nothing => {}
            Rest::Tail(index, tail) => {
                out.events.push(voice.event(tail, true, message.block_id(index), parent.map(ToolId::from)));
            }
            Rest::Whole(_) if whole.is_empty() => {}
            Rest::Whole(index) => {
                out.events.push(voice.event(whole, false, message.block_id(index), parent.map(ToolId::from)));
            }
        }
    }

    pub(super) fn user(&mut self, line: User<'_>, now: Timestamp, out: &mut Step) {
        let User { message, parent_tool_use_id, is_synthetic, is_replay, tool_use_result, tool_result_meta, uuid } =
            line;
        let results = message.content.iter().filter(|block| block.tool_use_id.is_some()).count();
        // A structured result belongs to the message's only tool result.
        let mut structured = tool_use_result.filter(|_| results == 1);
        // If several entries have the same id, the first one counts.
        let metas = tool_result_meta.as_array().into_iter().flatten().rev();
        let meta_of: HashMap<&str, &Value> = metas.filter_map(|meta| Some((meta.text("id")?, meta))).collect();
        let (reported, said): (Vec<Block>, Vec<Block>) =
            message.content.into_iter().partition(|block| block.tool_use_id.is_some());
        for block in reported {
            let meta = block.tool_use_id.as_deref().and_then(|id| meta_of.get(id).copied());
            self.tool_result(block, structured.take(), meta, now, out);
        }
        if is_synthetic == Some(true) || is_replay == Some(true) {
            return;
        }
        match parent_tool_use_id.filter(|parent| !parent.is_empty()) {
            // The prompt of the sub-agent.
            Some(parent) if !said.is_empty() => out.events.push(EventKind::TextChunk(TextChunk {
                content: plain_text(&said),
                is_partial: false,
                role: Some(Role::User),
                message_id: uuid.map(MessageId::from),
                parent_tool_id: Some(parent.into()),
            })),
            Some(_) => {}
            None => out.events.extend(user_message(&said, uuid)),
        }
    }
}

/// A prompt; text that Claude writes in the user's name after an interruption does not count.
pub(super) fn user_message(blocks: &[Block], id: Option<String>) -> Option<EventKind> {
    let content = plain_text(blocks);
    let images = blocks.iter().filter_map(image).collect::<Vec<_>>();
    if (content.is_empty() && images.is_empty()) || content.starts_with("[Request interrupted by user") {
        return None;
    }
    let message_id = id.map(MessageId::from);
    Some(EventKind::UserMessage(UserMessage { content, images, message_id, ..UserMessage::default() }))
}

/// All text blocks, one after the other.
pub(super) fn plain_text(blocks: &[Block]) -> String {
    let texts: Vec<&str> =
        blocks.iter().filter(|block| block.kind == "text").filter_map(|block| block.text.as_deref()).collect();
    texts.join("\n")
}

fn image(block: &Block) -> Option<Image> {
    let source = block.source.as_ref().filter(|_| block.kind == "image")?;
    Some(Image { media_type: source.string("media_type")?, data: source.string("data")? })
}

/// The error kind for Claude's word for it.
pub(super) fn api_error(word: &str, said: &str) -> AgentError {
    let kind = match word {
        "authentication_failed" | "billing_error" | "oauth_org_not_allowed" | "permission_denied" => {
            AgentErrorKind::PermissionDenied
        }
        "invalid_request" => AgentErrorKind::ProtocolError,
        _ => AgentErrorKind::Unknown,
    };
    AgentError::new(kind, said).of(AgentType::Claude).code(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each piece and each whole block was once compared with all blocks of its message.
    #[test]
    fn a_message_may_have_very_many_blocks() {
        const BLOCKS: u64 = 100_000;
        let mut message = StreamedMessage { id: Some("m".to_owned()), ..StreamedMessage::default() };
        for index in 0..BLOCKS {
            message.piece(index, Voice::Speech, &format!("block {index}."));
            message.piece(index, Voice::Speech, " More.");
            if index % 2 == 0 {
                let rest = message.rest(Voice::Speech, &format!("block {index}. More. End."));
                assert!(matches!(rest, Rest::Tail(at, tail) if at == index && tail == " End."));
            }
        }
        assert_eq!(message.streamed.len(), MOST_STREAMED);
        assert!((0..BLOCKS).all(|_| matches!(message.rest(Voice::Speech, "never streamed"), Rest::Whole(_))));
    }
}
