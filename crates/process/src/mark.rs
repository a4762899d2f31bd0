//! How a supervised process is recognised, wherever it went: by what stands above it, and by its environment.
//!
//! Every supervisor gets a mark of its own in [`MARK`], which all it starts inherit. The supervisors themselves do
//! not need it. It serves the process that started them, when somebody killed all of them at once.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};

/// The variable with the marks of all supervisors above a process, separated by colons, the outermost first.
pub(crate) const MARK: &str = "MULTITAP_SUPERVISED";

/// Names one supervisor. Never used twice.
#[derive(Debug, Clone)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn new() -> Self {
        // Each state has keys of its own from the system's random numbers.
        Self(format!("{:016x}{:016x}", RandomState::new().hash_one(0), RandomState::new().hash_one(1)))
    }

    /// What [`MARK`] is for the processes of this supervisor: we may be supervised as well.
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

    #[cfg(target_os = "linux")]
    fn is_in(&self, environment: &[u8]) -> bool {
        let variables = environment.split(|byte| *byte == 0);
        let mut values = variables.filter_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="));
        values.any(|value| value.split(|byte| *byte == b':').any(|mark| mark == self.0.as_bytes()))
    }

    /// The processes that have this mark, and all that descend from them.
    #[cfg(target_os = "linux")]
    pub(crate) fn processes(&self) -> Vec<crate::descendants::Process> {
        crate::descendants::with_all_below(crate::descendants::everyone(), |process| self.is_in(&process.environment()))
    }

    /// Other systems do not show the environment of a process in a form that can be trusted.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn processes(&self) -> Vec<crate::descendants::Process> {
        Vec::new()
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
            assert_eq!(mark.is_in(environment.as_bytes()), expected, "{environment:?}");
        }
    }

    #[test]
    fn no_two_marks_are_the_same() {
        assert_ne!(Mark::new().0, Mark::new().0);
    }
}
