//! `multitap mcp` with MCP clients that others wrote: the Inspector over stdio, and the conformance scenarios over HTTP.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use multitap_testkit::interop;
use serde_json::{Value, json};

use crate::scene::{Live, MULTITAP, PATIENCE, Scene};

/// A remote agent: the built-in one behind `multitap serve`.
struct Remote {
    scene: Scene,
    _host: Live,
    agents: PathBuf,
}

impl Remote {
    fn new() -> Self {
        let scene = Scene::bare();
        let mut host = scene.start(&["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal"]);
        let line = host.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
        let url = line.strip_prefix("multitap listening on ").unwrap();
        let agents = scene.scratch.path("agents.json");
        std::fs::write(&agents, json!([{ "url": url, "name": "helper" }]).to_string()).unwrap();
        Self { scene, _host: host, agents }
    }

    /// A script of Node.js, in the same place.
    fn node(&self, [node, script]: &[PathBuf; 2]) -> Command {
        let mut command = self.scene.scratch.command(node);
        command.arg(script);
        command
    }
}

#[track_caller]
fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {stdout}\n{stderr}", output.status);
    stdout.into_owned()
}

/// R004-17: over stdio, in both eras.
#[test]
fn interop_the_inspector_lists_and_calls_tools() {
    let Some(inspector) = interop::mcp_inspector() else { return };
    let remote = Remote::new();
    for era in ["legacy", "modern"] {
        let ask = |arguments: &[&str]| -> Value {
            let mut command = remote.node(&inspector);
            command.args(["--cli", MULTITAP, "mcp", "--agents-file"]).arg(&remote.agents);
            command.args(["--format", "json", "-q", "--protocol-era", era]).args(arguments);
            serde_json::from_str(&output(command)).unwrap()
        };
        let listed = ask(&["--method", "tools/list", "--strict"]);
        let names: Vec<&str> =
            listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let management = ["load_agent", "list_agents", "unload_agent"];
        let own =
            ["helper_sendMessage", "helper_getTask", "helper_cancelTask", "helper_getArtifact", "helper_listTasks"];
        assert_eq!(names, [&management[..], &own[..]].concat(), "{era}");
        let called = ask(&[
            "--method",
            "tools/call",
            "--tool-name",
            "helper_sendMessage",
            "--tool-args-json",
            r#"{"message": "hello"}"#,
        ]);
        let result = &called["result"];
        assert_eq!(result["structuredContent"]["state"], "completed", "{era}: {called}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("[The remote agent helper wrote") && text.contains("You said \"hello\""), "{text}");
    }
}

/// The scenarios that need no tools of their own, over `--http`.
#[test]
fn interop_the_conformance_scenarios_pass() {
    let Some(conformance) = interop::mcp_conformance() else { return };
    let remote = Remote::new();
    let agents = remote.agents.to_str().unwrap();
    let mut server = remote.scene.start(&["mcp", "--agents-file", agents, "--http", "0"]);
    let line = server.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
    let url = line.strip_prefix("multitap mcp listening on ").unwrap();
    let scenarios = [
        ("2025-06-18", "server-initialize"),
        ("2025-06-18", "server-session-lifecycle"),
        ("2025-11-25", "server-initialize"),
        ("2025-11-25", "server-session-lifecycle"),
        ("2025-11-25", "ping"),
        ("2025-11-25", "tools-list"),
        ("2025-11-25", "server-sse-multiple-streams"),
        ("2025-11-25", "server-sse-polling"),
        ("2025-11-25", "dns-rebinding-protection"),
        ("2026-07-28", "tools-list"),
        ("2026-07-28", "server-sse-multiple-streams"),
        ("2026-07-28", "http-header-validation"),
        ("2026-07-28", "dns-rebinding-protection"),
        ("2026-07-28", "input-required-result-unsupported-methods"),
    ];
    let run = |version: &str, scenario: &str| {
        let mut command = remote.node(&conformance);
        command.args(["server", "--url", url, "--scenario", scenario, "--spec-version", version]);
        command.arg("-o").arg(remote.scene.scratch.path("out"));
        command
    };
    for (version, scenario) in scenarios {
        let told = output(run(version, scenario));
        assert!(told.contains("0 failed"), "{scenario} of {version}: {told}");
    }
    // These fail where they want tools of their own, or prompts and resources, which this server does not have.
    for (scenario, passed, missing) in [
        ("server-stateless", "24/28", "Not testable: server does not list the diagnostic tool"),
        ("caching", "4/7", "returned JSON-RPC error -32601"),
    ] {
        let told = run("2026-07-28", scenario).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout);
        assert!(told.contains(&format!("Passed: {passed}")), "{scenario}: {told}");
        let errors: Vec<&str> = told.lines().filter(|line| line.trim_start().starts_with("Error: ")).collect();
        assert!(!errors.is_empty() && errors.iter().all(|error| error.contains(missing)), "{scenario}: {errors:#?}");
    }
    server.signal("-TERM", &remote.scene.scratch);
    server.wait().exits(0);
}
