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
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::codec::{Codec, End, Step};
use crate::line::{too_long, type_of};

/// How long the agent may leave its stdin unread before a command is refused.
const STDIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a child may live after it closed its stdout.
const AFTER_STDOUT: Duration = Duration::from_secs(2);
/// How often a silent child is looked at: its end does not show where something else holds its stdout open.
const LOOK: Duration = Duration::from_secs(1);
/// How long the rest of the output of a child that is gone may take.
const REST: Duration = Duration::from_millis(200);

/// What a line's step becomes on its way to the log. With `keep_raw` the line stands in exactly one of the drafts.
pub fn drafts(step: Step, line: Option<&str>, keep_raw: bool, now: Timestamp) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = step.events.into_iter().map(|kind| Draft::new(now, kind)).collect();
    if let Some(line) = line.filter(|_| keep_raw) {
        if drafts.is_empty() {
            drafts.push(Draft::new(now, EventKind::RawDelta { native_type: type_of(line).ok() }));
        }
        if let Some(first) = drafts.first_mut() {
            first.raw.push(Arc::from(line));
        }
    }
    drafts
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
                    let give_up = step.give_up;
                    let drafts = self.write(step, text.as_deref()).await;
                    self.early.extend(drafts);
                    if give_up {
                        return Err(self.gave_up().await);
                    }
                }
                Ok(Ok(None) | Err(_)) => return Err(self.died_at_start().await),
                Err(_) => {
                    let exit = self.child.stop(Patience::default()).await;
                    let message =
                        format!("{} was not up after {} s and was stopped", self.agent, patience.as_secs_f32());
                    return Err(self.error(AgentErrorKind::Timeout, message, &exit));
                }
            }
        }
        // An agent may have something to say before it says that it is there.
        let start = self.early.iter().position(|draft| matches!(draft.kind, EventKind::SessionStarted(_)));
        if let Some(at) = start {
            self.early[..=at].rotate_right(1);
        }
        Ok(())
    }

    /// The agent runs, but the session cannot begin.
    async fn gave_up(&mut self) -> AgentError {
        let exit = self.child.stop(Patience::default()).await;
        let told = std::mem::take(&mut self.early).into_iter().rev();
        let why = told.map(|draft| draft.kind).find_map(|kind| match kind {
            EventKind::Error(error) => Some(error),
            _ => None,
        });
        why.unwrap_or_else(|| {
            let message = format!("{} could not begin the session", self.agent);
            self.error(AgentErrorKind::ProtocolError, message, &exit)
        })
    }

    async fn died_at_start(&mut self) -> AgentError {
        match timeout(AFTER_STDOUT, self.child.wait()).await {
            Ok(exit) => {
                // The codec may know better what an early end means, such as a session that does not exist.
                let step = self.codec.end(End::Exited(&exit), Timestamp::now());
                let told = std::mem::take(&mut self.early).into_iter().map(|draft| draft.kind).chain(step.events);
                let why = told.filter_map(|kind| if let EventKind::Error(error) = kind { Some(error) } else { None });
                let known = why.into_iter().find(|error| error.kind != AgentErrorKind::ProcessExitError);
                known.map(|error| error.exited(exit.code)).unwrap_or_else(|| {
                    let message = format!("{} ended at its start with {exit}", self.agent);
                    self.error(AgentErrorKind::ProcessExitError, message, &exit)
                })
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
        let step = match over {
            Over::OwnerGone => {
                let exit = self.wind_down().await;
                self.codec.end(End::Stopped(&exit), Timestamp::now())
            }
            Over::StdoutEnded => match timeout(AFTER_STDOUT, self.child.wait()).await {
                Ok(exit) => self.codec.end(End::Exited(&exit), Timestamp::now()),
                Err(_) => {
                    let exit = self.child.stop(Patience::default()).await;
                    let message = format!("{} closed its output but kept running; it was stopped", self.agent);
                    let why = self.error(AgentErrorKind::ProtocolError, message, &exit);
                    self.codec.end(End::Broken { exit: &exit, why: &why }, Timestamp::now())
                }
            },
        };
        // An owner that is gone wants no last words.
        self.tell(drafts(step, None, false, Timestamp::now())).await.ok();
    }

    async fn carry(&mut self) -> Over {
        loop {
            let told = tokio::select! {
                line = self.child.stdout.next() => {
                    let Ok(Some(line)) = line else { return Over::StdoutEnded };
                    let (step, text) = self.decode(line);
                    self.write(step, text.as_deref()).await
                }
                command = self.commands.recv() => {
                    let Some(command) = command else { return Over::OwnerGone };
                    let step = self.codec.encode(command, Timestamp::now());
                    self.write(step, None).await
                }
                () = self.events.closed() => return Over::OwnerGone,
                () = sleep(LOOK) => {
                    if self.is_gone().await {
                        self.take_rest().await;
                        return Over::StdoutEnded;
                    }
                    continue;
                }
            };
            if self.tell(told).await.is_err() {
                return Over::OwnerGone;
            }
        }
    }

    /// Whether the program has ended. Looks, and does not wait.
    async fn is_gone(&mut self) -> bool {
        timeout(Duration::ZERO, self.child.wait()).await.is_ok() || self.child.pid().is_none()
    }

    /// Passes on what a program that is gone has left in the pipe.
    async fn take_rest(&mut self) {
        while let Ok(Ok(Some(line))) = timeout(REST, self.child.stdout.next()).await {
            if self.pass_on(line).await.is_err() {
                return;
            }
        }
    }

    /// The owner let go: end the running turn, ask the child to end, and pass on what it still has to say.
    async fn wind_down(&mut self) -> Exit {
        let mut step = self.codec.encode(Command::Cancel, Timestamp::now());
        for line in std::mem::take(&mut step.lines) {
            // A child that takes no more lines is stopped all the same.
            self.child.stdin.write(line, Duration::ZERO).await.ok();
        }
        // That there was nothing to cancel is not worth telling.
        step.events.retain(|kind| !matches!(kind, EventKind::Error(_)));
        self.tell(drafts(step, None, false, Timestamp::now())).await.ok();
        self.child.stdin.close();
        let deadline = Instant::now() + Patience::default().after_eof;
        while let Ok(Ok(Some(line))) = timeout_at(deadline, self.child.stdout.next()).await {
            if self.pass_on(line).await.is_err() {
                break;
            }
        }
        let after_eof = deadline.saturating_duration_since(Instant::now()) + REST;
        let patience = Patience { after_eof, ..Patience::default() };
        let exit = self.child.stop(patience).await;
        self.take_rest().await;
        exit
    }

    /// A line of a child that is told nothing any more.
    async fn pass_on(&mut self, line: Line) -> Result<(), OwnerGone> {
        let (step, text) = self.decode(line);
        self.tell(drafts(step, text.as_deref(), self.keep_raw, Timestamp::now())).await
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
