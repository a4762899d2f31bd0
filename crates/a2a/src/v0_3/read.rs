//! 0.3 read into the model. A client must be exact; an agent is forgiven what can be lived without.

use serde_json::Value;

use super::{WRAPPED, role_word};
use crate::error::Error;
use crate::model::{
    Artifact, ArtifactUpdate, Content, Message, Part, Role, Sent, StatusUpdate, Task, TaskList, TaskState, TaskStatus,
    Update,
};
use crate::read::{MOST, Node, short};
use crate::request::{Authentication, PushConfig};

pub(crate) fn update(node: &Node<'_>) -> Result<Update, Error> {
    match node.need("kind")?.str()? {
        "task" => task(node).map(Update::Task),
        "message" => message(node).map(Update::Message),
        "status-update" => status_update(node).map(Update::Status),
        "artifact-update" => artifact_update(node).map(Update::Artifact),
        _ => Err(wrong_kind(node, "task, message, status-update or artifact-update")),
    }
}

pub(crate) fn sent(node: &Node<'_>) -> Result<Sent, Error> {
    match node.need("kind")?.str()? {
        "task" => task(node).map(Sent::Task),
        "message" => message(node).map(Sent::Message),
        _ => Err(wrong_kind(node, "task or message")),
    }
}

fn wrong_kind(node: &Node<'_>, known: &str) -> Error {
    let found = node.get("kind").map(|kind| short(kind.value())).unwrap_or_default();
    node.wrong_field("kind", format_args!("must be {known}, not {found}"))
}

pub(crate) fn task(node: &Node<'_>) -> Result<Task, Error> {
    Ok(Task {
        id: node.id("id")?,
        context_id: node.opt_string("contextId")?.unwrap_or_default(),
        status: node.inside("status", status)?,
        history: node.each_object("history", message)?,
        artifacts: node.each_object("artifacts", artifact)?,
        metadata: node.map("metadata")?,
    })
}

pub(crate) fn task_list(node: &Node<'_>) -> Result<TaskList, Error> {
    Ok(TaskList {
        tasks: node.each_object("tasks", task)?,
        next_page_token: node.opt_string("nextPageToken")?.unwrap_or_default(),
        page_size: node.number("pageSize", &(0..=MOST))?.unwrap_or_default(),
        total_size: node.number("totalSize", &(0..=MOST))?.unwrap_or_default().into(),
    })
}

fn status(node: &Node<'_>) -> Result<TaskStatus, Error> {
    Ok(TaskStatus {
        state: TaskState::of_word(node.need("state")?.str()?).unwrap_or_default(),
        message: node.opt_inside("message", message)?,
        timestamp: node.opt_string("timestamp")?,
    })
}

fn status_update(node: &Node<'_>) -> Result<StatusUpdate, Error> {
    Ok(StatusUpdate {
        task_id: node.id("taskId")?,
        context_id: node.opt_string("contextId")?.unwrap_or_default(),
        status: node.inside("status", status)?,
        is_final: node.flag("final")?,
        metadata: node.map("metadata")?,
    })
}

fn artifact_update(node: &Node<'_>) -> Result<ArtifactUpdate, Error> {
    Ok(ArtifactUpdate {
        task_id: node.id("taskId")?,
        context_id: node.opt_string("contextId")?.unwrap_or_default(),
        artifact: node.inside("artifact", artifact)?,
        append: node.flag("append")?,
        last_chunk: node.flag("lastChunk")?,
        metadata: node.map("metadata")?,
    })
}

fn artifact(node: &Node<'_>) -> Result<Artifact, Error> {
    Ok(Artifact {
        artifact_id: node.opt_string("artifactId")?.unwrap_or_default(),
        name: node.opt_string("name")?,
        description: node.opt_string("description")?,
        parts: node.each_object("parts", part)?,
        extensions: node.strings("extensions")?,
        metadata: node.map("metadata")?,
    })
}

pub(crate) fn message(node: &Node<'_>) -> Result<Message, Error> {
    if let Some(kind) = node.get("kind").filter(|kind| kind.value() != "message") {
        return Err(kind.wrong(format_args!("must be message, not {}", short(kind.value()))));
    }
    let message = Message {
        message_id: node.id_of_client("messageId")?,
        role: role(node)?,
        parts: node.each_object("parts", part)?,
        context_id: node.opt_string("contextId")?,
        task_id: node.opt_string("taskId")?,
        reference_task_ids: node.strings("referenceTaskIds")?,
        extensions: node.strings("extensions")?,
        metadata: node.map("metadata")?,
    };
    if message.parts.is_empty() && !node.is_of_agent() {
        return Err(node.wrong_field("parts", "must hold at least one part"));
    }
    Ok(message)
}

fn role(node: &Node<'_>) -> Result<Role, Error> {
    if node.is_of_agent() && !node.has("role") {
        return Ok(Role::Agent);
    }
    let field = node.need("role")?;
    let word = field.str()?;
    let role = [Role::User, Role::Agent].into_iter().find(|role| role_word(*role) == word);
    role.ok_or_else(|| field.wrong(format_args!("must be user or agent, not {}", short(field.value()))))
}

fn part(node: &Node<'_>) -> Result<Part, Error> {
    let mut part = match node.need("kind")?.str()? {
        "text" => Part::text(node.string("text")?),
        "file" => node.inside("file", file)?,
        "data" => data(node)?,
        _ => return Err(wrong_kind(node, "text, file or data")),
    };
    part.metadata = node.map("metadata")?;
    unwrap(&mut part);
    Ok(part)
}

fn file(node: &Node<'_>) -> Result<Part, Error> {
    let content = match (node.opt_string("bytes")?, node.opt_string("uri")?) {
        (Some(bytes), None) => Content::Raw(bytes),
        (None, Some(uri)) => Content::Url(uri),
        (None, None) => return Err(node.wrong("must hold bytes or uri")),
        (Some(_), Some(_)) => return Err(node.wrong("must hold either bytes or uri, not both")),
    };
    Ok(Part { filename: node.opt_string("name")?, media_type: node.opt_string("mimeType")?, ..Part::of(content) })
}

fn data(node: &Node<'_>) -> Result<Part, Error> {
    let data = node.need("data")?;
    if data.value().is_object() || node.is_of_agent() {
        Ok(Part::data(data.value().clone()))
    } else {
        Err(data.mismatch("an object"))
    }
}

/// Takes data out of the object that is there only because the dialect wants one.
fn unwrap(part: &mut Part) {
    let Content::Data(Value::Object(map)) = &mut part.content else { return };
    if map.len() != 1 || part.metadata.get(WRAPPED) != Some(&Value::Bool(true)) {
        return;
    }
    if let Some(value) = map.shift_remove("value") {
        part.content = Content::Data(value);
        part.metadata.shift_remove(WRAPPED);
    }
}

pub(crate) fn push_config(node: &Node<'_>) -> Result<PushConfig, Error> {
    Ok(PushConfig {
        id: node.opt_string("id")?,
        url: node.id("url")?,
        token: node.opt_string("token")?,
        authentication: node.opt_inside("authentication", |node| {
            Ok(Authentication { schemes: node.strings("schemes")?, credentials: node.opt_string("credentials")? })
        })?,
    })
}

/// A config and the task it is for.
pub(crate) fn task_push_config(node: &Node<'_>) -> Result<(String, PushConfig), Error> {
    Ok((node.id("taskId")?, node.inside("pushNotificationConfig", push_config)?))
}
