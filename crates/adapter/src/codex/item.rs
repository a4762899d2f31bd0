//! Items: the steps of a turn, each with a beginning, perhaps updates, and an end.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, Image, MessageId, Severity, SystemSubtype, Timestamp, ToolId,
    ToolKind, UserMessage, one_line,
};
use serde_json::{Map, Value};

use super::change;
use super::command::typed;
use super::decode::CodexCodec;
use super::notice::note;
use super::stored::texts_of;
use super::tools::{Ended, Native, OpenTool};
use super::wire::{Fields, underscored};
use crate::codec::Step;
use crate::emit::{More, Voice};
use crate::json::present;
use crate::json::{self, JsonFields as _, one, text_of, text_of_blocks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Started,
    Updated,
    Completed,
}

struct ItemContext<'a> {
    id: String,
    sort: &'a str,
    phase: Phase,
    parent: Option<ToolId>,
    now: Timestamp,
}

impl ItemContext<'_> {
    fn more(&self) -> More {
        if self.phase == Phase::Completed { More::None } else { More::Comes }
    }

    fn tool(&self, name: &str, kind: ToolKind, title: String) -> OpenTool {
        let title = Some(title).filter(|title| !title.is_empty());
        OpenTool { title, parent: self.parent.clone(), ..OpenTool::new(self.id.as_str(), name, kind, self.now) }
    }
}

impl CodexCodec {
    /// An item began, changed or ended. `thread` is the conversation that it belongs to, if reported.
    pub(super) fn item(&mut self, item: &Fields, phase: Phase, thread: Option<&str>, now: Timestamp, out: &mut Step) {
        let sort = underscored(item.text("type").or_else(|| item.text("itemType")).unwrap_or("item"));
        let id = self.item_id(item.text("id").unwrap_or(&sort));
        let context = ItemContext { id, sort: &sort, phase, parent: self.threads.parent(thread), now };
        match sort.as_str() {
            // A review's messages are left out: its summary follows at the end.
            "agent_message" if self.reviewing => {}
            "agent_message" | "input_request" => self.message(item, &context, out),
            "plan" => self.speech(item.text("text").unwrap_or_default(), &context, out),
            "reasoning" => self.thoughts(item, &context, out),
            "command_execution" | "shell" | "tool_call" | "local_shell_call" => self.shell(item, &context, out),
            "file_change" | "file_edit" => self.file_change(item, &context, out),
            "mcp_tool_call" => self.mcp_tool(item, &context, out),
            "todo_list" => self.todos.listed(item, out),
            "error" => self.error_item(item, &context, out),
            "user_message" => self.user_item(item, &context, out),
            "context_compaction" if phase == Phase::Completed => {
                out.events.push(note(SystemSubtype::COMPACTED, None, item.0.clone()));
            }
            "context_compaction" => {}
            "hook_prompt"
            | "function_call_output"
            | "sub_agent_activity"
            | "entered_review_mode"
            | "exited_review_mode" => {
                self.reviewing = sort == "entered_review_mode" || (self.reviewing && sort != "exited_review_mode");
                if phase == Phase::Completed {
                    let message = item.text("review").or_else(|| item.text("agentPath")).map(one_line);
                    out.events.push(note(&sort, message, item.0.clone()));
                }
            }
            _ => self.other_tool(item, &context, out),
        }
    }

    fn message(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        let parts = item.list("content").iter().filter_map(|part| part.get("text")?.as_str());
        let text = item.string("text").unwrap_or_else(|| parts.collect());
        if context.phase == Phase::Completed && context.parent.is_none() {
            self.turn.text = Some(text.clone());
        }
        self.speech(&text, context, out);
    }

    fn speech(&mut self, text: &str, context: &ItemContext<'_>, out: &mut Step) {
        let more = context.more();
        self.emit.texts.whole(&context.id, Voice::Speech, text, more, context.parent.as_ref(), out);
    }

    fn thoughts(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        let more = context.more();
        if let Some(text) = item.text("text") {
            self.emit.texts.whole(&context.id, Voice::Thought, text, more, context.parent.as_ref(), out);
        }
        for (key, part) in [("summary", "summary"), ("content", "text")] {
            for (index, text) in item.list(key).iter().enumerate() {
                let text = text.as_str().or_else(|| text.get("text")?.as_str()).unwrap_or_default();
                let id = thought_id(&context.id, part, index as u64);
                self.emit.texts.whole(&id, Voice::Thought, text, more, context.parent.as_ref(), out);
            }
        }
    }

    fn shell(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        let arguments = item.fields("arguments");
        let input = item.fields("input");
        let command = item.get("command").or_else(|| arguments.get("command")).or_else(|| input.get("command"));
        let command = command.map(typed).unwrap_or_default();
        let mut reported = one("command", command.as_str());
        reported.extend(item.get("cwd").map(|cwd| ("cwd".to_owned(), cwd.clone())));
        let name = item.text("toolName").or_else(|| item.text("name")).unwrap_or("shell");
        let title = one_line(if command.is_empty() { name } else { &command });
        self.tool(OpenTool { arguments: reported, ..context.tool(name, ToolKind::Shell, title) }, context, out);
        if item.get("processId").is_some() {
            self.emit.tools.has_process(&context.id);
        }
        let output = item.text("aggregatedOutput").or_else(|| item.text("output"));
        match context.phase {
            Phase::Started => {}
            Phase::Updated => self.emit.tools.output_so_far(&context.id, output.unwrap_or_default(), out),
            Phase::Completed => {
                let result = Some(output.unwrap_or_default().into());
                self.tool_over(item, Ended { result, ..Ended::default() }, context, out);
            }
        }
    }

    fn file_change(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        let id = ToolId::from(context.id.as_str());
        // A finished change is not compared with the disk again: the file may have changed since.
        let known = context.phase == Phase::Completed
            && self.emit.tools.find(&context.id).is_some_and(|tool| !tool.native.changes.is_empty());
        let changes = if known { Vec::new() } else { change::of_item(item, &id, self.files.as_ref()) };
        self.emit.tools.would_change(&context.id, changes.clone());
        let tool = context.tool("apply_patch", ToolKind::Edit, change::title(&changes));
        let (arguments, native) = (patch_arguments(item), Native::changing(changes));
        self.tool(OpenTool { arguments, native, ..tool }, context, out);
        if context.phase == Phase::Completed {
            self.tool_over(item, Ended::default(), context, out);
        }
    }

    fn mcp_tool(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        let tool = item.text("tool").unwrap_or("mcp");
        let server = item.string("server");
        let title = server.as_ref().map_or_else(|| tool.to_owned(), |server| format!("{tool} ({server})"));
        let arguments = arguments(item.get("arguments"));
        self.tool(OpenTool { arguments, server, ..context.tool(tool, ToolKind::Mcp, title) }, context, out);
        self.news(context, out);
        if context.phase == Phase::Completed {
            let result = item.get("result").map(mcp_result);
            self.tool_over(item, Ended { result, ..Ended::default() }, context, out);
        }
    }

    /// Any other item: searches, images, sub-agents, and kinds that do not exist yet.
    fn other_tool(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        let (name, kind) = match context.sort {
            "web_search" => ("web_search", ToolKind::Search),
            "image_view" => ("view_image", ToolKind::Read),
            "collab_agent_tool_call" => (item.text("tool").unwrap_or(context.sort), ToolKind::Agent),
            "dynamic_tool_call" => (item.text("tool").unwrap_or(context.sort), ToolKind::Other),
            sort => (sort, ToolKind::Other),
        };
        let about = ["query", "path", "prompt", "revisedPrompt", "text"].into_iter().find_map(|key| item.text(key));
        let about = about.filter(|about| !about.is_empty());
        let title = one_line(&about.map_or_else(|| name.to_owned(), |about| format!("{name} {about}")));
        let arguments = match item.get("arguments") {
            Some(given) => arguments(Some(given)),
            None => own_fields(item),
        };
        self.tool(OpenTool { arguments, ..context.tool(name, kind, title) }, context, out);
        self.news(context, out);
        for agent in item.list("receiverThreadIds").iter().filter_map(Value::as_str) {
            self.threads.began_by(agent, &context.id);
        }
        if context.phase == Phase::Completed {
            let result = ["results", "result", "contentItems", "savedPath", "agentsStates"];
            let result = result.into_iter().find_map(|key| item.get(key)).cloned();
            let ended = Ended { result, ..Ended::default() };
            self.tool_over(item, ended, context, out);
        }
    }

    fn tool(&mut self, tool: OpenTool, context: &ItemContext<'_>, out: &mut Step) {
        // A late end of a call that was closed must not begin a new call.
        if context.phase != Phase::Completed || !self.emit.tools.has_seen(&context.id) {
            self.emit.tools.start(tool, out);
        }
    }

    /// Reports that a call goes on, if it shows no output.
    fn news(&mut self, context: &ItemContext<'_>, out: &mut Step) {
        if context.phase == Phase::Updated {
            self.emit.tools.progress(&context.id, "still at it", out);
        }
    }

    fn tool_over(&mut self, item: &Fields, ended: Ended, context: &ItemContext<'_>, out: &mut Step) {
        let id = ToolId::from(context.id.as_str());
        let error = item.get("error").or_else(|| item.get("failure"));
        let ended = Ended {
            status: ended.status.or_else(|| item.text("status").map(underscored)),
            error: error.map(error_text),
            exit_code: item.get("exitCode").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok()),
            duration_ms: item.number("durationMs"),
            ..ended
        };
        self.end_call(&id, ended, context.now, out);
    }

    fn error_item(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        let message = item.text("message").or_else(|| item.text("text")).unwrap_or("the agent reports an error");
        // Updates of an item repeat its error.
        if self.turn.error_item(&context.id, message) {
            let error = AgentError::new(AgentErrorKind::Unknown, message).of(AgentType::Codex);
            out.events.push(EventKind::Error(AgentError { severity: Severity::Warning, ..error }));
        }
    }

    /// A prompt. In a live session it was already reported when it was sent.
    fn user_item(&mut self, item: &Fields, context: &ItemContext<'_>, out: &mut Step) {
        if context.phase == Phase::Completed && context.parent.is_none() && !self.emit.session.is_live() {
            out.events.extend(user_message(item.list("content"), Some(&context.id)));
        }
    }
}

pub(super) fn thought_id(item: &str, part: &str, index: u64) -> String {
    format!("{item}:{part}:{index}")
}

/// A prompt with its pictures, if it is not empty.
pub(super) fn user_message(parts: &[Value], id: Option<&str>) -> Option<EventKind> {
    let images: Vec<Image> = parts.iter().filter_map(image).collect();
    let (content, message_id) = (texts_of(parts), id.map(MessageId::from));
    let message = UserMessage { content, images, message_id, ..UserMessage::default() };
    (!message.content.is_empty() || !message.images.is_empty()).then_some(EventKind::UserMessage(message))
}

/// An image that the item contains in full, as a data URL.
fn image(part: &Value) -> Option<Image> {
    let url = ["url", "image_url", "imageUrl"].into_iter().find_map(|key| part.get(key)?.as_str())?;
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Image { media_type: media_type.to_owned(), data: data.to_owned() })
}

pub(super) fn arguments(given: Option<&Value>) -> Map<String, Value> {
    present(json::arguments(given.cloned()))
}

/// The fields of an item that are neither its frame nor its end.
fn own_fields(item: &Fields) -> Map<String, Value> {
    const FRAME: [&str; 12] = [
        "id",
        "type",
        "item_type",
        "status",
        "result",
        "results",
        "error",
        "failure",
        "success",
        "durationMs",
        "startedAtMs",
        "completedAtMs",
    ];
    present(
        item.0.iter().filter(|(key, _)| !FRAME.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect(),
    )
}

/// The files of a patch, without their texts: those are in the question and in the changes.
fn patch_arguments(item: &Fields) -> Map<String, Value> {
    let about = |change: &Value| {
        let change = Fields::of(Some(change));
        let kind = change.fields("kind");
        let fields = [
            ("path", change.get("path").cloned()),
            ("kind", kind.get("type").or_else(|| change.get("kind")).cloned()),
            ("movePath", kind.get("movePath").cloned()),
        ];
        fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map<_, _>>()
    };
    let list = item.list("changes").iter().map(about).map(Value::Object).collect::<Vec<_>>();
    match item.text("filePath") {
        Some(path) => one("path", path),
        None => one("changes", list),
    }
}

/// The result of an MCP tool: its text if it contains only text, else all of it.
fn mcp_result(result: &Value) -> Value {
    let structured = ["structuredContent", "structured_content"].into_iter().find_map(|key| result.get(key));
    let blocks = result.field("content").and_then(Value::as_array);
    match blocks.and_then(|blocks| text_of_blocks(blocks)) {
        Some(text) if structured.is_none_or(Value::is_null) => text.into(),
        _ => json::without_nulls(result.clone()),
    }
}

fn error_text(error: &Value) -> String {
    error.string("message").unwrap_or_else(|| text_of(error))
}
