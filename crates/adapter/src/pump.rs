//! The one loop that all agents share: lines from the child through the codec to the owner, commands back.
//!
//! Outward waits: a full event queue stops the reading, so back-pressure ends at the child's stdout. Inward waits a
//! bounded while and then says that the agent is not reading. Either end closing ends the loop, and the child.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    AgentEnd, AgentError, AgentErrorKind, AgentType, Command, Draft, EditReview, EventKind, LaunchError,
    SessionEndReason, Timestamp,
};
use multitap_process::{Child, Exit, Line, MAX_LINE, Moment, Patience, StdinClosed};
use tempfile::TempPath;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::codec::{Codec, End, Step};
use crate::line::{too_long, type_of};

/// How long the agent may leave its stdin unread before a command is refused.
const STDIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a child may live after it closed its stdin.
const AFTER_STDIN: Duration = Duration::from_secs(2);
/// How long a child may live after it closed its stdout.
const AFTER_STDOUT: Duration = Duration::from_secs(2);
/// How long a turn may go on after it was cancelled. An agent that ignores that is ended.
const AFTER_CANCEL: Duration = Duration::from_secs(10);
/// How often a silent child is looked at: its end does not show where something else holds its stdout open.
const LOOK: Duration = Duration::from_secs(1);
/// How long the rest of the output of a child that is gone may take.
const REST: Duration = Duration::from_millis(200);
/// How many events an agent may tell before it is up. Some tell a whole conversation that they take up.
const EARLY_EVENTS: usize = 65_536;
/// How many bytes it may write before it is up.
const EARLY_BYTES: usize = 2 * MAX_LINE;
/// How many of its last lines are quoted when it wrote more than that.
const QUOTED_LINES: usize = 3;
/// How much of each.
const QUOTED_CHARS: usize = 120;

/// What a line's step becomes on its way to the log. With `keep_raw` the line stands in exactly one of the drafts.
pub fn drafts(step: Step, line: Option<&str>, keep_raw: bool, now: Timestamp) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = step.events.into_iter().map(|kind| Draft::new(now, kind)).collect();
    if let Some(line) = line.filter(|_| keep_raw) {
        if drafts.is_empty() {
            drafts.push(Draft::new(now, EventKind::RawDelta { native_type: type_of(line).ok().map(Into::into) }));
        }
        if let Some(first) = drafts.first_mut() {
            first.raw.push(Arc::from(line));
        }
    }
    drafts
}

/// Says of a session's end that the agent took too long, unless all is well.
pub(crate) fn took_too_long(step: &mut Step) {
    for kind in &mut step.events {
        if let EventKind::SessionEnded(end) = kind
            && end.reason != SessionEndReason::Completed
        {
            end.reason = SessionEndReason::Timeout;
        }
    }
}

/// One child, its codec, and the agent's end of the link.
pub(crate) struct Pump<C> {
    agent: AgentType,
    child: Child,
    codec: C,
    events: mpsc::Sender<Draft>,
    commands: mpsc::Receiver<Command>,
    reviews: mpsc::Receiver<EditReview>,
    keep_raw: bool,
    /// Told before the owner listens.
    early: Vec<Draft>,
    /// It was told that the agent does not read.
    stuck_told: bool,
    /// When the turn that was cancelled must have ended.
    cancelled_until: Option<Instant>,
    /// When the last prompt went to the agent: what started since then is the turn's.
    turn_began: Option<Moment>,
    /// Held for the agent to read; gone with the pump.
    _files: Vec<TempPath>,
}

/// The owner of the session is gone.
struct OwnerGone;

/// Why the loop ended.
enum Over {
    StdoutEnded,
    StdinClosed,
    /// The agent goes on with a turn that was cancelled.
    CancelIgnored,
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
        let AgentEnd { events, commands, reviews } = end;
        Self {
            agent,
            child,
            codec,
            events,
            commands,
            reviews,
            keep_raw,
            early: Vec::new(),
            stuck_told: false,
            cancelled_until: None,
            turn_began: None,
            _files: files,
        }
    }

    /// Reports what the owner should know about this start.
    pub(crate) fn warn(&mut self, warning: Option<AgentError>) {
        self.early.extend(warning.map(|warning| Draft::new(Timestamp::now(), EventKind::Error(warning))));
    }

    /// Greets the agent and reads until it has shown that it is up.
    pub(crate) async fn wait_until_up(&mut self, patience: Duration) -> Result<(), LaunchError> {
        let deadline = Instant::now() + patience;
        let step = self.codec.begin(Timestamp::now());
        let mut ready = step.ready;
        let drafts = self.write(step, None).await;
        self.early.extend(drafts);
        let mut bytes = 0_usize;
        let mut last = VecDeque::new();
        while !ready {
            match timeout_at(deadline, self.child.stdout.next()).await {
                Ok(Ok(Some(line))) => {
                    let (Line::Text(kept) | Line::TooLong { head: kept, .. }) = &line;
                    bytes = bytes.saturating_add(kept.len());
                    last.truncate(QUOTED_LINES - 1);
                    last.push_front(kept.chars().take(QUOTED_CHARS).collect::<String>());
                    let (step, text) = self.decode(line);
                    ready = step.ready;
                    let (give_up, unsupported) = (step.give_up, step.unsupported.clone());
                    let drafts = self.write(step, text.as_deref()).await;
                    self.early.extend(drafts);
                    if give_up {
                        let error = self.gave_up().await;
                        return Err(unsupported.map_or_else(|| error.into(), LaunchError::Unsupported));
                    }
                    if !ready && (self.early.len() >= EARLY_EVENTS || bytes > EARLY_BYTES) {
                        return Err(self.flooded(last).await.into());
                    }
                }
                Ok(Ok(None) | Err(_)) => return Err(self.died_at_start().await.into()),
                Err(_) => {
                    let exit = self.child.stop(Patience::default()).await;
                    tracing::debug!(agent = %self.agent, ?patience, code = exit.code, "start timed out");
                    let mut message =
                        format!("{} was not up after {} s and was stopped", self.agent, patience.as_secs_f32());
                    if let Some(told) = self.last_early_error() {
                        message = format!("{message}; it said: {}", told.message);
                    }
                    return Err(self.error(AgentErrorKind::Timeout, message, &exit).into());
                }
            }
        }
        tracing::debug!(agent = %self.agent, pid = self.child.pid(), "ready");
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
        tracing::debug!(agent = %self.agent, code = exit.code, "start refused");
        self.last_early_error().unwrap_or_else(|| {
            let message = format!("{} could not begin the session", self.agent);
            self.error(AgentErrorKind::ProtocolError, message, &exit)
        })
    }

    /// It writes without end, and none of it says that it is up.
    async fn flooded(&mut self, last: VecDeque<String>) -> AgentError {
        let patience = Patience { after_eof: Duration::ZERO, ..Patience::default() };
        let exit = self.child.stop(patience).await;
        self.early = Vec::new();
        tracing::debug!(agent = %self.agent, code = exit.code, "start flooded");
        let last = last.iter().rev().map(|line| format!("{line:?}")).collect::<Vec<_>>().join(", ");
        let message =
            format!("{} wrote too much before it was up and was stopped; its last lines are {last}", self.agent);
        self.error(AgentErrorKind::ProtocolError, message, &exit)
    }

    fn last_early_error(&mut self) -> Option<AgentError> {
        std::mem::take(&mut self.early).into_iter().rev().find_map(|draft| match draft.kind {
            EventKind::Error(error) => Some(error),
            _ => None,
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
                tracing::debug!(code = exit.code, "stopped");
                self.codec.end(End::Stopped(&exit), Timestamp::now())
            }
            Over::StdoutEnded => self.exited_or_broken(AFTER_STDOUT, "output").await,
            Over::StdinClosed => {
                self.take_last_words().await;
                self.exited_or_broken(REST, "input").await
            }
            Over::CancelIgnored => self.ignored_cancel().await,
        };
        // An owner that is gone wants no last words.
        self.tell(drafts(step, None, false, Timestamp::now())).await.ok();
    }

    /// The end of a child that closed that pipe: its own, or ours if it lives on.
    async fn exited_or_broken(&mut self, patience: Duration, pipe: &str) -> Step {
        if let Ok(exit) = timeout(patience, self.child.wait()).await {
            tracing::debug!(code = exit.code, "exited");
            return self.codec.end(End::Exited(&exit), Timestamp::now());
        }
        let exit = self.child.stop(Patience::default()).await;
        tracing::debug!(code = exit.code, closed = pipe, "stopped");
        let message = format!("{} closed its {pipe} but kept running; it was stopped", self.agent);
        let why = self.error(AgentErrorKind::ProtocolError, message, &exit);
        self.codec.end(End::Broken { exit: &exit, why: &why }, Timestamp::now())
    }

    /// Ends an agent that does not end its turn.
    async fn ignored_cancel(&mut self) -> Step {
        let patience = Patience { after_eof: Duration::ZERO, ..Patience::default() };
        let exit = self.child.stop(patience).await;
        tracing::debug!(code = exit.code, "ignored a cancel");
        self.take_rest().await;
        let patience = AFTER_CANCEL.as_secs();
        let message = format!("{} went on for {patience} s with a turn that was cancelled; it was stopped", self.agent);
        let why = self.error(AgentErrorKind::Timeout, message, &exit);
        let mut step = self.codec.end(End::Broken { exit: &exit, why: &why }, Timestamp::now());
        took_too_long(&mut step);
        step
    }

    /// Nothing can be said to the child any more; what it still says is passed on for a while.
    async fn take_last_words(&mut self) {
        let deadline = Instant::now() + AFTER_STDIN;
        while let Ok(Ok(Some(line))) = timeout_at(deadline, self.child.stdout.next()).await {
            if self.pass_on(line).await.is_err() {
                return;
            }
        }
    }

    /// Whether the child closed its stdin and lives. One that has just died is not worth the word.
    async fn is_deaf(&mut self) -> bool {
        self.child.stdin.is_broken() && timeout(REST, self.child.wait()).await.is_err()
    }

    /// An error, once, if the child leaves its stdin unread.
    fn stuck(&mut self) -> Option<Draft> {
        let stuck = self.child.stdin.stuck_for().is_some_and(|time| time >= STDIN_PATIENCE);
        let told = std::mem::replace(&mut self.stuck_told, stuck);
        (stuck && !told).then(|| self.refused(StdinClosed::NotReading))
    }

    async fn carry(&mut self) -> Over {
        loop {
            if let Some(stuck) = self.stuck()
                && self.tell(vec![stuck]).await.is_err()
            {
                return Over::OwnerGone;
            }
            if self.is_deaf().await {
                let refused = self.refused(StdinClosed::Closed);
                return if self.tell(vec![refused]).await.is_err() { Over::OwnerGone } else { Over::StdinClosed };
            }
            let told = tokio::select! {
                line = self.child.stdout.next() => {
                    let Ok(Some(line)) = line else { return Over::StdoutEnded };
                    let (step, text) = self.decode(line);
                    self.write(step, text.as_deref()).await
                }
                command = self.commands.recv() => {
                    let Some(command) = command else { return Over::OwnerGone };
                    let cancels = command == Command::Cancel;
                    if matches!(command, Command::Prompt(_)) {
                        self.turn_began = Some(Moment::now());
                    }
                    let step = self.codec.encode(command, Timestamp::now());
                    // With nothing to cancel it only says so.
                    let refused = step.events.iter().any(|kind| matches!(kind, EventKind::Error(_)));
                    if cancels && !refused {
                        self.cancelled_until.get_or_insert(Instant::now() + AFTER_CANCEL);
                    }
                    self.write(step, None).await
                }
                Some(EditReview { decide, reply, .. }) = self.reviews.recv() => {
                    reply.send(self.codec.edited(&decide)).ok(); // whoever asked has gone: nothing was settled
                    Vec::new()
                }
                () = self.events.closed() => return Over::OwnerGone,
                () = sleep(LOOK) => {
                    if self.is_gone().await {
                        self.take_rest().await;
                        return Over::StdoutEnded;
                    }
                    Vec::new()
                }
            };
            if told.iter().any(|draft| matches!(draft.kind, EventKind::TurnCompleted(_)))
                && self.cancelled_until.take().is_some()
            {
                // First, so that a turn reported as cancelled has nothing running.
                self.end_commands().await;
            }
            if self.tell(told).await.is_err() {
                return Over::OwnerGone;
            }
            if self.cancelled_until.is_some_and(|until| until <= Instant::now()) {
                return Over::CancelIgnored;
            }
        }
    }

    /// Ends what the commands of a cancelled turn left running, where the agent does not do so itself.
    async fn end_commands(&mut self) {
        if let (Some(since), Some(variable)) = (self.turn_began, self.codec.command_variable()) {
            self.child.end_commands(since, variable).await;
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
        let error = AgentError::new(kind, format!("{} did not take a command: {why}", self.agent)).of(self.agent);
        Draft::new(Timestamp::now(), EventKind::Error(error))
    }

    async fn tell(&mut self, drafts: Vec<Draft>) -> Result<(), OwnerGone> {
        for draft in drafts {
            self.events.send(draft).await.map_err(|_| OwnerGone)?;
        }
        Ok(())
    }
}
