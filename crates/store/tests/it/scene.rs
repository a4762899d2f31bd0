//! What the tests write, and the places they write to.

use std::path::PathBuf;
use std::sync::Arc;

use multitap_event::{
    AgentKind, Choice, ChoiceKind, ClientRef, ClientRole, Details, Door, Draft, EditedCall, EventKind, Question,
    Ruling, SessionId, Timestamp, option,
};
use multitap_hub::{Batch, Claim, Edge, Entry, Flush, Journal, NewSession, Owner, Part};
use multitap_store::Store;
use serde_json::json;

/// Somewhere a journal is kept: empty at first, and whoever opens it again finds what was kept.
pub(crate) trait Place {
    fn open(&self) -> Arc<dyn Journal>;
}

/// An SQLite file in a folder of its own.
pub(crate) struct File {
    pub(crate) folder: tempfile::TempDir,
}

impl File {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("home").join("log.db")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(self.path()).unwrap()
    }

    /// The notes that lie beside the file: of logs that lack what was told.
    pub(crate) fn notes(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.path().parent().unwrap()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("unkept")).collect()
    }

    /// Looks at the file, or tampers with it, past the store.
    pub(crate) fn sqlite(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection
    }
}

impl Place for File {
    fn open(&self) -> Arc<dyn Journal> {
        Arc::new(self.store())
    }
}

pub(crate) fn new_session() -> NewSession {
    NewSession {
        id: SessionId::fresh(),
        agent: AgentKind::Claude,
        folder: Some("/work/project".into()),
        created: Timestamp::from_millis(1_700_000_000_123),
        forked_from: None,
        config: serde_json::from_str(r#"{"model":"opus","addDirs":["/a b"]}"#).unwrap(),
    }
}

/// Begins a log.
pub(crate) async fn begin(journal: &dyn Journal) -> Claim {
    journal.create(new_session()).await.unwrap()
}

pub(crate) fn entry(session: &SessionId, seq: u64, kind: EventKind) -> Entry {
    Entry::new(
        Draft::new(Timestamp::from_millis(1_700_000_000_000 + seq.cast_signed()), kind).stamp(session.clone(), seq),
    )
}

/// An entry that says something.
pub(crate) fn said(session: &SessionId, seq: u64, text: &str) -> Entry {
    entry(session, seq, EventKind::Unrecognized { line: text.to_owned(), reason: "a test".to_owned(), bytes: None })
}

pub(crate) fn some(session: &SessionId, seqs: impl IntoIterator<Item = u64>) -> Vec<Entry> {
    seqs.into_iter().map(|seq| said(session, seq, &format!("line {seq}\n\"ä\" 🙂"))).collect()
}

/// A batch that brings nothing but entries.
pub(crate) fn batch(session: &SessionId, owner: &Owner, entries: Vec<Entry>) -> Batch {
    Batch { session: session.clone(), owner: owner.clone(), entries, flush: Flush::Soon, checkpoint: None, about: None }
}

pub(crate) fn after(seq: u64, limit: usize) -> Part {
    Part { edge: Edge::After(seq), limit, bytes: usize::MAX }
}

pub(crate) fn before(seq: u64, limit: usize) -> Part {
    Part { edge: Edge::Before(seq), limit, bytes: usize::MAX }
}

/// All of a log.
pub(crate) async fn all(journal: &dyn Journal, session: &SessionId) -> Vec<Entry> {
    journal.page(session.clone(), after(0, usize::MAX)).await.unwrap().entries
}

pub(crate) fn question(id: &str) -> Question {
    Question {
        question_id: id.into(),
        tool_id: Some("tool-1".into()),
        tool_name: Some("Bash".to_owned()),
        title: "Run make".to_owned(),
        options: vec![Choice::new(option::PROCEED_ONCE, "Yes", ChoiceKind::AllowOnce)],
        details: Details::Text { text: "make".to_owned(), arguments: serde_json::Map::new() },
        edits: Vec::new(),
        reason: None,
    }
}

pub(crate) fn ruling(id: &str, by: &str) -> Ruling {
    Ruling {
        question_id: id.into(),
        selected_option_id: option::PROCEED_ONCE.into(),
        kind: ChoiceKind::AllowOnce,
        settled_by: ClientRef {
            client: by.to_owned(),
            door: Door::A2a,
            client_id: Some("client-7".into()),
            role: Some(ClientRole::Controller),
            account: None,
        },
        at: Timestamp::from_millis(1_700_000_001_456),
        feedback: Some("go on".to_owned()),
        edited: true,
        new_content: Some("make all".to_owned()),
        new_input: json!({ "command": "make all" }).as_object().cloned(),
        runs: Some(Box::new(EditedCall::new(
            "Run make all",
            serde_json::Map::new(),
            Details::Command { command: "make all".to_owned(), directory: None, description: None },
        ))),
    }
}
