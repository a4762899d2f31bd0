//! Reads received JSON into the model. Strict with clients; errors of agents in inessential fields are tolerated.
//!
//! Here is what both dialects share, or where only a name or a field differs; the rest is in their own modules.

use super::{MOST, Node, short};
use crate::dialect::Dialect;
use crate::encoding::Encoding;
use crate::error::Error;
use crate::model::{
    Artifact, ArtifactUpdate, Message, Part, Role, StatusUpdate, Task, TaskList, TaskState, TaskStatus, Update,
};
use crate::{v0_3, v1_0};

pub(crate) fn update(dialect: Dialect, node: &Node<'_>) -> Result<Update, Error> {
    match dialect {
        Dialect::V0_3 => v0_3::update(node),
        Dialect::V1_0 => v1_0::update(node),
    }
}

pub(crate) fn task(dialect: Dialect, node: &Node<'_>) -> Result<Task, Error> {
    Ok(Task {
        id: node.id("id")?,
        context_id: node.opt_string("contextId")?.unwrap_or_default(),
        status: node.inside("status", |node| status(dialect, node))?,
        history: node.each_object("history", |node| message(dialect, node))?,
        artifacts: node.each_object("artifacts", |node| artifact(dialect, node))?,
        metadata: node.map("metadata")?,
    })
}

pub(crate) fn task_list(dialect: Dialect, node: &Node<'_>) -> Result<TaskList, Error> {
    Ok(TaskList {
        tasks: node.each_object("tasks", |node| task(dialect, node))?,
        next_page_token: node.opt_string("nextPageToken")?.unwrap_or_default(),
        page_size: node.number(dialect, "pageSize", &(0..=MOST))?.unwrap_or_default(),
        total_size: node.number(dialect, "totalSize", &(0..=MOST))?.unwrap_or_default().into(),
    })
}

fn status(dialect: Dialect, node: &Node<'_>) -> Result<TaskStatus, Error> {
    let word = match dialect {
        Dialect::V0_3 => Some(node.need("state")?),
        Dialect::V1_0 => node.get("state"),
    };
    let state = word.map(|word| word.str().map(|word| state(dialect, word))).transpose()?.flatten();
    Ok(TaskStatus {
        state: state.unwrap_or_default(),
        message: node.opt_inside("message", |node| message(dialect, node))?,
        timestamp: node.opt_string("timestamp")?,
    })
}

pub(crate) fn state(dialect: Dialect, word: &str) -> Option<TaskState> {
    TaskState::ALL.into_iter().find(|state| Encoding::from(dialect).state_word(*state) == word)
}

pub(crate) fn status_update(dialect: Dialect, node: &Node<'_>) -> Result<StatusUpdate, Error> {
    Ok(StatusUpdate {
        task_id: node.id("taskId")?,
        context_id: node.opt_string("contextId")?.unwrap_or_default(),
        status: node.inside("status", |node| status(dialect, node))?,
        // 1.0 has no field for it: the stream ends.
        is_final: dialect == Dialect::V0_3 && node.flag("final")?,
        metadata: node.map("metadata")?,
    })
}

pub(crate) fn artifact_update(dialect: Dialect, node: &Node<'_>) -> Result<ArtifactUpdate, Error> {
    Ok(ArtifactUpdate {
        task_id: node.id("taskId")?,
        context_id: node.opt_string("contextId")?.unwrap_or_default(),
        artifact: node.inside("artifact", |node| artifact(dialect, node))?,
        append: node.flag("append")?,
        last_chunk: node.flag("lastChunk")?,
        metadata: node.map("metadata")?,
    })
}

fn artifact(dialect: Dialect, node: &Node<'_>) -> Result<Artifact, Error> {
    Ok(Artifact {
        artifact_id: node.opt_string("artifactId")?.unwrap_or_default(),
        name: node.opt_string("name")?,
        description: node.opt_string("description")?,
        parts: node.each_object("parts", |node| part(dialect, node))?,
        extensions: node.strings("extensions")?,
        metadata: node.map("metadata")?,
    })
}

pub(crate) fn message(dialect: Dialect, node: &Node<'_>) -> Result<Message, Error> {
    if dialect == Dialect::V0_3
        && let Some(kind) = node.get("kind").filter(|kind| kind.value() != "message")
    {
        return Err(kind.wrong(format_args!("must be message, not {}", short(kind.value()))));
    }
    // In `ProtoJSON`, empty may mean absent.
    let is_given = |id: &String| dialect == Dialect::V0_3 || !id.is_empty();
    let message = Message {
        message_id: node.id_of_client("messageId")?,
        role: role(dialect, node)?,
        parts: node.each_object("parts", |node| part(dialect, node))?,
        context_id: node.opt_string("contextId")?.filter(is_given),
        task_id: node.opt_string("taskId")?.filter(is_given),
        reference_task_ids: node.strings("referenceTaskIds")?,
        extensions: node.strings("extensions")?,
        metadata: node.map("metadata")?,
    };
    if message.parts.is_empty() && !node.is_of_agent() {
        return Err(node.wrong_field("parts", "must hold at least one part"));
    }
    Ok(message)
}

fn role(dialect: Dialect, node: &Node<'_>) -> Result<Role, Error> {
    let is_unspecified = |role: &Node<'_>| dialect == Dialect::V1_0 && role.value() == "ROLE_UNSPECIFIED";
    if node.is_of_agent() && node.get("role").is_none_or(|role| is_unspecified(&role)) {
        return Ok(Role::Agent);
    }
    let field = node.need("role")?;
    let word = field.str()?;
    let role = [Role::User, Role::Agent].into_iter().find(|role| Encoding::from(dialect).role_word(*role) == word);
    role.ok_or_else(|| {
        let [user, agent] = [Role::User, Role::Agent].map(|role| Encoding::from(dialect).role_word(role));
        field.wrong(format_args!("must be {user} or {agent}, not {}", short(field.value())))
    })
}

fn part(dialect: Dialect, node: &Node<'_>) -> Result<Part, Error> {
    match dialect {
        Dialect::V0_3 => v0_3::part(node),
        Dialect::V1_0 => v1_0::part(node),
    }
}
