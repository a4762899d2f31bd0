//! Ignores keys aimed at a question that was just answered elsewhere. Pure.

use multitap_event::QuestionId;

use super::{Dialog, Model, unsent};
use crate::keys::Action;

/// The question that was on the screen a moment ago.
#[derive(Debug)]
pub(crate) struct ClosedQuestion {
    pub(crate) question: QuestionId,
    /// A comment was being typed: digits may belong to it.
    had_comment: bool,
    letters: usize,
}

impl ClosedQuestion {
    /// `None` if this user answered it.
    pub(super) fn of(dialog: &Dialog) -> Option<Self> {
        let question = dialog.question.question_id.clone();
        (!dialog.is_answered).then(|| Self { question, had_comment: dialog.comment.is_some(), letters: 0 })
    }
}

/// Whether a key was meant for it. Such a key must not send what is typed, nor interrupt the turn.
pub(super) fn swallows(model: &mut Model, action: Action) -> bool {
    let Some(closed) = &mut model.questions.closed else { return false };
    let was_meant = match action {
        Action::Send | Action::Interrupt => true,
        Action::Insert(letter) if letter.is_ascii_digit() => !closed.had_comment,
        Action::Insert(_) => {
            closed.letters += 1;
            false
        }
        _ => false,
    };
    // One letter may have named an option; two are the beginning of a word.
    if closed.letters > 1 && !closed.had_comment {
        model.questions.closed = None;
        return false;
    }
    if was_meant && action == Action::Send && unsent::was_meant_as_answer(model) {
        // The key asks for a second Enter, which must not be ignored.
        model.questions.closed = None;
    } else if was_meant {
        model.status.show(unsent::NO_ANSWER);
    }
    was_meant
}
