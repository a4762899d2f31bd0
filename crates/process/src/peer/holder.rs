//! Finds which processes have a socket open, for many sockets in one scan.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, getpid};

use super::table::Row;
use crate::descendants::{ProcessEntry, stat, status};

/// The processes that have some sockets open.
#[derive(Debug)]
pub(super) struct Holders {
    /// Sockets that a process of an agent has open.
    of_agents: HashSet<u64>,
    /// Sockets that were found in no process.
    unseen: HashSet<u64>,
    agents: Vec<Pid>,
    /// A process of an agent hides its files.
    agent_hides: bool,
    /// Processes outside agents that hide their files.
    hiding: Vec<Pid>,
}

impl Holders {
    pub(super) fn find(sockets: HashSet<u64>, agents: &HashSet<Pid>, all_processes: &[ProcessEntry]) -> Self {
        // Newest first: a client has often just started.
        let others = all_processes.iter().map(|kin| kin.process.pid).filter(|pid| !agents.contains(pid)).rev();
        Self::search(sockets, agents.iter().copied(), others, sockets_of)
    }

    /// Scans each process at most once, however many sockets are wanted.
    fn search(
        sockets: HashSet<u64>,
        agents: impl Iterator<Item = Pid>,
        others: impl Iterator<Item = Pid>,
        mut sockets_of: impl FnMut(Pid) -> Option<HashSet<u64>>,
    ) -> Self {
        let agents: Vec<Pid> = agents.collect();
        let mut found =
            Self { of_agents: HashSet::new(), unseen: sockets, agents, agent_hides: false, hiding: Vec::new() };
        if found.unseen.is_empty() {
            return found;
        }
        for pid in found.agents.iter().copied() {
            match sockets_of(pid) {
                Some(held) => found.of_agents.extend(held.into_iter().filter(|inode| found.unseen.contains(inode))),
                None => found.agent_hides |= is_alive(pid),
            }
        }
        found.unseen.retain(|inode| !found.of_agents.contains(inode));
        for pid in others {
            if found.unseen.is_empty() {
                break;
            }
            match sockets_of(pid) {
                Some(held) => found.unseen.retain(|inode| !held.contains(inode)),
                None => found.hiding.push(pid),
            }
        }
        found
    }

    /// Whether a process of an agent may have that socket.
    pub(super) fn may_be_agent(&self, row: &Row) -> bool {
        // No process lists the socket. The only reason to accept it is an SSH server with a tunnel, unless a process of
        // an agent may have it without listing it.
        let is_of_tunnel = || self.hiding.iter().any(|pid| is_ssh_server(*pid) && hides_files(*pid, row.owner));
        let is_concealed = || self.agents.iter().any(|pid| conceals(*pid, row.inode));
        self.of_agents.contains(&row.inode)
            || self.unseen.contains(&row.inode) && (self.agent_hides || !is_of_tunnel() || is_concealed())
    }
}

/// Whether a process may have that socket without listing it: in a thread with its own file table, in transit through
/// a Unix socket, or registered with an `io_uring`.
fn conceals(pid: Pid, inode: u64) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten().flatten();
    tasks.into_iter().any(|task| {
        // The list of a thread that has ended cannot be read.
        let is_listed = listed_sockets(&task.path().join("fd")).is_some_and(|held| held.contains(&inode));
        is_listed || has_unlisted_files(&task.path().join("fdinfo"))
    })
}

/// Whether a file of this list holds other files, which the kernel reports for Unix sockets and rings.
fn has_unlisted_files(list: &Path) -> bool {
    let entries = fs::read_dir(list).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let about = fs::read_to_string(entry.path()).unwrap_or_default();
        about.lines().any(|line| {
            let count = line.strip_prefix("scm_fds:").or_else(|| line.strip_prefix("UserFiles:"));
            count.is_some_and(|count| count.trim() != "0")
        })
    })
}

/// Whether it is an SSH server, which opens the connections of its tunnels itself. Agents cannot start one outside
/// their supervisor.
fn is_ssh_server(pid: Pid) -> bool {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
    matches!(name.trim_end(), "sshd" | "sshd-session" | "dropbear")
}

/// The sockets that a process has open; `None` if we may not look.
pub(super) fn sockets_of(pid: Pid) -> Option<HashSet<u64>> {
    listed_sockets(Path::new(&format!("/proc/{}/fd", pid.as_raw_nonzero())))
}

/// The sockets in a list of open files; `None` if it cannot be read.
fn listed_sockets(list: &Path) -> Option<HashSet<u64>> {
    let files = fs::read_dir(list).ok()?;
    let links = files.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let inode = |link: &str| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    Some(links.filter_map(|link| inode(link.to_str()?)).collect())
}

/// A process that has ended hides nothing.
fn is_alive(pid: Pid) -> bool {
    stat(pid).is_some_and(|kin| !kin.is_dead)
}

/// Whether a process with hidden files is alive and belongs to that user. Privileged processes, such as the system's
/// first, do not.
fn hides_files(pid: Pid, owner: u32) -> bool {
    let rights = |pid| u64::from_str_radix(status(pid, "CapPrm:").first()?, 16).ok();
    is_alive(pid)
        && status(pid, "Uid:").iter().any(|user| user.parse() == Ok(owner))
        && rights(pid).unwrap_or_default() & !rights(getpid()).unwrap_or_default() == 0
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::mem::MaybeUninit;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::super::LocalConnection;
    use super::super::table::Table;
    use super::*;
    use crate::descendants::all_processes;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    /// A connection to ourselves, and its row.
    fn connected() -> (TcpStream, LocalConnection, Row, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let connection = LocalConnection { peer: stream.local_addr().unwrap(), own: stream.peer_addr().unwrap() };
        let row = Table::read(&[connection]).row(&connection).unwrap();
        (stream, connection, row, listener)
    }

    fn find(row: Row) -> Holders {
        Holders::find(HashSet::from([row.inode]), &HashSet::new(), &all_processes())
    }

    #[test]
    fn every_process_is_looked_at_once_however_many_sockets_are_wanted() {
        for count in [10, 1000] {
            let mut looked_at = Vec::new();
            // Processes 1 to 5 are of agents; each process has a part of the sockets, and the last has none.
            let search = Holders::search((0..count).collect(), (1..=5).map(pid), (6..=11).map(pid), |pid| {
                looked_at.push(pid);
                let number = u64::try_from(pid.as_raw_nonzero().get()).unwrap();
                Some((0..count).filter(|inode| inode % 10 == number - 1).collect())
            });
            assert_eq!(looked_at, (1..=10).map(pid).collect::<Vec<_>>(), "and none when all are found");
            assert!(search.unseen.is_empty());
            for inode in 0..count {
                assert_eq!(search.may_be_agent(&Row { owner: 0, inode }), inode % 10 < 5, "{inode}");
            }
        }
    }

    #[test]
    fn a_socket_that_an_agent_shares_is_the_agents() {
        let search = Holders::search(HashSet::from([7]), [pid(1)].into_iter(), [pid(2)].into_iter(), |_| {
            Some(HashSet::from([7]))
        });
        assert!(search.may_be_agent(&Row { owner: 0, inode: 7 }));
    }

    #[test]
    fn our_own_socket_is_not_of_an_agent() {
        let (_stream, _, row, _listener) = connected();
        assert!(sockets_of(getpid()).unwrap().contains(&row.inode));
        assert!(!find(row).may_be_agent(&row));
    }

    #[test]
    fn a_socket_that_no_process_has_open_may_be_of_an_agent() {
        let (stream, connection, row, _listener) = connected();
        let (to, _from) = UnixStream::pair().unwrap();
        let fds = [stream.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&to, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
        drop(stream);
        assert_eq!(Table::read(&[connection]).row(&connection), Some(row), "it is open all the same");
        assert!(conceals(getpid(), row.inode), "it is in a queue of ours");
        let us = HashSet::from([getpid()]);
        let holders = Holders::find(HashSet::from([row.inode]), &us, &all_processes());
        assert!(holders.may_be_agent(&row), "whatever else hides its files");
    }

    /// The list of files of a process is that of its first thread.
    #[test]
    fn a_socket_that_a_thread_keeps_to_itself_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_FILES).unwrap();
            let stream = TcpStream::connect(own).unwrap();
            send.send(stream.local_addr().unwrap()).unwrap();
            ended.recv().ok();
        });
        let connection = LocalConnection { peer: receive.recv().unwrap(), own };
        let row = Table::read(&[connection]).row(&connection).unwrap();
        assert!(!sockets_of(getpid()).unwrap().contains(&row.inode), "it is not listed");
        assert!(conceals(getpid(), row.inode));
        let us = HashSet::from([getpid()]);
        assert!(Holders::find(HashSet::from([row.inode]), &us, &all_processes()).may_be_agent(&row));
        drop(end);
        thread.join().unwrap();
    }
}
