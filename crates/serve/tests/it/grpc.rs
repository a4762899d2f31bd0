//! gRPC, and HTTP/2 under it: calls by hand, so that what no client library would send is refused too.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, Request, Response};
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use multitap_a2a::grpc::write_update;
use multitap_event::ClientRole;
use multitap_serve::{Access, Limits, Scheme, Tokens};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::http::Log;
use crate::live::{Live, event, soon, text, turn_ended, turn_started};
use crate::scene::{config, open, port, post, try_open};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const EMPTY_SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// A connection of HTTP/2.
struct Channel {
    port: u16,
    send: SendRequest<Bytes>,
    connection: JoinSet<Result<(), h2::Error>>,
}

/// An answer to the end.
#[derive(Debug)]
struct Answer {
    http: u16,
    headers: HeaderMap,
    messages: Vec<Vec<u8>>,
    trailers: HeaderMap,
}

impl Answer {
    /// A text in the trailers, or in the headers if nothing else came.
    fn text(&self, name: &str) -> &str {
        self.trailers.get(name).or(self.headers.get(name)).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The messages, but for results, which belong to no event.
    fn events(&self) -> Vec<Vec<u8>> {
        let artifact = 4 << 3 | 2;
        self.messages.iter().filter(|message| message.first() != Some(&artifact)).cloned().collect()
    }

    fn status(&self) -> &str {
        self.text("grpc-status")
    }
}

impl Channel {
    async fn to(port: u16) -> Self {
        Self::with(port, &Builder::new()).await
    }

    async fn with(port: u16, builder: &Builder) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (send, connection) = soon(builder.handshake(stream)).await.unwrap();
        let mut running = JoinSet::new();
        running.spawn(connection);
        Self { port, send: soon(send.ready()).await.unwrap(), connection: running }
    }

    /// Begins a call; the caller sends the body.
    async fn begin(&mut self, path: &str, headers: &[(&str, &str)]) -> (h2::client::ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::post(format!("http://127.0.0.1:{}{path}", self.port));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        soon(self.send.clone().ready()).await.unwrap().send_request(request.body(()).unwrap(), false).unwrap()
    }

    /// Sends a body, and returns the response as it begins.
    async fn post(&mut self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Response<RecvStream> {
        let (response, mut stream) = self.begin(path, headers).await;
        stream.send_data(body.into(), true).unwrap();
        soon(response).await.unwrap()
    }

    async fn call(&mut self, method: &str, message: &[u8]) -> Answer {
        self.call_with(method, &[], &framed(message)).await
    }

    async fn call_with(&mut self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let given = |name: &str| headers.iter().any(|(other, _)| *other == name);
        let usual = [("content-type", "application/grpc"), ("te", "trailers")];
        let headers: Vec<_> = usual.into_iter().filter(|(name, _)| !given(name)).chain(headers.to_vec()).collect();
        let path = format!("/lf.a2a.v1.A2AService/{method}");
        read(self.post(&path, &headers, body.to_vec()).await).await
    }

    async fn get(&mut self, path: &str) -> h2::client::ResponseFuture {
        let request = Request::get(format!("http://127.0.0.1:{}{path}", self.port)).body(()).unwrap();
        soon(self.send.clone().ready()).await.unwrap().send_request(request, true).unwrap().0
    }

    /// How the connection ended.
    async fn ended(&mut self) -> Result<(), h2::Error> {
        soon(self.connection.join_next()).await.unwrap().unwrap()
    }
}

async fn read(response: Response<RecvStream>) -> Answer {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(chunk) = soon(body.data()).await {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        bytes.extend_from_slice(&chunk);
    }
    let trailers = soon(body.trailers()).await.unwrap().unwrap_or_default();
    Answer { http: head.status.as_u16(), headers: head.headers, messages: messages(&bytes), trailers }
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), message].concat()
}

fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while let Some((&[0, a, b, c, d], rest)) = bytes.split_first_chunk::<5>() {
        let (message, rest) = rest.split_at(u32::from_be_bytes([a, b, c, d]) as usize);
        messages.push(message.to_vec());
        bytes = rest;
    }
    messages
}

/// A field of a message: its number, and its text or message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

/// A `SendMessageRequest`.
fn said(text: &str) -> Vec<u8> {
    let part = field(1, text.as_bytes());
    let message = [field(1, b"m"), vec![4 << 3, 1], field(5, &part)].concat();
    field(2, &message)
}

fn contains(message: &[u8], text: &str) -> bool {
    message.windows(text.len()).any(|bytes| bytes == text.as_bytes())
}

#[tokio::test]
async fn a_stream_has_the_same_events_as_on_other_bindings() {
    let (live, _session, mut agent) = Live::shared().await;
    let mut watching = live.client("?dialect=1.0").await;
    let mut channel = Channel::to(live.port()).await;
    let message = said("good morning");
    let (answer, ()) = tokio::join!(channel.call("SendStreamingMessage", &message), agent.answers(3));
    assert_eq!((answer.http, answer.status()), (200, "0"), "{answer:?}");
    assert_eq!(answer.headers["content-type"], "application/grpc");
    let is_last =
        |frame: &Value| event(frame).is_some_and(|it| it["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED");
    let told = watching.until(is_last).await;
    let same: Vec<_> = told.iter().filter_map(event).map(|event| write_update(&event.to_string()).unwrap()).collect();
    let same: Vec<_> = same.into_iter().filter(|message| !message.is_empty()).collect();
    assert_eq!(answer.events(), same, "{told:#?}");
    assert!(answer.messages.iter().any(|message| contains(message, "good morning 2")));
}

#[tokio::test]
async fn a_call_is_answered_by_one_message() {
    let (live, _session, mut agent) = Live::shared().await;
    let mut channel = Channel::to(live.port()).await;
    let message = said("good morning");
    let (answer, ()) = tokio::join!(channel.call("SendMessage", &message), agent.answers(1));
    assert_eq!((answer.status(), answer.messages.len()), ("0", 1), "{answer:?}");
    assert!(contains(&answer.messages[0], "good morning 0"));
    let listed = channel.call("ListTasks", &[]).await;
    assert_eq!((listed.status(), listed.messages.len()), ("0", 1), "{listed:?}");
    let card = channel.call("GetExtendedAgentCard", &[]).await;
    assert!(contains(&card.messages[0], &format!("127.0.0.1:{}", live.port())), "{card:?}");
}

/// A cursor, as `Last-Event-ID` in metadata, resumes after that event.
#[tokio::test]
async fn a_subscription_resumes_after_its_cursor() {
    let (live, session, mut agent) = Live::shared().await;
    let mut channel = Channel::to(live.port()).await;
    let message = said("one");
    let (first, ()) = tokio::join!(channel.call("SendStreamingMessage", &message), agent.answers(5));
    let listed = post(live.port(), "/", &json!({ "jsonrpc": "2.0", "id": 1, "method": "ListTasks" })).await.json();
    let task = field(2, listed["result"]["tasks"][0]["id"].as_str().unwrap().as_bytes());
    let last = session.last();
    let headers = [("content-type", "application/grpc"), ("last-event-id", "3"), ("a2a-version", "1.0")];
    let response = channel.post("/lf.a2a.v1.A2AService/SubscribeToTask", &headers, framed(&task)).await;
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while messages(&bytes).last().is_none_or(|message| !contains(message, &last.to_string())) {
        bytes.extend_from_slice(&soon(body.data()).await.unwrap().unwrap());
    }
    let (again, first) = (messages(&bytes), first.events());
    assert!(again.len() < first.len(), "not from the start");
    assert_eq!(again, first[first.len() - again.len()..]);
}

#[tokio::test]
async fn errors_have_a_code_a_message_and_details() {
    let (live, ..) = Live::shared().await;
    let mut channel = Channel::to(live.port()).await;
    let unknown = channel.call("GetTask", &field(2, "nö".as_bytes())).await;
    assert_eq!((unknown.http, unknown.status()), (200, "5"), "{unknown:?}");
    assert!(unknown.text("grpc-message").contains("n%C3%B6"), "{unknown:?}");
    assert!(!unknown.text("grpc-status-details-bin").is_empty(), "{unknown:?}");
    let body = framed(&field(2, b"t"));
    let grpc = "application/grpc";
    let (empty, broken) = (framed(&[]), framed(&[0x12]));
    let usual = ("content-type", grpc);
    for (method, header, body, status) in [
        ("GetTask", usual, &empty[..], "3"),
        ("GetTask", usual, &broken, "3"),
        ("GetTask", usual, &[], "3"),
        ("GetTask", usual, &[1, 0, 0, 0, 0], "12"),
        ("GetTask", ("grpc-encoding", "gzip"), &body, "12"),
        ("GetTask", ("a2a-version", "99.0"), &body, "9"),
        ("GetTask", ("grpc-timeout", "1"), &body, "3"),
        ("SubscribeToTask", ("last-event-id", "x"), &body, "3"),
        ("NoSuchMethod", usual, &body, "12"),
        ("message/send", usual, &body, "12"),
    ] {
        let answer = channel.call_with(method, &[header], body).await;
        assert_eq!((answer.http, answer.status()), (200, status), "{method} {header:?}: {answer:?}");
        assert!(!answer.text("grpc-message").is_empty(), "{answer:?}");
    }
    let other = channel.call_with("GetTask", &[("content-type", "application/grpc+json")], &body).await;
    assert_eq!(other.http, 415, "{other:?}");
    let old = post(live.port(), "/lf.a2a.v1.A2AService/GetTask", &json!({})).await;
    assert_eq!(old.status, 505, "{old:#?}");
    let health = channel.post("/grpc.health.v1.Health/Check", &[("content-type", grpc)], framed(&[])).await;
    assert_eq!(read(health).await.status(), "12");
}

#[tokio::test]
async fn the_guard_answers_in_kind() {
    let mut tokens = Tokens::default();
    tokens.add("con-1", ClientRole::Controller, None).unwrap();
    let door = open(Access { scheme: Scheme::of(tokens), ..Access::default() }).await;
    let mut channel = Channel::to(port(&door)).await;
    let refused = channel.call("ListTasks", &[]).await;
    assert_eq!((refused.http, refused.status()), (200, "16"), "{refused:?}");
    assert!(refused.text("grpc-message").contains("requires a token"), "{refused:?}");
    let body = framed(&field(2, b"t"));
    let wrong = channel.call_with("GetTask", &[("authorization", "Bearer other")], &body).await;
    assert_eq!(wrong.status(), "16", "{wrong:?}");
    let right = channel.call_with("GetTask", &[("authorization", "Bearer con-1")], &framed(&[])).await;
    assert_eq!(right.status(), "3", "it came to the service: {right:?}");
    for (name, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let foreign = channel.call_with("GetTask", &[("authorization", "Bearer con-1"), (name, value)], &body).await;
        assert_eq!(foreign.status(), "7", "{name}: {foreign:?}");
    }
    channel.port = 1;
    let rebound = channel.call_with("GetTask", &[("authorization", "Bearer con-1")], &body).await;
    assert_eq!(rebound.status(), "7", "the address is of another door: {rebound:?}");
}

#[tokio::test]
async fn a_deadline_ends_a_call_and_a_stream() {
    let (live, _session, mut agent) = Live::shared().await;
    let mut channel = Channel::to(live.port()).await;
    for method in ["SendStreamingMessage", "SendMessage"] {
        let answer = channel.call_with(method, &[("grpc-timeout", "300m")], &framed(&said("wait"))).await;
        assert_eq!(answer.status(), "4", "{method}: {answer:?}");
    }
    agent.hears_prompt().await;
}

#[tokio::test]
async fn a_door_that_stops_ends_streams_with_a_status() {
    let (live, _session, _agent) = Live::shared().await;
    let mut channel = Channel::to(live.port()).await;
    let headers = [("content-type", "application/grpc")];
    let body = framed(&said("wait"));
    let response = channel.post("/lf.a2a.v1.A2AService/SendStreamingMessage", &headers, body).await;
    let (answer, ()) = tokio::join!(read(response), live.door.stop());
    assert_eq!(answer.status(), "14", "{answer:?}");
    assert!(channel.ended().await.is_ok(), "closed in peace");
}

#[tokio::test]
async fn other_doors_are_there_over_http2_too() {
    let door = open(Access::default()).await;
    let mut channel = Channel::to(port(&door)).await;
    let card = read(soon(channel.get("/.well-known/agent-card.json").await).await.unwrap()).await;
    assert_eq!((card.http, &card.headers["content-type"]), (200, &"application/json".parse().unwrap()));
    assert_eq!(read(soon(channel.get("/ws").await).await.unwrap()).await.http / 100, 4);
}

/// A token is in no log, at any level, nor is a query.
#[tokio::test]
async fn headers_are_not_logged() {
    let log = Log::default();
    let door = open(Access::default()).await;
    // Tests that begin at the same time may switch off what this one has just switched on.
    while !log.text().contains("/lf.a2a.v1.A2AService/ListTasks") {
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(writer).finish();
        let _here = tracing::subscriber::set_default(subscriber);
        let mut channel = Channel::to(port(&door)).await;
        for name in ["authorization", "last-event-id", "cookie"] {
            channel.call_with("ListTasks?a=sesame", &[(name, "Bearer sesame")], &framed(&[])).await;
        }
    }
    let text = log.text();
    assert!(!text.contains("sesame"), "{text}");
}

#[tokio::test]
async fn streams_of_a_connection_are_bounded() {
    let door = open(Access::default()).await;
    let mut channel = Channel::to(port(&door)).await;
    let health = read(soon(channel.get("/healthz").await).await.unwrap()).await;
    assert_eq!(health.http, 200);
    assert_eq!(channel.send.current_max_send_streams(), 100);
}

/// Nothing at all, half a preface, half a head, or nothing after a request.
#[tokio::test]
async fn who_does_nothing_is_cut_off() {
    let limits =
        Limits { header_time: Duration::from_millis(200), unread: Duration::from_millis(200), ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    // A header block that goes on in a frame that never comes.
    let half = [&[0, 0, 1, 1, 0, 0, 0, 0, 1][..], &[0x82]].concat();
    for sent in [vec![], PREFACE[..20].to_vec(), PREFACE.to_vec(), [PREFACE, &EMPTY_SETTINGS, &half].concat()] {
        let mut stream = TcpStream::connect(("127.0.0.1", port(&door))).await.unwrap();
        stream.write_all(&sent).await.unwrap();
        let mut came = Vec::new();
        soon(stream.read_to_end(&mut came)).await.ok();
    }
    let mut channel = Channel::to(port(&door)).await;
    assert_eq!(read(soon(channel.get("/healthz").await).await.unwrap()).await.http, 200);
    assert!(channel.ended().await.is_ok(), "told to go, which is no error");
}

/// A client that makes no room for a response loses that stream; others of its connection go on.
#[tokio::test]
async fn a_stream_that_is_not_read_is_reset() {
    let limits = Limits { unread: Duration::from_millis(300), ..Limits::default() };
    let (live, _session, mut agent) = Live::shared_within(limits).await;
    let mut channel = Channel::with(live.port(), Builder::new().initial_connection_window_size(1_000_000)).await;
    let long = async {
        agent.hears_prompt().await;
        agent.tells(turn_started()).await;
        agent.tells(text(&"x".repeat(200_000))).await;
        agent.tells(turn_ended()).await;
    };
    let headers = [("content-type", "application/grpc")];
    let body = framed(&said("much"));
    let (response, ()) = tokio::join!(channel.post("/lf.a2a.v1.A2AService/SendMessage", &headers, body), long);
    let mut unread = response.into_body();
    let reset = soon(async {
        loop {
            match unread.data().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.reason(),
                None => return None,
            }
        }
    });
    assert_eq!(reset.await, Some(Reason::CANCEL));
    assert_eq!(read(soon(channel.get("/healthz").await).await.unwrap()).await.http, 200);
}

/// Requests that are cancelled as soon as they are made, as fast as can be.
#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let door = open(Access::default()).await;
    let mut stream = TcpStream::connect(("127.0.0.1", port(&door))).await.unwrap();
    let mut flood = [PREFACE, &EMPTY_SETTINGS].concat();
    for id in (1..20_001_u32).step_by(2) {
        // `:method: GET`, `:scheme: http`, `:path: /`, and the end of the request; then its cancellation.
        flood.extend([&[0, 0, 3, 1, 5][..], &id.to_be_bytes(), &[0x82, 0x86, 0x84]].concat());
        flood.extend([&[0, 0, 4, 3, 0][..], &id.to_be_bytes(), &8_u32.to_be_bytes()].concat());
    }
    stream.write_all(&flood).await.ok(); // it may be closed before the end
    // Well before the connection would be idle for too long. What it said last may be lost.
    soon(stream.read_to_end(&mut Vec::new())).await.ok();
    let mut other = Channel::to(port(&door)).await;
    assert_eq!(read(soon(other.get("/healthz").await).await.unwrap()).await.http, 200);
}

#[tokio::test]
async fn bodies_and_heads_are_bounded() {
    let limits = Limits { body: 1000, ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let mut channel = Channel::to(port(&door)).await;
    let large = channel.call("GetTask", &[0; 1000]).await;
    assert_eq!((large.http, large.status()), (200, "8"), "{large:?}");
    let long = "x".repeat(60_000);
    let (response, mut stream) = channel.begin("/healthz", &[("x-long", &long), ("x-more", &long)]).await;
    stream.send_data(Bytes::new(), true).ok();
    let refused = match soon(response).await {
        Ok(response) => response.status().as_u16() == 431,
        Err(error) => error.is_reset() || error.is_go_away(),
    };
    assert!(refused);
}

/// gRPC does not say how long a body is. Those that are small by their end need no room.
#[tokio::test]
async fn small_bodies_of_unknown_length_hold_nobody_up() {
    let body_pause = Duration::from_secs(10);
    let limits = Limits { bodies: 100_000, body_pause, ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let mut slow = Channel::to(port(&door)).await;
    let mut pausing = Vec::new();
    for _ in 0..4 {
        let (response, mut stream) = slow.begin("/nowhere", &[]).await;
        stream.send_data(Bytes::from_static(b"x"), false).unwrap();
        pausing.push((response, stream));
    }
    sleep(Duration::from_millis(100)).await;
    let mut other = Channel::to(port(&door)).await;
    let answer = timeout(Duration::from_secs(5), other.call("GetTask", &[])).await;
    assert_eq!(answer.expect("it is not held up").status(), "3");
}

/// As many as may be under way at once wait on one connection, and on no other.
#[tokio::test]
async fn many_pausing_bodies_hold_up_their_own_connection_only() {
    let limits = Limits { body_pause: Duration::from_millis(500), ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let mut slow = Channel::to(port(&door)).await;
    let mut pausing = Vec::new();
    for _ in 0..40 {
        pausing.push(slow.begin("/nowhere", &[]).await);
    }
    let mut other = Channel::to(port(&door)).await;
    assert_eq!(other.call("GetTask", &[]).await.status(), "3");
    let mut statuses = Vec::new();
    for (response, _stream) in pausing {
        statuses.push(soon(response).await.unwrap().status().as_u16());
    }
    assert!(statuses.iter().all(|status| (400..600).contains(status)), "{statuses:?}");
    assert!(statuses.contains(&503), "some waited for their turn: {statuses:?}");
}
