//! Resolves the paths in a command: a name inside the folder may be a symbolic link to something outside.
//!
//! The only part of command analysis that reads the disk. Changes between this check and the command's own access are
//! not seen.

use std::path::Path;

use super::{Script, Simple, Word};

/// Options that make a command follow links that it would not follow otherwise: command, short options, long options.
const FOLLOWING: &[(&str, &[char], &[&str])] = &[
    ("grep", &['R'], &["--dereference-recursive"]),
    ("egrep", &['R'], &["--dereference-recursive"]),
    ("fgrep", &['R'], &["--dereference-recursive"]),
    ("rg", &['L'], &["--follow"]),
    ("find", &['L', 'H'], &["-follow"]),
    ("du", &['L', 'H', 'D'], &["--dereference", "--dereference-args"]),
    ("ls", &['L', 'H'], &["--dereference"]),
    ("tree", &['l'], &[]),
    ("diff", &['r'], &["--recursive"]),
];

impl Script {
    /// Whether every path in the command stays in the folder, with links resolved.
    pub(crate) fn leads_nowhere_else(&self, folder: &Path) -> bool {
        let root = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let mut here = root.clone();
        self.commands.iter().all(|simple| {
            if simple.follows_links() || !simple.arguments().iter().all(|word| stays(word, &here, &root)) {
                return false;
            }
            if simple.name() == "cd"
                && let [to] = simple.arguments()
            {
                here = here.join(&to.text);
            }
            true
        })
    }
}

impl Simple {
    fn follows_links(&self) -> bool {
        let Some((_, letters, words)) = FOLLOWING.iter().find(|(name, ..)| *name == self.name()) else { return false };
        self.arguments().iter().map(|word| word.text.as_str()).any(|text| {
            let is_letters = text.starts_with('-') && !text.starts_with("--");
            let written_out = |word: &&str| text.len() > 2 && text.starts_with('-') && word.starts_with(text);
            words.iter().any(written_out) || (is_letters && text.contains(*letters))
        })
    }
}

/// Whether a word, taken as a path relative to `here`, stays below `root`. Handles values attached to options.
fn stays(word: &Word, here: &Path, root: &Path) -> bool {
    let text = word.text.as_str();
    if word.glob {
        // A glob may match any file in its folder.
        let (folder, name) = text.rsplit_once('/').map_or(("", text), |(folder, name)| (folder, name));
        let plain = !folder.contains(['*', '?', '[', '{']) && name.contains(['*', '?', '[', '{']);
        let beside = here.join(folder);
        return plain && leads_inside(&beside, root) && entries_are_harmless(&beside, root, folder.is_empty());
    }
    let glued = text.split_once('=').map(|(_, value)| value);
    let behind = text.starts_with('-').then(|| text.find('/').map(|slash| &text[slash..])).flatten();
    [Some(text), glued, behind].into_iter().flatten().all(|path| leads_inside(&here.join(path), root))
}

/// A path that does not exist leads nowhere.
fn leads_inside(path: &Path, root: &Path) -> bool {
    path.canonicalize().map_or(true, |real| real.starts_with(root) || real == Path::new("/dev/null"))
}

/// Above this many directory entries the check gives up.
const MOST_ENTRIES: usize = 2_000;

/// Whether no entry that a glob may match leads out of the folder. If the glob names no folder, an entry must not look
/// like an option either.
fn entries_are_harmless(folder: &Path, root: &Path, bare: bool) -> bool {
    let Ok(entries) = folder.read_dir() else { return true };
    entries.flatten().enumerate().all(|(place, entry)| {
        let is_flag = bare && entry.file_name().as_encoded_bytes().starts_with(b"-");
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        place < MOST_ENTRIES && !is_flag && (!is_link || leads_inside(&entry.path(), root))
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_out_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let (folder, outside) = (place.path().join("work"), place.path().join("outside"));
        for made in [&folder, &outside, &folder.join("sub"), &folder.join("clean")] {
            std::fs::create_dir(made).unwrap();
        }
        for file in [outside.join("key"), folder.join("a.txt"), folder.join("clean/b.txt")] {
            std::fs::write(file, "x").unwrap();
        }
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, folder.join(name)).unwrap();
        link(&outside.join("key"), "notes");
        link(&outside, "sub/out");
        link(&folder.join("a.txt"), "fine");
        for (line, stays) in [
            ("cat a.txt", true),
            ("cat fine", true),
            ("cat new.txt", true),
            ("cat clean/*.txt", true),
            ("cd clean && cat b.txt", true),
            ("grep -rn x clean", true),
            ("cat a.txt > /dev/null", true),
            ("cat notes", false),
            ("cat ./notes", false),
            ("cat *", false),
            ("cat n*", false),
            ("head -n1 notes", false),
            ("grep --file=notes a.txt", false),
            ("ls sub/out", false),
            ("cd sub && cat out/key", false),
            ("cd sub/out && cat key", false),
            ("cat s*/out/key", false),
            ("grep -R x .", false),
            ("find -L . -name key", false),
            ("rg --follow x", false),
        ] {
            let script = Script::parse(line).unwrap();
            assert_eq!(script.leads_nowhere_else(&folder), stays, "{line}");
        }
        std::fs::write(folder.join("clean/--files0-from=list"), "x").unwrap();
        for (line, stays) in [("cd clean && wc *", false), ("cd clean && cat b.txt", true), ("wc clean/*", true)] {
            let script = Script::parse(line).unwrap();
            assert_eq!(script.leads_nowhere_else(&folder), stays, "{line}");
        }
    }
}
