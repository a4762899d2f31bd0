//! What reading an agent's files costs, however many there are and whatever they hold.

use std::fs;
use std::path::Path;

use multitap_event::{AgentType, EventKind};
use serde_json::{Value, json};

use super::file::OPENED;
use super::{History, StoredSession, read};
use crate::info::AgentInfo;

fn store(agent: AgentType, home: &Path) -> History {
    let store = AgentInfo::of(agent).unwrap().store.as_ref().unwrap();
    History { agent, store, home: home.to_owned() }
}

/// Files and folders that are opened meanwhile.
fn opened<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = OPENED.get();
    let done = work();
    (OPENED.get() - before, done)
}

fn fork_id(number: usize) -> String {
    format!("01a1df55-1f58-7e73-be2a-{number:012}")
}

/// A conversation of Codex with one prompt, forked from another one if a number is given.
fn rollout(home: &Path, number: usize, from: Option<usize>) {
    let id = fork_id(number);
    let mut meta = json!({ "id": id, "timestamp": "2026-11-15T13:00:00.000Z", "cwd": "/w", "model": "m" });
    if let Some(from) = from {
        meta["forked_from_id"] = fork_id(from).into();
        meta["forked_from_ordinal_exclusive"] = 1_000_000.into();
    }
    let prompt = json!({ "type": "user_message", "message": format!("prompt {number}") });
    let line = |ordinal: usize, kind: &str, payload: Value| json!({ "timestamp": "2026-11-15T13:00:00.000Z", "ordinal": ordinal, "type": kind, "payload": payload });
    let text = format!("{}\n{}\n", line(2 * number, "session_meta", meta), line(2 * number + 1, "event_msg", prompt));
    fs::create_dir_all(home.join("sessions")).unwrap();
    fs::write(home.join(format!("sessions/rollout-2026-11-15T13-00-00-{id}.jsonl")), text).unwrap();
}

/// The whole store was once listed for each fork, and each of its elders was opened for it.
#[test]
fn each_fork_of_codex_is_looked_at_a_few_times() {
    const FORKS: usize = 300;
    type Parent = fn(usize) -> Option<usize>;
    let shapes: [(&str, Parent, &str); 3] = [
        ("all of one", |number| (number > 0).then_some(0), "prompt 0"),
        ("each of the one before", |number| number.checked_sub(1), "prompt 0"),
        ("in a circle", |number| Some((number + 1) % FORKS), ""),
    ];
    for (shape, parent, title) in shapes {
        let home = tempfile::tempdir().unwrap();
        (0..FORKS).for_each(|number| rollout(home.path(), number, parent(number)));
        let (work, sessions) = opened(|| store(AgentType::Codex, home.path()).list(None));
        assert_eq!(sessions.len(), FORKS, "{shape}");
        assert!(work < 10 * FORKS, "{shape}: {work} files opened for {FORKS}");
        assert!(title.is_empty() || sessions.iter().all(|session| session.title.as_deref() == Some(title)), "{shape}");

        let last = sessions.iter().find(|session| session.id == fork_id(FORKS - 1)).unwrap();
        let (work, prompts) = opened(|| {
            let events = read(last, false).unwrap();
            events.filter(|draft| matches!(draft.kind, EventKind::UserMessage(_))).count()
        });
        assert!(work < 10 * FORKS, "{shape}: {work} files opened to read {FORKS}");
        let elders = if shape == "all of one" { 2 } else { FORKS };
        assert_eq!(prompts, elders, "{shape}");
    }
}

/// The path of every known folder was once digested for each project.
#[test]
fn very_many_projects_of_gemini_are_listed_in_linear_time() {
    const PROJECTS: usize = 4_000;
    let home = tempfile::tempdir().unwrap();
    let known: serde_json::Map<String, Value> =
        (0..PROJECTS).map(|number| (format!("/folder/{number}"), format!("name-{number}").into())).collect();
    fs::write(home.path().join("projects.json"), json!({ "projects": known }).to_string()).unwrap();
    for number in 0..PROJECTS {
        fs::create_dir_all(home.path().join(format!("tmp/{number:064x}"))).unwrap();
    }
    let (work, sessions) = opened(|| store(AgentType::Gemini, home.path()).list(None));
    assert!(sessions.is_empty());
    assert!(work < 4 * PROJECTS, "{work}");
}

/// A conversation in one file with these entries.
fn conversation(agent: AgentType, folder: &Path, name: &str, entries: impl Iterator<Item = Value>) -> StoredSession {
    let path = folder.join(name);
    let lines: String = entries.map(|entry| format!("{entry}\n")).collect();
    fs::write(&path, lines).unwrap();
    StoredSession::new(agent, "a".to_owned(), path)
}

/// At a size at which a cost that grows with its square takes minutes.
#[test]
fn very_many_entries_are_read_in_linear_time() {
    const ENTRIES: usize = 20_000;
    let folder = tempfile::tempdir().unwrap();
    // Sub-agents that never end, and entries of which nobody knows whose they are.
    let begun = (0..ENTRIES).map(|number| {
        let call = json!({ "type": "tool_use", "id": format!("t{number}"), "name": "Agent", "input": { "prompt": number.to_string() } });
        json!({ "type": "assistant", "uuid": format!("u{number}"), "message": { "role": "assistant", "content": [call] } })
    });
    let orphans = (0..ENTRIES).map(|number| {
        json!({ "type": "user", "isSidechain": true, "message": { "role": "user", "content": format!("orphan {number}") } })
    });
    let claude = conversation(AgentType::Claude, folder.path(), "claude.jsonl", begun.chain(orphans));
    assert!(read(&claude, false).unwrap().count() > 2 * ENTRIES);

    // Messages whose other copy never comes, and calls without an end.
    let entry = |payload: Value| json!({ "type": "event_msg", "payload": payload });
    let messages = (0..ENTRIES).map(|number| entry(json!({ "type": "agent_message", "message": number.to_string() })));
    let calls = (0..ENTRIES).map(|number| {
        entry(json!({ "type": "exec_command_begin", "call_id": format!("c{number}"), "command": ["x"] }))
    });
    let codex = conversation(AgentType::Codex, folder.path(), "codex.jsonl", messages.chain(calls));
    assert!(read(&codex, false).unwrap().count() > 2 * ENTRIES);

    // One message that is written again and again with another call, then all of them at once.
    let written = |number: usize| {
        let call = json!({ "id": format!("c{number}"), "name": "x", "args": {}, "status": "executing" });
        json!({ "type": "gemini", "id": "m", "content": "x", "toolCalls": [call] })
    };
    let again = (0..ENTRIES).map(written);
    let all = json!({ "$set": { "messages": (0..ENTRIES).map(written).collect::<Vec<_>>() } });
    let gemini = conversation(AgentType::Gemini, folder.path(), "gemini.jsonl", again.chain([all]));
    assert!(read(&gemini, false).unwrap().count() > 2 * ENTRIES);
}
