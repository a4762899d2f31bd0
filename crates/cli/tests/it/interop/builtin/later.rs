//! What becomes of a conversation: it is summed up, taken up by another process, read back from our log.

use multitap_testkit::model::{Reply, Request, Tool};
use serde_json::{Value, json};

use super::{assert_whole, script};
use crate::interop::agent::{Agent, Api};
use crate::interop::scenario::history::{listed, sessions};
use crate::interop::stage::{HANGING, Place};

/// By itself when there is little room left, and when the user wants it. The next question begins with the summary.
pub(super) fn a_full_conversation_is_summed_up(api: Api) {
    const SUMMARY: &str = "the word is plum";
    let place = Place::new(Agent::Builtin(api), []);
    place.model.set_side_text(SUMMARY);
    let look = Reply::call(Tool::native("list_directory", json!({"path": "."})));
    script(&place, [look, Reply::text("noted").usage(900_000, 10)]);
    let mut stage = place.open(&[]);
    stage.ask("remember plum");
    let summaries = |count: usize| {
        let asks = |request: &Request| request.last_user_text().contains("Sum up our conversation");
        assert_eq!(place.model.requests().iter().filter(|request| asks(request)).count(), count);
    };
    if api == Api::Anthropic {
        // Tools that were called are named to it even then, so this looks like any other question.
        place.model.push(Reply::text(SUMMARY).when_asked("Sum up our conversation"));
    }
    place.model.push(Reply::text("plum"));
    assert_eq!(stage.ask("which word?")["text"], "plum", "{}", stage.story());
    summaries(1);
    let heard = place.model.conversation().pop().unwrap();
    assert!(heard.user_texts()[0].contains(SUMMARY), "{:?}", heard.user_texts());
    assert_eq!(heard.last_user_text(), "which word?");
    assert_eq!(assert_whole(api, &heard), 0);
    assert_eq!(stage.ask("/compress")["status"], "completed");
    summaries(2);
    let run = stage.finish();
    run.exits(0);
    let notes = run.all("system").into_iter().filter(|note| note["subtype"] == "compacted");
    assert_eq!(notes.count(), 2, "{}", run.story());
}

/// What the model said, what it called for and what that gave: all of it is there again.
pub(super) fn another_process_goes_on_with_the_whole_conversation(api: Api) {
    let place = Place::new(Agent::Builtin(api), []);
    place.scratch.write("word.txt", "quince\n").unwrap();
    let read = Reply::think("hm").then_text("I read it.").then_call(Tool::read(place.path("word.txt")));
    script(&place, [read, Reply::text("It is a fruit."), Reply::text("I told you: a fruit.")]);
    let first = place.once("what is in word.txt?", &[]);
    first.exits(0);
    let second = place.once("what did you say?", &["-r", first.events[0]["sessionId"].as_str().unwrap()]);
    second.exits(0);
    assert_eq!(second.text(), "I told you: a fruit.", "the past is not told again");
    let heard = place.model.conversation().pop().unwrap();
    assert_eq!(heard.user_texts(), ["what is in word.txt?", "what did you say?"]);
    assert_eq!(assert_whole(api, &heard), 1);
    let sent = heard.body.to_string();
    let order = ["what is in word.txt?", "I read it.", "quince", "It is a fruit.", "what did you say?"];
    let order = order.map(|words| sent.find(words));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}\n{:#}", heard.body);
}

/// Also where it was changed while the session ran; another that is said wins.
pub(super) fn another_process_goes_on_with_the_same_model(api: Api) {
    let agent = Agent::Builtin(api);
    let place = Place::new(agent, []);
    let mut stage = place.open(&[]);
    stage.ask("hello");
    stage.send(&json!({"type": "setModel", "model": agent.other_model()}));
    stage.next("modelChanged");
    let first = stage.finish();
    let default = &first.one("sessionStarted")["config"]["model"];
    let model = |options: &[&str]| place.once("go on", options).one("sessionStarted")["config"]["model"].clone();
    assert_eq!(model(&["-c"]), agent.other_model());
    assert_eq!(model(&["-c", "--fork"]), agent.other_model());
    assert_eq!(&model(&["-c", "--model", default.as_str().unwrap()]), default);
    assert_eq!(&model(&["-c"]), default);
}

/// A call that the end of the process cut off has an answer that says so.
pub(super) fn a_conversation_that_was_killed_goes_on(api: Api) {
    let place = Place::new(Agent::Builtin(api), [Reply::text("noted"), Reply::call(Tool::shell(HANGING))]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.ask("remember plum");
    stage.hang_in_a_tool();
    let id: Value = serde_json::from_str(stage.story().lines().next().unwrap()).unwrap();
    stage.kill();
    place.model.push(Reply::text("plum"));
    let run = place.once("which word?", &["-r", id["sessionId"].as_str().unwrap()]);
    run.exits(0);
    assert_eq!(run.text(), "plum");
    let heard = place.model.conversation().pop().unwrap();
    assert_eq!(heard.user_texts(), ["remember plum", "hang", "which word?"]);
    assert_eq!(assert_whole(api, &heard), 1);
    assert!(heard.body.to_string().contains("interrupted"), "{:#}", heard.body);
}

/// Our log has all that it said, also of a turn that was cut off.
#[test]
fn what_it_said_is_read_back_from_our_log() {
    let agent = Agent::Builtin(Api::Anthropic);
    let tool = Reply::think("hm").then_text("I look.").then_call(Tool::shell("echo hi"));
    let place = Place::new(agent, [tool, Reply::text("It says hi."), Reply::text("wait").then_hang()]);
    let mut stage = place.open(&["--approval-mode", "auto-all"]);
    stage.ask("remember plum");
    stage.prompt("hang");
    stage.next("textChunk");
    let live: Vec<Value> = stage.story().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    stage.kill();
    let list = listed(&place);
    assert_eq!(list.len(), 1, "{list:#?}");
    assert_eq!((&list[0]["agent"], &list[0]["title"]), (&json!("builtin"), &json!("remember plum")));
    assert!(list[0]["model"].as_str().unwrap().starts_with("anthropic/"), "{list:#?}");
    // As any later run of multitap would mark it.
    place.once("go on", &["-r", list[0]["id"].as_str().unwrap()]).exits(0);
    let (code, stdout, stderr) = sessions(&place, &["show", "latest", "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let again: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(again[..live.len()], live, "{stdout}");
    let ends: Vec<&Value> = again.iter().filter(|event| event["type"] == "turnCompleted").collect();
    let ends: Vec<&str> = ends.iter().map(|end| end["status"].as_str().unwrap()).collect();
    assert_eq!(ends, ["completed", "interrupted", "completed"]);
}
