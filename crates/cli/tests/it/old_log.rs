//! Stores that version 0.1.0 wrote: `fixtures/home-0.1.0`, with every `system` event that became a kind of its own, and
//! `fixtures/home-0.1.0-killed`, of a process that was killed while a question was open and a prompt queued.

use std::path::Path;

use multitap_testkit::fake::Fake;
use serde_json::{Value, json};

use crate::scene::{Scene, of, the, types};

/// The ids of the agent's conversations in it.
const CLAUDE: &str = "0b6c2e64-6f0b-4f6c-9a38-0a5c7d5f6b11";
const ACP: &str = "acp-1";

/// Copies that store into the home of the scene.
fn copy_home(scene: &mut Scene, name: &str) {
    let home = scene.scratch.path("data");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let chats = Path::new("builtin/chats");
    std::fs::create_dir_all(home.join(chats)).unwrap();
    for file in std::fs::read_dir(fixture.join(chats)).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), home.join(chats).join(file.file_name())).unwrap();
    }
    std::fs::copy(fixture.join("sessions.db"), home.join("sessions.db")).unwrap();
    scene.scratch.set("MULTITAP_HOME", &home);
}

fn scene(fake: &Fake) -> Scene {
    let mut scene = Scene::with(fake);
    copy_home(&mut scene, "home-0.1.0");
    scene
}

fn exported(scene: &Scene, native_id: &str) -> Vec<Value> {
    let list = scene.run(&["sessions", "--all", "--json"]).exits(0).stdout;
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let session = list.iter().find(|one| one["nativeSessionId"] == native_id || one["agent"] == native_id).unwrap();
    scene.run(&["sessions", "export", session["id"].as_str().unwrap()]).exits(0).events()
}

#[test]
fn a_log_of_version_0_1_reads_as_the_new_kinds() {
    let fake = Fake::claude().says("on").build().unwrap();
    let scene = scene(&fake);
    let claude = exported(&scene, CLAUDE);
    assert_eq!(of(&claude, "system"), [] as [&Value; 0]);
    assert_eq!(of(&claude, "textRetracted")[0]["messageIds"], json!(["msg_01:0"]));
    assert_eq!(of(&claude, "nativeSessionChanged").last().unwrap()["nativeSessionId"], CLAUDE);
    assert_eq!(of(&claude, "capabilities")[1]["model"], "claude-opus-5-5");
    assert_eq!(of(&claude, "mcpServerStatus")[1]["status"], "failed");
    let acp = exported(&scene, ACP);
    let capabilities = of(&acp, "capabilities")[0];
    assert_eq!((&capabilities["images"], &capabilities["modes"]), (&json!(true), &json!(["ask", "code"])));
    let builtin = exported(&scene, "builtin");
    let rules = [of(&builtin, "ruleAdded"), of(&builtin, "ruleRevoked")];
    assert_eq!(rules.each_ref().map(Vec::len), [3, 1]);
    assert_eq!(rules[0][0]["ruleId"], rules[1][0]["ruleId"]);
    let numbers: Vec<_> = builtin.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_session_of_version_0_1_resumes_the_conversation_it_changed_to() {
    let fake = Fake::claude().says("on").build().unwrap();
    let scene = scene(&fake);
    let before = exported(&scene, CLAUDE);
    let args = ["-p", "go on", "-r", CLAUDE, "--output-format", "stream-json", "--cwd", "/tmp"];
    let events = scene.run(&args).exits(0).events();
    assert_eq!(types(&events)[0], "sessionStarted");
    let all = scene.run(&["sessions", "export", before[0]["sessionId"].as_str().unwrap()]).exits(0).events();
    assert_eq!(all[..before.len()], before);
    // Clients whose end the log does not have leave first.
    let between = &all[before.len()..events[0]["seq"].as_u64().unwrap() as usize - 1];
    assert!(types(between).iter().all(|kind| *kind == "clientLeft"), "{between:#?}");
    assert!(fake.heard().unwrap().join("\n").contains(&format!("--resume {CLAUDE}")), "{:?}", fake.heard());
}

#[test]
fn a_killed_session_of_version_0_1_resumes_with_its_queue() {
    let mut scene = Scene::bare();
    copy_home(&mut scene, "home-0.1.0-killed");
    let list = scene.run(&["sessions", "--all", "--json"]).exits(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&list).unwrap()[0]["state"], "interrupted");
    let before = exported(&scene, "builtin");
    let settled = the(&before, "permissionSettled");
    assert_eq!((&settled["edited"], &settled["newContent"]), (&json!(true), &json!("echo two")));
    assert_eq!((of(&before, "permissionAsked").len(), of(&before, "promptQueued").len()), (2, 1));
    let id = before[0]["sessionId"].as_str().unwrap();
    let args = ["-p", "list", "-r", id, "--output-format", "stream-json", "--cwd", "/tmp"];
    let resumed = scene.run(&args).exits(0).events();
    let prompts: Vec<_> =
        of(&resumed, "userMessage").iter().map(|prompt| prompt["content"].as_str().unwrap()).collect();
    assert_eq!(prompts, ["slow 1", "list"], "the queued prompt is sent first");
    let all = exported(&scene, "builtin");
    assert_eq!(all[..before.len()], before);
    let ends: Vec<_> = of(&all, "turnCompleted").iter().map(|turn| turn["status"].as_str().unwrap()).collect();
    assert_eq!(ends, ["completed", "interrupted", "completed", "completed"]);
    assert_eq!(of(&all, "permissionWithdrawn").len(), 1);
    let numbers: Vec<_> = all.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}
