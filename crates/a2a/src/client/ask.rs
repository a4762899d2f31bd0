//! One method for each request to an agent.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::Client;
use super::error::ClientError;
use super::follow::{Follower, Opening, Source};
use super::http::{Repeat, Reply};
use super::updates::{StreamUpdate, Updates};
use crate::card::Card;
use crate::error::Error;
use crate::model::{Map, Sent, Task, TaskList, Update};
use crate::request::{ListTasks, PushConfig, Request, SendMessage};

impl Client {
    /// Sends a message and waits for the answer: until the task is over or needs input, unless the configuration says
    /// to return immediately. A message without an id gets one.
    pub async fn send(&self, send: SendMessage) -> Result<Sent, ClientError> {
        let request = Request::SendMessage(self.named(send)?);
        let result = self.ask(&request, self.timeouts.send, self.sends).await?;
        self.dialect().read_sent(&result).map_err(ClientError::malformed)
    }

    /// Sends a message and follows the task until it is over or needs input. An agent that does not stream is asked
    /// without a stream, and its answer is the only update.
    ///
    /// Read it to its end: some agents cancel a task whose connection is closed early.
    pub async fn stream(&self, send: SendMessage) -> Result<Updates, ClientError> {
        if !self.card().capabilities.streaming {
            let update = match self.send(send).await? {
                Sent::Task(task) => Update::Task(task),
                Sent::Message(message) => Update::Message(message),
            };
            return Ok(Updates::of(StreamUpdate { cursor: None, update }));
        }
        let request = Request::StreamMessage(self.named(send)?);
        let source = self.open(&request, None, self.sends).await?;
        Ok(Updates::follow(Follower::new(self.clone(), source, Opening::Message)))
    }

    /// Follows a task: from its current state on, or from the event after a cursor, if the agent supports that.
    pub async fn resubscribe(&self, task: &str, after: Option<&str>) -> Result<Updates, ClientError> {
        let source = self.subscribe(task, after, Repeat::Safe).await?;
        let opening = Opening::Subscription { task: task.to_owned(), after: after.map(str::to_owned) };
        Ok(Updates::follow(Follower::new(self.clone(), source, opening)))
    }

    /// A task's current state, with at most this many messages of its history.
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

    /// Cancels a task, and returns its state afterwards.
    pub async fn cancel(&self, task: &str) -> Result<Task, ClientError> {
        let request = Request::CancelTask { id: task.to_owned(), metadata: Map::new() };
        let result = self.ask(&request, self.timeouts.call, Repeat::Never).await?;
        self.dialect().read_task(&result).map_err(ClientError::malformed)
    }

    /// Subscribes to push notifications about a task. Returns the config as the agent stored it.
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

    /// The card that the agent shows to authenticated clients.
    pub async fn extended_card(&self) -> Result<Card, ClientError> {
        let result = self.ask(&Request::GetExtendedCard, self.timeouts.call, Repeat::Safe).await?;
        Card::read(&result).map_err(ClientError::malformed)
    }

    fn push_config(&self, result: &Value) -> Result<PushConfig, ClientError> {
        let read = self.dialect().read_push_config(result);
        read.map(|(_, config)| config).map_err(ClientError::malformed)
    }

    /// The message, with an id.
    fn named(&self, mut send: SendMessage) -> Result<SendMessage, ClientError> {
        if send.message.message_id.is_empty() {
            if self.sends == Repeat::Safe {
                return Err(ClientError::NoMessageId);
            }
            send.message.message_id = uuid::Uuid::new_v4().to_string();
        }
        Ok(send)
    }

    /// Makes a request that is answered by one response.
    pub(super) async fn ask(&self, request: &Request, limit: Duration, repeat: Repeat) -> Result<Value, ClientError> {
        let (binding, http) = (&self.agent.binding, &self.agent.http);
        let call = binding.call(request, None)?;
        let answer = http.whole(&call, limit, repeat).await?;
        binding.result(http, &call, request, &answer)
    }

    pub(super) async fn subscribe(
        &self,
        task: &str,
        after: Option<&str>,
        repeat: Repeat,
    ) -> Result<Source, ClientError> {
        self.open(&Request::Subscribe { id: task.to_owned() }, after, repeat).await
    }

    /// Makes a request that is answered by a stream, or refused by one response.
    async fn open(&self, request: &Request, after: Option<&str>, repeat: Repeat) -> Result<Source, ClientError> {
        let (binding, http) = (&self.agent.binding, &self.agent.http);
        let mut call = binding.call(request, after)?;
        let mut reply = http.exchange(&call, self.timeouts.call, repeat).await?;
        if let (Reply::Whole(answer), Request::Subscribe { .. }) = (&reply, request)
            && answer.status == 405
        {
            // Versions of the protocol disagree on the method.
            call.method = if call.method == Method::GET { Method::POST } else { Method::GET };
            reply = http.exchange(&call, self.timeouts.call, repeat).await?;
        }
        match reply {
            Reply::Stream(response) => Ok(Source::live(call, request.clone(), response, http.largest)),
            Reply::Whole(answer) => {
                let result = binding.result(http, &call, request, &answer)?;
                if !answer.content_type.contains("json") {
                    let why = format!("{} answered {} instead of a stream", answer.url, answer.content_type);
                    return Err(ClientError::Malformed(why));
                }
                let update = self.dialect().read_update(&result).map_err(ClientError::malformed)?;
                Ok(Source::of(update))
            }
        }
    }

    /// The update in an event of a stream.
    pub(super) fn read_update(&self, result: &Value) -> Result<Update, ClientError> {
        self.dialect().read_update(result).map_err(|error: Error| ClientError::malformed(error))
    }
}
