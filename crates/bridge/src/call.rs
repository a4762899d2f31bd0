//! One call of a tool, from its arguments to its result.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::client::Client;
use multitap_a2a::{ListTasks, Message, SendMessage, Task, Update, hops};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitResult, InputRequest,
    InputRequiredResult, ProtocolVersion,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use crate::argument::{self, ArtifactArguments, ListArguments, LoadAgent, SendArguments, TaskArguments, UnloadAgent};
use crate::ask::{self, Reply};
use crate::bridge::Bridge;
use crate::collect::{Collected, Question};
use crate::pending::Waiting;
use crate::progress::{Reporter, SIGN_OF_LIFE};
use crate::remote::{Origin, RemoteAgent, Status};
use crate::result::{self, Returned};
use crate::run::{Run, RunEnd};
use crate::tool::{self, Action, Target};
use multitap_event::A2aServer;

/// The most questions that one call takes to a person.
const MOST_QUESTIONS: usize = 10;
/// How long a person may take to answer.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// How long an agent may take to cancel a task when its call is given up.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// The one input that is requested of a client of 2026-07-28.
const INPUT: &str = "answer";

/// What can be asked of the client of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elicitation {
    None,
    /// By a request to the client.
    Request,
    /// By a result that asks the client to call again.
    Result,
}

/// How the wait for a run ended.
enum Waited {
    Ended(RunEnd),
    StillWorking,
    Cancelled,
}

impl Bridge {
    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Option<CallToolResponse> {
        let target = tool::find(&self.registry, &request.name)?;
        let answer = match target {
            Target::LoadAgent => self.load_agent(request).await,
            Target::ListAgents => Ok(self.list_agents()),
            Target::UnloadAgent => self.unload_agent(request),
            Target::Agent { name, agent, action: Action::Connect } => Ok(self.connect(&name, &agent).await),
            Target::Agent { name, agent, action } => match self.ready(&name, &agent).await {
                Err(why) => Err(why),
                Ok(client) => {
                    let call = Call { bridge: self, name, agent, client, context };
                    match action {
                        Action::SendMessage => return Some(call.send(request).await),
                        Action::GetTask => call.get(request).await,
                        Action::CancelTask => call.cancel(request).await,
                        Action::ListTasks => call.list(request).await,
                        Action::GetArtifact => call.artifact(request).await,
                        Action::Connect => Err("it is connected".to_owned()),
                    }
                }
            },
        };
        Some(answer.unwrap_or_else(result::error).into())
    }

    /// The client of an agent; one that is down is tried once more.
    async fn ready(&self, name: &str, agent: &Arc<RemoteAgent>) -> Result<Client, String> {
        if let Status::Down { .. } = agent.status() {
            self.registry.reload(name, agent, self.options.load_timeout).await;
        }
        match agent.status() {
            Status::Ready(client) => Ok(client),
            Status::Down { why, .. } => Err(format!("the remote agent {name} cannot be reached: {why}")),
        }
    }

    async fn connect(&self, name: &str, agent: &Arc<RemoteAgent>) -> CallToolResult {
        let name = self.registry.reload(name, agent, self.options.load_timeout).await;
        match agent.status() {
            Status::Ready(_) => self.loaded(&name),
            Status::Down { why, .. } => result::error(format!("the remote agent {name} cannot be reached: {why}")),
        }
    }

    async fn load_agent(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let LoadAgent { url, agent_card_path } = argument::read(request.arguments)?;
        if let Some((name, agent)) = self.registry.by_url(&url) {
            self.ready(&name, &agent).await?;
            return Ok(self.loaded(&name));
        }
        let entry = A2aServer { card_path: agent_card_path, ..A2aServer::new(url) };
        let agent = RemoteAgent::new(entry, Origin::Requested, self.options.allow_private);
        agent.load(self.options.load_timeout).await;
        if let Status::Down { why, .. } = agent.status() {
            return Err(format!("no agent was loaded: {why}"));
        }
        let name = self.registry.add(agent).map_err(|error| error.to_string())?;
        Ok(self.loaded(&name))
    }

    /// Says which tools an agent has.
    fn loaded(&self, name: &str) -> CallToolResult {
        let own = |tool: &String| tool.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
        let tools: Vec<String> =
            tool::all(&self.registry).into_iter().map(|tool| tool.name.into_owned()).filter(own).collect();
        let mut result = CallToolResult::success(vec![ContentBlock::text(format!(
            "The remote agent {name} is loaded. Its tools: {}.",
            tools.join(", ")
        ))]);
        result.structured_content = Some(json!({ "name": name, "tools": tools }));
        result
    }

    fn list_agents(&self) -> CallToolResult {
        let agents: Vec<Value> = self.registry.all().iter().map(|(name, agent)| described(name, agent)).collect();
        let lines: Vec<String> = agents.iter().map(Value::to_string).collect();
        let text =
            if lines.is_empty() { "There are no remote agents. Use load_agent.".to_owned() } else { lines.join("\n") };
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = Some(json!({ "agents": agents }));
        result
    }

    fn unload_agent(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let UnloadAgent { name } = argument::read(request.arguments)?;
        match self.registry.remove(&name) {
            Some(_) => {
                Ok(CallToolResult::success(vec![ContentBlock::text(format!("The remote agent {name} is unloaded."))]))
            }
            None => {
                let known: Vec<String> = self.registry.all().into_iter().map(|(name, _)| name).collect();
                Err(format!("there is no agent {name}; there are: {}", known.join(", ")))
            }
        }
    }
}

fn described(name: &str, agent: &RemoteAgent) -> Value {
    match agent.status() {
        Status::Ready(client) => json!({
            "name": name,
            "url": agent.entry.address(),
            "status": "ready",
            "protocol": client.dialect().version(),
            "description": crate::describe::claim(agent, &client.card().description, 200),
        }),
        Status::Down { why, .. } => {
            json!({ "name": name, "url": agent.entry.address(), "status": "unreachable", "error": why })
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
}

impl Call<'_> {
    async fn send(&self, request: CallToolRequestParams) -> CallToolResponse {
        let mut message = match self.message(request) {
            Ok(Some(message)) => message,
            Ok(None) => return result::error("the question is no longer open, or the user did not answer it").into(),
            Err(why) => return result::error(why).into(),
        };
        let mut reporter = Reporter::new(&self.context);
        for _ in 0..MOST_QUESTIONS {
            let send = match self.with_hops(message) {
                Ok(send) => send,
                Err(why) => return result::error(why).into(),
            };
            let run = self.bridge.runs.start(&self.agent, &self.client, send);
            let waited = self.wait(&run, &mut reporter).await;
            let collected = run.state().collected;
            let end = match waited {
                Waited::Cancelled => return self.give_up(&run).await.into(),
                Waited::StillWorking => return self.result(&collected, Returned::StillWorking).into(),
                Waited::Ended(end) => end,
            };
            let (Some(question), RunEnd::Done) = (&collected.question, &end) else {
                return self.result(&collected, Returned::Ended(&end)).into();
            };
            match self.elicitation() {
                Elicitation::None => return self.result(&collected, Returned::Ended(&end)).into(),
                Elicitation::Result => return self.ask_by_result(&collected, question).into(),
                Elicitation::Request => match self.ask(question, &mut reporter).await {
                    Some(Reply::Answer(answer)) => message = self.answer(*answer, &collected),
                    Some(Reply::Declined) => return self.result(&collected, Returned::Declined).into(),
                    None if self.context.ct.is_cancelled() => return self.give_up(&run).await.into(),
                    None => return self.result(&collected, Returned::Ended(&end)).into(),
                },
            }
        }
        result::error(format!("{} asked more than {MOST_QUESTIONS} questions in one call", self.name)).into()
    }

    /// The message of a call, or the answer that a call brings back. None: nobody answered.
    fn message(&self, request: CallToolRequestParams) -> Result<Option<Message>, String> {
        let Some(handle) = request.request_state else {
            let mut message = argument::read::<SendArguments>(request.arguments)?.into_message()?;
            if message.task_id.is_none() && message.context_id.is_none() {
                message.context_id.clone_from(&self.agent.entry.context_id);
            }
            return Ok(Some(message));
        };
        let Some(waiting) = self.bridge.pending.take(&handle, &self.agent) else { return Ok(None) };
        let answer = request.input_responses.and_then(|mut answers| answers.remove(INPUT)).unwrap_or_default();
        let answer: Option<ElicitResult> = serde_json::from_value(answer).ok();
        Ok(match answer.map(|answer| ask::reply(&waiting.question, &answer)) {
            Some(Reply::Answer(answer)) => {
                Some(Message { task_id: waiting.task_id, context_id: waiting.context_id, ..*answer })
            }
            Some(Reply::Declined) | None => None,
        })
    }

    /// An answer goes to the task that asked.
    fn answer(&self, answer: Message, collected: &Collected) -> Message {
        Message { task_id: collected.task_id.clone(), context_id: collected.context_id.clone(), ..answer }
    }

    fn with_hops(&self, mut message: Message) -> Result<SendMessage, String> {
        let hops = self.bridge.options.hops.now() + 1;
        hops::check(hops).map_err(|error| error.to_string())?;
        message.metadata.insert(hops::KEY.to_owned(), json!(hops));
        Ok(SendMessage { message, ..SendMessage::default() })
    }

    fn result(&self, collected: &Collected, returned: Returned<'_>) -> CallToolResult {
        result::of_task(&self.name, &self.agent, collected, returned)
    }

    /// Waits until a run ends, at most as long as a call should take, and reports what the agent says meanwhile.
    async fn wait(&self, run: &Run, reporter: &mut Reporter) -> Waited {
        let deadline = Instant::now() + self.agent.budget(self.bridge.options.call_budget);
        let mut changes = run.watch();
        loop {
            let (note, is_ended) = run.glance();
            if is_ended {
                return Waited::Ended(run.state().end.unwrap_or(RunEnd::Done));
            }
            let note = note.map_or_else(|| format!("{} is working", self.name), |note| self.agent.clean(&note));
            reporter.note(&note).await;
            tokio::select! {
                () = self.context.ct.cancelled() => return Waited::Cancelled,
                () = sleep_until(deadline) => return Waited::StillWorking,
                () = tokio::time::sleep(SIGN_OF_LIFE) => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// The client gave the call up: so is the task.
    async fn give_up(&self, run: &Run) -> CallToolResult {
        if let Some(task) = run.task_id() {
            match timeout(CANCEL_LIMIT, self.client.cancel(&task)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!(agent = %self.name, %error, "the task cannot be cancelled"),
                Err(_) => tracing::debug!(agent = %self.name, "the task was not cancelled in time"),
            }
        }
        result::error(format!("the call of {} was cancelled", self.name))
    }

    fn elicitation(&self) -> Elicitation {
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

    /// Asks a person. None: that could not be done.
    async fn ask(&self, question: &Question, reporter: &mut Reporter) -> Option<Reply> {
        let form = ask::form(&self.name, &self.agent, question);
        let asked = timeout(PATIENCE, self.context.peer.create_elicitation(form));
        tokio::pin!(asked);
        loop {
            tokio::select! {
                () = self.context.ct.cancelled() => return None,
                answer = &mut asked => return match answer {
                    Ok(Ok(answer)) => Some(ask::reply(question, &answer)),
                    Ok(Err(error)) => {
                        tracing::debug!(agent = %self.name, %error, "the client cannot ask its user");
                        None
                    }
                    Err(_) => Some(Reply::Declined),
                },
                () = tokio::time::sleep(SIGN_OF_LIFE) => reporter.note("waiting for an answer of the user").await,
            }
        }
    }

    fn ask_by_result(&self, collected: &Collected, question: &Question) -> InputRequiredResult {
        let form = ask::form(&self.name, &self.agent, question);
        let handle = self.bridge.pending.put(Waiting {
            agent: self.agent.clone(),
            task_id: collected.task_id.clone(),
            context_id: collected.context_id.clone(),
            question: question.clone(),
        });
        let requests = BTreeMap::from([(INPUT.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
        InputRequiredResult::new(Some(requests), Some(handle))
    }

    async fn get(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let TaskArguments { task_id, wait } = argument::read(request.arguments)?;
        if let (true, Some(run)) = (wait, self.bridge.runs.find(&self.agent, &task_id)) {
            match self.wait(&run, &mut Reporter::new(&self.context)).await {
                Waited::Cancelled => return Err("the call was cancelled; the task goes on".to_owned()),
                Waited::StillWorking => return Ok(self.result(&run.state().collected, Returned::StillWorking)),
                Waited::Ended(RunEnd::Done) => {
                    return Ok(self.result(&run.state().collected, Returned::Ended(&RunEnd::Done)));
                }
                // What the agent says now is better than half a stream.
                Waited::Ended(RunEnd::Failed(_)) => {}
            }
        }
        let task = self.client.get(&task_id, None).await.map_err(|error| self.agent.explain(&error))?;
        let (collected, is_working) = snapshot(task);
        let returned = if is_working { Returned::StillWorking } else { Returned::Ended(&RunEnd::Done) };
        Ok(self.result(&collected, returned))
    }

    async fn cancel(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let TaskArguments { task_id, .. } = argument::read(request.arguments)?;
        let task = self.client.cancel(&task_id).await.map_err(|error| self.agent.explain(&error))?;
        let (collected, _) = snapshot(task);
        Ok(self.result(&collected, Returned::Ended(&RunEnd::Done)))
    }

    async fn list(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let ListArguments { context_id, page_token } = argument::read(request.arguments)?;
        let list =
            ListTasks { context_id, page_token, page_size: Some(20), history_length: Some(0), ..ListTasks::default() };
        let page = self.client.list(list).await.map_err(|error| self.agent.explain(&error))?;
        let tasks = page.tasks.iter().map(|task| {
            json!({
                "taskId": self.agent.clean(&task.id),
                "contextId": self.agent.clean(&task.context_id),
                "state": task.status.state.word(),
                "updated": task.status.timestamp.as_deref().map(|at| self.agent.clean(at)),
            })
        });
        let data =
            json!({ "tasks": tasks.collect::<Vec<_>>(), "nextPageToken": self.agent.clean(&page.next_page_token) });
        let mut result = CallToolResult::success(vec![ContentBlock::text(data.to_string())]);
        result.structured_content = Some(data);
        Ok(result)
    }

    async fn artifact(&self, request: CallToolRequestParams) -> Result<CallToolResult, String> {
        let ArtifactArguments { task_id, artifact_id, offset } = argument::read(request.arguments)?;
        let known = self.bridge.runs.find(&self.agent, &task_id).map(|run| run.state().collected);
        let has_it =
            |collected: &Collected| collected.artifacts.iter().any(|artifact| artifact.artifact_id == artifact_id);
        let collected = match known.filter(has_it) {
            Some(collected) => collected,
            None => {
                let task = self.client.get(&task_id, Some(0)).await.map_err(|error| self.agent.explain(&error))?;
                snapshot(task).0
            }
        };
        match collected.artifacts.iter().find(|artifact| artifact.artifact_id == artifact_id) {
            Some(artifact) => Ok(result::page(&self.name, &self.agent, artifact, offset)),
            None => {
                let ids: Vec<String> =
                    collected.artifacts.iter().map(|known| self.agent.clean(&known.artifact_id)).collect();
                Err(format!("the task {task_id} has no artifact {artifact_id}; it has: {}", ids.join(", ")))
            }
        }
    }
}

/// A task as it is now, and whether it works.
fn snapshot(task: Task) -> (Collected, bool) {
    let state = task.status.state;
    let mut collected = Collected::default();
    collected.apply(Update::Task(task));
    (collected, !state.is_terminal() && !state.is_interrupted())
}
