//! Who gets the next key, and what is pasted. Pure.

use crossterm::event::KeyEvent;

use super::{Model, Overlay, closed, key, overlay, prompt, question};
use crate::effect::Effect;
use crate::keys::{self, Action};
use crate::view::Layout;

/// Whether what is inserted now goes into the prompt.
pub(super) fn types_prompt(model: &Model) -> bool {
    !matches!(Focus::of(model), Focus::Overlay | Focus::Search | Focus::Comment | Focus::Question)
}

/// Parts of the screen that may have the keyboard. A key goes to the first active one; if that does not handle it, it
/// goes to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    /// The table of keys, a list or a page.
    Overlay,
    Search,
    /// The comment on an answer, or an answer in the user's own words.
    Comment,
    Question,
    /// A question that closed just now: keys that were meant for it do nothing else.
    ClosedQuestion,
    HistorySearch,
    Completion,
    Composer,
}

impl Focus {
    const ORDER: [Self; 8] = [
        Self::Overlay,
        Self::Search,
        Self::Comment,
        Self::Question,
        Self::ClosedQuestion,
        Self::HistorySearch,
        Self::Completion,
        Self::Composer,
    ];

    /// The first that gets the next key.
    fn of(model: &Model) -> Self {
        Self::ORDER.into_iter().find(|focus| focus.is_active(model)).unwrap_or(Self::Composer)
    }

    fn is_active(self, model: &Model) -> bool {
        let is_commenting = model.questions.shown.as_ref().map(|dialog| dialog.comment.is_some());
        match self {
            Self::Overlay => model.overlay.is_some(),
            Self::Search => model.scrollback.search.is_some(),
            Self::Comment => is_commenting == Some(true),
            Self::Question => is_commenting == Some(false),
            Self::ClosedQuestion => model.questions.closed.is_some(),
            Self::HistorySearch => model.prompt.history.search.is_some(),
            Self::Completion => model.prompt.completion.is_some(),
            Self::Composer => true,
        }
    }

    /// Handles a key. `None` passes it on to the next part.
    fn pressed(self, model: &mut Model, layout: &Layout, action: Action, is_repeat: bool) -> Option<Vec<Effect>> {
        match self {
            Self::Overlay => Some(overlay::pressed(model, layout, action)),
            Self::Search => model.scrollback.pressed(action, layout.shape),
            Self::Comment => question::pressed_in_comment(model, layout, action),
            Self::Question => question::pressed(model, layout, action),
            Self::ClosedQuestion => closed::swallows(model, action).then(Vec::new),
            Self::HistorySearch => model.prompt.pressed_in_search(action).then(Vec::new),
            Self::Completion => prompt::pressed_in_completion(model, layout, action),
            Self::Composer => Some(key::pressed(model, layout, action, is_repeat)),
        }
    }
}

pub(super) fn pressed(model: &mut Model, layout: &Layout, key: KeyEvent) -> Vec<Effect> {
    let action = keys::action(key);
    let is_repeat = model.status.pressed(action);
    // Wherever one types, and never in place of an answer.
    if action == Action::Paste && Focus::of(model) != Focus::Overlay {
        model.status.show("reading the clipboard");
        return vec![Effect::Paste];
    }
    for focus in Focus::ORDER {
        if focus.is_active(model)
            && let Some(effects) = focus.pressed(model, layout, action, is_repeat)
        {
            return effects;
        }
    }
    Vec::new()
}

pub(super) fn pasted(model: &mut Model, layout: &Layout, text: String) -> Vec<Effect> {
    // Like any other key, this closes the table of keys.
    model.overlay.take_if(|overlay| matches!(overlay, Overlay::Keys { .. }));
    match Focus::of(model) {
        Focus::Overlay => Vec::new(),
        Focus::Search => model.scrollback.paste(&text, layout.shape),
        Focus::Comment | Focus::Question => {
            model.questions.shown.iter_mut().for_each(|dialog| dialog.paste(&text));
            Vec::new()
        }
        Focus::ClosedQuestion | Focus::HistorySearch | Focus::Completion | Focus::Composer => {
            prompt::paste(model, text)
        }
    }
}
