//! Tasks of a session that others use too.

use multitap_event::{ClientRef, Door as Way, Prompt};
use multitap_hub::WhenBusy;
use serde_json::json;

use crate::live::{Live, is_end};

#[tokio::test]
async fn a_turn_that_was_typed_before_anybody_came_is_listed() {
    let (live, session, mut agent) = Live::shared().await;
    let by = ClientRef::new("ann", Way::Terminal);
    session.prompt(Prompt::text("first"), WhenBusy::Queue, by).await.unwrap();
    agent.answers(1).await;
    let mut client = live.client("").await;
    client.ask(1, "ListTasks", json!({})).await;
    let listed = client.answer(1).await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(tasks[0]["contextId"], session.id().as_str());
    let id = tasks[0]["id"].clone();
    client.ask(2, "tasks/get", json!({ "id": id })).await;
    let task = client.answer(2).await;
    assert_eq!(task["result"]["history"][0]["parts"][0]["text"], "first", "{task}");
}

/// R003-16: it is there from the first moment to the last, so that a client can listen before anybody has prompted.
#[tokio::test]
async fn the_task_that_all_share_is_listed_before_its_first_turn() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("").await;
    client.ask(1, "ListTasks", json!({})).await;
    let listed = client.answer(1).await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{listed}");
    assert_eq!(tasks[0]["contextId"], session.id().as_str());
    assert_eq!(tasks[0]["status"]["state"], "TASK_STATE_SUBMITTED", "{listed}");
    let id = tasks[0]["id"].clone();
    client.ask(2, "tasks/resubscribe", json!({ "id": id })).await;
    assert_eq!(client.answer(2).await["result"]["id"], id);
    session.prompt(Prompt::text("first"), WhenBusy::Queue, ClientRef::new("ann", Way::Terminal)).await.unwrap();
    agent.answers(1).await;
    let told = client.until(is_end).await;
    assert!(told.iter().all(|frame| frame["id"] == 2), "{told:#?}");
}
