//! Items: what happens in a turn, each with a beginning, perhaps news, and an end.

use multitap_event::{
    AgentError, AgentErrorKind, AgentType, EventKind, Image, MessageId, Severity, SystemSubtype, Timestamp, ToolId,
    ToolKind, UserMessage,
};
use serde_json::{Map, Value};

use super::change;
use super::command::{one_line, typed};
use super::decode::CodexCodec;
use super::notice::note;
use super::text::{So, Voice};
use super::tools::{Begun, Ended};
use super::wire::{Fields, present, underscored};
use crate::codec::Step;

/// What of an item is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Started,
    Updated,
    Completed,
}

/// An item on its way through: what it is, when, and whose.
struct Passing<'a> {
    id: String,
    sort: &'a str,
    phase: Phase,
    parent: Option<ToolId>,
    now: Timestamp,
}

impl CodexCodec {
    /// An item began, changed or ended. `thread` is the conversation it belongs to, where that is told.
    pub(super) fn item(&mut self, item: &Fields, phase: Phase, thread: Option<&str>, now: Timestamp, out: &mut Step) {
        let sort = underscored(item.text("type").or_else(|| item.text("itemType")).unwrap_or("item"));
        let id = self.item_id(item.text("id").unwrap_or(&sort));
        let passing = Passing { id, sort: &sort, phase, parent: self.threads.parent(thread), now };
        match sort.as_str() {
            // What the reviewer says is summed up when it is done.
            "agent_message" if self.reviewing => {}
            "agent_message" | "input_request" => self.message(item, &passing, out),
            "plan" => self.speech(item.text("text").unwrap_or_default(), &passing, out),
            "reasoning" => self.thoughts(item, &passing, out),
            "command_execution" | "shell" | "tool_call" | "local_shell_call" => self.shell(item, &passing, out),
            "file_change" | "file_edit" => self.file_change(item, &passing, out),
            "mcp_tool_call" => self.mcp_tool(item, &passing, out),
            "todo_list" => self.todos.listed(item, out),
            "error" => self.error_item(item, &passing, out),
            "user_message" => self.user_item(item, &passing, out),
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
            _ => self.other_tool(item, &passing, out),
        }
    }

    /// An item's id in this session: a process for each turn counts its items anew.
    pub(super) fn item_id(&self, id: &str) -> String {
        match self.turns.scope() {
            Some(turn) => format!("{turn}:{id}"),
            None => id.to_owned(),
        }
    }

    fn message(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        let parts = item.list("content").iter().filter_map(|part| part.get("text")?.as_str());
        let text = item.string("text").unwrap_or_else(|| parts.collect());
        if passing.phase == Phase::Completed && passing.parent.is_none() {
            self.turns.said(&text);
        }
        self.speech(&text, passing, out);
    }

    fn speech(&mut self, text: &str, passing: &Passing<'_>, out: &mut Step) {
        let so = if passing.phase == Phase::Completed { So::Final } else { So::Far };
        self.texts.whole(&passing.id, Voice::Speech, text, so, passing.parent.as_ref(), out);
    }

    fn thoughts(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        let so = if passing.phase == Phase::Completed { So::Final } else { So::Far };
        if let Some(text) = item.text("text") {
            self.texts.whole(&passing.id, Voice::Thought, text, so, passing.parent.as_ref(), out);
        }
        for (key, part) in [("summary", "summary"), ("content", "text")] {
            for (index, text) in item.list(key).iter().enumerate() {
                let text = text.as_str().or_else(|| text.get("text")?.as_str()).unwrap_or_default();
                let id = thought_id(&passing.id, part, index as u64);
                self.texts.whole(&id, Voice::Thought, text, so, passing.parent.as_ref(), out);
            }
        }
    }

    fn shell(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        let arguments = item.fields("arguments");
        let input = item.fields("input");
        let command = item.get("command").or_else(|| arguments.get("command")).or_else(|| input.get("command"));
        let command = command.map(typed).unwrap_or_default();
        let mut told = Map::from_iter([("command".to_owned(), Value::from(command.as_str()))]);
        told.extend(item.get("cwd").map(|cwd| ("cwd".to_owned(), cwd.clone())));
        let name = item.text("toolName").or_else(|| item.text("name")).unwrap_or("shell");
        let begun = Begun {
            id: passing.id.as_str().into(),
            name: name.to_owned(),
            kind: ToolKind::Shell,
            title: one_line(if command.is_empty() { name } else { &command }),
            arguments: told,
            server: None,
            changes: Vec::new(),
            parent: passing.parent.clone(),
        };
        self.tool(begun, passing, out);
        if item.get("processId").is_some() {
            self.tools.has_process(&passing.id);
        }
        let output = item.text("aggregatedOutput").or_else(|| item.text("output"));
        match passing.phase {
            Phase::Started => {}
            Phase::Updated => self.tools.output_so_far(&passing.id, output.unwrap_or_default(), out),
            Phase::Completed => {
                let result = Some(output.unwrap_or_default().into());
                self.tool_over(item, Ended { result, ..Ended::default() }, passing, out);
            }
        }
    }

    fn file_change(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        let id = ToolId::from(passing.id.as_str());
        // A change that is over is not looked up on the disk again: the file may be another by now.
        let known = passing.phase == Phase::Completed
            && self.tools.find(&passing.id).is_some_and(|tool| !tool.changes.is_empty());
        let changes = if known { Vec::new() } else { change::of_item(item, &id, self.files.as_ref()) };
        self.tools.means(&passing.id, changes.clone());
        let begun = Begun {
            id,
            name: "apply_patch".to_owned(),
            kind: ToolKind::Edit,
            title: change::title(&changes),
            arguments: patch_arguments(item),
            server: None,
            changes,
            parent: passing.parent.clone(),
        };
        self.tool(begun, passing, out);
        if passing.phase == Phase::Completed {
            self.tool_over(item, Ended::default(), passing, out);
        }
    }

    fn mcp_tool(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        let tool = item.text("tool").unwrap_or("mcp");
        let server = item.string("server");
        let begun = Begun {
            id: passing.id.as_str().into(),
            name: tool.to_owned(),
            kind: ToolKind::Mcp,
            title: server.as_ref().map_or_else(|| tool.to_owned(), |server| format!("{tool} ({server})")),
            arguments: arguments(item.get("arguments")),
            server,
            changes: Vec::new(),
            parent: passing.parent.clone(),
        };
        self.tool(begun, passing, out);
        self.news(passing, out);
        if passing.phase == Phase::Completed {
            let result = item.get("result").map(mcp_result);
            self.tool_over(item, Ended { result, ..Ended::default() }, passing, out);
        }
    }

    /// Any other item that is work on something: searches, pictures, sub-agents, and what is yet to be invented.
    fn other_tool(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        let (name, kind) = match passing.sort {
            "web_search" => ("web_search", ToolKind::Search),
            "image_view" => ("view_image", ToolKind::Read),
            "collab_agent_tool_call" => (item.text("tool").unwrap_or(passing.sort), ToolKind::Agent),
            "dynamic_tool_call" => (item.text("tool").unwrap_or(passing.sort), ToolKind::Other),
            sort => (sort, ToolKind::Other),
        };
        let about = ["query", "path", "prompt", "revisedPrompt", "text"].into_iter().find_map(|key| item.text(key));
        let about = about.filter(|about| !about.is_empty());
        let begun = Begun {
            id: passing.id.as_str().into(),
            name: name.to_owned(),
            kind,
            title: one_line(&about.map_or_else(|| name.to_owned(), |about| format!("{name} {about}"))),
            arguments: match item.get("arguments") {
                Some(given) => arguments(Some(given)),
                None => own_fields(item),
            },
            server: None,
            changes: Vec::new(),
            parent: passing.parent.clone(),
        };
        self.tool(begun, passing, out);
        self.news(passing, out);
        for agent in item.list("receiverThreadIds").iter().filter_map(Value::as_str) {
            self.threads.began_by(agent, &passing.id);
        }
        if passing.phase == Phase::Completed {
            let result = ["results", "result", "contentItems", "savedPath", "agentsStates"];
            let result = result.into_iter().find_map(|key| item.get(key)).cloned();
            let ended = Ended { result, ..Ended::default() };
            self.tool_over(item, ended, passing, out);
        }
    }

    fn tool(&mut self, begun: Begun, passing: &Passing<'_>, out: &mut Step) {
        // A late end of a call that was closed is no new call.
        if passing.phase == Phase::Completed && self.tools.has_seen(&begun.id) {
            return;
        }
        self.tools.begin(begun, passing.now, out);
    }

    /// News of a call that shows no output of its own: that it goes on.
    fn news(&mut self, passing: &Passing<'_>, out: &mut Step) {
        if passing.phase == Phase::Updated {
            self.tools.progress(&passing.id, "still at it", out);
        }
    }

    fn tool_over(&mut self, item: &Fields, ended: Ended, passing: &Passing<'_>, out: &mut Step) {
        let id = ToolId::from(passing.id.as_str());
        self.questions.withdraw_about(&passing.id, out);
        let error = item.get("error").or_else(|| item.get("failure"));
        let ended = Ended {
            status: ended.status.or_else(|| item.text("status").map(underscored)),
            error: error.map(error_text),
            exit_code: item.get("exitCode").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok()),
            duration_ms: item.number("durationMs"),
            ..ended
        };
        let clock = self.session.clock(passing.now);
        self.tools.end(&id, ended, clock, out);
    }

    fn error_item(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        let message = item.text("message").or_else(|| item.text("text")).unwrap_or("the agent reports an error");
        // News of the same item say the same again.
        if self.turns.error_item(&passing.id, message) {
            let error = AgentError::new(AgentErrorKind::Unknown, message).of(AgentType::Codex);
            out.events.push(EventKind::Error(AgentError { severity: Severity::Warning, ..error }));
        }
    }

    /// A prompt. In a session of ours it was told when it was handed over.
    fn user_item(&mut self, item: &Fields, passing: &Passing<'_>, out: &mut Step) {
        if passing.phase == Phase::Completed && passing.parent.is_none() && !self.session.is_live() {
            out.events.extend(user_message(item.list("content"), Some(&passing.id)));
        }
    }
}

/// The id of a part of the model's thoughts.
pub(super) fn thought_id(item: &str, part: &str, index: u64) -> String {
    format!("{item}:{part}:{index}")
}

/// A prompt with its pictures, if it is not empty.
pub(super) fn user_message(parts: &[Value], id: Option<&str>) -> Option<EventKind> {
    let text = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n");
    let images: Vec<Image> = parts.iter().filter_map(image).collect();
    let message_id = id.map(MessageId::from);
    let message = UserMessage { content: text, images, message_id, ..UserMessage::default() };
    (!message.content.is_empty() || !message.images.is_empty()).then_some(EventKind::UserMessage(message))
}

/// A picture that is there in full, as a data URL.
fn image(part: &Value) -> Option<Image> {
    let url = ["url", "image_url", "imageUrl"].into_iter().find_map(|key| part.get(key)?.as_str())?;
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Image { media_type: media_type.to_owned(), data: data.to_owned() })
}

/// What a tool was called with.
pub(super) fn arguments(given: Option<&Value>) -> Map<String, Value> {
    match given {
        Some(Value::Object(map)) => present(map.clone()),
        Some(Value::Null) | None => Map::new(),
        Some(other) => Map::from_iter([("input".to_owned(), other.clone())]),
    }
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

/// Which files a patch is about, without the texts: those are in the question and in the changes.
fn patch_arguments(item: &Fields) -> Map<String, Value> {
    let one = |change: &Value| {
        let change = Fields::of(Some(change));
        let kind = change.fields("kind");
        let fields = [
            ("path", change.get("path").cloned()),
            ("kind", kind.get("type").or_else(|| change.get("kind")).cloned()),
            ("movePath", kind.get("movePath").cloned()),
        ];
        fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect::<Map<_, _>>()
    };
    let list = item.list("changes").iter().map(one).map(Value::Object).collect::<Vec<_>>();
    match item.text("filePath") {
        Some(path) => Map::from_iter([("path".to_owned(), path.into())]),
        None => Map::from_iter([("changes".to_owned(), list.into())]),
    }
}

/// What an MCP tool answered: its text if it is nothing but text, else all of it.
fn mcp_result(result: &Value) -> Value {
    let text = |block: &Value| {
        let text = block.get("text")?.as_str()?;
        (block.get("type").and_then(Value::as_str) == Some("text")).then(|| text.to_owned())
    };
    let structured = ["structuredContent", "structured_content"].into_iter().find_map(|key| result.get(key));
    let blocks = result.get("content").and_then(Value::as_array);
    match blocks.and_then(|blocks| blocks.iter().map(text).collect::<Option<Vec<_>>>()) {
        Some(texts) if structured.is_none_or(Value::is_null) => texts.join("\n").into(),
        _ => super::wire::without_nulls(result.clone()),
    }
}

fn error_text(error: &Value) -> String {
    let text = error.as_str().or_else(|| error.get("message")?.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}
