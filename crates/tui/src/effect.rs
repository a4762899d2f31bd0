//! What the screen wants done: data, carried out by `run`.

use multitap_event::{Decide, Prompt, PromptId};

/// One thing to do.
#[derive(Debug, PartialEq)]
pub(crate) enum Effect {
    Prompt(Prompt),
    Decide(Decide),
    Cancel,
    Withdraw(PromptId),
    SetMode(String),
    SetModel(String),
    /// Open the user's editor with that text.
    Edit {
        what: Edited,
        text: String,
    },
    /// Read what came before that event.
    Fetch {
        before: u64,
    },
    /// Put that into the clipboard.
    Copy(String),
    /// Somebody who looks elsewhere should look here.
    Notify(String),
    Quit,
}

/// What is being edited.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Edited {
    Composer,
    /// What a question is about, before it is allowed.
    Answer(Decide),
}
