//! Where the beginning of a forked conversation is: a fork's file holds only what came after the fork, and names the
//! conversation before it, which may be a fork itself. Older versions copied what came before instead.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use multitap_event::Timestamp;
use multitap_process::Line;
use serde::Deserialize;

use super::{ACTIVE, ARCHIVED, DEPTH, head, look, of_name, plain_lines, rollouts};
use crate::history::file::{self, Lines, name};

/// The files of Codex's store.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Each with whether it is archived.
    pub(super) files: Vec<(PathBuf, bool)>,
    /// The place of a conversation's file among them.
    by_id: HashMap<String, usize>,
}

impl Store {
    pub(super) fn of(home: &Path) -> Self {
        let mut store = Self::default();
        for (folder, is_archived) in [(ACTIVE, false), (ARCHIVED, true)] {
            let mut files = Vec::new();
            rollouts(&home.join(folder), DEPTH, &mut files);
            store.files.extend(files.into_iter().map(|file| (file, is_archived)));
        }
        for (place, (file, _)) in store.files.iter().enumerate() {
            if let Some((_, id)) = of_name(name(file)) {
                store.by_id.entry(id.to_owned()).or_insert(place);
            }
        }
        store
    }

    /// The store that a file is in.
    fn around(path: &Path) -> Self {
        let folder = path.ancestors().find(|folder| [ACTIVE, ARCHIVED].contains(&name(folder)));
        folder.and_then(Path::parent).map(Self::of).unwrap_or_default()
    }

    fn find(&self, id: &str) -> Option<&Path> {
        self.by_id.get(id).map(|place| self.files[*place].0.as_path())
    }
}

/// What the conversations of a store are called. Each file is looked at once, however many forks it has.
pub(super) struct Titles<'a> {
    store: &'a Store,
    /// What was said first in a conversation, its elders included.
    known: HashMap<PathBuf, Option<String>>,
}

impl<'a> Titles<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, known: HashMap::new() }
    }

    /// What was said first before a conversation's own file.
    pub(super) fn of_elders(&mut self, path: &Path) -> Option<String> {
        let mut elders = Vec::new();
        // Broken files may name each other.
        let mut met = HashSet::from([path]);
        let mut title = None;
        let mut next = self.parent(path);
        while let Some(elder) = next.filter(|elder| met.insert(elder)) {
            if let Some(known) = self.known.get(elder) {
                title.clone_from(known);
                break;
            }
            elders.push(elder);
            next = self.parent(elder);
        }
        for elder in elders.into_iter().rev() {
            title = title.or_else(|| look(elder, None)?.title);
            self.known.insert(elder.to_owned(), title.clone());
        }
        title
    }

    fn parent(&self, path: &Path) -> Option<&'a Path> {
        self.store.find(&Beginning::of(path)?.parent)
    }
}

/// The files before a conversation's own.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// The eldest first.
    elders: Vec<Elder>,
    /// The conversation in which the beginning would be, if it is not there.
    pub(super) missing: Option<String>,
    /// When the eldest began.
    pub(super) began: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Elder {
    path: PathBuf,
    until: Until,
}

/// Up to where an elder's entries belong to the fork.
#[derive(Debug, Clone, Copy, Default)]
struct Until {
    ordinal: Option<u64>,
    time: Option<Timestamp>,
}

impl Until {
    /// A fork of a fork may go back to before the first one.
    fn or_earlier(self, other: Self) -> Self {
        let ordinal = [self.ordinal, other.ordinal].into_iter().flatten().min();
        Self { ordinal, time: [self.time, other.time].into_iter().flatten().min() }
    }

    fn is_past(self, line: &str) -> bool {
        #[derive(Deserialize)]
        struct Numbered {
            ordinal: Option<u64>,
        }
        let ordinal = serde_json::from_str::<Numbered>(line).ok().and_then(|line| line.ordinal);
        match (ordinal, self.ordinal) {
            (Some(ordinal), Some(end)) => ordinal >= end,
            _ => self.time.zip(file::time_of(line)).is_some_and(|(end, time)| time > end),
        }
    }
}

impl Lineage {
    /// Of a file. Only for a fork the store is looked through, by the names of its files.
    pub(super) fn of(path: &Path) -> Self {
        let mut lineage = Self::default();
        let Some(mut beginning) = Beginning::of(path) else { return lineage };
        let store = Store::around(path);
        let mut until = Until::default();
        // Broken files may name each other.
        let mut met = HashSet::from([path]);
        loop {
            until = until.or_earlier(beginning.until);
            let file = store.find(&beginning.parent).filter(|file| met.insert(file));
            let Some(file) = file.filter(|file| file::open(file).is_ok()) else {
                lineage.missing = Some(beginning.parent);
                break;
            };
            lineage.elders.push(Elder { path: file.to_owned(), until });
            match Beginning::of(file) {
                Some(before) => beginning = before,
                None => break,
            }
        }
        lineage.elders.reverse();
        let eldest = lineage.elders.first().and_then(|elder| look(&elder.path, None));
        lineage.began = eldest.and_then(|session| session.started);
        lineage
    }

    pub(super) fn is_empty(&self) -> bool {
        self.elders.is_empty()
    }

    /// The lines of the whole conversation, of which this is the last file.
    pub(super) fn lines(&self, own: &Path) -> io::Result<Lines> {
        let own = plain_lines(own)?;
        // Each is opened when it is needed: a conversation may have more files than a process may have open.
        let elders = self.elders.clone().into_iter().flat_map(|Elder { path, until }| {
            let lines = plain_lines(&path).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))));
            lines.take_while(move |line| !matches!(line, Ok(Line::Text(text)) if until.is_past(text)))
        });
        Ok(Box::new(elders.chain(own)))
    }
}

/// What the head of a fork's file says of the beginning.
struct Beginning {
    parent: String,
    until: Until,
}

impl Beginning {
    fn of(path: &Path) -> Option<Self> {
        #[derive(Deserialize)]
        struct Entry {
            #[serde(rename = "type")]
            kind: String,
            payload: Option<Meta>,
        }
        #[derive(Default, Deserialize)]
        struct Meta {
            forked_from_id: Option<String>,
            forked_from_ordinal_exclusive: Option<u64>,
            timestamp: Option<String>,
        }
        let mut entries = Vec::new();
        head(path, |line| {
            entries.extend(serde_json::from_str::<Entry>(line).ok());
            if entries.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .ok()?;
        let mut heads = entries.into_iter().map_while(|entry| entry.payload.filter(|_| entry.kind == "session_meta"));
        let own = heads.next()?;
        // After its own head, the head of the conversation that was copied: nothing is missing.
        let is_whole = own.forked_from_ordinal_exclusive.is_none() && heads.next().is_some();
        let time = own.timestamp.as_deref().and_then(Timestamp::parse);
        let until = Until { ordinal: own.forked_from_ordinal_exclusive, time };
        own.forked_from_id.filter(|_| !is_whole).map(|parent| Self { parent, until })
    }
}
