//! The supervisor's life: receive stdio, start the program, watch it, end everything.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::ExitCode;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{Instant, sleep};

use super::commands::EndCommands;
use super::{INNER, start};
use crate::default_signals;
use crate::descendants::{Process, descendants};
use crate::handle::{Ending, Order};
use crate::life_line::{self, Report};

/// How long terminated descendants may take to end.
const GRACE: Duration = Duration::from_millis(500);
/// How long killed descendants may take. Longer only if they are not ours to kill, or the kernel holds on to them.
const GIVE_UP: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);

/// The outer supervisor: its program is the inner one, and it has no life line. If no inner one can be started, it
/// does the work itself.
pub(super) fn outer(program: &OsStr, args: &[OsString]) -> io::Result<ExitCode> {
    apart()?;
    let mut command = start::ourselves(INNER, program, args);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = runtime.block_on(async {
        let (deaths, ends) = (unix::signal(SignalKind::child())?, EndSignals::new()?);
        let wakes = wake_with_host()?;
        let inner = command.spawn()?;
        let_go_of_line()?;
        Ok::<_, io::Error>(Supervisor::new(None, deaths, ends, Pid::from_child(&inner)).woken_by(wakes))
    });
    match started {
        Ok(supervisor) => Ok(runtime.block_on(supervisor.run())),
        Err(_) => {
            drop(runtime);
            inner(None, program, args)
        }
    }
}

/// The supervisor that does the work.
pub(super) fn inner(outer: Option<&OsStr>, program: &OsStr, args: &[OsString]) -> io::Result<ExitCode> {
    let line = io::stdin().as_fd().try_clone_to_owned()?;
    let_go_of_line()?;
    let line = StdUnixStream::from(line);
    let stdio = life_line::take_over(&line)?;
    apart()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        line.set_nonblocking(true)?;
        let (orders, mut line) = UnixStream::from_std(line)?.into_split();
        let orders = BufReader::new(orders).lines();
        // Before the program starts, so that neither its exit nor ours is missed.
        let (deaths, ends) = (unix::signal(SignalKind::child())?, EndSignals::new()?);
        if let Some(outer) = outer {
            // One of `EndSignals`.
            start::end_with(outer, Signal::TERM)?;
        }
        default_signals::for_children();
        let program = match start::program(program, args, stdio) {
            Ok(program) => program,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
                report(&mut line, Report::Failed(errno)).await;
                return Ok(ExitCode::from(start::NOT_STARTED));
            }
        };
        report(&mut line, Report::Started(program.as_raw_nonzero().get())).await;
        Ok(Supervisor::new(Some((orders, line)), deaths, ends, program).run().await)
    })
}

/// Creates a session of our own, and adopts orphans.
fn apart() -> io::Result<()> {
    // Fails only for a group leader, such as a shell's job; that is separate from us already.
    rustix::process::setsid().ok();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Asks the kernel to continue us when the host dies, in case we are stopped then. The kernel also does so when the
/// host's thread that started us ends, which is harmless.
fn wake_with_host() -> io::Result<unix::Signal> {
    let wakes = unix::signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
    Ok(wakes)
}

/// Moves the life line away from stdin. No descendant may inherit it, and only one of us may hold it.
fn let_go_of_line() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(File::open("/dev/null")?)?)
}

/// The next line from the life line, `None` at its end; never returns without a life line.
async fn next_line(line: &mut Option<LifeLine>) -> Option<String> {
    match line {
        Some((orders, _)) => orders.next_line().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// Waits until a signal continues us; never returns without one.
async fn woken(wakes: &mut Option<unix::Signal>) {
    match wakes {
        Some(wakes) => drop(wakes.recv().await),
        None => std::future::pending().await,
    }
}

async fn report(line: &mut OwnedWriteHalf, report: Report) {
    // Fails only if the receiver is gone.
    line.write_all(life_line::line_of(&report).as_bytes()).await.ok();
}

/// Orders come in at one half, reports go out at the other.
type LifeLine = (Lines<BufReader<OwnedReadHalf>>, OwnedWriteHalf);

#[derive(Clone, Copy, PartialEq, Eq)]
enum EndMode {
    /// Terminate, then kill after a grace period.
    Gentle,
    Kill,
}

struct Supervisor {
    /// `None` for the outer one.
    line: Option<LifeLine>,
    deaths: unix::Signal,
    ends: EndSignals,
    /// `None` for the inner one.
    wakes: Option<unix::Signal>,
    program: Pid,
    ending: Option<Ending>,
}

impl Supervisor {
    fn new(line: Option<LifeLine>, deaths: unix::Signal, ends: EndSignals, program: Pid) -> Self {
        Self { line, deaths, ends, wakes: None, program, ending: None }
    }

    fn woken_by(self, wakes: unix::Signal) -> Self {
        Self { wakes: Some(wakes), ..self }
    }

    async fn report(&mut self, about: Report) {
        if let Some((_, line)) = &mut self.line {
            report(line, about).await;
        }
    }

    async fn run(mut self) -> ExitCode {
        let manner = self.watch().await;
        self.end_all(manner).await;
        if cfg!(not(target_os = "linux")) {
            // Orphans were not reparented to us; those in the program's group are found through the group.
            self.signal_group(Signal::KILL);
        }
        match self.ending {
            Some(Ending::Code(code)) => ExitCode::from(code.to_le_bytes()[0]),
            Some(Ending::Signal(signal)) => ExitCode::from(128 | signal.to_le_bytes()[0]),
            Some(Ending::Unknown) | None => ExitCode::FAILURE,
        }
    }

    /// Handles orders until there is a reason to end everything.
    async fn watch(&mut self) -> EndMode {
        let mut commands: Option<EndCommands> = None;
        loop {
            tokio::select! {
                line = next_line(&mut self.line) => {
                    let Some(line) = line else { return EndMode::Gentle };
                    match life_line::parse(&line) {
                        Some(Order::Interrupt) => self.signal_group(Signal::INT),
                        Some(Order::Terminate) => self.signal_group(Signal::TERM),
                        Some(Order::Kill) => return EndMode::Kill,
                        Some(Order::EndCommands(which)) => commands = Some(EndCommands::new(which, self.program)),
                        None => {}
                    }
                }
                _ = self.deaths.recv() => {
                    self.reap().await;
                    if self.ending.is_some() {
                        return EndMode::Gentle;
                    }
                }
                () = self.ends.recv() => return EndMode::Gentle,
                () = woken(&mut self.wakes) => {
                    // The host may be gone, and whoever stopped us may have stopped the inner one too.
                    kill_process(self.program, Signal::CONT).ok(); // it is not buried, so the id is its own
                }
                () = sleep(POLL), if commands.is_some() => {
                    if let Some(left) = commands.as_mut().and_then(EndCommands::step) {
                        commands = None;
                        self.report(Report::CommandsEnded(left)).await;
                    }
                }
            }
        }
    }

    async fn end_all(&mut self, manner: EndMode) {
        let begun = Instant::now();
        let mut asked = HashSet::new();
        loop {
            let children = self.reap().await;
            let left = self.left(children);
            if left.is_empty() {
                return;
            }
            if begun.elapsed() > GIVE_UP {
                let count = i32::try_from(left.len()).unwrap_or(i32::MAX);
                return self.report(Report::Left(count)).await;
            }
            let gentle = manner == EndMode::Gentle && begun.elapsed() < GRACE;
            for process in left {
                if !gentle {
                    process.signal(Signal::KILL);
                } else if asked.insert(process) {
                    process.signal(Signal::TERM);
                }
            }
            sleep(POLL).await;
        }
    }

    /// Reaps children, and reports the program's end if it is among them.
    async fn reap(&mut self) -> Children {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => {
                    let ending = ending(status);
                    self.ending = Some(ending);
                    self.report(Report::Ended(ending)).await;
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return Children::Alive,
                Err(_) => return Children::None,
            }
        }
    }

    /// The descendants that are left.
    fn left(&self, children: Children) -> Vec<Process> {
        if cfg!(target_os = "linux") && children == Children::None {
            return Vec::new(); // an orphan further down would have become our child
        }
        let mut left = descendants(getpid());
        if left.is_empty() && self.ending.is_none() {
            left.extend(Process::find(self.program)); // the system does not let us look at its descendants
        }
        left
    }

    fn signal_group(&self, signal: Signal) {
        // Fails only if the group is gone.
        kill_process_group(self.program, signal).ok();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    Alive,
    None,
}

fn ending(status: WaitStatus) -> Ending {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Code(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Unknown,
    }
}

/// Signals that make us end everything.
struct EndSignals([unix::Signal; 4]);

impl EndSignals {
    fn new() -> io::Result<Self> {
        Ok(Self([
            unix::signal(SignalKind::hangup())?,
            unix::signal(SignalKind::interrupt())?,
            unix::signal(SignalKind::quit())?,
            unix::signal(SignalKind::terminate())?,
        ]))
    }

    async fn recv(&mut self) {
        poll_fn(|context| match self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}
