use std::path::Path;

use super::*;
use crate::tools::fetch::Fetch;
use crate::tools::shell::Command;

const SHELL: &str = "run_shell_command";

fn line(command: &str) -> Job {
    Job::Shell(Command::of(command, Path::new("/work/repo")))
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn verdict(mode: ApprovalMode, allow: &[&str], block: &[&str], command: &str) -> Verdict {
    Policy::new(mode, rules(allow), rules(block)).judge(SHELL, &line(command))
}

#[track_caller]
fn denied(verdict: &Verdict, words: &str) {
    assert!(matches!(verdict, Verdict::Deny(why) if why.contains(words)), "{verdict:?}");
}

#[test]
fn every_command_of_a_line_must_be_allowed() {
    let judge =
        |command| verdict(ApprovalMode::Ask, &["shell(git log:*)", "shell(head:*)", "shell(npm test)"], &[], command);
    for allowed in ["git log", "git log --oneline | head -3", "npm test", "npm test && git log", "'git' \"log\" 2>&1"] {
        assert_eq!(judge(allowed), Verdict::Run, "{allowed}");
    }
    for asked in [
        "git",
        "git push",
        "git logs",
        "npm test -- x",
        "git log; rm x",
        "git log $(rm x)",
        "git log > x",
        "head -3 x\nrm y",
        "g* log",
        "A=1 git log",
        "git log `x`",
        "(git log)",
    ] {
        assert_eq!(judge(asked), Verdict::Ask, "{asked}");
    }
}

#[test]
fn a_line_nobody_can_be_sure_of_is_allowed_only_as_it_is() {
    let allow = ["shell(echo $HOME > x)"];
    assert_eq!(verdict(ApprovalMode::Ask, &allow, &[], "echo $HOME > x "), Verdict::Run);
    assert_eq!(verdict(ApprovalMode::Ask, &allow, &[], "echo $HOME > x; ls"), Verdict::Ask);
    assert_eq!(verdict(ApprovalMode::Ask, &[SHELL], &[], "echo $HOME > x; ls"), Verdict::Run);
}

#[test]
fn a_rule_for_a_program_is_not_for_what_it_is_told_to_run() {
    let allow = ["shell(tar:*)", "shell(git log:*)", "shell(git:*)", "shell(sed:*)", "shell(make:*)", "shell(ssh:*)"];
    let judge = |command| verdict(ApprovalMode::Ask, &allow, &[], command);
    for allowed in ["tar xf x", "git log -3", "sed s/a/b/ x", "make CC=clang", "ssh host ls"] {
        assert_eq!(judge(allowed), Verdict::Run, "{allowed}");
    }
    for asked in ["tar xf x --to-command=./x", "git -c core.pager=./x log", "git log --ext-diff", "sed '1e ./x' y"] {
        assert_eq!(judge(asked), Verdict::Ask, "{asked}");
    }
}

#[test]
fn one_blocked_command_blocks_the_line() {
    let judge = |command| verdict(ApprovalMode::AutoAll, &[SHELL], &["shell(rm)", "shell(git push:*)"], command);
    for blocked in [
        "rm x",
        "ls; rm -rf x",
        "/bin/rm x",
        "ls | xargs rm",
        "sudo rm x",
        "bash -c 'rm x'",
        "echo $(rm x)",
        "git push -f",
        "(git push)",
        "r\\m x",
        "find . -exec rm {} +",
        "trap 'rm x' EXIT",
        "strace -f rm x",
        "script -c 'rm x' log",
        "git -c alias.x='!rm y' x",
        "tar cf x --checkpoint=1 --checkpoint-action=exec='rm y' z",
        "sed -n '1e rm x' y",
        "ssh -o ProxyCommand='rm y' host",
        "vim -c '!rm y'",
    ] {
        denied(&judge(blocked), "(rule run_shell_command(");
    }
    for free in ["ls", "git log", "git commit -m 'rm x'", "git commit -m push", "echo rm"] {
        assert_eq!(judge(free), Verdict::Run, "{free}");
    }
}

#[test]
fn what_cannot_be_seen_is_asked_about_where_commands_are_blocked() {
    for hidden in [
        "echo $X",
        "bash script",
        "python3 x.py",
        "ls > x",
        "eval \"$(cat x)\"",
        "git -c core.sshCommand=./x fetch",
        "git unknown",
        "tar xf x --to-command=./x",
        "sed -f x y",
        "./x.sh",
        "make SHELL=./x",
    ] {
        assert_eq!(verdict(ApprovalMode::AutoAll, &[SHELL], &["shell(rm:*)"], hidden), Verdict::Ask, "{hidden}");
        assert_eq!(verdict(ApprovalMode::AutoAll, &[], &[], hidden), Verdict::Run, "{hidden}");
        denied(&verdict(ApprovalMode::DontAsk, &[SHELL], &["shell(rm:*)"], hidden), "is not certain");
    }
    // What stands behind a flag may be its value or the command.
    for hidden in ["git -C . push", "git -c color.ui=never push -f", "/usr/bin/git --no-pager push"] {
        assert_eq!(verdict(ApprovalMode::AutoAll, &[], &["shell(git push:*)"], hidden), Verdict::Ask, "{hidden}");
        assert_eq!(verdict(ApprovalMode::AutoAll, &[], &["shell(git reset:*)"], hidden), Verdict::Run, "{hidden}");
    }
    assert_eq!(verdict(ApprovalMode::AutoAll, &[], &["shell(rm:*)"], "python3.12 x.py"), Verdict::Ask);
}

#[test]
fn the_mode_decides_about_what_no_rule_is_about() {
    for (mode, look, work) in [
        (ApprovalMode::Ask, Verdict::Ask, Verdict::Ask),
        (ApprovalMode::AskDangerous, Verdict::Run, Verdict::Ask),
        (ApprovalMode::AutoEdit, Verdict::Ask, Verdict::Ask),
        (ApprovalMode::AutoAll, Verdict::Run, Verdict::Run),
    ] {
        assert_eq!(verdict(mode, &[], &[], "ls | head"), look, "{mode}");
        assert_eq!(verdict(mode, &[], &[], "npm test"), work, "{mode}");
    }
    assert_eq!(verdict(ApprovalMode::AskDangerous, &[], &[], "ls; rm x"), Verdict::Ask);
    assert_eq!(verdict(ApprovalMode::AskDangerous, &[], &[], "cat /etc/passwd"), Verdict::Ask);
    assert_eq!(verdict(ApprovalMode::Plan, &[], &[], "ls"), Verdict::Ask);
    denied(&verdict(ApprovalMode::Plan, &[SHELL], &[], "npm test"), "plan mode");
    denied(&verdict(ApprovalMode::DontAsk, &[], &[], "ls"), "no rule allows");
    assert_eq!(verdict(ApprovalMode::DontAsk, &["shell(ls:*)"], &[], "ls"), Verdict::Run);
}

#[test]
fn an_answer_for_good_is_about_what_was_asked() {
    let made = |command: &str| {
        let rules = always(option::PROCEED_ALWAYS, SHELL, &line(command));
        rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    for (command, expected) in [
        ("git log --oneline", "run_shell_command(git log:*)"),
        ("npm run build -- --fast", "run_shell_command(npm run build:*)"),
        ("ls -la | grep x | grep y", "run_shell_command(ls:*) run_shell_command(grep:*)"),
        ("rm -rf build", "run_shell_command(rm -rf build)"),
        ("ls && rm x", "run_shell_command(ls && rm x)"),
        ("git -c a=b log", "run_shell_command(git -c a=b log)"),
        ("bash x.sh", "run_shell_command(bash x.sh)"),
        ("sudo ls", "run_shell_command(sudo ls)"),
        ("./x.sh", "run_shell_command(./x.sh)"),
        ("echo $HOME", "run_shell_command(echo $HOME)"),
        ("a; b; c; d; e", "run_shell_command(a; b; c; d; e)"),
    ] {
        assert_eq!(made(command), expected);
        let mut policy = Policy::new(ApprovalMode::Ask, Vec::new(), Vec::new());
        let always = policy.answered(&option::PROCEED_ALWAYS_AND_SAVE.into(), SHELL, &line(command)).unwrap();
        assert!(always.save);
        assert_eq!(policy.judge(SHELL, &line(command)), Verdict::Run, "{command}");
        assert_eq!(policy.judge(SHELL, &line("unknown")), Verdict::Ask);
    }
    let mut policy = Policy::new(ApprovalMode::Ask, Vec::new(), Vec::new());
    assert_eq!(policy.answered(&option::PROCEED_ONCE.into(), SHELL, &line("ls")), None);
    assert_eq!(policy.judge(SHELL, &line("ls")), Verdict::Ask);
}

#[test]
fn hosts_are_allowed_one_by_one() {
    let fetch = |urls: &[&str]| Job::Fetch(Fetch::of(urls));
    let mut policy = Policy::new(ApprovalMode::Ask, Vec::new(), Vec::new());
    let made = policy.answered(&option::PROCEED_ALWAYS.into(), "web_fetch", &fetch(&["https://a.example/x"])).unwrap();
    assert_eq!(made, Always { rules: vec![Rule::Host("a.example".to_owned())], save: false });
    assert_eq!(policy.judge("web_fetch", &fetch(&["https://a.example/y"])), Verdict::Run);
    assert_eq!(policy.judge("web_fetch", &fetch(&["https://a.example/y", "https://b.example"])), Verdict::Ask);
    assert_eq!(policy.judge("web_fetch", &fetch(&["https://a.example.evil/"])), Verdict::Ask);
    let policy = Policy::new(ApprovalMode::AutoAll, Vec::new(), rules(&["web_fetch(b.example)"]));
    denied(&policy.judge("web_fetch", &fetch(&["https://a.example/y", "https://B.example"])), "web_fetch(b.example)");
}

#[test]
fn git_is_not_believed_in_a_folder_that_is_not_trusted() {
    let policy = Policy::new(ApprovalMode::AskDangerous, Vec::new(), Vec::new());
    assert_eq!(policy.judge(SHELL, &line("git status")), Verdict::Run);
    let policy = policy.in_folder(Trust::Untrusted);
    assert_eq!(policy.judge(SHELL, &line("git status")), Verdict::Ask);
    assert_eq!(policy.judge(SHELL, &line("ls")), Verdict::Run);
}

#[test]
fn only_what_is_not_denied_is_approved_whoever_consents() {
    use ApprovalMode::{Ask, AutoAll, Plan};
    let blocks = ["shell(touch:*)"];
    for (mode, command, unasked, given) in [
        (Ask, "make", false, true),
        (AutoAll, "make", true, true),
        (Plan, "make", false, false),
        (Plan, "ls", false, true),
        (AutoAll, "touch x", false, false),
        (AutoAll, "env touch x", false, false),
    ] {
        let policy = Policy::new(mode, Vec::new(), rules(&blocks));
        let approves = |consent| policy.approve(SHELL, line(command), consent).is_ok();
        assert_eq!((approves(Consent::Unasked), approves(Consent::Given)), (unasked, given), "{mode} {command}");
    }
}

/// A file that configures another program is asked about, even if all edits are allowed.
#[test]
fn edits_of_files_that_others_obey_are_asked_about() {
    let judge = |mode, allow: &[&str], file: &str| {
        let access = Access::Change { file: Path::new(file) };
        Policy::new(mode, rules(allow), Vec::new()).judge_access("write_file", access)
    };
    for file in [
        "/w/.git/config",
        "/w/.GIT/hooks/x",
        "/w/.claude/settings.json",
        "/w/sub/.claude/skills/x/SKILL.md",
        "/w/.mcp.json",
        "/w/.codex/config.toml",
        "/w/.gemini/settings.json",
        "/w/.env",
        "/w/.vscode/tasks.json",
        "/w/.multitap/settings.json",
        "/home/u/.bashrc",
        "/home/u/.zshenv",
        "/home/u/.ssh/authorized_keys",
        "/home/u/.config/multitap/settings.json",
        "/home/u/.claude.json",
        "/w/.cargo/config.toml",
    ] {
        assert_eq!(judge(ApprovalMode::AutoEdit, &[], file), Verdict::Ask, "{file}");
        assert_eq!(judge(ApprovalMode::Ask, &["edit"], file), Verdict::Ask, "{file}");
        assert_eq!(judge(ApprovalMode::Ask, &["write_file"], file), Verdict::Run, "the rule names the tool: {file}");
        assert_eq!(judge(ApprovalMode::AutoAll, &[], file), Verdict::Run, "{file}");
    }
    for file in ["/w/a.rs", "/w/.gitignore", "/w/claude/x"] {
        assert_eq!(judge(ApprovalMode::AutoEdit, &[], file), Verdict::Run, "{file}");
        assert_eq!(judge(ApprovalMode::Ask, &["edit"], file), Verdict::Run, "{file}");
    }
}

/// What Multitap reads at its next start runs outside the sandbox.
#[cfg(unix)]
#[test]
fn a_sandboxed_session_does_not_change_protected_folders() {
    let home = tempfile::tempdir().unwrap();
    let linked = home.path().join("linked");
    std::fs::create_dir(home.path().join("multitap")).unwrap();
    std::os::unix::fs::symlink(home.path().join("multitap"), &linked).unwrap();
    let file = home.path().canonicalize().unwrap().join("multitap/settings.json");
    let policy = Policy::new(ApprovalMode::AutoAll, rules(&["write_file"]), Vec::new());
    let judge = |policy: &Policy, file: &Path| policy.judge_access("write_file", Access::Change { file });
    assert_eq!(judge(&policy, &file), Verdict::Run, "without a sandbox commands could change it as well");
    let policy = policy.protecting(&[linked]);
    denied(&judge(&policy, &file), "Multitap's own files");
    assert_eq!(judge(&policy, &home.path().join("other")), Verdict::Run);
}
