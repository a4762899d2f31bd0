//! One call: it waits for its server, reports progress, and ends when it is answered, stopped or timed out.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use multitap_outbound::error_chain;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, InputRequest, InputRequiredResult, InputResponses,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::time::{sleep, timeout};

use super::connect::{Connection, shown};
use super::elicit::Asker;
use super::http;
use super::outcome::{cut, outcome};
use super::server::{OwnerRequest, Server, Status};
use crate::tool::{Outcome, ToolContext};

const CALL_LIMIT: Duration = Duration::from_secs(600);
/// Maximum number of times that a server may ask the user before it answers a call.
const MOST_ROUNDS: usize = 16;
/// How long to wait for a server to accept a cancellation.
const CANCEL_LIMIT: Duration = Duration::from_secs(1);

impl Server {
    /// Calls a tool by the server's own name.
    pub(super) async fn call(&self, tool: &str, arguments: Map<String, Value>, context: ToolContext) -> Outcome {
        let line = tokio::select! {
            () = context.stop.cancelled() => return Outcome::cancelled("it was stopped before it was called"),
            line = self.line() => line,
        };
        let line = match line {
            Ok(line) => line,
            Err(why) => return Outcome::failed(format!("the MCP server {} is not available: {why}", self.name)),
        };
        match self.ask(&line, tool, arguments, &context).await {
            Ok(outcome) => outcome,
            Err(error) => self.failed(error).await,
        }
    }

    /// The current connection; reconnects once if it was lost.
    async fn line(&self) -> Result<Connection, String> {
        let mut state = self.state.clone();
        let gone = || "it has ended".to_owned();
        let mut tried = false;
        loop {
            let now = state.borrow_and_update().clone();
            match (now.status, now.line) {
                (Status::Connected, Some(line)) => return Ok(line),
                (Status::Failed | Status::Disconnected, _) if tried => return Err(now.error.unwrap_or_else(gone)),
                (Status::Failed | Status::Disconnected, _) => {
                    tried = true;
                    self.wishes.send(OwnerRequest::Connect).await.map_err(|_| gone())?;
                }
                (Status::Starting | Status::Connected, _) => tried = true,
            }
            state.changed().await.map_err(|_| gone())?;
        }
    }

    async fn ask(
        &self,
        line: &Connection,
        tool: &str,
        arguments: Map<String, Value>,
        context: &ToolContext,
    ) -> Result<Outcome, ServiceError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..MOST_ROUNDS {
            let wanted = match self.round(line, tool, params.clone(), context).await? {
                ControlFlow::Break(outcome) => return Ok(outcome),
                ControlFlow::Continue(wanted) => wanted,
            };
            let answers = tokio::select! {
                () = context.stop.cancelled() => return Ok(self.stopped(tool)),
                answers = answers(&line.asker, wanted.input_requests.unwrap_or_default()) => answers,
            };
            match answers {
                Ok(answers) => params.input_responses = Some(answers),
                Err(what) => {
                    return Ok(Outcome::failed(format!("{} requested {what}, which is not supported", self.name)));
                }
            }
            params.request_state = wanted.request_state;
        }
        Ok(Outcome::failed(format!("{} asked more than {MOST_ROUNDS} questions in one call", self.name)))
    }

    /// One request of a call, and its answer: the outcome, or what a server of 2026-07-28 needs of the user before it is
    /// asked the same again.
    async fn round(
        &self,
        Connection { peer, board, asker }: &Connection,
        tool: &str,
        params: CallToolRequestParams,
        context: &ToolContext,
    ) -> Result<ControlFlow<Outcome, InputRequiredResult>, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let mut asked = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let _entry = board.enter(asked.progress_token.clone(), context.progress.clone());
        let limit = self.config.timeout.unwrap_or(CALL_LIMIT);
        let answer = tokio::select! {
            answer = &mut asked.rx => answer.map_err(|_| ServiceError::TransportClosed)??,
            () = context.stop.cancelled() => {
                cancel(asked, "the user stopped it").await;
                return Ok(ControlFlow::Break(self.stopped(tool)));
            }
            () = too_long(limit, asker) => {
                cancel(asked, "it took too long").await;
                let why = format!("{tool} of {} did not answer within {}", self.name, shown(limit));
                return Ok(ControlFlow::Break(Outcome::failed(why)));
            }
        };
        match answer {
            ServerResult::CallToolResult(result) => Ok(ControlFlow::Break(outcome(result))),
            ServerResult::InputRequiredResult(wanted) => Ok(ControlFlow::Continue(wanted)),
            ServerResult::CreateTaskResult(_) => {
                let why = format!("{} answers with a task, which is not supported", self.name);
                Ok(ControlFlow::Break(Outcome::failed(why)))
            }
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    fn stopped(&self, tool: &str) -> Outcome {
        Outcome::cancelled(format!("{tool} of {} was stopped", self.name))
    }

    async fn failed(&self, error: ServiceError) -> Outcome {
        let name = &self.name;
        match error {
            ServiceError::McpError(error) => Outcome::failed(cut(format!("{name}: {}", error.message))),
            // The call may or may not have run, so it is not repeated; the next call reconnects.
            ServiceError::TransportClosed => {
                let mut state = self.state.clone();
                let gone = state.wait_for(|state| state.status != Status::Connected);
                let why = timeout(CANCEL_LIMIT * 5, gone).await.ok().and_then(Result::ok);
                let why =
                    why.and_then(|state| state.error.clone()).unwrap_or_else(|| "the connection is gone".to_owned());
                Outcome::failed(format!("the MCP server {name} disconnected during the call: {why}"))
            }
            ServiceError::TransportSend(error) => {
                let why = http::words(error.error.as_ref());
                self.wishes.try_send(OwnerRequest::GiveUp(why.clone())).ok(); // another call may have reported it
                Outcome::failed(format!("the MCP server {name} cannot be reached: {why}"))
            }
            other => Outcome::failed(cut(format!("{name}: {}", error_chain(&other)))),
        }
    }
}

/// Asks the user what a server wants to know. The error names what is not supported.
async fn answers(asker: &Asker, requests: BTreeMap<String, InputRequest>) -> Result<InputResponses, &'static str> {
    let mut answers = InputResponses::new();
    for (key, request) in requests {
        let answer = match request {
            InputRequest::Elicitation(request) => asker.ask(&request.params).await,
            InputRequest::CreateMessage(_) => return Err("an answer of the model"),
            InputRequest::ListRoots(_) => return Err("a list of folders"),
            _ => return Err("something unknown"),
        };
        answers.insert(key, answer.result());
    }
    Ok(answers)
}

/// Returns after that time, not counting the time in which the user is asked.
async fn too_long(limit: Duration, asker: &Asker) {
    loop {
        sleep(limit).await;
        if !asker.is_waiting() {
            return;
        }
    }
}

async fn cancel(asked: RequestHandle<RoleClient>, why: &str) {
    timeout(CANCEL_LIMIT, asked.cancel(Some(why.to_owned()))).await.ok(); // the result does not matter
}
