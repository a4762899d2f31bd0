//! Handles commands of clients: prompts, answers, cancel, mode, model, queries.

use multitap_event::{
    AgentCapabilities, AgentError, AgentErrorKind, AgentModel, AgentType, ApprovalMode, Command, EventKind, Mode,
    Prompt, Query, Setting, SystemSubtype,
};
use serde_json::json;

use super::{OwnerGone, Runner, RunnerParts, WAITING};
use crate::chat::ChatOwner;
use crate::conversation::{Call, Conversation, UserText};
use crate::launch::{choose, providers};
use crate::mcp::ServerChange;
use crate::memory::Memory;
use crate::slash::{self, Slash};
use crate::tools::shell;
use crate::turn::{Input, StoreUpdate};

impl Runner {
    pub(super) async fn command(&mut self, command: Command) -> Result<(), OwnerGone> {
        match command {
            Command::Prompt(_) if self.waiting.len() >= WAITING => {
                self.warn(format!("the queue is full ({WAITING} prompts)")).await
            }
            Command::Prompt(prompt) if self.machine.is_busy() => {
                self.waiting.push_back(prompt);
                Ok(())
            }
            Command::Prompt(prompt) => self.prompted(prompt).await,
            Command::Steer(prompt) => {
                let said = self.expand(said(prompt)).await;
                self.step(Input::Steer(said)).await
            }
            Command::Decide(decide) => self.step(Input::Decided(decide)).await,
            Command::Cancel => {
                self.waiting.clear();
                self.step(Input::Cancel).await
            }
            Command::SetMode { mode } => match self.set_mode(&mode, None).await? {
                Ok(_) => Ok(()),
                Err(why) => self.refuse(Setting::Mode, mode, why).await,
            },
            Command::SetModel { model } => match self.set_model(&model).await? {
                Ok(()) => Ok(()),
                Err(why) => self.refuse(Setting::Model, model, why).await,
            },
            Command::SetThinking { tokens } => {
                self.thinking = tokens;
                self.note("thinkingLimit", None, json!({ "tokens": tokens })).await
            }
            Command::SetThinkingLevel { level } => {
                let why = "the built-in agent has no thinking levels: set a limit of tokens".to_owned();
                self.refuse(Setting::Thinking, level, why).await
            }
            Command::Query { what } => self.query(what).await,
        }
    }

    /// Reports that a setting stays as it is.
    async fn refuse(&mut self, setting: Setting, value: String, why: String) -> Result<(), OwnerGone> {
        let error = AgentError::new(AgentErrorKind::ProtocolError, why).of(AgentType::Builtin).warning();
        self.tell(EventKind::Error(error.refusing(setting, value))).await
    }

    async fn prompted(&mut self, prompt: Prompt) -> Result<(), OwnerGone> {
        if let Some(command) = prompt.shell_line() {
            let arguments = json!({ "command": command });
            let name = shell::NAME.to_owned();
            // A client with limited rights is asked, as it would be for the agent's own calls.
            self.by_user = prompt.within.is_none();
            return self.step(Input::Do(Call { id: "user".to_owned(), name, arguments, signature: None })).await;
        }
        match slash::parse(prompt.text.trim(), &self.parts.own) {
            Some(Ok(Slash::Prompt(text))) => {
                let said = self.expand(UserText { text, images: prompt.images }).await;
                self.step(Input::Prompt(said)).await
            }
            Some(Ok(slash)) => {
                let owner = ChatOwner::of(&prompt);
                self.slash(slash, prompt.within, &owner).await
            }
            Some(Err(why)) => self.step(Input::Say(Err(why))).await,
            None => {
                let said = self.expand(said(prompt)).await;
                self.step(Input::Prompt(said)).await
            }
        }
    }

    /// `within` is the limit of the client that asked.
    async fn set_mode(
        &mut self,
        word: &str,
        within: Option<ApprovalMode>,
    ) -> Result<Result<ApprovalMode, String>, OwnerGone> {
        let mode = match Mode::parse(AgentType::Builtin, word) {
            Ok(Mode::Unified(mode)) => mode,
            Ok(Mode::Native(native)) => return Ok(Err(format!("the built-in agent has no mode '{native}'"))),
            Err(error) => return Ok(Err(error.to_string())),
        };
        if let Some(most) = within.filter(|most| !mode.is_within(*most, AgentType::Builtin)) {
            let (mode, most) = (mode.option_word(), most.option_word());
            return Ok(Err(format!("{mode} runs more without asking than {most}, your limit here")));
        }
        self.parts.policy.mode = mode;
        let native_mode = mode.native(AgentType::Builtin).map(|mode| mode.word.to_owned());
        self.tell(EventKind::ModeChanged { mode: Some(mode), native_mode, by: None }).await?;
        Ok(Ok(mode))
    }

    async fn set_model(&mut self, name: &str) -> Result<Result<(), String>, OwnerGone> {
        match choose(Some(name), &self.parts.setup) {
            Ok(model) => {
                self.machine.limits.window = model.window();
                self.parts.model = model;
                let model = self.parts.model.name().to_owned();
                self.tell(EventKind::ModelChanged { model, by: None }).await?;
                self.keep_model().await?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(error.why)),
        }
    }

    async fn query(&mut self, what: Query) -> Result<(), OwnerGone> {
        match what {
            Query::Commands => {
                let commands = Some(slash::table(&self.parts.own));
                let capabilities = AgentCapabilities { commands, ..AgentCapabilities::default() };
                self.tell(EventKind::Capabilities(capabilities)).await
            }
            Query::Models => {
                let (setup, chosen) = (&self.parts.setup, self.parts.model.name());
                let offered = providers(&setup.env).map(|providers| providers.offered(chosen));
                let models = offered.unwrap_or_default().into_iter();
                let models = models.map(|id| AgentModel { id, ..AgentModel::default() }).collect();
                let capabilities = AgentCapabilities { models: Some(models), ..AgentCapabilities::default() };
                self.tell(EventKind::Capabilities(capabilities)).await
            }
            Query::McpStatus => {
                let servers: Vec<_> = self.parts.toolbox.mcp.changes().iter().map(ServerChange::status).collect();
                self.note(SystemSubtype::MCP_STATUS, None, json!({ "mcpServers": servers })).await
            }
            Query::Account => {
                let message = Some("the built-in agent has no account of its own".to_owned());
                self.note(SystemSubtype::ACCOUNT, message, self.parts.model.account()).await
            }
            Query::Context => {
                let used = self.machine.used.unwrap_or_else(|| self.machine.talk.guessed_tokens());
                let mut data = json!({ "usedTokens": used });
                if let Some(window) = self.machine.limits.window {
                    data["contextWindow"] = window.into();
                }
                self.note(SystemSubtype::CONTEXT, None, data).await
            }
        }
    }

    async fn slash(&mut self, slash: Slash, within: Option<ApprovalMode>, owner: &ChatOwner) -> Result<(), OwnerGone> {
        let words = match slash {
            Slash::Help => Ok(slash::help(&self.parts.own)),
            Slash::Tools => Ok(self.tools()),
            Slash::Mcp => Ok(self.mcp_servers()),
            Slash::MemoryShow => Ok(self.remembered()),
            Slash::MemoryRefresh => {
                self.remember_again().await;
                Ok(self.remembered())
            }
            Slash::MemoryAdd(fact) => {
                // All sessions of the user share the memory, so a client with limited rights is asked.
                self.by_user = within.is_none();
                let (name, arguments) = ("save_memory".to_owned(), json!({ "fact": fact }));
                let call = Call { id: "user".to_owned(), name, arguments, signature: None };
                return self.step(Input::Do(call)).await;
            }
            Slash::Model(None) => Ok(format!("The model is {}.\n", self.parts.model.name())),
            Slash::Model(Some(name)) => {
                self.set_model(&name).await?.map(|()| format!("The model is now {}.\n", self.parts.model.name()))
            }
            Slash::Mode(None) => Ok(format!("The approval mode is {}.\n", self.parts.policy.mode.option_word())),
            Slash::Mode(Some(word)) => {
                let set = self.set_mode(&word, within).await?;
                set.map(|mode| format!("The approval mode is now {}.\n", mode.option_word()))
            }
            Slash::Compress if self.machine.talk.is_empty() => Ok("There is nothing to summarize yet.\n".to_owned()),
            Slash::Compress => return self.step(Input::Compress).await,
            Slash::ChatSave(name) => {
                let RunnerParts { chat_store, chat, folder, .. } = &self.parts;
                let saved = chat_store.save(&name, (owner, folder), chat, &self.machine.talk).await;
                saved.map(|()| format!("Kept as {name}.\n")).map_err(|error| error.to_string())
            }
            Slash::ChatList => self.chats(owner).await,
            Slash::ChatResume(name) => match self.parts.chat_store.load(&name, owner, &self.parts.folder).await {
                Ok(talk) => {
                    let count = talk.messages().len();
                    self.take(talk).await?;
                    Ok(format!("The conversation is {name} now, with {count} messages.\n"))
                }
                Err(error) => Err(error.to_string()),
            },
            Slash::ChatDelete(_) if within.is_some() => {
                Err("only the owner of this session can delete conversations".to_owned())
            }
            Slash::ChatDelete(name) => {
                let deleted = self.parts.chat_store.delete(&name, owner, &self.parts.folder).await;
                deleted.map(|()| format!("{name} is gone.\n")).map_err(|error| error.to_string())
            }
            Slash::Stats => Ok(self.stats()),
            Slash::Clear => {
                self.take(Conversation::default()).await?;
                Ok("The conversation is forgotten.\n".to_owned())
            }
            Slash::Share => Ok("Start Multitap with --a2a-port N to let others into this session.\n".to_owned()),
            Slash::Quit if within.is_some() => Err("only the owner of this session can end it".to_owned()),
            Slash::Quit => {
                self.over = true;
                Ok("Goodbye.\n".to_owned())
            }
            // The prompt is not a command of ours.
            Slash::Prompt(text) => Ok(text),
        };
        self.step(Input::Say(words)).await
    }

    async fn take(&mut self, talk: Conversation) -> Result<(), OwnerGone> {
        self.machine.talk = talk.clone();
        self.machine.used = None;
        self.keep(StoreUpdate::All(talk)).await
    }

    fn remembered(&self) -> String {
        match self.parts.memory.text() {
            text if text.is_empty() => "The memory is empty.\n".to_owned(),
            text => format!("{text}\n"),
        }
    }

    /// Rereads the memory files, on a thread that may block.
    pub(super) async fn remember_again(&mut self) {
        let home = self.parts.setup.env.get("HOME").map(std::path::PathBuf::from);
        let (config, folder) = (self.parts.setup.config.clone(), self.parts.folder.clone());
        let load = move || Memory::load(config.as_deref(), home.as_deref(), &folder);
        match tokio::task::spawn_blocking(load).await {
            Ok(memory) => self.parts.memory = memory,
            Err(error) => tracing::warn!(%error, "the memory files could not be read"),
        }
    }

    fn tools(&self) -> String {
        let mut text = "Tools:\n".to_owned();
        for spec in self.parts.toolbox.specs() {
            let first = spec.description.split(". ").next().unwrap_or_default();
            text.push_str(&format!("  {:<24} {}\n", spec.name, first.trim_end_matches('.')));
        }
        text
    }

    fn mcp_servers(&self) -> String {
        let servers = self.parts.toolbox.mcp.changes();
        if servers.is_empty() {
            return "No MCP servers. Add them as mcpServers in your settings.\n".to_owned();
        }
        let one = |server: &ServerChange| {
            let tools = server.state.tool_names().join(", ");
            let tools = if tools.is_empty() { String::new() } else { format!("  {tools}\n") };
            format!("{}\n{tools}", server.status().summary())
        };
        servers.iter().map(one).collect()
    }

    async fn chats(&self, owner: &ChatOwner) -> Result<String, String> {
        let names = self.parts.chat_store.list(owner, &self.parts.folder).await.map_err(|error| error.to_string())?;
        if names.is_empty() {
            return Ok("There are no saved conversations.\n".to_owned());
        }
        Ok(names.iter().map(|name| format!("  {name}\n")).collect())
    }

    fn stats(&self) -> String {
        let used = self.machine.used.unwrap_or_else(|| self.machine.talk.guessed_tokens());
        let window = self.machine.limits.window.map_or(String::new(), |window| format!(" of {window}"));
        let (input, output) = self.usage.map_or((0, 0), |usage| (usage.input_tokens, usage.output_tokens));
        format!(
            "Model {}, {input} tokens read and {output} written in this session. The conversation has {} messages, \
             about {used}{window} tokens.\n",
            self.parts.model.name(),
            self.machine.talk.messages().len()
        )
    }
}

fn said(prompt: Prompt) -> UserText {
    UserText { text: prompt.text, images: prompt.images }
}
