//! Events to ACP session updates.
//!
//! Pure: the same log gives every client the same updates, apart from what a client declared in `initialize`. Live output
//! is throttled by time, which comes in as a value. Must not come in: channels, clocks, the connection.

#![warn(clippy::wildcard_enum_match_arm)]

mod tool;
mod update;

pub(super) use self::tool::asked_about;

use agent_client_protocol_schema::v1::{
    AvailableCommandsUpdate, CompactionStatus, CompactionUpdate, ConfigOptionUpdate, ContentBlock, ContentChunk,
    CurrentModeUpdate, ImageContent, Notice, NoticeSeverity, SessionConfigOption, SessionInfoUpdate, SessionUpdate,
    StopReason, TextContent,
};
use multitap_event::{
    AgentCommand, AgentError, Event, EventKind, PromptId, Question, QuestionId, Role, Ruling, SessionEnd, Severity,
    SystemNote, SystemSubtype, Timestamp, TurnEnd, UserMessage,
};
use multitap_hub::{ModeLimit, State};
use serde_json::{Map, Value, json};

use self::tool::Tools;
use self::update::{context, plan, prompt_end, said, shown_text, thought, turn_usage};
use super::config::{self, Choices};
use super::features::{ClientFeatures, META};

/// How many milliseconds an error is held back, in case it is why the turn ends.
const HELD_BACK: i64 = 1000;

/// What a connection does about an event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Output {
    Update(SessionUpdate),
    /// A prompt of that id was handed to the agent. Its own sender has shown it already.
    UserMessage {
        prompt: Option<PromptId>,
        /// The id that its sender gave it.
        sent_as: Option<String>,
        update: SessionUpdate,
    },
    /// The client is asked.
    Asked(Box<Question>),
    /// Nobody needs to answer any more.
    Closed {
        question: QuestionId,
        ruling: Option<Box<Ruling>>,
    },
    /// Why a turn failed, which the answer to these prompts says as well.
    Failure {
        prompts: Vec<PromptId>,
        update: SessionUpdate,
    },
    /// These prompts are answered.
    TurnOver {
        prompts: Vec<PromptId>,
        end: PromptEnd,
    },
}

/// How a prompt ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PromptEnd {
    Stopped(StopReason),
    Failed(String),
}

/// What one client knows of a session.
#[derive(Debug)]
pub(super) struct Encoder {
    features: ClientFeatures,
    choices: Choices,
    /// The session after the last event, without what is not shown from it.
    state: State,
    tools: Tools,
    /// The prompt that the agent works on.
    prompt: Option<PromptId>,
    /// The prompts that joined the running turn.
    steered: Vec<PromptId>,
    title: Option<String>,
    /// An error of the running turn, held back since then: it may be why the turn fails.
    trouble: Option<(AgentError, Timestamp)>,
    /// The settings and commands that the client knows; `None` while it is shown the history, which needs only the last.
    shown: Option<Shown>,
}

/// What is sent again only when it has changed.
#[derive(Debug, Default)]
struct Shown {
    options: Vec<SessionConfigOption>,
    commands: Vec<AgentCommand>,
}

impl Encoder {
    /// For a client that reads from the start of the log.
    pub(super) fn new(features: ClientFeatures, choices: Choices) -> Self {
        Self {
            features,
            choices,
            state: State::default(),
            tools: Tools::new(features),
            prompt: None,
            steered: Vec::new(),
            title: None,
            trouble: None,
            shown: None,
        }
    }

    /// For a client that joins at this state.
    pub(super) fn amid(features: ClientFeatures, choices: Choices, state: State) -> Self {
        let tools = Tools::amid(features, &state);
        let (prompt, title) = (state.in_flight.clone(), state.title.clone());
        Self { tools, prompt, title, state: slim(state), ..Self::new(features, choices) }
    }

    /// The same client at another state.
    pub(super) fn anew(&self, state: State) -> Self {
        Self::amid(self.features, self.choices.clone(), state)
    }

    /// From now on, the client may choose these modes.
    pub(super) fn limit_modes(&mut self, limit: ModeLimit) {
        self.choices.modes = limit;
    }

    /// The number of the last event.
    pub(super) fn seq(&self) -> u64 {
        self.state.seq
    }

    /// The updates that show what is open to a client that did not read the log, apart from questions.
    pub(super) fn overview(&mut self, out: &mut Vec<Output>) {
        if self.title.is_some() {
            out.push(self.session_info());
        }
        if let Some(list) = self.state.todos.clone() {
            out.push(Output::Update(plan(&list)));
        }
        self.tools.open_calls(out);
    }

    /// The settings and commands as they are now; from here on changes are shown.
    pub(super) fn settings(&mut self, out: &mut Vec<Output>) {
        // The reply to the client's request has the options already.
        self.shown = Some(Shown { options: config::options(&self.state, &self.choices), commands: Vec::new() });
        self.commands(out);
    }

    /// The same for a client that may know older ones.
    pub(super) fn all_settings(&mut self, out: &mut Vec<Output>) {
        self.shown = Some(Shown::default());
        self.options(out);
        self.commands(out);
    }

    /// The open questions, for a client that has seen what they are about.
    pub(super) fn questions(&self, out: &mut Vec<Output>) {
        out.extend(self.state.questions.open().iter().map(|question| Output::Asked(Box::new(question.clone()))));
    }

    /// When an update is due although nothing happens.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let trouble = self.trouble.as_ref().map(|(_, since)| Timestamp::from_millis(since.as_millis() + HELD_BACK));
        self.tools.due().into_iter().chain(trouble).min()
    }

    /// Makes the updates that are due by now.
    pub(super) fn tick(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        self.tools.tick(now, out);
        if let Some((error, _)) = self.trouble.take_if(|(_, since)| since.as_millis() + HELD_BACK <= now.as_millis()) {
            out.extend(self.went_wrong(&error).map(Output::Update));
        }
    }

    /// Applies the next event.
    pub(super) fn apply(&mut self, event: &Event, out: &mut Vec<Output>) {
        self.keep(event);
        let failure = self.failure(&event.kind, out);
        match &event.kind {
            EventKind::UserMessage(message) => self.prompted(message, out),
            // What a sub-agent is told is in its call; among the prompts nobody would know whose it is.
            EventKind::TextChunk(chunk) if chunk.role == Some(Role::User) && chunk.parent_tool_id.is_some() => {}
            EventKind::TextChunk(chunk) => out.push(Output::Update(said(chunk))),
            EventKind::Reasoning(piece) => out.push(Output::Update(thought(piece))),
            EventKind::ToolStarted(call) => self.tools.started(call, out),
            EventKind::ToolProgress(progress) => {
                self.tools.progressed(progress, out);
                self.tools.tick(event.timestamp, out);
            }
            EventKind::ToolCompleted(done) => self.tools.completed(done, out),
            EventKind::FileChanged(change) => self.tools.changed(change, event.seq, out),
            EventKind::TodoList(list) => out.push(Output::Update(plan(list))),
            EventKind::PermissionAsked(question) => {
                self.tools.asked(question, out);
                out.push(Output::Asked(Box::new(question.clone())));
            }
            EventKind::PermissionSettled(ruling) => {
                // The dialog closes before the call goes on: a client may show a closed dialog as a cancelled call.
                let (question, without_edit) = (ruling.question_id.clone(), ruling.clone().without_edit());
                out.push(Output::Closed { question, ruling: Some(Box::new(without_edit)) });
                self.tools.settled(ruling, out);
            }
            EventKind::PermissionWithdrawn(gone) => {
                out.push(Output::Closed { question: gone.question_id.clone(), ruling: None });
                self.tools.withdrawn(&gone.question_id, out);
            }
            EventKind::TurnCompleted(end) => self.turn_over(end, failure, out),
            EventKind::SessionStarted(_) => self.started(out),
            EventKind::SessionEnded(end) => self.ended(end, out),
            EventKind::PromptWithdrawn { prompt_id, .. } => {
                let end = PromptEnd::Stopped(StopReason::Cancelled);
                out.push(Output::TurnOver { prompts: vec![prompt_id.clone()], end });
            }
            EventKind::ModeChanged { .. } => self.mode(out),
            EventKind::ModelChanged { .. } => self.options(out),
            EventKind::Capabilities(_) => {
                self.commands(out);
                self.options(out);
            }
            EventKind::Error(error) if error.severity == Severity::Error && self.is_prompted() => {
                self.trouble = Some((error.clone(), event.timestamp));
            }
            EventKind::Error(error) => out.extend(self.went_wrong(error).map(Output::Update)),
            EventKind::TextRetracted(text) => {
                let why = text.message.clone().unwrap_or_else(|| "the text above no longer counts".to_owned());
                let meta = meta(json!({ "retractedMessageIds": text.message_ids }));
                let notice =
                    self.notice(NoticeSeverity::Info, "The agent starts this text again", Some(why), Some(meta));
                out.extend(notice.map(Output::Update));
            }
            EventKind::Retry(retry) => {
                let attempt = format!("The model is asked again (attempt {})", retry.attempt);
                let notice = self.notice(NoticeSeverity::Warning, &attempt, retry.reason.clone(), None);
                out.extend(notice.map(Output::Update));
            }
            EventKind::System(note) => out.extend(self.noted(note, event.seq).map(Output::Update)),
            EventKind::PromptQueued { .. } => self.options(out),
            EventKind::TurnStarted { .. }
            | EventKind::NativeSessionChanged { .. }
            | EventKind::McpServerStatus(_)
            | EventKind::RuleAdded(_)
            | EventKind::RuleRevoked(_)
            | EventKind::RawDelta { .. }
            | EventKind::AuthStatus(_)
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. }
            | EventKind::Unrecognized { .. } => {}
        }
        if self.title != self.state.title {
            self.title.clone_from(&self.state.title);
            out.push(self.session_info());
        }
    }

    fn session_info(&self) -> Output {
        let info = SessionInfoUpdate::new().title(self.title.clone());
        Output::Update(SessionUpdate::SessionInfoUpdate(info))
    }

    /// Whether the agent works on a prompt.
    fn is_prompted(&self) -> bool {
        self.prompt.is_some() || !self.steered.is_empty()
    }

    /// The error that was held back, if it is why this event ends a turn; else it is shown.
    fn failure(&mut self, next: &EventKind, out: &mut Vec<Output>) -> Option<AgentError> {
        let (error, _) = self.trouble.take()?;
        let is_why = matches!(next, EventKind::TurnCompleted(end) if end.error.as_ref() == Some(&error.message));
        if is_why {
            return Some(error);
        }
        out.extend(self.went_wrong(&error).map(Output::Update));
        None
    }

    /// Applies an event to the state. What makes no difference to what is shown is left out: it may be large, and each
    /// client has a state of its own.
    fn keep(&mut self, event: &Event) {
        match &event.kind {
            EventKind::TextChunk(_)
            | EventKind::Reasoning(_)
            | EventKind::ToolStarted(_)
            | EventKind::ToolProgress(_)
            | EventKind::ToolCompleted(_)
            | EventKind::FileChanged(_)
            | EventKind::RawDelta { .. }
            | EventKind::System(_)
            | EventKind::Error(_)
            | EventKind::Retry(_)
            | EventKind::TextRetracted(_)
            | EventKind::AuthStatus(_)
            | EventKind::McpServerStatus(_)
            | EventKind::RuleAdded(_)
            | EventKind::RuleRevoked(_)
            | EventKind::PromptWithdrawn { .. }
            | EventKind::ClientJoined { .. }
            | EventKind::ClientLeft { .. }
            | EventKind::Unrecognized { .. } => self.state.seq = event.seq,
            EventKind::PromptQueued { .. } => {
                // It may be the first, which names the session.
                self.state.apply(event);
                self.state.queue.clear();
            }
            EventKind::UserMessage(_)
            | EventKind::PermissionAsked(_)
            | EventKind::PermissionSettled(_)
            | EventKind::PermissionWithdrawn(_)
            | EventKind::TurnStarted { .. }
            | EventKind::TurnCompleted(_)
            | EventKind::SessionStarted(_)
            | EventKind::SessionEnded(_)
            | EventKind::NativeSessionChanged { .. }
            | EventKind::TodoList(_)
            | EventKind::ModeChanged { .. }
            | EventKind::ModelChanged { .. }
            | EventKind::Capabilities(_) => self.state.apply(event),
        }
    }

    fn prompted(&mut self, message: &UserMessage, out: &mut Vec<Output>) {
        if let Some(prompt) = message.prompt_id.clone() {
            if message.steering { self.steered.push(prompt) } else { self.prompt = Some(prompt) }
        }
        let meta = message.from.as_ref().map(|from| meta(json!({ "client": from.client, "door": from.door })));
        let images = message
            .images
            .iter()
            .map(|image| ContentBlock::Image(ImageContent::new(image.data.clone(), image.media_type.clone())));
        for block in [text_block(shown_text(message))].into_iter().chain(images) {
            let id = message.prompt_id.as_ref().map(|prompt| prompt.as_str().to_owned());
            let chunk = ContentChunk::new(block).message_id(id.map(Into::into)).meta(meta.clone());
            let update = SessionUpdate::UserMessageChunk(chunk);
            let (prompt, sent_as) = (message.prompt_id.clone(), message.sent_as.clone());
            out.push(Output::UserMessage { prompt, sent_as, update });
        }
        self.options(out);
    }

    fn turn_over(&mut self, end: &TurnEnd, failure: Option<AgentError>, out: &mut Vec<Output>) {
        self.tools.tick_all(out);
        if let Some(usage) = turn_usage(end) {
            out.push(Output::Update(SessionUpdate::UsageUpdate(usage)));
        }
        self.tools.forget_finished();
        // A turn that began for another reason answers only the prompts that joined it.
        let begun = if end.origin.is_none() { self.prompt.take() } else { None };
        self.answer(begun, prompt_end(end), failure, out);
    }

    fn answer(&mut self, begun: Option<PromptId>, end: PromptEnd, failure: Option<AgentError>, out: &mut Vec<Output>) {
        let prompts: Vec<PromptId> = begun.into_iter().chain(self.steered.drain(..)).collect();
        if let Some(update) = failure.and_then(|error| self.went_wrong(&error)) {
            out.push(Output::Failure { prompts: prompts.clone(), update });
        }
        if !prompts.is_empty() {
            out.push(Output::TurnOver { prompts, end });
        }
    }

    fn started(&mut self, out: &mut Vec<Output>) {
        self.tools.set_folder(&self.state);
        self.options(out);
    }

    fn ended(&mut self, end: &SessionEnd, out: &mut Vec<Output>) {
        let why = end.error.clone().unwrap_or_else(|| "the agent has ended".to_owned());
        let begun = self.prompt.take();
        self.answer(begun, PromptEnd::Failed(why), None, out);
    }

    fn went_wrong(&self, error: &AgentError) -> Option<SessionUpdate> {
        let severity = match error.severity {
            Severity::Warning => NoticeSeverity::Warning,
            Severity::Error => NoticeSeverity::Error,
        };
        self.notice(severity, &error.message, None, None)
    }

    fn noted(&self, note: &SystemNote, seq: u64) -> Option<SessionUpdate> {
        match note.subtype.as_str() {
            SystemSubtype::CONTEXT => context(note).map(SessionUpdate::UsageUpdate),
            SystemSubtype::COMPACTED if self.features.compaction => {
                let compacted = CompactionUpdate::new(format!("compaction-{seq}"), CompactionStatus::Completed);
                Some(SessionUpdate::CompactionUpdate(compacted))
            }
            _ => self.notice(NoticeSeverity::Info, note.message.as_deref()?, None, None),
        }
    }

    /// A line for people. A client that does not know notices is not shown minor ones.
    fn notice(
        &self,
        severity: NoticeSeverity,
        title: &str,
        description: Option<String>,
        meta: Option<Map<String, Value>>,
    ) -> Option<SessionUpdate> {
        if title.trim().is_empty() {
            return None;
        }
        Some(if self.features.notices {
            SessionUpdate::Notice(Notice::new(severity, title).description(description).meta(meta))
        } else if severity == NoticeSeverity::Info {
            return None;
        } else {
            let text = match description {
                Some(description) => format!("\n\n[{title}: {description}]\n\n"),
                None => format!("\n\n[{title}]\n\n"),
            };
            SessionUpdate::AgentMessageChunk(ContentChunk::new(text_block(text)).meta(meta))
        })
    }

    fn commands(&mut self, out: &mut Vec<Output>) {
        let (Some(shown), Some(commands)) = (&mut self.shown, &self.state.capabilities.commands) else { return };
        if shown.commands != *commands {
            shown.commands.clone_from(commands);
            let update = AvailableCommandsUpdate::new(config::commands(commands));
            out.push(Output::Update(SessionUpdate::AvailableCommandsUpdate(update)));
        }
    }

    fn options(&mut self, out: &mut Vec<Output>) {
        let Some(shown) = &mut self.shown else { return };
        let options = config::options(&self.state, &self.choices);
        if shown.options != options && !options.is_empty() {
            shown.options.clone_from(&options);
            out.push(Output::Update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options))));
        }
    }

    fn mode(&mut self, out: &mut Vec<Output>) {
        if let Some(mode) = config::current_mode(&self.state).filter(|_| self.shown.is_some()) {
            out.push(Output::Update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(mode))));
        }
        self.options(out);
    }
}

/// A state without what is not shown from it.
fn slim(state: State) -> State {
    let State { seq, start, model, mode, native_mode, capabilities, questions, todos, turns, title, .. } = state;
    State { seq, start, model, mode, native_mode, capabilities, questions, todos, turns, title, ..State::default() }
}

fn text_block(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

/// Our own metadata, under our key.
fn meta(fields: Value) -> Map<String, Value> {
    Map::from_iter([(META.to_owned(), fields)])
}
