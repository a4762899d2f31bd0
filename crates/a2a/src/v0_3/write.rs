//! The model as 0.3 writes it, straight from borrowed values to text: one event is written once for many clients.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{WRAPPED, role_word};
use crate::model::{
    Artifact, ArtifactUpdate, Content, Map, Message, Part, Sent, StatusUpdate, Task, TaskList, TaskStatus, Update,
};
use crate::request::PushConfig;
use crate::write::Fields;

/// Something of the model, in the words of 0.3.
pub(crate) struct Wire<'a, T: ?Sized>(pub(crate) &'a T);

impl<T> Serialize for Wire<'_, [T]>
where
    for<'b> Wire<'b, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Wire))
    }
}

impl Serialize for Wire<'_, Update> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Update::Task(task) => Wire(task).serialize(serializer),
            Update::Message(message) => Wire(message).serialize(serializer),
            Update::Status(update) => Wire(update).serialize(serializer),
            Update::Artifact(update) => Wire(update).serialize(serializer),
        }
    }
}

impl Serialize for Wire<'_, Sent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Sent::Task(task) => Wire(task).serialize(serializer),
            Sent::Message(message) => Wire(message).serialize(serializer),
        }
    }
}

impl Serialize for Wire<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let task = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "task")?;
        map.serialize_entry("id", &task.id)?;
        map.serialize_entry("contextId", &task.context_id)?;
        map.serialize_entry("status", &Wire(&task.status))?;
        if !task.history.is_empty() {
            map.serialize_entry("history", &Wire(task.history.as_slice()))?;
        }
        if !task.artifacts.is_empty() {
            map.serialize_entry("artifacts", &Wire(task.artifacts.as_slice()))?;
        }
        map.metadata(&task.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, TaskList> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let list = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("tasks", &Wire(list.tasks.as_slice()))?;
        map.serialize_entry("nextPageToken", &list.next_page_token)?;
        map.serialize_entry("pageSize", &list.page_size)?;
        map.serialize_entry("totalSize", &list.total_size)?;
        map.end()
    }
}

impl Serialize for Wire<'_, TaskStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let status = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", status.state.word())?;
        map.optional("message", status.message.as_ref().map(Wire).as_ref())?;
        map.optional("timestamp", status.timestamp.as_ref())?;
        map.end()
    }
}

impl Serialize for Wire<'_, StatusUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let update = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "status-update")?;
        map.serialize_entry("taskId", &update.task_id)?;
        map.serialize_entry("contextId", &update.context_id)?;
        map.serialize_entry("status", &Wire(&update.status))?;
        map.serialize_entry("final", &update.is_final)?;
        map.metadata(&update.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, ArtifactUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let update = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "artifact-update")?;
        map.serialize_entry("taskId", &update.task_id)?;
        map.serialize_entry("contextId", &update.context_id)?;
        map.serialize_entry("artifact", &Wire(&update.artifact))?;
        map.serialize_entry("append", &update.append)?;
        map.serialize_entry("lastChunk", &update.last_chunk)?;
        map.metadata(&update.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Artifact> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let artifact = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("artifactId", &artifact.artifact_id)?;
        map.optional("name", artifact.name.as_ref())?;
        map.optional("description", artifact.description.as_ref())?;
        map.serialize_entry("parts", &Wire(artifact.parts.as_slice()))?;
        map.list("extensions", &artifact.extensions)?;
        map.metadata(&artifact.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", "message")?;
        map.serialize_entry("messageId", &message.message_id)?;
        map.serialize_entry("role", role_word(message.role))?;
        map.serialize_entry("parts", &Wire(message.parts.as_slice()))?;
        map.optional("contextId", message.context_id.as_ref())?;
        map.optional("taskId", message.task_id.as_ref())?;
        map.list("referenceTaskIds", &message.reference_task_ids)?;
        map.list("extensions", &message.extensions)?;
        map.metadata(&message.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Part> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        let mut map = serializer.serialize_map(None)?;
        match &part.content {
            Content::Text(text) => {
                map.serialize_entry("kind", "text")?;
                map.serialize_entry("text", text)?;
            }
            Content::Raw(_) | Content::Url(_) => {
                map.serialize_entry("kind", "file")?;
                map.serialize_entry("file", &File(part))?;
            }
            Content::Data(data) if data.is_object() => {
                map.serialize_entry("kind", "data")?;
                map.serialize_entry("data", data)?;
            }
            Content::Data(data) => {
                map.serialize_entry("kind", "data")?;
                map.serialize_entry("data", &Value::from_iter([("value", data.clone())]))?;
                map.serialize_entry("metadata", &wrapped(&part.metadata))?;
                return map.end();
            }
        }
        map.metadata(&part.metadata)?;
        map.end()
    }
}

fn wrapped(metadata: &Map) -> Map {
    let mut metadata = metadata.clone();
    metadata.insert(WRAPPED.to_owned(), Value::Bool(true));
    metadata
}

/// The `file` of a part that holds one.
struct File<'a>(&'a Part);

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.0.content {
            Content::Raw(bytes) => map.serialize_entry("bytes", bytes)?,
            Content::Url(uri) => map.serialize_entry("uri", uri)?,
            Content::Text(_) | Content::Data(_) => {}
        }
        map.optional("name", self.0.filename.as_ref())?;
        map.optional("mimeType", self.0.media_type.as_ref())?;
        map.end()
    }
}

/// What is asked for, without the task it is for.
pub(crate) fn push_config(config: &PushConfig) -> Value {
    let mut map = Map::new();
    map.extend(config.id.as_ref().map(|id| ("id".to_owned(), json!(id))));
    map.insert("url".to_owned(), json!(config.url));
    map.extend(config.token.as_ref().map(|token| ("token".to_owned(), json!(token))));
    if let Some(authentication) = &config.authentication {
        let mut inner = Map::new();
        inner.insert("schemes".to_owned(), json!(authentication.schemes));
        inner.extend(authentication.credentials.as_ref().map(|text| ("credentials".to_owned(), json!(text))));
        map.insert("authentication".to_owned(), Value::Object(inner));
    }
    Value::Object(map)
}

/// What the methods for push answer with.
pub(crate) fn task_push_config(task_id: &str, config: &PushConfig) -> Value {
    json!({ "taskId": task_id, "pushNotificationConfig": push_config(config) })
}
