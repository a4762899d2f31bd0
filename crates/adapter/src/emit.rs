//! Builds the events of one session, and keeps what they need: the turn that runs, its texts and tool calls, the open
//! questions, and the requests that the agent has not answered.
//!
//! All codecs and the stored histories use it, so that every agent's events keep the same promises: one end for each
//! turn and each tool call, no text twice, and no question that outlives its turn. No wire shape comes in here.

mod asked;
mod calls;
mod offer;
mod question;
mod request;
mod session;
mod text;
mod tool;
mod turn;

use multitap_event::{AgentType, EventKind, SystemNote, Timestamp};
use serde_json::{Map, Value};

pub(crate) use asked::AskedValues;
pub(crate) use offer::{commands, commands_event, models, models_event};
pub(crate) use question::{OpenQuestion, Questions};
pub(crate) use request::Requests;
pub(crate) use session::{ModeNews, STORED, SessionFacts, SessionMode, native_session_changed, report_model};
pub(crate) use text::{MessageStream, More, Texts, Voice, retract};
pub(crate) use tool::{DENIED, NoEnd, OpenTool, ToolEnd, Tools};
pub(crate) use turn::{EndFacts, Turns, died};

use crate::codec::Step;

/// The state behind one session's events. `T`, `Q` and `R` are what a codec keeps beside a tool call and a question, and
/// what it asks the agent.
#[derive(Debug)]
pub(crate) struct Emitter<T = (), Q = (), R = ()> {
    pub(crate) turns: Turns,
    pub(crate) texts: Texts,
    pub(crate) tools: Tools<T>,
    pub(crate) questions: Questions<Q>,
    pub(crate) requests: Requests<R>,
}

impl<T, Q, R> Emitter<T, Q, R> {
    pub(crate) fn new(agent: AgentType) -> Self {
        Self {
            turns: Turns::new(agent),
            texts: Texts::default(),
            tools: Tools::default(),
            questions: Questions::new(agent),
            requests: Requests::default(),
        }
    }

    /// Emits the end of a call that was taken from `tools`. Nobody is to be asked about it any more. `clock` is the time,
    /// if it means something.
    pub(crate) fn end_tool(&mut self, tool: &OpenTool<T>, end: ToolEnd, clock: Option<Timestamp>, out: &mut Step) {
        self.questions.withdraw_about(tool.id.as_str(), out);
        self.tools.end(tool, end, clock, out);
    }
}

/// A notice with an agent's own data.
pub(crate) fn note(subtype: &str, message: Option<String>, data: Map<String, Value>) -> EventKind {
    EventKind::System(SystemNote { subtype: subtype.to_owned(), message, data })
}
