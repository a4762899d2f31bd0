//! An A2A agent by script: an HTTP server in this process that answers as a test wants and records what it was asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream;
use multitap_event::A2aServer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// One request of the bridge.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Value,
}

impl Asked {
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// The text of the message that was sent.
    pub(crate) fn text(&self) -> &str {
        self.body["params"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
    }

    pub(crate) fn result(&self, result: &Value) -> Reply {
        Reply::Json(json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }))
    }

    pub(crate) fn error(&self, code: i64, message: &str) -> Reply {
        Reply::Json(json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": { "code": code, "message": message } }))
    }

    pub(crate) fn event(&self, result: &Value) -> String {
        format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result }))
    }

    /// A stream of these updates that ends.
    pub(crate) fn stream(&self, updates: &[Value]) -> Reply {
        Reply::Stream(updates.iter().map(|update| self.event(update)).collect(), After::End)
    }
}

/// What is answered.
#[derive(Clone)]
pub(crate) enum Reply {
    Json(Value),
    Status(u16, Vec<(&'static str, String)>, String),
    Stream(Vec<String>, After),
    /// Nothing, ever.
    Silence,
    /// When the gate is opened.
    Gated(watch::Receiver<bool>, Box<Reply>),
}

/// What comes after the events of a stream.
#[derive(Clone)]
pub(crate) enum After {
    End,
    /// The stream stays open.
    Open,
    /// The last event again and again.
    Repeat,
    /// More events when the gate is opened.
    Gate(watch::Receiver<bool>, Vec<String>),
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

#[derive(Clone)]
struct Shared {
    card: Arc<Mutex<Reply>>,
    script: Arc<Script>,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// How many streams are open.
    streams: Arc<AtomicUsize>,
}

/// Runs until it is dropped.
pub(crate) struct Agent {
    pub(crate) url: String,
    shared: Shared,
    tasks: JoinSet<()>,
}

impl Agent {
    /// An agent that speaks 1.0 over JSON-RPC; the script answers everything but the card.
    pub(crate) async fn start(name: &str, script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, name, script)
    }

    pub(crate) fn on(
        listener: TcpListener,
        name: &str,
        script: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let card = Arc::new(Mutex::new(Reply::Json(card(name, &url))));
        let shared = Shared { card, script: Arc::new(script), asked: Arc::default(), streams: Arc::default() };
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, tasks }
    }

    /// Ends it, and waits until its port is free.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }

    pub(crate) fn set_card(&self, card: Reply) {
        *self.shared.card.lock().unwrap() = card;
    }

    /// The card with one field changed.
    pub(crate) fn change_card(&self, key: &str, value: Value) {
        let mut shared = self.shared.card.lock().unwrap();
        let Reply::Json(card) = &mut *shared else { panic!("the card is JSON") };
        card[key] = value;
    }

    pub(crate) fn entry(&self, name: &str) -> A2aServer {
        A2aServer { name: Some(name.to_owned()), ..A2aServer::new(self.url.clone()) }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// How many streams are open.
    pub(crate) fn open_streams(&self) -> usize {
        self.shared.streams.load(Ordering::Acquire)
    }

    /// The requests of one JSON-RPC method.
    pub(crate) fn calls(&self, method: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.method() == method).collect()
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let asked = Asked {
        path: parts.uri.path().to_owned(),
        authorization: parts.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.asked.lock().unwrap().push(asked.clone());
    let is_card = asked.path.starts_with("/.well-known/");
    let mut reply = if is_card { shared.card.lock().unwrap().clone() } else { (shared.script)(&asked) };
    loop {
        return match reply {
            Reply::Json(value) => respond(200, &[("content-type", "application/json".into())], value.to_string()),
            Reply::Status(status, headers, body) => respond(status, &headers, body),
            Reply::Stream(events, after) => streamed(events, after, OpenStream::new(&shared.streams)),
            Reply::Silence => std::future::pending().await,
            Reply::Gated(mut gate, then) => {
                gate.wait_for(|is_open| *is_open).await.ok();
                reply = *then;
                continue;
            }
        };
    }
}

fn respond(status: u16, headers: &[(&'static str, String)], body: String) -> Response {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, value);
    }
    response.body(Body::from(body)).unwrap()
}

/// Counts a stream while it is open.
struct OpenStream(Arc<AtomicUsize>);

impl OpenStream {
    fn new(streams: &Arc<AtomicUsize>) -> Self {
        streams.fetch_add(1, Ordering::AcqRel);
        Self(streams.clone())
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn streamed(events: Vec<String>, after: After, open: OpenStream) -> Response {
    let state = (events.into_iter(), after, None::<String>);
    let bytes = stream::unfold(state, move |(mut events, after, last)| {
        let _ = &open;
        async {
            if let Some(event) = events.next() {
                return Some((Ok::<_, std::io::Error>(Bytes::from(event.clone())), (events, after, Some(event))));
            }
            match after {
                After::End => None,
                After::Open => std::future::pending().await,
                After::Repeat => {
                    let event = last.clone().unwrap_or_default();
                    Some((Ok(Bytes::from(event)), (events, After::Repeat, last)))
                }
                After::Gate(mut gate, more) => {
                    gate.wait_for(|is_open| *is_open).await.ok();
                    Some((Ok(Bytes::new()), (more.into_iter(), After::End, last)))
                }
            }
        }
    });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(bytes)).unwrap()
}

pub(crate) fn card(name: &str, url: &str) -> Value {
    json!({
        "name": name, "description": "A scripted agent.", "version": "1", "capabilities": { "streaming": true },
        "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "skills": [{ "id": "s", "name": "skill", "description": "does things", "tags": [] }],
    })
}

fn words(text: &str) -> Value {
    json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": text }] })
}

pub(crate) fn task(id: &str, state: &str) -> Value {
    json!({ "task": { "id": id, "contextId": "c", "status": { "state": format!("TASK_STATE_{state}") } } })
}

pub(crate) fn status(task: &str, state: &str, text: &str) -> Value {
    let status = json!({ "state": format!("TASK_STATE_{state}"), "message": words(text) });
    json!({ "statusUpdate": { "taskId": task, "contextId": "c", "status": status } })
}

pub(crate) fn artifact(task: &str, id: &str, text: &str, append: bool) -> Value {
    let artifact = json!({ "artifactId": id, "name": id, "parts": [{ "text": text }] });
    json!({ "artifactUpdate": { "taskId": task, "contextId": "c", "artifact": artifact, "append": append } })
}

/// A script that says one thing and is done.
pub(crate) fn saying(text: &'static str) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |asked| match asked.method() {
        "SendStreamingMessage" => asked.stream(&[task("t", "WORKING"), status("t", "COMPLETED", text)]),
        _ => asked.error(-32001, "no such task"),
    }
}
