//! Many clients, one after the other and at the same time: what a client leaves, and how many there may be.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response, StatusCode};
use multitap_bridge::{Bridge, BridgeOptions, HttpService};
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::agent::{After, Agent, Asked, Reply, status, task};
use crate::client::{PATIENCE, options, until};

/// More clients than are taken at a time.
const TOO_MANY: usize = 1000;

#[tokio::test]
async fn a_client_that_left_leaves_no_task() {
    let bridge = Bridge::new(options());
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let (before, mut served) = (tasks(), JoinSet::new());
    for _ in 0..20 {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (read, write) = tokio::io::split(theirs);
        let server = bridge.clone();
        served.spawn(async move { server.serve(read, write).await });
        let client = ().serve(ours).await.unwrap();
        // The server has seen `initialized` by then.
        client.list_all_tools().await.unwrap();
        client.cancel().await.unwrap();
        served.join_next().await.unwrap().unwrap().unwrap();
    }
    until("all their tasks to end", || tasks() <= before).await;
    bridge.close().await;
}

/// A client on streams that waits for a call, and says nothing when it leaves.
async fn with_an_open_call(bridge: &Bridge, agent: &Agent, served: &mut JoinSet<()>) -> DuplexStream {
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (read, write) = tokio::io::split(theirs);
    let server = bridge.clone();
    served.spawn(async move { server.serve(read, write).await.unwrap() });
    let me = json!({ "name": "test", "version": "1" });
    let call = json!({ "name": "slow_sendMessage", "arguments": { "message": "go" } });
    for (id, method, params) in [
        (Some(1), "initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": me })),
        (None, "notifications/initialized", json!({})),
        (Some(2), "tools/call", call),
    ] {
        let mut line = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if let Some(id) = id {
            line["id"] = json!(id);
        }
        ours.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
    until("the message", || agent.open_streams() > 0).await;
    ours
}

/// The client leaves, or the bridge ends; the agent cancels, or says nothing.
#[tokio::test]
async fn nobody_waits_for_a_call_and_its_task_is_cancelled() {
    const SOON: Duration = Duration::from_secs(10);
    for (is_closed, is_mute) in [(false, false), (true, false), (false, true), (true, true)] {
        let agent = Agent::start("slow", move |asked: &Asked| match asked.method() {
            "SendStreamingMessage" => Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Open),
            _ if is_mute => Reply::Silence,
            _ => asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } })),
        })
        .await;
        let bridge = Bridge::new(options());
        bridge.load(vec![agent.entry("slow")]).await;
        let mut served = JoinSet::new();
        let client = with_an_open_call(&bridge, &agent, &mut served).await;
        assert_eq!(agent.calls("CancelTask").len(), 0);
        if is_closed {
            timeout(SOON, bridge.close()).await.expect("the bridge ends");
        } else {
            drop(client);
            timeout(SOON, served.join_next()).await.expect("it is served no longer");
        }
        let cancelled = agent.calls("CancelTask");
        assert_eq!(cancelled.len(), 1, "{is_closed} {is_mute}");
        assert_eq!(cancelled[0].body["params"]["id"], "t");
        timeout(SOON, bridge.close()).await.expect("the bridge ends");
    }
}

/// A client may end its input after its last request: an answer that comes soon still reaches it.
#[tokio::test]
async fn an_answer_that_comes_soon_reaches_a_client_that_reads_on() {
    let (open, gate) = watch::channel(false);
    let agent = Agent::start("slow", move |asked: &Asked| {
        let more = vec![asked.event(&status("t", "COMPLETED", "here it is"))];
        Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Gate(gate.clone(), more))
    })
    .await;
    let bridge = Bridge::new(options());
    bridge.load(vec![agent.entry("slow")]).await;
    let mut served = JoinSet::new();
    let mut client = with_an_open_call(&bridge, &agent, &mut served).await;
    client.shutdown().await.unwrap();
    sleep(Duration::from_millis(50)).await;
    open.send(true).unwrap();
    let mut said = String::new();
    timeout(PATIENCE, client.read_to_string(&mut said)).await.expect("it ends").unwrap();
    assert!(said.contains("here it is"), "{said}");
    assert_eq!(agent.calls("CancelTask").len(), 0);
    bridge.close().await;
}

/// A request of a client of the `initialize` era.
async fn answer(service: &HttpService, method: Method, session: Option<&str>, body: &Value) -> Response<Body> {
    let mut request = Request::builder().method(method).uri("/mcp").header("Host", "localhost");
    request = request.header("Content-Type", "application/json");
    request = request.header("Accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("Mcp-Session-Id", session);
    }
    service.handle(request.body(Body::from(body.to_string())).unwrap()).await.map(Body::new)
}

/// The same, and the session that the answer names.
async fn request(service: &HttpService, method: Method, session: Option<&str>, body: &Value) -> (StatusCode, String) {
    let answer = answer(service, method, session, body).await;
    let session = answer.headers().get("Mcp-Session-Id").map(|id| id.to_str().unwrap().to_owned());
    (answer.status(), session.unwrap_or_default())
}

/// A client that waits for a call is not idle, also if it does not want to hear of progress.
#[tokio::test]
async fn a_client_that_waits_over_http_is_not_disconnected() {
    const IDLE: Duration = Duration::from_secs(1);
    let (open, gate) = watch::channel(false);
    let agent = Agent::start("slow", move |asked: &Asked| {
        let rest = vec![asked.event(&status("t", "COMPLETED", "at last"))];
        Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Gate(gate.clone(), rest))
    })
    .await;
    let bridge = Bridge::new(BridgeOptions { idle: IDLE, call_budget: PATIENCE, ..options() });
    bridge.load(vec![agent.entry("slow")]).await;
    let service = bridge.http();
    let session = request(&service, Method::POST, None, &begin()).await.1;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    request(&service, Method::POST, Some(&session), &ready).await;
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "slow_sendMessage", "arguments": { "message": "go" } } });
    let called = answer(&service, Method::POST, Some(&session), &call).await;
    assert_eq!(called.status(), StatusCode::OK);
    sleep(3 * IDLE).await;
    open.send(true).unwrap();
    let told = timeout(PATIENCE, to_bytes(called.into_body(), 1 << 20)).await.expect("the answer").unwrap();
    let told = String::from_utf8(told.to_vec()).unwrap();
    assert!(told.contains("at last"), "{told}");
    assert!(agent.calls("CancelTask").is_empty());
    // One that waits for nothing is.
    sleep(2 * IDLE).await;
    let list = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" });
    assert_eq!(request(&service, Method::POST, Some(&session), &list).await.0, StatusCode::NOT_FOUND);
    bridge.close().await;
}

fn begin() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } } })
}

#[tokio::test]
async fn clients_over_http_are_bounded() {
    let bridge = Bridge::new(options());
    let service = bridge.http();
    let begin = begin();
    let mut sessions = Vec::new();
    let refused = loop {
        match request(&service, Method::POST, None, &begin).await {
            (StatusCode::OK, session) => sessions.push(session),
            (refused, _) => break refused,
        }
        assert!(sessions.len() < TOO_MANY, "nobody is refused");
    };
    assert!(refused.is_server_error() && sessions.len() > 100, "{refused} after {}", sessions.len());
    // One that leaves makes room.
    request(&service, Method::DELETE, sessions.pop().as_deref(), &Value::Null).await;
    let mut status = refused;
    for _ in 0..500 {
        status = request(&service, Method::POST, None, &begin).await.0;
        if status == StatusCode::OK {
            break;
        }
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(status, StatusCode::OK);
    bridge.close().await;
}
