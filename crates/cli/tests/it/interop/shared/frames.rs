//! What guests are told, whichever of the two dialects they speak: what a frame says, and in which order they come.

use multitap_testkit::peer::frame::{self, body};
use serde_json::Value;

/// The key of the extension's objects.
pub(super) const EXTENSION: &str =
    "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md";
/// Our own key in metadata.
const OURS: &str = "https://github.com/multitap/multitap/blob/main/docs/a2a.md";

/// A question as guests have it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The tool call it is about.
    pub(super) call: String,
    /// Its own id.
    pub(super) question: String,
    pub(super) options: Vec<String>,
}

pub(super) fn kind(event: &Value) -> &str {
    body(event)["metadata"][EXTENSION]["kind"].as_str().unwrap_or_default()
}

/// The state of the task, in a frame that tells nothing else.
pub(super) fn is_state(event: &Value, state: &str) -> bool {
    kind(event) == "STATE_CHANGE" && frame::state(event).as_deref() == Some(state)
}

/// Who said this prompt, client and door, if this is the frame that tells of it.
pub(super) fn prompted<'a>(event: &'a Value, text: &str) -> Option<(&'a str, &'a str)> {
    let said = body(event)["history"].as_array()?.iter().find(|message| message["parts"][0]["text"] == text)?;
    who(&said["metadata"][OURS]["from"])
}

fn who(client: &Value) -> Option<(&str, &str)> {
    Some((client["client"].as_str()?, client["door"].as_str()?))
}

/// The tool call that a frame is about.
pub(super) fn tool(event: &Value) -> Option<&Value> {
    (kind(event) == "TOOL_CALL_UPDATE").then(|| frame::data(event, "tool_call_id")).flatten()
}

/// The status of the tool call that a frame is about.
pub(super) fn status(event: &Value) -> Option<&str> {
    tool(event)?["status"].as_str()
}

/// The question that a frame asks.
pub(super) fn asked(event: &Value) -> Option<Asked> {
    let tool = tool(event)?;
    let options = tool.get("confirmation_request")?["options"].as_array()?;
    Some(Asked {
        call: tool["tool_call_id"].as_str()?.to_owned(),
        question: body(event)["metadata"][EXTENSION]["correlationId"].as_str()?.to_owned(),
        options: options.iter().filter_map(|option| Some(option["id"].as_str()?.to_owned())).collect(),
    })
}

/// Who answered, client and door, and with what, as every frame of the call tells from then on.
pub(super) fn settled(event: &Value) -> Option<((&str, &str), &str)> {
    let ours = &body(event)["metadata"][OURS];
    Some((who(&ours["settledBy"])?, ours["selectedOptionId"].as_str()?))
}

/// What the agent said, in one piece.
pub(super) fn text(told: &[Value]) -> String {
    told.iter().filter(|event| kind(event) == "TEXT_CONTENT").map(frame::text).collect()
}

/// The subjects of its thoughts.
pub(super) fn thoughts(told: &[Value]) -> Vec<String> {
    let thoughts = told.iter().filter(|event| kind(event) == "THOUGHT");
    thoughts.filter_map(|event| Some(frame::data(event, "subject")?["subject"].as_str()?.to_owned())).collect()
}

/// All that was thought, without what separates its parts: an agent's question may split a thought.
pub(super) fn thought_words(told: &[Value]) -> String {
    let thoughts = told.iter().filter(|event| kind(event) == "THOUGHT");
    let parts = thoughts.filter_map(|event| frame::data(event, "subject"));
    let texts = parts.flat_map(|part| [part["subject"].as_str(), part["description"].as_str()]).flatten();
    words(&texts.collect::<String>())
}

/// A text without blanks and marks.
pub(super) fn words(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The states that a tool call went through, each once.
pub(super) fn statuses(told: &[Value]) -> Vec<&str> {
    let mut statuses: Vec<&str> = told.iter().filter_map(status).collect();
    statuses.dedup();
    statuses
}

/// Where a guest is: each frame comes to it once, and in one order.
#[derive(Debug, Default)]
pub(super) struct Order {
    last: (u64, u64),
}

impl Order {
    #[track_caller]
    pub(super) fn check(&mut self, event: &Value) {
        let cursor = body(event)["metadata"][OURS]["cursor"].as_str().unwrap_or_else(|| panic!("no cursor: {event:#}"));
        let (seq, part) = cursor.split_once('.').unwrap_or((cursor, "0"));
        let cursor = (seq.parse().unwrap(), part.parse().unwrap());
        assert!(cursor > self.last, "{cursor:?} after {:?}", self.last);
        self.last = cursor;
    }
}
