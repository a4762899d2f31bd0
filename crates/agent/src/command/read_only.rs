//! Read-only commands: they run no other program, write no file, and read nothing outside their folder.
//!
//! An allow list: unknown commands and options are asked about.

use std::path::Path;

use super::{Script, Simple, Word};

/// Whether settings of the folder are trusted, such as a repository's Git configuration that names programs to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    Trusted,
    Untrusted,
}

/// Commands that are read-only whatever their arguments.
const READ_ONLY: &[&str] = &[
    "basename", "cat", "cmp", "column", "comm", "cut", "df", "diff", "dirname", "echo", "egrep", "expand", "false",
    "fgrep", "fold", "grep", "head", "id", "ls", "nl", "od", "paste", "pwd", "readlink", "realpath", "rev", "seq",
    "stat", "tac", "tr", "true", "uname", "which", "whoami",
];

/// Options that make `find` do more than find.
const FIND_DOES: [&str; 10] =
    ["-delete", "-exec", "-execdir", "-files0-from", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir"];

/// Commands with more words than this are asked about: each word is resolved on disk.
const MOST_WORDS: usize = 200;

/// Programs that may be asked for their version.
const VERSIONED: [&str; 12] =
    ["bun", "cargo", "deno", "gcc", "git", "go", "java", "node", "npm", "python", "python3", "rustc"];

impl Script {
    /// Whether the whole command is read-only and stays inside `folder`.
    pub(crate) fn is_read_only(&self, folder: &Path, trust: Trust) -> bool {
        let words: usize = self.commands.iter().map(|simple| simple.words.len()).sum();
        words <= MOST_WORDS
            && self.commands.iter().all(|simple| simple.is_read_only(trust) && simple.stays_inside(folder))
    }
}

impl Simple {
    fn is_read_only(&self, trust: Trust) -> bool {
        let (name, arguments) = (self.name(), self.arguments());
        if READ_ONLY.contains(&name) {
            return true;
        }
        // Lists of files may name any file, and some output never ends. A file whose name looks like an option is
        // found on disk.
        let none = |letters: &str, options: &str| {
            !arguments.iter().any(|word| letters.chars().any(|flag| short(word, flag)) || long(&word.text, options))
        };
        match name {
            "du" | "wc" => return none("", "--files0-from"),
            "md5sum" | "sha1sum" | "sha256sum" => return none("c", "--check"),
            "tail" => {
                let old_form = |word: &Word| word.text.starts_with('+') && word.text.contains('f');
                return none("fF", "--follow --retry") && !arguments.iter().any(old_form);
            }
            _ => {}
        }
        // From here on options matter: a file name that looks like one must not be taken for one.
        if arguments.iter().any(|word| word.glob && word.text.starts_with(['*', '?', '['])) {
            return false;
        }
        match name {
            _ if VERSIONED.contains(&name) && is(arguments, &["--version"]) => true,
            "cd" => matches!(arguments, [folder] if !folder.text.starts_with('-')),
            "printf" => !arguments.first().is_some_and(|word| word.text.starts_with('-')),
            "uniq" => arguments.iter().all(|word| word.text.starts_with('-')),
            "date" => arguments.iter().all(|word| word.text.starts_with('+') || word.text == "-u"),
            "tree" => none("oR", "--output"),
            "find" => !arguments.iter().any(|word| FIND_DOES.contains(&word.text.as_str())),
            "rg" => none("z", "--pre --hostname-bin --search-zip"),
            "sort" => none("oT", "--output --compress-program --temporary-directory --files0-from"),
            "sed" => prints_lines(arguments),
            // A repository's settings name programs that Git runs: pagers, file watchers, diff tools.
            "git" => trust == Trust::Trusted && git_looks(arguments),
            _ => false,
        }
    }

    /// Whether no word leads out of the folder.
    fn stays_inside(&self, folder: &Path) -> bool {
        self.arguments().iter().all(|word| inside(word, folder))
    }
}

fn is(arguments: &[Word], expected: &[&str]) -> bool {
    arguments.iter().map(|word| word.text.as_str()).eq(expected.iter().copied())
}

/// Whether the letter is among short options such as `-abc`.
fn short(word: &Word, flag: char) -> bool {
    word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(flag)
}

/// Whether the word is one of these long options, separated by spaces, with or without a value, in full or abbreviated.
pub(super) fn long(text: &str, options: &str) -> bool {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    name.len() > 2 && name.starts_with("--") && options.split(' ').any(|option| option.starts_with(name))
}

/// `sed -n 10,20p FILE…`, which models use to read files.
fn prints_lines(arguments: &[Word]) -> bool {
    let [quiet, script, files @ ..] = arguments else { return false };
    let Some(range) = script.text.strip_suffix('p') else { return false };
    let number = |text: &str| text == "$" || (!text.is_empty() && text.chars().all(|char| char.is_ascii_digit()));
    quiet.text == "-n" && range.split(',').count() <= 2 && range.split(',').all(number) && !files.iter().any(flag)
}

fn flag(word: &Word) -> bool {
    word.text.starts_with('-')
}

/// Options that make Git's read-only commands write a file or run another program.
const GIT_DOES: &str = "--output --ext-diff --textconv --filters --show-signature --open-files-in-pager --exec";

fn git_looks(arguments: &[Word]) -> bool {
    let arguments = match arguments {
        [first, rest @ ..] if first.text == "--no-pager" => rest,
        all => all,
    };
    let [command, rest @ ..] = arguments else { return false };
    if rest.iter().any(|word| long(&word.text, GIT_DOES)) {
        return false;
    }
    let only = |words: &[&str]| rest.iter().all(|word| words.contains(&word.text.as_str()));
    match command.text.as_str() {
        "blame" | "cat-file" | "describe" | "diff" | "log" | "ls-files" | "ls-tree" | "rev-list" | "rev-parse"
        | "shortlog" | "show" | "status" => true,
        "grep" => !rest.iter().any(|word| short(word, 'O')),
        "branch" => only(&["-a", "-r", "-v", "-vv", "--all", "--remotes", "--verbose", "--list", "--show-current"]),
        "remote" => only(&["-v"]),
        "tag" => only(&["-l", "--list", "-n"]),
        "stash" | "worktree" => is(rest, &["list"]),
        "reflog" => rest.is_empty(),
        _ => false,
    }
}

/// Whether a word, taken as a path, stays in the folder; so must a path attached to an option, as in `-f/etc/passwd`.
fn inside(word: &Word, folder: &Path) -> bool {
    let text = word.text.as_str();
    let glued = match text.split_once('=') {
        Some((_, value)) if flag(word) => value,
        _ if flag(word) => text.find('/').map_or("", |slash| &text[slash..]),
        _ => "",
    };
    let leads_up = |part: &str| {
        let hidden = word.glob && part.starts_with('.') && part.contains(['*', '?', '[']);
        part == ".." || hidden || (flag(word) && part.ends_with(".."))
    };
    let elsewhere = |path: &str| path.starts_with('/') && path != "/dev/null" && !Path::new(path).starts_with(folder);
    let home = word.home || glued.starts_with('~');
    !text.split(['/', '=']).any(leads_up) && !home && !elsewhere(text) && !elsewhere(glued)
}
