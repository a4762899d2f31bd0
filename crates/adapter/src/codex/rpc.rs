//! Our requests to the app-server, and its answers.

use multitap_event::{
    AgentCapabilities, AgentError, AgentErrorKind, AgentType, EventKind, Prompt, Query, Resume, Timestamp,
};
use serde_json::{Value, json};

use super::decode::{APP_SERVER, Changed, CodexCodec};
use super::notice::note;
use super::sandbox::OwnSandbox;
use super::wire::{Fields, Reply, ReplyError};
use crate::codec::Step;
use crate::emit::{commands_event, models};
use crate::json::{JsonFields as _, one};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AgentRequest {
    Initialize,
    /// The newest conversation of this folder.
    Newest,
    Open,
    OwnSettings,
    Turn,
    Steer(Steered),
    Interrupt,
    Query(Query),
}

/// Text to add to a running turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Steered {
    /// A comment on an answer, and the answer, which must not overtake it.
    Feedback { then: String },
    /// A prompt. If the turn ends first, the prompt begins the next one.
    Prompt(Prompt),
}

impl AgentRequest {
    /// The request in words, after "refused".
    fn named(&self) -> String {
        match self {
            Self::Initialize => "to begin".to_owned(),
            Self::Newest => "to list its conversations".to_owned(),
            Self::Open => "to open the conversation".to_owned(),
            Self::OwnSettings => "to tell its settings".to_owned(),
            Self::Turn => "the prompt".to_owned(),
            Self::Steer(_) => "a message in the running turn".to_owned(),
            Self::Interrupt => "to cancel".to_owned(),
            Self::Query(what) => format!("to report {what:?}").to_lowercase(),
        }
    }
}

pub(super) fn greeting() -> Value {
    json!({
        "clientInfo": { "name": "multitap", "title": "Multitap", "version": env!("CARGO_PKG_VERSION") },
        "capabilities": { "experimentalApi": false, "requestAttestation": false },
    })
}

pub(super) fn answer(id: &Value, result: &Value) -> String {
    json!({ "id": id, "result": result }).to_string()
}

pub(super) fn refusal(id: &Value, message: &str) -> String {
    json!({ "id": id, "error": { "code": -32601, "message": message } }).to_string()
}

impl CodexCodec {
    pub(super) fn send_request(&mut self, asked: AgentRequest, method: &str, params: impl Into<Value>) -> String {
        let id = self.emit.requests.open(asked);
        json!({ "id": id, "method": method, "params": params.into() }).to_string()
    }

    pub(super) fn initialize(&mut self) -> String {
        self.send_request(AgentRequest::Initialize, "initialize", greeting())
    }

    pub(super) fn reply(&mut self, reply: Reply, now: Timestamp, out: &mut Step) {
        let asked = reply.id.as_u64().and_then(|id| self.emit.requests.answered(id));
        if let Some(error) = reply.error {
            self.refused(asked, &error, now, out);
            return;
        }
        let result = Fields::of(reply.result.as_ref());
        match asked.or_else(|| guess(&result)) {
            Some(AgentRequest::Initialize) => {
                self.greeted(result.text("userAgent"));
                if self.emit.session.is_live() {
                    out.lines.push(json!({ "method": "initialized" }).to_string());
                    self.open_thread(out);
                }
            }
            Some(AgentRequest::Newest) => match result.list("data").first().text("id") {
                Some(id) => self.open_stored(id, None, out),
                None => {
                    let folder = self.settings.cwd.as_deref().unwrap_or("this folder");
                    let message = format!("codex has no conversation in {folder} to continue");
                    out.fail(AgentError::new(AgentErrorKind::SessionNotFound, message).of(AgentType::Codex));
                }
            },
            Some(AgentRequest::Open) => self.opened(&result, out),
            Some(AgentRequest::OwnSettings) => self.sandbox_known(OwnSandbox::read(&result), out),
            Some(AgentRequest::Turn) => {
                self.sent = Changed::default();
                self.announce_turn(result.fields("turn").text("id"));
            }
            Some(AgentRequest::Query(what)) => out.events.push(self.reported(what, result)),
            Some(AgentRequest::Steer(Steered::Feedback { then })) => out.lines.push(then),
            Some(AgentRequest::Steer(Steered::Prompt(_)) | AgentRequest::Interrupt) => {}
            None if result.is_empty() => {}
            None => out.events.push(note("reply", None, result.0)),
        }
    }

    fn refused(&mut self, asked: Option<AgentRequest>, error: &ReplyError, now: Timestamp, out: &mut Step) {
        let why = error.message.as_deref().unwrap_or("no reason given");
        let what = asked.as_ref().map_or_else(|| "a request".to_owned(), AgentRequest::named);
        let mut refused =
            AgentError::new(AgentErrorKind::ProtocolError, format!("codex refused {what}: {}", short(why)))
                .of(AgentType::Codex)
                .native(short(why));
        refused.native_code = error.code.map(|code| code.to_string());
        match asked {
            Some(AgentRequest::Open) => {
                let lost = ["no rollout found", "not found", "invalid session id", "invalid thread id"];
                if lost.iter().any(|words| why.contains(words)) {
                    refused.kind = AgentErrorKind::SessionNotFound;
                }
                out.fail(refused);
            }
            Some(AgentRequest::Initialize | AgentRequest::Newest) => out.fail(refused),
            // An older version: trust what it reported about its sandbox.
            Some(AgentRequest::OwnSettings) => self.sandbox_known(OwnSandbox::Unknown, out),
            Some(AgentRequest::Turn) => {
                // Codex accepted neither the turn nor its settings: the next turn sends them again.
                let sent = std::mem::take(&mut self.sent);
                self.changed.model |= sent.model;
                self.changed.rules |= sent.rules;
                self.changed.thinking |= sent.thinking;
                self.turn_refused(refused, now, out);
            }
            // The turn ended just before, as requested.
            Some(AgentRequest::Interrupt) if why.contains("no active turn") => {}
            Some(AgentRequest::Steer(Steered::Feedback { then })) => {
                out.events.push(EventKind::Error(refused));
                out.lines.push(then);
            }
            // The turn ended just before, or cannot be steered: send this as the next prompt.
            Some(AgentRequest::Steer(Steered::Prompt(prompt))) => self.prompt(&prompt, now, out),
            Some(AgentRequest::Interrupt | AgentRequest::Query(_)) | None => out.events.push(EventKind::Error(refused)),
        }
    }

    /// Opens the conversation that was chosen.
    fn open_thread(&mut self, out: &mut Step) {
        match self.settings.resume.clone() {
            Resume::New => {
                self.turn.usage.starts_at_nothing();
                let params = self.settings.thread();
                out.lines.push(self.send_request(AgentRequest::Open, "thread/start", params));
            }
            Resume::Session { native_id, at } => self.open_stored(&native_id, at.as_deref(), out),
            Resume::Latest => {
                let params = json!({
                    "cwd": self.settings.cwd,
                    "limit": 1,
                    "sortKey": "updated_at",
                    "modelProviders": [],
                    "sourceKinds": ["cli", "vscode", "exec", "appServer"],
                });
                out.lines.push(self.send_request(AgentRequest::Newest, "thread/list", params));
            }
        }
    }

    fn open_stored(&mut self, id: &str, at: Option<&str>, out: &mut Step) {
        let mut params = self.settings.thread();
        params.insert("threadId".to_owned(), id.into());
        params.insert("excludeTurns".to_owned(), true.into());
        let method = if self.settings.fork { "thread/fork" } else { "thread/resume" };
        params.extend(at.map(|turn| ("lastTurnId".to_owned(), turn.into())));
        out.lines.push(self.send_request(AgentRequest::Open, method, params));
    }

    /// The answer to a question about Codex itself.
    fn reported(&mut self, what: Query, result: Fields) -> EventKind {
        let data = match what {
            Query::Models => {
                let list = result.list("data");
                self.thinking.listed(list);
                let levels = self.thinking_levels();
                return EventKind::Capabilities(AgentCapabilities { models: Some(models(list)), ..levels });
            }
            Query::Commands => return commands_event(&commands(&result)),
            Query::McpStatus => one("mcpServers", result.list("data")),
            Query::Account | Query::Context => result.0,
        };
        note(what.word(), None, data)
    }

    fn opened(&mut self, reply: &Fields, out: &mut Step) {
        if let Some(id) = reply.fields("thread").text("id") {
            self.threads.ours_is(id);
        }
        self.set_up_as(reply, APP_SERVER, out);
        if self.emit.session.is_live() {
            self.learn_sandbox(out);
        }
    }
}

/// The request that a recorded answer belongs to, guessed when the recording lacks the request.
fn guess(result: &Fields) -> Option<AgentRequest> {
    if result.get("userAgent").is_some() {
        Some(AgentRequest::Initialize)
    } else if result.get("thread").is_some() && result.get("approvalPolicy").is_some() {
        Some(AgentRequest::Open)
    } else if result.get("config").is_some() && result.get("origins").is_some() {
        Some(AgentRequest::OwnSettings)
    } else if result.get("turn").is_some() {
        Some(AgentRequest::Turn)
    } else {
        None
    }
}

/// Slash commands that we carry out, then the skills, which are named in a prompt with a `$`.
fn commands(skills: &Fields) -> Vec<Value> {
    let own = [
        ("review", "Review the uncommitted changes, or follow the given instructions", "[instructions]"),
        ("compact", "Summarize the conversation to make room", ""),
    ];
    let own = own.map(|(name, about, hint)| json!({ "name": name, "description": about, "argumentHint": hint }));
    let skill = |skill: &Value| {
        let skill = Fields::of(Some(skill));
        let name = format!("${}", skill.text("name")?);
        let about = skill.text("shortDescription").or_else(|| skill.text("description")).unwrap_or_default();
        Some(json!({ "name": name, "description": about, "argumentHint": "" }))
    };
    let folders = skills.list("data").iter().map(|folder| Fields::of(Some(folder)));
    own.into_iter()
        .chain(folders.flat_map(|folder| folder.list("skills").iter().filter_map(skill).collect::<Vec<_>>()))
        .collect()
}

/// The beginning of a message, which may be a list of any length.
fn short(message: &str) -> String {
    match message.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
