//! Visits everything below a place, except what Git ignores and `.git` itself.
//!
//! The rules are those of ripgrep (`ignore`), but their files are read here: a `.gitignore` that is a link or a pipe
//! must neither block nor reveal files elsewhere. Links are reported and not followed.

use std::io::Read;
use std::path::Path;
use std::rc::Rc;
use std::vec;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::Inside;
use super::open::{Entry, Kind, list, open};

/// Most bytes read of a file of rules.
const MOST_RULES: u64 = 1024 * 1024;
/// Files of rules; later ones take precedence.
const RULES: [&str; 2] = [".gitignore", ".ignore"];
/// Folders without real files; they are met if the workspace is the whole file system.
const NOT_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    Skip,
    Show,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    All,
    /// Only the entries of the folder itself.
    One,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkEntry {
    pub(crate) place: Inside,
    pub(crate) kind: Kind,
}

/// A walk in progress: each folder's entries by name, a folder before its contents.
#[derive(Debug)]
pub(crate) struct Walk {
    ignored: Ignored,
    depth: Depth,
    open: Vec<Folder>,
    pub(crate) unread: usize,
}

#[derive(Debug)]
struct Folder {
    place: Inside,
    entries: vec::IntoIter<Entry>,
    rules: Rules,
}

impl Walk {
    pub(crate) fn new(place: &Inside, ignored: Ignored, depth: Depth) -> Self {
        let rules = match ignored {
            Ignored::Skip => Rules::above(place),
            Ignored::Show => Rules::default(),
        };
        let mut walk = Self { ignored, depth, open: Vec::new(), unread: 0 };
        walk.enter(place.clone(), &rules);
        walk
    }

    fn enter(&mut self, place: Inside, above: &Rules) {
        let Ok(mut entries) = list(&place) else {
            self.unread += 1;
            return;
        };
        entries.sort_by(|one, two| one.name.cmp(&two.name));
        let rules = match self.ignored {
            Ignored::Skip => above.with(&place, &entries),
            Ignored::Show => Rules::default(),
        };
        self.open.push(Folder { place, entries: entries.into_iter(), rules });
    }
}

impl Iterator for Walk {
    type Item = WalkEntry;

    fn next(&mut self) -> Option<WalkEntry> {
        loop {
            let folder = self.open.last_mut()?;
            let Some(entry) = folder.entries.next() else {
                self.open.pop();
                continue;
            };
            let place = folder.place.entry(&entry.name);
            let is_folder = entry.kind == Kind::Folder;
            let no_file = is_folder && NOT_FILES.iter().any(|path| place.path() == Path::new(path));
            if entry.name == ".git" || no_file || folder.rules.ignore(place.path(), is_folder) {
                continue;
            }
            if is_folder && self.depth == Depth::All {
                let rules = folder.rules.clone();
                self.enter(place.clone(), &rules);
            }
            return Some(WalkEntry { place, kind: entry.kind });
        }
    }
}

/// Whether Git would treat the folder as a repository; an empty `.git` does not count.
fn is_repository(folder: &Path) -> bool {
    let git = folder.join(".git");
    git.is_file() || git.join("HEAD").exists()
}

/// The rules that apply in a folder, its own first.
#[derive(Debug, Clone, Default)]
struct Rules {
    nearest: Option<Rc<Layer>>,
}

#[derive(Debug)]
struct Layer {
    rules: Gitignore,
    above: Rules,
}

impl Rules {
    /// The rules of the folders above, up to the top of the repository or, without one, of the workspace.
    fn above(place: &Inside) -> Self {
        let repository = place.folder().ancestors().find(|folder| is_repository(folder));
        let top = repository.unwrap_or(place.folder());
        let mut folders: Vec<&Path> =
            place.path().ancestors().skip(1).take_while(|folder| folder.starts_with(top)).collect();
        folders.reverse();
        folders.into_iter().fold(Self::default(), |above, folder| {
            // The folder may lie outside the workspace: only its rules are read.
            let here = Inside { folder: folder.to_owned(), path: folder.to_owned() };
            above.read(&here, &RULES)
        })
    }

    /// These rules, and those of a folder with these entries.
    fn with(&self, place: &Inside, entries: &[Entry]) -> Self {
        let there = |name: &&str| entries.iter().any(|entry| entry.name == **name && entry.kind == Kind::File);
        let names: Vec<&str> = RULES.into_iter().filter(there).collect();
        if names.is_empty() { self.clone() } else { self.read(place, &names) }
    }

    fn read(&self, place: &Inside, names: &[&str]) -> Self {
        let mut builder = GitignoreBuilder::new(place.path());
        for name in names {
            let Ok(file) = open(&place.entry(name.as_ref())) else { continue };
            let mut bytes = Vec::new();
            if file.take(MOST_RULES).read_to_end(&mut bytes).is_err() {
                continue;
            }
            for line in String::from_utf8_lossy(&bytes).lines() {
                // Git skips invalid rules too.
                builder.add_line(None, line).ok();
            }
        }
        match builder.build() {
            Ok(rules) if !rules.is_empty() => Self { nearest: Some(Rc::new(Layer { rules, above: self.clone() })) },
            _ => self.clone(),
        }
    }

    fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let mut layer = self.nearest.as_deref();
        while let Some(Layer { rules, above }) = layer {
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => layer = above.nearest.as_deref(),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::Workspace;
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let workspace = Workspace::new(dir.path(), &[], None).unwrap();
        (dir, workspace)
    }

    fn names(workspace: &Workspace, start: &str, ignored: Ignored, depth: Depth) -> Vec<String> {
        let walk = Walk::new(&workspace.resolve(start).unwrap(), ignored, depth);
        walk.map(|found| workspace.shown(found.place.path())).collect()
    }

    #[test]
    fn what_git_ignores_is_left_out_wherever_the_walk_begins() {
        let (_dir, workspace) = tree(&[
            (".gitignore", "*.log\n/target\nsub/made\n!keep.log\n[\n"),
            (".git/config", ""),
            ("a.log", ""),
            ("keep.log", ""),
            ("target/x", ""),
            ("sub/.gitignore", "*.tmp\n!b.log"),
            ("sub/b.log", ""),
            ("sub/c.log", ""),
            ("sub/d.tmp", ""),
            ("sub/made/e", ""),
            ("sub/target/f", ""),
        ]);
        let all = [".gitignore", "keep.log", "sub", "sub/.gitignore", "sub/b.log", "sub/target", "sub/target/f"];
        assert_eq!(names(&workspace, "", Ignored::Skip, Depth::All), all);
        assert_eq!(names(&workspace, "sub", Ignored::Skip, Depth::All), all[3..]);
        assert_eq!(names(&workspace, "", Ignored::Skip, Depth::One), all[..3]);
        let shown = names(&workspace, "", Ignored::Show, Depth::One);
        assert_eq!(shown, [".gitignore", "a.log", "keep.log", "sub", "target"], "but never .git");
    }

    #[test]
    fn the_repositorys_rules_hold_in_a_workspace_below_its_top() {
        let (dir, _) = tree(&[(".gitignore", "made\n"), (".git/HEAD", ""), ("w/made/x", ""), ("w/y", "")]);
        let below = Workspace::new(&dir.path().join("w"), &[], None).unwrap();
        assert_eq!(names(&below, "", Ignored::Skip, Depth::All), ["y"]);
        fs::remove_dir_all(dir.path().join(".git")).unwrap();
        let without = names(&below, "", Ignored::Skip, Depth::All);
        assert_eq!(without, ["made", "made/x", "y"], "nobody's rules from above a folder that is no repository");
    }

    #[cfg(all(unix, not(target_vendor = "apple")))]
    #[test]
    fn rules_that_are_a_link_or_a_pipe_hold_nobody_up() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let (dir, workspace) = tree(&[("a/x", ""), ("b/y", "")]);
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("a/.gitignore")).unwrap();
        mknodat(CWD, dir.path().join(".gitignore"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        std::os::unix::fs::symlink("..", dir.path().join("b/up")).unwrap();
        let all = [".gitignore", "a", "a/.gitignore", "a/x", "b", "b/up", "b/y"];
        assert_eq!(names(&workspace, "", Ignored::Skip, Depth::All), all);
        assert_eq!(names(&workspace, "a", Ignored::Skip, Depth::All), all[2..4]);
    }
}
