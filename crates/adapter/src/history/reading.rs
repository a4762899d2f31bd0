//! Reads a stored conversation as events: its lines in the order in which they were written, each reported once.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use multitap_event::{AgentError, AgentErrorKind, AgentType, Draft, EventKind, Timestamp};
use multitap_process::Line;

use super::file::{self, Lines};
use super::{HistoryError, StoredSession};
use crate::codec::Step;
use crate::info::AgentInfo;
use crate::line::{repaired, too_long};
use crate::pump::keep_line;

/// Translates the entries of one agent's store to events. May keep state, must not fail.
pub(crate) trait Entries: Send {
    /// The lines of one of its files, with the lines of earlier files that belong before them.
    fn open(&self, path: &Path) -> io::Result<Lines> {
        file::lines(path)
    }
    /// The time at which the conversation began, if that was before the session's own start.
    fn began(&self) -> Option<Timestamp> {
        None
    }
    /// Called before the first entry: the session begins.
    fn begin(&mut self, at: Timestamp, emitted: &mut EntryEvents);
    /// An entry of the conversation's file with that number, counted from zero.
    fn entry(&mut self, line: &str, file: usize, at: Timestamp, emitted: &mut EntryEvents);
    /// The entries have ended: close what is open.
    fn end(&mut self, at: Timestamp, emitted: &mut EntryEvents);
}

#[derive(Debug, Default)]
pub(crate) struct EntryEvents {
    /// Events that belong to the entries before it: an entry may show that a turn was over.
    pub(crate) before: Vec<Draft>,
    /// Events of the entry itself.
    pub(crate) own: Vec<Draft>,
}

impl EntryEvents {
    pub(crate) fn before(&mut self, at: Timestamp, step: Step) {
        self.before.extend(step.events.into_iter().map(|kind| Draft::new(at, kind)));
    }

    pub(crate) fn own(&mut self, at: Timestamp, step: Step) {
        self.own.extend(step.events.into_iter().map(|kind| Draft::new(at, kind)));
    }
}

/// Begins to read a conversation. Its events are those of a live session, with the times of the stored entries; with
/// `keep_raw` every line of its files is in exactly one of them.
pub fn read(session: &StoredSession, keep_raw: bool) -> Result<Reading, HistoryError> {
    let store = AgentInfo::of(session.agent).and_then(|info| info.store.as_ref());
    let entries = (store.ok_or(HistoryError::NoStore(session.agent))?.entries)(session);
    let mut sources = Vec::new();
    for (at, path) in session.files.iter().enumerate() {
        match entries.open(path) {
            Ok(lines) => sources.push(Source { file: at, path: path.clone(), lines, next: None }),
            // If the file of a sub-agent is missing, the conversation itself is still complete.
            Err(_) if at > 0 => {}
            Err(source) => return Err(HistoryError::Unreadable { path: path.clone(), source }),
        }
    }
    let at = entries.began().or(session.started).or(session.updated).unwrap_or_else(|| Timestamp::from_millis(0));
    let mut reading =
        Reading { agent: session.agent, entries, sources, keep_raw, at, last: at, ready: VecDeque::new(), over: false };
    let mut emitted = EntryEvents::default();
    reading.entries.begin(at, &mut emitted);
    reading.emit(emitted, None);
    for at in 0..reading.sources.len() {
        reading.advance(at);
    }
    Ok(reading)
}

/// A conversation that is being read: an iterator over its events.
pub struct Reading {
    agent: AgentType,
    entries: Box<dyn Entries>,
    sources: Vec<Source>,
    keep_raw: bool,
    /// The time of the last entry, used for events that have no time of their own.
    at: Timestamp,
    /// The time of the last event.
    last: Timestamp,
    ready: VecDeque<Draft>,
    over: bool,
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// One file, and its next line with the time it was written at.
struct Source {
    file: usize,
    path: PathBuf,
    lines: Lines,
    next: Option<(Timestamp, Line)>,
}

impl Reading {
    fn advance(&mut self, at: usize) {
        let Some(source) = self.sources.get_mut(at) else { return };
        match source.lines.next() {
            Some(Ok(line)) => {
                let own = match &line {
                    Line::Text(text) => file::time_of(text),
                    Line::TooLong { .. } => None,
                };
                source.next = Some((own.unwrap_or(self.at).max(self.at), line));
            }
            None => source.next = None,
            Some(Err(error)) => {
                source.next = None;
                let message = format!("cannot read on in {}: {error}", source.path.display());
                let error = AgentError::new(AgentErrorKind::Unknown, message).of(self.agent);
                self.ready.push_back(Draft::new(self.at, EventKind::Error(error)));
                // This file has ended; another may follow.
                self.advance(at);
            }
        }
    }

    /// Emits the entry that was written next, from whichever file.
    fn step(&mut self) {
        let times = self.sources.iter().enumerate().filter_map(|(at, source)| Some((source.next.as_ref()?.0, at)));
        let Some((_, at)) = times.min() else {
            self.over = true;
            let mut emitted = EntryEvents::default();
            self.entries.end(self.at, &mut emitted);
            return self.emit(emitted, None);
        };
        let file = self.sources[at].file;
        let Some((time, line)) = self.sources[at].next.take() else { return };
        self.at = self.at.max(time);
        match line {
            Line::Text(line) => {
                let mut emitted = EntryEvents::default();
                self.entries.entry(&repaired(&line), file, self.at, &mut emitted);
                self.emit(emitted, Some(&line));
            }
            Line::TooLong { head, bytes } => self.ready.push_back(Draft::new(self.at, too_long(&head, bytes))),
        }
        self.advance(at);
    }

    fn emit(&mut self, emitted: EntryEvents, line: Option<&str>) {
        let EntryEvents { before, mut own } = emitted;
        if let Some(line) = line.filter(|_| self.keep_raw) {
            keep_line(&mut own, line, self.at);
        }
        for mut draft in before.into_iter().chain(own) {
            // Times do not go back, whatever order the entries came in.
            draft.at = draft.at.max(self.last);
            self.last = draft.at;
            self.ready.push_back(draft);
        }
    }
}

impl Iterator for Reading {
    type Item = Draft;

    fn next(&mut self) -> Option<Draft> {
        while self.ready.is_empty() && !self.over {
            self.step();
        }
        self.ready.pop_front()
    }
}
