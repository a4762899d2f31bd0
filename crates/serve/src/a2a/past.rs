//! Frames made anew from a log, a part of it at a time: of a live session for those who are behind, and of one that is
//! only kept.

use std::collections::VecDeque;

use multitap_event::Event;
use multitap_hub::{Edge, Entry, Part};

use super::cursor::Cursor;
use super::frame::Frame;
use super::history::Log;
use super::project::Projector;

/// How much of the log is read at a time.
const AT_A_TIME: Part = Part { edge: Edge::After(0), limit: 256, bytes: 512 * 1024 };

#[derive(Debug)]
pub(crate) struct Past {
    log: Log,
    projector: Projector,
    ready: VecDeque<Frame>,
}

impl Past {
    /// From where the projector stands.
    pub(super) fn new(log: Log, projector: Projector) -> Self {
        Self { log, projector, ready: VecDeque::new() }
    }

    /// The next frame after that one; none once the log has no more. Cancel safe, and what was read is not read again.
    pub(super) async fn next(&mut self, after: Cursor) -> Option<Frame> {
        self.look(after).await;
        self.ready.pop_front()
    }

    /// The same, if it is at hand.
    pub(super) fn try_next(&mut self, after: Cursor) -> Option<Frame> {
        self.skip(after);
        self.ready.pop_front()
    }

    /// Whether there is one.
    pub(super) async fn look(&mut self, after: Cursor) -> bool {
        loop {
            self.skip(after);
            if !self.ready.is_empty() {
                return true;
            }
            if !self.read_on().await {
                return false;
            }
        }
    }

    fn skip(&mut self, after: Cursor) {
        while self.ready.front().is_some_and(|frame| frame.cursor <= after) {
            self.ready.pop_front();
        }
    }

    /// Whether the log had more.
    async fn read_on(&mut self) -> bool {
        let part = Part { edge: Edge::After(self.projector.seq()), ..AT_A_TIME };
        let entries = self.log.page(part).await.unwrap_or_else(|error| {
            tracing::warn!(session = %self.log.session(), %error, "cannot read the log");
            Vec::new()
        });
        let events: Vec<&Event> = entries.iter().filter_map(Entry::event).collect();
        let mut made = Vec::new();
        for event in &events {
            self.projector.apply(event, &mut made);
        }
        self.ready.extend(made);
        !events.is_empty()
    }
}
