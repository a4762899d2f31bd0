//! Frames: a session's events as A2A clients see them. Each frame is made once for all clients, and encoded once for
//! each form.

use std::io;
use std::sync::{Arc, OnceLock};

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, Encoding, TaskState, grpc};
use multitap_event::{
    FileChange, MessageId, Question, QuestionId, Ruling, Timestamp, TokenUsage, ToolCompleted, ToolStarted, UserMessage,
};
use serde::Serialize;
use serde_json::Value;

use super::cursor::Cursor;
use super::encode::{self, TextTemplate};
use super::name;

/// How a frame is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub(crate) encoding: Encoding,
    pub(crate) spelling: Spelling,
}

/// Number of forms.
const FORMS: usize = 6;

impl Form {
    /// As on JSON-RPC.
    pub(crate) fn of(dialect: Dialect, spelling: Spelling) -> Self {
        Self { encoding: dialect.into(), spelling }
    }

    pub(crate) fn dialect(self) -> Dialect {
        self.encoding.dialect()
    }

    fn index(self) -> usize {
        let encoding = match self.encoding {
            Encoding::V0_3 => 0,
            Encoding::V0_3Rest => 1,
            Encoding::V1_0 => 2,
        };
        encoding * 2 + usize::from(self.spelling == Spelling::Coder)
    }
}

/// One message to clients.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) cursor: Cursor,
    pub(crate) at: Timestamp,
    pub(crate) scope: Arc<FrameScope>,
    pub(crate) body: Body,
    /// Set if the streams of its turn end with it.
    pub(crate) ends: Option<Ends>,
    /// The question it is about.
    pub(crate) question: Option<QuestionId>,
    /// Approximate size in memory.
    bytes: usize,
    written: [OnceLock<Box<str>>; FORMS],
    /// For gRPC, in both spellings.
    protobuf: [OnceLock<Option<Box<[u8]>>>; 2],
}

/// The content of a frame.
#[derive(Debug)]
pub(crate) enum Body {
    /// A prompt was accepted: it is queued, or the agent has it.
    Prompted {
        message: UserMessage,
        queued: bool,
    },
    /// Text of a user that began no turn: it steered the running one, or belongs to an earlier conversation.
    Said(UserMessage),
    /// The task's state, and the reason or what else changed.
    State(StateChange),
    Text {
        message_id: MessageId,
        text: String,
        by_user: bool,
        parent: Option<Arc<str>>,
    },
    Thought {
        message_id: MessageId,
        text: String,
        parent: Option<Arc<str>>,
    },
    Tool(ToolView),
}

#[derive(Debug, Default)]
pub(crate) struct StateChange {
    /// An unexpected error of the run.
    pub(crate) error: Option<String>,
    /// The agent's message about the end of the turn.
    pub(crate) message: Option<String>,
    pub(crate) usage: Option<TokenUsage>,
    /// Further fields under our own URI.
    pub(crate) more: Vec<(&'static str, Value)>,
}

/// A tool call at that moment.
#[derive(Debug, Clone)]
pub(crate) struct ToolView {
    pub(crate) call: Arc<ToolStarted>,
    pub(crate) status: ToolStatus,
    /// Output so far while it runs; of a long output, its end.
    pub(crate) live: Option<Arc<str>>,
    /// The open question.
    pub(crate) asked: Option<Arc<Question>>,
    /// The last question, once it is closed: the approved details are those that run.
    pub(crate) answered: Option<Arc<Question>>,
    /// The answer it was given.
    pub(crate) ruling: Option<Arc<Ruling>>,
    /// The files it changed.
    pub(crate) changes: Vec<Arc<FileChange>>,
    pub(crate) end: Option<Arc<ToolCompleted>>,
}

/// State of a tool call, in the extension's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolStatus {
    Pending,
    Executing,
    Succeeded,
    Failed,
    Cancelled,
}

impl ToolStatus {
    pub(crate) fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Executing => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// Why a stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The turn ended.
    Turn,
    /// The agent asks a question.
    Asked,
}

impl Frame {
    pub(super) fn new(cursor: Cursor, at: Timestamp, scope: Arc<FrameScope>, body: Body) -> Self {
        // A body may be encoded in several forms.
        let bytes = size_of::<Self>() + 3 * body.size() + 1024;
        Self {
            cursor,
            at,
            scope,
            body,
            ends: None,
            question: None,
            bytes,
            written: Default::default(),
            protobuf: Default::default(),
        }
    }

    /// The frame as JSON, as sent in `result` or `params.event`.
    pub(crate) fn json(&self, form: Form) -> &str {
        self.written[form.index()].get_or_init(|| {
            let template = TextTemplate::matches(self)
                .then(|| self.scope.templates[form.index()].get_or_init(|| TextTemplate::compile(&self.scope, form)));
            let rendered = template.and_then(|template| template.as_ref()?.render(self));
            rendered.unwrap_or_else(|| encode::json(self, form)).into()
        })
    }

    /// The frame as a message of gRPC; `None` if it cannot be written as one.
    pub(crate) fn protobuf(&self, spelling: Spelling) -> Option<&[u8]> {
        let written = self.protobuf[usize::from(spelling == Spelling::Coder)].get_or_init(|| {
            let json = self.json(Form::of(Dialect::V1_0, spelling));
            grpc::write_update(json).ok().map(Vec::into_boxed_slice)
        });
        written.as_deref()
    }

    /// Whether a later frame replaces it: live output, which is sent again with more at its end.
    pub(crate) fn is_live(&self) -> bool {
        matches!(&self.body, Body::Tool(tool) if tool.live.is_some() && tool.status == ToolStatus::Executing)
    }

    /// Approximate size in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Body {
    /// Approximate size when encoded.
    fn size(&self) -> usize {
        match self {
            Self::Prompted { message, .. } | Self::Said(message) => {
                message.content.len() + message.images.iter().map(|image| image.data.len()).sum::<usize>()
            }
            Self::State(_) => 0,
            Self::Text { text, .. } | Self::Thought { text, .. } => text.len(),
            Self::Tool(tool) => {
                let question = tool.asked.as_ref().or(tool.answered.as_ref());
                let parts = [written(&tool.call.arguments), written(&question), written(&tool.changes)];
                tool.live.as_ref().map_or(0, |live| live.len()) + parts.iter().sum::<usize>() + written(&tool.end)
            }
        }
    }
}

/// Size of a value as JSON.
fn written(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // Counting cannot fail, and a value that cannot be encoded counts as empty.
    serde_json::to_writer(&mut counted, value).ok();
    counted.0
}

struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The task and turn of a frame. Consecutive frames usually share it.
#[derive(Debug)]
pub(crate) struct FrameScope {
    /// The session, which clients call a context.
    pub(crate) context: Arc<str>,
    pub(crate) task: Arc<str>,
    /// The prompt that began the turn, or the agent's own name for the turn.
    pub(crate) turn: Option<Arc<str>>,
    pub(crate) state: TaskState,
    pub(crate) model: Option<Arc<str>>,
    /// Subscription tier of the user's account, if the agent reports it.
    pub(crate) tier: Option<Arc<str>>,
    /// Templates for text, one for each form; `None` where text must be encoded as a whole.
    templates: [OnceLock<Option<TextTemplate>>; FORMS],
}

impl FrameScope {
    /// Scope of the first frame of a session.
    pub(super) fn first(session: &str) -> Self {
        Self {
            context: session.into(),
            task: name::lasting(session).into(),
            turn: None,
            state: TaskState::Submitted,
            model: None,
            tier: None,
            templates: Default::default(),
        }
    }

    /// Returns the scope for a change: frames that were made before keep their scope.
    pub(super) fn make_mut(scope: &mut Arc<Self>) -> &mut Self {
        let scope = Arc::make_mut(scope);
        scope.templates = Default::default();
        scope
    }
}

impl Clone for FrameScope {
    fn clone(&self) -> Self {
        let Self { context, task, turn, state, model, tier, templates: _ } = self;
        Self {
            context: context.clone(),
            task: task.clone(),
            turn: turn.clone(),
            state: *state,
            model: model.clone(),
            tier: tier.clone(),
            templates: Default::default(),
        }
    }
}
