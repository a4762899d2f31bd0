//! Codex's lines to events: one line in, its events out. Each kind of line has a module of its own.

use std::collections::HashMap;
use std::fmt;

use multitap_event::{
    AgentType, Command, EventKind, SandboxMode, SessionConfig, SystemSubtype, Timestamp, Unsupported,
};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::exec::Exec;
use super::item::Phase;
use super::notice::{is_of_a_turn, is_silent, note};
use super::question::Native;
use super::rpc::AgentRequest;
use super::sandbox::OwnSandbox;
use super::session::mode_of;
use super::settings::Settings;
use super::stored::Twins;
use super::thinking::Thinking;
use super::threads::Threads;
use super::todo::Todos;
use super::tools;
use super::turn::{TurnFacts, TurnOutcome, failure};
use super::usage::tokens;
use super::wire::{Call, Delta, Fields, Reply};
use crate::codec::{Codec, End, Files, NoFiles, Step, read};
use crate::emit::{Emitter, SessionFacts};
use crate::history::StoredSession;
use crate::json::JsonFields as _;
use crate::line::{Head, head, unrecognized};

/// The value of `transport` in `sessionStarted`.
pub(super) const APP_SERVER: &str = "app-server";
pub(super) const EXEC: &str = "exec";

/// Codex's dialects: the app-server's JSON-RPC, the events of `exec --json`, and the entries of stored sessions.
pub struct CodexCodec {
    pub(super) files: Box<dyn Files>,
    pub(super) settings: Settings,
    /// The sandbox that the user chose, regardless of the mode.
    pub(super) chosen_sandbox: Option<SandboxMode>,
    /// Whether the conversation was opened with the sandbox of a mode, so that Codex's own one is not known.
    pub(super) opened_implied: bool,
    /// Why no sandbox works on this machine.
    pub(super) no_sandbox: Option<String>,
    pub(super) own_sandbox: OwnSandbox,
    /// Changed settings to send with the next turn.
    pub(super) changed: Changed,
    /// Changed settings sent with the last turn, until Codex accepts it.
    pub(super) sent: Changed,
    pub(super) thinking: Thinking,
    /// The sandbox that Codex says it uses.
    pub(super) sandbox: Option<Value>,
    /// Notices from before the session began.
    pub(super) held: Vec<EventKind>,
    pub(super) threads: Threads,
    pub(super) emit: Emitter<tools::Native, Native, AgentRequest>,
    pub(super) turn: TurnFacts,
    pub(super) todos: Todos,
    pub(super) twins: Twins,
    /// Set for a session with one process per turn.
    pub(super) exec: Option<Exec>,
    /// The turn that we interrupted.
    pub(super) interrupted: Option<String>,
    pub(super) reviewing: bool,
    /// The last report of the turn's changes, and of each MCP server.
    pub(super) diff: Option<String>,
    pub(super) mcp_servers: HashMap<String, String>,
}

/// Settings that Codex does not have yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Changed {
    pub(super) model: bool,
    pub(super) rules: bool,
    pub(super) thinking: bool,
}

impl fmt::Debug for CodexCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CodexCodec").finish_non_exhaustive()
    }
}

impl CodexCodec {
    /// A codec for a recorded stream or a stored session: no process, no files, nothing known beforehand.
    pub fn recorded() -> Self {
        Self {
            files: Box::new(NoFiles),
            settings: Settings::default(),
            chosen_sandbox: None,
            opened_implied: false,
            no_sandbox: None,
            own_sandbox: OwnSandbox::Unknown,
            changed: Changed::default(),
            sent: Changed::default(),
            thinking: Thinking::default(),
            sandbox: None,
            held: Vec::new(),
            threads: Threads::default(),
            emit: Emitter::new(SessionFacts::new(AgentType::Codex, None)),
            turn: TurnFacts::default(),
            todos: Todos::default(),
            twins: Twins::default(),
            exec: None,
            interrupted: None,
            reviewing: false,
            diff: None,
            mcp_servers: HashMap::new(),
        }
    }

    /// A codec for a session of Codex's own store, whose entries have their own times.
    pub(super) fn stored(session: &StoredSession) -> Self {
        Self { emit: Emitter::new(SessionFacts::stored(AgentType::Codex, session)), ..Self::recorded() }
    }

    /// A codec for a running app-server. `no_sandbox` says why no sandbox works on this machine; `None` if one does.
    pub fn live(
        config: &SessionConfig,
        files: Box<dyn Files>,
        no_sandbox: Option<String>,
    ) -> Result<Self, Unsupported> {
        Ok(Self { no_sandbox, ..Self::set_up(config, Settings::of(config)?, files, APP_SERVER) })
    }

    pub(super) fn by_process(config: &SessionConfig, settings: Settings, exec: Exec, files: Box<dyn Files>) -> Self {
        let codec = Self::set_up(config, settings, files, EXEC);
        Self { exec: Some(exec), ..codec }
    }

    fn set_up(config: &SessionConfig, settings: Settings, files: Box<dyn Files>, transport: &'static str) -> Self {
        let facts = SessionFacts {
            stated: Some(config.stated()),
            mode: mode_of(&settings.rules),
            model: config.model.clone(),
            ..SessionFacts::new(AgentType::Codex, Some(transport))
        };
        Self {
            files,
            chosen_sandbox: config.sandbox,
            opened_implied: settings.rules.sandbox_implied,
            emit: Emitter::new(facts),
            turn: TurnFacts { structured: settings.output_schema.is_some(), ..TurnFacts::default() },
            settings,
            ..Self::recorded()
        }
    }
}

impl Codec for CodexCodec {
    fn begin(&mut self, _now: Timestamp) -> Step {
        Step::of(|out| {
            if self.exec.is_some() {
                self.begin_turns(out);
            } else {
                out.lines.push(self.initialize());
            }
        })
    }

    fn decode(&mut self, line: &str, now: Timestamp) -> Step {
        Step::of_line(line, |line, out| {
            match head(line) {
                Ok(Head::Method(method)) => self.call(&method, line, now, out),
                Ok(Head::Reply) => read(self, line, out, |codec, reply: Reply, out| codec.reply(reply, now, out)),
                Ok(Head::Type(kind)) => {
                    read(self, line, out, |codec, event, out| codec.event(&kind, &event, line, now, out));
                }
                Ok(Head::Other) => {
                    out.events.push(unrecognized(line, "a JSON object without a method, type or id"));
                }
                Err(reason) => out.events.push(unrecognized(line, reason)),
            }
            self.hold_notes(out);
        })
    }

    fn encode(&mut self, command: Command, now: Timestamp) -> Step {
        Step::of(|out| self.command(command, now, out))
    }

    fn end(&mut self, end: &End, now: Timestamp) -> Step {
        Step::of(|out| self.ended(end, now, out))
    }

    fn turn_process_ended(&mut self, end: &End, now: Timestamp) -> Step {
        Step::of(|out| self.process_over(end, now, out))
    }

    // The commands of an interrupted turn continue as "background terminals". MCP servers do not get this variable.
    fn command_variable(&self) -> Option<&'static str> {
        Some("CODEX_THREAD_ID")
    }
}

impl CodexCodec {
    fn call(&mut self, method: &str, line: &str, now: Timestamp, out: &mut Step) {
        if is_of_a_turn(method) && !self.emit.session.started {
            // A recording may lack its beginning.
            let head: Option<Call<Fields>> = serde_json::from_str(line).ok();
            let thread = head.as_ref().and_then(|head| head.params.text("threadId"));
            thread.iter().for_each(|id| self.threads.ours_is(id));
            self.under_way(thread, APP_SERVER, out);
        }
        if method.ends_with("/delta") || method.ends_with("Delta") {
            match serde_json::from_str::<Call<Delta<'_>>>(line) {
                Ok(call) => return self.delta(method, call.params, out),
                // Another kind of delta, which the table of notifications lists.
                Err(_) if method.starts_with("thread/") || !method.starts_with("item/") => {}
                Err(error) => return out.events.push(unrecognized(line, error.to_string())),
            }
        }
        if is_silent(method) && serde_json::from_str::<Call<IgnoredAny>>(line).is_ok_and(|call| call.id.is_none()) {
            return;
        }
        read(self, line, out, |codec, call: Call<Fields>, out| match call.id.filter(|id| !id.is_null()) {
            Some(id) => codec.request(method, id, call.params, out),
            None => codec.notification(method, call.params, line, now, out),
        });
    }

    /// An event of `exec --json`, or an entry of a stored session.
    pub(super) fn event(&mut self, kind: &str, event: &Fields, line: &str, now: Timestamp, out: &mut Step) {
        if (kind.starts_with("turn.") || kind.starts_with("item.")) && !self.emit.session.started {
            self.under_way(None, EXEC, out);
        }
        let payload = || event.fields("payload");
        let item = || event.fields("item");
        match kind {
            "thread.started" => self.began(event.text("threadId"), EXEC, event, out),
            "turn.started" => self.begin_turn(None, out),
            "turn.completed" => {
                let is_sum = self.exec.is_some();
                let usage = event.get("usage").and_then(tokens);
                let usage = usage.and_then(|so_far| self.turn.usage.turn_of(so_far, is_sum));
                self.turn_over(TurnOutcome { usage, ..TurnOutcome::of("completed") }, now, out);
            }
            "turn.failed" => {
                let error = Some(failure(&event.fields("error")));
                let status = if self.emit.turns.is_cancelling() { "interrupted" } else { "failed" };
                self.turn_over(TurnOutcome { error, ..TurnOutcome::of(status) }, now, out);
            }
            "item.started" => self.item(&item(), Phase::Started, None, now, out),
            "item.updated" => self.item(&item(), Phase::Updated, None, now, out),
            "item.completed" => self.item(&item(), Phase::Completed, None, now, out),
            "error" => self.trouble(event, None, out),
            "approval.required" => self.approval_event(event, out),
            "session_meta" => self.session_meta(&payload(), out),
            "turn_context" => self.turn_context(&payload(), out),
            "event_msg" => self.stored_event(&payload(), now, out),
            "response_item" => self.response_item(&payload(), now, out),
            "compacted" => {
                out.events.push(note(SystemSubtype::COMPACTED, None, payload().0));
            }
            // Entries for Codex's own use.
            "world_state" | "token_usage_record" | "ghost_snapshot" => {}
            _ => out.events.push(unrecognized(line, format!("unknown type '{kind}'"))),
        }
    }
}
