//! Frames to A2A updates, in the extension's spelling or in the shipped one. Pure.

mod template;
mod tool;

use std::sync::Arc;

use multitap_a2a::devtool::{self, AgentThought, DevtoolEventKind, EventMetadata, Spelling, coder};
use multitap_a2a::{
    Artifact, ArtifactUpdate, Content, Map, Message, Part, Role, StatusUpdate, Task, TaskState, TaskStatus, Update,
};
use multitap_event::{ClientRef, UserMessage, shortened};
use serde_json::{Value, json};

pub(super) use self::template::TextTemplate;
use super::frame::{Body, Ends, Form, Frame, StateChange, ToolStatus, ToolView};

/// Our own key in any `metadata`, for what A2A and its extension have no field.
pub(crate) const OURS: &str = "https://github.com/multitap/multitap/blob/main/docs/a2a.md";

/// Most characters of a thought's subject that is made of its text.
const SUBJECT: usize = 80;

pub(super) fn json(frame: &Frame, form: Form) -> String {
    form.encoding.write_update(&update(frame, form.spelling))
}

fn update(frame: &Frame, spelling: Spelling) -> Update {
    match (&frame.body, spelling) {
        (Body::Prompted { message, queued }, _) => Update::Task(prompted(frame, message, *queued, spelling)),
        (Body::Tool(tool), Spelling::Coder) if frame.is_live() => Update::Artifact(screen(frame, tool)),
        _ => Update::Status(status_update(frame, spelling)),
    }
}

/// The state of a task in that spelling. In the shipped one, a task whose turn is over waits for the next turn.
pub(crate) fn state(state: TaskState, spelling: Spelling) -> TaskState {
    match (state, spelling) {
        (TaskState::Completed, Spelling::Coder) => TaskState::InputRequired,
        (state, _) => state,
    }
}

fn status_update(frame: &Frame, spelling: Spelling) -> StatusUpdate {
    StatusUpdate {
        task_id: frame.scope.task.to_string(),
        context_id: frame.scope.context.to_string(),
        status: TaskStatus {
            state: state(frame.scope.state, spelling),
            message: message(frame, spelling),
            timestamp: Some(frame.at.to_string()),
        },
        is_final: frame.ends.is_some(),
        metadata: metadata(frame, spelling),
    }
}

/// The content of a frame as a message of the agent.
pub(crate) fn message(frame: &Frame, spelling: Spelling) -> Option<Message> {
    let (message_id, role, part) = match &frame.body {
        Body::Prompted { message, .. } | Body::Said(message) => return Some(said_by_user(frame, message)),
        Body::State(change) => (frame.own_id(), Role::Agent, Part::text(change.message.clone()?)),
        Body::Text { message_id, text, by_user, .. } => {
            let role = if *by_user { Role::User } else { Role::Agent };
            (message_id.to_string(), role, Part::text(text.as_str()))
        }
        Body::Thought { message_id, text, .. } => {
            let thought = thought(text);
            let data = json!({ "subject": thought.subject, "description": thought.description });
            (message_id.to_string(), Role::Agent, Part::data(data))
        }
        Body::Tool(tool) => {
            (frame.own_id(), Role::Agent, Part::data(tool::data(tool, frame.scope.turn.as_deref(), spelling)))
        }
    };
    let (context_id, task_id) = (Some(frame.scope.context.to_string()), Some(frame.scope.task.to_string()));
    Some(Message { message_id, role, parts: vec![part], context_id, task_id, ..Message::default() })
}

fn prompted(frame: &Frame, message: &UserMessage, queued: bool, spelling: Spelling) -> Task {
    let mut metadata = metadata(frame, spelling);
    if queued && let Some(Value::Object(ours)) = metadata.get_mut(OURS) {
        ours.insert("queued".to_owned(), true.into());
    }
    Task {
        id: frame.scope.task.to_string(),
        context_id: frame.scope.context.to_string(),
        status: TaskStatus { state: frame.scope.state, message: None, timestamp: Some(frame.at.to_string()) },
        history: vec![said_by_user(frame, message)],
        artifacts: Vec::new(),
        metadata,
    }
}

fn said_by_user(frame: &Frame, message: &UserMessage) -> Message {
    let images = message.images.iter().map(|image| Part {
        content: Content::Raw(image.data.clone()),
        filename: None,
        media_type: Some(image.media_type.clone()),
        metadata: Map::new(),
    });
    let prompt = message.prompt_id.as_ref().map(|id| id.as_str());
    let given = message.sent_as.as_deref().or(prompt).or(message.message_id.as_ref().map(|id| id.as_str()));
    let id = given.map_or_else(|| frame.own_id(), str::to_owned);
    Message {
        message_id: id,
        role: Role::User,
        parts: std::iter::once(Part::text(message.content.as_str())).chain(images).collect(),
        context_id: Some(frame.scope.context.to_string()),
        task_id: Some(frame.scope.task.to_string()),
        metadata: message.from.as_ref().map(|from| ours(json!({ "from": who(from) }))).unwrap_or_default(),
        ..Message::default()
    }
}

/// A client as JSON.
fn who(client: &ClientRef) -> Value {
    json!({ "client": client.client, "door": client.door })
}

fn ours(value: Value) -> Map {
    Map::from_iter([(OURS.to_owned(), value)])
}

/// The kind of an event, in both spellings.
fn kind(frame: &Frame) -> (DevtoolEventKind, DevtoolEventKind) {
    match &frame.body {
        Body::Prompted { .. } | Body::State(_) => (DevtoolEventKind::StateChange, DevtoolEventKind::StateChange),
        Body::Text { .. } | Body::Said(_) => (DevtoolEventKind::TextContent, DevtoolEventKind::TextContent),
        Body::Thought { .. } => (DevtoolEventKind::Thought, DevtoolEventKind::Thought),
        // For a question, the specification's example has the kind of an update, the shipped server that of a
        // confirmation.
        Body::Tool(tool) if tool.asked.is_some() => {
            (DevtoolEventKind::ToolCallUpdate, DevtoolEventKind::ToolCallConfirmation)
        }
        Body::Tool(_) => (DevtoolEventKind::ToolCallUpdate, DevtoolEventKind::ToolCallUpdate),
    }
}

fn metadata(frame: &Frame, spelling: Spelling) -> Map {
    let (kind, shipped) = kind(frame);
    let change = match &frame.body {
        Body::State(change) => Some(change),
        _ => None,
    };
    let text = |text: &Option<Arc<str>>| text.as_ref().map(ToString::to_string);
    let about = EventMetadata {
        kind,
        model: text(&frame.scope.model),
        user_tier: text(&frame.scope.tier),
        error: change.and_then(|change| change.error.clone()),
        correlation_id: frame.question.as_ref().map(|question| question.as_str().to_owned()),
    };
    let mut metadata = Map::new();
    // Google's server has these fields outside its key.
    if spelling == Spelling::Coder {
        metadata.extend(about.model.clone().map(|model| ("model".to_owned(), model.into())));
        metadata.extend(about.user_tier.clone().map(|tier| ("userTier".to_owned(), tier.into())));
        metadata.extend(about.error.clone().map(|error| ("error".to_owned(), error.into())));
    }
    metadata.insert(devtool::URI.to_owned(), serde_json::to_value(about).unwrap_or_default());
    metadata.insert(coder::KEY.to_owned(), coder::metadata(shipped));
    metadata.insert(OURS.to_owned(), own_metadata(frame, change).into());
    metadata
}

fn own_metadata(frame: &Frame, change: Option<&StateChange>) -> Map {
    let mut own = Map::from_iter([("cursor".to_owned(), Value::from(frame.cursor.to_string()))]);
    if let Some(change) = change {
        own.extend(change.usage.map(|usage| ("usage".to_owned(), serde_json::to_value(usage).unwrap_or_default())));
        own.extend(change.more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    }
    let parent = match &frame.body {
        Body::Text { parent, .. } | Body::Thought { parent, .. } => parent.as_deref().map(str::to_owned),
        Body::Tool(tool) => tool.call.parent_tool_id.as_ref().map(ToString::to_string),
        Body::Prompted { .. } | Body::Said(_) | Body::State(_) => None,
    };
    own.extend(parent.map(|parent| ("parentToolCallId".to_owned(), parent.into())));
    if let Body::Tool(tool) = &frame.body {
        own.extend(tool::changes(tool).map(|changes| ("changes".to_owned(), changes)));
    }
    if let Body::Tool(ToolView { ruling: Some(ruling), .. }) = &frame.body {
        own.insert("settledBy".to_owned(), who(&ruling.settled_by));
        own.insert("selectedOptionId".to_owned(), ruling.selected_option_id.as_str().into());
    }
    own
}

/// The live output in the shipped spelling: an artifact that is replaced each time.
fn screen(frame: &Frame, tool: &ToolView) -> ArtifactUpdate {
    ArtifactUpdate {
        task_id: frame.scope.task.to_string(),
        context_id: frame.scope.context.to_string(),
        artifact: Artifact {
            artifact_id: coder::output_artifact_id(tool.call.tool_id.as_str()),
            parts: vec![Part::text(tool.live.as_deref().unwrap_or_default())],
            ..Artifact::default()
        },
        append: false,
        last_chunk: false,
        metadata: metadata(frame, Spelling::Coder),
    }
}

/// A thought with its headline (`**headline**`); without one, its first words are the headline.
fn thought(text: &str) -> AgentThought {
    let text = text.trim();
    let headline = text.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    if let Some((subject, description)) = headline.filter(|(subject, _)| !subject.contains('\n')) {
        return AgentThought { subject: subject.trim().to_owned(), description: description.trim().to_owned() };
    }
    AgentThought { subject: shortened(text.lines().next().unwrap_or_default(), SUBJECT), description: text.to_owned() }
}

impl Frame {
    /// An id for content without one.
    fn own_id(&self) -> String {
        format!("{}-{}", self.scope.context, self.cursor)
    }

    /// Whether it reports an open question.
    pub(crate) fn is_asking(&self) -> bool {
        self.ends == Some(Ends::Asked) || matches!(&self.body, Body::Tool(tool) if tool.asked.is_some())
    }
}

impl From<ToolStatus> for devtool::ToolCallStatus {
    fn from(status: ToolStatus) -> Self {
        match status {
            ToolStatus::Pending => Self::Pending,
            ToolStatus::Executing => Self::Executing,
            ToolStatus::Succeeded => Self::Succeeded,
            ToolStatus::Failed => Self::Failed,
            ToolStatus::Cancelled => Self::Cancelled,
        }
    }
}
