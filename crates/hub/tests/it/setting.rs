//! A mode or a model counts when the agent confirms it, and only then.

use multitap_event::{
    AgentError, AgentErrorKind, ApprovalMode, ClientRef, ClientRole, Command, EventKind, Mode, SessionConfig, Setting,
};
use multitap_hub::{Feed, JoinFrom, Refusal, Session};

use crate::memory::Memory;
use crate::scene::{Scene, client, controller, ended, text, turn_ended, turn_started, until};

fn mode_is(mode: ApprovalMode) -> EventKind {
    EventKind::ModeChanged { mode: Some(mode), native_mode: None, by: None }
}

fn model_is(model: &str) -> EventKind {
    EventKind::ModelChanged { model: model.to_owned(), by: None }
}

fn refused(setting: Setting) -> EventKind {
    EventKind::Error(AgentError::new(AgentErrorKind::ProtocolError, "refused").about(setting))
}

fn owner(name: &str) -> ClientRef {
    ClientRef { role: Some(ClientRole::Owner), ..controller(name) }
}

/// One turn, so that the agent has a conversation to resume.
async fn talk(scene: &mut Scene, feed: &mut Feed) {
    scene.prompt("hello").await;
    scene.hears_prompt().await;
    scene.tells(turn_started()).await;
    scene.tells(text("hi")).await;
    scene.tells(turn_ended()).await;
    until(feed, "turnCompleted").await;
}

/// The agent goes, and a prompt starts it again: what is it started with?
async fn restarted(scene: Scene, feed: &mut Feed) -> (SessionConfig, Scene) {
    scene.tells(ended()).await;
    let Scene { mut stage, session, agent } = scene;
    drop(agent);
    until(feed, "sessionEnded").await;
    session.prompt(multitap_event::Prompt::text("again"), multitap_hub::WhenBusy::Queue, client("ann")).await.unwrap();
    let (config, agent) = stage.agent().await;
    (config, Scene { stage, session, agent })
}

async fn most(session: &Session) -> Option<ApprovalMode> {
    match session.set_mode("autoAll", controller("eve")).await {
        Err(Refusal::BeyondCeiling { ceiling, .. }) => Some(ceiling),
        Ok(()) => None,
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_refused_mode_lifts_no_ceiling_and_reaches_no_restarted_agent() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    talk(&mut scene, &mut feed).await;
    scene.session.set_mode("autoAll", owner("olga")).await.unwrap();
    assert_eq!(scene.hears().await, Command::SetMode { mode: "autoAll".into() });
    assert_eq!(most(&scene.session).await, Some(ApprovalMode::Ask), "nobody confirmed it yet");
    scene.tells(refused(Setting::Mode)).await;
    until(&mut feed, "error").await;
    assert_eq!(most(&scene.session).await, Some(ApprovalMode::Ask));
    // A change that the agent makes by itself later is not the owner's.
    scene.tells(mode_is(ApprovalMode::AutoAll)).await;
    let EventKind::ModeChanged { by, .. } = until(&mut feed, "modeChanged").await.kind else { panic!() };
    assert_eq!(by, None);
    assert_eq!(most(&scene.session).await, Some(ApprovalMode::Ask));
    let (config, _scene) = restarted(scene, &mut feed).await;
    assert_eq!(config.mode, None);
}

#[tokio::test]
async fn a_confirmed_mode_is_the_ceiling_and_survives_a_restart() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    talk(&mut scene, &mut feed).await;
    scene.session.set_mode("auto-edit", owner("olga")).await.unwrap();
    scene.session.set_mode("plan", controller("eve")).await.unwrap();
    // Another change comes first: it is neither of those two.
    scene.tells(mode_is(ApprovalMode::DontAsk)).await;
    scene.tells(mode_is(ApprovalMode::AutoEdit)).await;
    scene.tells(mode_is(ApprovalMode::Plan)).await;
    let mut by = Vec::new();
    for _ in 0..3 {
        let EventKind::ModeChanged { by: who, .. } = until(&mut feed, "modeChanged").await.kind else { panic!() };
        by.push(who.map(|who| who.client));
    }
    assert_eq!(by, [None, Some("olga".to_owned()), Some("eve".to_owned())]);
    assert_eq!(most(&scene.session).await, Some(ApprovalMode::AutoEdit), "a controller's choice is no ceiling");
    let (config, _scene) = restarted(scene, &mut feed).await;
    assert_eq!(config.mode, Some(Mode::Unified(ApprovalMode::Plan)));
}

#[tokio::test]
async fn a_change_that_the_agent_never_answered_goes_with_it() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    talk(&mut scene, &mut feed).await;
    scene.session.set_mode("autoAll", owner("olga")).await.unwrap();
    scene.session.set_model("other", owner("olga")).await.unwrap();
    let (config, mut scene) = restarted(scene, &mut feed).await;
    assert_eq!((config.mode, config.model), (None, None));
    scene.hears_prompt().await;
    scene.tells(mode_is(ApprovalMode::AutoAll)).await;
    let EventKind::ModeChanged { by, .. } = until(&mut feed, "modeChanged").await.kind else { panic!() };
    assert_eq!(by, None);
    assert_eq!(most(&scene.session).await, Some(ApprovalMode::Ask));
}

/// `broken` is a model with which no agent starts.
#[tokio::test]
async fn a_refused_model_leaves_the_session_usable_after_a_restart() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    talk(&mut scene, &mut feed).await;
    scene.session.set_model("good", client("ann")).await.unwrap();
    scene.tells(model_is("good")).await;
    let EventKind::ModelChanged { by, .. } = until(&mut feed, "modelChanged").await.kind else { panic!() };
    assert_eq!(by.unwrap().client, "ann");
    scene.session.set_model("broken", controller("eve")).await.unwrap();
    scene.tells(refused(Setting::Model)).await;
    until(&mut feed, "error").await;
    let (config, mut scene) = restarted(scene, &mut feed).await;
    assert_eq!(config.model.as_deref(), Some("good"));
    scene.hears_prompt().await;
    assert_eq!(scene.session.snapshot().await.unwrap().model.as_deref(), Some("good"));
}

/// Somebody who may not change the mode sends nonsense while the owner's change is under way.
#[tokio::test]
async fn a_refusal_of_another_change_does_not_undo_what_the_owner_chose() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    talk(&mut scene, &mut feed).await;
    for mode in [ApprovalMode::AutoAll, ApprovalMode::Ask] {
        let word = mode.to_string();
        scene.session.set_mode(&word, owner("olga")).await.unwrap();
        assert_eq!(scene.hears().await, Command::SetMode { mode: word });
        scene.session.set_mode("nonsense", controller("eve")).await.unwrap();
        assert_eq!(scene.hears().await, Command::SetMode { mode: "nonsense".into() });
        let refusal = AgentError::new(AgentErrorKind::ProtocolError, "refused").refusing(Setting::Mode, "nonsense");
        scene.tells(EventKind::Error(refusal)).await;
        scene.tells(mode_is(mode)).await;
        let EventKind::ModeChanged { by, .. } = until(&mut feed, "modeChanged").await.kind else { panic!() };
        assert_eq!(by.map(|by| by.client).as_deref(), Some("olga"));
    }
    assert_eq!(most(&scene.session).await, Some(ApprovalMode::Ask));
    let (config, _scene) = restarted(scene, &mut feed).await;
    assert_eq!(config.mode, Some(Mode::Unified(ApprovalMode::Ask)));
}
