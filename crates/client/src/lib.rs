//! Drive any coding agent from a Rust program, through one event model.
//!
//! An [`AgentClient`] starts sessions with Claude Code, Codex, Gemini CLI, any agent that speaks ACP, or Multitap's own.
//! A session is one stream of [`Event`]s, the same whatever the agent, and a few calls: [`prompt`](AgentSession::prompt),
//! [`decide`](AgentSession::decide), [`cancel`](AgentSession::cancel), [`set_mode`](AgentSession::set_mode),
//! [`set_model`](AgentSession::set_model), [`close`](AgentSession::close).
//!
//! # Start a session and answer its questions
//!
//! ```no_run
//! use multitap_client::{AgentClient, AgentKind, Decide, EventKind, Prompt, SessionConfig, option};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = AgentClient::new();
//! let config = SessionConfig::new(AgentKind::Claude).with_prompt("Add a test for the parser and run it");
//! let mut session = client.start(config).await?;
//! while let Some(event) = session.events().next().await {
//!     match &event.kind {
//!         EventKind::TextChunk(chunk) => print!("{}", chunk.content),
//!         EventKind::PermissionAsked(question) => {
//!             println!("{}", question.title);
//!             session.decide(Decide::new(&question.question_id, option::PROCEED_ONCE)).await?;
//!         }
//!         // The agent rests: another prompt begins another turn, `finish` ends the session.
//!         EventKind::TurnCompleted(_) => session.finish().await?,
//!         _ => {}
//!     }
//! }
//! client.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Resume one
//!
//! ```no_run
//! use multitap_client::{AgentClient, AgentKind, AgentSession, SessionConfig};
//!
//! # async fn example(earlier: AgentSession) -> Result<(), Box<dyn std::error::Error>> {
//! let client = AgentClient::new();
//! let native_id = earlier.native_id().ok_or("the agent never named its session")?;
//! let config = SessionConfig::new(AgentKind::Claude).with_prompt("Go on with the error handling");
//! let mut session = client.resume(native_id, config).await?;
//! # let _ = session.events().next().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Ask once
//!
//! ```no_run
//! use multitap_client::{AgentClient, AgentKind, SessionConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = SessionConfig::new(AgentKind::Claude).with_prompt("What does this crate do?");
//! let outcome = AgentClient::new().prompt_once(config).await?;
//! println!("{} ({:?} tokens)", outcome.text, outcome.usage.map(|usage| usage.total_tokens));
//! # Ok(())
//! # }
//! ```
//!
//! # Read what an agent keeps
//!
//! Every agent stores its conversations in files of its own. They can be listed and read as events, also those that
//! were had without Multitap.
//!
//! ```no_run
//! use std::collections::BTreeMap;
//!
//! use multitap_client::{AgentType, EventKind, History, read_stored};
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // No variables of its own: where the agent would look in this process's environment.
//! let history = History::of(AgentType::Claude, &BTreeMap::new())?;
//! for session in history.list(Some(&std::env::current_dir()?)) {
//!     println!("{} {}", session.id, session.title.as_deref().unwrap_or_default());
//!     for event in read_stored(&session, false)? {
//!         if let EventKind::UserMessage(message) = event.kind {
//!             println!("  > {}", message.content);
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - Events are numbered by `seq` from 1 without a gap; `sessionEnded` comes once and last.
//! - A question gets exactly one ruling: the first answer that names an offered option. Every other answer is
//!   [`Refused`] and says why.
//! - Prompts sent while a turn runs are queued and can be withdrawn.
//! - A prompt is words to the agent, also one that begins with `!`, unless [`AgentClientBuilder::shell_lines`] says
//!   otherwise; the built-in agent runs such lines itself.
//! - Dropping a session ends its agent; [`AgentClient::shutdown`] waits until nothing of any agent is left.
//!
//! Must not come in: doors, storage, terminals. A program that needs many clients on one session runs `multitap`.

mod agents;
mod client;
mod history;
mod outcome;
mod session;

pub use agents::{Agents, Builtin, McpPipe, Save, SessionExtras};
pub use client::{AgentClient, AgentClientBuilder, StartError};
pub use history::read_stored;
pub use multitap_adapter::{History, HistoryError, StoredSession};
pub use multitap_event::*;
pub use multitap_hub::{Refusal, SessionCall, SessionReply, WhenBusy};
pub use outcome::{SessionOutcome, ToolUse, TouchedFile};
pub use session::{AgentSession, Events};
