//! The agent of a conformance suite's system under test: it does what the id of a message begins with.
//!
//! What an agent of ours cannot cause (a bare message, a rejected task, an artifact by its address), is answered with a
//! completed or a failed turn.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    AgentEnd, Command, Draft, EventKind, FileChange, FileChangeType, Prompt, SessionConfig, TextChunk, Timestamp,
    ToolCompleted, ToolKind, ToolOutcome, ToolStarted, TurnEnd, TurnStatus, link,
};
use multitap_hub::{Launch, Launching};
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::agent::{asked, started, turn_started};

/// What the agent does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SutAction {
    /// Says a text.
    Complete,
    /// Says it in pieces.
    Pieces,
    /// Writes a file.
    WriteFile,
    /// Gives structured output.
    Output,
    /// Asks a question.
    Ask,
    Fail,
    /// Works for a while.
    Wait,
}

/// The beginnings of message ids that suites use. Of those that fit, the first counts.
pub const PREFIXES: [(&str, SutAction); 17] = [
    ("tck-complete-task", SutAction::Complete),
    ("tck-artifact-text", SutAction::Complete),
    ("tck-artifact-file-url", SutAction::WriteFile),
    ("tck-artifact-file", SutAction::WriteFile),
    ("tck-artifact-data", SutAction::Output),
    ("tck-message-response", SutAction::Complete),
    ("tck-input-required", SutAction::Ask),
    ("tck-reject-task", SutAction::Fail),
    ("tck-stream-001", SutAction::Complete),
    ("tck-stream-002", SutAction::Complete),
    ("tck-stream-003", SutAction::Complete),
    ("tck-stream-ordering-001", SutAction::Complete),
    ("tck-stream-artifact-text", SutAction::Complete),
    ("tck-stream-artifact-file", SutAction::WriteFile),
    ("tck-stream-artifact-chunked", SutAction::Pieces),
    ("test-resubscribe-message-id", SutAction::Wait),
    ("", SutAction::Complete),
];

impl SutAction {
    /// The action for a message with that id, and `other` for an id without meaning.
    pub fn of(id: &str, other: Self) -> Self {
        let mut fitting = PREFIXES.iter().filter(|(prefix, _)| !prefix.is_empty() && id.starts_with(prefix));
        fitting.next().map_or(other, |(_, action)| *action)
    }
}

/// Launches such agents.
#[derive(Debug)]
pub struct SutLaunch {
    /// For messages whose ids mean nothing.
    pub other: SutAction,
    /// How long it works where a suite wants to come back meanwhile.
    pub wait: Duration,
    tasks: TaskTracker,
}

impl SutLaunch {
    pub fn new(other: SutAction, wait: Duration) -> Arc<Self> {
        Arc::new(Self { other, wait, tasks: TaskTracker::new() })
    }
}

impl Launch for SutLaunch {
    fn launch(&self, _: SessionConfig) -> Launching {
        let (tasks, other, wait) = (self.tasks.clone(), self.other, self.wait);
        Box::pin(async move {
            let (link, end) = link();
            tasks.spawn(run(end, other, wait));
            Ok(link)
        })
    }

    fn all_gone(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}

/// Ends with its session.
async fn run(mut agent: AgentEnd, other: SutAction, wait: Duration) {
    let mut turns = 0;
    send(&agent, [started()]).await;
    while let Some(command) = agent.commands.recv().await {
        if let Command::Prompt(prompt) = command {
            turns += 1;
            send(&agent, [turn_started()]).await;
            let end = turn(&mut agent, &prompt, turns, other, wait).await;
            send(&agent, [EventKind::TurnCompleted(end)]).await;
        }
    }
}

async fn turn(agent: &mut AgentEnd, prompt: &Prompt, turn: u32, other: SutAction, wait: Duration) -> TurnEnd {
    let done = TurnEnd::of(TurnStatus::Completed);
    match SutAction::of(prompt.sent_as.as_deref().unwrap_or_default(), other) {
        SutAction::Complete => send(agent, [said(turn, "All done.")]).await,
        SutAction::Pieces => send(agent, ["All ", "is ", "done."].map(|piece| said(turn, piece))).await,
        SutAction::WriteFile => send(agent, write_file(turn)).await,
        SutAction::Output => {
            send(agent, [said(turn, "{\"done\":true}")]).await;
            return TurnEnd { structured_output: Some(json!({ "done": true })), ..done };
        }
        SutAction::Fail => {
            return TurnEnd { error: Some("I will not do that.".to_owned()), ..TurnEnd::of(TurnStatus::Failed) };
        }
        SutAction::Ask => {
            send(agent, [asked(&format!("question-{turn}"))]).await;
            if next(agent, None).await == Next::Cancelled {
                return TurnEnd::of(TurnStatus::Cancelled);
            }
            send(agent, [said(turn, "Thank you.")]).await;
        }
        SutAction::Wait => {
            if next(agent, Some(wait)).await == Next::Cancelled {
                return TurnEnd::of(TurnStatus::Cancelled);
            }
            send(agent, [said(turn, "That took a while.")]).await;
        }
    }
    done
}

#[derive(Debug, PartialEq)]
enum Next {
    Answered,
    Cancelled,
    Late,
}

/// The answer to a question, unless the time is over.
async fn next(agent: &mut AgentEnd, within: Option<Duration>) -> Next {
    let command = async {
        loop {
            match agent.commands.recv().await {
                Some(Command::Decide(_)) => return Next::Answered,
                Some(Command::Cancel) | None => return Next::Cancelled,
                Some(_) => {}
            }
        }
    };
    match within {
        Some(within) => tokio::time::timeout(within, command).await.unwrap_or(Next::Late),
        None => command.await,
    }
}

fn said(turn: u32, text: &str) -> EventKind {
    EventKind::TextChunk(TextChunk {
        message_id: Some(format!("answer-{turn}").as_str().into()),
        ..TextChunk::piece(text)
    })
}

fn write_file(turn: u32) -> [EventKind; 4] {
    let tool = format!("write-{turn}");
    let call = ToolStarted {
        tool_id: tool.as_str().into(),
        tool_name: "write_file".to_owned(),
        tool_kind: ToolKind::Edit,
        title: None,
        arguments: serde_json::Map::new(),
        server: None,
        parent_tool_id: None,
    };
    let change = FileChange {
        after: Some("hello\n".to_owned()),
        ..FileChange::of("/work/output.txt", FileChangeType::Created, &call.tool_id)
    };
    let end = ToolCompleted {
        tool_id: call.tool_id.clone(),
        success: true,
        outcome: ToolOutcome::Completed,
        result: None,
        error: None,
        exit_code: None,
        duration_ms: None,
    };
    [
        EventKind::ToolStarted(call),
        EventKind::FileChanged(change),
        EventKind::ToolCompleted(end),
        said(turn, "I wrote output.txt."),
    ]
}

/// A session that ended takes no events, and sends no commands either.
async fn send<const N: usize>(agent: &AgentEnd, events: [EventKind; N]) {
    for kind in events {
        agent.events.send(Draft::new(Timestamp::now(), kind)).await.ok();
    }
}
