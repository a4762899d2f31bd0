//! A conversation of Gemini's outlives a start that is broken off, however it is.

use std::path::PathBuf;

use multitap_testkit::fake::Fake;
use multitap_testkit::wait::until_blocking;
use serde_json::json;

use crate::scene::{Live, PATIENCE, Scene};

const ID: &str = "f546f7be-6068-455d-a8fa-184fb5dc9ecb";
const HEAD: &str =
    r#"{"sessionId":"f546f7be-6068-455d-a8fa-184fb5dc9ecb","startTime":"2026-11-15T09:16:04.061Z","kind":"main"}"#;
const SAID: &str = r#"{"id":"8c","type":"user","content":[{"text":"hello"}]}"#;
/// What Gemini names a record of that conversation, and so what it deletes all files of that end by.
const END: &str = "-f546f7be.jsonl";

/// Greets, and to the request for the conversation writes the empty record that Gemini writes, and no answer.
const NEVER_LOADS: &str = r#"
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}\n' "$id" ;;
    *'"method":"session/load"'*)
      printf '%s\n' "$HEAD_LINE" > "$HOME/.gemini/tmp/work/chats/session-2026-11-15T10-00-f546f7be.jsonl" ;;
  esac
done
"#;

/// A home where Gemini keeps one conversation.
struct Place {
    scene: Scene,
    chats: PathBuf,
    _fake: Fake,
}

impl Place {
    fn new() -> Self {
        let fake = Fake::shell("gemini", NEVER_LOADS).unwrap();
        let mut scene = Scene::bare();
        scene.scratch.set("MULTITAP_GEMINI_BIN", fake.program());
        scene.scratch.set("HEAD_LINE", HEAD);
        let gemini = scene.scratch.home().join(".gemini");
        let chats = gemini.join("tmp/work/chats");
        std::fs::create_dir_all(&chats).unwrap();
        let workspace = scene.scratch.workspace().canonicalize().unwrap();
        let projects = json!({ "projects": { workspace.to_str().unwrap(): "work" } });
        std::fs::write(gemini.join("projects.json"), projects.to_string()).unwrap();
        std::fs::write(chats.join(format!("session-2026-11-15T09-16{END}")), format!("{HEAD}\n{SAID}\n")).unwrap();
        Self { scene, chats, _fake: fake }
    }

    /// Takes it up, and waits until the fake has written its empty record.
    fn taking_up(&self) -> Live {
        let lines = ["--input-format", "stream-json", "--output-format", "stream-json"];
        let live = self.scene.start(&[&["-p", "hi", "--agent", "gemini", "-r", ID], &lines[..]].concat());
        until_blocking("the empty record", PATIENCE, || (self.files().len() == 2).then_some(())).unwrap();
        live
    }

    fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.chats).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// The file that what was said is in.
    fn said_in(&self) -> Vec<String> {
        let said = |name: &String| std::fs::read_to_string(self.chats.join(name)).unwrap().contains(SAID);
        self.files().into_iter().filter(said).collect()
    }
}

#[test]
fn an_interrupt_leaves_the_conversation_and_no_empty_record() {
    let place = Place::new();
    let mut live = place.taking_up();
    live.signal("-INT", &place.scene.scratch);
    live.wait().exits(130);
    assert_eq!((place.files().len(), place.said_in().len()), (1, 1), "{:?}", place.files());
}

#[test]
fn what_is_left_by_a_kill_does_not_cost_the_conversation() {
    let place = Place::new();
    let mut live = place.taking_up();
    live.signal("-KILL", &place.scene.scratch);
    live.wait();
    // The user's own Gemini finds an empty record, and deletes whatever has a name that ends like it.
    let kept = place.said_in();
    assert!(kept.len() == 1 && !kept[0].ends_with(END), "{:?}", place.files());
    // Ours does not even see it, whatever it is started for.
    let args = ["-p", "hi", "--agent", "gemini", "--start-timeout", "1", "--output-format", "stream-json"];
    place.scene.run(&args).exits(3);
    assert_eq!(place.files(), kept);
}
