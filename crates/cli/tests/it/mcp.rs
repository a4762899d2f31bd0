//! `multitap mcp` as a program: its options, what it says where, and sessions as agents.

use std::collections::VecDeque;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use multitap_testkit::wait::until_blocking;
use serde_json::{Value, json};

use crate::scene::{Live, MULTITAP, PATIENCE, Scene};

/// A host of sessions, and its address.
fn host(scene: &Scene) -> (Live, String) {
    let mut host = scene.start(&["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal"]);
    let line = host.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
    let url = line.strip_prefix("multitap listening on ").unwrap().to_owned();
    (host, url)
}

/// An MCP client that writes its lines by hand.
pub(crate) struct Client {
    pub(crate) live: Live,
    asked: u64,
    /// What the person at the client answers; declines when there is nothing more.
    pub(crate) answers: VecDeque<Value>,
    /// What the person was asked.
    pub(crate) questions: Vec<String>,
    /// What was said while a call went on.
    pub(crate) progress: Vec<String>,
}

impl Client {
    pub(crate) fn start(scene: &Scene, args: &[&str]) -> Self {
        Self::with(scene, args, &json!({}))
    }

    pub(crate) fn with(scene: &Scene, args: &[&str], capabilities: &Value) -> Self {
        let live = scene.start(&[&["mcp"], args].concat());
        let mut client = Self { live, asked: 0, answers: VecDeque::new(), questions: Vec::new(), progress: Vec::new() };
        let me = json!({ "name": "test", "version": "1" });
        let begin = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": me });
        client.ask("initialize", &begin);
        client.tell(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn tell(&mut self, message: &Value) {
        self.live.send(&format!("{message}\n"));
    }

    /// Asks, and does not wait.
    fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        self.tell(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let asked = self.begin(method, params);
        loop {
            let line = self.live.line_by(Instant::now() + PATIENCE).expect("an answer");
            let said: Value = serde_json::from_str(&line).expect("stdout holds nothing but MCP");
            if said["method"] == "elicitation/create" {
                self.questions.push(said["params"]["message"].as_str().unwrap().to_owned());
                let answer = match self.answers.pop_front() {
                    Some(content) => json!({ "action": "accept", "content": content }),
                    None => json!({ "action": "decline" }),
                };
                self.tell(&json!({ "jsonrpc": "2.0", "id": said["id"], "result": answer }));
            } else if said["method"] == "notifications/progress" {
                self.progress.extend(said["params"]["message"].as_str().map(str::to_owned));
            } else if said["id"] == asked {
                return said["result"].clone();
            }
        }
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", &json!({}));
        let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let progress = json!({ "progressToken": self.asked });
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments, "_meta": progress }))
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
    assert!(run.code == Some(1) && run.stderr.contains("no running session on this machine matches"), "{run:?}");
}

/// The agent asks before it runs a command, and the person at the MCP client decides.
#[test]
fn a_tool_call_of_a_remote_session_is_decided_by_a_person() {
    let scene = Scene::bare();
    let (_host, url) = host(&scene);
    let list = json!([{ "url": url, "name": "helper" }]).to_string();
    let mut client = Client::with(&scene, &["--agents", &list], &json!({ "elicitation": {} }));
    for (decision, is_made) in [("cancel", false), ("proceed_once", true)] {
        client.answers.push_back(json!({ "decision": decision }));
        let result = client.call("helper_sendMessage", &json!({ "message": "run: touch made.txt" }));
        assert_eq!(result["structuredContent"]["state"], "completed", "{decision}: {result:#}");
        let question = client.questions.pop().unwrap();
        assert!(question.contains("helper wants to run this command: touch made.txt"), "{question}");
        assert_eq!(scene.scratch.path("made.txt").exists(), is_made, "{decision}");
    }
    // Nobody answers: the agent waits, and hears from whoever calls next.
    let result = client.call("helper_sendMessage", &json!({ "message": "run: touch later.txt" }));
    let question = &result["structuredContent"]["question"];
    assert_eq!(question["kind"], "confirmation", "{result:#}");
    let answer = json!({ "toolCallId": question["toolCallId"], "optionId": "proceed_once" });
    let task = &result["structuredContent"]["taskId"];
    let result = client.call("helper_sendMessage", &json!({ "taskId": task, "answer": answer }));
    assert_eq!(result["structuredContent"]["state"], "completed", "{result:#}");
    assert!(scene.scratch.path("later.txt").exists());
}

/// The client ends its input during a call or is killed, or the bridge is told to end.
#[test]
fn a_client_that_leaves_during_a_call_leaves_no_task_behind() {
    const SOON: Duration = Duration::from_secs(10);
    let scene = Scene::bare();
    let session = ["--agent", "builtin", "--model", "rehearsal", "--approval-mode", "auto-all"];
    let mut host = scene.start(&[&["serve", "--port", "0"], &session[..]].concat());
    let line = host.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
    let url = line.strip_prefix("multitap listening on ").unwrap();
    let list = json!([{ "url": url, "name": "helper" }]).to_string();
    for (way, code) in [("input", 0), ("-TERM", 130)] {
        let started = scene.scratch.path(way);
        let mut client = Client::start(&scene, &["--agents", &list]);
        let message = format!("run: touch ./{way}; tail -f /dev/null");
        client.begin("tools/call", &json!({ "name": "helper_sendMessage", "arguments": { "message": message } }));
        until_blocking("the command to run", PATIENCE, || started.exists().then_some(())).unwrap();
        let begun = Instant::now();
        let run = if way == "input" {
            client.live.end()
        } else {
            client.live.signal(way, &scene.scratch);
            client.live.wait()
        };
        assert!(begun.elapsed() < SOON, "{way}: {:?}", begun.elapsed());
        assert_eq!(run.code, Some(code), "{way}: {run:?}");
        let mut other = Client::start(&scene, &["--agents", &list]);
        let is_cancelled = || {
            let listed = other.call("helper_listTasks", &json!({}));
            let tasks = listed["structuredContent"]["tasks"].as_array().unwrap().clone();
            (!tasks.is_empty() && tasks.iter().all(|task| task["state"] == "canceled")).then_some(())
        };
        until_blocking("the task to be cancelled", PATIENCE, is_cancelled).unwrap();
    }
    host.signal("-TERM", &scene.scratch);
}

/// The best run counts: on a busy machine others wait for the processor.
#[test]
fn the_tools_of_three_agents_are_listed_soon() {
    const SOON: Duration = Duration::from_millis(150);
    /// In KiB, as docs/bridge.md promises it. How much of the program file is mapped depends on how it was built.
    #[cfg(target_os = "linux")]
    const OWN: u64 = 8 * 1024;
    let scene = Scene::bare();
    let hosts = [host(&scene), host(&scene), host(&scene)];
    let list = json!(
        hosts
            .iter()
            .zip(["a", "b", "c"])
            .map(|((_, url), name)| json!({ "url": url, "name": name }))
            .collect::<Vec<_>>()
    );
    let list = list.to_string();
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let begun = Instant::now();
        let mut client = Client::start(&scene, &["--agents", &list]);
        let tools = client.tools();
        best = best.min(begun.elapsed());
        assert!(["a", "b", "c"].iter().all(|name| tools.contains(&format!("{name}_sendMessage"))), "{tools:?}");
        if best < SOON {
            #[cfg(target_os = "linux")]
            assert!(own_memory(client.live.pid()) < OWN, "{} KiB", own_memory(client.live.pid()));
            return;
        }
    }
    panic!("the best of all runs took {best:?}");
}

/// In KiB.
#[cfg(target_os = "linux")]
fn own_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// R004-12
#[test]
fn an_agent_that_says_nothing_delays_the_others_until_the_deadline() {
    const DEADLINE: Duration = Duration::from_millis(1500);
    let scene = Scene::bare();
    let (_host, url) = host(&scene);
    // It takes connections and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", mute.local_addr().unwrap());
    let list = json!([{ "url": silent, "name": "mute" }, { "url": url, "name": "helper" }]).to_string();
    let begun = Instant::now();
    let deadline = DEADLINE.as_millis().to_string();
    let mut client = Client::start(&scene, &["--agents", &list, "--load-timeout", &deadline]);
    let tools = client.tools();
    let took = begun.elapsed();
    assert!(tools.contains(&"helper_sendMessage".to_owned()), "{tools:?}");
    assert!(tools.contains(&"mute_connect".to_owned()), "{tools:?}");
    assert!(took >= DEADLINE && took < 2 * DEADLINE, "{took:?}");
    let answer = client.call("helper_sendMessage", &json!({ "message": "hello" }));
    assert_eq!(answer["structuredContent"]["state"], "completed", "{answer:#}");
    let run = client.live.end();
    assert!(run.stderr.contains("1 of 2 agents loaded") && run.stderr.contains("mute from"), "{}", run.stderr);
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

/// Settings that list one agent, for whoever runs in this place.
fn list(scene: &Scene, name: &str, url: &str) {
    let settings = json!({ "a2aServers": [{ "url": url, "name": name }] }).to_string();
    write_settings(scene, &settings);
}

fn write_settings(scene: &Scene, settings: &str) {
    let folder = scene.scratch.home().join(".config/multitap");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings).unwrap();
}

/// A calls B, which calls A, and so on: it comes to an end, and whoever began hears why.
#[test]
fn agents_that_call_each_other_in_a_circle_are_stopped() {
    let (first, second) = (Scene::bare(), Scene::bare());
    // Each has to know the other's port before both listen.
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (a, b) = (free(), free());
    list(&first, "b", &format!("http://127.0.0.1:{b}"));
    list(&second, "a", &format!("http://127.0.0.1:{a}"));
    let session = ["--agent", "builtin", "--model", "rehearsal", "--approval-mode", "auto-all"];
    let mut hosts = [(&first, &a), (&second, &b)].map(|(scene, port)| {
        let mut host = scene.start(&[&["serve", "--port", port.as_str()], &session[..]].concat());
        host.line_by(Instant::now() + PATIENCE).expect("it listens");
        host
    });
    let mut prompt = "hello".to_owned();
    for to in ["a", "b", "a", "b"] {
        prompt = format!("call a2a-server {to}_sendMessage {}", json!({ "message": prompt }));
    }
    let run = first.run(&[&["-p", prompt.as_str()], &session[..]].concat());
    assert!(run.stdout.contains("do agents call each other in a circle?"), "{run:#?}");
    assert!(!run.stdout.contains("You said \"hello\""), "{run:#?}");
    for (host, scene) in hosts.iter_mut().zip([&first, &second]) {
        host.signal("-TERM", &scene.scratch);
    }
}

/// The same with `multitap mcp` as a server of the user's own.
#[test]
fn a_circle_of_servers_of_the_user_is_stopped() {
    let (first, second) = (Scene::bare(), Scene::bare());
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let (a, b) = (free(), free());
    for (scene, port) in [(&first, &b), (&second, &a)] {
        let session = format!("http://127.0.0.1:{port}");
        let peer = json!({ "command": MULTITAP, "args": ["mcp", "--session", session] });
        write_settings(scene, &json!({ "mcpServers": { "peer": peer } }).to_string());
    }
    let session = ["--agent", "builtin", "--model", "rehearsal", "--approval-mode", "auto-all"];
    let mut hosts = [(&first, &a), (&second, &b)].map(|(scene, port)| {
        let mut host = scene.start(&[&["serve", "--port", port.as_str()], &session[..]].concat());
        host.line_by(Instant::now() + PATIENCE).expect("it listens");
        host
    });
    let mut prompt = "hello".to_owned();
    for _ in 0..5 {
        prompt = format!("call peer Multitap_sendMessage {}", json!({ "message": prompt }));
    }
    let run = first.run(&[&["-p", prompt.as_str()], &session[..]].concat());
    assert!(run.stdout.contains("do agents call each other in a circle?"), "{run:#?}");
    assert!(!run.stdout.contains("You said \"hello\""), "{run:#?}");
    for (host, scene) in hosts.iter_mut().zip([&first, &second]) {
        host.signal("-TERM", &scene.scratch);
    }
}

/// The words of a line of a shell, with single quotes at most.
fn words(line: &str) -> Vec<String> {
    let pieces = line.split('\'').enumerate();
    let words = pieces.flat_map(|(at, piece)| match at % 2 {
        0 => piece.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
        _ => vec![piece.to_owned()],
    });
    words.collect()
}

/// What docs/bridge.md shows first works as it stands there, but for the port.
#[test]
fn the_example_of_the_docs_works() {
    let docs = include_str!("../../../../docs/bridge.md");
    let mut blocks = docs.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap());
    let mut next = |kind: &str| {
        let (found, block) = blocks.next().unwrap();
        assert_eq!(found, kind, "{block}");
        block.trim().to_owned()
    };
    let (serve, settings, call, answer) = (next("sh"), next("json"), next("sh"), next("text"));
    let scene = Scene::bare();
    let serve: Vec<String> = words(&serve).into_iter().skip(1).map(|word| word.replace("4100", "0")).collect();
    let mut host = scene.start(&serve.iter().map(String::as_str).collect::<Vec<_>>());
    let line = host.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
    let port = line.rsplit_once(':').unwrap().1;
    write_settings(&scene, &settings.replace("4100", port));
    let call: Vec<String> = words(&call).into_iter().skip(1).collect();
    let run = scene.run(&call.iter().map(String::as_str).collect::<Vec<_>>()).exits(0);
    for line in answer.lines() {
        assert!(run.stdout.contains(line), "no {line:?} in {}", run.stdout);
    }
    host.signal("-TERM", &scene.scratch);
}
