//! Identifiers, each a type of its own so that they cannot be mixed up.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
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

impl EventId {
    /// A new id for something that happened at that time: a version 7 UUID. The random part is drawn once, not for each
    /// of the many events; their numbers give the order.
    pub fn fresh(at: Timestamp) -> Self {
        static RANDOM: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let [one, other] = [0_u8, 1].map(|half| RANDOM.hash_one((count, half)).to_le_bytes());
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&one);
        bytes[8..].copy_from_slice(&other[..2]);
        let millis = u64::try_from(at.as_millis()).unwrap_or(0);
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid();
        Self(id.hyphenated().encode_lower(&mut [0; 36]).into())
    }
}

macro_rules! fresh {
    ($($name:ident)*) => {$(
        impl $name {
            pub fn fresh() -> Self {
                uuid::Uuid::now_v7().to_string().into()
            }
        }
    )*};
}

fresh! { SessionId PromptId ClientId }

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn events_of_the_same_moment_have_ids_of_their_own() {
        let at = Timestamp::from_millis(1_800_000_000_000);
        let ids: HashSet<EventId> = (0..10_000).map(|_| EventId::fresh(at)).collect();
        assert_eq!(ids.len(), 10_000);
        for id in ids.iter().take(100) {
            let read = uuid::Uuid::parse_str(id.as_str()).unwrap();
            assert_eq!((read.get_version_num(), read.get_timestamp().unwrap().to_unix().0), (7, 1_800_000_000));
        }
    }
}
