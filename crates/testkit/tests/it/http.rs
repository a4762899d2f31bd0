//! A tiny HTTP client, so that the server is tested by something that is not itself.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use multitap_testkit::model::ModelServer;
use serde_json::Value;

/// What came back: the head, then the body with chunks joined, and whether it came whole.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) whole: bool,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The data of the server-sent events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }
}

pub(crate) fn post(server: &ModelServer, path: &str, body: &Value) -> Response {
    exchange(send(server, "POST", path, &body.to_string()))
}

pub(crate) fn get(server: &ModelServer, path: &str) -> Response {
    exchange(send(server, "GET", path, ""))
}

fn exchange(sent: io::Result<TcpStream>) -> Response {
    match sent {
        Ok(stream) => read(stream),
        Err(error) => panic!("cannot reach the model server: {error}"),
    }
}

pub(crate) fn send(server: &ModelServer, method: &str, path: &str, body: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(server.address())?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-api-key: secret\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )?;
    Ok(stream)
}

pub(crate) fn read(mut stream: TcpStream) -> Response {
    let mut bytes = Vec::new();
    let ended = stream.read_to_end(&mut bytes).is_ok();
    let text = String::from_utf8_lossy(&bytes);
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    let head = head.to_ascii_lowercase();
    let (body, whole) = if head.contains("transfer-encoding: chunked") { join(rest) } else { (rest.to_owned(), true) };
    Response { status, head, body, whole: whole && ended && status != 0 }
}

fn join(mut chunks: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        match usize::from_str_radix(length, 16) {
            Ok(0) => return (body, true),
            Ok(length) if rest.len() >= length + 2 => {
                body.push_str(&rest[..length]);
                chunks = &rest[length + 2..];
            }
            _ => break,
        }
    }
    (body, false)
}
