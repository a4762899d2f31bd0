//! A minimal HTTP client that sends requests byte by byte, also invalid ones, and shows responses as they are. One
//! request per connection; only to this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

/// Time limit for a response; nothing takes this long unless it fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where requests go.
#[derive(Debug, Clone)]
pub struct HttpClient {
    port: u16,
    headers: Vec<(String, String)>,
}

impl HttpClient {
    #[must_use]
    pub fn to(port: u16) -> Self {
        Self { port, headers: Vec::new() }
    }

    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A copy of the client with one more header on every request. It replaces an earlier one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends a request with any bytes as the body.
    pub fn send(&self, method: &str, path: &str, body: &[u8]) -> Result<Response> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).context("connect")?;
        stream.set_read_timeout(Some(PATIENCE)).context("set the patience")?;
        let given = |name: &str| self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !given("host") {
            head += &format!("Host: 127.0.0.1:{}\r\n", self.port);
        }
        if !given("content-length") && (method != "GET" || !body.is_empty()) {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "Connection: close\r\n\r\n";
        stream.write_all(head.as_bytes()).context("send the head")?;
        // A server that refuses a long body need not read it: the response says why.
        stream.write_all(body).ok();
        Response::read(stream)
    }

    pub fn get(&self, path: &str) -> Result<Response> {
        self.send("GET", path, b"")
    }

    /// Sends JSON.
    pub fn post(&self, path: &str, body: &Value) -> Result<Response> {
        let client = self.clone().with("Content-Type", "application/json");
        client.send("POST", path, body.to_string().as_bytes())
    }

    /// Calls a JSON-RPC method at `/`.
    pub fn call(&self, method: &str, params: &Value) -> Result<Response> {
        self.post("/", &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    }

    /// Sends a call and returns its whole answer, with `result` or `error`. A streamed answer must be one event.
    pub fn answer(&self, method: &str, params: &Value) -> Result<Value> {
        let response = self.call(method, params)?;
        if !response.is_stream() {
            return response.json();
        }
        let mut events = response.events()?;
        ensure!(events.len() == 1, "expected one answer, got {events:#?}");
        Ok(events.remove(0).json)
    }
}

/// A response, read as it comes.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    body: Body,
}

#[derive(Debug)]
struct Body {
    input: BufReader<TcpStream>,
    is_chunked: bool,
    /// Bytes left of the chunk, or of the whole body if its length is known.
    left: Option<usize>,
    over: bool,
}

/// One server-sent event.
#[derive(Debug, Clone, PartialEq)]
pub struct SseEvent {
    /// The `event:` line, which only errors of HTTP+JSON have.
    pub name: Option<String>,
    pub id: Option<String>,
    /// The data of the event, unchanged.
    pub data: String,
    pub json: Value,
}

impl Response {
    fn read(stream: TcpStream) -> Result<Self> {
        let mut input = BufReader::new(stream);
        let mut line = String::new();
        input.read_line(&mut line).context("read the status")?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.with_context(|| format!("no answer: {line:?}"))?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            input.read_line(&mut line).context("read the headers")?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let header = |name: &str| headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        let is_chunked = header("transfer-encoding") == Some("chunked");
        let left = header("content-length").and_then(|length| length.parse().ok());
        let body = Body { input, is_chunked, left, over: false };
        Ok(Self { status, headers, body })
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// The whole body.
    pub fn text(mut self) -> Result<String> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.body.next()? {
            bytes.push(byte);
        }
        String::from_utf8(bytes).context("the body is text")
    }

    pub fn json(self) -> Result<Value> {
        let text = self.text()?;
        serde_json::from_str(&text).with_context(|| format!("not JSON: {text}"))
    }

    /// The next event of a stream; `None` at its end. Skips comments.
    pub fn event(&mut self) -> Result<Option<SseEvent>> {
        let (mut name, mut id, mut data) = (None, None, None);
        loop {
            let Some(line) = self.body.line()? else { return Ok(None) };
            if let Some(value) = line.strip_prefix("event: ") {
                name = Some(value.to_owned());
            } else if let Some(value) = line.strip_prefix("id: ") {
                id = Some(value.to_owned());
            } else if let Some(value) = line.strip_prefix("data: ") {
                ensure!(data.is_none(), "an event has more than one line of data");
                data = Some(value.to_owned());
            } else if line.is_empty() {
                if let Some(data) = data.take() {
                    let json = serde_json::from_str(&data).with_context(|| format!("not JSON: {data}"))?;
                    return Ok(Some(SseEvent { name, id, data, json }));
                }
            } else if !line.starts_with(':') {
                bail!("unexpected line in a stream: {line}");
            }
        }
    }

    /// Reads the rest of a stream.
    pub fn events(mut self) -> Result<Vec<SseEvent>> {
        let mut events = Vec::new();
        while let Some(event) = self.event()? {
            events.push(event);
        }
        Ok(events)
    }
}

impl Body {
    fn line(&mut self) -> Result<Option<String>> {
        let mut bytes = Vec::new();
        while let Some(byte) = self.next()? {
            if byte == b'\n' {
                return Ok(Some(String::from_utf8(bytes).context("a stream is text")?));
            }
            bytes.push(byte);
        }
        ensure!(bytes.is_empty(), "truncated in the middle of a line: {:?}", String::from_utf8_lossy(&bytes));
        Ok(None)
    }

    fn next(&mut self) -> Result<Option<u8>> {
        if self.is_chunked && matches!(self.left, None | Some(0)) {
            self.next_chunk()?;
        }
        if self.over || self.left == Some(0) {
            return Ok(None);
        }
        let mut byte = [0];
        if self.input.read(&mut byte).context("read the body")? == 0 {
            ensure!(self.left.is_none(), "truncated in the middle of a body");
            return Ok(None);
        }
        self.left = self.left.map(|left| left - 1);
        Ok(Some(byte[0]))
    }

    fn next_chunk(&mut self) -> Result<()> {
        if self.over {
            return Ok(());
        }
        let mut line = String::new();
        // A line break ends a chunk.
        while line.trim().is_empty() {
            line.clear();
            ensure!(self.input.read_line(&mut line).context("read the body")? > 0, "truncated between two chunks");
        }
        let length = usize::from_str_radix(line.trim(), 16).with_context(|| format!("no length: {line:?}"))?;
        (self.left, self.over) = (Some(length), length == 0);
        Ok(())
    }
}
