//! Names for things, each a type of its own so that they cannot be mixed up.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

id! {
    /// Names one event, unique everywhere.
    EventId;
    /// Names one session: ours (a version 7 UUID), the same at every door.
    SessionId;
    /// Names one turn of a session.
    TurnId;
    /// Names one tool call, as the agent named it.
    ToolId;
    /// Names one message or content block of the agent; partial and final text share it.
    MessageId;
    /// Names one question the agent waits on.
    QuestionId;
    /// Names one answer that a question offers.
    OptionId;
    /// Names one prompt from the moment it is accepted.
    PromptId;
    /// Names one client for the life of its connection. Never reused.
    ClientId;
}

fn uuid_v7() -> String {
    uuid::Uuid::now_v7().to_string()
}

impl EventId {
    /// A fresh id.
    pub fn fresh() -> Self {
        uuid_v7().into()
    }
}

impl SessionId {
    /// A fresh id.
    pub fn fresh() -> Self {
        uuid_v7().into()
    }
}

impl PromptId {
    /// A fresh id.
    pub fn fresh() -> Self {
        uuid_v7().into()
    }
}

impl ClientId {
    /// A fresh id.
    pub fn fresh() -> Self {
        uuid_v7().into()
    }
}
