//! What is asked of a session elsewhere, and what it refuses: as if it were here.

use multitap_event::{
    ApprovalMode, ClientRole, Command, Decide, Door as Way, EventKind, Prompt, Query, Refused, option,
};
use multitap_hub::{Edge, FeedEnd, Join, JoinFrom, Part, Reach, Refusal, WhenBusy};
use multitap_serve::{Access, Scheme, Tokens};

use crate::stage::{
    Stage, ann, asked, attached, ended, soon, text, try_attach, turn_ended, turn_started, until, watch,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_asked_there() {
    let mut stage = Stage::new().await;
    let door = stage.door(Access::default()).await;
    let far = attached(door.url()).await;
    let session = far.session.clone();
    assert_eq!((session.id(), session.epoch()), (stage.session.id(), stage.session.epoch()));
    assert_eq!(session.native_id().as_deref(), Some("native"));
    let joined = session.join(Join::new(ann()).from(JoinFrom::Tail(1))).await.unwrap();
    let me = joined.client;
    assert_eq!((me.client.as_str(), me.door), ("eve & co", Way::A2a));
    let mut feed = watch(&session).await;
    let id = session.prompt(Prompt::text("go"), WhenBusy::Queue, me.clone()).await.unwrap();
    let Command::Prompt(prompt) = stage.hears().await else { panic!() };
    assert_eq!((prompt.prompt_id.as_ref(), prompt.text.as_str()), (Some(&id), "go"));
    stage.tells(turn_started()).await;
    let waiting = session.prompt(Prompt::text("then"), WhenBusy::Queue, me.clone()).await.unwrap();
    session.withdraw(waiting.clone(), me.clone()).await.unwrap();
    let again = session.withdraw(waiting.clone(), me.clone()).await;
    assert_eq!(again, Err(Refusal::PromptNotQueued { prompt_id: waiting }));
    let steered = session.prompt(Prompt::text("now"), WhenBusy::Steer, me.clone()).await.unwrap_err();
    assert_eq!(steered, Refusal::CannotSteer);
    stage.tells(asked("q")).await;
    until(&mut feed, |kind| matches!(kind, EventKind::PermissionAsked(_))).await;
    let decide = |option: &str| Decide::new(&"q".into(), option);
    let wrong = session.decide(decide("maybe"), me.clone()).await.unwrap_err();
    assert!(matches!(&wrong, Refusal::Answer(Refused::NotOffered { offered, .. }) if offered.len() == 2), "{wrong}");
    let edited = Decide { new_content: Some("touch x".into()), ..decide(option::PROCEED_ONCE) };
    let judge = async { stage.agent.reviews.recv().await.unwrap().reply.send(Err("touch is blocked".into())) };
    let (judged, refused) = soon(async { tokio::join!(judge, session.decide(edited, me.clone())) }).await;
    assert!(judged.is_ok());
    let offered = vec![option::PROCEED_ONCE.into(), option::CANCEL.into()];
    let why = "touch is blocked".to_owned();
    assert_eq!(refused, Err(Refusal::Answer(Refused::EditRefused { question: "q".into(), why, offered })));
    stage.session.decide(decide(option::PROCEED_ONCE), ann()).await.unwrap();
    let late = session.decide(decide(option::CANCEL), me.clone()).await.unwrap_err();
    let Refusal::Answer(Refused::AlreadySettled(ruling)) = late else { panic!("{late}") };
    assert_eq!((ruling.settled_by.client.as_str(), ruling.kind.allows()), ("ann", true));
    let unknown = session.decide(Decide::new(&"p".into(), option::CANCEL), me.clone()).await;
    assert_eq!(unknown, Err(Refused::UnknownQuestion { question: "p".into(), open: Vec::new() }.into()));
    assert!(matches!(stage.hears().await, Command::Decide(_)));
    session.cancel(me.clone()).await.unwrap();
    assert_eq!(stage.hears().await, Command::Cancel);
    let beyond = Refusal::BeyondCeiling { mode: "autoAll".into(), ceiling: ApprovalMode::Ask };
    let refused = session.set_mode("autoAll", me.clone()).await.unwrap_err();
    assert_eq!(refused, beyond);
    session.set_mode("plan", me.clone()).await.unwrap();
    assert_eq!(stage.hears().await, Command::SetMode { mode: "plan".into() });
    session.set_thinking(None, me.clone()).await.unwrap();
    assert_eq!(stage.hears().await, Command::SetThinking { tokens: None });
    session.query(Query::Models, me.clone()).await.unwrap();
    assert_eq!(stage.hears().await, Command::Query { what: Query::Models });
    stage.tells(turn_ended()).await;
    until(&mut feed, |kind| matches!(kind, EventKind::TurnCompleted(_))).await;
    assert_eq!(session.cancel(me.clone()).await, Err(Refusal::NoTurn));
    assert_eq!(session.revoke("none", me.clone()).await, Err(Refusal::UnknownRule { rule_id: "none".into() }));
    assert_eq!(session.kick("none".into(), me.clone()).await, Err(Refusal::UnknownClient { client_id: "none".into() }));
    assert!(matches!(session.finish().await, Err(Refusal::NotHere)), "it is not ours to end");
    let part = |edge| Part { edge, limit: 3, bytes: usize::MAX };
    for edge in [Edge::After(2), Edge::Before(5)] {
        let (there, here) = (session.page(part(edge)).await.unwrap(), stage.session.page(part(edge)).await.unwrap());
        assert_eq!(there.entries, here.entries);
    }
    let (here, there) = (stage.session.snapshot().await.unwrap(), session.snapshot().await.unwrap());
    assert_eq!(here, there);
    far.leave().await;
    let mut left = stage.watch().await;
    until(&mut left, |kind| matches!(kind, EventKind::ClientLeft { client, .. } if client.client == "eve & co")).await;
    assert!(!stage.session.is_over(), "it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_is_told_and_so_is_being_sent_away() {
    let stage = Stage::new().await;
    let door = stage.door(Access::default()).await;
    let (kicked, stays) = (attached(door.url()).await, attached(door.url()).await);
    let (mut one, mut other) = (watch(&kicked.session).await, watch(&stays.session).await);
    let client = one.client().client_id.clone().unwrap();
    let refused = stays.session.kick(client.clone(), ann()).await.unwrap_err();
    assert_eq!(refused, Refusal::NotOwner);
    stage.session.kick(client, ann()).await.unwrap();
    soon(async { while one.next().await.is_some() {} }).await;
    assert!(matches!(one.end(), FeedEnd::CutOff { .. }));
    assert!(matches!(kicked.session.reach(), Reach::Gone(why) if why.contains("kicked")));
    stage.tells(text("last words")).await;
    stage.tells(ended()).await;
    until(&mut other, |kind| matches!(kind, EventKind::SessionEnded(_))).await;
    let _folder = stage.ends().await;
    soon(async { while other.next().await.is_some() {} }).await;
    assert_eq!(other.end(), FeedEnd::SessionOver);
    assert!(matches!(stays.session.reach(), Reach::Gone(why) if why.contains("over")));
    assert!(stays.session.is_over());
    let late = stays.session.prompt(Prompt::text("late"), WhenBusy::Queue, ann()).await;
    assert_eq!(late, Err(Refusal::SessionEnded));
    kicked.leave().await;
    stays.leave().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_the_door_and_says_what_one_may() {
    let stage = Stage::new().await;
    let mut tokens = Tokens::default();
    tokens.add("a-token-of-an-observer", ClientRole::Observer, Some("olaf".to_owned())).unwrap();
    let door = stage.door(Access { scheme: Scheme::of(tokens), ..Access::default() }).await;
    for (token, why) in [(None, "requires a token"), (Some("another"), "unknown token")] {
        let error = try_attach(door.url(), token).await.unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("401"), "{error}");
    }
    let far = try_attach(door.url(), Some("a-token-of-an-observer")).await.unwrap();
    let refused = far.session.prompt(Prompt::text("go"), WhenBusy::Queue, ann()).await;
    assert_eq!(refused, Err(Refusal::Observer));
    assert_eq!(far.session.set_model("m", ann()).await, Err(Refusal::Observer));
    far.leave().await;
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let stage = Stage::new().await;
    let door = stage.door(Access::default()).await;
    let error = try_attach(&format!("{}/?session=none", door.url()), None).await.unwrap_err();
    assert!(error.is_no_session() && error.to_string().contains("no such live session"), "{error}");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = try_attach(&format!("http://{free}"), None).await.unwrap_err().to_string();
    assert!(error.contains("cannot reach") && error.contains(&free.port().to_string()), "{error}");
}
