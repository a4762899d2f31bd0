//! What is asked of the other process: each question with its method and a time limit.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{ClientId, Command, Decide, Prompt, PromptId, Ruling};
use multitap_hub::{
    Answer, CancelError, CommandError, DecideError, Edge, Elsewhere, JournalError, KickError, Page, Part, PromptError,
    RevokeError, WhenBusy, WithdrawError,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::refused;
use crate::wire::{Pages, Problem, entry};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many questions may wait to be sent.
pub(crate) const CALLS: usize = 64;

/// A question on its way, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    pub(crate) reply: oneshot::Sender<Result<Box<RawValue>, Failed>>,
}

/// Why there is no answer, or not the one that was hoped for.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Failed {
    #[error("{}", .0.message)]
    Refused(Problem),
    #[error("the connection to the session is lost, so this was not sent: try again when it is back")]
    Unsent,
    #[error("the connection broke before an answer came: this may have been done or not")]
    Broken,
    #[error("no answer came within {} s: this may have been done or not", PATIENCE.as_secs())]
    Timeout,
    #[error("the answer cannot be understood: {0}")]
    Unreadable(Arc<str>),
}

/// How the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Up,
    Down,
    /// It will not come back.
    Gone,
}

/// Hands questions to whoever has the connection.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    calls: mpsc::Sender<Call>,
    link: watch::Receiver<Link>,
}

impl Calls {
    pub(crate) fn new(calls: mpsc::Sender<Call>, link: watch::Receiver<Link>) -> Self {
        Self { calls, link }
    }

    async fn ask<T: DeserializeOwned>(&self, method: &'static str, params: Value) -> Result<T, Failed> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.calls.send(Call { method, params, reply }).await.map_err(|_| Failed::Unsent)?;
            answer.await.unwrap_or(Err(Failed::Broken))
        };
        let answer = timeout(PATIENCE, asked).await.unwrap_or(Err(Failed::Timeout))?;
        serde_json::from_str(answer.get()).map_err(|error| Failed::Unreadable(error.to_string().into()))
    }

    /// It is done, or it is not.
    async fn done(&self, method: &'static str, params: Value) -> Result<(), Failed> {
        self.ask::<Value>(method, params).await.map(drop)
    }

    /// Asks for something that can be asked for again, until there is an answer or no way left.
    async fn insist<T: DeserializeOwned>(mut self, method: &'static str, params: Value) -> Result<T, Failed> {
        loop {
            let failed = match self.ask(method, params.clone()).await {
                Err(failed @ (Failed::Unsent | Failed::Broken | Failed::Timeout)) => failed,
                other => return other,
            };
            let link = self.link.wait_for(|link| *link != Link::Down).await.map(|link| *link);
            if !matches!(link, Ok(Link::Up)) {
                return Err(failed);
            }
        }
    }
}

impl Elsewhere for Calls {
    fn prompt(&self, prompt: Prompt, when_busy: WhenBusy) -> Answer<PromptId, PromptError> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Accepted {
            prompt_id: PromptId,
        }
        let (calls, mut params) = (self.clone(), json!(prompt));
        params["whenBusy"] = when_busy.to_string().into();
        Box::pin(async move {
            let accepted = calls.ask::<Accepted>("prompt", params).await;
            accepted.map(|accepted| accepted.prompt_id).map_err(refused::prompt)
        })
    }

    fn withdraw(&self, prompt: PromptId) -> Answer<(), WithdrawError> {
        let calls = self.clone();
        Box::pin(async move {
            let withdrawn = calls.done("withdraw", json!({ "promptId": prompt })).await;
            withdrawn.map_err(|failed| refused::withdraw(failed, prompt))
        })
    }

    fn decide(&self, decide: Decide) -> Answer<Ruling, DecideError> {
        let calls = self.clone();
        Box::pin(async move {
            let ruling = calls.ask("decide", json!(decide)).await;
            ruling.map_err(|failed| refused::decide(failed, &decide))
        })
    }

    fn cancel(&self) -> Answer<(), CancelError> {
        let calls = self.clone();
        Box::pin(async move { calls.done("cancel", json!({})).await.map_err(refused::cancel) })
    }

    fn pass(&self, command: Command) -> Answer<(), CommandError> {
        let calls = self.clone();
        Box::pin(async move {
            let (method, params) = match command {
                Command::SetMode { mode } => ("setMode", json!({ "mode": mode })),
                Command::SetModel { model } => ("setModel", json!({ "model": model })),
                Command::SetThinking { tokens: Some(tokens) } => ("setThinking", json!({ "tokens": tokens })),
                Command::SetThinking { tokens: None } => ("setThinking", json!({})),
                Command::Query { what } => ("query", json!({ "what": what })),
                Command::Cancel => ("cancel", json!({})),
                Command::Prompt(_) | Command::Steer(_) | Command::Decide(_) => {
                    let why = "prompts and answers have a way of their own";
                    return Err(CommandError::Elsewhere(why.to_owned()));
                }
            };
            calls.done(method, params).await.map_err(refused::command)
        })
    }

    fn revoke(&self, rule_id: String) -> Answer<(), RevokeError> {
        let calls = self.clone();
        Box::pin(async move {
            let revoked = calls.done("revoke", json!({ "ruleId": rule_id })).await;
            revoked.map_err(|failed| refused::revoke(failed, rule_id))
        })
    }

    fn kick(&self, client: ClientId) -> Answer<(), KickError> {
        let calls = self.clone();
        Box::pin(async move {
            let kicked = calls.done("kick", json!({ "clientId": client })).await;
            kicked.map_err(|failed| refused::kick(failed, client))
        })
    }

    fn page(&self, part: Part) -> Answer<Page, JournalError> {
        let calls = self.clone();
        let params = match part.edge {
            Edge::After(seq) => json!({ "after": seq, "limit": part.limit }),
            Edge::Before(seq) => json!({ "before": seq, "limit": part.limit }),
        };
        Box::pin(async move {
            let pages: Pages = calls.insist("session/page", params).await.map_err(|failed| refused::page(&failed))?;
            let entries = pages.events.iter().filter_map(|event| entry(event)).collect();
            Ok(Page { entries, last_seq: pages.last })
        })
    }
}
