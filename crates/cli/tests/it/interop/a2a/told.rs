//! What a stream told: its frames, what holds for all of them, and the story in few words.

use serde_json::Value;

use super::client::{Form, OURS, URI};

/// The whole of a stream.
#[derive(Debug)]
pub(super) struct Told {
    form: Form,
    frames: Vec<Value>,
}

/// A question as a client has it.
#[derive(Debug)]
pub(super) struct Asked {
    /// The tool call it is about.
    pub(super) call: String,
    /// The whole data part.
    pub(super) tool: Value,
}

impl Told {
    /// Reads server-sent events; an error in their place is returned.
    #[track_caller]
    pub(super) fn read(form: Form, request: &str, body: &str) -> Result<Self, Value> {
        let mut told = Self { form, frames: Vec::new() };
        let mut last = (0, 0);
        for event in body.split("\n\n").filter(|event| !event.trim().is_empty()) {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
            let Some(data) = field("data: ") else { continue };
            let data: Value = serde_json::from_str(data).unwrap_or_else(|_| panic!("not JSON: {event}"));
            assert_eq!((&data["jsonrpc"], &data["id"]), (&"2.0".into(), &request.into()), "{data:#}");
            if data.get("error").is_some() {
                return Err(data["error"].clone());
            }
            let cursor = field("id: ").unwrap_or_else(|| panic!("no id: {event}"));
            let (seq, part) = cursor.split_once('.').unwrap_or((cursor, "0"));
            let cursor: (u64, u64) = (seq.parse().unwrap(), part.parse().unwrap());
            assert!(cursor > last, "ids rise: {cursor:?} after {last:?}");
            last = cursor;
            told.frames.push(data["result"].clone());
        }
        told.check();
        Ok(told)
    }

    /// R000-1, R000-3, R000-11, R000-15, R000-18, R000-24 to R000-28, R000-38, R000-39.
    #[track_caller]
    fn check(&self) {
        assert!(!self.frames.is_empty(), "a stream that tells nothing");
        let ids = self.ids();
        for (index, frame) in self.frames.iter().enumerate() {
            let update = self.update(frame);
            let task = if self.is_task(frame) { &update["id"] } else { &update["taskId"] };
            assert_eq!((update["contextId"].as_str(), task.as_str()), (Some(&*ids.0), Some(&*ids.1)), "{frame:#}");
            let metadata = &update["metadata"];
            let kinds = ["TOOL_CALL_CONFIRMATION", "TOOL_CALL_UPDATE", "TEXT_CONTENT", "STATE_CHANGE", "THOUGHT"];
            assert!(metadata[URI]["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)), "{frame:#}");
            assert!(metadata["coderAgent"]["kind"].is_string(), "{frame:#}");
            let is_work = matches!(self.kind(frame), "TOOL_CALL_UPDATE" | "TEXT_CONTENT" | "THOUGHT");
            let names_model = metadata[URI]["model"].as_str().is_some_and(|model| !model.is_empty());
            assert!(names_model || !is_work, "{frame:#}");
            let is_last = index + 1 == self.frames.len();
            match self.form {
                Form::V1 => assert!(update.get("final").is_none() && update.get("kind").is_none(), "{frame:#}"),
                Form::Specified | Form::Coder if self.is_task(frame) || frame["kind"] == "artifact-update" => {}
                Form::Specified | Form::Coder => assert_eq!(update["final"], is_last, "{frame:#}\n{self}"),
            }
            if let Some(tool) = self.tool(frame).filter(|_| self.form != Form::Coder) {
                check_tool(tool);
            }
        }
    }

    /// What the frames of running calls say of the files that they change.
    pub(super) fn changes(&self) -> Vec<Value> {
        let runs = |frame: &&Value| self.tool(frame).is_some_and(|tool| tool["status"] == "EXECUTING");
        let running = self.frames.iter().filter(runs).map(|frame| &self.update(frame)["metadata"][OURS]["changes"]);
        running.cloned().collect()
    }

    /// Context and task.
    pub(super) fn ids(&self) -> (String, String) {
        let first = self.update(&self.frames[0]);
        let task = if self.is_task(&self.frames[0]) { &first["id"] } else { &first["taskId"] };
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no ids: {first:#}")).to_owned();
        (text(&first["contextId"]), text(task))
    }

    fn is_task(&self, frame: &Value) -> bool {
        if self.form == Form::V1 { frame.get("task").is_some() } else { frame["kind"] == "task" }
    }

    /// The task or the update, without what is wrapped around it.
    fn update<'a>(&self, frame: &'a Value) -> &'a Value {
        match self.form {
            Form::V1 => frame.as_object().and_then(|frame| frame.values().next()).unwrap_or(&Value::Null),
            Form::Specified | Form::Coder => frame,
        }
    }

    fn part<'a>(&self, frame: &'a Value) -> &'a Value {
        &self.update(frame)["status"]["message"]["parts"][0]
    }

    fn kind<'a>(&self, frame: &'a Value) -> &'a str {
        let metadata = &self.update(frame)["metadata"];
        let key = if self.form == Form::Coder { "coderAgent" } else { URI };
        metadata[key]["kind"].as_str().unwrap_or_default()
    }

    fn tool<'a>(&self, frame: &'a Value) -> Option<&'a Value> {
        let is_tool = matches!(self.kind(frame), "TOOL_CALL_UPDATE" | "tool-call-update" | "tool-call-confirmation");
        is_tool.then(|| &self.part(frame)["data"]).filter(|data| !data.is_null())
    }

    /// Every tool update, in order.
    pub(super) fn tools(&self) -> Vec<&Value> {
        self.frames.iter().filter_map(|frame| self.tool(frame)).collect()
    }

    /// What was said, in one piece.
    pub(super) fn text(&self) -> String {
        let texts = self.frames.iter().filter(|frame| matches!(self.kind(frame), "TEXT_CONTENT" | "text-content"));
        texts.map(|frame| self.part(frame)["text"].as_str().unwrap_or_else(|| panic!("{frame:#}"))).collect()
    }

    /// The thoughts: subject and description.
    pub(super) fn thoughts(&self) -> Vec<(String, String)> {
        let thoughts = self.frames.iter().filter(|frame| matches!(self.kind(frame), "THOUGHT" | "thought"));
        let field = |frame: &Value, key: &str| self.part(frame)["data"][key].as_str().unwrap_or_default().to_owned();
        thoughts.map(|frame| (field(frame, "subject"), field(frame, "description"))).collect()
    }

    /// Everything that came, a line each; what comes in pieces once.
    pub(super) fn story(&self) -> Vec<String> {
        let mut story: Vec<String> = self.frames.iter().map(|frame| self.line(frame)).collect();
        story.dedup();
        story
    }

    /// The story without what was said and thought. A call whose agent takes its time to ask is shown before: that is
    /// left out too.
    pub(super) fn deeds(&self) -> Vec<String> {
        let mut story = self.story();
        story.retain(|line| line != "text" && line != "thought");
        story.dedup();
        if let Some(asked) = story.iter().position(|line| line.ends_with(", asked"))
            && let Some("tool PENDING" | "tool scheduled") = asked.checked_sub(1).map(|before| story[before].as_str())
        {
            story.remove(asked - 1);
        }
        story
    }

    fn line(&self, frame: &Value) -> String {
        let update = self.update(frame);
        let state = update["status"]["state"].as_str().unwrap_or("?");
        if self.is_task(frame) {
            return format!("task {state}");
        }
        if let Some(tool) = self.tool(frame) {
            let is_asked = tool.get("confirmation_request").or(tool.get("confirmationDetails")).is_some();
            let status = tool["status"].as_str().unwrap_or("?");
            return format!("tool {status}{}", if is_asked { ", asked" } else { "" });
        }
        match self.kind(frame) {
            "TEXT_CONTENT" | "text-content" => "text".to_owned(),
            "THOUGHT" | "thought" => "thought".to_owned(),
            "STATE_CHANGE" | "state-change" => {
                format!("state {state}{}", if update["final"] == true { ", final" } else { "" })
            }
            _ if frame["kind"] == "artifact-update" => "live output".to_owned(),
            kind => format!("{kind}?"),
        }
    }

    /// The question that the stream ended with.
    #[track_caller]
    pub(super) fn asked(&self) -> Asked {
        let tools = self.tools();
        let tool = (*tools.last().unwrap_or_else(|| panic!("no question\n{self}"))).clone();
        let call = if self.form == Form::Coder { &tool["request"]["callId"] } else { &tool["tool_call_id"] };
        let call = call.as_str().unwrap_or_else(|| panic!("{tool:#}")).to_owned();
        if self.form != Form::Coder {
            check_request(&tool);
        }
        Asked { call, tool }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.frames.iter().try_for_each(|frame| writeln!(f, "{}: {frame}", self.line(frame)))
    }
}

/// A tool update can be shown by somebody who remembers nothing.
#[track_caller]
fn check_tool(tool: &Value) {
    let has = |key: &str| tool.get(key).is_some();
    let status = tool["status"].as_str().unwrap_or_default();
    let is_over = ["SUCCEEDED", "FAILED", "CANCELLED"].contains(&status);
    assert!(is_over || ["PENDING", "EXECUTING"].contains(&status), "{tool:#}");
    assert!(tool["tool_name"].as_str().is_some_and(|name| !name.is_empty()), "{tool:#}");
    assert!(tool["input_parameters"].is_object(), "{tool:#}");
    assert_eq!(usize::from(has("output")) + usize::from(has("error")), usize::from(is_over), "{tool:#}");
    assert!(!has("live_content") || status == "EXECUTING", "{tool:#}");
    assert!(!has("confirmation_request") || status == "PENDING", "{tool:#}");
}

/// R000-31, R000-32: options that can be told apart, with a way to say no, and one kind of details.
#[track_caller]
fn check_request(tool: &Value) {
    let request = tool["confirmation_request"].as_object().unwrap_or_else(|| panic!("nothing is asked: {tool:#}"));
    let options = request["options"].as_array().unwrap();
    let mut ids: Vec<&str> = options.iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"cancel"), "{tool:#}");
    assert!(options.iter().all(|option| option["name"].as_str().is_some_and(|name| !name.is_empty())), "{tool:#}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), options.len(), "{tool:#}");
    assert_eq!(request.keys().filter(|key| key.ends_with("_details")).count(), 1, "{tool:#}");
}
