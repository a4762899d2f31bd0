//! Codex's approval requests and questions, as questions of the session. Several may be open at once.

use multitap_event::{AskedQuestion, Choice, Details, Elicitation, Question, QuestionId, ToolId, one_line, option};
use multitap_process::quote;
use serde_json::{Map, Value, json};

use super::change;
use super::command::typed;
use super::decode::CodexCodec;
use super::item::arguments;
use super::notice::note;
use super::rpc::{answer, refusal};
use super::tools::OpenTool;
use super::wire::Fields;
use crate::codec::Step;
use crate::form::{always, cancel, cancel_always, once};
use crate::json::JsonFields as _;
use crate::json::present;
use crate::{emit, form};

pub(super) type Open = emit::OpenQuestion<Native>;

/// The facts that an answer to Codex needs.
#[derive(Debug, Clone)]
pub(super) struct Native {
    /// The id of Codex's request.
    pub(super) request: Value,
    pub(super) via: Via,
}

/// The path by which a question came, and by which its answer goes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Via {
    /// A command, with the rule that would be saved for similar ones.
    Command {
        rule: Option<Value>,
    },
    Patch,
    McpTool,
    /// An MCP server asks the user something.
    Form,
    /// Further permissions for the turn or the session.
    Permissions {
        wanted: Map<String, Value>,
    },
    /// The model asks the user something; the ids of its questions, in order.
    Input {
        ids: Vec<String>,
    },
    /// A request in the older format, with its own words for decisions.
    Legacy,
    /// An `approval.required` event, answered by a call.
    Event,
}

/// A question before it has its id.
struct QuestionParts {
    tool_id: Option<ToolId>,
    tool_name: Option<String>,
    title: String,
    options: Vec<Choice>,
    details: Details,
    reason: Option<String>,
    via: Via,
}

impl CodexCodec {
    /// Handles a request of Codex. Every request gets an answer, also an unknown one.
    pub(super) fn request(&mut self, method: &str, id: Value, params: Fields, out: &mut Step) {
        let asked = match method {
            "item/commandExecution/requestApproval" => self.command_question(&params),
            "item/fileChange/requestApproval" => self.patch_question(&params),
            "item/permissions/requestApproval" => permissions_question(&params),
            "item/tool/requestUserInput" => input_question(&params),
            "mcpServer/elicitation/request" => self.elicitation(&params),
            "execCommandApproval" => self.old_command_question(&params),
            "applyPatchApproval" => self.old_patch_question(&params),
            "item/tool/call" => {
                let text = "multitap offers no such tool";
                let content = json!([{ "type": "inputText", "text": text }]);
                out.lines.push(answer(&id, &json!({ "contentItems": content, "success": false })));
                out.events.push(note(method, Some(format!("refused: {text}")), params.0));
                return;
            }
            _ => {
                out.lines.push(refusal(&id, &format!("multitap does not serve '{method}'")));
                out.events.push(note(method, Some("refused: not served".to_owned()), params.0));
                return;
            }
        };
        let name = match &id {
            Value::String(text) => text.clone(),
            other => format!("request-{other}"),
        };
        self.ask(name.into(), id, asked, out);
    }

    fn ask(&mut self, question_id: QuestionId, request: Value, asked: QuestionParts, out: &mut Step) {
        let QuestionParts { tool_id, tool_name, title, options, details, reason, via } = asked;
        let question = Question { question_id, tool_id, tool_name, title, options, details, edits: Vec::new(), reason };
        self.emit.questions.ask(question, Native { request, via }, out);
    }

    fn command_question(&self, params: &Fields) -> QuestionParts {
        let item = params.text("itemId");
        let tool = item.and_then(|id| self.emit.tools.find(id));
        let of_tool = || tool.and_then(|tool| tool.arguments.get("command").cloned());
        let command =
            params.get("command").cloned().or_else(of_tool).map(|command| typed(&command)).unwrap_or_default();
        let host = params.fields("networkApprovalContext").string("host");
        let offered = params
            .list("availableDecisions")
            .iter()
            .find_map(|decision| decision.get("acceptWithExecpolicyAmendment")?.get("execpolicy_amendment").cloned());
        let rule = offered.or_else(|| params.get("proposedExecpolicyAmendment").cloned());
        let mut options =
            vec![once("Allow once"), always(option::PROCEED_ALWAYS, "Allow this command for this session")];
        if let Some(rule) = &rule {
            let words: Vec<String> =
                rule.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            let name = format!("Always allow commands that begin with {}", one_line(&quote(&words)));
            options.push(always(option::PROCEED_ALWAYS_AND_SAVE, name));
        }
        options.push(cancel("Deny"));
        let title = match (&host, command.as_str()) {
            (Some(host), _) => format!("Connect to {host}"),
            (None, "") => "Run a command".to_owned(),
            (None, command) => format!("Run {}", one_line(command)),
        };
        QuestionParts {
            tool_id: item.map(ToolId::from),
            tool_name: Some(tool.map_or_else(|| "shell".to_owned(), |tool| tool.name.clone())),
            title,
            options,
            details: Details::Command {
                command,
                directory: params.string("cwd").or_else(|| self.emit.session.cwd.clone()),
                description: described(host.as_deref(), params),
            },
            reason: params.string("reason"),
            via: Via::Command { rule },
        }
    }

    fn patch_question(&self, params: &Fields) -> QuestionParts {
        let item = params.text("itemId");
        let changes = item.and_then(|id| self.emit.tools.find(id)).map_or(&[][..], |tool| &tool.native.changes);
        let session = match params.text("grantRoot") {
            Some(root) => format!("Allow changes in {root} for this session"),
            None => "Allow changes to these files for this session".to_owned(),
        };
        QuestionParts {
            tool_id: item.map(ToolId::from),
            tool_name: Some("apply_patch".to_owned()),
            title: change::title(changes),
            options: vec![once("Allow once"), always(option::PROCEED_ALWAYS, session), cancel("Deny")],
            details: change::details(changes, params),
            reason: params.string("reason"),
            via: Via::Patch,
        }
    }

    /// A tool of an MCP server wants to run, or the server itself asks the user.
    fn elicitation(&self, params: &Fields) -> QuestionParts {
        let server = params.text("serverName").unwrap_or("MCP");
        let message = params.text("message").unwrap_or_default();
        let about = params.fields("_meta");
        if about.text("codex_approval_kind") != Some("mcp_tool_call") {
            return form_question(params, server);
        }
        let given = arguments(about.get("tool_params"));
        let is_of_server = |tool: &&OpenTool| tool.server.as_deref() == Some(server);
        let calls = self.emit.tools.iter().filter(is_of_server);
        let mut calls = calls.filter(|tool| !self.emit.questions.any_about(tool.id.as_str())).peekable();
        let first = calls.peek().copied();
        let call = calls.find(|tool| tool.arguments == given).or(first);
        let quoted = message.split('"').nth(1).unwrap_or_default();
        let tool = call.map_or(quoted, |call| call.name.as_str());
        let lasting: Vec<&str> = about.list("persist").iter().filter_map(Value::as_str).collect();
        let mut options = vec![once("Allow once")];
        if lasting.contains(&"session") {
            options.push(always(option::PROCEED_ALWAYS_TOOL, format!("Allow {tool} of {server} for this session")));
        }
        if lasting.contains(&"always") {
            options.push(always(option::PROCEED_ALWAYS_AND_SAVE, format!("Always allow {tool} of {server}")));
        }
        options.push(cancel("Deny"));
        QuestionParts {
            tool_id: call.map(|call| call.id.clone()),
            tool_name: Some(tool.to_owned()),
            title: format!("{tool} ({server})"),
            options,
            details: Details::Mcp { server: server.to_owned(), tool: tool.to_owned(), arguments: given },
            reason: None,
            via: Via::McpTool,
        }
    }

    fn old_command_question(&self, params: &Fields) -> QuestionParts {
        let mut asked = self.command_question(params);
        asked.tool_id = params.text("callId").map(ToolId::from);
        QuestionParts { via: Via::Legacy, ..asked }
    }

    fn old_patch_question(&self, params: &Fields) -> QuestionParts {
        let tool = ToolId::from(params.text("callId").unwrap_or_default());
        let changes = params.get("fileChanges").and_then(Value::as_object);
        let changes = changes.map(|map| change::of_map(map, &tool, self.files.as_ref())).unwrap_or_default();
        QuestionParts {
            tool_id: Some(tool),
            title: change::title(&changes),
            details: change::details(&changes, params),
            via: Via::Legacy,
            ..self.patch_question(params)
        }
    }

    /// `approval.required` of older versions.
    pub(super) fn approval_event(&mut self, event: &Fields, out: &mut Step) {
        let id = event.text("id").unwrap_or("approval").to_owned();
        let about = event.text("description").unwrap_or("The agent asks for approval");
        let input = arguments(event.get("toolInput"));
        let tool = event.text("toolName").unwrap_or("tool");
        let details = match event.text("actionType") {
            Some("shell") => Details::Command {
                command: event.string("command").or_else(|| input.string("command")).unwrap_or_default(),
                directory: input.string("cwd").or_else(|| self.emit.session.cwd.clone()),
                description: Some(about.to_owned()),
            },
            Some("file_write") => Details::FileEdit {
                file_path: event.string("filePath").or_else(|| input.string("path")).unwrap_or_default(),
                before: None,
                after: input.string("content"),
                diff: input.string("diff"),
            },
            Some("mcp_tool") => {
                let server = event.string("server").or_else(|| input.string("server")).unwrap_or_default();
                Details::Mcp { server, tool: tool.to_owned(), arguments: input }
            }
            _ => Details::Text { text: about.to_owned(), arguments: input },
        };
        let asked = QuestionParts {
            tool_id: event.text("itemId").or_else(|| event.text("toolId")).map(ToolId::from),
            tool_name: Some(tool.to_owned()),
            title: one_line(about),
            options: vec![
                once("Allow once"),
                always(option::PROCEED_ALWAYS, "Allow for this session"),
                cancel("Deny"),
                cancel_always("Deny, and do not ask again"),
            ],
            details,
            reason: None,
            via: Via::Event,
        };
        self.ask(id.as_str().into(), Value::String(id), asked, out);
    }
}

/// The rights of a command beyond its sandbox: a host on the network, or permissions that it asks for.
fn described(host: Option<&str>, params: &Fields) -> Option<String> {
    let host = host.map(|host| format!("network access to {host}"));
    let more = present(params.fields("additionalPermissions").0);
    let more = (!more.is_empty()).then(|| format!("with further permissions: {}", Value::Object(more)));
    let lines: Vec<String> = host.into_iter().chain(more).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn permissions_question(params: &Fields) -> QuestionParts {
    let wanted = present(params.fields("permissions").0);
    let text = params.text("reason").unwrap_or("The agent asks for further permissions");
    QuestionParts {
        tool_id: params.text("itemId").map(ToolId::from),
        tool_name: None,
        title: one_line(text),
        options: vec![
            once("Allow for this turn"),
            always(option::PROCEED_ALWAYS, "Allow for this session"),
            cancel("Deny"),
        ],
        details: Details::Text { text: text.to_owned(), arguments: wanted.clone() },
        reason: params.string("reason"),
        via: Via::Permissions { wanted },
    }
}

fn input_question(params: &Fields) -> QuestionParts {
    let asked: Vec<Fields> = params.list("questions").iter().map(|one| Fields::of(Some(one))).collect();
    let question = |one: &Fields| AskedQuestion {
        question: one.string("question").unwrap_or_default(),
        header: one.string("header"),
        labels: one.list("options").iter().filter_map(|label| label.string("label")).collect(),
        descriptions: form::descriptions(one.list("options")),
        ..AskedQuestion::default()
    };
    let ids = asked.iter().map(|one| one.string("id").unwrap_or_default()).collect();
    let questions: Vec<AskedQuestion> = asked.iter().map(question).collect();
    QuestionParts {
        tool_id: params.text("itemId").map(ToolId::from),
        tool_name: Some("request_user_input".to_owned()),
        title: form::title(&questions),
        options: form::options(&questions),
        details: Details::Input { questions },
        reason: None,
        via: Via::Input { ids },
    }
}

fn form_question(params: &Fields, server: &str) -> QuestionParts {
    let Question { title, options, details, reason, .. } =
        Elicitation::of(server, &params.0).question(QuestionId::from(""), None);
    QuestionParts { tool_id: None, tool_name: None, title, options, details, reason, via: Via::Form }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_with_the_permissions_it_asks_for() {
        let shown = |params: Value, host: Option<&str>| described(host, &Fields::of(Some(&params)));
        assert_eq!(shown(json!({ "command": "ls", "additionalPermissions": null }), None), None);
        assert_eq!(shown(json!({}), Some("example.com")).as_deref(), Some("network access to example.com"));
        let wants = json!({ "additionalPermissions": { "network": null, "fileSystem": { "write": ["/"] } } });
        let expected = r#"with further permissions: {"fileSystem":{"write":["/"]}}"#;
        assert_eq!(shown(wants, None).as_deref(), Some(expected));
    }
}
