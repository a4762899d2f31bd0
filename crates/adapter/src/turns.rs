//! The loop for agents that run a process for each turn: a prompt starts one, its end is the end of the turn.
//!
//! The codec lives through all of them; the session ends only when its owner lets go. While no process runs there
//! is nobody to write to, so a codec's lines go nowhere here: what it has to say stands in the arguments and on stdin.
//! A process that says nothing for too long, or does not end with its turn, is ended: nothing may block the session.

use std::collections::VecDeque;
use std::future::pending;
use std::io::{self, Write as _};
use std::time::Duration;

use multitap_event::{
    AgentEnd, AgentError, AgentErrorKind, AgentType, Command, Draft, EventKind, SessionConfig, Timestamp,
};
use multitap_process::{Child, Exit, Keeper, Line, Patience, Program, StdinMode, spawn};
use tempfile::TempPath;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::base64;
use crate::codec::{Codec, End, Run, RunArg, Step};
use crate::line::too_long;
use crate::pump::{drafts, took_too_long};
use crate::spec::TurnPlan;

/// How long a process may leave its input unread.
const STDIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a process may live after it closed its stdout.
const AFTER_STDOUT: Duration = Duration::from_secs(2);
/// How long a process may live after it told the end of its turn.
const AFTER_TURN: Duration = Duration::from_secs(5);
/// How long the rest of the output of a process that is gone may take.
const REST: Duration = Duration::from_millis(200);
/// How often a silent process is looked at: its end does not show where something else holds its stdout open.
const LOOK: Duration = Duration::from_secs(1);

/// What starts the processes of one session, and its codec.
pub(crate) struct TurnPump<C> {
    agent: AgentType,
    /// What every turn is started with; a turn's own arguments come after these.
    program: Program,
    keeper: Keeper,
    codec: C,
    events: mpsc::Sender<Draft>,
    commands: mpsc::Receiver<Command>,
    keep_raw: bool,
    /// How long a process may take to say its first word.
    start_timeout: Duration,
    /// The last turn took too long.
    timed_out: bool,
    /// Commands for the turn after the one whose process still runs.
    waiting: VecDeque<Command>,
    /// What the owner should know about this start.
    warning: Option<AgentError>,
    /// Held for the agent to read; gone with the pump.
    _files: Vec<TempPath>,
}

/// The owner of the session is gone.
struct OwnerGone;

/// What a line told.
enum Told {
    More,
    EndOfTurn,
}

/// How far a turn's process is, and how long it may stay there.
#[derive(Clone, Copy)]
enum Phase {
    Starting { until: Instant },
    Working,
    Leaving { until: Instant },
}

impl Phase {
    fn is_starting(self) -> bool {
        matches!(self, Self::Starting { .. })
    }

    fn until(self) -> Option<Instant> {
        match self {
            Self::Starting { until } | Self::Leaving { until } => Some(until),
            Self::Working => None,
        }
    }
}

/// How a turn's process came to its end.
enum Over {
    ByItself(Exit),
    Stopped(Exit),
    Broken(Exit, AgentError),
}

impl<C: Codec> TurnPump<C> {
    pub(crate) fn new(
        agent: AgentType,
        program: Program,
        keeper: Keeper,
        plan: TurnPlan<C>,
        end: AgentEnd,
        config: &SessionConfig,
    ) -> Self {
        let AgentEnd { events, commands, .. } = end;
        let TurnPlan { codec, files, .. } = plan;
        let (keep_raw, start_timeout) = (config.keep_raw, config.start_timeout);
        let (waiting, timed_out) = (VecDeque::new(), false);
        Self {
            agent,
            program,
            keeper,
            codec,
            events,
            commands,
            keep_raw,
            start_timeout,
            timed_out,
            waiting,
            warning: None,
            _files: files,
        }
    }

    /// The same, which reports that first.
    pub(crate) fn warning(self, warning: Option<AgentError>) -> Self {
        Self { warning, ..self }
    }

    /// Runs turns until the owner lets go; then nothing of any process is left.
    #[tracing::instrument(name = "agent", skip_all, fields(agent = %self.agent))]
    pub(crate) async fn run(mut self) {
        let mut begun = self.codec.begin(Timestamp::now());
        begun.events.extend(self.warning.take().map(EventKind::Error));
        if self.tell(begun, None).await.is_ok() {
            while let Ok(run) = self.rest().await {
                if self.turn(run).await.is_err() {
                    break;
                }
            }
        }
        let mut step = self.codec.end(End::Stopped(&Exit::default()), Timestamp::now());
        if self.timed_out {
            took_too_long(&mut step);
        }
        // An owner that is gone wants no last words.
        self.tell(step, None).await.ok();
    }

    /// Waits for the next turn.
    async fn rest(&mut self) -> Result<Run, OwnerGone> {
        loop {
            let command = match self.waiting.pop_front() {
                Some(command) => command,
                None => tokio::select! {
                    command = self.commands.recv() => command.ok_or(OwnerGone)?,
                    () = self.events.closed() => return Err(OwnerGone),
                },
            };
            let mut step = self.codec.encode(command, Timestamp::now());
            let run = step.run.take();
            self.tell(step, None).await?;
            if let Some(run) = run {
                return Ok(run);
            }
        }
    }

    /// Runs one turn from its start to the end of its process.
    async fn turn(&mut self, run: Run) -> Result<(), OwnerGone> {
        let (over, owner) = match self.start(run).await {
            Ok((mut child, _files)) => self.carry(&mut child).await,
            Err(error) => (Over::Broken(Exit::default(), error), Ok(())),
        };
        let now = Timestamp::now();
        self.timed_out = matches!(&over, Over::Broken(_, why) if why.kind == AgentErrorKind::Timeout);
        let step = match &over {
            Over::ByItself(exit) => self.codec.turn_process_ended(End::Exited(exit), now),
            Over::Stopped(exit) => self.codec.turn_process_ended(End::Stopped(exit), now),
            Over::Broken(exit, why) => self.codec.turn_process_ended(End::Broken { exit, why }, now),
        };
        self.tell(step, None).await?;
        owner
    }

    async fn start(&mut self, run: Run) -> Result<(Child, Vec<TempPath>), AgentError> {
        let agent = self.agent;
        let failed = |kind, why: String| AgentError::new(kind, why).of(agent);
        let mut program = self.program.clone();
        let mut files = Vec::new();
        for arg in run.args {
            match arg {
                RunArg::Word(word) => program.args.push(word.into()),
                RunArg::File { suffix, base64 } => {
                    let file = write_file(&suffix, &base64).map_err(|error| {
                        let why = format!("cannot write a file for {agent}: {error}");
                        failed(AgentErrorKind::ProcessSpawnFailed, why)
                    })?;
                    program.args.push(file.to_path_buf().into());
                    files.push(file);
                }
            }
        }
        program.stdin = if run.stdin.is_some() { StdinMode::Piped } else { StdinMode::Null };
        let mut child = spawn(program, &self.keeper)
            .await
            .map_err(|error| failed(AgentErrorKind::ProcessSpawnFailed, format!("cannot start {agent}: {error}")))?;
        if let Some(text) = run.stdin {
            // A process that does not read its prompt tells by its end what is wrong with it.
            child.stdin.write(text, STDIN_PATIENCE).await.ok();
            child.stdin.close();
        }
        Ok((child, files))
    }

    async fn carry(&mut self, child: &mut Child) -> (Over, Result<(), OwnerGone>) {
        let mut phase = Phase::Starting { until: Instant::now() + self.start_timeout };
        loop {
            let told = tokio::select! {
                line = child.stdout.next() => {
                    let Ok(Some(line)) = line else { return (self.after_stdout(child).await, Ok(())) };
                    let told = self.pass_on(line).await;
                    phase = match told {
                        Ok(Told::EndOfTurn) => Phase::Leaving { until: Instant::now() + AFTER_TURN },
                        _ if phase.is_starting() => Phase::Working,
                        _ => phase,
                    };
                    told.map(drop)
                }
                () = at(phase.until()) => return (self.overdue(child, phase).await, Ok(())),
                () = sleep(LOOK) => {
                    if timeout(Duration::ZERO, child.wait()).await.is_err() {
                        continue;
                    }
                    let rest = self.take_rest(child).await;
                    return (Over::ByItself(child.wait().await), rest);
                }
                command = self.commands.recv() => match command {
                    // The turn is over, but not its process: what comes now is for the next one.
                    Some(command) if !self.waiting.is_empty() || matches!(command, Command::Prompt(_)) => {
                        self.waiting.push_back(command);
                        Ok(())
                    }
                    Some(command) => {
                        let step = self.codec.encode(command, Timestamp::now());
                        let stop = step.stop;
                        let told = self.tell(step, None).await;
                        if stop {
                            return (Over::Stopped(self.stop(child).await), told);
                        }
                        told
                    }
                    None => Err(OwnerGone),
                },
                () = self.events.closed() => Err(OwnerGone),
            };
            if told.is_err() {
                return (Over::Stopped(self.stop(child).await), Err(OwnerGone));
            }
        }
    }

    /// Ends the turn's process at once, and passes on what it still had to say.
    async fn stop(&mut self, child: &mut Child) -> Exit {
        let exit = child.stop(Patience { after_eof: Duration::ZERO, ..Patience::default() }).await;
        // An owner that is gone is seen by whoever asked for this.
        self.take_rest(child).await.ok();
        exit
    }

    /// Passes on what a process that is gone has left in the pipe.
    async fn take_rest(&mut self, child: &mut Child) -> Result<(), OwnerGone> {
        while let Ok(Ok(Some(line))) = timeout(REST, child.stdout.next()).await {
            self.pass_on(line).await?;
        }
        Ok(())
    }

    /// Ends a process that took too long to say something, or to go.
    async fn overdue(&mut self, child: &mut Child, phase: Phase) -> Over {
        let exit = self.stop(child).await;
        if !phase.is_starting() {
            // Its turn is over, and how it ended was told.
            return Over::Stopped(exit);
        }
        let patience = self.start_timeout.as_secs_f32();
        let why = format!("{} said nothing for {patience} s and was stopped", self.agent);
        let mut error = AgentError::new(AgentErrorKind::Timeout, why).of(self.agent).exited(exit.code);
        if !exit.stderr_tail.is_empty() {
            error = error.native(exit.stderr_tail.clone());
        }
        Over::Broken(exit, error)
    }

    async fn after_stdout(&mut self, child: &mut Child) -> Over {
        match timeout(AFTER_STDOUT, child.wait()).await {
            Ok(exit) => Over::ByItself(exit),
            Err(_) => {
                let exit = child.stop(Patience::default()).await;
                let why = format!("{} closed its output but kept running; it was stopped", self.agent);
                let error = AgentError::new(AgentErrorKind::ProtocolError, why).of(self.agent).exited(exit.code);
                Over::Broken(exit, error)
            }
        }
    }

    async fn pass_on(&mut self, line: Line) -> Result<Told, OwnerGone> {
        match line {
            Line::Text(text) if text.trim().is_empty() => Ok(Told::More),
            Line::Text(text) => {
                let step = self.codec.decode(&text, Timestamp::now());
                let ends = step.events.iter().any(|kind| matches!(kind, EventKind::TurnCompleted(_)));
                self.tell(step, Some(&text)).await?;
                Ok(if ends { Told::EndOfTurn } else { Told::More })
            }
            Line::TooLong { head, bytes } => {
                self.tell(Step::event(too_long(&head, bytes)), None).await.map(|()| Told::More)
            }
        }
    }

    async fn tell(&mut self, step: Step, line: Option<&str>) -> Result<(), OwnerGone> {
        for draft in drafts(step, line, self.keep_raw, Timestamp::now()) {
            self.events.send(draft).await.map_err(|_| OwnerGone)?;
        }
        Ok(())
    }
}

/// Waits for that moment; for ever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

fn write_file(suffix: &str, base64: &str) -> io::Result<TempPath> {
    let bytes = base64::decode(base64).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not base64"))?;
    let mut file = tempfile::Builder::new().prefix("multitap-").suffix(suffix).tempfile()?;
    file.write_all(&bytes)?;
    file.flush()?;
    Ok(file.into_temp_path())
}
