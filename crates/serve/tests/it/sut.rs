//! The system under test of conformance suites (`examples/a2a_sut`): each beginning of a message id, over JSON-RPC and
//! HTTP+JSON.

use std::sync::Arc;
use std::time::Duration;

use multitap_serve::{Access, CardVersions, DoorConfig, Limits, OpenDoor};
use multitap_store::Store;
use multitap_testkit::http::HttpClient;
use multitap_testkit::sut::{PREFIXES, SutAction, SutLaunch};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scene::{config, port};
use crate::sut_host::Sut;

const WAIT: Duration = Duration::from_millis(1500);

async fn open(card: CardVersions, other: SutAction) -> (OpenDoor, HttpClient, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path().join("log.db")).unwrap());
    let host = Sut::new(store, SutLaunch::new(other, WAIT));
    let config = DoorConfig { card, ..config("127.0.0.1", Access::default(), Limits::default()) };
    let door = OpenDoor::open(config, Arc::new(host)).await.unwrap();
    let http = HttpClient::to(port(&door)).with("A2A-Version", "1.0");
    (door, http, folder)
}

/// The items of a stream of 1.0.
fn stream(http: &HttpClient, is_rest: bool, params: &Value) -> Vec<Value> {
    let response = if is_rest {
        http.post("/message:stream", params).unwrap()
    } else {
        http.call("SendStreamingMessage", params).unwrap()
    };
    let events = response.events().unwrap().into_iter().map(|event| event.json);
    events.map(|json| if is_rest { json } else { json["result"].clone() }).collect()
}

fn message(id: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "go" }] } })
}

/// The states that a stream tells, and the kinds of the artifacts' parts in between.
fn told(items: &[Value]) -> Vec<String> {
    let word = |status: &Value| status["state"].as_str().unwrap()["TASK_STATE_".len()..].to_owned();
    let mut told: Vec<String> = Vec::new();
    for item in items {
        let said = if let Some(task) = item.get("task") {
            word(&task["status"])
        } else if let Some(update) = item.get("statusUpdate") {
            word(&update["status"])
        } else {
            let part = &item["artifactUpdate"]["artifact"]["parts"][0];
            let kind = ["text", "raw", "data"].into_iter().find(|kind| part.get(*kind).is_some());
            format!("artifact {}", kind.unwrap())
        };
        if told.last() != Some(&said) {
            told.push(said);
        }
    }
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_prefix_over_json_rpc_and_http_json() {
    let (door, http, _folder) = open(CardVersions::V1_0, SutAction::Complete).await;
    let check = move || {
        for is_rest in [false, true] {
            for (prefix, action) in PREFIXES {
                let items = stream(&http, is_rest, &message(&format!("{prefix}-{is_rest}")));
                let expected: &[&str] = match action {
                    SutAction::Complete | SutAction::Pieces | SutAction::Wait => {
                        &["SUBMITTED", "WORKING", "artifact text", "COMPLETED"]
                    }
                    SutAction::WriteFile => &["SUBMITTED", "WORKING", "artifact text", "artifact raw", "COMPLETED"],
                    SutAction::Output => &["SUBMITTED", "WORKING", "artifact text", "artifact data", "COMPLETED"],
                    SutAction::Ask => &["SUBMITTED", "WORKING", "INPUT_REQUIRED"],
                    SutAction::Fail => &["SUBMITTED", "WORKING", "FAILED"],
                };
                assert_eq!(told(&items), expected, "{prefix} {is_rest}: {items:#?}");
                let sent = if is_rest {
                    http.post("/message:send", &message(prefix_or(prefix))).unwrap().json().unwrap()
                } else {
                    http.answer("SendMessage", &message(prefix_or(prefix))).unwrap()["result"].clone()
                };
                let state = sent["task"]["status"]["state"].as_str().unwrap();
                assert_eq!(&state["TASK_STATE_".len()..], *expected.last().unwrap(), "{prefix} {is_rest}: {sent:#}");
            }
        }
    };
    tokio::task::spawn_blocking(check).await.unwrap();
    door.stop().await;
}

/// A message must have an id.
fn prefix_or(prefix: &str) -> &str {
    if prefix.is_empty() { "any" } else { prefix }
}

/// As the suite of 0.3 wants it: its tasks wait, so that they can be cancelled, and the card is for both versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_card_and_other_messages_as_a_suite_wants_them() {
    for (card, other, has_old) in
        [(CardVersions::V1_0, SutAction::Complete, false), (CardVersions::Hybrid, SutAction::Ask, true)]
    {
        let (door, http, _folder) = open(card, other).await;
        let check = move || {
            let plain = HttpClient::to(http.port());
            let card = plain.get("/.well-known/agent-card.json").unwrap().json().unwrap();
            assert_eq!((card.get("url").is_some(), card.get("supportedInterfaces").is_some()), (has_old, true));
            let items = stream(&http, true, &message("any"));
            assert_eq!(told(&items).last().unwrap() == "INPUT_REQUIRED", has_old);
            let task = items[0]["task"]["id"].as_str().unwrap();
            let cancelled = http.post(&format!("/tasks/{task}:cancel"), &json!({})).unwrap();
            assert_eq!(cancelled.status, if has_old { 200 } else { 400 });
        };
        tokio::task::spawn_blocking(check).await.unwrap();
        door.stop().await;
    }
}
