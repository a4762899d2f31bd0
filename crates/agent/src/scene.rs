//! Helpers for tests of commands: a supervisor, and the processes that descend from it.

use std::time::Duration;

#[cfg(target_os = "linux")]
use multitap_process::Keeper;
use multitap_testkit::wait;

/// Longer than anything takes, even on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// The supervisor and sandbox of these tests, which cargo builds beside them.
#[cfg(target_os = "linux")]
pub(crate) fn supervisor() -> Keeper {
    let here = std::env::current_exe().unwrap();
    let built = here.ancestors().nth(2).unwrap().join("agent-keeper");
    assert!(built.exists(), "{} is not built: test the whole crate, not its library alone", built.display());
    Keeper::Supervisor(built)
}

pub(crate) async fn until(what: &str, mut happened: impl FnMut() -> bool) {
    wait::until(what, LONG, || happened().then_some(())).await.unwrap();
}

/// An environment variable that marks every process a test starts.
pub(crate) struct Mark(String);

const NAME: &str = "MULTITAP_TEST_MARK";

impl Mark {
    pub(crate) fn new() -> Self {
        Self(uuid::Uuid::new_v4().to_string())
    }

    pub(crate) fn variable(&self) -> (String, String) {
        (NAME.to_owned(), self.0.clone())
    }

    /// The processes with the mark, supervisors included.
    pub(crate) fn processes(&self) -> Vec<u32> {
        wait::with_variable(NAME, &self.0).into_iter().map(|process| process.pid).collect()
    }

    pub(crate) async fn counts(&self, enough: impl Fn(usize) -> bool) {
        until("so many processes", || enough(self.processes().len())).await;
    }

    pub(crate) async fn gone(&self) {
        self.counts(|count| count == 0).await;
    }
}

/// Memory in use by this process.
#[cfg(target_os = "linux")]
pub(crate) fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
