//! The session as the status line and the title show it. Pure.

use multitap_event::{ClientRef, Event, EventKind, SystemSubtype, Timestamp};
use multitap_hub::State;
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct SessionView {
    pub(crate) me: ClientRef,
    pub(crate) id: Option<String>,
    /// Where the session works, for the status line.
    pub(crate) folder: String,
    pub(crate) branch: Option<String>,
    /// The address at which others join.
    pub(crate) address: Option<String>,
    pub(crate) state: State,
    pub(crate) context: Option<Context>,
    /// Whether the session ends with this screen.
    pub(crate) is_host: bool,
    /// The session runs elsewhere and cannot be reached now.
    pub(crate) is_lost: bool,
    pub(crate) over: Option<String>,
    /// When the running turn began, where that is known.
    pub(super) began: Option<Timestamp>,
    /// The time of the next frame, while a turn runs.
    pub(super) now: Option<Timestamp>,
}

impl SessionView {
    pub(super) fn new(me: ClientRef, folder: String) -> Self {
        Self {
            me,
            id: None,
            folder,
            branch: None,
            address: None,
            state: State::default(),
            context: None,
            is_host: false,
            is_lost: false,
            over: None,
            began: None,
            now: None,
        }
    }

    pub(crate) fn others(&self) -> impl Iterator<Item = &ClientRef> {
        self.state.clients.iter().filter(|client| client.client_id != self.me.client_id)
    }

    /// While a turn runs: the time, and for how many milliseconds the turn has been running.
    pub(crate) fn working(&self) -> Option<(Timestamp, Option<u64>)> {
        let now = self.now.filter(|_| self.state.is_busy())?;
        Some((now, self.began.map(|began| now.millis_since(began))))
    }
}

/// How full the context of the agent is, as far as it reports that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) used: u64,
    pub(crate) window: Option<u64>,
}

impl Context {
    /// What an event reports of it: with our field names, those of ACP, or Claude's.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let EventKind::System(note) = &event.kind else { return None };
        let number = |keys: [&str; 3]| keys.iter().find_map(|key| note.data.get(*key).and_then(Value::as_u64));
        let used = number(["usedTokens", "used", "totalTokens"]).filter(|_| note.subtype == SystemSubtype::CONTEXT)?;
        Some(Self { used, window: number(["contextWindow", "size", "maxTokens"]).filter(|window| *window > 0) })
    }
}
