//! A running program as seen by its parent: how it is asked to end, how its end is awaited.
//!
//! Dropping it ends the program. Must not come in: the data in its pipes, time limits.

mod group;
#[cfg(unix)]
mod supervised;

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::spawn::{Keeper, Program};
use group::Group;
#[cfg(unix)]
use supervised::Supervised;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    Interrupt,
    Terminate,
    /// With all its descendants.
    Kill,
    /// The program continues; what it started for these commands ends.
    EndCommands(CommandScope),
}

/// The commands that a program has started since some moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandScope {
    /// In clock ticks since boot.
    pub(crate) since: u64,
    /// The environment variable that the program sets for commands only.
    pub(crate) variable: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
    /// The exit was not observed.
    Unknown,
}

/// Our ends of a program's pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

#[derive(Debug)]
pub(crate) enum ProgramHandle {
    #[cfg(unix)]
    Supervised(Box<Supervised>),
    Group(Group),
}

impl ProgramHandle {
    /// Starts a program. The error's kind says what is wrong with the program; a failure of the supervisor is
    /// [`io::ErrorKind::Other`].
    pub(crate) async fn start(program: &Program, keeper: &Keeper) -> io::Result<(Self, Pipes)> {
        match keeper {
            Keeper::Supervisor(binary) => start_supervised(program, binary).await,
            Keeper::Group => Group::start(program).map(|(group, pipes)| (Self::Group(group), pipes)),
        }
    }

    /// The program's process id, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        match self {
            #[cfg(unix)]
            Self::Supervised(supervised) => supervised.pid(),
            Self::Group(group) => group.pid(),
        }
    }

    /// Sends an order; a program that is gone needs none.
    pub(crate) fn order(&mut self, order: &Order) {
        match self {
            #[cfg(unix)]
            Self::Supervised(supervised) => supervised.order(order),
            Self::Group(group) => group.order(order),
        }
    }

    /// Ends the processes of commands, and waits until they are gone, or cannot be ended. Cancel safe.
    pub(crate) async fn end_commands(&mut self, commands: CommandScope) {
        match self {
            #[cfg(unix)]
            Self::Supervised(supervised) => supervised.end_commands(commands).await,
            // In a process group, the processes of commands cannot be told apart.
            Self::Group(_) => {}
        }
    }

    /// Waits until the program has ended and its leftovers have been ended. Cancel safe.
    pub(crate) async fn wait(&mut self) -> Ending {
        match self {
            #[cfg(unix)]
            Self::Supervised(supervised) => supervised.wait().await,
            Self::Group(group) => group.wait().await,
        }
    }
}

#[cfg(unix)]
async fn start_supervised(program: &Program, binary: &Path) -> io::Result<(ProgramHandle, Pipes)> {
    let (supervised, pipes) = Supervised::start(program, binary).await?;
    Ok((ProgramHandle::Supervised(Box::new(supervised)), pipes))
}

/// Without life lines, a process group or job object is used.
#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "the same call as where it waits")]
async fn start_supervised(program: &Program, _: &Path) -> io::Result<(ProgramHandle, Pipes)> {
    Group::start(program).map(|(group, pipes)| (ProgramHandle::Group(group), pipes))
}

fn surroundings(command: &mut Command, program: &Program) {
    for name in &program.env_remove {
        command.env_remove(name);
    }
    command.envs(program.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
}
