//! Finds conversations in Codex's own store, and reads their entries.
//!
//! `sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl`, and `archived_sessions/` for archived ones; old files may be compressed
//! (`.jsonl.zst`). The entries are those that the codec knows from older streams (`stored.rs`). Other forms occur in
//! files only and are converted here: the bare lines of the first versions, and the calls of a client in a log of the
//! older protocol.

mod lineage;
mod older;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use multitap_event::{AgentType, Timestamp, one_line};
use ruzstd::decoding::StreamingDecoder;

use self::lineage::{Lineage, Store, Titles};
use super::decode::CodexCodec;
use super::notice::note;
use super::stored::{Source, Speaker, is_own, texts_of};
use super::turn::{INTERRUPTED, TurnOutcome};
use super::wire::Fields;
use crate::codec::{Codec as _, End, Step};
use crate::history::file::{self, Lines, name};
use crate::history::{Entries, EntryEvents, Here, StoredSession};
use crate::json::{JsonFields as _, one};

const ACTIVE: &str = "sessions";
const ARCHIVED: &str = "archived_sessions";
/// Depth of files below the folder: year, month, day.
const DEPTH: usize = 3;

pub(crate) fn list(home: &Path, here: Option<&Here>) -> Vec<StoredSession> {
    let store = Store::of(home);
    let mut titles = Titles::new(&store);
    let mut sessions = Vec::new();
    for (path, archived) in &store.files {
        if let Some(session) = look(path, here) {
            let title = titles.of_elders(path).or(session.title);
            sessions.push(StoredSession { archived: *archived, title, ..session });
        }
    }
    sessions
}

fn rollouts(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for path in file::entries(folder) {
        if name(&path).ends_with(".jsonl") || is_compressed(&path) {
            files.push(path);
        } else if depth > 0 && path.is_dir() {
            rollouts(&path, depth - 1, files);
        }
    }
}

fn is_compressed(path: &Path) -> bool {
    name(path).ends_with(".jsonl.zst")
}

fn plain_lines(path: &Path) -> io::Result<Lines> {
    if !is_compressed(path) {
        return file::lines(path);
    }
    Ok(file::lines_of(decoder(path)?))
}

fn decoder(path: &Path) -> io::Result<impl io::Read + Send + 'static> {
    StreamingDecoder::new(file::open(path)?).map_err(io::Error::other)
}

/// Time and id in a file's name: `rollout-2026-11-15T11-11-46-01a1dee7-f796-7cb0-aa08-980d9e50d064.jsonl`.
fn of_name(name: &str) -> Option<(Timestamp, &str)> {
    let rest = name.strip_prefix("rollout-")?.split(".jsonl").next()?;
    let (time, id) = rest.split_at_checked("2026-11-15T11-11-46".len())?;
    let (day, clock) = time.split_once('T')?;
    let at = Timestamp::parse(&format!("{day}T{}Z", clock.replace('-', ":")))?;
    Some((at, id.strip_prefix('-')?))
}

/// Reads from a file what the list of conversations shows; `None` if the conversation is empty or a sub-agent's.
fn look(path: &Path, here: Option<&Here>) -> Option<StoredSession> {
    let named = of_name(name(path));
    let stem = name(path).split(".jsonl").next().unwrap_or_default();
    let id = named.map_or(stem, |(_, id)| id).to_owned();
    let mut session = StoredSession::new(AgentType::Codex, id, path.to_owned());
    session.started = named.map(|(at, _)| at);
    let (mut stranger, mut known) = (false, false);
    let looked = head(path, |line| {
        let entry = older::entry(line).fields;
        let payload = entry.fields("payload");
        match entry.text("type") {
            Some("session_meta") if !known => {
                let own = payload.string("id");
                // In an older log, the client's request comes first, and the id later.
                known = own.is_some();
                session.id = own.unwrap_or_else(|| session.id.clone());
                session.folder = payload.text("cwd").map(PathBuf::from).or(session.folder.take());
                session.agent_version = payload.string("cliVersion").or(session.agent_version.take());
                session.model = payload.string("model").or(session.model.take());
                let at = payload.text("timestamp").or_else(|| entry.text("timestamp"));
                session.started = at.and_then(Timestamp::parse).or(session.started);
                let is_elsewhere = |folder: &PathBuf| here.is_some_and(|here| !here.is(folder));
                let by_agent = payload.fields("source").get("subagent").is_some();
                stranger = by_agent || session.folder.as_ref().is_some_and(is_elsewhere);
            }
            Some("turn_context") if session.model.is_none() => session.model = payload.string("model"),
            _ if session.title.is_none() => {
                session.title = said_by_user(&entry).map(|text| one_line(&text));
                if session.folder.is_none() {
                    session.folder = older::folder_told(&entry).map(PathBuf::from);
                }
            }
            _ => {}
        }
        let enough = stranger || (session.title.is_some() && session.model.is_some());
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let is_here = here.is_none_or(|here| session.folder.as_ref().is_some_and(|folder| here.is(folder)));
    if looked.is_err() || stranger || !is_here || session.title.is_none() {
        return None;
    }
    if !is_compressed(path) {
        let last = file::tail(path).unwrap_or_default().into_iter().find_map(|line| file::time_of(&line));
        session.updated = last.or(session.updated);
    }
    Some(session)
}

fn head(path: &Path, look: impl FnMut(&str) -> ControlFlow<()>) -> io::Result<()> {
    // Compressed text may be far larger than its file.
    if is_compressed(path) { file::look_at(decoder(path)?, look) } else { file::head(path, look) }
}

/// Which of the two copies of a message an entry is.
fn source(entry: &Fields) -> Source {
    if entry.text("type") == Some("event_msg") { Source::Event } else { Source::Response }
}

fn said_by_user(entry: &Fields) -> Option<String> {
    let payload = entry.fields("payload");
    let text = match (entry.text("type")?, payload.text("type")?) {
        ("event_msg", "user_message") => payload.string("message")?,
        ("event_msg", "item_completed") => {
            let item = payload.fields("item");
            (item.text("type")? == "UserMessage").then(|| texts_of(item.list("content")))?
        }
        ("response_item", "message") if payload.text("role") == Some("user") => {
            Some(texts_of(payload.list("content"))).filter(|text| !is_own(text))?
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

pub(crate) struct Stored {
    session: StoredSession,
    lineage: Lineage,
    codec: CodexCodec,
    /// Whether the file's own head was read; a copied head of another conversation may follow.
    headed: bool,
    /// A turn whose beginning the file does not report, with the time of its last entry.
    guessed: Option<Timestamp>,
}

impl Stored {
    pub(crate) fn new(session: &StoredSession) -> Self {
        let lineage = session.files.first().map(|path| Lineage::of(path)).unwrap_or_default();
        Self { session: session.clone(), lineage, codec: CodexCodec::stored(session), headed: false, guessed: None }
    }

    /// Older files report no turns: a message of the user begins one, and ends the previous one.
    fn keep_turns(&mut self, entry: &Fields, at: Timestamp, emitted: &mut EntryEvents, out: &mut Step) {
        let payload = entry.fields("payload");
        let begins = matches!(payload.text("type"), Some("task_started" | "turn_started"))
            || matches!(entry.text("type"), Some("turn.started"));
        let copy = |text: &String| self.codec.twins.awaits(source(entry), Speaker::User, text);
        let prompt = said_by_user(entry).filter(|text| !copy(text));
        if begins && self.codec.turn.text.is_none() && self.codec.emit.tools.is_empty() {
            // The prompt came first, and this is its turn.
            self.guessed = None;
        } else if begins || prompt.is_some() {
            self.end_guessed(emitted);
        }
        if prompt.is_some() && !self.codec.emit.turns.is_busy() {
            self.codec.begin_turn(None, out);
            self.guessed = Some(at);
        }
        if let Some(last) = &mut self.guessed {
            *last = at;
        }
    }

    /// Ends a turn whose end the file does not report.
    fn end_guessed(&mut self, emitted: &mut EntryEvents) {
        let Some(at) = self.guessed.take().filter(|_| self.codec.emit.turns.is_busy()) else { return };
        let is_idle = self.codec.turn.text.is_some() && self.codec.emit.tools.is_empty();
        let status = if is_idle { "completed" } else { INTERRUPTED };
        let mut out = Step::default();
        self.codec.stored_turn_over(TurnOutcome::of(status), at, &mut out);
        emitted.before(at, out);
    }
}

impl Entries for Stored {
    fn open(&self, path: &Path) -> io::Result<Lines> {
        self.lineage.lines(path)
    }

    fn began(&self) -> Option<Timestamp> {
        self.lineage.began
    }

    fn begin(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        self.codec.emit.session.start(&mut out);
        if let Some(from) = &self.lineage.missing {
            let message = format!("the beginning is in conversation {from}, which was not found");
            out.events.push(note("forked", Some(message), one("from", from.as_str())));
        } else {
            self.codec.turn.usage.starts_at_nothing();
        }
        emitted.own(at, out);
    }

    fn entry(&mut self, line: &str, _file: usize, at: Timestamp, emitted: &mut EntryEvents) {
        let mut out = Step::default();
        let entry = older::entry(line);
        self.keep_turns(&entry.fields, at, emitted, &mut out);
        let kind = entry.fields.text("type").unwrap_or_default().to_owned();
        let about = entry.fields.fields("payload");
        let id = about.text("id").filter(|id| *id != self.session.id);
        if let Some(id) = id.filter(|_| kind == "session_meta" && (self.headed || !self.lineage.is_empty())) {
            // The head of the conversation that this one was forked from, in its own file or copied.
            out.events.push(note("copiedFrom", None, one("nativeSessionId", id)));
        } else if entry.as_written {
            out.events.extend(self.codec.decode(line, at).events);
        } else {
            self.codec.event(&kind, &entry.fields, line, at, &mut out);
        }
        self.headed |= kind == "session_meta";
        emitted.own(at, out);
    }

    fn end(&mut self, at: Timestamp, emitted: &mut EntryEvents) {
        self.end_guessed(emitted);
        emitted.own(at, self.codec.end(&End::InputEnded, at));
    }
}
