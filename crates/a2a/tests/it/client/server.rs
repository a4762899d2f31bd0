//! An agent by script: a real HTTP server on a port of its own, which answers as a test wants and remembers what it was
//! asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream;
use multitap_a2a::client::{Client, ClientError, ClientOptions, RetryPolicy, Timeouts};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// What was asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: String,
    /// With its query.
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
    /// How many such requests came before: the same method and path.
    pub(super) before: usize,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The method of JSON-RPC.
    pub(super) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// A JSON-RPC answer.
    pub(super) fn result(&self, result: impl Into<Value>) -> Reply {
        Reply::json(json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result.into() }))
    }

    pub(super) fn error(&self, code: i64, message: &str) -> Reply {
        Reply::json(json!({ "jsonrpc": "2.0", "id": self.body["id"], "error": { "code": code, "message": message } }))
    }

    /// An event of a stream over JSON-RPC.
    pub(super) fn event(&self, id: Option<&str>, result: &Value) -> Piece {
        let data = json!({ "jsonrpc": "2.0", "id": self.body["id"], "result": result });
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        Piece::Text(format!("{id}data: {data}\n\n"))
    }
}

/// What is answered.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<Piece>,
}

impl Reply {
    pub(super) fn json(value: impl Into<Value>) -> Self {
        Self::text("application/json", value.into().to_string())
    }

    pub(super) fn text(content_type: &str, text: impl Into<String>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status: 200, headers, body: vec![Piece::Text(text.into())] }
    }

    pub(super) fn stream(pieces: impl Into<Vec<Piece>>) -> Self {
        Self { body: pieces.into(), ..Self::text("text/event-stream; charset=utf-8", "") }
    }

    pub(super) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// What a body is made of.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(String),
    Pause(Duration),
    /// The connection breaks here.
    Cut,
}

impl From<&str> for Piece {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

type Script = dyn Fn(&Asked, &str) -> Reply + Send + Sync;

#[derive(Clone)]
struct Shared {
    script: Arc<Script>,
    url: Arc<str>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Runs until it is dropped.
pub(super) struct Agent {
    pub(super) url: String,
    shared: Shared,
    _tasks: JoinSet<()>,
}

impl Agent {
    /// The script gets what is asked, and the server's own address.
    pub(super) async fn start(script: impl Fn(&Asked, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Shared { script: Arc::new(script), url: url.as_str().into(), asked: Arc::default() };
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, shared, _tasks: tasks }
    }

    /// With a card for that dialect's JSON-RPC; all else is answered by the script.
    pub(super) async fn speaking(
        version: &'static str,
        script: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start(move |asked, url| match asked.path.as_str() {
            "/.well-known/agent-card.json" => Reply::json(card(url, &[("JSONRPC", version)])),
            _ => script(asked),
        })
        .await
    }

    pub(super) async fn client(&self, options: ClientOptions) -> Client {
        self.connect(options).await.unwrap()
    }

    pub(super) async fn connect(&self, options: ClientOptions) -> Result<Client, ClientError> {
        Client::connect(&self.url, options).await
    }

    /// All that was asked, the card too.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// What was asked of JSON-RPC, by method.
    pub(super) fn methods(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.rpc().to_owned()).filter(|method| !method.is_empty()).collect()
    }

    pub(super) fn last(&self) -> Asked {
        self.asked().pop().unwrap()
    }
}

async fn answer(State(shared): State<Shared>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let asked = {
        let mut all = shared.asked.lock().unwrap();
        let (method, path) = (parts.method.to_string(), parts.uri.to_string());
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let same =
            |other: &&Asked| other.method == method && other.path == path && other.body["method"] == body["method"];
        let before = all.iter().filter(same).count();
        let asked = Asked { method, path, headers: parts.headers, body, before };
        all.push(asked.clone());
        asked
    };
    let reply = (shared.script)(&asked, &shared.url);
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    // A body that came as one piece has a length; others are streamed.
    if let [Piece::Text(text)] = reply.body.as_slice() {
        return response.body(Body::from(text.clone())).unwrap();
    }
    let bytes = stream::unfold(reply.body.into_iter(), |mut pieces| async {
        loop {
            match pieces.next()? {
                Piece::Text(text) => return Some((Ok(Bytes::from(text)), pieces)),
                Piece::Pause(time) => tokio::time::sleep(time).await,
                // What was written before is to arrive.
                Piece::Cut => {
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    return Some((Err(std::io::Error::other("cut")), pieces));
                }
            }
        }
    });
    response.body(Body::from_stream(bytes)).unwrap()
}

/// A card that lists these bindings and versions, all at that address.
pub(super) fn card(url: &str, interfaces: &[(&str, &str)]) -> Value {
    let listed: Vec<Value> = interfaces
        .iter()
        .map(|(binding, version)| json!({ "url": url, "protocolBinding": binding, "protocolVersion": version }))
        .collect();
    json!({
        "name": "scripted", "description": "", "version": "1", "supportedInterfaces": listed,
        "capabilities": { "streaming": true }, "skills": [],
    })
}

/// Quick, so that a test of many attempts does not take long.
pub(super) fn quick() -> ClientOptions {
    let retry =
        RetryPolicy { attempts: 3, first_wait: Duration::from_millis(5), longest_wait: Duration::from_millis(1500) };
    let limit = Duration::from_secs(20);
    let timeouts = Timeouts { call: limit, send: limit, silence: None };
    ClientOptions { retry, timeouts, ..ClientOptions::default() }
}

/// A task of 1.0.
pub(super) fn task_1_0(id: &str, state: &str) -> Value {
    json!({ "id": id, "contextId": "c", "status": { "state": format!("TASK_STATE_{state}") } })
}

pub(super) fn task_0_3(id: &str, state: &str) -> Value {
    json!({ "kind": "task", "id": id, "contextId": "c", "status": { "state": state } })
}
