//! An entry of a log, shared by all readers: serialized once, and parsed only by those who need the event.

use std::fmt;
use std::sync::{Arc, OnceLock};

use multitap_event::{
    AgentError, AgentErrorKind, Event, EventId, EventKind, MAX_JSON_VALUES, SessionId, Timestamp, has_more_values,
    shortened,
};
use serde::Deserialize;

/// Typical length of an event as JSON.
const ROOM: usize = 512;
/// Maximum number of values in an event of another process. An event may have those of an agent's line twice: as the
/// arguments of a call, and as its details.
const MOST_VALUES: usize = 2 * MAX_JSON_VALUES;
/// Characters of a larger event that are shown.
const HEAD: usize = 4096;

/// An event with its number and its JSON. Cheap to clone.
#[derive(Clone)]
pub struct Entry {
    inner: Arc<Inner>,
}

struct Inner {
    seq: u64,
    json: Box<str>,
    /// `None` if the JSON is no event that this version knows.
    event: OnceLock<Option<Event>>,
    is_copy: bool,
}

impl Entry {
    pub fn new(event: Event) -> Self {
        Self::write(event, false)
    }

    /// An event at the beginning of this log, copied from another log.
    pub fn copy(event: Event) -> Self {
        Self::write(event, true)
    }

    fn write(event: Event, is_copy: bool) -> Self {
        let (json, event) = match text(&event) {
            Ok(json) => (json, event),
            // Impossible with the current types. If it happens, an incomplete entry is better than a gap in the log.
            Err(error) => {
                let kind = AgentError::new(AgentErrorKind::Unknown, format!("an event could not be written: {error}"));
                let event = Event { kind: EventKind::Error(kind), raw: Vec::new(), ..event };
                (text(&event).unwrap_or_default(), event)
            }
        };
        let (seq, json, event) = (event.seq, json.into(), OnceLock::from(Some(event)));
        Self { inner: Arc::new(Inner { seq, json, event, is_copy }) }
    }

    /// An entry read from the journal. The format of older versions is converted.
    pub fn stored(seq: u64, json: impl Into<Box<str>>) -> Self {
        let json = json.into();
        if let Some(event) = multitap_event::upgraded(&json).filter(|event| event.seq == seq) {
            return Self::write(event, false);
        }
        Self { inner: Arc::new(Inner { seq, json, event: OnceLock::new(), is_copy: false }) }
    }

    /// An entry written by another process, with the number in its JSON; `None` if the JSON has no number.
    ///
    /// An event that would take too much memory becomes `unrecognized`, with the beginning of its JSON.
    pub fn read(json: &str) -> Option<Self> {
        if has_more_values(json, MOST_VALUES) {
            return Self::too_large(json);
        }
        #[derive(Deserialize)]
        struct Numbered {
            seq: u64,
        }
        let Numbered { seq } = serde_json::from_str(json).ok()?;
        Some(Self::stored(seq, json))
    }

    fn too_large(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Envelope {
            id: EventId,
            session_id: SessionId,
            timestamp: Timestamp,
            seq: u64,
        }
        let Envelope { id, session_id, timestamp, seq } = serde_json::from_str(json).ok()?;
        let reason = format!("event of {} bytes has more than {MOST_VALUES} values", json.len());
        let kind = EventKind::Unrecognized { line: shortened(json, HEAD), reason, bytes: Some(json.len() as u64) };
        Some(Self::new(Event { id, session_id, timestamp, seq, kind, raw: Vec::new() }))
    }

    /// Whether the event was copied from another log. Known before the entry is stored, not after.
    pub fn is_copy(&self) -> bool {
        self.inner.is_copy
    }

    pub fn seq(&self) -> u64 {
        self.inner.seq
    }

    /// The event as one line, without the line break.
    pub fn json(&self) -> &str {
        &self.inner.json
    }

    /// The event; `None` if a newer version wrote it or the log is damaged.
    pub fn event(&self) -> Option<&Event> {
        self.inner.event.get_or_init(|| serde_json::from_str(&self.inner.json).ok()).as_ref()
    }

    /// Whether the text is not JSON, so that the event is lost. Events of later versions are JSON.
    pub fn is_damaged(&self) -> bool {
        self.event().is_none() && serde_json::from_str::<serde::de::IgnoredAny>(&self.inner.json).is_err()
    }

    /// Its size in memory, roughly.
    pub fn bytes(&self) -> usize {
        // The parsed event is about as large as its text.
        2 * self.inner.json.len() + size_of::<Inner>()
    }
}

/// The event as JSON. Most fit into the first allocation, and the rest of it is freed.
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
    /// Content is not for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("seq", &self.seq()).field("bytes", &self.json().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_many_values_is_unrecognized_and_has_its_number() {
        let envelope = r#"{"id":"e7","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","seq":7"#;
        let many = |values| format!("{envelope},\"type\":\"ofTomorrow\",\"x\":[{}0]}}", "1,".repeat(values));
        let entry = Entry::read(&many(MOST_VALUES)).unwrap();
        let Some(EventKind::Unrecognized { line, reason, bytes }) = entry.event().map(|event| &event.kind) else {
            panic!("{:?}", entry.event())
        };
        assert!(line.starts_with(envelope) && line.chars().count() == HEAD + 1);
        assert_eq!((reason.as_str(), *bytes), ("event of 1000098 bytes has more than 500000 values", Some(1_000_098)));
        assert_eq!(entry.seq(), 7);
        assert!(entry.json().len() < 3 * HEAD);
        let whole = many(MAX_JSON_VALUES);
        assert_eq!(Entry::read(&whole).unwrap().json(), whole);
    }
}
