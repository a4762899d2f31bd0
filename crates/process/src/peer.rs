//! Whether a process that connects to us was started by an agent.
//!
//! Whatever an agent starts runs under a supervisor of ours, or of another Multitap of this user. Such a process has
//! supervisors above it that are not above us as well. A process cannot leave them: orphans are reparented to the
//! supervisor. If the supervisors were killed, the mark in its environment identifies it.
//!
//! Private sockets make their client an owner, so they refuse the agents of every Multitap. A port that is open to
//! the user's programs refuses only its own host's agents: they must not answer their own questions, but an agent may
//! well use another host's door.
//!
//! Linux only; elsewhere no process is recognised.

#[cfg(target_os = "linux")]
mod holder;
#[cfg(target_os = "linux")]
mod table;

use std::net::SocketAddr;

/// A TCP connection within this machine, accepted by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LocalConnection {
    pub peer: SocketAddr,
    pub own: SocketAddr,
}

/// The program that opened a connection within this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connector {
    /// A program of our user. The agents of another Multitap count as such.
    User,
    /// A process that an agent of this process started; this process itself, which connects for its built-in agent; or
    /// a process that has already ended.
    Agent,
    /// A program of another user, or of an unknown one.
    OtherUser,
}

/// Whether an agent started that process. A process that is already gone counts as one.
#[cfg(target_os = "linux")]
pub fn is_of_agent(pid: u32) -> bool {
    linux::is_of_agent(pid)
}

/// Identifies who opened each of these connections, in order. All together cost one scan of the processes and their
/// files, which may take some milliseconds.
#[cfg(target_os = "linux")]
pub fn connectors(connections: &[LocalConnection]) -> Vec<Connector> {
    linux::connectors(connections)
}

#[cfg(not(target_os = "linux"))]
pub fn is_of_agent(_pid: u32) -> bool {
    false
}

/// Other systems have no table of connections.
#[cfg(not(target_os = "linux"))]
pub fn connectors(connections: &[LocalConnection]) -> Vec<Connector> {
    vec![Connector::User; connections.len()]
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;

    use rustix::process::{Pid, getpid};

    use super::holder::{Holders, sockets_of};
    use super::table::{Row, Table};
    use super::{Connector, LocalConnection};
    use crate::descendants::{Process, ProcessEntry, all_processes, stat, with_all_below};
    use crate::mark::{marks, our_marks};
    use crate::supervisor::is_supervisor;

    /// How often the ancestors are read: one may end meanwhile, and its children get another parent.
    const ATTEMPTS: usize = 10;

    pub(super) fn is_of_agent(pid: u32) -> bool {
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
        for _ in 0..ATTEMPTS {
            if let (Some(theirs), Some(ours)) = (supervisors(pid), supervisors(getpid())) {
                return theirs.iter().any(|supervisor| !ours.contains(supervisor)) || has_foreign_mark(pid);
            }
        }
        true
    }

    /// The supervisors above a process, and itself if it is one; `None` if the ancestors changed meanwhile.
    fn supervisors(pid: Pid) -> Option<Vec<Pid>> {
        let mut found = Vec::new();
        let mut at = pid;
        loop {
            if is_supervisor(at) {
                found.push(at);
            }
            if at.is_init() {
                return Some(found);
            }
            match parent(at) {
                Parent::Is(parent) => at = parent,
                Parent::Outside => return Some(found),
                Parent::Gone => return None,
            }
        }
    }

    enum Parent {
        Is(Pid),
        /// The parent of the first process of a namespace.
        Outside,
        Gone,
    }

    fn parent(pid: Pid) -> Parent {
        match stat(pid) {
            Some(kin) => Parent::Is(kin.parent),
            None if fs::exists(format!("/proc/{}", pid.as_raw_nonzero())).unwrap_or_default() => Parent::Outside,
            None => Parent::Gone,
        }
    }

    /// Whether its environment has a mark that ours does not have.
    fn has_foreign_mark(pid: Pid) -> bool {
        let ours = our_marks();
        Process::find(pid).is_some_and(|process| marks(&process.environment()).iter().any(|mark| !ours.contains(mark)))
    }

    pub(super) fn connectors(connections: &[LocalConnection]) -> Vec<Connector> {
        // The table first: a process that gets the socket later is on the list.
        let table = Table::read(connections);
        // The built-in agent runs in this process and calls remote agents: it must not answer its own questions either.
        let own = sockets_of(getpid()).unwrap_or_default();
        let is_own = |row: &Row| own.contains(&row.inode);
        let all_processes = all_processes();
        let agents = of_agents(&all_processes);
        // Reading the files of all processes is expensive, and unnecessary while no agent runs.
        if agents.is_empty() {
            let judge = |connection| match table.row(connection) {
                Some(row) if is_own(&row) => Connector::Agent,
                row => by_user(row),
            };
            return connections.iter().map(judge).collect();
        }
        let sockets = connections.iter().filter_map(|connection| table.row(connection)).filter(is_visible);
        let holders = Holders::find(sockets.map(|row| row.inode).collect(), &agents, &all_processes);
        let judge = |connection| match table.row(connection) {
            // A client that sent a request and closed at once can no longer be identified.
            None if table.is_known() => Connector::Agent,
            Some(row) if is_own(&row) || is_visible(&row) && holders.may_be_agent(&row) => Connector::Agent,
            row => by_user(row),
        };
        connections.iter().map(judge).collect()
    }

    /// Whether its owner is visible. Only root sees the files of other users' processes.
    fn is_visible(row: &Row) -> bool {
        let us = rustix::process::geteuid();
        us.is_root() || row.owner == us.as_raw()
    }

    fn by_user(row: Option<Row>) -> Connector {
        let us = rustix::process::geteuid().as_raw();
        if row.is_some_and(|row| row.owner == us) { Connector::User } else { Connector::OtherUser }
    }

    /// All processes below the supervisors that this process started.
    fn of_agents(all_processes: &[ProcessEntry]) -> HashSet<Pid> {
        let ours = all_processes.iter().filter(|kin| kin.parent == getpid() && is_supervisor(kin.process.pid));
        let ours: HashSet<Pid> = ours.map(|kin| kin.process.pid).collect();
        let found = with_all_below(all_processes.to_vec(), |process| ours.contains(&process.pid));
        found.into_iter().map(|process| process.pid).filter(|pid| !ours.contains(pid)).collect()
    }

    #[cfg(test)]
    mod tests {
        use std::net::{TcpListener, TcpStream};

        use super::*;

        #[test]
        fn our_own_connection_is_our_agents() {
            for place in ["127.0.0.1:0", "[::1]:0"] {
                let Ok(listener) = TcpListener::bind(place) else { continue };
                let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                let (_server, peer) = listener.accept().unwrap();
                let connection = LocalConnection { peer, own: client.peer_addr().unwrap() };
                assert_eq!(connectors(&[connection, connection]), [Connector::Agent; 2], "{place}");
                drop(client);
                assert_eq!(connectors(&[connection]), [Connector::OtherUser], "nobody has it any more");
            }
        }

        #[test]
        fn we_are_not_of_an_agent_and_nobody_is_trusted_who_is_gone() {
            assert!(!is_of_agent(std::process::id()));
            assert!(is_of_agent(u32::try_from(i32::MAX).unwrap()));
        }
    }
}
