//! Which process has a session open, and whether that process is still alive.
//!
//! A process is identified by its pid, the pid namespace, its start time, and the boot id of its machine; so neither
//! a reused pid, nor a restart, nor a container with pids of its own misleads us. For a process that is not visible,
//! the expiry of its lease decides.

use multitap_event::Timestamp;

/// A process that has, or had, a session open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Boot id of its machine. Empty: unknown.
    pub(crate) boot: String,
    /// Namespace of its pid. Empty: unknown.
    pub(crate) namespace: String,
    /// Its start time in clock ticks of the system. 0: unknown.
    pub(crate) started: u64,
}

impl Process {
    pub(crate) fn this() -> Self {
        let pid = std::process::id();
        let started = match look(pid) {
            ProcessStatus::Runs { started } => started,
            ProcessStatus::Gone | ProcessStatus::Unknown => 0,
        };
        Self { pid, boot: boot(), namespace: namespace(), started }
    }

    /// Whether `other`, whose lease expires then, is still alive, as far as is visible from here.
    ///
    /// A visible process keeps its lease however long it was stopped or suspended.
    pub(crate) fn sees(&self, other: &Self, until: Timestamp, now: Timestamp) -> bool {
        self.judges(other, look, now < until)
    }

    fn judges(&self, other: &Self, look: impl Fn(u32) -> ProcessStatus, in_time: bool) -> bool {
        if !self.boot.is_empty() && !other.boot.is_empty() && self.boot != other.boot {
            return false;
        }
        if self.namespace != other.namespace {
            return in_time;
        }
        match look(other.pid) {
            ProcessStatus::Gone => false,
            ProcessStatus::Runs { started } if started != 0 && other.started != 0 => started == other.started,
            // A process has that pid; only the lease can tell whether it is the owner.
            ProcessStatus::Runs { .. } | ProcessStatus::Unknown => in_time,
        }
    }

    /// Whether the last writes of `other` may be missing, because the machine itself may have stopped.
    pub(crate) fn may_have_lost(&self, other: &Self) -> bool {
        self.boot.is_empty() || self.boot != other.boot
    }
}

/// The state of the process with a pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessStatus {
    Gone,
    Runs { started: u64 },
    Unknown,
}

#[cfg(target_os = "linux")]
fn look(pid: u32) -> ProcessStatus {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat_line(&stat),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => ProcessStatus::Gone,
        // The process ended meanwhile.
        Err(error) if error.raw_os_error() == Some(3) => ProcessStatus::Gone,
        Err(_) => ProcessStatus::Unknown,
    }
}

/// `PID (NAME) STATE …`: the name may contain anything, so fields are counted from its last parenthesis.
#[cfg(any(target_os = "linux", test))]
fn stat_line(stat: &str) -> ProcessStatus {
    let Some((_, rest)) = stat.rsplit_once(')') else { return ProcessStatus::Unknown };
    let mut fields = rest.split_ascii_whitespace();
    match fields.next() {
        // A zombie.
        Some("Z" | "X" | "x") => return ProcessStatus::Gone,
        Some(_) => {}
        None => return ProcessStatus::Unknown,
    }
    // Field 22 of the line; the state was the third.
    match fields.nth(18).and_then(|ticks| ticks.parse().ok()) {
        Some(started) => ProcessStatus::Runs { started },
        None => ProcessStatus::Unknown,
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn look(pid: u32) -> ProcessStatus {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    match pid.map(rustix::process::test_kill_process) {
        Some(Err(rustix::io::Errno::SRCH)) => ProcessStatus::Gone,
        Some(_) => ProcessStatus::Runs { started: 0 },
        None => ProcessStatus::Unknown,
    }
}

#[cfg(not(unix))]
fn look(_: u32) -> ProcessStatus {
    ProcessStatus::Unknown
}

#[cfg(target_os = "linux")]
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn boot() -> String {
    String::new()
}

#[cfg(target_os = "linux")]
fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid");
    link.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(not(target_os = "linux"))]
fn namespace() -> String {
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(boot: &str, namespace: &str, started: u64) -> Process {
        Process { pid: 7, boot: boot.into(), namespace: namespace.into(), started }
    }

    #[test]
    fn a_process_that_runs_keeps_its_lease_however_long_it_slept() {
        let here = process("boot", "pid:[1]", 1);
        let there = process("boot", "pid:[1]", 50);
        assert!(here.judges(&there, |_| ProcessStatus::Runs { started: 50 }, false));
    }

    #[test]
    fn a_pid_that_was_given_away_again_is_another_process() {
        let here = process("boot", "pid:[1]", 1);
        let there = process("boot", "pid:[1]", 50);
        assert!(!here.judges(&there, |_| ProcessStatus::Runs { started: 51 }, true));
        assert!(!here.judges(&there, |_| ProcessStatus::Gone, true));
    }

    #[test]
    fn nothing_outlives_its_machine() {
        let here = process("boot", "pid:[1]", 1);
        let there = process("earlier", "pid:[1]", 50);
        assert!(!here.judges(&there, |_| ProcessStatus::Runs { started: 50 }, true));
        assert!(here.may_have_lost(&there));
        assert!(!here.may_have_lost(&process("boot", "pid:[1]", 50)));
    }

    #[test]
    fn where_one_cannot_look_the_time_decides() {
        let here = process("boot", "pid:[1]", 1);
        let container = process("boot", "pid:[2]", 50);
        assert!(here.judges(&container, |_| ProcessStatus::Gone, true), "its pid counts elsewhere");
        assert!(!here.judges(&container, |_| ProcessStatus::Runs { started: 50 }, false));
        let plain = process("", "", 0);
        assert!(plain.judges(&plain, |_| ProcessStatus::Runs { started: 0 }, true));
        assert!(!plain.judges(&plain, |_| ProcessStatus::Runs { started: 0 }, false));
        assert!(!plain.judges(&plain, |_| ProcessStatus::Gone, true));
        assert!(plain.may_have_lost(&plain), "without a boot id a power cut cannot be ruled out");
    }

    #[test]
    fn the_line_of_a_process_is_read_whatever_its_name() {
        let line = "12 (a) b) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
        assert_eq!(stat_line(line), ProcessStatus::Runs { started: 98765 });
        assert_eq!(stat_line(&line.replace(" S ", " Z ")), ProcessStatus::Gone);
        assert_eq!(stat_line("12 (truncated"), ProcessStatus::Unknown);
        assert_eq!(stat_line("12 (cut) S 1"), ProcessStatus::Unknown);
    }

    #[test]
    fn we_see_ourselves() {
        let this = Process::this();
        let now = Timestamp::from_millis(1_000);
        assert!(this.sees(&this, Timestamp::from_millis(2_000), now));
    }
}
