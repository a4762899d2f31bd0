//! Every refusal goes through a door's WebSocket and arrives as what it was.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use multitap_event::{ApprovalMode, ChoiceKind, ClientRef, Door as Way, Refused, Ruling, Timestamp};
use multitap_hub::{
    Answer, Elsewhere, FarEnd, FarStart, PageCall, PageReply, Refusal, Session, SessionCall, SessionReply, State,
};
use multitap_serve::{Access, OpenDoor};
use multitap_store::Store;
use tempfile::TempDir;
use tokio_util::task::TaskTracker;

use crate::stage::{One, ann, attached, open_door};

/// A session that refuses everything: one refusal after the other.
#[derive(Debug)]
struct Refusing(Mutex<VecDeque<Refusal>>);

impl Elsewhere for Refusing {
    fn call(&self, _: SessionCall) -> Answer<SessionReply> {
        let refusal = self.0.lock().unwrap().pop_front().unwrap();
        Box::pin(async { Err(refusal) })
    }

    fn page(&self, _: PageCall) -> Answer<PageReply> {
        let refusal = self.0.lock().unwrap().pop_front().unwrap();
        Box::pin(async { Err(refusal) })
    }
}

/// The code of each refusal. Programs of other people match on them: none may change.
fn code(refusal: &Refusal) -> &str {
    match refusal {
        Refusal::SessionEnded => "sessionEnded",
        Refusal::Observer => "observer",
        Refusal::Kicked => "kicked",
        Refusal::NoAgent => "noAgent",
        Refusal::AgentRunning => "agentRunning",
        Refusal::Busy => "busy",
        Refusal::BeyondCeiling { .. } => "beyondCeiling",
        Refusal::Draining => "draining",
        Refusal::QueueFull => "queueFull",
        Refusal::PromptIdTaken { .. } => "promptIdTaken",
        Refusal::CannotSteer => "cannotSteer",
        Refusal::NoTurn => "noTurn",
        Refusal::PromptNotQueued { .. } => "promptNotQueued",
        Refusal::UnknownRule { .. } => "unknownRule",
        Refusal::RuleOfOther => "ruleOfOther",
        Refusal::SavedRule { .. } => "savedRule",
        Refusal::NotOwner => "notOwner",
        Refusal::HostClient => "hostClient",
        Refusal::UnknownClient { .. } => "unknownClient",
        Refusal::TooManyClients => "tooManyClients",
        Refusal::NotHere => "notHere",
        Refusal::Connection { .. } => "connection",
        Refusal::LogUnavailable { .. } => "logUnavailable",
        Refusal::UnknownSession { .. } => "unknownSession",
        Refusal::NoSession => "noSession",
        Refusal::LiveElsewhere { .. } => "liveElsewhere",
        Refusal::LiveHere { .. } => "liveHere",
        Refusal::InvalidSetting { .. } => "invalidSetting",
        Refusal::TooManySessions => "tooManySessions",
        Refusal::NotReady => "notReady",
        Refusal::ShuttingDown => "shuttingDown",
        Refusal::AgentFailed { .. } => "agentFailed",
        Refusal::InvalidParams { .. } => "invalidParams",
        Refusal::UnknownMethod { .. } => "unknownMethod",
        Refusal::Unknown { code, .. } => code.as_deref().unwrap(),
        Refusal::Answer(refused) => match refused {
            Refused::UnknownQuestion { .. } => "unknownQuestion",
            Refused::NotOffered { .. } => "notOffered",
            Refused::DoesNotFit { .. } => "invalidAnswer",
            Refused::EditRefused { .. } => "editRefused",
            Refused::Observer => "observer",
            Refused::OwnerOnly { .. } => "ownerOnly",
            Refused::AlreadySettled(_) => "questionSettled",
            Refused::Withdrawn { .. } => "questionWithdrawn",
        },
    }
}

pub(crate) fn every_refusal() -> Vec<Refusal> {
    let message = || "why".to_owned();
    let (question, option) = (|| "q".into(), || "o".into());
    let offered = || vec!["a".into(), "b".into()];
    let at = Timestamp::from_millis(1_700_000_000_000);
    let ruling = Ruling {
        question_id: question(),
        selected_option_id: option(),
        kind: ChoiceKind::AllowOnce,
        settled_by: ClientRef::new("ann", Way::Web),
        at,
        feedback: None,
        edited: false,
        new_content: None,
        new_input: None,
        runs: None,
    };
    let mode = "autoAll".to_owned();
    vec![
        Refusal::SessionEnded,
        Refusal::Observer,
        Refusal::Kicked,
        Refusal::NoAgent,
        Refusal::AgentRunning,
        Refusal::Busy,
        Refusal::BeyondCeiling { mode, ceiling: ApprovalMode::Ask },
        Refusal::Draining,
        Refusal::QueueFull,
        Refusal::PromptIdTaken { prompt_id: "p".into() },
        Refusal::CannotSteer,
        Refusal::NoTurn,
        Refusal::PromptNotQueued { prompt_id: "p".into() },
        Refusal::UnknownRule { rule_id: "r".into() },
        Refusal::RuleOfOther,
        Refusal::SavedRule { rule_id: "r".into() },
        Refusal::NotOwner,
        Refusal::HostClient,
        Refusal::UnknownClient { client_id: "c".into() },
        Refusal::TooManyClients,
        Refusal::NotHere,
        Refusal::Connection { message: message() },
        Refusal::LogUnavailable { message: message() },
        Refusal::UnknownSession { session_id: "s".into() },
        Refusal::NoSession,
        Refusal::LiveElsewhere { session_id: "s".into(), pid: 7 },
        Refusal::LiveHere { session_id: "s".into() },
        Refusal::InvalidSetting { setting: "agent".into(), why: message() },
        Refusal::TooManySessions,
        Refusal::NotReady,
        Refusal::ShuttingDown,
        Refusal::AgentFailed { message: message() },
        Refusal::InvalidParams { message: message() },
        Refusal::UnknownMethod { message: message() },
        Refusal::Unknown { code: Some("ofTomorrow".to_owned()), message: message() },
        Refused::UnknownQuestion { question: question(), open: vec![question()] }.into(),
        Refused::NotOffered { question: question(), option: option(), offered: offered() }.into(),
        Refused::DoesNotFit { question: question(), why: message() }.into(),
        Refused::EditRefused { question: question(), why: message(), offered: offered() }.into(),
        Refused::OwnerOnly { question: question(), option: option(), offered: offered() }.into(),
        Refused::AlreadySettled(Box::new(ruling)).into(),
        Refused::Withdrawn { question: question(), at }.into(),
    ]
}

/// A door beside a session that refuses everything.
pub(crate) struct RefusingDoor {
    pub(crate) door: OpenDoor,
    session: Session,
    _end: FarEnd,
    tasks: TaskTracker,
    _folder: TempDir,
}

pub(crate) async fn refusing() -> RefusingDoor {
    let refusals = VecDeque::from(every_refusal());
    let start = FarStart { id: "far".into(), epoch: 1, client: ann(), state: Box::new(State::default()) };
    let (session, end, task) = Session::far(start, Arc::new(Refusing(Mutex::new(refusals))));
    let tasks = TaskTracker::new();
    tasks.spawn(task.run());
    tasks.close();
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path().join("sessions.db")).unwrap());
    let door = open_door(Arc::new(One::new(session.clone(), store)), Access::default()).await;
    RefusingDoor { door, session, _end: end, tasks, _folder: folder }
}

impl RefusingDoor {
    pub(crate) async fn end(self) {
        self.session.end();
        self.tasks.wait().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_refusal_arrives_as_what_it_was() {
    let refusing = refusing().await;
    let far = attached(refusing.door.url()).await;
    for refusal in every_refusal() {
        assert_eq!(refusal.data()["code"], code(&refusal));
        assert!(!refusal.data().contains_key("message"), "{refusal:?}");
        let arrived = far.session.cancel(ann()).await.unwrap_err();
        assert_eq!(arrived, refusal);
        assert_eq!(arrived.to_string(), refusal.to_string());
    }
    far.leave().await;
    refusing.end().await;
}
