//! What those may do who are not the owners of a session: prompt and answer, and nothing that loosens it.

use multitap_event::{
    AgentType, ApprovalMode, Choice, ChoiceKind, ClientRef, ClientRole, Command, Decide, Details, EventKind, Mode,
    Prompt, Question, Refused, SessionConfig, option,
};
use multitap_hub::{Feed, Join, JoinFrom, Linger, Open, Refusal, Session, WhenBusy};

use crate::memory::Memory;
use crate::scene::{Scene, Stage, asked, client, config, controller, open, turn_ended, turn_started, until};

async fn joined(session: &Session, client: ClientRef) -> ClientRef {
    let joined = session.join(Join { announce: true, ..Join::new(client) }.from(JoinFrom::Now)).await.unwrap();
    // It stays: only its feed would tell that it left.
    std::mem::forget(joined.feed);
    joined.client
}

fn beyond(word: &str, most: ApprovalMode) -> Result<(), Refusal> {
    Err(Refusal::BeyondCeiling { mode: word.to_owned(), ceiling: most })
}

fn changed(mode: ApprovalMode) -> EventKind {
    EventKind::ModeChanged { mode: Some(mode), native_mode: None, by: None }
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
    let mut feed = scene.join("kim", JoinFrom::Now).await;
    scene.tells(changed(ApprovalMode::Plan)).await;
    until(&mut feed, "modeChanged").await;
    chosen(&scene, &mut feed, "ask", &eve).await;
    let ann = ClientRef { role: Some(ClientRole::Owner), ..controller("ann") };
    for owner in [client("host"), ann] {
        chosen(&scene, &mut feed, "autoEdit", &owner).await;
        chosen(&scene, &mut feed, "acceptEdits", &eve).await;
        assert_eq!(scene.session.set_mode("autoAll", eve.clone()).await, beyond("autoAll", ApprovalMode::AutoEdit));
        chosen(&scene, &mut feed, "ask", &owner).await;
        assert_eq!(scene.session.set_mode("autoEdit", eve.clone()).await, beyond("autoEdit", ApprovalMode::Ask));
    }
}

/// A client chooses a mode, and the agent confirms it.
async fn chosen(scene: &Scene, feed: &mut Feed, word: &str, by: &ClientRef) {
    scene.session.set_mode(word, by.clone()).await.unwrap();
    let Ok(Mode::Unified(mode)) = Mode::parse(AgentType::Claude, word) else { panic!("{word}") };
    scene.tells(changed(mode)).await;
    until(feed, "modeChanged").await;
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
    assert_eq!(scene.session.kick(id(&screen), eve.clone()).await, Err(Refusal::NotOwner));
    assert_eq!(scene.session.kick(id(&mallory), eve.clone()).await, Err(Refusal::NotOwner));
    assert_eq!(scene.session.kick(id(&screen), owner.clone()).await, Err(Refusal::HostClient));
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
    assert_eq!(prompt, Err(Refusal::Kicked));
    let decide = Decide::new(&"q".into(), option::PROCEED_ONCE);
    assert_eq!(session.decide(decide, eve.clone()).await, Err(Refusal::Kicked));
    assert_eq!(session.set_mode("plan", eve.clone()).await, Err(Refusal::Kicked));
    assert_eq!(session.cancel(eve.clone()).await, Err(Refusal::Kicked));
    assert_eq!(session.withdraw("p".into(), eve.clone()).await, Err(Refusal::Kicked));
    assert_eq!(session.revoke("q", eve.clone()).await, Err(Refusal::Kicked));
    assert_eq!(session.kick("x".into(), eve).await, Err(Refusal::Kicked));
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
    let ceiling = Some(Mode::Unified(ApprovalMode::AutoAll));
    let opened = Open { linger: Linger::UntilClosed, ceiling, ..open() };
    let mut scene = Stage::new(Some(journal)).open(opened).await;
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
    assert_eq!(scene.session.revoke("q", other).await, Err(Refusal::RuleOfOther), "a name is not enough");
    scene.session.revoke("q", eve).await.unwrap();
    scene.session.revoke("p", client("ann")).await.unwrap();
    assert!(scene.session.rules().await.is_empty());
}

fn offering(id: &str, details: Details, options: Vec<Choice>) -> EventKind {
    let EventKind::PermissionAsked(question) = asked(id) else { panic!() };
    EventKind::PermissionAsked(Question { details, options, ..question })
}

fn choices() -> Vec<Choice> {
    vec![
        Choice::new(option::PROCEED_ONCE, "Once", ChoiceKind::AllowOnce),
        Choice::new(option::PROCEED_ALWAYS, "Always", ChoiceKind::AllowAlways),
        Choice::new(option::PROCEED_ALWAYS_AND_SAVE, "Save", ChoiceKind::AllowAlways),
        Choice::new("cancel_always", "Never", ChoiceKind::RejectAlways),
        Choice::new(option::CANCEL, "No", ChoiceKind::RejectOnce),
    ]
}

fn command() -> Details {
    Details::Command { command: "make".into(), directory: None, description: None }
}

fn file_edit() -> Details {
    Details::FileEdit { file_path: "a.txt".into(), before: None, after: None, diff: None }
}

/// The options of a question that are marked as the owner's.
fn owners(event: &multitap_event::Event) -> Vec<&str> {
    let EventKind::PermissionAsked(question) = &event.kind else { panic!() };
    question.options.iter().filter(|choice| choice.owner_only).map(|choice| choice.id.as_str()).collect()
}

/// A rule that outlives the session is for the owner to make, whichever agent offers it.
#[tokio::test]
async fn only_an_owners_answer_saves_a_rule() {
    let journal = Memory::new();
    let mut scene = Scene::kept(&journal).await;
    let mut feed = scene.join("ann", JoinFrom::Start).await;
    scene.tells(offering("q", command(), choices())).await;
    let event = until(&mut feed, "permissionAsked").await;
    assert_eq!(owners(&event), [option::PROCEED_ALWAYS_AND_SAVE]);
    let answer = |option: &str| Decide::new(&"q".into(), option);
    let refused = scene.session.decide(answer(option::PROCEED_ALWAYS_AND_SAVE), controller("eve")).await.unwrap_err();
    let Refusal::Answer(Refused::OwnerOnly { offered, .. }) = &refused else { panic!("{refused}") };
    let open: Vec<&str> = offered.iter().map(|id| id.as_str()).collect();
    let expected = [option::PROCEED_ONCE, option::PROCEED_ALWAYS, "cancel_always", option::CANCEL];
    assert_eq!(open, expected, "{refused}");
    assert!(scene.session.rules().await.is_empty());
    let ruling = scene.session.decide(answer(option::PROCEED_ALWAYS_AND_SAVE), client("ann")).await.unwrap();
    assert_eq!(ruling.settled_by.client, "ann", "the question stayed open");
    assert!(
        matches!(scene.hears().await, Command::Decide(decide) if decide.option_id.as_str() == "proceed_always_and_save")
    );
}

#[tokio::test]
async fn only_an_owners_answer_goes_beyond_the_mode() {
    for (ceiling, details, expected) in [
        (ApprovalMode::Ask, file_edit(), vec!["proceed_always_and_save"]),
        (ApprovalMode::Ask, command(), vec!["proceed_always_and_save"]),
        (ApprovalMode::AutoEdit, Details::Plan { plan: "p".into() }, vec!["proceed_always_and_save"]),
        (ApprovalMode::Ask, Details::Plan { plan: "p".into() }, vec!["proceed_always", "proceed_always_and_save"]),
        (
            ApprovalMode::Plan,
            Details::Plan { plan: "p".into() },
            vec!["proceed_once", "proceed_always", "proceed_always_and_save"],
        ),
    ] {
        let opened = Open { ceiling: Some(Mode::Unified(ceiling)), ..open() };
        let scene = Stage::new(None).open(opened).await;
        let mut feed = scene.join("ann", JoinFrom::Start).await;
        scene.tells(offering("q", details.clone(), choices())).await;
        let event = until(&mut feed, "permissionAsked").await;
        assert_eq!(owners(&event), expected, "{ceiling} {details:?}");
        let answer = Decide::new(&"q".into(), option::PROCEED_ALWAYS);
        let answered = scene.session.decide(answer, controller("eve")).await;
        assert_eq!(answered.is_ok(), !expected.contains(&"proceed_always"), "{ceiling} {details:?}");
    }
}
