//! Plays one run of a case: writes, waits, and records every line with its time.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Case, Move, Stage, Wanted};
use crate::fixture::{Direction, END_OF_INPUT, Exit, Line};

/// Time limit for a line that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for the program to end after the end of its input.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// Maximum number of lines that are not recorded yet.
const QUEUE: usize = 1024;

/// A recorded run of a program: its arguments, its exit, and the lines of its pipes.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) args: Vec<String>,
    pub(super) exit: Exit,
    pub(super) lines: Vec<Line>,
}

pub(super) async fn run(stage: &Stage, case: &Case) -> Result<Run> {
    let args: Vec<String> = case.args.iter().map(|arg| stage.fill(arg)).collect();
    let mut command = stage.scratch.command(&stage.program);
    let stdin = if case.moves.is_empty() { Stdio::null() } else { Stdio::piped() };
    command.args(&args).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Command::from(command).kill_on_drop(true).spawn().context("start it")?;
    let (tx, heard) = mpsc::channel(QUEUE);
    let mut readers = JoinSet::new();
    if let Some(pipe) = child.stdout.take() {
        readers.spawn(read(pipe, Direction::Out, tx.clone()));
    }
    if let Some(pipe) = child.stderr.take() {
        readers.spawn(read(pipe, Direction::Err, tx));
    }
    let mut player = Player {
        stage,
        stdin: child.stdin.take(),
        child,
        heard,
        start: Instant::now(),
        lines: Vec::new(),
        last: None,
        kept: Vec::new(),
    };
    for step in &case.moves {
        player.play(step).await?;
    }
    let exit = player.end().await?;
    Ok(Run { args, exit, lines: player.lines })
}

async fn read(pipe: impl AsyncRead + Unpin, dir: Direction, tx: mpsc::Sender<(Instant, Direction, String)>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while let Ok(1..) = pipe.read_until(b'\n', &mut line).await {
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        if tx.send((Instant::now(), dir, text)).await.is_err() {
            return;
        }
        line.clear();
    }
}

struct Player<'a> {
    stage: &'a Stage,
    stdin: Option<ChildStdin>,
    child: Child,
    heard: mpsc::Receiver<(Instant, Direction, String)>,
    start: Instant,
    lines: Vec<Line>,
    /// The line that was waited for last.
    last: Option<Value>,
    /// The values that replace names.
    kept: Vec<(String, String)>,
}

impl Player<'_> {
    async fn play(&mut self, step: &Move) -> Result<()> {
        match step {
            Move::Send(line) => {
                let line = self.kept.iter().fold(self.stage.fill(line), |line, (name, text)| line.replace(name, text));
                self.send(&line).await
            }
            Move::Keep { name, at } => {
                let found = self.last.as_ref().and_then(|line| line.pointer(at)?.as_str().map(str::to_owned));
                let found = found.with_context(|| format!("no text at {at}: {}", self.tail()))?;
                let name = format!("{{{name}}}");
                self.kept.retain(|(kept, _)| *kept != name);
                self.kept.push((name, found));
                Ok(())
            }
            Move::Until(wanted) => self.until(*wanted).await,
            Move::UntilEnd => self.until_end(PATIENCE).await,
            Move::Answer(answer) => {
                let line = self.last.as_ref().map(answer).context("nothing to answer")?.to_string();
                self.send(&line).await
            }
            Move::UntilHanging => self.stage.server.until_hanging(PATIENCE).await,
            Move::Pause(pause) => {
                tokio::time::sleep(*pause).await;
                Ok(())
            }
            Move::Signal(signal) => self.signal(*signal),
        }
    }

    async fn send(&mut self, line: &str) -> Result<()> {
        self.catch_up();
        let stdin = self.stdin.as_mut().context("its input is closed")?;
        match stdin.write_all(format!("{line}\n").as_bytes()).await {
            Ok(()) => self.note(Instant::now(), Direction::In, line),
            Err(error) => self.note(Instant::now(), Direction::InError, &error.to_string()),
        }
        Ok(())
    }

    async fn until(&mut self, wanted: Wanted) -> Result<()> {
        match timeout(PATIENCE, self.hear_until(|line| wanted.is(line))).await {
            Ok(Some(line)) => self.last = Some(line),
            Ok(None) => bail!("it ended before {wanted:?}: {}", self.tail()),
            Err(_) => bail!("no {wanted:?} after {PATIENCE:?}: {}", self.tail()),
        }
        Ok(())
    }

    async fn until_end(&mut self, patience: Duration) -> Result<()> {
        let ended = timeout(patience, self.hear_until(|_| false)).await;
        ended.map(drop).with_context(|| format!("it did not end within {patience:?}: {}", self.tail()))
    }

    /// Records what it prints until that line on stdout, or until its end.
    async fn hear_until(&mut self, is_it: impl Fn(&Value) -> bool) -> Option<Value> {
        loop {
            let (at, dir, line) = self.heard.recv().await?;
            self.note(at, dir, &line);
            let line = serde_json::from_str(&line).unwrap_or(Value::Null);
            if dir == Direction::Out && is_it(&line) {
                return Some(line);
            }
        }
    }

    fn signal(&mut self, signal: i32) -> Result<()> {
        self.catch_up();
        let pid = self.child.id().context("it has ended")?;
        self.stage.scratch.command("kill").arg(format!("-{signal}")).arg(pid.to_string()).status()?;
        self.note(Instant::now(), Direction::Signal, &signal.to_string());
        Ok(())
    }

    /// Closes its input, notes its last words and how it ended.
    async fn end(&mut self) -> Result<Exit> {
        self.catch_up();
        if self.stdin.take().is_some() {
            self.note(Instant::now(), Direction::In, END_OF_INPUT);
        }
        self.stage.server.release();
        let killed = self.until_end(LAST_WORDS).await.is_err();
        if killed {
            self.note(Instant::now(), Direction::Note, "did not end by itself");
            self.child.start_kill().context("kill it")?;
        }
        let status = self.child.wait().await.context("wait for it")?;
        Ok(exit_of(status, killed))
    }

    /// Records the lines that have arrived, so that the recording is in the order of time.
    fn catch_up(&mut self) {
        while let Ok((at, dir, line)) = self.heard.try_recv() {
            self.note(at, dir, &line);
        }
    }

    fn note(&mut self, at: Instant, dir: Direction, line: &str) {
        let millis = at.saturating_duration_since(self.start).as_millis();
        let t = f64::from(u32::try_from(millis).unwrap_or(u32::MAX)) / 1000.0;
        self.lines.push(Line { t, dir, line: line.to_owned() });
    }

    fn tail(&self) -> String {
        let last = self.lines.iter().rev().take(5).rev();
        last.map(|line| format!("\n  {:?} {}", line.dir, line.line.chars().take(300).collect::<String>())).collect()
    }
}

fn exit_of(status: ExitStatus, killed: bool) -> Exit {
    match status.code() {
        Some(code) => Exit::Code(code),
        None if killed => Exit::Told("killed by the recorder".to_owned()),
        None => Exit::Told(status.to_string()),
    }
}
