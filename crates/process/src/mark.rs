//! Marks supervised processes, so that they are recognised wherever they went: by their ancestors, and by their
//! environment.
//!
//! Every supervisor gets a mark of its own in [`MARK`], which all its descendants inherit. Supervisors themselves do
//! not need it. It serves the process that started them, if all of them were killed at once, and the next host, if
//! that process was killed as well.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};

/// The variable with the marks of all supervisors above a process, separated by colons, the outermost first.
pub(crate) const MARK: &str = "MULTITAP_SUPERVISED";

/// Identifies one supervisor. Never reused.
///
/// On Linux it also identifies the process that started the supervisor, its host:
/// `PID-STARTED-NAMESPACES-GROUP-RANDOM`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        // Each state is seeded from the system's random numbers.
        let random = format!("{:016x}{:016x}", RandomState::new().hash_one(0), RandomState::new().hash_one(1));
        #[cfg(target_os = "linux")]
        if let Some(Origin { host, namespaces, group }) = Origin::ours() {
            let (pid, started) = (host.pid.as_raw_nonzero(), host.started);
            return Self(format!("{pid}-{started}-{namespaces}-{group:x}-{random}"));
        }
        Self(random)
    }

    /// The value of [`MARK`] for the processes of this supervisor: we may be supervised as well.
    pub(crate) fn value(&self) -> OsString {
        match std::env::var_os(MARK).filter(|outer| !outer.is_empty()) {
            Some(mut outer) => {
                outer.push(":");
                outer.push(&self.0);
                outer
            }
            None => self.0.clone().into(),
        }
    }

    /// The processes with this mark, and all their descendants.
    #[cfg(target_os = "linux")]
    pub(crate) fn processes(&self) -> Vec<Process> {
        with_all_below(all_processes(), |process| marks(&process.environment()).contains(self))
    }

    /// Other systems do not reliably show the environment of a process.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn processes(&self) -> Vec<crate::descendants::Process> {
        Vec::new()
    }
}

#[cfg(target_os = "linux")]
pub(crate) use self::linux::{Origin, control_group, marks, namespaces, our_marks};
#[cfg(target_os = "linux")]
use crate::descendants::{Process, all_processes, with_all_below};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    use rustix::process::{Pid, getpid};

    use super::{MARK, Mark};
    use crate::descendants::Process;

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(crate) struct Origin {
        /// The process that started the supervisor.
        pub(crate) host: Process,
        /// The namespaces in which the host's id and start time are valid.
        pub(crate) namespaces: String,
        /// The host's control group when it started the supervisor.
        pub(crate) group: u64,
    }

    impl Origin {
        pub(super) fn ours() -> Option<Self> {
            let namespaces = namespaces()?;
            Some(Self { host: Process::find(getpid())?, namespaces, group: control_group("self") })
        }
    }

    impl Mark {
        /// `None` for a foreign mark, or on a system without this information.
        pub(crate) fn origin(&self) -> Option<Origin> {
            let mut parts = self.0.split('-');
            let (pid, started, namespaces) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
            let group = u64::from_str_radix(parts.next()?, 16).ok()?;
            let is_whole = parts.next().is_some_and(|random| random.len() == 32) && parts.next().is_none();
            let host = Process { pid: Pid::from_raw(pid)?, started };
            is_whole.then(|| Origin { host, namespaces: namespaces.to_owned(), group })
        }

        #[cfg(test)]
        pub(crate) fn parse(text: &str) -> Self {
            Self(text.to_owned())
        }
    }

    /// The marks in an environment, outermost first.
    pub(crate) fn marks(environment: &[u8]) -> Vec<Mark> {
        let variables = environment.split(|byte| *byte == 0);
        let values = variables.filter_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
        let marks = values.flat_map(|value| value.split(|byte| *byte == b':')).filter(|mark| !mark.is_empty());
        marks.map(|mark| Mark(String::from_utf8_lossy(mark).into_owned())).collect()
    }

    /// The marks of the supervisors above us.
    pub(crate) fn our_marks() -> Vec<Mark> {
        let ours = std::env::var(MARK).unwrap_or_default();
        ours.split(':').filter(|mark| !mark.is_empty()).map(|mark| Mark(mark.to_owned())).collect()
    }

    /// Our PID and time namespaces. `None` if `/proc` belongs to others: then it shows other ids.
    pub(crate) fn namespaces() -> Option<String> {
        let ours = fs::read_link("/proc/self").ok()?;
        let is_ours = ours.to_str() == Some(&getpid().as_raw_nonzero().to_string());
        let number = |name: &str| {
            // `pid:[4026531836]`. Older kernels have no time namespaces, and no such link.
            let link = fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
            link.to_string_lossy().chars().filter(char::is_ascii_digit).collect::<String>()
        };
        is_ours.then(|| format!("{}.{}", number("pid"), number("time")))
    }

    /// A number that identifies the control group of that process.
    pub(crate) fn control_group(pid: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default().hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_among_others_and_only_in_its_variable() {
        let mark = Mark("b2".into());
        for (environment, expected) in [
            ("A=1\0MULTITAP_SUPERVISED=b2\0", true),
            ("MULTITAP_SUPERVISED=a1:b2:c3\0A=1\0", true),
            ("MULTITAP_SUPERVISED=a1:b22\0", false),
            ("OTHER=MULTITAP_SUPERVISED=b2\0", false),
            ("MULTITAP_SUPERVISED2=b2\0", false),
            ("", false),
        ] {
            assert_eq!(marks(environment.as_bytes()).contains(&mark), expected, "{environment:?}");
        }
    }

    #[test]
    fn no_two_marks_are_the_same() {
        assert_ne!(Mark::new().0, Mark::new().0);
    }

    #[test]
    fn a_mark_names_its_host() {
        let origin = Mark::new().origin().unwrap();
        assert_eq!(Some(&origin), Origin::ours().as_ref());
        assert!(origin.host.may_be_alive());
        assert_eq!(origin.group, control_group(&std::process::id().to_string()));
    }

    #[test]
    fn a_mark_of_somebody_else_names_no_host() {
        let random = "0123456789abcdef0123456789abcdef";
        for text in ["", random, "1-2-3-4", "1-2-3-4-5", "x-2-3-4-", "0-2-3-4-", "-1-2-3-4-", "1-2-3-4-x-"] {
            assert_eq!(Mark(format!("{text}{random}")).origin(), None, "{text:?}");
        }
        assert!(Mark(format!("1-2-3.4-f-{random}")).origin().is_some());
    }
}
