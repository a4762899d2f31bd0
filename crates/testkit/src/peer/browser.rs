//! What a page in a browser can try against a server, and what came of it.
//!
//! A page cannot tell a refusal from an answer that its browser keeps from it, so each outcome has both: what the
//! page saw, and what went over the wire.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Peer;

/// Something that a page tries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    name: String,
    kind: &'static str,
    url: String,
    init: Value,
}

impl Attempt {
    fn new(name: String, kind: &'static str, url: &str, init: Value) -> Self {
        Self { name, kind, url: url.to_owned(), init }
    }

    /// Reads it.
    #[must_use]
    pub fn get(url: &str) -> Self {
        Self::new(format!("GET {url}"), "fetch", url, json!({}))
    }

    /// Reads it with a header of A2A, for which the browser asks the server first.
    #[must_use]
    pub fn get_with_header(url: &str) -> Self {
        let init = json!({"headers": {"A2A-Version": "1.0"}});
        Self::new(format!("GET {url} with a header"), "fetch", url, init)
    }

    /// Posts JSON, for which the browser asks the server first.
    #[must_use]
    pub fn post(url: &str, body: &Value) -> Self {
        let headers = json!({"Content-Type": "application/json", "A2A-Version": "1.0"});
        let init = json!({"method": "POST", "headers": headers, "body": body.to_string()});
        Self::new(format!("POST {url}"), "fetch", url, init)
    }

    /// Posts JSON as plain text, which any page may send unasked, to read the answer.
    #[must_use]
    pub fn post_as_text(url: &str, body: &Value) -> Self {
        let init = json!({"method": "POST", "headers": {"Content-Type": "text/plain"}, "body": body.to_string()});
        Self::new(format!("POST {url} as text"), "fetch", url, init)
    }

    /// Posts JSON as plain text without a wish to read the answer.
    #[must_use]
    pub fn post_blindly(url: &str, body: &Value) -> Self {
        let mut attempt = Self::post_as_text(url, body);
        attempt.init["mode"] = "no-cors".into();
        attempt.name = format!("POST {url} blindly");
        attempt
    }

    /// Posts JSON by a form, and leaves the page for the answer.
    #[must_use]
    pub fn form(url: &str, body: &Value) -> Self {
        // A form sends NAME=VALUE. The equals sign goes into a field that nobody reads.
        let text = body.to_string();
        let open = text.strip_suffix('}').unwrap_or(&text);
        let init = json!({"name": format!("{open},\"ignored\":\""), "value": "\"}"});
        Self::new(format!("form to {url}"), "form", url, init)
    }

    /// Listens to events.
    #[must_use]
    pub fn event_source(url: &str) -> Self {
        Self::new(format!("EventSource {url}"), "eventSource", url, json!({}))
    }

    /// Opens a WebSocket at an `http` address.
    #[must_use]
    pub fn web_socket(url: &str) -> Self {
        let url = url.replacen("http", "ws", 1);
        Self::new(format!("WebSocket {url}"), "webSocket", &url, json!({}))
    }
}

/// A page that was opened, and what it tried.
#[derive(Debug, Clone, Deserialize)]
pub struct Visit {
    /// The HTTP status of the page itself.
    pub status: Option<u16>,
    pub attempts: Vec<Outcome>,
}

/// What came of an attempt.
#[derive(Debug, Clone, Deserialize)]
pub struct Outcome {
    pub name: String,
    pub page: Saw,
    pub wire: Vec<Request>,
}

/// What the page saw: `answered`, `refused`, `silent`, or that it was `left`.
#[derive(Debug, Clone, Deserialize)]
pub struct Saw {
    pub outcome: String,
    /// The status, where a page may know it.
    pub status: Option<u16>,
    #[serde(default)]
    pub text: Option<String>,
}

/// A request that the browser made or wanted to make.
#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    pub method: String,
    pub url: String,
    /// None if it was not sent, since a question before it was refused.
    pub status: Option<u16>,
    pub error: Option<String>,
}

impl Request {
    /// The status that it really got. Chromium tells a WebSocket's in words only.
    #[must_use]
    pub fn answered(&self) -> Option<u16> {
        let words = || self.error.as_deref()?.rsplit_once("Unexpected response code: ")?.1.trim().parse().ok();
        self.status.or_else(words)
    }
}

impl Outcome {
    /// True if the server said no to all that was sent (403), and something was sent.
    #[must_use]
    pub fn forbidden(&self) -> bool {
        let answers: Vec<u16> = self.wire.iter().filter_map(Request::answered).collect();
        !answers.is_empty() && answers.iter().all(|status| *status == 403)
    }

    /// True if the page got an answer that it can read, and it is good.
    #[must_use]
    pub fn works(&self) -> bool {
        self.page.outcome == "answered" && self.page.status.is_none_or(|status| (200..300).contains(&status))
    }
}

/// Opens a page and lets it try. `from` is a URL, or a host name, then the page is one of its own under that name.
pub fn visit(browser: &mut Peer, from: &str, attempts: &[Attempt]) -> Result<Visit> {
    let told = browser.call("visit", json!({"from": from, "attempts": attempts}))?;
    serde_json::from_value(told.clone()).with_context(|| format!("what came of the visit: {told:#}"))
}
