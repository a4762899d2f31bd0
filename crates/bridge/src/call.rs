//! One call of a tool, from its arguments to its result. `ask` puts the remote agent's questions to the client's user.

mod agents;
mod ask;

use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::client::{Client, ClientError};
use multitap_a2a::{ListTasks, Message, SendMessage, Task, Update, hops};
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use self::ask::{Asked, Brought, Elicitation};
use crate::argument::{self, ArtifactArguments, ListArguments, TaskArguments};
use crate::ask::{Reply, form};
use crate::bridge::Bridge;
use crate::collect::Collected;
use crate::describe::claim;
use crate::pending::Waiting;
use crate::progress::Reporter;
use crate::remote::{RemoteAgent, Status};
use crate::result::{self, Returned};
use crate::run::{Run, RunEnd};
use crate::tool::{self, Action, Target};

/// Maximum number of questions to the user in one call.
const MOST_QUESTIONS: usize = 10;
/// Time limit for an agent to cancel a task when its call is cancelled.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// First delay between two looks at a task that nobody follows; doubled each time.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// The most tasks of one list.
const MOST_TASKS: usize = 50;
/// The most characters of an id or a time in a list.
const MOST_FIELD: usize = 200;

/// How the wait for a run ended.
enum Waited {
    Ended(RunEnd),
    StillWorking,
    Cancelled,
}

/// The outcome of following a task.
enum Settled {
    Result(Box<CallToolResponse>),
    /// The user answered the agent's question.
    Answer(Box<Message>),
    /// The client cancelled the call while the user was asked.
    Cancelled,
}

impl Bridge {
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        cancelled_turns: u32,
    ) -> Option<CallToolResponse> {
        let target = tool::find(&self.registry, &request.name)?;
        let answer = match target {
            Target::LoadAgent => self.load_agent(request).await,
            Target::ListAgents => Ok(self.list_agents()),
            Target::UnloadAgent => self.unload_agent(request),
            Target::Agent { name, agent, action: Action::Connect } => Ok(self.connect(&name, &agent).await),
            Target::Agent { name, agent, action } => match self.ready(&name, &agent).await {
                Err(why) => Ok(result::remote_error(&name, &why)),
                Ok(client) => {
                    let call = Call { bridge: self, name, agent, client, context, cancelled_turns };
                    let answer = match action {
                        Action::SendMessage => return Some(call.send(request).await),
                        Action::GetTask => return Some(call.get(request).await),
                        Action::CancelTask => call.cancel(request).await,
                        Action::ListTasks => call.list(request).await,
                        Action::GetArtifact => call.artifact(request).await,
                        Action::Connect => Err("it is connected".to_owned()),
                    };
                    Ok(answer.unwrap_or_else(|why| result::remote_error(&call.name, &why)))
                }
            },
        };
        Some(answer.unwrap_or_else(result::error).into())
    }

    /// The client for an agent. If the agent is down, it is tried once more.
    async fn ready(&self, name: &str, agent: &Arc<RemoteAgent>) -> Result<Client, String> {
        if let Status::Down { .. } = agent.status() {
            self.registry.reload(name, agent, self.options.load_timeout).await;
        }
        match agent.status() {
            Status::Ready(client) => Ok(client),
            Status::Down { why, .. } => Err(format!("it cannot be reached: {why}")),
        }
    }

    /// Cancels the task whose question nobody will answer.
    pub(crate) async fn abandon(&self, handle: &str) {
        if let Some(waiting) = self.pending.abandon(handle) {
            self.cancel_waiting(&waiting).await;
        }
    }

    async fn cancel_waiting(&self, waiting: &Waiting) {
        let Waiting { agent, task_id: Some(task), .. } = waiting else { return };
        if let Status::Ready(client) = agent.status()
            && !matches!(timeout(CANCEL_LIMIT, client.cancel(task)).await, Ok(Ok(_)))
        {
            tracing::debug!(agent = %agent.entry.address(), "the task of an open question was not cancelled");
        }
    }
}

/// A call about one agent.
struct Call<'a> {
    bridge: &'a Bridge,
    name: String,
    agent: Arc<RemoteAgent>,
    client: Client,
    context: RequestContext<RoleServer>,
    /// How many turns had been cancelled when the call began.
    cancelled_turns: u32,
}

impl Call<'_> {
    async fn send(&self, request: CallToolRequestParams) -> CallToolResponse {
        let message = match self.message(request) {
            Ok(Brought::Message(message)) => message,
            Ok(Brought::Dismissed(waiting)) if self.is_given_up().await => {
                self.bridge.cancel_waiting(&waiting).await;
                return self.cancelled().into();
            }
            Ok(Brought::Dismissed(waiting) | Brought::Declined(waiting)) => {
                let collected = Collected::waiting(waiting.task_id, waiting.context_id, waiting.question);
                return self.result(waiting.shown_id.as_deref(), &collected, Returned::Declined).into();
            }
            Err(why) => return result::error(why).into(),
        };
        self.converse(message, MOST_QUESTIONS, &mut Reporter::new(&self.context)).await
    }

    /// Sends a message and follows the task. `questions` is how many questions may be put to the user; the next one is
    /// returned as the result.
    async fn converse(&self, first: Message, questions: usize, reporter: &mut Reporter) -> CallToolResponse {
        let (mut message, mut questions) = (first, questions);
        loop {
            let send = match self.with_hops(message) {
                Ok(send) => send,
                Err(why) => return result::error(why).into(),
            };
            let run = self.bridge.runs.start(&self.agent, &self.client, send);
            let waited = self.wait(&run, reporter).await;
            let collected = run.state().collected;
            // A text that is read page by page needs an id, even if the agent answers without a task.
            let id = self.shown_id(&run).or_else(|| result::has_pages(&collected).then(|| run.handle.clone()));
            let id = id.as_deref();
            let end = match waited {
                Waited::Cancelled => return self.give_up(&run).await.into(),
                Waited::StillWorking => {
                    let id = id.or(Some(&run.handle));
                    return self.result(id, &collected, Returned::StillWorking).into();
                }
                Waited::Ended(end) => end,
            };
            if matches!(end, RunEnd::Failed(_)) {
                self.look_again();
            }
            message = match self.settle(id, collected, end, &mut questions, reporter).await {
                Settled::Result(response) => return *response,
                Settled::Cancelled => return self.give_up(&run).await.into(),
                Settled::Answer(answer) => *answer,
            };
        }
    }

    /// Puts the agent's questions to the user, or makes the result of the call. `questions` is how many may still be
    /// asked.
    async fn settle(
        &self,
        id: Option<&str>,
        mut collected: Collected,
        mut end: RunEnd,
        questions: &mut usize,
        reporter: &mut Reporter,
    ) -> Settled {
        loop {
            let result = |returned| Settled::Result(Box::new(self.result(id, &collected, returned).into()));
            let question = collected.question().filter(|_| end == RunEnd::Done && *questions > 0);
            let Some(question) = question else { return result(returned(&collected, &end)) };
            let Some(form) = form(&self.name, &self.agent, &question) else {
                return result(Returned::Ended(&end));
            };
            match self.elicitation() {
                Elicitation::None => return result(Returned::Ended(&end)),
                Elicitation::Result => {
                    return Settled::Result(Box::new(self.ask_by_result(id, &collected, question, form).into()));
                }
                Elicitation::Request => {}
            }
            *questions -= 1;
            match self.ask(&collected, &question, form, reporter).await {
                Asked::Replied(Reply::Answer(answer)) => {
                    return Settled::Answer(Box::new(self.answer(*answer, &collected)));
                }
                Asked::Replied(Reply::Declined) => return result(Returned::Declined),
                Asked::Unanswered if self.context.ct.is_cancelled() => return Settled::Cancelled,
                Asked::Unanswered => return result(Returned::Ended(&end)),
                Asked::AnsweredElsewhere => {}
            }
            // The task goes on without a message of ours.
            let task_id = collected.task_id.clone().unwrap_or_default();
            (collected, end) = match self.rest(&task_id, None, true, reporter).await {
                Ok(Some(collected)) => (collected, RunEnd::Done),
                Ok(None) => return Settled::Cancelled,
                Err(why) => return Settled::Result(Box::new(result::remote_error(&self.name, &why).into())),
            };
        }
    }

    /// The id by which the client may refer to the task of a run, if the agent has given one.
    fn shown_id(&self, run: &Run) -> Option<String> {
        run.task_id().map(|id| self.agent.plain_id(&id).unwrap_or(&run.handle).to_owned())
    }

    /// The agent's own id of a task; the client may know the task by another id.
    fn task_id(&self, given: &str) -> Result<String, String> {
        match self.bridge.runs.find(&self.agent, given) {
            None => Ok(given.to_owned()),
            Some(run) => {
                run.task_id().ok_or_else(|| "the agent has not named its task yet: try again later".to_owned())
            }
        }
    }

    /// Addresses an answer to the task that asked.
    fn answer(&self, answer: Message, collected: &Collected) -> Message {
        Message { task_id: collected.task_id.clone(), context_id: collected.context_id.clone(), ..answer }
    }

    fn with_hops(&self, mut message: Message) -> Result<SendMessage, String> {
        let hops = self.bridge.options.hops.now() + 1;
        hops::check(hops).map_err(|error| error.to_string())?;
        message.metadata.insert(hops::KEY.to_owned(), json!(hops));
        Ok(SendMessage { message, ..SendMessage::default() })
    }

    fn result(&self, id: Option<&str>, collected: &Collected, returned: Returned<'_>) -> CallToolResult {
        result::of_task(&self.name, &self.agent, id, collected, returned)
    }

    /// Waits until a run ends or the time of the call is over, and reports the agent's progress meanwhile.
    async fn wait(&self, run: &Run, reporter: &mut Reporter) -> Waited {
        let deadline = Instant::now() + self.agent.budget(self.bridge.options.call_budget);
        let mut changes = run.watch();
        loop {
            let (note, is_ended) = run.glance();
            if is_ended {
                return Waited::Ended(run.state().end.unwrap_or(RunEnd::Done));
            }
            let note = note.map_or_else(|| format!("{} is working", self.name), |note| self.agent.clean(&note));
            let due = reporter.note(&note).await;
            tokio::select! {
                () = self.context.ct.cancelled() => return Waited::Cancelled,
                () = sleep_until(deadline) => return Waited::StillWorking,
                () = sleep_until(due) => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// The client cancelled the call: cancels the task too, as soon as the agent has named it.
    async fn give_up(&self, run: &Run) -> CallToolResult {
        let task = timeout(CANCEL_LIMIT, run.named_task()).await.ok().flatten();
        if task.is_none() {
            run.stop();
        }
        if let Some(task) = task {
            match timeout(CANCEL_LIMIT, self.client.cancel(&task)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(agent = %self.name, %error, "the task cannot be cancelled"),
                Err(_) => tracing::debug!(agent = %self.name, "the task was not cancelled in time"),
            }
        }
        self.cancelled()
    }

    fn cancelled(&self) -> CallToolResult {
        result::error(format!("the call of {} was cancelled", self.name))
    }

    /// Fetches the card once more: an agent that moved fails its calls.
    fn look_again(&self) {
        let (bridge, name, agent) = (self.bridge.clone(), self.name.clone(), self.agent.clone());
        self.bridge.tasks.spawn(async move {
            tokio::select! {
                () = bridge.stop.cancelled() => {}
                _ = bridge.registry.reload(&name, &agent, bridge.options.load_timeout) => {}
            }
        });
    }

    async fn get(&self, request: CallToolRequestParams) -> CallToolResponse {
        if request.request_state.is_some() {
            // An earlier call asked the user, and this one contains the answer.
            return self.send(request).await;
        }
        match self.look(request).await {
            Ok(response) => response,
            Err(why) => result::remote_error(&self.name, &why).into(),
        }
    }

    /// State of a task; if the call waits for the task, its outcome.
    async fn look(&self, request: CallToolRequestParams) -> Result<CallToolResponse, String> {
        const CANCELLED: &str = "the call was cancelled; the task continues";
        let TaskArguments { task_id: given, wait } = argument::read(request.arguments)?;
        let id = Some(given.as_str());
        let mut reporter = Reporter::new(&self.context);
        let run = self.bridge.runs.find(&self.agent, &given);
        let mut followed = None;
        if let Some(run) = &run {
            let waited = if wait { self.wait(run, &mut reporter).await } else { Waited::now(run) };
            let collected = run.state().collected;
            match waited {
                Waited::Cancelled => return Err(CANCELLED.to_owned()),
                Waited::StillWorking => return Ok(self.result(id, &collected, Returned::StillWorking).into()),
                // The agent knows no more about a finished task, and nothing about a task that it never named.
                Waited::Ended(end) if collected.is_over() || collected.task_id.is_none() => {
                    return Ok(self.result(id, &collected, Returned::Ended(&end)).into());
                }
                Waited::Ended(_) => followed = Some(collected),
            }
        }
        // The agent's current answer is better than the state in which a stream ended.
        let task_id = self.task_id(&given)?;
        let Some(collected) = self.rest(&task_id, followed.as_ref(), wait, &mut reporter).await? else {
            return Err(CANCELLED.to_owned());
        };
        let mut questions = if wait { MOST_QUESTIONS } else { 0 };
        match self.settle(id, collected, RunEnd::Done, &mut questions, &mut reporter).await {
            Settled::Result(response) => Ok(*response),
            Settled::Cancelled => Err(CANCELLED.to_owned()),
            Settled::Answer(answer) => Ok(self.converse(*answer, questions, &mut reporter).await),
        }
    }

    /// The state of a task that nobody follows; if the call waits for it, once it rests or the time of the call is over.
    /// `None`: the call was cancelled.
    async fn rest(
        &self,
        task_id: &str,
        followed: Option<&Collected>,
        wait: bool,
        reporter: &mut Reporter,
    ) -> Result<Option<Collected>, String> {
        let deadline = Instant::now() + self.agent.budget(self.bridge.options.call_budget);
        let mut pause = FIRST_LOOK;
        loop {
            let mut collected = self.snapshot(task_id, self.client.get(task_id, None).await)?;
            if let Some(followed) = followed {
                collected.complete(followed);
            }
            let is_working = returned(&collected, &RunEnd::Done) == Returned::StillWorking;
            if !is_working || !wait || Instant::now() + pause > deadline {
                return Ok(Some(collected));
            }
            reporter.note(&format!("{} is working", self.name)).await;
            tokio::select! {
                () = self.context.ct.cancelled() => return Ok(None),
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_LOOK),
            }
        }
    }

    async fn cancel(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let TaskArguments { task_id: given, .. } = argument::read(request.arguments)?;
        let task_id = self.task_id(&given)?;
        let collected = self.snapshot(&task_id, self.client.cancel(&task_id).await)?;
        Ok(self.result(Some(&given), &collected, returned(&collected, &RunEnd::Done)))
    }

    /// A task in the state that the agent reports now.
    fn snapshot(&self, task_id: &str, answer: Result<Task, ClientError>) -> Result<Collected, String> {
        let task = answer.map_err(|error| self.agent.explain(&error))?;
        let mut collected = Collected::of(Some(task_id.to_owned()), None);
        collected.apply(Update::Task(task));
        match collected.missing() {
            Some(why) => Err(why.to_owned()),
            None => Ok(collected),
        }
    }

    async fn list(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let ListArguments { context_id, page_token } = argument::read(request.arguments)?;
        let list =
            ListTasks { context_id, page_token, page_size: Some(20), history_length: Some(0), ..ListTasks::default() };
        let page = self.client.list(list).await.map_err(|error| self.agent.explain(&error))?;
        let tasks = page.tasks.iter().take(MOST_TASKS).map(|task| {
            json!({
                "taskId": self.agent.plain_id(&task.id),
                "contextId": self.agent.plain_id(&task.context_id),
                "state": task.status.state.word(),
                "updated": task.status.timestamp.as_deref().map(|at| claim(&self.agent, at, MOST_FIELD)),
            })
        });
        let tasks: Vec<Value> = tasks.collect();
        let mut list = Map::from_iter([("tasks".to_owned(), Value::Array(tasks))]);
        let next_page = self.agent.plain_id(&page.next_page_token);
        list.extend(next_page.map(|token| ("nextPageToken".to_owned(), json!(token))));
        Ok(result::of_list(&self.name, list))
    }

    async fn artifact(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let ArtifactArguments { task_id: given, artifact_id, offset } = argument::read(request.arguments)?;
        let known = self.bridge.runs.find(&self.agent, &given).map(|run| run.state().collected);
        if let Some(found) = known.as_ref().and_then(|known| result::find(&self.agent, known, &artifact_id)) {
            return Ok(result::page(&self.name, &found, offset));
        }
        let task_id = self.task_id(&given)?;
        let collected = self.snapshot(&task_id, self.client.get(&task_id, Some(0)).await)?;
        match result::find(&self.agent, &collected, &artifact_id) {
            Some(found) => Ok(result::page(&self.name, &found, offset)),
            None => {
                let ids = collected.artifacts.iter().enumerate();
                let ids: Vec<String> = ids.map(|(at, known)| result::artifact_id(&self.agent, at, known)).collect();
                Err(format!("the task {given} has no artifact {artifact_id}; it has: {}", ids.join(", ")))
            }
        }
    }
}

impl Waited {
    /// The state of a run, without waiting.
    fn now(run: &Run) -> Self {
        run.state().end.map_or(Self::StillWorking, Self::Ended)
    }
}

/// The reason for a call's return after its stream ended: the task may continue without a stream.
fn returned<'a>(collected: &Collected, end: &'a RunEnd) -> Returned<'a> {
    let is_working = !collected.is_over() && !collected.state.is_interrupted() && collected.task_id.is_some();
    if is_working && *end == RunEnd::Done { Returned::StillWorking } else { Returned::Ended(end) }
}
