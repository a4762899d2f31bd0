//! The agent's own store: what a live session told is found there again.

use multitap_testkit::model::{Reply, Tool};
use serde_json::Value;

use super::sessions::{native_id, remembers};
use crate::interop::agent::Agent;
use crate::interop::invariants;
use crate::interop::stage::{Place, Run};

/// Runs `multitap sessions …` for the agent of this place.
pub(crate) fn sessions(place: &Place, options: &[&str]) -> (Option<i32>, String, String) {
    let output = place.command(&[&["sessions"], options].concat()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The stored conversations, as a script sees them.
pub(crate) fn listed(place: &Place) -> Vec<Value> {
    let (code, stdout, stderr) = sessions(place, &["list", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// A stored conversation as events, which keep the rules of live ones.
pub(crate) fn stored(place: &Place, id: &str) -> Run {
    let (code, stdout, stderr) = sessions(place, &["show", id, "--json"]);
    let events = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let run = Run { events, code, stderr };
    run.exits(0);
    invariants::check(&run);
    run
}

/// Who said what, and how each tool ended, turn by turn.
fn story(run: &Run) -> Vec<String> {
    let mut story = Vec::new();
    let mut said = String::new();
    for event in &run.events {
        let word = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "userMessage" => story.push(format!("user: {}", word("content"))),
            "textChunk" => said.push_str(&word("content")),
            "toolStarted" => story.push(format!("tool: {} {}", word("toolKind"), word("toolId"))),
            "toolCompleted" => story.push(format!("ended: {} {}", word("outcome"), word("toolId"))),
            "turnCompleted" => {
                story.push(format!("agent: {}", std::mem::take(&mut said)));
                story.push(format!("turn: {}", word("status")));
            }
            _ => {}
        }
    }
    story
}

/// R002-48, R002-77, R002-79, R002-89, R002-90.
pub(crate) fn what_was_said_is_read_back_from_the_store(agent: Agent) {
    let tool = Reply::think("hm").then_text("I look.").then_call(Tool::shell("echo hi"));
    let script = [tool, Reply::text("It says hi."), Reply::text("plum"), Reply::text("still plum")];
    let place = Place::new(agent, script);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.ask("remember plum");
    stage.ask("which word?");
    let live = stage.finish();
    live.exits(0);
    let id = native_id(&live);

    let list = listed(&place);
    assert_eq!(list.len(), 1, "{list:#?}");
    assert_eq!((list[0]["id"].as_str(), list[0]["agent"].as_str()), (Some(id.as_str()), Some(agent.word())));
    assert_eq!(list[0]["title"], "remember plum");
    assert_eq!(list[0]["folder"].as_str(), place.scratch.workspace().to_str());
    assert!(list[0]["model"].is_string() && list[0]["updated"].is_string(), "{list:#?}");

    let again = stored(&place, &id);
    assert_eq!(story(&again), story(&live), "{}\n{}", live.story(), again.story());
    assert_eq!(again.events[0]["sessionId"], id.as_str());
    assert_eq!(again.thoughts(), live.thoughts());
    let usage = |run: &Run| {
        run.all("turnCompleted").iter().map(|turn| turn["usage"]["totalTokens"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(usage(&again), usage(&live));
    let (_, shown, _) = sessions(&place, &["show", "latest"]);
    let order =
        ["> remember plum", "echo hi: done", "It says hi.", "> which word?", "\nplum\n"].map(|words| shown.find(words));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{shown}");

    // Every line of the files is kept.
    let (_, raw, _) = sessions(&place, &["export", &id, "--raw"]);
    let kept: usize = raw
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["raw"].as_array().map_or(0, Vec::len))
        .sum();
    let files = list[0]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| std::fs::read_to_string(file.as_str().unwrap()).unwrap());
    assert_eq!(kept, files.map(|text| text.lines().count()).sum::<usize>());

    let third = place.once("and now?", &["-r", &id[..id.len() - 3]]);
    third.exits(0);
    assert!(remembers(&place, "plum"));
    assert_eq!(native_id(&third), id, "a prefix is enough");
    assert_eq!(stored(&place, &id).all("turnCompleted").len(), 3);
}

pub(crate) fn a_turn_that_was_cut_off_is_read_back(agent: Agent) {
    let place = Place::new(agent, [Reply::text("fine"), Reply::text("wait").then_hang()]);
    let mut stage = place.open(&[]);
    stage.ask("hello");
    stage.prompt("hang");
    stage.next("textChunk");
    stage.kill();
    let list = listed(&place);
    let again = stored(&place, list[0]["id"].as_str().unwrap());
    let ends: Vec<&str> = again.all("turnCompleted").iter().map(|end| end["status"].as_str().unwrap()).collect();
    // Codex notices that nobody listens, and stops by itself.
    assert!(matches!(ends[..], ["completed", "interrupted" | "cancelled"]), "{}", again.story());
}
