//! Tool calls in the words that people know: what is done, and to what. Pure.

use std::fmt;

use multitap_event::{FileChange, FileChangeType, ToolKind, ToolStarted};

use crate::clean::clean_line;

/// `Edit` `src/main.rs`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ToolLabel {
    pub(crate) verb: String,
    pub(crate) target: String,
    /// The file or folder that the target is, as the agent named it.
    pub(crate) file: Option<String>,
}

impl ToolLabel {
    /// The label of a call. Paths in `folder` are shown relative to it.
    pub(crate) fn of(call: &ToolStarted, changes: &[FileChange], folder: Option<&str>) -> Self {
        let argument = |keys: &[&str]| {
            let text = |key: &&str| call.arguments.get(*key)?.as_str().filter(|text| !text.is_empty());
            keys.iter().find_map(text)
        };
        let rest = rest(call);
        let path = argument(&["file_path", "absolute_path", "notebook_path", "path", "dir_path"]);
        let place = |path: &str| relative(path, folder).to_owned();
        let changed = if let [only] = changes { Some(only.file_path.as_str()) } else { None };
        let (verb, target) = match call.tool_kind {
            ToolKind::Shell => match argument(&["command"]).unwrap_or(rest) {
                "" => (call.tool_name.as_str(), String::new()),
                command => ("Run", command.trim().to_owned()),
            },
            ToolKind::Read if lists(&call.tool_name) => ("List", place(path.unwrap_or(rest))),
            ToolKind::Read => ("Read", place(if rest.contains(" from line ") { rest } else { path.unwrap_or(rest) })),
            ToolKind::Edit => (edit_verb(call, changes), place(path.or(changed).unwrap_or(rest))),
            ToolKind::Search => {
                let sought = argument(&["pattern", "query"]).unwrap_or(rest);
                let within = path.map(|path| format!(" in {}", relative(path, folder))).unwrap_or_default();
                (search_verb(&call.tool_name), format!("{sought}{within}"))
            }
            ToolKind::Fetch => ("Fetch", argument(&["url"]).unwrap_or(rest).to_owned()),
            ToolKind::Agent => ("Agent", argument(&["description"]).unwrap_or(rest).to_owned()),
            ToolKind::Mcp => (call.title.as_deref().unwrap_or(&call.tool_name), String::new()),
            ToolKind::Todo => ("Plan", rest.to_owned()),
            ToolKind::Other => match call.tool_name.as_str() {
                "AskUserQuestion" | "ask_user" | "request_user_input" => {
                    let first = call.arguments.get("questions").and_then(|all| all.get(0)?.get("question")?.as_str());
                    ("Ask", first.unwrap_or(rest).to_owned())
                }
                "ExitPlanMode" | "exit_plan_mode" => ("Propose a plan", String::new()),
                name => (name, rest.to_owned()),
            },
        };
        // Only a command may have several lines: a name must not imitate what follows.
        let is_command = call.tool_kind == ToolKind::Shell;
        let target = if is_command { target } else { clean_line(&target) };
        let file = path.or(changed).filter(|_| matches!(call.tool_kind, ToolKind::Read | ToolKind::Edit));
        let file = file.filter(|file| target == clean_line(relative(file, folder))).map(str::to_owned);
        Self { verb: verb.to_owned(), target, file }
    }
}

impl fmt::Display for ToolLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.verb)?;
        if self.target.is_empty() { Ok(()) } else { write!(f, " {}", self.target) }
    }
}

/// The title without the name of the tool and without its verb.
fn rest(call: &ToolStarted) -> &str {
    const VERBS: [&str; 13] = [
        "Run ",
        "Read ",
        "List ",
        "Edit ",
        "Change ",
        "Create ",
        "Writing to ",
        "Write ",
        "Delete ",
        "Fetch ",
        "Find ",
        "Search for ",
        "Plan ",
    ];
    let title = call.title.as_deref().unwrap_or_default().trim();
    let bare = title.strip_prefix(call.tool_name.as_str()).map(str::trim_start);
    let has_verb = |kind| !matches!(kind, ToolKind::Shell | ToolKind::Other | ToolKind::Agent);
    let verb = VERBS.iter().find(|verb| title.starts_with(**verb)).filter(|_| has_verb(call.tool_kind));
    match (bare, verb) {
        (Some(bare), _) => bare,
        (None, Some(verb)) => &title[verb.len()..],
        (None, None) => title,
    }
}

/// The path without the folder of the session.
pub(crate) fn relative<'a>(path: &'a str, folder: Option<&str>) -> &'a str {
    let inside = folder.and_then(|folder| path.strip_prefix(folder.trim_end_matches('/')));
    match inside.map(|inside| (inside, inside.strip_prefix('/'))) {
        Some(("", _)) => ".",
        Some((_, Some(inside))) if !inside.is_empty() => inside,
        _ => path,
    }
}

fn lists(name: &str) -> bool {
    matches!(name, "LS" | "list_directory" | "list_dir" | "ListFiles")
}

fn edit_verb(call: &ToolStarted, changes: &[FileChange]) -> &'static str {
    let title = call.title.as_deref().unwrap_or_default();
    let begins = |verbs: &[&str]| verbs.iter().any(|verb| title.starts_with(verb));
    match changes {
        [only] if only.change_type == FileChangeType::Deleted => "Delete",
        [only] if only.change_type == FileChangeType::Created => "Write",
        _ if begins(&["Delete "]) => "Delete",
        _ if begins(&["Create ", "Write ", "Writing to "]) && changes.is_empty() => "Write",
        _ => "Edit",
    }
}

fn search_verb(name: &str) -> &'static str {
    match name {
        "Glob" | "glob" => "Find",
        "WebSearch" | "web_search" | "google_web_search" | "google_search" => "Search the web for",
        _ => "Search",
    }
}

/// How many lines unified diffs add and remove.
pub(crate) fn counts<'a>(diffs: impl Iterator<Item = &'a str>) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    for diff in diffs {
        let mut in_hunk = false;
        let mut lines = diff.lines().peekable();
        while let Some(line) = lines.next() {
            let is_header = line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
            match line.as_bytes().first() {
                // A removed line may look like a header; only the first one of a file is outside of a hunk.
                Some(b'-') if is_header && !in_hunk => drop(lines.next()),
                Some(b'@') => in_hunk = true,
                Some(b'+') => added += 1,
                Some(b'-') => removed += 1,
                _ => {}
            }
        }
    }
    (added, removed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(kind: &str, name: &str, title: &str, arguments: &serde_json::Value, expected: &str) {
        let call = json!({ "toolId": "t", "toolName": name, "toolKind": kind, "title": title, "arguments": arguments });
        let call: ToolStarted = serde_json::from_value(call).unwrap();
        assert_eq!(ToolLabel::of(&call, &[], Some("/work")).to_string(), expected);
    }

    #[test]
    fn each_agent_does_the_same_in_the_same_words() {
        let none = json!({});
        check("shell", "Bash", "cargo test", &json!({ "command": "cargo test" }), "Run cargo test");
        check("shell", "run_shell_command", "cargo test", &none, "Run cargo test");
        check("shell", "KillShell", "KillShell", &none, "KillShell");
        check("read", "Read", "Read /work/a.rs", &json!({ "file_path": "/work/a.rs" }), "Read a.rs");
        check("read", "read_file", "Read a.rs", &json!({ "absolute_path": "a.rs" }), "Read a.rs");
        check(
            "read",
            "read_file",
            "Read a.rs from line 7, 9 lines at most",
            &none,
            "Read a.rs from line 7, 9 lines at most",
        );
        check("read", "LS", "LS /work", &json!({ "path": "/work" }), "List .");
        check("edit", "Edit", "Edit /work/src/a.rs", &json!({ "file_path": "/work/src/a.rs" }), "Edit src/a.rs");
        check("edit", "replace", "Change a.rs", &json!({ "file_path": "a.rs" }), "Edit a.rs");
        check("edit", "write_file", "Writing to b.rs", &json!({ "file_path": "/work/b.rs" }), "Write b.rs");
        check("edit", "apply_patch", "Edit /work/a.rs and 2 more files", &none, "Edit a.rs and 2 more files");
        check("edit", "apply_patch", "Delete /elsewhere/a.rs", &none, "Delete /elsewhere/a.rs");
        check("search", "Grep", "Grep fn", &json!({ "pattern": "fn", "path": "/work/src" }), "Search fn in src");
        check("search", "glob", "Find *.rs", &none, "Find *.rs");
        check("fetch", "WebFetch", "WebFetch http://x", &json!({ "url": "http://x" }), "Fetch http://x");
        check("mcp", "mcp__tiny__echo", "echo (tiny)", &none, "echo (tiny)");
        check("todo", "write_todos", "Plan of 2 steps", &none, "Plan of 2 steps");
        check(
            "other",
            "AskUserQuestion",
            "AskUserQuestion",
            &json!({ "questions": [{ "question": "Why?" }] }),
            "Ask Why?",
        );
        check("other", "ToDo", "Read the mail", &none, "ToDo Read the mail");
    }

    #[test]
    fn only_a_folder_itself_is_left_out_of_a_path() {
        let shown = |path| relative(path, Some("/work"));
        assert_eq!(
            ["/work/a", "/work", "/workshop/a", "/else", "a"].map(shown),
            ["a", ".", "/workshop/a", "/else", "a"]
        );
        assert_eq!(relative("/work/a", None), "/work/a");
    }

    #[test]
    fn changed_lines_are_counted_without_the_headers() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n-- old\n+++ counter\n+b\n c\n";
        assert_eq!(counts([diff, diff].into_iter()), (4, 2));
        assert_eq!(counts(std::iter::empty()), (0, 0));
    }
}
