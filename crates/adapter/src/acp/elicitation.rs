//! Forms and addresses that the agent, or an MCP server of it, shows to the user, and how they end.

use multitap_event::{Elicitation, ElicitationAnswer, QuestionId, Timestamp, ToolId};
use serde_json::{Map, Value, json};

use super::decode::AcpCodec;
use super::question::{Native, Via, written};
use super::rpc;
use super::wire::{Call, Completed};
use crate::codec::Step;
use crate::emit::OpenQuestion;
use crate::json::JsonFields as _;
use crate::line::unrecognized;

impl AcpCodec {
    pub(super) fn elicit(&mut self, id: &Value, line: &str, now: Timestamp, out: &mut Step) {
        // A question cannot come before `sessionStarted`, and none is asked in a turn that is being cancelled.
        let is_opening = self.emit.session.is_live() && !self.emit.session.started;
        if is_opening || self.emit.turns.is_cancelling() {
            out.lines.push(dismissal(id));
            return;
        }
        let asked = match serde_json::from_str::<Call<Map<String, Value>>>(line) {
            Ok(call) => call.params,
            Err(error) => {
                out.lines.push(dismissal(id));
                out.events.push(unrecognized(line, format!("a form that cannot be read: {error}")));
                return;
            }
        };
        if let Some(mode) = asked.text("mode").filter(|mode| !matches!(*mode, "form" | "url")) {
            out.lines.push(rpc::refusal(id, rpc::INVALID_PARAMS, &format!("multitap does not show '{mode}'")));
            out.events.push(unrecognized(line, format!("an elicitation of the unknown mode '{mode}'")));
            return;
        }
        self.at_work(now, out);
        self.emit.messages.pause();
        let tool = asked.text("toolCallId").filter(|tool| self.emit.tools.find(tool).is_some());
        if let Some(tool) = tool {
            self.emit.tools.report(tool, out);
        }
        let elicitation_id = asked.string("elicitationId");
        // A request id is unique only within one process, and a log spans several.
        let scope = tool.or(elicitation_id.as_deref()).map_or_else(|| now.to_string(), str::to_owned);
        let question_id = QuestionId::from(format!("{scope}#{}", written(id)));
        let agent = self.session.reported.field("agentInfo");
        let agent = agent.text("title").or(agent.text("name")).unwrap_or("The agent");
        let question = Elicitation::of(agent, &asked).question(question_id, tool.map(ToolId::from));
        let native = Native { request_id: id.clone(), via: Via::Elicitation { id: elicitation_id } };
        self.emit.questions.ask(question, native, out);
    }

    /// What happens at an address was completed there. A question that still shows the address is answered by that.
    pub(super) fn elicitation_completed(&mut self, completed: &Completed, out: &mut Step) -> bool {
        let shows = |open: &OpenQuestion<Native>| matches!(&open.native.via, Via::Elicitation { id } if id.as_ref() == Some(&completed.elicitation_id));
        let gone = self.emit.questions.withdraw("it was completed at the address", shows, out);
        out.lines.extend(gone.iter().map(|open| accepted(&open.native.request_id)));
        !gone.is_empty()
    }
}

pub(super) fn dismissal(id: &Value) -> String {
    rpc::result(id, ElicitationAnswer::Cancel.result())
}

fn accepted(id: &Value) -> String {
    rpc::result(id, json!({ "action": "accept" }))
}
