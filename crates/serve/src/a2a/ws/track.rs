//! The sessions of one connection: one reader for each, with at most one pending frame.

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

/// All tracks of a connection.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<Track>,
}

/// One followed session.
#[derive(Debug)]
pub(super) struct Track {
    stage: Arc<Stage>,
    pub(super) switch: Switch,
    /// Whether frames that belong to no stream are sent too.
    pub(super) is_listened_to: bool,
    state: ReaderState,
    /// Whether the pending frame waits because its stream is not known yet.
    is_blocked: bool,
    /// Set if the track ended before its session, because frames are missing.
    missing: Option<MissingFrames>,
}

/// A reader, and what it read.
type Next = (Reader, Result<Option<Arc<Frame>>, MissingFrames>);

/// The state of a track's reader.
enum ReaderState {
    /// A frame is pending.
    Pending(Reader, Arc<Frame>),
    /// The reader may have more frames in memory.
    Ready(Reader),
    /// The reader waits for the next frame.
    Waiting(Pin<Box<dyn Future<Output = Next> + Send>>),
    Over,
}

/// The next event of any track.
#[derive(Debug)]
pub(super) enum TrackEvent {
    /// This track has a frame to send.
    Frame(usize),
    Over(Over),
}

/// A track whose session is over and read to its end, or whose frames are missing.
#[derive(Debug)]
pub(super) struct Over {
    /// The streams that are open, and the dialect of each.
    pub(super) streams: Vec<(RequestId, Dialect)>,
    pub(super) missing: Option<MissingFrames>,
    pub(super) is_listened_to: bool,
}

impl Tracks {
    /// Follows a session after that cursor.
    pub(super) fn add(&mut self, stage: Arc<Stage>, after: Cursor) -> &mut Track {
        let state = ReaderState::Ready(stage.read(after));
        let at = self.all.len();
        self.all.push(Track {
            stage,
            switch: Switch::default(),
            is_listened_to: false,
            state,
            is_blocked: false,
            missing: None,
        });
        &mut self.all[at]
    }

    /// The track of that session; creates one that starts after the cursor, if there is none.
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

    /// Stops the frames of a stream. Returns whether there was one.
    pub(super) fn close_stream(&mut self, id: &RequestId) -> bool {
        let closed = self.all.iter_mut().any(|track| track.switch.has_open(id) && track.switch.close(id));
        self.tidy();
        closed
    }

    /// Drops sessions that this connection no longer follows.
    pub(super) fn tidy(&mut self) {
        self.all.retain(|track| track.is_listened_to || !track.switch.is_empty());
    }

    /// Returns when a track has a frame to send, or has ended. Cancel safe.
    pub(super) async fn next(&mut self) -> TrackEvent {
        // Begins with another track each time, so that none is preferred.
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
            return TrackEvent::Frame(at);
        }
        let Track { switch, missing, is_listened_to, .. } = self.all.remove(at);
        TrackEvent::Over(Over { streams: switch.dialects(), missing, is_listened_to })
    }
}

impl Track {
    /// Ready with `false` when there may be a frame to send, with `true` when the track has ended.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        match &mut self.state {
            ReaderState::Pending(..) if self.is_blocked => Poll::Pending,
            ReaderState::Pending(..) | ReaderState::Ready(_) => Poll::Ready(false),
            ReaderState::Over => Poll::Ready(true),
            ReaderState::Waiting(next) => {
                let Poll::Ready((reader, frame)) = next.as_mut().poll(context) else { return Poll::Pending };
                let frame = frame.unwrap_or_else(|missing| {
                    self.missing = Some(missing);
                    None
                });
                let is_over = frame.is_none();
                self.state = frame.map_or(ReaderState::Over, |frame| ReaderState::Pending(reader, frame));
                Poll::Ready(is_over)
            }
        }
    }

    /// The next frame, if it is in memory.
    pub(super) fn take(&mut self) -> Option<Arc<Frame>> {
        match std::mem::replace(&mut self.state, ReaderState::Over) {
            ReaderState::Pending(reader, frame) => {
                self.state = ReaderState::Ready(reader);
                Some(frame)
            }
            ReaderState::Ready(mut reader) => {
                if let Some(frame) = reader.try_next() {
                    self.state = ReaderState::Ready(reader);
                    return Some(frame);
                }
                self.state = ReaderState::Waiting(Box::pin(async move {
                    let frame = reader.next().await;
                    (reader, frame)
                }));
                None
            }
            state @ (ReaderState::Waiting(_) | ReaderState::Over) => {
                self.state = state;
                None
            }
        }
    }

    /// The stream of that frame is not known yet: it stays pending.
    pub(super) fn put_back(&mut self, frame: Arc<Frame>) {
        match std::mem::replace(&mut self.state, ReaderState::Over) {
            ReaderState::Ready(reader) => (self.state, self.is_blocked) = (ReaderState::Pending(reader, frame), true),
            state @ (ReaderState::Pending(..) | ReaderState::Waiting(_) | ReaderState::Over) => self.state = state,
        }
    }

    /// The stream of the pending frame may be known now.
    pub(super) fn unblock(&mut self) {
        self.is_blocked = false;
    }
}

impl std::fmt::Debug for ReaderState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pending(..) => "Pending",
            Self::Ready(_) => "Ready",
            Self::Waiting(_) => "Waiting",
            Self::Over => "Over",
        })
    }
}
