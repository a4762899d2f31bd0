//! The protocol between a supervisor and the process that started it.
//!
//! The life line is a pair of Unix sockets; the supervisor has its end as stdin. First the program's stdio
//! descriptors are sent down. Then reports come up and orders go down, one per line. A closed line means that the
//! other side is gone.
//!
//! Must not come in: what either side does about it.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::FdFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use crate::handle::{CommandScope, Ending, Order};

/// A report of the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The program runs, with that process id.
    Started(i32),
    /// The program could not be started; that is the errno.
    Failed(i32),
    Ended(Ending),
    /// That many processes could not be ended.
    Left(i32),
    /// The processes of commands are gone, except for that many.
    CommandsEnded(i32),
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(pid) => write!(f, "started {pid}"),
            Self::Failed(errno) => write!(f, "failed {errno}"),
            Self::Ended(Ending::Code(code)) => write!(f, "exited {code}"),
            Self::Ended(Ending::Signal(signal)) => write!(f, "killed {signal}"),
            Self::Ended(Ending::Unknown) => write!(f, "ended 0"),
            Self::Left(count) => write!(f, "left {count}"),
            Self::CommandsEnded(count) => write!(f, "commands-ended {count}"),
        }
    }
}

impl Report {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ')?;
        let number = number.parse().ok()?;
        match word {
            "started" => Some(Self::Started(number)),
            "failed" => Some(Self::Failed(number)),
            "exited" => Some(Self::Ended(Ending::Code(number))),
            "killed" => Some(Self::Ended(Ending::Signal(number))),
            "ended" => Some(Self::Ended(Ending::Unknown)),
            "left" => Some(Self::Left(number)),
            "commands-ended" => Some(Self::CommandsEnded(number)),
            _ => None,
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupt => f.write_str("interrupt"),
            Self::Terminate => f.write_str("terminate"),
            Self::Kill => f.write_str("kill"),
            Self::EndCommands(CommandScope { since, variable }) => write!(f, "end-commands {since} {variable}"),
        }
    }
}

impl Order {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line {
            "interrupt" => Some(Self::Interrupt),
            "terminate" => Some(Self::Terminate),
            "kill" => Some(Self::Kill),
            other => {
                let (since, variable) = other.strip_prefix("end-commands ")?.split_once(' ')?;
                Some(Self::EndCommands(CommandScope { since: since.parse().ok()?, variable: variable.to_owned() }))
            }
        }
    }
}

/// The program's ends of its stdin, stdout and stderr.
pub(crate) type Stdio = [OwnedFd; 3];

/// Sends a program's stdio down the line. Ours may be closed afterwards: the line holds duplicates.
pub(crate) fn hand_over(line: impl AsFd, stdio: &Stdio) -> io::Result<()> {
    let stdio = stdio.each_ref().map(AsFd::as_fd);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&stdio));
    sendmsg(line, &[IoSlice::new(b"s")], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives a program's stdio from the line. No other program inherits it.
pub(crate) fn take_over(line: impl AsFd) -> io::Result<Stdio> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(line, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::empty())?;
    let mut stdio = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            stdio.extend(fds);
        }
    }
    for fd in &stdio {
        rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    stdio.try_into().map_err(|_| io::Error::new(io::ErrorKind::UnexpectedEof, "no stdio came down the life line"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::{Report, hand_over, take_over};
    use crate::handle::{CommandScope, Ending, Order};

    #[test]
    fn reports_and_orders_arrive_as_they_were_sent() {
        let endings = [Ending::Code(0), Ending::Code(255), Ending::Signal(9), Ending::Unknown];
        let reports = [Report::Started(4711), Report::Failed(2), Report::Left(3), Report::CommandsEnded(0)];
        for report in endings.map(Report::Ended).into_iter().chain(reports) {
            assert_eq!(Report::parse(&report.to_string()), Some(report));
        }
        let commands = Order::EndCommands(CommandScope { since: 4711, variable: "A_COMMAND".into() });
        for order in [Order::Interrupt, Order::Terminate, Order::Kill, commands] {
            assert_eq!(Order::parse(&order.to_string()), Some(order));
        }
    }

    #[test]
    fn noise_is_no_report_and_no_order() {
        for noise in ["", "started", "started x", "began 1", "error: unexpected argument"] {
            assert_eq!(Report::parse(noise), None);
            assert_eq!(Order::parse(noise), None);
        }
        assert_eq!(Order::parse("end-commands x y"), None);
    }

    #[test]
    fn stdio_goes_over_and_closes_with_its_last_holder() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut read, write) = std::io::pipe().unwrap();
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        hand_over(&ours, &[null(), write.into(), null()]).unwrap();
        let [_, stdout, _] = take_over(&theirs).unwrap();
        let mut stdout = std::fs::File::from(stdout);
        stdout.write_all(b"hello").unwrap();
        drop(stdout);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
    }

    #[test]
    fn a_line_without_stdio_is_an_error() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert!(take_over(&theirs).is_err());
    }
}
