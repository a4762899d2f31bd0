//! Carries out the effects of the turn machine: asks the model, prepares calls, runs them, stores the conversation.
//!
//! One task owns everything; long work runs in workers that report back. Must not come in: decisions about the turn,
//! which `turn` alone makes.

mod command;
mod expand;
mod prompt;
mod worker;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use multitap_event::{
    AgentCapabilities, AgentEnd, AgentError, AgentErrorKind, AgentType, COMMAND_QUEUE, Command, Draft,
    ElicitationAnswer, EventKind, ModelUsage, Prompt, QuestionId, SessionConfig, SessionEnd, SessionEndReason,
    SessionStart, SystemNote, Timestamp, TokenUsage, TurnStatus,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::worker::Report;
use crate::chat::{Chat, ChatError, ChatStore};
use crate::conversation::Conversation;
use crate::launch::Setup;
use crate::mcp::{Asked, ServerChange};
use crate::memory::Memory;
use crate::model::Model;
use crate::policy::Policy;
use crate::sandbox::Enforced;
use crate::slash::CustomCommand;
use crate::tools::Toolbox;
use crate::turn::{Effect, Input, Limits, Machine, StepContext, StoreUpdate};

/// Most queued reports; workers wait then.
const REPORTS: usize = 64;
/// Most prompts that may wait for the running turn to end; one more is refused.
const WAITING: usize = COMMAND_QUEUE;
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// How long the first turn may wait for MCP servers.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct RunnerParts {
    pub(crate) end: AgentEnd,
    pub(crate) config: SessionConfig,
    pub(crate) setup: Setup,
    pub(crate) folder: PathBuf,
    pub(crate) chat_store: ChatStore,
    pub(crate) chat: Chat,
    pub(crate) talk: Conversation,
    pub(crate) model: Model,
    pub(crate) policy: Policy,
    pub(crate) toolbox: Toolbox,
    pub(crate) servers: mpsc::Receiver<ServerChange>,
    pub(crate) asks: mpsc::Receiver<Asked>,
    pub(crate) own: Vec<CustomCommand>,
    pub(crate) memory: Memory,
    /// A temporary folder of the session.
    pub(crate) _private: TempDir,
    pub(crate) enforced: Option<Enforced>,
}

/// The owner of a session with the built-in agent.
pub(crate) struct Runner {
    parts: RunnerParts,
    /// Requests of MCP servers that wait for the user's answer.
    elicited: BTreeMap<QuestionId, oneshot::Sender<ElicitationAnswer>>,
    machine: Machine,
    thinking: Option<u32>,
    reports: mpsc::Receiver<Report>,
    to_us: mpsc::Sender<Report>,
    workers: JoinSet<()>,
    /// Stops the tools of the running turn.
    stop: CancellationToken,
    /// Number of the current model request; results of earlier ones are ignored.
    asking: u64,
    asked: Option<tokio::task::AbortHandle>,
    /// Deadline for tools that were asked to stop.
    patience: Option<Instant>,
    /// The user runs the call that is being prepared, so it is not asked about.
    by_user: bool,
    unkept: bool,
    /// Prompts that arrived during a turn and came too late to steer it: each begins its own turn. Their senders do not
    /// know that yet.
    waiting: VecDeque<Prompt>,
    last: Option<TurnStatus>,
    usage: Option<TokenUsage>,
    spent: BTreeMap<String, ModelUsage>,
    /// The model that was asked last, and its context window.
    answering: (String, Option<u64>),
    over: bool,
}

struct OwnerGone;

impl Runner {
    pub(crate) fn new(mut parts: RunnerParts) -> Self {
        let (to_us, reports) = mpsc::channel(REPORTS);
        let structured = parts.config.output_schema.is_some();
        let limits = Limits { max_turns: parts.config.max_turns, window: parts.model.window(), structured };
        let mut machine = Machine::new(std::mem::take(&mut parts.talk), limits);
        machine.read_only =
            parts.toolbox.specs().into_iter().filter(|spec| spec.read_only).map(|spec| spec.name).collect();
        Self {
            parts,
            elicited: BTreeMap::new(),
            machine,
            thinking: None,
            reports,
            to_us,
            workers: JoinSet::new(),
            stop: CancellationToken::new(),
            asking: 0,
            asked: None,
            patience: None,
            by_user: false,
            unkept: false,
            waiting: VecDeque::new(),
            last: None,
            usage: None,
            spent: BTreeMap::new(),
            answering: (String::new(), None),
            over: false,
        }
    }

    /// Runs until its command channel or its event channel closes.
    pub(crate) async fn run(mut self) {
        if self.converse().await.is_ok() {
            self.close().await.ok(); // nobody is left to report to
        }
        self.stop.cancel();
        self.workers.shutdown().await;
        self.parts.toolbox.mcp.close().await;
        self.parts.toolbox.shell.close().await;
    }

    async fn converse(&mut self) -> Result<(), OwnerGone> {
        self.begin().await?;
        self.keep_model().await?;
        self.meet_servers().await?;
        if let Some(prompt) = self.parts.config.prompt.take() {
            self.command(Command::Prompt(prompt)).await?;
        }
        while !self.over {
            let patience = self.patience;
            tokio::select! {
                command = self.parts.end.commands.recv() => match command {
                    Some(command) => self.command(command).await?,
                    None => return Ok(()),
                },
                Some(report) = self.reports.recv() => self.report(report).await?,
                Some(review) = self.parts.end.reviews.recv() => self.review(review),
                Some(change) = self.parts.servers.recv() => self.tell(EventKind::McpServerStatus(change.status())).await?,
                Some(asked) = self.parts.asks.recv() => self.elicit(asked).await?,
                Some(ended) = self.workers.join_next() => {
                    if let Err(error) = ended && error.is_panic() {
                        tracing::error!(%error, "a worker of the built-in agent failed");
                        // The failed part will not report its result: the turn must not wait for it.
                        self.warn("a part of the built-in agent failed; the turn is stopped").await?;
                        self.step(Input::Cancel).await?;
                    }
                }
                () = sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => {
                    self.patience = None;
                    self.step(Input::Force).await?;
                }
            }
            while !self.over
                && !self.machine.is_busy()
                && let Some(prompt) = self.waiting.pop_front()
            {
                self.command(Command::Prompt(prompt)).await?;
            }
        }
        Ok(())
    }

    /// Reports that the session started and what it can do.
    async fn begin(&mut self) -> Result<(), OwnerGone> {
        let mut stated = self.parts.config.stated();
        stated.model = Some(self.parts.model.name().to_owned());
        stated.approval_mode = Some(self.parts.policy.mode);
        stated.working_directory = Some(self.parts.folder.display().to_string());
        self.tell(EventKind::SessionStarted(SessionStart {
            agent_type: AgentType::Builtin,
            config: Some(stated),
            native_session_id: Some(self.parts.chat.id.clone()),
            native_mode: self.parts.policy.mode.native(AgentType::Builtin).map(|mode| mode.word.to_owned()),
            agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            transport: Some("inProcess".to_owned()),
        }))
        .await?;
        let tools: Vec<_> = self.parts.toolbox.specs().into_iter().map(|spec| spec.name).collect();
        let data =
            [("tools", json!(tools)), ("model", self.parts.model.name().into()), ("cwd", json!(self.parts.folder))];
        self.tell(EventKind::Capabilities(AgentCapabilities {
            model: Some(self.parts.model.name().to_owned()),
            steering: Some(true),
            stores_empty_conversations: Some(true),
            commands: Some(crate::slash::table(&self.parts.own)),
            data: data.map(|(key, value)| (key.to_owned(), value)).into_iter().collect(),
            ..AgentCapabilities::default()
        }))
        .await?;
        if let Some(enforced) = self.parts.enforced {
            let message = Some(format!("commands run in a sandbox: {enforced}"));
            let data = serde_json::to_value(enforced).unwrap_or_default();
            self.note("sandbox", message, data).await?;
        }
        for left_out in self.parts.memory.left_out.clone() {
            self.warn(format!("not read into the memory: {left_out}")).await?;
        }
        Ok(())
    }

    /// Waits a while for MCP servers, so that the first turn has their tools. Slower ones join later.
    async fn meet_servers(&mut self) -> Result<(), OwnerGone> {
        let mcp = self.parts.toolbox.mcp.clone();
        let met = tokio::time::timeout(SERVER_PATIENCE, mcp.settled());
        tokio::pin!(met);
        loop {
            tokio::select! {
                biased;
                Some(change) = self.parts.servers.recv() => self.tell(EventKind::McpServerStatus(change.status())).await?,
                () = self.parts.end.events.closed() => return Err(OwnerGone),
                _ = &mut met => return Ok(()),
            }
        }
    }

    /// Ends what is running and reports the end of the session.
    async fn close(&mut self) -> Result<(), OwnerGone> {
        self.step(Input::Cancel).await?;
        let deadline = Instant::now() + STOP_PATIENCE;
        while self.machine.is_busy() {
            tokio::select! {
                Some(report) = self.reports.recv() => self.report(report).await?,
                () = sleep_until(deadline) => self.step(Input::Force).await?,
            }
        }
        let reason = self.last.map_or(SessionEndReason::Completed, Into::into);
        let end = SessionEnd { reason, error: None, final_usage: self.usage, exit_code: None };
        self.tell(EventKind::SessionEnded(end)).await
    }

    /// An MCP server asks the user, or withdraws its request.
    async fn elicit(&mut self, asked: Asked) -> Result<(), OwnerGone> {
        // Between turns no questions are expected: dropping it cancels it.
        if !self.machine.is_busy() {
            return Ok(());
        }
        match asked {
            Asked::Question { id, elicitation, reply } => {
                self.elicited.insert(id.clone(), reply);
                self.step(Input::Elicited(id, elicitation)).await
            }
            Asked::Withdrawn(id) => self.step(Input::Withdrawn(id)).await,
        }
    }

    /// Gives the machine an input and carries out its effects.
    async fn step(&mut self, input: Input) -> Result<(), OwnerGone> {
        let was_busy = self.machine.is_busy();
        let effects = {
            let mut id = || uuid::Uuid::now_v7().to_string();
            self.machine.step(input, &mut StepContext { at: Timestamp::now(), id: &mut id, jitter: jitter() })
        };
        for effect in effects {
            self.effect(effect).await?;
        }
        if was_busy {
            return Ok(());
        }
        let kept = self.parts.chat.ensure().await;
        self.kept(kept).await
    }

    async fn effect(&mut self, effect: Effect) -> Result<(), OwnerGone> {
        match effect {
            Effect::Tell(kind) => self.tell(kind).await?,
            Effect::AskModel => self.ask_model(),
            Effect::Wait(time) => self.wait(time),
            Effect::Prepare(id, call) => self.prepare(id, call),
            Effect::Run { id, tool, job, consent } => return self.approve(id, &tool, job, consent).await,
            Effect::Always { option, tool, job } => self.always(&option, &tool, &job).await?,
            Effect::Answer(question, answer) => {
                if let Some(reply) = self.elicited.remove(&question) {
                    reply.send(answer).ok(); // the server withdrew the request, or is gone
                }
            }
            Effect::SumUp => self.sum_up(),
            Effect::StoreUpdate(keep) => self.keep(keep).await?,
            Effect::Stop => {
                self.stop_asking();
                self.stop.cancel();
                self.patience = Some(Instant::now() + STOP_PATIENCE);
            }
        }
        Ok(())
    }

    async fn tell(&mut self, mut kind: EventKind) -> Result<(), OwnerGone> {
        match &mut kind {
            EventKind::TurnStarted { .. } => self.stop = CancellationToken::new(),
            EventKind::TurnCompleted(end) => {
                self.last = Some(end.status);
                end.model_usage.clone_from(&self.spent);
                self.patience = None;
                self.by_user = false;
                self.usage = TokenUsage::sum(self.usage, end.usage);
            }
            _ => {}
        }
        self.parts.end.events.send(Draft::new(Timestamp::now(), kind)).await.map_err(|_| OwnerGone)
    }

    async fn note(&mut self, subtype: &str, message: Option<String>, data: Value) -> Result<(), OwnerGone> {
        let data = match data {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        self.tell(EventKind::System(SystemNote { subtype: subtype.to_owned(), message, data })).await
    }

    /// Reports a problem that does not end the session.
    async fn warn(&mut self, message: impl Into<String>) -> Result<(), OwnerGone> {
        let error = AgentError::new(AgentErrorKind::Unknown, message).of(AgentType::Builtin).warning();
        self.tell(EventKind::Error(error)).await
    }

    /// Records the model, so that the conversation resumes with the same one. A rehearsal is not recorded.
    async fn keep_model(&mut self) -> Result<(), OwnerGone> {
        let kept = match &self.parts.model {
            Model::Live(live) => self.parts.chat.answered_by(live.name()).await,
            Model::Rehearsal => Ok(()),
        };
        self.kept(kept).await
    }

    async fn keep(&mut self, keep: StoreUpdate) -> Result<(), OwnerGone> {
        let kept = match keep {
            StoreUpdate::Added(message) => self.parts.chat.add(&message).await,
            StoreUpdate::All(talk) => self.parts.chat.replace(&talk).await,
        };
        self.kept(kept).await
    }

    /// If the conversation cannot be stored, the session goes on and reports it once: on a full disk, short lines may
    /// still fit where longer ones do not.
    async fn kept(&mut self, kept: Result<(), ChatError>) -> Result<(), OwnerGone> {
        match kept {
            Err(error) if !std::mem::replace(&mut self.unkept, true) => {
                self.warn(format!("the conversation cannot be stored: {error}")).await
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Between 0 and 1; not for secrets.
fn jitter() -> f64 {
    let (_, low) = uuid::Uuid::new_v4().as_u64_pair();
    f64::from(u32::try_from(low & 0xffff_ffff).unwrap_or_default()) / f64::from(u32::MAX)
}
