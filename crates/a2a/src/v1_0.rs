//! Dialect 1.0: methods like `SendMessage`, and `ProtoJSON`: no `kind` but a field for each kind of thing, names of enums
//! in capitals, what is empty left out. It has no word for the last event of a stream; there the stream just ends.

use serde::Serializer;
use serde::ser::SerializeMap as _;
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::Error;
use crate::model::{Content, Map, Part, Role, Sent, TaskState, Update};
use crate::read::Node;
use crate::read::model::{artifact_update, message, status_update, task};
use crate::request::{Authentication, PushConfig};
use crate::write::Fields as _;

const DIALECT: Dialect = Dialect::V1_0;

pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

pub(crate) fn state_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Unknown => "TASK_STATE_UNSPECIFIED",
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
    }
}

pub(crate) fn update(node: &Node<'_>) -> Result<Update, Error> {
    match only(node, &["task", "message", "statusUpdate", "artifactUpdate"])? {
        "task" => node.inside("task", |node| task(DIALECT, node)).map(Update::Task),
        "message" => node.inside("message", |node| message(DIALECT, node)).map(Update::Message),
        "statusUpdate" => node.inside("statusUpdate", |node| status_update(DIALECT, node)).map(Update::Status),
        _ => node.inside("artifactUpdate", |node| artifact_update(DIALECT, node)).map(Update::Artifact),
    }
}

pub(crate) fn sent(node: &Node<'_>) -> Result<Sent, Error> {
    match only(node, &["task", "message"])? {
        "task" => node.inside("task", |node| task(DIALECT, node)).map(Sent::Task),
        _ => node.inside("message", |node| message(DIALECT, node)).map(Sent::Message),
    }
}

/// The one of these fields that is there.
fn only<'k>(node: &Node<'_>, keys: &[&'k str]) -> Result<&'k str, Error> {
    let found: Vec<_> = keys.iter().copied().filter(|key| node.has(key)).collect();
    match found[..] {
        [key] => Ok(key),
        [] => Err(node.wrong(format_args!("must hold one of {}", keys.join(", ")))),
        _ => Err(node.wrong(format_args!("must hold only one of {}", found.join(", ")))),
    }
}

pub(crate) fn part(node: &Node<'_>) -> Result<Part, Error> {
    // Data may be any JSON, `null` too.
    let is_data = ["text", "raw", "url"].iter().all(|key| !node.has(key)) && node.value().get("data").is_some();
    let content = if is_data {
        Content::Data(node.value().get("data").cloned().unwrap_or_default())
    } else {
        match only(node, &["text", "raw", "url", "data"])? {
            "text" => Content::Text(node.string("text")?),
            "raw" => Content::Raw(node.string("raw")?),
            _ => Content::Url(node.string("url")?),
        }
    };
    Ok(Part {
        content,
        filename: node.opt_string("filename")?,
        media_type: node.opt_string("mediaType")?,
        metadata: node.map("metadata")?,
    })
}

pub(crate) fn write_part<S: Serializer>(part: &Part, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    match &part.content {
        Content::Text(text) => map.serialize_entry("text", text)?,
        Content::Raw(bytes) => map.serialize_entry("raw", bytes)?,
        Content::Url(url) => map.serialize_entry("url", url)?,
        Content::Data(data) => map.serialize_entry("data", data)?,
    }
    map.optional("filename", part.filename.as_ref())?;
    map.optional("mediaType", part.media_type.as_ref())?;
    map.metadata(&part.metadata)?;
    map.end()
}

pub(crate) fn push_config(node: &Node<'_>) -> Result<PushConfig, Error> {
    Ok(PushConfig {
        id: node.opt_string("id")?.filter(|id| !id.is_empty()),
        url: node.id("url")?,
        token: node.opt_string("token")?.filter(|token| !token.is_empty()),
        authentication: node.opt_inside("authentication", |node| {
            Ok(Authentication {
                schemes: node.opt_string("scheme")?.into_iter().collect(),
                credentials: node.opt_string("credentials")?,
            })
        })?,
    })
}

/// A config, with the task it is for unless that is the message it comes with.
pub(crate) fn write_push_config(task_id: Option<&str>, config: &PushConfig) -> Value {
    let mut map = Map::new();
    map.extend(config.id.as_ref().map(|id| ("id".to_owned(), json!(id))));
    map.extend(task_id.map(|id| ("taskId".to_owned(), json!(id))));
    map.insert("url".to_owned(), json!(config.url));
    map.extend(config.token.as_ref().map(|token| ("token".to_owned(), json!(token))));
    if let Some(authentication) = &config.authentication {
        let mut inner = Map::new();
        // 1.0 has room for one scheme: the first, which a 0.3 client names as the one it likes best.
        inner.extend(authentication.schemes.first().map(|scheme| ("scheme".to_owned(), json!(scheme))));
        inner.extend(authentication.credentials.as_ref().map(|text| ("credentials".to_owned(), json!(text))));
        map.insert("authentication".to_owned(), Value::Object(inner));
    }
    Value::Object(map)
}
