//! One process per turn: a prompt starts it, and its end is the end of the turn.
//!
//! The codec outlives all of them; the session ends only when its owner leaves. A process gets its prompt in its
//! arguments and on its stdin.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use multitap_event::{AgentError, AgentErrorKind, AgentType, Draft, Timestamp};
use multitap_process::{Child, Exit, Keeper, Program, StdinMode, spawn};
use tempfile::TempPath;

use super::{Limit, Overdue, OwnerGone, Pump, STDIN_PATIENCE, drafts, is_timeout};
use crate::codec::{Codec, End, Run, RunArg};

/// Decodes pictures with and without padding: clients send both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl<C: Codec> Pump<C> {
    /// Runs turns until the owner leaves; then every process has ended. Each is started as `program`, with the
    /// arguments of its turn after those of `program`.
    #[tracing::instrument(name = "agent", skip_all, fields(agent = %self.agent))]
    pub(crate) async fn run_turns(mut self, program: Program, keeper: Keeper) {
        self.reviews.close(); // Nobody can be asked, so there is nothing to edit.
        let mut begun: Vec<Draft> = drafts(self.codec.begin(Timestamp::now()), None, false, Timestamp::now());
        begun.append(&mut self.early);
        let mut timed_out = false;
        if self.send(begun).await.is_ok() {
            while let Ok(run) = self.next_run().await {
                let ended = self.turn(&program, &keeper, run).await;
                timed_out = is_timeout(&ended);
                let step = self.codec.turn_process_ended(&ended, Timestamp::now());
                if self.report(step).await.is_err() {
                    break;
                }
            }
        }
        self.end_session(&End::Stopped(Exit::default()), timed_out).await;
    }

    /// Waits for a command that starts a turn.
    async fn next_run(&mut self) -> Result<Run, OwnerGone> {
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
            self.report(step).await?;
            if let Some(run) = run {
                return Ok(run);
            }
        }
    }

    async fn turn(&mut self, program: &Program, keeper: &Keeper, run: Run) -> End {
        let (mut child, _files) = match start(self.agent, program.clone(), keeper, run).await {
            Ok(started) => started,
            Err(why) => return End::Broken { exit: Exit::default(), why },
        };
        self.limit = Some(Limit::after(self.start_timeout, Overdue::Output));
        let over = self.carry(&mut child).await;
        self.limit = None;
        self.conclude(&mut child, over).await
    }
}

async fn start(
    agent: AgentType,
    mut program: Program,
    keeper: &Keeper,
    run: Run,
) -> Result<(Child, Vec<TempPath>), AgentError> {
    let failed = |why: String| AgentError::new(AgentErrorKind::ProcessSpawnFailed, why).of(agent);
    let mut files = Vec::new();
    for arg in run.args {
        match arg {
            RunArg::Word(word) => program.args.push(word.into()),
            RunArg::File { suffix, base64 } => {
                let file = write_file(&suffix, &base64)
                    .map_err(|error| failed(format!("cannot write a file for {agent}: {error}")))?;
                program.args.push(file.to_path_buf().into());
                files.push(file);
            }
        }
    }
    program.stdin = if run.stdin.is_some() { StdinMode::Piped } else { StdinMode::Null };
    let child = spawn(program, keeper).await;
    let mut child = child.map_err(|error| failed(format!("cannot start {agent}: {error}")))?;
    if let Some(text) = run.stdin {
        // If a process does not read its prompt, its exit says what is wrong.
        child.stdin.write(text, STDIN_PATIENCE).await.ok();
        child.stdin.close();
    }
    Ok((child, files))
}

fn write_file(suffix: &str, base64: &str) -> io::Result<TempPath> {
    let bytes = BASE64.decode(base64.trim()).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not base64"))?;
    let mut file = tempfile::Builder::new().prefix("multitap-").suffix(suffix).tempfile()?;
    file.write_all(&bytes)?;
    file.flush()?;
    Ok(file.into_temp_path())
}
