//! The arguments that each setting becomes.

use std::collections::BTreeMap;
use std::path::Path;

use multitap_event::{
    AgentKind, ApprovalMode, LaunchError, McpReach, McpServer, Mode, PermissionPath, Resume, SandboxMode,
    SessionConfig, Unsupported,
};
use serde_json::{Value, json};

use super::{ALWAYS, arguments, plan};
use crate::codec::NoFiles;

fn config() -> SessionConfig {
    SessionConfig::new(AgentKind::Claude)
}

/// The arguments after those that are always there, with a given id.
fn given(config: &SessionConfig) -> Result<String, Unsupported> {
    let args = arguments(config, super::native_id(config).map(|_| "NEW-ID"))?;
    assert_eq!(args[..ALWAYS.len()], ALWAYS.map(str::to_owned));
    Ok(args[ALWAYS.len()..].join(" "))
}

#[test]
fn each_setting_becomes_its_option() {
    let session = |at: Option<&str>| Resume::Session { native_id: "OLD-ID".into(), at: at.map(str::to_owned) };
    let mode = |mode| SessionConfig { mode: Some(mode), ..config() };
    let unified = |one| mode(Mode::Unified(one));
    let sandbox = |sandbox| SessionConfig { sandbox: Some(sandbox), ..config() };
    let cases = [
        ("nothing chosen", config()),
        ("permission by our tool", SessionConfig { permission_path: PermissionPath::Mcp, ..config() }),
        ("ask", unified(ApprovalMode::Ask)),
        ("ask dangerous", unified(ApprovalMode::AskDangerous)),
        ("auto edit", unified(ApprovalMode::AutoEdit)),
        ("auto all", unified(ApprovalMode::AutoAll)),
        ("plan", unified(ApprovalMode::Plan)),
        ("don't ask", unified(ApprovalMode::DontAsk)),
        ("a mode of its own", mode(Mode::Native("auto".into()))),
        ("model", SessionConfig { model: Some("opus".into()), ..config() }),
        ("max turns", SessionConfig { max_turns: Some(3), ..config() }),
        ("allowed tools", SessionConfig { allowed_tools: vec!["Bash(git log:*)".into(), "Read".into()], ..config() }),
        ("blocked tools", SessionConfig { blocked_tools: vec!["Bash".into(), "WebFetch".into()], ..config() }),
        ("further folders", SessionConfig { add_dirs: vec!["/a".into(), "/b c".into()], ..config() }),
        ("system prompt", SessionConfig { system_prompt: Some("Be brief.".into()), ..config() }),
        ("more system prompt", SessionConfig { append_system_prompt: Some("Be kind.".into()), ..config() }),
        ("output schema", SessionConfig { output_schema: Some(json!({ "type": "object" })), ..config() }),
        ("no sandbox", sandbox(SandboxMode::None)),
        ("full access", sandbox(SandboxMode::FullAccess)),
        ("read only", sandbox(SandboxMode::ReadOnly)),
        ("workspace write", sandbox(SandboxMode::WorkspaceWrite)),
        ("resume", SessionConfig { resume: session(None), ..config() }),
        ("resume at a message", SessionConfig { resume: session(Some("MESSAGE")), ..config() }),
        ("fork", SessionConfig { resume: session(None), fork: true, ..config() }),
        ("fork at a message", SessionConfig { resume: session(Some("MESSAGE")), fork: true, ..config() }),
        ("continue", SessionConfig { resume: Resume::Latest, ..config() }),
        ("continue as a fork", SessionConfig { resume: Resume::Latest, fork: true, ..config() }),
        ("fork of nothing", SessionConfig { fork: true, ..config() }),
        ("own arguments come last", SessionConfig { agent_args: vec!["--effort".into(), "low".into()], ..config() }),
    ];
    let lines = cases.map(|(name, config)| match given(&config) {
        Ok(args) => format!("{name}: {args}"),
        Err(unsupported) => format!("{name}: error: {unsupported}"),
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_new_conversation_has_an_id_at_once() {
    let plan = plan(&config(), Box::new(NoFiles)).unwrap();
    let [.., flag, id] = plan.args.as_slice() else { panic!("{:?}", plan.args) };
    assert_eq!(flag, "--session-id");
    assert_eq!(uuid::Uuid::parse_str(id).unwrap().get_version_num(), 4);
}

#[test]
fn an_id_that_the_user_chose_stands() {
    let agent_args = vec!["--session-id=11111111-2222-4333-8444-555555555555".to_owned()];
    let plan = plan(&SessionConfig { agent_args, ..config() }, Box::new(NoFiles)).unwrap();
    assert_eq!(plan.args.iter().filter(|arg| arg.starts_with("--session-id")).count(), 1);
}

#[test]
fn what_is_set_for_a_server_becomes_rules_and_a_time_limit() {
    let reach =
        McpReach::Stdio { command: "serve".into(), args: vec!["-v".into()], env: [].into(), cwd: Some("/w".into()) };
    let server = McpServer {
        timeout: Some(std::time::Duration::from_millis(1500)),
        trust: true,
        exclude_tools: vec!["get.all".into()],
        ..McpServer::from(reach)
    };
    let config = SessionConfig { mcp_servers: BTreeMap::from([("my server".to_owned(), server)]), ..config() };
    let plan = plan(&config, Box::new(NoFiles)).unwrap();
    let line = plan.args.join(" ");
    assert!(line.contains("--allowedTools mcp__my_server --disallowedTools mcp__my_server__get_all"), "{line}");
    let path = plan.args.last().unwrap();
    let written: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let args = ["-c", r#"cd -- "$0" && exec "$@""#, "/w", "serve", "-v"];
    let expected = json!({ "type": "stdio", "command": "/bin/sh", "args": args, "env": {}, "timeout": 1500 });
    assert_eq!(written["mcpServers"]["my server"], expected);
}

#[test]
fn servers_go_into_a_file_that_only_the_user_reads() {
    let stdio = McpReach::Stdio {
        command: "server".into(),
        args: vec!["--token=secret".into()],
        env: BTreeMap::from([("KEY".into(), "secret".into())]),
        cwd: None,
    };
    let http = McpReach::Http {
        url: "https://example.com/mcp".into(),
        headers: BTreeMap::from([("Authorization".into(), "Bearer secret".into())]),
    };
    let mcp_servers = BTreeMap::from([("one".to_owned(), stdio.into()), ("two".to_owned(), http.into())]);
    let config = SessionConfig { mcp_servers, agent_args: vec!["--last".into()], ..config() };
    let plan = plan(&config, Box::new(NoFiles)).unwrap();
    assert!(!plan.args.iter().any(|arg| arg.contains("secret")), "{:?}", plan.args);
    let [.., flag, path, last] = plan.args.as_slice() else { panic!("{:?}", plan.args) };
    assert_eq!((flag.as_str(), last.as_str()), ("--mcp-config", "--last"));
    let written: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(
        written,
        json!({ "mcpServers": {
            "one": { "type": "stdio", "command": "server", "args": ["--token=secret"], "env": { "KEY": "secret" } },
            "two": { "type": "http", "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer secret" } },
        } })
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let path = Path::new(path).to_owned();
    drop(plan);
    assert!(!path.exists());
}

#[test]
fn what_claude_cannot_do_is_named() {
    let refused = plan(&SessionConfig { fork: true, ..config() }, Box::new(NoFiles));
    let Err(LaunchError::Unsupported(unsupported)) = refused.map(|_| ()) else {
        panic!("a fork of nothing was planned")
    };
    assert!(unsupported.to_string().starts_with("claude cannot honour fork"));
}

#[cfg(unix)]
#[test]
fn a_folder_whose_name_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff")).to_owned();
    let refused = arguments(&SessionConfig { add_dirs: vec![folder], ..config() }, None).unwrap_err();
    assert!(refused.to_string().starts_with("claude cannot honour added directories"), "{refused}");
}
