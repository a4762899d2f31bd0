//! Which of a connection's streams a frame goes to. Pure.
//!
//! A frame goes to at most one stream: the latest whose request began the frame's turn or answered a question in it;
//! else the latest that follows the task. A request may turn out to have no stream, because another client answered
//! first. Until that is known, frames that would go to its stream wait.

use multitap_a2a::Dialect;

use crate::a2a::cursor::Cursor;
use crate::a2a::follow::{Follow, Step};
use crate::a2a::frame::{Form, Frame};
use crate::rpc::RequestId;

/// The streams of one connection in one session, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Switch {
    streams: Vec<Stream>,
}

#[derive(Debug)]
struct Stream {
    id: RequestId,
    follow: Follow,
    form: Form,
    /// Only frames after this cursor go to this stream.
    after: Cursor,
    is_open: bool,
}

/// The handling of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Hold it back: its stream is not known yet.
    Wait,
    Go {
        /// The stream it goes to; `None` sends it as a notification.
        to: Option<(RequestId, Form)>,
        /// The streams that end with it.
        ended: Vec<RequestId>,
    },
}

impl Switch {
    /// Registers a request that may get a stream.
    pub(super) fn hold(&mut self, id: RequestId, follow: Follow, form: Form, after: Cursor) {
        self.streams.push(Stream { id, follow, form, after, is_open: false });
    }

    /// The request has a stream now, with the frames after this cursor.
    pub(super) fn open(&mut self, id: &RequestId, after: Cursor) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == *id) {
            (stream.is_open, stream.after) = (true, after);
        }
    }

    /// The request has no stream, or its stream has ended. Returns whether it had one.
    pub(super) fn close(&mut self, id: &RequestId) -> bool {
        let found = self.streams.iter().position(|stream| stream.id == *id);
        found.map(|at| self.streams.remove(at)).is_some_and(|stream| stream.is_open)
    }

    pub(super) fn has_open(&self, id: &RequestId) -> bool {
        self.streams.iter().any(|stream| stream.is_open && stream.id == *id)
    }

    /// The open streams, each with the dialect of its frames.
    pub(super) fn dialects(&self) -> Vec<(RequestId, Dialect)> {
        let open = self.streams.iter().filter(|stream| stream.is_open);
        open.map(|stream| (stream.id.clone(), stream.form.dialect())).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    pub(super) fn route(&mut self, frame: &Frame) -> Route {
        let awaits = |stream: &Stream| stream.concerns(frame) && stream.follow.clone().step(frame) != Step::Skip;
        if self.streams.iter().any(|stream| !stream.is_open && awaits(stream)) {
            return Route::Wait;
        }
        let (mut best, mut ended) = (None, Vec::new());
        for (at, stream) in self.streams.iter_mut().enumerate() {
            if !stream.is_open || !stream.concerns(frame) {
                continue;
            }
            let step = stream.follow.step(frame);
            if step == Step::Skip {
                continue;
            }
            if step == Step::Last {
                ended.push(stream.id.clone());
            }
            best = best.max(Some((matches!(stream.follow, Follow::Turn { .. }), at)));
        }
        let to = best.and_then(|(_, at)| self.streams.get(at)).map(|stream| (stream.id.clone(), stream.form));
        self.streams.retain(|stream| !ended.contains(&stream.id));
        Route::Go { to, ended }
    }
}

impl Stream {
    fn concerns(&self, frame: &Frame) -> bool {
        frame.cursor > self.after
    }
}

#[cfg(test)]
mod tests;
