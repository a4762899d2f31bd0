//! Frames as server-sent events: `id` is the cursor, `data` a JSON-RPC answer; comments keep the connection alive.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use multitap_a2a::{Dialect, Error};
use multitap_hub::STUCK;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::frame::Form;
use super::http::error_response;
use super::service::{Item, Stream};
use crate::http::Shared;
use crate::rpc::{CLOSING, RequestId, opening};

/// How often a silent stream sends a comment.
const ALIVE: Duration = Duration::from_secs(15);
/// Most bytes written at once.
const CHUNK: usize = 64 * 1024;
/// A comment, because an event without data would confuse some clients.
const PING: &str = ": ping\n\n";

/// Whether a method is answered by a stream.
pub(crate) fn is_streaming(method: &str) -> bool {
    matches!(method, "message/stream" | "tasks/resubscribe" | "SendStreamingMessage" | "SubscribeToTask")
}

/// A refusal, for clients that accept only a stream.
pub(super) fn refuse(dialect: Dialect, id: &RequestId, error: &Error) -> Response {
    let event = format!("data: {}\n\n", error_response(dialect, id, error));
    response(Body::from(event))
}

/// Sends a stream. A client that leaves it unread for too long is disconnected, and may come back with its cursor.
pub(super) fn respond(door: &Shared, id: RequestId, frames: Stream) -> Response {
    let (chunks, received) = mpsc::channel::<Bytes>(1);
    let stop = door.stop.clone();
    door.tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = send(id, frames, &chunks) => {}
            () = chunks.closed() => {}
        }
    });
    let bytes = stream::unfold(received, |mut received| async {
        let chunk = received.recv().await?;
        Some((Ok::<_, Infallible>(chunk), received))
    });
    response(Body::from_stream(bytes))
}

async fn send(id: RequestId, mut frames: Stream, chunks: &mpsc::Sender<Bytes>) {
    let opening = opening(&id, "result");
    loop {
        let mut text = String::new();
        match timeout(ALIVE, frames.next()).await {
            Ok(Some(Item::Failed(error))) => {
                writeln!(text, "data: {}\n", error_response(frames.form.dialect, &id, &error)).ok();
            }
            Ok(Some(item)) => write(&mut text, &opening, frames.form, &item),
            Ok(None) => return,
            Err(_) => text.push_str(PING),
        }
        // Frames that come together are sent together.
        while text.len() < CHUNK
            && let Some(item) = frames.try_next()
        {
            write(&mut text, &opening, frames.form, &item);
        }
        match timeout(STUCK, chunks.send(text.into())).await {
            Ok(Ok(())) => {}
            // The client left, or does not read.
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

fn write(text: &mut String, opening: &str, form: Form, item: &Item) {
    let json = match item {
        Item::First(json) => json,
        Item::Frame(frame) => {
            writeln!(text, "id: {}", frame.cursor).ok(); // a String takes everything
            frame.json(form)
        }
        // `try_next` never returns it: only waiting for a frame fails.
        Item::Failed(_) => return,
    };
    for part in ["data: ", opening, json, CLOSING, "\n\n"] {
        text.push_str(part);
    }
}

fn response(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}
