//! Plays a reply as bytes: one loop for all APIs, with its delays.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;

use super::Shared;
use super::script::{Reply, Step, Stop};
use super::tool::Tool;

/// Time for earlier bytes to reach the client before the connection is cut.
const BEFORE_CUT: Duration = Duration::from_millis(30);

/// One thing the connection does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Beat {
    Send(String),
    Pause(Duration),
    Hang,
    Cut,
}

/// One API's format of a streamed answer. Each call returns the text to send; blocks open and close by themselves.
pub(super) trait Dialect {
    fn begin(&mut self) -> String;
    fn text(&mut self, chunk: &str) -> String;
    fn think(&mut self, chunk: &str) -> String;
    fn call(&mut self, tool: &Tool) -> String;
    fn end_block(&mut self) -> String;
    fn fail(&mut self, kind: &str, message: &str) -> String;
    fn end(&mut self, stop: Stop) -> String;
}

pub(super) fn beats(reply: &Reply, dialect: &mut dyn Dialect) -> Vec<Beat> {
    let mut beats = vec![Beat::Send(dialect.begin())];
    let pause = || Beat::Pause(reply.chunk_delay);
    for step in &reply.steps {
        match step {
            Step::Text(chunks) => {
                beats.extend(chunks.iter().flat_map(|chunk| [pause(), Beat::Send(dialect.text(chunk))]));
            }
            Step::Think(chunks) => {
                beats.extend(chunks.iter().flat_map(|chunk| [pause(), Beat::Send(dialect.think(chunk))]));
            }
            Step::Call(tool) => beats.push(Beat::Send(dialect.call(tool))),
            Step::EndBlock => beats.push(Beat::Send(dialect.end_block())),
            Step::Pause(pause) => beats.push(Beat::Pause(*pause)),
            Step::Hang => beats.push(Beat::Hang),
            Step::Cut => {
                beats.push(Beat::Cut);
                return beats;
            }
            Step::Fail { kind, message } => {
                beats.push(Beat::Send(dialect.fail(kind, message)));
                return beats;
            }
        }
    }
    beats.push(Beat::Send(dialect.end(reply.stop)));
    beats
}

/// The beats of an answer that comes in one piece: the waiting first, then the body.
pub(super) fn at_once(reply: &Reply, body: String) -> Vec<Beat> {
    let mut beats: Vec<Beat> = Vec::new();
    for step in &reply.steps {
        match step {
            Step::Pause(pause) => beats.push(Beat::Pause(*pause)),
            Step::Hang => beats.push(Beat::Hang),
            Step::Cut => {
                beats.push(Beat::Cut);
                return beats;
            }
            Step::Text(_) | Step::Think(_) | Step::Call(_) | Step::EndBlock | Step::Fail { .. } => {}
        }
    }
    beats.push(Beat::Send(body));
    beats
}

/// Plays the beats as a response body. It ends early, with an error, when the server stops.
pub(super) fn body(beats: Vec<Beat>, shared: Arc<Shared>) -> Body {
    let start = (VecDeque::from(beats), shared);
    Body::from_stream(stream::unfold(start, |(mut beats, shared)| async move {
        loop {
            let stop = shared.stop.clone();
            let wait = async {
                match beats.pop_front()? {
                    Beat::Send(text) if text.is_empty() => {}
                    Beat::Send(text) => return Some(Ok(Some(Bytes::from(text)))),
                    Beat::Pause(Duration::ZERO) => {}
                    Beat::Pause(pause) => tokio::time::sleep(pause).await,
                    Beat::Hang => shared.hang().await,
                    Beat::Cut => {
                        tokio::time::sleep(BEFORE_CUT).await;
                        return Some(Err(io::Error::other("cut by the script")));
                    }
                }
                Some(Ok::<_, io::Error>(None))
            };
            let item = tokio::select! {
                item = wait => item?,
                () = stop.cancelled() => Err(io::Error::other("the model server stopped")),
            };
            match item {
                Ok(None) => {}
                Ok(Some(bytes)) => return Some((Ok(bytes), (beats, shared))),
                Err(error) => return Some((Err(error), (VecDeque::new(), shared))),
            }
        }
    }))
}

/// The arguments of a call in two pieces, as real models stream them.
pub(super) fn halves(args: &str) -> [&str; 2] {
    let middle = args.char_indices().nth(args.len() / 2).map_or(args.len(), |(at, _)| at);
    args.split_at(middle).into()
}

/// A server-sent event with a name.
pub(super) fn event(name: &str, data: &serde_json::Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// A server-sent event without a name.
pub(super) fn data(data: &serde_json::Value) -> String {
    format!("data: {data}\n\n")
}
