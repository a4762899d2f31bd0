//! What Gemini is started with, in both its forms.

use multitap_event::{
    AgentKind, Command, EventKind, McpReach, Mode, Prompt, Resume, SandboxMode, SessionConfig, Timestamp,
};
use multitap_process::Exit;

use super::*;
use crate::codec::{Codec as _, End, NoFiles, RunArg, Step};

fn config() -> SessionConfig {
    let mut config = SessionConfig::new(AgentKind::Gemini);
    config.working_directory = Some("/w".into());
    // Nothing of the machine that runs the test.
    for name in ["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME"] {
        config.environment.insert(name.to_owned(), String::new());
    }
    config.environment.insert("HOME".to_owned(), "/no/such/home".to_owned());
    config
}

fn mode(word: &str) -> Option<Mode> {
    Some(Mode::parse(AgentType::Gemini, word).unwrap())
}

fn now() -> Timestamp {
    Timestamp::parse("2026-11-15T12:00:00Z").unwrap()
}

/// Paths of private files differ from run to run.
fn without_paths(words: &[String]) -> String {
    let plain = |word: &String| match word.rsplit_once("multitap-gemini-") {
        Some((_, name)) => format!("PRIVATE.{}", name.rsplit('.').next().unwrap_or_default()),
        None => word.clone(),
    };
    words.iter().map(plain).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_setting_becomes_its_option() {
    let shown = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = config();
        change(&mut config);
        let plan = plan(&config, Box::new(NoFiles)).unwrap();
        let env: Vec<String> = plan.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let env: Vec<String> = env.iter().map(|one| without_paths(std::slice::from_ref(one))).collect();
        format!("{} [{}]", without_paths(&plan.args), env.join(" "))
    };
    let session = |id: &str| Resume::Session { native_id: id.to_owned(), at: None };
    let all = [
        ("nothing", shown(&|_| {})),
        ("ask", shown(&|config| config.mode = mode("ask"))),
        ("auto-edit", shown(&|config| config.mode = mode("auto-edit"))),
        ("auto-all", shown(&|config| config.mode = mode("auto-all"))),
        ("plan", shown(&|config| config.mode = mode("plan"))),
        ("auto_edit", shown(&|config| config.mode = mode("auto_edit"))),
        ("model", shown(&|config| config.model = Some("gemini-2.5-pro".to_owned()))),
        ("folders", shown(&|config| config.add_dirs = vec!["/a".into(), "/b".into()])),
        ("allowed", shown(&|config| config.allowed_tools = vec!["run_shell_command(git)".to_owned()])),
        ("blocked", shown(&|config| config.blocked_tools = vec!["web_fetch".to_owned()])),
        ("system prompt", shown(&|config| config.system_prompt = Some("Be brief.".to_owned()))),
        ("sandbox none", shown(&|config| config.sandbox = Some(SandboxMode::None))),
        ("sandbox workspace-write", shown(&|config| config.sandbox = Some(SandboxMode::WorkspaceWrite))),
        ("arguments", shown(&|config| config.agent_args = vec!["--debug".to_owned()])),
        ("resume", shown(&|config| config.resume = session("x"))),
        (
            "resume with a key",
            shown(&|config| {
                config.resume = session("x");
                config.environment.insert("GEMINI_API_KEY".to_owned(), "k".to_owned());
            }),
        ),
    ];
    let lines: Vec<String> = all.into_iter().map(|(name, line)| format!("{name}: {line}")).collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn what_gemini_has_not_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = config();
        change(&mut config);
        plan(&config, Box::new(NoFiles)).map(|_| ()).unwrap_err().to_string()
    };
    let said = [
        refused(&|config| config.mode = mode("ask-dangerous")),
        refused(&|config| config.mode = mode("dont-ask")),
        refused(&|config| config.sandbox = Some(SandboxMode::ReadOnly)),
        refused(&|config| config.max_turns = Some(3)),
        refused(&|config| config.output_schema = Some(serde_json::json!({}))),
        refused(&|config| config.append_system_prompt = Some("x".to_owned())),
        refused(&|config| config.fork = true),
        refused(&|config| config.blocked_tools = vec!["run_shell_command(rm)".to_owned()]),
        refused(&|config| {
            config.resume = Resume::Session { native_id: "x".to_owned(), at: Some("m".to_owned()) };
        }),
        refused(&|config| config.permission_path = PermissionPath::Mcp),
        refused(&|config| {
            config.sandbox = Some(SandboxMode::WorkspaceWrite);
            config.resume = Resume::Latest;
        }),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

/// What a step starts, and what it reports.
fn shown(step: &Step) -> String {
    let run = step.run.iter().map(|run| {
        let words: Vec<String> = run
            .args
            .iter()
            .map(|arg| match arg {
                RunArg::Word(word) => word.clone(),
                RunArg::File { suffix, .. } => format!("FILE{suffix}"),
            })
            .collect();
        format!("$ gemini {} < {}", without_paths(&words), run.stdin.as_deref().unwrap_or("-"))
    });
    let stop = step.stop.then(|| "$ stop".to_owned());
    let events = step.events.iter().map(|kind| format!("! {}", serde_json::to_value(kind).unwrap()));
    run.chain(stop).chain(events).map(|line| line + "\n").collect()
}

#[test]
fn turn_by_turn() {
    let mut config = config();
    config.mode = mode("auto-all");
    config.model = Some("gemini-2.5-pro".to_owned());
    let mut codec = run::plan(&config, Box::new(NoFiles)).unwrap().codec;
    codec.emit.session.native_id = Some("11111111-2222-4333-8444-555555555555".to_owned());
    let prompt = |text: &str| Command::Prompt(Prompt::text(text));
    let mut story = shown(&codec.begin(now()));
    story += &shown(&codec.encode(prompt("one"), now()));
    let init = r#"{"type":"init","session_id":"11111111-2222-4333-8444-555555555555","model":"gemini-2.5-pro"}"#;
    for line in [
        init,
        r#"{"type":"message","role":"assistant","content":"hi","delta":true}"#,
        r#"{"type":"result","status":"success","stats":{"total_tokens":3,"input_tokens":1,"output_tokens":2,"duration_ms":9}}"#,
    ] {
        story += &shown(&codec.decode(line, now()));
    }
    story += &shown(&codec.turn_process_ended(&End::Exited(exit(0, "")), now()));
    story += &shown(&codec.encode(Command::SetMode { mode: "ask".to_owned() }, now()));
    story += &shown(&codec.encode(Command::SetMode { mode: "plan".to_owned() }, now()));
    story += &shown(&codec.encode(Command::SetModel { model: "m2".to_owned() }, now()));
    story += &shown(&codec.encode(prompt("two"), now()));
    story += &shown(&codec.decode(init, now()));
    story += &shown(&codec.encode(Command::Cancel, now()));
    story += &shown(&codec.turn_process_ended(&End::Stopped(exit(0, "")), now()));
    story += &shown(&codec.encode(prompt("three"), now()));
    let gone = "Error resuming session: Invalid session identifier \"x\".\n  Searched for sessions.";
    story += &shown(&codec.turn_process_ended(&End::Exited(exit(42, gone)), now()));
    story += &shown(&codec.end(&End::Stopped(exit(0, "")), now()));
    insta::assert_snapshot!(story);
}

fn exit(code: i32, stderr: &str) -> Exit {
    Exit { code: Some(code), stderr_tail: stderr.to_owned(), ..Exit::default() }
}

#[test]
fn a_session_of_turns_says_that_nobody_can_be_asked() {
    let mut codec = run::plan(&config(), Box::new(NoFiles)).unwrap().codec;
    let reported = codec.begin(now()).events;
    assert!(
        reported.iter().any(|kind| matches!(kind, EventKind::Error(error) if error.message.contains("cannot ask")))
    );
    let refused = |change: &dyn Fn(&mut SessionConfig)| {
        let mut config = config();
        change(&mut config);
        run::plan(&config, Box::new(NoFiles)).map(|_| ()).unwrap_err().to_string()
    };
    let server = McpReach::program("x", Vec::new());
    let said = [
        refused(&|config| config.mode = mode("ask")),
        refused(&|config| config.mcp_servers = [("tiny".to_owned(), server.clone().into())].into()),
    ];
    insta::assert_snapshot!(said.join("\n"));
}
