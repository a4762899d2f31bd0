//! Questions: one ruling each, whatever the race; rules that can be seen and taken back.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{ChoiceKind, ClientRole, Command, Decide, Door, EventKind, Refused, option};
use multitap_hub::{JoinFrom, Open, Refusal};
use tokio::task::JoinSet;

use crate::memory::Memory;
use crate::scene::{Scene, Stage, asked, client, open, rest, soon, turn_ended, until};

#[tokio::test]
async fn one_answer_wins_and_the_agent_hears_it_once() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(asked("q")).await;
    until(&mut feed, "permissionAsked").await;
    let question = "q".into();
    let wrong = scene.session.decide(Decide::new(&question, "maybe"), client("ann")).await.unwrap_err();
    assert!(matches!(wrong, Refusal::Answer(Refused::NotOffered { .. })));
    let mut eve = client("eve");
    eve.role = Some(ClientRole::Observer);
    let observer = scene.session.decide(Decide::new(&question, option::CANCEL), eve).await.unwrap_err();
    assert_eq!(observer, Refusal::Observer);
    let (first, second) = tokio::join!(
        scene.session.decide(Decide::new(&question, option::PROCEED_ONCE), client("ann")),
        scene.session.decide(Decide::new(&question, option::CANCEL), client("bob")),
    );
    let ruling = first.unwrap();
    assert_eq!(second, Err(Refusal::Answer(Refused::AlreadySettled(Box::new(ruling.clone())))));
    assert!(matches!(scene.hears().await, Command::Decide(decide) if decide.option_id == ruling.selected_option_id));
    let settled = until(&mut feed, "permissionSettled").await;
    assert!(matches!(settled.kind, EventKind::PermissionSettled(settled) if settled == ruling));
    assert!(scene.agent.commands.try_recv().is_err());
}

/// Many clients answer each question at once, from tasks of their own: one wins, the others learn who, by which door,
/// with what, when; the agent hears one decision.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_questions_have_one_winner_each() {
    const CLIENTS: usize = 32;
    const QUESTIONS: usize = 10_000;
    let journal = Memory::new();
    let mut scene = Scene::kept(&journal).await;
    let mut feed = scene.join("reader", JoinFrom::Now).await;
    for number in 0..QUESTIONS {
        let id = format!("q{number}");
        scene.tells(asked(&id)).await;
        until(&mut feed, "permissionAsked").await;
        let mut answers = JoinSet::new();
        for name in 0..CLIENTS {
            let session = scene.session.clone();
            let option = [option::PROCEED_ONCE, option::CANCEL][name % 2];
            let decide = Decide::new(&id.as_str().into(), option);
            answers.spawn(async move { session.decide(decide, client(&name.to_string())).await });
        }
        let answers = answers.join_all().await;
        let mut winners = answers.iter().filter_map(|answer| answer.as_ref().ok());
        let winner = winners.next().unwrap();
        assert_eq!(winners.next(), None);
        for answer in answers.iter().filter_map(|answer| answer.as_ref().err()) {
            let Refusal::Answer(Refused::AlreadySettled(ruling)) = answer else { panic!("{answer}") };
            assert_eq!(**ruling, *winner);
            assert_eq!(ruling.settled_by.door, Door::Library);
        }
        let Command::Decide(decide) = scene.hears().await else { panic!() };
        assert_eq!(decide.option_id, winner.selected_option_id);
        assert!(scene.agent.commands.try_recv().is_err(), "the agent hears one decision");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_nobody_answers_is_denied_in_time() {
    let stage = Stage::new(None);
    let question_timeout = Some(Duration::from_secs(30));
    let mut scene = stage.open(Open { question_timeout, ..open() }).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(asked("q")).await;
    let settled = until(&mut feed, "permissionSettled").await;
    let EventKind::PermissionSettled(ruling) = settled.kind else { panic!() };
    assert_eq!((ruling.kind, ruling.settled_by.door), (ChoiceKind::RejectOnce, Door::Host));
    assert!(ruling.feedback.unwrap().contains("30"));
    assert!(matches!(scene.hears().await, Command::Decide(_)));
}

#[tokio::test]
async fn an_answer_for_good_is_a_rule_that_can_be_taken_back() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(asked("q")).await;
    until(&mut feed, "permissionAsked").await;
    let decide = Decide::new(&"q".into(), option::PROCEED_ALWAYS);
    scene.session.decide(decide, client("ann")).await.unwrap();
    scene.hears().await;
    let rules = scene.session.rules().await;
    assert_eq!(rules.len(), 1);
    assert_eq!((rules[0].title.as_str(), rules[0].by.client.as_str()), ("may I?", "ann"));
    let unknown = scene.session.revoke("none", client("ann")).await;
    assert_eq!(unknown, Err(Refusal::UnknownRule { rule_id: "none".into() }));
    scene.session.revoke(rules[0].rule_id.clone(), client("ann")).await.unwrap();
    // No agent forgets on demand: the process goes, and the next one takes the conversation up.
    assert_eq!(soon(scene.agent.commands.recv()).await, None);
    scene.tells(crate::scene::ended()).await;
    drop(std::mem::replace(&mut scene.agent, multitap_event::link().1));
    let (config, agent) = scene.stage.agent().await;
    assert!(matches!(config.resume, multitap_event::Resume::Session { .. }));
    scene.agent = agent;
    until(&mut feed, "sessionStarted").await;
    assert!(scene.session.rules().await.is_empty());
    scene.prompt("on").await;
    assert_eq!(scene.hears_prompt().await.text, "on");
}

#[tokio::test]
async fn the_end_takes_questions_down() {
    let scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(asked("q")).await;
    let session = scene.agent_ends().await;
    let told = crate::scene::types(&rest(&mut feed).await);
    assert!(told.ends_with(&["permissionWithdrawn".into(), "sessionEnded".into()]), "{told:?}");
    drop(session);
}

#[tokio::test]
async fn rulings_are_kept_for_the_audit() {
    let journal: Arc<Memory> = Memory::new();
    let mut scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(asked("q")).await;
    until(&mut feed, "permissionAsked").await;
    let ruling = scene.session.decide(Decide::new(&"q".into(), option::CANCEL), client("ann")).await.unwrap();
    scene.hears().await;
    scene.tells(turn_ended()).await;
    let kept = multitap_hub::Journal::rulings(&*journal, scene.session.id().clone()).await.unwrap();
    assert_eq!(kept, [ruling]);
}
