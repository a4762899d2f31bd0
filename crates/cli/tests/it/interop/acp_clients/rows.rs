//! What every client can do with every agent.

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::wait::until_blocking;
use serde_json::{Value, json};

use super::client::{Asked, Client};
use super::place::{Meeting, Way};
use super::wire::{HEARD, SAID, statuses, text, update, update_of};
use crate::interop::agent::Agent;
use crate::interop::scenario::text::PIXEL;
use crate::interop::stage::PATIENCE;

#[track_caller]
fn ends(answer: &Value, reason: &str) {
    assert_eq!(answer["stopReason"], reason, "{answer:#}");
}

/// Prompts, and waits for the end of the turn. What the client got until then is with it.
#[track_caller]
fn turn(client: &mut Client, session: &str, prompt: &str) -> Vec<Value> {
    let call = client.prompt(session, prompt);
    ends(&client.end(call), "end_turn");
    client.rest()
}

/// Asks for a file: nothing is written before the question is answered.
fn ask(meeting: &Meeting, client: &mut Client, session: &str, file: &str) -> (multitap_testkit::peer::Call, Asked) {
    let path = meeting.place.path(file);
    meeting.place.model.push(Reply::call(Tool::write(&path, "words\n")));
    let call = client.prompt(session, &format!("please write {file}"));
    let asked = client.asked();
    assert!(!meeting.place.scratch.path(file).exists());
    assert_eq!(asked.params["sessionId"], session);
    (call, asked)
}

pub(super) fn a_prompt_is_answered(meeting: &Meeting) {
    let (mut client, about) = meeting.introduced();
    assert_eq!(about["protocolVersion"], 1, "{about:#}");
    let can = &about["agentCapabilities"];
    assert_eq!((&can["loadSession"], &can["promptCapabilities"]["image"]), (&true.into(), &true.into()), "{about:#}");
    let made = client.request("session/new", &json!({"cwd": meeting.folder(), "mcpServers": []}));
    let session = made["sessionId"].as_str().unwrap();
    meeting.place.model.push(Reply::chunks(["one ", "two ", "three"]));
    let told = turn(&mut client, session, "please count");
    assert_eq!(text(&told, SAID), "one two three");
    assert_eq!(text(&told, HEARD), "", "it knows what it said itself");
    assert!(told.iter().filter_map(update).count() > 1, "streamed: {told:#?}");
    let request = &meeting.place.model.conversation()[0];
    assert!(request.last_user_text().contains("please count"));

    // A file it refers to, and one that it includes.
    meeting.place.scratch.write("notes.txt", "kept\n").unwrap();
    meeting.place.model.push(Reply::text("read"));
    let uri = format!("file://{}", meeting.place.path("notes.txt"));
    let draft = json!({"uri": "file:///draft.txt", "text": "unsaved words"});
    let blocks = json!([
        {"type": "text", "text": "compare "},
        {"type": "resource_link", "uri": uri, "name": "notes.txt"},
        {"type": "resource", "resource": draft},
    ]);
    ends(&client.request("session/prompt", &json!({"sessionId": session, "prompt": blocks})), "end_turn");
    let sent = meeting.place.model.conversation().last().unwrap().user_texts().concat();
    assert!(sent.contains("notes.txt") && sent.contains("unsaved words"), "{sent}");
    client.leave();
}

/// Allowed, refused, and dismissed.
pub(super) fn a_write_is_allowed_and_refused(meeting: &Meeting) {
    let (mut client, _, session) = meeting.client();
    for (file, kind) in [("yes.txt", Some("allow_once")), ("no.txt", Some("reject_once")), ("dismissed.txt", None)] {
        let (call, asked) = ask(meeting, &mut client, &session, file);
        assert!(asked.params["toolCall"]["toolCallId"].is_string(), "{:#}", asked.params);
        meeting.place.model.push(Reply::text("That was it."));
        match kind {
            Some(kind) => client.choose(&asked, &asked.option(kind)),
            None => client.dismiss(&asked),
        }
        ends(&client.end(call), "end_turn");
        let told = client.rest();
        let is_allowed = kind == Some("allow_once");
        let end = if is_allowed { "completed" } else { "failed" };
        assert_eq!(statuses(&told).last(), Some(&end), "{file}: {told:#?}");
        assert_eq!(meeting.place.scratch.read(file).ok(), is_allowed.then(|| "words\n".to_owned()), "{file}");
        assert!(text(&told, SAID).contains("That was it."), "{file}: {told:#?}");
    }
    client.leave();
}

/// While the agent speaks, and while it asks.
pub(super) fn a_turn_is_cancelled(meeting: &Meeting) {
    let (mut client, _, session) = meeting.client();
    meeting.place.model.push(Reply::text("Once upon").then_hang());
    let call = client.prompt(&session, "tell me a story");
    client.until_said("Once upon");
    client.notify("session/cancel", &json!({"sessionId": session}));
    ends(&client.end(call), "cancelled");

    let (call, asked) = ask(meeting, &mut client, &session, "never.txt");
    client.notify("session/cancel", &json!({"sessionId": session}));
    // The protocol wants the client to answer what is open.
    client.dismiss(&asked);
    ends(&client.end(call), "cancelled");
    assert!(!meeting.place.scratch.path("never.txt").exists());

    meeting.place.model.push(Reply::text("as you like"));
    let told = turn(&mut client, &session, "then go on");
    assert!(text(&told, SAID).contains("as you like"), "{told:#?}");
    client.leave();
}

/// Another client finds the session, is shown all of it, and continues it.
pub(super) fn history_is_replayed(meeting: &Meeting) {
    let (mut client, _, session) = meeting.client();
    let (call, asked) = ask(meeting, &mut client, &session, "made.txt");
    meeting.place.model.push(Reply::text("Made it."));
    client.choose(&asked, &asked.option("allow_once"));
    ends(&client.end(call), "end_turn");
    client.leave();

    let (mut client, _) = meeting.introduced();
    let is_listed = || {
        let listed = client.request("session/list", &json!({"cwd": meeting.folder()}));
        let sessions = listed["sessions"].as_array().unwrap();
        sessions.iter().any(|listed| listed["sessionId"] == session.as_str()).then_some(())
    };
    until_blocking("the session in the list", PATIENCE, is_listed).unwrap();
    client.rest();
    let load = client.begin("session/load", &json!({"sessionId": session, "cwd": meeting.folder(), "mcpServers": []}));
    let loaded = client.end(load);
    assert!(loaded["modes"]["currentModeId"].is_string(), "{loaded:#}");
    let told = client.rest();
    let answered = told.iter().position(|message| message.get("result").is_some()).unwrap();
    let history = &told[..answered];
    assert_eq!(text(history, HEARD), "please write made.txt");
    assert_eq!(text(history, SAID), "Made it.");
    assert_eq!(statuses(history).last(), Some(&"completed"), "{history:#?}");
    assert!(!told.iter().any(|message| message["method"] == "session/request_permission"), "it is settled: {told:#?}");

    meeting.place.model.push(Reply::text("Still here."));
    let told = turn(&mut client, &session, "and now?");
    assert!(text(&told, SAID).ends_with("Still here."), "{told:#?}");
    let sent = meeting.place.model.conversation().last().unwrap().user_texts().concat();
    assert!(sent.contains("please write made.txt"), "the agent remembers: {sent}");
    client.leave();
}

pub(super) fn the_mode_is_switched(meeting: &Meeting) {
    let unasked = meeting.place.agent.unasked_mode();
    let (mut client, made, session) = meeting.client();
    let modes = &made["modes"];
    assert_eq!(modes["currentModeId"], "ask", "{made:#}");
    let offered: Vec<&Value> = modes["availableModes"].as_array().unwrap().iter().map(|mode| &mode["id"]).collect();
    // Whoever joins goes no further than the owner of the host went, and is offered no more.
    assert_eq!(offered.contains(&&Value::from(unasked)), meeting.way == Way::Stdio, "{made:#}");
    let switch = json!({"sessionId": session, "modeId": unasked});
    if meeting.way == Way::Socket {
        let refused = client.refused("session/set_mode", &switch);
        assert_eq!(refused["code"], -32012, "{refused:#}");
        assert!(refused["message"].as_str().unwrap().contains("the limit set by the owner"), "{refused:#}");
        switch_to(&mut client, &session, "plan");
    } else {
        client.request("session/set_mode", &switch);
        client.until("mode", |message| is_mode(message, unasked));
        meeting.place.model.push(Reply::call(Tool::write(meeting.place.path("unasked.txt"), "words\n")));
        meeting.place.model.push(Reply::text("done"));
        let told = turn(&mut client, &session, "write it");
        assert!(!told.iter().any(|message| message["method"] == "session/request_permission"), "{told:#?}");
        assert_eq!(meeting.place.scratch.read("unasked.txt").unwrap(), "words\n");
    }
    switch_to(&mut client, &session, "ask");
    let (call, asked) = ask(meeting, &mut client, &session, "asked.txt");
    meeting.place.model.push(Reply::text("done"));
    client.choose(&asked, &asked.option("reject_once"));
    ends(&client.end(call), "end_turn");
    client.leave();
}

fn is_mode(message: &Value, mode: &str) -> bool {
    update_of(message, "current_mode_update").is_some_and(|update| update["currentModeId"] == mode)
}

/// By an option, which newer clients show in the place of modes. The client is told in both ways.
#[track_caller]
fn switch_to(client: &mut Client, session: &str, mode: &str) {
    let switch = json!({"sessionId": session, "configId": "mode", "value": mode});
    let options = client.request("session/set_config_option", &switch);
    let option = options["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "mode").unwrap();
    assert_eq!(option["currentValue"], mode, "{options:#}");
    client.until("mode", |message| is_mode(message, mode));
}

/// One that the agent offers, and answers without its model.
pub(super) fn a_slash_command_runs(meeting: &Meeting) {
    let command = meeting.place.agent.local_command();
    let Some(words) = command.strip_prefix('/') else { return }; // it offers none
    let (name, sub) = words.split_once(' ').unwrap_or((words, ""));
    let (mut client, _, session) = meeting.client();
    let mut told = client.until("commands", |message| update_of(message, "available_commands_update").is_some());
    let last = told.pop().unwrap();
    let offered = update_of(&last, "available_commands_update").unwrap()["availableCommands"].as_array().unwrap();
    let found = offered.iter().find(|offered| offered["name"] == name);
    let found = found.unwrap_or_else(|| panic!("there is no {name}: {offered:#?}"));
    assert!(found["input"]["hint"].as_str().unwrap_or_default().contains(sub), "{found:#}");
    let told = turn(&mut client, &session, command);
    assert!(!text(&told, SAID).is_empty(), "{told:#?}");
    assert!(meeting.place.model.conversation().is_empty(), "answered without the model");
    client.leave();
}

pub(super) fn a_picture_reaches_the_model(meeting: &Meeting) {
    let (mut client, _, session) = meeting.client();
    meeting.place.model.push(Reply::text("a pixel"));
    let blocks = json!([
        {"type": "text", "text": "what is this?"},
        {"type": "image", "mimeType": "image/png", "data": PIXEL},
    ]);
    ends(&client.request("session/prompt", &json!({"sessionId": session, "prompt": blocks})), "end_turn");
    assert_eq!(text(&client.rest(), SAID), "a pixel");
    assert_eq!(meeting.place.model.conversation()[0].images().len(), 1);
    client.leave();
}

/// Of these agents, Codex alone has levels of thinking, for the models that it lists.
pub(super) fn the_level_of_thinking_is_set(meeting: &Meeting) {
    let option = |options: &Value, id: &str| -> Option<Value> {
        options["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == id).cloned()
    };
    let (mut client, made, session) = meeting.client();
    if meeting.place.agent != Agent::Codex {
        assert_eq!(option(&made, "thought_level"), None, "{made:#}");
        return client.leave();
    }
    let mut set = |id: &str, value: &Value| {
        client.request("session/set_config_option", &json!({"sessionId": session, "configId": id, "value": value}))
    };
    let models = option(&made, "model").unwrap_or_else(|| panic!("no models: {made:#}"));
    let listed = set("model", &models["options"].as_array().unwrap().last().unwrap()["value"]);
    let levels = option(&listed, "thought_level").unwrap_or_else(|| panic!("no levels: {listed:#}"));
    let mut values = levels["options"].as_array().unwrap().iter().map(|level| &level["value"]);
    let level = values.find(|level| **level != levels["currentValue"]).unwrap().clone();
    let now = set("thought_level", &level);
    assert_eq!(option(&now, "thought_level").unwrap()["currentValue"], level);
    meeting.place.model.push(Reply::text("thought about"));
    turn(&mut client, &session, "think");
    let sent = meeting.place.model.conversation().last().unwrap().body.clone();
    assert_eq!(sent["reasoning"]["effort"], level, "{:#}", sent["reasoning"]);
    client.leave();
}

/// The output of a command as in a terminal, and a question as a form.
pub(super) fn what_a_client_declares_is_used(meeting: &Meeting) {
    let can = json!({"session": {"notices": {}}, "elicitation": {"form": {}}, "_meta": {"terminal_output": true}});
    let (mut client, _, session) = meeting.client_that(&can);
    meeting.place.model.push(Reply::call(Tool::shell("touch made.txt; printf made-%s 42")));
    meeting.place.model.push(Reply::text("done"));
    let call = client.prompt(&session, "run it");
    let asked = client.asked();
    client.choose(&asked, &asked.option("allow_once"));
    ends(&client.end(call), "end_turn");
    let told = client.rest();
    let calls = || told.iter().filter_map(update).filter(|update| update["toolCallId"].is_string());
    let exit = calls().find_map(|update| update["_meta"].get("terminal_exit"));
    let exit = exit.unwrap_or_else(|| panic!("no end of a terminal: {told:#?}"));
    let output: String = calls().filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str()).collect();
    assert!(output.contains("made-42"), "{told:#?}");
    let terminal =
        &calls().find_map(|update| update["content"].as_array()?.iter().find(|item| item["type"] == "terminal"));
    assert_eq!(terminal.map(|terminal| &terminal["terminalId"]), Some(&exit["terminal_id"]), "{told:#?}");

    let agent = meeting.place.agent;
    if agent.cannot("the_agent_asks_something_back").is_some() {
        return client.leave();
    }
    meeting.place.model.push(agent.asks(&["Which colour?"], &["Red", "Blue"]));
    meeting.place.model.push(Reply::text("blue it is"));
    let call = client.prompt(&session, "ask me");
    let asked = client.asked();
    let fields = asked.params["requestedSchema"]["properties"].as_object().unwrap();
    let (field, schema) = fields.iter().next().unwrap();
    assert_eq!((fields.len(), &schema["enum"]), (1, &json!(["Red", "Blue"])), "{:#}", asked.params);
    client.answer(&asked, &json!({"action": "accept", "content": {field: "Blue"}}));
    ends(&client.end(call), "end_turn");
    let told = meeting.place.model.conversation().last().unwrap().tool_results();
    assert!(told.iter().any(|result| result.text.contains("Blue")), "{told:?}");
    client.leave();
}
