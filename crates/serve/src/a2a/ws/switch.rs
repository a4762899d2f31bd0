//! Which of a connection's streams a frame goes to. Pure.
//!
//! A frame goes to one stream or to none: to the one whose request began its turn or answered in it, the latest if there
//! are several; else to the latest that follows its task. While it is not yet clear whether a request will have a stream,
//! because somebody else may have answered first, the frames that would be its own wait.

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
    /// What came up to here is not its business.
    after: Cursor,
    is_open: bool,
}

/// What becomes of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// It is not clear yet.
    Wait,
    Go {
        /// The stream it goes to; none of them, if nothing stands here.
        to: Option<(RequestId, Form)>,
        /// The streams that end with it.
        ended: Vec<RequestId>,
    },
}

impl Switch {
    /// A request that may come to have a stream.
    pub(super) fn hold(&mut self, id: RequestId, follow: Follow, form: Form, after: Cursor) {
        self.streams.push(Stream { id, follow, form, after, is_open: false });
    }

    /// It has one, with the frames after this one.
    pub(super) fn open(&mut self, id: &RequestId, after: Cursor) {
        if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == *id) {
            (stream.is_open, stream.after) = (true, after);
        }
    }

    /// It has none, or not any more. Whether it had one.
    pub(super) fn close(&mut self, id: &RequestId) -> bool {
        let found = self.streams.iter().position(|stream| stream.id == *id);
        found.map(|at| self.streams.remove(at)).is_some_and(|stream| stream.is_open)
    }

    pub(super) fn has_open(&self, id: &RequestId) -> bool {
        self.streams.iter().any(|stream| stream.is_open && stream.id == *id)
    }

    /// The open streams, and the dialect that each is answered in.
    pub(super) fn dialects(&self) -> Vec<(RequestId, Dialect)> {
        let open = self.streams.iter().filter(|stream| stream.is_open);
        open.map(|stream| (stream.id.clone(), stream.form.dialect)).collect()
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
