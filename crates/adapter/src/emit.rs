//! Builds the events of one session, and holds the state for them: facts of the session, the running turn, its texts
//! and tool calls, the open questions, and the requests that the agent has not answered.
//!
//! All codecs and the stored histories use it, so that the same holds for every agent's events: one end for each turn
//! and each tool call, no text twice, and no question that outlives its turn. Must not come in: an agent's JSON.

mod asked;
mod ended;
mod offer;
mod question;
mod request;
mod session;
mod text;
mod tool;
mod turn;

use multitap_event::{AgentError, AgentErrorKind, EventKind, SystemNote, Timestamp, TodoStatus, TurnEnd, Unsupported};
use serde_json::{Map, Value};

pub(crate) use asked::AskedValues;
pub(crate) use offer::{commands, commands_event, models, models_event};
pub(crate) use question::{OpenQuestion, Questions};
pub(crate) use request::Requests;
pub(crate) use session::{ModeNews, STORED, SessionFacts, SessionMode, report_model};
pub(crate) use text::{MessageStream, More, Texts, Voice, retract};
pub(crate) use tool::{NoEnd, OpenTool, ToolEnd, Tools};
pub(crate) use turn::{EndFacts, Turns, died};

use crate::codec::{End, Step};

/// The state behind one session's events. `T` and `Q` are a codec's own data about a tool call and a question; `R` is a
/// request to the agent.
#[derive(Debug)]
pub(crate) struct Emitter<T = (), Q = (), R = ()> {
    pub(crate) session: SessionFacts,
    pub(crate) turns: Turns,
    pub(crate) texts: Texts,
    pub(crate) messages: MessageStream,
    pub(crate) tools: Tools<T>,
    pub(crate) questions: Questions<Q>,
    pub(crate) requests: Requests<R>,
}

impl<T, Q, R> Emitter<T, Q, R> {
    pub(crate) fn new(session: SessionFacts) -> Self {
        Self {
            turns: Turns::default(),
            texts: Texts::default(),
            messages: MessageStream::default(),
            tools: Tools::default(),
            questions: Questions::new(session.agent),
            requests: Requests::default(),
            session,
        }
    }

    /// Emits the end of a call that was taken from `tools`, and withdraws its open questions.
    pub(crate) fn end_tool(&mut self, tool: &OpenTool<T>, end: ToolEnd, now: Timestamp, out: &mut Step) {
        self.questions.withdraw_about(tool.id.as_str(), out);
        self.tools.end(tool, end, self.session.clock(now), out);
    }

    /// Ends the open calls that `is_over` selects, if the agent does not report their end.
    pub(crate) fn close_tools(
        &mut self,
        is_over: impl FnMut(&OpenTool<T>) -> bool,
        no_end: NoEnd,
        now: Timestamp,
        out: &mut Step,
    ) {
        self.tools.close(is_over, no_end, self.session.clock(now), out);
    }

    /// Ends the running turn and its texts. The end reports the calls that were denied in it.
    pub(crate) fn complete_turn(&mut self, mut turn: TurnEnd, now: Timestamp, out: &mut Step) {
        self.texts.turn_over();
        self.messages.turn_over();
        turn.denials.extend(self.tools.take_denials());
        self.turns.complete(turn, self.session.clock(now), out);
    }

    /// The agent's output has ended: ends the running turn, then the session. The caller has closed the turn's work.
    pub(crate) fn end_session(&mut self, end: &End, facts: EndFacts, now: Timestamp, out: &mut Step) {
        self.turns.end(self.session.agent, end, facts, self.session.clock(now), out);
    }

    /// The error of a command that cannot be carried out.
    pub(crate) fn refused(&self, why: impl Into<String>) -> AgentError {
        AgentError::new(AgentErrorKind::ProtocolError, why).of(self.session.agent)
    }

    pub(crate) fn refuse(&self, why: impl Into<String>, out: &mut Step) {
        out.events.push(EventKind::Error(self.refused(why)));
    }

    /// Reports a steering prompt as an error. The link says whether an agent can be steered, so no such prompt is sent
    /// to it.
    pub(crate) fn refuse_steering(&self, out: &mut Step) {
        self.refuse("it cannot add a prompt to a running turn", out);
    }

    pub(crate) fn refuse_cancel(&self, out: &mut Step) {
        out.events.push(EventKind::Error(self.refused("there is no turn to cancel").warning()));
    }

    pub(crate) fn unsupported(&self, setting: impl Into<String>, why: impl Into<String>) -> Unsupported {
        Unsupported::new(self.session.agent, setting, why)
    }
}

pub(crate) fn note(subtype: &str, message: Option<String>, data: Map<String, Value>) -> EventKind {
    EventKind::System(SystemNote { subtype: subtype.to_owned(), message, data })
}

/// The status of an item in a plan, by an agent's word for it.
pub(crate) fn todo_status(word: Option<&str>) -> TodoStatus {
    match word {
        Some("in_progress" | "inProgress") => TodoStatus::InProgress,
        Some("completed" | "done") => TodoStatus::Completed,
        Some("cancelled" | "deleted") => TodoStatus::Cancelled,
        _ => TodoStatus::Pending,
    }
}
