//! Finds conversations in Claude's own store. The modules below read their entries.
//!
//! `projects/FOLDER/ID.jsonl`, where FOLDER is the path of the folder with a `-` for every character other than letters
//! and digits; the entries of sub-agents are in `projects/FOLDER/ID/subagents/`. An older description has
//! `sessions/ID.jsonl`.

mod entry;
mod local;
mod turn;
mod wire;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use multitap_event::{AgentType, one_line};

pub(crate) use entry::Stored;

use self::wire::Entry;
use crate::history::file::{self, name};
use crate::history::{Here, StoredSession};
use crate::json::JsonFields as _;

/// Maximum length of a folder's name; longer names are cut and end with a digest.
const LONGEST: usize = 200;

pub(crate) fn list(home: &Path, here: Option<&Here>) -> Vec<StoredSession> {
    let projects = file::entries(&home.join("projects")).into_iter();
    let projects = projects.filter(|folder| here.is_none_or(|here| is_named_after(folder, here)));
    let files = projects.chain([home.join("sessions")]).flat_map(|folder| file::entries(&folder));
    let sessions = files.filter(|path| is_jsonl(path)).filter_map(|path| look(&path, here));
    sessions.collect()
}

fn is_jsonl(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

/// Whether a folder of the store belongs to the requested folder.
fn is_named_after(folder: &Path, here: &Here) -> bool {
    here.names().any(|path| {
        let wanted: String = path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        match wanted.get(..LONGEST) {
            Some(beginning) => name(folder).starts_with(beginning),
            None => name(folder) == wanted,
        }
    })
}

/// Reads from a file what the list of conversations shows; `None` if the conversation is empty.
fn look(path: &Path, here: Option<&Here>) -> Option<StoredSession> {
    let stem = path.file_stem()?.to_str()?.to_owned();
    let mut session = StoredSession::new(AgentType::Claude, stem, path.to_owned());
    let mut elsewhere = false;
    file::head(path, |line| {
        let Ok(entry) = serde_json::from_str::<Entry>(line) else { return ControlFlow::Continue(()) };
        if entry.is_sidechain() {
            return ControlFlow::Continue(());
        }
        if let (None, Some(folder)) = (&session.folder, entry.text("cwd").map(PathBuf::from)) {
            // Several folders may have the same name in the store.
            elsewhere = here.is_some_and(|here| !here.is(&folder));
            session.folder = Some(folder);
        }
        session.started = session.started.or(entry.time());
        session.agent_version = session.agent_version.take().or(entry.string("version"));
        session.model = session.model.take().or_else(|| entry.model());
        if session.title.is_none() {
            session.title = local::prompt_of(&entry).map(|text| one_line(&text));
        }
        let enough = elsewhere || (session.title.is_some() && session.model.is_some());
        if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .ok()?;
    if elsewhere || session.title.is_none() || (here.is_some() && session.folder.is_none()) {
        return None;
    }
    let last = file::tail(path).unwrap_or_default().into_iter().filter_map(|line| serde_json::from_str(&line).ok());
    session.updated = last.into_iter().find_map(|entry: Entry| entry.time()).or(session.updated);
    session.files.extend(sub_agents(path));
    Some(session)
}

fn sub_agents(path: &Path) -> impl Iterator<Item = PathBuf> {
    let folder = path.with_extension("").join("subagents");
    file::entries(&folder).into_iter().filter(|path| is_jsonl(path))
}
