//! HTTP+JSON: each request has its own address, in 0.3 below `v1`.

use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::super::error::ClientError;
use super::super::http::Call;
use super::AgentBinding;
use crate::dialect::Dialect;
use crate::request::Request;
use crate::rest::RestCall;
use crate::{params, v0_3};

impl AgentBinding {
    pub(super) fn rest_call(&self, request: &Request) -> Result<Call, ClientError> {
        let not_spoken = || ClientError::NotSpoken { dialect: self.dialect, binding: "HTTP+JSON".to_owned() };
        let (verb, path, ids) = RestCall::of_request(self.dialect, request).ok_or_else(not_spoken)?;
        ids.into_iter().flatten().try_for_each(check_id)?;
        let prefix = if self.dialect == Dialect::V0_3 { Some("v1") } else { self.tenant.as_deref() };
        let path: Vec<&str> = prefix.into_iter().chain(path.iter().map(String::as_str)).collect();
        let verb = Method::from_bytes(verb.as_bytes()).map_err(|_| not_spoken())?;
        let mut call = self.plain(verb, below(&self.url, &path));
        match call.method {
            Method::GET | Method::DELETE => query(&mut call.url, request),
            _ => call.body = self.rest_body(request).map(|body| body.to_string()),
        }
        Ok(call)
    }

    fn rest_body(&self, request: &Request) -> Option<Value> {
        match (self.dialect, request) {
            (Dialect::V0_3, Request::SendMessage(send) | Request::StreamMessage(send)) => {
                Some(v0_3::rest::client::send(send))
            }
            (Dialect::V0_3, Request::CreatePushConfig { task_id, config }) => {
                Some(v0_3::rest::client::create_push_config(task_id, config))
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

/// Rejects ids that would change the address: `.`, `..` and the like.
fn check_id(id: &str) -> Result<(), ClientError> {
    if matches!(id, "" | "." | "..") { Err(ClientError::Id(id.to_owned())) } else { Ok(()) }
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
