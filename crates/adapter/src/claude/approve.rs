//! The permission tool: a tiny MCP server inside this codec, whose one tool Claude calls before it uses another.
//!
//! Claude reaches it through the control protocol (`mcp_message`), so there is no further process and no socket.

use multitap_event::{EventKind, ToolId, ToolProgress};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::answer::reply;
use super::control::{refusal, success};
use super::decode::{ClaudeCodec, note};
use super::name::mcp;
use super::question::{Via, how_it_runs};
use super::wire::AskedTool;
use crate::codec::Step;
use crate::json::JsonFields as _;

/// The server's name in Claude.
pub(super) const SERVER: &str = "multitap";
/// The tool, as `--permission-prompt-tool` names it.
pub(super) const TOOL: &str = "mcp__multitap__approve";

/// The server's memory: what "for this session" was answered to, and whether it is allowed.
#[derive(Debug, Default)]
pub(super) struct Approver(Vec<(Covers, bool)>);

/// The calls that such an answer covers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Covers {
    /// A command, and the arguments that change how it runs: a permission inside the sandbox does not cover a run
    /// outside.
    Command(String, Vec<String>),
    Edits,
    Tool(String),
    Server(String),
}

impl Covers {
    fn covers(&self, asked: &AskedTool) -> bool {
        match self {
            Self::Command(..) | Self::Edits => *self == Self::like(asked),
            Self::Tool(name) => *name == asked.tool_name,
            Self::Server(server) => mcp(&asked.tool_name).is_some_and(|(of, _)| of == server),
        }
    }

    pub(super) fn like(asked: &AskedTool) -> Self {
        match asked.tool_name.as_str() {
            "Bash" | "PowerShell" => {
                let command = asked.input.text("command").unwrap_or_default();
                Self::Command(command.to_owned(), how_it_runs(&asked.input).collect())
            }
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => Self::Edits,
            name => Self::Tool(name.to_owned()),
        }
    }

    /// Calls of all tools of this one's MCP server.
    pub(super) fn server_of(asked: &AskedTool) -> Option<Self> {
        mcp(&asked.tool_name).map(|(server, _)| Self::Server(server.to_owned()))
    }
}

impl Approver {
    /// The newest answer counts.
    pub(super) fn remember(&mut self, covers: Covers, allows: bool) {
        self.0.retain(|(other, _)| *other != covers);
        self.0.push((covers, allows));
    }

    fn ruled(&self, asked: &AskedTool) -> Option<bool> {
        self.0.iter().rev().find(|(covers, _)| covers.covers(asked)).map(|(_, allows)| *allows)
    }
}

impl ClaudeCodec {
    /// A JSON-RPC message to our server.
    pub(super) fn mcp_message(&mut self, request_id: &str, mut request: Map<String, Value>, out: &mut Step) {
        let ours = self.approver.is_some() && request.text("server_name") == Some(SERVER);
        if !ours {
            out.lines.push(refusal(request_id, "there is no such MCP server here"));
            out.events.push(note("mcp_message", Some("refused: no such server".to_owned()), request));
            return;
        }
        let message = request.shift_remove("message").unwrap_or_default();
        let method = message.text("method").unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or_default();
        let Some(id) = message.field("id").cloned() else {
            if method == "notifications/cancelled" {
                let call = params.get("requestId").cloned().unwrap_or_default();
                self.withdraw(|asked| matches!(&asked.via, Via::Tool { rpc_id } if *rpc_id == call), out);
            }
            out.lines.push(success(request_id, &json!({ "mcp_response": { "jsonrpc": "2.0", "result": {} } })));
            return;
        };
        let (key, value) = match method {
            "initialize" => {
                let result = json!({
                    "protocolVersion": params.get("protocolVersion").cloned().unwrap_or_else(|| "2025-06-18".into()),
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": SERVER, "version": env!("CARGO_PKG_VERSION") },
                });
                ("result", result)
            }
            "ping" => ("result", json!({})),
            "tools/list" => ("result", json!({ "tools": [tool()] })),
            "tools/call" => {
                self.approve(request_id, id, params, out);
                return;
            }
            _ => ("error", json!({ "code": -32601, "message": format!("no method '{method}'") })),
        };
        let response = json!({ "jsonrpc": "2.0", "id": id, key: value });
        out.lines.push(success(request_id, &json!({ "mcp_response": response })));
    }

    /// Claude calls the permission tool. A remembered rule answers at once; otherwise a question is asked.
    fn approve(&mut self, request_id: &str, rpc_id: Value, mut params: Value, out: &mut Step) {
        let arguments = params.get_mut("arguments").map(Value::take).unwrap_or_default();
        let via = Via::Tool { rpc_id };
        let Ok(asked) = AskedTool::deserialize(arguments) else {
            let decision = json!({ "behavior": "deny", "message": "the request could not be read" });
            out.lines.push(reply(request_id, &via, &decision));
            return;
        };
        let ruled = self.approver.as_ref().and_then(|approver| approver.ruled(&asked));
        // A rule from before plan mode allows nothing while Claude plans.
        let Some(allows) = ruled.filter(|allows| !(*allows && self.is_planning())) else {
            self.ask(asked, request_id.to_owned(), via, out);
            return;
        };
        let decision = if allows {
            json!({ "behavior": "allow", "updatedInput": asked.input })
        } else {
            json!({ "behavior": "deny", "message": "The user said no to this for the rest of the session." })
        };
        out.lines.push(reply(request_id, &via, &decision));
        if let Some(tool) = asked.tool_use_id.as_deref().filter(|tool| self.emit.tools.find(tool).is_some()) {
            let word = if allows { "allowed by an earlier answer" } else { "denied by an earlier answer" };
            if !allows {
                self.emit.tools.deny(tool);
            }
            out.events.push(EventKind::ToolProgress(ToolProgress {
                message: Some(word.to_owned()),
                ..ToolProgress::of(ToolId::from(tool))
            }));
        }
    }
}

fn tool() -> Value {
    json!({
        "name": "approve",
        "description": "Asks the people at this session whether a tool may be used.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "tool_name": { "type": "string" },
                "input": { "type": "object" },
                "tool_use_id": { "type": "string" },
            },
            "required": ["tool_name"],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_allowed_is_not_allowed_outside_the_sandbox() {
        let asked = |input: Value| AskedTool::deserialize(json!({ "tool_name": "Bash", "input": input })).unwrap();
        let mut approver = Approver::default();
        approver.remember(Covers::like(&asked(json!({ "command": "ls", "description": "a" }))), true);
        assert_eq!(approver.ruled(&asked(json!({ "command": "ls", "timeout": 5 }))), Some(true));
        assert_eq!(approver.ruled(&asked(json!({ "command": "ls", "dangerouslyDisableSandbox": true }))), None);
        assert_eq!(approver.ruled(&asked(json!({ "command": "ls -a" }))), None);
    }
}
