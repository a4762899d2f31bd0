//! Permission requests of Claude as questions of the session.

use multitap_event::{AskedQuestion, Choice, Details, Edit, Elicitation, Question, ToolId, one_line, option};
use serde_json::{Map, Value, json};

use super::answer::reply;
use super::change::Wanted;
use super::decode::ClaudeCodec;
use super::name::{mcp, title};
use super::wire::AskedTool;
use crate::codec::Step;
use crate::form::{always, cancel, cancel_always, once};
use crate::json::{JsonFields as _, set_fields};
use crate::{emit, form};

/// Reply to Claude when it wants to change something before its plan is approved.
const PLANNING: &str = "The session is in plan mode: nothing may be changed, and permission cannot be requested. Present your plan with ExitPlanMode first.";

pub(super) type Open = emit::OpenQuestion<Native>;

/// The facts that an answer to Claude needs, and the call that Claude asked about.
#[derive(Debug, Clone)]
pub(super) struct Native {
    pub(super) asked: AskedTool,
    pub(super) request_id: String,
    pub(super) via: Via,
}

/// The path by which a question came, and by which its answer goes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Via {
    /// `can_use_tool` of the control protocol.
    Control,
    /// A call of our permission tool; the id of that JSON-RPC request.
    Tool { rpc_id: Value },
    /// `elicitation` of the control protocol: an MCP server asks the user.
    Elicitation,
}

impl ClaudeCodec {
    /// Claude asks whether it may use a tool.
    pub(super) fn ask(&mut self, asked: AskedTool, request_id: String, via: Via, out: &mut Step) {
        let details = self.details(&asked);
        if self.is_planning() && matches!(details, Details::FileEdit { .. } | Details::Command { .. }) {
            // Claude would do it if the answer allowed it, but `plan` changes nothing. For calls that only read, Claude
            // does not ask.
            let decision = json!({ "behavior": "deny", "message": PLANNING });
            out.lines.push(reply(&request_id, &via, &decision));
            if let Some(tool) = &asked.tool_use_id {
                self.emit.tools.deny(tool);
            }
            return;
        }
        let question = Question {
            question_id: request_id.as_str().into(),
            tool_id: asked.tool_use_id.as_deref().map(ToolId::from),
            tool_name: Some(asked.tool_name.clone()),
            title: headline(&asked, &details),
            options: choices(&asked, &details, &via),
            edits: edits(&details),
            details,
            reason: asked.decision_reason.clone(),
        };
        self.emit.questions.ask(question, Native { asked, request_id, via }, out);
    }

    /// An MCP server asks the user something, and Claude forwards it.
    pub(super) fn ask_for_server(&mut self, request: &Map<String, Value>, request_id: String, out: &mut Step) {
        let server = request.text("mcp_server_name").unwrap_or("MCP");
        let question = Elicitation::of(server, request).question(request_id.as_str().into(), None);
        let native = Native { asked: AskedTool::default(), request_id, via: Via::Elicitation };
        self.emit.questions.ask(question, native, out);
    }

    pub(super) fn withdraw(&mut self, is_withdrawn: impl Fn(&Native) -> bool, out: &mut Step) {
        self.emit.questions.withdraw("the agent no longer asks", |open| is_withdrawn(&open.native), out);
    }

    pub(super) fn details(&self, asked: &AskedTool) -> Details {
        let cwd = self.emit.session.cwd.as_deref();
        if let Some(wanted) = Wanted::of(&asked.tool_name, &asked.input) {
            let (before, after, diff) = wanted.preview(self.files.as_ref(), cwd);
            return Details::FileEdit { file_path: wanted.path, before, after, diff };
        }
        match asked.tool_name.as_str() {
            "Bash" | "PowerShell" => Details::Command {
                command: asked.input.string("command").unwrap_or_default(),
                directory: cwd.map(str::to_owned),
                description: described(&asked.input),
            },
            "ExitPlanMode" => Details::Plan { plan: self.plan(asked) },
            "AskUserQuestion" => Details::Input { questions: asked_questions(&asked.input) },
            name => match mcp(name) {
                Some((server, tool)) => {
                    Details::Mcp { server: server.to_owned(), tool: tool.to_owned(), arguments: asked.input.clone() }
                }
                None => Details::Text {
                    text: asked.description.clone().unwrap_or_else(|| title(name, &asked.input)),
                    arguments: asked.input.clone(),
                },
            },
        }
    }

    /// The plan to approve: from the question, from its call, or from the file that Claude wrote it to.
    fn plan(&self, asked: &AskedTool) -> String {
        let call = asked.tool_use_id.as_deref().and_then(|id| self.emit.tools.find(id));
        let file = asked.input.text("planFilePath").or(self.plan_file.as_deref());
        let plan = asked.input.string("plan").or_else(|| call?.arguments.string("plan"));
        plan.or_else(|| self.files.read(file?.as_ref())).unwrap_or_default()
    }
}

/// The description of a command, after everything that its other arguments change: a command that leaves the sandbox or
/// stays in the background must not look like any other.
fn described(input: &Map<String, Value>) -> Option<String> {
    let lines: Vec<String> = how_it_runs(input).chain(input.string("description")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

pub(super) fn how_it_runs(input: &Map<String, Value>) -> impl Iterator<Item = String> {
    set_fields(input, &["command", "description", "timeout"])
}

pub(super) fn headline(asked: &AskedTool, details: &Details) -> String {
    match details {
        Details::Command { command, .. } => format!("Run {}", one_line(command)),
        Details::Plan { .. } => "Go ahead with this plan?".to_owned(),
        Details::Input { questions } => form::title(questions),
        Details::FileEdit { .. } | Details::Mcp { .. } | Details::Text { .. } => title(&asked.tool_name, &asked.input),
    }
}

fn asked_questions(input: &Map<String, Value>) -> Vec<AskedQuestion> {
    let one = |asked: &Value| {
        Some(AskedQuestion {
            question: asked.string("question")?,
            header: asked.string("header"),
            labels: asked.list("options").iter().filter_map(|option| option.string("label")).collect(),
            descriptions: form::descriptions(asked.list("options")),
            multi_select: asked.flag("multiSelect"),
            field: None,
        })
    };
    input.list("questions").iter().filter_map(one).collect()
}

/// The edits that an answer may make. Only commands and texts of files: in the arguments of other tools, content and
/// target cannot be distinguished, and Claude runs an edited call unchecked.
fn edits(details: &Details) -> Vec<Edit> {
    match details {
        Details::Command { .. } | Details::FileEdit { .. } => vec![Edit::NewContent, Edit::NewInput],
        Details::Mcp { .. } | Details::Text { .. } | Details::Plan { .. } | Details::Input { .. } => Vec::new(),
    }
}

fn choices(asked: &AskedTool, details: &Details, via: &Via) -> Vec<Choice> {
    match details {
        Details::Plan { .. } => {
            return vec![
                once("Yes, and ask before each edit"),
                always(option::PROCEED_ALWAYS, "Yes, and accept edits for this session"),
                cancel("No, keep planning"),
            ];
        }
        Details::Input { questions } => return form::options(questions),
        Details::Command { .. } | Details::FileEdit { .. } | Details::Mcp { .. } | Details::Text { .. } => {}
    }
    let mut choices = vec![once("Allow once")];
    if let Details::Mcp { server, tool, .. } = details {
        choices.push(always(option::PROCEED_ALWAYS_TOOL, format!("Allow {tool} of {server} for this session")));
        choices.push(always(option::PROCEED_ALWAYS_SERVER, format!("Allow all tools of {server} for this session")));
    } else if let Some(what) = session_wide(asked, via) {
        let choice = always(option::PROCEED_ALWAYS, format!("Allow {what} for this session"));
        // Only an owner may choose a mode.
        choices.push(if switches_mode(asked, via) { choice.for_owners() } else { choice });
    }
    if let Some(rules) = saved_rules(asked) {
        choices.push(always(option::PROCEED_ALWAYS_AND_SAVE, format!("Always allow {rules} in this folder")));
    }
    choices.push(cancel("Deny"));
    if matches!(via, Via::Tool { .. }) {
        let what = session_wide(asked, via).unwrap_or_default();
        choices.push(cancel_always(format!("Deny {what} for this session")));
    }
    choices
}

/// The scope of "for this session", if it can be put in words.
fn session_wide(asked: &AskedTool, via: &Via) -> Option<String> {
    if matches!(via, Via::Tool { .. }) {
        return Some(match asked.tool_name.as_str() {
            "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => "all edits".to_owned(),
            "Bash" | "PowerShell" => "this command".to_owned(),
            name => name.to_owned(),
        });
    }
    let suggestions = asked.permission_suggestions.as_deref().unwrap_or_default();
    let rules: Vec<String> = suggestions.iter().filter(|one| allows_rules(one)).flat_map(rule_names).collect();
    if !rules.is_empty() {
        return Some(rules.join(", "));
    }
    let mode = suggestions.iter().find(|one| kind(one) == Some("setMode"))?.get("mode")?.as_str()?;
    Some(if mode == "acceptEdits" { "all edits".to_owned() } else { format!("mode {mode}") })
}

/// Whether "for this session" would switch the mode rather than add rules.
fn switches_mode(asked: &AskedTool, via: &Via) -> bool {
    let suggestions = asked.permission_suggestions.as_deref().unwrap_or_default();
    !matches!(via, Via::Tool { .. }) && !suggestions.iter().any(allows_rules)
}

/// The rules that Claude offers to save in its settings.
fn saved_rules(asked: &AskedTool) -> Option<String> {
    let suggestions = asked.permission_suggestions.as_deref().unwrap_or_default();
    let rules: Vec<String> = suggestions.iter().filter(|one| saves_rules(one)).flat_map(rule_names).collect();
    (!rules.is_empty()).then(|| rules.join(", "))
}

pub(super) fn kind(suggestion: &Value) -> Option<&str> {
    suggestion.text("type")
}

pub(super) fn allows_rules(suggestion: &Value) -> bool {
    kind(suggestion) == Some("addRules") && suggestion.text("behavior").is_none_or(|behavior| behavior == "allow")
}

/// Whether a suggestion saves such rules in the folder's settings.
pub(super) fn saves_rules(suggestion: &Value) -> bool {
    allows_rules(suggestion) && suggestion.text("destination") == Some("localSettings")
}

/// Rules as Claude's settings write them: `Bash(touch made.txt)`.
fn rule_names(suggestion: &Value) -> Vec<String> {
    let rule = |rule: &Value| {
        let tool = rule.text("toolName")?;
        Some(match rule.text("ruleContent") {
            Some(content) => one_line(&format!("{tool}({content})")),
            None => tool.to_owned(),
        })
    };
    suggestion.list("rules").iter().filter_map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_with_all_that_its_arguments_change() {
        let shown = |input: Value| described(input.as_object().unwrap());
        assert_eq!(shown(json!({ "command": "ls", "timeout": 1, "run_in_background": false })), None);
        assert_eq!(shown(json!({ "command": "ls", "description": "list" })).as_deref(), Some("list"));
        let outside = json!({ "command": "ls", "description": "list", "dangerouslyDisableSandbox": true });
        assert_eq!(shown(outside).as_deref(), Some("dangerouslyDisableSandbox: true\nlist"));
        let waiting = json!({ "command": "ls", "run_in_background": true });
        assert_eq!(shown(waiting).as_deref(), Some("run_in_background: true"));
    }
}
