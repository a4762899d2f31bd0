//! The peculiarities of single agents that the protocol does not define.

use multitap_event::{AgentType, ApprovalMode, Mode, ToolKind};
use serde_json::{Map, Value};

use super::content::Shown;
use super::wire::ToolCall;
use crate::gemini::name as gemini;
use crate::json::{JsonFields as _, arguments, one};

/// The agent whose peculiarities to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    Plain,
    Gemini,
}

impl Flavor {
    pub(super) fn agent(self) -> AgentType {
        match self {
            Self::Plain => AgentType::Acp,
            Self::Gemini => AgentType::Gemini,
        }
    }

    /// The tool's own name. Gemini reports it only as the beginning of the call's id.
    pub(super) fn tool_name(self, call: &ToolCall) -> Option<String> {
        let claude = call.meta.field("claudeCode").string("toolName");
        call.name.clone().or(claude).or_else(|| match self {
            Self::Plain => None,
            Self::Gemini => gemini::of_call(&call.tool_call_id).map(str::to_owned),
        })
    }

    /// Server and tool of a call to an MCP server.
    pub(super) fn mcp(self, name: &str, title: Option<&str>) -> Option<(String, String)> {
        let (server, tool) = match self {
            Self::Plain => name.strip_prefix("mcp__")?.split_once("__")?,
            Self::Gemini => gemini::mcp(name, title)?,
        };
        Some((server.to_owned(), tool.to_owned()))
    }

    /// The kind of a tool, by the protocol's word for it and by its name.
    pub(super) fn tool_kind(self, kind: &str, name: &str) -> ToolKind {
        match kind {
            "execute" => ToolKind::Shell,
            "read" => ToolKind::Read,
            "edit" | "delete" | "move" => ToolKind::Edit,
            "search" => ToolKind::Search,
            "fetch" => ToolKind::Fetch,
            _ => match self {
                Self::Plain => match name {
                    "Agent" | "Task" => ToolKind::Agent,
                    "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" => ToolKind::Todo,
                    _ => ToolKind::Other,
                },
                Self::Gemini => gemini::kind(name),
            },
        }
    }

    /// A call's arguments. Gemini does not send them, so they are reconstructed from the content that it shows.
    pub(super) fn arguments(self, call: &ToolCall, shown: &Shown, is_mcp: bool) -> Map<String, Value> {
        match (&call.raw_input, self) {
            (Some(Value::Null) | None, Self::Gemini) => {
                let text = |key: &str, value: Option<&str>| value.map(|value| one(key, value)).unwrap_or_default();
                match call.kind.as_deref() {
                    Some("execute") => text("command", call.title.as_deref()),
                    _ if is_mcp => serde_json::from_str(&shown.text).unwrap_or_default(),
                    _ => text("file_path", shown.path.as_deref()),
                }
            }
            (given, _) => arguments(given.clone()),
        }
    }

    /// The mode that a piece of text announces, for an agent that reports modes in text.
    pub(super) fn mode_in_text(self, text: &str) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Gemini => text.strip_prefix("[MODE_UPDATE] ").map(str::trim),
        }
    }

    /// A thought without an empty heading, which Gemini may put before it.
    pub(super) fn thought(self, text: String) -> String {
        match (self, text.strip_prefix("****\n")) {
            (Self::Gemini, Some(rest)) => rest.to_owned(),
            _ => text,
        }
    }

    /// Whether the agent sends more about a conversation after opening it: its history, its commands.
    pub(super) fn tells_after_opening(self) -> bool {
        self == Self::Gemini
    }

    /// Whether the agent streams the output of commands, if the client asks for it.
    pub(super) fn shows_terminals(self) -> bool {
        self == Self::Plain
    }

    /// Whether the agent reports nothing more of a denied call.
    pub(super) fn silent_after_refusal(self) -> bool {
        self == Self::Gemini
    }

    /// Whether a call that is reported as completed was really stopped. `cancelling` says whether the turn is being
    /// cancelled.
    pub(super) fn was_stopped(self, text: &str, cancelling: bool) -> bool {
        match self {
            Self::Plain => cancelling && (text.contains("User aborted") || text.contains("ancelled by user")),
            Self::Gemini => text.contains("cancelled by user") || text.contains("Operation cancelled"),
        }
    }

    /// Whether a call that is reported as failed was really denied by a rule.
    pub(super) fn was_denied(self, text: &str) -> bool {
        self == Self::Gemini && text.contains("denied by policy")
    }

    /// The agent's word for a mode, among those it offers; else an error with the reason.
    pub(super) fn mode_word(self, mode: &Mode, offered: &[String]) -> Result<String, String> {
        let known = |word: &str| offered.iter().find(|one| one.eq_ignore_ascii_case(word)).cloned();
        let found = match (mode, self) {
            (Mode::Native(word), _) => known(word),
            (Mode::Unified(mode), Self::Gemini) => {
                let word = mode.native(AgentType::Gemini).map(|native| native.word);
                word.and_then(|word| if offered.is_empty() { Some(word.to_owned()) } else { known(word) })
            }
            (Mode::Unified(mode), Self::Plain) => mode.usual_words().iter().find_map(|word| known(word)),
        };
        found.ok_or_else(|| {
            if offered.is_empty() { "it has no modes".to_owned() } else { format!("it offers {}", offered.join(", ")) }
        })
    }

    pub(super) fn unified_mode(self, word: &str) -> Option<ApprovalMode> {
        match self {
            Self::Gemini => ApprovalMode::from_native(AgentType::Gemini, word),
            Self::Plain => ApprovalMode::ALL
                .into_iter()
                .find(|mode| mode.usual_words().iter().any(|usual| usual.eq_ignore_ascii_case(word))),
        }
    }
}
