//! A session with an agent that is played by the test: its lines in, ours and the events out.

use std::path::Path;

use multitap_event::{AgentKind, Decide, Image, McpReach, Prompt, Query, QuestionId, Resume, SessionConfig};
use serde_json::{Value, json};

use super::*;
use crate::codec::{Codec as _, End, NoFiles, Step};
use multitap_event::{Command, EventKind, Mode, Timestamp};

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

    /// Up and running, with nothing told so far.
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
        let step = self.codec.end(End::InputEnded, now());
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
fn a_new_session() {
    let mut config = config();
    let env = [("TOKEN".to_owned(), "x".to_owned())].into();
    let tiny = McpReach::Stdio { command: "/bin/mcp".to_owned(), args: vec!["-v".to_owned()], env, cwd: None };
    config.mcp_servers = [
        ("tiny".to_owned(), tiny.into()),
        ("web".to_owned(), McpReach::Http { url: "http://x/".to_owned(), headers: [].into() }.into()),
    ]
    .into();
    config.mode = Some(Mode::parse(AgentType::Acp, "auto-edit").unwrap());
    config.model = Some("m2".to_owned());
    config.add_dirs = vec!["/more".into()];
    let mut play = Play::new(&config);
    play.agent(&initialized(&json!({
        "mcpCapabilities": { "http": true },
        "sessionCapabilities": { "additionalDirectories": {} },
    })));
    play.agent(&json!({ "id": 2, "result": {
        "sessionId": "s1", "modes": modes(), "models": { "availableModels": [{ "modelId": "m1" }], "currentModelId": "m1" },
    } }));
    play.agent(&json!({ "id": 3, "result": {} }));
    play.agent(&json!({ "id": 4, "result": {} }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn what_cannot_be_had_is_said_before_the_session_begins() {
    let mut story = String::new();
    let mut check = |name: &str, change: &dyn Fn(&mut SessionConfig), lines: &[&Value]| {
        let mut config = config();
        change(&mut config);
        let mut play = Play::new(&config);
        play.story.clear();
        for line in lines {
            play.agent(line);
        }
        story += &format!("{name}\n{}\n", play.story);
    };
    let plain = initialized(&json!({}));
    let opened = json!({ "id": 2, "result": { "sessionId": "s1", "modes": modes() } });
    let resume = |id: &str| Resume::Session { native_id: id.to_owned(), at: None };
    check("version", &|_| {}, &[&json!({ "id": 1, "result": { "protocolVersion": 2 } })]);
    check("resume", &|config| config.resume = resume("x"), &[&plain]);
    check("continue", &|config| config.resume = Resume::Latest, &[&plain]);
    check("folders", &|config| config.add_dirs = vec!["/x".into()], &[&plain]);
    let web = McpReach::Http { url: "http://x/".to_owned(), headers: [].into() };
    check("http", &|config| config.mcp_servers = [("web".to_owned(), web.clone().into())].into(), &[&plain]);
    check("mode", &|config| config.mode = Some(Mode::Native("yolo".to_owned())), &[&plain, &opened]);
    check("model", &|config| config.model = Some("m".to_owned()), &[&plain, &opened]);
    let options = json!([{ "id": "model", "category": "model", "currentValue": "a", "options": [{ "value": "a" }] }]);
    let chooses = json!({ "id": 2, "result": { "sessionId": "s1", "configOptions": options } });
    let unknown = json!({ "id": 3, "error": { "code": -32602, "message": "Invalid value for model: m" } });
    check("refused model", &|config| config.model = Some("m".to_owned()), &[&plain, &chooses, &unknown]);
    let forks = initialized(&json!({ "sessionCapabilities": { "fork": {} } }));
    let fork = |config: &mut SessionConfig| (config.resume, config.fork) = (resume("x"), true);
    let gone = json!({ "id": 2, "error": { "code": -32002, "message": "Resource not found" } });
    check("fork of nothing", &fork, &[&forks, &gone]);
    let refused = json!({ "id": 2, "error": { "code": -32000, "message": "Authentication required" } });
    check("sign in", &|_| {}, &[&plain, &refused]);
    let load = initialized(&json!({ "loadSession": true }));
    check("gone", &|config| config.resume = resume("x"), &[&load, &gone]);
    insta::assert_snapshot!(story);
}

#[test]
fn settings_that_the_protocol_has_no_word_for() {
    let refused = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = config();
        change(&mut config);
        plan(&config, Box::new(NoFiles)).map(|_| ()).unwrap_err().to_string()
    };
    let said = [
        refused(&|config| config.allowed_tools = vec!["x".to_owned()]),
        refused(&|config| config.max_turns = Some(3)),
        refused(&|config| config.system_prompt = Some("x".to_owned())),
        refused(&|config| config.output_schema = Some(json!({}))),
        refused(&|config| config.sandbox = Some(multitap_event::SandboxMode::ReadOnly)),
        refused(&|config| config.blocked_tools = vec!["x".to_owned()]),
        refused(&|config| config.append_system_prompt = Some("x".to_owned())),
        refused(&|config| {
            config.resume = Resume::Session { native_id: "x".to_owned(), at: Some("m".to_owned()) };
        }),
        refused(&|config| config.permission_path = PermissionPath::Mcp),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_stored_conversation_is_resumed_where_that_can_be() {
    let mut config = config();
    config.resume = Resume::Latest;
    let mut play = Play::new(&config);
    play.agent(&initialized(&json!({ "loadSession": true, "sessionCapabilities": { "list": {}, "resume": {} } })));
    play.agent(&json!({ "id": 2, "result": { "sessions": [
        { "sessionId": "old", "cwd": "/w", "updatedAt": "2026-11-01T00:00:00Z" },
        { "sessionId": "new", "cwd": "/w", "updatedAt": "2026-11-02T00:00:00Z" },
        { "sessionId": "other", "cwd": "/x", "updatedAt": "2026-11-03T00:00:00Z" },
    ] } }));
    play.agent(&json!({ "id": 3, "result": { "modes": modes() } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn what_is_told_again_is_not_repeated() {
    let mut story = String::new();
    for (way, fork) in
        [(json!({ "loadSession": true }), false), (json!({ "sessionCapabilities": { "fork": {} } }), true)]
    {
        let mut config = config();
        (config.resume, config.fork) = (Resume::Session { native_id: "s1".to_owned(), at: None }, fork);
        let mut play = Play::new(&config);
        play.agent(&initialized(&way));
        play.update(&json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "old" } }));
        play.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "older" } }));
        play.agent(&json!({ "id": 2, "result": if fork { json!({ "sessionId": "s2" }) } else { json!({}) } }));
        story += &play.story;
    }
    insta::assert_snapshot!(story);
}

#[test]
fn gemini_tells_history_until_a_fence_is_answered_without_any() {
    let mut config = SessionConfig { agent: AgentKind::Gemini, ..config() };
    config.resume = Resume::Session { native_id: "s1".to_owned(), at: None };
    let mut play = Play::gemini(&config);
    let text = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "old" } });
    let no_method = |id: u64| json!({ "id": id, "error": { "code": -32601, "message": "Method not found" } });
    play.agent(&initialized(&json!({ "loadSession": true })));
    play.update(&text);
    play.agent(&json!({ "id": 2, "result": { "modes": modes() } }));
    play.update(&text);
    play.agent(&no_method(3));
    play.update(&text);
    play.agent(&no_method(4));
    play.agent(&no_method(5));
    insta::assert_snapshot!(play.story);
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
    // Announced before its input is known; told when it is.
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

/// As opencode tells its calls: the folder before the command, a diff in the question and none at the end, any end of a
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
fn questions_and_answers() {
    let mut story = String::new();
    for option in ["proceed_once", "proceed_always_server", "ok-too", "cancel", "cancel_always"] {
        let mut play = Play::open();
        play.prompt("go").story.clear();
        play.ask(7, &json!({ "toolCallId": "t1", "name": "mcp__tiny__echo", "kind": "other", "title": "echo", "rawInput": { "message": "hi" } }));
        if story.is_empty() {
            story += &play.story;
        }
        play.story.clear();
        play.decide("t1#7", option);
        play.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "on" } }));
        story += &format!("\n{option}\n{}", play.story);
    }
    insta::assert_snapshot!(story);
}

#[test]
fn what_a_question_is_about() {
    let mut story = String::new();
    for (at, call) in [
        json!({ "kind": "execute", "title": "ls -l", "rawInput": { "command": "ls -l", "description": "List" } }),
        json!({ "kind": "edit", "title": "Edit", "content": [{ "type": "diff", "path": "/w/a.txt", "oldText": "beta", "newText": "BETA" }] }),
        json!({ "kind": "edit", "title": "Write", "content": [{ "type": "diff", "path": "/w/new.txt", "newText": "x\n" }] }),
        json!({ "kind": "switch_mode", "title": "Ready?", "rawInput": { "plan": "1. do" } }),
        json!({ "kind": "fetch", "title": "Fetch", "content": [{ "type": "content", "content": { "type": "text", "text": "http://x/" } }] }),
        json!({ "kind": "switch_mode", "title": "Approve Plan", "rawInput": {}, "content": [] }),
    ]
    .into_iter()
    .enumerate()
    {
        let mut play = Play::open();
        play.prompt("go").story.clear();
        let mut call = call;
        call["toolCallId"] = format!("t{at}").into();
        play.ask(7, &call);
        story += &play.story;
    }
    insta::assert_snapshot!(story);
}

#[test]
fn answers_that_do_not_fit_leave_the_question_open() {
    let mut play = Play::open();
    play.prompt("go");
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    play.story.clear();
    play.decide("t1#8", "proceed_once");
    play.decide("t1#7", "what");
    let mut edited = Decide::new(&"t1#7".into(), "proceed_once");
    edited.new_content = Some("rm".to_owned());
    play.command(Command::Decide(edited));
    play.decide("t1#7", "proceed_once");
    play.decide("t1#7", "cancel");
    insta::assert_snapshot!(play.story);
}

#[test]
fn a_question_that_is_taken_back() {
    let mut play = Play::open();
    play.prompt("go");
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    play.story.clear();
    play.agent(&json!({ "method": "$/cancel_request", "params": { "requestId": 7 } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn cancel_answers_what_is_open() {
    let mut play = Play::open();
    play.command(Command::Cancel);
    play.prompt("go");
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    play.story.clear();
    play.command(Command::Cancel);
    play.agent(&json!({ "id": 3, "result": { "stopReason": "cancelled" } }));
    insta::assert_snapshot!(play.story);
}

#[test]
fn nobody_is_asked_after_a_cancel() {
    let mut play = Play::open();
    play.prompt("go");
    play.command(Command::Cancel);
    play.story.clear();
    play.ask(7, &json!({ "toolCallId": "t1", "kind": "execute", "title": "ls" }));
    assert_eq!(play.story, "> {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}\n");
    play.agent(&json!({ "id": 3, "result": { "stopReason": "cancelled" } }));
    play.prompt("again");
    play.ask(8, &json!({ "toolCallId": "t2", "kind": "execute", "title": "ls" }));
    assert!(play.story.contains("permissionAsked"), "{}", play.story);
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
    let each = used(json!({ "input_tokens": 10, "output_tokens": 1 }));
    assert!(each.contains(r#""totalTokens":22"#), "of each turn: {each}");
    let all = used(json!({ "inputTokens": 10, "outputTokens": 1 }));
    assert!(all.contains(r#""totalTokens":11"#), "of all turns so far: {all}");
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
    play.agent(&json!({ "id": "x", "method": "elicitation/create", "params": {} }));
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
    let told = play.story.clone();
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("\"modeChanged\"") && told.contains("\"autoAll\""), "{told}");
    assert!(!matches!(play.codec.end(End::InputEnded, now()).events.first(), Some(EventKind::TextChunk(_))));
}
