//! Programs that run other programs: by their name alone, or by some of their arguments.
//!
//! Where commands are blocked, a command with one of these is asked about, because the blocked command may be among
//! the arguments or in a file they name. Build tools (`make`, `npm test`, `cargo test`) run what the project says and
//! are not listed here, unless an argument names what to run.

mod git;
mod sed;

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::read_only::long;
use super::{Simple, Word};

/// Programs and shell builtins that run their arguments; the name may be followed by a version.
const RUNNERS: [&str; 5] = [
    // Shell builtins, zsh's included: agents run commands in the user's shell.
    ". - alias autoload bind builtin command compgen complete disable emulate enable eval exec fc foreach functions hash \
     let mapfile nocorrect noglob readarray repeat sched source time trap vared zcompile zle zmodload zpty",
    // Shells and multi-call binaries.
    "ash bash busybox cmd.exe csh dash elvish fish ksh mksh nu osascript posh powershell pwsh rbash rksh rzsh sh \
     tcsh toybox wsl xonsh yash zsh",
    // Language interpreters.
    "amm awk bpython bun clisp clj clojure crystal dart dc deno ecl elixir erl escript expect gap gawk gdb \
     gdb-multiarch gdbserver gforth ghc ghci gjs gnuplot goawk gprolog groovy gs guile hy iex ipython irb janet \
     java jdb jruby jrunscript jshell julia jupyter kotlin lein lldb lua luajit m4 mawk maxima micropython mlr \
     mono nawk node nodejs ocaml octave original-awk perl php pypy python python3 qjs racket raku rdmd rlwrap R \
     Rscript ruby runghc runhaskell sage sbcl scala scala-cli scheme swift swipl tclsh tcc ts-node tsx wine wish \
     zx",
    // Programs that run another program: as another user, elsewhere, later, repeatedly, traced, limited.
    "aa-exec aoss cpulimit logsave msgexec msgfilter multitime openvt pexec pidstat service update-alternatives \
     anacron ansible ansible-console ansible-playbook at autossh batch bfs bpftrace bunx busctl bwrap caffeinate \
     capsh ccache cgexec chpst choom chronic chroot chrt concurrently coproc coresched crontab cross-env daemon \
     daemonize dbus-launch dbus-run-session dbus-send direnv distcc distrobox doas dotenv dotenvx dtrace \
     dumb-init eatmydata enosys entr env envdir fakechroot fakeroot faketime find firejail flatpak flock foreman \
     forever gdbus gosu gtimeout honcho hyperfine i386 ifne ionice lckdo linux32 linux64 ltrace machinectl \
     mispipe mosh newgrp nice nodemon nohup nq npx nsenter nsjail numactl overmind parallel pee perf pipesz pipx \
     pkexec pm2 pnpx prlimit proot proxychains qemu rr rsh run-one run-parts runcon runsv runsvdir runuser script \
     scriptlive sem setarch setlock setpgid setpriv setsid setuidgid sg snap softlimit ssh ssh-agent sshfs \
     sshpass stap start-stop-daemon stdbuf strace su su-exec sudo sudoedit supervisord systemd-cat \
     systemd-inhibit systemd-nspawn systemd-run taskset timeout tini toolbox torify torsocks tsocks tsp uclampset \
     uname26 unbuffer unshare uvx valgrind watch watchexec watchman x86_64 xargs xinit xvfb-run zrun",
    // Programs with commands that run others: editors, terminals, databases, file transfer.
    "abduco alacritty byobu dtach duckdb ed editor elinks emacs emacsclient evim eview ex foot ftp gio \
     gnome-terminal gvim gvimdiff gview hx kak kitty konsole lf lftp links litecli lualatex lynx mail mailx \
     mariadb mc mongo mongosh mutt mycli mysql nano ncat ncdu nnn nvim open pager pgcli pico psql ranger rgview \
     rgvim run-mailcap rview rvim screen see sensible-browser sensible-editor sensible-pager sftp socat sqlite \
     sqlite3 telnet tig tmux vi vidir view vifm vigr vim vimdiff vipe vipw visudo w3m wezterm x-terminal-emulator \
     xdg-open xdotool xterm ydotool zellij",
];

/// Arguments that make a program run another program.
struct RunnerRule {
    names: &'static [&'static str],
    /// Short options.
    letters: &'static str,
    /// Long options with two dashes; also abbreviated.
    long: &'static [&'static str],
    /// Whole arguments, such as a subcommand.
    words: &'static [&'static str],
    /// Prefixes of arguments, for what looks like neither.
    begins: &'static [&'static str],
    /// Substrings of arguments.
    holds: &'static [&'static str],
}

const NOTHING: RunnerRule = RunnerRule { names: &[], letters: "", long: &[], words: &[], begins: &[], holds: &[] };

/// The shell evaluates an array subscript of a variable name, also within single quotes.
const EVALUATED: &[&str] = &["$(", "`"];

const BY_ARGUMENT: &[RunnerRule] = &[
    RunnerRule {
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
    RunnerRule { names: &["zip"], long: &["--unzip-command"], holds: &["TT"], ..NOTHING },
    RunnerRule { names: &["rsync"], letters: "e", long: &["--rsh", "--rsync-path"], ..NOTHING },
    RunnerRule { names: &["scp"], letters: "SoF", ..NOTHING },
    RunnerRule { names: &["nc", "netcat"], letters: "ec", long: &["--exec", "--sh-exec", "--lua-exec"], ..NOTHING },
    RunnerRule {
        names: &["man", "apropos", "whatis"],
        letters: "PHC",
        long: &["--pager", "--html", "--config-file"],
        ..NOTHING
    },
    RunnerRule { names: &["less", "more"], letters: "k", begins: &["+"], ..NOTHING },
    RunnerRule { names: &["sort"], long: &["--compress-program"], ..NOTHING },
    RunnerRule { names: &["split"], long: &["--filter"], ..NOTHING },
    RunnerRule { names: &["install"], long: &["--strip-program"], ..NOTHING },
    RunnerRule { names: &["patch"], letters: "e", long: &["--ed"], ..NOTHING },
    RunnerRule { names: &["diff3", "sdiff"], long: &["--diff-program"], ..NOTHING },
    RunnerRule { names: &["rg"], long: &["--pre", "--hostname-bin"], ..NOTHING },
    RunnerRule { names: &["ag", "ack", "bat", "batcat"], long: &["--pager"], ..NOTHING },
    RunnerRule { names: &["fd", "fdfind"], letters: "xX", long: &["--exec", "--exec-batch"], ..NOTHING },
    RunnerRule {
        names: &["fzf", "sk"],
        long: &["--preview", "--bind", "--with-shell", "--cmd"],
        letters: "c",
        ..NOTHING
    },
    RunnerRule { names: &["wget"], letters: "e", long: &["--execute", "--use-askpass", "--config"], ..NOTHING },
    RunnerRule { names: &["tcpdump"], letters: "zZ", ..NOTHING },
    RunnerRule { names: &["nmap"], long: &["--script"], ..NOTHING },
    RunnerRule {
        names: &["gpg", "gpg2"],
        long: &["--photo-viewer", "--exec-path", "--agent-program", "--options"],
        ..NOTHING
    },
    RunnerRule {
        names: &["openssl"],
        words: &["-engine", "-provider-path", "-provider", "-config", "engine", "s_client", "s_server"],
        ..NOTHING
    },
    RunnerRule {
        names: &["gcc", "g++", "cc", "c++", "c89", "c99", "clang", "clang++", "cpp", "gfortran", "ld", "ar", "nm"],
        begins: &["-wrapper", "-B", "-specs", "--specs", "-load", "@"],
        holds: &["plugin"],
        ..NOTHING
    },
    RunnerRule { names: &["rustc"], holds: &["linker", "@"], ..NOTHING },
    RunnerRule { names: &["latex", "pdflatex", "xelatex", "tex"], holds: &["shell-escape", "write18"], ..NOTHING },
    RunnerRule {
        names: &["apt", "apt-get", "apt-cache", "aptitude"],
        letters: "oc",
        long: &["--option", "--config-file"],
        ..NOTHING
    },
    RunnerRule {
        names: &["dpkg", "rpm"],
        letters: "iEU",
        long: &["--install", "--eval", "--pipe", "--root"],
        ..NOTHING
    },
    RunnerRule { names: &["ip"], letters: "b", words: &["exec"], long: &["--batch"], ..NOTHING },
    RunnerRule { names: &["systemctl"], words: &["edit", "link"], ..NOTHING },
    RunnerRule {
        names: &["hg", "jj"],
        long: &["--config", "--config-toml", "--config-file"],
        words: &["exec", "alias"],
        ..NOTHING
    },
    RunnerRule { names: &["svn"], long: &["--diff-cmd", "--diff3-cmd", "--editor-cmd", "--config-option"], ..NOTHING },
    RunnerRule {
        names: &["make", "gmake"],
        letters: "fEIC",
        long: &["--eval", "--file", "--makefile", "--directory", "--include-dir"],
        holds: &["="],
        ..NOTHING
    },
    RunnerRule { names: &["cmake"], letters: "PE", holds: &["COMMAND", "LAUNCHER"], ..NOTHING },
    RunnerRule { names: &["ninja"], letters: "fC", ..NOTHING },
    RunnerRule { names: &["just"], letters: "cf", long: &["--command", "--shell", "--justfile", "--set"], ..NOTHING },
    RunnerRule {
        names: &["cargo"],
        letters: "C",
        long: &["--config", "--manifest-path"],
        words: &["watch", "script"],
        ..NOTHING
    },
    RunnerRule {
        names: &["go"],
        words: &["run", "generate", "tool"],
        // One dash or two.
        begins: &["-exec", "-toolexec", "-vettool", "--exec", "--toolexec", "--vettool"],
        ..NOTHING
    },
    RunnerRule { names: &["zig", "nim", "v", "rails", "mix"], words: &["run", "r", "runner"], ..NOTHING },
    RunnerRule { names: &["rake"], letters: "efr", long: &["--execute", "--rakefile", "--require"], ..NOTHING },
    RunnerRule { names: &["groff", "troff", "pic"], letters: "U", ..NOTHING },
    RunnerRule { names: &["exiftool"], words: &["-if", "-config"], holds: &["<"], ..NOTHING },
    RunnerRule { names: &["cowsay", "cowthink"], letters: "f", ..NOTHING },
    RunnerRule { names: &["latexmk"], letters: "er", ..NOTHING },
    RunnerRule { names: &["ssh-keygen", "ssh-add"], letters: "DsS", ..NOTHING },
    RunnerRule { names: &["openvpn"], holds: &["up", "down", "plugin", "config", "script"], ..NOTHING },
    RunnerRule {
        names: &["puppet", "facter", "gem", "knife"],
        words: &["apply", "exec", "open", "--custom-dir"],
        ..NOTHING
    },
    RunnerRule {
        names: &["pandoc"],
        letters: "FLd",
        long: &["--filter", "--lua-filter", "--pdf-engine", "--defaults"],
        ..NOTHING
    },
    RunnerRule { names: &["aria2c"], holds: &["--on-", "--conf-path"], ..NOTHING },
    RunnerRule { names: &["yt-dlp", "youtube-dl"], holds: &["--exec", "--downloader", "--config"], ..NOTHING },
    RunnerRule { names: &["ug", "ugrep"], long: &["--filter", "--pager", "--view"], ..NOTHING },
    RunnerRule { names: &["borg", "rclone", "restic"], holds: &["command", "--rsh", "sftp."], ..NOTHING },
    RunnerRule { names: &["curl"], letters: "K", long: &["--config"], ..NOTHING },
    RunnerRule { names: &["dotnet"], words: &["exec", "run"], ..NOTHING },
    RunnerRule {
        names: &["npm", "pnpm", "yarn", "corepack"],
        letters: "c",
        words: &["exec", "x", "dlx", "explore", "config", "set", "node", "edit"],
        long: &["--call", "--script-shell", "--userconfig", "--globalconfig", "--node-options", "--prefix"],
        ..NOTHING
    },
    RunnerRule {
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
    RunnerRule {
        names: &["docker", "podman", "nerdctl", "lxc", "kubectl", "oc", "heroku", "flyctl", "vagrant"],
        words: &["run", "exec", "build", "compose", "debug", "ssh", "console", "create", "attach"],
        ..NOTHING
    },
    RunnerRule { names: &["gh"], words: &["alias", "extension", "codespace", "cs"], ..NOTHING },
    RunnerRule { names: &["export", "declare", "typeset", "readonly", "local"], holds: &["=", "$(", "`"], ..NOTHING },
    RunnerRule { names: &["test", "[", "printf", "read", "unset", "wait"], holds: EVALUATED, ..NOTHING },
];

/// Folders on the usual `PATH`: a program there may be named with or without its folder.
const USUAL: [&str; 8] =
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin"];

impl Simple {
    /// Whether it may run other commands that its arguments name or hide.
    pub(crate) fn runs_others(&self) -> bool {
        let arguments: Vec<&str> = self.arguments().iter().map(|word: &Word| word.text.as_str()).collect();
        with_arguments(self.name(), &arguments)
    }
}

/// The same for plain words.
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
            let [name, unversioned, variant] = spellings(name);
            // A compiler's name may contain its target: `x86_64-linux-gnu-gcc`.
            let names = [name, unversioned, variant, unversioned.rsplit('-').next().unwrap_or(name)];
            static HIDING: LazyLock<HashMap<&str, &RunnerRule>> = LazyLock::new(|| {
                BY_ARGUMENT.iter().flat_map(|hiding| hiding.names.iter().map(move |name| (*name, hiding))).collect()
            });
            names.iter().filter_map(|name| HIDING.get(name)).any(|hiding| hiding.applies(arguments))
        }
    }
}

/// Whether a program runs its arguments, so that its name alone says nothing.
pub(crate) fn is_runner(name: &str) -> bool {
    // A command line may contain as many commands as characters.
    static NAMES: LazyLock<HashSet<&str>> =
        LazyLock::new(|| RUNNERS.iter().flat_map(|names| names.split(' ')).collect());
    spellings(base(name)).iter().any(|name| NAMES.contains(name)) || is_loader(base(name))
}

/// Whether it is the system's loader, which runs the program that its argument names: `ld.so /bin/rm …`.
fn is_loader(name: &str) -> bool {
    name == "ld.so" || ["ld-linux", "ld-musl", "ld64"].iter().any(|begin| name.starts_with(begin))
}

/// Names to look up in the lists: as written, without the version (`gcc-12`), without the distribution's variant
/// (`vim.tiny`).
fn spellings(name: &str) -> [&str; 3] {
    let unversioned = name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'));
    [name, unversioned, name.split('.').next().unwrap_or(name)]
}

/// Whether it is a program or script outside the usual folders, such as `./x.sh`.
fn is_own_program(name: &str) -> bool {
    name.rsplit_once('/').is_some_and(|(folder, _)| !USUAL.contains(&folder))
}

/// The program's name without its folder.
pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl RunnerRule {
    fn applies(&self, arguments: &[&str]) -> bool {
        // `tar xIf …`: its first argument may be short options without a dash.
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
