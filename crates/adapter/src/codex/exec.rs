//! `codex exec --json`: one process per turn. Questions cannot be asked, so the rules are set beforehand.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, Image, LaunchError, McpReach, McpServer, Prompt, Resume,
    SandboxMode, SessionConfig, Timestamp, Unsupported,
};
use serde_json::{Map, Value, json};

use super::decode::{CodexCodec, EXEC};
use super::sandbox::SandboxProbe;
use super::settings::{Rules, Settings, mcp_rules, sandbox_word, unsupported};
use crate::codec::{Files, Run, RunArg, Step};
use crate::pump::Lifetime;
use crate::spec::{Plan, add_options, private_file};

/// The state that all turns of a session share.
#[derive(Debug)]
pub(super) struct Exec {
    /// A conversation to resume in the first turn.
    resume: Resume,
    /// The files that Codex reads, by the option that names them, and the caller's own arguments.
    options: Vec<String>,
    /// The time at which the last turn was requested.
    asked_at: Option<Timestamp>,
}

/// The codec for one session, and what its processes need.
pub(crate) fn plan(
    config: &SessionConfig,
    files: Box<dyn Files>,
    found: SandboxProbe,
) -> Result<Plan<CodexCodec>, LaunchError> {
    let settings = Settings::of(config)?;
    can_run(&settings.rules)?;
    if let Resume::Session { at: Some(_), .. } = settings.resume {
        return Err(unsupported("fork at a turn", "`codex exec` forks a session only as a whole").into());
    }
    if settings.fork && settings.resume == Resume::Latest {
        let why = "`codex exec` forks a session only by its id; name it with `-r ID --fork`";
        return Err(unsupported("fork of the latest session", why).into());
    }
    let mut kept = Vec::new();
    let mut options = Vec::new();
    let mut file = |text: &str| -> Result<String, LaunchError> {
        let file = private_file(AgentType::Codex, "", text)?;
        let path = file.display().to_string();
        kept.push(file);
        Ok(path)
    };
    if let Some(schema) = &settings.output_schema {
        options.extend(["--output-schema".to_owned(), file(&schema.to_string())?]);
    }
    if let Some(prompt) = &settings.system_prompt {
        options.extend(["-c".to_owned(), format!("model_instructions_file={}", toml(&file(prompt)?.into()))]);
    }
    if let Some(prompt) = &settings.append_system_prompt {
        options.extend(["-c".to_owned(), format!("developer_instructions={}", toml(&prompt.as_str().into()))]);
    }
    let (servers, env) = servers(config);
    options.extend(servers.iter().flat_map(|(name, server)| {
        // Codex accepts only names that need no quotes.
        ["-c".to_owned(), format!("mcp_servers.{name}={}", toml(server))]
    }));
    let resume = settings.resume.clone();
    options.extend(config.agent_args.iter().cloned());
    let exec = Exec { resume, options, asked_at: None };
    let codec = CodexCodec::by_process(config, settings, exec, files);
    let codec = CodexCodec { no_sandbox: found.no_sandbox, own_sandbox: found.own_sandbox, ..codec };
    Ok(Plan { env, files: kept, lifetime: Lifetime::Turn, ..Plan::new(codec) })
}

/// Whether these rules work without questions.
pub(super) fn can_run(rules: &Rules) -> Result<(), Unsupported> {
    match rules.policy.as_deref() {
        None | Some("never") => Ok(()),
        Some(policy) => {
            let word = rules.mode.map_or(policy, |mode| mode.option_word());
            let why = "`codex exec` cannot ask; use the app-server, or plan, dont-ask or auto-all";
            Err(unsupported(format!("approval mode {word}"), why))
        }
    }
}

/// The MCP servers without their secrets: those are passed by the environment, never as arguments.
fn servers(config: &SessionConfig) -> (Map<String, Value>, Vec<(String, String)>) {
    let mut env = Vec::new();
    let mut hide = |value: &String| {
        let name = format!("MULTITAP_MCP_{}", env.len() + 1);
        env.push((name.clone(), value.clone()));
        name
    };
    let mut given = Vec::new();
    let one = |(name, server): (&String, &McpServer)| {
        let written = match &server.reach {
            McpReach::Stdio { command, args, env, .. } => {
                given.extend(env.clone());
                json!({ "command": command, "args": args, "env_vars": env.keys().collect::<Vec<_>>() })
            }
            McpReach::Http { url, headers } => {
                let headers: Map<String, Value> =
                    headers.iter().map(|(name, value)| (name.clone(), hide(value).into())).collect();
                json!({ "url": url, "env_http_headers": headers })
            }
        };
        let mut written = written.as_object().cloned().unwrap_or_default();
        written.extend(mcp_rules(server, config.working_directory.as_deref()));
        (name.clone(), written.into())
    };
    let servers = config.mcp_servers.iter().map(one).collect();
    (servers, env.into_iter().chain(given).collect())
}

/// A value as TOML on one line.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(toml).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let one = |(key, value): (&String, &Value)| format!("{}={}", Value::from(key.as_str()), toml(value));
            format!("{{{}}}", map.iter().map(one).collect::<Vec<_>>().join(","))
        }
        // A TOML string on one line is written as JSON writes it.
        other => other.to_string(),
    }
}

impl CodexCodec {
    /// The session begins before any process runs. A new conversation has no id yet; the first turn reports it.
    pub(super) fn begin_turns(&mut self, out: &mut Step) {
        out.ready = true;
        let resumed = self.exec.as_ref().and_then(|exec| match &exec.resume {
            Resume::Session { native_id, .. } if !self.settings.fork => Some(native_id.clone()),
            Resume::Session { .. } | Resume::Latest | Resume::New => None,
        });
        self.under_way(resumed.as_deref(), EXEC, out);
        self.tell_sandbox(out);
        if self.settings.rules.policy.is_none() {
            let why = "codex runs one process per turn and cannot ask: what its sandbox does not allow fails";
            let warning = AgentError::new(AgentErrorKind::PermissionDenied, why).of(AgentType::Codex);
            out.events.push(EventKind::Error(warning.warning()));
        }
    }

    /// The duration of the turn, measured here: its process does not report it.
    pub(super) fn turn_time(&self, now: Timestamp) -> Option<u64> {
        Some(now.millis_since(self.exec.as_ref()?.asked_at?))
    }

    pub(super) fn prompt_by_process(&mut self, prompt: &Prompt, now: Timestamp, out: &mut Step) {
        if let Some(exec) = &mut self.exec {
            exec.asked_at = Some(now);
        }
        let Some(exec) = &self.exec else { return };
        let settings = &self.settings;
        let mut args = vec![RunArg::word("exec")];
        // An option that takes many values must not be the last one.
        args.extend(prompt.images.iter().flat_map(|image| [RunArg::word("--image"), picture(image)]));
        let mut words = ["--json", "--skip-git-repo-check"].map(str::to_owned).to_vec();
        add_options(&mut words, "-m", &settings.model);
        let policy = settings.rules.policy.as_deref().map(|policy| format!("approval_policy={}", toml(&policy.into())));
        add_options(&mut words, "-c", policy);
        let raised = self.raises_sandbox().then_some(SandboxMode::WorkspaceWrite);
        add_options(&mut words, "-s", settings.rules.sandbox.or(raised).map(sandbox_word));
        add_options(&mut words, "-C", &settings.cwd);
        add_options(&mut words, "--add-dir", &settings.add_dirs);
        words.extend(exec.options.iter().cloned());
        let known = &self.emit.session.native_id;
        match (known, &exec.resume) {
            (Some(id), _) => add_options(&mut words, "resume", [id]),
            (None, Resume::New) => {}
            (None, Resume::Latest) => add_options(&mut words, "resume", ["--last"]),
            (None, Resume::Session { native_id, .. }) => {
                add_options(&mut words, if settings.fork { "fork" } else { "resume" }, [native_id]);
            }
        }
        if known.is_none() && exec.resume == Resume::New {
            self.turn.usage.starts_at_nothing();
        }
        args.extend(words.into_iter().map(RunArg::Word));
        // The prompt goes to stdin: it may be longer than an argument can be, and other users can read arguments.
        args.push(RunArg::word("-"));
        out.run = Some(Run { args, stdin: Some(prompt.text.clone()) });
        self.prompted();
    }
}

fn picture(image: &Image) -> RunArg {
    let suffix = format!(".{}", image.media_type.rsplit('/').next().unwrap_or("png"));
    RunArg::File { suffix, base64: image.data.clone() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use multitap_event::{AgentKind, ApprovalMode, Command, Mode, Query};

    use super::super::sandbox::OwnSandbox;
    use super::*;
    use crate::codec::{Codec as _, NoFiles};

    fn config(mode: Option<ApprovalMode>) -> SessionConfig {
        let working_directory = Some("/w".into());
        let mode = mode.map(Mode::Unified);
        SessionConfig { working_directory, mode, ..SessionConfig::new(AgentKind::Codex) }
    }

    fn unset() -> SandboxProbe {
        SandboxProbe { own_sandbox: OwnSandbox::Unset, ..SandboxProbe::default() }
    }

    /// The words that a prompt's process is started with; a file's path is its suffix.
    fn words(codec: &mut CodexCodec, prompt: &Prompt) -> String {
        let run = codec.encode(Command::Prompt(prompt.clone()), Timestamp::from_millis(0)).run.unwrap();
        assert_eq!(run.stdin.as_deref(), Some(prompt.text.as_str()));
        let word = |arg: &RunArg| match arg {
            RunArg::Word(word) => word.clone(),
            RunArg::File { suffix, .. } => format!("FILE{suffix}"),
        };
        run.args.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    fn first(config: &SessionConfig) -> String {
        words(&mut plan(config, Box::new(NoFiles), unset()).unwrap().codec, &Prompt::text("hi"))
    }

    #[test]
    fn every_turn_is_told_everything() {
        assert_eq!(first(&config(None)), "exec --json --skip-git-repo-check -C /w -");
        let all = |mode| first(&config(Some(mode)));
        let never = "exec --json --skip-git-repo-check -c approval_policy=\"never\"";
        assert_eq!(all(ApprovalMode::AutoAll), format!("{never} -s workspace-write -C /w -"));
        assert_eq!(all(ApprovalMode::DontAsk), format!("{never} -s workspace-write -C /w -"));
        assert_eq!(all(ApprovalMode::Plan), format!("{never} -s read-only -C /w -"));
        let config = SessionConfig {
            model: Some("gpt-6".to_owned()),
            sandbox: Some(SandboxMode::FullAccess),
            add_dirs: vec!["/more".into()],
            append_system_prompt: Some("a \"b\"\n".to_owned()),
            agent_args: vec!["--strict-config".to_owned()],
            ..config(None)
        };
        assert_eq!(
            first(&config),
            "exec --json --skip-git-repo-check -m gpt-6 -s danger-full-access -C /w --add-dir /more \
             -c developer_instructions=\"a \\\"b\\\"\\n\" --strict-config -"
        );
    }

    #[test]
    fn the_next_turn_resumes_the_conversation() {
        let mut codec = plan(&config(None), Box::new(NoFiles), unset()).unwrap().codec;
        let image = Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() };
        let prompt = Prompt { images: vec![image], ..Prompt::text("look") };
        assert_eq!(words(&mut codec, &prompt), "exec --image FILE.png --json --skip-git-repo-check -C /w -");
        codec.decode(r#"{"type":"thread.started","thread_id":"01a1"}"#, Timestamp::from_millis(0));
        assert_eq!(words(&mut codec, &Prompt::text("again")), "exec --json --skip-git-repo-check -C /w resume 01a1 -");
        let resume = |resume, fork| first(&SessionConfig { resume, fork, ..config(None) });
        assert!(resume(Resume::Latest, false).ends_with(" resume --last -"));
        let session = || Resume::Session { native_id: "x".to_owned(), at: None };
        assert!(resume(session(), false).ends_with(" resume x -"));
        assert!(resume(session(), true).ends_with(" fork x -"));
    }

    #[test]
    fn a_sandbox_in_its_own_settings_stays() {
        for own_sandbox in [OwnSandbox::Set(Some(SandboxMode::ReadOnly)), OwnSandbox::Set(None), OwnSandbox::Unknown] {
            let found = SandboxProbe { own_sandbox, ..SandboxProbe::default() };
            let mut codec = plan(&config(Some(ApprovalMode::AutoAll)), Box::new(NoFiles), found).unwrap().codec;
            assert!(!words(&mut codec, &Prompt::text("hi")).contains(" -s "), "{own_sandbox:?}");
        }
    }

    #[test]
    fn only_a_session_with_an_id_is_forked() {
        let config = SessionConfig { resume: Resume::Latest, fork: true, ..config(None) };
        let refused = plan(&config, Box::new(NoFiles), unset()).err().unwrap().to_string();
        assert!(refused.contains("fork of the latest session"), "{refused}");
    }

    /// What the start of such a session reports.
    fn begun(config: &SessionConfig, found: SandboxProbe) -> (CodexCodec, Vec<String>) {
        let mut codec = plan(config, Box::new(NoFiles), found).unwrap().codec;
        let step = codec.begin(Timestamp::from_millis(0));
        assert!(step.ready);
        (codec, step.events.iter().map(|kind| serde_json::to_string(kind).unwrap()).collect())
    }

    #[test]
    fn the_session_begins_before_its_first_process() {
        let (mut codec, reported) = begun(&config(Some(ApprovalMode::Plan)), unset());
        assert!(reported.len() == 1 && reported[0].contains("sessionStarted"), "{reported:?}");
        assert!(!reported[0].contains("nativeSessionId"), "{reported:?}");
        let step = codec.decode(r#"{"type":"thread.started","thread_id":"01a1"}"#, Timestamp::from_millis(0));
        let reported = serde_json::to_string(&step.events).unwrap();
        assert_eq!(reported, r#"[{"type":"nativeSessionChanged","nativeSessionId":"01a1"}]"#);

        let resume = Resume::Session { native_id: "01a1".to_owned(), at: None };
        let resumed = SessionConfig { resume, ..config(Some(ApprovalMode::Plan)) };
        let (mut codec, reported) = begun(&resumed, unset());
        assert!(reported[0].contains(r#""nativeSessionId":"01a1""#), "{reported:?}");
        let step = codec.decode(r#"{"type":"thread.started","thread_id":"01a1"}"#, Timestamp::from_millis(0));
        assert_eq!(step.events, []);
        let (_, reported) = begun(&SessionConfig { fork: true, ..resumed }, unset());
        assert!(!reported[0].contains("nativeSessionId"), "{reported:?}");
    }

    #[test]
    fn what_nobody_would_expect_is_told_at_the_start() {
        let broken = || SandboxProbe { no_sandbox: Some("bwrap: no".to_owned()), ..unset() };
        let (_, reported) = begun(&config(None), broken());
        assert!(reported[1].contains(r#""works":false"#) && reported[2].contains("cannot ask"), "{reported:?}");
        let free = SessionConfig { sandbox: Some(SandboxMode::FullAccess), ..config(Some(ApprovalMode::AutoAll)) };
        assert_eq!(begun(&free, broken()).1.len(), 1);
        let (_, reported) = begun(&config(Some(ApprovalMode::AutoAll)), SandboxProbe::default());
        assert!(reported.len() == 2 && reported[1].contains("did not report"), "{reported:?}");
    }

    #[test]
    fn a_turn_is_timed_and_the_context_is_not_guessed() {
        let (mut codec, _) = begun(&config(Some(ApprovalMode::Plan)), unset());
        codec.encode(Command::Prompt(Prompt::text("hi")), Timestamp::from_millis(1000));
        codec.decode(r#"{"type":"turn.started"}"#, Timestamp::from_millis(1100));
        let done = r#"{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":4}}"#;
        let step = codec.decode(done, Timestamp::from_millis(2500));
        let Some(EventKind::TurnCompleted(turn)) = step.events.last() else { panic!("{step:?}") };
        assert_eq!(turn.duration_ms, Some(1500));
        let step = codec.encode(Command::Query { what: Query::Context }, Timestamp::from_millis(2500));
        assert!(matches!(step.events.as_slice(), [EventKind::Error(_)]), "{step:?}");
    }

    #[test]
    fn nobody_can_be_asked() {
        for mode in [ApprovalMode::Ask, ApprovalMode::AskDangerous] {
            let refused = plan(&config(Some(mode)), Box::new(NoFiles), unset()).err().unwrap().to_string();
            assert!(refused.contains(mode.option_word()) && refused.contains("cannot ask"), "{refused}");
        }
    }

    #[test]
    fn secrets_of_servers_stay_out_of_the_arguments() {
        let stdio = McpReach::Stdio {
            command: "serve".to_owned(),
            args: vec!["-v".to_owned()],
            env: BTreeMap::from([("KEY".to_owned(), "secret".to_owned())]),
            cwd: None,
        };
        let stdio = McpServer { exclude_tools: vec!["x".to_owned()], ..McpServer::from(stdio) };
        let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer secret".to_owned())]);
        let http = McpReach::Http { url: "http://127.0.0.1:1/mcp".to_owned(), headers };
        let mcp_servers = BTreeMap::from([("a".to_owned(), stdio), ("b".to_owned(), http.into())]);
        let mut plan = plan(&SessionConfig { mcp_servers, ..config(None) }, Box::new(NoFiles), unset()).unwrap();
        let line = words(&mut plan.codec, &Prompt::text("hi"));
        assert!(!line.contains("secret"), "{line}");
        let written = r#"mcp_servers.a={"command"="serve","args"=["-v"],"env_vars"=["KEY"],"disabled_tools"=["x"]}"#;
        assert!(line.contains(written), "{line}");
        let env: BTreeMap<String, String> = plan.env.into_iter().collect();
        assert_eq!(env["KEY"], "secret");
        assert_eq!(env["MULTITAP_MCP_1"], "Bearer secret");
        assert!(line.contains(r#""env_http_headers"={"Authorization"="MULTITAP_MCP_1"}"#), "{line}");
    }
}
