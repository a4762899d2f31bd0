//! A hub with one session, and the agent's end of it in the test's hands.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{
    AgentEnd, AgentKind, Choice, ChoiceKind, ClientRef, ClientRole, Command, Decide, Details, Door, Draft, Edit,
    EditReview, EditedCall, Event, EventKind, Prompt, Question, SessionConfig, SessionId, Timestamp, option,
};
use multitap_hub::{Feed, Hub, Join, JoinFrom, Linger, Open, Session, Told, WhenBusy, Which};
use multitap_testkit::agent::{LaunchedAgent, ScriptedLaunch};
pub(crate) use multitap_testkit::agent::{ended, started, text, turn_ended, turn_started};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::memory::Memory;

/// A hub whose agents are in the test's hands.
pub(crate) struct Stage {
    pub(crate) hub: Hub,
    pub(crate) launch: Arc<ScriptedLaunch>,
    pub(crate) agents: mpsc::Receiver<LaunchedAgent>,
}

impl Stage {
    pub(crate) fn new(journal: Option<Arc<Memory>>) -> Self {
        let (launch, agents) = ScriptedLaunch::steering();
        let hub = match journal {
            Some(journal) => Hub::new(journal, launch.clone()),
            None => Hub::without_journal(launch.clone()),
        };
        Self { hub, launch, agents }
    }

    pub(crate) async fn agent(&mut self) -> LaunchedAgent {
        soon(self.agents.recv()).await.unwrap()
    }

    pub(crate) async fn open(mut self, open: Open) -> Scene {
        let session = self.hub.open(open).await.unwrap();
        let (_, agent) = self.agent().await;
        Scene { stage: self, session, agent }
    }
}

pub(crate) struct Scene {
    pub(crate) stage: Stage,
    pub(crate) session: Session,
    pub(crate) agent: AgentEnd,
}

impl Scene {
    /// A session that is kept nowhere.
    pub(crate) async fn new() -> Self {
        Stage::new(None).open(open()).await
    }

    pub(crate) async fn kept(journal: &Arc<Memory>) -> Self {
        Stage::new(Some(journal.clone())).open(open()).await
    }

    /// One that outlives its agent.
    pub(crate) async fn lingering(journal: &Arc<Memory>) -> Self {
        Stage::new(Some(journal.clone())).open(Open { linger: Linger::UntilClosed, ..open() }).await
    }

    pub(crate) async fn tells(&self, kind: EventKind) {
        self.agent.events.send(Draft::new(Timestamp::now(), kind)).await.unwrap();
    }

    pub(crate) async fn hears(&mut self) -> Command {
        soon(self.agent.commands.recv()).await.unwrap()
    }

    /// The next edited answer that the agent is to judge.
    pub(crate) async fn reviews(&mut self) -> EditReview {
        soon(self.agent.reviews.recv()).await.unwrap()
    }

    pub(crate) async fn hears_prompt(&mut self) -> Prompt {
        match self.hears().await {
            Command::Prompt(prompt) => prompt,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn join(&self, name: &str, from: JoinFrom) -> Feed {
        self.session.join(Join::new(client(name)).from(from)).await.unwrap().feed
    }

    pub(crate) async fn prompt(&self, text: &str) -> multitap_event::PromptId {
        self.session.prompt(Prompt::text(text), WhenBusy::Queue, client("ann")).await.unwrap()
    }

    /// The agent goes, as agents do.
    pub(crate) async fn agent_ends(self) -> Session {
        self.tells(ended()).await;
        let Self { session, agent, stage } = self;
        drop(agent);
        soon(session.over()).await;
        drop(stage);
        session
    }
}

/// What should come soon, and does not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(60), future).await.unwrap()
}

pub(crate) async fn next(feed: &mut Feed) -> Event {
    match soon(feed.next()).await.unwrap() {
        Told::Event(entry) => entry.event().unwrap().clone(),
        Told::Gap { after, next } => panic!("a gap between {after} and {next}"),
    }
}

/// Everything until the feed ends.
pub(crate) async fn rest(feed: &mut Feed) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(told) = soon(feed.next()).await {
        match told {
            Told::Event(entry) => events.push(entry.event().unwrap().clone()),
            Told::Gap { after, next } => panic!("a gap between {after} and {next}"),
        }
    }
    events
}

/// Until an event of that type.
pub(crate) async fn until(feed: &mut Feed, wanted: &str) -> Event {
    loop {
        let event = next(feed).await;
        if type_of(&event) == wanted {
            return event;
        }
    }
}

pub(crate) fn type_of(event: &Event) -> String {
    serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned()
}

pub(crate) fn types(events: &[Event]) -> Vec<String> {
    events.iter().map(type_of).collect()
}

pub(crate) fn client(name: &str) -> ClientRef {
    ClientRef::new(name, Door::Library)
}

/// Somebody who came through a door and may prompt and answer.
pub(crate) fn controller(name: &str) -> ClientRef {
    ClientRef { role: Some(ClientRole::Controller), ..ClientRef::new(name, Door::A2a) }
}

pub(crate) fn config() -> SessionConfig {
    SessionConfig::new(AgentKind::Claude)
}

pub(crate) fn open() -> Open {
    let which = Which::New { id: SessionId::from("s"), forked_from: None, history: None };
    Open { which, ..Open::new(config(), client("opener")) }
}

pub(crate) fn stored() -> Open {
    Open { which: Which::Stored(SessionId::from("s")), ..Open::new(config(), client("opener")) }
}

pub(crate) fn asked(id: &str) -> EventKind {
    EventKind::PermissionAsked(question(id))
}

/// A question about a command, whose answer may bring another.
pub(crate) fn asked_about_command(id: &str) -> EventKind {
    let details = Details::Command { command: "echo hi".into(), directory: None, description: None };
    EventKind::PermissionAsked(Question { details, edits: vec![Edit::NewContent], ..question(id) })
}

fn question(id: &str) -> Question {
    Question {
        question_id: id.into(),
        tool_id: None,
        tool_name: Some("shell".into()),
        title: "may I?".into(),
        options: vec![
            Choice::new(option::PROCEED_ONCE, "Yes", ChoiceKind::AllowOnce),
            Choice::new(option::PROCEED_ALWAYS, "Always", ChoiceKind::AllowAlways),
            Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce),
        ],
        details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
        edits: Vec::new(),
        reason: None,
    }
}

/// An answer that allows another command.
pub(crate) fn edited(question: &str, command: &str) -> Decide {
    Decide { new_content: Some(command.into()), ..Decide::new(&question.into(), option::PROCEED_ONCE) }
}

/// What the agent says of an edit that may run.
pub(crate) fn edited_call(command: &str) -> EditedCall {
    let details = Details::Command { command: command.into(), directory: None, description: None };
    EditedCall::new(command, serde_json::Map::from_iter([("command".to_owned(), command.into())]), details)
}
