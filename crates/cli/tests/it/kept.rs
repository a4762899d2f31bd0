//! Sessions are kept: listed, shown, gone on with, copied.

use multitap_testkit::fake::Fake;
use serde_json::{Value, json};

use crate::scene::{Scene, asker, of, types, whole};

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

/// What the built-in agent keeps of it for itself; a file stands where its folder should be.
#[test]
fn a_conversation_that_cannot_be_kept_is_said_once() {
    let mut scene = Scene::bare();
    let home = scene.scratch.path("data");
    scene.scratch.set("MULTITAP_HOME", &home);
    let args = ["-p", "read a then read b then list", "--agent", "builtin", "--model", "rehearsal"];
    assert!(!scene.run(&args).exits(0).stderr.contains("cannot be stored"));
    let home = home.join("builtin");
    assert!(home.is_dir(), "{}", home.display());
    std::fs::remove_dir_all(&home).unwrap();
    std::fs::write(&home, "").unwrap();
    let told = scene.run(&args).exits(0).stderr;
    assert_eq!(told.matches("the conversation cannot be stored").count(), 1, "{told}");
}

#[test]
fn a_beginning_that_fits_several_names_two_of_them() {
    let fake = Fake::claude().says("one").says("two").build().unwrap();
    let scene = Scene::with(&fake);
    let both = [once(&scene, &["-p", "first"]), once(&scene, &["-p", "second"])];
    for act in ["show", "export", "rm"] {
        let run = scene.run(&["sessions", act, "0"]).exits(1);
        assert!(both.iter().all(|events| run.stderr.contains(id(events))), "{}", run.stderr);
    }
    let run = scene.run(&["sessions", "show", "nobody"]).exits(1);
    assert!(run.stderr.contains("matches \"nobody\""), "{}", run.stderr);
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
    // It says which file, and what to do.
    assert!(run.stderr.contains("broken/sessions.db") && run.stderr.contains("move that file away"), "{run:#?}");
}

/// Whoever wants a session that another process has hears which one, and what can be done.
#[test]
fn a_session_that_is_live_elsewhere_can_be_copied_but_not_taken() {
    let fake = asker();
    let mut scene = Scene::with(&fake);
    let home = scene.scratch.root().join("multitap");
    scene.scratch.set("MULTITAP_HOME", &home);
    let mut live = scene.start(&MANY);
    live.tell(&json!({ "type": "prompt", "text": "please ask me" }));
    let id = live.until_type("permissionAsked")["sessionId"].as_str().unwrap().to_owned();
    live.tell(&json!({ "type": "prompt", "text": "this one waits" }));
    live.until_type("promptQueued");

    let what = format!("session {id} is live in process {}: ", live.pid());
    let today = "resume it when that process has ended, or continue in a copy";
    for how in [&["-r", &id][..], &["-c"]] {
        let run = scene.run(&[&["-p", "mine"], how].concat()).exits(3);
        assert!(run.stderr.contains(&format!("{what}{today}")), "{run:#?}");
    }
    // Where it says that others may come in, that is the first thing to try.
    let note = home.join("run").join(format!("{id}.json"));
    let left = std::fs::read(&note).unwrap();
    let mut reachable: Value = serde_json::from_slice(&left).unwrap();
    reachable["address"] = "http://127.0.0.1:1".into();
    std::fs::write(&note, reachable.to_string()).unwrap();
    let run = scene.run(&["-p", "mine", "-r", &id]).exits(3);
    assert!(run.stderr.contains(&format!("{what}join it there with `multitap attach {id}`, {today}")), "{run:#?}");
    // Another process's note says nothing of this one.
    reachable["pid"] = 1.into();
    std::fs::write(&note, reachable.to_string()).unwrap();
    let run = scene.run(&["-p", "mine", "-r", &id]).exits(3);
    assert!(run.stderr.contains(&format!("{what}{today}")), "{run:#?}");
    std::fs::write(&note, left).unwrap();

    // The copy leaves everything open behind, and nothing that waits there is sent from here.
    let fork = once(&scene, &["-p", "hello", "-r", &id, "--fork"]);
    let copy = exported(&scene, self::id(&fork));
    let before = &copy[..copy.len() - fork.len()];
    assert_eq!(types(before).iter().filter(|kind| **kind == "permissionWithdrawn").count(), 1);
    assert_eq!(of(before, "turnCompleted").last().unwrap()["status"], "interrupted");
    assert_eq!(of(before, "promptWithdrawn").len(), 1);
    assert_eq!(of(before, "sessionEnded").len(), 1);
    let said = |events: &[Value]| -> Vec<Value> {
        of(events, "userMessage").iter().map(|message| message["content"].clone()).collect()
    };
    assert_eq!(said(&copy), ["please ask me", "hello"]);
    assert!(!fake.heard().unwrap().join("\n").contains("this one waits"));

    // The first one has not noticed.
    let question = of(&exported(&scene, &id), "permissionAsked")[0]["questionId"].clone();
    live.tell(&json!({ "type": "decide", "questionId": question, "optionId": "proceed_once" }));
    assert_eq!(live.until_type("userMessage")["content"], "this one waits");
    live.end().exits(0);
    assert_eq!(said(&exported(&scene, &id)), ["please ask me", "this one waits"]);
    once(&scene, &["-p", "mine", "-r", &id]);
}

/// What a killed process left behind is cleared away by whoever looks next, and by nobody while it lives.
#[test]
fn the_note_of_a_process_that_was_killed_is_cleared_away() {
    for look in [&["sessions"][..], &["sessions", "rm", "latest"], &["-p", "hello"]] {
        let fake = asker();
        let mut scene = Scene::with(&fake);
        let home = scene.scratch.root().join("multitap");
        scene.scratch.set("MULTITAP_HOME", &home);
        let mut live = scene.start(&MANY);
        live.tell(&json!({ "type": "prompt", "text": "please ask me" }));
        let id = live.until_type("permissionAsked")["sessionId"].as_str().unwrap().to_owned();
        let note = home.join("run").join(format!("{id}.json"));
        scene.run(&["sessions"]).exits(0);
        assert!(note.exists(), "it lives");
        live.kill();
        live.wait();
        assert!(note.exists());
        scene.run(look).exits(0);
        assert!(!note.exists(), "{look:?}");
    }
}
