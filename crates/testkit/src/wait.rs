//! Waiting with a deadline, and looking for processes that should be gone.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::scratch::{MARKER, Scratch};

/// Time between the first two looks.
const INTERVAL: Duration = Duration::from_millis(20);
/// Time between two calls of `look` that are slow: they cost work, and other tests run at the same time.
const LONG_INTERVAL: Duration = Duration::from_millis(100);

/// Calls `look` until it returns a value; `what` names the value in the error.
pub async fn until<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("not within {patience:?}: {what}");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Like [`until`], for tests without a runtime.
pub fn until_blocking<T>(what: &str, patience: Duration, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let (deadline, mut interval) = (Instant::now() + patience, INTERVAL);
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            bail!("not within {patience:?}: {what}");
        }
        std::thread::sleep(interval);
        interval = (interval + INTERVAL / 4).min(LONG_INTERVAL);
    }
}

/// A process on this machine. Ones that have ended but were not waited for are not listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    pub command: String,
}

/// All that came from this process, at any depth, without itself; the nearest first, whatever their numbers.
pub fn descendants(pid: u32) -> Vec<Process> {
    below(pid, table::all())
}

fn below(pid: u32, mut all: Vec<Process>) -> Vec<Process> {
    let (mut family, mut parents) = (Vec::new(), vec![pid]);
    while !parents.is_empty() {
        let children: Vec<Process> = all.extract_if(.., |process| parents.contains(&process.parent)).collect();
        parents = children.iter().map(|child| child.pid).collect();
        family.extend(children);
    }
    family
}

/// All processes that were started in this place, whoever their parent is now.
pub fn marked(scratch: &Scratch) -> Vec<Process> {
    with_variable(MARKER, scratch.marker())
}

/// All processes that have this variable in their environment.
pub fn with_variable(name: &str, value: &str) -> Vec<Process> {
    table::all().into_iter().filter(|process| table::has_variable(process.pid, name, value)).collect()
}

/// Waits until no process of this place is left; lists those that are.
pub async fn until_gone(scratch: &Scratch, patience: Duration) -> Result<()> {
    let mut left = Vec::new();
    let gone = until("all processes to end", patience, || {
        left = marked(scratch);
        left.is_empty().then_some(())
    });
    match gone.await {
        Ok(()) => Ok(()),
        Err(_) => bail!("still there after {patience:?}: {left:#?}"),
    }
}

#[cfg(target_os = "linux")]
mod table {
    use std::fs;

    use super::Process;

    pub(super) fn all() -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries.flatten().filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    fn read(pid: u32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in brackets and may itself hold anything.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        if matches!(state, "Z" | "X") {
            return None;
        }
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        Some(Process { pid, parent, command: words.join(" ").trim_end().to_owned() })
    }

    pub(super) fn has_variable(pid: u32, name: &str, value: &str) -> bool {
        let wanted = format!("{name}={value}");
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    }
}

#[cfg(not(target_os = "linux"))]
mod table {
    use std::ffi::OsStr;

    use super::Process;

    pub(super) fn all() -> Vec<Process> {
        let output = crate::command(OsStr::new("ps")).args(["-axo", "pid=,ppid=,stat=,command="]).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().filter_map(read).collect()
    }

    fn read(line: &str) -> Option<Process> {
        let mut words = line.split_whitespace();
        let (pid, parent, state) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?);
        let command = words.collect::<Vec<_>>().join(" ");
        (!state.starts_with('Z')).then_some(Process { pid, parent, command })
    }

    pub(super) fn has_variable(pid: u32, name: &str, value: &str) -> bool {
        let output = crate::command(OsStr::new("ps")).args(["-Ewwo", "command=", "-p", &pid.to_string()]).output();
        let wanted = format!("{name}={value}");
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).split_whitespace().any(|word| word == wanted))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_process_that_lost_its_parent_is_still_found_by_its_marker() {
        let scratch = Scratch::without_model().unwrap();
        let mut shell = scratch.command("/bin/sh").args(["-c", "sleep 77 & exit"]).spawn().unwrap();
        shell.wait().unwrap();
        let find = || marked(&scratch).into_iter().find(|process| process.command == "sleep 77");
        let left = until("the sleep", PATIENCE, find).await.unwrap();
        assert!(until_gone(&scratch, Duration::ZERO).await.is_err());
        scratch.command("/bin/kill").arg(left.pid.to_string()).status().unwrap();
        until_gone(&scratch, PATIENCE).await.unwrap();
    }

    #[tokio::test]
    async fn descendants_are_found_at_any_depth() {
        let scratch = Scratch::without_model().unwrap();
        let mut shell = scratch.command("/bin/sh").args(["-c", "/bin/sh -c 'sleep 78; true'; true"]).spawn().unwrap();
        let find = || descendants(shell.id()).into_iter().find(|process| process.command == "sleep 78");
        let sleep = until("the sleep", PATIENCE, find).await.unwrap();
        scratch.command("/bin/kill").arg(sleep.pid.to_string()).status().unwrap();
        shell.wait().unwrap();
    }

    /// Numbers are given anew when they have run out: a child may have a lower one than its parent.
    #[test]
    fn the_nearest_come_first() {
        let process = |pid, parent| Process { pid, parent, command: String::new() };
        let all = vec![process(7, 9000), process(300, 1), process(9000, 8999), process(8999, 8000), process(5, 7)];
        let found: Vec<u32> = below(8000, all).iter().map(|process| process.pid).collect();
        assert_eq!(found, [8999, 9000, 7, 5]);
    }
}
