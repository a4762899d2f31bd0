//! A store that version 0.1.0 wrote (`fixtures/home-0.1.0`), with every `system` event that became a kind of its own.

use std::path::Path;

use multitap_testkit::fake::Fake;
use serde_json::{Value, json};

use crate::scene::{Scene, of, types};

/// The ids of the agent's conversations in it.
const CLAUDE: &str = "0b6c2e64-6f0b-4f6c-9a38-0a5c7d5f6b11";
const ACP: &str = "acp-1";

fn scene(fake: &Fake) -> Scene {
    let mut scene = Scene::with(fake);
    let home = scene.scratch.path("data");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/home-0.1.0");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::copy(fixture.join("sessions.db"), home.join("sessions.db")).unwrap();
    scene.scratch.set("MULTITAP_HOME", &home);
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
    let before = exported(&scene, CLAUDE).len() as u64;
    let args = ["-p", "go on", "-r", CLAUDE, "--output-format", "stream-json", "--cwd", "/tmp"];
    let events = scene.run(&args).exits(0).events();
    assert_eq!((types(&events)[0], events[0]["seq"].as_u64()), ("sessionStarted", Some(before + 1)));
    assert!(fake.heard().unwrap().join("\n").contains(&format!("--resume {CLAUDE}")), "{:?}", fake.heard());
}
