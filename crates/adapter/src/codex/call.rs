//! Tool calls in stored sessions, as the model wrote them: a name, and arguments and output as text.

use multitap_diff::of_file;
use multitap_event::{FileChange, FileChangeType, Timestamp, ToolId, ToolKind, one_line};
use serde_json::Value;

use super::change;
use super::command::typed;
use super::decode::CodexCodec;
use super::item::arguments;
use super::stored::texts_of;
use super::tools::{Ended, Native, OpenTool};
use super::wire::Fields;
use crate::codec::Step;
use crate::diff;
use crate::json::{JsonFields as _, one};

impl CodexCodec {
    pub(super) fn stored_call(&mut self, call: &Fields, now: Timestamp, out: &mut Step) {
        let Some(id) = call.text("callId").or_else(|| call.text("id")).map(ToolId::from) else { return };
        let name = call.text("name").unwrap_or("shell");
        let given = match call.text("arguments").or_else(|| call.text("input")) {
            Some(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
            None => call.get("action").cloned().unwrap_or_default(),
        };
        let given = arguments(Some(&given));
        if name == "update_plan" {
            self.todos.planned(&Fields(given.clone()), out);
        }
        let sort = kind(name);
        let (title, arguments, changes) = match sort {
            ToolKind::Shell => {
                let command = ["cmd", "command", "chars"].into_iter().find_map(|key| given.get(key));
                let command = command.map(typed).unwrap_or_default();
                let title = one_line(&command);
                (title, one("command", command), Vec::new())
            }
            ToolKind::Edit => {
                let changes = changes(given.text("input").unwrap_or_default(), &id);
                (change::title(&changes), given, changes)
            }
            _ => (name.to_owned(), given, Vec::new()),
        };
        let of_name = || Some(name.strip_prefix("mcp__")?.split_once("__")?.0.to_owned());
        let has_server = !matches!(sort, ToolKind::Shell | ToolKind::Edit);
        let server = if has_server { of_name().or_else(|| call.string("namespace")) } else { None };
        let (title, native) = (Some(title).filter(|title| !title.is_empty()), Native::changing(changes));
        let tool = OpenTool { title, arguments, server, native, ..OpenTool::new(id, name, sort, now) };
        self.emit.tools.start(tool, out);
    }

    pub(super) fn stored_call_over(&mut self, output: &Fields, now: Timestamp, out: &mut Step) {
        let Some(id) = output.text("callId").map(ToolId::from) else { return };
        // An event about the same call may have reported its end.
        if self.emit.tools.find(id.as_str()).is_none() && self.emit.tools.has_seen(id.as_str()) {
            return;
        }
        let said = text(output.get("output"));
        let exit_code = exit_code(&said);
        let failed = exit_code.is_some_and(|code| code != 0);
        let status = if said.contains("rejected by user") {
            "declined"
        } else if failed || said.starts_with("exec_command failed") || said.starts_with("patch rejected") {
            "failed"
        } else {
            "completed"
        };
        let result = Some(Value::from(plain_output(&said)));
        let ended = Ended { status: Some(status.to_owned()), result, exit_code, ..Ended::default() };
        self.end_call(&id, ended, now, out);
    }
}

fn kind(name: &str) -> ToolKind {
    match name {
        "shell" | "exec_command" | "shell_command" | "local_shell" | "container.exec" | "write_stdin" => {
            ToolKind::Shell
        }
        "apply_patch" => ToolKind::Edit,
        "update_plan" => ToolKind::Todo,
        "view_image" | "read_file" | "list_dir" => ToolKind::Read,
        "web_search" | "grep_files" | "tool_search" => ToolKind::Search,
        _ if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}

/// The text of an output: plain, or from JSON that has the exit code as well.
fn text(output: Option<&Value>) -> String {
    match output {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => texts_of(parts),
        Some(Value::Object(map)) => map.get("content").map_or_else(String::new, |content| text(Some(content))),
        _ => String::new(),
    }
}

fn exit_code(said: &str) -> Option<i32> {
    if let Ok(Value::Object(output)) = serde_json::from_str(said) {
        return output.get("metadata")?.get("exit_code")?.as_i64()?.try_into().ok();
    }
    let number = |beginning: &str| said.lines().find_map(|line| line.strip_prefix(beginning)?.trim().parse().ok());
    number("Process exited with code ").or_else(|| number("Exit code: "))
}

/// The output of the command, without the frame that Codex adds for the model.
fn plain_output(said: &str) -> String {
    if let Ok(Value::Object(output)) = serde_json::from_str(said)
        && let Some(text) = output.get("output").and_then(Value::as_str)
    {
        return text.to_owned();
    }
    let framed = said.starts_with("Chunk ID:") || said.starts_with("Exit code:") || said.starts_with("Wall time:");
    match said.split_once("Output:\n") {
        Some((_, output)) if framed => output.to_owned(),
        _ => said.to_owned(),
    }
}

/// The changes that a patch in the model's own format makes.
fn changes(patch: &str, tool: &ToolId) -> Vec<FileChange> {
    let mut found: Vec<(FileChange, String)> = Vec::new();
    for line in patch.lines() {
        let begins = [
            ("*** Add File: ", FileChangeType::Created),
            ("*** Update File: ", FileChangeType::Modified),
            ("*** Delete File: ", FileChangeType::Deleted),
        ];
        let begins = begins.into_iter().find_map(|(head, kind)| Some((line.strip_prefix(head)?, kind)));
        if let Some((path, change_type)) = begins {
            found.push((FileChange::of(path.trim(), change_type, tool), String::new()));
        } else if let (Some(to), Some((change, _))) = (line.strip_prefix("*** Move to: "), found.last_mut()) {
            change.old_path = Some(std::mem::replace(&mut change.file_path, to.trim().to_owned()));
        } else if let Some((_, body)) = found.last_mut().filter(|_| !line.starts_with("***")) {
            body.push_str(line);
            body.push('\n');
        }
    }
    let finish = |(mut change, body): (FileChange, String)| {
        match change.change_type {
            FileChangeType::Created => {
                let text: String =
                    body.lines().filter_map(|line| line.strip_prefix('+')).flat_map(|l| [l, "\n"]).collect();
                change.diff = Some(of_file(&change.file_path, None, &text)).filter(|diff| !diff.is_empty());
                change.after = Some(text);
            }
            FileChangeType::Modified => {
                let from = change.old_path.as_deref().unwrap_or(&change.file_path);
                change.diff = Some(diff::headed(from, Some(&change.file_path), &body));
            }
            FileChangeType::Deleted => {}
        }
        change
    };
    found.into_iter().map(finish).collect()
}
