//! Starting a child: pipes, a writer that never blocks its caller, the tail of stderr.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessGroup};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::{Exit, Lines, Patience};

/// Lines that may wait for a child to read them.
const STDIN_QUEUE: usize = 64;
const STDERR_TAIL: usize = 8 * 1024;

/// What to run.
#[derive(Debug, Clone)]
pub struct Program {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Added to our own environment.
    pub env: Vec<(OsString, OsString)>,
    /// Taken out of our own environment.
    pub env_remove: Vec<OsString>,
    pub cwd: Option<PathBuf>,
    pub stdin: StdinMode,
}

/// What the child reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinMode {
    Piped,
    Null,
}

/// Who sees to it that a child and all its descendants end.
#[derive(Debug, Clone)]
pub enum Keeper {
    /// That binary, started as `BINARY __child`: ends every descendant, also when we are killed.
    Supervisor(PathBuf),
    /// A process group, killed on drop. For programs that only use the library.
    Group,
}

/// The program could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("no such program: {}", .0.display())]
    Missing(PathBuf),
    #[error("not allowed to run {}", .0.display())]
    NotExecutable(PathBuf),
    #[error("the folder to run in does not exist: {}", .0.display())]
    NoSuchFolder(PathBuf),
    #[error("cannot start {}", program.display())]
    Other { program: PathBuf, source: io::Error },
}

/// Nobody reads this child's stdin any more, or not fast enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StdinClosed {
    #[error("its input is closed")]
    Closed,
    #[error("it does not read its input")]
    NotReading,
}

/// A running program. Dropping it ends it and all it started.
#[derive(Debug)]
pub struct Child {
    pub stdin: Stdin,
    pub stdout: Lines<ChildStdout>,
    inner: Box<dyn ChildWrapper>,
    stderr: Arc<Mutex<Tail>>,
    tasks: TaskTracker,
}

/// The child's input. Lines are written in order by a task of their own.
#[derive(Debug)]
pub struct Stdin {
    tx: Option<mpsc::Sender<String>>,
}

impl Stdin {
    /// Hands over one line; waits at most `patience` for the child to read what came before.
    pub async fn write(&mut self, line: String, patience: Duration) -> Result<(), StdinClosed> {
        let Some(tx) = &self.tx else { return Err(StdinClosed::Closed) };
        match timeout(patience, tx.send(line)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(StdinClosed::Closed),
            Err(_) => Err(StdinClosed::NotReading),
        }
    }

    /// End of input, after what was handed over.
    pub fn close(&mut self) {
        self.tx = None;
    }
}

#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * STDERR_TAIL {
            self.bytes.drain(..self.bytes.len() - STDERR_TAIL);
        }
    }

    fn text(&self) -> String {
        let from = self.bytes.len().saturating_sub(STDERR_TAIL);
        String::from_utf8_lossy(&self.bytes[from..]).trim().to_owned()
    }
}

/// Starts a program.
pub async fn spawn(program: Program, keeper: &Keeper) -> Result<Child, SpawnError> {
    let _ = keeper; // the supervisor is not joined in yet
    if let Some(cwd) = program.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(SpawnError::NoSuchFolder(cwd.clone()));
    }
    let mut command = CommandWrap::with_new(&program.program, |command| {
        command.args(&program.args).envs(program.env.iter().cloned());
        for name in &program.env_remove {
            command.env_remove(name);
        }
        if let Some(cwd) = &program.cwd {
            command.current_dir(cwd);
        }
        command.stdin(match program.stdin {
            StdinMode::Piped => Stdio::piped(),
            StdinMode::Null => Stdio::null(),
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    command.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
    let mut inner = command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => SpawnError::Missing(program.program.clone()),
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable(program.program.clone()),
        _ => SpawnError::Other { program: program.program.clone(), source },
    })?;
    let tasks = TaskTracker::new();
    let stderr = Arc::new(Mutex::new(Tail::default()));
    if let Some(pipe) = inner.stderr().take() {
        tasks.spawn(keep_tail(pipe, Arc::clone(&stderr)));
    }
    let stdin = Stdin {
        tx: inner.stdin().take().map(|pipe| {
            let (tx, rx) = mpsc::channel(STDIN_QUEUE);
            tasks.spawn(write_lines(pipe, rx));
            tx
        }),
    };
    tasks.close();
    let Some(stdout) = inner.stdout().take() else {
        return Err(SpawnError::Other { program: program.program, source: io::Error::other("no stdout pipe") });
    };
    Ok(Child { stdin, stdout: Lines::new(stdout), inner, stderr, tasks })
}

async fn keep_tail(mut pipe: ChildStderr, tail: Arc<Mutex<Tail>>) {
    let mut chunk = vec![0; 4096];
    while let Ok(read @ 1..) = pipe.read(&mut chunk).await {
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..read]);
    }
}

async fn write_lines(mut pipe: ChildStdin, mut rx: mpsc::Receiver<String>) {
    while let Some(mut line) = rx.recv().await {
        line.push('\n');
        if pipe.write_all(line.as_bytes()).await.is_err() || pipe.flush().await.is_err() {
            return;
        }
    }
}

impl Child {
    /// The program's process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.inner.id()
    }

    /// The last it wrote to stderr.
    pub fn stderr_tail(&self) -> String {
        self.stderr.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Waits for its end. Cancel safe.
    pub async fn wait(&mut self) -> Exit {
        let status = self.inner.wait().await;
        // A grandchild may hold stderr open; what it has to say is not worth waiting for.
        timeout(Duration::from_millis(100), self.tasks.wait()).await.ok();
        let stderr_tail = self.stderr_tail();
        match status {
            Ok(status) => Exit { code: status.code(), signal: signal_of(status), stderr_tail },
            Err(_) => Exit { code: None, signal: None, stderr_tail },
        }
    }

    /// Asks it to end: end of input, interrupt, terminate, kill. Afterwards nothing of it is left.
    pub async fn stop(&mut self, patience: Patience) -> Exit {
        self.stdin.close();
        if let Ok(exit) = timeout(patience.after_eof, self.wait()).await {
            return exit;
        }
        for (signal, wait) in [(2, patience.after_interrupt), (15, patience.after_terminate)] {
            self.inner.signal(signal).ok();
            if let Ok(exit) = timeout(wait, self.wait()).await {
                return exit;
            }
        }
        self.inner.start_kill().ok();
        self.wait().await
    }
}

#[cfg(unix)]
fn signal_of(status: std::process::ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_: std::process::ExitStatus) -> Option<i32> {
    None
}
