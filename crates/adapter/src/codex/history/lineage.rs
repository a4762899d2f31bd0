//! Finds the beginning of a forked conversation. A fork's file contains only what came after the fork, and names the
//! earlier conversation, which may be a fork itself. Older versions copied the earlier conversation instead.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use multitap_event::Timestamp;
use multitap_process::Line;
use serde::Deserialize;

use super::{ACTIVE, ARCHIVED, DEPTH, head, look, of_name, plain_lines, rollouts};
use crate::history::file::{self, Lines, name};

#[derive(Debug, Default)]
pub(super) struct Store {
    /// The files, and whether each is archived.
    pub(super) files: Vec<(PathBuf, bool)>,
    /// The index of a conversation's file in `files`.
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

/// The titles of a store's conversations. Each file is read once, however many forks it has.
pub(super) struct Titles<'a> {
    store: &'a Store,
    /// The first message of a conversation, or of the conversations that it was forked from.
    known: HashMap<PathBuf, Option<String>>,
}

impl<'a> Titles<'a> {
    pub(super) fn new(store: &'a Store) -> Self {
        Self { store, known: HashMap::new() }
    }

    /// The first message in the conversations that a file was forked from.
    pub(super) fn of_elders(&mut self, path: &Path) -> Option<String> {
        let mut elders = Vec::new();
        // Broken files may name each other in a circle.
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

/// The files with the beginning of a forked conversation.
#[derive(Debug, Default)]
pub(super) struct Lineage {
    /// The eldest first.
    elders: Vec<Elder>,
    /// The conversation that contains the beginning, if its file is missing.
    pub(super) missing: Option<String>,
    /// The time at which the first of them began.
    pub(super) began: Option<Timestamp>,
}

#[derive(Debug, Clone)]
struct Elder {
    path: PathBuf,
    until: Until,
}

/// The point up to which the entries of an earlier conversation belong to the fork.
#[derive(Debug, Clone, Copy, Default)]
struct Until {
    ordinal: Option<u64>,
    time: Option<Timestamp>,
}

impl Until {
    /// The earlier of two limits: a fork of a fork may go back to before the first fork.
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
    /// The lineage of a file. The store is searched, by file names, only if the file is a fork.
    pub(super) fn of(path: &Path) -> Self {
        let mut lineage = Self::default();
        let Some(mut beginning) = Beginning::of(path) else { return lineage };
        let store = Store::around(path);
        let mut until = Until::default();
        // Broken files may name each other in a circle.
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

    /// The lines of the whole conversation that ends with the file `own`.
    pub(super) fn lines(&self, own: &Path) -> io::Result<Lines> {
        let own = plain_lines(own)?;
        // Each file is opened when it is needed: a conversation may have more files than a process may open.
        let elders = self.elders.clone().into_iter().flat_map(|Elder { path, until }| {
            let lines = plain_lines(&path).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))));
            lines.take_while(move |line| !matches!(line, Ok(Line::Text(text)) if until.is_past(text)))
        });
        Ok(Box::new(elders.chain(own)))
    }
}

/// The part of a fork's head that describes where it was forked.
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
        // If the copied conversation's head follows the file's own, nothing is missing.
        let is_whole = own.forked_from_ordinal_exclusive.is_none() && heads.next().is_some();
        let time = own.timestamp.as_deref().and_then(Timestamp::parse);
        let until = Until { ordinal: own.forked_from_ordinal_exclusive, time };
        own.forked_from_id.filter(|_| !is_whole).map(|parent| Self { parent, until })
    }
}
