//! Conversations that outlive a process, and what can be asked and changed while one runs.

use std::io::Write as _;
use std::process::Stdio;

use multitap_testkit::fake::Fake;
use multitap_testkit::model::{Reply, Tool};
use serde_json::{Value, json};

use crate::interop::agent::{Agent, Thinking};
use crate::interop::stage::{Place, Run};

pub(super) fn native_id(run: &Run) -> String {
    let changed = run.all("nativeSessionChanged");
    let id = &changed.last().copied().unwrap_or(run.one("sessionStarted"))["nativeSessionId"];
    id.as_str().unwrap_or_else(|| panic!("no native id\n{}", run.story())).to_owned()
}

pub(super) fn remembers(place: &Place, word: &str) -> bool {
    place.model.conversation().last().unwrap().user_texts().iter().any(|text| text.contains(word))
}

/// R002-2, R002-15.
pub(crate) fn resume_in_a_new_process(agent: Agent) {
    let place = Place::new(agent, [Reply::text("noted"), Reply::text("plum")]);
    let first = place.once("remember plum", &[]);
    let second = place.once("which word?", &["-r", &native_id(&first)]);
    second.exits(0);
    assert!(remembers(&place, "plum"));
    assert_eq!(native_id(&second), native_id(&first));
    assert_eq!(second.text(), "plum", "the past is not told again");
}

/// R002-49.
pub(crate) fn fork_in_a_new_process(agent: Agent) {
    let place = Place::new(agent, [Reply::text("noted"), Reply::text("plum")]);
    let first = place.once("remember plum", &[]);
    let second = place.once("which word?", &["-r", &native_id(&first), "--fork"]);
    second.exits(0);
    assert!(remembers(&place, "plum"));
    assert_ne!(native_id(&second), native_id(&first), "{}", second.story());
}

/// R002-15.
pub(crate) fn continue_in_a_new_process(agent: Agent) {
    let place = Place::new(agent, [Reply::text("noted"), Reply::text("plum")]);
    let first = place.once("remember plum", &[]);
    let second = place.once("which word?", &["-c"]);
    second.exits(0);
    assert!(remembers(&place, "plum"));
    assert_eq!(native_id(&second), native_id(&first));
}

/// R002-49: back to a message; what came after it is forgotten.
pub(crate) fn resume_at_a_message(agent: Agent) {
    let place = Place::new(agent, [Reply::text("noted"), Reply::text("noted too"), Reply::text("plum")]);
    let mut stage = place.open(&["--raw"]);
    stage.ask("remember plum");
    stage.ask("remember pear");
    let first = stage.finish();
    let lines = first.events.iter().flat_map(|event| event["raw"].as_array().into_iter().flatten());
    let lines = lines.filter_map(|line| serde_json::from_str::<Value>(line.as_str()?).ok());
    let said = lines.filter(|line| line["type"] == "assistant").map(|line| line["uuid"].as_str().unwrap().to_owned());
    let message = said.into_iter().next().expect("a message to go back to");
    let second = place.once("which word?", &["-r", &native_id(&first), "--at", &message]);
    second.exits(0);
    assert!(remembers(&place, "plum") && !remembers(&place, "pear"));
}

/// R002-129: session not found.
pub(crate) fn an_unknown_session_is_named(agent: Agent) {
    let place = Place::new(agent, [Reply::text("unused")]);
    let id = "99999999-2222-4333-8444-555555555555";
    let run = place.once("hello", &["-r", id]);
    run.exits(3);
    let error = run.one("error");
    assert_eq!(error["kind"], "sessionNotFound", "{error:#}");
    assert!(error["message"].as_str().unwrap().contains(id), "{error:#}");
    assert_eq!(run.one("sessionEnded")["reason"], "failed");
    assert!(place.model.conversation().is_empty());
}

/// R002-51, R002-52.
pub(crate) fn mode_and_model_change_while_it_runs(agent: Agent) {
    let place = Place::new(agent, []);
    let path = place.path("new.txt");
    let replies = [Reply::text("hi"), Reply::call(Tool::write(path, "x\n")), Reply::text("done"), Reply::text("hm")];
    replies.into_iter().for_each(|reply| place.model.push(reply));
    let mut stage = place.open(&["--approval-mode", "ask"]);
    stage.ask("hello");
    stage.send(&json!({"type": "setMode", "mode": agent.unasked_mode()}));
    assert_eq!(stage.next("modeChanged")["mode"], agent.unasked_mode());
    stage.send(&json!({"type": "setModel", "model": agent.other_model()}));
    assert_eq!(stage.next("modelChanged")["model"], agent.other_model());
    stage.send(&json!({"type": "setMode", "mode": "bogus"}));
    assert!(stage.next("error")["message"].as_str().unwrap().contains("bogus"));
    assert_eq!(stage.ask("write")["status"], "completed");
    stage.send(&json!({"type": "setThinking", "tokens": 2048}));
    if agent.limits_thinking() == Thinking::Refuses {
        assert!(stage.next("error")["message"].as_str().unwrap().contains("limit for thinking"));
    }
    assert_eq!(stage.ask("think")["status"], "completed");
    let run = stage.finish();
    run.exits(0);
    assert!(run.all("permissionAsked").is_empty(), "edits run unasked\n{}", run.story());
    assert_eq!(run.all("modeChanged").len(), 1, "{}", run.story());
    assert_eq!(run.all("modelChanged").len(), 1, "{}", run.story());
    let last = place.model.conversation().pop().unwrap();
    // An agent may have a shorter word for it than the model's own, or say whose it is.
    let (model, word) = (last.model().unwrap(), agent.other_model());
    assert!(model.contains(word) || word.ends_with(&format!("/{model}")), "{model}");
    assert_eq!(last.thinking_budget() == Some(2048), agent.limits_thinking() == Thinking::Tokens);
    if agent.limits_thinking() == Thinking::Effort {
        assert_eq!(last.body["reasoning"]["effort"], "low", "{:#}", last.body["reasoning"]);
    }
}

/// R002-53.
pub(crate) fn the_agent_tells_about_itself(agent: Agent) {
    let place = Place::new(agent, [Reply::text("hi")]);
    let mut stage = place.open(&[]);
    for what in ["commands", "models", "mcpStatus", "account", "context"] {
        stage.send(&json!({"type": "query", "what": what}));
        let fits = |event: &Value| match what {
            "commands" | "models" => event["type"] == "capabilities" && event[what].is_array(),
            _ => event["type"] == "system" && event["subtype"] == what && event["data"].is_object(),
        };
        stage.find(what, fits);
    }
    stage.finish().exits(0);
}

/// R002-13, R002-14.
pub(crate) fn one_shot_with_piped_text(agent: Agent) {
    let place = Place::new(agent, [Reply::text("it says plum"), Reply::text("again")]);
    let run = |options: &[&str]| {
        let mut child =
            place.command(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"the word is plum\n").unwrap();
        child.wait_with_output().unwrap()
    };
    let output = run(&["-p", "what does it say?"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "it says plum\n");
    assert!(output.status.success());
    let asked = place.model.conversation()[0].last_user_text();
    assert!(asked.find("the word is plum") < asked.find("what does it say?"), "{asked}");

    let output = run(&["-p", "-", "--output-format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["text"], &report["status"]), (&json!("again"), &json!("completed")));
    assert!(report["usage"]["totalTokens"].is_u64() && report["sessionId"].is_string(), "{report:#}");
    assert!(place.model.conversation().last().unwrap().last_user_text().contains("the word is plum"));
}

/// R002-99: each line that the agent wrote stands in exactly one event, and nothing else does.
pub(crate) fn every_native_line_is_kept(agent: Agent) {
    let mut place = Place::new(agent, [Reply::think("hm").then_call(Tool::shell("echo hi")), Reply::text("done")]);
    // The agent, with a copy of all it writes.
    let copy = place.scratch.root().join("written");
    let program = agent.program().unwrap();
    let wrapped = format!("'{}' \"$@\" | tee -a '{}'\n", program.display(), copy.display());
    let wrapper = Fake::shell(agent.word(), &wrapped).unwrap();
    place.drive(&wrapper.program());
    let run = place.once("go", &["--raw", "--approval-mode", "auto-all"]);
    run.exits(0);
    let events = run.events.iter().flat_map(|event| event["raw"].as_array().into_iter().flatten());
    let mut kept: Vec<&str> = events.map(|line| line.as_str().unwrap()).collect();
    let written = std::fs::read_to_string(copy).unwrap();
    let mut written: Vec<&str> = written.lines().filter(|line| !line.trim().is_empty()).collect();
    assert!(written.len() > 5, "{}", run.story());
    kept.sort_unstable();
    written.sort_unstable();
    assert_eq!(kept, written, "{}", run.story());
    assert!(!run.all("rawDelta").is_empty(), "a line without a meaning of its own is kept too");
}
