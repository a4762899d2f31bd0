//! Every setting with every agent: taken, or refused by name before anything is started (R002-92, R002-111).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use multitap_adapter::{LaunchSpec, launch};
use multitap_event::{
    AgentKind, AgentProgram, AgentType, ApprovalMode, LaunchError, McpReach, McpServer, Mode, PermissionPath, Resume,
    SandboxMode, SessionConfig, Transport,
};
use multitap_process::Keeper;
use multitap_testkit::Scratch;
use tokio_util::task::TaskTracker;

type Change = Box<dyn Fn(&mut SessionConfig)>;

/// A setting by its name.
fn setting(name: &str, change: impl Fn(&mut SessionConfig) + 'static) -> (String, Change) {
    (name.to_owned(), Box::new(change))
}

/// Everything that a session can be started with and an agent can refuse.
fn settings() -> Vec<(String, Change)> {
    let session = |at: Option<&str>| Resume::Session { native_id: "x".to_owned(), at: at.map(str::to_owned) };
    let server = McpServer::from(McpReach::program("x", Vec::new()));
    let with = |change: &dyn Fn(&mut McpServer)| {
        let mut server = server.clone();
        change(&mut server);
        move |config: &mut SessionConfig| config.mcp_servers = [("x".to_owned(), server.clone())].into()
    };
    let web = McpServer::from(McpReach::Http { url: "http://x/".to_owned(), headers: [].into() });
    let no_text = || PathBuf::from(OsStr::from_bytes(b"/a\xff"));
    let modes = ApprovalMode::ALL.into_iter().map(|mode| {
        let name = format!("approval mode {}", mode.option_word());
        setting(&name, move |config| config.mode = Some(Mode::Unified(mode)))
    });
    let sandboxes = [SandboxMode::None, SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::FullAccess];
    let sandboxes = sandboxes.into_iter().map(|sandbox| {
        let name = format!("sandbox {}", sandbox.option_word());
        setting(&name, move |config| config.sandbox = Some(sandbox))
    });
    let rest = [
        setting("model", |config| config.model = Some("m".to_owned())),
        setting("added directories", |config| config.add_dirs = vec!["/tmp".into()]),
        setting("added directories that are no text", move |config| config.add_dirs = vec![no_text()]),
        setting("allowed tools", |config| config.allowed_tools = vec!["x".to_owned()]),
        setting("blocked tools", |config| config.blocked_tools = vec!["x".to_owned()]),
        setting("blocked tools by command", |config| config.blocked_tools = vec!["x(rm)".to_owned()]),
        setting("max turns", |config| config.max_turns = Some(3)),
        setting("system prompt", |config| config.system_prompt = Some("x".to_owned())),
        setting("append system prompt", |config| config.append_system_prompt = Some("x".to_owned())),
        setting("output schema", |config| config.output_schema = Some(serde_json::json!({}))),
        setting("MCP server", with(&|_| {})),
        setting("MCP server that is trusted", with(&|server| server.trust = true)),
        setting("MCP server with a timeout", with(&|server| server.timeout = Some(Duration::from_secs(1)))),
        setting("tools of an MCP server", with(&|server| server.include_tools = Some(vec!["a".to_owned()]))),
        setting("tools not of an MCP server", with(&|server| server.exclude_tools = vec!["a".to_owned()])),
        setting("MCP server over HTTP", move |config| config.mcp_servers = [("x".to_owned(), web.clone())].into()),
        setting("permission by MCP tool", |config| config.permission_path = PermissionPath::Mcp),
        setting("checkpointing", |config| config.checkpointing = true),
        setting("resume", move |config| config.resume = session(None)),
        setting("resume at a message", move |config| config.resume = session(Some("m"))),
        setting("continue", |config| config.resume = Resume::Latest),
        setting("fork of nothing", |config| config.fork = true),
        setting("fork", move |config| (config.resume, config.fork) = (session(None), true)),
        setting("fork at a message", move |config| (config.resume, config.fork) = (session(Some("m")), true)),
    ];
    modes.chain(sandboxes).chain(rest).collect()
}

/// What becomes of a session with that change, where the agent's program does nothing at all.
async fn outcome(scratch: &Scratch, agent: &AgentKind, transport: Transport, change: &Change) -> String {
    let mut config = SessionConfig::new(agent.clone());
    config.program = Some(AgentProgram { command: "/bin/true".into(), ..AgentProgram::default() });
    config.working_directory = Some(scratch.workspace());
    config.environment = [("HOME".to_owned(), scratch.home().display().to_string())].into();
    config.transport = transport;
    change(&mut config);
    let spec = LaunchSpec { config, keeper: Keeper::Group, hidden_env: Vec::new() };
    match launch(spec, &TaskTracker::new()).await {
        Err(LaunchError::Unsupported(unsupported)) => {
            assert_eq!(unsupported.agent, agent.agent_type());
            let scratch = scratch.root().display().to_string();
            format!("{}: {}", unsupported.setting, unsupported.why.replace(&scratch, "SCRATCH"))
        }
        // A program that does nothing cannot hold a session: it was started.
        Ok(_) | Err(LaunchError::Agent(_)) => "taken".to_owned(),
    }
}

/// A setting that only the running agent can refuse is taken here; those are in the tests of the dialects.
#[tokio::test]
async fn each_is_taken_or_refused_by_name() {
    let scratch = Scratch::without_model().unwrap();
    let acp = AgentKind::Acp { command: "/bin/true".to_owned() };
    let agents = [
        ("claude", AgentKind::Claude, Transport::Default),
        ("codex", AgentKind::Codex, Transport::Default),
        ("codex one-shot", AgentKind::Codex, Transport::OneShot),
        ("gemini", AgentKind::Gemini, Transport::Default),
        ("gemini one-shot", AgentKind::Gemini, Transport::OneShot),
        ("acp", acp, Transport::Default),
    ];
    let mut table = String::new();
    for (name, change) in settings() {
        table += &format!("{name}\n");
        for (agent, kind, transport) in &agents {
            table += &format!("  {agent:<15} {}\n", outcome(&scratch, kind, *transport, &change).await);
        }
    }
    insta::assert_snapshot!(table);
}

/// A process for each turn is a way of Codex's and Gemini's; the others say that they have none.
#[tokio::test]
async fn one_shot_is_refused_by_name_where_there_is_none() {
    let scratch = Scratch::without_model().unwrap();
    let (_, nothing) = setting("nothing", |_| {});
    for agent in [AgentKind::Claude, AgentKind::Acp { command: "/bin/true".to_owned() }] {
        let refused = outcome(&scratch, &agent, Transport::OneShot, &nothing).await;
        assert!(refused.starts_with("one-shot transport: "), "{agent:?} {refused}");
    }
}

/// Names of folders go into JSON or onto a command line as text: one that is none would name another folder.
#[tokio::test]
async fn a_working_directory_that_is_no_text_is_refused_where_it_is_told() {
    let scratch = Scratch::without_model().unwrap();
    let folder = scratch.workspace().join(Path::new(OsStr::from_bytes(b"a\xff")));
    std::fs::create_dir(&folder).unwrap();
    let change: Change = Box::new(move |config| config.working_directory = Some(folder.clone()));
    for agent in [AgentKind::Codex, AgentKind::Gemini, AgentKind::Acp { command: "/bin/true".to_owned() }] {
        let refused = outcome(&scratch, &agent, Transport::Default, &change).await;
        assert!(refused.starts_with("working directory: "), "{agent:?} {refused}");
    }
    // Claude is started in its folder and told of none.
    assert_eq!(outcome(&scratch, &AgentKind::Claude, Transport::Default, &change).await, "taken");
    assert_eq!(AgentType::ALL.len(), 5, "a new agent belongs into these tables");
}
