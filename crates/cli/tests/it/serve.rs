//! `multitap serve` as operators and strangers meet it.

mod host_calls;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use multitap_testkit::fake::Fake;
use multitap_testkit::wait::until_blocking;
use serde_json::{Value, json};

use crate::scene::{Live, PATIENCE, Scene};

const EXTENSION: &str = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md";
/// After this a session counts as one that rests.
const RESTED: Duration = Duration::from_millis(1200);
const BUILTIN: [&str; 4] = ["--agent", "builtin", "--model", "rehearsal"];

/// A host that runs.
struct Served {
    live: Live,
    host: String,
    port: u16,
}

impl Scene {
    /// Starts it and waits for its line.
    #[track_caller]
    fn serve(&self, options: &[&str]) -> Served {
        let mut live = self.start(&[&["serve", "--port", "0"], &BUILTIN[..], options].concat());
        let line = live.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
        let place = line.strip_prefix("multitap listening on http://").expect(&line);
        let (host, port) = place.rsplit_once(':').expect(&line);
        Served { live, host: host.to_owned(), port: port.parse().unwrap() }
    }

    fn tokens(&self, mode: u32) -> String {
        let file = self.scratch.path("tokens");
        fs::write(&file, "# ours\nown-secret owner Ada\nobs-secret observer\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        file.display().to_string()
    }
}

impl Served {
    /// Status and body of an answer.
    #[track_caller]
    fn ask(&self, request: &str, headers: &[(&str, &str)]) -> (u16, String) {
        self.send(request, headers, "")
    }

    #[track_caller]
    fn send(&self, request: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (own, length) = (format!("localhost:{}", self.port), body.len().to_string());
        let given = |name: &str| headers.iter().any(|(found, _)| *found == name);
        let ours = [("Host", own.as_str()), ("Content-Length", &length)];
        let headers = ours.iter().filter(|(name, _)| !given(name)).chain(headers);
        let headers: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(stream, "{request} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n{body}").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect(&text);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Says something in a session, a new one unless `context` names one, set up as `settings` say. Waits for the end of
    /// the turn if it `blocks`.
    #[track_caller]
    fn say(&self, text: &str, context: Option<&str>, settings: &Value, blocks: bool) -> Value {
        self.say_as("", text, context, settings, blocks)
    }

    /// The same with a token.
    #[track_caller]
    fn say_as(&self, token: &str, text: &str, context: Option<&str>, settings: &Value, blocks: bool) -> Value {
        let mut message = json!({
            "kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": text}],
            "metadata": {EXTENSION: settings},
        });
        if let Some(context) = context {
            message["contextId"] = context.into();
        }
        let params = json!({"message": message, "configuration": {"blocking": blocks}});
        self.rpc_as(token, "message/send", &params)
    }

    /// Any call.
    #[track_caller]
    fn rpc_as(&self, token: &str, method: &str, params: &Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let bearer = format!("Bearer {token}");
        let headers = [("Content-Type", "application/json"), ("Authorization", &bearer)];
        let (status, body) = self.send("POST /", &headers, &request.to_string());
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Ends it by a signal, and sees that it ends well and printed nothing else.
    #[track_caller]
    fn stop(mut self, signal: &str, scene: &Scene) {
        self.live.signal(signal, &scene.scratch);
        let run = self.live.wait().exits(0);
        assert_eq!(run.stdout.lines().count(), 1, "{run:#?}");
        scene.nothing_left();
    }
}

#[test]
fn it_says_where_it_is_and_ends_by_a_signal() {
    let scene = Scene::bare();
    for signal in ["-TERM", "-INT"] {
        let served = scene.serve(&[]);
        assert_eq!(served.host, "127.0.0.1");
        assert_eq!(served.ask("GET /healthz", &[]), (200, "ok\n".to_owned()));
        assert_eq!(served.ask("GET /readyz", &[]).0, 200);
        served.stop(signal, &scene);
    }
}

#[test]
fn strangers_are_refused_on_every_path() {
    let scene = Scene::bare();
    let served = scene.serve(&[]);
    for path in ["/", "/healthz", "/.well-known/agent-card.json", "/ws", "/acp", "/v1/card", "/no/such/path", "/*"] {
        for method in ["GET", "POST", "OPTIONS", "DELETE"] {
            let request = format!("{method} {path}");
            for (headers, refused) in [
                (&[("Host", "evil.example")][..], "Host"),
                (&[("Host", "evil.example:4100"), ("Origin", "http://evil.example:4100")], "Host"),
                (&[("Origin", "https://evil.example")], "Origin"),
                (&[("Origin", "null"), ("Access-Control-Request-Method", "POST")], "Origin"),
            ] {
                let (status, body) = served.ask(&request, headers);
                assert_eq!(status, 403, "{request} {headers:?}: {body}");
                let error: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(error["error"]["refused"], refused, "{request} {headers:?}: {body}");
            }
        }
    }
    served.stop("-TERM", &scene);
}

#[test]
fn other_names_and_pages_can_be_allowed() {
    let scene = Scene::bare();
    let served = scene.serve(&["--allow-host", "box.example", "--allow-origin", "https://app.example"]);
    assert_eq!(served.ask("GET /healthz", &[("Host", "box.example")]).0, 200);
    assert_eq!(served.ask("GET /healthz", &[("Origin", "https://app.example")]).0, 200);
    assert_eq!(served.ask("GET /healthz", &[("Origin", "https://other.example")]).0, 403);
    served.stop("-TERM", &scene);
    let run = scene.run(&["serve", "--allow-origin", "*"]).exits(2);
    assert!(run.stderr.contains("--allow-origin *"), "{run:#?}");
}

#[test]
fn a_token_is_needed_as_soon_as_there_is_one() {
    let mut scene = Scene::bare();
    let file = scene.tokens(0o600);
    let served = scene.serve(&["--token-file", &file]);
    for (token, status) in [("own-secret", 200), ("obs-secret", 200), ("secret", 401), ("# ours", 401)] {
        let found = served.ask("GET /healthz", &[("Authorization", &format!("Bearer {token}"))]);
        assert_eq!(found.0, status, "{token}");
    }
    assert_eq!(served.ask("GET /healthz", &[]).0, 401);
    served.stop("-TERM", &scene);
    scene.scratch.set("MULTITAP_TOKEN", "env-secret");
    let served = scene.serve(&[]);
    assert_eq!(served.ask("GET /healthz", &[]).0, 401);
    assert_eq!(served.ask("GET /healthz", &[("Authorization", "Bearer env-secret")]).0, 200);
    served.stop("-TERM", &scene);
}

#[test]
fn a_door_that_others_can_reach_does_not_open_without_a_token() {
    let mut scene = Scene::bare();
    let run = scene.run(&["serve", "--host", "0.0.0.0"]).exits(2);
    assert!(run.stdout.is_empty() && run.stderr.contains("--token-file"), "{run:#?}");
    scene.scratch.set("MULTITAP_TOKEN", "");
    let run = scene.run(&["serve", "--host", "0.0.0.0"]).exits(2);
    assert!(run.stderr.contains("MULTITAP_TOKEN"), "an empty one is none: {run:#?}");
    scene.scratch.set("MULTITAP_TOKEN", "env-secret");
    let served = scene.serve(&["--host", "0.0.0.0"]);
    assert_eq!(served.ask("GET /healthz", &[("Authorization", "Bearer env-secret")]).0, 200);
    served.stop("-TERM", &scene);
}

#[test]
fn what_is_wrong_at_the_start_is_said_and_no_secret_with_it() {
    let scene = Scene::bare();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let exposed = scene.tokens(0o644);
    let bad = scene.scratch.path("bad");
    fs::write(&bad, "own-secret owner\nother-secret boss\n").unwrap();
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o600)).unwrap();
    let bad = bad.display().to_string();
    for (options, exit, told) in [
        (&["--port", port.as_str()][..], 1, "already in use"),
        (&["--token-file", &exposed], 2, "chmod 600"),
        (&["--token-file", &bad], 2, "line 2"),
        (&["--token-file", "none"], 2, "cannot be read"),
        (&["--root", "none"], 2, "--root none"),
        (&["--approval-mode", "whatever"], 2, "--approval-mode"),
        (&["--max-sessions", "0"], 2, "--max-sessions"),
        (&["--allow-host", "http://box"], 2, "--allow-host"),
    ] {
        let run = scene.run(&[&["serve"], &BUILTIN[..], options].concat()).exits(exit);
        assert!(run.stderr.contains(told) && run.stdout.is_empty(), "{options:?}: {run:#?}");
        assert!(!run.stderr.contains("secret") && !run.stderr.contains("boss"), "{options:?}: {run:#?}");
    }
}

#[test]
fn a_signal_ends_sessions_with_all_that_they_started() {
    let scene = Scene::bare();
    let served = scene.serve(&["--approval-mode", "auto-all"]);
    served.say("run: touch begun; sleep 300", None, &json!({}), false);
    let begun = scene.scratch.path("begun");
    until_blocking("the command", PATIENCE, || begun.exists().then_some(())).unwrap();
    served.stop("-TERM", &scene);
}

#[test]
fn a_session_leaves_a_note_where_to_join_it_and_goes_on_after_a_restart() {
    let scene = Scene::bare();
    let served = scene.serve(&[]);
    let first = served.say("hello", None, &json!({}), true);
    let context = first["result"]["contextId"].as_str().unwrap().to_owned();
    let note = scene.scratch.home().join(format!(".local/share/multitap/run/{context}.json"));
    let left: Value = serde_json::from_slice(&fs::read(&note).unwrap()).unwrap();
    assert_eq!(left["address"], format!("http://127.0.0.1:{}", served.port));
    assert_eq!(fs::metadata(&note).unwrap().permissions().mode() & 0o777, 0o600);
    served.stop("-TERM", &scene);
    assert!(!note.exists());
    let served = scene.serve(&[]);
    let second = served.say("hello again", Some(&context), &json!({}), true);
    assert_eq!(second["result"]["contextId"], context.as_str(), "{second}");
    assert_eq!(second["result"]["status"]["state"], "completed", "{second}");
    served.stop("-TERM", &scene);
    let told = scene.run(&["sessions", "show", &context]).exits(0).stdout;
    assert!(told.contains("hello again"), "{told}");
}

#[test]
fn what_a_client_wishes_for_is_checked() {
    let scene = Scene::bare();
    fs::create_dir(scene.scratch.path("sub")).unwrap();
    std::os::unix::fs::symlink("/etc", scene.scratch.path("out")).unwrap();
    let served = scene.serve(&["--approval-mode", "auto-edit"]);
    let path = |name: &str| scene.scratch.path(name).display().to_string();
    for (settings, told) in [
        (json!({"workspace_path": "/etc"}), "workspace_path"),
        (json!({"workspace_path": path("out")}), "workspace_path"),
        (json!({"workspace_path": "sub"}), "workspace_path"),
        (json!({"agent": "acp:touch evil"}), "no command"),
        (json!({"approval_mode": "autoAll"}), "approval_mode"),
    ] {
        let answer = served.say("hello", None, &settings, true);
        assert_eq!(answer["error"]["code"], -32602, "{settings}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(told), "{settings}: {answer}");
    }
    let wished = json!({"workspace_path": path("sub"), "approval_mode": "plan", "agent": "builtin"});
    let answer = served.say("write x to made.txt", None, &wished, true);
    assert_eq!(answer["result"]["kind"], "task", "{answer}");
    assert!(!scene.scratch.path("sub/made.txt").exists(), "its mode is stricter than the host's");
    let answer = served.say("write x to made.txt", None, &json!({"workspace_path": path("sub")}), true);
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    assert!(scene.scratch.path("sub/made.txt").exists(), "the host's mode holds where none is wished for");
    assert!(!scene.scratch.path("evil").exists());
    served.stop("-TERM", &scene);
}

#[test]
fn an_observer_opens_no_session_and_an_owner_brings_its_own_environment() {
    let scene = Scene::bare();
    let file = scene.tokens(0o600);
    let served = scene.serve(&["--token-file", &file, "--approval-mode", "auto-all"]);
    let refused = served.say_as("obs-secret", "run: touch made.txt", None, &json!({}), true);
    assert_eq!(refused["error"]["code"], -32012, "{refused}");
    let wished = json!({"environment": {"MINE": "brought"}});
    let answer = served.say_as("own-secret", "run: printf %s \"$MINE\" > brought.txt", None, &wished, true);
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    assert_eq!(scene.scratch.read("brought.txt").unwrap(), "brought");
    assert!(!scene.scratch.path("made.txt").exists());
    served.stop("-TERM", &scene);
}

/// With an agent that takes no such lines itself, so they are run in front of it.
#[test]
fn a_shell_line_runs_for_an_owner_and_is_words_from_everybody_else() {
    let fake = Fake::claude().says("words").build().unwrap();
    let mut scene = Scene::with(&fake);
    scene.scratch.set("MULTITAP_TOKEN", "con-secret");
    let file = scene.tokens(0o600);
    let served = scene.serve(&["--token-file", &file, "--approval-mode", "auto-all"]);
    let claude = json!({"agent": "claude"});
    let answer = served.say_as("own-secret", "!echo \"[$MULTITAP_TOKEN]\" > made.txt", None, &claude, true);
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    assert_eq!(scene.scratch.read("made.txt").unwrap(), "[]\n");
    let context = answer["result"]["contextId"].as_str();
    let refused = served.say_as("obs-secret", "!touch pwned", context, &json!({}), true);
    assert_eq!(refused["error"]["code"], -32012, "{refused}");
    let answer = served.say_as("con-secret", "!touch pwned", context, &json!({}), true);
    assert_eq!(answer["result"]["status"]["state"], "completed", "{answer}");
    assert!(!scene.scratch.path("pwned").exists());
    let heard = fake.heard().unwrap().concat();
    assert!(heard.contains("!touch pwned"), "{heard}");
    served.stop("-TERM", &scene);
}

#[test]
fn no_more_sessions_than_it_takes() {
    let scene = Scene::bare();
    let served = scene.serve(&["--max-sessions", "1"]);
    let first = served.say("run: true", None, &json!({}), true);
    assert_eq!(first["result"]["status"]["state"], "input-required", "{first}");
    sleep(RESTED);
    let refused = served.say("hello", None, &json!({}), true);
    assert!(refused["error"]["message"].as_str().unwrap().contains("too many sessions"), "{refused}");
    served.stop("-TERM", &scene);
}

#[test]
fn a_session_that_rests_gives_way_and_is_taken_up_again() {
    let scene = Scene::bare();
    let served = scene.serve(&["--max-sessions", "2"]);
    let opened: Vec<Value> = (0..4)
        .map(|number| {
            let done = served.say(&format!("hello {number}"), None, &json!({}), true);
            assert_eq!(done["result"]["status"]["state"], "completed", "{done}");
            sleep(RESTED);
            done["result"]["contextId"].clone()
        })
        .collect();
    for (number, context) in opened.iter().enumerate() {
        let done = served.say("again", context.as_str(), &json!({}), true);
        assert_eq!(done["result"]["status"]["state"], "completed", "{number}: {done}");
        assert_eq!(done["result"]["contextId"], *context, "{number}");
        sleep(RESTED);
    }
    served.stop("-TERM", &scene);
}

/// Another user of this machine reaches a loopback door, and is nobody to it. Needs root, to become somebody else.
#[cfg(target_os = "linux")]
#[test]
fn another_user_of_this_machine_needs_a_token() {
    let mut scene = Scene::bare();
    let as_nobody = |scene: &Scene, url: &str, header: &str| {
        let id = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let ask = ["curl", "-s", "-m", "60", "-w", " %{http_code}", "-H", header, url];
        let output = scene.scratch.command("setpriv").args(id).args(ask).output();
        output.ok().filter(|output| output.status.success()).map(|out| String::from_utf8(out.stdout).unwrap())
    };
    let served = scene.serve(&[]);
    let url = format!("http://127.0.0.1:{}/healthz", served.port);
    assert_eq!(served.ask("GET /healthz", &[]).0, 200, "our own user needs none");
    match as_nobody(&scene, &url, "X-Nothing: 1") {
        None => {
            println!("SKIPPED: becoming another user needs root, setpriv and curl");
            served.stop("-TERM", &scene);
            return;
        }
        Some(answer) => {
            assert!(answer.ends_with(" 401") && answer.contains("--token-file"), "{answer}");
        }
    }
    served.stop("-TERM", &scene);
    // A token says who it is, whichever user brings it.
    scene.scratch.set("MULTITAP_TOKEN", "env-secret");
    let served = scene.serve(&[]);
    let url = format!("http://127.0.0.1:{}/healthz", served.port);
    let answer = as_nobody(&scene, &url, "Authorization: Bearer env-secret").unwrap();
    assert!(answer.ends_with(" 200"), "{answer}");
    served.stop("-TERM", &scene);
}

/// A session is judged by the folder that a client opens it in, also when it is resumed.
#[test]
fn a_folder_that_nobody_trusts_does_not_act_for_a_client() {
    let fake = Fake::claude().says("hello").build().unwrap();
    let scene = Scene::with(&fake);
    let hooks = r#"{"hooks": {"SessionStart": []}}"#;
    scene.scratch.write("bad/.claude/settings.json", hooks).unwrap();
    scene.scratch.write("good/x", "").unwrap();
    let left_out = || {
        let heard = fake.heard().unwrap();
        heard.iter().rfind(|line| line.contains("--input-format")).map(|line| line.contains("--setting-sources user"))
    };
    let wish =
        |name: &str| json!({ "workspace_path": scene.scratch.path(name).canonicalize().unwrap(), "agent": "claude" });
    let served = scene.serve(&[]);
    let first = served.say("hi", None, &wish("good"), true);
    assert_eq!(left_out(), Some(false), "{first}");
    let second = served.say("hi", None, &wish("bad"), true);
    assert_eq!(left_out(), Some(true), "{second}");
    let context = second["result"]["contextId"].as_str().unwrap().to_owned();
    served.stop("-TERM", &scene);
    let served = scene.serve(&[]);
    served.say("again", Some(&context), &json!({}), true);
    assert_eq!(left_out(), Some(true), "resumed, it is judged again");
    served.stop("-TERM", &scene);
    let served = scene.serve(&["--trust"]);
    served.say("again", Some(&context), &json!({}), true);
    assert_eq!(left_out(), Some(false));
    served.stop("-TERM", &scene);
}

/// The log's C library once held on to several copies of a large prompt: 150 MB of a host stayed.
#[cfg(target_os = "linux")]
#[test]
fn a_large_prompt_leaves_little_more_than_its_text() {
    const MIB: u64 = 1024 * 1024;
    let scene = Scene::bare();
    let served = scene.serve(&[]);
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/status", served.live.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    };
    served.say("hello", None, &json!({}), true);
    let before = resident();
    let told = served.say(&"x".repeat(14_000_000), None, &json!({}), true);
    assert!(told["result"]["contextId"].is_string(), "{told}");
    // Memory is given back when more is wanted. Two copies stay: the prompt, and the answer that repeats it.
    until_blocking("memory to be given back", PATIENCE, || {
        served.say("hello", None, &json!({}), true);
        (resident() < before + 90 * MIB).then_some(())
    })
    .unwrap();
}

/// Each thread has a heap of its own: a burst of requests must not start hundreds of them.
#[cfg(target_os = "linux")]
#[test]
fn a_burst_of_requests_starts_few_threads() {
    const REQUESTS: usize = 800;
    const CLIENTS: usize = 16;
    let scene = Scene::bare();
    let served = scene.serve(&[]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {}:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        served.host,
        served.port,
        body.len()
    );
    let ask = || {
        let mut streams: Vec<TcpStream> = Vec::new();
        for _ in 0..REQUESTS / CLIENTS {
            let mut stream = TcpStream::connect((served.host.as_str(), served.port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            streams.push(stream);
        }
        for mut stream in streams {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    };
    std::thread::scope(|scope| (0..CLIENTS).for_each(|_| drop(scope.spawn(ask))));
    // A thread with nothing to do stays for ten seconds.
    let threads = fs::read_dir(format!("/proc/{}/task", served.live.pid())).unwrap().count();
    assert!(threads <= 48, "{threads} threads");
    served.stop("-TERM", &scene);
}
