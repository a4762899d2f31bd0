//! `run_shell_command`: runs a shell command, with its output live, and leaves nothing of it behind.
//!
//! A command gets no input. Whatever it starts ends with it: on its exit, its time limit, or a cancel. Background
//! commands end with the session.

mod background;
mod output;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use multitap_event::{Details, ToolKind, ToolOutcome};
use multitap_outbound::error_chain;
use multitap_process::{Child, Exit, Keeper, Patience, Program, StdinMode, spawn};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use self::background::Background;
use self::output::Output;
use super::BadCall;
use crate::job::Job;
use crate::policy::Approved;
use crate::sandbox::Sandbox;
use crate::tool::{Outcome, Progress, Spec, ToolContext};

pub(crate) const NAME: &str = "run_shell_command";

/// Default time limit of a command.
const TIME: Duration = Duration::from_secs(120);
const MOST_TIME: u64 = 600;
/// Time limit of the user's own commands, which the user watches and can stop.
const USERS_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Output is reported in pieces of about this size, or as often as [`OFTEN`].
const PIECE: usize = 8 * 1024;
const OFTEN: Duration = Duration::from_millis(50);
/// How often the amount of hidden output is reported.
const SELDOM: Duration = Duration::from_secs(5);
/// How long a stopped command may take to clean up.
const PATIENCE: Patience = Patience {
    after_eof: Duration::ZERO,
    after_interrupt: Duration::from_millis(300),
    after_terminate: Duration::from_millis(300),
};

/// The state that all commands of a session share.
#[derive(Debug)]
pub(crate) struct Surroundings {
    /// The default folder, then others that a command may name. Commands run in no other folder.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) keeper: Keeper,
    /// Added to the user's own environment.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) hidden_env: Vec<String>,
    /// A temporary folder of the session, for the output of background commands.
    pub(crate) private: PathBuf,
    pub(crate) sandbox: Option<Sandbox>,
}

/// The shell of a session. Dropping the last clone ends the background commands.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    surroundings: Arc<Surroundings>,
    shell: &'static str,
    background: Arc<Background>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    #[serde(alias = "cmd")]
    command: String,
    description: Option<String>,
    #[serde(alias = "dir_path", alias = "cwd", alias = "workdir")]
    directory: Option<PathBuf>,
    /// In seconds.
    timeout: Option<f64>,
    #[serde(default, alias = "is_background", alias = "run_in_background")]
    background: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) command: String,
    pub(crate) directory: PathBuf,
    description: Option<String>,
    time: Duration,
    background: bool,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Shell,
        "Runs a command with bash in the workspace and gives back its output (stdout and stderr together) and how it \
         ended. It gets no input, so nothing that asks will work. What it starts ends with it; a server or a watcher \
         goes to the background, where it runs until the session ends.",
        &json!({
            "command": { "type": "string", "description": "The line for the shell, as it is to be run." },
            "description": { "type": "string", "description": "What it is for, in a few words for the user." },
            "directory": { "type": "string", "description": "Where to run it: a folder in the workspace. Default: the workspace itself." },
            "timeout": { "type": "number", "description": format!("Time limit in seconds: default {}, at most {MOST_TIME}.", TIME.as_secs()) },
            "is_background": { "type": "boolean", "description": "Start it and go on; its output goes to a file." }
        }),
        &["command"],
    )
}

impl Command {
    pub(crate) fn title(&self) -> String {
        let line = self.command.trim();
        match line.split_once('\n') {
            Some((first, _)) => format!("{first} …"),
            None => line.to_owned(),
        }
    }

    pub(crate) fn details(&self) -> Details {
        Details::Command {
            command: self.command.clone(),
            directory: Some(self.directory.display().to_string()),
            description: self.described(),
        }
    }

    /// The description of the command. It must show that a command runs in the background.
    fn described(&self) -> Option<String> {
        let background = self.background.then(|| "runs in the background until the session ends".to_owned());
        let lines: Vec<String> = background.into_iter().chain(self.description.clone()).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    #[cfg(test)]
    pub(crate) fn of(command: &str, directory: &Path) -> Self {
        let (command, directory) = (command.to_owned(), directory.to_owned());
        Self { command, directory, description: None, time: TIME, background: false }
    }

    /// The same command, run by the user, without the usual time limit.
    pub(crate) fn by_user(self) -> Self {
        Self { time: USERS_TIME, ..self }
    }

    pub(crate) fn with_command(self, command: String) -> Self {
        Self { command, ..self }
    }
}

impl Shell {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bash = std::env::split_paths(&path)
            .any(|folder| folder.join(format!("bash{}", std::env::consts::EXE_SUFFIX)).is_file());
        let shell = if bash { "bash" } else { "sh" };
        Self { surroundings: Arc::new(surroundings), shell, background: Arc::default() }
    }

    /// Ends the background commands, and waits until they have ended.
    pub(crate) async fn close(&self) {
        self.background.close().await;
    }

    /// A shell command that the user typed, ready to run.
    pub(crate) fn line(&self, line: &str) -> Result<Command, BadCall> {
        let command = line.to_owned();
        let ready =
            self.prepare(Arguments { command, description: None, directory: None, timeout: None, background: false });
        ready.map(Command::by_user)
    }

    pub(super) fn prepare(&self, arguments: Arguments) -> Result<Command, BadCall> {
        let Arguments { command, description, directory, timeout, background } = arguments;
        if command.trim().is_empty() {
            return Err(BadCall("the command is empty".to_owned()));
        }
        if command.contains('\0') {
            return Err(BadCall("the command has a NUL character in it".to_owned()));
        }
        let time = match timeout {
            None => TIME,
            #[expect(clippy::cast_precision_loss, reason = "ten minutes are exact")]
            Some(seconds) if seconds > 0.0 && seconds <= MOST_TIME as f64 => Duration::from_secs_f64(seconds),
            Some(seconds) => {
                return Err(BadCall(format!(
                    "timeout is in seconds, more than 0 and at most {MOST_TIME}, not {seconds}"
                )));
            }
        };
        let directory = inside(&self.surroundings.folders, directory.as_deref())?;
        Ok(Command { command, directory, description, time, background })
    }

    pub(crate) async fn run_line(&self, line: Approved<Job>, context: ToolContext) -> Outcome {
        match line.into_inner() {
            Job::Shell(command) => self.run(command, context).await,
            other => Outcome::failed(format!("{} is not a command", other.title())),
        }
    }

    pub(super) async fn run(&self, command: Command, context: ToolContext) -> Outcome {
        let started = tokio::select! {
            biased;
            child = spawn(self.program(&command), &self.surroundings.keeper) => child,
            () = context.stop.cancelled() => return Outcome::cancelled("the user stopped it before it began"),
        };
        let child = match started {
            Ok(child) => child,
            Err(error) => return Outcome::failed(format!("the shell could not be started: {}", error_chain(&error))),
        };
        match command.background {
            true => self.background.take(child, &self.surroundings.private).await,
            false => watch(child, command.time, &context).await,
        }
    }

    fn program(&self, command: &Command) -> Program {
        let Surroundings { environment, hidden_env, sandbox, .. } = &*self.surroundings;
        // Stderr is redirected to stdout, to preserve the order of output.
        let args = vec!["-c".into(), format!("exec 2>&1\n{}", command.command).into()];
        // Pagers must not wait for a key, and programs may check who runs them.
        let quiet =
            [("MULTITAP", "1"), ("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];
        let quiet = quiet.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let own = environment.iter().map(|(name, value)| (name.into(), value.into()));
        let program = Program {
            program: self.shell.into(),
            args,
            env: quiet.into_iter().chain(own).collect(),
            env_remove: hidden_env.iter().map(Into::into).collect(),
            cwd: Some(command.directory.clone()),
            stdin: StdinMode::Null,
        };
        match sandbox {
            Some(sandbox) => sandbox.wrap(program),
            None => program,
        }
    }
}

/// The folder in which a command runs: it must exist and, with links resolved, lie in one of `folders`.
fn inside(folders: &[PathBuf], directory: Option<&Path>) -> Result<PathBuf, BadCall> {
    let Some(first) = folders.first() else { return Err(BadCall("there is no folder to run it in".to_owned())) };
    let wanted = first.join(directory.unwrap_or(Path::new("")));
    let shown = wanted.display();
    let real = wanted.canonicalize().map_err(|error| BadCall(format!("cannot run it in {shown}: {error}")))?;
    if !real.is_dir() {
        return Err(BadCall(format!("cannot run it in {shown}: it is not a folder")));
    }
    let within = folders.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| real.starts_with(folder));
    if !within {
        return Err(BadCall(format!("cannot run it in {shown}: it lies outside of the workspace")));
    }
    Ok(real)
}

/// Reports the output until the command ends or is ended.
async fn watch(mut child: Child, time: Duration, context: &ToolContext) -> Outcome {
    let mut output = Output::default();
    let over = sleep_until(Instant::now() + time);
    let (outcome, why) = tokio::select! {
        () = context.stop.cancelled() => (ToolOutcome::Cancelled, "the user stopped it".to_owned()),
        () = over => {
            let seconds = time.as_secs_f64();
            let why = format!("it was stopped: it took longer than {seconds} s (timeout sets another limit)");
            (ToolOutcome::Failed, why)
        }
        read = reported(&mut child, &mut output, context) => match read {
            Ok(exit) => return ended(&output, &exit),
            Err(error) => (ToolOutcome::Failed, format!("its output could not be read: {error}")),
        },
    };
    child.stop(PATIENCE).await;
    Outcome { outcome, ..Outcome::done(output.text(&why)) }
}

/// Reports output, and waits for the exit: a command may close its output and run on.
async fn reported(child: &mut Child, output: &mut Output, context: &ToolContext) -> std::io::Result<Exit> {
    tell(child, output, context).await?;
    Ok(child.wait().await)
}

/// Reports output until its end. A slow receiver holds back the command.
async fn tell(child: &mut Child, output: &mut Output, context: &ToolContext) -> std::io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    let (mut next, mut next_note) = (Instant::now(), Instant::now());
    loop {
        let due = async {
            match output.waiting.len() {
                0 => std::future::pending().await,
                _ => sleep_until(next).await,
            }
        };
        let read = tokio::select! {
            read = child.read(&mut bytes) => Some(read?),
            () = due => None,
        };
        match read {
            Some(0) => output.finish(),
            Some(count) => output.push(&bytes[..count]),
            None => {}
        }
        let now = Instant::now();
        if read == Some(0) || output.waiting.len() >= PIECE || (!output.waiting.is_empty() && now >= next) {
            next = now + OFTEN;
            say(context, Progress { output: output.take(), ..Progress::default() }).await;
        }
        if output.not_shown > 0 && (read == Some(0) || now >= next_note) {
            next_note = now + SELDOM;
            let message = format!("{} bytes more are not shown", output.not_shown);
            say(context, Progress { message: Some(message), ..Progress::default() }).await;
        }
        if read == Some(0) {
            return Ok(());
        }
    }
}

async fn say(context: &ToolContext, progress: Progress) {
    if progress != Progress::default() {
        // Nobody may receive progress any more: the command goes on.
        context.progress.send(progress).await.ok();
    }
}

fn ended(output: &Output, exit: &Exit) -> Outcome {
    let outcome = match (exit.code, exit.signal) {
        (Some(0), _) => Outcome::done(output.text("")),
        (Some(code), _) => Outcome::failed(output.text(&format!("exit code {code}"))),
        (None, Some(signal)) => Outcome::failed(output.text(&format!("it was ended by signal {}", named(signal)))),
        (None, None) => Outcome::failed(output.text("its exit status is unknown")),
    };
    Outcome { exit_code: exit.code, ..outcome }
}

fn named(signal: i32) -> String {
    let name = match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        6 => "ABRT",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        15 => "TERM",
        _ => return signal.to_string(),
    };
    format!("{signal} (SIG{name})")
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
