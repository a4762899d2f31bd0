//! A session with an agent that is played by the test: its lines in, ours and the events out.

mod elicitation;
mod open;
mod question;

use std::path::Path;

use multitap_event::{
    AgentKind, Command, Decide, EventKind, Image, Prompt, Query, QuestionId, Resume, SessionConfig, Timestamp,
};
use serde_json::{Value, json};

use super::*;
use crate::codec::{Codec as _, End, NoFiles, Step};

/// One file, whatever it is called.
struct OneFile;

impl Files for OneFile {
    fn read(&self, path: &Path) -> Option<String> {
        (!path.ends_with("new.txt")).then(|| "alpha\nbeta\ngamma\n".to_owned())
    }
}

fn now() -> Timestamp {
    Timestamp::parse("2026-11-15T12:00:00Z").unwrap()
}

/// The codec, and the story of what went through it.
struct Play {
    codec: AcpCodec,
    story: String,
}

impl Play {
    fn new(config: &SessionConfig) -> Self {
        let codec = plan(config, Box::new(OneFile)).unwrap().codec;
        let mut play = Self { codec, story: String::new() };
        let step = play.codec.begin(now());
        play.tell(&step);
        play
    }

    fn gemini(config: &SessionConfig) -> Self {
        let mut play = Self::new(config);
        play.codec = AcpCodec::live(Flavor::Gemini, wishes(config).unwrap(), Box::new(OneFile));
        play.story.clear();
        let step = play.codec.begin(now());
        play.tell(&step);
        play
    }

    /// Up and running, with nothing reported so far.
    fn open() -> Self {
        let mut play = Self::new(&config());
        play.agent(&initialized(&json!({ "loadSession": true, "promptCapabilities": { "image": true } })));
        play.agent(&json!({ "id": 2, "result": { "sessionId": "s1", "modes": modes() } }));
        play.story.clear();
        play
    }

    fn tell(&mut self, step: &Step) {
        for line in &step.lines {
            self.story += &format!("> {line}\n");
        }
        for kind in &step.events {
            self.story += &format!("! {}\n", serde_json::to_value(kind).unwrap());
        }
        if step.ready {
            self.story += "! ready\n";
        }
        if let Some(unsupported) = &step.unsupported {
            self.story += &format!("! unsupported: {unsupported}\n");
        }
        if step.give_up {
            self.story += "! given up\n";
        }
    }

    /// The agent writes a line.
    fn agent(&mut self, line: &Value) -> &mut Self {
        let mut line = line.clone();
        line["jsonrpc"] = "2.0".into();
        let step = self.codec.decode(&line.to_string(), now());
        self.tell(&step);
        self
    }

    fn update(&mut self, update: &Value) -> &mut Self {
        self.agent(&json!({ "method": "session/update", "params": { "sessionId": "s1", "update": update } }))
    }

    fn command(&mut self, command: Command) -> &mut Self {
        let step = self.codec.encode(command, now());
        self.tell(&step);
        self
    }

    fn prompt(&mut self, text: &str) -> &mut Self {
        self.command(Command::Prompt(Prompt::text(text)))
    }

    fn ask(&mut self, id: u64, call: &Value) -> &mut Self {
        let options = json!([
            { "optionId": "ok", "name": "Yes", "kind": "allow_once" },
            { "optionId": "ok-server", "name": "Yes, all of it", "kind": "allow_always" },
            { "optionId": "ok-too", "name": "Yes, in its way", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
            { "optionId": "never", "name": "Never", "kind": "reject_always" },
            { "optionId": "what", "name": "What", "kind": "something_new" },
        ]);
        let params = json!({ "sessionId": "s1", "toolCall": call, "options": options });
        self.agent(&json!({ "id": id, "method": "session/request_permission", "params": params }))
    }

    fn decide(&mut self, question: &str, option: &str) -> &mut Self {
        self.command(Command::Decide(Decide::new(&QuestionId::from(question), option)))
    }

    fn end(&mut self) -> &mut Self {
        let step = self.codec.end(&End::InputEnded, now());
        self.tell(&step);
        self
    }
}

fn config() -> SessionConfig {
    SessionConfig {
        working_directory: Some("/w".into()),
        ..SessionConfig::new(AgentKind::Acp { command: "agent".to_owned() })
    }
}

fn initialized(capabilities: &Value) -> Value {
    json!({ "id": 1, "result": {
        "protocolVersion": 1,
        "agentInfo": { "name": "a", "version": "1.2" },
        "agentCapabilities": capabilities,
        "authMethods": [{ "id": "key", "name": "API key" }],
    } })
}

fn modes() -> Value {
    json!({ "availableModes": [{ "id": "default" }, { "id": "acceptEdits" }, { "id": "plan" }], "currentModeId": "default" })
}

#[test]
fn a_turn_with_everything_in_it() {
    let mut play = Play::open();
    play.prompt("go");
    let text = |kind: &str, text: &str| json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
    play.update(&text("agent_thought_chunk", "hm"));
    play.update(&text("agent_message_chunk", "I will "));
    play.update(&text("agent_message_chunk", "look."));
    play.update(&json!({ "sessionUpdate": "plan", "entries": [
        { "content": "look", "priority": "high", "status": "in_progress" },
        { "content": "do", "priority": "low", "status": "pending" },
    ] }));
    // Announced before its input is known; reported when it is.
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t1", "name": "Bash", "kind": "execute", "status": "pending", "title": "Terminal", "rawInput": {} }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "title": "ls", "rawInput": { "command": "ls" } }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "_meta": { "terminal_output": { "terminal_id": "t1", "data": "a\n" } } }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "_meta": { "terminal_output": { "terminal_id": "t1", "data": "b\n" } } }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": "completed", "_meta": { "terminal_exit": { "exit_code": 0 } } }));
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t2", "kind": "edit", "status": "in_progress", "title": "Edit a.txt", "content": [{ "type": "diff", "path": "/w/a.txt", "oldText": "beta", "newText": "BETA" }] }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t2", "status": "completed" }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t2", "status": "completed" }));
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t3", "kind": "fetch", "status": "in_progress", "title": "Fetch" }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t3", "status": "failed", "rawOutput": { "why": "offline" } }));
    // What it shows while its arguments still come is about the call, and is no progress.
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t5", "kind": "think", "status": "pending", "title": "Task", "rawInput": { "description": "look" } }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t5", "rawInput": { "description": "look", "prompt": "look around" }, "content": [{ "type": "content", "content": { "type": "text", "text": "look around" } }] }));
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t5", "content": [{ "type": "content", "content": { "type": "text", "text": "looking" } }] }));
    play.update(
        &json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t5", "status": "completed", "rawOutput": "seen" }),
    );
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t4", "kind": "read", "status": "in_progress", "title": "Forgotten" }));
    play.update(&json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": { "amount": 0.5, "currency": "USD" } }));
    play.update(&text("agent_message_chunk", "Done."));
    play.agent(&json!({ "id": 3, "result": { "stopReason": "end_turn", "usage": { "inputTokens": 5, "outputTokens": 6, "totalTokens": 11, "thoughtTokens": 1 } } }));
    insta::assert_snapshot!(play.story);
}

/// As opencode reports its calls: the folder before the command, a diff in the question and none at the end, any end of a
/// command as a good one.
#[test]
fn calls_that_tell_little() {
    let mut play = Play::open();
    play.prompt("go");
    let update = |id: &str, more: Value| {
        let mut update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "execute" });
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update
    };
    let text = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    for (id, command) in [("t1", "exit 3"), ("t2", "ls")] {
        play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "bash", "kind": "execute", "status": "pending", "rawInput": { "cwd": "/w" } }));
        let input = json!({ "command": command, "cwd": "/w" });
        play.update(&update(id, json!({ "status": "in_progress", "title": command, "rawInput": input })));
        play.update(&update(
            id,
            json!({ "status": "in_progress", "title": command, "rawInput": input, "content": text("a\n") }),
        ));
        let code = if id == "t1" { 3 } else { 0 };
        play.update(&update(id, json!({ "status": "completed", "content": text("a\n"), "rawOutput": { "output": "a\n", "metadata": { "exit": code } } })));
    }
    let diff = json!([{ "type": "diff", "path": "/w/new.txt", "oldText": "", "newText": "alpha\n" }]);
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t3", "title": "write", "kind": "edit", "status": "pending", "rawInput": {} }));
    play.ask(
        7,
        &json!({ "toolCallId": "t3", "title": "/w/new.txt", "kind": "edit", "status": "pending", "content": diff }),
    );
    play.decide("t3#7", "proceed_once");
    play.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t3", "status": "completed", "content": text("Wrote file successfully.") }));
    play.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t4", "title": "tail", "kind": "execute", "status": "in_progress", "rawInput": { "command": "tail -f x" } }));
    play.command(Command::Cancel);
    play.update(&update("t4", json!({ "status": "completed", "content": text("User aborted the command") })));
    play.agent(&json!({ "id": 3, "result": { "stopReason": "cancelled" } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn a_second_prompt_waits_for_the_first() {
    let mut play = Play::open();
    play.prompt("one").prompt("two");
    play.agent(&json!({ "id": 3, "result": { "stopReason": "end_turn" } }));
    play.agent(&json!({ "id": 4, "error": { "code": 500, "message": "{\"error\":{\"message\":\"busy\"}}" } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn ways_a_turn_can_end() {
    let mut story = String::new();
    for reason in ["max_tokens", "max_turn_requests", "refusal", "something_new"] {
        let mut play = Play::open();
        play.prompt("go").story.clear();
        play.agent(&json!({ "id": 3, "result": { "stopReason": reason } }));
        story += &play.story;
    }
    insta::assert_snapshot!(story);
}

#[test]
fn modes_models_and_questions_about_the_agent() {
    let mut play = Play::open();
    let set_mode = |mode: &str| Command::SetMode { mode: mode.to_owned() };
    play.command(set_mode("plan")).command(set_mode("auto-all")).command(set_mode("acceptEdits"));
    play.command(Command::SetModel { model: "m".to_owned() });
    play.command(Command::SetThinking { tokens: Some(5) });
    play.agent(&json!({ "id": 3, "result": {} }));
    play.agent(&json!({ "id": 4, "error": { "code": -32603, "message": "not now" } }));
    play.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "default" }));
    play.update(&json!({ "sessionUpdate": "config_option_update", "configOptions": [
        { "id": "model", "category": "model", "currentValue": "m1", "options": [{ "value": "m1", "name": "One" }] },
    ] }));
    // A mode may be an option too. The second word is not a mode.
    for mode in ["plan", "elsewhere"] {
        play.update(&json!({ "sessionUpdate": "config_option_update", "configOptions": [
            { "id": "mode", "category": "mode", "currentValue": mode, "options": [] },
            { "id": "model", "category": "model", "currentValue": "m1", "options": [{ "value": "m1", "name": "One" }] },
        ] }));
    }
    play.command(Command::SetModel { model: "m2".to_owned() });
    play.agent(&json!({ "id": 5, "result": { "configOptions": [
        { "id": "model", "category": "model", "currentValue": "m2", "options": [{ "value": "m1", "name": "One" }] },
    ] } }));
    play.update(&json!({ "sessionUpdate": "available_commands_update", "availableCommands": [{ "name": "help" }] }));
    for what in [Query::Commands, Query::Models, Query::Account, Query::Context] {
        play.command(Command::Query { what });
    }
    insta::assert_snapshot!(play.story);
}

/// The level of thinking is an option of the agent, if it has one.
#[test]
fn the_level_of_thinking_is_an_option_of_the_agent() {
    let mut play = Play::open();
    let set = |level: &str| Command::SetThinkingLevel { level: level.to_owned() };
    let effort = |current: &str| {
        json!([{ "id": "effort", "category": "thought_level", "currentValue": current, "options": [
            { "value": "low", "name": "Low" }, { "value": "high", "name": "High" },
        ] }])
    };
    play.command(set("high"));
    play.update(&json!({ "sessionUpdate": "config_option_update", "configOptions": effort("low") }));
    play.command(set("high")).agent(&json!({ "id": 3, "result": { "configOptions": effort("high") } }));
    play.command(set("high")).agent(&json!({ "id": 4, "result": { "configOptions": effort("high") } }));
    play.command(set("low")).agent(&json!({ "id": 5, "error": { "code": -32603, "message": "not now" } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn a_reply_of_nothing_is_a_reply() {
    let mut resumed =
        Play::new(&SessionConfig { resume: Resume::Session { native_id: "s1".to_owned(), at: None }, ..config() });
    resumed.agent(&initialized(&json!({ "loadSession": true })));
    resumed.agent(&json!({ "id": 2, "result": null }));
    assert!(resumed.story.contains("sessionStarted"), "{}", resumed.story);

    let mut play = Play::open();
    play.command(Command::SetMode { mode: "plan".to_owned() }).agent(&json!({ "id": 3, "result": null }));
    assert!(play.story.contains("modeChanged"), "{}", play.story);
    play.prompt("hello").agent(&json!({ "id": 4, "result": null }));
    assert!(play.story.contains("turnCompleted") && !play.story.contains("unrecognized"), "{}", play.story);
}

#[test]
fn what_models_used_is_told_in_two_ways() {
    let used = |count: Value| {
        let mut play = Play::open();
        let count = json!({ "quota": { "model_usage": [{ "model": "m", "token_count": count }] } });
        for id in [3, 4] {
            play.prompt("hello").agent(&json!({ "id": id, "result": { "stopReason": "end_turn", "_meta": count } }));
        }
        play.story.lines().rfind(|line| line.contains("turnCompleted")).unwrap().to_owned()
    };
    for count in [json!({ "input_tokens": 10, "output_tokens": 1 }), json!({ "inputTokens": 10, "outputTokens": 1 })] {
        let used = used(count);
        assert!(used.contains(r#""modelUsage":{"m":{"inputTokens":20,"outputTokens":2,"totalTokens":22"#), "{used}");
    }
    assert!(!used(json!({})).contains("modelUsage"));
}

#[test]
fn pictures_where_the_agent_takes_them() {
    let picture = Image { media_type: "image/png".to_owned(), data: "aGk=".to_owned() };
    let prompt = Prompt { images: vec![picture], ..Prompt::text("look") };
    let mut play = Play::open();
    play.command(Command::Prompt(prompt.clone()));
    let mut blind = Play::new(&config());
    blind.agent(&initialized(&json!({})));
    blind.agent(&json!({ "id": 2, "result": { "sessionId": "s1" } }));
    blind.story.clear();
    blind.command(Command::Prompt(prompt)).prompt("then");
    insta::assert_snapshot!(play.story + &blind.story);
}

#[test]
fn what_we_do_not_serve_is_refused_and_noise_is_kept() {
    let mut play = Play::open();
    play.agent(&json!({ "id": 9, "method": "fs/read_text_file", "params": { "sessionId": "s1", "path": "/w/a" } }));
    play.agent(&json!({ "id": "x", "method": "terminal/create", "params": {} }));
    play.agent(&json!({ "id": 10, "method": "session/request_permission", "params": { "options": [] } }));
    play.agent(&json!({ "method": "_vendor/note", "params": { "a": 1 } }));
    play.agent(&json!({ "method": "session/update", "params": { "sessionId": "other", "update": { "sessionUpdate": "plan", "entries": [] } } }));
    play.update(&json!({ "sessionUpdate": "something_new", "x": 1 }));
    for noise in ["Starting agent…", "[1,2]", "{\"a\":", "{}"] {
        let step = play.codec.decode(noise, now());
        play.tell(&step);
    }
    play.prompt("go").end();
    insta::assert_snapshot!(play.story);
}

#[test]
fn a_command_line_is_read_as_a_shell_would() {
    let program = program("sh -c 'echo \"a b\"' x").unwrap();
    assert!(program.command.is_absolute());
    assert_eq!(program.args, ["-c", "echo \"a b\"", "x"]);
    assert!(super::program("no-such-agent-here --acp").is_err());
    assert!(super::program("sh 'open").is_err());
}

#[test]
fn gemini_modes_come_as_text_too() {
    let config = SessionConfig { agent: AgentKind::Gemini, ..config() };
    let mut play = Play::gemini(&config);
    play.agent(&initialized(&json!({})));
    let modes = json!({ "availableModes": [{ "id": "default" }, { "id": "yolo" }], "currentModeId": "default" });
    play.agent(&json!({ "id": 2, "result": { "sessionId": "s1", "modes": modes } }));
    play.agent(&json!({ "id": 3, "error": { "code": -32601, "message": "Method not found" } }));
    play.story.clear();
    play.update(
        &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "[MODE_UPDATE] yolo" } }),
    );
    let reported = play.story.clone();
    assert_eq!(reported.lines().count(), 1, "{reported}");
    assert!(reported.contains("\"modeChanged\"") && reported.contains("\"autoAll\""), "{reported}");
    assert!(!matches!(play.codec.end(&End::InputEnded, now()).events.first(), Some(EventKind::TextChunk(_))));
}
