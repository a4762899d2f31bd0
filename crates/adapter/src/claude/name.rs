//! Claude's tools by name: the kind of each, and a one-line title for a call.

use multitap_event::{ToolKind, one_line};
use serde_json::{Map, Value};

use crate::json::JsonFields as _;

/// Server and tool of `mcp__SERVER__TOOL`.
pub(super) fn mcp(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}

pub(super) fn kind(name: &str) -> ToolKind {
    match name {
        "Bash" | "PowerShell" | "BashOutput" | "KillShell" | "KillBash" => ToolKind::Shell,
        "Read" | "NotebookRead" | "LS" => ToolKind::Read,
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        "Grep" | "Glob" | "WebSearch" | "ToolSearch" => ToolKind::Search,
        "WebFetch" => ToolKind::Fetch,
        "Agent" | "Task" => ToolKind::Agent,
        "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" => ToolKind::Todo,
        _ if mcp(name).is_some() => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

pub(super) fn title(name: &str, arguments: &Map<String, Value>) -> String {
    let of = |key: &str| arguments.text(key).map(|what| format!("{name} {what}"));
    let title = match name {
        "Bash" | "PowerShell" => arguments.string("command"),
        "Read" | "Write" | "Edit" | "MultiEdit" => of("file_path"),
        "NotebookEdit" | "NotebookRead" => of("notebook_path"),
        "LS" => of("path"),
        "Grep" | "Glob" => of("pattern"),
        "WebSearch" | "ToolSearch" => of("query"),
        "WebFetch" => of("url"),
        "Agent" | "Task" => of("description"),
        "TaskCreate" => of("subject"),
        _ => mcp(name).map(|(server, tool)| format!("{tool} ({server})")),
    };
    one_line(title.as_deref().unwrap_or(name))
}
