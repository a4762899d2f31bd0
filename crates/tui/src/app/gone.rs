//! Keys that were meant for a question which went just now without an answer from here: they do nothing else. Pure.

use multitap_event::QuestionId;

use super::{Asking, Model, written};
use crate::keys::Action;

/// The question that was on the screen a moment ago.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) question: QuestionId,
    /// Words were typed for it: figures may be the rest of them.
    had_words: bool,
    /// How many letters were typed since.
    letters: usize,
}

impl Gone {
    /// Of a question that is not open any more; nothing if whoever sits here answered it.
    pub(super) fn of(asking: &Asking) -> Option<Self> {
        let question = asking.question.question_id.clone();
        (!asking.is_answered).then(|| Self { question, had_words: asking.words.is_some(), letters: 0 })
    }
}

/// Whether a key was meant for it: it is not to send what is typed, nor to end the turn.
pub(super) fn swallows(model: &mut Model, action: Action) -> bool {
    let Some(gone) = &mut model.gone else { return false };
    let was_meant = match action {
        Action::Send | Action::Interrupt => true,
        Action::Insert(letter) if letter.is_ascii_digit() => !gone.had_words,
        Action::Insert(_) => {
            gone.letters += 1;
            false
        }
        _ => false,
    };
    // One letter may have been an option's; whoever types a word means that.
    if gone.letters > 1 && !gone.had_words {
        model.gone = None;
        return false;
    }
    if was_meant && action == Action::Send && written::was_meant_as_answer(model) {
        // That is asked by itself, and the next Enter is the answer.
        model.gone = None;
    } else if was_meant {
        model.notice = Some(written::NO_ANSWER.to_owned());
    }
    was_meant
}
