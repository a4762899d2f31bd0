//! Whose a signature is. A thought is known again only by the model that had it, so what is kept of it says which.

use crate::model::choice::Target;

/// What stands before the signatures of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn of(target: &Target) -> Self {
        Self(format!("{} ", target.name()))
    }

    /// A signature with its owner, to be kept in the conversation.
    pub(super) fn put(&self, signature: &str) -> String {
        format!("{}{signature}", self.0)
    }

    /// The signature, if it is this model's own.
    pub(super) fn own<'a>(&self, kept: &'a str) -> Option<&'a str> {
        kept.strip_prefix(&self.0)
    }
}
