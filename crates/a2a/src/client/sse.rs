//! Server-sent events: bytes in any pieces to events. Pure. Must not come in: what events mean.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

/// One event with data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its cursor, if the server sends one.
    pub(super) id: Option<String>,
    /// The type of the event; empty if the server sends none.
    pub(super) name: String,
    pub(super) data: String,
}

/// An event is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Reads a stream from its first byte. An event without an empty line after it is incomplete, and dropped.
#[derive(Debug)]
pub(super) struct Parser {
    /// The current, incomplete line.
    line: Vec<u8>,
    /// The last byte was CR: a LF that follows belongs to it.
    after_cr: bool,
    /// Whether no line was read yet: the first may begin with a byte order mark.
    at_start: bool,
    event: Event,
    has_data: bool,
    most: usize,
}

impl Parser {
    /// `most` is the maximum number of bytes of one event.
    pub(super) fn new(most: usize) -> Self {
        let event = Event::default();
        Self { line: Vec::new(), after_cr: false, at_start: true, event, has_data: false, most }
    }

    /// Reads the next bytes; the events that they complete are appended to `events`.
    pub(super) fn push(&mut self, mut bytes: &[u8], events: &mut VecDeque<Event>) -> Result<(), TooLarge> {
        while let Some((first, rest)) = bytes.split_first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                bytes = rest;
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.extend_line(bytes);
            };
            let (line, ended) = bytes.split_at(end);
            self.extend_line(line)?;
            self.after_cr = ended.first() == Some(&b'\r');
            bytes = ended.get(1..).unwrap_or_default();
            events.extend(self.end_line());
        }
        Ok(())
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        // A comment may have any length; only its colon is stored.
        if self.line.first().or(bytes.first()) == Some(&b':') {
            self.line = vec![b':'];
            return Ok(());
        }
        let stored = self.event.data.len() + self.event.name.len() + self.event.id.as_ref().map_or(0, String::len);
        if stored + self.line.len() + bytes.len() > self.most {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let text = String::from_utf8_lossy(line);
        let (field, value) = text.split_once(':').unwrap_or((&text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.event.name),
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            // `retry`, comments and unknown fields.
            _ => {}
        }
        None
    }
}
