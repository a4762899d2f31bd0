//! The sessions of one connection: one way through the frames of each, one frame at hand at a time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use multitap_a2a::Dialect;

use super::switch::Switch;
use crate::a2a::cursor::Cursor;
use crate::a2a::frame::Frame;
use crate::a2a::past::MissingFrames;
use crate::a2a::stage::{Reader, Stage};
use crate::rpc::RequestId;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<Track>,
}

/// One session.
#[derive(Debug)]
pub(super) struct Track {
    stage: Arc<Stage>,
    pub(super) switch: Switch,
    /// Frames that belong to no stream are told all the same.
    pub(super) is_listened_to: bool,
    way: Way,
    /// The frame at hand cannot go on yet.
    waits: bool,
    /// Why it is over before its session.
    missing: Option<MissingFrames>,
}

/// A reader, and what it read.
type Next = (Reader, Result<Option<Arc<Frame>>, MissingFrames>);

enum Way {
    /// A frame is at hand.
    Here(Reader, Arc<Frame>),
    /// More may be.
    Going(Reader),
    /// None is, for now.
    Waiting(Pin<Box<dyn Future<Output = Next> + Send>>),
    Over,
}

/// What happens next in one of the sessions.
#[derive(Debug)]
pub(super) enum Came {
    /// There is a frame at hand on this track.
    Frame(usize),
    Over(Over),
}

/// What is left of a track when the session is over and everything was read, or frames are missing.
#[derive(Debug)]
pub(super) struct Over {
    /// The streams that are open, and the dialect of each.
    pub(super) streams: Vec<(RequestId, Dialect)>,
    pub(super) missing: Option<MissingFrames>,
    pub(super) is_listened_to: bool,
}

impl Tracks {
    /// Follows a session from some place on.
    pub(super) fn add(&mut self, stage: Arc<Stage>, after: Cursor) -> &mut Track {
        let way = Way::Going(stage.read(after));
        let at = self.all.len();
        self.all.push(Track {
            stage,
            switch: Switch::default(),
            is_listened_to: false,
            way,
            waits: false,
            missing: None,
        });
        &mut self.all[at]
    }

    /// The track of that session; one from that place on, if there is none.
    pub(super) fn of(&mut self, stage: &Arc<Stage>, after: Cursor) -> &mut Track {
        match self.position(stage) {
            Some(at) => &mut self.all[at],
            None => self.add(stage.clone(), after),
        }
    }

    pub(super) fn find(&mut self, stage: &Arc<Stage>) -> Option<&mut Track> {
        self.position(stage).map(|at| &mut self.all[at])
    }

    pub(super) fn at(&mut self, at: usize) -> &mut Track {
        &mut self.all[at]
    }

    fn position(&self, stage: &Arc<Stage>) -> Option<usize> {
        self.all.iter().position(|track| Arc::ptr_eq(&track.stage, stage))
    }

    pub(super) fn has_stream(&self, id: &RequestId) -> bool {
        self.all.iter().any(|track| track.switch.has_open(id))
    }

    /// Stops the frames of a stream. Whether there was one.
    pub(super) fn close_stream(&mut self, id: &RequestId) -> bool {
        let closed = self.all.iter_mut().any(|track| track.switch.has_open(id) && track.switch.close(id));
        self.tidy();
        closed
    }

    /// Forgets sessions of which this connection wants nothing any more.
    pub(super) fn tidy(&mut self) {
        self.all.retain(|track| track.is_listened_to || !track.switch.is_empty());
    }

    /// Comes back when there is a frame at hand that can go on, or a session is over. Cancel safe.
    pub(super) async fn next(&mut self) -> Came {
        // Nobody is always first.
        let more = usize::from(self.all.len() > 1);
        self.all.rotate_left(more);
        let (at, over) = poll_fn(|context| {
            for (at, track) in self.all.iter_mut().enumerate() {
                if let Poll::Ready(is_over) = track.poll(context) {
                    return Poll::Ready((at, is_over));
                }
            }
            Poll::Pending
        })
        .await;
        if !over {
            return Came::Frame(at);
        }
        let Track { switch, missing, is_listened_to, .. } = self.all.remove(at);
        Came::Over(Over { streams: switch.dialects(), missing, is_listened_to })
    }
}

impl Track {
    /// Ready once there is a frame that can go on, or nothing more comes: then with true.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        match &mut self.way {
            Way::Here(..) if self.waits => Poll::Pending,
            Way::Here(..) | Way::Going(_) => Poll::Ready(false),
            Way::Over => Poll::Ready(true),
            Way::Waiting(next) => {
                let Poll::Ready((reader, frame)) = next.as_mut().poll(context) else { return Poll::Pending };
                let frame = frame.unwrap_or_else(|missing| {
                    self.missing = Some(missing);
                    None
                });
                let is_over = frame.is_none();
                self.way = frame.map_or(Way::Over, |frame| Way::Here(reader, frame));
                Poll::Ready(is_over)
            }
        }
    }

    /// The next frame, if it is at hand.
    pub(super) fn take(&mut self) -> Option<Arc<Frame>> {
        match std::mem::replace(&mut self.way, Way::Over) {
            Way::Here(reader, frame) => {
                self.way = Way::Going(reader);
                Some(frame)
            }
            Way::Going(mut reader) => {
                if let Some(frame) = reader.try_next() {
                    self.way = Way::Going(reader);
                    return Some(frame);
                }
                self.way = Way::Waiting(Box::pin(async move {
                    let frame = reader.next().await;
                    (reader, frame)
                }));
                None
            }
            way @ (Way::Waiting(_) | Way::Over) => {
                self.way = way;
                None
            }
        }
    }

    /// Where that frame goes is not clear yet: it waits.
    pub(super) fn put_back(&mut self, frame: Arc<Frame>) {
        match std::mem::replace(&mut self.way, Way::Over) {
            Way::Going(reader) => (self.way, self.waits) = (Way::Here(reader, frame), true),
            way @ (Way::Here(..) | Way::Waiting(_) | Way::Over) => self.way = way,
        }
    }

    /// It may be clear now.
    pub(super) fn go_on(&mut self) {
        self.waits = false;
    }
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Here(..) => "Here",
            Self::Going(_) => "Going",
            Self::Waiting(_) => "Waiting",
            Self::Over => "Over",
        })
    }
}
