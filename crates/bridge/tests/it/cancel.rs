//! Calls that nobody waits for any more: their tasks are cancelled.

use std::time::Duration;

use multitap_bridge::{BridgeOptions, Hops};
use rmcp::model::CallToolResponse;
use serde_json::json;
use tokio::sync::watch;

use crate::agent::{After, Agent, Asked, Reply, task};
use crate::client::{ERAS, Era, Person, Rig, options, text, until};
use crate::question::asking;

#[tokio::test]
async fn a_call_that_is_given_up_cancels_its_task() {
    for era in ERAS {
        // The second agent names its task only after the call was given up.
        let (open, gate) = watch::channel(false);
        let early = Agent::start("early", |asked: &Asked| match asked.method() {
            "SendStreamingMessage" => Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Open),
            _ => asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } })),
        })
        .await;
        let late = Agent::start("late", move |asked: &Asked| match asked.method() {
            "SendStreamingMessage" => {
                let events = vec![asked.event(&task("t", "WORKING"))];
                Reply::Gated(gate.clone(), Box::new(Reply::Stream(events, After::Open)))
            }
            _ => asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } })),
        })
        .await;
        let rig = Rig::start(options(), vec![early.entry("early"), late.entry("late")], era, Person::Present).await;
        for agent in ["early", "late"] {
            let server = if agent == "early" { &early } else { &late };
            let call = rig.client.call_tool(Rig::request(&format!("{agent}_sendMessage"), json!({ "message": "go" })));
            let is_sent = until("the message", || !server.calls("SendStreamingMessage").is_empty());
            tokio::select! {
                result = call => panic!("it ended: {result:?}"),
                // The future is dropped: the client sends `notifications/cancelled`.
                () = is_sent => {}
            }
            // The bridge has seen it by the time it answers the next call.
            rig.call("list_agents", json!({})).await;
            if agent == "late" {
                open.send(true).unwrap();
            }
            until("the task to be cancelled", || !server.calls("CancelTask").is_empty()).await;
            assert_eq!(server.calls("CancelTask")[0].body["params"]["id"], "t");
        }
        rig.end().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_while_a_person_is_asked_cancels_its_task() {
    let agent = Agent::start("asking", |asked: &Asked| match asked.method() {
        "CancelTask" => {
            asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
        }
        _ => asking(asked),
    })
    .await;
    let rig = Rig::start(options(), vec![agent.entry("asking")], Era::Initialize, Person::Asleep).await;
    let call = rig.client.call_tool(Rig::request("asking_sendMessage", json!({ "message": "begin" })));
    tokio::select! {
        result = call => panic!("it ended: {result:?}"),
        () = until("the question", || !rig.desk().asked.lock().unwrap().is_empty()) => {}
    }
    until("the task to be cancelled", || !agent.calls("CancelTask").is_empty()).await;
    until("the question to be taken back", || *rig.desk().taken_back.borrow()).await;
    rig.end().await;
}

/// The client says nothing, but whoever prompts the calling agent does.
#[tokio::test]
async fn a_turn_that_is_cancelled_cancels_the_tasks_of_its_calls() {
    for person in [Person::Asleep, Person::Absent] {
        let agent = Agent::start("asking", move |asked: &Asked| match asked.method() {
            "CancelTask" => {
                asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
            }
            _ if person == Person::Asleep => asking(asked),
            _ => Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Open),
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hops");
        std::fs::write(&file, "1 1").unwrap();
        let options = BridgeOptions { hops: Hops::File(file.clone()), ..options() };
        let rig = Rig::start(options, vec![agent.entry("asking")], Era::Initialize, person).await;
        let cancel = async {
            match person {
                Person::Asleep => until("the question", || !rig.desk().asked.lock().unwrap().is_empty()).await,
                _ => until("the message", || agent.open_streams() > 0).await,
            }
            assert_eq!(agent.calls("CancelTask").len(), 0);
            std::fs::write(&file, "1 2").unwrap();
        };
        let (result, ()) = tokio::join!(rig.call("asking_sendMessage", json!({ "message": "begin" })), cancel);
        assert!(text(&result).contains("was cancelled"), "{result:#}");
        assert_eq!(agent.calls("CancelTask").len(), 1);
        if person == Person::Asleep {
            until("the question to be taken back", || *rig.desk().taken_back.borrow()).await;
        }
        rig.end().await;
    }
}

/// The call has returned with the question; the client is silent when its turn is cancelled, or leaves.
#[tokio::test]
async fn a_result_that_asks_is_given_up_with_its_turn_or_its_client() {
    for is_left in [false, true] {
        let agent = Agent::start("asking", |asked: &Asked| match asked.method() {
            "CancelTask" => {
                asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
            }
            _ => asking(asked),
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hops");
        let options = BridgeOptions { hops: Hops::File(file.clone()), ..options() };
        let rig = Rig::start(options, vec![agent.entry("asking")], Era::Discover, Person::Present).await;
        let asked = rig.once(Rig::request("asking_sendMessage", json!({ "message": "begin" }))).await;
        assert!(matches!(asked, CallToolResponse::InputRequired(_)), "{asked:?}");
        assert_eq!(agent.calls("CancelTask").len(), 0);
        if is_left {
            rig.leave().await.close().await;
        } else {
            // The wait for the answer has begun by then.
            rig.list().await;
            std::fs::write(&file, "0 1").unwrap();
            until("the task to be cancelled", || !agent.calls("CancelTask").is_empty()).await;
            rig.end().await;
        }
        assert_eq!(agent.calls("CancelTask").len(), 1, "{is_left}");
    }
}

/// Some clients close the dialog before they say that the call is given up.
#[tokio::test]
async fn a_dialog_that_closes_with_its_call_cancels_the_task() {
    let agent = Agent::start("asking", |asked: &Asked| match asked.method() {
        "CancelTask" => {
            asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
        }
        _ => asking(asked),
    })
    .await;
    let rig = Rig::start(options(), vec![agent.entry("asking")], Era::Initialize, Person::Leaving).await;
    let call = rig.client.call_tool(Rig::request("asking_sendMessage", json!({ "message": "begin" })));
    tokio::select! {
        biased;
        result = call => panic!("it ended: {result:?}"),
        () = until("the question", || !rig.desk().asked.lock().unwrap().is_empty()) => {}
    }
    until("the task to be cancelled", || !agent.calls("CancelTask").is_empty()).await;
    // A dialog that closes alone means that the person does not want to answer: the task waits on.
    let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
    assert!(text(&result).contains("did not answer"), "{result:#}");
    assert_eq!(agent.calls("CancelTask").len(), 1);
    rig.end().await;
}

/// The call has returned with the question, and the client answers it with a dismissal, as some do when their turn is
/// cancelled: before or after the bridge hears of that. A dismissal alone leaves the task open.
#[tokio::test]
async fn a_dismissal_with_a_cancelled_turn_cancels_the_task() {
    for (early, late) in [(Some("0 1"), None), (None, Some("0 1")), (None, None)] {
        let agent = Agent::start("asking", |asked: &Asked| match asked.method() {
            "CancelTask" => {
                asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
            }
            _ => asking(asked),
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hops");
        let tell = |text: Option<&str>| text.map(|text| std::fs::write(&file, text).unwrap());
        let options = BridgeOptions { hops: Hops::File(file.clone()), ..options() };
        let rig = Rig::start(options, vec![agent.entry("asking")], Era::Discover, Person::Present).await;
        let mut request = Rig::request("asking_sendMessage", json!({ "message": "begin" }));
        let CallToolResponse::InputRequired(asks) = rig.once(request.clone()).await else { panic!("it asks") };
        request.request_state = asks.request_state;
        request.input_responses = Some([("answer".to_owned(), json!({ "action": "cancel" }))].into());
        tell(early);
        let later = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            tell(late);
        };
        let (result, ()) = tokio::join!(rig.once(request), later);
        let CallToolResponse::Complete(result) = result else { panic!("it is over: {result:?}") };
        let shown = text(&serde_json::to_value(result).unwrap());
        let is_cancelled = early.is_some() || late.is_some();
        // The bridge may have heard of it before the answer.
        let words = if is_cancelled { ["was cancelled", "is no longer open"] } else { ["did not answer"; 2] };
        assert!(words.iter().any(|words| shown.contains(words)), "{early:?} {late:?}: {shown}");
        assert_eq!(agent.calls("CancelTask").len(), usize::from(is_cancelled), "{early:?} {late:?}");
        rig.end().await;
    }
}
