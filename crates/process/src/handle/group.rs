//! A program that leads a process group (on Windows: a job), which is killed as a whole.
//!
//! Descendants that leave the group escape; only a supervisor ends those too.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use tokio::time::timeout;

use super::{Ending, Order, Pipes, surroundings};
use crate::spawn::{Program, StdinMode};

/// How long killed members may outlive their leader.
const AFTER_KILL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Group {
    /// The whole group; one layer below is the program itself.
    inner: Box<dyn ChildWrapper>,
    ending: Option<Ending>,
}

impl Group {
    pub(super) fn start(program: &Program) -> io::Result<(Self, Pipes)> {
        let mut command = CommandWrap::with_new(&program.program, |command| {
            command.args(&program.args);
            surroundings(command, program);
            command.stdin(match program.stdin {
                StdinMode::Piped => Stdio::piped(),
                StdinMode::Null => Stdio::null(),
            });
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        command.wrap(KillOnDrop);
        #[cfg(unix)]
        crate::default_signals::for_children();
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::tokio::JobObject);
        let mut group = Self { inner: command.spawn()?, ending: None };
        let stdin = group.inner.stdin().take();
        let (Some(stdout), Some(stderr)) = (group.inner.stdout().take(), group.inner.stderr().take()) else {
            return Err(io::Error::other("it was started without pipes"));
        };
        Ok((group, Pipes { stdin, stdout, stderr }))
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.inner.id().filter(|_| self.ending.is_none())
    }

    pub(super) fn order(&mut self, order: &Order) {
        if self.ending.is_some() {
            return; // another group may have this number by now
        }
        // Fails only if the group is gone.
        match order {
            Order::Kill => self.inner.start_kill().ok(),
            #[cfg(unix)]
            Order::Interrupt => self.inner.signal(rustix::process::Signal::INT.as_raw()).ok(),
            #[cfg(unix)]
            Order::Terminate => self.inner.signal(rustix::process::Signal::TERM.as_raw()).ok(),
            #[cfg(not(unix))]
            Order::Interrupt | Order::Terminate => None,
            Order::EndCommands(_) => None,
        };
    }

    pub(super) async fn wait(&mut self) -> Ending {
        if let Some(ending) = self.ending {
            return ending;
        }
        let ending = self.inner.inner_mut().wait().await.map_or(Ending::Unknown, ending);
        self.order(&Order::Kill);
        self.ending = Some(ending);
        // Where orphans are reparented to us, we reap them; elsewhere this returns at once.
        timeout(AFTER_KILL, self.inner.wait()).await.ok();
        ending
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.order(&Order::Kill);
    }
}

fn ending(status: ExitStatus) -> Ending {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    match (status.code(), signal) {
        (Some(code), _) => Ending::Code(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Unknown,
    }
}
