//! A tool call as A2A data: complete, with its question and its result.

use std::path::Path;

use multitap_a2a::Map;
use multitap_a2a::devtool::coder::{self, Beside};
use multitap_a2a::devtool::{
    ConfirmationDetails, ConfirmationOption, ConfirmationRequest, ErrorDetails, ExecuteDetails, FileDiff,
    GenericDetails, McpDetails, Spelling, ToolCall, ToolOutput,
};
use multitap_event::{AskedQuestion, Details, FileChange, FileChangeType, Question, ToolKind, ToolOutcome};
use serde_json::{Value, json};

use super::super::frame::{ToolStatus, ToolView};

/// The data part of a tool update.
pub(super) fn data(view: &ToolView, turn: Option<&str>, spelling: Spelling) -> Value {
    let call = call(view);
    match spelling {
        Spelling::Specified => serde_json::to_value(call).unwrap_or_default(),
        Spelling::Coder => coder::tool_call(
            &call,
            Beside {
                prompt_id: turn.unwrap_or_default(),
                tool_kind: kind(view.call.tool_kind),
                outcome: view.ruling.as_ref().map(|ruling| ruling.selected_option_id.as_str()),
            },
        ),
    }
}

/// The kind of tool, in the shipped server's words.
fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Shell => "execute",
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Search => "search",
        ToolKind::Fetch => "fetch",
        ToolKind::Todo => "think",
        ToolKind::Mcp | ToolKind::Agent | ToolKind::Other => "other",
    }
}

fn call(view: &ToolView) -> ToolCall {
    let (output, error) = result(view);
    ToolCall {
        tool_call_id: view.call.tool_id.as_str().to_owned(),
        status: view.status.into(),
        tool_name: view.call.tool_name.clone(),
        description: description(view),
        input_parameters: view.call.arguments.clone(),
        live_content: view.live.as_deref().map(str::to_owned),
        output,
        error,
        confirmation_request: view.asked.as_deref().map(request),
    }
}

/// The title. While a command waits for permission, also what else it is given, such as further permissions: the details
/// of a confirmation have no field for that.
fn description(view: &ToolView) -> Option<String> {
    let title = view.call.title.clone();
    let asked = view.asked.as_deref().map(|question| &question.details);
    let Some(Details::Command { description: Some(more), .. }) = asked else { return title };
    let lines: Vec<&str> = title.iter().map(String::as_str).chain([more.as_str()]).collect();
    Some(lines.join("\n"))
}

/// The files that a call changes, where neither its question nor its output has them. The extension has no field for
/// that.
pub(super) fn changes(view: &ToolView) -> Option<Value> {
    if view.asked.is_some() || view.status == ToolStatus::Succeeded {
        return None;
    }
    let change = |path: &str, before: &Option<String>, after: &Option<String>, diff: &Option<String>| {
        let fields = [("old_content", before), ("new_content", after), ("formatted_diff", diff)];
        let mut change = Map::from_iter([
            ("file_name".to_owned(), Value::from(file_name(path))),
            ("file_path".to_owned(), Value::from(path)),
        ]);
        change.extend(fields.iter().filter_map(|(key, text)| Some(((*key).to_owned(), text.as_deref()?.into()))));
        Value::Object(change)
    };
    if !view.changes.is_empty() {
        let made = view.changes.iter();
        return Some(made.map(|made| change(&made.file_path, &made.before, &made.after, &made.diff)).collect());
    }
    match &view.answered.as_ref()?.details {
        Details::FileEdit { file_path, before, after, diff } => Some(json!([change(file_path, before, after, diff)])),
        Details::Command { .. }
        | Details::Mcp { .. }
        | Details::Plan { .. }
        | Details::Input { .. }
        | Details::Text { .. } => None,
    }
}

/// The result: exactly one of the two once the call is over.
fn result(view: &ToolView) -> (Option<ToolOutput>, Option<ErrorDetails>) {
    match view.status {
        ToolStatus::Pending | ToolStatus::Executing => (None, None),
        ToolStatus::Succeeded => (Some(output(view)), None),
        ToolStatus::Failed | ToolStatus::Cancelled => (None, Some(error(view))),
    }
}

fn output(view: &ToolView) -> ToolOutput {
    let diffs: Option<Vec<FileDiff>> = view.changes.iter().map(|change| diff(change)).collect();
    match diffs.as_deref() {
        Some([diff]) => return ToolOutput::Diff(diff.clone()),
        // The specification has a field for one diff only.
        Some(diffs @ [_, ..]) => {
            return ToolOutput::StructuredData(Map::from_iter([("diffs".to_owned(), json!(diffs))]));
        }
        Some([]) | None => {}
    }
    match view.end.as_ref().and_then(|end| end.result.as_ref()) {
        Some(Value::String(text)) => ToolOutput::Text(text.clone()),
        Some(Value::Object(fields)) => ToolOutput::StructuredData(fields.clone()),
        Some(Value::Null) | None if !view.changes.is_empty() => ToolOutput::Text(lines_changed(view)),
        Some(Value::Null) | None => ToolOutput::Text(answer(view)),
        Some(other) => ToolOutput::StructuredData(Map::from_iter([("result".to_owned(), other.clone())])),
    }
}

/// The changed lines, where the agent does not report whole files.
fn lines_changed(view: &ToolView) -> String {
    let told = view.changes.iter().map(|change| change.diff.as_deref().unwrap_or(&change.file_path));
    told.collect::<Vec<_>>().join("\n")
}

/// The answer to a question, where the call has no other result.
fn answer(view: &ToolView) -> String {
    let ruling = view.ruling.as_ref().filter(|_| view.end.is_none());
    ruling.map(|ruling| ruling.selected_option_id.as_str().to_owned()).unwrap_or_default()
}

fn error(view: &ToolView) -> ErrorDetails {
    let end = view.end.as_deref();
    let said = end.and_then(|end| end.error.clone().or_else(|| Some(end.result.as_ref()?.as_str()?.to_owned())));
    let message = said.unwrap_or_else(|| refusal(view));
    let kind = match (view.status, end.map(|end| end.outcome)) {
        (_, Some(ToolOutcome::Denied)) => Some("denied"),
        (ToolStatus::Cancelled, None) if view.ruling.as_ref().is_some_and(|ruling| ruling.kind.rejects()) => {
            Some("denied")
        }
        (ToolStatus::Cancelled, _) => Some("cancelled"),
        _ => None,
    };
    ErrorDetails { message, r#type: kind.map(str::to_owned), status_code: end.and_then(|end| end.exit_code) }
}

fn refusal(view: &ToolView) -> String {
    let Some(ruling) = &view.ruling else { return "it did not run".to_owned() };
    let by = &ruling.settled_by;
    let why = ruling.feedback.as_ref().map(|words| format!(": {words}")).unwrap_or_default();
    format!("refused by {} ({}){why}", by.client, by.door)
}

/// Describes an option that is refused to anybody but an owner.
const OWNER_ONLY: &str = "Only an owner of this session may choose this option";

fn request(question: &Question) -> ConfirmationRequest {
    let option = |choice: &multitap_event::Choice| ConfirmationOption {
        id: choice.id.as_str().to_owned(),
        name: choice.name.clone(),
        description: choice.owner_only.then(|| OWNER_ONLY.to_owned()),
    };
    ConfirmationRequest { options: question.options.iter().map(option).collect(), details: details(question) }
}

fn details(question: &Question) -> ConfirmationDetails {
    match &question.details {
        Details::Command { command, directory, .. } => ConfirmationDetails::ExecuteDetails(ExecuteDetails {
            command: command.clone(),
            working_directory: directory.clone(),
        }),
        // A file diff needs the new text.
        Details::FileEdit { file_path, before, after: Some(after), diff } => {
            ConfirmationDetails::FileEditDetails(FileDiff {
                file_name: file_name(file_path),
                file_path: file_path.clone(),
                old_content: before.clone(),
                new_content: after.clone(),
                formatted_diff: diff.clone(),
            })
        }
        Details::FileEdit { diff, .. } => generic([Some(question.title.as_str()), diff.as_deref()]),
        Details::Mcp { server, tool, .. } => {
            ConfirmationDetails::McpDetails(McpDetails { server_name: server.clone(), tool_name: tool.clone() })
        }
        Details::Plan { plan } => generic([Some(question.title.as_str()), Some(plan)]),
        Details::Input { questions } => {
            let asked: Vec<String> = questions.iter().map(asked).collect();
            entitled(question, &asked.join("\n\n"))
        }
        // The text may be the agent's own words; what would be done is in the arguments.
        Details::Text { text, arguments } if !arguments.is_empty() => {
            let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
            entitled(question, &format!("{text}\n\n{arguments}"))
        }
        Details::Text { text, .. } => entitled(question, text),
    }
}

fn asked(question: &AskedQuestion) -> String {
    let labels: String = question.labels.iter().map(|label| format!("\n- {label}")).collect();
    format!("{}{labels}", question.question)
}

/// For `web_fetch`, the title may contain the address and the text the reason; for a form, the asker and the subject.
fn entitled(question: &Question, text: &str) -> ConfirmationDetails {
    let is_new = |words: &&str| !text.contains(words);
    let title = Some(question.title.as_str()).filter(is_new);
    generic([title, Some(text), question.reason.as_deref().filter(is_new)])
}

fn generic<const N: usize>(parts: [Option<&str>; N]) -> ConfirmationDetails {
    let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    ConfirmationDetails::GenericDetails(GenericDetails { description: parts.join("\n\n") })
}

/// A file diff needs the new text, unless the file was removed.
fn diff(change: &FileChange) -> Option<FileDiff> {
    let is_gone = change.change_type == FileChangeType::Deleted;
    Some(FileDiff {
        file_name: file_name(&change.file_path),
        file_path: change.file_path.clone(),
        old_content: change.before.clone(),
        new_content: change.after.clone().or(is_gone.then(String::new))?,
        formatted_diff: change.diff.clone(),
    })
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}
