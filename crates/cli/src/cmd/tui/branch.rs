//! The checked-out Git branch of a folder, read from Git's files without starting a program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use multitap_tui::ReadBranch;

/// Larger files are ignored.
const MOST: u64 = 64 * 1024;

/// Returns the function that reads the branch each time it is called.
pub(super) fn of(folder: Option<PathBuf>) -> ReadBranch {
    Arc::new(move || checked_out(folder.as_deref()?))
}

/// The branch, or the abbreviated commit of a detached HEAD.
fn checked_out(folder: &Path) -> Option<String> {
    let head = folder.ancestors().find_map(|above| small_file(&kept(above)?.join("HEAD")))?;
    let name = head.trim().strip_prefix("ref: refs/heads/");
    Some(name.map_or_else(|| head.trim().chars().take(8).collect(), str::to_owned))
}

/// The `.git` folder of a working tree, directly or through a `.git` file.
fn kept(tree: &Path) -> Option<PathBuf> {
    let git = tree.join(".git");
    if !git.is_file() {
        return Some(git);
    }
    let elsewhere = small_file(&git)?;
    Some(tree.join(elsewhere.trim().strip_prefix("gitdir: ")?))
}

/// Reads a small regular file: a FIFO would block, and a link in a project may lead to an endless file.
fn small_file(path: &Path) -> Option<String> {
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    if about.len() > MOST { None } else { fs::read_to_string(path).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_found_from_below_in_a_worktree_and_in_a_lone_commit() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let at = |path: &str| checked_out(&folder.path().join(path));
        put("main/.git/HEAD", "ref: refs/heads/topic/one\n");
        put("main/src/deep/x", "");
        assert_eq!(at("main/src/deep").as_deref(), Some("topic/one"));
        put("main/.git/worktrees/two/HEAD", "ref: refs/heads/two\n");
        put("two/.git", "gitdir: ../main/.git/worktrees/two\n");
        assert_eq!(at("two").as_deref(), Some("two"));
        put("main/.git/HEAD", "0123456789abcdef\n");
        assert_eq!(at("main").as_deref(), Some("01234567"));
        put("odd/.git", "\n");
        assert_eq!(at("odd"), at(""), "what is no tree is passed by");
        #[cfg(unix)]
        {
            put("endless/.git/x", "");
            std::os::unix::fs::symlink("/dev/zero", folder.path().join("endless/.git/HEAD")).unwrap();
            assert_eq!(at("endless"), at(""), "what never ends is not read");
        }
    }
}
