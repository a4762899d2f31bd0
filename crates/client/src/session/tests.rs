//! Sessions on a scripted agent: the other end of the link is the test.

use multitap_event::{
    AgentEnd, Choice, ChoiceKind, Details, Door, Draft, EVENT_QUEUE, EventKind, Question, Refused, SessionEnd,
    SessionEndReason, Timestamp, TurnEnd, TurnId, TurnStatus, link, option,
};
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

use super::task::{EVENT_BUFFER, INBOX, SessionTask};
use super::*;

struct Scene {
    session: AgentSession,
    agent: AgentEnd,
    task: JoinHandle<()>,
}

impl Scene {
    fn new() -> Self {
        let (link, agent) = link();
        let (inbox_tx, inbox) = mpsc::channel(INBOX);
        let (out, events) = mpsc::channel(EVENT_BUFFER);
        let (native_tx, native) = watch::channel(None);
        let end = CancellationToken::new();
        let id = SessionId::from("s");
        let task = SessionTask::new(id.clone(), link, inbox, out, native_tx, end.clone());
        let task = TaskTracker::new().spawn(task.run());
        let me = ClientRef::new("me", Door::Library);
        Self { session: AgentSession::new(id, me, native, inbox_tx, events, end), agent, task }
    }

    async fn tells(&self, kind: EventKind) {
        self.agent.events.send(Draft::new(Timestamp::now(), kind)).await.unwrap();
    }

    async fn hears(&mut self) -> Command {
        self.agent.commands.recv().await.unwrap()
    }

    async fn next(&mut self) -> EventKind {
        self.session.events().next().await.unwrap().kind
    }

    /// The agent goes, as agents do.
    async fn agent_ends(self) -> Vec<Event> {
        self.tells(ended()).await;
        let Self { mut session, agent, task } = self;
        drop(agent);
        let mut rest = Vec::new();
        while let Some(event) = session.events().next().await {
            rest.push(event);
        }
        task.await.unwrap();
        rest
    }
}

fn turn_started() -> EventKind {
    EventKind::TurnStarted { turn_id: TurnId::from("t") }
}

fn turn_ended() -> EventKind {
    EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Completed))
}

fn ended() -> EventKind {
    let reason = SessionEndReason::Completed;
    EventKind::SessionEnded(SessionEnd { reason, error: None, final_usage: None, exit_code: None })
}

fn asked(id: &str) -> EventKind {
    EventKind::PermissionAsked(Question {
        question_id: id.into(),
        tool_id: None,
        tool_name: None,
        title: "may I?".into(),
        options: vec![
            Choice::new(option::PROCEED_ONCE, "Yes", ChoiceKind::AllowOnce),
            Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce),
        ],
        details: Details::Text { text: String::new(), arguments: serde_json::Map::new() },
        edits: Vec::new(),
        reason: None,
    })
}

#[tokio::test]
async fn prompts_wait_for_the_turn_and_can_be_taken_back() {
    let mut scene = Scene::new();
    let one = scene.session.prompt(Prompt::text("one")).await.unwrap();
    assert!(matches!(scene.hears().await, Command::Prompt(prompt) if prompt.prompt_id == Some(one)));
    scene.tells(turn_started()).await;
    let two = scene.session.prompt(Prompt::text("two")).await.unwrap();
    let three = scene.session.prompt(Prompt::text("three")).await.unwrap();
    scene.session.withdraw(two.clone()).await.unwrap();
    assert_eq!(scene.session.withdraw(two.clone()).await, Err(WithdrawError::NotWaiting(two)));
    scene.tells(turn_ended()).await;
    assert!(matches!(scene.hears().await, Command::Prompt(prompt) if prompt.prompt_id == Some(three)));
    let events = scene.agent_ends().await;
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let queued = events.iter().filter(|event| matches!(event.kind, EventKind::PromptQueued { .. })).count();
    assert_eq!(queued, 2);
    assert!(matches!(events.last().unwrap().kind, EventKind::SessionEnded(_)));
}

#[tokio::test]
async fn an_interrupting_prompt_cancels_the_turn_and_goes_first() {
    let mut scene = Scene::new();
    scene.session.prompt(Prompt::text("one")).await.unwrap();
    scene.hears().await;
    scene.session.prompt(Prompt::text("two")).await.unwrap();
    let urgent = scene.session.prompt_when(Prompt::text("now"), WhenBusy::Interrupt).await.unwrap();
    assert_eq!(scene.hears().await, Command::Cancel);
    scene.tells(turn_ended()).await;
    assert!(matches!(scene.hears().await, Command::Prompt(prompt) if prompt.prompt_id == Some(urgent)));
}

#[tokio::test]
async fn one_answer_wins_and_the_agent_hears_it_once() {
    let mut scene = Scene::new();
    scene.tells(asked("q")).await;
    assert!(matches!(scene.next().await, EventKind::PermissionAsked(_)));
    let question = "q".into();
    let wrong = scene.session.decide(Decide::new(&question, "maybe")).await.unwrap_err();
    assert!(matches!(wrong, DecideError::Refused(Refused::NotOffered { .. })));
    let (first, second) = tokio::join!(
        scene.session.decide(Decide::new(&question, option::PROCEED_ONCE)),
        scene.session.decide(Decide::new(&question, option::CANCEL)),
    );
    let ruling = first.unwrap();
    assert_eq!(second, Err(DecideError::Refused(Refused::AlreadySettled(Box::new(ruling.clone())))));
    assert!(matches!(scene.hears().await, Command::Decide(decide) if decide.option_id == ruling.selected_option_id));
    assert!(matches!(scene.next().await, EventKind::PermissionSettled(settled) if settled == ruling));
    assert!(scene.agent.commands.try_recv().is_err());
}

#[tokio::test]
async fn finish_waits_for_the_turn_and_the_queue() {
    let mut scene = Scene::new();
    scene.session.prompt(Prompt::text("one")).await.unwrap();
    scene.session.prompt(Prompt::text("two")).await.unwrap();
    scene.session.finish().await.unwrap();
    assert_eq!(scene.session.prompt(Prompt::text("three")).await, Err(PromptError::Finishing));
    assert!(matches!(scene.hears().await, Command::Prompt(_)));
    scene.tells(turn_ended()).await;
    assert!(matches!(scene.hears().await, Command::Prompt(_)));
    scene.tells(turn_ended()).await;
    assert_eq!(scene.agent.commands.recv().await, None, "the agent is let go");
    scene.agent_ends().await;
}

#[tokio::test]
async fn stop_cancels_and_takes_the_queue_back() {
    let mut scene = Scene::new();
    scene.session.prompt(Prompt::text("one")).await.unwrap();
    scene.session.prompt(Prompt::text("two")).await.unwrap();
    scene.session.stop().await.unwrap();
    assert!(matches!(scene.hears().await, Command::Prompt(_)));
    assert_eq!(scene.hears().await, Command::Cancel);
    scene.tells(EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Cancelled))).await;
    assert_eq!(scene.agent.commands.recv().await, None);
    let events = scene.agent_ends().await;
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::PromptWithdrawn { .. })));
}

#[tokio::test]
async fn nothing_to_cancel_is_said() {
    let scene = Scene::new();
    assert_eq!(scene.session.cancel().await, Err(CancelError::NoTurn));
}

#[tokio::test]
async fn dropping_the_session_lets_the_agent_go() {
    let Scene { session, mut agent, task } = Scene::new();
    drop(session);
    assert_eq!(agent.commands.recv().await, None);
    agent.events.send(Draft::new(Timestamp::now(), turn_started())).await.ok();
    drop(agent);
    task.await.unwrap();
}

#[tokio::test]
async fn close_comes_back_when_the_agent_is_gone() {
    let Scene { session, mut agent, task } = Scene::new();
    let closed = TaskTracker::new().spawn(session.close());
    assert_eq!(agent.commands.recv().await, None);
    agent.events.send(Draft::new(Timestamp::now(), ended())).await.unwrap();
    drop(agent);
    closed.await.unwrap();
    task.await.unwrap();
}

#[tokio::test]
async fn an_agent_that_vanishes_ends_the_session_all_the_same() {
    let Scene { mut session, agent, task } = Scene::new();
    drop(agent);
    assert!(matches!(session.events().next().await.unwrap().kind, EventKind::SessionEnded(_)));
    assert!(session.events().next().await.is_none());
    assert_eq!(session.prompt(Prompt::text("late")).await, Err(PromptError::SessionEnded));
    task.await.unwrap();
}

#[tokio::test]
async fn nothing_begins_after_the_end() {
    let mut scene = Scene::new();
    scene.tells(ended()).await;
    assert!(matches!(scene.next().await, EventKind::SessionEnded(_)));
    assert_eq!(scene.session.prompt(Prompt::text("late")).await, Err(PromptError::SessionEnded));
    assert_eq!(scene.session.set_mode("plan").await, Err(CommandError::SessionEnded));
    assert!(scene.agent.commands.try_recv().is_err());
    scene.tells(turn_started()).await;
    let Scene { mut session, agent, task } = scene;
    drop(agent);
    assert_eq!(session.events().next().await, None);
    task.await.unwrap();
}

/// Outward waits, inward does not: with the events unread the agent is held back, and answers still go through.
#[tokio::test]
async fn a_program_that_does_not_read_holds_the_agent_back_but_can_still_cancel() {
    let mut scene = Scene::new();
    scene.session.prompt(Prompt::text("one")).await.unwrap();
    assert!(matches!(scene.hears().await, Command::Prompt(_)));
    let mut sent = 0;
    let flood = Draft::new(Timestamp::now(), turn_started());
    while sent < 100_000 {
        match tokio::time::timeout(std::time::Duration::from_millis(200), scene.agent.events.reserve()).await {
            Ok(permit) => permit.unwrap().send(flood.clone()),
            Err(_) => break,
        }
        sent += 1;
    }
    assert!(sent < EVENT_BUFFER + EVENT_QUEUE + 200, "{sent} events were taken in");
    scene.session.cancel().await.unwrap();
    assert_eq!(scene.hears().await, Command::Cancel);
    let reader = async {
        let mut last = 0;
        while last <= sent as u64 {
            last = scene.session.events().next().await.unwrap().seq;
        }
        last
    };
    assert_eq!(reader.await, sent as u64 + 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_does_not_wait_for_a_reader_that_never_comes() {
    let scene = Scene::new();
    for _ in 0..EVENT_BUFFER + 10 {
        scene.tells(turn_started()).await;
    }
    scene.session.end();
    let Scene { session, agent, task } = scene;
    agent.events.send(Draft::new(Timestamp::now(), ended())).await.ok();
    drop(agent);
    task.await.unwrap();
    drop(session);
}

#[tokio::test]
async fn calls_that_pile_up_unread_are_refused() {
    let scene = Scene::new();
    let error = AgentError::new(multitap_event::AgentErrorKind::Unknown, "x");
    let mut refused = None;
    for _ in 0..10_000 {
        if let Err(error) = scene.session.report(error.clone()).await {
            refused = Some(error);
            break;
        }
    }
    assert_eq!(refused, Some(CommandError::Busy));
}
