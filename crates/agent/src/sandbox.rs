//! Restricts what a command may touch, enforced by the system (Linux).
//!
//! A command is started through our own binary as `BINARY __sandboxed …`, which restricts itself and then becomes the
//! command: files by Landlock, the network by a network namespace or, where none is available, by Landlock's TCP
//! rights. Before the session begins, a trial shows what can be enforced here; each command then starts with exactly
//! that, or not at all.
//!
//! Must not come in: what may run. The sandbox confines commands that were allowed.

#[cfg(target_os = "linux")]
mod enter;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use multitap_event::SandboxMode;
use multitap_process::{Child, Keeper, Patience, Program, SpawnError, StdinMode, spawn};
use serde::{Deserialize, Serialize};
use tokio::time::{Duration, timeout};

/// The first argument of a binary that becomes a sandboxed command.
pub const SANDBOXED: &str = "__sandboxed";

/// Time limit of a trial, which normally takes milliseconds.
const TRIAL: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enforced {
    pub files: FileAccess,
    pub network: NetworkAccess,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FileAccess {
    /// Nothing is enforced.
    #[default]
    Open,
    /// Everything can be read, nothing written.
    ReadOnly,
    /// Everything can be read; only the workspace and the folder for temporary files can be written.
    WorkspaceWrite,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NetworkAccess {
    /// Nothing is enforced.
    #[default]
    Open,
    /// No TCP; other protocols, such as DNS over UDP, are not restricted.
    NoTcp,
    /// An empty network namespace. Unix sockets with a path, such as Docker's, are not part of it.
    Nothing,
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.files {
            FileAccess::Open => "files: unrestricted",
            FileAccess::ReadOnly => "files: nothing is written (Landlock)",
            FileAccess::WorkspaceWrite => "files: only the workspace and the temporary folder are written (Landlock)",
        })?;
        f.write_str(match self.network {
            NetworkAccess::Open => "; network: unrestricted",
            NetworkAccess::NoTcp => "; network: no TCP, other protocols unrestricted (Landlock)",
            NetworkAccess::Nothing => "; network: none but sockets in the file system (a network namespace of its own)",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// Everything that was requested.
    Full,
    /// As much as the system supports.
    Best,
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox needs Linux")]
    OtherSystem,
    #[error("the sandbox needs Multitap's own binary to start commands")]
    NoBinary,
    #[error("the sandbox cannot restrict writing files here: {0}")]
    FileAccess(String),
    #[error("the sandbox cannot restrict the network here: {0}")]
    NetworkAccess(String),
    #[error("the sandbox cannot be tested")]
    Trial(#[source] SpawnError),
}

/// A sandbox that has been tried.
#[derive(Debug, Clone)]
pub struct Sandbox {
    enforced: Enforced,
    writable: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    protected: Vec<PathBuf>,
    binary: PathBuf,
}

impl Sandbox {
    /// Finds out what can be enforced. `None` if nothing is requested.
    pub async fn set_up(
        mode: SandboxMode,
        folders: &[PathBuf],
        effort: Enforcement,
        keeper: &Keeper,
    ) -> Result<Option<Self>, SandboxError> {
        let files = match mode {
            SandboxMode::None | SandboxMode::FullAccess => return Ok(None),
            SandboxMode::ReadOnly => FileAccess::ReadOnly,
            SandboxMode::WorkspaceWrite => FileAccess::WorkspaceWrite,
        };
        if !cfg!(target_os = "linux") {
            return match effort {
                Enforcement::Full => Err(SandboxError::OtherSystem),
                Enforcement::Best => Ok(None),
            };
        }
        let Keeper::Supervisor(binary) = keeper else { return Err(SandboxError::NoBinary) };
        let writable = match files {
            FileAccess::WorkspaceWrite => folders.iter().cloned().chain([std::env::temp_dir()]).collect(),
            FileAccess::Open | FileAccess::ReadOnly => Vec::new(),
        };
        let (enforced, hidden, protected) = (Enforced::default(), Vec::new(), Vec::new());
        let mut sandbox = Self { enforced, writable, hidden, protected, binary: binary.clone() };
        match sandbox.works(Enforced { files, ..enforced }, keeper).await? {
            Ok(()) => sandbox.enforced.files = files,
            Err(why) if effort == Enforcement::Full => return Err(SandboxError::FileAccess(why)),
            Err(why) => tracing::warn!(why, "the sandbox does without files"),
        }
        let mut reasons = Vec::new();
        for network in [NetworkAccess::Nothing, NetworkAccess::NoTcp] {
            match sandbox.works(Enforced { network, ..sandbox.enforced }, keeper).await? {
                Ok(()) => {
                    sandbox.enforced.network = network;
                    return Ok(Some(sandbox));
                }
                Err(why) => reasons.push(why),
            }
        }
        match effort {
            Enforcement::Full => Err(SandboxError::NetworkAccess(reasons.join("; "))),
            Enforcement::Best => Ok(Some(sandbox)),
        }
    }

    /// Hides these folders from sandboxed commands. Needs a mount namespace, which comes with [`NetworkAccess::Nothing`];
    /// without one they stay visible.
    #[must_use]
    pub fn hiding(self, hidden: Vec<PathBuf>) -> Self {
        Self { hidden, ..self }
    }

    /// Makes these folders read-only for sandboxed commands, even inside a writable folder. Needs a mount
    /// namespace, like [`Sandbox::hiding`].
    #[must_use]
    pub fn protecting(self, protected: Vec<PathBuf>) -> Self {
        Self { protected, ..self }
    }

    pub fn enforced(&self) -> Enforced {
        self.enforced
    }

    pub(crate) fn wrap(&self, program: Program) -> Program {
        self.wrapped(program, self.enforced)
    }

    fn wrapped(&self, program: Program, enforced: Enforced) -> Program {
        let enforced = serde_json::json!(enforced).to_string();
        let mut args: Vec<OsString> = vec![SANDBOXED.into(), "--enforce".into(), enforced.into()];
        let folders = [("--write", &self.writable), ("--hide", &self.hidden), ("--protect", &self.protected)];
        for (option, folders) in folders {
            args.extend(folders.iter().flat_map(|folder| [option.into(), folder.into()]));
        }
        args.extend(["--".into(), program.program.into()]);
        args.extend(program.args);
        Program { program: self.binary.clone(), args, ..program }
    }

    /// Tries the sandbox. On failure, returns why it does not work.
    async fn works(&self, enforced: Enforced, keeper: &Keeper) -> Result<Result<(), String>, SandboxError> {
        let nothing = Program {
            program: "sh".into(),
            args: vec!["-c".into(), ":".into()],
            env: Vec::new(),
            env_remove: Vec::new(),
            cwd: None,
            stdin: StdinMode::Null,
        };
        let mut child: Child = spawn(self.wrapped(nothing, enforced), keeper).await.map_err(SandboxError::Trial)?;
        let exit = match timeout(TRIAL, child.wait()).await {
            Ok(exit) => exit,
            Err(_) => child.stop(Patience::default()).await,
        };
        Ok(match (exit.success(), exit.stderr_tail.is_empty()) {
            (true, _) => Ok(()),
            (false, false) => Err(exit.stderr_tail),
            (false, true) => Err(exit.to_string()),
        })
    }
}

/// Enters the sandbox and becomes the command. `args` is what follows [`SANDBOXED`] on the command line.
///
/// Call it first in `main`, before threads or a runtime. It returns only if the command cannot be started this way.
pub fn sandboxed(args: impl Iterator<Item = OsString>) -> ExitCode {
    use std::io::Write as _;
    let why = enter(args);
    writeln!(std::io::stderr(), "{why}").ok();
    ExitCode::from(NOT_STARTED)
}

/// A shell's exit code for a program that it cannot start.
const NOT_STARTED: u8 = 126;

#[cfg(target_os = "linux")]
use enter::enter;

#[cfg(not(target_os = "linux"))]
fn enter(_: impl Iterator<Item = OsString>) -> String {
    SandboxError::OtherSystem.to_string()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
