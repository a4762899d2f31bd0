//! The loop for agents that run a process for each turn: a prompt starts one, its end is the end of the turn.
//!
//! The codec lives through all of them; the session ends only when its owner lets go. While no process runs there
//! is nobody to write to, so a codec's lines go nowhere here: what it has to say stands in the arguments and on stdin.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::time::Duration;

use multitap_event::{AgentEnd, AgentError, AgentErrorKind, AgentType, Command, Draft, Timestamp};
use multitap_process::{Child, Exit, Keeper, Line, Patience, Program, StdinMode, spawn};
use tempfile::TempPath;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::base64;
use crate::codec::{Codec, End, Run, RunArg, Step};
use crate::line::too_long;
use crate::pump::drafts;

/// How long a process may leave its input unread.
const STDIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a process may live after it closed its stdout.
const AFTER_STDOUT: Duration = Duration::from_secs(2);
/// How long the rest of the output of a process that is gone may take.
const REST: Duration = Duration::from_millis(200);

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
    /// Commands for the turn after the one whose process still runs.
    waiting: VecDeque<Command>,
    /// Held for the agent to read; gone with the pump.
    _files: Vec<TempPath>,
}

/// The owner of the session is gone.
struct OwnerGone;

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
        codec: C,
        end: AgentEnd,
        keep_raw: bool,
        files: Vec<TempPath>,
    ) -> Self {
        let AgentEnd { events, commands } = end;
        let waiting = VecDeque::new();
        Self { agent, program, keeper, codec, events, commands, keep_raw, waiting, _files: files }
    }

    /// Runs turns until the owner lets go; then nothing of any process is left.
    #[tracing::instrument(name = "agent", skip_all, fields(agent = %self.agent))]
    pub(crate) async fn run(mut self) {
        let begun = self.codec.begin(Timestamp::now());
        if self.tell(begun, None).await.is_ok() {
            while let Ok(run) = self.rest().await {
                if self.turn(run).await.is_err() {
                    break;
                }
            }
        }
        let step = self.codec.end(End::Stopped(&Exit::default()), Timestamp::now());
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
        loop {
            let told = tokio::select! {
                line = child.stdout.next() => {
                    let Ok(Some(line)) = line else { return (self.after_stdout(child).await, Ok(())) };
                    self.pass_on(line).await
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
        while let Ok(Ok(Some(line))) = timeout(REST, child.stdout.next()).await {
            if self.pass_on(line).await.is_err() {
                break;
            }
        }
        exit
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

    async fn pass_on(&mut self, line: Line) -> Result<(), OwnerGone> {
        match line {
            Line::Text(text) if text.trim().is_empty() => Ok(()),
            Line::Text(text) => {
                let step = self.codec.decode(&text, Timestamp::now());
                self.tell(step, Some(&text)).await
            }
            Line::TooLong { head, bytes } => self.tell(Step::event(too_long(&head, bytes)), None).await,
        }
    }

    async fn tell(&mut self, step: Step, line: Option<&str>) -> Result<(), OwnerGone> {
        for draft in drafts(step, line, self.keep_raw, Timestamp::now()) {
            self.events.send(draft).await.map_err(|_| OwnerGone)?;
        }
        Ok(())
    }
}

fn write_file(suffix: &str, base64: &str) -> io::Result<TempPath> {
    let bytes = base64::decode(base64).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not base64"))?;
    let mut file = tempfile::Builder::new().prefix("multitap-").suffix(suffix).tempfile()?;
    file.write_all(&bytes)?;
    file.flush()?;
    Ok(file.into_temp_path())
}
