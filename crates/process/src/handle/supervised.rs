//! A program under a supervisor, seen from our end of the life line.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use super::{CommandScope, Ending, Order, Pipes, surroundings};
use crate::descendants::{Process, descendants};
use crate::life_line::{Report, hand_over, line_of, parse};
use crate::mark::{MARK, Mark};
use crate::spawn::{Program, StdinMode};
use crate::supervisor::SUPERVISE;

/// How long a supervisor may take to report that the program started. It normally takes milliseconds.
const START: Duration = Duration::from_secs(10);

/// How long killed leftovers may take to be gone, after the supervisors were killed.
const AFTER_KILL: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Dropping it closes the life line, and the supervisor ends everything.
#[derive(Debug)]
pub(crate) struct Supervised {
    supervisor: Child,
    reports: Lines<BufReader<OwnedReadHalf>>,
    orders: OwnedWriteHalf,
    mark: Mark,
    /// The program, once it runs.
    program: Option<Process>,
    ending: Option<Ending>,
}

impl Supervised {
    pub(super) async fn start(program: &Program, binary: &Path) -> io::Result<(Self, Pipes)> {
        let (stdio, pipes) = pipes(program.stdin)?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        hand_over(&ours, &stdio)?;
        drop(stdio);
        let mark = Mark::new();
        let supervisor = supervisor(program, binary, theirs.into(), &mark)?;
        ours.set_nonblocking(true)?;
        let (reports, orders) = UnixStream::from_std(ours)?.into_split();
        let reports = BufReader::new(reports).lines();
        let mut supervised = Self { supervisor, reports, orders, mark, program: None, ending: None };
        let report = timeout(START, supervised.report()).await.map_err(|_| trouble("said nothing", binary))?;
        match report {
            // The program may have ended already; then its id may belong to another process.
            Some(Report::Started(pid)) => supervised.program = Pid::from_raw(pid).and_then(Process::find),
            Some(Report::Failed(errno)) => return Err(io::Error::from_raw_os_error(errno)),
            Some(Report::Ended(_) | Report::Left(_) | Report::CommandsEnded(_)) | None => {
                return Err(trouble("ended at its start", binary));
            }
        }
        Ok((supervised, pipes))
    }

    pub(super) fn pid(&self) -> Option<u32> {
        let program = self.program.filter(|_| self.ending.is_none())?;
        u32::try_from(program.pid.as_raw_nonzero().get()).ok()
    }

    pub(super) fn order(&self, order: &Order) {
        // Fails only if the supervisor is gone, and so the program. Orders are shorter than any socket buffer.
        self.orders.try_write(line_of(order).as_bytes()).ok();
        if *order == Order::Kill {
            self.wake();
        }
    }

    /// Continues the supervisors: a stopped one handles no orders.
    fn wake(&self) {
        let outer = self.supervisor.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).and_then(Process::find);
        // The inner one is the program's parent.
        let inner = self.program.and_then(Process::parent);
        for supervisor in outer.into_iter().chain(inner.filter(|inner| inner.pid != rustix::process::getpid())) {
            supervisor.signal(Signal::CONT);
        }
    }

    pub(super) async fn end_commands(&mut self, commands: CommandScope) {
        self.order(&Order::EndCommands(commands));
        let ended = async {
            while let Some(report) = self.report().await {
                match report {
                    Report::CommandsEnded(0) => return,
                    Report::CommandsEnded(count) | Report::Left(count) => {
                        tracing::warn!(count, "processes of a command could not be ended");
                        return;
                    }
                    Report::Ended(ending) => self.ending = Some(ending),
                    Report::Started(_) | Report::Failed(_) => {}
                }
            }
        };
        // A stopped or killed supervisor does not report.
        timeout(AFTER_KILL, ended).await.ok();
    }

    pub(super) async fn wait(&mut self) -> Ending {
        while let Some(report) = self.report().await {
            match report {
                Report::Ended(ending) => self.ending = Some(ending),
                Report::Left(count) => tracing::warn!(count, "processes could not be ended"),
                Report::Started(_) | Report::Failed(_) | Report::CommandsEnded(_) => {}
            }
        }
        self.supervisor.wait().await.ok();
        if self.ending.is_none() {
            self.end_left().await;
        }
        *self.ending.get_or_insert(Ending::Unknown)
    }

    /// Ends everything that can still be found after the supervisors were killed, perhaps all of them.
    async fn end_left(&self) {
        let begun = Instant::now();
        loop {
            let below =
                self.program.into_iter().flat_map(|program| descendants(program.pid).into_iter().chain([program]));
            let left: Vec<Process> = below.filter(|process| process.is_alive()).chain(self.mark.processes()).collect();
            if left.is_empty() || begun.elapsed() > AFTER_KILL {
                return;
            }
            tracing::warn!(count = left.len(), "a supervisor was killed; ending what it leaves");
            for process in left {
                process.signal(Signal::KILL);
            }
            sleep(POLL).await;
        }
    }

    /// The next report; `None` when the supervisor is gone, or is not a supervisor. Cancel safe.
    async fn report(&mut self) -> Option<Report> {
        self.reports.next_line().await.ok().flatten().and_then(|line| parse(&line))
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if self.ending.is_none() {
            self.wake();
        }
    }
}

fn supervisor(program: &Program, binary: &Path, life_line: OwnedFd, mark: &Mark) -> io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "this is where children start")]
    let mut command = Command::new(binary);
    command.arg(SUPERVISE).arg("--").arg(&program.program).args(&program.args);
    surroundings(&mut command, program);
    command.env(MARK, mark.value());
    // Process lists should show our name, not the path of our binary.
    if let Some(name) = std::env::args_os().next().filter(|_| binary.starts_with("/proc")) {
        command.arg0(name);
    }
    command.stdin(Stdio::from(life_line)).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| trouble(&format!("cannot be started ({error})"), binary))
}

fn trouble(what: &str, binary: &Path) -> io::Error {
    io::Error::other(format!("its supervisor {} {what}", binary.display()))
}

/// The program's ends of the pipes, and ours.
fn pipes(stdin: StdinMode) -> io::Result<([OwnedFd; 3], Pipes)> {
    let (stdin, our_stdin): (OwnedFd, _) = match stdin {
        StdinMode::Piped => {
            let (read, write) = io::pipe()?;
            (read.into(), Some(ChildStdin::from_std(OwnedFd::from(write).into())?))
        }
        StdinMode::Null => (File::open("/dev/null")?.into(), None),
    };
    let (our_stdout, stdout) = io::pipe()?;
    let (our_stderr, stderr) = io::pipe()?;
    let pipes = Pipes {
        stdin: our_stdin,
        stdout: ChildStdout::from_std(OwnedFd::from(our_stdout).into())?,
        stderr: ChildStderr::from_std(OwnedFd::from(our_stderr).into())?,
    };
    Ok(([stdin, stdout.into(), stderr.into()], pipes))
}
