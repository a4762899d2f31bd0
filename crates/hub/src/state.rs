//! The current state of a session.
//!
//! Pure, and changed by its events alone: applied in order they give the same state in a live session, after a crash,
//! and in another process. Its size does not grow with the log.

mod tool;

use std::collections::{BTreeMap, VecDeque};

use multitap_event::{
    AgentCapabilities, ApprovalMode, ClientId, ClientRef, Event, EventKind, Prompt, PromptId, Question, Rule, Ruling,
    SessionEnd, SessionEndReason, SessionId, SessionStart, TodoList, TokenUsage, ToolCompleted, ToolOutcome, TurnEnd,
    TurnId, TurnStatus, UserMessage, Withdrawal, shell_line, shortened,
};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

#[cfg(test)]
pub(crate) use self::tool::OUTPUT_TAIL;
pub use self::tool::{Output, ToolCall, ToolStatus};
use crate::arbiter::Arbiter;
use crate::entry::Entry;
use crate::protocol::{ClientsReply, RulesReply, SessionCall, SessionReply, SnapshotReply};

/// Most queued prompts.
const PROMPT_QUEUE: usize = 64;
/// Most bytes of all queued prompts: they are in memory, and in each checkpoint.
const PROMPT_QUEUE_BYTES: usize = 32 * 1024 * 1024;
/// Number of latest prompts whose position in the log is remembered.
const MARKS: usize = 128;
/// The agents' command for clearing the conversation: earlier prompts no longer describe the session.
const CLEAR: &str = "/clear";
/// Most characters of a prompt in a title or a mark.
const TITLE_CHARS: usize = 120;
/// Most tool calls of the running turn; the oldest finished ones are dropped first.
const TOOLS: usize = 256;
/// Most bytes of them, roughly: they are in each checkpoint, and every joining client gets a copy.
const TOOLS_BYTES: usize = 1024 * 1024;

/// The state of a session after the event `seq`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    pub seq: u64,
    pub agent: Presence,
    /// The start of the current agent; if none runs, of the previous one.
    pub start: Option<SessionStart>,
    /// The end of the latest agent that ended.
    pub end: Option<SessionEnd>,
    pub native_id: Option<String>,
    pub model: Option<String>,
    pub mode: Option<ApprovalMode>,
    pub native_mode: Option<String>,
    /// What the agent can do, without its own description.
    pub capabilities: AgentCapabilities,
    /// The running turn.
    pub turn: Option<Turn>,
    /// The prompt that the agent got and whose turn has not ended.
    pub in_flight: Option<PromptId>,
    pub queue: VecDeque<Queued>,
    /// The tool calls of the running turn, or of the previous one.
    pub tools: Vec<ToolCall>,
    pub questions: Arbiter,
    pub rules: Vec<Rule>,
    /// The state of each MCP server of the agent, by name.
    pub mcp_servers: BTreeMap<String, String>,
    pub clients: Vec<ClientRef>,
    pub todos: Option<TodoList>,
    pub usage: Option<TokenUsage>,
    pub cost_usd: Option<f64>,
    pub turns: u64,
    /// Whether the agent got a prompt that is no shell command, or wrote something.
    pub talked: bool,
    pub last_turn: Option<TurnStatus>,
    /// The first prompt.
    pub title: Option<String>,
    /// The places of the latest prompts in the log.
    pub marks: VecDeque<Mark>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Presence {
    #[default]
    NotYet,
    Here,
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub turn_id: TurnId,
    /// Its first event.
    pub seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queued {
    pub prompt: Prompt,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ClientRef>,
}

/// The place of a prompt in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    pub seq: u64,
    pub text: String,
}

impl State {
    /// Whether a turn runs or is about to.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.in_flight.is_some()
    }

    /// The agent's own conversation, once it can be resumed: an agent without a prompt may have named one without
    /// storing it.
    pub fn conversation(&self) -> Option<&str> {
        let is_stored = self.talked || self.capabilities.stores_empty_conversations == Some(true);
        self.native_id.as_deref().filter(|_| is_stored)
    }

    /// Whether it never got a prompt.
    pub fn is_unprompted(&self) -> bool {
        self.turns == 0 && self.is_idle() && self.marks.is_empty() && self.title.is_none()
    }

    /// Whether no turn runs and no prompt is queued.
    pub fn is_idle(&self) -> bool {
        !self.is_busy() && self.queue.is_empty()
    }

    /// Whether there is room for another prompt in the queue.
    pub(crate) fn has_room_for(&self, prompt: &Prompt) -> bool {
        let waiting: usize = self.queue.iter().map(|queued| weight(&queued.prompt)).sum();
        // A single prompt may be of any size.
        let fits = waiting == 0 || waiting + weight(prompt) <= PROMPT_QUEUE_BYTES;
        fits && self.queue.len() < PROMPT_QUEUE
    }

    /// The reply to a call that only reads the state; `None` for any other call.
    pub(crate) fn answer(&self, call: &SessionCall, id: &SessionId, epoch: u64) -> Option<SessionReply> {
        match call {
            SessionCall::Clients => Some(SessionReply::Clients(ClientsReply { clients: self.clients.clone() })),
            SessionCall::Rules => Some(SessionReply::Rules(RulesReply { rules: self.rules.clone() })),
            SessionCall::Snapshot => {
                let (session_id, snapshot) = (id.clone(), Box::new(self.clone()));
                Some(SessionReply::Snapshot(SnapshotReply { session_id, epoch, snapshot }))
            }
            _ => None,
        }
    }

    /// Applies the next entry. An event of a newer version has at least a number.
    pub(crate) fn apply_entry(&mut self, entry: &Entry) {
        match entry.event() {
            Some(event) => self.apply(event),
            None => self.seq = entry.seq(),
        }
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) {
        self.seq = event.seq;
        let speaks =
            matches!(event.kind, EventKind::TextChunk(_) | EventKind::Reasoning(_) | EventKind::PermissionAsked(_));
        self.talked |= speaks;
        match &event.kind {
            EventKind::SessionStarted(start) => self.started(start),
            EventKind::TurnStarted { turn_id } => {
                self.turn = Some(Turn { turn_id: turn_id.clone(), seq: event.seq });
                self.tools.clear();
            }
            EventKind::TurnCompleted(end) => self.turn_over(end),
            EventKind::SessionEnded(end) => self.ended(end),
            EventKind::ToolStarted(tool) => {
                self.make_room();
                self.tools.push(ToolCall::new(tool.clone()));
            }
            EventKind::ToolProgress(progress) => self.tool(&progress.tool_id, |tool| tool.progressed(progress)),
            EventKind::ToolCompleted(done) => self.tool(&done.tool_id, |tool| tool.completed(done.clone())),
            EventKind::TodoList(list) => self.todos = Some(list.clone()),
            EventKind::NativeSessionChanged { native_session_id } => {
                self.native_id = Some(native_session_id.clone());
            }
            EventKind::McpServerStatus(server) => {
                self.mcp_servers.insert(server.name.clone(), server.status.clone());
            }
            EventKind::RuleAdded(rule) => self.rules.push(rule.clone()),
            EventKind::RuleRevoked(revoked) => self.rules.retain(|rule| rule.rule_id != revoked.rule_id),
            EventKind::Capabilities(capabilities) => {
                self.model = capabilities.model.clone().or(self.model.take());
                self.capabilities.update(capabilities);
            }
            EventKind::UserMessage(message) => self.prompted(message, event.seq),
            EventKind::PromptQueued { prompt, from, first } => {
                self.entitle(&prompt.text);
                let queued = Queued { prompt: prompt.clone(), from: from.clone() };
                if *first { self.queue.push_front(queued) } else { self.queue.push_back(queued) }
            }
            EventKind::PromptWithdrawn { prompt_id, .. } => self.unqueue(prompt_id),
            EventKind::PermissionAsked(question) => self.asked(question),
            EventKind::PermissionSettled(ruling) => self.settled(ruling),
            EventKind::PermissionWithdrawn(gone) => {
                self.set_tool(&gone.question_id, ToolStatus::Running);
                self.questions.withdrawn(&gone.question_id, event.timestamp);
            }
            EventKind::ModeChanged { mode, native_mode, .. } => {
                self.mode = *mode;
                self.native_mode.clone_from(native_mode);
            }
            EventKind::ModelChanged { model, .. } => self.model = Some(model.clone()),
            EventKind::ClientJoined { client } => self.clients.push(client.clone()),
            EventKind::ClientLeft { client, .. } => self.clients.retain(|other| !is_same(other, client)),
            EventKind::TextChunk(_)
            | EventKind::TextRetracted(_)
            | EventKind::System(_)
            | EventKind::Reasoning(_)
            | EventKind::FileChanged(_)
            | EventKind::RawDelta { .. }
            | EventKind::Error(_)
            | EventKind::Retry(_)
            | EventKind::AuthStatus(_)
            | EventKind::Unrecognized { .. } => {}
        }
    }

    fn started(&mut self, start: &SessionStart) {
        self.agent = Presence::Here;
        self.end = None;
        if start.native_session_id.is_some() {
            self.native_id.clone_from(&start.native_session_id);
        }
        let stated = start.config.as_ref();
        self.model = stated.and_then(|config| config.model.clone()).or(self.model.take());
        self.mode = stated.and_then(|config| config.approval_mode).or(self.mode);
        self.native_mode = start.native_mode.clone().or(self.native_mode.take());
        self.capabilities = AgentCapabilities::default();
        self.start = Some(start.clone());
    }

    fn turn_over(&mut self, end: &TurnEnd) {
        self.turn = None;
        self.turns += 1;
        self.last_turn = Some(end.status);
        // A turn that began for another reason does not answer the prompt.
        if end.origin.is_none() {
            self.in_flight = None;
        }
        self.usage = TokenUsage::sum(self.usage, end.usage);
        if let Some(cost) = end.cost_usd {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
    }

    fn ended(&mut self, end: &SessionEnd) {
        self.agent = Presence::Gone;
        self.end = Some(end.clone());
        self.turn = None;
        self.in_flight = None;
        self.rules.retain(Rule::outlives_the_agent);
        self.mcp_servers.clear();
    }

    fn prompted(&mut self, message: &UserMessage, seq: u64) {
        if message.content.trim() == CLEAR {
            self.title = None;
        }
        self.entitle(&message.content);
        let is_line = shell_line(&message.content).is_some() && message.from.as_ref().is_none_or(ClientRef::is_owner);
        self.talked |= !is_line;
        if self.marks.len() == MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { seq, text: first_line(&message.content) });
        // A user message without our id comes from an earlier conversation, and begins no turn.
        let Some(id) = &message.prompt_id else { return };
        self.unqueue(id);
        if !message.steering {
            self.in_flight = Some(id.clone());
        }
    }

    fn entitle(&mut self, text: &str) {
        if self.title.is_none() && !matches!(text.trim(), "" | CLEAR) {
            self.title = Some(first_line(text));
        }
    }

    fn unqueue(&mut self, id: &PromptId) {
        self.queue.retain(|queued| queued.prompt.prompt_id.as_ref() != Some(id));
    }

    fn asked(&mut self, question: &Question) {
        self.questions.asked(question.clone());
        self.set_tool(&question.question_id, ToolStatus::Asking);
    }

    fn settled(&mut self, ruling: &Ruling) {
        let status = if ruling.kind.allows() { ToolStatus::Running } else { ToolStatus::Refused };
        let tool = self.questions.question(&ruling.question_id).and_then(|question| question.tool_id.clone());
        if let (Some(tool), Some(runs)) = (tool, &ruling.runs) {
            self.tool(&tool, |tool| tool.edited(runs));
        }
        self.set_tool(&ruling.question_id, status);
        self.questions.settled(ruling.clone());
    }

    /// Sets the status of the tool call that an open question is about.
    fn set_tool(&mut self, question: &multitap_event::QuestionId, status: ToolStatus) {
        let tool = self.questions.question(question).and_then(|question| question.tool_id.clone());
        if let Some(tool) = tool {
            self.tool(&tool, |tool| tool.set(status));
        }
    }

    fn tool(&mut self, id: &multitap_event::ToolId, change: impl FnOnce(&mut ToolCall)) {
        if let Some(tool) = self.tools.iter_mut().rev().find(|tool| tool.started.tool_id == *id) {
            change(tool);
        }
    }

    fn make_room(&mut self) {
        let mut bytes: usize = self.tools.iter().map(ToolCall::bytes).sum();
        while (self.tools.len() >= TOOLS || bytes > TOOLS_BYTES)
            && let Some(over) = self.tools.iter().position(ToolCall::is_over)
        {
            bytes -= self.tools.remove(over).bytes();
        }
    }

    /// Events that close everything that is open, before the agent's end is reported.
    pub fn loose_ends(&self, why: &str) -> Vec<EventKind> {
        let mut kinds = Vec::new();
        for question in self.questions.open() {
            let (question_id, reason) = (question.question_id.clone(), Some(why.to_owned()));
            kinds.push(EventKind::PermissionWithdrawn(Withdrawal { question_id, reason }));
        }
        for tool in self.tools.iter().filter(|tool| !tool.is_over()) {
            kinds.push(EventKind::ToolCompleted(ToolCompleted {
                tool_id: tool.started.tool_id.clone(),
                success: false,
                outcome: ToolOutcome::Cancelled,
                result: None,
                error: Some(why.to_owned()),
                exit_code: None,
                duration_ms: None,
            }));
        }
        if self.is_busy() {
            let turn_id = self.turn.as_ref().map(|turn| turn.turn_id.clone());
            let error = Some(why.to_owned());
            kinds.push(EventKind::TurnCompleted(TurnEnd { turn_id, error, ..TurnEnd::of(TurnStatus::Interrupted) }));
        }
        kinds
    }

    /// Events that close everything that was open when the process of the session died.
    pub fn interrupted(&self, why: &str) -> Vec<EventKind> {
        let mut kinds = self.loose_ends(why);
        if self.agent == Presence::Here {
            let reason = match (self.is_busy(), self.last_turn) {
                (false, Some(status)) => status.into(),
                (false, None) => SessionEndReason::Completed,
                (true, _) => SessionEndReason::Failed,
            };
            let error = Some(why.to_owned());
            let end = SessionEnd { reason, error, final_usage: self.usage, exit_code: None };
            kinds.push(EventKind::SessionEnded(end));
        }
        // Clients that read until the end have just left.
        let reason = (self.agent == Presence::Here).then(|| why.to_owned());
        for client in &self.clients {
            kinds.push(EventKind::ClientLeft { client: client.clone(), reason: reason.clone() });
        }
        kinds
    }

    /// Updates what handles know of the agent's own id.
    pub(crate) fn show_native_id(&self, known: &watch::Sender<Option<String>>) {
        known.send_if_modified(|known| {
            let changed = *known != self.native_id;
            known.clone_from(&self.native_id);
            changed
        });
    }

    pub fn client(&self, id: &ClientId) -> Option<&ClientRef> {
        self.clients.iter().find(|client| client.client_id.as_ref() == Some(id))
    }
}

/// A prompt's size in memory, roughly.
fn weight(prompt: &Prompt) -> usize {
    size_of::<Prompt>() + prompt.text.len() + prompt.images.iter().map(|image| image.data.len()).sum::<usize>()
}

fn is_same(one: &ClientRef, other: &ClientRef) -> bool {
    match (&one.client_id, &other.client_id) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

/// The first line of a prompt, for lists.
fn first_line(text: &str) -> String {
    shortened(text.trim_start().lines().next().unwrap_or_default().trim_end(), TITLE_CHARS)
}

#[cfg(test)]
mod tests;
