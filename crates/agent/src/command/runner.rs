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
     uname26 unbuffer unshare uvx valgrind watch watchexec watchman x86_64 xargs xinit xvfb-run zrun \
     catatonit catchsegv execlineb gpg-agent heaptrack kcov memusage mprocs pueue reptyr run0 s6-applyuidgid \
     s6-envdir s6-setlock s6-setsid s6-setuidgid s6-softlimit s6-sudo sotruss systemd-socket-activate trickle \
     ts varlinkctl vgdb xe",
    // Programs with commands that run others: editors, terminals, databases, file transfer.
    "abduco alacritty byobu dtach duckdb ed editor elinks emacs emacsclient evim eview ex foot ftp gio \
     gnome-terminal gvim gvimdiff gview hx kak kitty konsole lf lftp links litecli lualatex lynx mail mailx \
     mariadb mc mongo mongosh mutt mycli mysql nano ncat ncdu nnn nvim open pager pgcli pico psql ranger rgview \
     rgvim run-mailcap rview rvim screen see sensible-browser sensible-editor sensible-pager sftp socat sqlite \
     sqlite3 telnet tig tmux vi vidir view vifm vigr vim vimdiff vipe vipw visudo w3m wezterm x-terminal-emulator \
     xdg-open xdotool xterm ydotool zellij",
];

/// Programs, and the arguments that make them run another program. In an entry, `-x` is a short option, alone or among
/// several, `--long` a long one, in full or abbreviated, `*` any argument, and everything else that very argument.
const BY_ARGUMENT: &[(&str, &str)] = &[
    (
        "tar gtar bsdtar star cpio",
        "-I -F --checkpoint-action --to-command --use-compress-program --rsh-command --rmt-command --info-script \
         --new-volume-script",
    ),
    ("zip", "--unzip-command *TT*"),
    ("rsync", "-e --rsh --rsync-path"),
    ("scp", "-S -o -F"),
    ("nc netcat", "-e -c --exec --sh-exec --lua-exec"),
    ("man apropos whatis", "-P -H -C --pager --html --config-file"),
    ("less more", "-k +*"),
    ("sort", "--compress-program"),
    ("split", "--filter"),
    ("install", "--strip-program"),
    ("patch", "-e --ed"),
    ("diff3 sdiff", "--diff-program"),
    ("rg", "--pre --hostname-bin"),
    ("ag ack bat batcat", "--pager"),
    ("fd fdfind", "-x -X --exec --exec-batch"),
    ("fzf sk", "-c --preview --bind --with-shell --cmd"),
    ("wget", "-e --execute --use-askpass --config"),
    ("tcpdump", "-z -Z"),
    ("nmap", "--script"),
    ("gpg gpg2", "--photo-viewer --exec-path --agent-program --options"),
    ("openssl", "-engine -provider-path -provider -config engine s_client s_server"),
    ("gcc g++ cc c++ c89 c99 clang clang++ cpp gfortran ld ar nm", "-wrapper* -B* -specs* --specs* -load* @* *plugin*"),
    ("rustc", "*linker* *@*"),
    ("latex pdflatex xelatex tex", "*shell-escape* *write18*"),
    ("apt apt-get apt-cache aptitude", "-o -c --option --config-file"),
    ("dpkg rpm", "-i -E -U --install --eval --pipe --root"),
    ("ip", "-b --batch exec"),
    ("systemctl", "edit link"),
    ("hg jj", "--config --config-toml --config-file exec alias"),
    ("svn", "--diff-cmd --diff3-cmd --editor-cmd --config-option"),
    ("make gmake", "-f -E -I -C --eval --file --makefile --directory --include-dir *=*"),
    ("cmake", "-P -E *COMMAND* *LAUNCHER*"),
    ("ninja", "-f -C"),
    ("just", "-c -f --command --shell --justfile --set"),
    ("cargo", "-C --config --manifest-path watch script"),
    ("go", "run generate tool -exec* -toolexec* -vettool* --exec* --toolexec* --vettool*"),
    ("zig nim v rails mix", "run r runner"),
    ("rake", "-e -f -r --execute --rakefile --require"),
    ("groff troff pic", "-U"),
    ("exiftool", "-if -config *<*"),
    ("cowsay cowthink", "-f"),
    ("latexmk", "-e -r"),
    ("ssh-keygen ssh-add", "-D -s -S"),
    ("openvpn", "*up* *down* *plugin* *config* *script*"),
    ("puppet facter gem knife", "apply exec open --custom-dir"),
    ("pandoc", "-F -L -d --filter --lua-filter --pdf-engine --defaults"),
    ("aria2c", "*--on-* *--conf-path*"),
    ("yt-dlp youtube-dl", "*--exec* *--downloader* *--config*"),
    ("ug ugrep", "--filter --pager --view"),
    ("borg rclone restic", "*command* *--rsh* *sftp.*"),
    ("curl", "-K --config"),
    ("dotnet", "exec run"),
    (
        "npm pnpm yarn corepack",
        "-c --call --script-shell --userconfig --globalconfig --node-options --prefix exec x dlx explore config set \
         node edit",
    ),
    (
        "asdf bundle conda hatch mise nix nix-shell pdm pipenv poetry rye stack uv",
        "--run --command run exec x shell develop",
    ),
    (
        "docker podman nerdctl lxc kubectl oc heroku flyctl vagrant",
        "run exec build compose debug ssh console create attach",
    ),
    (
        "apptainer aws-vault consul devbox devcontainer doppler etcdctl incus infisical lima limactl multipass op railway \
         singularity sops",
        "exec exec-env exec-file lock run shell ssh",
    ),
    ("gh", "alias extension codespace cs"),
    ("export declare typeset readonly local", "*=* *$(* *`*"),
    ("test [ printf read unset wait", "*$(* *`*"),
];

/// Folders on the usual `PATH`: a program there may be named with or without its folder.
const USUAL: [&str; 8] =
    ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/snap/bin"];

impl Simple {
    /// Whether it may run another command, named in its arguments or hidden in them.
    pub(crate) fn runs_others(&self) -> bool {
        let arguments: Vec<&str> = self.arguments().iter().map(|word: &Word| word.text.as_str()).collect();
        with_arguments(self.name(), &arguments)
    }
}

/// Like [`Simple::runs_others`], for plain words.
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
            static RULES: LazyLock<HashMap<&str, &(&str, &str)>> = LazyLock::new(|| {
                BY_ARGUMENT.iter().flat_map(|rule| rule.0.split(' ').map(move |of| (of, rule))).collect()
            });
            names.iter().filter_map(|name| RULES.get(name)).any(|rule| applies(rule, arguments))
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

/// Whether the program is the system's loader, which runs the program that its argument names: `ld.so /bin/rm …`.
fn is_loader(name: &str) -> bool {
    name == "ld.so" || ["ld-linux", "ld-musl", "ld64"].iter().any(|begin| name.starts_with(begin))
}

/// Names to look up in the lists: as written, without the version (`gcc-12`), without the distribution's variant
/// (`vim.tiny`).
fn spellings(name: &str) -> [&str; 3] {
    let unversioned = name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'));
    [name, unversioned, name.split('.').next().unwrap_or(name)]
}

/// Whether the name is that of a program or script outside the usual folders, such as `./x.sh`.
fn is_own_program(name: &str) -> bool {
    name.rsplit_once('/').is_some_and(|(folder, _)| !USUAL.contains(&folder))
}

/// The program's name without its folder.
pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether an argument matches the rule, an entry of `BY_ARGUMENT`.
fn applies((names, signs): &(&str, &str), arguments: &[&str]) -> bool {
    arguments.iter().enumerate().any(|(place, text)| {
        // `tar xIf …`: its first argument may be short options without a dash.
        let short = is_short(text) || (place == 0 && names.starts_with("tar "));
        signs.split(' ').any(|sign| match sign.strip_prefix('*').map(|part| part.trim_end_matches('*')) {
            Some(part) => text.contains(part),
            None if sign.ends_with('*') => text.starts_with(sign.trim_end_matches('*')),
            None if sign.starts_with("--") => long(text, sign),
            None if sign.len() == 2 && sign.starts_with('-') => short && text.contains(&sign[1..]),
            None => *text == sign,
        })
    })
}

/// Whether it is short options, as in `-abc`.
fn is_short(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

#[cfg(test)]
mod tests;
