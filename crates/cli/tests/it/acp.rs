//! `multitap acp` as an editor starts it: lines of JSON on stdin and stdout, and fake agents.

use std::time::Duration;

use multitap_testkit::fake::Fake;
use multitap_testkit::wait::until_blocking;
use serde_json::{Value, json};

use crate::scene::{Live, Scene};

/// Long enough for a busy machine; nothing waits this long when all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// An editor that has said hello.
struct Editor {
    live: Live,
    hello: Value,
    last_id: u64,
}

impl Editor {
    fn start(scene: &Scene, args: &[&str]) -> Self {
        let live = scene.start(&[&["acp"], args].concat());
        let mut editor = Self { live, hello: Value::Null, last_id: 0 };
        editor.hello = editor.call("initialize", &json!({ "protocolVersion": 1, "clientCapabilities": {} }));
        editor
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.live.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.live.until(|message| message["id"] == id && message.get("method").is_none())
    }

    #[track_caller]
    fn call(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    #[track_caller]
    fn refused(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer["error"].is_object(), "{method}: {answer}");
        answer["error"].clone()
    }

    fn new_session(&mut self, scene: &Scene, more: &Value) -> Value {
        let mut params = json!({ "cwd": scene.scratch.workspace(), "mcpServers": [] });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call("session/new", &params)
    }

    fn set(&mut self, session: &Value, option: &str, value: &str) -> Value {
        let params = json!({ "sessionId": session, "configId": option, "value": value });
        self.ask("session/set_config_option", &params)
    }

    fn prompt(&mut self, session: &Value, text: &str) -> Value {
        self.ask("session/prompt", &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }))
    }
}

/// The option of that id.
fn option<'a>(options: &'a Value, id: &str) -> &'a Value {
    options.as_array().unwrap().iter().find(|option| option["id"] == id).unwrap_or_else(|| panic!("{options:#}"))
}

/// The agent of a session is an option of it until the first prompt.
#[test]
fn an_editor_changes_the_agent_of_a_session_before_the_first_prompt() {
    let fake = Fake::claude().says("I am Claude.").build().unwrap();
    let scene = Scene::with(&fake);
    let mut editor = Editor::start(&scene, &["--agent", "builtin", "--model", "rehearsal"]);
    let opened = editor.new_session(&scene, &json!({}));
    let (session, offered) = (&opened["sessionId"], option(&opened["configOptions"], "agent"));
    assert_eq!(offered["currentValue"], "builtin");
    let names: Vec<&Value> = offered["options"].as_array().unwrap().iter().map(|one| &one["value"]).collect();
    assert_eq!(names, ["claude", "builtin"], "those that are installed");

    let error = editor.set(session, "agent", "gemini")["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("gemini"), "{error}");
    let error = editor.set(session, "agent", "acp:/bin/sh")["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    let changed = editor.set(session, "agent", "claude");
    assert_eq!(option(&changed["result"]["configOptions"], "agent")["currentValue"], "claude", "{changed}");
    let listed = editor.call("session/list", &json!({}));
    let listed = listed["sessions"].as_array().unwrap();
    assert_eq!((listed.len(), &listed[0]["sessionId"]), (1, session), "there is still one session");
    assert_eq!(listed[0]["_meta"]["multitap"]["agent"], "claude");

    assert_eq!(editor.prompt(session, "who are you?")["result"]["stopReason"], "end_turn");
    let late = editor.set(session, "agent", "builtin")["error"].clone();
    assert!(late["message"].as_str().unwrap().contains("after the first prompt"), "{late}");
    assert_eq!(late["code"], -32602);
    assert_eq!(editor.prompt(session, "still?")["result"]["stopReason"], "end_turn");
    // Whoever did not open the session cannot change its agent.
    editor.call("session/close", &json!({ "sessionId": session }));
    let again = json!({ "sessionId": session, "cwd": scene.scratch.workspace(), "mcpServers": [] });
    let loaded = editor.call("session/load", &again);
    assert!(loaded["configOptions"].as_array().unwrap().iter().all(|option| option["id"] != "agent"), "{loaded}");
    assert_eq!(editor.set(session, "agent", "builtin")["error"]["code"], -32602);
    editor.live.end().exits(0);
    scene.nothing_left();
}

/// The session is closed and opened again while its agent changes: it must not be lost in between.
#[test]
fn a_change_of_the_agent_that_is_cancelled_leaves_a_session() {
    let fake = Fake::hangs().unwrap();
    let scene = Scene::with(&fake);
    let mut editor = Editor::start(&scene, &["--agent", "builtin", "--model", "rehearsal", "--start-timeout", "2"]);
    let session = editor.new_session(&scene, &json!({}))["sessionId"].clone();
    editor.last_id += 1;
    let id = editor.last_id;
    let params = json!({ "sessionId": session, "configId": "agent", "value": "claude" });
    let method = "session/set_config_option";
    editor.live.tell(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    let has_first = |editor: &mut Editor| {
        let listed = editor.call("session/list", &json!({}));
        listed["sessions"].as_array().unwrap().iter().any(|one| one["_meta"]["multitap"]["agent"] == "builtin")
    };
    until_blocking("the first agent to be gone", PATIENCE, || (!has_first(&mut editor)).then_some(())).unwrap();
    editor.live.tell(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } }));
    let cancelled = editor.live.until(|message| message["id"] == id && message.get("method").is_none());
    assert_eq!(cancelled["error"]["code"], -32800, "{cancelled}");
    until_blocking("the first agent to be back", PATIENCE, || has_first(&mut editor).then_some(())).unwrap();
    let load = json!({ "sessionId": session, "cwd": scene.scratch.workspace(), "mcpServers": [] });
    editor.call("session/load", &load);
    assert_eq!(editor.prompt(&session, "hello")["result"]["stopReason"], "end_turn");
    editor.live.end().exits(0);
    scene.nothing_left();
}

/// If the other agent does not start, the session keeps the one that it has.
#[test]
fn an_agent_that_does_not_start_leaves_the_session_as_it_was() {
    let fake = Fake::exits(9, "no licence").unwrap();
    let mut scene = Scene::with(&fake);
    scene.scratch.set("ANTHROPIC_API_KEY", "key");
    let mut editor = Editor::start(&scene, &["--agent", "builtin", "--model", "rehearsal"]);
    let opened = editor.new_session(&scene, &json!({}));
    let session = &opened["sessionId"];
    let error = editor.set(session, "agent", "claude")["error"].clone();
    assert!(error["code"] == -32603 && error["message"].as_str().unwrap().contains("exit code 9"), "{error}");
    assert_eq!(editor.prompt(session, "hello")["result"]["stopReason"], "end_turn");
    editor.live.end().exits(0);
    scene.nothing_left();
}

/// An agent that fails because nobody signed in with it says so by the code that editors know, and how to sign in.
#[test]
fn an_agent_without_a_sign_in_requires_authentication() {
    let fake = Fake::exits(1, "Please log in").unwrap();
    let mut scene = Scene::with(&fake);
    let mut editor = Editor::start(&scene, &["--agent", "claude"]);
    let methods = editor.hello["authMethods"].clone();
    assert_eq!(methods.as_array().map(Vec::len), Some(1), "{methods}");
    assert_eq!(methods[0]["id"], "claude");
    let fix = methods[0]["description"].as_str().unwrap();
    assert!(fix.contains("claude auth login"), "{methods}");

    let new = json!({ "cwd": scene.scratch.workspace(), "mcpServers": [] });
    let error = editor.refused("session/new", &new);
    assert_eq!((&error["code"], &error["data"]["fix"]), (&json!(-32000), &json!(fix)), "{error}");
    let error = editor.refused("authenticate", &json!({ "methodId": "claude" }));
    assert_eq!(error["code"], -32000, "{error}");
    assert_eq!(editor.refused("authenticate", &json!({ "methodId": "codex-2" }))["code"], -32602);
    editor.live.end().exits(0);

    // With a sign-in, the same failure has another cause.
    scene.scratch.set("ANTHROPIC_API_KEY", "key");
    let mut editor = Editor::start(&scene, &["--agent", "claude"]);
    assert!(editor.hello["authMethods"].as_array().is_none_or(Vec::is_empty), "{}", editor.hello);
    assert_eq!(editor.refused("session/new", &new)["code"], -32603);
    editor.call("authenticate", &json!({ "methodId": "claude" }));
    editor.live.end().exits(0);
}

/// The same for a turn that fails.
#[test]
fn a_turn_that_fails_without_a_sign_in_requires_authentication() {
    use multitap_testkit::fake::{Act, init};
    for (key, code) in [(None, -32000), (Some("key"), -32603)] {
        let fake = Fake::claude().turn([init().into(), Act::Exit(3)]).build().unwrap();
        let mut scene = Scene::with(&fake);
        if let Some(key) = key {
            scene.scratch.set("ANTHROPIC_API_KEY", key);
        }
        let mut editor = Editor::start(&scene, &["--agent", "claude"]);
        let opened = editor.new_session(&scene, &json!({}));
        let error = editor.prompt(&opened["sessionId"], "hello")["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        let seen = editor.live.end().exits(0).stdout;
        assert_eq!(seen.matches("exit code 3").count(), 1, "it is shown once: {seen}");
    }
}

#[test]
fn more_folders_and_mcp_servers_reach_the_agent_of_a_new_and_of_a_loaded_session() {
    let fake = Fake::claude().says("hello").build().unwrap();
    let scene = Scene::with(&fake);
    for folder in ["one", "two"] {
        std::fs::create_dir(scene.scratch.path(folder)).unwrap();
    }
    let mut editor = Editor::start(&scene, &["--agent", "claude"]);
    assert!(editor.hello["agentCapabilities"]["sessionCapabilities"]["additionalDirectories"].is_object());
    let (one, two) = (scene.scratch.path("one"), scene.scratch.path("two"));
    let opened = editor.new_session(&scene, &json!({ "additionalDirectories": [one] }));
    let session = opened["sessionId"].clone();
    assert_eq!(editor.prompt(&session, "hi")["result"]["stopReason"], "end_turn");
    let starts = |fake: &Fake| -> Vec<String> {
        fake.heard().unwrap().into_iter().filter(|line| line.contains("--input-format")).collect()
    };
    let first = starts(&fake);
    assert!(first[0].contains(&format!("--add-dir {}", one.display())), "{first:?}");

    let missing = json!({ "cwd": scene.scratch.workspace(), "mcpServers": [],
        "additionalDirectories": [scene.scratch.path("none")] });
    let error = editor.refused("session/new", &missing);
    assert!(error["message"].as_str().unwrap().starts_with("additional_directories: "), "{error}");

    let server = json!({ "name": "notes", "command": "/no/such/server", "args": ["--quiet"], "env": [] });
    let load = json!({ "sessionId": session, "cwd": scene.scratch.workspace(), "mcpServers": [server],
        "additionalDirectories": [two] });
    // It is live: its agent runs already.
    let loaded = editor.call("session/load", &load);
    let notices = loaded["_meta"]["multitap"]["notices"].to_string();
    assert!(notices.contains("the agent runs already"), "{loaded}");
    editor.call("session/close", &json!({ "sessionId": session }));
    let loaded = editor.call("session/load", &load);
    assert!(loaded["_meta"].is_null(), "{loaded}");
    let last = starts(&fake).pop().unwrap();
    assert!(last.contains(&format!("--add-dir {}", two.display())) && last.contains("--mcp-config"), "{last}");
    editor.live.end().exits(0);
    scene.nothing_left();
}
