//! A prompt that comes while a turn runs waits for its end, and no turn is lost.

use multitap_event::{Command, Decide, EventKind, Prompt, TurnStatus, option};

use crate::scene::Scene;

#[tokio::test]
async fn a_prompt_waits_for_the_turn_that_runs() {
    let mut scene = Scene::start([]).await;
    let question = scene.asked("run: echo one").await;
    scene.send(Command::Prompt(Prompt::text("run: echo two"))).await;
    let first = scene.answer(Decide::new(&question.question_id, option::PROCEED_ALWAYS)).await;
    assert!(first.success, "{first:?}");
    scene.end_of_turn().await;
    let told = scene.close().await;
    let ends: Vec<_> = told
        .iter()
        .filter_map(|kind| match kind {
            EventKind::TurnCompleted(end) => Some(end.status),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [TurnStatus::Completed, TurnStatus::Completed]);
}

#[tokio::test]
async fn what_waits_is_cancelled_too() {
    let mut scene = Scene::start([]).await;
    scene.asked("run: echo one").await;
    scene.send(Command::Prompt(Prompt::text("run: echo two"))).await;
    scene.send(Command::Cancel).await;
    scene.end_of_turn().await;
    let told = scene.close().await;
    let begun = told.iter().filter(|kind| matches!(kind, EventKind::TurnStarted { .. })).count();
    assert_eq!(begun, 1, "{told:#?}");
}
