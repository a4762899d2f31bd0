//! `multitap sessions`: lists and shows the stored sessions, and with `--agent` the conversations that agents stored.
//!
//! Reads the agents' files and never writes them; only the agent's own program changes its store.

mod ours;
mod transcript;

use std::cmp::Reverse;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use multitap_adapter::{AgentInfo, History, HistoryError, LaunchSpec, StoredSession};
use multitap_client::read_stored;
use multitap_event::{AgentKind, AgentType, LaunchError, SessionConfig, Timestamp, shortened, visible, visible_line};

use self::ours::OwnSessions;
use self::transcript::Transcript;
use super::print;
use crate::args::{SessionsArgs, SessionsSub};
use crate::exit::{Exit, Problem};
use crate::launch::{self, HIDDEN_ENV};
use crate::out;
use crate::settings::{self, Settings, Trust};
use crate::words::{json_line, pretty_json};

/// Title length in the list.
const TITLE: usize = 60;

pub(crate) fn sessions(args: SessionsArgs) -> Result<Exit, Problem> {
    // The folder may have been deleted, and still have sessions.
    let folder = match &args.cwd {
        Some(folder) => std::path::absolute(folder).with_context(|| format!("find {}", folder.display()))?,
        None => launch::folder(None)?,
    };
    let settings = settings::of(&folder, Trust::AsSet)?;
    let builtin = args.agent.as_deref() == Some(AgentType::Builtin.as_str());
    if (args.agent.is_none() || builtin)
        && let Some(exit) = crate::wait(of_ours(&args, &folder))?
    {
        return Ok(exit);
    }
    let stores = Stores::open(args.agent.as_deref(), &settings, folder)?;
    match args.action {
        None => stores.list(args.all, args.json),
        Some(SessionsSub::List { all }) => stores.list(all || args.all, args.json),
        Some(SessionsSub::Show { id, raw }) => {
            let session = stores.find(&id)?;
            if args.json { export(&session, raw) } else { show(&session) }
        }
        Some(SessionsSub::Export { id, raw }) => export(&stores.find(&id)?, raw),
        Some(SessionsSub::Rm { id }) => {
            let session = stores.find(&id)?;
            crate::wait(archive(session, &settings))
        }
    }
}

/// Runs the command on our own sessions, which include the built-in agent's. `None` if none of them matches: then an
/// agent's store may have it.
async fn of_ours(args: &SessionsArgs, folder: &Path) -> Result<Option<Exit>, Problem> {
    let ours = OwnSessions::open(args.agent.as_deref())?;
    let (id, all) = match &args.action {
        None => (None, args.all),
        Some(SessionsSub::List { all }) => (None, *all || args.all),
        Some(SessionsSub::Show { id, .. } | SessionsSub::Export { id, .. } | SessionsSub::Rm { id }) => {
            (Some(id), args.all)
        }
    };
    let Some(id) = id else {
        return ours.list((!all).then_some(folder), args.json).await.map(Some);
    };
    let record = match (ours.find(id, folder).await?, &args.agent) {
        (Some(record), _) => record,
        (None, None) => return Ok(None),
        (None, Some(agent)) => {
            let message = format!("no {agent} session matches \"{id}\". List them with: multitap sessions --all");
            return Err(Problem::new(Exit::Failed, message));
        }
    };
    match &args.action {
        Some(SessionsSub::Rm { .. }) => ours.forget(&record).await.map(Some),
        Some(SessionsSub::Show { .. }) if args.json => ours.show_json(&record).await.map(Some),
        Some(SessionsSub::Show { .. }) => ours.show(&record).await.map(Some),
        _ => ours.export(&record).await.map(Some),
    }
}

/// The agents' stores to search.
struct Stores {
    stores: Vec<History>,
    folder: PathBuf,
}

impl Stores {
    fn open(agent: Option<&str>, settings: &Settings, folder: PathBuf) -> Result<Self, Problem> {
        let agents = match agent {
            Some(name) => {
                let kind: AgentKind = name.parse().map_err(|error| Problem::usage(format!("--agent: {error}")))?;
                vec![kind.agent_type()]
            }
            None => AgentInfo::all().into_iter().filter(|info| info.has_store()).map(|info| info.agent).collect(),
        };
        let open = |agent: AgentType| History::of(agent, &settings.of(agent).env);
        let stores = agents.into_iter().map(open).collect::<Result<Vec<_>, _>>();
        let stores = stores.map_err(|error| Problem::usage(error.to_string()))?;
        Ok(Self { stores, folder })
    }

    fn list(&self, all: bool, json: bool) -> Result<Exit, Problem> {
        let folder = (!all).then_some(self.folder.as_path());
        let mut sessions: Vec<StoredSession> = self.stores.iter().flat_map(|store| store.list(folder)).collect();
        sessions.retain(|session| all || !session.archived);
        sessions.sort_by_key(|session| Reverse(session.updated));
        if json {
            print(&pretty_json(&sessions)?)?;
        } else if sessions.is_empty() {
            let names: Vec<&str> = self.stores.iter().map(|store| store.agent().as_str()).collect();
            let place = if all {
                "on this machine".to_owned()
            } else {
                format!("in {} (--all looks in every folder)", self.folder.display())
            };
            out::say(&format!("no conversations of {} {place}", names.join(", ")));
        } else {
            print(&table(&sessions, all, Timestamp::now()))?;
        }
        Ok(Exit::Completed)
    }

    /// Finds a conversation in any of the stores.
    fn find(&self, wanted: &str) -> Result<StoredSession, Problem> {
        let mut found = Vec::new();
        let mut missed = None;
        for store in &self.stores {
            match store.find(wanted, &self.folder) {
                Ok(session) => found.push(session),
                Err(error @ HistoryError::Ambiguous { .. }) => return Err(not_found(&error)),
                Err(error) => missed = Some(error),
            }
        }
        // Several agents may have had a conversation here: the newest of all.
        if wanted == "latest" {
            found.sort_by_key(|session| Reverse(session.updated));
            found.truncate(1);
        }
        match (found.pop(), found.first()) {
            (Some(session), None) => Ok(session),
            (Some(one), Some(other)) => {
                let (one, other) = (one.agent, other.agent);
                Err(Problem::usage(format!(
                    "both {other} and {one} have a conversation {wanted}: say which with --agent"
                )))
            }
            (None, _) if self.stores.len() > 1 => {
                let names: Vec<&str> = self.stores.iter().map(|store| store.agent().as_str()).collect();
                let names = names.join(", ");
                let message = format!(
                    "no session or {names} conversation matches \"{wanted}\". List them with: multitap sessions"
                );
                Err(Problem::new(Exit::Failed, message))
            }
            (None, _) => Err(missed.map_or_else(
                || Problem::usage("there are no stored conversations to search"),
                |error| not_found(&error),
            )),
        }
    }
}

fn not_found(error: &HistoryError) -> Problem {
    Problem::new(Exit::Failed, format!("{error}; `multitap sessions --all` lists what there is"))
}

fn table(sessions: &[StoredSession], folders: bool, now: Timestamp) -> String {
    let width = sessions.iter().map(|session| session.id.len()).max().unwrap_or(0);
    let line = |session: &StoredSession| {
        let id = format!("{:<width$}", session.id);
        let age = session.updated.map_or_else(String::new, |at| age(now.millis_since(at)));
        let mark = if session.archived { "[archived] " } else { "" };
        let folder = session.folder.as_deref().filter(|_| folders);
        row(session.agent.as_str(), &id, &age, mark, session.title.as_deref(), folder)
    };
    sessions.iter().map(line).collect()
}

/// One line of a list.
fn row(agent: &str, id: &str, age: &str, mark: &str, title: Option<&str>, folder: Option<&Path>) -> String {
    let title = shortened(title.unwrap_or("(nothing was said)"), TITLE);
    let folder = folder.map(|folder| format!("  ({})", folder.display())).unwrap_or_default();
    format!("{}\n", visible_line(&format!("{agent:<6}  {id}  {age:>7}  {mark}{title}{folder}")))
}

/// An age in one word.
pub(crate) fn age(millis: u64) -> String {
    let minutes = millis / 60_000;
    match (minutes, minutes / 60, minutes / 60 / 24) {
        (0, _, _) => "now".to_owned(),
        (minutes, 0, _) => format!("{minutes} min"),
        (_, hours, 0) => format!("{hours} h"),
        (_, _, days) => format!("{days} d"),
    }
}

/// Prints a conversation as events, one per line. The session's id is the agent's own.
fn export(session: &StoredSession, raw: bool) -> Result<Exit, Problem> {
    let events = read_stored(session, raw).map_err(unreadable)?;
    let mut stdout = out::buffered();
    let write = || -> io::Result<()> {
        for event in events {
            stdout.write_all(json_line(&event)?.as_bytes())?;
        }
        stdout.flush()
    };
    written(write())
}

/// Prints a conversation for people.
fn show(session: &StoredSession) -> Result<Exit, Problem> {
    let events = read_stored(session, false).map_err(unreadable)?;
    let mut transcript = Transcript::default();
    let mut stdout = out::buffered();
    let write = || -> io::Result<()> {
        let StoredSession { agent, id, model, folder, started, .. } = session;
        stdout.write_all(head(agent.to_string(), id, model.as_ref(), folder.as_ref(), *started).as_bytes())?;
        for event in events {
            stdout.write_all(visible(&transcript.tell(&event.kind)).as_bytes())?;
        }
        stdout.flush()
    };
    written(write())
}

/// What a conversation is, in the line above it.
fn head(
    agent: String,
    id: &str,
    model: Option<&String>,
    folder: Option<&PathBuf>,
    started: Option<Timestamp>,
) -> String {
    let folder = folder.map(|folder| folder.display().to_string());
    let more = [model.cloned(), folder, started.map(|at| at.to_string())];
    let facts: Vec<String> = [agent, id.to_owned()].into_iter().chain(more.into_iter().flatten()).collect();
    format!("{}\n", visible_line(&facts.join("  ")))
}

fn written(written: io::Result<()>) -> Result<Exit, Problem> {
    match written {
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Completed),
        other => Ok(other.map(|()| Exit::Completed).context("cannot write to stdout")?),
    }
}

fn unreadable(error: HistoryError) -> Problem {
    Problem::from(anyhow::Error::new(error))
}

/// Archives a conversation, if the agent can.
async fn archive(session: StoredSession, settings: &Settings) -> Result<Exit, Problem> {
    if session.agent != AgentType::Codex {
        let files: Vec<String> = session.files.iter().map(|path| path.display().to_string()).collect();
        return Err(Problem::usage(format!(
            "{} cannot archive conversations, and multitap does not delete another program's files. To delete it yourself, remove {}",
            session.agent,
            files.join(" and ")
        )));
    }
    if session.archived {
        return Err(Problem::new(Exit::Failed, format!("{} is already archived", session.id)));
    }
    let id = &session.id;
    out::say(&format!("codex archived {id}: it is no longer listed, and its file is in archived_sessions"));
    let mut config = SessionConfig::new(AgentKind::Codex);
    config.program = Some(launch::agent_program(AgentType::Codex, settings));
    config.working_directory = session.folder.filter(|folder| folder.is_dir());
    let hidden_env = HIDDEN_ENV.map(str::to_owned).to_vec();
    let spec = LaunchSpec { config, keeper: launch::keeper()?, hidden_env };
    match multitap_adapter::archive(spec, &session.id).await {
        Ok(()) => Ok(Exit::Completed),
        Err(LaunchError::Unsupported(error)) => Err(Problem::usage(error.to_string())),
        Err(error @ LaunchError::Agent(_)) => Err(Problem::new(Exit::NotStarted, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_one_word() {
        let minute = 60_000;
        for (millis, word) in [
            (0, "now"),
            (minute, "1 min"),
            (59 * minute, "59 min"),
            (60 * minute, "1 h"),
            (25 * 60 * minute, "1 d"),
            (400 * 24 * 60 * minute, "400 d"),
        ] {
            assert_eq!(age(millis), word);
        }
    }
}
