//! Tool calls in neutral form, and each CLI's name for the same tool.

use serde_json::{Value, json};

use super::Api;

/// A tool the scripted model calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Tool {
    Shell(String),
    Write {
        path: String,
        content: String,
    },
    /// Replaces one passage of a file.
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Read(String),
    Mcp {
        server: String,
        tool: String,
        args: Value,
    },
    /// Calls a tool by the CLI's own name for it.
    Native {
        name: String,
        args: Value,
    },
}

impl Tool {
    pub fn shell(command: &str) -> Self {
        Self::Shell(command.to_owned())
    }

    pub fn write(path: impl AsRef<std::path::Path>, content: &str) -> Self {
        Self::Write { path: path.as_ref().to_string_lossy().into_owned(), content: content.to_owned() }
    }

    /// Replaces `old` by `new` in a file.
    pub fn edit(path: impl AsRef<std::path::Path>, old: &str, new: &str) -> Self {
        Self::Edit { path: path.as_ref().to_string_lossy().into_owned(), old: old.to_owned(), new: new.to_owned() }
    }

    pub fn read(path: impl AsRef<std::path::Path>) -> Self {
        Self::Read(path.as_ref().to_string_lossy().into_owned())
    }

    pub fn mcp(server: &str, tool: &str, args: Value) -> Self {
        Self::Mcp { server: server.to_owned(), tool: tool.to_owned(), args }
    }

    /// Calls a tool by the CLI's own name for it.
    pub fn native(name: &str, args: Value) -> Self {
        Self::Native { name: name.to_owned(), args }
    }
}

/// A tool call in the form of one CLI.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NativeCall {
    pub(super) name: String,
    /// Codex groups the tools of an MCP server in a namespace.
    pub(super) namespace: Option<String>,
    /// A string for Codex's freeform tools, else an object.
    pub(super) args: Value,
}

impl NativeCall {
    fn new(name: impl Into<String>, args: Value) -> Self {
        Self { name: name.into(), namespace: None, args }
    }
}

/// Finds the name and the arguments for the CLI behind `api`. `offered` are the tools its request lists.
pub(super) fn native(tool: &Tool, api: Api, offered: &[String]) -> NativeCall {
    match (tool, api) {
        (Tool::Native { name, args }, _) => NativeCall::new(name, args.clone()),
        (Tool::Mcp { server, tool, args }, _) if offered.contains(&format!("mcp__{server}__{tool}")) => {
            NativeCall::new(format!("mcp__{server}__{tool}"), args.clone())
        }
        // An agent with the names of Gemini CLI, over whichever API.
        (tool, _) if offered.iter().any(|name| name == "run_shell_command") => gemini(tool),
        (tool, Api::Anthropic) => claude(tool),
        (tool, Api::OpenAi) => codex(tool, offered),
        (tool, Api::Gemini | Api::OpenAiChat) => gemini(tool),
    }
}

fn claude(tool: &Tool) -> NativeCall {
    match tool {
        Tool::Shell(command) => {
            NativeCall::new("Bash", json!({"command": command, "description": "Run a scripted command"}))
        }
        Tool::Write { path, content } => NativeCall::new("Write", json!({"file_path": path, "content": content})),
        Tool::Edit { path, old, new } => {
            NativeCall::new("Edit", json!({"file_path": path, "old_string": old, "new_string": new}))
        }
        Tool::Read(path) => NativeCall::new("Read", json!({"file_path": path})),
        Tool::Mcp { server, tool, args } => NativeCall::new(format!("mcp__{server}__{tool}"), args.clone()),
        Tool::Native { name, args } => NativeCall::new(name, args.clone()),
    }
}

fn codex(tool: &Tool, offered: &[String]) -> NativeCall {
    match tool {
        Tool::Shell(command) => codex_shell(command, offered),
        Tool::Write { path, content } => codex_patch(&add_file(path, content), offered),
        Tool::Edit { path, old, new } => codex_patch(&update_file(path, old, new), offered),
        Tool::Read(path) => codex_shell(&format!("cat '{path}'"), offered),
        Tool::Mcp { server, tool, args } => {
            let server = format!("mcp__{}", server.replace('-', "_"));
            let flat = format!("{server}__{tool}");
            if offered.contains(&flat) {
                return NativeCall::new(flat, args.clone());
            }
            if takes_code(offered) {
                return code(&format!("text(JSON.stringify(await tools.{flat}({args})));"));
            }
            NativeCall { namespace: Some(server), ..NativeCall::new(tool, args.clone()) }
        }
        Tool::Native { name, args } => NativeCall::new(name, args.clone()),
    }
}

fn codex_shell(command: &str, offered: &[String]) -> NativeCall {
    let has = |name: &str| offered.iter().any(|tool| tool == name);
    if has("exec_command") {
        NativeCall::new("exec_command", json!({"cmd": command}))
    } else if has("shell_command") {
        NativeCall::new("shell_command", json!({"command": command}))
    } else if takes_code(offered) {
        code(&format!("const result = await tools.exec_command({});\ntext(result.output);", json!({"cmd": command})))
    } else {
        NativeCall::new("shell", json!({"command": ["bash", "-lc", command]}))
    }
}

fn codex_patch(patch: &str, offered: &[String]) -> NativeCall {
    if takes_code(offered) {
        return code(&format!("text(await tools.apply_patch({}));", Value::from(patch)));
    }
    NativeCall::new("apply_patch", patch.into())
}

/// Newer models have one freeform tool for almost everything, whose argument is a program.
fn takes_code(offered: &[String]) -> bool {
    let has = |name: &str| offered.iter().any(|tool| tool == name);
    has("exec") && !has("exec_command") && !has("apply_patch")
}

fn code(program: &str) -> NativeCall {
    NativeCall::new("exec", program.into())
}

fn add_file(path: &str, content: &str) -> String {
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

fn update_file(path: &str, old: &str, new: &str) -> String {
    let minus: String = old.lines().map(|line| format!("-{line}\n")).collect();
    let plus: String = new.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n{minus}{plus}*** End Patch\n")
}

fn gemini(tool: &Tool) -> NativeCall {
    match tool {
        Tool::Shell(command) => {
            NativeCall::new("run_shell_command", json!({"command": command, "description": "Run a scripted command"}))
        }
        Tool::Write { path, content } => NativeCall::new("write_file", json!({"file_path": path, "content": content})),
        Tool::Edit { path, old, new } => NativeCall::new(
            "replace",
            json!({"file_path": path, "instruction": "A scripted edit", "old_string": old, "new_string": new}),
        ),
        Tool::Read(path) => NativeCall::new("read_file", json!({"file_path": path})),
        Tool::Mcp { server, tool, args } => NativeCall::new(format!("mcp_{server}_{tool}"), args.clone()),
        Tool::Native { name, args } => NativeCall::new(name, args.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_shell_command_has_the_name_that_the_cli_offers() {
        let name = |api, tools: &[&str]| native(&Tool::shell("ls"), api, &offered(tools)).name;
        assert_eq!(name(Api::Anthropic, &["Bash"]), "Bash");
        assert_eq!(name(Api::Gemini, &[]), "run_shell_command");
        assert_eq!(name(Api::OpenAi, &["exec_command", "apply_patch"]), "exec_command");
        assert_eq!(name(Api::OpenAi, &["exec"]), "exec");
        assert_eq!(name(Api::OpenAi, &[]), "shell");
    }

    #[test]
    fn an_agent_with_the_names_of_gemini_cli_is_called_by_them_over_every_api() {
        let offered = offered(&["run_shell_command", "read_file"]);
        for api in [Api::Anthropic, Api::OpenAi, Api::OpenAiChat, Api::Gemini] {
            assert_eq!(native(&Tool::read("a"), api, &offered).name, "read_file", "{api:?}");
        }
    }

    #[test]
    fn mcp_tools_are_named_by_each_cli_in_its_own_way() {
        let tool = Tool::mcp("a2a-server", "send", json!({}));
        assert_eq!(native(&tool, Api::Anthropic, &[]).name, "mcp__a2a-server__send");
        assert_eq!(native(&tool, Api::Gemini, &[]).name, "mcp_a2a-server_send");
        let codex = native(&tool, Api::OpenAi, &[]);
        assert_eq!((codex.namespace.as_deref(), codex.name.as_str()), (Some("mcp__a2a_server"), "send"));
    }

    #[test]
    fn an_edit_is_a_patch_for_codex() {
        let call = native(&Tool::edit("a.txt", "b", "c"), Api::OpenAi, &offered(&["apply_patch"]));
        assert_eq!(call.args, "*** Begin Patch\n*** Update File: a.txt\n@@\n-b\n+c\n*** End Patch\n");
    }
}
