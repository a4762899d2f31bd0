//! Sessions are kept: listed, shown, gone on with, copied, and whole after a crash.

use std::time::Duration;

use multitap_testkit::fake::{Act, Fake, assistant, init};
use serde_json::{Value, json};

use crate::scene::{PATIENCE, Scene, of, types, whole};

const MANY: [&str; 5] = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"];
const STREAM: [&str; 2] = ["--output-format", "stream-json"];

fn once(scene: &Scene, args: &[&str]) -> Vec<Value> {
    let events = scene.run(&[args, &STREAM].concat()).exits(0).events();
    whole(&events);
    assert_eq!(types(&events)[0], "sessionStarted");
    events
}

fn id(events: &[Value]) -> &str {
    events[0]["sessionId"].as_str().unwrap()
}

fn exported(scene: &Scene, id: &str) -> Vec<Value> {
    scene.run(&["sessions", "export", id]).exits(0).events()
}

fn listed(scene: &Scene) -> Vec<Value> {
    serde_json::from_str(&scene.run(&["sessions", "--json"]).exits(0).stdout).unwrap()
}

#[test]
fn a_session_is_listed_shown_exported_and_forgotten() {
    let fake = Fake::claude().says("forty-two").build().unwrap();
    let scene = Scene::with(&fake);
    let events = once(&scene, &["-p", "what is it?"]);
    let id = id(&events);
    let list = listed(&scene);
    assert_eq!(list.len(), 1);
    assert_eq!((&list[0]["id"], &list[0]["title"]), (&id.into(), &"what is it?".into()));
    assert_eq!((&list[0]["agent"], list[0].get("state")), (&"claude".into(), None));
    assert_eq!(exported(&scene, &id[..13]), events, "what was told is what is kept");
    let shown = scene.run(&["sessions", "show", "latest"]).exits(0).stdout;
    assert!(shown.contains("> what is it?") && shown.contains("forty-two"), "{shown}");
    let text = scene.run(&["sessions"]).exits(0).stdout;
    assert!(text.contains(id) && text.contains("what is it?"), "{text}");
    scene.run(&["sessions", "rm", id]).exits(0);
    assert_eq!(listed(&scene), [] as [Value; 0]);
    scene.run(&["sessions", "show", id]).exits(1);
}

#[test]
fn a_session_goes_on_in_its_log() {
    let fake = Fake::claude().says("one").says("two").says("three").build().unwrap();
    let scene = Scene::with(&fake);
    let first = once(&scene, &["-p", "first"]);
    let native = listed(&scene)[0]["nativeSessionId"].as_str().unwrap().to_owned();
    let last = |events: &[Value]| events.last().unwrap()["seq"].as_u64().unwrap();
    // By our id, by how it begins, by the agent's own id, and as the newest here.
    let mut seq = last(&first);
    for how in [&["-r", id(&first)][..], &["-r", &id(&first)[..18]], &["-r", &native], &["-c"]] {
        let events = once(&scene, &[&["-p", "on"], how].concat());
        assert_eq!(id(&events), id(&first), "{how:?}");
        assert!(events[0]["seq"].as_u64().unwrap() > seq, "{how:?}: it goes on where it ended");
        seq = last(&events);
    }
    let heard = fake.heard().unwrap().join("\n");
    assert_eq!(heard.matches("--resume").count(), 4, "{heard}");
    let log = exported(&scene, id(&first));
    let numbers: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=seq).collect::<Vec<_>>());
    assert_eq!(of(&log, "sessionStarted").len(), 5, "one for each run of the agent");
    assert_eq!(listed(&scene).len(), 1);

    let fork = once(&scene, &["-p", "elsewhere", "-c", "--fork"]);
    assert_ne!(id(&fork), id(&first));
    let copy = exported(&scene, id(&fork));
    assert!(copy.iter().all(|event| event["sessionId"] == id(&fork)));
    assert_eq!(of(&copy, "userMessage").len(), of(&log, "userMessage").len() + 1);
    assert_eq!(exported(&scene, id(&first)), log, "the first is as it was");
    assert!(listed(&scene).iter().any(|one| one["forkedFrom"] == id(&first)));
}

/// A conversation that only the agent knows is read into the log first, and goes on there from then on.
#[test]
fn what_the_agent_kept_itself_comes_first_in_the_log() {
    let fake = Fake::claude().says("on we go").says("and on").build().unwrap();
    let mut scene = Scene::with(&fake);
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapter/tests/fixtures");
    scene.scratch.set("CLAUDE_CONFIG_DIR", fixtures.join("claude/2.1.325/stored"));
    let events = once(&scene, &["-p", "go on", "-r", "ec171b4b-4a52-48df-9f1e-1ef360754c2b"]);
    assert!(events[0]["seq"].as_u64().unwrap() > 20, "what was said before stands before it: {}", events[0]);
    let log = exported(&scene, id(&events));
    assert_eq!(log[log.len() - events.len()..], events);
    assert_eq!(log[0]["type"], "sessionStarted");
    let said: Vec<&str> = of(&log, "userMessage").iter().map(|said| said["content"].as_str().unwrap()).collect();
    assert!(said[0].contains("remember plum") && *said.last().unwrap() == "go on", "{said:?}");
    let list = listed(&scene);
    assert!(list[0]["title"].as_str().unwrap().contains("remember plum"), "{list:?}");
    assert_eq!(id(&once(&scene, &["-p", "again", "-c"])), id(&events));
}

#[test]
fn a_log_that_cannot_be_used_is_said_and_the_session_runs() {
    let fake = Fake::claude().says("hello").build().unwrap();
    let mut scene = Scene::with(&fake);
    let home = scene.scratch.root().join("broken");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("sessions.db"), "this is no log at all, whatever it is".repeat(100)).unwrap();
    scene.scratch.set("MULTITAP_HOME", &home);
    let events = scene.run(&[&["-p", "hi"], &STREAM[..]].concat()).exits(0).events();
    let note = of(&events, "system").into_iter().find(|note| note["subtype"] == "log").unwrap();
    assert!(note["message"].as_str().unwrap().contains("damaged"), "{note}");
    assert_eq!(note["data"]["durable"], false);
    let run = scene.run(&["-p", "hi"]).exits(0);
    assert!(run.stdout == "hello\n" && run.stderr.contains("damaged"), "{run:#?}");
    let run = scene.run(&["sessions"]).exits(1);
    assert!(run.stderr.contains("damaged"), "{run:#?}");
}

/// Killed in the middle of a turn: what was seen is there, the turn is marked, what waited runs when it is taken up,
/// and nothing is sent twice.
#[test]
fn a_crash_loses_nothing_that_anybody_saw() {
    let hangs = [init().into(), assistant("thinking").into(), Act::Hang];
    let fake = Fake::claude().turn(hangs).says("late").build().unwrap();
    let mut scene = Scene::with(&fake);
    let home = scene.scratch.root().join("multitap");
    scene.scratch.set("MULTITAP_HOME", &home);
    let rounds = if std::env::var_os("MULTITAP_SOAK").is_some() { 40 } else { 4 };
    for round in 0..rounds {
        let mut live = scene.start(&MANY);
        live.tell(&json!({ "type": "prompt", "text": "one" }));
        live.until_type("turnStarted");
        live.tell(&json!({ "type": "prompt", "text": "two" }));
        live.until_type("promptQueued");
        std::thread::sleep(Duration::from_millis(round * 7 % 40));
        live.signal("-KILL", &scene.scratch);
        let seen = live.wait().events();
        let id = id(&seen).to_owned();
        // Others could find it.
        let note = std::fs::read(home.join("run").join(format!("{id}.json"))).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&note).unwrap()["pid"], live.pid());
        let log = exported(&scene, &id);
        for event in &seen {
            let at = usize::try_from(event["seq"].as_u64().unwrap()).unwrap() - 1;
            assert_eq!(log[at], *event);
        }
        // Whoever starts next marks what was cut off; taking it up sends what waited, once.
        let mut live = scene.start(&[&MANY[..], &["-r", &id]].concat());
        assert_eq!(live.until_type("userMessage")["content"], "two");
        live.signal("-KILL", &scene.scratch);
        live.wait();
        let log = exported(&scene, &id);
        let numbers: Vec<u64> = log.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=log.len() as u64).collect::<Vec<_>>());
        let said: Vec<&Value> = of(&log, "userMessage").into_iter().map(|message| &message["content"]).collect();
        assert_eq!(said, ["one", "two"]);
        assert_eq!(of(&log, "turnCompleted")[0]["status"], "interrupted");
    }
    scene.nothing_left(PATIENCE);
}
