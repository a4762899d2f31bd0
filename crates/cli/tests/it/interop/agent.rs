//! The agents of the table: where their programs are, what they are started with, what they cannot do.

mod cannot;

use std::path::{Path, PathBuf};

use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::{Scratch, cli, interop};
use serde_json::{Value, json};

use self::cannot::{ACP, BUILTIN, CODEX, GEMINI, SCHEMA};
pub(crate) use self::cannot::{Cannot, Refusal};

/// An agent that joins the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    Codex,
    Gemini,
    /// Any agent that speaks ACP, by its command: here Claude behind that protocol.
    Acp,
    /// Multitap's own, whose model is asked in this way.
    Builtin(Api),
}

/// How a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    /// OpenAI's responses.
    OpenAi,
    Gemini,
}

/// What an agent makes of a limit on its thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thinking {
    Tokens,
    /// The model takes no number of tokens, but can be told how hard to try.
    Effort,
    Refuses,
}

impl Agent {
    pub(crate) const ALL: [Self; 7] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Acp,
        Self::Builtin(Api::Anthropic),
        Self::Builtin(Api::OpenAi),
        Self::Builtin(Api::Gemini),
    ];

    /// Its word in events, errors and settings.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Acp => "acp",
            Self::Builtin(_) => "builtin",
        }
    }

    /// The pinned program, if it may be driven here.
    pub(crate) fn program(self) -> Option<PathBuf> {
        match self {
            Self::Claude => interop::find(cli::CLAUDE),
            Self::Codex => interop::find(cli::CODEX),
            Self::Gemini => interop::find(cli::GEMINI),
            Self::Acp => interop::find(cli::CLAUDE_ACP),
            Self::Builtin(_) => Some(env!("CARGO_BIN_EXE_multitap").into()),
        }
    }

    /// The variable that names its program, unless `--agent` does.
    pub(crate) fn program_variable(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("MULTITAP_CLAUDE_BIN"),
            Self::Codex => Some("MULTITAP_CODEX_BIN"),
            Self::Gemini => Some("MULTITAP_GEMINI_BIN"),
            Self::Acp | Self::Builtin(_) => None,
        }
    }

    /// A model other than its default.
    pub(crate) fn other_model(self) -> &'static str {
        match self {
            Self::Claude => "claude-sonnet-4-5",
            Self::Codex => "gpt-5.4",
            Self::Gemini => "gemini-2.5-flash",
            Self::Acp => "sonnet",
            Self::Builtin(Api::Anthropic) => "anthropic/claude-sonnet-4-5",
            Self::Builtin(Api::OpenAi) => "openai/gpt-5.4",
            Self::Builtin(Api::Gemini) => "gemini/gemini-2.5-flash",
        }
    }

    /// A slash command that it answers without the model.
    pub(crate) fn local_command(self) -> &'static str {
        match self {
            Self::Claude | Self::Acp => "/context",
            Self::Codex => "",
            Self::Gemini | Self::Builtin(_) => "/memory show",
        }
    }

    /// Makes it give up on a failing model soon.
    pub(crate) fn few_retries(self) -> &'static [&'static str] {
        match self {
            Self::Claude | Self::Acp => &["--env", "CLAUDE_CODE_MAX_RETRIES=2"],
            // The settings of the place say so.
            Self::Codex | Self::Gemini => &[],
            // It waits no longer than the model wants it to.
            Self::Builtin(_) => &[],
        }
    }

    /// Whether an answer may bring other content than the agent asked for.
    pub(crate) fn takes_other_content(self) -> bool {
        match self {
            Self::Claude | Self::Builtin(_) => true,
            Self::Codex | Self::Gemini | Self::Acp => false,
        }
    }

    /// Whether its turns tell what they cost, and what each model used.
    pub(crate) fn counts(self) -> (bool, bool) {
        match self {
            Self::Claude | Self::Acp => (true, true),
            Self::Codex => (false, false),
            Self::Gemini | Self::Builtin(_) => (false, true),
        }
    }

    /// Whether it takes what MCP servers ask the user for (elicitations) to the user.
    pub(crate) fn elicits(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::Acp | Self::Builtin(_) => true,
            Self::Gemini => false,
        }
    }

    /// Whether its model hears what somebody said with a no.
    pub(crate) fn hears_feedback(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::Builtin(_) => true,
            Self::Gemini | Self::Acp => false,
        }
    }

    /// Its name for the shell tool, and a rule that allows `touch`.
    pub(crate) fn shell_rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Claude | Self::Acp => ("Bash", "Bash(touch:*)"),
            Self::Codex => ("shell", "shell"),
            Self::Gemini => ("run_shell_command", "run_shell_command(touch)"),
            Self::Builtin(_) => ("run_shell_command", "run_shell_command(touch:*)"),
        }
    }

    /// Whether it asks before it reads a file, when it asks for everything.
    pub(crate) fn asks_before_reading(self) -> bool {
        match self {
            Self::Claude | Self::Gemini | Self::Acp | Self::Builtin(_) => false,
            Self::Codex => true,
        }
    }

    /// What becomes of a limit on how many tokens it may think.
    pub(crate) fn limits_thinking(self) -> Thinking {
        match self {
            Self::Claude | Self::Builtin(Api::Anthropic | Api::Gemini) => Thinking::Tokens,
            Self::Builtin(Api::OpenAi) => Thinking::Effort,
            Self::Codex | Self::Gemini | Self::Acp => Thinking::Refuses,
        }
    }

    /// Modes, whether a file is written in them, and whether somebody is asked first.
    pub(crate) fn modes(self) -> &'static [(&'static str, bool, bool)] {
        match self {
            Self::Claude => &[
                ("ask", false, true),
                ("auto-edit", true, false),
                ("auto-all", true, false),
                ("dont-ask", false, false),
            ],
            // Without asking it writes in the workspace, and nowhere else.
            Self::Codex => &[("ask", false, true), ("auto-all", true, false), ("dont-ask", true, false)],
            Self::Gemini | Self::Acp => &[("ask", false, true), ("auto-edit", true, false), ("auto-all", true, false)],
            Self::Builtin(_) => &[
                ("ask", false, true),
                ("ask-dangerous", false, true),
                ("auto-edit", true, false),
                ("auto-all", true, false),
                ("dont-ask", false, false),
            ],
        }
    }

    /// A mode in which a file is written unasked.
    pub(crate) fn unasked_mode(self) -> &'static str {
        match self {
            Self::Claude | Self::Gemini | Self::Acp | Self::Builtin(_) => "autoEdit",
            Self::Codex => "autoAll",
        }
    }

    /// Options that it cannot honour, and the word for them.
    pub(crate) fn refused_options(self) -> &'static [([&'static str; 2], &'static str)] {
        match self {
            Self::Claude => &[
                (["--approval-mode", "ask-dangerous"], "ask-dangerous"),
                (["--sandbox", "read-only"], "sandbox"),
                (["--sandbox", "workspace-write"], "sandbox"),
            ],
            Self::Codex => &[
                (["--approval-mode", "auto-edit"], "auto-edit"),
                (["--approval-mode", "on-failure"], "on-failure"),
                (["--max-turns", "3"], "max turns"),
                (["--allow-tool", "shell"], "allowed tools"),
                (["--block-tool", "shell"], "blocked tools"),
            ],
            Self::Gemini => &[
                (["--approval-mode", "ask-dangerous"], "ask-dangerous"),
                (["--approval-mode", "dont-ask"], "dont-ask"),
                (["--sandbox", "read-only"], "sandbox"),
                (["--append-system-prompt", "Be brief."], "append system prompt"),
                (["--block-tool", "run_shell_command(rm)"], "blocked tools"),
            ],
            Self::Acp => &[
                // What it does not offer comes out only when it runs.
                (["--approval-mode", "ask-dangerous"], "ask-dangerous"),
                (["--approval-mode", "dont-ask"], "dont-ask"),
                (["--model", "no-such-model"], "model no-such-model"),
                (["--sandbox", "read-only"], "sandbox"),
                (["--system-prompt", "Be brief."], "system prompt"),
                (["--append-system-prompt", "Be brief."], "append system prompt"),
                (["--output-schema", SCHEMA], "output schema"),
                (["--max-turns", "3"], "max turns"),
                (["--allow-tool", "Bash"], "allowed tools"),
                (["--block-tool", "Bash"], "blocked tools"),
            ],
            Self::Builtin(_) => &[
                (["--approval-mode", "on-failure"], "on-failure"),
                (["--model", "anthropic/"], "--model"),
                (["--agent-arg", "x"], "--agent-arg"),
                (["--allow-tool", "run_shell_command(touch"], "--allow-tool"),
                (["--block-tool", "web_fetch(https://example.com/)"], "--block-tool"),
            ],
        }
    }

    /// The options that give it an MCP server of its own, which `sh` runs.
    pub(crate) fn mcp_server(self, scratch: &Scratch, name: &str, script: &Path) -> Vec<String> {
        let script = script.display().to_string();
        match self {
            Self::Claude => {
                let config = json!({"mcpServers": {name: {"command": "/bin/sh", "args": [script]}}});
                let config = scratch.write("mcp.json", &config.to_string()).unwrap();
                vec!["--agent-arg".to_owned(), format!("--mcp-config={}", config.display())]
            }
            Self::Codex => {
                let server = format!(r#"mcp_servers.{name}={{command="/bin/sh",args=["{script}"]}}"#);
                ["--agent-arg=-c".to_owned(), format!("--agent-arg={server}")].to_vec()
            }
            Self::Gemini => {
                let settings = json!({"mcpServers": {name: {"command": "/bin/sh", "args": [script]}}});
                scratch.write(".gemini/settings.json", &settings.to_string()).unwrap();
                vec!["--trust".to_owned()]
            }
            Self::Acp => {
                let settings = json!({"mcpServers": {name: {"command": "/bin/sh", "args": [script]}}});
                std::fs::write(scratch.home().join(".claude.json"), settings.to_string()).unwrap();
                Vec::new()
            }
            Self::Builtin(_) => {
                let settings = json!({"mcpServers": {name: {"command": "/bin/sh", "args": [script]}}});
                let home = scratch.root().join("multitap");
                std::fs::create_dir_all(&home).unwrap();
                std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
                Vec::new()
            }
        }
    }

    /// What the model does to answer in the shape that was asked for.
    pub(crate) fn structured_answer(self, answer: &Value) -> Vec<Reply> {
        match self {
            Self::Claude => {
                vec![Reply::call(Tool::native("StructuredOutput", answer.clone())), Reply::text("done")]
            }
            Self::Codex | Self::Builtin(_) => vec![Reply::text(&answer.to_string())],
            Self::Gemini | Self::Acp => Vec::new(),
        }
    }

    /// What the model does to plan to look (it is at that) and then to leap; and what lets it plan at all.
    pub(crate) fn plans(self) -> (Vec<Reply>, &'static [&'static str]) {
        let task = |name: &str, args| Reply::call(Tool::native(name, args));
        match self {
            Self::Claude | Self::Acp => (
                vec![
                    task("TaskCreate", json!({"subject": "Look", "description": "Look first", "activeForm": "Look"})),
                    task("TaskCreate", json!({"subject": "Leap", "description": "Then leap", "activeForm": "Leap"})),
                    task("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
                ],
                match self {
                    Self::Acp => &["--env", "ANTHROPIC_MODEL=claude-sonnet-4-5"],
                    _ => &["--model", "claude-sonnet-4-5"],
                },
            ),
            Self::Codex => {
                let plan = json!([{"step": "Look", "status": "in_progress"}, {"step": "Leap", "status": "pending"}]);
                let options = &["--agent-arg=-c", "--agent-arg=tools.update_plan={enabled=true}"];
                (vec![task("update_plan", json!({"plan": plan}))], options)
            }
            Self::Gemini => (Vec::new(), &[]),
            Self::Builtin(_) => {
                let todo = |text: &str, status: &str| json!({"description": text, "status": status});
                let todos = json!([todo("Look", "in_progress"), todo("Leap", "pending")]);
                (vec![task("write_todos", json!({"todos": todos}))], &[])
            }
        }
    }

    /// What the model does to ask this, with these answers to choose from.
    pub(crate) fn asks(self, questions: &[&str], labels: &[&str]) -> Reply {
        match self {
            // One at a time; what stands for several is a question to be answered in own words.
            Self::Builtin(_) => {
                let (question, labels) = match questions {
                    [one] => (one, labels),
                    several => (several.last().expect("a question"), &[][..]),
                };
                Reply::call(Tool::native("ask_user", json!({"question": question, "choices": labels})))
            }
            Self::Claude | Self::Codex | Self::Gemini | Self::Acp => {
                let label = |label: &&str| json!({"label": label, "description": format!("it is {label}")});
                let labels: Vec<Value> = labels.iter().map(label).collect();
                let ask = |question: &&str| json!({"question": question, "header": "Ask", "multiSelect": false, "options": labels});
                let questions: Vec<Value> = questions.iter().map(ask).collect();
                Reply::call(Tool::native("AskUserQuestion", json!({"questions": questions})))
            }
        }
    }

    /// Rows that it cannot do.
    pub(crate) fn exceptions(self) -> &'static [(&'static str, Cannot)] {
        match self {
            Self::Claude => &[],
            Self::Codex => CODEX,
            Self::Gemini => GEMINI,
            Self::Acp => ACP,
            Self::Builtin(_) => BUILTIN,
        }
    }

    /// Why it cannot do a row, if it cannot.
    pub(crate) fn cannot(self, row: &str) -> Option<Cannot> {
        self.exceptions().iter().find(|(name, _)| *name == row).map(|(_, cannot)| *cannot)
    }
}
