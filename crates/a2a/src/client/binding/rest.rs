//! HTTP+JSON: each request has its own address, in 0.3 below `v1`.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::super::error::ClientError;
use super::super::http::Call;
use super::AgentBinding;
use crate::dialect::Dialect;
use crate::request::Request;
use crate::{params, v0_3};

impl AgentBinding {
    pub(super) fn rest_call(&self, request: &Request) -> Result<Call, ClientError> {
        let is_old = self.dialect == Dialect::V0_3;
        let (method, path) = match request {
            Request::SendMessage(_) => (Method::POST, vec!["message:send".to_owned()]),
            Request::StreamMessage(_) => (Method::POST, vec!["message:stream".to_owned()]),
            Request::GetTask { id, .. } => (Method::GET, task(id, &[])?),
            Request::ListTasks(_) => (Method::GET, vec!["tasks".to_owned()]),
            Request::CancelTask { id, .. } => (Method::POST, verb(id, "cancel")?),
            // The text of the specification says POST, its gRPC definition says GET; servers accept both.
            Request::Subscribe { id } if is_old => (Method::POST, verb(id, "subscribe")?),
            Request::Subscribe { id } => (Method::GET, verb(id, "subscribe")?),
            Request::CreatePushConfig { task_id, .. } => (Method::POST, task(task_id, &[PUSH])?),
            Request::GetPushConfig { task_id, config_id } => {
                (Method::GET, task(task_id, &[PUSH, config_id.as_deref().unwrap_or_default()])?)
            }
            Request::ListPushConfigs { task_id } => (Method::GET, task(task_id, &[PUSH])?),
            Request::DeletePushConfig { task_id, config_id } => (Method::DELETE, task(task_id, &[PUSH, config_id])?),
            Request::GetExtendedCard if is_old => (Method::GET, vec!["card".to_owned()]),
            Request::GetExtendedCard => (Method::GET, vec!["extendedAgentCard".to_owned()]),
            Request::GetCommands { .. } | Request::ExecuteCommand(_) | Request::ConfirmToolCall { .. } => {
                return Err(ClientError::NotSpoken { dialect: self.dialect, binding: "HTTP+JSON".to_owned() });
            }
        };
        let prefix = if is_old { Some("v1") } else { self.tenant.as_deref() };
        let path: Vec<&str> = prefix.into_iter().chain(path.iter().map(String::as_str)).collect();
        let mut call = self.plain(method, below(&self.url, &path));
        match call.method {
            Method::GET | Method::DELETE => query(&mut call.url, request),
            _ => call.body = self.rest_body(request).map(|body| body.to_string()),
        }
        Ok(call)
    }

    fn rest_body(&self, request: &Request) -> Option<Value> {
        match (self.dialect, request) {
            (Dialect::V0_3, Request::SendMessage(send) | Request::StreamMessage(send)) => Some(v0_3::rest::send(send)),
            (Dialect::V0_3, Request::CreatePushConfig { task_id, config }) => {
                Some(v0_3::rest::create_push_config(task_id, config))
            }
            (_, Request::CancelTask { metadata, .. }) if metadata.is_empty() => Some(json!({})),
            (_, Request::CancelTask { metadata, .. }) => Some(json!({ "metadata": metadata })),
            (Dialect::V1_0, Request::SendMessage(_) | Request::StreamMessage(_) | Request::CreatePushConfig { .. }) => {
                params::write(Dialect::V1_0, request).map(|(_, params)| params)
            }
            _ => None,
        }
    }
}

const PUSH: &str = "pushNotificationConfigs";

fn task(id: &str, more: &[&str]) -> Result<Vec<String>, ClientError> {
    let path = ["tasks", id].into_iter().chain(more.iter().copied());
    path.map(|part| sound(part).map(str::to_owned)).collect()
}

fn verb(id: &str, verb: &str) -> Result<Vec<String>, ClientError> {
    Ok(vec!["tasks".to_owned(), format!("{}:{verb}", sound(id)?)])
}

/// Rejects path segments that would change the address: `.`, `..` and the like.
fn sound(part: &str) -> Result<&str, ClientError> {
    if matches!(part, "" | "." | "..") { Err(ClientError::Id(part.to_owned())) } else { Ok(part) }
}

/// An address below another.
pub(crate) fn below(url: &Url, path: &[&str]) -> Url {
    let mut url = url.clone();
    // Only addresses like `mailto:` have no path, and they were refused.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    url
}

/// The parameters of a request that has no body, as a query.
fn query(url: &mut Url, request: &Request) {
    let params = match request {
        Request::GetTask { history_length, .. } => json!({ "historyLength": history_length }),
        Request::ListTasks(_) => params::write(Dialect::V1_0, request).map(|(_, params)| params).unwrap_or_default(),
        _ => return,
    };
    let said: Vec<_> = params.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()).collect();
    if !said.is_empty() {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        url.query_pairs_mut().extend_pairs(said.iter().map(|(key, value)| (key, text(value))));
    }
}
