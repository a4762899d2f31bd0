//! Opens a session: greeting, conversation, requested settings. Then the agent is ready.

use multitap_event::{AgentError, AgentErrorKind, McpReach, McpServer, Mode, Resume, Unsupported};
use serde_json::{Map, Value, json};

use super::decode::AcpCodec;
use super::rpc::{self, AgentRequest};
use super::session::THINKING;
use super::wire::RpcError;
use crate::codec::Step;
use crate::emit::SessionMode;
use crate::json::JsonFields as _;
use crate::mcp;

/// The version of the protocol that we speak.
const VERSION: u64 = 1;

impl AcpCodec {
    pub(super) fn initialize(&mut self) -> String {
        let mut capabilities = json!({
            "fs": { "readTextFile": false, "writeTextFile": false },
            "terminal": false,
            "elicitation": { "form": {}, "url": {} },
            "session": { "notices": {} },
        });
        if self.flavor.shows_terminals() {
            // With this, several agents stream the output of commands and report exit codes.
            capabilities["_meta"] = json!({ "terminal_output": true });
        }
        let params = json!({
            "protocolVersion": VERSION,
            "clientInfo": { "name": "multitap", "title": "Multitap", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities": capabilities,
        });
        self.send_request(AgentRequest::Initialize, "initialize", params)
    }

    pub(super) fn initialized(&mut self, raw: &Value, out: &mut Step) {
        for key in ["agentInfo", "agentCapabilities"] {
            self.session.reported.extend(raw.get(key).map(|value| (key.to_owned(), value.clone())));
        }
        self.emit.session.version = raw.field("agentInfo").string("version");
        self.session.sign_in = raw.list("authMethods").iter().filter_map(|method| method.string("name")).collect();
        if !self.emit.session.is_live() {
            return;
        }
        match raw.number("protocolVersion") {
            Some(VERSION) | None => self.open(out),
            Some(other) => {
                let why = format!("the agent speaks version {other} of ACP; multitap speaks version {VERSION}");
                out.fail(AgentError::new(AgentErrorKind::ProtocolError, why).of(self.flavor.agent()));
            }
        }
    }

    /// Requests the conversation that the configuration names.
    fn open(&mut self, out: &mut Step) {
        let Some(wishes) = &self.session.wishes else { return };
        if let Some(refused) = self.cannot_open() {
            out.fail_unsupported(refused);
            return;
        }
        match wishes.resume.clone() {
            Resume::New => {
                let params = self.place(None);
                out.lines.push(self.send_request(AgentRequest::New, "session/new", params));
            }
            Resume::Session { native_id, .. } => self.prepare_resume(native_id, out),
            Resume::Latest => {
                let params = json!({ "cwd": wishes.cwd });
                out.lines.push(self.send_request(AgentRequest::List, "session/list", params));
            }
        }
    }

    /// A setting that was asked for and that the agent does not offer, as far as that is known now.
    fn cannot_open(&self) -> Option<Unsupported> {
        let session = &self.session;
        let wishes = session.wishes.as_ref()?;
        let over_http = wishes.mcp_servers.iter().find(|(_, server)| matches!(server.reach, McpReach::Http { .. }));
        let (setting, why) = match (&wishes.resume, over_http) {
            (Resume::Latest, _) if !session.can("list") => ("continue", "it cannot list its conversations"),
            (Resume::Session { .. }, _) if !wishes.fork && !session.loads() && !session.can("resume") => {
                ("resume", "it cannot resume a conversation")
            }
            (Resume::New, _) if wishes.fork => ("fork", "fork needs a session to resume"),
            _ if wishes.fork && !session.can("fork") => ("fork", "it cannot fork a conversation"),
            _ if !wishes.add_dirs.is_empty() && !session.can("additionalDirectories") => {
                ("added directories", "it supports one folder only")
            }
            (_, Some((name, _))) if !session.takes_mcp_over_http() => {
                let why = format!("it does not support MCP servers over HTTP ({name})");
                return Some(self.emit.unsupported("MCP servers", why));
            }
            _ => return None,
        };
        Some(self.emit.unsupported(setting, why))
    }

    /// The folder and the servers of the session, as every request that opens one has them.
    fn place(&self, session: Option<&str>) -> Value {
        let mut params = Map::new();
        if let Some(id) = session {
            params.insert("sessionId".to_owned(), id.into());
        }
        if let Some(wishes) = &self.session.wishes {
            params.insert("cwd".to_owned(), wishes.cwd.as_str().into());
            let servers = wishes.mcp_servers.iter().map(|(name, server)| mcp_server(name, server));
            params.insert("mcpServers".to_owned(), servers.collect());
            if !wishes.add_dirs.is_empty() {
                params.insert("additionalDirectories".to_owned(), json!(wishes.add_dirs));
            }
        }
        params.into()
    }

    pub(super) fn listed(&mut self, raw: &Value, out: &mut Step) {
        let cwd = self.session.wishes.as_ref().map(|wishes| wishes.cwd.as_str());
        let here = raw.list("sessions").iter().filter(|session| session.text("cwd").is_none_or(|at| Some(at) == cwd));
        // Without times, the agent's own order counts: the newest first.
        let newest = here.enumerate().max_by_key(|(at, session)| (session.text("updatedAt"), std::cmp::Reverse(*at)));
        match newest.and_then(|(_, session)| session.string("sessionId")) {
            Some(id) => self.prepare_resume(id, out),
            None => {
                let why = "the agent has no conversation in this folder to continue";
                out.fail(AgentError::new(AgentErrorKind::SessionNotFound, why).of(self.flavor.agent()));
            }
        }
    }

    fn prepare_resume(&mut self, id: String, out: &mut Step) {
        let fork = self.session.wishes.as_ref().is_some_and(|wishes| wishes.fork);
        let params = self.place(Some(&id));
        // `session/load` replays the conversation; some agents also do after other requests.
        self.session.in_replay = true;
        if !fork {
            self.emit.session.native_id = Some(id.clone());
        }
        let (asked, method) = if fork {
            (AgentRequest::Fork(id), "session/fork")
        } else if self.session.can("resume") {
            (AgentRequest::Resume(id), "session/resume")
        } else {
            (AgentRequest::Load(id), "session/load")
        };
        out.lines.push(self.send_request(asked, method, params));
    }

    pub(super) fn opened(&mut self, raw: &Value, out: &mut Step) {
        let (mode, model) = self.learn(raw);
        let facts = &mut self.emit.session;
        // Our word for the mode depends on the flavor.
        facts.mode = mode.map(|native| SessionMode { native, unified: None }).or(facts.mode.take());
        facts.model = model.or(facts.model.take());
        facts.native_id = raw.string("sessionId").or(facts.native_id.take());
        if !self.emit.session.is_live() {
            self.start(out);
        } else if self.flavor.tells_after_opening() {
            self.fence(out);
        } else {
            self.session.in_replay = false;
            self.next_wish(out);
        }
    }

    /// Sends a request whose only purpose is its answer, which marks the end of what the agent sends about the opening.
    /// While a history is replayed, part of it comes before each answer.
    fn fence(&mut self, out: &mut Step) {
        let seen = self.session.replayed;
        out.lines.push(self.send_request(AgentRequest::Fence { seen }, "_multitap/fence", json!({})));
    }

    /// A fence was answered, most likely with the error that there is no such method.
    pub(super) fn fence_answered(&mut self, seen: u64, out: &mut Step) {
        if self.session.replayed > seen {
            self.fence(out);
        } else {
            self.session.in_replay = false;
            self.next_wish(out);
        }
    }

    /// Requests the settings of the configuration, one after the other; then the agent is ready.
    pub(super) fn next_wish(&mut self, out: &mut Step) {
        let Some(wishes) = &mut self.session.wishes else { return };
        let asked = if let Some(mode) = wishes.mode.take() {
            self.ask_mode(&mode)
        } else if let Some(model) = wishes.model.take() {
            self.ask_model(&model)
        } else {
            out.ready = true;
            self.start(out);
            return;
        };
        match asked {
            Ok(line) => out.lines.push(line),
            Err(unsupported) => out.fail_unsupported(unsupported),
        }
    }

    /// The line that sets a mode, by the request that the agent supports.
    pub(super) fn ask_mode(&mut self, mode: &Mode) -> Result<String, Unsupported> {
        let offered = self.session.offered_modes();
        let word = self.flavor.mode_word(mode, &offered);
        let word = word.map_err(|why| self.emit.unsupported(format!("approval mode {}", mode.option_word()), why))?;
        self.emit.session.asked_modes.ask(&word);
        let session = &self.emit.session.native_id;
        let option = self.session.option("mode").filter(|_| self.session.modes.is_empty()).text("id");
        let (method, params) = match option {
            Some(option) => {
                let params = json!({ "sessionId": session, "configId": option, "value": word });
                ("session/set_config_option", params)
            }
            None => ("session/set_mode", json!({ "sessionId": session, "modeId": word })),
        };
        Ok(self.send_request(AgentRequest::Mode(word), method, params))
    }

    pub(super) fn ask_model(&mut self, model: &str) -> Result<String, Unsupported> {
        let session = &self.emit.session.native_id;
        let (method, params) = match self.session.option("model").text("id") {
            Some(option) => {
                let params = json!({ "sessionId": session, "configId": option, "value": model });
                ("session/set_config_option", params)
            }
            None if self.session.has_models => ("session/set_model", json!({ "sessionId": session, "modelId": model })),
            None => return Err(self.emit.unsupported(format!("model {model}"), "it offers no choice of models")),
        };
        self.session.asked_models.ask(model);
        Ok(self.send_request(AgentRequest::Model(model.to_owned()), method, params))
    }

    pub(super) fn ask_thinking(&mut self, level: &str) -> Result<String, Unsupported> {
        let Some(option) = self.session.option(THINKING).string("id") else {
            return Err(self.emit.unsupported(format!("thinking level {level}"), "it offers no choice of levels"));
        };
        let params = json!({ "sessionId": self.emit.session.native_id, "configId": option, "value": level });
        Ok(self.send_request(AgentRequest::Thinking(level.to_owned()), "session/set_config_option", params))
    }

    /// The agent refused a request during opening: the session cannot begin.
    pub(super) fn cannot_begin(&mut self, asked: &AgentRequest, error: &RpcError, out: &mut Step) {
        let agent = self.flavor.agent();
        let said = said(error);
        let (kind, message) = match asked {
            AgentRequest::Mode(mode) => {
                out.fail_unsupported(self.emit.unsupported(format!("approval mode {mode}"), said));
                return;
            }
            AgentRequest::Model(model) => {
                out.fail_unsupported(self.emit.unsupported(format!("model {model}"), said));
                return;
            }
            AgentRequest::Load(id) | AgentRequest::Resume(id) | AgentRequest::Fork(id)
                if is_not_found(error, &said) =>
            {
                (AgentErrorKind::SessionNotFound, format!("{agent} has no conversation {id}: {said}"))
            }
            _ if error.code == rpc::AUTH_REQUIRED => {
                let ways = self.session.sign_in.join(", ");
                let ways = if ways.is_empty() { ways } else { format!(" (it knows: {ways})") };
                (AgentErrorKind::PermissionDenied, format!("{agent} requires a sign-in first{ways}: {said}"))
            }
            _ => (AgentErrorKind::ProtocolError, format!("{agent} refused {}: {said}", asked.named())),
        };
        out.fail(AgentError::new(kind, message).of(agent).native(said).code(error.code.to_string()));
    }
}

/// Whether an error says that there is no such conversation.
pub(super) fn is_not_found(error: &RpcError, said: &str) -> bool {
    let said = said.to_lowercase();
    let named = [
        "session not found",
        "invalid session",
        "no such session",
        "unknown session",
        "no conversation",
        // codex-acp
        "no rollout found",
    ];
    error.code == -32002 || named.into_iter().any(|words| said.contains(words))
}

/// The message of an error, with the details that some agents add to it.
pub(super) fn said(error: &RpcError) -> String {
    let data = error.data.as_ref();
    let details = data.and_then(Value::as_str).or(data.text("details"));
    match details.filter(|details| !error.message.contains(*details)) {
        Some(details) if error.message.is_empty() || error.message == "Internal error" => details.to_owned(),
        Some(details) => format!("{}: {details}", error.message),
        None if error.message.is_empty() => format!("error {}", error.code),
        None => error.message.clone(),
    }
}

fn mcp_server(name: &str, server: &McpServer) -> Value {
    let pairs = |map: &std::collections::BTreeMap<String, String>| -> Value {
        map.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    match &server.reach {
        McpReach::Stdio { command, args, env, cwd } => {
            let (command, args) = mcp::in_folder(command, args, cwd.as_deref());
            json!({ "name": name, "command": command, "args": args, "env": pairs(env) })
        }
        McpReach::Http { url, headers } => {
            json!({ "type": "http", "name": name, "url": url, "headers": pairs(headers) })
        }
    }
}
