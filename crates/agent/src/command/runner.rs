//! Programs that run what they are given: by their name alone, or by some of their arguments.
//!
//! Where commands are blocked, a line with one of these is asked about, because the blocked command may be among the
//! arguments or in a file that they name. Programs that build a project (`make`, `npm test`, `cargo test`) run what the
//! project says, and are not here; they are once an argument says what to run.

mod git;
mod sed;

use super::looks::long;
use super::{Simple, Word};

/// Programs, and commands of the shell's own, that run what they are given; some have their version behind the name.
const RUNNERS: [&str; 5] = [
    // The shell's own.
    ". alias bind builtin command compgen complete enable eval exec fc hash let mapfile readarray source \
     time trap",
    // Shells, and programs that are many.
    "ash bash busybox csh dash elvish fish ksh mksh nu osascript posh powershell pwsh rbash sh tcsh \
     toybox xonsh yash zsh",
    // Languages.
    "amm awk bun clisp clj clojure dart dc deno elixir erl escript expect gawk gdb ghc ghci gnuplot \
     groovy guile iex ipython irb java jruby jshell julia jupyter lldb lua luajit m4 mawk mono nawk node \
     nodejs ocaml octave perl php pypy python python3 racket raku rlwrap R Rscript ruby runghc runhaskell \
     sbcl scala swift tclsh ts-node tsx wine wish zx",
    // Run another program: as someone else, somewhere else, later, often, watched, with limits.
    "anacron at autossh batch bpftrace bunx bwrap caffeinate capsh ccache cgexec chpst chronic chroot \
     chrt concurrently coproc crontab cross-env daemon daemonize dbus-launch dbus-run-session direnv \
     distcc doas dotenv dumb-init eatmydata entr env envdir fakeroot faketime find firejail flock gosu \
     gtimeout hyperfine ifne ionice ltrace machinectl mispipe mosh newgrp nice nodemon nohup npx nsenter \
     nsjail numactl nvim parallel pee perf pipx pkexec pnpx prlimit proot proxychains qemu rr rsh run-one \
     run-parts runcon runuser script sem setarch setlock setpriv setsid setuidgid sg softlimit ssh \
     ssh-agent sshpass start-stop-daemon stdbuf strace su su-exec sudo systemd-inhibit systemd-nspawn \
     systemd-run taskset timeout tini torify torsocks tsocks unbuffer unshare uvx valgrind watch \
     watchexec watchman xargs xvfb-run",
    // Have commands that run others: editors, terminals, databases, transfers.
    "byobu dtach ed emacs emacsclient ex ftp gvim kak lftp lualatex mail mailx mutt mysql mariadb nano \
     ncat pico psql rvim screen sftp socat sqlite3 telnet tmux vi view vim vimdiff vipe zellij",
];

/// What makes a program run something else that its arguments name.
struct Hiding {
    names: &'static [&'static str],
    /// Letters among its short flags.
    letters: &'static str,
    /// Flags that are written out, with two dashes; also cut short.
    long: &'static [&'static str],
    /// Arguments that are exactly this, such as a subcommand.
    words: &'static [&'static str],
    /// Beginnings of arguments, for what looks like neither.
    begins: &'static [&'static str],
    /// Texts in arguments.
    holds: &'static [&'static str],
}

const NOTHING: Hiding = Hiding { names: &[], letters: "", long: &[], words: &[], begins: &[], holds: &[] };

/// The shell evaluates what stands in the brackets of a variable's name, also within single quotes.
const EVALUATED: &[&str] = &["$(", "`"];

const BY_ARGUMENT: &[Hiding] = &[
    Hiding {
        names: &["tar", "gtar", "bsdtar", "star", "cpio"],
        letters: "IF",
        long: &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--rsh-command",
            "--rmt-command",
            "--info-script",
            "--new-volume-script",
        ],
        ..NOTHING
    },
    Hiding { names: &["zip"], long: &["--unzip-command"], holds: &["TT"], ..NOTHING },
    Hiding { names: &["rsync"], letters: "e", long: &["--rsh", "--rsync-path"], ..NOTHING },
    Hiding { names: &["scp"], letters: "SoF", ..NOTHING },
    Hiding { names: &["nc", "netcat"], letters: "ec", long: &["--exec", "--sh-exec", "--lua-exec"], ..NOTHING },
    Hiding {
        names: &["man", "apropos", "whatis"],
        letters: "PHC",
        long: &["--pager", "--html", "--config-file"],
        ..NOTHING
    },
    Hiding { names: &["less", "more"], letters: "k", begins: &["+"], ..NOTHING },
    Hiding { names: &["sort"], long: &["--compress-program"], ..NOTHING },
    Hiding { names: &["split"], long: &["--filter"], ..NOTHING },
    Hiding { names: &["install"], long: &["--strip-program"], ..NOTHING },
    Hiding { names: &["patch"], letters: "e", long: &["--ed"], ..NOTHING },
    Hiding { names: &["diff3", "sdiff"], long: &["--diff-program"], ..NOTHING },
    Hiding { names: &["rg"], long: &["--pre", "--hostname-bin"], ..NOTHING },
    Hiding { names: &["ag", "ack", "bat", "batcat"], long: &["--pager"], ..NOTHING },
    Hiding { names: &["fd", "fdfind"], letters: "xX", long: &["--exec", "--exec-batch"], ..NOTHING },
    Hiding { names: &["fzf", "sk"], long: &["--preview", "--bind", "--with-shell", "--cmd"], letters: "c", ..NOTHING },
    Hiding { names: &["wget"], letters: "e", long: &["--execute", "--use-askpass", "--config"], ..NOTHING },
    Hiding { names: &["tcpdump"], letters: "zZ", ..NOTHING },
    Hiding { names: &["nmap"], long: &["--script"], ..NOTHING },
    Hiding {
        names: &["gpg", "gpg2"],
        long: &["--photo-viewer", "--exec-path", "--agent-program", "--options"],
        ..NOTHING
    },
    Hiding {
        names: &["openssl"],
        words: &["-engine", "-provider-path", "-provider", "-config", "engine", "s_client", "s_server"],
        ..NOTHING
    },
    Hiding {
        names: &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld"],
        begins: &["-wrapper", "-B", "-specs", "--specs", "-fplugin", "-plugin", "@"],
        ..NOTHING
    },
    Hiding { names: &["latex", "pdflatex", "xelatex", "tex"], holds: &["shell-escape", "write18"], ..NOTHING },
    Hiding {
        names: &["apt", "apt-get", "apt-cache", "aptitude"],
        letters: "oc",
        long: &["--option", "--config-file"],
        ..NOTHING
    },
    Hiding { names: &["dpkg", "rpm"], letters: "iEU", long: &["--install", "--eval", "--pipe", "--root"], ..NOTHING },
    Hiding { names: &["ip"], letters: "b", words: &["exec"], long: &["--batch"], ..NOTHING },
    Hiding { names: &["systemctl"], words: &["edit", "link"], ..NOTHING },
    Hiding {
        names: &["hg", "jj"],
        long: &["--config", "--config-toml", "--config-file"],
        words: &["exec", "alias"],
        ..NOTHING
    },
    Hiding { names: &["svn"], long: &["--diff-cmd", "--diff3-cmd", "--editor-cmd", "--config-option"], ..NOTHING },
    Hiding {
        names: &["make", "gmake"],
        letters: "fEIC",
        long: &["--eval", "--file", "--makefile", "--directory", "--include-dir"],
        holds: &["="],
        ..NOTHING
    },
    Hiding { names: &["cmake"], letters: "PE", holds: &["COMMAND", "LAUNCHER"], ..NOTHING },
    Hiding { names: &["ninja"], letters: "fC", ..NOTHING },
    Hiding { names: &["just"], letters: "cf", long: &["--command", "--shell", "--justfile", "--set"], ..NOTHING },
    Hiding { names: &["cargo"], long: &["--config"], ..NOTHING },
    Hiding { names: &["go"], words: &["run", "generate"], begins: &["-exec", "-toolexec", "-vettool"], ..NOTHING },
    Hiding { names: &["dotnet"], words: &["exec", "run"], ..NOTHING },
    Hiding {
        names: &["npm", "pnpm", "yarn", "corepack"],
        letters: "c",
        words: &["exec", "x", "dlx", "explore", "config", "set", "node", "edit"],
        long: &["--call", "--script-shell", "--userconfig", "--globalconfig", "--node-options", "--prefix"],
        ..NOTHING
    },
    Hiding {
        names: &[
            "asdf",
            "bundle",
            "conda",
            "hatch",
            "mise",
            "nix",
            "nix-shell",
            "pdm",
            "pipenv",
            "poetry",
            "rye",
            "stack",
            "uv",
        ],
        words: &["run", "exec", "x", "shell", "develop"],
        long: &["--run", "--command"],
        ..NOTHING
    },
    Hiding {
        names: &["docker", "podman", "nerdctl", "lxc", "kubectl", "oc", "heroku", "flyctl", "vagrant"],
        words: &["run", "exec", "build", "compose", "debug", "ssh", "console", "create", "attach"],
        ..NOTHING
    },
    Hiding { names: &["gh"], words: &["alias", "extension", "codespace", "cs"], ..NOTHING },
    Hiding { names: &["export", "declare", "typeset", "readonly", "local"], holds: &["="], ..NOTHING },
    Hiding { names: &["test", "[", "printf", "read", "unset", "wait"], holds: EVALUATED, ..NOTHING },
];

/// Folders in which a name alone finds its program, so that the way there says nothing new.
const USUAL: [&str; 8] =
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin"];

impl Simple {
    /// Whether it may run other commands, which its arguments name or hide.
    pub(crate) fn runs_others(&self) -> bool {
        let arguments: Vec<&str> = self.arguments().iter().map(|word: &Word| word.text.as_str()).collect();
        with_arguments(self.name(), &arguments)
    }
}

/// The same of words alone.
pub(crate) fn runs_others(words: &[String]) -> bool {
    let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    words.first().is_some_and(|name| with_arguments(name, &arguments))
}

pub(super) fn with_arguments(name: &str, arguments: &[&str]) -> bool {
    if is_runner(name) || is_own_program(name) {
        return true;
    }
    match base(name) {
        "git" => git::runs_others(arguments),
        "sed" | "gsed" => sed::runs_others(arguments),
        name => {
            let hiding = BY_ARGUMENT.iter().filter(|hiding| hiding.names.contains(&name));
            hiding.into_iter().any(|hiding| hiding.applies(arguments))
        }
    }
}

/// Whether a program runs what it is given, so that its name says nothing.
pub(crate) fn is_runner(name: &str) -> bool {
    let name = base(name);
    let plain = name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'));
    RUNNERS.iter().flat_map(|names| names.split(' ')).any(|runner| runner == name || runner == plain)
}

/// Whether it is a program, or a script, that stands somewhere of its own, such as `./x.sh`.
fn is_own_program(name: &str) -> bool {
    name.rsplit_once('/').is_some_and(|(folder, _)| !USUAL.contains(&folder))
}

/// The name of a program without the way to it.
pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl Hiding {
    fn applies(&self, arguments: &[&str]) -> bool {
        // `tar xIf …`: its first word is flags without a dash as well.
        let bundled = |place: usize| place == 0 && self.names.contains(&"tar");
        arguments.iter().enumerate().any(|(place, text)| {
            let short = bundled(place) || (text.starts_with('-') && !text.starts_with("--"));
            (short && text.contains(|char| self.letters.contains(char)))
                || long(text, self.long)
                || self.words.contains(text)
                || self.begins.iter().any(|begin| text.starts_with(begin))
                || self.holds.iter().any(|part| text.contains(part))
        })
    }
}

#[cfg(test)]
mod tests;
