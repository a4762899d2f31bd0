//! The MCP client is asked to put the remote agent's question to its user: by a request, or by the result of the call,
//! which makes the client call again.

use std::collections::BTreeMap;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use multitap_a2a::Message;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::Call;
use crate::argument::{self, SendArguments};
use crate::ask::{self, Reply};
use crate::collect::{Collected, Question};
use crate::pending::Waiting;
use crate::progress::{Reporter, SIGN_OF_LIFE};

/// How long to wait for a client to accept that a question is withdrawn.
const TAKE_BACK_LIMIT: Duration = Duration::from_secs(1);
/// How long after a dialog was closed a client may take to say that it gave up the whole call or turn.
const DISMISSAL: Duration = Duration::from_millis(500);
/// Interval at which a task is looked at while the user is asked: somebody else may answer its question.
const ANSWERED_LOOK: Duration = Duration::from_secs(2);
/// The name of the input that is requested of a client of 2026-07-28.
const INPUT: &str = "answer";

/// Which requests the client of a call supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elicitation {
    None,
    /// Ask by a request to the client.
    Request,
    /// Ask by a result that makes the client call again.
    Result,
}

/// What came of a question to the user.
pub(super) enum Asked {
    Replied(Reply),
    /// Somebody else answered it, such as the person at the agent's own terminal.
    AnsweredElsewhere,
    /// The client cannot ask, or cancelled the call.
    Unanswered,
}

/// The message of a `sendMessage` call, unless the user declined to answer.
pub(super) enum Brought {
    Message(Message),
    /// The user was asked and does not want to answer.
    Declined(Waiting),
    /// The dialog was closed without an answer.
    Dismissed(Waiting),
}

impl Call<'_> {
    /// The message of a call, or the answer in a repeated call.
    pub(super) fn message(&self, request: CallToolRequestParams) -> Result<Brought, String> {
        let Some(handle) = request.request_state else {
            let mut message = argument::read::<SendArguments>(request.arguments)?.into_message()?;
            if message.task_id.is_none() && message.context_id.is_none() {
                message.context_id.clone_from(&self.agent.entry.context_id);
            }
            message.task_id = message.task_id.map(|id| self.task_id(&id)).transpose()?;
            return Ok(Brought::Message(message));
        };
        let Some(waiting) = self.bridge.pending.take(&handle, &self.agent) else {
            return Err("the question is no longer open".to_owned());
        };
        let answer = request.input_responses.and_then(|mut answers| answers.remove(INPUT)).unwrap_or_default();
        let answer: Option<ElicitResult> = serde_json::from_value(answer).ok();
        let Some(answer) = answer.filter(|answer| !is_dismissal(answer)) else {
            return Ok(Brought::Dismissed(waiting));
        };
        Ok(match ask::reply(&self.agent, &waiting.question, &answer) {
            Reply::Answer(answer) => {
                Brought::Message(Message { task_id: waiting.task_id, context_id: waiting.context_id, ..*answer })
            }
            Reply::Declined => Brought::Declined(waiting),
        })
    }

    pub(super) fn elicitation(&self) -> Elicitation {
        let offered = self.context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        // A client that names neither form nor URL means forms.
        let has_forms = offered.is_some_and(|offered| offered.form.is_some() || offered.url.is_none());
        let version = self.context.protocol_version();
        let is_modern = version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        match (has_forms, is_modern) {
            (false, _) => Elicitation::None,
            (true, true) => Elicitation::Result,
            (true, false) => Elicitation::Request,
        }
    }

    /// Asks the user what the agent asks.
    pub(super) async fn ask(
        &self,
        collected: &Collected,
        question: &Question,
        form: ElicitRequestParams,
        reporter: &mut Reporter,
    ) -> Asked {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
        let sent = self.context.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let cannot = |error: &dyn std::fmt::Display| {
            tracing::debug!(agent = %self.name, %error, "the client cannot ask its user");
            Asked::Unanswered
        };
        let mut asked = match sent {
            Ok(asked) => asked,
            Err(error) => return cannot(&error),
        };
        let deadline = Instant::now() + self.bridge.options.patience;
        let mut elsewhere = pin!(self.answered_elsewhere(collected, question));
        loop {
            tokio::select! {
                () = self.context.ct.cancelled() => {
                    take_back(asked, "the call was cancelled").await;
                    return Asked::Unanswered;
                }
                answer = &mut asked.rx => return match answer {
                    Ok(Ok(ClientResult::ElicitResult(answer))) if is_dismissal(&answer) && self.is_given_up().await => Asked::Unanswered,
                    Ok(Ok(ClientResult::ElicitResult(answer))) => {
                        Asked::Replied(ask::reply(&self.agent, question, &answer))
                    }
                    Ok(Ok(_)) => cannot(&"its answer does not answer a form"),
                    Ok(Err(error)) => cannot(&error),
                    Err(error) => cannot(&error),
                },
                () = sleep_until(deadline) => {
                    take_back(asked, "nobody answered").await;
                    return Asked::Replied(Reply::Declined);
                }
                () = &mut elsewhere => {
                    take_back(asked, "somebody else answered").await;
                    return Asked::AnsweredElsewhere;
                }
                () = sleep(SIGN_OF_LIFE) => {
                    reporter.note("waiting for an answer of the user").await;
                }
            }
        }
    }

    /// Returns when the task no longer waits for an answer to this question.
    async fn answered_elsewhere(&self, collected: &Collected, question: &Question) {
        let Some(task_id) = &collected.task_id else { return pending().await };
        loop {
            sleep(ANSWERED_LOOK).await;
            // An agent that cannot be asked now may be asked later.
            let Ok(now) = self.snapshot(task_id, self.client.get(task_id, Some(0)).await) else { continue };
            let is_other = match (question, now.question()) {
                (
                    Question::Confirmation { tool_call_id, .. },
                    Some(Question::Confirmation { tool_call_id: now, .. }),
                ) => *tool_call_id != now,
                // An agent may store its question in other words.
                _ => false,
            };
            if !now.state.is_interrupted() || is_other {
                return;
            }
        }
    }

    /// Whether a dialog was closed because its call or turn was given up: some clients close it first.
    pub(super) async fn is_given_up(&self) -> bool {
        timeout(DISMISSAL, self.context.ct.cancelled()).await.is_ok()
    }

    pub(super) fn ask_by_result(
        &self,
        id: Option<&str>,
        collected: &Collected,
        question: Question,
        form: ElicitRequestParams,
    ) -> InputRequiredResult {
        let handle = self.bridge.pending.put(Waiting {
            agent: self.agent.clone(),
            task_id: collected.task_id.clone(),
            context_id: collected.context_id.clone(),
            shown_id: id.map(str::to_owned),
            question,
            cancelled_turns: self.cancelled_turns,
        });
        let requests = BTreeMap::from([(INPUT.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
        InputRequiredResult::new(Some(requests), Some(handle))
    }
}

fn is_dismissal(answer: &ElicitResult) -> bool {
    answer.action == ElicitationAction::Cancel
}

/// Tells the client that an answer is no longer wanted, if it listens.
async fn take_back(asked: RequestHandle<RoleServer>, why: &str) {
    timeout(TAKE_BACK_LIMIT, asked.cancel(Some(why.to_owned()))).await.ok();
}
