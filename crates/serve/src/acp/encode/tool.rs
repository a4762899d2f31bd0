//! The tool calls of a session, as ACP shows them.

use std::collections::HashMap;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    Content, Diff, SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind as AcpKind,
};
use multitap_event::{
    Details, FileChange, FileChangeType, Question, QuestionId, Ruling, Timestamp, ToolCompleted, ToolId, ToolKind,
    ToolOutcome, ToolProgress, ToolStarted,
};
use multitap_hub::{LiveOutput, State};
use serde_json::{Map, Value, json};

use super::super::features::ClientFeatures;
use super::super::fence::fenced;
use super::{Output, meta, text_block};

/// Most finished calls in memory; late changes of older ones make a call of their own.
const CALLS: usize = 256;
/// Arguments that name the file of a call.
const PATHS: [&str; 5] = ["file_path", "absolute_path", "path", "notebook_path", "dir_path"];

#[derive(Debug)]
pub(super) struct Tools {
    features: ClientFeatures,
    calls: HashMap<ToolId, Call>,
    /// The questions and the calls that they are about.
    asked: HashMap<QuestionId, ToolId>,
    live: LiveOutput,
    /// The folder that relative paths are in.
    folder: Option<String>,
}

#[derive(Debug, Default)]
struct Call {
    started: Option<ToolStarted>,
    changes: Vec<ToolCallContent>,
    locations: Vec<ToolCallLocation>,
    /// Output from before the client joined, for its terminal.
    earlier: Option<String>,
    /// Whether the client's terminal got any output.
    has_output: bool,
    is_over: bool,
}

impl Tools {
    pub(super) fn new(features: ClientFeatures) -> Self {
        Self { features, calls: HashMap::new(), asked: HashMap::new(), live: LiveOutput::default(), folder: None }
    }

    /// The calls of a session in the middle of a turn.
    pub(super) fn amid(features: ClientFeatures, state: &State) -> Self {
        let mut tools = Self::new(features);
        tools.set_folder(state);
        for tool in state.tools.iter().filter(|tool| !tool.is_over()) {
            let id = &tool.started.tool_id;
            let mut call = tools.call(&tool.started);
            if tools.is_terminal(&call) {
                call.earlier = Some(tool.output.tail.clone()).filter(|tail| !tail.is_empty());
            } else if !tool.output.tail.is_empty() {
                tools.live.add(id, &tool.output.tail);
            }
            tools.calls.insert(id.clone(), call);
        }
        for question in state.questions.open() {
            tools.asked.insert(question.question_id.clone(), call_id(question));
        }
        tools
    }

    /// Takes over the folder that the agent works in.
    pub(super) fn set_folder(&mut self, state: &State) {
        self.folder = state.start.as_ref().and_then(|start| start.config.as_ref()?.working_directory.clone());
    }

    /// Shows the open calls to a client that did not see them begin.
    pub(super) fn open_calls(&mut self, out: &mut Vec<Output>) {
        for call in self.calls.values().filter(|call| !call.is_over) {
            if let Some(started) = &call.started {
                out.push(Output::Update(SessionUpdate::ToolCall(self.tool_call(started, call))));
            }
        }
        for (id, call) in &mut self.calls {
            if let Some(earlier) = call.earlier.take() {
                call.has_output = true;
                out.push(terminal_output(id, &earlier));
            }
        }
    }

    pub(super) fn started(&mut self, started: &ToolStarted, out: &mut Vec<Output>) {
        self.make_room();
        let call = self.call(started);
        out.push(Output::Update(SessionUpdate::ToolCall(self.tool_call(started, &call))));
        self.calls.insert(started.tool_id.clone(), call);
    }

    fn tool_call(&self, started: &ToolStarted, call: &Call) -> ToolCall {
        let title = started.title.clone().unwrap_or_else(|| started.tool_name.clone());
        let mut shown = ToolCall::new(id_of(&started.tool_id), title)
            .name(started.tool_name.clone())
            .kind(kind(started.tool_kind))
            .status(ToolCallStatus::InProgress)
            .locations(call.locations.clone())
            .raw_input(Value::Object(started.arguments.clone()));
        let mut own = Map::new();
        if let Some(parent) = &started.parent_tool_id {
            own.extend(meta(json!({ "parentToolCallId": parent })));
        }
        if self.is_terminal(call) {
            let terminal = started.tool_id.as_str();
            own.insert("terminal_info".to_owned(), json!({ "terminal_id": terminal, "cwd": self.folder }));
            shown = shown.content(self.content(&started.tool_id, call));
        }
        if !own.is_empty() {
            shown = shown.meta(own);
        }
        shown
    }

    /// Whether the client shows the output of this call in a terminal of its own.
    fn is_terminal(&self, call: &Call) -> bool {
        let is_shell = call.started.as_ref().is_some_and(|started| started.tool_kind == ToolKind::Shell);
        self.features.terminal_output && is_shell
    }

    /// What belongs to a call at any time: an update replaces all of it.
    fn content(&self, id: &ToolId, call: &Call) -> Vec<ToolCallContent> {
        let terminal = self.is_terminal(call).then(|| terminal_content(id.as_str()));
        terminal.into_iter().chain(call.changes.iter().cloned()).collect()
    }

    pub(super) fn progressed(&mut self, progress: &ToolProgress, out: &mut Vec<Output>) {
        let Some(output) = &progress.output else { return };
        let id = &progress.tool_id;
        let is_terminal = self.calls.get(id).is_some_and(|call| self.is_terminal(call));
        match self.calls.get_mut(id) {
            Some(call) if call.is_over => {}
            Some(call) if is_terminal => {
                call.has_output = true;
                out.push(terminal_output(id, output));
            }
            Some(_) | None => self.live.add(id, output),
        }
    }

    pub(super) fn due(&self) -> Option<Timestamp> {
        let due = self.live.due()?;
        Some(Timestamp::from_millis(i64::try_from(due.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Shows the output that is due by now.
    pub(super) fn tick(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        let now = Duration::from_millis(u64::try_from(now.as_millis()).unwrap_or(0));
        for (tool, text) in self.live.take_due(now) {
            let changes = self.calls.get(&tool).map(|call| call.changes.clone()).unwrap_or_default();
            let content = changes.into_iter().chain([text_content(text)]).collect();
            out.push(update(&tool, ToolCallUpdateFields::new().content(Some(content)), None));
        }
    }

    /// Shows all output: the turn is over.
    pub(super) fn tick_all(&mut self, out: &mut Vec<Output>) {
        self.tick(Timestamp::from_millis(i64::MAX), out);
    }

    pub(super) fn changed(&mut self, change: &FileChange, seq: u64, out: &mut Vec<Output>) {
        let content = self.change(change);
        let location = ToolCallLocation::new(self.absolute(&change.file_path));
        match change.tool_id.as_ref().and_then(|id| Some((id, self.calls.remove(id)?))) {
            Some((id, mut call)) => {
                // The same file once, as it is now.
                let path = path_of(&content);
                call.changes.retain(|other| path.is_none() || path_of(other) != path);
                call.changes.push(content);
                if !call.locations.contains(&location) {
                    call.locations.push(location);
                }
                let fields = ToolCallUpdateFields::new()
                    .content(Some(self.content(id, &call)))
                    .locations(Some(call.locations.clone()));
                out.push(update(id, fields, None));
                self.calls.insert(id.clone(), call);
            }
            // Nobody reported the call that did this.
            None => {
                let call = ToolCall::new(format!("change-{seq}"), format!("Change {}", change.file_path))
                    .kind(AcpKind::Edit)
                    .status(ToolCallStatus::Completed)
                    .content(vec![content])
                    .locations(vec![location]);
                out.push(Output::Update(SessionUpdate::ToolCall(call)));
            }
        }
    }

    fn change(&self, change: &FileChange) -> ToolCallContent {
        let path = self.absolute(&change.file_path);
        match (change.change_type, &change.before, &change.after, &change.diff) {
            (FileChangeType::Deleted, before, _, _) => {
                let kind = Map::from_iter([("kind".to_owned(), "delete".into())]);
                ToolCallContent::Diff(Diff::new(path, "").old_text(before.clone()).meta(kind))
            }
            (FileChangeType::Created | FileChangeType::Modified, before, Some(after), _) => {
                ToolCallContent::Diff(Diff::new(path, after.clone()).old_text(before.clone()))
            }
            (FileChangeType::Created | FileChangeType::Modified, _, None, Some(diff)) => {
                text_content(fenced("diff", diff))
            }
            (FileChangeType::Created | FileChangeType::Modified, _, None, None) => {
                text_content(format!("{} was changed", change.file_path))
            }
        }
    }

    fn absolute(&self, path: &str) -> String {
        match &self.folder {
            Some(folder) if !std::path::Path::new(path).is_absolute() => {
                format!("{}/{path}", folder.trim_end_matches('/'))
            }
            _ => path.to_owned(),
        }
    }

    pub(super) fn completed(&mut self, done: &ToolCompleted, out: &mut Vec<Output>) {
        self.live.finish(&done.tool_id);
        self.asked.retain(|_, tool| *tool != done.tool_id);
        let mut call = self.calls.remove(&done.tool_id).unwrap_or_default();
        let is_terminal = self.is_terminal(&call);
        let status = if done.success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        let text = done.error.clone().or_else(|| done.result.as_ref().map(result_text)).filter(|text| !text.is_empty());
        let mut content = self.content(&done.tool_id, &call);
        let mut own = Map::new();
        if is_terminal {
            // Not every agent reports output while a command runs, and what never ran has only an error.
            if let Some(text) = text.filter(|_| !call.has_output) {
                out.push(terminal_output(&done.tool_id, &text));
            }
            let exit = json!({ "terminal_id": done.tool_id, "exit_code": done.exit_code, "signal": null });
            own.insert("terminal_exit".to_owned(), exit);
        } else if content.is_empty() || done.error.is_some() {
            content.extend(text.map(text_content));
        }
        match done.outcome {
            // ACP has no status for it.
            ToolOutcome::Cancelled | ToolOutcome::Denied => {
                own.insert("cancelled".to_owned(), true.into());
            }
            ToolOutcome::Completed | ToolOutcome::Failed => {}
        }
        let mut fields = ToolCallUpdateFields::new().status(status).raw_output(done.result.clone());
        if !content.is_empty() {
            fields = fields.content(content);
        }
        out.push(update(&done.tool_id, fields, Some(own).filter(|own| !own.is_empty())));
        // Late changes of files need no more of it.
        (call.started, call.is_over) = (None, true);
        self.calls.insert(done.tool_id.clone(), call);
    }

    /// The turn is over: changes of its finished calls come no more.
    pub(super) fn forget_finished(&mut self) {
        self.calls.retain(|_, call| !call.is_over);
    }

    pub(super) fn asked(&mut self, question: &Question, out: &mut Vec<Output>) {
        let id = call_id(question);
        self.asked.insert(question.question_id.clone(), id.clone());
        if self.calls.contains_key(&id) {
            let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Pending);
            out.push(update(&id, fields, None));
        }
    }

    pub(super) fn settled(&mut self, ruling: &Ruling, out: &mut Vec<Output>) {
        let Some(id) = self.asked.remove(&ruling.question_id) else { return };
        let Some(call) = self.calls.get(&id) else { return };
        if !ruling.kind.allows() || call.is_over {
            return; // The end of the call follows.
        }
        let mut fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        if self.is_terminal(call) {
            // The question took its place.
            fields = fields.content(self.content(&id, call));
        }
        if let Some(runs) = &ruling.runs {
            fields = fields.title(runs.title.clone()).raw_input(Value::Object(runs.arguments.clone()));
        }
        out.push(update(&id, fields, None));
    }

    pub(super) fn withdrawn(&mut self, question: &QuestionId, out: &mut Vec<Output>) {
        let Some(id) = self.asked.remove(question) else { return };
        if self.calls.get(&id).is_some_and(|call| !call.is_over) {
            out.push(update(&id, ToolCallUpdateFields::new().status(ToolCallStatus::InProgress), None));
        }
    }

    fn call(&self, started: &ToolStarted) -> Call {
        let has_path = matches!(started.tool_kind, ToolKind::Read | ToolKind::Edit | ToolKind::Search);
        let path = PATHS.iter().filter(|_| has_path).find_map(|key| started.arguments.get(*key)?.as_str());
        let locations = path.map(|path| ToolCallLocation::new(self.absolute(path))).into_iter().collect();
        Call { started: Some(started.clone()), locations, ..Call::default() }
    }

    fn make_room(&mut self) {
        if self.calls.len() >= CALLS {
            self.calls.retain(|_, call| !call.is_over);
        }
    }
}

/// The call that a question is about; a question without one is shown as a call of its own.
pub(in crate::acp) fn call_id(question: &Question) -> ToolId {
    question.tool_id.clone().unwrap_or_else(|| question.question_id.as_str().into())
}

/// What a question is about, as an update that a client can show even if it never saw the call.
pub(in crate::acp) fn asked_about(question: &Question) -> ToolCallUpdate {
    let (kind, content, location, input) = match &question.details {
        Details::Command { command, directory, description } => {
            let mut input = json!({ "command": command });
            if let (Value::Object(input), Some(directory)) = (&mut input, directory) {
                input.insert("directory".to_owned(), directory.as_str().into());
            }
            let text = description.as_ref().map(|description| format!("{description}\n\n")).unwrap_or_default();
            (Some(AcpKind::Execute), text_content(format!("{text}{}", fenced("", command))), None, Some(input))
        }
        Details::FileEdit { file_path, before, after, diff } => {
            let content = match (after, diff) {
                (Some(after), _) => {
                    ToolCallContent::Diff(Diff::new(file_path.as_str(), after.clone()).old_text(before.clone()))
                }
                (None, Some(diff)) => text_content(fenced("diff", diff)),
                (None, None) => text_content(file_path.clone()),
            };
            (Some(AcpKind::Edit), content, Some(file_path.clone()), None)
        }
        Details::Mcp { server, tool, arguments } => {
            let text = with_arguments(format!("{tool} of the MCP server {server}"), arguments);
            (None, text_content(text), None, Some(Value::Object(arguments.clone())))
        }
        Details::Plan { plan } => (Some(AcpKind::SwitchMode), text_content(plan.clone()), None, None),
        Details::Input { questions } => {
            let lines = questions.iter().map(|asked| {
                let labels =
                    if asked.labels.is_empty() { String::new() } else { format!(" ({})", asked.labels.join(" / ")) };
                format!("- {}{labels}", asked.question)
            });
            (None, text_content(lines.collect::<Vec<_>>().join("\n")), None, None)
        }
        Details::Text { text, arguments } => {
            let input = Some(Value::Object(arguments.clone())).filter(|_| !arguments.is_empty());
            (None, text_content(with_arguments(text.clone(), arguments)), None, input)
        }
    };
    let reason = question.reason.clone().map(text_content);
    let mut fields = ToolCallUpdateFields::new()
        .title(question.title.clone())
        .status(ToolCallStatus::Pending)
        .content([content].into_iter().chain(reason).collect::<Vec<_>>());
    // Otherwise it stays what the call began as.
    if let Some(kind) = kind {
        fields = fields.kind(kind);
    }
    if let Some(path) = location {
        fields = fields.locations(vec![ToolCallLocation::new(path)]);
    }
    if let Some(input) = input {
        fields = fields.raw_input(input);
    }
    if let Some(name) = &question.tool_name {
        fields = fields.name(name.clone());
    }
    ToolCallUpdate::new(id_of(&call_id(question)), fields)
}

/// The text may be the agent's own words; what would be done is in the arguments.
fn with_arguments(text: String, arguments: &Map<String, Value>) -> String {
    if arguments.is_empty() {
        return text;
    }
    let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
    format!("{text}\n\n{}", fenced("json", &arguments))
}

fn update(tool: &ToolId, fields: ToolCallUpdateFields, meta: Option<Map<String, Value>>) -> Output {
    Output::Update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id_of(tool), fields).meta(meta)))
}

fn id_of(tool: &ToolId) -> ToolCallId {
    ToolCallId::new(tool.as_str())
}

/// More output for the client's terminal.
fn terminal_output(tool: &ToolId, data: &str) -> Output {
    let data = json!({ "terminal_id": tool, "data": data });
    update(tool, ToolCallUpdateFields::new(), Some(Map::from_iter([("terminal_output".to_owned(), data)])))
}

fn text_content(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text_block(text)))
}

fn terminal_content(terminal: &str) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(terminal.to_owned()))
}

fn path_of(content: &ToolCallContent) -> Option<&std::path::Path> {
    if let ToolCallContent::Diff(diff) = content { Some(&diff.path) } else { None }
}

fn result_text(result: &Value) -> String {
    if let Value::String(text) = result { text.clone() } else { result.to_string() }
}

fn kind(kind: ToolKind) -> AcpKind {
    match kind {
        ToolKind::Shell => AcpKind::Execute,
        ToolKind::Read => AcpKind::Read,
        ToolKind::Edit => AcpKind::Edit,
        ToolKind::Search => AcpKind::Search,
        ToolKind::Fetch => AcpKind::Fetch,
        ToolKind::Agent | ToolKind::Todo => AcpKind::Think,
        ToolKind::Mcp | ToolKind::Other => AcpKind::Other,
    }
}
