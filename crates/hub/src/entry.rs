//! One entry of a log as everybody shares it: written as JSON once, read back as an event only by those who must.

use std::fmt;
use std::sync::{Arc, OnceLock};

use multitap_event::{AgentError, AgentErrorKind, Event, EventKind};

/// How long an event is, as most are.
const ROOM: usize = 512;

/// An event with its number and its JSON. Cheap to clone.
#[derive(Clone)]
pub struct Entry {
    inner: Arc<Inner>,
}

struct Inner {
    seq: u64,
    json: Box<str>,
    /// Nothing if the JSON is no event that this version knows.
    event: OnceLock<Option<Event>>,
    is_copy: bool,
}

impl Entry {
    /// Writes the event.
    pub fn new(event: Event) -> Self {
        Self::write(event, false)
    }

    /// Writes the event, which happened elsewhere: this log begins as a copy.
    pub fn copy(event: Event) -> Self {
        Self::write(event, true)
    }

    fn write(event: Event, is_copy: bool) -> Self {
        let (json, event) = match text(&event) {
            Ok(json) => (json, event),
            // Cannot happen with the types there are; a log with a hole would be worse than one with this in it.
            Err(error) => {
                let kind = AgentError::new(AgentErrorKind::Unknown, format!("an event could not be written: {error}"));
                let event = Event { kind: EventKind::Error(kind), raw: Vec::new(), ..event };
                (text(&event).unwrap_or_default(), event)
            }
        };
        let (seq, json, event) = (event.seq, json.into(), OnceLock::from(Some(event)));
        Self { inner: Arc::new(Inner { seq, json, event, is_copy }) }
    }

    /// One that was written earlier. What an older version wrote differently becomes what this version writes.
    pub fn stored(seq: u64, json: impl Into<Box<str>>) -> Self {
        let json = json.into();
        if let Some(event) = multitap_event::upgraded(&json).filter(|event| event.seq == seq) {
            return Self::write(event, false);
        }
        Self { inner: Arc::new(Inner { seq, json, event: OnceLock::new(), is_copy: false }) }
    }

    /// One that another process wrote, with its number read from the JSON. Nothing if there is none.
    pub fn read(json: &str) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Numbered {
            seq: u64,
        }
        let Numbered { seq } = serde_json::from_str(json).ok()?;
        Some(Self::stored(seq, json))
    }

    /// Whether it happened elsewhere. Known of one that is to be kept, not of one that was.
    pub fn is_copy(&self) -> bool {
        self.inner.is_copy
    }

    pub fn seq(&self) -> u64 {
        self.inner.seq
    }

    /// The event as one line, without the line's end.
    pub fn json(&self) -> &str {
        &self.inner.json
    }

    /// The event. Nothing if it was written by a version that knows more than this one, or the log was damaged.
    pub fn event(&self) -> Option<&Event> {
        self.inner.event.get_or_init(|| serde_json::from_str(&self.inner.json).ok()).as_ref()
    }

    /// Whether its text is no JSON at all: what was written is lost. An event of a later version is JSON.
    pub fn is_damaged(&self) -> bool {
        self.event().is_none() && serde_json::from_str::<serde::de::IgnoredAny>(&self.inner.json).is_err()
    }

    /// What it takes up.
    pub fn bytes(&self) -> usize {
        // The event in memory is about as large as its text.
        2 * self.inner.json.len() + size_of::<Inner>()
    }
}

/// The event as JSON: most find room in what is taken for it at first, and what is left is given back.
fn text(event: &Event) -> serde_json::Result<String> {
    let mut json = Vec::with_capacity(ROOM);
    serde_json::to_writer(&mut json, event)?;
    String::from_utf8(json).map_err(serde::ser::Error::custom)
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.seq() == other.seq() && self.json() == other.json()
    }
}

impl fmt::Debug for Entry {
    /// What was said is not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("seq", &self.seq()).field("bytes", &self.json().len()).finish()
    }
}
