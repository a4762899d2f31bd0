use super::*;

#[track_caller]
fn hides(line: &str) -> bool {
    crate::command::Script::parse(line).is_ok_and(|script| script.commands.iter().any(Simple::runs_others))
}

#[test]
fn programs_that_run_others_are_known_by_their_arguments() {
    for line in [
        "git -c alias.x='!rm y' x",
        "git -c core.pager=evil log",
        "git -ccore.pager=evil clone x",
        "git --config-env=core.editor=X commit",
        "git --exec-path=. status",
        "git -C elsewhere x",
        "git x",
        "git rebase -x 'rm y' HEAD~2",
        "git bisect run rm",
        "git submodule foreach 'rm y'",
        "git clone 'ext::sh -c rm' x",
        "git clone --upload-pack=evil x",
        "git config alias.x '!rm y'",
        "git config --global core.sshCommand evil",
        "git difftool -x evil",
        "git grep -Oevil x",
        "tar cf x --checkpoint=1 --checkpoint-action=exec='rm y' z",
        "tar cf x --checkpoint-act=exec=rm z",
        "tar xIf evil x",
        "tar -I evil -xf x",
        "tar xf x --to-command=rm",
        "sed -n '1e rm x' y",
        "sed 's/a/rm x/e' y",
        "sed 's/a/b/w out' y",
        "sed -f script y",
        "ssh -o ProxyCommand='rm y' host",
        "vim -c '!rm y'",
        "nvim --headless x",
        "emacs --batch --eval x",
        "rsync -e evil a b",
        "scp -S evil a b:",
        "man -P evil ls",
        "less '+!rm y' x",
        "gdb -ex 'shell rm y'",
        "make SHELL=evil",
        "make --eval=x",
        "npm exec evil",
        "docker run -v /:/x y",
        "socat EXEC:rm -",
        "zip -T -TT 'rm y' x z",
        "openssl req -engine ./evil.so",
        "sqlite3 x '.shell rm y'",
        "./x.sh",
        "target/debug/x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "export PATH=.",
        "test -v 'a[$(rm x)]'",
        "sort --compress-prog=evil x",
        "split --filter='rm y' x",
        "fd -x rm",
        "cargo --config x test",
    ] {
        assert!(hides(line), "{line}");
    }
}

#[test]
fn everyday_commands_hide_nothing() {
    for line in [
        "git commit -m 'rm x'",
        "git -c user.name=me -c color.ui=never commit -am x",
        "git --no-pager log --oneline",
        "git config user.email me@example.com",
        "git config --get alias.x",
        "git rebase main",
        "git submodule update --init",
        "/usr/bin/git status",
        "tar czf x.tgz src",
        "tar -xf x.tar.gz",
        "sed -n '10,20p' x",
        "sed -i 's/a/b/g' x",
        "sed -e 's|a|b|' -e '/x/d' y",
        "sed -E 's/(a|b);c/\\1/; 3d' y",
        "rsync -a x y",
        "make -j4 test",
        "npm test",
        "npm run build",
        "cargo test",
        "go test ./...",
        "sort x",
        "test -f x",
        "printf '%s' x",
        "cp a b",
    ] {
        assert!(!hides(line), "{line}");
    }
}
