//! Recognises arguments that make Git run another program: settings on its command line, aliases, options that name
//! programs.
//!
//! A subcommand that Git does not know is an alias or an external program, so only known ones are trusted.

use super::super::read_only::long;
use super::is_short;

/// Git subcommands that run only what the repository's settings say.
const PLAIN: &str = "add am apply archive bisect blame branch bundle cat-file check-attr check-ignore check-ref-format checkout \
     cherry cherry-pick clean clone commit commit-tree config count-objects describe diff diff-files diff-index \
     diff-tree fetch for-each-ref format-patch fsck gc grep hash-object init log ls-files ls-remote ls-tree merge \
     merge-base merge-file merge-tree mktag mktree mv name-rev notes pack-refs prune pull push range-diff read-tree \
     rebase reflog remote repack replace reset restore rev-list rev-parse revert rm shortlog show show-branch \
     show-ref sparse-checkout stash status submodule switch symbolic-ref tag update-index update-ref verify-commit \
     verify-tag version whatchanged worktree write-tree";

/// Options that name a program, a repository whose settings name one, or a file to write, which may be such a
/// setting.
const OPTIONS: &str = "--output --config-env --exec-path --upload-pack --receive-pack --exec --ext-diff --textconv \
     --open-files-in-pager --template --git-dir --extcmd";

/// Prefixes of settings that cannot name a program, in lower case.
const HARMLESS: &str = "user. author. committer. color. advice. column. log. status. init.defaultbranch core.quotepath core.autocrlf \
     core.safecrlf core.eol core.filemode core.ignorecase core.longpaths commit.gpgsign tag.gpgsign tag.sort \
     branch.sort push.default push.autosetupremote pull.rebase pull.ff fetch.prune diff.renames diff.noprefix \
     diff.mnemonicprefix diff.algorithm merge.conflictstyle merge.ff rebase.autosquash rebase.autostash rerere. \
     http.version http.postbuffer http.lowspeed";

pub(super) fn runs_others(arguments: &[&str]) -> bool {
    if arguments.iter().any(|text| long(text, OPTIONS) || text.contains("ext::")) || sets_a_program(arguments) {
        return true;
    }
    let Some((command, rest)) = command(arguments) else { return false };
    let short = |letter: char| rest.iter().any(|text| is_short(text) && text.contains(letter));
    match command {
        "bisect" => rest.contains(&"run"),
        "submodule" => rest.contains(&"foreach"),
        "rebase" => short('x'),
        "grep" => short('O'),
        "clone" | "fetch" => short('u'),
        "merge" | "pull" => command == "pull" && short('u') || names_a_strategy(rest),
        "config" => configures(rest),
        command => !PLAIN.split(' ').any(|plain| plain == command),
    }
}

/// The subcommand and its arguments; `None` if there are only options.
fn command<'a>(arguments: &'a [&'a str]) -> Option<(&'a str, &'a [&'a str])> {
    let mut rest = arguments;
    loop {
        match rest {
            ["-C" | "-c" | "--namespace" | "--work-tree" | "--super-prefix", _, more @ ..] => rest = more,
            [flag, more @ ..] if flag.starts_with('-') => rest = more,
            [command, more @ ..] => return Some((command, more)),
            [] => return None,
        }
    }
}

/// Whether `-c NAME=VALUE` or `--config NAME=VALUE` sets something that may name a program.
fn sets_a_program(arguments: &[&str]) -> bool {
    let mut settings = values(arguments, "-c", "--config").filter_map(|setting| setting.split_once('='));
    settings.any(|(name, _)| !is_harmless(name))
}

/// The values of an option: behind it, or attached to it.
fn values<'a>(arguments: &'a [&'a str], short: &'a str, long: &'a str) -> impl Iterator<Item = &'a str> {
    let next = arguments.iter().skip(1).copied().chain([""]);
    arguments.iter().zip(next).filter_map(move |(text, next)| {
        if *text == short || *text == long {
            return Some(next);
        }
        text.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')).or_else(|| text.strip_prefix(short))
    })
}

fn is_harmless(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HARMLESS.split(' ').any(|harmless| name.starts_with(harmless))
}

/// Whether `-s NAME` names an unknown merge strategy: Git would run `git-merge-NAME`.
fn names_a_strategy(rest: &[&str]) -> bool {
    let known = ["ort", "recursive", "resolve", "octopus", "ours", "subtree"];
    values(rest, "-s", "--strategy").any(|name| !known.contains(&name))
}

/// Whether `git config` does more than read, or set what is harmless.
fn configures(rest: &[&str]) -> bool {
    let reads = ["--get", "--get-all", "--get-regexp", "--list", "-l"];
    // Values and patterns after the subcommand may look like one.
    let command = rest.iter().find(|text| !text.starts_with('-'));
    if rest.iter().any(|text| reads.contains(text)) || matches!(command, Some(&"get" | &"list")) {
        return false;
    }
    let mut words = rest.iter().filter(|text| !text.starts_with('-') && !matches!(**text, "set" | "unset"));
    let edits = rest.iter().any(|text| matches!(*text, "-e" | "edit") || long(text, "--edit"));
    edits || words.next().is_some_and(|name| !is_harmless(name)) && words.next().is_some()
}
