//! Which frames belong to a stream, and with which it ends. Pure.

use std::sync::Arc;

use multitap_event::QuestionId;

use super::frame::Frame;
use super::name;

/// What a stream follows.
#[derive(Debug, Clone)]
pub(crate) enum Follow {
    /// A turn, from its prompt on or from an answer in it, until it is over or asks something.
    Turn { turn: Arc<str>, answered: Option<QuestionId> },
    /// A task; one that lasts as long as its session is followed across its turns.
    Task { task: Arc<str>, own: bool },
}

/// What a frame is to a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Not its business.
    Skip,
    Pass,
    /// It is the last one.
    Last,
}

impl Follow {
    pub(crate) fn turn(turn: impl Into<Arc<str>>) -> Self {
        Self::Turn { turn: turn.into(), answered: None }
    }

    pub(crate) fn task(task: &str) -> Self {
        Self::Task { task: task.into(), own: name::is_own_task(task) }
    }

    pub(crate) fn step(&mut self, frame: &Frame) -> Step {
        match self {
            Self::Turn { turn, answered } => {
                if frame.place.turn.as_ref() != Some(turn) {
                    return Step::Skip;
                }
                if answered.is_some() {
                    // What came before the answer was told to whoever asked.
                    if frame.question != *answered || frame.is_asking() {
                        return Step::Skip;
                    }
                    *answered = None;
                }
                if frame.ends.is_some() { Step::Last } else { Step::Pass }
            }
            Self::Task { task, .. } if frame.place.task != *task => Step::Skip,
            Self::Task { own: true, .. } if frame.place.state.is_terminal() && frame.ends.is_some() => Step::Last,
            Self::Task { .. } => Step::Pass,
        }
    }
}
