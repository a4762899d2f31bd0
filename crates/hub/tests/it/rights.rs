//! What those may do who are not the owners of a session: prompt and answer, and nothing that loosens it.

use multitap_event::{
    ApprovalMode, ClientRef, ClientRole, Command, Decide, EventKind, Mode, Prompt, SessionConfig, option,
};
use multitap_hub::{
    CancelError, CommandError, DecideError, Join, JoinFrom, KickError, Open, PromptError, RevokeError, Session,
    WhenBusy, WithdrawError,
};

use crate::memory::Memory;
use crate::scene::{Scene, Stage, asked, client, config, controller, open, turn_ended, turn_started, until};

async fn joined(session: &Session, client: ClientRef) -> ClientRef {
    let joined = session.join(Join { announce: true, ..Join::new(client) }.from(JoinFrom::Now)).await.unwrap();
    // It stays: only its feed would tell that it left.
    std::mem::forget(joined.feed);
    joined.client
}

fn beyond(word: &str, most: ApprovalMode) -> Result<(), CommandError> {
    Err(CommandError::Beyond { word: word.to_owned(), most })
}

#[tokio::test]
async fn only_owners_go_beyond_the_mode_that_owners_chose() {
    let mut scene = Scene::new().await;
    let eve = controller("eve");
    assert_eq!(scene.session.set_mode("autoAll", eve.clone()).await, beyond("autoAll", ApprovalMode::Ask));
    assert_eq!(scene.session.set_mode("bypassPermissions", eve.clone()).await, beyond("autoAll", ApprovalMode::Ask));
    assert_eq!(scene.session.set_mode("auto", eve.clone()).await, beyond("auto", ApprovalMode::Ask));
    scene.session.set_mode("plan", eve.clone()).await.unwrap();
    assert_eq!(scene.hears().await, Command::SetMode { mode: "plan".into() }, "the others were not passed on");
    scene.session.set_mode("ask", eve.clone()).await.unwrap();
    scene.hears().await;
    let ann = ClientRef { role: Some(ClientRole::Owner), ..controller("ann") };
    for owner in [client("host"), ann] {
        scene.session.set_mode("autoEdit", owner.clone()).await.unwrap();
        scene.hears().await;
        scene.session.set_mode("acceptEdits", eve.clone()).await.unwrap();
        scene.hears().await;
        assert_eq!(scene.session.set_mode("autoAll", eve.clone()).await, beyond("autoAll", ApprovalMode::AutoEdit));
        scene.session.set_mode("ask", owner).await.unwrap();
        scene.hears().await;
        assert_eq!(scene.session.set_mode("autoEdit", eve.clone()).await, beyond("autoEdit", ApprovalMode::Ask));
    }
}

/// The session is opened as a client wished, and its host would have allowed more.
#[tokio::test]
async fn a_host_says_how_far_its_clients_may_go() {
    let own = |mode| Some(Mode::Unified(mode));
    let opened = Open {
        config: SessionConfig { mode: own(ApprovalMode::Plan), ..config() },
        ceiling: own(ApprovalMode::AutoEdit),
        by: controller("eve"),
        ..open()
    };
    let mut scene = Stage::new(None).open(opened).await;
    scene.session.set_mode("autoEdit", controller("eve")).await.unwrap();
    scene.hears().await;
    let refused = scene.session.set_mode("autoAll", controller("eve")).await;
    assert_eq!(refused, beyond("autoAll", ApprovalMode::AutoEdit));
}

/// What a prompt says to the agent itself, such as `/mode`, is for the agent to understand: it hears how far the sender
/// may go.
#[tokio::test]
async fn the_agent_hears_how_far_whoever_prompts_may_go() {
    let mut scene = Scene::new().await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    let (ask, eve) = (Some(ApprovalMode::Ask), controller("eve"));
    let said = |text: &str| Prompt { within: Some(ApprovalMode::AutoAll), ..Prompt::text(text) };
    scene.session.prompt(said("/mode plan"), WhenBusy::Queue, eve.clone()).await.unwrap();
    assert_eq!(scene.hears_prompt().await.within, ask, "nobody says it of themselves");
    scene.tells(turn_started()).await;
    until(&mut feed, "turnStarted").await;
    scene.session.prompt(said("now"), WhenBusy::Steer, eve.clone()).await.unwrap();
    let Command::Steer(steered) = scene.hears().await else { panic!() };
    assert_eq!(steered.within, ask);
    scene.session.prompt(said("later"), WhenBusy::Queue, eve.clone()).await.unwrap();
    let changed = |mode| EventKind::ModeChanged { mode: Some(mode), native_mode: None, by: None };
    scene.tells(changed(ApprovalMode::Plan)).await;
    let EventKind::ModeChanged { by, .. } = until(&mut feed, "modeChanged").await.kind else { panic!() };
    assert_eq!(by.unwrap().client, "eve", "it was her command");
    scene.tells(turn_ended()).await;
    assert_eq!(scene.hears_prompt().await.within, ask, "a controller changes nothing of it");
    scene.tells(turn_ended()).await;
    scene.session.prompt(said("/mode auto-edit"), WhenBusy::Queue, client("ann")).await.unwrap();
    assert_eq!(scene.hears_prompt().await.within, None);
    scene.tells(changed(ApprovalMode::AutoEdit)).await;
    scene.tells(turn_ended()).await;
    until(&mut feed, "modeChanged").await;
    until(&mut feed, "turnCompleted").await;
    scene.session.prompt(said("on"), WhenBusy::Queue, eve).await.unwrap();
    assert_eq!(scene.hears_prompt().await.within, Some(ApprovalMode::AutoEdit), "an owner does");
}

#[tokio::test]
async fn owners_send_others_away_and_nobody_those_at_home() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let screen = joined(&scene.session, client("ann")).await;
    let eve = joined(&scene.session, controller("eve")).await;
    let mallory = joined(&scene.session, controller("mallory")).await;
    let owner = ClientRef { role: Some(ClientRole::Owner), ..controller("olga") };
    let id = |client: &ClientRef| client.client_id.clone().unwrap();
    assert_eq!(scene.session.kick(id(&screen), eve.clone()).await, Err(KickError::NotOwner));
    assert_eq!(scene.session.kick(id(&mallory), eve.clone()).await, Err(KickError::NotOwner));
    assert_eq!(scene.session.kick(id(&screen), owner.clone()).await, Err(KickError::AtHome));
    scene.session.kick(id(&mallory), owner).await.unwrap();
    scene.session.kick(id(&eve), screen.clone()).await.unwrap();
    assert_eq!(scene.session.prompt(Prompt::text("still here"), WhenBusy::Queue, screen).await.map(drop), Ok(()));
}

/// The connection may still be there for a moment; what comes through it counts no more.
#[tokio::test]
async fn who_was_sent_away_is_heard_no_more() {
    let journal = Memory::new();
    let scene = Scene::kept(&journal).await;
    let mut ann = scene.join("ann", JoinFrom::Now).await;
    scene.tells(asked("q")).await;
    until(&mut ann, "permissionAsked").await;
    let eve = joined(&scene.session, controller("eve")).await;
    scene.session.kick(eve.client_id.clone().unwrap(), client("ann")).await.unwrap();
    let session = &scene.session;
    let prompt = session.prompt(Prompt::text("boo"), WhenBusy::Queue, eve.clone()).await;
    assert_eq!(prompt, Err(PromptError::SentAway));
    let decide = Decide::new(&"q".into(), option::PROCEED_ONCE);
    assert_eq!(session.decide(decide, eve.clone()).await, Err(DecideError::SentAway));
    assert_eq!(session.set_mode("plan", eve.clone()).await, Err(CommandError::SentAway));
    assert_eq!(session.cancel(eve.clone()).await, Err(CancelError::Command(CommandError::SentAway)));
    assert_eq!(session.withdraw("p".into(), eve.clone()).await, Err(WithdrawError::SentAway));
    assert_eq!(session.revoke("q", eve.clone()).await, Err(RevokeError::SentAway));
    assert_eq!(session.kick("x".into(), eve).await, Err(KickError::SentAway));
    // What she said before and waits is not heard either.
    session.prompt(Prompt::text("go on"), WhenBusy::Queue, client("ann")).await.unwrap();
    let kim = joined(session, controller("kim")).await;
    session.prompt(Prompt::text("and then"), WhenBusy::Queue, kim.clone()).await.unwrap();
    until(&mut ann, "promptQueued").await;
    session.kick(kim.client_id.unwrap(), client("ann")).await.unwrap();
    until(&mut ann, "promptWithdrawn").await;
    // She may come back, and is somebody else then.
    let again = joined(session, controller("eve")).await;
    session.prompt(Prompt::text("sorry"), WhenBusy::Queue, again).await.unwrap();
}

#[tokio::test]
async fn an_answer_for_good_is_taken_back_by_who_gave_it_or_an_owner() {
    let journal = Memory::new();
    let mut scene = Scene::lingering(&journal).await;
    let eve = joined(&scene.session, controller("eve")).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    for question in ["q", "p"] {
        scene.tells(asked(question)).await;
        until(&mut feed, "permissionAsked").await;
        let decide = Decide::new(&question.into(), option::PROCEED_ALWAYS);
        scene.session.decide(decide, eve.clone()).await.unwrap();
        scene.hears().await;
    }
    let other = joined(&scene.session, controller("eve")).await;
    assert_eq!(scene.session.revoke("q", other).await, Err(RevokeError::NotYours), "a name is not enough");
    scene.session.revoke("q", eve).await.unwrap();
    scene.session.revoke("p", client("ann")).await.unwrap();
    assert!(scene.session.rules().await.is_empty());
}
