//! A running program, as the process that started it sees it: how to ask it to end, how to wait for its end.
//!
//! Dropping it ends it. Must not come in: what goes through its pipes, how long anybody waits.

mod group;
#[cfg(unix)]
mod supervised;

use std::io;
use std::path::Path;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

use crate::spawn::{Keeper, Program};
use group::Group;
#[cfg(unix)]
use supervised::Supervised;

/// What a program is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    Interrupt,
    Terminate,
    /// With all it started.
    Kill,
    /// The program stays; what it started for these commands ends.
    EndCommands(Commands),
}

/// The commands that a program has started since some moment, and their processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commands {
    /// In clock ticks since boot.
    pub(crate) since: u64,
    /// What the program sets in the environment of commands, and of nothing else.
    pub(crate) variable: String,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
    /// Nobody saw it.
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
pub(crate) enum Kept {
    #[cfg(unix)]
    Supervised(Box<Supervised>),
    Group(Group),
}

impl Kept {
    /// Starts a program. The error's kind says what is wrong with the program; trouble of the keeper's own is
    /// [`io::ErrorKind::Other`].
    pub(crate) async fn start(program: &Program, keeper: &Keeper) -> io::Result<(Self, Pipes)> {
        match keeper {
            Keeper::Supervisor(binary) => start_supervised(program, binary).await,
            Keeper::Group => start_group(program),
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

    /// Passes an order on; a program that is gone needs none.
    pub(crate) fn order(&mut self, order: &Order) {
        match self {
            #[cfg(unix)]
            Self::Supervised(supervised) => supervised.order(order),
            Self::Group(group) => group.order(order),
        }
    }

    /// Ends the processes of commands, and waits until they are gone, or cannot be ended. Cancel safe.
    pub(crate) async fn end_commands(&mut self, commands: Commands) {
        match self {
            #[cfg(unix)]
            Self::Supervised(supervised) => supervised.end_commands(commands).await,
            // Nobody watches over a group but us, and we know no process in it.
            Self::Group(_) => {}
        }
    }

    /// Waits until the program has ended and what it left behind has been ended. Cancel safe.
    pub(crate) async fn wait(&mut self) -> Ending {
        match self {
            #[cfg(unix)]
            Self::Supervised(supervised) => supervised.wait().await,
            Self::Group(group) => group.wait().await,
        }
    }
}

#[cfg(unix)]
async fn start_supervised(program: &Program, binary: &Path) -> io::Result<(Kept, Pipes)> {
    let (supervised, pipes) = Supervised::start(program, binary).await?;
    Ok((Kept::Supervised(Box::new(supervised)), pipes))
}

/// Where there are no life lines, the system's own way to tie processes together does.
#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "the same call as where it waits")]
async fn start_supervised(program: &Program, _: &Path) -> io::Result<(Kept, Pipes)> {
    start_group(program)
}

fn start_group(program: &Program) -> io::Result<(Kept, Pipes)> {
    let (group, pipes) = Group::start(program)?;
    Ok((Kept::Group(group), pipes))
}

/// The folder and environment a program runs in.
fn surroundings(command: &mut Command, program: &Program) {
    for name in &program.env_remove {
        command.env_remove(name);
    }
    command.envs(program.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
}
