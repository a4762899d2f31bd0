mod fuzz;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn take(text: &str, source: Source) -> Result<(Settings, Vec<String>), String> {
    let mut settings = Settings::default();
    let mut notes = Vec::new();
    settings.take(text, source, &mut notes)?;
    Ok((settings, notes))
}

#[cfg(unix)]
#[test]
fn a_file_that_never_ends_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    let error = Settings::default().read(&file, Source::Project { trusted: false }).unwrap_err();
    assert!(error.to_string().contains("is not a plain file"), "{error}");
}

#[test]
fn the_users_file_says_everything() {
    let text = r#"{
        // mine
        "agent": "claude", "keepRaw": true,
        "agents": { "claude": { "command": "/opt/claude", "args": ["--x"], "env": {"A": "b"}, "permission": "mcp", }, },
    }"#;
    let (settings, notes) = take(text, Source::User).unwrap();
    assert_eq!(settings.agent, Some(AgentChoice::Kind(AgentKind::Claude)));
    assert!(settings.keep_raw);
    let claude = settings.of(AgentType::Claude);
    assert_eq!(claude.command.as_deref(), Some("/opt/claude"));
    assert_eq!(claude.permission, PermissionPath::Mcp);
    assert_eq!(claude.env["A"], "b");
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn an_agent_may_be_driven_in_another_way() {
    let text = r#"{"agents": {"codex": {"transport": "oneShot"}, "gemini": {"transport": "default"}}}"#;
    let (settings, notes) = take(text, Source::User).unwrap();
    assert_eq!(settings.of(AgentType::Codex).transport, Transport::OneShot);
    assert_eq!(settings.of(AgentType::Gemini).transport, Transport::Default);
    assert!(notes.is_empty(), "{notes:?}");
    let error = take(r#"{"agents": {"codex": {"transport": "exec"}}}"#, Source::User).unwrap_err();
    assert!(error.contains(r#"'agents.codex.transport' must be "default" or "oneShot", not "exec""#), "{error}");
}

#[test]
fn the_a2a_door_is_the_users_to_set() {
    let (settings, notes) = take(r#"{"a2a": {"extensionRequired": true, "x": 1}}"#, Source::User).unwrap();
    assert!(settings.a2a.extension_required);
    assert_eq!(notes, ["'a2a.x' is not known to this version and is ignored"]);
    let text = r#"{"a2a": {"extensionRequired": true}}"#;
    let (settings, notes) = take(text, Source::Project { trusted: true }).unwrap();
    assert!(!settings.a2a.extension_required && notes[0].starts_with("'a2a' is ignored here"), "{notes:?}");
}

#[test]
fn remote_agents_of_a_trusted_project_are_added_to_the_users() {
    // R004-2, R004-5, R004-7
    let mut settings = Settings::default();
    let mut notes = Vec::new();
    settings.take(r#"{"a2aServers": [{"url": "http://a.example"}]}"#, Source::User, &mut notes).unwrap();
    let project = r#"{"a2aServers": [{"url": "http://b.example", "name": "b"}]}"#;
    settings.take(project, Source::Project { trusted: true }, &mut notes).unwrap();
    let urls: Vec<_> = settings.a2a_servers.iter().map(|server| server.url.as_str()).collect();
    assert_eq!((urls, notes.len()), (vec!["http://a.example", "http://b.example"], 0));
    settings.take(project, Source::Project { trusted: false }, &mut notes).unwrap();
    assert_eq!(settings.a2a_servers.len(), 2);
    assert!(notes[0].starts_with("'a2aServers' is ignored here: this folder is not among"), "{notes:?}");
    assert_eq!(settings.permissions.withheld, ["a2aServers"], "what is withheld is asked about on a terminal");
    let keys = r#"{"a2aServers": [{"url": "http://c.example/$HOME"}, {"url": "http://d", "tokenEnv": "HOME"}]}"#;
    settings.take(keys, Source::Project { trusted: true }, &mut notes).unwrap();
    assert_eq!(settings.a2a_servers.len(), 2, "a project names no variables");
    assert_eq!(notes[1], "'a2aServers' is ignored here: a project may not use tokenEnv");
    let error = take(r#"{"a2aServers": [{"url": 1}]}"#, Source::User).unwrap_err();
    assert_eq!(error, "'a2aServers[0].url' must be a string, not that number");
    let error =
        take(r#"{"a2aServers": [{"url": "http://a", "tokenEnv": "MULTITAP_UNSET"}]}"#, Source::User).unwrap_err();
    assert_eq!(error, "'a2aServers': http://a: the variable MULTITAP_UNSET (tokenEnv) is not set");
}

#[test]
fn a_project_chooses_no_programs() {
    let text = r#"{"agent": "claude", "keepRaw": true, "agents": {"claude": {"command": "/tmp/evil"}},
        "mcpServers": {"evil": {"command": "/tmp/evil"}}}"#;
    let (settings, notes) = take(text, Source::Project { trusted: false }).unwrap();
    assert!(settings.mcp_servers.is_empty() && notes[1].starts_with("'mcpServers' is ignored here"), "{notes:?}");
    assert_eq!(settings.agent, Some(AgentChoice::Kind(AgentKind::Claude)));
    assert_eq!(settings.of(AgentType::Claude).command, None);
    assert!(notes[0].starts_with("'agents' is ignored here"), "{notes:?}");
    take(r#"{"agent": "acp:/tmp/evil"}"#, Source::Project { trusted: false }).unwrap_err();
    take(r#"{"agent": "acp:/usr/bin/goose acp"}"#, Source::User).unwrap();
    // The command that goes with this one is the user's.
    let (settings, _) = take(r#"{"agent": "acp"}"#, Source::Project { trusted: false }).unwrap();
    assert_eq!(settings.agent, Some(AgentChoice::SetAcp));
}

#[test]
fn unknown_keys_are_named_and_wrong_types_stop() {
    let (_, notes) = take(r#"{"agnet": 1, "agents": {"claude": {"comand": "x"}}}"#, Source::User).unwrap();
    assert!(notes[0].contains("'agnet'") && notes[1].contains("'agents.claude.comand'"), "{notes:?}");
    for (text, path) in [
        (r#"{"agents": {"claude": {"args": ["a", 1]}}}"#, "'agents.claude.args[1]' must be a string, not a number"),
        (r#"{"agents": {"claude": {"env": {"A": null}}}}"#, "'agents.claude.env.A' must be a string, not null"),
        (r#"{"keepRaw": "yes"}"#, "'keepRaw' must be true or false, not a string"),
        (r#"[]"#, "'the file' must be an object, not a list"),
        (r#"{"agent": "cloud"}"#, "unknown agent 'cloud'"),
        (
            r#"{"agents": {"claude": {"permission": "no"}}}"#,
            r#"'agents.claude.permission' must be "stream" or "mcp", not "no""#,
        ),
        (r#"{"agents": {"gemini": {"checkpointing": 1}}}"#, "'agents.gemini.checkpointing' must be true or false"),
        ("{", "is not JSON"),
    ] {
        let error = take(text, Source::User).expect_err(text);
        assert!(error.contains(path), "{error}");
    }
    take("  ", Source::User).unwrap();
}

#[test]
fn very_many_unknown_keys_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    let keys: Vec<String> = (0..50_000).map(|number| format!("\"k{number}\":1")).collect();
    std::fs::write(&file, format!("{{{}}}", keys.join(","))).unwrap();
    let mut settings = Settings::default();
    settings.read(&file, Source::User).unwrap();
    assert_eq!(settings.warnings.len(), 21);
    assert!(settings.warnings[19].contains("'k19'"), "{:?}", settings.warnings);
    assert_eq!(settings.warnings[20], format!("{}: 49980 more warnings", file.display()));
}

#[test]
fn comments_and_trailing_commas_are_no_part_of_the_value() {
    for (text, expected) in [
        ("{\n// hello\n\"a\": 1, /* é, \" */ \"b\": [1, 2, /* x */ ], // end\n}", json!({"a": 1, "b": [1, 2]})),
        ("/* a */ {} // b", json!({})),
        ("\u{feff}{\"a\":[1,],}", json!({"a": [1]})),
        (
            r#"{"url": "http://x/*y*/", "s": "a\",]//", "t": ",}"}"#,
            json!({"url": "http://x/*y*/", "s": "a\",]//", "t": ",}"}),
        ),
    ] {
        assert_eq!(parsed(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_not_json_is_named_with_its_place() {
    let error = parsed("{\n  // one\n  \"a\": nonsense\n}").unwrap_err();
    assert!(error.contains("line 3"), "{error}");
    for text in [
        "/*",
        "\"",
        "\"\\",
        "{\"a\": \"b",
        ",",
        "[,]",
        "/",
        "[1,,]",
        "{a: 1}",
        "[1 2]",
        "['a']",
        "[0x1, +1, .5]",
        "[NaN]",
    ] {
        parsed(text).expect_err(text);
    }
}

proptest! {
    /// What is JSON already means the same.
    #[test]
    fn json_stays_json(words in prop::collection::vec(r#"[a-z/*,\]}"\\]{0,8}"#, 0..6)) {
        let value = json!({ "words": words });
        prop_assert_eq!(parsed(&value.to_string()).unwrap(), value);
    }
}

/// At a size at which a cost that grows with its square takes minutes.
#[test]
fn a_file_is_read_in_linear_time() {
    let size = usize::try_from(LARGEST).unwrap();
    for part in ["/*", "/**/", "//", "\"", "\"a\"", ",", "[", "{", "\\", "[],", "/ "] {
        let _: Option<String> = take(&part.repeat(size / part.len()), Source::User).err();
    }
    let keys: String = (0..size / 16).map(|number| format!("\"k{number}\": 1,")).collect();
    let (_, notes) = take(&format!("{{{keys}}}"), Source::Project { trusted: false }).unwrap();
    assert_eq!(notes.len(), size / 16);
}
