//! The command line itself: help, subcommands, usage errors, what is found on this machine.

use multitap_testkit::fake::Fake;
use serde_json::Value;

use crate::scene::{MULTITAP, Scene};

#[test]
fn help_tells_a_newcomer_what_to_do() {
    let scene = Scene::bare();
    let help = scene.run(&["--help"]).exits(0).stdout;
    for wanted in [
        "multitap -p \"explain src/main.rs\"",
        "Exit codes of -p:",
        "Permissions:",
        "Conversation:",
        "--output-format",
        "--approval-mode",
        "MULTITAP_CLAUDE_BIN",
        "doctor",
    ] {
        assert!(help.contains(wanted), "no {wanted:?} in\n{help}");
    }
    assert!(!help.contains("__child"), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    let short = scene.run(&["-h"]).exits(0).stdout;
    assert!(short.lines().count() < help.lines().count());
    assert!(scene.run(&["--version"]).exits(0).stdout.starts_with("multitap "));
}

#[test]
fn completions_and_the_manual_are_printed() {
    let scene = Scene::bare();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = scene.run(&["completions", shell]).exits(0).stdout;
        assert!(script.contains("approval-mode"), "{shell}");
    }
    scene.run(&["completions", "cobol"]).exits(2);
    let page = scene.run(&["man"]).exits(0).stdout;
    assert!(page.contains(".TH multitap 1") && page.contains("Exit codes"), "{page}");
}

#[test]
fn the_schema_is_a_json_schema() {
    let text = Scene::bare().run(&["schema"]).exits(0).stdout;
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    assert_eq!(schema["title"], "UnifiedAgentEvent");
}

#[test]
fn bare_multitap_says_what_is_here_and_how_to_get_the_rest() {
    let run = Scene::bare().run(&[]).exits(0);
    for wanted in ["@anthropic-ai/claude-code", "@openai/codex", "@google/gemini-cli", "multitap -p"] {
        assert!(run.stdout.contains(wanted), "{run:#?}");
    }
    let fake = Fake::claude().says("hi").version("2.1.325 (Claude Code)").build().unwrap();
    let run = Scene::with(&fake).run(&[]).exits(0);
    assert!(run.stdout.contains("2.1.325"), "{run:#?}");
}

#[test]
fn a_chosen_agent_does_not_stand_in_the_way_of_commands() {
    let mut scene = Scene::bare();
    scene.scratch.set("MULTITAP_AGENT", "claude");
    scene.run(&["schema"]).exits(0);
    scene.run(&[]).exits(0);
}

#[test]
fn a_prompt_without_p_points_to_p() {
    let run = Scene::bare().run(&["fix the tests"]).exits(2);
    assert!(run.stderr.contains("-p"), "{run:#?}");
    assert_eq!(run.stdout, "");
}

#[test]
fn usage_errors_end_with_2_and_name_what_is_wrong() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let scene = Scene::with(&fake);
    scene.scratch.write("text.png", "no picture").unwrap();
    for (args, wanted) in [
        (&["-p", "x", "--nonsense"][..], "--nonsense"),
        (&["-p", "x", "--agent", "cloud"], "unknown agent 'cloud'"),
        (&["-p", "x", "--cwd", "/no/such/folder"], "/no/such/folder"),
        (&["-p", "x", "--approval-mode", "reckless"], "'reckless'"),
        (&["-p", "x", "--approval-mode", "ask-dangerous"], "claude"),
        (&["-p", "x", "--fork"], "--fork"),
        (&["-p", "x", "--at", "m"], "--resume"),
        (&["-p", "x", "--when-busy", "steer"], "steer"),
        (&["-p", "x", "--output-schema", "missing.json"], "missing.json"),
        (&["-p", "x", "--output-schema", "text.png"], "not JSON"),
        (&["-p", "x", "--image", "text.png"], "PNG"),
        (&["-p", "x", "--env", "NOVALUE"], "NAME=VALUE"),
        (&["-p", "x", "--question-timeout=-1"], "question-timeout"),
        (&["-p", "one", "two"], "quote the prompt"),
        (&["-p", "one", "two", "three", "agents"], "quote the prompt"),
        (&["-p", "--model", "m", "one", "two"], "quote the prompt"),
        (&["-p", "one", "--input-format", "stream-json", "two"], "quote the prompt"),
        (&["-p", ""], "empty"),
        (&["-p", "-"], "empty"),
        (&["-p", "-", "--input-format", "stream-json"], "stream-json"),
        (&["--output-format", "json"], "--print"),
        (&["decode", "--agent", "builtin"], "builtin"),
        (&["decode"], "--agent"),
    ] {
        let run = scene.run(args).exits(2);
        assert!(run.stderr.contains(wanted), "{args:?}: {run:#?}");
    }
    assert!(fake.heard().unwrap().is_empty(), "nothing was started");
}

#[test]
fn without_another_agent_the_built_in_one_rehearses() {
    let run = Scene::bare().run(&["-p", "hello"]).exits(0);
    assert!(run.stdout.contains("You said \"hello\"") && run.stdout.contains("This is a rehearsal"), "{run:#?}");
    let run = Scene::bare().run(&["-p", "hello", "--output-format", "stream-json"]).exits(0);
    assert_eq!(run.events()[0]["agentType"], "builtin");
    let run = Scene::bare().run(&[]).exits(0);
    assert!(run.stdout.contains("npm install -g @anthropic-ai/claude-code"), "{run:#?}");
    assert!(run.stdout.contains("This is a rehearsal"), "{run:#?}");
}

/// Without a terminal what is piped in is the prompt, and nothing is added to it.
#[test]
fn what_is_piped_into_it_is_the_prompt() {
    let scene = Scene::bare();
    let run = scene.run_with(&[], "hello pipe\n").exits(0);
    assert!(run.stdout.starts_with("You said \"hello pipe\""), "{run:#?}");
    assert!(!run.stdout.contains("npm install"), "nobody asked what it is: {run:#?}");
    let run = scene.run_with(&["--approval-mode", "auto-all"], "run: touch made").exits(0);
    assert!(scene.scratch.path("made").exists(), "its options count: {run:#?}");
    let run = scene.run_with(&[], " \n").exits(0);
    assert!(run.stdout.contains("npm install"), "blanks are no prompt: {run:#?}");
}

#[test]
fn a_misspelt_command_is_named_also_with_its_options() {
    let scene = Scene::bare();
    for (line, name) in [
        (&["doctr"][..], "doctor"),
        (&["doctr", "--json"], "doctor"),
        (&["serv", "--port", "0"], "serve"),
        (&["sesions", "list", "--all"], "sessions"),
    ] {
        let run = scene.run(line).exits(2);
        assert!(run.stderr.contains(&format!("Did you mean: multitap {name}?")), "{run:#?}");
        assert!(run.stderr.contains(&format!("multitap -p {}", line[0])), "{run:#?}");
    }
    let run = scene.run(&["doctor", "--jsn"]).exits(2);
    assert!(run.stderr.contains("--jsn") && !run.stderr.contains("Did you mean: multitap"), "{run:#?}");
}

#[test]
fn options_of_a_door_that_nothing_opens_are_refused() {
    let scene = Scene::bare();
    let tokens = scene.scratch.path("tokens").display().to_string();
    for option in [
        &["--a2a-host", "127.0.0.1"][..],
        &["--token-file", &tokens],
        &["--allow-host", "example.org"],
        &["--allow-origin", "https://example.org"],
        &["--public-url", "https://example.org"],
    ] {
        let run = scene.run(&[&["-p", "hello"], option].concat()).exits(2);
        assert!(run.stderr.contains(option[0]) && run.stderr.contains("--a2a-port"), "{run:#?}");
        let run = scene.run(option).exits(2);
        assert!(run.stderr.contains(option[0]) && run.stderr.contains("multitap serve"), "{run:#?}");
    }
    for option in [&["--a2a-port", "0"][..], &["--keep-serving"]] {
        let run = scene.run(option).exits(2);
        assert!(run.stderr.contains(option[0]) && run.stdout.is_empty(), "{run:#?}");
    }
}

#[test]
fn an_agent_that_is_not_installed_is_named() {
    let scene = Scene::bare();
    for agent in ["codex", "gemini"] {
        let run = scene.run(&["-p", "hello", "--agent", agent]).exits(3);
        assert!(run.stderr.contains(&format!("{agent} is not installed")), "{run:#?}");
    }
    let run = scene.run(&["-p", "hello", "--agent", "acp:no-such-agent acp"]).exits(3);
    assert!(run.stderr.contains("no program 'no-such-agent'"), "{run:#?}");
}

#[test]
fn a_folder_that_is_gone_has_agents_all_the_same() {
    let fake = Fake::claude().says("hi").version("2.1.325 (Claude Code)").build().unwrap();
    let scene = Scene::with(&fake);
    for args in ["", "agents", "doctor"] {
        let script = format!("mkdir gone && cd gone && rmdir ../gone && exec {MULTITAP} {args}");
        let output = scene.scratch.command("/bin/sh").args(["-c", &script]).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{args}: {output:#?}");
        assert!(stdout.contains("2.1.325"), "{args}: {stdout}");
    }
}

#[test]
fn agents_tells_what_is_found_and_claims_nothing_else() {
    let fake = Fake::claude().says("hi").version("2.1.400 (Claude Code)").build().unwrap();
    let text = Scene::with(&fake).run(&["agents", "--json"]).exits(0).stdout;
    let value: Value = serde_json::from_str(&text).unwrap();
    let claude = &value["agents"][0];
    assert_eq!(claude["name"], "claude");
    assert_eq!(claude["installed"], true);
    assert_eq!(claude["version"], "2.1.400");
    assert_eq!(claude["path"], fake.program().to_str().unwrap());
    assert_eq!(claude["features"]["fork"], true);
    let codex = &value["agents"][1];
    assert_eq!((&codex["installed"], &codex["driven"]), (&false.into(), &true.into()));
    let claims = |at: usize, feature: &str| value["agents"][at]["features"][feature] == true;
    for (feature, codex, gemini, acp) in [
        ("cost", false, false, false),
        ("usagePerModel", false, true, false),
        ("structuredOutput", true, false, false),
        ("resume", true, true, false),
        ("resumeAtMessage", false, false, false),
        ("fork", true, false, false),
        ("partialText", true, true, true),
        ("permissionQuestions", true, true, true),
        ("editedApproval", false, false, false),
        ("cancel", true, true, true),
    ] {
        let found = (claims(1, feature), claims(2, feature), claims(3, feature));
        assert_eq!(found, (codex, gemini, acp), "{feature}");
    }
    let table = Scene::with(&fake).run(&["agents"]).exits(0).stdout;
    assert!(table.contains("acp:COMMAND"), "{table}");
}

#[test]
fn doctor_suggests_fixes() {
    let run = Scene::bare().run(&["doctor"]).exits(0);
    assert!(run.stdout.contains("builtin"), "{run:#?}");
    assert!(run.stdout.contains("npm install -g @anthropic-ai/claude-code"), "{run:#?}");

    let old = Fake::claude().says("hi").version("1.0.3 (Claude Code)").build().unwrap();
    let run = Scene::with(&old).run(&["doctor"]).exits(0);
    assert!(run.stdout.contains("1.0.3") && run.stdout.contains("tested with 2.1.325"), "{run:#?}");
    for needless in ["codex", "gemini"] {
        let line = run.stdout.lines().find(|line| line.contains(&format!(" {needless} "))).unwrap();
        assert!(line.starts_with("skip "), "{line}");
    }
    let mut scene = Scene::with(&old);
    scene.scratch.set("MULTITAP_AGENT", "codex");
    let run = scene.run(&["doctor"]).exits(1);
    assert!(run.stdout.contains("problem  codex"), "it is the one that was chosen: {run:#?}");
    scene.scratch.set("MULTITAP_AGENT", "claude").set("MULTITAP_CODEX_BIN", old.program());
    let run = scene.run(&["doctor"]).exits(0);
    assert!(run.stdout.contains("tested with 0.166.0"), "{run:#?}");

    let dumb = Fake::exits(1, "no").unwrap();
    let run = Scene::with(&dumb).run(&["doctor", "--json"]).exits(0);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let claude = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "claude").unwrap();
    assert_eq!(claude["status"], "warning");

    let scene = Scene::bare();
    std::fs::create_dir_all(scene.scratch.home().join(".config/multitap")).unwrap();
    std::fs::write(scene.scratch.home().join(".config/multitap/settings.json"), "{").unwrap();
    let run = scene.run(&["doctor"]).exits(1);
    assert!(run.stdout.contains("settings.json"), "{run:#?}");
}

#[test]
fn doctor_always_names_the_tested_version() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let scene = Scene::with(&fake);
    let text = scene.run(&["doctor"]).exits(0).stdout;
    for version in ["2.1.325", "0.166.0", "0.61.0"] {
        assert!(text.contains(&format!("tested with {version}")), "{text}");
    }
    let report: Value = serde_json::from_str(&scene.run(&["doctor", "--json"]).exits(0).stdout).unwrap();
    let tested: Vec<_> = report["agents"].as_array().unwrap().iter().map(|agent| &agent["tested"]).collect();
    assert_eq!(tested, ["2.1.325", "0.166.0", "0.61.0"]);
}

#[test]
fn doctor_remarks_on_a_version_that_was_not_tested() {
    for (version, status, remark) in [
        ("2.1.325 (Claude Code)", "ok", "; tested with 2.1.325"),
        ("9.0.0 (Claude Code)", "ok", "; tested with 2.1.325, not with this version"),
        ("1.0.3 (Claude Code)", "warning", "; tested with 2.1.325, not with this version"),
    ] {
        let fake = Fake::claude().says("hi").version(version).build().unwrap();
        let text = Scene::with(&fake).run(&["doctor"]).exits(0).stdout;
        let line = text.lines().find(|line| line.contains(" claude ")).unwrap();
        assert!(line.starts_with(status) && line.ends_with(remark), "{line}");
    }
}

#[test]
fn doctor_looks_for_the_command_of_an_acp_agent() {
    let mut scene = Scene::bare();
    scene.scratch.set("MULTITAP_AGENT", "acp:no-such-agent --acp");
    let run = scene.run(&["doctor"]).exits(1);
    assert!(run.stdout.contains("problem  acp") && run.stdout.contains("'no-such-agent'"), "{run:#?}");
    scene.scratch.set("MULTITAP_AGENT", "acp:sh -c true");
    let run = scene.run(&["doctor"]).exits(0);
    assert!(run.stdout.contains("/sh for acp:sh -c true"), "{run:#?}");
}

#[test]
fn doctor_tries_the_sandbox_of_codex() {
    for (code, mark, words) in [(0, "ok       sandbox", "can set up"), (1, "warning  sandbox", "bwrap: no namespaces")]
    {
        let text = format!(
            "case $1 in --version) echo codex-cli 0.166.0 ;; sandbox) echo bwrap: no namespaces >&2; exit {code} ;; esac\n"
        );
        let fake = Fake::shell("codex", &text).unwrap();
        let mut scene = Scene::bare();
        scene.scratch.set("MULTITAP_CODEX_BIN", fake.program());
        let run = scene.run(&["doctor"]).exits(0);
        assert!(run.stdout.contains(mark) && run.stdout.contains(words), "{run:#?}");
    }
}

#[test]
fn a_version_that_never_comes_holds_nothing_up() {
    let fake = Fake::hangs().unwrap();
    let scene = Scene::with(&fake);
    let run = scene.run(&["agents"]).exits(0);
    assert!(run.stdout.contains("version unknown"), "{run:#?}");
    scene.nothing_left();
}
