//! Selects the frames of a stream, and the frame that ends it. Pure.

use std::sync::Arc;

use multitap_event::QuestionId;

use super::frame::Frame;
use super::name;

/// The frames that a stream follows.
#[derive(Debug, Clone)]
pub(crate) enum Follow {
    /// A turn, from its prompt or from an answer in it, until it ends or asks a question.
    Turn { turn: Arc<str>, answered: Option<QuestionId> },
    /// A task. A session's lifelong task is followed across turns.
    Task { task: Arc<str>, own: bool },
}

/// The handling of a frame in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The frame belongs to another stream.
    Skip,
    Pass,
    /// Pass it on, as the stream's last frame.
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
                if frame.scope.turn.as_ref() != Some(turn) {
                    return Step::Skip;
                }
                if answered.is_some() {
                    // The stream that got the question has the frames before the answer.
                    if frame.question != *answered || frame.is_asking() {
                        return Step::Skip;
                    }
                    *answered = None;
                }
                if frame.ends.is_some() { Step::Last } else { Step::Pass }
            }
            Self::Task { task, .. } if frame.scope.task != *task => Step::Skip,
            Self::Task { own: true, .. } if frame.scope.state.is_terminal() && frame.ends.is_some() => Step::Last,
            Self::Task { .. } => Step::Pass,
        }
    }
}
