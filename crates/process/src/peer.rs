//! Whether an agent started a process that wants something of us.
//!
//! Whatever an agent starts runs under a supervisor of ours, or of another Multitap of this user. Such a process has
//! supervisors above it that are not above us as well. A process cannot leave them: orphans go to the supervisor. Where
//! somebody killed the supervisors, the mark in its environment identifies it.
//!
//! Private sockets make their client an owner, so they refuse the agents of every Multitap. A port that is open to the
//! user's programs refuses only its own host's agents: they must not answer their own questions, but an agent may
//! well use another host's door.
//!
//! Linux only; elsewhere nobody is recognised.

use std::net::SocketAddr;

/// Whether an agent started that process. A process that is gone cannot be asked any more, and counts as one.
#[cfg(target_os = "linux")]
pub fn is_of_agent(pid: u32) -> bool {
    linux::is_of_agent(pid)
}

/// Whether an agent of this process started the one at the other end of a TCP connection within this machine: the one
/// whose own address is `peer`, connected to `own`. Agents of another Multitap are programs like any other here.
#[cfg(target_os = "linux")]
pub fn is_connection_of_agent(peer: SocketAddr, own: SocketAddr) -> bool {
    linux::is_connection_of_agent(peer, own)
}

#[cfg(not(target_os = "linux"))]
pub fn is_of_agent(_pid: u32) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub fn is_connection_of_agent(_peer: SocketAddr, _own: SocketAddr) -> bool {
    false
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::fs;
    use std::net::{IpAddr, SocketAddr};
    use std::path::Path;

    use rustix::process::{Pid, getpid};

    use crate::descendants::{Kin, everyone, stat, with_all_below};
    use crate::mark::MARK;
    use crate::supervisor::SUPERVISE;

    /// How often the way up is walked: a process on it may end meanwhile, and what is below it gets another parent.
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

    /// The supervisors above a process, and itself if it is one; none if the way up changed meanwhile.
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
        /// Of the first process of a namespace.
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

    fn is_supervisor(pid: Pid) -> bool {
        let command = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        command.split(|byte| *byte == 0).nth(1) == Some(SUPERVISE.as_bytes())
    }

    /// Whether its environment has a mark that ours has not.
    fn has_foreign_mark(pid: Pid) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        let ours = std::env::var(MARK).unwrap_or_default();
        let ours: HashSet<&[u8]> = ours.split(':').map(str::as_bytes).collect();
        let mut variables = environment.split(|byte| *byte == 0);
        let theirs = variables.find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
        theirs
            .is_some_and(|marks| marks.split(|byte| *byte == b':').any(|mark| !mark.is_empty() && !ours.contains(mark)))
    }

    pub(super) fn is_connection_of_agent(peer: SocketAddr, own: SocketAddr) -> bool {
        let everyone = everyone();
        let of_agents = of_agents(&everyone);
        // To look at the files of all processes is dear, and needless while no agent has a process.
        !of_agents.is_empty() && is_connection_of(&of_agents, &everyone, peer, own)
    }

    /// Whether one of these processes may be at the other end.
    fn is_connection_of(of_agents: &HashSet<Pid>, everyone: &[Kin], peer: SocketAddr, own: SocketAddr) -> bool {
        let (socket, owner) = match find(peer, own) {
            Found::Socket { inode, owner } => (format!("socket:[{inode}]"), owner),
            // Whoever sent something and went at once cannot be looked at any more.
            Found::Gone => return true,
            Found::OtherUser | Found::Unknown => return false,
        };
        let mut is_hidden = false;
        for pid in of_agents {
            match holds(*pid, &socket) {
                Some(true) => return true,
                Some(false) => {}
                None => is_hidden |= hides_files(*pid, None),
            }
        }
        // The youngest first: a client has often just started.
        let others = everyone.iter().map(|kin| kin.process.pid).filter(|pid| !of_agents.contains(pid)).rev();
        let mut is_hidden_elsewhere = false;
        for pid in others {
            match holds(pid, &socket) {
                Some(true) => return false,
                Some(false) => {}
                None => is_hidden_elsewhere |= is_ssh_server(pid) && hides_files(pid, Some(owner)),
            }
        }
        // No process is seen with it. Only an SSH server with a tunnel is a reason to let it in, unless an agent's
        // process may have it where a list of its files does not show it.
        is_hidden || !is_hidden_elsewhere || of_agents.iter().any(|pid| conceals(*pid, &socket))
    }

    /// Whether a process may have that file without listing it: a thread with a list of its own has it, it is on its
    /// way through a Unix socket, or it is registered with an `io_uring`.
    fn conceals(pid: Pid, file: &str) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten().flatten();
        tasks.into_iter().any(|task| {
            // A list that cannot be read is of a thread that has ended.
            lists(&task.path().join("fd"), file).unwrap_or_default() || has_unlisted_files(&task.path().join("fdinfo"))
        })
    }

    /// Whether a file of this list holds other files, as the kernel says about Unix sockets and rings.
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

    /// Whether it is an SSH server, which makes the connections of its tunnels itself. Agents cannot start one outside
    /// their supervisor.
    fn is_ssh_server(pid: Pid) -> bool {
        let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
        matches!(name.trim_end(), "sshd" | "sshd-session" | "dropbear")
    }

    /// Whether a process that does not let us look at its files lives, and is one of that user's. One that has ended
    /// hides nothing, and one with more rights than ours, such as the system's first, is not the user's.
    fn hides_files(pid: Pid, owner: Option<u32>) -> bool {
        let status =
            |pid: Pid| fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
        let field = |status: &str, name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            found.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let rights = |status: &str| {
            let rights = field(status, "CapPrm:");
            rights.first().and_then(|rights| u64::from_str_radix(rights, 16).ok()).unwrap_or_default()
        };
        let is_owner = |owner: u32| {
            let theirs = status(pid);
            field(&theirs, "Uid:").iter().any(|user| user.parse() == Ok(owner))
                && rights(&theirs) & !rights(&status(getpid())) == 0
        };
        stat(pid).is_some_and(|kin| !kin.is_dead) && owner.is_none_or(is_owner)
    }

    /// All processes below the supervisors that this process started.
    fn of_agents(everyone: &[Kin]) -> HashSet<Pid> {
        let ours = everyone.iter().filter(|kin| kin.parent == getpid() && is_supervisor(kin.process.pid));
        let ours: HashSet<Pid> = ours.map(|kin| kin.process.pid).collect();
        let found = with_all_below(everyone.to_vec(), |process| ours.contains(&process.pid));
        found.into_iter().map(|process| process.pid).filter(|pid| !ours.contains(pid)).collect()
    }

    /// Whether a process has that file open; none if it does not let us look.
    fn holds(pid: Pid, file: &str) -> Option<bool> {
        lists(Path::new(&format!("/proc/{}/fd", pid.as_raw_nonzero())), file)
    }

    /// Whether that file is in a list of open files; none if the list cannot be read.
    fn lists(list: &Path, file: &str) -> Option<bool> {
        let files = fs::read_dir(list).ok()?;
        let mut links = files.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        Some(links.any(|link| link.as_os_str() == file))
    }

    /// The other end of a connection within this machine.
    #[derive(Debug, PartialEq, Eq)]
    enum Found {
        Socket {
            inode: u64,
            owner: u32,
        },
        /// No process has it open.
        Gone,
        OtherUser,
        /// This system has no table of connections.
        Unknown,
    }

    fn find(peer: SocketAddr, own: SocketAddr) -> Found {
        let us = rustix::process::geteuid().as_raw();
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|table| fs::read_to_string(table).ok());
        let tables: Vec<String> = tables.collect();
        let mut lines = tables.iter().flat_map(|table| table.lines().skip(1));
        let found = lines.find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = same(address(fields.get(1)?)?, peer) && same(address(fields.get(2)?)?, own);
            let (owner, inode): (u32, u64) = (fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?);
            is_it.then_some((owner, inode))
        });
        match found {
            None if tables.is_empty() => Found::Unknown,
            None | Some((_, 0)) => Found::Gone,
            Some((owner, _)) if owner != us && us != 0 => Found::OtherUser,
            Some((owner, inode)) => Found::Socket { inode, owner },
        }
    }

    /// The same place: IPv4 may stand in the table of IPv6.
    fn same(one: SocketAddr, other: SocketAddr) -> bool {
        one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
    }

    /// An address as the kernel writes it: words of four bytes in the machine's own order, and the port.
    fn address(text: &str) -> Option<SocketAddr> {
        let (ip, port) = text.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let words = ip.as_bytes().chunks(8).map(|word| {
            let word = std::str::from_utf8(word).ok()?;
            Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
        });
        let bytes = words.collect::<Option<Vec<[u8; 4]>>>()?.concat();
        let ip = match bytes.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
            _ => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        };
        Some(SocketAddr::new(ip, port))
    }

    #[cfg(test)]
    mod tests {
        use std::io::IoSlice;
        use std::mem::MaybeUninit;
        use std::net::{TcpListener, TcpStream};
        use std::os::fd::AsFd as _;
        use std::os::unix::net::UnixStream;

        use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

        use super::*;

        #[test]
        fn addresses_are_read_as_the_kernel_writes_them() {
            for (text, expected) in [
                ("0100007F:1F90", "127.0.0.1:8080"),
                ("00000000000000000000000001000000:0016", "[::1]:22"),
                ("0000000000000000FFFF00000100007F:0016", "[::ffff:127.0.0.1]:22"),
            ] {
                let little = cfg!(target_endian = "little");
                assert!(!little || address(text) == Some(expected.parse().unwrap()), "{text}");
            }
            for noise in ["", "x:1", "0100007F"] {
                assert_eq!(address(noise), None);
            }
        }

        #[test]
        fn our_own_connection_is_found_and_is_not_of_an_agent() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, theirs) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            let Found::Socket { inode, .. } = find(ours, theirs) else { panic!("{:?}", find(ours, theirs)) };
            assert_eq!(holds(getpid(), &format!("socket:[{inode}]")), Some(true));
            let is_of_nobody = || !is_connection_of(&HashSet::new(), &everyone(), ours, theirs);
            assert!(is_of_nobody());
            drop(stream);
            assert!(!is_of_nobody(), "nobody is there any more who could be looked at");
            assert!(!is_connection_of_agent(ours, theirs), "no agent has a process here");
        }

        #[test]
        fn a_connection_that_no_process_has_open_is_not_let_in() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (ours, theirs) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            let (to, _from) = UnixStream::pair().unwrap();
            let fds = [stream.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
            sendmsg(&to, &[IoSlice::new(b"x")], &mut control, SendFlags::empty()).unwrap();
            drop(stream);
            let Found::Socket { inode, .. } = find(ours, theirs) else { panic!("{:?}", find(ours, theirs)) };
            assert!(conceals(getpid(), &format!("socket:[{inode}]")), "it is in a queue of ours");
            let us = HashSet::from([getpid()]);
            assert!(is_connection_of(&us, &everyone(), ours, theirs), "whatever else hides its files");
        }

        /// The list of files of a process is that of its first thread.
        #[test]
        fn a_connection_that_a_thread_keeps_to_itself_is_found() {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let (tell, told) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let thread = std::thread::spawn(move || {
                nix::sched::unshare(nix::sched::CloneFlags::CLONE_FILES).unwrap();
                let stream = TcpStream::connect(address).unwrap();
                tell.send(stream.local_addr().unwrap()).unwrap();
                ended.recv().ok();
            });
            let ours = told.recv().unwrap();
            let Found::Socket { inode, .. } = find(ours, address) else { panic!("{:?}", find(ours, address)) };
            let socket = format!("socket:[{inode}]");
            assert_eq!(holds(getpid(), &socket), Some(false), "it is not listed");
            assert!(conceals(getpid(), &socket));
            assert!(is_connection_of(&HashSet::from([getpid()]), &everyone(), ours, address));
            drop(end);
            thread.join().unwrap();
        }

        #[test]
        fn we_are_not_of_an_agent_and_nobody_is_trusted_who_is_gone() {
            assert!(!is_of_agent(std::process::id()));
            assert!(is_of_agent(u32::try_from(i32::MAX).unwrap()));
        }
    }
}
