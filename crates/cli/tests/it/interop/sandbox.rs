//! A sandbox that was chosen does what it says; one that cannot be had stops the start.

use multitap_testkit::model::{Reply, Tool};

use super::agent::Agent;
use super::stage::Place;

#[test]
fn interop_codex_writes_where_its_sandbox_lets_it() {
    if Agent::Codex.program().is_none() {
        return; // said loudly, and counted
    }
    for (sandbox, written) in [("read-only", false), ("workspace-write", true)] {
        let place = Place::new(Agent::Codex, [Reply::call(Tool::shell("touch made.txt")), Reply::text("done")]);
        let run = place.once("make a file", &["--approval-mode", "auto-all", "--sandbox", sandbox]);
        run.exits(0);
        assert_eq!(place.scratch.path("made.txt").exists(), written, "{sandbox}\n{}", run.story());
        assert!(run.all("permissionAsked").is_empty(), "{}", run.story());
        assert!(run.one("sessionStarted")["config"]["sandboxMode"].is_string(), "{}", run.story());
    }
}

/// Without a container program Gemini has no sandbox, and says so.
#[test]
fn interop_gemini_does_not_start_without_the_sandbox_it_is_to_have() {
    if Agent::Gemini.program().is_none() {
        return; // said loudly, and counted
    }
    let mut place = Place::new(Agent::Gemini, [Reply::text("unused")]);
    // Node and nothing else, whatever is installed here.
    let tools = place.scratch.root().join("tools");
    std::fs::create_dir(&tools).unwrap();
    for name in ["node", "env", "sh"] {
        let path = which(name, &place);
        std::os::unix::fs::symlink(path, tools.join(name)).unwrap();
    }
    place.scratch.set("PATH", &tools);
    let run = place.once("hello", &["--sandbox", "workspace-write"]);
    run.exits(3);
    assert_eq!(run.one("error")["kind"], "processExitError", "{}", run.story());
    assert!(run.one("error").to_string().contains("sandbox"), "{}", run.story());
    assert!(place.model.requests().is_empty());
}

fn which(name: &str, place: &Place) -> String {
    let found = place.scratch.command("/bin/sh").args(["-c", &format!("command -v {name}")]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}
