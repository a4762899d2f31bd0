//! Peers: A2A and ACP clients of other projects, and a browser. Each is a process that a test controls by lines of JSON.
//!
//! The programs are in `peers/`; each drives an unmodified SDK. A test begins with `if
//! interop::peer(Kind::JsV1).is_none() { return }`, starts one, asks for the `card` of a server, and continues with
//! `send`, `stream`, `answer`, `get`, `cancel`, `resubscribe`. An ACP client has `connect`, `request`, `notify` and
//! `answer`. An A2A client:
//!
//! ```no_run
//! use multitap_testkit::{Scratch, peer::{Kind, Peer, frame}};
//! use serde_json::json;
//!
//! # fn main() -> anyhow::Result<()> {
//! let scratch = Scratch::without_model()?;
//! let mut peer = Peer::start(Kind::Python, &scratch)?;
//! peer.call("card", json!({"url": "http://127.0.0.1:1234"}))?;
//! let stream = peer.begin("stream", json!({"text": "write hello to a.txt"}))?;
//! let events = peer.rest(stream)?;
//! assert_eq!(frame::state(&events[events.len() - 1]), Some("input-required".to_owned()));
//! # Ok(())
//! # }
//! ```

pub mod browser;
pub mod frame;
mod kind;
mod sample;

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::Scratch;
use crate::wait;

pub(crate) use self::kind::on_path;
pub use self::kind::{Binding, Installed, Kind, acp_schema};
pub use self::sample::SampleAgent;

/// Time limit for a peer's answer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for a peer to end by itself.
const FAREWELL: Duration = Duration::from_secs(5);

/// A peer that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct Peer {
    kind: Kind,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    /// Messages for each call that nobody has looked at yet.
    said: BTreeMap<u64, VecDeque<Said>>,
    last: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call(u64);

/// A message of a peer about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// More may come.
    Event(Value),
    /// The last: its result.
    Done(Value),
    /// The last: its error, with `name`, `message`, and `code` and `data` where the SDK has them.
    Failed(Value),
}

impl Peer {
    pub fn start(kind: Kind, scratch: &Scratch) -> Result<Self> {
        let words = kind.start()?;
        let mut command = scratch.command(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("start {}", kind.title()))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let lines = lines(stdout.context("its output")?);
        let stderr = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.and_then(|mut pipe| pipe.read_to_end(&mut bytes).ok()); // everything before an error is enough
            String::from_utf8_lossy(&bytes).into_owned()
        });
        let stdin = child.stdin.take();
        Ok(Self { kind, child, stdin, lines, stderr: Some(stderr), said: BTreeMap::new(), last: 0 })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sends it a command; others may be running.
    pub fn begin(&mut self, what: &str, args: Value) -> Result<Call> {
        let Value::Object(mut line) = args else { bail!("the arguments of {what} are an object") };
        self.last += 1;
        line.insert("id".to_owned(), self.last.into());
        line.insert("do".to_owned(), what.into());
        self.said.insert(self.last, VecDeque::new());
        let stdin = self.stdin.as_mut().context("its stdin is open")?;
        let written = writeln!(stdin, "{}", Value::Object(line)).and_then(|()| stdin.flush());
        match written {
            Ok(()) => Ok(Call(self.last)),
            Err(error) => bail!("{} accepts no commands ({error}): {}", self.kind.title(), self.last_words()),
        }
    }

    /// Its next message about a call.
    pub fn next(&mut self, call: Call) -> Result<Said> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(said) = self.said.get_mut(&call.0).and_then(VecDeque::pop_front) {
                return Ok(said);
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.hear(&line)?,
                Err(RecvTimeoutError::Timeout) => {
                    bail!("{} said nothing for {PATIENCE:?}; waiting: {:#?}", self.kind.title(), self.said)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("{} is gone: {}", self.kind.title(), self.last_words())
                }
            }
        }
    }

    /// A command and its result.
    pub fn call(&mut self, what: &str, args: Value) -> Result<Value> {
        let call = self.begin(what, args)?;
        match self.all(call)? {
            (_, Ok(result)) => Ok(result),
            (_, Err(error)) => bail!("{what} by {} failed: {error}", self.kind.title()),
        }
    }

    /// Runs a command that must fail, and returns its error.
    pub fn refused(&mut self, what: &str, args: Value) -> Result<Value> {
        let call = self.begin(what, args)?;
        match self.all(call)? {
            (_, Err(error)) => Ok(error),
            (events, Ok(result)) => bail!("{what} by {} succeeded: {events:#?}, {result:#}", self.kind.title()),
        }
    }

    /// The next matching event of a stream; skips those before it.
    pub fn until(&mut self, call: Call, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut passed = Vec::new();
        loop {
            match self.next(call)? {
                Said::Event(event) if fits(&event) => return Ok(event),
                Said::Event(event) => passed.push(event),
                end => bail!("{} did not receive {what}: {passed:#?}, {end:#?}", self.kind.title()),
            }
        }
    }

    /// All remaining events of a stream.
    pub fn rest(&mut self, call: Call) -> Result<Vec<Value>> {
        match self.all(call)? {
            (events, Ok(_)) => Ok(events),
            (events, Err(error)) => bail!("{} failed after {events:#?}: {error}", self.kind.title()),
        }
    }

    /// The remaining events of a call, and its result or its error.
    fn all(&mut self, call: Call) -> Result<(Vec<Value>, Result<Value, Value>)> {
        let mut events = Vec::new();
        loop {
            match self.next(call)? {
                Said::Event(event) => events.push(event),
                Said::Done(result) => return Ok((events, Ok(result))),
                Said::Failed(error) => return Ok((events, Err(error))),
            }
        }
    }

    /// The events of a call that came in while something else was waited for.
    pub fn heard(&mut self, call: Call) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        while let Some(said) = self.said.get_mut(&call.0).and_then(VecDeque::pop_front) {
            match said {
                Said::Event(event) => events.push(event),
                end => bail!("{} ended after {events:#?}: {end:#?}", self.kind.title()),
            }
        }
        Ok(events)
    }

    /// Drops the connection of a stream, like a client that disappears.
    pub fn hang_up(&mut self, call: Call) -> Result<()> {
        self.call("hangUp", json!({"call": call.0})).map(drop)
    }

    fn hear(&mut self, line: &str) -> Result<()> {
        let not_ours = || format!("{} said {line:?}", self.kind.title());
        let mut line: Value = serde_json::from_str(line).with_context(not_ours)?;
        let id = line["id"].as_u64().with_context(not_ours)?;
        let mut take = |key: &str| line.get_mut(key).map(Value::take);
        let said = match (take("event"), take("error"), take("result")) {
            (Some(event), ..) => Said::Event(event),
            (_, Some(error), _) => Said::Failed(error),
            (.., result) => Said::Done(result.unwrap_or_default()),
        };
        let queue = self.said.get_mut(&id);
        ensure!(queue.is_some(), "a message about the unknown call {id}: {said:?}");
        queue.into_iter().for_each(|queue| queue.push_back(said.clone()));
        Ok(())
    }

    /// Ends it, and returns what it wrote to stderr.
    fn last_words(&mut self) -> String {
        self.end();
        self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default()
    }

    /// Closes its stdin, which ends it; kills it if that does not help.
    fn end(&mut self) {
        self.stdin = None;
        let ended = || self.child.try_wait().ok().flatten();
        if wait::until_blocking("the peer to end", FAREWELL, ended).is_err() {
            self.child.kill().ok(); // it may have ended meanwhile
        }
        self.child.wait().ok(); // fails if it was waited for already
    }
}

/// The lines that a program prints, as they come.
fn lines(stdout: ChildStdout) -> Receiver<String> {
    let (tx, lines) = channel();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.try_for_each(|line| tx.send(line)).ok(); // nobody listens any more
    });
    lines
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.end();
    }
}
