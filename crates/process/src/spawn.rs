//! Starts child programs.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tokio::process::ChildStdout;
use tokio::task::JoinSet;

use crate::handle::{Pipes, ProgramHandle};
use crate::stderr::Stderr;
use crate::{Lines, Stdin};

/// A program to run. Its `Debug` form shows the names in the environment, not the values.
#[derive(Clone)]
pub struct Program {
    /// A bare name is looked up on `PATH`; another relative path is resolved in our own folder, not in `cwd`.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Added to our own environment.
    pub env: Vec<(OsString, OsString)>,
    /// Removed from our own environment, before `env` is added.
    pub env_remove: Vec<OsString>,
    pub cwd: Option<PathBuf>,
    pub stdin: StdinMode,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, args, env, env_remove, cwd, stdin } = self;
        f.debug_struct("Program")
            .field("program", program)
            .field("args", args)
            .field("env", &env.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("env_remove", env_remove)
            .field("cwd", cwd)
            .field("stdin", stdin)
            .finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinMode {
    Piped,
    Null,
}

/// How a child and all its descendants are ended.
#[derive(Debug, Clone)]
pub enum Keeper {
    /// The given binary is started as `BINARY __child` and ends every descendant, also when we are killed. It must
    /// call [`supervise`](crate::supervise) then.
    ///
    /// A binary may be replaced while it runs. On Linux `/proc/self/exe` is the running one whatever is at its path;
    /// [`Keeper::own_binary`] uses it. On Windows a job object replaces the supervisor.
    Supervisor(PathBuf),
    /// A process group, killed on drop. For programs that only use the library.
    Group,
}

impl Keeper {
    pub fn own_binary() -> io::Result<Self> {
        let running = Path::new("/proc/self/exe");
        let binary = if running.exists() { running.to_owned() } else { std::env::current_exe()? };
        Ok(Self::Supervisor(binary))
    }
}

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

/// A running program. Dropping it ends it and all its descendants.
#[derive(Debug)]
pub struct Child {
    pub stdin: Stdin,
    pub stdout: Lines<ChildStdout>,
    pub(crate) stderr: Stderr,
    pub(crate) handle: ProgramHandle,
    /// Writes to stdin until dropped.
    _writer: JoinSet<()>,
}

impl Child {
    /// The program's process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.handle.pid()
    }

    /// The end of its stderr, without colours. Control characters stay: make them visible before you show it.
    pub fn stderr_tail(&self) -> String {
        self.stderr.tail()
    }
}

/// Starts a program. If the future is dropped, nothing of the program is left.
pub async fn spawn(mut program: Program, keeper: &Keeper) -> Result<Child, SpawnError> {
    if let Some(cwd) = program.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
        return Err(SpawnError::NoSuchFolder(cwd.clone()));
    }
    if is_path(&program.program) {
        // A relative path would mean something else in another folder; one that cannot be resolved stays as it is.
        program.program = std::path::absolute(&program.program).unwrap_or(program.program);
    }
    let (handle, pipes) = ProgramHandle::start(&program, keeper).await.map_err(|error| why(&program.program, error))?;
    let Pipes { stdin, stdout, stderr } = pipes;
    let mut writer = JoinSet::new();
    let name = program.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Child {
        stdin: Stdin::new(stdin, &mut writer),
        stdout: Lines::new(stdout),
        stderr: Stderr::new(stderr, name),
        handle,
        _writer: writer,
    })
}

fn is_path(program: &Path) -> bool {
    program.components().count() > 1
}

fn why(program: &Path, source: io::Error) -> SpawnError {
    let program = program.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound if is_path(&program) && program.exists() => {
            let source = io::Error::new(source.kind(), "the interpreter or loader it asks for is missing");
            SpawnError::Other { program, source }
        }
        io::ErrorKind::NotFound => SpawnError::Missing(program),
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable(program),
        _ => SpawnError::Other { program, source },
    }
}
