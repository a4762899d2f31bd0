//! Remote agents that the settings list (`a2aServers`) are tools of whichever agent starts, and their tokens are seen by
//! nobody else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use multitap_testkit::fake::{Act, Fake, assistant, init};
use multitap_testkit::wait::{descendants, until_blocking};
use serde_json::{Value, json};

use crate::scene::{Live, PATIENCE, Scene, of};

pub(crate) const TOKEN: &str = "remote-token-4711";
const BUILTIN: [&str; 4] = ["--agent", "builtin", "--model", "rehearsal"];
const LINES: [&str; 4] = ["--input-format", "stream-json", "--output-format", "stream-json"];

/// What the notes of a remote agent say.
pub(crate) const NOTES: &str = "known to the remote agent alone";

/// A remote agent that demands [`TOKEN`] and has a file `notes.txt`.
pub(crate) struct Remote {
    scene: Scene,
    live: Live,
    pub(crate) url: String,
}

impl Remote {
    pub(crate) fn start() -> Self {
        let mut scene = Scene::bare();
        scene.scratch.set("MULTITAP_TOKEN", TOKEN);
        scene.scratch.write("notes.txt", NOTES).unwrap();
        let mut live = scene.start(&[&["serve", "--port", "0"], &BUILTIN[..]].concat());
        let line = live.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
        let url = line.strip_prefix("multitap listening on ").expect(&line).to_owned();
        Self { scene, live, url }
    }

    /// A file in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scene.scratch.path(name)
    }

    pub(crate) fn stop(mut self) {
        self.live.signal("-TERM", &self.scene.scratch);
        self.live.wait().exits(0);
    }
}

impl Scene {
    pub(crate) fn user_settings(&self, settings: &Value) {
        let folder = self.scratch.home().join(".config/multitap");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    }

    /// The private folders with lists of agents.
    fn private_folders(&self) -> Vec<PathBuf> {
        let run = self.scratch.home().join(".local/share/multitap/run");
        let found = fs::read_dir(run).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        found.filter(|path| path.is_dir()).collect()
    }

    /// The arguments that the agent in place of Claude Code was given its remote agents with.
    fn given_to_claude(&self, fake: &Fake) -> Vec<String> {
        let heard = fake.heard().unwrap();
        let config = heard[0].split(' ').skip_while(|word| *word != "--mcp-config").nth(1).expect(&heard[0]).to_owned();
        let config: Value = serde_json::from_str(&fs::read_to_string(config).unwrap()).unwrap();
        let server = &config["mcpServers"]["a2a-server"];
        assert_eq!(server["env"], json!({}), "{config}");
        arguments(server)
    }
}

fn arguments(server: &Value) -> Vec<String> {
    let args = server["args"].as_array().unwrap_or_else(|| panic!("no arguments: {server}"));
    args.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// The value of an option.
fn value<'a>(args: &'a [String], option: &str) -> &'a Path {
    let at = args.iter().position(|word| word == option).unwrap_or_else(|| panic!("no {option} in {args:?}"));
    Path::new(&args[at + 1])
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// No process below shows any of these in its arguments or its environment. How many there are.
#[track_caller]
pub(crate) fn no_child_shows(pid: u32, words: &[&str]) -> usize {
    let children = descendants(pid);
    for child in &children {
        // Only Linux shows it.
        let environment = fs::read(format!("/proc/{}/environ", child.pid)).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment);
        for word in words {
            assert!(!child.command.contains(word), "{}", child.command);
            assert!(!environment.contains(word), "{}: {environment}", child.command);
        }
    }
    children.len()
}

fn hanging() -> Fake {
    Fake::claude().turn([init().into(), assistant("working").into(), Act::Hang]).build().unwrap()
}

/// R004-2, R004-3, R004-4, R004-9, R004-16: the built-in agent has the tools, without a child process or a file.
#[test]
fn the_built_in_agent_calls_a_remote_agent() {
    let (remote, scene) = (Remote::start(), Scene::bare());
    scene.user_settings(&json!({"a2aServers": [{"url": remote.url, "name": "planner", "accessToken": TOKEN}]}));
    let prompt = r#"call a2a-server planner_sendMessage {"message":"read notes.txt"}"#;
    let args = [&["-p", prompt, "--approval-mode", "ask"], &LINES[..], &BUILTIN].concat();
    let mut live = scene.start(&args);
    let question = live.until_type("permissionAsked");
    assert_eq!((&question["details"]["server"], &question["details"]["type"]), (&json!("a2a-server"), &json!("mcp")));
    assert_eq!(descendants(live.pid()), [], "no process is needed");
    assert_eq!(scene.private_folders(), [] as [PathBuf; 0]);
    live.tell(&json!({"type": "decide", "questionId": question["questionId"], "optionId": "proceed_once"}));
    live.until_type("turnCompleted");
    live.tell(&json!({"type": "prompt", "text": "/mcp"}));
    live.until_type("turnCompleted");
    let run = live.end().exits(0);
    let events = run.events();
    let result = of(&events, "toolCompleted")[0]["result"].to_string();
    assert!(result.contains(NOTES), "{result}");
    let told = of(&events, "mcpServerStatus");
    let last = told.last().unwrap();
    assert_eq!((&last["name"], &last["status"]), (&json!("a2a-server"), &json!("connected")));
    assert!(run.stdout.contains("MCP server a2a-server: connected"), "{}", run.stdout);
    assert!(!run.stdout.contains(TOKEN) && !run.stderr.contains(TOKEN), "{run:#?}");
    remote.stop();
}

/// R004-3, R004-8: others get a private file; the token is in no argument, no environment and no log. Another start does
/// not disturb it, and it is gone with the session.
#[test]
fn claude_is_given_a_private_file_and_nobody_sees_a_token() {
    let (remote, fake) = (Remote::start(), hanging());
    let mut scene = Scene::with(&fake);
    scene.scratch.set("REMOTE_TOKEN", TOKEN).set("OTHER_TOKEN", "other-token-4712");
    scene.user_settings(&json!({"a2aServers": [
        {"url": remote.url, "name": "planner", "tokenEnv": "REMOTE_TOKEN"},
        {"url": "http://127.0.0.1:1", "name": "gone", "headers": {"Authorization": "Bearer $OTHER_TOKEN"}},
    ]}));
    let mut live = scene.start(&[&["-p", "hang"], &LINES[..]].concat());
    live.until_type("textChunk");
    let args = scene.given_to_claude(&fake);
    assert_eq!(args[0], "mcp");
    let file = value(&args, "--agents-file");
    let folder = file.parent().unwrap();
    assert_eq!((mode(file), mode(folder)), (0o600, 0o700));
    assert_eq!(scene.private_folders(), [folder]);
    let list: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((&list[0]["accessToken"], &list[0]["tokenEnv"]), (&json!(TOKEN), &Value::Null));

    // What it was given works, also without the variables.
    let mut bridge = Live::new({
        let mut command = scene.command(&args.iter().map(String::as_str).collect::<Vec<_>>());
        command.env_remove("REMOTE_TOKEN").env_remove("OTHER_TOKEN");
        command
    });
    let client = json!({"name": "test", "version": "1"});
    bridge.tell(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}}));
    bridge.until(|line| line["id"] == 1);
    bridge.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    bridge.tell(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let tools = bridge.until(|line| line["id"] == 2).to_string();
    assert!(tools.contains("planner_sendMessage"), "{tools}");
    bridge.end().exits(0);

    let children = no_child_shows(live.pid(), &[TOKEN, "other-token-4712"]);
    assert!(children >= 2, "{children}");
    scene.run(&[&["-p", "hello"], &BUILTIN[..]].concat()).exits(0);
    assert!(file.exists(), "another start leaves it alone");
    live.signal("-TERM", &scene.scratch);
    let run = live.wait();
    assert!(!run.stdout.contains(TOKEN) && !run.stderr.contains(TOKEN), "{run:#?}");
    assert_eq!(scene.private_folders(), [] as [PathBuf; 0]);
    remote.stop();
}

#[test]
fn what_a_killed_host_leaves_is_removed_at_the_next_start() {
    let fake = hanging();
    let scene = Scene::with(&fake);
    scene.user_settings(&json!({"a2aServers": [{"url": "http://127.0.0.1:1", "accessToken": TOKEN}]}));
    let mut live = scene.start(&[&["-p", "hang"], &LINES[..]].concat());
    live.until_type("textChunk");
    live.signal("-KILL", &scene.scratch);
    scene.nothing_left();
    assert_eq!(scene.private_folders().len(), 1, "nobody could remove it");
    scene.run(&[&["-p", "hello"], &BUILTIN[..]].concat()).exits(0);
    assert_eq!(scene.private_folders(), [] as [PathBuf; 0]);
}

/// R004-10.
#[test]
fn a_server_that_the_user_calls_a2a_server_is_left_as_it_is() {
    let mcp = Fake::mcp().unwrap();
    let scene = Scene::bare();
    scene.user_settings(&json!({
        "mcpServers": {"a2a-server": {"command": mcp.program()}},
        "a2aServers": [{"url": "http://127.0.0.1:1"}],
    }));
    let prompt = r#"call a2a-server echo {"message":"mine"}"#;
    let run = scene.run(&[&["-p", prompt, "--approval-mode", "auto-all"], &BUILTIN[..]].concat()).exits(0);
    assert!(run.stdout.contains("echo: mine"), "{run:#?}");
    assert!(
        run.stderr.contains("a2aServers is not used, because mcpServers has a server named a2a-server"),
        "{run:#?}"
    );
    let run = scene.run(&["doctor"]).exits(0);
    assert!(
        run.stdout.contains("a2aServers is not used, because mcpServers has a server named a2a-server"),
        "{}",
        run.stdout
    );
}

/// R004-1, R004-7.
#[test]
fn nothing_is_started_or_written_without_entries() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let scene = Scene::with(&fake);
    for settings in [json!({}), json!({"a2aServers": []})] {
        scene.user_settings(&settings);
        scene.run(&["-p", "hello"]).exits(0);
        let heard = fake.heard().unwrap().join("\n");
        assert!(!heard.contains("--mcp-config") && !heard.contains("a2a-server"), "{heard}");
        assert_eq!(scene.private_folders(), [] as [PathBuf; 0]);
        let run = scene.run(&["doctor"]);
        assert!(!run.stdout.contains("a2a"), "{}", run.stdout);
    }
    // A project that is trusted adds to what the user lists.
    scene.user_settings(&json!({"a2aServers": [{"url": "http://127.0.0.1:1/mine"}]}));
    let project = json!({"a2aServers": [{"url": "http://127.0.0.1:1/theirs"}]}).to_string();
    scene.scratch.write(".multitap/settings.json", &project).unwrap();
    let run = scene.run(&["doctor"]);
    assert!(run.stdout.contains("http://127.0.0.1:1/mine") && !run.stdout.contains("/theirs"), "{}", run.stdout);
    let trusted = json!([scene.scratch.workspace()]);
    scene.user_settings(&json!({"a2aServers": [{"url": "http://127.0.0.1:1/mine"}], "trustedFolders": trusted}));
    let run = scene.run(&["doctor"]);
    assert!(run.stdout.contains("http://127.0.0.1:1/mine") && run.stdout.contains("/theirs"), "{}", run.stdout);
}

/// A program that answers `initialize`, writes down what it hears, and says no more.
const RECORDER: &str = r#"here=$(dirname "$0")
printf '%s\n' "$*" >> "$here/heard"
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$here/heard"
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{},"userAgent":"x"}}\n' "$id" ;; esac
done
"#;

/// Codex, Gemini and ACP agents are given it by a message, one-shot Codex by arguments that hold paths alone.
#[test]
fn other_agents_are_given_it_in_their_own_way() {
    for (agent, transport, method, place) in [
        ("codex", "default", "thread/start", "/params/config/mcp_servers/a2a-server"),
        ("gemini", "default", "session/new", "/params/mcpServers/0"),
        ("acp", "default", "session/new", "/params/mcpServers/0"),
        ("codex", "oneShot", "", ""),
    ] {
        let fake = Fake::shell(agent, RECORDER).unwrap();
        let mut scene = Scene::bare();
        scene.scratch.set("MULTITAP_CODEX_BIN", fake.program()).set("MULTITAP_GEMINI_BIN", fake.program());
        scene.user_settings(&json!({
            "agents": {"codex": {"transport": transport}},
            "a2aServers": [{"url": "http://127.0.0.1:1", "accessToken": TOKEN}],
        }));
        let name = if agent == "acp" { format!("acp:{}", fake.program().display()) } else { agent.to_owned() };
        let args = ["-p", "hello", "--agent", &name, "--approval-mode", "auto-all"];
        let live = scene.start(&[&args, &LINES[..]].concat());
        let look = || {
            let heard = fake.heard().ok()?;
            if method.is_empty() {
                let line = heard.iter().find(|line| line.contains("mcp_servers.a2a-server="))?;
                return Some(line.split(['"', ' ']).map(str::to_owned).filter(|word| word.len() > 1).collect());
            }
            let lines = heard.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let request = lines.into_iter().find(|line| line["method"] == method)?;
            let server = request.pointer(place).unwrap_or_else(|| panic!("{agent}: {request}"));
            Some(arguments(server))
        };
        let args: Vec<String> = until_blocking("what it is given", PATIENCE, look).unwrap_or_else(|error| {
            panic!("{agent} {transport}: {error}\n{:#?}", fake.heard());
        });
        assert!(value(&args, "--agents-file").exists(), "{agent}: {args:?}");
        assert!(!fake.heard().unwrap().join("\n").contains(TOKEN));
        live.signal("-TERM", &scene.scratch);
        drop(live.end());
        scene.nothing_left();
        assert_eq!(scene.private_folders(), [] as [PathBuf; 0], "{agent}");
    }
}

/// R004-6.
#[test]
fn doctor_says_which_remote_agents_answer() {
    let (remote, scene) = (Remote::start(), Scene::bare());
    let dead = "http://ann:hidden-word@127.0.0.1:1/x?key=hidden-word";
    scene.user_settings(&json!({"a2aServers": [
        {"url": remote.url, "name": "planner", "accessToken": TOKEN},
        {"url": dead, "name": "gone", "accessToken": "hidden-word"},
    ]}));
    let run = scene.run(&["doctor"]).exits(0);
    for wanted in ["every agent gets them as the MCP server a2a-server", &remote.url, "gone: http://127.0.0.1:1/x"] {
        assert!(run.stdout.contains(wanted), "no {wanted} in {}", run.stdout);
    }
    let report: Value = serde_json::from_str(&scene.run(&["doctor", "--json"]).exits(0).stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let statuses: Vec<_> =
        checks.iter().filter(|check| check["name"] == "a2aServers").map(|check| &check["status"]).collect();
    assert_eq!(statuses, ["ok", "ok", "warning"]);
    for text in [run.stdout, report.to_string()] {
        assert!(!text.contains(TOKEN) && !text.contains("hidden-word"), "{text}");
    }
    remote.stop();
}
