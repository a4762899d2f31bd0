//! The one loop that all agents share: lines from the child through the codec to the owner, commands back.
//!
//! Outward waits: a full event queue stops the reading, so back-pressure ends at the child's stdout. Inward waits a
//! bounded while and then says that the agent is not reading. Either end closing ends the loop, and the child.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{AgentEnd, AgentError, AgentErrorKind, AgentType, Command, Draft, EventKind, Timestamp};
use multitap_process::{Child, Exit, Line, Patience, StdinClosed};
use tempfile::TempPath;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use crate::codec::{Codec, End, Step};

/// How long the agent may leave its stdin unread before a command is refused.
const STDIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a child may live after it closed its stdout.
const AFTER_STDOUT: Duration = Duration::from_secs(2);
/// How much of a line that was not understood is told.
const SHOWN: usize = 64 * 1024;

/// What a line's step becomes on its way to the log. With `keep_raw` the line stands in exactly one of the drafts.
pub fn drafts(step: Step, line: Option<&str>, keep_raw: bool, now: Timestamp) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = step.events.into_iter().map(|kind| Draft::new(now, kind)).collect();
    if let Some(line) = line.filter(|_| keep_raw) {
        if drafts.is_empty() {
            let native_type = serde_json::from_str::<serde_json::Value>(line).ok();
            let native_type = native_type.and_then(|value| value.get("type")?.as_str().map(str::to_owned));
            drafts.push(Draft::new(now, EventKind::RawDelta { native_type }));
        }
        if let Some(first) = drafts.first_mut() {
            first.raw.push(Arc::from(line));
        }
    }
    drafts
}

/// The event for a line that is longer than we keep.
pub(crate) fn too_long(head: &str, bytes: u64) -> EventKind {
    EventKind::Unrecognized {
        line: head.to_owned(),
        reason: format!("line of {bytes} bytes is longer than {} bytes", multitap_process::MAX_LINE),
        bytes: Some(bytes),
    }
}

/// The event for a line nobody understands.
pub(crate) fn unrecognized(line: &str, reason: impl Into<String>) -> EventKind {
    let mut end = line.len().min(SHOWN);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = (end < line.len()).then_some(line.len() as u64);
    EventKind::Unrecognized { line: line[..end].to_owned(), reason: reason.into(), bytes }
}

/// One child, its codec, and the agent's end of the link.
pub(crate) struct Pump<C> {
    agent: AgentType,
    child: Child,
    codec: C,
    events: mpsc::Sender<Draft>,
    commands: mpsc::Receiver<Command>,
    keep_raw: bool,
    /// Told before the owner listens.
    early: Vec<Draft>,
    /// Held for the agent to read; gone with the pump.
    _files: Vec<TempPath>,
}

/// The owner of the session is gone.
struct OwnerGone;

/// Why the loop ended.
enum Over {
    StdoutEnded,
    OwnerGone,
}

impl<C: Codec> Pump<C> {
    pub(crate) fn new(
        agent: AgentType,
        child: Child,
        codec: C,
        end: AgentEnd,
        keep_raw: bool,
        files: Vec<TempPath>,
    ) -> Self {
        let AgentEnd { events, commands } = end;
        Self { agent, child, codec, events, commands, keep_raw, early: Vec::new(), _files: files }
    }

    /// Greets the agent and reads until it has shown that it is up.
    pub(crate) async fn wait_until_up(&mut self, patience: Duration) -> Result<(), AgentError> {
        let deadline = Instant::now() + patience;
        let step = self.codec.begin(Timestamp::now());
        let mut ready = step.ready;
        let drafts = self.write(step, None).await;
        self.early.extend(drafts);
        while !ready {
            match timeout_at(deadline, self.child.stdout.next()).await {
                Ok(Ok(Some(line))) => {
                    let (step, text) = self.decode(line);
                    ready = step.ready;
                    let drafts = self.write(step, text.as_deref()).await;
                    self.early.extend(drafts);
                }
                Ok(Ok(None) | Err(_)) => return Err(self.died_at_start().await),
                Err(_) => {
                    let exit = self.child.stop(Patience::default()).await;
                    let message =
                        format!("{} said nothing for {} s and was stopped", self.agent, patience.as_secs_f32());
                    return Err(self.error(AgentErrorKind::Timeout, message, &exit));
                }
            }
        }
        Ok(())
    }

    async fn died_at_start(&mut self) -> AgentError {
        match timeout(AFTER_STDOUT, self.child.wait()).await {
            Ok(exit) => {
                // The codec may know better what an early end means, such as a session that does not exist.
                let step = self.codec.end(End::Exited(&exit), Timestamp::now());
                let told = self.early.drain(..).map(|draft| draft.kind).chain(step.events);
                let told = told.filter_map(|kind| if let EventKind::Error(error) = kind { Some(error) } else { None });
                let message = format!("{} ended at its start with {exit}", self.agent);
                told.last().unwrap_or_else(|| self.error(AgentErrorKind::ProcessExitError, message, &exit))
            }
            Err(_) => {
                let exit = self.child.stop(Patience::default()).await;
                let message = format!("{} closed its output at its start and was stopped", self.agent);
                self.error(AgentErrorKind::ProtocolError, message, &exit)
            }
        }
    }

    fn error(&self, kind: AgentErrorKind, message: String, exit: &Exit) -> AgentError {
        let error = AgentError::new(kind, message).of(self.agent).exited(exit.code);
        if exit.stderr_tail.is_empty() { error } else { error.native(exit.stderr_tail.clone()) }
    }

    /// Carries lines and commands until either side is gone; then nothing of the child is left.
    #[tracing::instrument(name = "agent", skip_all, fields(agent = %self.agent))]
    pub(crate) async fn run(mut self) {
        let early = std::mem::take(&mut self.early);
        let over = match self.tell(early).await {
            Ok(()) => self.carry().await,
            Err(OwnerGone) => Over::OwnerGone,
        };
        let (exit, asked) = match over {
            Over::OwnerGone => (self.wind_down().await, true),
            Over::StdoutEnded => match timeout(AFTER_STDOUT, self.child.wait()).await {
                Ok(exit) => (exit, false),
                Err(_) => {
                    let exit = self.child.stop(Patience::default()).await;
                    let message = format!("{} closed its output but kept running; it was stopped", self.agent);
                    let error = self.error(AgentErrorKind::ProtocolError, message, &exit);
                    self.tell(vec![Draft::new(Timestamp::now(), EventKind::Error(error))]).await.ok();
                    (exit, true)
                }
            },
        };
        let now = Timestamp::now();
        let end = if asked { End::Stopped(&exit) } else { End::Exited(&exit) };
        let step = self.codec.end(end, now);
        // An owner that is gone wants no last words.
        self.tell(drafts(step, None, false, now)).await.ok();
    }

    async fn carry(&mut self) -> Over {
        loop {
            tokio::select! {
                line = self.child.stdout.next() => {
                    let Ok(Some(line)) = line else { return Over::StdoutEnded };
                    let (step, text) = self.decode(line);
                    let drafts = self.write(step, text.as_deref()).await;
                    if self.tell(drafts).await.is_err() {
                        return Over::OwnerGone;
                    }
                }
                command = self.commands.recv() => {
                    let Some(command) = command else { return Over::OwnerGone };
                    let step = self.codec.encode(command, Timestamp::now());
                    let drafts = self.write(step, None).await;
                    if self.tell(drafts).await.is_err() {
                        return Over::OwnerGone;
                    }
                }
            }
        }
    }

    /// The owner let go: ask the child to end, and pass on what it still has to say.
    async fn wind_down(&mut self) -> Exit {
        self.child.stdin.close();
        let deadline = Instant::now() + Patience::default().after_eof;
        while let Ok(Ok(Some(line))) = timeout_at(deadline, self.child.stdout.next()).await {
            let (step, text) = self.decode(line);
            let drafts = drafts(step, text.as_deref(), self.keep_raw, Timestamp::now());
            if self.tell(drafts).await.is_err() {
                break;
            }
        }
        self.child.stop(Patience::default()).await
    }

    fn decode(&mut self, line: Line) -> (Step, Option<String>) {
        match line {
            Line::Text(text) if text.trim().is_empty() => (Step::default(), None),
            Line::Text(text) => (self.codec.decode(&text, Timestamp::now()), Some(text)),
            Line::TooLong { head, bytes } => (Step::event(too_long(&head, bytes)), None),
        }
    }

    /// Writes a step's lines to the child; what it told comes back, with an error if the child does not read.
    async fn write(&mut self, mut step: Step, line: Option<&str>) -> Vec<Draft> {
        let now = Timestamp::now();
        let lines = std::mem::take(&mut step.lines);
        let mut drafts = drafts(step, line, self.keep_raw, now);
        for line in lines {
            let Err(refused) = self.child.stdin.write(line, STDIN_PATIENCE).await else { continue };
            let kind = match refused {
                StdinClosed::Closed => AgentErrorKind::ProtocolError,
                StdinClosed::NotReading => AgentErrorKind::Timeout,
            };
            let error =
                AgentError::new(kind, format!("{} did not take a command: {refused}", self.agent)).of(self.agent);
            drafts.push(Draft::new(now, EventKind::Error(error)));
            break;
        }
        drafts
    }

    async fn tell(&mut self, drafts: Vec<Draft>) -> Result<(), OwnerGone> {
        for draft in drafts {
            self.events.send(draft).await.map_err(|_| OwnerGone)?;
        }
        Ok(())
    }
}
