//! Tasks of a session that others use too.

use multitap_event::{ClientRef, Door as Way, Prompt};
use multitap_hub::WhenBusy;
use serde_json::json;

use crate::live::Live;

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
