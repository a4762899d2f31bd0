//! Ends what killed hosts left behind. If a host and both supervisors are killed at once, nobody is left to end what
//! they started; the next host does it.
//!
//! A process is a leftover if one of its marks names a dead host, and it can only have got the mark from that host
//! (`is_left`). A supervisor that outlived its host ends its processes itself; it is continued in case somebody
//! stopped it. Linux only: other systems do not show marks.

#[cfg(target_os = "linux")]
pub use self::linux::end_leftovers;

/// Other systems do not reliably show the environment of a process.
#[cfg(not(target_os = "linux"))]
pub async fn end_leftovers() -> usize {
    std::future::ready(0).await
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, getpid};
    use tokio::time::{Instant, sleep};

    use crate::descendants::{Process, ProcessEntry, all_processes, status, with_all_below};
    use crate::mark::{Mark, Origin, control_group, marks, namespaces, our_marks};
    use crate::supervisor::is_supervisor;

    /// How long supervisors may take to end their processes. They give up earlier.
    const GIVE_UP: Duration = Duration::from_secs(10);
    const POLL: Duration = Duration::from_millis(20);

    /// Ends the leftovers of this user's killed hosts, and waits until they are gone, or cannot be ended. Returns how
    /// many were ended. Cancel safe.
    pub async fn end_leftovers() -> usize {
        let begun = Instant::now();
        let mut ended = HashSet::new();
        loop {
            // Reading /proc blocks.
            let Ok(found) = tokio::task::spawn_blocking(Leftovers::find).await else { return ended.len() };
            if found.is_empty() || begun.elapsed() > GIVE_UP {
                return ended.len();
            }
            found.supervisors.iter().for_each(|supervisor| supervisor.signal(Signal::CONT));
            found.processes.iter().for_each(|process| process.signal(Signal::KILL));
            ended.extend(found.processes);
            sleep(POLL).await;
        }
    }

    #[derive(Debug, Default)]
    struct Leftovers {
        /// Supervisors that outlived their host.
        supervisors: HashSet<Process>,
        /// Processes without such a supervisor.
        processes: HashSet<Process>,
    }

    impl Leftovers {
        fn is_empty(&self) -> bool {
            self.supervisors.is_empty() && self.processes.is_empty()
        }

        fn find() -> Self {
            // Without them the process ids in marks cannot be compared with ours.
            let Some(here) = namespaces() else { return Self::default() };
            let all_processes = all_processes();
            let marked: Vec<Marked> = all_processes.iter().filter_map(Marked::read).collect();
            let ours: HashSet<Mark> = our_marks().into_iter().collect();
            let mut living = HashMap::new();
            let Self { supervisors, processes } = judge(&marked, |mark| {
                // Our own ancestors must not be ended, whether their host is alive or not.
                let origin = mark.origin().filter(|origin| origin.namespaces == here && !ours.contains(mark));
                origin.is_some_and(|origin| !*living.entry(origin.host).or_insert_with(|| origin.host.may_be_alive()))
            });
            let above_us = with_ancestors(getpid(), &all_processes);
            let is_ours = |process: &Process| !above_us.contains(&process.pid) && is_of_same_user(process.pid);
            let processes = with_all_below(all_processes, |process| processes.contains(&process));
            Self {
                supervisors,
                processes: processes.into_iter().filter(|found| found.is_alive() && is_ours(found)).collect(),
            }
        }
    }

    #[derive(Debug)]
    struct Marked {
        process: Process,
        /// The marks, outermost first: the last one is that of its own supervisor.
        marks: Vec<Mark>,
        is_supervisor: bool,
        /// Its control group, as in marks.
        group: u64,
    }

    impl Marked {
        fn read(kin: &ProcessEntry) -> Option<Self> {
            let process = kin.process;
            let marks = marks(&process.environment());
            (!kin.is_dead && !marks.is_empty()).then(|| Self {
                process,
                marks,
                is_supervisor: is_supervisor(process.pid),
                group: control_group(&process.pid.as_raw_nonzero().to_string()),
            })
        }
    }

    fn judge(marked: &[Marked], mut is_dead: impl FnMut(&Mark) -> bool) -> Leftovers {
        let dead: HashSet<&Mark> =
            marked.iter().flat_map(|marked| &marked.marks).filter(|mark| is_dead(mark)).collect();
        let own =
            |marked: &Marked| marked.marks.last().filter(|mark| marked.is_supervisor && dead.contains(mark)).cloned();
        let attended: HashSet<Mark> = marked.iter().filter_map(own).collect();
        let (supervisors, others): (Vec<&Marked>, Vec<&Marked>) =
            marked.iter().partition(|marked| own(marked).is_some());
        let is_left = |marked: &Marked| {
            let unattended = marked.marks.iter().filter(|mark| dead.contains(mark) && !attended.contains(mark));
            unattended.filter_map(Mark::origin).any(|origin| is_left(marked, &origin))
        };
        Leftovers {
            supervisors: supervisors.into_iter().map(|marked| marked.process).collect(),
            processes: others.into_iter().filter(|marked| is_left(marked)).map(|marked| marked.process).collect(),
        }
    }

    /// Whether a process can only have got the mark of that dead host by being started by it. An environment also
    /// spreads in other ways: `at` stores it, a service manager imports it. But those run in a control group of their
    /// own, and a process is never older than its host.
    fn is_left(marked: &Marked, origin: &Origin) -> bool {
        marked.group == origin.group && origin.host.started <= marked.process.started
    }

    fn with_ancestors(pid: Pid, all_processes: &[ProcessEntry]) -> HashSet<Pid> {
        let parents: HashMap<Pid, Pid> = all_processes.iter().map(|kin| (kin.process.pid, kin.parent)).collect();
        let mut found = HashSet::new();
        let mut next = Some(pid);
        // An inconsistent process list may contain loops.
        while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
            next = parents.get(&pid).copied();
        }
        found
    }

    /// Whether all user ids of a process are ours.
    fn is_of_same_user(pid: Pid) -> bool {
        let us = rustix::process::geteuid().as_raw();
        let users = status(pid, "Uid:");
        !users.is_empty() && users.iter().all(|user| user.parse() == Ok(us))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const RANDOM: &str = "0123456789abcdef0123456789abcdef";

        /// A mark of the host with that id, which started at 100 in control group 5.
        fn mark(host: i32) -> Mark {
            Mark::parse(&format!("{host}-100-7.8-5-{RANDOM}"))
        }

        fn marked(pid: i32, started: u64, group: u64, hosts: &[i32]) -> Marked {
            let process = Process { pid: Pid::from_raw(pid).unwrap(), started };
            Marked { process, marks: hosts.iter().copied().map(mark).collect(), is_supervisor: false, group }
        }

        /// Hosts below 50 are dead.
        fn check(marked: &[Marked], left: &[i32], continued: &[i32]) {
            let is_dead = |mark: &Mark| mark.origin().is_some_and(|origin| origin.host.pid.as_raw_nonzero().get() < 50);
            let found = judge(marked, is_dead);
            let pids = |found: &HashSet<Process>| {
                let mut pids: Vec<i32> = found.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
                pids.sort_unstable();
                pids
            };
            assert_eq!((pids(&found.processes), pids(&found.supervisors)), (left.to_vec(), continued.to_vec()));
        }

        #[test]
        fn only_what_a_dead_host_started_is_left_over() {
            check(&[marked(1000, 100, 5, &[10]), marked(1001, 900, 5, &[60])], &[1000], &[]);
            // Older than its host, or in another control group: the mark came in some other way.
            check(&[marked(1000, 99, 5, &[10]), marked(1001, 900, 6, &[10])], &[], &[]);
            // Below a dead host and a living one, whichever was the outer one.
            check(&[marked(1000, 900, 5, &[10, 60]), marked(1001, 900, 5, &[60, 10])], &[1000, 1001], &[]);
        }

        #[test]
        fn a_supervisor_that_lives_ends_its_own_processes() {
            let supervisor = |pid, hosts| Marked { is_supervisor: true, ..marked(pid, 200, 5, hosts) };
            let processes =
                || [marked(1000, 900, 5, &[10]), marked(1001, 900, 5, &[11]), marked(1002, 900, 5, &[10, 11])];
            check(&processes(), &[1000, 1001, 1002], &[]);
            let attended: Vec<Marked> = processes().into_iter().chain([supervisor(2000, &[10])]).collect();
            check(&attended, &[1001, 1002], &[2000]);
            let living: Vec<Marked> = processes().into_iter().chain([supervisor(2000, &[60])]).collect();
            check(&living, &[1000, 1001, 1002], &[]);
            // The supervisor of a living host is left over like any process if a dead host is above that one.
            check(&[supervisor(2000, &[10, 60])], &[2000], &[]);
        }

        #[test]
        fn we_and_those_above_us_are_spared() {
            let above = with_ancestors(getpid(), &all_processes());
            assert!(above.contains(&getpid()) && above.contains(&rustix::process::getppid().unwrap()));
            assert!(is_of_same_user(getpid()));
        }
    }
}
