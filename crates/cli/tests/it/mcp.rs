//! `multitap mcp` as a program: its options, what it says where, and sessions as agents.

use std::time::Instant;

use serde_json::{Value, json};

use crate::scene::{Live, PATIENCE, Scene};

/// A host of sessions, and its address.
fn host(scene: &Scene) -> (Live, String) {
    let mut host = scene.start(&["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal"]);
    let line = host.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
    let url = line.strip_prefix("multitap listening on ").unwrap().to_owned();
    (host, url)
}

/// An MCP client that writes its lines by hand.
struct Client {
    live: Live,
    asked: u64,
}

impl Client {
    fn start(scene: &Scene, args: &[&str]) -> Self {
        let mut client = Self { live: scene.start(&[&["mcp"], args].concat()), asked: 0 };
        let me = json!({ "name": "test", "version": "1" });
        client.ask("initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": me }));
        client.live.send(&format!("{}\n", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })));
        client
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params });
        self.live.send(&format!("{request}\n"));
        loop {
            let line = self.live.line_by(Instant::now() + PATIENCE).expect("an answer");
            let answer: Value = serde_json::from_str(&line).expect("stdout holds nothing but MCP");
            if answer["id"] == self.asked {
                return answer["result"].clone();
            }
        }
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }
}

/// R004-14, R004-15
#[test]
fn without_agents_there_are_the_tools_that_load_some() {
    let scene = Scene::bare();
    let mut client = Client::start(&scene, &[]);
    assert_eq!(client.tools(), ["load_agent", "list_agents", "unload_agent"]);
    let run = client.live.end();
    assert_eq!((run.code, run.stderr.trim()), (Some(0), "multitap mcp: 0 of 0 agents loaded"));
}

/// R004-8, R004-13
#[test]
fn an_agent_is_called_by_its_tools_and_others_are_loaded() {
    let scene = Scene::bare();
    let (_host, url) = host(&scene);
    let list = json!([{ "url": url, "name": "helper" }]).to_string();
    let mut client = Client::start(&scene, &["--agents", &list, "--allow-private-addresses"]);
    let answer = client.call("helper_sendMessage", &json!({ "message": "hello" }));
    assert_eq!(answer["structuredContent"]["state"], "completed", "{answer:#}");
    let context = answer["structuredContent"]["contextId"].as_str().unwrap().to_owned();
    let again = client.call("helper_sendMessage", &json!({ "message": "again", "contextId": context }));
    assert_eq!(again["structuredContent"]["contextId"], context.as_str(), "the conversation goes on");
    // The same agent by another address is another agent.
    let other = url.replace("127.0.0.1", "localhost");
    let loaded = client.call("load_agent", &json!({ "url": other }));
    assert_eq!(loaded["structuredContent"]["name"], "Multitap", "{loaded:#}");
    assert!(client.tools().contains(&"Multitap_sendMessage".to_owned()));
    client.call("unload_agent", &json!({ "name": "Multitap" }));
    assert!(!client.tools().contains(&"Multitap_sendMessage".to_owned()));
}

#[test]
fn a_session_that_runs_is_an_agent() {
    let scene = Scene::bare();
    let (_host, url) = host(&scene);
    let list = json!([{ "url": url, "name": "helper" }]).to_string();
    let mut first = Client::start(&scene, &["--agents", &list]);
    let answer = first.call("helper_sendMessage", &json!({ "message": "hello" }));
    let session = answer["structuredContent"]["contextId"].as_str().unwrap();
    let mut second = Client::start(&scene, &["--session", session]);
    let name = second.tools().into_iter().find(|name| name.ends_with("_sendMessage")).unwrap();
    assert_eq!(name, format!("session_{}_sendMessage", &session[..13]));
    let answer = second.call(&name, &json!({ "message": "and you" }));
    assert_eq!(answer["structuredContent"]["contextId"], session, "{answer:#}");
    let run = scene.run(&["mcp", "--session", "ffffffff"]);
    assert!(run.code == Some(1) && run.stderr.contains("no session that runs here begins so"), "{run:?}");
}

#[test]
fn what_is_wrong_with_the_list_is_said_without_its_secrets() {
    let scene = Scene::bare();
    for (list, expected) in [
        (r#"[{"url": "http://a", "accessToken": "s3cret""#, "--agents: is not JSON (line 1, column 44)"),
        (r#"[{"accessToken": "s3cret"}]"#, "'agents[0].url' is missing"),
        (
            r#"[{"url": "http://a", "headers": {"X": ["s3cret"]}}]"#,
            "'agents[0].headers.X' must be a string, not a list",
        ),
        (r#"[{"url": "http://a", "tokenEnv": "NOT_SET"}]"#, "the variable NOT_SET (tokenEnv) is not set"),
    ] {
        let run = scene.run(&["mcp", "--agents", list]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.contains(expected) && !run.stderr.contains("s3cret"), "{run:?}");
    }
    let run = scene.run(&["mcp", "--agents-file", "/dev/zero"]);
    assert!(run.code == Some(2) && run.stderr.contains("is not a file of at most"), "{run:?}");
}
