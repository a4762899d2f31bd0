//! Tool calls in a stored conversation: with their results, or as an answer without a call.

use multitap_event::{FileChange, FileChangeType, Timestamp, ToolOutcome};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::record::Stored;
use super::wire::{FileDisplay, ToolCall};
use crate::codec::Step;
use crate::diff;
use crate::emit::{OpenTool, ToolEnd};
use crate::gemini::name;
use crate::gemini::tools::{open_tool, todos};

impl Stored {
    pub(super) fn call(&mut self, call: &ToolCall, at: Timestamp, out: &mut Step) {
        if call.id.is_empty() || self.ended.contains(&call.id) {
            return;
        }
        self.begin_turn(at, out);
        (self.turn.words, self.turn.is_idle) = (None, false);
        let title = name::title(&call.name, &call.args);
        let title = Some(call.description.clone().filter(|title| !title.is_empty()).unwrap_or(title));
        let tool = OpenTool { title, arguments: call.args.clone(), ..open_tool(&call.id, &call.name, at) };
        self.emit.tools.start(tool, out);
        let outcome = match call.status.as_str() {
            "success" => ToolOutcome::Completed,
            "error" => ToolOutcome::Failed,
            "cancelled" => ToolOutcome::Cancelled,
            // It was still at work.
            _ => return,
        };
        let responses = call.result.as_array().into_iter().flatten();
        let response = responses.filter_map(|part| part.get("functionResponse")?.get("response")).next();
        let shown = call.result_display.as_str().filter(|shown| !shown.is_empty());
        let said = shown.map(str::to_owned).or_else(|| response.map(answer));
        let change = change(call);
        self.over(&call.id, outcome, said, change, at, out);
    }

    /// A tool's answer. Of a call that was refused or could not be made, it is all there is.
    pub(super) fn answered(&mut self, response: &Map<String, Value>, at: Timestamp, out: &mut Step) {
        let word = |key: &str| response.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = word("id");
        if self.ended.contains(&id) {
            return;
        }
        self.call(&ToolCall { id: id.clone(), name: word("name"), ..ToolCall::default() }, at, out);
        let body = response.get("response").unwrap_or(&Value::Null);
        let said = answer(body);
        let outcome = match body.get("error").is_some_and(|error| !error.is_null()) {
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

/// What a tool answered, as text.
fn answer(response: &Value) -> String {
    let text = ["output", "error", "content"].into_iter().find_map(|key| response.get(key)?.as_str());
    text.map_or_else(|| response.to_string(), str::to_owned)
}

/// The change that a file tool shows.
fn change(call: &ToolCall) -> Option<FileChange> {
    let shown = FileDisplay::deserialize(&call.result_display).ok().filter(|shown| shown.file_diff.is_some())?;
    let created = shown.original_content.as_deref().is_none_or(str::is_empty);
    let path = shown.file_path.or(shown.file_name)?;
    let before = shown.original_content.filter(|_| !created);
    let after = shown.new_content;
    let diff = after.as_deref().map(|after| diff::unified(&path, before.as_deref(), after)).or(shown.file_diff);
    Some(FileChange {
        file_path: path,
        change_type: if created { FileChangeType::Created } else { FileChangeType::Modified },
        diff: diff.filter(|diff| !diff.is_empty()),
        before,
        after,
        tool_id: Some(call.id.as_str().into()),
        old_path: None,
    })
}
