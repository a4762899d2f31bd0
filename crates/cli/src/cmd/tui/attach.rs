//! `multitap attach`: opens a session that runs elsewhere; lists running sessions.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use multitap_event::{ClientRef, Door as Way, Timestamp, visible_line};
use multitap_hub::{Journal as _, Reach, Refusal, Session, SessionRecord};
use multitap_remote::{Address, Attach, AttachError, Way as Road};
use multitap_store::Store;
use multitap_tui::{DetachedHost, ScreenExit, ScreenOptions, TerminalLease};
use serde_json::{Value, json};

use super::{branch, editing, is_possible, short, who};
use crate::args::AttachArgs;
use crate::clipboard::clipboard;
use crate::cmd::print;
use crate::cmd::sessions::age;
use crate::exit::{Exit, Problem};
use crate::live::{self, Note};
use crate::logging::ToFile;
use crate::out;
use crate::settings::{Settings, Trust};
use crate::signals::Signals;
use crate::words::pretty_json;
use crate::{door, host};

/// Opens a session, or lists the running ones.
pub(crate) async fn attach(args: AttachArgs) -> Result<Exit, Problem> {
    let Some(to) = &args.to else { return list(args.json).await };
    if !is_possible() {
        return Err(Problem::usage("attach needs an interactive terminal"));
    }
    let found = find(to).await?;
    show(found, &args).await
}

/// A session to attach to, and what is known of it locally.
pub(crate) struct AttachTarget {
    pub(crate) address: Address,
    pub(crate) folder: Option<PathBuf>,
}

impl AttachTarget {
    /// The token to send; a private socket needs none.
    pub(crate) fn token(&self) -> Option<String> {
        match self.address.way {
            Road::Unix(_) => None,
            Road::Tcp { .. } => crate::token::usable(),
        }
    }
}

/// Finds a session by its address, its id or a prefix of it.
pub(crate) async fn find(to: &str) -> Result<AttachTarget, Problem> {
    if let Some(url) = door::url_of(to) {
        let address = Address::parse(&url).map_err(|error| Problem::usage(error.to_string()))?;
        return Ok(AttachTarget { address, folder: None });
    }
    let mut running = running().await?;
    running.retain(|one| one.note.session_id.as_str().starts_with(to));
    if running.len() > 1 && !running.iter().any(|one| one.note.session_id.as_str() == to) {
        let ids: Vec<&str> = running.iter().map(|one| one.note.session_id.as_str()).collect();
        return Err(Problem::usage(format!("{to} matches more than one running session: {}", ids.join(", "))));
    }
    let exact = running.iter().position(|one| one.note.session_id.as_str() == to).unwrap_or(0);
    if running.is_empty() {
        let why = format!(
            "no running session matches \"{to}\". List them with: multitap attach. Resume an ended one with: multitap \
             -r {to}"
        );
        return Err(Problem::new(Exit::Failed, why));
    }
    let Running { note, record } = running.swap_remove(exact);
    let id = note.session_id;
    let address = match (note.socket, note.address) {
        (Some(socket), _) => Address { way: Road::Unix(socket), session: Some(id) },
        (None, Some(url)) => {
            let address = Address::parse(&url).map_err(|error| Problem::new(Exit::Failed, error.to_string()))?;
            Address { session: Some(id), ..address }
        }
        (None, None) => {
            let why =
                format!("session {id} cannot be joined: it has no door. Start it with --a2a-port, or in a terminal");
            return Err(Problem::new(Exit::Failed, why));
        }
    };
    Ok(AttachTarget { address, folder: record.and_then(|record| record.folder) })
}

/// Opens the same screen as for a local session.
async fn show(found: AttachTarget, args: &AttachArgs) -> Result<Exit, Problem> {
    let mut signals = Signals::new()?;
    let _watch = Signals::let_go_in_time()?;
    // The user's preferences only: the settings of a folder do not apply to a session elsewhere.
    let preferences = Settings::load(None, Trust::AsSet).map_err(|error| Problem::usage(error.to_string()))?.terminal;
    let to = Attach { address: found.address.clone(), client: who(), door: Way::Terminal, token: found.token() };
    let attached = tokio::select! {
        attached = multitap_remote::attach(to) => attached.map_err(not_attached)?,
        () = signals.next() => return Ok(Exit::Interrupted),
    };
    let session = &attached.session;
    let screen = ScreenOptions {
        me: ClientRef::new(who(), Way::Terminal),
        folder: found.folder.as_deref().map_or_else(|| found.address.way.to_string(), short),
        branch: branch::of(found.folder.clone()),
        // If the folder is not known, the address is shown instead.
        address: (found.folder.is_some() && matches!(found.address.way, Road::Tcp { .. }))
            .then(|| found.address.way.to_string()),
        preferences,
        when_busy: args.when_busy,
        editor: editing::editor(&signals.editor_state),
        // Local files are those of the session only on the same machine.
        root: found.folder.filter(|folder| folder.is_dir()),
        history: host::data().map(|data| data.join("history.jsonl")),
        host: Arc::new(DetachedHost),
        clipboard: clipboard(),
        is_host: false,
        greeting: None,
    };
    let logs = host::data().and_then(|data| ToFile::begin(&data.join("terminal.log")));
    let mut lease = TerminalLease::default();
    let shown = tokio::select! {
        shown = multitap_tui::run(&mut lease, session.clone(), screen) => shown,
        () = signals.next() => Ok(ScreenExit::Quit),
    };
    drop(lease);
    drop(logs);
    say_how_it_is(session);
    attached.leave().await;
    shown.map_err(|error| Problem::new(Exit::Failed, format!("{:#}", anyhow::Error::new(error))))?;
    Ok(Exit::Completed)
}

/// Prints the state of the session after the user left it.
fn say_how_it_is(session: &Session) {
    let id = session.id();
    out::say(&match session.reach() {
        Reach::Gone(why) => format!("multitap: session {id}: {why}"),
        Reach::Lost(why) => {
            format!("multitap: lost session {id} ({why}). To try again: multitap attach {id}")
        }
        Reach::Here => {
            format!("multitap: session {id} continues. To return: multitap attach {id}")
        }
    });
}

pub(crate) fn not_attached(error: AttachError) -> Problem {
    let hint = match &error {
        AttachError::NotJoined(Refusal::NoSession) => {
            let why = "this host has many sessions. To join one: multitap attach URL/?session=ID. To list them, on the \
                       host's machine: multitap attach";
            return Problem::new(Exit::Failed, why);
        }
        AttachError::Refused { status: 401, .. } => "; set it in MULTITAP_TOKEN",
        AttachError::NotJoined(_) => "; for a host of many sessions the address is URL/?session=ID",
        _ => "",
    };
    Problem::new(Exit::Failed, format!("{:#}{hint}", anyhow::Error::new(error)))
}

/// A session that runs on this machine.
struct Running {
    note: Note,
    record: Option<SessionRecord>,
}

/// Sessions with a note whose process is alive.
async fn running() -> Result<Vec<Running>, Problem> {
    let Some(data) = host::data() else { return Ok(Vec::new()) };
    let store = tokio::task::spawn_blocking(host::open_store).await.context("open the log")?.ok();
    if let Some(store) = &store {
        live::clear_away(store).await;
    }
    let mut running = Vec::new();
    for note in live::notes(&data) {
        let record = record(store.as_ref(), &note).await;
        running.push(Running { note, record });
    }
    Ok(running)
}

/// The stored record of the session; `None` if it cannot be read.
async fn record(store: Option<&Store>, note: &Note) -> Option<SessionRecord> {
    let found = store?.find(note.session_id.to_string()).await.ok()?;
    found.into_iter().find(|record| record.id == note.session_id)
}

async fn list(as_json: bool) -> Result<Exit, Problem> {
    let running = running().await?;
    if as_json {
        let all: Vec<Value> = running.iter().map(stated).collect();
        print(&pretty_json(&all)?)?;
    } else if running.is_empty() {
        out::say("no session runs on this machine. To start one: multitap. To join one elsewhere: multitap attach URL");
    } else {
        print(&running.iter().map(|one| line(one, Timestamp::now())).collect::<String>())?;
        out::say("To join one: multitap attach ID (a prefix is enough)");
    }
    Ok(Exit::Completed)
}

fn line(one: &Running, now: Timestamp) -> String {
    let Note { session_id, pid, since, address, .. } = &one.note;
    let record = one.record.as_ref();
    let agent = record.map_or_else(|| "?".to_owned(), |record| record.agent.to_string());
    let folder = record.and_then(|record| record.folder.as_deref()).map(short).unwrap_or_default();
    let address = address.as_deref().unwrap_or("private");
    let age = age(now.millis_since(*since));
    format!("{}\n", visible_line(&format!("{session_id}  {agent:<8} {age:>7}  pid {pid:<7}  {address}  {folder}")))
}

fn stated(one: &Running) -> Value {
    let Note { session_id, pid, since, address, socket } = &one.note;
    let mut stated = json!({ "id": session_id, "pid": pid, "since": since });
    let record = one.record.as_ref();
    let more = [
        ("agent", record.map(|record| record.agent.to_string().into())),
        ("folder", record.and_then(|record| record.folder.as_ref()).map(|folder| json!(folder))),
        ("title", record.and_then(|record| record.about.title.clone()).map(Value::from)),
        ("address", address.clone().map(Value::from)),
        ("socket", socket.as_ref().map(|socket| json!(socket))),
    ];
    if let Some(stated) = stated.as_object_mut() {
        stated.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
    stated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_many_sessions_says_how_to_name_one() {
        let problem = not_attached(AttachError::NotJoined(Refusal::NoSession)).to_string();
        assert!(problem.contains("multitap attach URL/?session=ID") && !problem.contains("session/join"), "{problem}");
    }
}
