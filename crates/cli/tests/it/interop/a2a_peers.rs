//! `multitap serve` with the agent that rehearses, met by the A2A clients that others wrote, each as it comes, and by
//! pages in a browser.

use std::time::Instant;

use multitap_testkit::peer::browser::{Attempt, visit};
use multitap_testkit::peer::{Call, Kind, Peer, frame};
use multitap_testkit::{Scratch, interop, wait};
use serde_json::{Value, json};

use crate::scene::{Live, MULTITAP, PATIENCE};

const EXTENSION: &str = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md";

const JSON_RPC: &str = "JSONRPC";
const HTTP_JSON: &str = "HTTP+JSON";
const GRPC: &str = "GRPC";

/// A door that is open.
pub(super) struct Door {
    pub(super) url: String,
    scratch: Scratch,
    // Ends with the test.
    _server: Live,
}

impl Door {
    pub(super) fn open() -> Self {
        let mut scratch = Scratch::without_model().unwrap();
        scratch.set("MULTITAP_HOME", scratch.root().join("multitap"));
        let mut command = scratch.command(MULTITAP);
        command.args(["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut server = Live::new(command);
        let line = server.line_by(Instant::now() + PATIENCE).unwrap_or_default();
        let Some(url) = line.strip_prefix("multitap listening on ") else {
            panic!("it does not listen: {line:?}, {:?}", server.end());
        };
        Self { url: url.trim_end_matches('/').to_owned(), scratch, _server: server }
    }

    /// A client that has read the card, and takes that binding of it.
    fn client(&self, kind: Kind, transport: &str, extensions: &[&str]) -> Client {
        let mut peer = Peer::start(kind, &self.scratch).unwrap();
        let told =
            peer.call("card", json!({"url": self.url, "transport": transport, "extensions": extensions})).unwrap();
        assert_eq!(told["transport"], transport, "{told:#}");
        Client { peer, told }
    }

    /// The conversations that were kept.
    fn sessions(&self) -> String {
        let output = self.scratch.command(MULTITAP).args(["sessions", "list", "--json"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

struct Client {
    peer: Peer,
    told: Value,
}

/// A question that a stream ended with.
struct Asked {
    task: String,
    context: String,
    call: String,
    options: Vec<String>,
}

impl Client {
    fn stream(&mut self, text: &str) -> Call {
        self.peer.begin("stream", json!({"text": text})).unwrap()
    }

    /// Prompts for something that is asked about.
    fn ask(&mut self, text: &str) -> Asked {
        let stream = self.stream(text);
        let events = self.peer.rest(stream).unwrap();
        let last = events.last().unwrap();
        assert_eq!(frame::state(last).as_deref(), Some("input-required"), "{events:#?}");
        let asks = |event: &Value| frame::data(event, "confirmation_request").cloned();
        let tool = events.iter().rev().find_map(asks).unwrap_or_else(|| panic!("nothing is asked: {events:#?}"));
        let options = tool["confirmation_request"]["options"].as_array().unwrap();
        Asked {
            task: frame::task_id(last).unwrap().to_owned(),
            context: frame::context_id(last).unwrap().to_owned(),
            call: tool["tool_call_id"].as_str().unwrap().to_owned(),
            options: options.iter().map(|option| option["id"].as_str().unwrap().to_owned()).collect(),
        }
    }

    /// Answers it, and follows the turn to its end.
    fn answer(&mut self, asked: &Asked, option: &str) -> Vec<Value> {
        assert!(asked.options.iter().any(|offered| offered == option), "{:?}", asked.options);
        let data = json!({"tool_call_id": asked.call, "selected_option_id": option});
        let args = json!({"taskId": asked.task, "contextId": asked.context, "data": data});
        let answer = self.peer.begin("answer", args).unwrap();
        self.peer.rest(answer).unwrap()
    }

    fn get(&mut self, task: &str) -> Value {
        self.peer.call("get", json!({"taskId": task})).unwrap()
    }

    /// Looks until the task is in that state.
    fn until(&mut self, task: &str, state: &str) {
        let is = || (frame::state(&self.get(task)).as_deref() == Some(state)).then_some(());
        wait::until_blocking(&format!("task {task} to be {state}"), PATIENCE, is).unwrap();
    }
}

#[track_caller]
fn ends(events: &[Value], state: &str) {
    assert_eq!(events.last().and_then(frame::state).as_deref(), Some(state), "{events:#?}");
}

/// What every client can do in a binding, with the extension in use and without.
fn walk(kind: Kind, transport: &str) {
    if interop::peer(kind).is_none() {
        return; // said loudly, and counted
    }
    let door = Door::open();
    for extensions in [&[EXTENSION][..], &[]] {
        let mut client = door.client(kind, transport, extensions);
        reads_the_card(&client);
        sends(&mut client);
        lists(&mut client, extensions.is_empty());
        confirms(&mut client, &door);
        cancels(&mut client);
        hangs_up(&mut client);
        let unknown = "01930000-0000-7000-8000-000000000000";
        let error = client.peer.refused("get", json!({"taskId": unknown})).unwrap();
        assert!(error["code"] == -32001 || error["name"] == "TaskNotFoundError", "{error:#}");
    }
}

fn reads_the_card(client: &Client) {
    let card = &client.told["card"];
    assert_eq!(card["capabilities"]["streaming"], true, "{card:#}");
    let extensions = card["capabilities"]["extensions"].as_array().unwrap();
    assert!(extensions.iter().any(|extension| extension["uri"] == EXTENSION), "{card:#}");
    let version = client.told["version"].as_str().unwrap();
    let spoken = if client.peer.kind() == Kind::JsV03 { "0.3" } else { "1.0" };
    assert!(version.starts_with(spoken), "{version}");
}

/// A message and its answer, whole, piece by piece, or not waited for.
fn sends(client: &mut Client) {
    let answered = client.peer.call("send", json!({"text": "good morning"})).unwrap();
    assert_eq!(frame::state(&answered).as_deref(), Some("completed"), "{answered:#}");
    let whole = frame::text(&answered);
    assert!(whole.starts_with("You said \"good morning\"."), "{answered:#}");
    let stream = client.stream("good morning");
    let events = client.peer.rest(stream).unwrap();
    ends(&events, "completed");
    assert_eq!(events.iter().map(frame::text).collect::<String>(), whole, "{events:#?}");

    let taken = client.peer.call("send", json!({"text": "slow 10", "blocking": false})).unwrap();
    assert!(matches!(frame::state(&taken).as_deref(), Some("submitted" | "working")), "{taken:#}");
    let task = frame::task_id(&taken).unwrap().to_owned();
    client.until(&task, "completed");
}

/// Each turn is a task with its answer as an artifact; with the extension, all turns are one task without any. The SDK of
/// 0.3 has no list.
fn lists(client: &mut Client, is_core: bool) {
    if client.peer.kind() == Kind::JsV03 {
        return;
    }
    let first = client.peer.call("send", json!({"text": "good morning"})).unwrap();
    let context = frame::context_id(&first).unwrap().to_owned();
    client.peer.call("send", json!({"text": "good night", "contextId": context})).unwrap();
    let page = client.peer.call("list", json!({"contextId": context})).unwrap();
    let tasks = page["tasks"].as_array().unwrap();
    assert_eq!(
        (tasks.len(), page["totalSize"].as_u64()),
        if is_core { (2, Some(2)) } else { (1, Some(1)) },
        "{page:#}"
    );
    assert!(tasks.iter().all(|task| frame::state(task).as_deref() == Some("completed")), "{page:#}");
    assert_eq!(page.to_string().contains("\"artifactId\":\"answer\""), is_core, "{page:#}");
}

/// A file is written when it is allowed, and not when it is not.
fn confirms(client: &mut Client, door: &Door) {
    let asked = client.ask("write hello to a.txt");
    assert!(!door.scratch.path("a.txt").exists());
    assert_eq!(frame::state(&client.get(&asked.task)).as_deref(), Some("input-required"));
    ends(&client.answer(&asked, "proceed_once"), "completed");
    assert_eq!(door.scratch.read("a.txt").unwrap().trim_end(), "hello");
    std::fs::remove_file(door.scratch.path("a.txt")).unwrap();

    let asked = client.ask("write hello to b.txt");
    client.answer(&asked, "cancel");
    assert!(!door.scratch.path("b.txt").exists());
}

/// Who prompted and who joined later both see the end that a third call made.
fn cancels(client: &mut Client) {
    let stream = client.stream("slow 500");
    let working = client.peer.until(stream, "text", |event| !frame::text(event).is_empty()).unwrap();
    let task = frame::task_id(&working).unwrap().to_owned();
    let joined = client.peer.begin("resubscribe", json!({"taskId": task})).unwrap();
    let first = client.peer.until(joined, "snapshot", |_| true).unwrap();
    assert_eq!(frame::task_id(&first), Some(task.as_str()), "{first:#}");
    let canceled = client.peer.call("cancel", json!({"taskId": task})).unwrap();
    assert_eq!(frame::task_id(&canceled), Some(task.as_str()), "{canceled:#}");
    ends(&client.peer.rest(stream).unwrap(), "canceled");
    // A task that rests is joined until its session ends, where the extension is in use.
    client.peer.until(joined, "end", |event| frame::state(event).as_deref() == Some("canceled")).unwrap();
    client.peer.hang_up(joined).unwrap();
    client.until(&task, "canceled");
}

/// Closing a connection cancels nothing.
fn hangs_up(client: &mut Client) {
    let stream = client.stream("slow 10");
    let working = client.peer.until(stream, "text", |event| !frame::text(event).is_empty()).unwrap();
    client.peer.hang_up(stream).unwrap();
    client.until(frame::task_id(&working).unwrap(), "completed");
}

#[test]
fn interop_js_sdk_of_1_0() {
    walk(Kind::JsV1, JSON_RPC);
}

#[test]
fn interop_js_sdk_of_1_0_over_http_json() {
    walk(Kind::JsV1, HTTP_JSON);
}

#[test]
fn interop_js_sdk_of_1_0_over_grpc() {
    walk(Kind::JsV1, GRPC);
}

#[test]
fn interop_js_sdk_of_0_3() {
    walk(Kind::JsV03, JSON_RPC);
}

#[test]
fn interop_js_sdk_of_0_3_over_http_json() {
    walk(Kind::JsV03, HTTP_JSON);
}

#[test]
fn interop_python_sdk() {
    walk(Kind::Python, JSON_RPC);
}

#[test]
fn interop_python_sdk_over_http_json() {
    walk(Kind::Python, HTTP_JSON);
}

#[test]
fn interop_python_sdk_over_grpc() {
    walk(Kind::Python, GRPC);
}

#[test]
fn interop_rust_client() {
    walk(Kind::Rust, JSON_RPC);
}

#[test]
fn interop_rust_client_over_grpc() {
    walk(Kind::Rust, GRPC);
}

#[test]
fn interop_rust_client_over_http_json() {
    walk(Kind::Rust, HTTP_JSON);
}

/// Asked in one dialect and binding, answered in the other by somebody else.
#[test]
fn interop_another_client_in_the_other_dialect_answers() {
    let kinds = [Kind::JsV03, Kind::Rust];
    if kinds.iter().any(|kind| interop::peer(*kind).is_none()) {
        return;
    }
    for [asker, answerer] in [kinds, [kinds[1], kinds[0]]] {
        let door = Door::open();
        let mut asker = door.client(asker, JSON_RPC, &[EXTENSION]);
        let mut answerer = door.client(answerer, HTTP_JSON, &[EXTENSION]);
        let asked = asker.ask("write hello to a.txt");
        ends(&answerer.answer(&asked, "proceed_once"), "completed");
        assert_eq!(door.scratch.read("a.txt").unwrap().trim_end(), "hello");
        asker.until(&asked.task, "completed");
    }
}

/// What a page could send to have something written.
fn write(id: u32) -> Value {
    let message = json!({
        "kind": "message", "messageId": format!("m-{id}"), "role": "user",
        "parts": [{"kind": "text", "text": "good morning"}],
    });
    json!({"jsonrpc": "2.0", "id": id, "method": "message/send", "params": {"message": message}})
}

/// Everything that a page can try, on every path.
fn everything(url: &str) -> Vec<Attempt> {
    let read = [
        "/",
        "/.well-known/agent-card.json",
        "/.well-known/agent.json",
        "/healthz",
        "/readyz",
        "/listCommands",
        "/tasks",
        "/v1/tasks",
        "/v1/card",
        "/extendedAgentCard",
        "/nothing",
    ];
    let posted = [
        "/",
        "/executeCommand",
        "/message:send",
        "/message:stream",
        "/v1/message:send",
        "/v1/message:stream",
        "/lf.a2a.v1.A2AService/SendMessage",
    ];
    let mut attempts: Vec<Attempt> = read.map(|path| Attempt::get(&format!("{url}{path}"))).into();
    attempts.push(Attempt::get_with_header(&format!("{url}/.well-known/agent-card.json")));
    for path in posted {
        let url = format!("{url}{path}");
        attempts.extend([Attempt::post(&url, &write(1)), Attempt::post_blindly(&url, &write(2))]);
    }
    attempts.extend([Attempt::post_as_text(url, &write(3)), Attempt::form(url, &write(4)), Attempt::event_source(url)]);
    attempts.extend(["/ws", "/acp"].map(|path| Attempt::web_socket(&format!("{url}{path}"))));
    attempts
}

#[test]
fn interop_a_page_of_another_site_gets_nowhere() {
    if interop::peer(Kind::Browser).is_none() {
        return;
    }
    let door = Door::open();
    let mut browser = Peer::start(Kind::Browser, &door.scratch).unwrap();
    for from in ["127.0.0.1", "elsewhere.localhost"] {
        let page = visit(&mut browser, from, &everything(&door.url)).unwrap();
        assert_eq!(page.status, Some(200), "{page:#?}");
        for outcome in &page.attempts {
            assert!(outcome.forbidden() && !outcome.works(), "from {from}: {outcome:#?}");
        }
    }
    // A name that somebody else points at this machine.
    let port = door.url.rsplit(':').next().unwrap();
    let rebound = format!("http://elsewhere.localhost:{port}");
    let page = visit(&mut browser, &format!("{rebound}/healthz"), &everything(&rebound)).unwrap();
    assert_eq!(page.status, Some(403), "{page:#?}");
    for outcome in &page.attempts {
        assert!(outcome.forbidden() && !outcome.works(), "{outcome:#?}");
    }
    let sessions: Value = serde_json::from_str(&door.sessions()).unwrap();
    assert_eq!(sessions.as_array().map(Vec::len), Some(0), "{sessions:#}");
}

#[test]
fn interop_a_page_of_our_own_works() {
    if interop::peer(Kind::Browser).is_none() {
        return;
    }
    let door = Door::open();
    let mut browser = Peer::start(Kind::Browser, &door.scratch).unwrap();
    let url = &door.url;
    let attempts = [
        Attempt::get_with_header(&format!("{url}/.well-known/agent-card.json")),
        Attempt::post(&format!("{url}/"), &write(1)),
    ];
    let page = visit(&mut browser, &format!("{url}/healthz"), &attempts).unwrap();
    assert_eq!(page.status, Some(200), "{page:#?}");
    for outcome in &page.attempts {
        assert!(outcome.works(), "{outcome:#?}");
    }
    let answer = page.attempts[1].page.text.as_deref().unwrap_or_default();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(frame::state(&answer["result"]).as_deref(), Some("completed"), "{answer:#}");
}
