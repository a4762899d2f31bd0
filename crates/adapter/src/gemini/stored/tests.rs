use multitap_event::AgentKind;
use tempfile::TempDir;

use super::*;

const ID: &str = "f546f7be-6068-455d-a8fa-184fb5dc9ecb";
const HEAD: &str = r#"{"sessionId":"f546f7be-6068-455d-a8fa-184fb5dc9ecb","projectHash":"x","startTime":"2026-11-15T09:16:04.061Z","kind":"main"}
{"$set":{"messages":[{"id":"d0","type":"user","content":[{"text":"<session_context>\nThis is the Gemini CLI."}]}]}}
"#;
const SAID: &str = r#"{"id":"8c","type":"user","content":[{"text":"hello"}]}
{"$set":{"lastUpdated":"2026-11-15T09:16:04.176Z"}}
"#;

/// A home with one project; its conversations are in `chats`.
struct Place {
    home: TempDir,
    chats: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let chats = home.path().join(".gemini/tmp/work/chats");
        fs::create_dir_all(&chats).unwrap();
        let projects = serde_json::json!({ "projects": { "/w/work": "work" } });
        fs::write(home.path().join(".gemini/projects.json"), projects.to_string()).unwrap();
        Self { home, chats }
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.chats.join(name), text).unwrap();
    }

    fn config(&self, resume: Resume) -> SessionConfig {
        let mut config = SessionConfig::new(AgentKind::Gemini);
        config.working_directory = Some("/w/work".into());
        config.environment.insert("HOME".to_owned(), self.home.path().display().to_string());
        config.environment.insert("GEMINI_CLI_HOME".to_owned(), String::new());
        config.resume = resume;
        config
    }

    fn files(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.chats).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn session(id: &str) -> Resume {
    Resume::Session { native_id: id.to_owned(), at: None }
}

const REAL: &str = "session-2026-11-15T09-16-f546f7be.jsonl";
const APART: &str = "session-2026-11-15T09-16-f546f7be-kept.jsonl";

#[test]
fn what_is_resumed_gets_a_name_that_gemini_does_not_clean_up() {
    let place = Place::new();
    place.write(REAL, &format!("{HEAD}{SAID}"));
    for resume in [session(ID), Resume::Latest, session("1")] {
        let mut config = place.config(resume);
        prepare_resume(&mut config).unwrap().unwrap();
        assert_eq!(config.resume, session(ID));
        assert_eq!(place.files(), [APART]);
    }
}

#[test]
fn another_file_is_not_overwritten() {
    let place = Place::new();
    place.write(REAL, &format!("{HEAD}{SAID}"));
    place.write(APART, &format!("{HEAD}{SAID}"));
    let error = prepare_resume(&mut place.config(session(ID))).unwrap_err();
    assert!(error.message.contains("is there already"), "{error}");
    assert_eq!(place.files(), [APART, REAL]);
}

#[test]
fn the_empty_record_beside_it_goes_when_the_start_is_over() {
    let place = Place::new();
    place.write(REAL, &format!("{HEAD}{SAID}"));
    let stored = prepare_resume(&mut place.config(session("1"))).unwrap().unwrap();
    // In the very minute, as Gemini would.
    place.write(REAL, HEAD);
    place.write("session-2026-11-15T09-40-f546f7be.jsonl", HEAD);
    drop(stored);
    assert_eq!(place.files(), [APART]);
}

#[test]
fn empty_records_of_all_conversations_go_before_any_start() {
    let place = Place::new();
    place.write(REAL, &format!("{HEAD}{SAID}"));
    place.write("session-2026-11-15T09-40-f546f7be.jsonl", HEAD);
    // Alone, so it may be a conversation that has just begun; and another one whose id begins alike.
    let other = HEAD.replace(ID, "11111111-6068-455d-a8fa-184fb5dc9ecb");
    place.write("session-2026-11-15T09-41-11111111.jsonl", &other);
    place.write("session-2026-11-15T09-42-f546f7be.jsonl", &HEAD.replace("455d", "555d"));
    assert!(find(&mut place.config(Resume::New)).unwrap().is_none());
    let left = ["session-2026-11-15T09-41-11111111.jsonl", "session-2026-11-15T09-42-f546f7be.jsonl"];
    assert_eq!(place.files(), [&[REAL], &left[..]].concat());
}

#[test]
fn a_conversation_without_a_word_cannot_be_resumed() {
    let place = Place::new();
    place.write("session-2026-11-15T09-16-f546f7be.jsonl", HEAD);
    for resume in [Resume::Latest, session(ID), session("1")] {
        let error = prepare_resume(&mut place.config(resume)).unwrap_err();
        assert_eq!(error.kind, AgentErrorKind::SessionNotFound);
    }
    assert_eq!(place.files().len(), 1);
}

#[test]
fn older_files_are_read_too() {
    let place = Place::new();
    let old = serde_json::json!({
        "sessionId": "abc123-def456-7890", "projectHash": "x", "startTime": "2025-12-03T10:00:00.000Z",
        "messages": [{ "id": "msg-001", "type": "user", "content": "Analyze the auth module" }],
    });
    place.write("session-2025-12-03T10-00-abc123-d.json", &old.to_string());
    let mut config = place.config(Resume::Latest);
    prepare_resume(&mut config).unwrap().unwrap();
    assert_eq!(config.resume, session("abc123-def456-7890"));
}

#[test]
fn a_folder_that_older_versions_named_by_its_digest_is_found() {
    let place = Place::new();
    let project = "772fbb1e17561d72bb921fe123e42cc75f2cfd1065aa501a98aa8db8e093c534";
    let chats = place.home.path().join(".gemini/tmp").join(project).join("chats");
    fs::create_dir_all(&chats).unwrap();
    fs::write(chats.join("session-2026-11-15T09-16-f546f7be.jsonl"), format!("{HEAD}{SAID}")).unwrap();
    let mut config = place.config(Resume::Latest);
    config.working_directory = Some("/w/other".into());
    find(&mut config).unwrap().unwrap();
    assert_eq!(config.resume, session(ID));
}

#[test]
fn the_latest_is_the_one_that_was_updated_last_and_numbers_go_by_the_start() {
    let place = Place::new();
    // Begun first and said something in last.
    let again = SAID.replace("09:16:04.176Z", "11:00:00.000Z");
    place.write(REAL, &format!("{HEAD}{SAID}{again}"));
    let other = "11111111-6068-455d-a8fa-184fb5dc9ecb";
    let later = format!("{HEAD}{SAID}").replace(ID, other).replace("09:16", "10:00");
    place.write("session-2026-11-15T10-00-11111111.jsonl", &later);
    for (resume, id) in [
        (Resume::Latest, ID),
        (session("latest"), ID),
        (session("1"), ID),
        (session("2"), other),
        (session(other), other),
    ] {
        let mut config = place.config(resume.clone());
        find(&mut config).unwrap().unwrap();
        assert_eq!(config.resume, session(id), "{resume:?}");
    }
}
