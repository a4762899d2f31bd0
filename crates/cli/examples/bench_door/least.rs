//! The least that could be done: a server that writes frames of the same size, and keeps nothing.

use std::convert::Infallible;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::IntoResponse as _;
use axum::routing::post;
use futures_util::stream;
use multitap_a2a::{Encoding, Message, Part, Role, StatusUpdate, TaskState, TaskStatus, Update};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::Outcome;

/// What makes this program that server.
pub(crate) const WORD: &str = "__least";

pub(crate) async fn run() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/", post(answer));
    Ok(axum::serve(listener, router).await?)
}

async fn answer(body: Bytes) -> axum::response::Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = request.pointer("/params/message/parts/0/text").and_then(Value::as_str).unwrap_or_default();
    let events: u64 = text.parse().unwrap_or(1);
    let frames = (1..=events).map(|number| Ok::<_, Infallible>(Bytes::from(frame(number))));
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream::iter(frames))).into_response()
}

/// A frame as the door writes it, of text and of metadata.
fn frame(number: u64) -> String {
    let id = "01a1e06d-64af-71cf-a017-881a681d664e";
    let message = Message {
        message_id: id.to_owned(),
        role: Role::Agent,
        parts: vec![Part::text("0123456789".repeat(4))],
        context_id: Some(id.to_owned()),
        task_id: Some(id.to_owned()),
        ..Message::default()
    };
    let metadata = serde_json::json!({
        multitap_a2a::devtool::URI: { "kind": "TEXT_CONTENT" },
        "coderAgent": { "kind": "text-content" },
        "https://github.com/multitap/multitap/blob/main/docs/a2a.md": { "cursor": number.to_string() },
    });
    let update = Update::Status(StatusUpdate {
        task_id: id.to_owned(),
        context_id: id.to_owned(),
        status: TaskStatus { state: TaskState::Working, message: Some(message), timestamp: Some(id.to_owned()) },
        is_final: false,
        metadata: metadata.as_object().cloned().unwrap_or_default(),
    });
    let json = Encoding::V0_3.write_update(&update);
    format!("id: {number}\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{json}}}\n\n")
}
