//! Frames as server-sent events: `id` is the cursor, `data` the frame, on JSON-RPC as an answer; comments keep the
//! connection alive.

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
use super::rest;
use super::service::{Item, Stream};
use crate::http::Shared;
use crate::rpc::{CLOSING, RequestId, opening};

/// How often a silent stream sends a comment.
const ALIVE: Duration = Duration::from_secs(15);
/// Most bytes written at once.
const CHUNK: usize = 64 * 1024;
/// A comment, because an event without data would confuse some clients.
const PING: &str = ": ping\n\n";

pub(super) const MEDIA_TYPE: &str = "text/event-stream";

/// What a frame stands in.
#[derive(Debug)]
pub(super) enum Framing {
    /// An answer to that request.
    JsonRpc(RequestId),
    /// Nothing, as on HTTP+JSON.
    Bare,
}

impl Framing {
    /// The text before and after each frame.
    fn around(&self) -> (String, &'static str) {
        match self {
            Self::JsonRpc(id) => (opening(id, "result"), CLOSING),
            Self::Bare => (String::new(), ""),
        }
    }

    fn error(&self, dialect: Dialect, error: &Error) -> String {
        match self {
            Self::JsonRpc(id) => format!("data: {}\n\n", error_response(dialect, id, error)),
            Self::Bare => rest::error_event(dialect, error),
        }
    }
}

/// Whether a method is answered by a stream.
pub(crate) fn is_streaming(method: &str) -> bool {
    matches!(method, "message/stream" | "tasks/resubscribe" | "SendStreamingMessage" | "SubscribeToTask")
}

/// A refusal, for clients that accept only a stream.
pub(super) fn refuse(dialect: Dialect, id: &RequestId, error: &Error) -> Response {
    response(Body::from(Framing::JsonRpc(id.clone()).error(dialect, error)))
}

/// Sends a stream. A client that leaves it unread for too long is disconnected, and may come back with its cursor.
pub(super) fn respond(door: &Shared, framing: Framing, frames: Stream) -> Response {
    let (chunks, received) = mpsc::channel::<Bytes>(1);
    let stop = door.stop.clone();
    door.tasks.spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = send(framing, frames, &chunks) => {}
            () = chunks.closed() => {}
        }
    });
    let bytes = stream::unfold(received, |mut received| async {
        let chunk = received.recv().await?;
        Some((Ok::<_, Infallible>(chunk), received))
    });
    response(Body::from_stream(bytes))
}

async fn send(framing: Framing, mut frames: Stream, chunks: &mpsc::Sender<Bytes>) {
    let (opening, closing) = framing.around();
    let around = (opening.as_str(), closing);
    loop {
        let mut text = String::new();
        match timeout(ALIVE, frames.next()).await {
            Ok(Some(Item::Failed(error))) => text.push_str(&framing.error(frames.form.dialect(), &error)),
            Ok(Some(item)) => write(&mut text, around, frames.form, &item),
            Ok(None) => return,
            Err(_) => text.push_str(PING),
        }
        // Frames that come together are sent together.
        while text.len() < CHUNK
            && let Some(item) = frames.try_next()
        {
            write(&mut text, around, frames.form, &item);
        }
        match timeout(STUCK, chunks.send(text.into())).await {
            Ok(Ok(())) => {}
            // The client left, or does not read.
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

fn write(text: &mut String, (opening, closing): (&str, &str), form: Form, item: &Item) {
    let json = match item {
        Item::First(json) | Item::Artifact(json) => json,
        Item::Frame(frame) => {
            writeln!(text, "id: {}", frame.cursor).ok(); // a String takes everything
            frame.json(form)
        }
        // `try_next` never returns it: only waiting for a frame fails.
        Item::Failed(_) => return,
    };
    for part in ["data: ", opening, json, closing, "\n\n"] {
        text.push_str(part);
    }
}

fn response(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}
