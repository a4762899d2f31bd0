//! Prompts, turns and the end: what a session does with an agent.

use std::time::Duration;

use multitap_event::{
    AgentError, AgentErrorKind, ClientRole, Command, EventKind, Prompt, SessionConfig, TurnEnd, TurnStatus,
};
use multitap_hub::{FeedEnd, Join, JoinFrom, Linger, Open, OpenError, Refusal, WhenBusy, Which};

use crate::memory::Memory;
use crate::scene::{
    Scene, Stage, client, config, ended, next, open, rest, soon, started, stored, text, turn_ended, turn_started,
    types, until,
};

#[tokio::test]
async fn prompts_wait_for_the_turn_and_can_be_taken_back() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let one = scene.prompt("one").await;
    assert_eq!(scene.hears_prompt().await.prompt_id, Some(one));
    scene.tells(turn_started()).await;
    let two = scene.prompt("two").await;
    let three = scene.prompt("three").await;
    scene.session.withdraw(two.clone(), client("ann")).await.unwrap();
    assert_eq!(
        scene.session.withdraw(two.clone(), client("ann")).await,
        Err(Refusal::PromptNotQueued { prompt_id: two })
    );
    scene.tells(turn_ended()).await;
    assert_eq!(scene.hears_prompt().await.prompt_id, Some(three));
    scene.agent_ends().await;
    let events = rest(&mut feed).await;
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(types(&events)[0], "sessionStarted");
    assert_eq!(types(&events).iter().filter(|kind| *kind == "promptQueued").count(), 2);
    assert_eq!(types(&events).last().unwrap(), "sessionEnded");
}

/// Sixty-four prompts of 15 MB would be a gigabyte in memory, and each checkpoint would have them all.
#[tokio::test]
async fn prompts_wait_only_up_to_so_many_bytes() {
    const LARGE: usize = 12 * 1024 * 1024;
    let mut scene = Scene::kept(&Memory::new()).await;
    scene.prompt("one").await;
    scene.hears_prompt().await;
    scene.tells(turn_started()).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    until(&mut feed, "turnStarted").await;
    let mut says = async |bytes: usize| {
        let said = scene.session.prompt(Prompt::text("x".repeat(bytes)), WhenBusy::Queue, client("ann")).await;
        if said.is_ok() {
            // Until it is in the log, another one is refused for that.
            until(&mut feed, "promptQueued").await;
        }
        said
    };
    says(LARGE).await.unwrap();
    says(LARGE).await.unwrap();
    assert_eq!(says(LARGE).await, Err(Refusal::QueueFull));
    says(100).await.unwrap();
    let waiting = &scene.session.snapshot().await.unwrap().queue;
    assert_eq!(waiting.len(), 3);
}

/// A client that follows the turn of its prompt must see them, also if the prompt waits and the turn ends at once.
#[tokio::test]
async fn notices_of_a_prompt_are_in_its_turn() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let noted = |text: &str| {
        let notices = ["a", "b"].map(|word| AgentError::new(AgentErrorKind::PermissionDenied, word)).to_vec();
        Prompt { notices, ..Prompt::text(text) }
    };
    scene.session.prompt(noted("one"), WhenBusy::Queue, client("ann")).await.unwrap();
    scene.session.prompt(noted("two"), WhenBusy::Queue, client("ann")).await.unwrap();
    for _ in 0..2 {
        assert!(scene.hears_prompt().await.notices.is_empty(), "they are not for the agent");
        scene.tells(turn_started()).await;
        scene.tells(turn_ended()).await;
    }
    scene.agent_ends().await;
    let seen = types(&rest(&mut feed).await);
    let turn = ["userMessage", "error", "error", "turnStarted", "turnCompleted"];
    let wanted = [&["sessionStarted", "clientJoined", turn[0], turn[1], turn[2], "promptQueued"], &turn[3..]].concat();
    assert_eq!(seen[..8], wanted);
    assert_eq!(seen[8..13], turn);
}

/// Whoever opened it may be slower than an agent that dies at once, and hears of it all the same.
#[tokio::test]
async fn a_session_that_is_over_at_once_is_still_heard_of() {
    let scene = Scene::new().await;
    scene.tells(ended()).await;
    let Scene { session, agent, stage: _stage } = scene;
    drop(agent);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let joined = session.join(Join::new(client("ann")).from(JoinFrom::Start)).await;
    let mut feed = joined.unwrap().feed;
    let events = rest(&mut feed).await;
    assert_eq!(types(&events).first().unwrap(), "sessionStarted");
    assert_eq!(types(&events).last().unwrap(), "sessionEnded", "and nothing comes after it");
}

/// One of them would be taken for the other, and never be sent.
#[tokio::test]
async fn two_prompts_of_one_id_are_not_taken_at_once() {
    let mut scene = Scene::new().await;
    let prompt = |id: &str, text: &str| Prompt { prompt_id: Some(id.into()), ..Prompt::text(text) };
    let session = scene.session.clone();
    let says = |prompt| session.prompt(prompt, WhenBusy::Queue, client("ann"));
    says(prompt("a", "one")).await.unwrap();
    assert_eq!(says(prompt("a", "again, while it runs")).await, Err(Refusal::PromptIdTaken { prompt_id: "a".into() }));
    says(prompt("b", "two")).await.unwrap();
    assert_eq!(says(prompt("b", "again, while it waits")).await, Err(Refusal::PromptIdTaken { prompt_id: "b".into() }));
    for text in ["one", "two"] {
        assert_eq!(scene.hears_prompt().await.text, text);
        scene.tells(turn_started()).await;
        scene.tells(turn_ended()).await;
    }
    // What is over is over.
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    until(&mut feed, "turnCompleted").await;
    until(&mut feed, "turnCompleted").await;
    says(prompt("a", "three")).await.unwrap();
    assert_eq!(scene.hears_prompt().await.text, "three");
}

#[tokio::test]
async fn an_interrupting_prompt_cancels_the_turn_and_goes_first() {
    let mut scene = Scene::new().await;
    scene.prompt("one").await;
    scene.hears_prompt().await;
    scene.prompt("two").await;
    let urgent = scene.session.prompt(Prompt::text("now"), WhenBusy::Interrupt, client("ann")).await.unwrap();
    assert_eq!(scene.hears().await, Command::Cancel);
    scene.tells(turn_ended()).await;
    assert_eq!(scene.hears_prompt().await.prompt_id, Some(urgent));
}

#[tokio::test]
async fn a_prompt_joins_the_running_turn_where_the_agent_can() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.prompt("one").await;
    scene.hears_prompt().await;
    scene.tells(turn_started()).await;
    until(&mut feed, "turnStarted").await;
    scene.session.prompt(Prompt::text("and"), WhenBusy::Steer, client("ann")).await.unwrap();
    assert!(matches!(scene.hears().await, Command::Steer(prompt) if prompt.text == "and"));
    let EventKind::UserMessage(message) = until(&mut feed, "userMessage").await.kind else { panic!() };
    assert!(message.steering);
    scene.tells(turn_ended()).await;
    until(&mut feed, "turnCompleted").await;
    assert!(!scene.session.snapshot().await.unwrap().is_busy());
}

/// Neither is a command for the shell taken into a turn, nor are words into a command.
#[tokio::test]
async fn what_is_for_the_shell_is_queued_and_not_steered() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let steer = |text: &str| scene.session.prompt(Prompt::text(text), WhenBusy::Steer, client("ann"));
    steer("one").await.unwrap();
    steer("!ls").await.unwrap();
    scene.hears_prompt().await;
    scene.tells(turn_started()).await;
    until(&mut feed, "turnStarted").await;
    let steer = |text: &str| scene.session.prompt(Prompt::text(text), WhenBusy::Steer, client("ann"));
    steer("!pwd").await.unwrap();
    scene.tells(turn_ended()).await;
    for line in ["!ls", "!pwd"] {
        assert_eq!(scene.hears_prompt().await.text, line);
        scene.tells(turn_started()).await;
        until(&mut feed, "turnStarted").await;
        let words = format!("after {line}");
        scene.session.prompt(Prompt::text(&words), WhenBusy::Steer, client("ann")).await.unwrap();
        scene.tells(turn_ended()).await;
    }
    for words in ["after !ls", "after !pwd"] {
        assert_eq!(scene.hears_prompt().await.text, words);
        scene.tells(turn_started()).await;
        scene.tells(turn_ended()).await;
    }
}

#[tokio::test]
async fn finish_waits_for_the_turn_and_the_queue() {
    let mut scene = Scene::new().await;
    scene.prompt("one").await;
    scene.prompt("two").await;
    scene.session.finish().await.unwrap();
    let late = scene.session.prompt(Prompt::text("three"), WhenBusy::Queue, client("ann")).await;
    assert_eq!(late, Err(Refusal::Draining));
    scene.hears_prompt().await;
    scene.tells(turn_ended()).await;
    scene.hears_prompt().await;
    scene.tells(turn_ended()).await;
    assert_eq!(soon(scene.agent.commands.recv()).await, None, "the agent is let go");
    scene.agent_ends().await;
}

#[tokio::test]
async fn stop_cancels_and_takes_the_queue_back() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.prompt("one").await;
    scene.prompt("two").await;
    scene.session.stop().await.unwrap();
    scene.hears_prompt().await;
    assert_eq!(scene.hears().await, Command::Cancel);
    scene.tells(EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Cancelled))).await;
    assert_eq!(soon(scene.agent.commands.recv()).await, None);
    scene.agent_ends().await;
    assert!(types(&rest(&mut feed).await).contains(&"promptWithdrawn".to_owned()));
}

#[tokio::test]
async fn nothing_to_cancel_is_said() {
    let scene = Scene::new().await;
    assert_eq!(scene.session.cancel(client("ann")).await, Err(Refusal::NoTurn));
}

#[tokio::test]
async fn an_observer_only_looks() {
    let scene = Scene::new().await;
    let mut eve = client("eve");
    eve.role = Some(ClientRole::Observer);
    let prompt = scene.session.prompt(Prompt::text("x"), WhenBusy::Queue, eve.clone()).await;
    assert_eq!(prompt, Err(Refusal::Observer));
    assert_eq!(scene.session.set_mode("plan", eve.clone()).await, Err(Refusal::Observer));
    let cancel = scene.session.cancel(eve).await;
    assert_eq!(cancel, Err(Refusal::Observer));
}

#[tokio::test]
async fn closing_lets_the_agent_go_and_waits_for_it() {
    let mut scene = Scene::new().await;
    scene.session.end();
    assert_eq!(soon(scene.agent.commands.recv()).await, None);
    let session = scene.agent_ends().await;
    let late = session.prompt(Prompt::text("late"), WhenBusy::Queue, client("ann")).await;
    assert_eq!(late, Err(Refusal::SessionEnded));
}

#[tokio::test]
async fn an_agent_that_vanishes_ends_the_session_all_the_same() {
    let scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let Scene { session, agent, stage } = scene;
    drop(agent);
    assert_eq!(types(&rest(&mut feed).await).last().unwrap(), "sessionEnded");
    soon(session.over()).await;
    drop(stage);
}

#[tokio::test]
async fn nothing_begins_after_the_end() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(ended()).await;
    until(&mut feed, "sessionEnded").await;
    let late = scene.session.prompt(Prompt::text("late"), WhenBusy::Queue, client("ann")).await;
    assert_eq!(late, Err(Refusal::SessionEnded));
    assert_eq!(scene.session.set_mode("plan", client("ann")).await, Err(Refusal::SessionEnded));
    assert!(scene.agent.commands.try_recv().is_err());
    scene.tells(turn_started()).await;
    let Scene { agent, stage, .. } = scene;
    drop(agent);
    assert_eq!(rest(&mut feed).await, []);
    drop(stage);
}

/// Without a journal outward waits, inward does not: with the events unread the agent is held back, and a cancel still
/// goes through.
#[tokio::test]
async fn a_program_that_does_not_read_holds_the_agent_back_but_can_still_cancel() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.prompt("one").await;
    scene.hears_prompt().await;
    let flood = text(&"x".repeat(10_000));
    let mut sent = 0;
    while sent < 10_000 {
        match tokio::time::timeout(Duration::from_millis(300), scene.agent.events.reserve()).await {
            Ok(permit) => permit.unwrap().send(multitap_event::Draft::new(crate::memory::now(), flood.clone())),
            Err(_) => break,
        }
        sent += 1;
    }
    assert!(sent < 1500, "{sent} events of 10 kB were taken in");
    let error = AgentError::new(AgentErrorKind::Unknown, "x");
    assert_eq!(scene.session.report(error).await, Err(Refusal::Busy));
    scene.session.cancel(client("ann")).await.unwrap();
    assert_eq!(scene.hears().await, Command::Cancel);
    let mut read = 0;
    while read < sent {
        read += usize::from(matches!(next(&mut feed).await.kind, EventKind::TextChunk(_)));
    }
}

#[tokio::test]
async fn an_agent_that_does_not_start_leaves_nothing() {
    let journal = Memory::new();
    let stage = Stage::new(Some(journal.clone()));
    let said = multitap_event::Draft::new(crate::memory::now(), text("elsewhere"));
    let (told, history) = tokio::sync::mpsc::channel(1);
    told.send(said).await.unwrap();
    drop(told);
    let copy = Which::New { id: "copy".into(), forked_from: None, history: Some(history) };
    for mut broken in [open(), Open { which: copy, ..open() }] {
        broken.config.model = Some("broken".into());
        let error = stage.hub.open(broken).await.unwrap_err();
        assert!(matches!(error, OpenError::Launch(_)), "{error}");
        assert!(stage.hub.live().is_empty());
        assert!(stage.hub.list(multitap_hub::Filter::default()).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_session_that_was_there_stays_when_its_agent_does_not_start() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let id = scene.session.id().clone();
    scene.agent_ends().await;
    let before = journal.log(&id).len();
    let mut broken = stored();
    broken.config.model = Some("broken".into());
    Stage::new(Some(journal.clone())).hub.open(broken).await.unwrap_err();
    assert!(journal.log(&id).len() > before, "and says what happened");
}

/// The agent dies: the session can be looked at, and a prompt starts the agent again with its conversation.
#[tokio::test]
async fn a_session_outlives_its_agent() {
    let journal = Memory::new();
    let config = SessionConfig { trusted: true, private_addresses: true, ..config() };
    let open = Open { config, linger: Linger::UntilClosed, ..open() };
    let mut scene = Stage::new(Some(journal.clone())).open(open).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.prompt("one").await;
    scene.hears_prompt().await;
    scene.tells(turn_started()).await;
    until(&mut feed, "turnStarted").await;
    drop(std::mem::replace(&mut scene.agent, multitap_event::link().1));
    let end = until(&mut feed, "turnCompleted").await;
    assert!(matches!(end.kind, EventKind::TurnCompleted(end) if end.status == TurnStatus::Interrupted));
    until(&mut feed, "sessionEnded").await;
    scene.prompt("two").await;
    let (config, agent) = scene.stage.agent().await;
    assert!(config.trusted && config.private_addresses, "it may do what the one before might");
    assert!(matches!(config.resume, multitap_event::Resume::Session { native_id, .. } if native_id == "native"));
    scene.agent = agent;
    assert_eq!(scene.hears_prompt().await.text, "two");
    scene.session.end();
    scene.agent_ends().await;
    let told = types(&rest(&mut feed).await);
    assert_eq!(told[..3], ["promptQueued", "sessionStarted", "userMessage"], "{told:?}");
}

/// Nobody but those who want something start an agent: two prompts for one that is gone start one.
#[tokio::test(start_paused = true)]
async fn an_agent_that_goes_stays_gone_until_it_is_wanted() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    drop(std::mem::replace(&mut scene.agent, multitap_event::link().1));
    until(&mut feed, "sessionEnded").await;
    scene.stage.launch.silent.store(true, std::sync::atomic::Ordering::Relaxed);
    scene.prompt("one").await;
    scene.agent = scene.stage.agent().await.1;
    tokio::time::sleep(Duration::from_secs(1)).await;
    scene.prompt("two").await;
    scene.tells(started()).await;
    for prompt in ["one", "two"] {
        assert_eq!(scene.hears_prompt().await.text, prompt);
        scene.tells(turn_ended()).await;
    }
    until(&mut feed, "turnCompleted").await;
    until(&mut feed, "turnCompleted").await;
    drop(std::mem::replace(&mut scene.agent, multitap_event::link().1));
    until(&mut feed, "sessionEnded").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(scene.stage.agents.try_recv().is_err(), "nobody asked for another one");
}

#[tokio::test]
async fn a_session_that_outlives_its_agent_can_be_finished() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    scene.prompt("one").await;
    scene.session.finish().await.unwrap();
    scene.hears_prompt().await;
    scene.tells(turn_ended()).await;
    assert_eq!(soon(scene.agent.commands.recv()).await, None, "the agent is let go");
    scene.agent_ends().await;
}

/// Whoever has waited for the end may go on at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_that_was_closed_can_be_opened() {
    let mut stage = Stage::new(Some(Memory::new()));
    let lingers = |open| Open { linger: Linger::UntilClosed, ..open };
    let id = stage.hub.open(lingers(open())).await.unwrap().id().clone();
    for _ in 0..300 {
        drop(stage.agent().await);
        stage.hub.close(&id).await;
        stage.hub.open(lingers(stored())).await.unwrap();
    }
}

#[tokio::test]
async fn the_first_prompt_of_a_session_goes_out_when_the_agent_is_there() {
    let stage = Stage::new(None);
    let config = config().with_prompt("hello");
    let mut scene = stage.open(Open { config, ..open() }).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    assert_eq!(scene.hears_prompt().await.text, "hello");
    assert_eq!(crate::scene::type_of(&next(&mut feed).await), "sessionStarted");
    let message = until(&mut feed, "userMessage").await;
    let EventKind::UserMessage(message) = message.kind else { panic!() };
    assert_eq!(message.from.unwrap().client, "opener");
}

#[tokio::test]
async fn time_does_not_go_back_in_a_log() {
    let scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let early = multitap_event::Draft::new(crate::memory::now(), text("said long ago"));
    scene.agent.events.send(early).await.unwrap();
    let mut times = vec![next(&mut feed).await.timestamp];
    times.push(until(&mut feed, "textChunk").await.timestamp);
    assert!(times.is_sorted(), "{times:?}");
}

/// Whatever a session dies of, nobody waits for it.
#[tokio::test]
async fn a_session_that_panics_is_over() {
    let scene = Scene::lingering(&Memory::new()).await;
    let mut feed = scene.join("ann", JoinFrom::Now).await;
    scene.tells(ended()).await;
    let Scene { stage, session, agent } = scene;
    drop(agent);
    until(&mut feed, "sessionEnded").await;
    let config = SessionConfig { model: Some("panics".into()), ..config() };
    while session.restart(Some(config.clone())).await == Err(Refusal::AgentRunning) {
        tokio::task::yield_now().await;
    }
    soon(session.over()).await;
    assert!(rest(&mut feed).await.is_empty());
    assert_eq!(feed.end(), FeedEnd::SessionOver);
    assert!(stage.hub.find(session.id()).is_none());
    soon(stage.hub.shutdown()).await;
}
