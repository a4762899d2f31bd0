//! What a session's events are to A2A clients: frames, each made once for everybody and written once for each way of
//! writing it.

use std::io;
use std::sync::{Arc, OnceLock};

use multitap_a2a::devtool::Spelling;
use multitap_a2a::{Dialect, TaskState};
use multitap_event::{
    FileChange, MessageId, Question, QuestionId, Ruling, Timestamp, TokenUsage, ToolCompleted, ToolStarted, UserMessage,
};
use serde::Serialize;
use serde_json::Value;

use super::cursor::Cursor;
use super::encode::{self, Mould};
use super::name;

/// A way of writing frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    pub(crate) dialect: Dialect,
    pub(crate) spelling: Spelling,
}

/// How many ways of writing there are.
const FORMS: usize = 4;

impl Form {
    fn index(self) -> usize {
        let dialect = match self.dialect {
            Dialect::V0_3 => 0,
            Dialect::V1_0 => 1,
        };
        dialect * 2 + usize::from(self.spelling == Spelling::Coder)
    }
}

/// One thing that clients are told.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) cursor: Cursor,
    pub(crate) at: Timestamp,
    pub(crate) place: Arc<Place>,
    pub(crate) body: Body,
    /// The streams of its turn end with it.
    pub(crate) ends: Option<Ends>,
    /// The question it is about.
    pub(crate) question: Option<QuestionId>,
    /// About what it takes up in memory.
    bytes: usize,
    written: [OnceLock<Box<str>>; FORMS],
}

/// What a frame tells.
#[derive(Debug)]
pub(crate) enum Body {
    /// A prompt was accepted: it waits, or was handed to the agent.
    Prompted {
        message: UserMessage,
        queued: bool,
    },
    /// Words of a user that began no turn: they joined the running one, or the agent tells of an earlier conversation.
    Said(UserMessage),
    /// The task's state, and perhaps why or what changed with it.
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
    /// What the agent has to say about its end.
    pub(crate) message: Option<String>,
    pub(crate) usage: Option<TokenUsage>,
    /// What else a client may want to know, under our own URI.
    pub(crate) more: Vec<(&'static str, Value)>,
}

/// A tool call as it stood at that moment.
#[derive(Debug, Clone)]
pub(crate) struct ToolView {
    pub(crate) call: Arc<ToolStarted>,
    pub(crate) status: ToolStatus,
    /// The output so far while it runs, or the end of a long one.
    pub(crate) live: Option<Arc<str>>,
    /// The question that waits.
    pub(crate) asked: Option<Arc<Question>>,
    /// The question that was asked last, once it is no longer open: what was approved is what is being done.
    pub(crate) answered: Option<Arc<Question>>,
    /// The answer it was given.
    pub(crate) ruling: Option<Arc<Ruling>>,
    /// The files it changed.
    pub(crate) changes: Vec<Arc<FileChange>>,
    pub(crate) end: Option<Arc<ToolCompleted>>,
}

/// Where a tool call stands, in the extension's words.
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
    /// The turn is over.
    Turn,
    /// Somebody has to answer first.
    Asked,
}

impl Frame {
    pub(super) fn new(cursor: Cursor, at: Timestamp, place: Arc<Place>, body: Body) -> Self {
        // It may come to be written in more than one way.
        let bytes = size_of::<Self>() + 3 * body.size() + 1024;
        Self { cursor, at, place, body, ends: None, question: None, bytes, written: Default::default() }
    }

    /// The frame as JSON, as it stands in `result` or `params.event`.
    pub(crate) fn json(&self, form: Form) -> &str {
        self.written[form.index()].get_or_init(|| {
            let mould = Mould::fits(self)
                .then(|| self.place.moulds[form.index()].get_or_init(|| Mould::cast(&self.place, form)));
            let poured = mould.and_then(|mould| mould.as_ref()?.pour(self));
            poured.unwrap_or_else(|| encode::json(self, form)).into()
        })
    }

    /// Whether a later frame makes it superfluous: live output that is shown again with more behind it.
    pub(crate) fn is_live(&self) -> bool {
        matches!(&self.body, Body::Tool(tool) if tool.live.is_some() && tool.status == ToolStatus::Executing)
    }

    /// About what it takes up in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Body {
    /// About how long it is when it is written.
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

/// How long something is as JSON.
fn written(value: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    // Counting cannot fail, and what cannot be written takes up nothing.
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

/// Where in the session a frame belongs: the same for many that follow each other.
#[derive(Debug)]
pub(crate) struct Place {
    /// The session, which clients call a context.
    pub(crate) context: Arc<str>,
    pub(crate) task: Arc<str>,
    /// The turn it belongs to: the prompt that began it, or the agent's own name for it.
    pub(crate) turn: Option<Arc<str>>,
    /// Where the task stands.
    pub(crate) state: TaskState,
    pub(crate) model: Option<Arc<str>>,
    /// What the user's account is worth to the agent's maker, where the agent told.
    pub(crate) tier: Option<Arc<str>>,
    /// What text that is said here looks like, in each form; nothing where it has to be written piece by piece.
    moulds: [OnceLock<Option<Mould>>; FORMS],
}

impl Place {
    /// Where a session begins.
    pub(super) fn first(session: &str) -> Self {
        Self {
            context: session.into(),
            task: name::lasting(session).into(),
            turn: None,
            state: TaskState::Submitted,
            model: None,
            tier: None,
            moulds: Default::default(),
        }
    }

    /// To be changed: those who are at the place as it was stay there.
    pub(super) fn leave(place: &mut Arc<Self>) -> &mut Self {
        let place = Arc::make_mut(place);
        place.moulds = Default::default();
        place
    }
}

impl Clone for Place {
    fn clone(&self) -> Self {
        let Self { context, task, turn, state, model, tier, moulds: _ } = self;
        Self {
            context: context.clone(),
            task: task.clone(),
            turn: turn.clone(),
            state: *state,
            model: model.clone(),
            tier: tier.clone(),
            moulds: Default::default(),
        }
    }
}
