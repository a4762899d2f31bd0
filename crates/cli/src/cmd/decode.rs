//! `multitap decode`: decodes an agent's recorded output lines on stdin to events on stdout.
//!
//! For bug reports, drift checks and tests. The session's id is the agent's own; events wait until a line contains
//! it.

use std::io::{self, BufWriter, Read as _, StdoutLock, Write as _};

use anyhow::Context as _;
use multitap_adapter::{Codec, End, decode_line, drafts};
use multitap_event::{Draft, EventKind, SessionId, Timestamp};
use multitap_process::{Line, LineBuffer, MAX_LINE};

use crate::args::DecodeArgs;
use crate::exit::{Exit, Problem};
use crate::out;
use crate::words::json_line;

/// Most events that wait for the session's id; then the stream counts as having none.
const WAITING: usize = 1000;
/// Session id of a stream without one.
const NAMELESS: &str = "recorded";
const READ: usize = 64 * 1024;

/// Decodes stdin to its end.
pub(crate) fn decode(args: &DecodeArgs) -> Result<Exit, Problem> {
    let Some(codec) = multitap_adapter::recorded(args.agent) else {
        return Err(Problem::usage(format!("this version cannot decode {}", args.agent)));
    };
    let mut decoder = Decoder { codec, keep_raw: args.raw, log: Log::new(out::buffered()) };
    match decoder.run() {
        Ok(()) => Ok(Exit::Completed),
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Completed),
        Err(error) => Err(error).context("decode").map_err(Problem::from),
    }
}

struct Decoder {
    codec: Box<dyn Codec>,
    keep_raw: bool,
    log: Log,
}

impl Decoder {
    fn run(&mut self) -> io::Result<()> {
        let mut stdin = io::stdin().lock();
        let mut lines = LineBuffer::new(MAX_LINE);
        let mut chunk = vec![0; READ];
        loop {
            let read = match stdin.read(&mut chunk) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match read {
                0 => lines.finish(),
                read => lines.push(&chunk[..read]),
            }
            while let Some(line) = lines.pop() {
                self.line(line)?;
            }
            if read == 0 {
                break;
            }
            self.log.flush()?;
        }
        let now = Timestamp::now();
        let step = self.codec.end(&End::InputEnded, now);
        self.log.tell(drafts(step, None, self.keep_raw, now))?;
        self.log.end()
    }

    fn line(&mut self, line: Line) -> io::Result<()> {
        let now = Timestamp::now();
        let (step, text) = decode_line(&mut *self.codec, line, now);
        if let Some(text) = &text {
            self.log.learn_from_line(text);
        }
        self.log.tell(drafts(step, text.as_deref(), self.keep_raw, now))
    }
}

/// Numbers events and writes them, once the session id is known.
struct Log {
    out: BufWriter<StdoutLock<'static>>,
    session: Option<SessionId>,
    waiting: Vec<Draft>,
    seq: u64,
}

impl Log {
    fn new(out: BufWriter<StdoutLock<'static>>) -> Self {
        Self { out, session: None, waiting: Vec::new(), seq: 0 }
    }

    fn learn_from_line(&mut self, line: &str) {
        if self.session.is_some() {
            return;
        }
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else { return };
        let id = ["session_id", "sessionId", "thread_id"].into_iter().find_map(|key| value.get(key)?.as_str());
        self.session = id.filter(|id| !id.is_empty()).map(SessionId::from);
    }

    fn tell(&mut self, drafts: Vec<Draft>) -> io::Result<()> {
        self.waiting.extend(drafts);
        if self.session.is_none() {
            let started = self.waiting.iter().find_map(|draft| match &draft.kind {
                EventKind::SessionStarted(start) => start.native_session_id.clone(),
                _ => None,
            });
            self.session = started.map(SessionId::from);
        }
        match self.session {
            None if self.waiting.len() < WAITING => Ok(()),
            _ => self.write(),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let session = self.session.get_or_insert_with(|| NAMELESS.into()).clone();
        for draft in self.waiting.drain(..) {
            self.seq += 1;
            self.out.write_all(json_line(&draft.stamp(session.clone(), self.seq))?.as_bytes())?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        self.write()?;
        self.flush()
    }
}
