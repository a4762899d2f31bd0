//! Edited answers: judged by the agent before they count, while the session goes on (R002-44).

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{ApprovalMode, Command, Decide, EventKind, Refused, Ruling, option};
use multitap_hub::{Feed, JoinFrom, Journal as _, Refusal, Session};
use tokio::task::JoinSet;

use crate::memory::Memory;
use crate::scene::{Scene, asked, asked_about_command, client, edited, edited_call, soon, until};

/// A session that waits for an answer, and one who looks on.
async fn asking() -> (Scene, Feed, Arc<Memory>) {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(asked_about_command("q")).await;
    until(&mut feed, "permissionAsked").await;
    (scene, feed, journal)
}

/// An answer that waits for its ruling.
struct Answering(JoinSet<Result<Ruling, Refusal>>);

impl Answering {
    async fn ruled(mut self) -> Result<Ruling, Refusal> {
        soon(self.0.join_next()).await.unwrap().unwrap()
    }
}

/// Answers in a task of its own.
fn answers(session: &Session, decide: Decide, who: &'static str) -> Answering {
    let (session, mut answering) = (session.clone(), JoinSet::new());
    answering.spawn(async move { session.decide(decide, client(who)).await });
    Answering(answering)
}

#[track_caller]
fn refused(answer: &Result<Ruling, Refusal>, reason: &str) {
    let Err(Refusal::Answer(Refused::EditRefused { question, why, offered })) = answer else { panic!("{answer:?}") };
    assert_eq!((question.as_str(), offered.len()), ("q", 3));
    assert!(why.contains(reason), "{why}");
}

#[tokio::test]
async fn a_refused_edit_leaves_the_question_open_and_settles_nothing() {
    let (mut scene, mut feed, journal) = asking().await;
    let first = answers(&scene.session, edited("q", "touch x"), "ann");
    let review = scene.reviews().await;
    assert_eq!(review.decide.new_content.as_deref(), Some("touch x"));
    review.reply.send(Err("touch is blocked".into())).unwrap();
    refused(&first.ruled().await, "touch is blocked");
    assert!(scene.agent.commands.try_recv().is_err(), "the agent hears of no answer");
    assert_eq!(scene.session.snapshot().await.unwrap().questions.open().len(), 1);
    // Somebody else answers as the question was.
    let ruling = scene.session.decide(Decide::new(&"q".into(), option::PROCEED_ONCE), client("bob")).await.unwrap();
    assert!(!ruling.edited && ruling.new_content.is_none() && ruling.runs.is_none());
    let settled = until(&mut feed, "permissionSettled").await;
    assert!(matches!(settled.kind, EventKind::PermissionSettled(settled) if settled == ruling));
    assert_eq!(journal.rulings(scene.session.id().clone()).await.unwrap(), [ruling]);
}

#[tokio::test]
async fn the_log_has_the_edited_form_whole() {
    let (mut scene, mut feed, journal) = asking().await;
    let answer = answers(&scene.session, edited("q", "echo bye"), "ann");
    scene.reviews().await.reply.send(Ok(edited_call("echo bye"))).unwrap();
    let ruling = answer.ruled().await.unwrap();
    assert_eq!((ruling.edited, ruling.new_content.as_deref()), (true, Some("echo bye")));
    assert_eq!(ruling.runs.as_deref(), Some(&edited_call("echo bye")));
    let settled = until(&mut feed, "permissionSettled").await;
    assert!(matches!(settled.kind, EventKind::PermissionSettled(settled) if settled == ruling));
    assert!(matches!(scene.hears().await, Command::Decide(decide) if decide == edited("q", "echo bye")));
    assert_eq!(journal.rulings(scene.session.id().clone()).await.unwrap(), std::slice::from_ref(&ruling));
    // Late answers hear who ruled, without the content.
    let late = scene.session.decide(Decide::new(&"q".into(), option::CANCEL), client("bob")).await;
    assert_eq!(late, Err(Refusal::Answer(Refused::AlreadySettled(Box::new(ruling.without_edit())))));
}

#[tokio::test]
async fn whoever_answers_during_a_review_wins() {
    let (mut scene, _feed, _) = asking().await;
    let slow = answers(&scene.session, edited("q", "echo bye"), "ann");
    let review = scene.reviews().await;
    let won = scene.session.decide(Decide::new(&"q".into(), option::CANCEL), client("bob")).await.unwrap();
    review.reply.send(Ok(edited_call("echo bye"))).unwrap();
    let late = slow.ruled().await;
    assert_eq!(late, Err(Refusal::Answer(Refused::AlreadySettled(Box::new(won)))));
    assert!(matches!(scene.hears().await, Command::Decide(decide) if decide.option_id.as_str() == option::CANCEL));
    assert!(scene.agent.commands.try_recv().is_err(), "one decision");
}

#[tokio::test]
async fn a_judgement_holds_for_the_question_and_the_mode_it_was_made_for() {
    let (mut scene, mut feed, _) = asking().await;
    let answer = answers(&scene.session, edited("q", "echo bye"), "ann");
    let review = scene.reviews().await;
    assert_eq!(review.mode, None);
    let mode = Some(ApprovalMode::Plan);
    scene.tells(EventKind::ModeChanged { mode, native_mode: None, by: None }).await;
    until(&mut feed, "modeChanged").await;
    review.reply.send(Ok(edited_call("echo bye"))).unwrap();
    refused(&answer.ruled().await, "mode");
    let answer = answers(&scene.session, edited("q", "echo bye"), "ann");
    let review = scene.reviews().await;
    assert_eq!(review.mode, mode);
    scene.tells(asked("q")).await;
    until(&mut feed, "permissionAsked").await;
    review.reply.send(Ok(edited_call("echo bye"))).unwrap();
    let answer = answer.ruled().await;
    assert!(matches!(answer, Err(Refusal::Answer(Refused::DoesNotFit { .. }))), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_never_judges_refuses() {
    let (mut scene, _feed, _) = asking().await;
    let answer = answers(&scene.session, edited("q", "echo bye"), "ann");
    let review = scene.reviews().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    refused(&answer.ruled().await, "did not check the edit");
    drop(review);
    let answer = answers(&scene.session, edited("q", "echo bye"), "ann");
    drop(scene.reviews().await);
    refused(&answer.ruled().await, "did not check the edit");
    // One that takes no edited answers at all.
    scene.agent.reviews.close();
    refused(&scene.session.decide(edited("q", "echo bye"), client("ann")).await, "does not support edited answers");
}

#[tokio::test]
async fn an_edit_allows_once_and_a_refusal_needs_no_review() {
    let (mut scene, _feed, _) = asking().await;
    let always = Decide { option_id: option::PROCEED_ALWAYS.into(), ..edited("q", "echo bye") };
    let refused = scene.session.decide(always, client("ann")).await;
    assert!(matches!(&refused, Err(Refusal::Answer(Refused::DoesNotFit { why, .. })) if why.contains("once")));
    let no = Decide { option_id: option::CANCEL.into(), ..edited("q", "echo bye") };
    let ruling = scene.session.decide(no, client("ann")).await.unwrap();
    assert!(!ruling.edited && ruling.new_content.is_none(), "nothing runs, so nothing is edited");
    assert!(scene.agent.reviews.try_recv().is_err());
    assert!(matches!(scene.hears().await, Command::Decide(_)));
}
