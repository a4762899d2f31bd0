//! Marks signatures with the model they belong to: only that model recognises its thought.

use crate::model::choice::Target;

/// Prefix of the signatures of one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn of(target: &Target) -> Self {
        Self(format!("{} ", target.name()))
    }

    /// A signature with its owner, for the conversation.
    pub(super) fn put(&self, signature: &str) -> String {
        format!("{}{signature}", self.0)
    }

    /// The signature, if it belongs to this model.
    pub(super) fn own<'a>(&self, kept: &'a str) -> Option<&'a str> {
        kept.strip_prefix(&self.0)
    }
}
