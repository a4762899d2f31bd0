//! Requests of a page in a browser to a server, and their outcome.
//!
//! A page cannot distinguish a refusal from a response that its browser withholds, so each outcome has both: what the
//! page saw, and what went over the wire.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Peer;

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

    pub fn get(url: &str) -> Self {
        Self::new(format!("GET {url}"), "fetch", url, json!({}))
    }

    /// Gets it with a header of A2A, which causes a preflight.
    pub fn get_with_header(url: &str) -> Self {
        let init = json!({"headers": {"A2A-Version": "1.0"}});
        Self::new(format!("GET {url} with a header"), "fetch", url, init)
    }

    /// Posts JSON, which causes a preflight.
    pub fn post(url: &str, body: &Value) -> Self {
        let headers = json!({"Content-Type": "application/json", "A2A-Version": "1.0"});
        let init = json!({"method": "POST", "headers": headers, "body": body.to_string()});
        Self::new(format!("POST {url}"), "fetch", url, init)
    }

    /// Posts JSON as plain text, which needs no preflight, and reads the response.
    pub fn post_as_text(url: &str, body: &Value) -> Self {
        let init = json!({"method": "POST", "headers": {"Content-Type": "text/plain"}, "body": body.to_string()});
        Self::new(format!("POST {url} as text"), "fetch", url, init)
    }

    /// Posts JSON as plain text, and does not read the response.
    pub fn post_blindly(url: &str, body: &Value) -> Self {
        let mut attempt = Self::post_as_text(url, body);
        attempt.init["mode"] = "no-cors".into();
        attempt.name = format!("POST {url} blindly");
        attempt
    }

    /// Posts JSON by a form, which leaves the page.
    pub fn form(url: &str, body: &Value) -> Self {
        // A form sends NAME=VALUE. The equals sign goes into an unknown field of the JSON.
        let text = body.to_string();
        let open = text.strip_suffix('}').unwrap_or(&text);
        let init = json!({"name": format!("{open},\"ignored\":\""), "value": "\"}"});
        Self::new(format!("form to {url}"), "form", url, init)
    }

    pub fn event_source(url: &str) -> Self {
        Self::new(format!("EventSource {url}"), "eventSource", url, json!({}))
    }

    /// Opens a WebSocket at an `http` address.
    pub fn web_socket(url: &str) -> Self {
        let url = url.replacen("http", "ws", 1);
        Self::new(format!("WebSocket {url}"), "webSocket", &url, json!({}))
    }
}

/// A page that was opened, with its requests.
#[derive(Debug, Clone, Deserialize)]
pub struct Visit {
    /// The HTTP status of the page itself.
    pub status: Option<u16>,
    pub attempts: Vec<Outcome>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Outcome {
    pub name: String,
    pub page: Saw,
    pub wire: Vec<Request>,
}

/// The page's view: `answered`, `refused`, `silent`, or that it was `left`.
#[derive(Debug, Clone, Deserialize)]
pub struct Saw {
    pub outcome: String,
    /// The status, if the page may see it.
    pub status: Option<u16>,
    #[serde(default)]
    pub text: Option<String>,
}

/// A request that the browser made or was asked to make.
#[derive(Debug, Clone, Deserialize)]
pub struct Request {
    pub method: String,
    pub url: String,
    /// `None` if it was not sent, because the preflight failed.
    pub status: Option<u16>,
    pub error: Option<String>,
}

impl Request {
    /// The status of the response on the wire. For a WebSocket, Chromium reports it only in text.
    pub fn answered(&self) -> Option<u16> {
        let words = || self.error.as_deref()?.rsplit_once("Unexpected response code: ")?.1.trim().parse().ok();
        self.status.or_else(words)
    }
}

impl Outcome {
    /// Whether at least one request was sent, and the server refused all of them (403).
    pub fn forbidden(&self) -> bool {
        let answers: Vec<u16> = self.wire.iter().filter_map(Request::answered).collect();
        !answers.is_empty() && answers.iter().all(|status| *status == 403)
    }

    /// Whether the page got a successful response that it can read.
    pub fn works(&self) -> bool {
        self.page.outcome == "answered" && self.page.status.is_none_or(|status| (200..300).contains(&status))
    }
}

/// Opens a page and lets it try. `from` is a URL, or a host name, then the page is one of its own under that name.
pub fn visit(browser: &mut Peer, from: &str, attempts: &[Attempt]) -> Result<Visit> {
    let told = browser.call("visit", json!({"from": from, "attempts": attempts}))?;
    serde_json::from_value(told.clone()).with_context(|| format!("what came of the visit: {told:#}"))
}
