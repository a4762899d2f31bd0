//! Requests and responses in the binding of one of an agent's interfaces. Pure.
//!
//! JSON-RPC has one address for everything; with HTTP+JSON each request has its own ([`rest`]). Both make the `result` that
//! the dialect reads of a response.

mod rest;

pub(super) use rest::below;

use std::sync::atomic::{AtomicU64, Ordering};

use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::error::ClientError;
use super::http::{Answer, Call, Credentials, HttpClient};
use super::sse::Event;
use crate::card::{Binding, Interface};
use crate::dialect::Dialect;
use crate::error::ErrorKind;
use crate::request::Request;

const VERSION: HeaderName = HeaderName::from_static("a2a-version");
/// The header of 0.3 and that of 1.0. A server ignores the other one.
const EXTENSIONS: [HeaderName; 2] =
    [HeaderName::from_static("x-a2a-extensions"), HeaderName::from_static("a2a-extensions")];
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const STREAM: HeaderValue = HeaderValue::from_static("text/event-stream, application/json;q=0.9");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const A2A_JSON: HeaderValue = HeaderValue::from_static("application/a2a+json, application/json");

#[derive(Debug)]
pub(super) struct AgentBinding {
    pub(super) url: Url,
    pub(super) dialect: Dialect,
    is_rest: bool,
    tenant: Option<String>,
    /// Sent with every call.
    headers: HeaderMap,
    next: AtomicU64,
}

impl AgentBinding {
    pub(super) fn new(
        url: Url,
        dialect: Dialect,
        interface: &Interface,
        extensions: &[String],
    ) -> Result<Self, ClientError> {
        let mut headers = HeaderMap::new();
        // Without the header, the version is 0.3; some servers of 0.3 refuse the header.
        if dialect == Dialect::V1_0 {
            headers.insert(VERSION, HeaderValue::from_static("1.0"));
        }
        if !extensions.is_empty() {
            let list = extensions.join(", ");
            let value = HeaderValue::from_str(&list).map_err(|_| ClientError::Header { name: list })?;
            for name in EXTENSIONS {
                headers.insert(name, value.clone());
            }
        }
        let is_rest = interface.binding == Binding::HttpJson;
        Ok(Self { url, dialect, is_rest, tenant: interface.tenant.clone(), headers, next: AtomicU64::new(1) })
    }

    /// A request as a call. `after` is the cursor of the last event the caller has.
    pub(super) fn call(&self, request: &Request, after: Option<&str>) -> Result<Call, ClientError> {
        let mut call = if self.is_rest { self.rest_call(request)? } else { self.rpc_call(request)? };
        let accept = match request {
            Request::StreamMessage(_) | Request::Subscribe { .. } => STREAM,
            _ if self.is_rest && self.dialect == Dialect::V1_0 => A2A_JSON,
            _ => JSON,
        };
        call.headers.insert(ACCEPT, accept);
        // A cursor that no header can contain is ignored: the stream begins at the current state.
        let after = after.and_then(|after| HeaderValue::from_str(after).ok());
        call.headers.extend(after.map(|after| (LAST_EVENT_ID, after)));
        Ok(call)
    }

    fn rpc_call(&self, request: &Request) -> Result<Call, ClientError> {
        let not_spoken = || ClientError::NotSpoken { dialect: self.dialect, binding: "JSONRPC".to_owned() };
        let (method, mut params) = self.dialect.write_request(request).ok_or_else(not_spoken)?;
        if let (Dialect::V1_0, Some(tenant)) = (self.dialect, &self.tenant) {
            params["tenant"] = json!(tenant);
        }
        let mut call = self.plain(Method::POST, self.url.clone());
        let body = json!({ "jsonrpc": "2.0", "id": call.id, "method": method, "params": params });
        call.body = Some(body.to_string());
        Ok(call)
    }

    pub(super) fn plain(&self, method: Method, url: Url) -> Call {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        Call { method, url, headers: self.headers.clone(), body: None, credentials: Credentials::Given, id }
    }

    /// The `result` of a response.
    pub(super) fn result(
        &self,
        http: &HttpClient,
        call: &Call,
        request: &Request,
        answer: &Answer,
    ) -> Result<Value, ClientError> {
        let is_ok = (200..300).contains(&answer.status);
        let value = match crate::json::parse(&answer.body) {
            Ok(value) => value,
            Err(_) if self.is_rest && is_ok && answer.body.trim_ascii().is_empty() => return Ok(Value::Null),
            Err(_) if !is_ok => return Err(http.http_error(answer)),
            Err(error) => {
                let kind = if answer.content_type.is_empty() { "something" } else { &answer.content_type };
                return Err(ClientError::Malformed(format!("{} answered {kind} instead of JSON: {error}", answer.url)));
            }
        };
        match (is_ok, is_error(&value)) {
            (true, _) => self.unwrap(http, call, request, value),
            (false, true) => match refusal(http, value) {
                // A code that is an HTTP status is not an error of the protocol.
                ClientError::Agent(error) if matches!(error.kind, ErrorKind::Other(400..600)) => {
                    Err(http.http_error(answer))
                }
                refusal => Err(refusal),
            },
            (false, false) => Err(http.http_error(answer)),
        }
    }

    pub(super) fn event_result(
        &self,
        http: &HttpClient,
        call: &Call,
        request: &Request,
        event: &Event,
    ) -> Result<Value, ClientError> {
        let parsed = crate::json::parse(event.data.as_bytes());
        let value = parsed.map_err(|error| ClientError::Malformed(format!("an event is not JSON: {error}")))?;
        if event.name == "error" {
            return Err(refusal(http, value));
        }
        self.unwrap(http, call, request, value)
    }

    fn unwrap(
        &self,
        http: &HttpClient,
        call: &Call,
        request: &Request,
        mut value: Value,
    ) -> Result<Value, ClientError> {
        if value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(refusal(http, value));
        }
        if self.is_rest {
            return Ok(match (self.dialect, request) {
                (Dialect::V0_3, Request::ListPushConfigs { .. }) => crate::v0_3::rest::client::push_configs(value),
                (Dialect::V0_3, Request::GetExtendedCard) | (Dialect::V1_0, _) => value,
                (Dialect::V0_3, _) => crate::v0_3::rest::client::result(value),
            });
        }
        // Some servers echo a number as a string.
        let is_ours = value.get("id").is_none_or(|id| match id {
            Value::Null => true,
            Value::String(text) => *text == call.id.to_string(),
            other => *other == call.id,
        });
        if !is_ours {
            let why = format!("it answers request {} instead of {}", value["id"], call.id);
            return Err(ClientError::Malformed(why));
        }
        match value.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(ClientError::Malformed("it holds neither result nor error".to_owned())),
        }
    }
}

/// The agent's refusal, in its own words.
fn refusal(http: &HttpClient, value: Value) -> ClientError {
    let shown = serde_json::from_str(&http.hide(&value.to_string()));
    Dialect::read_error(shown.unwrap_or(value)).into()
}

/// Whether the value has one of the error shapes of the protocol. If not, it may come from a proxy.
fn is_error(value: &Value) -> bool {
    let has = |value: &Value| value.get("message").is_some_and(Value::is_string) && value.get("code").is_some();
    has(value) || value.get("error").is_some_and(has)
}
