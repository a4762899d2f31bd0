//! Turns provider errors into messages for people, and into a kind that decides about retries. Keys never appear.

use std::error::Error as StdError;
use std::time::{Duration, SystemTime};

use genai::webc::StreamTimeout;
use multitap_outbound::retry_after;
use serde_json::Value;

use crate::model::choice::Target;
use crate::model::vendor::{Api, Vendor};
use crate::model::{ModelError, ModelErrorKind, catalog};

/// How much of a provider's message is repeated.
const REPEATED: usize = 400;

#[derive(Debug, Default)]
struct ProviderReport {
    message: Option<String>,
    /// The provider's codes for the kind of error.
    words: Vec<String>,
    status: Option<u16>,
    retry_after: Option<Duration>,
}

/// Why there is no reply, or only part of one. `aside` is the provider's own report, if the library did not pass it
/// on.
pub(super) fn of(target: &Target, error: &genai::Error, aside: Option<Value>) -> ModelError {
    if let Some(aside) = aside {
        return said(target, &account(&aside), None);
    }
    match error {
        genai::Error::HttpError { status, body, headers, .. } => {
            let body = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.clone()));
            let mut account = account(&body);
            account.retry_after = retry_after(headers, SystemTime::now()).or(account.retry_after);
            said(target, &account, Some(status.as_u16()))
        }
        genai::Error::ChatResponse { body, .. } => said(target, &account(body), None),
        genai::Error::WebStream { error, .. } => match error.downcast_ref::<genai::Error>() {
            Some(inner) => of(target, inner, None),
            None => connection(target, error.as_ref()),
        },
        genai::Error::StreamParse { serde_error, .. } => {
            let why = format!("{} sent an invalid part of a reply: {serde_error}", who(target));
            make(target, ModelErrorKind::Refused, why)
        }
        other => make(target, ModelErrorKind::Refused, format!("{} was not asked: {other}", who(target))),
    }
}

/// The reply ended before it was complete.
pub(super) fn broken_off(target: &Target) -> ModelError {
    let why = format!("the connection to {} was lost before the reply was whole", who(target));
    make(target, ModelErrorKind::Connection, why)
}

/// No connection can be attempted.
pub(super) fn unready(target: &Target, why: &str) -> ModelError {
    make(target, ModelErrorKind::Refused, format!("cannot connect to {}: {why}", who(target)))
}

fn connection(target: &Target, error: &(dyn StdError + 'static)) -> ModelError {
    let who = who(target);
    if error.is::<StreamTimeout>() {
        let why = format!("{who} said nothing for too long: {error}");
        return make(target, ModelErrorKind::Connection, why);
    }
    let mut cause: &dyn StdError = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let request = error.downcast_ref::<reqwest::Error>();
    let (kind, why) = match request {
        Some(request) if request.is_builder() => (ModelErrorKind::Refused, format!("cannot ask {who}: {cause}")),
        Some(request) if request.is_connect() => {
            let mut why = format!("cannot reach {who}: {cause}");
            if !target.is_at_home() {
                why += &format!(" (is the server running, and is {} right?)", target.vendor.url_var());
            }
            (ModelErrorKind::Connection, why)
        }
        _ => (ModelErrorKind::Connection, format!("the connection to {who} was lost: {cause}")),
    };
    make(target, kind, why)
}

fn said(target: &Target, account: &ProviderReport, status: Option<u16>) -> ModelError {
    let status = status.or(account.status);
    let kind = kind(account, status);
    let (who, model) = (who(target), &target.model);
    let mut why = match kind {
        ModelErrorKind::Key => match (&target.key, status) {
            (None, _) => format!("{who} requires a key: set {}", target.vendor.key_vars()),
            (Some(_), Some(403)) => format!("{who} does not allow this key to use {model}"),
            (Some(_), _) => format!("{who} does not accept the key of {}", target.vendor.key_vars()),
        },
        ModelErrorKind::UnknownModel => format!("{who} has no model '{model}'"),
        ModelErrorKind::RateLimited => format!("{who} limits the rate of requests"),
        ModelErrorKind::Overloaded => format!("{who} reports an internal error"),
        ModelErrorKind::TooLong => format!("the conversation is too long for {model}"),
        ModelErrorKind::Refused | ModelErrorKind::Connection => format!("{who} refused to answer as {model}"),
    };
    if let Some(status) = status {
        why += &format!(" ({status})");
    }
    if let Some(message) = &account.message {
        why += &format!(": {}", message.trim_end_matches('.'));
    }
    if kind == ModelErrorKind::UnknownModel {
        why += &hint(target);
    }
    ModelError { status, retry_after: account.retry_after, ..make(target, kind, why) }
}

/// Advice for an unknown model.
fn hint(target: &Target) -> String {
    if target.is_at_home() {
        return format!(". Some that it has: {}", catalog::listed(target.vendor).join(", "));
    }
    let other = match target.api {
        Api::Chat => "responses",
        Api::Responses => "chat",
        Api::Messages | Api::GenerateContent => return format!(". Is {} right?", target.vendor.url_var()),
    };
    format!(". Is OPENAI_BASE_URL right? If the server speaks OpenAI's other API, set OPENAI_API={other}")
}

fn kind(account: &ProviderReport, status: Option<u16>) -> ModelErrorKind {
    let message = account.message.as_deref().unwrap_or_default().to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| account.words.iter().any(|own| own == word));
    let says = |texts: &[&str]| texts.iter().any(|text| message.contains(text));
    if has(&["context_length_exceeded", "exceed_context_size_error", "request_too_large"]) || says(&TOO_LONG) {
        return ModelErrorKind::TooLong;
    }
    // A retry would not help: the account has no credit.
    if has(&["insufficient_quota", "billing_error"]) || says(&["credit balance is too low"]) {
        return ModelErrorKind::Refused;
    }
    // Google answers a wrong key with 400.
    if has(&["API_KEY_INVALID", "authentication_error", "permission_error", "invalid_api_key"])
        || says(&["api key not valid"])
    {
        return ModelErrorKind::Key;
    }
    match status {
        Some(401 | 403) => ModelErrorKind::Key,
        Some(404 | 405) => ModelErrorKind::UnknownModel,
        Some(413) => ModelErrorKind::TooLong,
        Some(429) => ModelErrorKind::RateLimited,
        Some(408 | 500..) => ModelErrorKind::Overloaded,
        _ if has(&["rate_limit_error", "rate_limit_exceeded", "RESOURCE_EXHAUSTED"]) => ModelErrorKind::RateLimited,
        _ if has(&["overloaded_error", "api_error", "timeout_error", "server_error", "server_is_overloaded"]) => {
            ModelErrorKind::Overloaded
        }
        _ if has(&["not_found_error", "model_not_found"]) => ModelErrorKind::UnknownModel,
        _ => ModelErrorKind::Refused,
    }
}

/// Phrases of providers and local servers in the error for a conversation that is too long.
const TOO_LONG: [&str; 7] = [
    "prompt is too long",
    "exceed context limit",
    "maximum context length",
    "context window",
    "context length",
    "context size",
    "exceeds the maximum number of tokens",
];

/// An error in which the key does not appear.
fn make(target: &Target, kind: ModelErrorKind, why: String) -> ModelError {
    let message = match &target.key {
        Some(key) => why.replace(key.expose(), "<key>"),
        None => why,
    };
    ModelError::new(kind, message)
}

fn who(target: &Target) -> String {
    if target.is_at_home() {
        return target.vendor.name().to_owned();
    }
    match target.vendor {
        // Many servers use its API.
        Vendor::OpenAi => format!("the server at {}", target.host()),
        Vendor::Anthropic | Vendor::Gemini => format!("{} at {}", target.vendor.name(), target.host()),
    }
}

/// Reads the many shapes of error bodies.
fn account(body: &Value) -> ProviderReport {
    // Gemini may send a list of one.
    let body = body.get(0).unwrap_or(body);
    let error = body.get("error").filter(|error| !error.is_null()).unwrap_or(body);
    let plain = text(Some(error)).filter(|text| !text.starts_with('<'));
    let message = plain.or_else(|| text(error.get("message"))).or_else(|| text(body.get("detail")));
    let words = ["type", "code", "status"].into_iter().filter_map(|field| text(error.get(field)).map(str::to_owned));
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let reasons = details.clone().filter_map(|detail| text(detail.get("reason")).map(str::to_owned));
    let delay = details.filter_map(|detail| text(detail.get("retryDelay"))?.strip_suffix('s')?.parse().ok()).next();
    ProviderReport {
        message: message.map(|message| message.chars().take(REPEATED).collect()),
        words: words.chain(reasons).collect(),
        status: error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()),
        retry_after: delay.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
    }
}

fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
