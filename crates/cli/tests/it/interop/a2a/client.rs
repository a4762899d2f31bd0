//! A client of the door that knows HTTP, server-sent events and the three ways of speaking, and nothing of ours.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::host::Host;
use super::told::{Asked, Told};
use crate::interop::stage::PATIENCE;

/// The key of the extension's objects.
pub(super) const URI: &str =
    "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md";

/// Our own key in metadata.
pub(super) const OURS: &str = "https://github.com/multitap/multitap/blob/main/docs/a2a.md";

/// A way of speaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A2A 0.3 and the extension as it is specified.
    Specified,
    /// A2A 0.3 and the extension as Google's server ships it.
    Coder,
    /// A2A 1.0 and the extension as it is specified.
    V1,
}

/// One session, as its clients talk to it.
pub(super) struct Talk<'a> {
    host: &'a Host<'a>,
    form: Form,
    /// Context and task, once there are any.
    ids: Option<(String, String)>,
}

impl<'a> Talk<'a> {
    pub(super) fn new(host: &'a Host<'a>, form: Form) -> Self {
        Self { host, form, ids: None }
    }

    /// Somebody prompts: the first message says where to work, those after it name the task.
    #[track_caller]
    pub(super) fn prompt(&mut self, who: &str, text: &str) -> Told {
        let part = if self.form == Form::V1 { json!({"text": text}) } else { json!({"kind": "text", "text": text}) };
        self.say(who, &[part]).unwrap_or_else(|error| panic!("refused: {error:#}"))
    }

    /// Somebody prompts with these parts.
    #[track_caller]
    pub(super) fn say(&mut self, who: &str, parts: &[Value]) -> Result<Told, Value> {
        let told = self.send(who, parts)?;
        self.ids = Some(told.ids());
        Ok(told)
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Somebody answers, with more fields if they are given. What comes of it, or the error.
    #[track_caller]
    pub(super) fn answer(&self, who: &str, asked: &Asked, option: &str, more: &Value) -> Result<Told, Value> {
        let mut data = match self.form {
            Form::Coder => json!({"callId": asked.call, "outcome": option}),
            Form::Specified | Form::V1 => json!({"tool_call_id": asked.call, "selected_option_id": option}),
        };
        data.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        let part = if self.form == Form::V1 { json!({"data": data}) } else { json!({"kind": "data", "data": data}) };
        self.send(who, &[part])
    }

    #[track_caller]
    fn send(&self, who: &str, parts: &[Value]) -> Result<Told, Value> {
        let role = if self.form == Form::V1 { "ROLE_USER" } else { "user" };
        let mut message = json!({"messageId": format!("by-{who}"), "role": role, "parts": parts});
        match &self.ids {
            Some((context, task)) => {
                message["contextId"] = json!(context);
                message["taskId"] = json!(task);
            }
            None => message["metadata"] = self.settings(),
        }
        if self.form != Form::V1 {
            message["kind"] = json!("message");
        }
        let method = if self.form == Form::V1 { "SendStreamingMessage" } else { "message/stream" };
        self.call(who, method, &json!({"message": message}))
    }

    fn settings(&self) -> Value {
        let folder = self.host.place.scratch.workspace();
        match self.form {
            Form::Specified | Form::V1 => json!({URI: {"workspace_path": folder}}),
            Form::Coder => json!({"coderAgent": {"kind": "agent-settings", "workspacePath": folder}}),
        }
    }

    /// A request on a connection of its own, read to its end.
    #[track_caller]
    fn call(&self, who: &str, method: &str, params: &Value) -> Result<Told, Value> {
        let port = self.host.port;
        let body = json!({"jsonrpc": "2.0", "id": who, "method": method, "params": params}).to_string();
        let version = if self.form == Form::V1 { "A2A-Version: 1.0\r\n" } else { "" };
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "POST /?client={who} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n\
             Accept: text/event-stream\r\n{version}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut bytes = Vec::new();
        // A stream that is not ended by the server runs into the time limit.
        let ended = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(ended.is_ok(), "{method} has no end: {ended:?}\n{text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {text}"));
        assert!(head.starts_with("HTTP/1.1 200"), "{text}");
        let body = if head.to_lowercase().contains("transfer-encoding: chunked") { unchunk(body) } else { body.into() };
        if !head.to_lowercase().contains("content-type: text/event-stream") {
            let answer: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{text}"));
            return Err(answer["error"].clone());
        }
        Told::read(self.form, who, &body)
    }
}

/// The body without the marks of its chunks. The marks count bytes; what we read has no other size in them.
fn unchunk(mut text: &str) -> String {
    let mut body = Vec::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or_else(|_| panic!("no chunk: {text}"));
        body.extend_from_slice(&rest.as_bytes()[..size]);
        text = rest.get(size..).unwrap_or_default().strip_prefix("\r\n").unwrap_or_default();
        if size == 0 {
            return String::from_utf8(body).unwrap();
        }
    }
    panic!("the body was cut off")
}
