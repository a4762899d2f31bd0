//! Permission requests of the agent as questions of the session, and the answers to all questions in its format.

use std::collections::HashSet;

use multitap_event::{
    Choice, ChoiceKind, Decide, Details, ElicitationAnswer, Question, Timestamp, ToolKind, one_line, option,
};
use serde_json::{Map, Value, json};

use super::content::Change;
use super::decode::AcpCodec;
use super::elicitation::dismissal;
use super::flavor::Flavor;
use super::rpc;
use super::wire::{AskPermission, Call, PermissionOption};
use crate::codec::{MOST_READ, Step};
use crate::diff;
use crate::form::CANCEL_ALWAYS;
use crate::json::{JsonFields as _, set_fields};
use crate::line::unrecognized;

/// The facts that an answer to the agent needs.
#[derive(Debug)]
pub(super) struct Native {
    pub(super) request_id: Value,
    pub(super) via: Via,
}

/// The request that a question came by.
#[derive(Debug)]
pub(super) enum Via {
    /// `session/request_permission`: our option ids and the agent's.
    Permission { options: Vec<(String, String)> },
    /// `elicitation/create`, with the id by which the agent may complete it.
    Elicitation { id: Option<String> },
}

impl Native {
    /// The line that ends the request without an answer.
    fn dismissed(&self) -> String {
        match self.via {
            Via::Permission { .. } => no_answer(&self.request_id),
            Via::Elicitation { .. } => dismissal(&self.request_id),
        }
    }
}

impl AcpCodec {
    pub(super) fn request_permission(&mut self, id: &Value, line: &str, now: Timestamp, out: &mut Step) {
        // The agent sent this before it saw the cancellation: do not ask.
        if self.emit.turns.is_cancelling() {
            out.lines.push(no_answer(id));
            return;
        }
        let asked: AskPermission = match serde_json::from_str::<Call<AskPermission>>(line) {
            Ok(call) => call.params,
            Err(error) => {
                out.lines.push(no_answer(id));
                out.events.push(unrecognized(line, format!("a question that cannot be read: {error}")));
                return;
            }
        };
        let (choices, options) = choices(&asked.options, self.flavor);
        if choices.is_empty() {
            out.lines.push(no_answer(id));
            out.events.push(unrecognized(line, "a question without an answer that is known here"));
            return;
        }
        self.at_work(now, out);
        self.emit.messages.pause();
        let tool = asked.tool_call.tool_call_id.clone();
        if !self.emit.tools.is_over(&tool) {
            self.merge(asked.tool_call, now);
            self.emit.tools.report(&tool, out);
        }
        let details = self.details(&tool);
        let open = self.emit.tools.find(&tool);
        let name = open.map(|tool| tool.name.clone());
        let title = open.and_then(|tool| tool.title.clone()).or_else(|| name.clone());
        let title = title.unwrap_or_else(|| "The agent asks for permission".to_owned());
        let question = Question {
            // A request id is unique only within one process, and a log spans several.
            question_id: format!("{tool}#{}", written(id)).into(),
            tool_id: open.map(|tool| tool.id.clone()),
            tool_name: name,
            title: match &details {
                Details::Command { command, .. } => format!("Run {}", one_line(command)),
                Details::Plan { .. } => "Go ahead with this plan?".to_owned(),
                _ => title,
            },
            options: choices,
            details,
            // The protocol has no way to send an edit with an answer.
            edits: Vec::new(),
            reason: None,
        };
        let native = Native { request_id: id.clone(), via: Via::Permission { options } };
        self.emit.questions.ask(question, native, out);
    }

    /// The details of a question about an open call.
    fn details(&mut self, tool: &str) -> Details {
        let cwd = self.session.wishes.as_ref().map(|wishes| wishes.cwd.clone());
        let (flavor, files) = (self.flavor, self.files.as_ref());
        let Some(tool) = self.emit.tools.find_mut(tool) else {
            return Details::Text { text: String::new(), arguments: Map::new() };
        };
        let text = |key: &str| tool.arguments.string(key);
        let shown = &tool.native.shown;
        if let Some((server, name)) = flavor.mcp(&tool.name, tool.title.as_deref()) {
            return Details::Mcp { server, tool: name, arguments: tool.arguments.clone() };
        }
        if tool.kind == ToolKind::Shell {
            let (directory, description) = place(&shown.text);
            // A command is asked about as such, even if its agent shows a change to a file beside it.
            let more = set_fields(&tool.arguments, &["command", "cwd", "description", "timeout"])
                .chain(text("description").or(description))
                .chain(shown.changes.iter().filter_map(Change::diff));
            let more: Vec<String> = more.collect();
            return Details::Command {
                command: text("command").or_else(|| tool.title.clone()).unwrap_or_default(),
                directory: text("cwd").or(directory).or(cwd),
                description: (!more.is_empty()).then(|| more.join("\n")),
            };
        }
        if let Some(first) = shown.changes.first() {
            let (path, alone) = (first.path.clone(), shown.changes.len() == 1);
            let whole = |(at, change): (usize, &Change)| {
                if at < MOST_READ { change.clone().preview(files) } else { change.clone() }
            };
            let changes: Vec<_> = shown.changes.iter().enumerate().map(whole).collect();
            let named = |change: &Change| change.diff().unwrap_or_else(|| diff::headed(&change.path, None, ""));
            let diff: String = match changes.as_slice() {
                [one] => one.diff().unwrap_or_default(),
                // Each diff names its file, even if no line changes.
                several => several.iter().map(named).collect(),
            };
            let (before, after) = match changes.first().filter(|_| alone) {
                Some(change) => (change.before.clone(), Some(change.after.clone())),
                None => (None, None),
            };
            tool.native.foreseen = changes;
            return Details::FileEdit { file_path: path, before, after, diff: Some(diff).filter(|d| !d.is_empty()) };
        }
        if let Some(plan) = text("plan") {
            return Details::Plan { plan };
        }
        let about = Some(shown.text.clone()).filter(|text| !text.is_empty());
        // The plan may arrive after the question.
        if tool.native.kind == "switch_mode" {
            return Details::Plan { plan: about.or_else(|| tool.title.clone()).unwrap_or_default() };
        }
        Details::Text {
            text: about.or_else(|| tool.title.clone()).unwrap_or_else(|| tool.name.clone()),
            arguments: tool.arguments.clone(),
        }
    }

    /// Handles an answer. One that does not fit changes nothing, and the question stays open.
    pub(super) fn decide(&mut self, decide: &Decide, now: Timestamp, out: &mut Step) {
        let Some((open, choice)) = self.emit.questions.answered_by(decide, out) else { return };
        let (answer, denied) = match &open.native.via {
            Via::Permission { options } => {
                let native = options.iter().find(|(ours, _)| ours == decide.option_id.as_str());
                let native = native.map_or(decide.option_id.as_str(), |(_, theirs)| theirs);
                let answer = json!({ "outcome": { "outcome": "selected", "optionId": native } });
                (answer, open.question.tool_id.clone().filter(|_| choice.kind.rejects()))
            }
            // A refused form does not deny the call that needs it.
            Via::Elicitation { .. } => match ElicitationAnswer::of(&open.question, decide) {
                Ok(answer) => (answer.result(), None),
                Err(why) => {
                    self.emit.refuse(why, out);
                    return;
                }
            },
        };
        out.lines.push(rpc::result(&open.native.request_id, answer));
        self.emit.questions.settle(decide);
        if let Some(tool) = denied {
            self.emit.tools.deny(tool.as_str());
            if self.flavor.silent_after_refusal() {
                self.close_denied(now, out);
            }
        }
    }

    /// A recording does not contain the answers. If the agent reports no end of denied calls and continues while its
    /// question is open, the call was denied.
    pub(super) fn refused_elsewhere(&mut self, out: &mut Step) {
        if self.emit.session.is_live() || !self.flavor.silent_after_refusal() {
            return;
        }
        for open in self.emit.questions.withdraw("the agent went on without an answer from here", |_| true, out) {
            if let Some(tool) = &open.question.tool_id {
                self.emit.tools.deny(tool.as_str());
            }
        }
    }

    /// No answer can come any more: dismisses each open question, so that the agent does not wait.
    pub(super) fn withdraw_all(&mut self, reason: &str, out: &mut Step) {
        for open in self.emit.questions.withdraw(reason, |_| true, out) {
            out.lines.push(open.native.dismissed());
        }
    }

    pub(super) fn request_withdrawn(&mut self, id: &Value, out: &mut Step) {
        let asked = |open: &crate::emit::OpenQuestion<Native>| open.native.request_id == *id;
        for open in self.emit.questions.withdraw("the agent no longer asks", asked, out) {
            out.lines.push(rpc::refusal(&open.native.request_id, rpc::CANCELLED, "the request was withdrawn"));
        }
    }
}

/// A request's id as text.
pub(super) fn written(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

fn no_answer(id: &Value) -> String {
    rpc::result(id, json!({ "outcome": { "outcome": "cancelled" } }))
}

/// Our options, and the agent's option that each stands for. They come in the same order for every agent (once, always,
/// no, never), whatever order the agent uses.
fn choices(options: &[PermissionOption], flavor: Flavor) -> (Vec<Choice>, Vec<(String, String)>) {
    let mut choices: Vec<Choice> = Vec::new();
    let mut ids = Vec::new();
    let mut taken: HashSet<&str> = HashSet::new();
    for one in options {
        let native = one.option_id.as_str();
        let (id, kind) = match one.kind.as_str() {
            "allow_once" => (option::PROCEED_ONCE, ChoiceKind::AllowOnce),
            "allow_always" if native.contains("server") => (option::PROCEED_ALWAYS_SERVER, ChoiceKind::AllowAlways),
            "allow_always" if native.contains("save") => (option::PROCEED_ALWAYS_AND_SAVE, ChoiceKind::AllowAlways),
            "allow_always" if native.contains("tool") => (option::PROCEED_ALWAYS_TOOL, ChoiceKind::AllowAlways),
            "allow_always" => (option::PROCEED_ALWAYS, ChoiceKind::AllowAlways),
            "reject_once" => (option::CANCEL, ChoiceKind::RejectOnce),
            "reject_always" => (CANCEL_ALWAYS, ChoiceKind::RejectAlways),
            // Its effect is unknown, so it is not offered.
            _ => continue,
        };
        // A second option of the same kind keeps the agent's own id.
        let id = if taken.contains(id) { native } else { id };
        if !taken.insert(id) {
            continue;
        }
        let choice = Choice::new(id, one.name.clone(), kind);
        // ACP does not say how long "always" lasts, so such an agent may save it in its settings. Gemini's ids say how
        // long.
        let saves = kind == ChoiceKind::AllowAlways && (flavor == Flavor::Plain || native.contains("save"));
        choices.push(if saves { choice.for_owners() } else { choice });
        ids.push((id.to_owned(), native.to_owned()));
    }
    choices.sort_by_key(|choice| choice.kind);
    (choices, ids)
}

/// The folder and the purpose of a command, from Gemini's text: `[current working directory /w] (list files)`.
fn place(text: &str) -> (Option<String>, Option<String>) {
    let Some((head, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return (None, None);
    };
    let directory = head.strip_prefix("current working directory ").or_else(|| head.strip_prefix("in "));
    let description = rest.trim().strip_prefix('(').and_then(|rest| rest.rsplit_once(')')).map(|(text, _)| text);
    (directory.map(str::to_owned), description.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each option was once compared with all before it.
    #[test]
    fn a_question_may_have_very_many_options() {
        const OPTIONS: usize = 200_000;
        let option = |number: usize| PermissionOption {
            option_id: format!("option-{number}"),
            name: String::new(),
            kind: "reject_once".to_owned(),
        };
        let options: Vec<_> = (0..OPTIONS).chain(0..OPTIONS).map(option).collect();
        let (choices, ids) = choices(&options, Flavor::Plain);
        assert_eq!((choices.len(), ids.len(), choices[0].id.as_str()), (OPTIONS + 1, OPTIONS + 1, option::CANCEL));
    }
}
