//! The protocol between a supervisor and the process that started it.
//!
//! The life line is a pair of Unix sockets; the supervisor has its end as stdin. First the program's stdio
//! descriptors are sent down. Then reports come up and orders go down, each as a line of JSON. A closed line means that
//! the other side is gone.
//!
//! Must not come in: what either side does about it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::FdFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::handle::Ending;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The program runs, with that process id.
    Started(i32),
    /// The program could not be started; that is the errno.
    Failed(i32),
    Ended(Ending),
    /// The number of processes that could not be ended.
    Left(i32),
    /// The processes of commands are gone, except for that many.
    CommandsEnded(i32),
}

/// A report or an order as a line.
pub(crate) fn line_of(message: &impl Serialize) -> String {
    // Both types can be written as JSON, so this does not fail.
    serde_json::to_string(message).unwrap_or_default() + "\n"
}

/// Parses a report or an order.
pub(crate) fn parse<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

/// The program's ends of its stdin, stdout and stderr.
pub(crate) type Stdio = [OwnedFd; 3];

/// Sends a program's stdio down the line. Ours may be closed afterwards: the line holds duplicates.
pub(crate) fn hand_over(line: impl AsFd, stdio: &Stdio) -> io::Result<()> {
    send_with(line, &[IoSlice::new(b"s")], &stdio.each_ref().map(AsFd::as_fd)).map(drop)
}

/// Receives a program's stdio from the line. No other program inherits it.
pub(crate) fn take_over(line: impl AsFd) -> io::Result<Stdio> {
    let stdio = receive_attached(line, RecvFlags::empty())?;
    for fd in &stdio {
        rustix::io::fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    stdio.try_into().map_err(|_| io::Error::new(io::ErrorKind::UnexpectedEof, "no stdio came down the life line"))
}

/// Sends bytes with up to three descriptors attached; returns how many bytes were sent.
pub(crate) fn send_with(line: impl AsFd, parts: &[IoSlice<'_>], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    Ok(sendmsg(line, parts, &mut control, SendFlags::empty())?)
}

/// Receives the next byte; returns the descriptors attached to it.
pub(crate) fn receive_attached(line: impl AsFd, flags: RecvFlags) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(line, &mut [IoSliceMut::new(&mut [0])], &mut control, flags)?;
    let fds = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    Ok(fds.flatten().collect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use super::{Report, hand_over, line_of, parse, take_over};
    use crate::handle::{CommandScope, Ending, Order};

    #[test]
    fn reports_and_orders_arrive_as_they_were_sent() {
        let endings = [Ending::Code(0), Ending::Code(255), Ending::Signal(9), Ending::Unknown];
        let reports = [Report::Started(4711), Report::Failed(2), Report::Left(3), Report::CommandsEnded(0)];
        for report in endings.map(Report::Ended).into_iter().chain(reports) {
            assert_eq!(parse(&line_of(&report)), Some(report));
        }
        let commands = Order::EndCommands(CommandScope { since: 4711, variable: "A_COMMAND".into() });
        for order in [Order::Interrupt, Order::Terminate, Order::Kill, commands] {
            assert_eq!(parse(&line_of(&order)), Some(order));
        }
    }

    #[test]
    fn noise_is_no_report_and_no_order() {
        for noise in ["", "Started", r#"{"Started":"x"}"#, r#"{"Began":1}"#, "error: unexpected argument"] {
            assert_eq!(parse::<Report>(noise), None);
            assert_eq!(parse::<Order>(noise), None);
        }
        assert_eq!(parse::<Order>(r#"{"EndCommands":{"since":"x","variable":"y"}}"#), None);
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
