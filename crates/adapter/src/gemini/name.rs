//! Gemini's tools by name: the kind of each, and a one-line title for a call.

use multitap_event::{ToolKind, one_line};
use serde_json::{Map, Value};

use crate::json::JsonFields as _;

/// The tool's name in the id of a call: `run_shell_command__call_78bb84eb59`.
pub(crate) fn of_call(id: &str) -> Option<&str> {
    id.split_once("__").map(|(name, _)| name).filter(|name| !name.is_empty())
}

/// Server and tool of `mcp_SERVER_TOOL`. Both may contain underscores; the title, if there is one, shows where to
/// split.
pub(crate) fn mcp<'a>(name: &'a str, title: Option<&str>) -> Option<(&'a str, &'a str)> {
    let rest = name.strip_prefix("mcp_")?;
    let titled = title.and_then(|title| {
        let (_, server) = title.rsplit_once(" (")?;
        let server = server.strip_suffix(" MCP Server)")?;
        let tool = rest.strip_prefix(server)?.strip_prefix('_')?;
        Some((&rest[..server.len()], tool))
    });
    titled.or_else(|| rest.split_once('_')).filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

pub(crate) fn kind(name: &str) -> ToolKind {
    match name {
        "run_shell_command" | "ShellTool" | "Bash" | "Shell" => ToolKind::Shell,
        "read_file" | "read_many_files" | "list_directory" => ToolKind::Read,
        "write_file" | "replace" => ToolKind::Edit,
        "glob" | "grep_search" | "search_file_content" | "google_web_search" | "google_search" => ToolKind::Search,
        "web_fetch" => ToolKind::Fetch,
        "invoke_agent" | "codebase_investigator" => ToolKind::Agent,
        "write_todos" => ToolKind::Todo,
        _ if mcp(name, None).is_some() => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

pub(crate) fn title(name: &str, arguments: &Map<String, Value>) -> String {
    let of = |keys: &[&str]| keys.iter().find_map(|key| arguments.text(key)).map(|what| format!("{name} {what}"));
    let title = match kind(name) {
        ToolKind::Shell => arguments.string("command"),
        ToolKind::Read | ToolKind::Edit => of(&["file_path", "absolute_path", "dir_path", "path"]),
        ToolKind::Search => of(&["pattern", "query"]),
        ToolKind::Fetch => of(&["url", "prompt"]),
        ToolKind::Mcp => mcp(name, None).map(|(server, tool)| format!("{tool} ({server})")),
        ToolKind::Agent | ToolKind::Todo | ToolKind::Other => None,
    };
    one_line(title.as_deref().unwrap_or(name))
}
