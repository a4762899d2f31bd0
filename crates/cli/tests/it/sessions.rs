//! `multitap sessions` on stores that are there without any agent. R002-48, R002-77, R002-89.

use std::path::Path;

use serde_json::Value;

use crate::scene::{Run, Scene, of, whole};

/// A place whose agents keep what the adapter's fixtures hold.
fn scene() -> Scene {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapter/tests/fixtures");
    let mut scene = Scene::bare();
    let mut set = |name: &str, place: &str| {
        scene.scratch.set(name, fixtures.join(place).join("stored"));
    };
    set("CLAUDE_CONFIG_DIR", "claude/2.1.325");
    set("CODEX_HOME", "codex/0.166.0");
    set("GEMINI_CLI_HOME", "gemini/0.61.0");
    scene
}

fn sessions(args: &[&str]) -> Run {
    scene().run(&[&["sessions"], args, &["--cwd", "/workspace"]].concat())
}

#[test]
fn those_of_an_agent_are_listed_newest_first() {
    let run = sessions(&["--agent", "claude"]).exits(0);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("claude")), "{}", run.stdout);
    assert!(
        lines[0].contains("f1ad3fe3-a961-43c2-97b8-51fa0bee76cd") && lines[0].contains("first [[tool:"),
        "{}",
        lines[0]
    );
    let count = |agent: &str| {
        let list = sessions(&["list", "--agent", agent, "--json"]).exits(0).stdout;
        let json: Vec<Value> = serde_json::from_str(&list).unwrap();
        let updated: Vec<&str> = json.iter().map(|one| one["updated"].as_str().unwrap()).collect();
        assert!(updated.is_sorted_by(|one, other| one >= other), "{updated:?}");
        assert!(json.iter().all(|one| one["agent"] == agent));
        json.len()
    };
    assert_eq!(count("claude"), lines.len());
    assert_eq!(count("codex"), 6);
    assert_eq!(["claude", "codex", "gemini"].map(count).iter().sum::<usize>(), 19);
}

#[test]
fn an_empty_list_says_where_it_looked() {
    for agent in [&[][..], &["--agent", "claude"]] {
        let run = scene().run(&[&["sessions", "--cwd", "/elsewhere"], agent].concat()).exits(0);
        let told = run.stderr.contains("/elsewhere") && run.stderr.contains("--all");
        assert!(run.stdout.is_empty() && told, "{}", run.stderr);
        let run = scene().run(&[&["sessions", "--cwd", "/elsewhere", "--json"], agent].concat()).exits(0);
        assert_eq!(run.stdout, "[]\n");
    }
    let run = scene().run(&["sessions", "list", "--all", "--agent", "codex"]).exits(0);
    assert!(run.stdout.lines().count() == 6 && run.stdout.contains("(/workspace)"), "{}", run.stdout);
}

#[test]
fn a_conversation_is_shown_by_the_beginning_of_its_id() {
    let run = sessions(&["show", "ec171b4b"]).exits(0);
    let order = [
        "> remember plum",
        "[thinks] hm, plum",
        "\nI look.\n",
        "Bash echo hi: done",
        "[file] created /workspace/new.txt",
    ];
    let order = order.map(|words| run.stdout.find(words));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{}", run.stdout);
    assert!(run.stdout.contains("ls /nowhere: failed with exit code 2"), "{}", run.stdout);
    assert!(run.stdout.contains("[the turn was cancelled]"), "{}", run.stdout);

    let run = sessions(&["show", "ec171b4b", "--json"]).exits(0);
    let events = run.events();
    whole(&events);
    assert!(events.iter().all(|event| event["sessionId"] == "ec171b4b-4a52-48df-9f1e-1ef360754c2b"));
    assert_eq!(of(&events, "turnCompleted").len(), 4);
    assert_eq!(events[0]["timestamp"], "2026-11-15T11:11:42.914Z", "the times are those of the store");
    let exported = sessions(&["export", "ec171b4b", "--raw"]).exits(0).events();
    let raw: usize = exported.iter().filter_map(|event| event["raw"].as_array()).map(Vec::len).sum();
    assert_eq!(raw, 64);
    assert!(sessions(&["show", "1", "--agent", "gemini"]).exits(0).stdout.contains("443c04d7"));
}

#[test]
fn what_is_not_there_is_named() {
    let run = sessions(&["show", "99999999"]).exits(1);
    assert!(run.stderr.contains("99999999") && run.stdout.is_empty(), "{}", run.stderr);
    let run = sessions(&["show", "99999999", "--agent", "claude"]).exits(1);
    assert!(run.stderr.contains("claude has no conversation 99999999"), "{}", run.stderr);
    let run = sessions(&["show", "01a1dee"]).exits(1);
    assert!(run.stderr.contains("3 conversations of codex"), "{}", run.stderr);
    let run = scene().run(&["-p", "x", "--agent", "codex", "-r", "01a1dee", "--cwd", "/"]).exits(2);
    assert!(run.stderr.contains("3 conversations of codex"), "{}", run.stderr);
    let run = sessions(&["--agent", "acp:goose acp"]).exits(2);
    assert!(run.stderr.contains("cannot list the conversations"), "{}", run.stderr);
    let run = sessions(&["show", "99999999", "--agent", "builtin"]).exits(1);
    assert!(run.stderr.contains("no builtin session matches \"99999999\""), "{}", run.stderr);
    sessions(&["--agent", "nobody"]).exits(2);
    sessions(&["show"]).exits(2);
}

#[test]
fn files_of_others_are_not_deleted() {
    for (agent, id) in [("claude", "ec171b4b"), ("gemini", "592b5f20")] {
        let run = sessions(&["rm", id, "--agent", agent]).exits(2);
        assert!(run.stderr.contains("does not delete") && run.stderr.contains(id), "{}", run.stderr);
    }
    sessions(&["show", "ec171b4b"]).exits(0);
}

#[test]
fn settings_tell_where_an_agent_keeps_its_files() {
    let scene = scene();
    let home = scene.scratch.root().join("multitap");
    std::fs::create_dir_all(&home).unwrap();
    let elsewhere = serde_json::json!({"agents": {"codex": {"env": {"CODEX_HOME": "/nowhere"}}}});
    std::fs::write(home.join("settings.json"), elsewhere.to_string()).unwrap();
    let mut command = scene.command(&["sessions", "--agent", "codex", "--json", "--all"]);
    let output = command.env("MULTITAP_HOME", &home).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "[]\n");
}

#[test]
fn an_agent_whose_store_nobody_knows_is_refused_by_name() {
    let run = sessions(&["list", "--agent", "acp:some-agent serve"]).exits(2);
    assert!(run.stderr.contains("acp") && run.stdout.is_empty(), "{}", run.stderr);
}

/// What somebody said is shown, and nothing that reads it obeys: neither the terminal at the end of a pipe, nor the eye.
#[test]
fn what_was_said_is_harmless_wherever_it_is_shown() {
    let scene = Scene::bare();
    let said = "say \u{1b}]52;c;cHduZWQ=\u{7}\u{9b}31mred\u{202e}txt.exe";
    let rehearse = ["--agent", "builtin", "--model", "rehearsal", "--output-format", "stream-json"];
    let live = scene.run(&[&["-p", said], &rehearse[..]].concat()).exits(0);
    let is_harmless = |text: &str| !text.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']);
    let run = |args: &[&str]| {
        let run = scene.run(&[&["sessions"], args].concat()).exits(0);
        assert!(is_harmless(&run.stdout), "{args:?}: {:?}", run.stdout);
        run.stdout
    };
    assert!(run(&["show", "latest"]).contains("> say ␛]52;c;cHduZWQ=␇\\u009b31mred\\u202etxt.exe"));
    assert!(run(&[]).contains("\\u009b31mred\\u202etxt.exe"));
    let listed: Vec<Value> = serde_json::from_str(&run(&["--json"])).unwrap();
    assert_eq!(listed[0]["title"], said, "a script gets what was said");
    let kept = run(&["export", "latest"]);
    for events in [&kept, &live.stdout] {
        assert!(is_harmless(events), "{events:?}");
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let message = events.into_iter().find(|event| event["type"] == "userMessage").expect("what was said");
        assert_eq!(message["content"], said);
    }
}
