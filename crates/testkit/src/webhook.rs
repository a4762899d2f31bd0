//! A webhook: records the requests that it gets, and answers as a test wants.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// Time limit for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum Reply {
    Status(u16),
    /// With a header.
    With(u16, &'static str, String),
    /// The request is read and never answered.
    Never,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: String,
    pub at: Instant,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// Listens until it is dropped.
#[derive(Debug)]
pub struct Webhook {
    port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Webhook {
    /// Listens at a free port. `reply` answers the first request, which is number 0, and all others.
    pub fn start(reply: impl Fn(usize) -> Reply + Send + 'static) -> Result<Self> {
        Self::start_at(0, reply)
    }

    pub fn start_at(port: u16, reply: impl Fn(usize) -> Reply + Send + 'static) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).context("listen")?;
        let port = listener.local_addr().context("the port")?.port();
        let (received, closing) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (shared, stop) = (received.clone(), closing.clone());
        let thread = std::thread::spawn(move || {
            // Connections that are never answered stay open.
            let mut unanswered = Vec::new();
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(request) = read(&stream) else { continue };
                let number = {
                    let mut received = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    received.push(request);
                    received.len() - 1
                };
                match reply(number) {
                    Reply::Status(status) => answer(&stream, status, ""),
                    Reply::With(status, name, value) => answer(&stream, status, &format!("{name}: {value}\r\n")),
                    Reply::Never => unanswered.push(stream),
                }
            }
        });
        Ok(Self { port, received, closing, thread: Some(thread) })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?key=in-the-url", self.port)
    }

    /// All requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Relaxed);
        // Wakes the listener; if it is gone, there is nobody to wake.
        TcpStream::connect(("127.0.0.1", self.port)).ok();
        self.thread.take().map(JoinHandle::join);
    }
}

fn read(stream: &TcpStream) -> Result<Received> {
    stream.set_read_timeout(Some(PATIENCE)).context("set the patience")?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).context("the request line")?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).context("a header")?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, length)| length.parse().ok()).unwrap_or_default();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).context("the body")?;
    Ok(Received { path, headers, body: String::from_utf8_lossy(&body).into_owned(), at: Instant::now() })
}

/// Whoever asked may be gone.
fn answer(mut stream: &TcpStream, status: u16, header: &str) {
    write!(stream, "HTTP/1.1 {status} X\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n").ok();
}
