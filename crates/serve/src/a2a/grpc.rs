//! gRPC: the service of 1.0, over HTTP/2. A request has one message, an answer one or many and then a status.
//!
//! An operation does what it does on the other bindings; only its messages are protobuf, and what they have in headers
//! is metadata here.

mod status;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;
use multitap_a2a::grpc::{GrpcCall, SERVICE, write_update};
use multitap_a2a::{Dialect, Error};
use multitap_hub::STUCK;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use self::status::{Code, Status};
use super::frame::Form;
use super::head::{Params, RequestHead};
use super::service::{Answer, Item, Stream};
use crate::guard::Caller;
use crate::http::{Shared, problem};

const MEDIA_TYPE: &str = "application/grpc";
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Longest deadline. Beyond it a call has none.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// Most bytes of messages that are sent at once, unless one is longer.
const CHUNK: usize = 64 * 1024;
/// Most bytes of a refusal that are read for its message.
const REFUSAL: usize = 64 * 1024;

/// The path of its methods.
pub(super) fn route() -> String {
    format!("/{SERVICE}/{{method}}")
}

/// `POST /lf.a2a.v1.A2AService/METHOD`.
pub(super) async fn call(
    State(door): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(method): Path<String>,
    Query(params): Query<Params>,
    version: Version,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let head = RequestHead { headers: &headers, params: &params };
    if version < Version::HTTP_2 {
        return problem(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2, here without TLS (h2c)");
    }
    if !is_grpc(&headers) {
        let why = format!("a gRPC request is sent as Content-Type: {MEDIA_TYPE}");
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, &why);
    }
    let mut response = match answer(&door, caller, head, &method, body).await {
        Ok(response) => response,
        Err(status) => status.response(),
    };
    head.confirm_extension(&mut response);
    response
}

async fn answer(
    door: &Shared,
    caller: Caller,
    head: RequestHead<'_>,
    method: &str,
    body: Bytes,
) -> Result<Response, Status> {
    let unknown = || Status::new(Code::Unimplemented, format!("there is no method {SERVICE}/{method}"));
    let operation = GrpcCall::find(method).ok_or_else(unknown)?;
    let encoding = head.headers.get(ENCODING).map_or(Ok("identity"), |value| value.to_str()).unwrap_or("?");
    if encoding != "identity" {
        return Err(Status::new(Code::Unimplemented, "compressed messages are not supported"));
    }
    let deadline = deadline(head.headers)?;
    // The service determines the dialect; a version that is neither is refused.
    head.version()?;
    let call = head.call(caller, Dialect::V1_0.into())?;
    let request = operation.read(message(&body)?)?;
    // A call may last as long as a turn.
    drop(body);
    let answered = in_time(deadline, door.a2a.answer(door, call, request)).await;
    match answered.ok_or_else(too_late)?? {
        Answer::Result(result) => {
            let message = operation.write(&result)?;
            Ok(respond(&message))
        }
        Answer::Stream(stream) | Answer::Command(stream) => Ok(respond_with(door, stream, deadline)),
    }
}

/// Whether a message is, or is to be, in gRPC with protobuf.
fn is_grpc(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(MEDIA_TYPE) || essence.eq_ignore_ascii_case("application/grpc+proto")
}

/// The only message of a request.
fn message(body: &[u8]) -> Result<&[u8], Status> {
    let invalid = |why: &str| Status::new(Code::InvalidArgument, why);
    let Some((&[flag, length @ ..], message)) = body.split_first_chunk::<PREFIX>() else {
        return Err(invalid("the request has no message"));
    };
    if flag != 0 {
        return Err(Status::new(Code::Unimplemented, "compressed messages are not supported"));
    }
    let length = u32::from_be_bytes(length) as usize;
    match message.len() {
        given if given < length => Err(invalid("the message is truncated")),
        given if given > length => Err(invalid("the request has more than one message")),
        _ => Ok(message),
    }
}

/// When the client stops waiting.
fn deadline(headers: &HeaderMap) -> Result<Option<Instant>, Status> {
    let Some(given) = headers.get(TIMEOUT) else { return Ok(None) };
    let read = given.to_str().ok().and_then(duration);
    let wrong = || Status::new(Code::InvalidArgument, "grpc-timeout: at most 8 digits and one of H, M, S, m, u, n");
    Ok(Some(read.ok_or_else(wrong)?).filter(|time| *time <= LONGEST).map(|time| Instant::now() + time))
}

/// Such as `5S` or `100m`.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let digits = text.strip_suffix(unit)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        'H' => Duration::from_secs(number * 60 * 60),
        'M' => Duration::from_secs(number * 60),
        'S' => Duration::from_secs(number),
        'm' => Duration::from_millis(number),
        'u' => Duration::from_micros(number),
        'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// What comes by the deadline, if there is one.
async fn in_time<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(at) => timeout_at(at, future).await.ok(),
        None => Some(future.await),
    }
}

fn too_late() -> Status {
    Status::new(Code::DeadlineExceeded, "the time that the client gave is over")
}

/// An answer of one message.
fn respond(message: &[u8]) -> Response {
    let mut bytes = Vec::with_capacity(PREFIX + message.len());
    push(&mut bytes, message);
    let (frames, received) = mpsc::channel(2);
    // There is room for both.
    frames.try_send(Frame::data(bytes.into())).ok();
    frames.try_send(Frame::trailers(Status::ok().headers())).ok();
    response(received)
}

/// An answer of many messages. A client that leaves them unread for too long is disconnected, and may come back with its
/// cursor.
fn respond_with(door: &Shared, stream: Stream, deadline: Option<Instant>) -> Response {
    let (frames, received) = mpsc::channel(1);
    let stop = door.stop.clone();
    door.tasks.spawn(async move {
        let status = tokio::select! {
            // First: when the door closes the stream ends too.
            biased;
            () = stop.cancelled() => Status::new(Code::Unavailable, "the host is shutting down"),
            () = frames.closed() => return,
            status = send(stream, deadline, &frames) => match status {
                Some(status) => status,
                None => return,
            },
        };
        timeout(STUCK, frames.send(Frame::trailers(status.headers()))).await.ok(); // the client may be gone
    });
    response(received)
}

/// Sends messages until the end of the stream. Returns its status, unless the client left or does not read.
async fn send(mut stream: Stream, deadline: Option<Instant>, frames: &mpsc::Sender<Frame<Bytes>>) -> Option<Status> {
    loop {
        let mut bytes = Vec::new();
        let Some(next) = in_time(deadline, stream.next()).await else { return Some(too_late()) };
        let Some(item) = next else { return Some(Status::ok()) };
        let mut end = write(&mut bytes, stream.form, &item).err();
        // Messages that come together are sent together.
        while end.is_none()
            && bytes.len() < CHUNK
            && let Some(item) = stream.try_next()
        {
            end = write(&mut bytes, stream.form, &item).err();
        }
        if !bytes.is_empty() {
            timeout(STUCK, frames.send(Frame::data(bytes.into()))).await.ok()?.ok()?;
        }
        if end.is_some() {
            return end;
        }
    }
}

fn write(bytes: &mut Vec<u8>, form: Form, item: &Item) -> Result<(), Status> {
    match item {
        Item::First(json) | Item::Artifact(json) => push(bytes, &write_update(json)?),
        Item::Frame(frame) => {
            let message = frame.protobuf(form.spelling);
            push(bytes, message.ok_or_else(|| Error::internal("an event cannot be sent as protobuf"))?);
        }
        Item::Failed(error) => return Err(error.into()),
    }
    Ok(())
}

fn push(bytes: &mut Vec<u8>, message: &[u8]) {
    // Messages are much shorter: bodies, lines and frames are bounded.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    bytes.push(0);
    bytes.extend(length.to_be_bytes());
    bytes.extend(message);
}

fn response(frames: mpsc::Receiver<Frame<Bytes>>) -> Response {
    ([(header::CONTENT_TYPE, MEDIA_TYPE)], Body::new(Frames(frames))).into_response()
}

/// A body with trailers.
struct Frames(mpsc::Receiver<Frame<Bytes>>);

impl HttpBody for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

/// Says in gRPC what was refused before it came here, such as by the guard: clients show no other body.
pub(crate) async fn in_kind(request: Request, next: Next) -> Response {
    let is_ours = request.version() >= Version::HTTP_2 && is_grpc(request.headers());
    let response = next.run(request).await;
    if !is_ours || is_grpc(response.headers()) || response.status().is_success() {
        return response;
    }
    let code = Code::of_http(response.status());
    let body = to_bytes(response.into_body(), REFUSAL).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    Status::new(code, body["error"]["message"].as_str().unwrap_or_default()).response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_a_unit_and_few_digits() {
        for (text, time) in [
            ("5S", Duration::from_secs(5)),
            ("100m", Duration::from_millis(100)),
            ("99999999n", Duration::from_nanos(99_999_999)),
            ("2H", Duration::from_secs(7200)),
            ("1M", Duration::from_secs(60)),
            ("0u", Duration::ZERO),
        ] {
            assert_eq!(duration(text), Some(time), "{text}");
        }
        for text in ["", "S", "5", "5s", "-5S", "+5S", "100000000S", "5.0S", "5 S", "5ü"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_is_one_message() {
        assert_eq!(message(&[0, 0, 0, 0, 2, 7, 8]).ok(), Some(&[7, 8][..]));
        assert_eq!(message(&[0, 0, 0, 0, 0]).ok(), Some(&[][..]));
        for (body, code) in [
            (&[][..], Code::InvalidArgument),
            (&[0, 0, 0, 0], Code::InvalidArgument),
            (&[0, 0, 0, 0, 2, 7], Code::InvalidArgument),
            (&[0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0], Code::InvalidArgument),
            (&[0, 255, 255, 255, 255, 7], Code::InvalidArgument),
            (&[1, 0, 0, 0, 1, 7], Code::Unimplemented),
        ] {
            assert_eq!(message(body).unwrap_err().code(), code as u8, "{body:?}");
        }
    }
}
