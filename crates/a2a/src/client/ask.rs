//! What can be asked of an agent, one method each.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::error::ClientError;
use super::follow::{Follower, Opening, Source};
use super::line::{Repeat, Reply};
use super::updates::{Told, Updates};
use super::{Client, place};
use crate::card::Card;
use crate::error::Error;
use crate::model::{Map, Sent, Task, TaskList, Update};
use crate::request::{ListTasks, PushConfig, Request, SendMessage};

impl Client {
    /// Sends a message and waits for the answer: until the work is done or rests, unless the configuration says to
    /// return immediately. A message without an id gets one.
    pub async fn send(&self, send: SendMessage) -> Result<Sent, ClientError> {
        let request = Request::SendMessage(self.named(send)?);
        let result = self.ask(&request, self.timeouts.send, self.sends).await?;
        self.dialect().read_sent(&result).map_err(ClientError::malformed)
    }

    /// Sends a message and follows what becomes of it, until the work is done or rests. An agent that does not stream is
    /// asked without a stream, and what it answers is all that is told.
    ///
    /// Read it to its end: some agents take a connection that is closed early for a wish to stop.
    pub async fn stream(&self, send: SendMessage) -> Result<Updates, ClientError> {
        if !self.card().capabilities.streaming {
            let update = match self.send(send).await? {
                Sent::Task(task) => Update::Task(task),
                Sent::Message(message) => Update::Message(message),
            };
            return Ok(Updates::of(Told { cursor: None, update }));
        }
        let request = Request::StreamMessage(self.named(send)?);
        let source = self.open(&request, None, self.sends).await?;
        Ok(Updates::follow(Follower::new(self.clone(), source, Opening::Message)))
    }

    /// Follows a task: from its state now on, or from the event after a cursor, where the agent can do that.
    pub async fn resubscribe(&self, task: &str, after: Option<&str>) -> Result<Updates, ClientError> {
        let source = self.subscribe(task, after, Repeat::Safe).await?;
        let opening = Opening::Subscription { task: task.to_owned(), after: after.map(str::to_owned) };
        Ok(Updates::follow(Follower::new(self.clone(), source, opening)))
    }

    /// A task as it is now, with at most so many messages of its history.
    pub async fn get(&self, task: &str, history_length: Option<u32>) -> Result<Task, ClientError> {
        let request = Request::GetTask { id: task.to_owned(), history_length };
        let result = self.ask(&request, self.timeouts.call, Repeat::Safe).await?;
        self.dialect().read_task(&result).map_err(ClientError::malformed)
    }

    /// A page of tasks. JSON-RPC of 0.3 has no way to ask for it.
    pub async fn list(&self, list: ListTasks) -> Result<TaskList, ClientError> {
        let result = self.ask(&Request::ListTasks(list), self.timeouts.call, Repeat::Safe).await?;
        self.dialect().read_task_list(&result).map_err(ClientError::malformed)
    }

    /// Stops a task, and gives it back as it then is.
    pub async fn cancel(&self, task: &str) -> Result<Task, ClientError> {
        let request = Request::CancelTask { id: task.to_owned(), metadata: Map::new() };
        let result = self.ask(&request, self.timeouts.call, Repeat::Never).await?;
        self.dialect().read_task(&result).map_err(ClientError::malformed)
    }

    /// Has the agent call back about a task. The config comes back as the agent keeps it.
    pub async fn create_push_config(&self, task: &str, config: PushConfig) -> Result<PushConfig, ClientError> {
        let request = Request::CreatePushConfig { task_id: task.to_owned(), config };
        let result = self.ask(&request, self.timeouts.call, Repeat::Never).await?;
        self.push_config(&result)
    }

    pub async fn get_push_config(&self, task: &str, config: &str) -> Result<PushConfig, ClientError> {
        let request = Request::GetPushConfig { task_id: task.to_owned(), config_id: Some(config.to_owned()) };
        let result = self.ask(&request, self.timeouts.call, Repeat::Safe).await?;
        self.push_config(&result)
    }

    pub async fn list_push_configs(&self, task: &str) -> Result<Vec<PushConfig>, ClientError> {
        let request = Request::ListPushConfigs { task_id: task.to_owned() };
        let result = self.ask(&request, self.timeouts.call, Repeat::Safe).await?;
        let configs = self.dialect().read_push_configs(&result).map_err(ClientError::malformed)?;
        Ok(configs.into_iter().map(|(_, config)| config).collect())
    }

    pub async fn delete_push_config(&self, task: &str, config: &str) -> Result<(), ClientError> {
        let request = Request::DeletePushConfig { task_id: task.to_owned(), config_id: config.to_owned() };
        self.ask(&request, self.timeouts.call, Repeat::Never).await.map(drop)
    }

    /// The card that is shown to those who have signed in.
    pub async fn extended_card(&self) -> Result<Card, ClientError> {
        let result = self.ask(&Request::GetExtendedCard, self.timeouts.call, Repeat::Safe).await?;
        Card::read(&result).map_err(ClientError::malformed)
    }

    fn push_config(&self, result: &Value) -> Result<PushConfig, ClientError> {
        let read = self.dialect().read_push_config(result);
        read.map(|(_, config)| config).map_err(ClientError::malformed)
    }

    /// A message that has an id.
    fn named(&self, mut send: SendMessage) -> Result<SendMessage, ClientError> {
        if send.message.message_id.is_empty() {
            if self.sends == Repeat::Safe {
                return Err(ClientError::NoMessageId);
            }
            send.message.message_id = uuid::Uuid::new_v4().to_string();
        }
        Ok(send)
    }

    /// Asks for something that is answered as a whole.
    pub(super) async fn ask(&self, request: &Request, limit: Duration, repeat: Repeat) -> Result<Value, ClientError> {
        let (way, line) = (&self.agent.way, &self.agent.line);
        let call = way.call(request, None)?;
        match line.exchange(&call, limit, repeat).await? {
            Reply::Whole(answer) => way.result(line, &call, request, &answer),
            Reply::Stream(_) => {
                let why = format!("{} answered with a stream of events", place::shown(&call.url));
                Err(ClientError::Malformed(why))
            }
        }
    }

    pub(super) async fn subscribe(
        &self,
        task: &str,
        after: Option<&str>,
        repeat: Repeat,
    ) -> Result<Source, ClientError> {
        self.open(&Request::Subscribe { id: task.to_owned() }, after, repeat).await
    }

    /// Asks for something that is answered by a stream, or refused by an answer.
    async fn open(&self, request: &Request, after: Option<&str>, repeat: Repeat) -> Result<Source, ClientError> {
        let (way, line) = (&self.agent.way, &self.agent.line);
        let mut call = way.call(request, after)?;
        let mut reply = line.exchange(&call, self.timeouts.call, repeat).await?;
        if let (Reply::Whole(answer), Request::Subscribe { .. }) = (&reply, request)
            && answer.status == 405
        {
            // The protocol does not agree with itself which it is.
            call.method = if call.method == Method::GET { Method::POST } else { Method::GET };
            reply = line.exchange(&call, self.timeouts.call, repeat).await?;
        }
        match reply {
            Reply::Stream(response) => Ok(Source::live(call, request.clone(), response, line.largest)),
            Reply::Whole(answer) => {
                let result = way.result(line, &call, request, &answer)?;
                if !answer.content_type.contains("json") {
                    let why = format!("{} answered {} instead of a stream", answer.url, answer.content_type);
                    return Err(ClientError::Malformed(why));
                }
                let update = self.dialect().read_update(&result).map_err(ClientError::malformed)?;
                Ok(Source::of(update))
            }
        }
    }

    /// What an event of a stream tells.
    pub(super) fn read_update(&self, result: &Value) -> Result<Update, ClientError> {
        self.dialect().read_update(result).map_err(|error: Error| ClientError::malformed(error))
    }
}
