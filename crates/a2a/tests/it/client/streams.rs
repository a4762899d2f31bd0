//! Streams, whole and broken.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use multitap_a2a::client::{ClientError, Updates};
use multitap_a2a::{ErrorKind, Update};
use serde_json::{Value, json};

use super::calls::hello;
use super::server::{Agent, Asked, Piece, Reply, quick, task_0_3, task_1_0};

fn status_1_0(state: &str, text: &str) -> Value {
    let message = json!({ "messageId": text, "role": "ROLE_AGENT", "parts": [{ "text": text }] });
    let status = json!({ "state": format!("TASK_STATE_{state}"), "message": message });
    json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": status } })
}

fn status_0_3(state: &str, text: &str, is_final: bool) -> Value {
    let message =
        json!({ "kind": "message", "messageId": text, "role": "agent", "parts": [{ "kind": "text", "text": text }] });
    let status = json!({ "state": state, "message": message });
    json!({ "kind": "status-update", "taskId": "t", "contextId": "c", "status": status, "final": is_final })
}

/// What a stream told: cursor, and text or kind; an error last.
async fn told(mut updates: Updates) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(told) = updates.next().await {
        all.push(match told {
            Err(error) => format!("! {error}"),
            Ok(told) => {
                let cursor = told.cursor.unwrap_or_else(|| "-".to_owned());
                let words = match told.update {
                    Update::Task(task) => format!("task {:?}", task.status.state),
                    Update::Status(update) => update.status.message.unwrap().text(),
                    Update::Message(message) => message.text(),
                    Update::Artifact(update) => update.artifact.artifact_id,
                };
                format!("{cursor} {words}")
            }
        });
    }
    all
}

#[tokio::test]
async fn a_stream_tells_everything_and_ends() {
    let agent = Agent::speaking("1.0", |asked| {
        Reply::stream([
            ": ping\n\n".into(),
            asked.event(None, &json!({ "task": task_1_0("t", "SUBMITTED") })),
            asked.event(Some("1"), &status_1_0("WORKING", "a")),
            asked.event(
                Some("2"),
                &json!({ "artifactUpdate": {
                "taskId": "t", "contextId": "c", "artifact": { "artifactId": "x", "parts": [] } } }),
            ),
            asked.event(Some("3"), &status_1_0("COMPLETED", "done")),
        ])
    })
    .await;
    let client = agent.client(quick()).await;
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["- task Submitted", "1 a", "2 x", "3 done"]);
    assert!(agent.last().header("accept").unwrap().starts_with("text/event-stream"));
    // Also as the stream that other libraries know.
    assert_eq!(StreamExt::count(client.stream(hello()).await.unwrap()).await, 4);
}

#[tokio::test]
async fn an_agent_that_does_not_stream_is_asked_without() {
    let agent = Agent::start(|asked, url| match asked.method.as_str() {
        "GET" => Reply::json(json!({ "name": "still", "url": url })),
        _ => asked.result(task_0_3("t", "completed")),
    })
    .await;
    let client = agent.client(quick()).await;
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["- task Completed"]);
    assert_eq!(agent.methods(), ["message/send"]);
}

#[tokio::test]
async fn a_refusal_comes_before_a_stream_or_in_it() {
    let agent = Agent::speaking("1.0", |asked| asked.error(-32004, "no")).await;
    let error = agent.client(quick()).await.stream(hello()).await.map(|_| ()).unwrap_err();
    assert_eq!(error.agent().unwrap().kind, ErrorKind::UnsupportedOperation);

    let agent = Agent::speaking("0.3", |asked| {
        let refusal = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": { "code": -32602, "message": "no" } });
        Reply::stream([Piece::Text(format!("event: error\ndata: {refusal}\n\n"))])
    })
    .await;
    let client = agent.client(quick()).await;
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["! no"]);
    assert_eq!(told(client.resubscribe("t", None).await.unwrap()).await, ["! no"]);
}

#[tokio::test]
async fn what_is_no_event_is_an_error() {
    let agent = Agent::speaking("1.0", |asked| {
        Reply::stream([asked.event(Some("1"), &status_1_0("WORKING", "a")), "data: {broken\n\n".into()])
    })
    .await;
    let told = told(agent.client(quick()).await.stream(hello()).await.unwrap()).await;
    assert_eq!(told[0], "1 a");
    assert!(told[1].contains("an event is not JSON"), "{told:?}");
    assert_eq!((told.len(), agent.methods().len()), (2, 1));
}

/// A log of events with numbers, which is told from any place; each connection breaks after two.
fn numbered(asked: &Asked) -> Reply {
    let log = [
        status_1_0("WORKING", "a"),
        status_1_0("WORKING", "b"),
        status_1_0("WORKING", "c"),
        status_1_0("WORKING", "d"),
        status_1_0("COMPLETED", "e"),
    ];
    let after: usize = asked.header("last-event-id").unwrap_or("0").parse().unwrap();
    let mut pieces: Vec<Piece> = Vec::new();
    for (index, event) in log.iter().enumerate().skip(after).take(2) {
        pieces.push(asked.event(Some(&(index + 1).to_string()), event));
    }
    if after + 2 < log.len() {
        // Half an event was on its way.
        pieces.extend(["id: 99\ndata: {\"half\"".into(), Piece::Cut]);
    }
    Reply::stream(pieces)
}

#[tokio::test]
async fn a_broken_stream_goes_on_after_its_last_event() {
    let agent = Agent::speaking("1.0", numbered).await;
    let client = agent.client(quick()).await;
    let all = ["1 a", "2 b", "3 c", "4 d", "5 e"];
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, all);
    assert_eq!(agent.methods(), ["SendStreamingMessage", "SubscribeToTask", "SubscribeToTask"]);
    let cursors: Vec<_> =
        agent.asked().iter().skip(2).map(|asked| asked.header("last-event-id").unwrap().to_owned()).collect();
    assert_eq!(cursors, ["2", "4"]);
    assert_eq!(agent.last().body["params"], json!({ "id": "t" }));
    // From the place a caller names, too.
    assert_eq!(told(client.resubscribe("t", Some("3")).await.unwrap()).await, all[3..]);
}

#[tokio::test]
async fn what_was_told_is_not_told_again() {
    // It numbers its events, but begins from the first each time.
    let agent = Agent::speaking("0.3", |asked| {
        let all = [
            asked.event(Some("1"), &status_0_3("working", "a", false)),
            asked.event(Some("2"), &status_0_3("working", "b", false)),
            asked.event(Some("3"), &status_0_3("input-required", "c", true)),
        ];
        match asked.rpc() {
            "message/stream" => Reply::stream([all[0].clone(), all[1].clone(), Piece::Cut]),
            _ => Reply::stream(all),
        }
    })
    .await;
    let client = agent.client(quick()).await;
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["1 a", "2 b", "3 c"]);

    // It counts anew with each connection: the same number, but not the same event.
    let agent = Agent::speaking("0.3", |asked| match asked.rpc() {
        "message/stream" => Reply::stream([asked.event(Some("1"), &status_0_3("working", "a", false)), Piece::Cut]),
        _ => Reply::stream([
            asked.event(Some("1"), &status_0_3("working", "b", false)),
            asked.event(Some("2"), &status_0_3("completed", "c", true)),
        ]),
    })
    .await;
    assert_eq!(told(agent.client(quick()).await.stream(hello()).await.unwrap()).await, ["1 a", "1 b", "2 c"]);
}

#[tokio::test]
async fn without_numbers_it_goes_on_from_the_state_of_the_task() {
    let agent = Agent::speaking("0.3", |asked| match asked.rpc() {
        "message/stream" => Reply::stream([asked.event(None, &status_0_3("working", "a", false)), Piece::Cut]),
        _ => Reply::stream([
            asked.event(None, &task_0_3("t", "working")),
            asked.event(None, &status_0_3("completed", "b", true)),
        ]),
    })
    .await;
    let client = agent.client(quick()).await;
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["- a", "- task Working", "- b"]);
    assert_eq!(agent.last().header("last-event-id"), None);
    assert_eq!(agent.last().rpc(), "tasks/resubscribe");
}

#[tokio::test]
async fn a_stream_that_just_ends_while_the_task_works_goes_on() {
    let agent = Agent::speaking("1.0", |asked| match asked.rpc() {
        "SendStreamingMessage" => Reply::stream([asked.event(Some("1"), &status_1_0("WORKING", "a"))]),
        // It asks, and the stream stays open: one that began with a message ends there all the same.
        _ => Reply::stream([
            asked.event(Some("2"), &status_1_0("INPUT_REQUIRED", "b")),
            Piece::Pause(Duration::from_secs(60)),
        ]),
    })
    .await;
    let client = agent.client(quick()).await;
    let start = Instant::now();
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["1 a", "2 b"]);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_task_that_was_over_meanwhile_is_told_as_it_is() {
    let agent = Agent::speaking("1.0", |asked| match asked.rpc() {
        "SendStreamingMessage" => Reply::stream([asked.event(Some("1"), &status_1_0("WORKING", "a")), Piece::Cut]),
        "SubscribeToTask" => asked.error(-32004, "it is over"),
        _ => asked.result(task_1_0("t", "FAILED")),
    })
    .await;
    let client = agent.client(quick()).await;
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["1 a", "- task Failed"]);
}

#[tokio::test]
async fn it_is_tried_so_often_and_then_said() {
    let agent = Agent::speaking("1.0", |asked| match asked.rpc() {
        "SendStreamingMessage" => Reply::stream([asked.event(Some("1"), &status_1_0("WORKING", "a")), Piece::Cut]),
        // The same again and again is nothing new.
        _ => Reply::stream([asked.event(Some("1"), &status_1_0("WORKING", "a")), Piece::Cut]),
    })
    .await;
    let told = told(agent.client(quick()).await.stream(hello()).await.unwrap()).await;
    assert_eq!(told[0], "1 a");
    assert!(told[1].starts_with("! the stream broke and could not be resumed: the connection to"), "{told:?}");
    assert_eq!((told.len(), agent.methods().len()), (2, 4));
}

#[tokio::test]
async fn a_message_is_not_sent_again_when_nothing_came() {
    let agent = Agent::speaking("1.0", |_| Reply::stream([": hello\n\n".into(), Piece::Cut])).await;
    let mut updates = agent.client(quick()).await.stream(hello()).await.unwrap();
    let error = updates.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::Cut { .. }), "{error}");
    assert!(updates.next().await.is_none());
    assert_eq!(agent.methods(), ["SendStreamingMessage"]);
}

#[tokio::test]
async fn silence_counts_as_broken_if_one_says_so() {
    let agent = Agent::speaking("1.0", |asked| match asked.rpc() {
        "SendStreamingMessage" => {
            Reply::stream([asked.event(Some("1"), &status_1_0("WORKING", "a")), Piece::Pause(Duration::from_secs(60))])
        }
        _ => Reply::stream([asked.event(Some("2"), &status_1_0("COMPLETED", "b"))]),
    })
    .await;
    let mut options = quick();
    options.timeouts.silence = Some(Duration::from_millis(200));
    let client = agent.client(options).await;
    assert_eq!(told(client.stream(hello()).await.unwrap()).await, ["1 a", "2 b"]);
}

#[tokio::test]
async fn an_agent_that_forgets_to_close_is_not_waited_for() {
    let agent = Agent::speaking("0.3", |asked| {
        Reply::stream([
            asked.event(None, &status_0_3("input-required", "a", true)),
            Piece::Pause(Duration::from_secs(60)),
        ])
    })
    .await;
    let start = Instant::now();
    assert_eq!(told(agent.client(quick()).await.stream(hello()).await.unwrap()).await, ["- a"]);
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn nothing_is_lost_when_a_wait_is_given_up() {
    let agent = Agent::speaking("1.0", |asked| {
        Reply::stream([
            asked.event(Some("1"), &status_1_0("WORKING", "a")),
            Piece::Pause(Duration::from_millis(150)),
            asked.event(Some("2"), &status_1_0("COMPLETED", "b")),
        ])
    })
    .await;
    let mut updates = agent.client(quick()).await.stream(hello()).await.unwrap();
    let mut cursors = Vec::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(10), updates.next()).await {
            Err(_) => {}
            Ok(Some(told)) => cursors.push(told.unwrap().cursor.unwrap()),
            Ok(None) => break,
        }
    }
    assert_eq!(cursors, ["1", "2"]);
}
