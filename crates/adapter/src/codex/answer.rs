//! Answers: encodes decisions for Codex.

use multitap_event::{Choice, ChoiceKind, Decide, Details, ElicitationAnswer, option};
use serde_json::{Map, Value, json};

use super::decode::CodexCodec;
use super::question::{Open, Via};
use super::rpc::{AgentRequest, Steered, answer};
use crate::codec::Step;
use crate::form;

impl CodexCodec {
    /// Handles an answer. An invalid answer changes nothing. A valid one that cannot be carried out is sent as a denial
    /// with the reason: the ruling is final, and Codex must not wait for another answer.
    pub(super) fn decide(&mut self, decide: &Decide, out: &mut Step) {
        let Some((open, choice)) = self.emit.questions.answered_by(decide, out) else { return };
        let (open, choice) = (open.clone(), choice.clone());
        let (kind, decision) = match decision(&open, &choice, decide) {
            Ok(decision) => (choice.kind, decision),
            Err(why) => {
                let why = format!("the answer could not be carried out, so nothing was done: {why}");
                self.emit.refuse(why, out);
                let no = form::cancel("No");
                (no.kind, decision(&open, &no, decide).unwrap_or_else(|_| declined()))
            }
        };
        let line = match &open.native.via {
            Via::Event => {
                let id = self.emit.requests.next_number();
                json!({ "jsonrpc": "2.0", "id": id, "method": "respondToApproval", "params": decision }).to_string()
            }
            _ => answer(&open.native.request, &decision),
        };
        if kind.rejects()
            && let Some(tool) = &open.question.tool_id
        {
            self.emit.tools.deny(tool.as_str());
        }
        // A denial cannot carry text, so the comment is sent to the running turn first, before the denial lets the turn
        // go on.
        let words = decide.feedback.as_deref().filter(|words| kind.rejects() && !words.trim().is_empty());
        let words = words.filter(|_| !matches!(open.native.via, Via::Event | Via::Legacy));
        let said = |words: &str| json!([{ "type": "text", "text": words, "text_elements": [] }]);
        match words.and_then(|words| self.steer(&said(words), Steered::Feedback { then: line.clone() })) {
            Some(steer) => out.lines.push(steer),
            None => out.lines.push(line),
        }
        self.emit.questions.settle(decide);
    }

    /// The line that adds text to the running turn; `None` if no turn runs.
    pub(super) fn steer(&mut self, input: &Value, what: Steered) -> Option<String> {
        let (thread, turn) = (self.emit.session.native_id.clone()?, self.begun_turn()?.to_owned());
        let params = json!({ "threadId": thread, "expectedTurnId": turn, "input": input });
        Some(self.send_request(AgentRequest::Steer(what), "turn/steer", params))
    }
}

/// The decision in Codex's words, or why it cannot be expressed.
fn decision(open: &Open, choice: &Choice, decide: &Decide) -> Result<Value, String> {
    let (kind, id) = (choice.kind, choice.id.as_str());
    Ok(match &open.native.via {
        Via::Command { rule } => json!({ "decision": match (kind, id, rule) {
            (_, option::PROCEED_ALWAYS_AND_SAVE, Some(rule)) => {
                json!({ "acceptWithExecpolicyAmendment": { "execpolicy_amendment": rule } })
            }
            _ => word(kind).into(),
        }}),
        Via::Patch => json!({ "decision": word(kind) }),
        Via::McpTool if kind.rejects() => declined(),
        Via::McpTool => {
            let lasting = match id {
                option::PROCEED_ALWAYS_TOOL => json!({ "persist": "session" }),
                option::PROCEED_ALWAYS_AND_SAVE => json!({ "persist": "always" }),
                _ => Value::Null,
            };
            json!({ "action": "accept", "content": {}, "_meta": lasting })
        }
        Via::Form => ElicitationAnswer::of(&open.question, decide)?.result(),
        Via::Permissions { wanted } => match kind {
            ChoiceKind::AllowOnce => json!({ "permissions": wanted, "scope": "turn" }),
            ChoiceKind::AllowAlways => json!({ "permissions": wanted, "scope": "session" }),
            ChoiceKind::RejectOnce | ChoiceKind::RejectAlways => json!({ "permissions": {}, "scope": "turn" }),
        },
        Via::Input { .. } if kind.rejects() => json!({ "answers": {} }),
        Via::Input { ids } => {
            let Details::Input { questions } = &open.question.details else { return Ok(json!({ "answers": {} })) };
            let given = form::answers(questions, decide, |label, words| vec![label.to_owned(), words.to_owned()])?;
            let answers = ids.iter().cloned().zip(given).map(|(id, words)| (id, json!({ "answers": words })));
            json!({ "answers": answers.collect::<Map<_, _>>() })
        }
        Via::Legacy => {
            let why = decide.feedback.as_deref().unwrap_or("the user said no");
            json!({ "decision": match kind {
                ChoiceKind::AllowOnce => json!("approved"),
                ChoiceKind::AllowAlways => json!("approved_for_session"),
                ChoiceKind::RejectOnce | ChoiceKind::RejectAlways => json!({ "denied": { "rejection": why } }),
            }})
        }
        Via::Event => {
            let word = match kind {
                ChoiceKind::AllowOnce => "allow",
                ChoiceKind::AllowAlways => "allow_always",
                ChoiceKind::RejectOnce => "deny",
                ChoiceKind::RejectAlways => "deny_always",
            };
            let mut params = Map::from_iter([
                ("approval_id".to_owned(), open.native.request.clone()),
                ("decision".to_owned(), word.into()),
            ]);
            params.extend(decide.feedback.clone().map(|words| ("message".to_owned(), words.into())));
            params.into()
        }
    })
}

/// The answer to an MCP server for a denial.
fn declined() -> Value {
    json!({ "action": "decline", "content": null })
}

/// The app-server's word for an answer. The word for a denial lets the turn continue.
fn word(kind: ChoiceKind) -> &'static str {
    match kind {
        ChoiceKind::AllowOnce => "accept",
        ChoiceKind::AllowAlways => "acceptForSession",
        ChoiceKind::RejectOnce | ChoiceKind::RejectAlways => "decline",
    }
}
