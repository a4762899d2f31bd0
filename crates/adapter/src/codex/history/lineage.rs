//! Where the beginning of a forked conversation is: a fork's file holds only what came after the fork, and names the
//! conversation before it, which may be a fork itself. Older versions copied what came before instead.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use multitap_event::Timestamp;
use serde::Deserialize;

use super::{ACTIVE, ARCHIVED, DEPTH, head, look, of_name, plain_lines, rollouts};
use crate::history::file::{self, Lines, name};

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

#[derive(Debug)]
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
        let mut files = Vec::new();
        if let Some(store) = path.ancestors().find(|folder| [ACTIVE, ARCHIVED].contains(&name(folder))) {
            for folder in [ACTIVE, ARCHIVED] {
                rollouts(&store.with_file_name(folder), DEPTH, &mut files);
            }
        }
        let mut until = Until::default();
        loop {
            until = until.or_earlier(beginning.until);
            let is_it = |file: &&PathBuf| of_name(name(file)).is_some_and(|(_, id)| id == beginning.parent);
            // Broken files may name each other.
            let is_new = |file: &&PathBuf| *file != path && lineage.elders.iter().all(|elder| elder.path != **file);
            let Some(file) = files.iter().find(is_it).filter(is_new).filter(|file| file::open(file).is_ok()) else {
                lineage.missing = Some(beginning.parent);
                break;
            };
            lineage.elders.insert(0, Elder { path: file.clone(), until });
            match Beginning::of(file) {
                Some(before) => beginning = before,
                None => break,
            }
        }
        let eldest = lineage.elders.first().and_then(|elder| look(&elder.path, None));
        lineage.began = eldest.and_then(|session| session.started);
        lineage
    }

    pub(super) fn is_empty(&self) -> bool {
        self.elders.is_empty()
    }

    /// The lines of the whole conversation, of which this is the last file.
    pub(super) fn lines(&self, own: &Path) -> io::Result<Lines> {
        let mut lines = plain_lines(own)?;
        for Elder { path, until } in self.elders.iter().rev() {
            let until = *until;
            lines = plain_lines(path)?.until(move |line| until.is_past(line)).then(lines);
        }
        Ok(lines)
    }

    /// What the conversation is called: what was said first in it.
    pub(super) fn title(&self) -> Option<String> {
        self.elders.iter().find_map(|elder| look(&elder.path, None)?.title)
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
