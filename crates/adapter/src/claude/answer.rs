//! Answers: encodes decisions for Claude.

use multitap_event::{AskedQuestion, ChoiceKind, Decide, Details, EditedCall, ElicitationAnswer, option};
use serde_json::{Map, Value, json};

use super::approve::Covers;
use super::change::Wanted;
use super::control::success;
use super::decode::ClaudeCodec;
use super::question::{Open, Via, allows_rules, headline, kind, saves_rules};
use super::wire::AskedTool;
use crate::codec::Step;
use crate::form::{self, CANCEL_ALWAYS};

impl ClaudeCodec {
    /// Handles an answer. An option that was not offered changes nothing. An offered one that cannot be carried out is
    /// sent as a denial with the reason: the ruling is final, and Claude must not wait for another answer.
    pub(super) fn decide(&mut self, decide: &Decide, out: &mut Step) {
        let Some((open, choice)) = self.emit.questions.answered_by(decide, out) else { return };
        if open.native.via == Via::Elicitation {
            // The check above has accepted the answer, so the fallback is never used.
            let answer = ElicitationAnswer::of(&open.question, decide).unwrap_or(ElicitationAnswer::Cancel);
            out.lines.push(success(&open.native.request_id, &answer.result()));
            self.emit.questions.settle(decide);
            return;
        }
        let mut kind = choice.kind;
        let mut decide = decide.clone();
        let input = match self.input(open, &decide) {
            Ok(input) => input,
            Err(_) if kind.rejects() => Map::new(),
            Err(why) => {
                let why = format!("the answer could not be carried out, so nothing was done: {why}");
                self.emit.refuse(why.as_str(), out);
                kind = ChoiceKind::RejectOnce;
                decide = Decide::new(&decide.question_id, option::CANCEL).with_feedback(why);
                Map::new()
            }
        };
        // A rule covers the call as it was answered, not as it was asked about.
        let settled = AskedTool {
            input: if kind.allows() { input } else { open.native.asked.input.clone() },
            ..open.native.asked.clone()
        };
        let lasts = !matches!(open.question.details, Details::Plan { .. } | Details::Input { .. });
        let covers = if lasts { covers(&settled, &decide) } else { None };
        let decision = if kind.allows() { allow(open, &decide, &settled.input) } else { deny(open, &decide) };
        out.lines.push(reply(&open.native.request_id, &open.native.via, &decision));
        if let Some(tool) = open.native.asked.tool_use_id.clone() {
            match decision.get("updatedInput") {
                Some(Value::Object(input)) => {
                    if let Some(tool) = self.emit.tools.find_mut(&tool) {
                        tool.arguments.clone_from(input);
                    }
                }
                _ => {
                    self.emit.tools.deny(&tool);
                }
            }
        }
        if let (Some(covers), Some(approver)) = (covers, &mut self.approver) {
            approver.remember(covers, kind.allows());
        }
        self.emit.questions.settle(&decide);
    }

    /// The call that an edited answer would run.
    pub(super) fn edit(&self, decide: &Decide) -> Result<EditedCall, String> {
        let (open, _) = self.emit.questions.answered(decide).map_err(|refused| refused.message)?;
        let asked = AskedTool { input: self.input(open, decide)?, ..open.native.asked.clone() };
        let details = self.details(&asked);
        Ok(EditedCall::new(headline(&asked, &details), asked.input, details))
    }

    /// The arguments to run with: Claude's, or those of the answer.
    fn input(&self, open: &Open, decide: &Decide) -> Result<Map<String, Value>, String> {
        if let Details::Input { questions } = &open.question.details {
            return answers(questions, open, decide);
        }
        let asked = &open.native.asked;
        let mut input = match &decide.new_input {
            Some(input) => {
                only_content(&asked.tool_name, &asked.input, input)?;
                input.clone()
            }
            None => asked.input.clone(),
        };
        let Some(text) = &decide.new_content else { return Ok(input) };
        let key = match asked.tool_name.as_str() {
            "Bash" | "PowerShell" => "command",
            "Write" => "content",
            "NotebookEdit" => "new_source",
            "Edit" | "MultiEdit" => return self.whole_file(input, &asked.tool_name, text),
            name => return Err(format!("{name} does not accept newContent; send its arguments as newInput")),
        };
        input.insert(key.to_owned(), text.as_str().into());
        Ok(input)
    }

    /// An edit that results in exactly that text of the file.
    fn whole_file(&self, mut input: Map<String, Value>, tool: &str, text: &str) -> Result<Map<String, Value>, String> {
        let wanted = Wanted::of(tool, &input).ok_or("the edit could not be read")?;
        let current = self.files.read(&wanted.path_in(self.emit.session.cwd.as_deref()));
        let current = current.ok_or_else(|| format!("{} cannot be read as text", wanted.path))?;
        // Claude sees the lines of a file without carriage returns, and restores them itself.
        let plain = |text: &str| text.replace("\r\n", "\n");
        let (old, new) = (plain(&current), plain(text));
        if tool == "MultiEdit" {
            input.insert("edits".to_owned(), json!([{ "old_string": old, "new_string": new }]));
        } else {
            input.insert("old_string".to_owned(), old.into());
            input.insert("new_string".to_owned(), new.into());
            input.insert("replace_all".to_owned(), false.into());
        }
        Ok(input)
    }
}

/// The line that sends a decision on the path by which the question came.
pub(super) fn reply(request_id: &str, via: &Via, decision: &Value) -> String {
    match via {
        Via::Control | Via::Elicitation => success(request_id, decision),
        Via::Tool { rpc_id } => {
            let content = json!([{ "type": "text", "text": decision.to_string() }]);
            let response = json!({ "jsonrpc": "2.0", "id": rpc_id, "result": { "content": content } });
            success(request_id, &json!({ "mcp_response": response }))
        }
    }
}

fn deny(open: &Open, decide: &Decide) -> Value {
    let silent = match open.question.details {
        Details::Plan { .. } => "The user does not approve this plan yet. Keep planning, or ask what they want.",
        Details::Input { .. } => "The user does not want to answer this now.",
        _ => "The user does not want this. Do not try it again unless they ask for it.",
    };
    let reason = decide.feedback.as_deref().filter(|text| !text.is_empty()).unwrap_or(silent);
    json!({ "behavior": "deny", "message": reason })
}

fn allow(open: &Open, decide: &Decide, input: &Map<String, Value>) -> Value {
    let mut decision = json!({ "behavior": "allow", "updatedInput": input });
    // If Claude asks through our tool, we remember the rules; Claude still switches the mode after a plan.
    let tells_claude = open.native.via == Via::Control || matches!(open.question.details, Details::Plan { .. });
    let updates = if tells_claude { updates(open, decide) } else { Vec::new() };
    if let Some(object) = decision.as_object_mut().filter(|_| !updates.is_empty()) {
        object.insert("updatedPermissions".to_owned(), updates.into());
    }
    decision
}

/// The permission updates to send with an answer: of Claude's own suggestions, only those that the chosen option names.
fn updates(open: &Open, decide: &Decide) -> Vec<Value> {
    // The suggestions are about the original call: an edited answer chooses no option that makes a rule.
    let suggestions = open.native.asked.permission_suggestions.as_deref().unwrap_or_default();
    let set_mode = |mode: &str| vec![json!({ "type": "setMode", "mode": mode, "destination": "session" })];
    match (decide.option_id.as_str(), &open.question.details) {
        (option::PROCEED_ONCE, Details::Plan { .. }) => set_mode("default"),
        (option::PROCEED_ALWAYS, Details::Plan { .. }) => set_mode("acceptEdits"),
        (option::PROCEED_ALWAYS, _) => {
            let rules: Vec<Value> = suggestions.iter().filter(|one| allows_rules(one)).map(for_session).collect();
            if !rules.is_empty() {
                return rules;
            }
            suggestions.iter().filter(|one| kind(one) == Some("setMode")).take(1).map(for_session).collect()
        }
        (option::PROCEED_ALWAYS_TOOL, Details::Mcp { server, tool, .. }) => {
            vec![add_rule(&format!("mcp__{server}__{tool}"))]
        }
        (option::PROCEED_ALWAYS_SERVER, Details::Mcp { server, .. }) => vec![add_rule(&format!("mcp__{server}"))],
        (option::PROCEED_ALWAYS_AND_SAVE, _) => suggestions.iter().filter(|one| saves_rules(one)).cloned().collect(),
        _ => Vec::new(),
    }
}

fn for_session(suggestion: &Value) -> Value {
    let mut update = suggestion.clone();
    update["destination"] = "session".into();
    update
}

fn add_rule(tool: &str) -> Value {
    json!({ "type": "addRules", "rules": [{ "toolName": tool }], "behavior": "allow", "destination": "session" })
}

/// What an answer covers from now on, for questions that come through our permission tool.
fn covers(asked: &AskedTool, decide: &Decide) -> Option<Covers> {
    match decide.option_id.as_str() {
        CANCEL_ALWAYS | option::PROCEED_ALWAYS | option::PROCEED_ALWAYS_TOOL => Some(Covers::like(asked)),
        option::PROCEED_ALWAYS_SERVER => Covers::server_of(asked),
        _ => None,
    }
}

/// The arguments that contain what a tool writes or runs, not where or how. Claude checks only the call that it asked
/// about against its rules, and runs an edited one unchecked.
fn content_arguments(tool: &str) -> &'static [&'static str] {
    match tool {
        "Bash" | "PowerShell" => &["command", "description", "timeout"],
        "Write" => &["content"],
        "Edit" => &["old_string", "new_string", "replace_all"],
        "MultiEdit" => &["edits"],
        "NotebookEdit" => &["new_source"],
        _ => &[],
    }
}

/// Refuses an edit of arguments other than the content.
fn only_content(tool: &str, asked: &Map<String, Value>, new: &Map<String, Value>) -> Result<(), String> {
    let content = content_arguments(tool);
    let names = asked.keys().chain(new.keys().filter(|name| !asked.contains_key(*name)));
    for name in names.filter(|name| asked.get(*name) != new.get(*name)) {
        if !content.contains(&name.as_str()) {
            let may = match content {
                [] => format!("the arguments of {tool} cannot be edited"),
                names => format!("an edit of {tool} may change {} alone", names.join(", ")),
            };
            return Err(format!("newInput changes \"{name}\": {may}"));
        }
    }
    Ok(())
}

/// The input of Claude's own questions, with the answers added.
fn answers(questions: &[AskedQuestion], open: &Open, decide: &Decide) -> Result<Map<String, Value>, String> {
    let given = form::answers(questions, decide, |label, words| vec![format!("{label}: {words}")])?;
    // Claude accepts only text: several answers to one question are joined with commas.
    let given = given.into_iter().map(|words| Value::from(words.join(", ")));
    let answers: Map<_, _> = questions.iter().map(|one| one.question.clone()).zip(given).collect();
    let mut input = decide.new_input.clone().unwrap_or_else(|| open.native.asked.input.clone());
    input.insert("answers".to_owned(), answers.into());
    Ok(input)
}
