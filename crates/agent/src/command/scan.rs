//! A look at a line that nobody can be sure of, for commands that must not run: what can be seen in it.
//!
//! It sees too much rather than too little, and still not all: what a line makes up while it runs cannot be seen. So
//! what is not seen here is asked about, never waved through.

use super::{RESERVED, Script};

/// Programs, and commands of the shell's own, that run what they are given; some have their version behind the name.
const RUNNERS: [&str; 85] = [
    ".",
    "alias",
    "ash",
    "awk",
    "bash",
    "bind",
    "builtin",
    "bun",
    "bunx",
    "busybox",
    "caffeinate",
    "chroot",
    "chrt",
    "command",
    "compgen",
    "complete",
    "csh",
    "dash",
    "deno",
    "doas",
    "enable",
    "entr",
    "env",
    "eval",
    "exec",
    "expect",
    "fakeroot",
    "find",
    "fish",
    "flock",
    "gawk",
    "gdb",
    "hash",
    "ionice",
    "ksh",
    "ltrace",
    "lua",
    "mapfile",
    "mawk",
    "mksh",
    "nice",
    "node",
    "nodejs",
    "nohup",
    "npx",
    "nsenter",
    "osascript",
    "parallel",
    "perl",
    "php",
    "pipx",
    "powershell",
    "pwsh",
    "pypy",
    "python",
    "python3",
    "readarray",
    "ruby",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setsid",
    "sh",
    "source",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "trap",
    "tsx",
    "unshare",
    "uvx",
    "watch",
    "xargs",
    "zsh",
];

/// Whether a program runs what it is given, so that its name says nothing.
pub(crate) fn runs_others(name: &str) -> bool {
    let name = base(name);
    let plain = name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'));
    RUNNERS.contains(&name) || RUNNERS.contains(&plain)
}

/// Whether commands may be hidden in a line that reads plainly: as arguments of a program that runs them.
pub(crate) fn hides_commands(script: &Script) -> bool {
    script.commands.iter().any(|simple| runs_others(simple.name()))
}

/// The name of a program without the way to it.
pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The commands that can be seen in a line, each as the words from its name on; the name without the way to it.
pub(crate) fn commands_in_sight(line: &str) -> Vec<Vec<String>> {
    let mut seen = Vec::new();
    // What is quoted may be a line of its own, and quotes within a word only disguise it.
    let unquoted: String = line.chars().filter(|char| !matches!(char, '\\' | '"' | '\'')).collect();
    let apart = line.replace(['"', '\'', '\\'], " ");
    for text in [unquoted, apart] {
        for piece in text.split([';', '|', '&', '(', ')', '`', '{', '}', '\n', '<', '>', '$']) {
            let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
            for start in starts(&words) {
                let mut command = words[start..].to_vec();
                command[0] = base(&command[0]).to_owned();
                if !seen.contains(&command) {
                    seen.push(command);
                }
            }
        }
    }
    seen
}

/// Where a command may begin among words: at the first, behind words of the shell's own, and anywhere behind a program
/// that runs others.
fn starts(words: &[String]) -> Vec<usize> {
    let mut starts = Vec::new();
    let (mut begins, mut anywhere) = (true, false);
    for (place, word) in words.iter().enumerate() {
        if begins || anywhere {
            starts.push(place);
            anywhere |= runs_others(word);
        }
        begins &= RESERVED.contains(&word.as_str()) || super::assigns(word);
    }
    starts
}
