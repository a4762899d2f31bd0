//! The arguments of calls.

use multitap_a2a::devtool::ToolCallConfirmation;
use multitap_a2a::{Content, Message, Part};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(Debug, Deserialize)]
pub(crate) struct LoadAgent {
    pub(crate) url: String,
    #[serde(default, alias = "agentCardPath")]
    pub(crate) agent_card_path: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct UnloadAgent {
    pub(crate) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SendArguments {
    #[serde(default)]
    message: String,
    #[serde(default)]
    pub(crate) context_id: Option<String>,
    #[serde(default)]
    pub(crate) task_id: Option<String>,
    #[serde(default)]
    files: Vec<File>,
    #[serde(default)]
    answer: Option<Answer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    name: Option<String>,
    mime_type: Option<String>,
    text: Option<String>,
    data: Option<String>,
    uri: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    tool_call_id: String,
    option_id: String,
    feedback: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskArguments {
    pub(crate) task_id: String,
    #[serde(default = "yes")]
    pub(crate) wait: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArtifactArguments {
    pub(crate) task_id: String,
    pub(crate) artifact_id: String,
    #[serde(default)]
    pub(crate) offset: usize,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListArguments {
    pub(crate) context_id: Option<String>,
    pub(crate) page_token: Option<String>,
}

fn yes() -> bool {
    true
}

/// Reads the arguments of a call; says what is wrong with them in words that help a model to do better.
pub(crate) fn read<T: DeserializeOwned>(arguments: Option<JsonObject>) -> Result<T, String> {
    let value = Value::Object(arguments.unwrap_or_default());
    serde_json::from_value(value).map_err(|error| format!("the arguments do not fit: {error}"))
}

impl SendArguments {
    /// The message to send, without a number of hops.
    pub(crate) fn into_message(self) -> Result<Message, String> {
        let mut parts = Vec::new();
        if let Some(answer) = self.answer {
            let decision = ToolCallConfirmation {
                tool_call_id: answer.tool_call_id,
                selected_option_id: answer.option_id,
                feedback: answer.feedback,
                ..ToolCallConfirmation::default()
            };
            parts.push(Part::data(decision.write()));
        }
        if !self.message.trim().is_empty() {
            parts.push(Part::text(self.message));
        }
        for file in self.files {
            parts.push(file.into_part()?);
        }
        if parts.is_empty() {
            return Err("message is missing: what to say to the agent".to_owned());
        }
        Ok(Message { parts, context_id: self.context_id, task_id: self.task_id, ..Message::default() })
    }
}

impl File {
    fn into_part(self) -> Result<Part, String> {
        let content = match (self.text, self.data, self.uri) {
            (Some(text), None, None) => Content::Text(text),
            (None, Some(data), None) => Content::Raw(data),
            (None, None, Some(uri)) => Content::Url(uri),
            _ => return Err("a file needs exactly one of text, data and uri".to_owned()),
        };
        Ok(Part { filename: self.name, media_type: self.mime_type, ..Part::of(content) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(value: Value) -> Result<Message, String> {
        let Value::Object(map) = value else { panic!("an object") };
        read::<SendArguments>(Some(map))?.into_message()
    }

    #[test]
    fn a_message_carries_its_context_files_and_answers() {
        let sent = message(json!({ "message": "hi", "contextId": "c", "taskId": "t",
            "files": [{ "name": "a.txt", "mimeType": "text/plain", "data": "aGk=" }] }))
        .unwrap();
        assert_eq!((sent.context_id.as_deref(), sent.task_id.as_deref()), (Some("c"), Some("t")));
        assert_eq!(sent.parts[0], Part::text("hi"));
        assert_eq!(sent.parts[1].content, Content::Raw("aGk=".to_owned()));
        let sent = message(json!({ "taskId": "t", "answer": { "toolCallId": "1", "optionId": "cancel" } })).unwrap();
        assert_eq!(
            sent.parts[0].content,
            Content::Data(json!({ "tool_call_id": "1", "selected_option_id": "cancel" }))
        );
    }

    #[test]
    fn what_does_not_fit_is_explained() {
        assert!(message(json!({})).unwrap_err().contains("message is missing"));
        assert!(message(json!({ "message": 1 })).unwrap_err().contains("the arguments do not fit: invalid type"));
        assert!(message(json!({ "files": [{ "name": "x" }] })).unwrap_err().contains("exactly one of"));
    }
}
