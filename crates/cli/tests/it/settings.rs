//! Settings files, the environment, and who may say what.

use std::fs;
use std::path::Path;

use multitap_testkit::fake::Fake;

use crate::scene::{Live, Scene, asker};

fn user_settings(scene: &Scene, text: &str) {
    let folder = scene.scratch.home().join(".config/multitap");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), text).unwrap();
}

#[test]
fn the_users_file_chooses_the_program_its_arguments_and_environment() {
    let fake = Fake::claude().says("from settings").build().unwrap();
    let mut scene = Scene::bare();
    scene.scratch.set("TOOLS", fake.path());
    user_settings(
        &scene,
        r#"{
            // comments and trailing commas are fine
            "agent": "claude",
            "agents": { "claude": { "command": "${TOOLS}/claude", "args": ["--betas", "x"], "env": { "A": "b" }, }, },
        }"#,
    );
    let run = scene.run(&["-p", "hello"]).exits(0);
    assert_eq!(run.stdout, "from settings\n");
    assert!(fake.heard().unwrap()[0].starts_with("--betas x "), "{:?}", fake.heard());
}

#[test]
fn multitap_home_is_the_folder_for_settings() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let mut scene = Scene::bare();
    let home = scene.scratch.root().join("mine");
    fs::create_dir(&home).unwrap();
    let text = format!(r#"{{"agents": {{"claude": {{"command": "{}"}}}}}}"#, fake.program().display());
    fs::write(home.join("settings.json"), text).unwrap();
    scene.scratch.set("MULTITAP_HOME", home);
    scene.run(&["-p", "hello"]).exits(0);
}

/// R002-88: the user's MCP servers are there for whichever agent runs; those of a project are not.
#[test]
fn the_users_mcp_servers_are_used_and_the_projects_are_not() {
    let (mcp, evil) = (Fake::mcp().unwrap(), Fake::shell("evil", "echo ran >> \"$0.ran\"; exit 1").unwrap());
    let mut scene = Scene::bare();
    scene.scratch.set("TOOLS", mcp.path());
    user_settings(
        &scene,
        r#"{"mcpServers": {"tiny": {"command": "$TOOLS/mcp", "excludeTools": ["fail"], "trsut": 1}}}"#,
    );
    let project = format!(r#"{{"mcpServers": {{"evil": {{"command": "{}"}}}}}}"#, evil.program().display());
    scene.scratch.write(".multitap/settings.json", &project).unwrap();
    let prompt = r#"call tiny echo {"message":"hi"} then call tiny fail {}"#;
    let run = scene
        .run(&["-p", prompt, "--agent", "builtin", "--model", "rehearsal", "--approval-mode", "auto-all"])
        .exits(0);
    assert!(run.stdout.contains("echo: hi") && run.stdout.contains("there is no tool 'mcp__tiny__fail'"), "{run:#?}");
    assert!(run.stderr.contains("'mcpServers.tiny.trsut' is not known"), "{run:#?}");
    assert!(run.stderr.contains("'mcpServers' is ignored here"), "{run:#?}");
    assert!(!evil.path().join("evil.ran").exists(), "a project started a program");
}

/// What an agent has no word for is an error by name, or a line on stderr where it only asks more.
#[test]
fn what_an_agent_cannot_be_told_of_a_server_is_said() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let scene = Scene::with(&fake);
    user_settings(&scene, r#"{"mcpServers": {"tiny": {"command": "true", "trust": true}}}"#);
    scene.run(&["-p", "hello"]).exits(0);
    let heard = fake.heard().unwrap()[0].clone();
    assert!(heard.contains("--allowedTools mcp__tiny") && heard.contains("--mcp-config "), "{heard}");
    user_settings(&scene, r#"{"mcpServers": {"tiny": {"command": "true", "includeTools": ["a"]}}}"#);
    let run = scene.run(&["-p", "hello"]).exits(2);
    assert!(run.stderr.contains("claude cannot honour mcpServers.tiny.includeTools"), "{run:#?}");
    user_settings(&scene, r#"{"mcpServers": {"tiny": {"command": "true", "timeout": 5, "trust": true}}}"#);
    let run = scene.run(&["-p", "hello", "--agent", "acp:/bin/false"]);
    assert!(run.stderr.contains("mcpServers.tiny.trust: acp does not support it and asks"), "{run:#?}");
    assert!(run.stderr.contains("mcpServers.tiny.timeout: acp does not support it and waits"), "{run:#?}");
}

#[test]
fn a_project_chooses_no_program() {
    let good = Fake::claude().says("good").build().unwrap();
    let evil = Fake::claude().says("evil").build().unwrap();
    let scene = Scene::with(&good);
    let text = format!(
        r#"{{"agent": "claude", "agents": {{"claude": {{"command": "{}", "args": ["--evil"]}}}}}}"#,
        evil.program().display()
    );
    scene.scratch.write(".multitap/settings.json", &text).unwrap();
    let run = scene.run(&["-p", "hello"]).exits(0);
    assert_eq!(run.stdout, "good\n");
    assert!(run.stderr.contains("'agents' is ignored here"), "{run:#?}");
    assert!(evil.heard().unwrap().is_empty());
    assert!(!good.heard().unwrap()[0].contains("--evil"));

    scene.scratch.write(".multitap/settings.json", r#"{"agent": "acp:/tmp/evil"}"#).unwrap();
    scene.run(&["-p", "hello"]).exits(2);
}

/// A session that is taken up from elsewhere is judged by its own folder.
#[test]
fn the_folder_of_the_session_is_the_one_that_is_trusted_or_not() {
    let scene = Scene::bare();
    let (mine, theirs) = (scene.scratch.path("mine"), scene.scratch.path("theirs"));
    scene.scratch.write("mine/.multitap/settings.json", r#"{"approvalMode": "auto-all"}"#).unwrap();
    scene.scratch.write("theirs/.multitap/settings.json", r#"{"tools": {"exclude": ["write_file"]}}"#).unwrap();
    user_settings(&scene, &format!(r#"{{"trustedFolders": ["{}"]}}"#, mine.display()));
    let run_in = |folder: &Path, args: &[&str]| {
        let given = ["--agent", "builtin", "--model", "rehearsal", "--output-format", "stream-json"];
        Live::new({
            let mut command = scene.command(&[args, &given[..]].concat());
            command.current_dir(folder);
            command
        })
        .end()
    };
    let first = run_in(&theirs, &["-p", "think about it"]).exits(0);
    let id = first.events()[0]["sessionId"].as_str().unwrap().to_owned();
    run_in(&mine, &["-r", &id, "-p", "run: touch made"]).exits(4);
    let denied = run_in(&mine, &["-r", &id, "-p", "write x to made", "--approval-mode", "auto-all"]);
    assert!(denied.stdout.contains("(rule write_file"), "{}", denied.stdout);
    assert!(!theirs.join("made").exists() && !mine.join("made").exists());
    run_in(&mine, &["-p", "run: touch made"]).exits(0);
    assert!(mine.join("made").exists(), "a folder that is trusted may allow it");
    let status = ["-p", "run: git status", "--approval-mode", "ask-dangerous"];
    let trusted = run_in(&mine, &status);
    assert!(!trusted.stdout.contains("permissionAsked"), "git is believed there: {}", trusted.stdout);
    run_in(&mine, &[&["-r", &id], &status[..]].concat()).exits(4);
}

#[test]
fn a_file_that_is_wrong_stops_with_its_path_and_key() {
    let fake = asker();
    let scene = Scene::with(&fake);
    for (text, wanted) in [
        (r#"{"agents": {"claude": {"args": "x"}}}"#, "'agents.claude.args' must be a list of strings"),
        ("{\n  \"agent\": nope\n}", "line 2"),
        (r#"{"agent": "cloud"}"#, "unknown agent 'cloud'"),
    ] {
        user_settings(&scene, text);
        let run = scene.run(&["-p", "hello"]).exits(2);
        assert!(run.stderr.contains(wanted) && run.stderr.contains("settings.json"), "{run:#?}");
    }
}

#[test]
fn an_unknown_key_is_only_a_warning() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let scene = Scene::with(&fake);
    user_settings(&scene, r#"{"agnet": "claude"}"#);
    let run = scene.run(&["-p", "hello"]).exits(0);
    assert!(run.stderr.contains("'agnet'"), "{run:#?}");
    assert_eq!(run.stdout, "hi\n");
}

#[test]
fn keep_raw_can_be_set_and_the_flag_and_variable_do_the_same() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let args = ["-p", "hello", "--output-format", "stream-json"];
    let has_raw =
        |scene: &Scene, args: &[&str]| scene.run(args).exits(0).events().iter().any(|event| event.get("raw").is_some());
    let mut scene = Scene::with(&fake);
    assert!(!has_raw(&scene, &args));
    assert!(has_raw(&scene, &[&args[..], &["--raw"]].concat()));
    scene.scratch.write(".multitap/settings.json", r#"{"keepRaw": true}"#).unwrap();
    assert!(has_raw(&scene, &args));
    scene.scratch.set("MULTITAP_KEEP_RAW", "0");
    assert!(!has_raw(&scene, &args));
}

#[test]
fn our_token_stays_with_us_and_chosen_variables_get_through() {
    let fake = Fake::shell("claude", "env > \"$(dirname \"$0\")/env\"\nexit 1\n").unwrap();
    let mut scene = Scene::with(&fake);
    scene.scratch.set("MULTITAP_TOKEN", "secret").set("ANTHROPIC_API_KEY", "key");
    scene.run(&["-p", "hello", "--env", "MINE=1", "--env", "EQ=a=b"]).exits(3);
    let env = fs::read_to_string(fake.path().join("env")).unwrap();
    assert!(!env.contains("secret"), "{env}");
    for wanted in ["ANTHROPIC_API_KEY=key\n", "MINE=1\n", "EQ=a=b\n"] {
        assert!(env.contains(wanted), "no {wanted} in {env}");
    }
}

#[test]
fn the_environment_chooses_the_agent_and_the_option_wins() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let mut scene = Scene::with(&fake);
    scene.scratch.set("MULTITAP_AGENT", "codex");
    scene.run(&["-p", "hello"]).exits(3);
    scene.run(&["-p", "hello", "--agent", "claude"]).exits(0);
}

#[test]
fn an_agent_is_driven_the_way_that_is_set() {
    let say = r#"{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"one shot"}}
{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}"#;
    let script = format!("echo \"$@\" >> \"$(dirname \"$0\")/heard\"\ncat <<'END'\n{say}\nEND\n");
    let fake = Fake::shell("codex", &script).unwrap();
    let mut scene = Scene::bare();
    scene.scratch.set("MULTITAP_CODEX_BIN", fake.program());
    user_settings(&scene, r#"{"agent": "codex", "agents": {"codex": {"transport": "oneShot"}}}"#);
    let run = scene.run(&["-p", "hello"]).exits(0);
    assert_eq!(run.stdout, "one shot\n");
    // What is found out beforehand is no turn.
    assert!(fake.heard().unwrap().last().unwrap().starts_with("exec "), "{:?}", fake.heard());
}

#[test]
fn an_acp_command_is_run_with_what_is_set_beside_it() {
    let script = r#"printf '%s\n' "$*" "$MINE" >> "$(dirname "$0")/heard"
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{}}}\n' "$id" ;;
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\n' "$id" ;;
    *'"session/prompt"'*)
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"by acp"}}}}\n'
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
  esac
done
"#;
    let fake = Fake::shell("some-agent", script).unwrap();
    let scene = Scene::bare();
    let run = scene.run(&["-p", "hello", "--agent", "acp"]).exits(2);
    assert!(run.stderr.contains("agents.acp.command"), "{}", run.stderr);
    user_settings(&scene, r#"{"agents": {"acp": {"args": ["--set"], "env": {"MINE": "set"}}}}"#);
    let agent = format!("acp:{} serve 'a b'", fake.program().display());
    let run = scene.run(&["-p", "hello", "--agent", &agent, "--agent-arg=--chosen"]).exits(0);
    assert_eq!(run.stdout, "by acp\n");
    assert_eq!(fake.heard().unwrap(), ["serve a b --set --chosen", "set"]);

    // A command that is set goes by the name `acp`, and its arguments with it and no other.
    let command = format!("{} serve", fake.program().display());
    let own = serde_json::json!({"command": command, "args": ["--set"], "env": {"MINE": "set"}});
    user_settings(&scene, &serde_json::json!({"agent": "acp", "agents": {"acp": own}}).to_string());
    for options in [&["--agent", "acp"][..], &[], &["--agent", &agent]] {
        scene.run(&[&["-p", "hello"], options].concat()).exits(0);
    }
    let heard = fake.heard().unwrap();
    assert_eq!(heard[2..], ["serve --set", "set", "serve --set", "set", "serve a b", "set"]);
}

/// A cloned folder brings its own file: nothing of it reaches the terminal as more than text.
#[test]
fn what_a_projects_file_says_is_shown_and_not_obeyed() {
    let fake = Fake::claude().says("hi").build().unwrap();
    let scene = Scene::with(&fake);
    let key = r"\u001b]0;owned\u0007\u202e\u200b\nmultitap: all is well";
    let shown = "␛]0;owned␇\\u202e\\u200b␊multitap: all is well";
    let harmless = |text: &str| {
        let is_obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!text.contains(is_obeyed), "{text:?}");
    };
    // An unknown key is noted; a value of the wrong kind is an error.
    scene.scratch.write(".multitap/settings.json", &format!(r#"{{"{key}": 1}}"#)).unwrap();
    for args in [&["-p", "hello"][..], &["doctor"], &["agents"], &["sessions"]] {
        let run = scene.run(args);
        let all = format!("{}{}", run.stdout, run.stderr);
        harmless(&all);
        assert!(all.contains(shown), "{args:?}: {all}");
    }
    scene.scratch.write(".multitap/settings.json", &format!(r#"{{"approvalMode": "{key}"}}"#)).unwrap();
    for args in [&["-p", "hello"][..], &["doctor"], &["agents"]] {
        let run = scene.run(args);
        harmless(&format!("{}{}", run.stdout, run.stderr));
    }
    // JSON says the same value, and has nothing to obey either.
    let run = scene.run(&["doctor", "--json"]);
    harmless(&run.stdout);
    serde_json::from_str::<serde_json::Value>(&run.stdout).unwrap();
}
