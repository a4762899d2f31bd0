//! Who descends from a process, also in sessions and groups of their own.

use std::collections::HashMap;

use rustix::process::Pid;

/// A process and its parent.
type Kin = (Pid, Pid);

/// Every process that descends from `root` right now, parents before their children.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    tree(root, everyone())
}

fn tree(root: Pid, everyone: Vec<Kin>) -> Vec<Pid> {
    let mut children: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for (pid, parent) in everyone.into_iter().filter(|(pid, _)| *pid != root) {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        // Taken out, so that even a table that was read in mid-change has no circles.
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

#[cfg(target_os = "linux")]
fn everyone() -> Vec<Kin> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    pids.filter_map(|pid| {
        let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Some((pid, parent_in(&stat)?))
    })
    .collect()
}

/// The parent in a line `PID (NAME) STATE PARENT …`; the name may hold anything, also spaces and brackets.
#[cfg(target_os = "linux")]
fn parent_in(stat: &[u8]) -> Option<Pid> {
    let name_end = memchr::memrchr(b')', stat)?;
    let parent = stat[name_end + 1..].split(|byte| *byte == b' ').filter(|field| !field.is_empty()).nth(1)?;
    Pid::from_raw(std::str::from_utf8(parent).ok()?.parse().ok()?)
}

#[cfg(not(target_os = "linux"))]
fn everyone() -> Vec<Kin> {
    #[expect(clippy::disallowed_methods, reason = "it lists processes and ends at once")]
    let mut ps = std::process::Command::new("/bin/ps");
    let Ok(output) = ps.args(["-axo", "pid=,ppid="]).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    let kin = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().map(|field| field.parse().ok().and_then(Pid::from_raw));
        Some((fields.next()??, fields.next()??))
    });
    // A process that is gone again, such as `ps` itself, is not worth a signal to its number.
    kin.filter(|(pid, _)| rustix::process::test_kill_process(*pid).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(raw: i32) -> Pid {
        Pid::from_raw(raw).unwrap()
    }

    fn check(root: i32, kin: &[(i32, i32)], expected: &[i32]) {
        let kin = kin.iter().map(|(child, parent)| (pid(*child), pid(*parent))).collect();
        let expected: Vec<Pid> = expected.iter().map(|raw| pid(*raw)).collect();
        assert_eq!(tree(pid(root), kin), expected);
    }

    #[test]
    fn a_tree_is_found_whatever_its_order() {
        check(10, &[(13, 12), (11, 10), (20, 1), (12, 11), (14, 10)], &[11, 14, 12, 13]);
        check(10, &[(20, 1)], &[]);
        check(10, &[(11, 12), (12, 11)], &[]);
        check(10, &[(11, 10), (10, 11)], &[11]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_cannot_disguise_the_parent() {
        assert_eq!(parent_in(b"42 (sh) S 7 42 42 0"), Some(pid(7)));
        assert_eq!(parent_in(b"42 (a) S 1 (b) R 7 42"), Some(pid(7)));
        assert_eq!(parent_in(b"42 (kthreadd) S 0 0"), None);
        assert_eq!(parent_in(b""), None);
    }

    #[test]
    fn we_descend_from_our_parent() {
        let parent = rustix::process::getppid().unwrap();
        assert!(descendants(parent).contains(&rustix::process::getpid()));
    }
}
