//! Finds the descendants of a process, even in other sessions and process groups.

use std::collections::HashMap;

use rustix::process::{Pid, Signal, kill_process};

/// A process. Its start time distinguishes it from a later process with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// Start time in clock ticks since boot. Zero where the system does not say.
    pub(crate) started: u64,
}

impl Process {
    /// The process that has this id now.
    #[cfg(target_os = "linux")]
    pub(crate) fn find(pid: Pid) -> Option<Self> {
        Some(stat(pid)?.process)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn find(pid: Pid) -> Option<Self> {
        rustix::process::test_kill_process(pid).ok().map(|()| Self { pid, started: 0 })
    }

    /// Sends a signal, unless the process is gone. A later process with its id gets none.
    pub(crate) fn signal(self, signal: Signal) {
        #[cfg(target_os = "linux")]
        if let Ok(held) = rustix::process::pidfd_open(self.pid, rustix::process::PidfdFlags::empty()) {
            // The pidfd pins one process; if that is still ours, it stays ours until the signal is sent.
            if Self::find(self.pid) == Some(self) {
                rustix::process::pidfd_send_signal(held, signal).ok();
            }
            return;
        }
        if Self::find(self.pid) == Some(self) {
            // Fails only if the process ended meanwhile, or is not ours to signal.
            kill_process(self.pid, signal).ok();
        }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn parent(self) -> Option<Self> {
        stat(self.pid).filter(|kin| kin.process == self).and_then(|kin| Self::find(kin.parent))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn parent(self) -> Option<Self> {
        None
    }

    /// Whether the process runs. A zombie does not.
    pub(crate) fn is_alive(self) -> bool {
        #[cfg(target_os = "linux")]
        return stat(self.pid).is_some_and(|kin| kin.process == self && !kin.is_dead);
        #[cfg(not(target_os = "linux"))]
        return Self::find(self.pid) == Some(self);
    }

    /// Whether the process runs, or the system does not let us see it.
    #[cfg(target_os = "linux")]
    pub(crate) fn may_be_alive(self) -> bool {
        match stat(self.pid) {
            Some(kin) => kin.process == self && !kin.is_dead,
            None => rustix::process::test_kill_process(self.pid) != Err(rustix::io::Errno::SRCH),
        }
    }

    /// The environment it was started with; empty if it is gone or not readable.
    #[cfg(target_os = "linux")]
    pub(crate) fn environment(self) -> Vec<u8> {
        std::fs::read(format!("/proc/{}/environ", self.pid.as_raw_nonzero())).unwrap_or_default()
    }
}

/// A process and its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) process: Process,
    pub(crate) parent: Pid,
    /// A zombie.
    pub(crate) is_dead: bool,
}

/// Every descendant of `root` right now, parents before their children.
pub(crate) fn descendants(root: Pid) -> Vec<Process> {
    tree(root, all_processes()).into_iter().map(|kin| kin.process).collect()
}

/// Like [`descendants`], for a process table that was already read; includes the parents' ids.
pub(crate) fn tree(root: Pid, all_processes: Vec<ProcessEntry>) -> Vec<ProcessEntry> {
    let mut children = by_parent(all_processes.into_iter().filter(|kin| kin.process.pid != root));
    let mut found = children.remove(&root).unwrap_or_default();
    extend_with_children(&mut found, &mut children);
    found
}

/// The marked processes and all their descendants, each once. Every process is checked once, however many are marked.
#[cfg(target_os = "linux")]
pub(crate) fn with_all_below(
    all_processes: Vec<ProcessEntry>,
    mut is_marked: impl FnMut(Process) -> bool,
) -> Vec<Process> {
    let (mut found, others): (Vec<ProcessEntry>, Vec<ProcessEntry>) =
        all_processes.into_iter().partition(|kin| is_marked(kin.process));
    let mut children = by_parent(others);
    extend_with_children(&mut found, &mut children);
    found.into_iter().map(|kin| kin.process).collect()
}

fn by_parent(kin: impl IntoIterator<Item = ProcessEntry>) -> HashMap<Pid, Vec<ProcessEntry>> {
    let mut children: HashMap<Pid, Vec<ProcessEntry>> = HashMap::new();
    for kin in kin {
        children.entry(kin.parent).or_default().push(kin);
    }
    children
}

/// Children are removed from the map, so that even an inconsistent table causes no endless loop.
fn extend_with_children(found: &mut Vec<ProcessEntry>, children: &mut HashMap<Pid, Vec<ProcessEntry>>) {
    let mut next = 0;
    while let Some(kin) = found.get(next) {
        found.extend(children.remove(&kin.process.pid).unwrap_or_default());
        next += 1;
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn all_processes() -> Vec<ProcessEntry> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    pids.filter_map(stat).collect()
}

#[cfg(target_os = "linux")]
pub(crate) fn stat(pid: Pid) -> Option<ProcessEntry> {
    read_stat(pid, &std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
}

/// The value under that name in `/proc/PID/status`, such as `Uid:`.
#[cfg(target_os = "linux")]
pub(crate) fn status(pid: Pid, name: &str) -> Vec<String> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    let found = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    found.split_whitespace().map(str::to_owned).collect()
}

/// Parses `PID (NAME) STATE PARENT …`; the name may contain anything, even spaces and brackets.
#[cfg(target_os = "linux")]
fn read_stat(pid: Pid, stat: &[u8]) -> Option<ProcessEntry> {
    /// Index of the start time, counted from the field after the name.
    const STARTED: usize = 19;
    let name_end = memchr::memrchr(b')', stat)?;
    let fields = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().take(STARTED + 1).collect();
    let parent = Pid::from_raw(fields.get(1)?.parse().ok()?)?;
    let is_dead = matches!(*fields.first()?, "Z" | "X");
    Some(ProcessEntry { process: Process { pid, started: fields.get(STARTED)?.parse().ok()? }, parent, is_dead })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn all_processes() -> Vec<ProcessEntry> {
    #[expect(clippy::disallowed_methods, reason = "it lists processes and ends at once")]
    let mut ps = std::process::Command::new("/bin/ps");
    let Ok(output) = ps.args(["-axo", "pid=,ppid="]).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    let kin = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().map(|field| field.parse().ok().and_then(Pid::from_raw));
        let (pid, parent) = (fields.next()??, fields.next()??);
        // A process that is already gone, such as `ps` itself, is skipped.
        Some(ProcessEntry { process: Process::find(pid)?, parent, is_dead: false })
    });
    kin.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    fn check(root: i32, kin: &[(i32, i32)], expected: &[i32]) {
        let kin = kin.iter().map(|(child, parent)| {
            let process = Process { pid: pid(*child), started: 0 };
            ProcessEntry { process, parent: pid(*parent), is_dead: false }
        });
        let found: Vec<Pid> = tree(pid(root), kin.collect()).iter().map(|kin| kin.process.pid).collect();
        let expected: Vec<Pid> = expected.iter().map(|raw| pid(*raw)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tree_is_found_whatever_its_order() {
        check(10, &[(13, 12), (11, 10), (20, 1), (12, 11), (14, 10)], &[11, 14, 12, 13]);
        check(10, &[(20, 1)], &[]);
        check(10, &[(11, 12), (12, 11)], &[]);
        check(10, &[(11, 10), (10, 11)], &[11]);
    }

    /// Each marked process once had a tree made for it, out of a table of its own.
    #[cfg(target_os = "linux")]
    #[test]
    fn every_process_is_looked_at_once_however_many_are_marked() {
        let kin = |(child, parent): (i32, i32)| {
            let process = Process { pid: pid(child), started: 0 };
            ProcessEntry { process, parent: pid(parent), is_dead: false }
        };
        for count in [2000, 8000] {
            let chain = (2..=count).map(|child| kin((child, child - 1))).chain([kin((count + 1, 1_000_000))]);
            let mut looked_at = 0;
            let found = with_all_below(chain.collect(), |process| {
                looked_at += 1;
                process.pid.as_raw_nonzero().get() % 2 == 0
            });
            assert_eq!(looked_at, count);
            assert_eq!(found.len(), usize::try_from(count - 1).unwrap(), "all but the stranger");
            let distinct: std::collections::HashSet<Process> = found.iter().copied().collect();
            assert_eq!(distinct.len(), found.len());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_cannot_disguise_the_parent() {
        let rest = " 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 7777 1 1";
        let kin = |parent| ProcessEntry {
            process: Process { pid: pid(42), started: 7777 },
            parent: pid(parent),
            is_dead: false,
        };
        let read = |start: &str| read_stat(pid(42), format!("{start}{rest}").as_bytes());
        assert_eq!(read("42 (sh) S 7"), Some(kin(7)));
        assert_eq!(read("42 (a) S 1 (b) R 7"), Some(kin(7)));
        assert_eq!(read("42 (kthreadd) S 0"), None);
        assert_eq!(read_stat(pid(42), b""), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_later_process_with_the_same_id_gets_no_signal() {
        let ours = Process::find(rustix::process::getpid()).unwrap();
        let earlier = Process { started: ours.started - 1, ..ours };
        earlier.signal(Signal::KILL);
        assert_eq!(Process::find(ours.pid), Some(ours));
    }

    #[test]
    fn we_descend_from_our_parent() {
        let parent = rustix::process::getppid().unwrap();
        assert!(descendants(parent).iter().any(|process| process.pid == rustix::process::getpid()));
    }
}
