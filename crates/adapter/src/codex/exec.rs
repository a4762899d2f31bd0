//! `codex exec --json`: a process for each turn. Nobody can be asked, so the rules are set beforehand.

use std::io::{self, Write as _};

use multitap_event::{AgentType, Image, McpServer, Prompt, Resume, SandboxMode, SessionConfig, Unsupported};
use serde_json::{Map, Value, json};
use tempfile::TempPath;

use super::decode::CodexCodec;
use super::settings::{Rules, Settings, sandbox_word, unsupported};
use crate::codec::{Files, Run, RunArg, Step};
use crate::spec::{LaunchError, TurnPlan};

/// What the turns of a session share.
#[derive(Debug)]
pub(super) struct Exec {
    /// A conversation to take up in the first turn.
    resume: Resume,
    /// Files that Codex reads, by the option that names them.
    options: Vec<String>,
    agent_args: Vec<String>,
}

/// The codec for one session, and what its processes need.
pub(crate) fn plan(config: &SessionConfig, files: Box<dyn Files>) -> Result<TurnPlan<CodexCodec>, LaunchError> {
    let settings = Settings::of(config)?;
    can_run(&settings.rules)?;
    if let Resume::Session { at: Some(_), .. } = settings.resume {
        return Err(unsupported("fork at a turn", "`codex exec` forks a session only as a whole").into());
    }
    let mut kept = Vec::new();
    let mut options = Vec::new();
    let mut file = |text: &str| -> Result<String, LaunchError> {
        let file = private_file(text).map_err(|error| LaunchError::private_file(AgentType::Codex, &error))?;
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
        ["-c".to_owned(), format!("mcp_servers.{}={}", toml(&name.as_str().into()), toml(server))]
    }));
    let exec = Exec { resume: settings.resume.clone(), options, agent_args: config.agent_args.clone() };
    let codec = CodexCodec::by_process(config, settings, exec, files);
    Ok(TurnPlan { env, codec, files: kept })
}

/// Whether these rules work where nobody can be asked.
pub(super) fn can_run(rules: &Rules) -> Result<(), Unsupported> {
    match rules.policy.as_deref() {
        None | Some("never") => Ok(()),
        Some(policy) => {
            let word = rules.mode.map_or(policy, |mode| mode.option_word());
            let why = "`codex exec` cannot ask anybody; use its app-server, or plan, dont-ask or auto-all";
            Err(unsupported(format!("approval mode {word}"), why))
        }
    }
}

fn private_file(text: &str) -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new().prefix("multitap-codex-").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file.into_temp_path())
}

/// The MCP servers without what may be secret: that goes by the environment, never by an argument.
fn servers(config: &SessionConfig) -> (Map<String, Value>, Vec<(String, String)>) {
    let mut env = Vec::new();
    let mut hide = |value: &String| {
        let name = format!("MULTITAP_MCP_{}", env.len() + 1);
        env.push((name.clone(), value.clone()));
        name
    };
    let mut given = Vec::new();
    let one = |(name, server): (&String, &McpServer)| {
        let server = match server {
            McpServer::Stdio { command, args, env } => {
                given.extend(env.clone());
                json!({ "command": command, "args": args, "env_vars": env.keys().collect::<Vec<_>>() })
            }
            McpServer::Http { url, headers } => {
                let headers: Map<String, Value> =
                    headers.iter().map(|(name, value)| (name.clone(), hide(value).into())).collect();
                json!({ "url": url, "env_http_headers": headers })
            }
        };
        (name.clone(), server)
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
    /// Begins a turn by starting its process.
    pub(super) fn prompt_by_process(&mut self, prompt: &Prompt, out: &mut Step) {
        let Some(exec) = &self.exec else { return };
        let settings = &self.settings;
        let mut args = vec![RunArg::word("exec")];
        // An option that takes many values must not be the last one.
        args.extend(prompt.images.iter().flat_map(|image| [RunArg::word("--image"), picture(image)]));
        args.extend(["--json", "--skip-git-repo-check"].map(RunArg::word));
        let mut option = |name: &str, value: &str| args.extend([RunArg::word(name), RunArg::word(value)]);
        if let Some(model) = &settings.model {
            option("-m", model);
        }
        if let Some(policy) = &settings.rules.policy {
            option("-c", &format!("approval_policy={}", toml(&policy.as_str().into())));
        }
        // Nothing may be asked: without a sandbox of its own choice, what may be written is the workspace.
        let sandbox = settings.rules.sandbox.or(settings.rules.policy.as_ref().map(|_| SandboxMode::WorkspaceWrite));
        if let Some(sandbox) = sandbox {
            option("-s", sandbox_word(sandbox));
        }
        if let Some(cwd) = &settings.cwd {
            option("-C", cwd);
        }
        for folder in &settings.add_dirs {
            option("--add-dir", folder);
        }
        args.extend(exec.options.iter().chain(&exec.agent_args).map(RunArg::word));
        let known = self.session.native_id();
        args.extend(match (known, &exec.resume) {
            (Some(id), _) => vec![RunArg::word("resume"), RunArg::word(id)],
            (None, Resume::New) => Vec::new(),
            (None, Resume::Latest) => vec![RunArg::word("resume"), RunArg::word("--last")],
            (None, Resume::Session { native_id, .. }) => {
                vec![RunArg::word(if settings.fork { "fork" } else { "resume" }), RunArg::word(native_id)]
            }
        });
        if known.is_none() && exec.resume == Resume::New {
            self.turns.usage.starts_at_nothing();
        }
        // The prompt itself goes to stdin: it may be longer than an argument can be, and it is nobody else's business.
        args.push(RunArg::word("-"));
        out.run = Some(Run { args, stdin: Some(prompt.text.clone()) });
        self.turns.prompted();
    }
}

fn picture(image: &Image) -> RunArg {
    let suffix = format!(".{}", image.media_type.rsplit('/').next().unwrap_or("png"));
    RunArg::File { suffix, base64: image.data.clone() }
}
