//! Forks in Codex's store: their files hold what came after the fork, and are told with what came before. The shape of
//! the files is that of 0.166.0.

use std::fs;

use multitap_adapter::{StoredSession, read};
use multitap_event::{AgentType, EventKind, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::history::store;

const FIRST: &str = "01a1df55-1f58-7e73-be2a-000000000001";
const SECOND: &str = "01a1df55-2171-78b0-b50f-000000000002";
const THIRD: &str = "01a1df55-22e0-7712-9c97-000000000003";

/// A file: its head, and a turn for each prompt. Every entry takes a second and has the next ordinal.
fn rollout(home: &TempDir, id: &str, first: u64, forked: &Value, prompts: &[&str]) {
    let mut entries = vec![];
    let time = |ordinal: u64| format!("2026-11-15T13:{:02}:{:02}.000Z", ordinal / 60, ordinal % 60);
    let mut meta =
        json!({"id": id, "timestamp": time(first), "cwd": "/w", "cli_version": "0.166.0", "source": "vscode"});
    meta.as_object_mut().unwrap().extend(forked.as_object().cloned().unwrap_or_default());
    entries.push(("session_meta", meta));
    for prompt in prompts {
        let turn = format!("turn of {prompt}");
        let item = |kind: &str, id: String, text: &str| {
            let content = json!([{"type": "text", "text": text}]);
            json!({"type": "item_completed", "turn_id": turn, "item": {"type": kind, "id": id, "content": content}})
        };
        entries.extend([
            ("event_msg", json!({"type": "task_started", "turn_id": turn})),
            ("turn_context", json!({"turn_id": turn, "cwd": "/w", "model": "m"})),
            ("event_msg", item("UserMessage", format!("u {prompt}"), prompt)),
            ("event_msg", item("AgentMessage", format!("a {prompt}"), &format!("answer to {prompt}"))),
            ("event_msg", json!({"type": "task_complete", "turn_id": turn, "last_agent_message": "ok"})),
        ]);
    }
    let line = |(ordinal, (kind, payload)): (u64, (&str, Value))| {
        json!({"timestamp": time(ordinal), "ordinal": ordinal, "type": kind, "payload": payload}).to_string() + "\n"
    };
    let text: String = (first..).zip(entries).map(line).collect();
    let folder = home.path().join("sessions/2026/11/15");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("rollout-2026-11-15T13-00-00-{id}.jsonl")), text).unwrap();
}

fn forked(from: &str, ordinal: u64) -> Value {
    json!({"forked_from_id": from, "forked_from_ordinal_exclusive": ordinal})
}

fn session(home: &TempDir, id: &str) -> StoredSession {
    let list = store(AgentType::Codex, home.path()).list(None);
    list.into_iter().find(|session| session.id == id).unwrap()
}

/// What the user said, and the `system` events of a kind.
fn told(session: &StoredSession, subtype: &str) -> (Vec<String>, Vec<String>) {
    let (mut said, mut notes) = (vec![], vec![]);
    for draft in read(session, false).unwrap() {
        match draft.kind {
            EventKind::UserMessage(message) => said.push(message.content),
            EventKind::System(note) if note.subtype == subtype => {
                notes.push(note.message.unwrap_or_default() + &Value::Object(note.data).to_string());
            }
            EventKind::SessionStarted(start) => assert_eq!(start.native_session_id.unwrap().as_str(), session.id),
            _ => {}
        }
    }
    (said, notes)
}

#[test]
fn a_fork_is_told_from_the_beginning() {
    let home = tempfile::tempdir().unwrap();
    rollout(&home, FIRST, 0, &Value::Null, &["apple", "pear"]);
    // After the first turn.
    rollout(&home, SECOND, 6, &forked(FIRST, 6), &["plum", "fig"]);
    // After the first turn of a fork.
    rollout(&home, THIRD, 12, &forked(SECOND, 12), &["kiwi"]);
    let third = session(&home, THIRD);
    assert_eq!(third.title.as_deref(), Some("apple"));
    let (said, notes) = told(&third, "copiedFrom");
    assert_eq!(said, ["apple", "plum", "kiwi"]);
    assert!(notes.len() == 2 && notes[0].contains(FIRST) && notes[1].contains(SECOND), "{notes:?}");
    let events: Vec<_> = read(&third, false).unwrap().collect();
    assert_eq!(events[0].at, Timestamp::parse("2026-11-15T13:00:00.000Z").unwrap(), "when the first one began");
    let ends = events.iter().filter(|draft| matches!(draft.kind, EventKind::TurnCompleted(_))).count();
    assert_eq!(ends, 3);
    // The others are what they were.
    assert_eq!(told(&session(&home, FIRST), "forked").0, ["apple", "pear"]);
    assert_eq!(told(&session(&home, SECOND), "forked").0, ["apple", "plum", "fig"]);
}

#[test]
fn a_fork_of_a_fork_may_go_back_to_before_the_first_one() {
    let home = tempfile::tempdir().unwrap();
    rollout(&home, FIRST, 0, &Value::Null, &["apple", "pear"]);
    rollout(&home, SECOND, 11, &forked(FIRST, 11), &["plum"]);
    rollout(&home, THIRD, 6, &forked(SECOND, 6), &["kiwi"]);
    assert_eq!(told(&session(&home, THIRD), "forked").0, ["apple", "kiwi"]);
}

#[test]
fn without_a_number_the_time_of_the_fork_counts() {
    let home = tempfile::tempdir().unwrap();
    rollout(&home, FIRST, 0, &Value::Null, &["apple", "pear"]);
    rollout(&home, SECOND, 5, &json!({"forked_from_id": FIRST}), &["plum"]);
    assert_eq!(told(&session(&home, SECOND), "forked").0, ["apple", "plum"]);
}

#[test]
fn a_beginning_that_is_not_there_is_named() {
    let home = tempfile::tempdir().unwrap();
    rollout(&home, SECOND, 6, &forked(FIRST, 6), &["plum"]);
    let second = session(&home, SECOND);
    assert_eq!(second.title.as_deref(), Some("plum"));
    let (said, notes) = told(&second, "forked");
    assert_eq!(said, ["plum"]);
    let message = format!("the beginning is in conversation {FIRST}, which was not found");
    assert_eq!(notes, [format!(r#"{message}{{"from":"{FIRST}"}}"#)]);
}

#[test]
fn files_that_name_each_other_come_to_an_end() {
    let home = tempfile::tempdir().unwrap();
    rollout(&home, FIRST, 6, &forked(SECOND, 12), &["apple"]);
    rollout(&home, SECOND, 12, &forked(FIRST, 12), &["plum"]);
    let (said, notes) = told(&session(&home, SECOND), "forked");
    assert_eq!((said.len(), notes.len()), (2, 1), "{said:?} {notes:?}");
    rollout(&home, THIRD, 6, &forked(THIRD, 6), &["kiwi"]);
    assert_eq!(told(&session(&home, THIRD), "forked").0, ["kiwi"]);
}

#[test]
fn what_an_older_version_copied_is_not_told_twice() {
    let home = tempfile::tempdir().unwrap();
    rollout(&home, FIRST, 0, &Value::Null, &["apple"]);
    rollout(&home, SECOND, 6, &json!({"forked_from_id": FIRST}), &["plum"]);
    let path = |id: &str| home.path().join(format!("sessions/2026/11/15/rollout-2026-11-15T13-00-00-{id}.jsonl"));
    let text = |id: &str| fs::read_to_string(path(id)).unwrap();
    let (own, copied) = (text(SECOND), text(FIRST));
    let (head, rest) = own.split_once('\n').unwrap();
    fs::write(path(SECOND), format!("{head}\n{copied}{rest}")).unwrap();
    assert_eq!(told(&session(&home, SECOND), "forked").0, ["apple", "plum"]);
}
