//! The least that could be done: servers that write frames of the same size, and keep nothing.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::IntoResponse as _;
use axum::routing::post;
use futures_util::stream;
use multitap_a2a::{Encoding, Message, Part, Role, StatusUpdate, TaskState, TaskStatus, Update};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::Outcome;

/// What makes this program the server of streams.
pub(crate) const WORD: &str = "__least";
/// What makes it the server of web sockets.
pub(crate) const SOCKETS: &str = "__least-sockets";
/// Most frames in one write to a web socket.
const AT_A_TIME: usize = 64;

pub(crate) async fn run() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let router = Router::new().route("/", post(answer));
    Ok(axum::serve(listener, router).await?)
}

async fn answer(body: Bytes) -> axum::response::Response {
    let events = asked(&body);
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

/// The number of events that a request asks for.
fn asked(body: &[u8]) -> u64 {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = request.pointer("/params/message/parts/0/text").and_then(Value::as_str).unwrap_or_default();
    text.parse().unwrap_or(1)
}

/// Writes each burst to all sockets, each frame encoded once; the client that asked gets it when all have it.
pub(crate) async fn run_sockets() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let sockets: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    loop {
        let (mut stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (head, body) = request(&mut stream).await?;
        if let Some(key) = header(&head, "sec-websocket-key") {
            let accept = derive_accept_key(key.as_bytes());
            let answer = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: {accept}\r\n\r\n"
            );
            stream.write_all(answer.as_bytes()).await?;
            sockets.lock().map_err(|_| "a lock")?.push(stream);
            continue;
        }
        let events = asked(&body);
        let frames: Arc<Vec<Bytes>> = Arc::new((1..=events).map(|number| Bytes::from(socket_frame(number))).collect());
        let open = std::mem::take(&mut *sockets.lock().map_err(|_| "a lock")?);
        let mut writers = JoinSet::new();
        for mut socket in open {
            let frames = frames.clone();
            writers.spawn(async move {
                for some in frames.chunks(AT_A_TIME) {
                    socket.write_all(&some.concat()).await?;
                }
                Ok::<_, std::io::Error>(socket)
            });
        }
        let open: Vec<TcpStream> = writers.join_all().await.into_iter().collect::<Result<_, _>>()?;
        sockets.lock().map_err(|_| "a lock")?.extend(open);
        let said = frame(1).repeat(usize::try_from(events)?);
        stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{said}").as_bytes()).await?;
    }
}

/// A request's head and body.
async fn request(stream: &mut TcpStream) -> Outcome<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Err("half a request".into());
        }
        let text = String::from_utf8_lossy(&read);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = header(head, "content-length").map_or(Ok(0), str::parse::<usize>)?;
        if body.len() >= length {
            return Ok((head.to_owned(), body.as_bytes().to_vec()));
        }
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)))
        .map(|(_, v)| v)
}

/// A frame as the door broadcasts it, as a web socket's text message.
fn socket_frame(number: u64) -> Vec<u8> {
    let text = frame(number);
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    let mut message = vec![0x81, 126];
    message.extend(length.to_be_bytes());
    message.extend(&text.as_bytes()[..usize::from(length)]);
    message
}
