//! Command line arguments.

mod acp;
mod attach;
mod door;
mod mcp;
mod serve;
mod sessions;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use multitap_event::{AgentType, SandboxMode, visible_line};
use multitap_hub::WhenBusy;

pub(crate) use self::acp::AcpArgs;
pub(crate) use self::attach::AttachArgs;
pub(crate) use self::door::{AccessArgs, DoorArgs, DoorOptions};
pub(crate) use self::mcp::McpArgs;
pub(crate) use self::serve::ServeArgs;
pub(crate) use self::sessions::{SessionsArgs, SessionsSub};

const USAGE: &str = "multitap [OPTIONS] [PROMPT]
       multitap -p PROMPT [OPTIONS]
       multitap -p --input-format stream-json [OPTIONS]
       multitap COMMAND";

const EXAMPLES: &str = "\
Examples:
  multitap                                    open a session with the first agent
                                              that is installed
  multitap --a2a-port 4100                    open a session that A2A clients can join
  multitap -c                                 continue the last conversation
  multitap -p \"explain src/main.rs\"           print the answer on stdout
  git diff | multitap -p \"review this\"        piped input is put before PROMPT
  multitap -p \"fix the tests\" --approval-mode auto-edit
  multitap -p \"go on\" -c                      continue without a terminal UI
  multitap -p \"count the TODOs\" --output-format stream-json
                                              print events as JSON lines
  multitap -p --input-format stream-json --output-format stream-json
                                              drive a session from a program
  multitap serve --port 4100                  host sessions for A2A clients
  multitap attach                             list running sessions
  multitap acp                                be an ACP agent, for an editor
  multitap sessions                           list the sessions of this folder
  multitap doctor                             check your setup

Exit codes of -p:
    0  the turn completed
    1  the agent failed
    2  invalid options or settings
    3  the agent was not found or could not start
    4  a question was denied because nobody answered
    5  timeout
  130  interrupted

Settings (JSON with comments):
  ~/.config/multitap/settings.json, or settings.json in MULTITAP_HOME
  .multitap/settings.json in the session's folder. It cannot choose programs. It
  grants permissions only if you trust the folder, by `trustedFolders` in your
  own settings or --trust. The same applies to the agents' own project files.

Environment:
  MULTITAP_CLAUDE_BIN, MULTITAP_CODEX_BIN, MULTITAP_GEMINI_BIN
                        the agent's program [default: found on PATH]
  MULTITAP_AGENT        overrides the setting `agent`
  MULTITAP_KEEP_RAW=1   overrides the setting `keepRaw`
  ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY
                        key of a model for the built-in agent
  MULTITAP_TOKEN        token that clients must send to join, and that
                        `multitap attach` sends
  MULTITAP_HOME         folder of settings and stored sessions
  MULTITAP_LOG          log level on stderr, such as `debug`
  NO_COLOR              no colors, on the screen and in the log";

/// Share one live session with any coding agent between terminals, programs and A2A clients
///
/// Multitap drives coding agents such as Claude Code, Codex and Gemini CLI through one stream of events, the same for
/// every agent.
#[derive(Debug, Parser)]
#[command(name = "multitap", version, after_long_help = EXAMPLES, after_help = "Use `multitap --help` for details and examples.")]
#[command(args_conflicts_with_subcommands = true, max_term_width = 100, override_usage = USAGE)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Sub>,

    #[command(flatten)]
    pub(crate) run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sub {
    /// Host sessions over HTTP (A2A, WebSocket)
    Serve(Box<ServeArgs>),
    /// Open a session that runs elsewhere: in another terminal, or on `multitap serve`
    Attach(AttachArgs),
    /// List installed agents and their features
    Agents(ReportArgs),
    /// Check your setup and suggest fixes
    Doctor(ReportArgs),
    /// List, show, export and delete sessions; also the conversations that agents stored
    Sessions(SessionsArgs),
    /// Be an ACP agent on stdin and stdout, for editors
    Acp(Box<AcpArgs>),
    /// Serve remote A2A agents as MCP tools, on stdin and stdout or over HTTP
    Mcp(Box<McpArgs>),
    /// List the slash commands of the built-in agent
    Commands(ReportArgs),
    /// Print the JSON Schema of the events
    Schema,
    /// Decode an agent's recorded output lines on stdin to events on stdout
    Decode(DecodeArgs),
    /// Print a shell completion script
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DecodeArgs {
    /// The agent that wrote the lines
    #[arg(long, value_parser = agent_type())]
    pub(crate) agent: AgentType,
    /// Include each native line in the `raw` field of an event
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// First prompt; with -p, it may follow -p directly or come after other options
    #[arg(value_name = "PROMPT")]
    pub(crate) words: Option<String>,

    /// Words of an unquoted prompt; parsed only for the error message.
    #[arg(hide = true, value_name = "WORD")]
    pub(crate) more: Vec<String>,

    /// Run one prompt without a terminal UI, print the answer and exit ("-" reads the prompt from stdin)
    ///
    /// Piped input is put before PROMPT. With --input-format stream-json, PROMPT is optional: the session then waits
    /// for prompts on stdin.
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1)]
    pub(crate) print: Option<Option<String>>,

    #[command(flatten)]
    pub(crate) session: SessionArgs,

    #[command(flatten)]
    pub(crate) door: DoorArgs,

    /// Output on stdout: the answer as text, one JSON object at the end, or one JSON event per line as it happens
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t, requires = "print", help_heading = HEADLESS)]
    pub(crate) output_format: OutputFormat,

    /// Input on stdin: text for the prompt, or JSON lines that drive the session
    ///
    /// The lines:
    ///   {"type":"prompt","text":…}
    ///   {"type":"decide","questionId":…,"optionId":…,
    ///    "newContent"?:…,"newInput"?:…,"answers"?:…,"feedback"?:…}
    ///   {"type":"cancel"}
    ///   {"type":"setMode","mode":…}
    ///   {"type":"setModel","model":…}
    ///   {"type":"setThinking","tokens"?:…}
    ///   {"type":"setThinkingLevel","level":…}
    ///   {"type":"query","what":"commands"|"models"|"mcpStatus"|"account"|"context"}
    ///   {"type":"withdraw","promptId":…}
    ///   {"type":"revoke","ruleId":…}
    ///   {"type":"kick","clientId":…}
    /// At the end of the input, the session ends after the running turn and the queued prompts.
    #[arg(long, verbatim_doc_comment, value_name = "FORMAT", value_enum, default_value_t, requires = "print", help_heading = HEADLESS)]
    pub(crate) input_format: InputFormat,

    /// Keep the session running for connected clients when the terminal closes
    ///
    /// Without it, closing the terminal ends the session and its agent. The session is stored in either case.
    #[arg(long, conflicts_with = "print", help_heading = door::DOOR)]
    pub(crate) keep_serving: bool,

    /// Deny a question after S seconds without an answer
    #[arg(long, value_name = "S", value_parser = seconds, help_heading = HEADLESS)]
    pub(crate) question_timeout: Option<Duration>,
}

const AGENT: &str = "Agent";
const PERMISSIONS: &str = "Permissions";
const CONVERSATION: &str = "Conversation";
const HEADLESS: &str = "Without a terminal UI (-p)";

/// Options of a session.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) with: AgentArgs,

    /// Working directory
    #[arg(long, value_name = "DIR", help_heading = AGENT)]
    pub(crate) cwd: Option<PathBuf>,

    /// Image for the first prompt: PNG, JPEG, GIF or WebP (repeatable)
    #[arg(long, value_name = "FILE", help_heading = AGENT)]
    pub(crate) image: Vec<PathBuf>,

    /// Continue the newest conversation in this folder
    #[arg(short, long = "continue", conflicts_with = "resume", help_heading = CONVERSATION)]
    pub(crate) continue_latest: bool,

    /// Resume a session by its id, the agent's own id, a prefix of either, or "latest" for the newest in this folder
    #[arg(short, long, value_name = "ID", help_heading = CONVERSATION)]
    pub(crate) resume: Option<String>,

    /// Rewind the conversation to this message first
    #[arg(long, value_name = "MESSAGE", requires = "resume", help_heading = CONVERSATION)]
    pub(crate) at: Option<String>,

    /// Continue in a copy and leave the original unchanged (with -c or -r)
    #[arg(long, help_heading = CONVERSATION)]
    pub(crate) fork: bool,

    /// What to do with a prompt sent while the agent is busy: queue it, steer the turn (where supported), or
    /// interrupt it
    #[arg(long, value_name = "WHAT", value_parser = when_busy(), default_value = "queue", help_heading = CONVERSATION)]
    pub(crate) when_busy: WhenBusy,
}

/// How the agent runs. Options that are not given leave the agent's own settings in effect.
#[derive(Debug, Clone, Args)]
pub(crate) struct AgentArgs {
    /// Agent: claude, codex, gemini, builtin or acp:COMMAND [default: settings, else the first installed, else builtin]
    ///
    /// COMMAND starts any agent that speaks the Agent Client Protocol on stdin and stdout, such as "acp:goose acp";
    /// acp alone starts the one in your settings. builtin is Multitap's own agent, with a model of Anthropic, OpenAI or
    /// Google, or with "rehearsal", a stand-in that follows fixed rules and needs no account.
    #[arg(long, value_name = "NAME", env = "MULTITAP_AGENT", hide_env_values = true, help_heading = AGENT)]
    pub(crate) agent: Option<String>,

    /// Model name, as the agent spells it
    #[arg(long, value_name = "NAME", help_heading = AGENT)]
    pub(crate) model: Option<String>,

    /// Additional folder the agent may use (repeatable)
    #[arg(long, value_name = "DIR", help_heading = AGENT)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Maximum number of model requests in one turn
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = AGENT)]
    pub(crate) max_turns: Option<u32>,

    /// Environment variable for the agent (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable, help_heading = AGENT)]
    pub(crate) env: Vec<(String, String)>,

    /// Argument for the agent's own program (repeatable)
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, help_heading = AGENT)]
    pub(crate) agent_arg: Vec<String>,

    /// Replace the agent's system prompt
    #[arg(long, value_name = "TEXT", help_heading = AGENT)]
    pub(crate) system_prompt: Option<String>,

    /// Append to the agent's system prompt
    #[arg(long, value_name = "TEXT", help_heading = AGENT)]
    pub(crate) append_system_prompt: Option<String>,

    /// JSON Schema that the answer must match
    #[arg(long, value_name = "FILE", help_heading = AGENT)]
    pub(crate) output_schema: Option<PathBuf>,

    /// Seconds to wait for the agent to start
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "30", help_heading = AGENT)]
    pub(crate) start_timeout: Duration,

    /// Include each native line in the `raw` field of an event
    #[arg(long, help_heading = AGENT)]
    pub(crate) raw: bool,

    /// Approval mode: ask, ask-dangerous, auto-edit, auto-all, plan, dont-ask, or a mode of the agent's own
    ///
    /// ask: ask about every change. ask-dangerous: ask only about what looks dangerous (codex, builtin). auto-edit:
    /// edit files without asking. auto-all: do everything without asking. plan: read and plan, change nothing.
    /// dont-ask: never ask; deny what no rule allows.
    #[arg(long, value_name = "MODE", help_heading = PERMISSIONS)]
    pub(crate) approval_mode: Option<String>,

    /// Trust the folder for this run: enable its settings, hooks and MCP servers
    ///
    /// Without it, and unless the folder is among `trustedFolders` in your settings, the agent starts without these
    /// parts of the project. The terminal UI asks instead.
    #[arg(long, help_heading = PERMISSIONS)]
    pub(crate) trust: bool,

    /// Restrict what the agent's tools can access
    #[arg(long, value_name = "SANDBOX", value_parser = sandbox(), help_heading = PERMISSIONS)]
    pub(crate) sandbox: Option<SandboxMode>,

    /// Start even if part of the sandbox is not available; the session reports which part (builtin)
    #[arg(long, requires = "sandbox", help_heading = PERMISSIONS)]
    pub(crate) sandbox_best_effort: bool,

    /// Allow a tool without asking, in the agent's own syntax, such as "Bash(git log:*)" (repeatable)
    #[arg(long, value_name = "TOOL", help_heading = PERMISSIONS)]
    pub(crate) allow_tool: Vec<String>,

    /// Never run a tool (repeatable)
    #[arg(long, value_name = "TOOL", help_heading = PERMISSIONS)]
    pub(crate) block_tool: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Text,
    Json,
    StreamJson,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    #[default]
    Text,
    StreamJson,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err("must be more than 0 seconds".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("must be NAME=VALUE".to_owned()),
    }
}

fn sandbox() -> impl clap::builder::TypedValueParser<Value = SandboxMode> {
    PossibleValuesParser::new(SandboxMode::ALL.map(SandboxMode::option_word)).try_map(|word| {
        SandboxMode::ALL
            .into_iter()
            .find(|mode| mode.option_word() == word)
            .ok_or_else(|| format!("unknown sandbox {word}"))
    })
}

fn when_busy() -> impl clap::builder::TypedValueParser<Value = WhenBusy> {
    PossibleValuesParser::new(["queue", "steer", "interrupt"]).try_map(|word| serde_json::from_value(word.into()))
}

fn agent_type() -> impl clap::builder::TypedValueParser<Value = AgentType> {
    PossibleValuesParser::new(AgentType::ALL.map(AgentType::as_str)).try_map(|word| {
        AgentType::ALL.into_iter().find(|agent| agent.as_str() == word).ok_or_else(|| format!("unknown agent {word}"))
    })
}

impl RunArgs {
    /// The prompt, in whichever position it was given.
    pub(crate) fn prompt_words(&self) -> Result<Option<String>, String> {
        let first = self.print.iter().flatten();
        let mut words = first.chain(&self.words).chain(&self.more);
        let prompt = words.next().cloned();
        match words.next() {
            Some(second) => Err(format!(
                "the prompt is one argument, but \"{second}\" follows it: quote the prompt, as in multitap -p \"explain this folder\""
            )),
            None => Ok(prompt),
        }
    }
}

impl SessionArgs {
    /// Options for a new conversation in the default folder.
    pub(crate) fn of(with: AgentArgs) -> Self {
        Self {
            with,
            cwd: None,
            image: Vec::new(),
            continue_latest: false,
            resume: None,
            at: None,
            fork: false,
            when_busy: WhenBusy::default(),
        }
    }

    /// Whether the newest conversation is requested, by `-c` or by `-r latest`. No id is that word: ids are made of
    /// hex digits.
    pub(crate) fn continues(&self) -> bool {
        self.continue_latest || self.resume.as_deref() == Some("latest")
    }

    /// Checks that clap cannot express.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.fork && !self.continue_latest && self.resume.is_none() {
            return Err("--fork needs -c or -r ID: there is nothing to copy".to_owned());
        }
        Ok(())
    }
}

impl Cli {
    /// Parses the command line. An error quotes it, and a script may have put text of others there: escape sequences
    /// are made visible.
    pub(crate) fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        Self::try_parse_from(args).map_err(|error| {
            let shown = args.iter().map(|arg| visible_line(&arg.to_string_lossy()).into_owned());
            Self::try_parse_from(shown).err().unwrap_or(error)
        })
    }
}

/// Whether the prompt means stdin.
pub(crate) fn is_stdin(prompt: &str) -> bool {
    OsStr::new(prompt) == "-"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("multitap").chain(line.iter().copied()))
    }

    #[test]
    fn an_error_quotes_what_a_terminal_would_obey_as_text() {
        let title = "\u{1b}]0;owned\u{7}";
        for line in [
            vec![format!("--{title}")],
            vec!["completions".into(), title.into()],
            vec!["decode".into(), "--agent".into(), title.into()],
        ] {
            let line = std::iter::once("multitap".to_owned()).chain(line).map(OsString::from).collect::<Vec<_>>();
            let error = Cli::read(&line).unwrap_err().render().ansi().to_string();
            assert!(error.contains("␛]0;owned␇") && !error.contains(title), "{error:?}");
        }
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_prompt_may_follow_the_options() {
        let cli = parse(&["-p", "--output-format", "json", "hello"]).unwrap();
        assert_eq!(cli.run.print, Some(None));
        assert_eq!(cli.run.words.as_deref(), Some("hello"));
        let cli = parse(&["-p", "hello", "--output-format", "json"]).unwrap();
        assert_eq!(cli.run.print, Some(Some("hello".into())));
        let cli = parse(&["-p", "-"]).unwrap();
        assert_eq!(cli.run.print, Some(Some("-".into())));
    }

    #[test]
    fn agent_arguments_may_begin_with_a_hyphen() {
        let cli = parse(&["-p", "x", "--agent-arg", "--debug", "--agent-arg=-d"]).unwrap();
        assert_eq!(cli.run.session.with.agent_arg, ["--debug", "-d"]);
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            &["-p", "x", "--at", "m"][..],
            &["-p", "x", "-c", "-r", "id"],
            &["--output-format", "json"],
            &["-p", "x", "--env", "novalue"],
            &["-p", "x", "--sandbox", "some"],
            &["-p", "x", "--start-timeout", "0"],
            &["-p", "x", "--max-turns", "0"],
        ] {
            let error = parse(line).expect_err(&line.join(" "));
            assert_eq!(error.exit_code(), 2, "{line:?}");
        }
    }
}
