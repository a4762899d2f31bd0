//! The loop that runs an agent: lines of its process go through the codec to the owner, and commands go back.
//!
//! One loop serves agents with one process per session ([`Pump::run`]) and agents with one process per turn
//! ([`Pump::run_turns`]). A full event queue stops the reading, so back-pressure reaches the process's stdout. A
//! process that does not read its stdin, prints nothing, or does not end in time, is stopped: nothing may block the
//! session.

mod start;
mod turns;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    AgentEnd, AgentError, AgentErrorKind, AgentType, COMMAND_QUEUE, Command, Draft, EditReview, EventKind,
    SessionConfig, SessionEndReason, Timestamp,
};
use multitap_process::{Child, Exit, Line, Moment, Patience, StdinClosed};
use tempfile::TempPath;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::codec::{Codec, End, Step, decode_line};
use crate::line::type_of;

/// How long the agent may leave its stdin unread before a command is refused.
const STDIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a process may live after it closed its stdin.
const AFTER_STDIN: Duration = Duration::from_secs(2);
/// How long a process may live after it closed its stdout.
const AFTER_STDOUT: Duration = Duration::from_secs(2);
/// How long a turn may go on after it was cancelled.
const AFTER_CANCEL: Duration = Duration::from_secs(10);
/// How long the process of a turn may live after the turn has ended.
const AFTER_TURN: Duration = Duration::from_secs(5);
/// Interval at which a silent process is checked: its end is not visible while a descendant holds its stdout open.
const CHECK: Duration = Duration::from_secs(1);
/// Time limit for reading what a dead process has left in its stdout.
const REST: Duration = Duration::from_millis(200);

/// Turns a line's step into drafts for the log. With `keep_raw` exactly one of the drafts has the line.
pub fn drafts(step: Step, line: Option<&str>, keep_raw: bool, now: Timestamp) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = step.events.into_iter().map(|kind| Draft::new(now, kind)).collect();
    if let Some(line) = line.filter(|_| keep_raw) {
        keep_line(&mut drafts, line, now);
    }
    drafts
}

/// Puts a native line into the first of its drafts. A document that was never split consists of several lines.
pub(crate) fn keep_line(drafts: &mut Vec<Draft>, line: &str, now: Timestamp) {
    if drafts.is_empty() {
        drafts.push(Draft::new(now, EventKind::RawDelta { native_type: type_of(line).ok().map(Into::into) }));
    }
    if let Some(first) = drafts.first_mut() {
        first.raw.extend(line.lines().filter(|line| !line.trim().is_empty()).map(Arc::from));
    }
}

/// How long a process of the agent lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Session,
    /// Each turn has its own process, which reads its prompt and no commands.
    Turn,
}

/// Runs the processes of one session, with their codec and the agent's end of the link.
pub(crate) struct Pump<C> {
    agent: AgentType,
    codec: C,
    lifetime: Lifetime,
    events: mpsc::Sender<Draft>,
    commands: mpsc::Receiver<Command>,
    reviews: mpsc::Receiver<EditReview>,
    keep_raw: bool,
    start_timeout: Duration,
    /// Events from before the owner listens.
    early: Vec<Draft>,
    /// Whether the owner was told that the agent does not read its stdin.
    stuck_reported: bool,
    limit: Option<Limit>,
    /// The time of the last prompt: processes started since then belong to the turn.
    turn_began: Option<Moment>,
    /// Commands for the turn after the one whose process still runs.
    waiting: VecDeque<Command>,
    /// Files that the agent reads. They are removed with the pump.
    _files: Vec<TempPath>,
}

/// A deadline for a step of a process; beyond it, the process is stopped.
#[derive(Debug, Clone, Copy)]
struct Limit {
    at: Instant,
    overdue: Overdue,
}

impl Limit {
    fn after(time: Duration, overdue: Overdue) -> Self {
        Self { at: Instant::now() + time, overdue }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overdue {
    /// The process must write its first line.
    Output,
    /// The process must end a cancelled turn.
    TurnEnd,
    /// The process must exit after the end of its turn.
    Exit,
}

struct OwnerGone;

enum LoopEnd {
    OwnerGone,
    /// The process closed its stdout, or is gone.
    StdoutEnded,
    StdinClosed,
    /// The codec asked for it.
    Stopped,
    Overdue(Overdue),
}

impl<C: Codec> Pump<C> {
    pub(crate) fn new(
        agent: AgentType,
        codec: C,
        lifetime: Lifetime,
        end: AgentEnd,
        config: &SessionConfig,
        files: Vec<TempPath>,
    ) -> Self {
        let AgentEnd { events, commands, reviews } = end;
        Self {
            agent,
            codec,
            lifetime,
            events,
            commands,
            reviews,
            keep_raw: config.keep_raw,
            start_timeout: config.start_timeout,
            early: Vec::new(),
            stuck_reported: false,
            limit: None,
            turn_began: None,
            waiting: VecDeque::new(),
            _files: files,
        }
    }

    /// Reports a warning about this start to the owner.
    pub(crate) fn warn(&mut self, warning: Option<AgentError>) {
        self.early.extend(warning.map(|warning| Draft::new(Timestamp::now(), EventKind::Error(warning))));
    }

    /// Runs a process that lives as long as the session, until it or the owner is gone; then all its processes have
    /// ended.
    #[tracing::instrument(name = "agent", skip_all, fields(agent = %self.agent))]
    pub(crate) async fn run(mut self, mut child: Child) {
        let early = std::mem::take(&mut self.early);
        let over = match self.send(early).await {
            Ok(()) => self.carry(&mut child).await,
            Err(OwnerGone) => LoopEnd::OwnerGone,
        };
        let ended = self.conclude(&mut child, over).await;
        let timed_out = is_timeout(&ended);
        self.end_session(&ended, timed_out).await;
    }

    async fn end_session(&mut self, end: &End, timed_out: bool) {
        let mut step = self.codec.end(end, Timestamp::now());
        for kind in &mut step.events {
            if let EventKind::SessionEnded(end) = kind
                && timed_out
                && end.reason != SessionEndReason::Completed
            {
                end.reason = SessionEndReason::Timeout;
            }
        }
        self.report(step).await.ok(); // An owner that is gone needs no report.
    }

    /// Carries lines and commands until the process or the owner is gone, or the process must be stopped.
    async fn carry(&mut self, child: &mut Child) -> LoopEnd {
        loop {
            match self.check_stdin(child).await {
                Ok(None) => {}
                Ok(Some(over)) => return over,
                Err(OwnerGone) => return LoopEnd::OwnerGone,
            }
            let limit = self.limit;
            let sent = tokio::select! {
                line = child.stdout.next() => match line {
                    Ok(Some(line)) => self.on_line(child, line).await,
                    Ok(None) | Err(_) => return LoopEnd::StdoutEnded,
                },
                command = self.commands.recv(), if self.waiting.len() < COMMAND_QUEUE => match command {
                    Some(command) => match self.on_command(child, command).await {
                        Ok(true) => return LoopEnd::Stopped,
                        Ok(false) => Ok(()),
                        Err(OwnerGone) => Err(OwnerGone),
                    },
                    None => Err(OwnerGone),
                },
                Some(EditReview { decide, reply, .. }) = self.reviews.recv() => {
                    reply.send(self.codec.edited(&decide)).ok(); // Whoever asked has gone: nothing was settled.
                    Ok(())
                }
                () = self.events.closed() => Err(OwnerGone),
                overdue = reached(limit) => return LoopEnd::Overdue(overdue),
                () = sleep(CHECK) => {
                    if is_gone(child).await {
                        self.take_rest(child).await;
                        return LoopEnd::StdoutEnded;
                    }
                    Ok(())
                }
            };
            if sent.is_err() {
                return LoopEnd::OwnerGone;
            }
        }
    }

    async fn on_line(&mut self, child: &mut Child, line: Line) -> Result<(), OwnerGone> {
        self.limit = self.limit.filter(|limit| limit.overdue != Overdue::Output);
        let (step, text) = self.decode(line);
        let drafts = self.write(child, step, text.as_deref()).await;
        self.send_from(child, drafts).await
    }

    /// Hands a command to the agent. Returns whether the process is to be stopped.
    async fn on_command(&mut self, child: &mut Child, command: Command) -> Result<bool, OwnerGone> {
        let is_prompt = matches!(command, Command::Prompt(_));
        if self.lifetime == Lifetime::Turn && (is_prompt || !self.waiting.is_empty()) {
            // The turn is over but its process still runs: the command is for the next turn.
            self.waiting.push_back(command);
            return Ok(false);
        }
        if is_prompt {
            self.turn_began = Some(Moment::now());
        }
        let is_cancel = command == Command::Cancel;
        let step = self.codec.encode(command, Timestamp::now());
        let stop = step.stop;
        // If there is nothing to cancel, the codec only reports that.
        let is_refused = step.events.iter().any(|kind| matches!(kind, EventKind::Error(_)));
        if self.lifetime == Lifetime::Session && is_cancel && !is_refused {
            self.limit.get_or_insert_with(|| Limit::after(AFTER_CANCEL, Overdue::TurnEnd));
        }
        let drafts = self.write(child, step, None).await;
        self.send_from(child, drafts).await?;
        Ok(stop)
    }

    /// Sends events of a running process. The end of a turn starts another time limit.
    async fn send_from(&mut self, child: &mut Child, drafts: Vec<Draft>) -> Result<(), OwnerGone> {
        if drafts.iter().any(|draft| matches!(draft.kind, EventKind::TurnCompleted(_))) {
            match self.lifetime {
                Lifetime::Turn => self.limit = Some(Limit::after(AFTER_TURN, Overdue::Exit)),
                Lifetime::Session if self.limit.take().is_some() => {
                    // When a turn is reported as cancelled, its commands must have ended. Some agents leave them
                    // running.
                    if let (Some(since), Some(variable)) = (self.turn_began, self.codec.command_variable()) {
                        child.end_commands(since, variable).await;
                    }
                }
                Lifetime::Session => {}
            }
        }
        self.send(drafts).await
    }

    /// Reports once that the agent does not read its stdin. A process that closed it cannot go on.
    async fn check_stdin(&mut self, child: &mut Child) -> Result<Option<LoopEnd>, OwnerGone> {
        if self.lifetime == Lifetime::Turn {
            return Ok(None);
        }
        let is_stuck = child.stdin.stuck_for().is_some_and(|time| time >= STDIN_PATIENCE);
        if is_stuck && !self.stuck_reported {
            self.send(vec![self.refused(StdinClosed::NotReading)]).await?;
        }
        self.stuck_reported = is_stuck;
        // A process that has just exited gets no such report.
        if child.stdin.is_broken() && timeout(REST, child.wait()).await.is_err() {
            self.send(vec![self.refused(StdinClosed::Closed)]).await?;
            return Ok(Some(LoopEnd::StdinClosed));
        }
        Ok(None)
    }

    /// Ends what is left of the process.
    async fn conclude(&mut self, child: &mut Child, over: LoopEnd) -> End {
        let (agent, start_timeout) = (self.agent, self.start_timeout.as_secs_f32());
        match over {
            LoopEnd::OwnerGone if self.lifetime == Lifetime::Session => End::Stopped(self.wind_down(child).await),
            LoopEnd::OwnerGone | LoopEnd::Stopped | LoopEnd::Overdue(Overdue::Exit) => {
                End::Stopped(self.stop(child).await)
            }
            LoopEnd::StdoutEnded => self.exited(child, AFTER_STDOUT, "output").await,
            LoopEnd::StdinClosed => {
                let deadline = Instant::now() + AFTER_STDIN;
                self.pass_on_until(child, || deadline).await;
                self.exited(child, REST, "input").await
            }
            LoopEnd::Overdue(overdue) => {
                let exit = self.stop(child).await;
                let message = match overdue {
                    Overdue::Output => format!("{agent} reported nothing for {start_timeout} s and was stopped"),
                    Overdue::TurnEnd | Overdue::Exit => {
                        let patience = AFTER_CANCEL.as_secs();
                        format!("{agent} continued a cancelled turn for {patience} s and was stopped")
                    }
                };
                let why = self.error(AgentErrorKind::Timeout, message, &exit);
                End::Broken { exit, why }
            }
        }
    }

    /// Waits for the end of a process that closed that pipe, and ends it if it continues.
    async fn exited(&mut self, child: &mut Child, patience: Duration, pipe: &str) -> End {
        if let Ok(exit) = timeout(patience, child.wait()).await {
            tracing::debug!(code = exit.code, "exited");
            return End::Exited(exit);
        }
        let exit = child.stop(Patience::default()).await;
        tracing::debug!(code = exit.code, closed = pipe, "stopped");
        let message = format!("{} closed its {pipe} but kept running; it was stopped", self.agent);
        let why = self.error(AgentErrorKind::ProtocolError, message, &exit);
        End::Broken { exit, why }
    }

    /// Stops a process at once, and passes on its last output.
    async fn stop(&mut self, child: &mut Child) -> Exit {
        let exit = child.stop(Patience { after_eof: Duration::ZERO, ..Patience::default() }).await;
        tracing::debug!(code = exit.code, "stopped");
        self.take_rest(child).await;
        exit
    }

    /// The owner has left: cancels the turn, asks the process to exit, and passes on its last output.
    async fn wind_down(&mut self, child: &mut Child) -> Exit {
        let mut step = self.codec.encode(Command::Cancel, Timestamp::now());
        for line in std::mem::take(&mut step.lines) {
            child.stdin.write(line, Duration::ZERO).await.ok(); // A process that takes no lines is stopped all the same.
        }
        // An error would only say that there was nothing to cancel.
        step.events.retain(|kind| !matches!(kind, EventKind::Error(_)));
        self.report(step).await.ok(); // The owner may listen or not.
        child.stdin.close();
        let deadline = Instant::now() + Patience::default().after_eof;
        self.pass_on_until(child, || deadline).await;
        let after_eof = deadline.saturating_duration_since(Instant::now()) + REST;
        let exit = child.stop(Patience { after_eof, ..Patience::default() }).await;
        tracing::debug!(code = exit.code, "stopped");
        self.take_rest(child).await;
        exit
    }

    /// Passes on what a process that is gone has left in its stdout.
    async fn take_rest(&mut self, child: &mut Child) {
        self.pass_on_until(child, || Instant::now() + REST).await;
    }

    /// Passes on the lines of a process that gets no more commands. `deadline` says until when each may come.
    async fn pass_on_until(&mut self, child: &mut Child, deadline: impl Fn() -> Instant) {
        while let Ok(Ok(Some(line))) = timeout_at(deadline(), child.stdout.next()).await {
            let (step, text) = self.decode(line);
            if self.send(drafts(step, text.as_deref(), self.keep_raw, Timestamp::now())).await.is_err() {
                return;
            }
        }
    }

    fn decode(&mut self, line: Line) -> (Step, Option<String>) {
        decode_line(&mut self.codec, line, Timestamp::now())
    }

    /// Writes a step's lines to the process. Returns the step's events, with an error if the process does not read.
    async fn write(&mut self, child: &mut Child, mut step: Step, line: Option<&str>) -> Vec<Draft> {
        let lines = std::mem::take(&mut step.lines);
        let mut drafts = drafts(step, line, self.keep_raw, Timestamp::now());
        for line in lines.into_iter().filter(|_| self.lifetime == Lifetime::Session) {
            let Err(refused) = child.stdin.write(line, STDIN_PATIENCE).await else { continue };
            drafts.push(self.refused(refused));
            break;
        }
        drafts
    }

    fn refused(&self, why: StdinClosed) -> Draft {
        let kind = match why {
            StdinClosed::Closed => AgentErrorKind::ProtocolError,
            StdinClosed::NotReading => AgentErrorKind::Timeout,
        };
        let error = AgentError::new(kind, format!("{} did not accept a command: {why}", self.agent)).of(self.agent);
        Draft::new(Timestamp::now(), EventKind::Error(error))
    }

    fn error(&self, kind: AgentErrorKind, message: String, exit: &Exit) -> AgentError {
        let error = AgentError::new(kind, message).of(self.agent).exited(exit.code);
        if exit.stderr_tail.is_empty() { error } else { error.native(exit.stderr_tail.clone()) }
    }

    /// Sends the events of a step that was not caused by a line.
    async fn report(&mut self, step: Step) -> Result<(), OwnerGone> {
        self.send(drafts(step, None, false, Timestamp::now())).await
    }

    async fn send(&mut self, drafts: Vec<Draft>) -> Result<(), OwnerGone> {
        for draft in drafts {
            self.events.send(draft).await.map_err(|_| OwnerGone)?;
        }
        Ok(())
    }
}

fn is_timeout(end: &End) -> bool {
    matches!(end, End::Broken { why, .. } if why.kind == AgentErrorKind::Timeout)
}

/// Whether the program has exited. Does not wait.
async fn is_gone(child: &mut Child) -> bool {
    // While a descendant holds its stderr, only the missing id shows the exit.
    timeout(Duration::ZERO, child.wait()).await.is_ok() || child.pid().is_none()
}

/// Waits for the moment of a limit; forever without one.
async fn reached(limit: Option<Limit>) -> Overdue {
    match limit {
        Some(limit) => {
            sleep_until(limit.at).await;
            limit.overdue
        }
        None => pending().await,
    }
}
