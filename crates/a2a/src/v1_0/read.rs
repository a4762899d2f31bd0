//! 1.0 read into the model. A client must be exact; an agent is forgiven what can be lived without. Objects are told
//! apart by the one field they have.

use super::{role_word, state_word};
use crate::error::Error;
use crate::model::{
    Artifact, ArtifactUpdate, Content, Message, Part, Role, Sent, StatusUpdate, Task, TaskList, TaskState, TaskStatus,
    Update,
};
use crate::read::{MOST, Node, short};
use crate::request::{Authentication, PushConfig};

pub(crate) fn update(node: &Node<'_>) -> Result<Update, Error> {
    match only(node, &["task", "message", "statusUpdate", "artifactUpdate"])? {
        "task" => node.inside("task", task).map(Update::Task),
        "message" => node.inside("message", message).map(Update::Message),
        "statusUpdate" => node.inside("statusUpdate", status_update).map(Update::Status),
        _ => node.inside("artifactUpdate", artifact_update).map(Update::Artifact),
    }
}

pub(crate) fn sent(node: &Node<'_>) -> Result<Sent, Error> {
    match only(node, &["task", "message"])? {
        "task" => node.inside("task", task).map(Sent::Task),
        _ => node.inside("message", message).map(Sent::Message),
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
        page_size: node.number_or_digits("pageSize", &(0..=MOST))?.unwrap_or_default(),
        total_size: node.number_or_digits("totalSize", &(0..=MOST))?.unwrap_or_default().into(),
    })
}

fn status(node: &Node<'_>) -> Result<TaskStatus, Error> {
    Ok(TaskStatus {
        state: node.get("state").map(|word| word.str().map(state)).transpose()?.flatten().unwrap_or_default(),
        message: node.opt_inside("message", message)?,
        timestamp: node.opt_string("timestamp")?,
    })
}

pub(crate) fn state(word: &str) -> Option<TaskState> {
    TaskState::ALL.into_iter().find(|state| state_word(*state) == word)
}

fn status_update(node: &Node<'_>) -> Result<StatusUpdate, Error> {
    Ok(StatusUpdate {
        task_id: node.id("taskId")?,
        context_id: node.opt_string("contextId")?.unwrap_or_default(),
        status: node.inside("status", status)?,
        // The dialect does not say: the stream ends.
        is_final: false,
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
    let message = Message {
        message_id: node.id_of_client("messageId")?,
        role: role(node)?,
        parts: node.each_object("parts", part)?,
        // Empty is how `ProtoJSON` may write what is not there.
        context_id: node.opt_string("contextId")?.filter(|id| !id.is_empty()),
        task_id: node.opt_string("taskId")?.filter(|id| !id.is_empty()),
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
    if node.is_of_agent() && node.get("role").is_none_or(|role| role.value() == "ROLE_UNSPECIFIED") {
        return Ok(Role::Agent);
    }
    let field = node.need("role")?;
    let word = field.str()?;
    let role = [Role::User, Role::Agent].into_iter().find(|role| role_word(*role) == word);
    role.ok_or_else(|| field.wrong(format_args!("must be ROLE_USER or ROLE_AGENT, not {}", short(field.value()))))
}

fn part(node: &Node<'_>) -> Result<Part, Error> {
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

/// A config and the task it is for.
pub(crate) fn task_push_config(node: &Node<'_>) -> Result<(String, PushConfig), Error> {
    Ok((node.id("taskId")?, push_config(node)?))
}
