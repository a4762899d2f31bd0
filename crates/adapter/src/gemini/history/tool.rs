//! Tool calls in a stored conversation: with their results, or results without a call.

use multitap_diff::of_file;
use multitap_event::{FileChange, FileChangeType, Timestamp, ToolOutcome};
use serde_json::{Map, Value};

use super::record::Stored;
use super::wire::ToolCall;
use crate::codec::Step;
use crate::emit::{OpenTool, ToolEnd};
use crate::gemini::name;
use crate::gemini::tools::{open_tool, todos};
use crate::json::JsonFields as _;

impl Stored {
    pub(super) fn call(&mut self, call: &ToolCall, at: Timestamp, out: &mut Step) {
        if call.id.is_empty() || self.ended.contains(&call.id) {
            return;
        }
        self.begin_turn(at, out);
        (self.turn.words, self.turn.is_idle) = (None, false);
        let arguments = call.args.clone().unwrap_or_default();
        let title = call.description.clone().filter(|title| !title.is_empty());
        let title = title.or_else(|| Some(name::title(&call.name, &arguments)));
        let tool = OpenTool { title, arguments, ..open_tool(&call.id, &call.name, at) };
        self.emit.tools.start(tool, out);
        let outcome = match call.status.as_deref() {
            Some("success") => ToolOutcome::Completed,
            Some("error") => ToolOutcome::Failed,
            Some("cancelled") => ToolOutcome::Cancelled,
            // The call was still running.
            _ => return,
        };
        let mut responses = call.result.as_array().into_iter().flatten();
        let response = responses.find_map(|part| part.field("functionResponse").field("response"));
        let shown = call.result_display.as_str().filter(|shown| !shown.is_empty());
        let said = shown.map(str::to_owned).or_else(|| response.map(answer));
        let change = change(call);
        self.over(&call.id, outcome, said, change, at, out);
    }

    /// The result of a tool. For a call that was denied or could not be made, the file has nothing else.
    pub(super) fn answered(&mut self, response: &Map<String, Value>, at: Timestamp, out: &mut Step) {
        let word = |key: &str| response.string(key).unwrap_or_default();
        let id = word("id");
        if self.ended.contains(&id) {
            return;
        }
        self.call(&ToolCall { id: id.clone(), name: word("name"), ..ToolCall::default() }, at, out);
        let body = response.get("response").unwrap_or(&Value::Null);
        let said = answer(body);
        let outcome = match body.field("error").is_some() {
            false => ToolOutcome::Completed,
            true if said.contains("by the user") => ToolOutcome::Denied,
            true => ToolOutcome::Failed,
        };
        self.over(&id, outcome, Some(said), None, at, out);
    }

    fn over(
        &mut self,
        id: &str,
        outcome: ToolOutcome,
        said: Option<String>,
        change: Option<FileChange>,
        at: Timestamp,
        out: &mut Step,
    ) {
        let Some(tool) = self.emit.tools.take(id, out) else { return };
        self.ended.insert(id.to_owned());
        let end = ToolEnd {
            result: said.clone().map(Value::from),
            error: Some(said.unwrap_or_else(|| "the agent did not say why".to_owned())),
            duration_ms: Some(at.millis_since(tool.started)).filter(|millis| *millis > 0),
            changes: change.into_iter().collect(),
            todos: todos(&tool),
            ..ToolEnd::of(outcome)
        };
        self.emit.tools.end(&tool, end, None, out);
    }
}

fn answer(response: &Value) -> String {
    let text = ["output", "error", "content"].into_iter().find_map(|key| response.string(key));
    text.unwrap_or_else(|| response.to_string())
}

fn change(call: &ToolCall) -> Option<FileChange> {
    let shown = &call.result_display;
    let own_diff = shown.string("fileDiff")?;
    let before = shown.string("originalContent").filter(|text| !text.is_empty());
    let change_type = if before.is_none() { FileChangeType::Created } else { FileChangeType::Modified };
    let path = shown.text("filePath").or(shown.text("fileName"))?;
    let after = shown.string("newContent");
    let diff = after.as_ref().map_or(own_diff, |after| of_file(path, before.as_deref(), after));
    let diff = Some(diff).filter(|diff| !diff.is_empty());
    Some(FileChange { diff, before, after, ..FileChange::of(path, change_type, &call.id.as_str().into()) })
}
