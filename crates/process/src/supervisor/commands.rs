//! Ends the processes of a program's commands, and leaves the program and its other children alone.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid};

use crate::descendants::{Process, ProcessEntry, all_processes, tree};
use crate::handle::CommandScope;

/// How long terminated processes may take to end.
const GRACE: Duration = Duration::from_millis(500);
/// How long killed processes may take to end.
const GIVE_UP: Duration = Duration::from_secs(3);

pub(super) struct EndCommands {
    commands: CommandScope,
    program: Pid,
    begun: Instant,
    asked: HashSet<Process>,
}

impl EndCommands {
    pub(super) fn new(commands: CommandScope, program: Pid) -> Self {
        Self { commands, program, begun: Instant::now(), asked: HashSet::new() }
    }

    /// Finds processes of the commands and signals them. Returns, when done, how many could not be ended.
    pub(super) fn step(&mut self) -> Option<i32> {
        let below = tree(getpid(), all_processes());
        let left = belonging(&below, self.program, self.commands.since, |process| self.has_variable(process));
        if left.is_empty() || self.begun.elapsed() > GIVE_UP {
            return Some(i32::try_from(left.len()).unwrap_or(i32::MAX));
        }
        for process in left {
            if self.begun.elapsed() > GRACE {
                process.signal(Signal::KILL);
            } else if self.asked.insert(process) {
                process.signal(Signal::TERM);
            }
        }
        None
    }

    #[cfg(target_os = "linux")]
    fn has_variable(&self, process: Process) -> bool {
        let environment = process.environment();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|entry| {
            entry.strip_prefix(self.commands.variable.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn has_variable(&self, _: Process) -> bool {
        false
    }
}

/// The processes of commands among our descendants, parents first. Processes from before `since` never belong to
/// them.
fn belonging(below: &[ProcessEntry], program: Pid, since: u64, is_marked: impl Fn(Process) -> bool) -> Vec<Process> {
    let us = below.iter().find(|kin| kin.process.pid == program).map(|kin| kin.parent);
    let mut found = HashSet::new();
    let mut in_order = Vec::new();
    for kin in below.iter().filter(|kin| kin.process.pid != program && kin.process.started >= since && !kin.is_dead) {
        let is_orphan = Some(kin.parent) == us;
        if is_orphan || found.contains(&kin.parent) || is_marked(kin.process) {
            found.insert(kin.process.pid);
            in_order.push(kin.process);
        }
    }
    in_order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_young_processes_of_commands_belong_to_them() {
        let pid = |raw| Pid::from_raw(raw).unwrap();
        let kin = |raw, parent, started| ProcessEntry {
            process: Process { pid: pid(raw), started },
            parent: pid(parent),
            is_dead: false,
        };
        // 2 is the program, 1 its supervisor. 3 and 4 are helpers, 5 a command of before, 6 one of now, 7 below it.
        // 8 and 9 have lost their parent, 9 long ago.
        let below = [
            kin(2, 1, 10),
            kin(8, 1, 120),
            kin(9, 1, 50),
            kin(3, 2, 20),
            kin(4, 2, 110),
            kin(5, 2, 60),
            kin(6, 2, 105),
            kin(7, 6, 106),
        ];
        let found = belonging(&below, pid(2), 100, |process| [5, 6].contains(&process.pid.as_raw_nonzero().get()));
        let found: Vec<i32> = found.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [8, 6, 7]);
    }
}
