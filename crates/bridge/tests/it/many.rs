//! Many clients, one after the other and at the same time: what a client leaves, and how many there may be.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use multitap_bridge::{Bridge, HttpService};
use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::client::{options, until};

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

/// A request, and the session that the answer names.
async fn request(service: &HttpService, method: Method, session: Option<&str>, body: &Value) -> (StatusCode, String) {
    let mut request = Request::builder().method(method).uri("/mcp").header("Host", "localhost");
    request = request.header("Content-Type", "application/json");
    request = request.header("Accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("Mcp-Session-Id", session);
    }
    let answer = service.handle(request.body(Body::from(body.to_string())).unwrap()).await;
    let session = answer.headers().get("Mcp-Session-Id").map(|id| id.to_str().unwrap().to_owned());
    (answer.status(), session.unwrap_or_default())
}

#[tokio::test]
async fn clients_over_http_are_bounded() {
    let bridge = Bridge::new(options());
    let service = bridge.http();
    let begin = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "a", "version": "1" } } });
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
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(status, StatusCode::OK);
    bridge.close().await;
}
