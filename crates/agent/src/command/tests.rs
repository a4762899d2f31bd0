use std::path::Path;

use proptest::prelude::*;

use super::*;

fn words(line: &str) -> Vec<Vec<String>> {
    let script = Script::parse(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    let texts = |simple: Simple| simple.words.into_iter().map(|word| word.text).collect();
    script.commands.into_iter().map(texts).collect()
}

fn looks(line: &str) -> bool {
    Script::parse(line).is_ok_and(|script| script.is_read_only(Path::new("/work/repo"), Trust::Trusted))
}

#[test]
fn a_line_is_cut_where_the_shell_cuts_it() {
    assert_eq!(words("ls -l src"), [vec!["ls", "-l", "src"]]);
    assert_eq!(words("a;b&&c||d|e|&f&g\nh"), ["a", "b", "c", "d", "e", "f", "g", "h"].map(|word| vec![word]));
    assert_eq!(words("a |\n b\n\n"), [vec!["a"], vec!["b"]]);
    assert_eq!(words("# what it does\nls # and why; rm x"), [vec!["ls"]]);
    assert_eq!(words("echo a#b"), [vec!["echo", "a#b"]]);
    assert_eq!(words("ls 2>&1 >/dev/null 2> /dev/null &>/dev/null </dev/null"), [vec!["ls"]]);
    assert_eq!(words("echo 2 >&2"), [vec!["echo", "2"]]);
}

#[test]
fn quotes_hold_words_together() {
    assert_eq!(words(r#"echo 'a; b' "c && d" e\ f g\;h"#), [vec!["echo", "a; b", "c && d", "e f", "g;h"]]);
    assert_eq!(words(r#"grep "end$" 'a'"b"c ''"#), [vec!["grep", "end$", "abc", ""]]);
    assert_eq!(words(r#"echo "a\"b\n\$x""#), [vec!["echo", r#"a"b\n$x"#]]);
    assert_eq!(words("echo a\\\nb"), [vec!["echo", "ab"]]);
    assert_eq!(words(r"r\m x"), [vec!["rm", "x"]]);
}

#[test]
fn what_cannot_be_known_is_not_sure() {
    for (line, why) in [
        ("echo $HOME", Uncertain::Substitution),
        ("echo \"$(rm x)\"", Uncertain::Substitution),
        ("echo \"a`rm x`\"", Uncertain::Substitution),
        ("echo $'\\x41'", Uncertain::Substitution),
        ("ls > out", Uncertain::Redirection),
        ("ls >> out", Uncertain::Redirection),
        ("ls >| out", Uncertain::Redirection),
        ("ls &> out", Uncertain::Redirection),
        ("ls >&out", Uncertain::Redirection),
        ("ls 2>&1x", Uncertain::Redirection),
        ("wc < in", Uncertain::Redirection),
        ("cat << END\nx\nEND", Uncertain::Redirection),
        ("cat <<< x", Uncertain::Redirection),
        ("ls > /dev/null/../../tmp/x", Uncertain::Redirection),
        ("diff <(ls) x", Uncertain::Redirection),
        ("(ls)", Uncertain::Group),
        ("f() { ls; }", Uncertain::Group),
        ("if true; then ls; fi", Uncertain::Group),
        ("! ls", Uncertain::Group),
        ("[[ a == b ]]", Uncertain::Guess),
        ("{ ls; }", Uncertain::Braces),
        ("find . {-delete,}", Uncertain::Braces),
        ("PATH=. ls", Uncertain::Assignment),
        ("A+=1 ls", Uncertain::Assignment),
        ("A[0]=1 ls", Uncertain::Assignment),
        ("l* x", Uncertain::Guess),
        ("~/bin/x", Uncertain::Guess),
        ("'' x", Uncertain::Guess),
        ("ls 'x", Uncertain::Broken),
        ("ls \"x", Uncertain::Broken),
        ("ls x\\", Uncertain::Broken),
        ("ls &&", Uncertain::Broken),
        ("ls | ", Uncertain::Broken),
        ("; ls", Uncertain::Broken),
        ("ls ;; ls", Uncertain::Group),
        ("", Uncertain::Broken),
        ("# nothing", Uncertain::Broken),
    ] {
        assert_eq!(Script::parse(line), Err(why), "{line}");
    }
}

#[test]
fn commands_that_only_look_are_known() {
    for line in [
        "ls -la && pwd",
        "cat Cargo.toml | head -n 20",
        "grep -rn 'fn main' src/ 2>/dev/null",
        "find . -name '*.rs' -type f | wc -l",
        "rg -n --hidden TODO",
        "sort names | uniq -c",
        "git status && git --no-pager log --oneline -5",
        "git diff HEAD~1 -- src/lib.rs",
        "echo '~' \"~/x\" a~b",
        "ls -la \\\n  src",
        "git branch -a",
        "sed -n '10,20p' src/lib.rs",
        "cat *.md",
        "cat /work/repo/a",
        "cd src && ls",
        "cargo --version",
        "wc -l *.rs",
        "tail -n 5 log",
        "du -sh src",
    ] {
        assert!(looks(line), "{line}");
    }
}

#[test]
fn commands_that_do_more_than_look_are_not_taken_for_such() {
    for line in [
        "ls; rm x",
        "ls\nrm x",
        "ls & rm x",
        "ls | xargs rm",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -fprintf out x",
        "find *",
        "sort -o out in",
        "sort -uo out in",
        "sort --outp=out in",
        "sort --compress-program=evil in",
        "rg --pre evil x",
        "rg --pre=evil x",
        "tree -o out",
        "tree -R -L 1",
        "sort --files0-from=list",
        "wc --files0-from=list",
        "wc --files0-from list",
        "du --files0=list",
        "md5sum -c list",
        "sha256sum --check list",
        "tail -f log",
        "tail -5F log",
        "tail --follow=name log",
        "find -files0-from list",
        "uniq in out",
        "git -c core.pager=evil log",
        "git -C /elsewhere log",
        "git --git-dir=evil log",
        "git log --output=out",
        "git diff --outp out",
        "git diff --ext-diff",
        "git show --textconv x",
        "git grep -Oevil x",
        "git branch new",
        "git branch -D main",
        "git tag v1",
        "git remote add x y",
        "git reflog expire --all",
        "git push",
        "sed -i s/a/b/ x",
        "sed -n '1e rm x' y",
        "sed -n 1,2p -i x",
        "printf -v PATH ./evil",
        "date -s tomorrow",
        "./ls",
        "/bin/ls",
        "env",
        "cat ../secret",
        "cat /etc/passwd",
        "cat ~/.ssh/id_rsa",
        "cat ~/.ssh/\"id_rsa\"",
        "cat ~/.ssh/id_rs\\a",
        "grep --file=~/'x' y",
        "echo \\\n# '\ntouch x #'",
        "echo \\\n\\\n# '\ntouch x #'",
        "cat .*/secret",
        "grep -f/etc/passwd x",
        "grep -rf/etc/passwd x",
        "grep --file=/etc/passwd x",
        "grep -rf../secret x",
        "cd / && cat etc/passwd",
        "cd",
        "cd -",
        "cargo test",
        "node --version evil.js",
    ] {
        assert!(!looks(line), "{line}");
    }
}

#[test]
fn git_is_asked_about_in_a_folder_that_is_not_trusted() {
    let script = Script::parse("git status").unwrap();
    assert!(!script.is_read_only(Path::new("/work/repo"), Trust::Untrusted));
}

#[test]
fn commands_are_seen_through_what_hides_them() {
    let seen = |line: &str, name: &str| Candidates::through(line).begins_with(&[name.to_owned()]);
    for line in [
        "echo $(rm x)",
        "echo `rm x`",
        "bash -c 'rm x'",
        "sudo -u me rm x",
        "find . -name x | xargs -0 rm",
        "find . -exec rm {} +",
        "if true; then rm x; fi",
        "A=1 rm x",
        "r''m x > y",
        "(rm x)",
        "env -i /bin/rm x",
        "timeout 5 bash -c \"cd x && rm y\"",
        "trap 'rm x' EXIT",
        "hash -p /bin/rm ls; ls x",
        "/usr/bin/time rm x",
        "git -c alias.x='!rm y' x",
        "tar cf x --checkpoint=1 --checkpoint-action=exec=rm z",
        "sed -n '1e rm x' y",
        "ssh -o ProxyCommand='rm y' host",
        "vim -c '!rm y'",
    ] {
        assert!(seen(line, "rm"), "{line}: {:?}", Candidates::through(line));
    }
    assert!(!seen("git commit -m rm > x", "rm"));
    assert!(!seen("ls farm > rm", "farm"));
}

/// What is held of a line grows with its length: four times the line, four times as much.
#[test]
fn a_line_of_runners_is_held_once() {
    for part in ["env ", "git -x ", "sudo 'env ", "a=b env ", "time ! ", "$(env ", "sed e;"] {
        let size = |times: usize| Candidates::through(&part.repeat(times)).size();
        let (small, large) = (size(500), size(2000));
        assert!(large <= 4 * small + 16, "{part}: {small} at 500, {large} at 2000");
    }
}

/// A line this long can only be judged at all if every step is linear.
#[test]
fn a_line_of_two_hundred_thousand_runners_is_judged() {
    let begin = ["git".to_owned(), "push".to_owned()];
    for part in ["env ", "git -x "] {
        let sight = Candidates::through(&format!("env {}", part.repeat(200_000)));
        assert!(!sight.begins_with(&begin) && !sight.may_begin_with(&begin));
    }
    assert!(Candidates::through(&format!("env {} push", "git -x ".repeat(200_000))).may_begin_with(&begin));
}

#[test]
fn a_line_of_many_words_is_asked_about() {
    assert!(looks(&format!("cat {}", "a ".repeat(100))));
    assert!(!looks(&format!("cat {}", "a ".repeat(1000))));
}

/// Lines that only look.
fn looking() -> impl Strategy<Value = String> {
    let command = prop::sample::select(vec![
        "ls",
        "ls -la src",
        "cat 'a b' c",
        "head -n 3 \"x y\"",
        "git log --oneline",
        "grep -rn 'a;b' .",
        "wc -l x\\ y",
        "find . -name '*.rs'",
        "echo \"it's\"",
        "sort x 2>/dev/null",
        "pwd 2>&1",
    ]);
    let joint = prop::sample::select(vec![";", " && ", "||", " | ", "|&", "\n", " & "]);
    (command.clone(), prop::collection::vec((joint, command), 0..4)).prop_map(|(first, more)| {
        more.into_iter().fold(first.to_owned(), |line, (joint, command)| format!("{line}{joint}{command}"))
    })
}

proptest! {
    #[test]
    fn nothing_unknown_hides_behind_what_only_looks(
        line in looking(),
        joint in prop::sample::select(vec![";", "; ", "&&", " || ", "|", "|&", "\n", "&", " & ", ";\n", "\n\n", " &&\n"]),
        name in "[a-z_./]{1,8}",
        rest in "[ -~]{0,12}",
    ) {
        prop_assert!(looks(&line), "{line}");
        let known = looks(&format!("{name} {rest}"));
        prop_assume!(!known);
        let longer = format!("{line}{joint}{name} {rest}");
        prop_assert!(!looks(&longer), "{}", longer);
    }

    #[test]
    fn quoted_words_come_out_as_they_went_in(
        name in "[a-z][a-z0-9]{0,5}x",
        rest in prop::collection::vec("[^\0]{0,12}", 0..5),
    ) {
        let all: Vec<String> = std::iter::once(name).chain(rest).collect();
        prop_assert_eq!(words(&quote(&all)), [all]);
    }

    #[test]
    fn no_line_is_too_strange(line in "\\PC{0,60}|[ -~\n]{0,60}") {
        if let Ok(script) = Script::parse(&line) {
            prop_assert!(script.commands.iter().all(|simple| !simple.words.is_empty()));
        }
        Candidates::through(&line).may_begin_with(&["x".to_owned(), "y".to_owned()]);
    }
}
