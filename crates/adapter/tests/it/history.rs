//! The stores of the agents, as the real CLIs wrote them and as older versions did: listed, and told again as events.
//! R002-48, R002-63, R002-77, R002-89, R002-90.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use multitap_adapter::{History, HistoryError, StoredSession, read};
use multitap_event::{AgentType, Draft, EventKind};
use multitap_testkit::fixture;

use crate::invariants::check;
use crate::recording::{events, fixtures};
use crate::schema::Schemas;
use crate::shown::shown;

const CLIS: [AgentType; 3] = [AgentType::Claude, AgentType::Codex, AgentType::Gemini];

/// Each agent with the versions whose stores we have.
fn stores() -> Vec<(AgentType, String, History)> {
    let mut stores = Vec::new();
    for agent in CLIS {
        let mut versions: Vec<PathBuf> =
            fs::read_dir(fixtures(agent.as_str())).unwrap().map(|entry| entry.unwrap().path()).collect();
        versions.sort();
        for version in versions.into_iter().filter(|version| version.join("stored").is_dir()) {
            let name = version.file_name().unwrap().to_str().unwrap().to_owned();
            stores.push((agent, name, store(agent, &version.join("stored"))));
        }
    }
    assert_eq!(stores.len(), 6, "each agent has a store of today and one of older versions");
    stores
}

/// The store of an agent that was told by its own variable where it is.
pub(crate) fn store(agent: AgentType, place: &Path) -> History {
    let variable = match agent {
        AgentType::Claude => "CLAUDE_CONFIG_DIR",
        AgentType::Codex => "CODEX_HOME",
        _ => "GEMINI_CLI_HOME",
    };
    History::of(agent, &BTreeMap::from([(variable.to_owned(), place.display().to_string())])).unwrap()
}

fn told(session: &StoredSession, keep_raw: bool) -> Vec<Draft> {
    read(session, keep_raw).unwrap().collect()
}

/// All lines of a conversation's files, in the order of its files.
fn lines(session: &StoredSession) -> Vec<String> {
    let text = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        if path.extension().is_some_and(|extension| extension == "zst") {
            return std::io::read_to_string(ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).unwrap())
                .unwrap();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    session.files.iter().flat_map(|path| text(path).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn every_store_is_listed() {
    let root = fixtures("").display().to_string();
    for (agent, version, store) in stores() {
        let ids = |folder: Option<&str>| {
            let list = store.list(folder.map(Path::new));
            list.into_iter().map(|session| session.id).collect::<Vec<_>>()
        };
        let all = ids(None);
        assert_eq!(ids(Some("/workspace")), all, "{agent} {version}: all were had in one folder");
        assert!(ids(Some("/work")).is_empty(), "{agent} {version}");
        let mut sessions = store.list(None);
        assert!(sessions.is_sorted_by(|one, other| one.updated >= other.updated), "newest first");
        sessions.sort_by(|one, other| one.id.cmp(&other.id));
        if version == "older" {
            // Some of these tell no times, and count as old as their files.
            sessions.iter_mut().for_each(|session| session.updated = None);
        }
        let show = |session: &StoredSession| serde_json::to_string(session).unwrap().replace(&root, "");
        let list = sessions.iter().map(show).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(format!("list_{agent}_{version}"), list);
    }
}

#[test]
fn every_stored_session_reads_like_a_live_one() {
    let schemas = Schemas::new();
    for (agent, version, store) in stores() {
        for session in store.list(None) {
            let name = format!("{agent}_{version}_{}", session.id);
            let mut kept = told(&session, true);
            let mut lines = lines(&session);
            if session.files.len() > 1 {
                // The files of sub-agents are read side by side with the main one.
                let mut raw: Vec<_> = kept.iter_mut().flat_map(|draft| std::mem::take(&mut draft.raw)).collect();
                raw.sort();
                kept[0].raw = raw;
                lines.sort();
            }
            check(&name, &lines, &kept);
            let told = told(&session, false);
            rules(&name, &session, &told);
            let events = events(told);
            schemas.check(&name, &events);
            let times: Vec<String> = events.iter().map(|event| event.timestamp.to_string()).collect();
            assert!(times.is_sorted(), "{name}: {times:#?}");
            insta::assert_snapshot!(name, shown(&events));
        }
    }
}

/// What holds for a conversation that was read from a file besides.
fn rules(name: &str, session: &StoredSession, told: &[Draft]) {
    let EventKind::SessionStarted(start) = &told[0].kind else { panic!("{name}: {:?}", told[0]) };
    assert_eq!(start.native_session_id.as_ref(), Some(&session.id), "{name}");
    assert!(told.iter().all(|draft| !matches!(draft.kind, EventKind::RawDelta { .. })), "{name}");
    let said = told.iter().find_map(|draft| match &draft.kind {
        EventKind::UserMessage(message) => Some(message.content.clone()),
        _ => None,
    });
    let title = session.title.as_ref().unwrap().trim_end_matches('…').trim();
    assert!(said.unwrap().starts_with(title), "{name}: the title is the first thing said");
    for draft in told {
        let partial = match &draft.kind {
            EventKind::TextChunk(chunk) => chunk.is_partial,
            EventKind::Reasoning(thought) => thought.is_partial,
            _ => false,
        };
        assert!(!partial, "{name}: what is stored is whole");
    }
    let starts = told.iter().filter(|draft| matches!(draft.kind, EventKind::TurnStarted { .. })).count();
    let ends = told.iter().filter(|draft| matches!(draft.kind, EventKind::TurnCompleted(_))).count();
    assert!(starts > 0 && starts == ends, "{name}: {starts} turns, {ends} ends");
}

#[test]
fn nothing_of_todays_stores_is_unknown() {
    for (agent, version, store) in stores().into_iter().filter(|(_, version, _)| version != "older") {
        for session in store.list(None) {
            let unknown =
                told(&session, false).into_iter().find(|draft| matches!(draft.kind, EventKind::Unrecognized { .. }));
            assert_eq!(unknown, None, "{agent} {version} {}", session.id);
        }
    }
}

#[test]
fn a_conversation_is_found_by_what_people_have_at_hand() {
    let here = Path::new("/workspace");
    for (agent, version, store) in stores() {
        let all = store.list(Some(here));
        let session = &all[0];
        let find = |wanted: &str, folder: &str| store.find(wanted, Path::new(folder)).unwrap().id;
        assert_eq!(find(&session.id, "/elsewhere"), session.id, "{agent} {version}: by its id");
        assert_eq!(store.find(&session.id[..session.id.len() - 1], here).unwrap(), *session, "by the beginning of it");
        let newest = all.iter().find(|session| !session.archived).unwrap();
        assert_eq!(store.find("latest", here).unwrap(), *newest);
        let error = store.find("99999999", here).unwrap_err();
        assert!(matches!(error, HistoryError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains(agent.as_str()) && error.to_string().contains("99999999"), "{error}");
        let error = store.find("latest", Path::new("/elsewhere")).unwrap_err();
        assert!(matches!(error, HistoryError::NoneHere { .. }), "{error}");
    }
    let codex = store(AgentType::Codex, &fixtures("codex/0.166.0/stored"));
    let error = codex.find("01a1dee", here).unwrap_err();
    let HistoryError::Ambiguous { ids, .. } = &error else { panic!("{error}") };
    assert_eq!(ids.len(), 3, "{error}");
    // The oldest is the first, as Gemini itself counts.
    let gemini = store(AgentType::Gemini, &fixtures("gemini/0.61.0/stored"));
    assert_eq!(gemini.find("1", here).unwrap().id, "443c04d7-9506-4cad-82f9-71df8ce6a104");
}

#[test]
fn an_agent_without_a_store_says_so() {
    for agent in [AgentType::Acp, AgentType::Builtin] {
        let error = History::of(agent, &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains("cannot list the conversations") && error.contains(agent.as_str()), "{error}");
    }
}

#[test]
fn what_cannot_be_read_does_not_stop_the_list() {
    let place = tempfile::tempdir().unwrap();
    for agent in CLIS {
        let broken = match agent {
            AgentType::Claude => "projects/-workspace",
            AgentType::Codex => "sessions/2026/11/15",
            _ => ".gemini/tmp/workspace/chats",
        };
        let folder = place.path().join(broken);
        fs::create_dir_all(&folder).unwrap();
        for (name, bytes) in [("a", &b""[..]), ("b", b"\xff\xfe\x00"), ("c", b"{\"type\":"), ("d", b"[1]\n{}\nnull\n")]
        {
            for extension in ["jsonl", "json", "jsonl.zst"] {
                fs::write(folder.join(format!("session-{name}.{extension}")), bytes).unwrap();
                fs::write(folder.join(format!("rollout-{name}.{extension}")), bytes).unwrap();
            }
        }
        fs::create_dir(folder.join("session-folder.jsonl")).unwrap();
        assert_eq!(store(agent, place.path()).list(None), [], "{agent}");
    }
    assert_eq!(store(AgentType::Claude, Path::new("/nowhere")).list(None), []);
}

#[test]
fn a_file_that_is_gone_is_named() {
    let store = store(AgentType::Claude, &fixtures("claude/2.1.325/stored"));
    let mut session = store.list(None).remove(0);
    session.files = vec!["/nowhere/x.jsonl".into()];
    let error = read(&session, false).unwrap_err();
    assert!(error.to_string().contains("/nowhere/x.jsonl"), "{error}");
}

#[test]
fn fixtures_of_stores_are_no_recordings() {
    assert!(fixture::all("claude").unwrap().iter().all(|fixture| !fixture.case.contains('-')));
}
