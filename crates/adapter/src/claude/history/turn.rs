//! The turns of a stored conversation: their usage and their ends, which Claude does not store.

use multitap_event::{Timestamp, TokenUsage, TurnEnd, TurnStatus};

use super::entry::Stored;
use super::wire::Entry;
use crate::claude::turn::tokens;
use crate::claude::wire::Block;
use crate::codec::Step;
use crate::history::EntryEvents;
use crate::json::JsonFields as _;

#[derive(Default)]
pub(super) struct Turn {
    began: Option<Timestamp>,
    /// The time of its last entry.
    pub(super) at: Option<Timestamp>,
    /// Usage of the model's messages, each counted once however many entries it has.
    used: Option<TokenUsage>,
    message: Option<(Option<String>, TokenUsage)>,
    /// The last message.
    pub(super) words: Option<String>,
    /// Whether the agent's last message or call leaves nothing to wait for.
    pub(super) is_idle: bool,
    pub(super) stopped: bool,
    /// The cause of the turn, if it was not a prompt.
    pub(super) origin: Option<String>,
    pub(super) duration: Option<u64>,
}

impl Stored {
    pub(super) fn begin_turn(&mut self, at: Timestamp, out: &mut Step) {
        if !self.codec.emit.turns.is_open() {
            self.turn = Turn { began: Some(at), ..Turn::default() };
            self.codec.begin_turn(out);
        }
        self.turn.at = Some(at);
    }

    /// Emits the end of the turn, with the time of its last entry.
    pub(super) fn end_turn(&mut self, at: Timestamp) -> Option<(Timestamp, Step)> {
        if !self.codec.emit.turns.is_open() {
            return None;
        }
        let mut turn = std::mem::take(&mut self.turn);
        turn.count();
        let at = turn.at.unwrap_or(at);
        let error = self.codec.emit.turns.reported.clone();
        let status = match &error {
            _ if turn.stopped => TurnStatus::Cancelled,
            Some(_) => TurnStatus::Failed,
            None if turn.is_idle && !self.codec.emit.tools.any_of_main() => TurnStatus::Completed,
            None => TurnStatus::Interrupted,
        };
        let (cost_usd, total_cost_usd) = self.codec.turn.cost(self.cost.take(), None);
        let mut out = Step::default();
        let end = TurnEnd {
            usage: turn.used,
            duration_ms: turn.duration.or(turn.began.map(|began| at.millis_since(began))),
            cost_usd,
            total_cost_usd,
            text: turn.words.filter(|_| status == TurnStatus::Completed),
            error: error.filter(|_| status == TurnStatus::Failed),
            origin: turn.origin,
            ..TurnEnd::of(status)
        };
        self.codec.turn_over(end, at, &mut out);
        Some((at, out))
    }

    /// Ends the running turn; another one begins.
    pub(super) fn next_turn(&mut self, at: Timestamp, emitted: &mut EntryEvents, out: &mut Step) {
        if let Some((at, step)) = self.end_turn(at) {
            emitted.before(at, step);
        }
        self.begin_turn(at, out);
    }
}

impl Turn {
    /// A message of the model, or another part of it.
    pub(super) fn model_spoke(&mut self, entry: &Entry, blocks: &[Block]) {
        let usage = entry.message().field("usage").filter(|usage| usage.is_object());
        if let Some(usage) = usage.filter(|_| entry.model().is_some()) {
            let id = entry.message().string("id");
            if self.message.as_ref().is_some_and(|(known, _)| *known != id || id.is_none()) {
                self.count();
            }
            self.message = Some((id, tokens(usage)));
        }
        self.is_idle = !entry.flag("isAbortedMidStream");
        for block in blocks {
            match block.kind.as_str() {
                "text" => self.words = block.text.clone().filter(|text| !text.is_empty()),
                "tool_use" => (self.words, self.is_idle) = (None, false),
                _ => {}
            }
        }
    }

    /// Adds the usage of the model's message, which is complete.
    fn count(&mut self) {
        self.used = TokenUsage::sum(self.used, self.message.take().map(|(_, usage)| usage));
    }
}
