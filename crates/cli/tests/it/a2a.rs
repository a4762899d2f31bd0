//! The A2A door of the real binary, with the agent that needs no network: as a client without any library meets it.

mod artifacts;
mod bad;
mod card;
mod commands;
mod core;
mod docs;
mod edited;
mod push;
mod queue;
mod rest;
mod restart;
mod resume;
mod rights;
mod settings;
mod settled;
mod tck;
mod turn;
mod way;

use std::fs;
use std::time::Instant;

use multitap_testkit::http::{HttpClient, Response, SseEvent};
use serde_json::{Value, json};

use crate::scene::{Live, PATIENCE, Scene};

/// Names the `development-tool` extension.
const URI: &str = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md";
/// Our own key in metadata.
const OURS: &str = "https://github.com/multitap/multitap/blob/main/docs/a2a.md";

/// A host that runs, and a client of it.
struct Served {
    live: Live,
    http: HttpClient,
}

impl Scene {
    /// Starts a host with the rehearsal.
    #[track_caller]
    fn a2a(&self, options: &[&str]) -> Served {
        self.a2a_with(&[&["--agent", "builtin", "--model", "rehearsal"], options].concat())
    }

    #[track_caller]
    fn a2a_with(&self, options: &[&str]) -> Served {
        let mut live = self.start(&[&["serve", "--port", "0"], options].concat());
        let line = live.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
        let port = line.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).expect(&line);
        Served { live, http: HttpClient::to(port) }
    }

    fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.scratch.path(name)).ok()
    }
}

/// What a client sends, in 0.3.
#[derive(Debug, Clone)]
struct Said(Value);

impl Said {
    fn parts(parts: &Value) -> Self {
        Self(json!({ "message": { "kind": "message", "messageId": "m-1", "role": "user", "parts": parts } }))
    }

    fn text(text: &str) -> Self {
        Self::parts(&json!([{ "kind": "text", "text": text }]))
    }

    fn data(data: &Value) -> Self {
        Self::parts(&json!([{ "kind": "data", "data": data }]))
    }

    /// With settings, which bring the extension into use.
    fn set(mut self, key: &str, settings: Value) -> Self {
        self.0["message"]["metadata"][key] = settings;
        self
    }

    /// With the extension in use.
    fn dev(self) -> Self {
        self.set(URI, json!({}))
    }

    fn task(mut self, task: &str) -> Self {
        self.0["message"]["taskId"] = task.into();
        self
    }

    fn context(mut self, context: &str) -> Self {
        self.0["message"]["contextId"] = context.into();
        self
    }

    fn at_once(mut self) -> Self {
        self.0["configuration"]["blocking"] = false.into();
        self
    }

    /// The same in 1.0.
    fn v1(&self) -> Value {
        let mut params = self.0.clone();
        let message = params["message"].as_object_mut().unwrap();
        message.remove("kind");
        message["role"] = "ROLE_USER".into();
        for part in message["parts"].as_array_mut().unwrap() {
            part.as_object_mut().unwrap().remove("kind");
        }
        params
    }
}

impl Served {
    /// The `result` of a call.
    #[track_caller]
    fn result(&self, method: &str, params: &Value) -> Value {
        let answer = self.http.answer(method, params).unwrap();
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer:#}")).clone()
    }

    /// The code and the message of a refusal.
    #[track_caller]
    fn refusal(&self, method: &str, params: &Value) -> (i64, String) {
        let answer = self.http.answer(method, params).unwrap();
        let error = answer.get("error").unwrap_or_else(|| panic!("{method}: {answer:#}"));
        (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }

    /// Sends, and waits until the task rests.
    #[track_caller]
    fn send(&self, said: &Said) -> Value {
        self.result("message/send", &said.0)
    }

    #[track_caller]
    fn open(&self, method: &str, params: &Value) -> Frames {
        Frames::of(self.http.call(method, params).unwrap())
    }

    /// Sends, and gives back the frames until the stream ends.
    #[track_caller]
    fn stream(&self, said: &Said) -> Vec<Frame> {
        self.open("message/stream", &said.0).rest()
    }

    /// Follows a task from after that frame on.
    #[track_caller]
    fn resume(&self, task: &str, after: &str) -> Frames {
        let http = self.http.clone().with("Last-Event-ID", after);
        Frames::of(http.call("tasks/resubscribe", &json!({ "id": task })).unwrap())
    }

    #[track_caller]
    fn task(&self, id: &str) -> Value {
        self.result("tasks/get", &json!({ "id": id }))
    }

    #[track_caller]
    fn state(&self, id: &str) -> String {
        self.task(id)["status"]["state"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn stop(mut self, scene: &Scene) {
        self.live.signal("-TERM", &scene.scratch);
        self.live.wait().exits(0);
        scene.nothing_left();
    }
}

/// A stream that goes on.
struct Frames(Response);

impl Frames {
    #[track_caller]
    fn of(response: Response) -> Self {
        assert!(response.is_stream(), "no stream: {}", response.text().unwrap());
        Self(response)
    }

    #[track_caller]
    fn next(&mut self) -> Frame {
        Frame::of(self.0.event().unwrap().expect("the stream goes on"))
    }

    /// The frames up to the first that fits.
    #[track_caller]
    fn until(&mut self, fits: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            frames.push(self.next());
            if fits(&frames[frames.len() - 1]) {
                return frames;
            }
        }
    }

    #[track_caller]
    fn rest(self) -> Vec<Frame> {
        self.0.events().unwrap().into_iter().map(Frame::of).collect()
    }
}

/// One frame of a stream.
#[derive(Debug, Clone, PartialEq)]
struct Frame {
    cursor: String,
    /// To the letter.
    text: String,
    json: Value,
}

impl Frame {
    #[track_caller]
    fn of(event: SseEvent) -> Self {
        assert_eq!(event.json["id"], 1, "{}", event.data);
        let json = event.json.get("result").unwrap_or_else(|| panic!("{}", event.data)).clone();
        Self { cursor: event.id.unwrap_or_default(), text: event.data, json }
    }

    fn state(&self) -> &str {
        self.json["status"]["state"].as_str().unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.json["metadata"][URI]["kind"].as_str().unwrap_or_default()
    }

    fn is_final(&self) -> bool {
        self.json["final"] == true
    }

    /// The data it carries.
    fn data(&self) -> &Value {
        &self.json["status"]["message"]["parts"][0]["data"]
    }

    fn is_asking(&self) -> bool {
        self.data().get("confirmation_request").is_some()
    }

    fn said(&self) -> &str {
        self.json["status"]["message"]["parts"][0]["text"].as_str().unwrap_or_default()
    }

    /// In a few words.
    fn word(&self) -> String {
        if self.json["kind"] == "task" {
            return format!("Task {}", self.state());
        }
        let what = match self.kind() {
            "TOOL_CALL_UPDATE" => self.data()["status"].as_str().unwrap_or_default(),
            _ => self.state(),
        };
        let asked = if self.is_asking() { " asked" } else { "" };
        let last = if self.is_final() { " final" } else { "" };
        format!("{} {what}{asked}{last}", self.kind())
    }
}

/// The frames in a few words, those of the agent's text as one.
fn words(frames: &[Frame]) -> Vec<String> {
    let mut words: Vec<String> = frames.iter().map(Frame::word).collect();
    words.dedup_by(|one, before| one == before && one.starts_with("TEXT_CONTENT"));
    words
}

/// The task and the context that a stream begins with.
#[track_caller]
fn ids(frames: &[Frame]) -> (String, String) {
    let first = &frames[0].json;
    assert_eq!(first["kind"], "task", "{first}");
    (first["id"].as_str().unwrap().to_owned(), first["contextId"].as_str().unwrap().to_owned())
}

/// The call that is asked about.
#[track_caller]
fn asked(frames: &[Frame]) -> &Value {
    frames.iter().find(|frame| frame.is_asking()).expect("a question").data()
}

/// An answer to it.
fn answer(call: &Value, option: &str) -> Value {
    json!({ "tool_call_id": call["tool_call_id"], "selected_option_id": option })
}
