//! Writes the model in any encoding, directly from borrowed values to text: one event is written once for many
//! clients.
//!
//! Here is what the encodings share, or where only a name or a field differs; the rest is in their own modules.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::encoding::Encoding;
use crate::model::{
    Artifact, ArtifactUpdate, Map, Message, Part, Sent, StatusUpdate, Task, TaskList, TaskStatus, Update,
};
use crate::{v0_3, v1_0};

/// A value of the model, to be written in an encoding.
pub(crate) struct Wire<'a, T: ?Sized>(pub(crate) Encoding, pub(crate) &'a T);

pub(crate) fn text(value: &impl Serialize) -> String {
    // All keys are strings and no serializer fails, so this never happens.
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

pub(crate) fn tree(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// An object without its fields that are null.
pub(crate) fn present(mut object: Value) -> Map {
    object.as_object_mut().map(std::mem::take).into_iter().flatten().filter(|(_, value)| !value.is_null()).collect()
}

/// A list or a map, unless it is empty.
pub(crate) fn filled<'a, T>(all: &'a T) -> Option<&'a T>
where
    &'a T: IntoIterator,
{
    all.into_iter().next().is_some().then_some(all)
}

/// Fields that are left out when they are empty.
pub(crate) trait Fields: SerializeMap {
    fn optional<T: Serialize>(&mut self, key: &'static str, value: Option<&T>) -> Result<(), Self::Error> {
        value.map_or(Ok(()), |value| self.serialize_entry(key, value))
    }

    fn list(&mut self, key: &'static str, list: &[String]) -> Result<(), Self::Error> {
        if list.is_empty() { Ok(()) } else { self.serialize_entry(key, list) }
    }

    /// The kind of the object, which only JSON-RPC of 0.3 writes.
    fn kind(&mut self, encoding: Encoding, kind: &str) -> Result<(), Self::Error> {
        match encoding {
            Encoding::V0_3 => self.serialize_entry("kind", kind),
            Encoding::V0_3Rest | Encoding::V1_0 => Ok(()),
        }
    }

    /// The context of a task, which 1.0 leaves out if there is none.
    fn context(&mut self, encoding: Encoding, id: &str) -> Result<(), Self::Error> {
        match encoding {
            Encoding::V1_0 if id.is_empty() => Ok(()),
            Encoding::V0_3 | Encoding::V0_3Rest | Encoding::V1_0 => self.serialize_entry("contextId", id),
        }
    }

    /// A flag, which 1.0 leaves out if it is not set.
    fn flag(&mut self, encoding: Encoding, key: &'static str, is_set: bool) -> Result<(), Self::Error> {
        match encoding {
            Encoding::V1_0 if !is_set => Ok(()),
            Encoding::V0_3 | Encoding::V0_3Rest | Encoding::V1_0 => self.serialize_entry(key, &is_set),
        }
    }

    fn metadata(&mut self, metadata: &Map) -> Result<(), Self::Error> {
        if metadata.is_empty() { Ok(()) } else { self.serialize_entry("metadata", metadata) }
    }
}

impl<M: SerializeMap> Fields for M {}

impl<T> Serialize for Wire<'_, [T]>
where
    for<'b> Wire<'b, T>: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|item| Wire(self.0, item)))
    }
}

/// One of several objects: their keys distinguish them, except on JSON-RPC of 0.3.
fn one_of<S: Serializer>(
    encoding: Encoding,
    key: &'static str,
    thing: &impl Serialize,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match encoding {
        Encoding::V0_3 => thing.serialize(serializer),
        Encoding::V0_3Rest | Encoding::V1_0 => serializer.collect_map([(key, thing)]),
    }
}

fn message_key(encoding: Encoding) -> &'static str {
    if encoding == Encoding::V0_3Rest { "msg" } else { "message" }
}

impl Serialize for Wire<'_, Update> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Update::Task(task) => one_of(self.0, "task", &Wire(self.0, task), serializer),
            Update::Message(message) => one_of(self.0, message_key(self.0), &Wire(self.0, message), serializer),
            Update::Status(update) => one_of(self.0, "statusUpdate", &Wire(self.0, update), serializer),
            Update::Artifact(update) => one_of(self.0, "artifactUpdate", &Wire(self.0, update), serializer),
        }
    }
}

impl Serialize for Wire<'_, Sent> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.1 {
            Sent::Task(task) => one_of(self.0, "task", &Wire(self.0, task), serializer),
            Sent::Message(message) => one_of(self.0, message_key(self.0), &Wire(self.0, message), serializer),
        }
    }
}

impl Serialize for Wire<'_, Task> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(encoding, task) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.kind(encoding, "task")?;
        map.serialize_entry("id", &task.id)?;
        map.context(encoding, &task.context_id)?;
        map.serialize_entry("status", &Wire(encoding, &task.status))?;
        if !task.history.is_empty() {
            map.serialize_entry("history", &Wire(encoding, task.history.as_slice()))?;
        }
        if !task.artifacts.is_empty() {
            map.serialize_entry("artifacts", &Wire(encoding, task.artifacts.as_slice()))?;
        }
        map.metadata(&task.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, TaskList> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(encoding, list) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("tasks", &Wire(encoding, list.tasks.as_slice()))?;
        map.serialize_entry("nextPageToken", &list.next_page_token)?;
        map.serialize_entry("pageSize", &list.page_size)?;
        map.serialize_entry("totalSize", &list.total_size)?;
        map.end()
    }
}

impl Serialize for Wire<'_, TaskStatus> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(encoding, status) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", encoding.state_word(status.state))?;
        map.optional("message", status.message.as_ref().map(|message| Wire(encoding, message)).as_ref())?;
        map.optional("timestamp", status.timestamp.as_ref())?;
        map.end()
    }
}

impl Serialize for Wire<'_, StatusUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(encoding, update) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.kind(encoding, "status-update")?;
        map.serialize_entry("taskId", &update.task_id)?;
        map.context(encoding, &update.context_id)?;
        map.serialize_entry("status", &Wire(encoding, &update.status))?;
        if encoding != Encoding::V1_0 {
            map.serialize_entry("final", &update.is_final)?;
        }
        map.metadata(&update.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, ArtifactUpdate> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(encoding, update) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.kind(encoding, "artifact-update")?;
        map.serialize_entry("taskId", &update.task_id)?;
        map.context(encoding, &update.context_id)?;
        map.serialize_entry("artifact", &Wire(encoding, &update.artifact))?;
        map.flag(encoding, "append", update.append)?;
        map.flag(encoding, "lastChunk", update.last_chunk)?;
        map.metadata(&update.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Artifact> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(encoding, artifact) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("artifactId", &artifact.artifact_id)?;
        map.optional("name", artifact.name.as_ref())?;
        map.optional("description", artifact.description.as_ref())?;
        map.serialize_entry("parts", &Wire(encoding, artifact.parts.as_slice()))?;
        map.list("extensions", &artifact.extensions)?;
        map.metadata(&artifact.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Message> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(encoding, message) = *self;
        let mut map = serializer.serialize_map(None)?;
        map.kind(encoding, "message")?;
        map.serialize_entry("messageId", &message.message_id)?;
        map.serialize_entry("role", encoding.role_word(message.role))?;
        let parts = if encoding == Encoding::V0_3Rest { "content" } else { "parts" };
        map.serialize_entry(parts, &Wire(encoding, message.parts.as_slice()))?;
        map.optional("contextId", message.context_id.as_ref())?;
        map.optional("taskId", message.task_id.as_ref())?;
        // The gRPC message of 0.3 has no such field.
        if encoding != Encoding::V0_3Rest {
            map.list("referenceTaskIds", &message.reference_task_ids)?;
        }
        map.list("extensions", &message.extensions)?;
        map.metadata(&message.metadata)?;
        map.end()
    }
}

impl Serialize for Wire<'_, Part> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Encoding::V0_3 => v0_3::write_part(self.1, serializer),
            Encoding::V0_3Rest => v0_3::rest::write_part(self.1, serializer),
            Encoding::V1_0 => v1_0::write_part(self.1, serializer),
        }
    }
}
