//! Options that reach the agent, and those it cannot honour.

use multitap_testkit::model::{Reply, Tool};

use crate::interop::agent::Agent;
use crate::interop::stage::Place;

/// R002-42, R002-112: what runs unasked in each mode.
pub(crate) fn modes_do_what_they_say(agent: Agent) {
    for (mode, written, asked) in agent.modes().iter().copied() {
        let place = Place::new(agent, []);
        place.model.push(Reply::call(Tool::write(place.path("new.txt"), "x\n")));
        place.model.push(Reply::text("done"));
        let run = place.once("write", &["--approval-mode", mode]);
        assert_eq!(place.scratch.path("new.txt").exists(), written, "{mode}\n{}", run.story());
        assert_eq!(!run.all("permissionAsked").is_empty(), asked, "{mode}\n{}", run.story());
        run.exits(if asked { 4 } else { 0 });
        let started = run.one("sessionStarted");
        assert!(started["nativeMode"].is_string(), "{started}");
    }
    let place = Place::new(agent, []);
    place.model.push(Reply::call(Tool::write(place.path("new.txt"), "x\n")));
    place.model.push(Reply::text("done"));
    place.once("write", &["--approval-mode", "plan"]);
    assert!(!place.scratch.path("new.txt").exists(), "plan changes nothing");
}

/// R002-43.
pub(crate) fn tools_are_allowed_and_blocked_by_name(agent: Agent) {
    let touch = [Reply::call(Tool::shell("touch made.txt")), Reply::text("done")];
    let (shell, rule) = agent.shell_rule();
    let place = Place::new(agent, touch.clone());
    let run = place.once("make a file", &["--approval-mode", "ask", "--allow-tool", rule]);
    run.exits(0);
    assert!(run.all("permissionAsked").is_empty(), "{}", run.story());
    assert!(place.scratch.path("made.txt").exists());

    let place = Place::new(agent, touch);
    let run = place.once("make a file", &["--approval-mode", "auto-all", "--block-tool", shell]);
    run.exits(0);
    // An agent may not even let its model know of the tool.
    assert!(run.all("toolCompleted").iter().all(|end| end["success"] == false), "{}", run.story());
    assert!(!place.scratch.path("made.txt").exists());
}

/// R002-111: named, and nothing started.
pub(crate) fn a_setting_it_cannot_honour_is_named(agent: Agent) {
    let place = Place::new(agent, [Reply::text("unused")]);
    for (options, setting) in agent.refused_options().iter().copied() {
        let output = place.command(&[&["-p", "hi"], &options[..]].concat()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?} {stderr}");
        assert!(stderr.contains(agent.word()) && stderr.contains(setting), "{options:?} {stderr}");
    }
    assert!(place.model.requests().is_empty());
}
