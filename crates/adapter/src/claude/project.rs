//! Project files that make Claude Code run or allow something when it starts.

use std::path::Path;

use multitap_event::SessionConfig;
use serde_json::Value;

use crate::project::Project;

/// Harmless keys of Claude's settings: they run nothing, allow nothing, and neither delete the user's conversations nor
/// disable the user's own hooks. Any other key may do so, in this version or a later one.
const HARMLESS: [&str; 9] = [
    "$schema",
    "alwaysThinkingEnabled",
    "disabledMcpjsonServers",
    "includeCoAuthoredBy",
    "language",
    "model",
    "respectGitignore",
    "spinnerTipsEnabled",
    "spinnerTipsOverride",
];
/// Front matter keys that make a command, an agent or a skill run or allow something.
const HEAD: [&str; 4] = ["allowed-tools", "hooks", "mcpServers", "permissionMode"];

/// Folders in which every file counts as active. A routine, like a scheduled task, is a prompt that Claude sends itself,
/// even when it starts; a workflow is a script.
const FOLDERS: [(&str, &str); 3] = [("plugins", "a plugin"), ("routines", "a routine"), ("workflows", "a workflow")];

/// Keeps Claude from sending itself prompts.
const NO_SCHEDULE: &str = "CLAUDE_CODE_DISABLE_CRON";

pub(super) fn look(project: &mut Project) {
    // In a linked worktree Claude Code reads local settings and skills of the main repository.
    for folder in project.up_to_repository().into_iter().chain(project.main_repository()) {
        let own = folder.join(".claude");
        if project.is_own(&own) {
            continue;
        }
        for name in ["settings.json", "settings.local.json"] {
            project.look_at_json(&own.join(name), |key, _| match key {
                [key] => HARMLESS.contains(key),
                [group, key] => *group == "permissions" && matches!(*key, "deny" | "ask"),
                _ => false,
            });
        }
        for name in ["commands", "agents", "skills"] {
            project.look_into(&own.join(name), acts);
        }
        for (name, what) in FOLDERS {
            project.look_into(&own.join(name), move |_, _| Some(what));
        }
        for name in ["launch.json", "scheduled_tasks.json"] {
            project.look_at_json(&own.join(name), |_, value| is_empty(value));
        }
    }
    for folder in project.ancestors() {
        // Files in the user's home folder, or above it, belong to no project.
        if project.is_home(&folder) {
            return;
        }
        project.look_at_json(&folder.join(".mcp.json"), |key, value| match key {
            ["mcpServers"] => is_empty(value),
            [_] => true,
            _ => false,
        });
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Whether a command, an agent or a skill runs or allows something when it is used.
fn acts(path: &Path, text: &str) -> Option<&'static str> {
    if path.extension().is_none_or(|ending| ending != "md") {
        return None;
    }
    if text.contains("!`") || text.contains("```!") {
        return Some("runs a command");
    }
    let text = text.trim_start_matches(|char: char| char.is_whitespace() || char == '\u{feff}').strip_prefix("---")?;
    // The head may also end in the middle of a line.
    let head = text.split_once("\n---").map_or(text, |(head, _)| head);
    // YAML reads `"allowed\x2dtools"` as `allowed-tools`.
    let escaped = head.contains('\\').then_some("escaped characters");
    HEAD.into_iter().find(|word| head.contains(word)).or(escaped)
}

/// Makes Claude Code read the user's settings alone: no settings, MCP servers, commands, agents or skills of the
/// project. The project's scheduled prompts are not a setting for Claude Code, so scheduling is disabled altogether.
pub(super) fn leave_out(config: &mut SessionConfig) {
    config.program.get_or_insert_default().args.extend(["--setting-sources", "user"].map(str::to_owned));
    config.environment.insert(NO_SCHEDULE.to_owned(), "1".to_owned());
}
