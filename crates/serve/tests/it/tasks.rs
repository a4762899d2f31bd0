//! Tasks of a session that others use too.

use multitap_event::{ClientRef, Door as Way, Prompt};
use multitap_hub::{Session, WhenBusy};
use serde_json::{Value, json};

use crate::live::{Client, Live, is_end};

/// The only task that is listed, which is the session's.
async fn only_task(client: &mut Client, session: &Session) -> Value {
    client.ask(1, "ListTasks", json!({})).await;
    let listed = client.answer(1).await;
    let [task] = listed["result"]["tasks"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(task["contextId"], session.id().as_str());
    task.clone()
}

#[tokio::test]
async fn a_turn_that_was_typed_before_anybody_came_is_listed() {
    let (live, session, mut agent) = Live::shared().await;
    let by = ClientRef::new("ann", Way::Terminal);
    session.prompt(Prompt::text("first"), WhenBusy::Queue, by).await.unwrap();
    agent.answers(1).await;
    let mut client = live.client("").await;
    let listed = only_task(&mut client, &session).await;
    client.ask(2, "tasks/get", json!({ "id": listed["id"] })).await;
    let task = client.answer(2).await;
    assert_eq!(task["result"]["history"][0]["parts"][0]["text"], "first", "{task}");
}

/// R003-16: it is there from the first moment to the last, so that a client can listen before anybody has prompted.
#[tokio::test]
async fn the_task_that_all_share_is_listed_before_its_first_turn() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("").await;
    let listed = only_task(&mut client, &session).await;
    assert_eq!(listed["status"]["state"], "TASK_STATE_SUBMITTED", "{listed}");
    client.ask(2, "tasks/resubscribe", json!({ "id": listed["id"] })).await;
    assert_eq!(client.answer(2).await["result"]["id"], listed["id"]);
    session.prompt(Prompt::text("first"), WhenBusy::Queue, ClientRef::new("ann", Way::Terminal)).await.unwrap();
    agent.answers(1).await;
    let told = client.until(is_end).await;
    assert!(told.iter().all(|frame| frame["id"] == 2), "{told:#?}");
}
