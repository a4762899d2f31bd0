//! A client of a WebSocket door without an SDK: sends requests as they are given, and stores everything it receives, in
//! order.
//!
//! For tests without a runtime: it has its own thread, which also answers pings while the test does something else. It
//! does not interpret events; see [`crate::peer::frame`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long something may take on a busy machine; nothing waits this long when all is well.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests that may wait to be sent.
const OUTBOX: usize = 64;

/// A connection to `/ws`. It is closed when this is dropped.
#[derive(Debug)]
pub struct WsClient {
    /// Gone when it is time to leave.
    outbox: Option<mpsc::Sender<Message>>,
    frames: Receiver<Value>,
    thread: Option<JoinHandle<()>>,
    /// Requests that are answered with a stream.
    streams: BTreeSet<u64>,
    /// Answers that nobody has asked for yet, by request.
    answers: BTreeMap<u64, Value>,
    /// Received events that nobody has looked at yet.
    events: VecDeque<Value>,
    last: u64,
}

impl WsClient {
    /// Connects to a door on this machine; `query` is what follows the `?`.
    pub fn connect(port: u16, query: &str) -> Result<Self> {
        let url = format!("ws://127.0.0.1:{port}/ws?{query}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let connected = runtime.block_on(async {
            let stream = TcpStream::connect(("127.0.0.1", port)).await.context("connect")?;
            let opened = timeout(PATIENCE, client_async(&url, stream)).await.context("wait for the upgrade")?;
            anyhow::Ok(opened.with_context(|| format!("open {url}"))?.0)
        })?;
        let (outbox, asked) = mpsc::channel(OUTBOX);
        let (tx, frames) = channel();
        let thread = std::thread::Builder::new()
            .name("ws-client".to_owned())
            .spawn(move || runtime.block_on(carry(connected, asked, tx)))?;
        Ok(Self {
            outbox: Some(outbox),
            frames,
            thread: Some(thread),
            streams: BTreeSet::new(),
            answers: BTreeMap::new(),
            events: VecDeque::new(),
            last: 0,
        })
    }

    /// Sends a request, and does not wait for its [answer](Self::answer).
    pub fn begin(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.last += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params});
        let outbox = self.outbox.as_ref().context("it has left")?;
        outbox.blocking_send(Message::text(request.to_string())).context("the connection is closed")?;
        Ok(self.last)
    }

    /// Sends a request that is answered with a stream: what it tells is found among the [events](Self::event), and only
    /// an error is an answer.
    pub fn stream(&mut self, method: &str, params: &Value) -> Result<u64> {
        let request = self.begin(method, params)?;
        self.streams.insert(request);
        Ok(request)
    }

    /// Waits for the answer to a request: the frame with its `result` or its `error`.
    pub fn answer(&mut self, request: u64) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.answers.remove(&request) {
                Some(answer) => return Ok(answer),
                None => self.hear(deadline, "an answer")?,
            }
        }
    }

    /// A request and its answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let request = self.begin(method, params)?;
        self.answer(request)
    }

    /// The next event that it is told, whether in a stream of its own or as a notification.
    pub fn event(&mut self) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.events.pop_front() {
                Some(event) => return Ok(event),
                None => self.hear(deadline, "an event")?,
            }
        }
    }

    /// Closes the connection.
    pub fn leave(&mut self) {
        self.outbox = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok(); // a panic in there has failed the test by its own message
        }
    }

    /// Takes the next frame in. What is told in a stream and what is told to everybody are the same events.
    fn hear(&mut self, deadline: Instant, what: &str) -> Result<()> {
        let mut frame = match self.frames.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(frame) => frame,
            Err(RecvTimeoutError::Timeout) => bail!("{what} did not come in {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => bail!("the connection ended before {what} came"),
        };
        let request = frame["id"].as_u64();
        let is_streamed = request.is_some_and(|request| self.streams.contains(&request));
        let event = if is_streamed { frame.get_mut("result") } else { frame.pointer_mut("/params/event") };
        match (event.map(Value::take), request) {
            (Some(event), _) => self.events.push_back(event),
            (None, Some(request)) => self.answers.extend([(request, frame)]),
            (None, None) => {} // the end of a stream, which its last event told already
        }
        Ok(())
    }
}

impl Drop for WsClient {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Carries frames both ways until either end is gone.
async fn carry(mut socket: WebSocketStream<TcpStream>, mut asked: mpsc::Receiver<Message>, told: Sender<Value>) {
    loop {
        tokio::select! {
            message = asked.recv() => {
                let Some(message) = message else { break };
                if socket.send(message).await.is_err() {
                    break;
                }
            }
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    let Ok(frame) = serde_json::from_str(&text) else { break };
                    if told.send(frame).is_err() {
                        break;
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => break,
            },
        }
    }
    socket.close(None).await.ok(); // the other end may be gone
}
