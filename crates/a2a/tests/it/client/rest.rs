//! HTTP+JSON, as 1.0 has it, and as servers of 0.3 really speak it.

use multitap_a2a::client::ClientError;
use multitap_a2a::{
    Content, ErrorKind, ListTasks, Part, PushConfig, SendConfiguration, SendMessage, Sent, TaskState, Update,
};
use serde_json::{Value, json};

use super::calls::hello;
use super::server::{Agent, Asked, Piece, Reply, card, quick, task_0_3, task_1_0};

async fn agent(version: &'static str, script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Agent {
    Agent::start(move |asked, url| match asked.path.as_str() {
        "/.well-known/agent-card.json" => Reply::json(card(&format!("{url}/base/"), &[("HTTP+JSON", version)])),
        _ => script(asked),
    })
    .await
}

fn line(asked: &Asked) -> String {
    format!("{} {}", asked.method, asked.path)
}

#[tokio::test]
async fn everything_can_be_asked_in_1_0() {
    let agent = agent("1.0", |asked| match line(asked).as_str() {
        "POST /base/message:send" => Reply::json(json!({ "task": task_1_0("t/1", "COMPLETED") })),
        "GET /base/tasks/t%2F1?historyLength=2" => Reply::json(task_1_0("t/1", "WORKING")),
        "GET /base/tasks?contextId=c+d&status=TASK_STATE_WORKING&pageSize=5" => {
            Reply::json(json!({ "tasks": [task_1_0("t/1", "WORKING")], "nextPageToken": "" }))
        }
        "POST /base/tasks/t%2F1:cancel" => Reply::json(task_1_0("t/1", "CANCELED")),
        "POST /base/tasks/t%2F1/pushNotificationConfigs" => Reply::json(asked.body.clone()),
        "GET /base/tasks/t%2F1/pushNotificationConfigs/p" => {
            Reply::json(json!({ "taskId": "t/1", "id": "p", "url": "https://e.org" }))
        }
        "GET /base/tasks/t%2F1/pushNotificationConfigs" => {
            Reply::json(json!({ "configs": [{ "taskId": "t/1", "id": "p", "url": "https://e.org" }] }))
        }
        "DELETE /base/tasks/t%2F1/pushNotificationConfigs/p" => Reply::text("", "").status(204),
        "GET /base/extendedAgentCard" => Reply::json(card("http://x", &[("HTTP+JSON", "1.0")])),
        _ => Reply::json(json!({ "error": { "code": 404, "status": "NOT_FOUND", "message": "no such task",
            "details": [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "TASK_NOT_FOUND",
                          "domain": "a2a-protocol.org", "metadata": {} }] } }))
        .status(404),
    })
    .await;
    let client = agent.client(quick()).await;
    let Sent::Task(task) = client.send(hello()).await.unwrap() else { panic!("a task was answered") };
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(agent.last().header("a2a-version"), Some("1.0"));
    assert_eq!(agent.last().header("content-type"), Some("application/json"));
    assert_eq!(client.get("t/1", Some(2)).await.unwrap().status.state, TaskState::Working);
    let wanted = ListTasks {
        context_id: Some("c d".to_owned()),
        state: Some(TaskState::Working),
        page_size: Some(5),
        ..ListTasks::default()
    };
    assert_eq!(client.list(wanted).await.unwrap().tasks.len(), 1);
    assert_eq!(client.cancel("t/1").await.unwrap().status.state, TaskState::Canceled);
    let config = PushConfig { id: Some("p".to_owned()), url: "https://e.org".to_owned(), ..PushConfig::default() };
    assert_eq!(client.create_push_config("t/1", config.clone()).await.unwrap(), config);
    assert_eq!(client.get_push_config("t/1", "p").await.unwrap(), config);
    assert_eq!(client.list_push_configs("t/1").await.unwrap(), [config]);
    client.delete_push_config("t/1", "p").await.unwrap();
    assert_eq!(client.extended_card().await.unwrap().name, "scripted");

    let error = client.get("t/2", None).await.unwrap_err();
    assert_eq!(error.agent().unwrap().kind, ErrorKind::TaskNotFound);
    // An id that would lead elsewhere is no id.
    let before = agent.asked().len();
    for id in ["", ".", ".."] {
        assert!(matches!(client.get(id, None).await, Err(ClientError::Id(_))));
        assert!(matches!(client.delete_push_config("t", id).await, Err(ClientError::Id(_))));
    }
    assert_eq!(agent.asked().len(), before);
}

/// Bare, as HTTP+JSON has them.
fn event(id: &str, value: &Value) -> Piece {
    Piece::Text(format!("id: {id}\ndata: {value}\n\n"))
}

#[tokio::test]
async fn streams_of_1_0_are_followed_by_whichever_method_is_taken() {
    let agent = agent("1.0", |asked| match line(asked).as_str() {
        "POST /base/message:stream" => {
            Reply::stream([event("1", &json!({ "task": task_1_0("t", "WORKING") })), Piece::Cut])
        }
        "POST /base/tasks/t:subscribe" => Reply::stream([event("2", &json!({ "task": task_1_0("t", "COMPLETED") }))]),
        "GET /base/tasks/t:subscribe" => Reply::text("text/plain", "use POST").status(405),
        _ => Reply::text("text/plain", "?").status(404),
    })
    .await;
    let mut updates = agent.client(quick()).await.stream(hello()).await.unwrap();
    let mut cursors = Vec::new();
    while let Some(told) = updates.next().await {
        cursors.push(told.unwrap().cursor.unwrap());
    }
    assert_eq!(cursors, ["1", "2"]);
    assert_eq!(agent.last().header("last-event-id"), Some("1"));
}

#[tokio::test]
async fn a_tenant_has_addresses_of_its_own() {
    let agent = Agent::start(|asked, url| match asked.path.as_str() {
        "/.well-known/agent-card.json" => {
            let mut card = card(url, &[("HTTP+JSON", "1.0")]);
            card["supportedInterfaces"][0]["tenant"] = json!("ours");
            Reply::json(card)
        }
        "/ours/tasks/t" => Reply::json(task_1_0("t", "WORKING")),
        _ => Reply::text("text/plain", "?").status(404),
    })
    .await;
    agent.client(quick()).await.get("t", None).await.unwrap();
}

/// A message with all kinds of parts.
fn parts() -> SendMessage {
    let mut send = hello();
    send.message.message_id = "m".to_owned();
    send.message.parts = vec![
        Part::text("hello"),
        Part { media_type: Some("text/plain".to_owned()), ..Part::of(Content::Raw("aGk=".to_owned())) },
        Part { filename: Some("x".to_owned()), ..Part::of(Content::Url("https://e.org/x".to_owned())) },
        Part::data(json!({ "a_b": 1 })),
        Part::data(json!([1])),
    ];
    send.configuration = SendConfiguration { history_length: Some(1), ..SendConfiguration::default() };
    send
}

#[tokio::test]
async fn a_message_of_0_3_is_written_as_its_servers_read_it() {
    let agent =
        agent("0.3", |_| Reply::json(json!({ "task": { "id": "t", "status": { "state": "TASK_STATE_COMPLETED" } } })))
            .await;
    agent.client(quick()).await.send(parts()).await.unwrap();
    let asked = agent.last();
    assert_eq!(line(&asked), "POST /base/v1/message:send");
    assert_eq!(asked.header("a2a-version"), None);
    assert_eq!(
        asked.body,
        json!({
            "message": { "messageId": "m", "role": "ROLE_USER", "content": [
                { "text": "hello" },
                { "file": { "fileWithBytes": "aGk=", "mimeType": "text/plain" } },
                { "file": { "fileWithUri": "https://e.org/x", "name": "x" } },
                { "data": { "data": { "a_b": 1 } } },
                { "data": { "data": { "value": [1] } }, "metadata": { "data_part_compat": true } },
            ] },
            "configuration": { "blocking": true, "historyLength": 1 },
        })
    );
}

/// A task as the JSON form of gRPC has it.
fn grpc_task() -> Value {
    json!({
        "id": "t", "contextId": "c",
        "status": { "state": "TASK_STATE_CANCELLED", "message": {
            "messageId": "m", "role": "ROLE_AGENT", "content": [
                { "text": "hi" }, { "data": { "data": { "a_b": 1 } } },
                { "file": { "fileWithUri": "https://e.org/x", "mimeType": "text/plain" } },
            ] } },
        "history": [{ "messageId": "u", "role": "ROLE_USER", "content": [{ "text": "hello" }] }],
        "artifacts": [{ "artifactId": "a", "parts": [{ "text": "made" }] }],
        "metadata": { "snake_case": { "stays_so": 1 } },
    })
}

#[tokio::test]
async fn answers_of_0_3_are_read_in_all_their_shapes() {
    let agent = agent("0.3", |asked| match line(asked).as_str() {
        "GET /base/v1/tasks/t" => Reply::json(grpc_task()),
        "GET /base/v1/tasks/u" => Reply::json(task_0_3("u", "input-required")),
        "GET /base/v1/tasks/w" => {
            Reply::json(json!({ "id": "w", "context_id": "c", "status": { "state": "TASK_STATE_AUTH_REQUIRED" } }))
        }
        "POST /base/v1/tasks/t:cancel" => Reply::json(grpc_task()),
        "GET /base/v1/tasks" => Reply::json(json!({ "tasks": [grpc_task()], "next_page_token": "n" })),
        "POST /base/v1/message:send" => {
            Reply::json(json!({ "msg": { "message_id": "m", "role": "ROLE_AGENT", "content": [{ "text": "hi" }] } }))
        }
        "POST /base/v1/tasks/t/pushNotificationConfigs" => Reply::json(asked.body["config"].clone()),
        "GET /base/v1/tasks/t/pushNotificationConfigs" => Reply::json(json!({ "configs": [{
            "name": "tasks/t/pushNotificationConfigs/p", "pushNotificationConfig": { "id": "p", "url": "https://e.org" } }] })),
        "GET /base/v1/tasks/u/pushNotificationConfigs" => Reply::json(json!({})),
        "GET /base/v1/card" => Reply::json(json!({ "name": "more", "url": "http://x" })),
        _ => Reply::json(json!({ "code": -32001, "message": "no such task" })).status(404),
    })
    .await;
    let client = agent.client(quick()).await;
    for task in [
        client.get("t", None).await.unwrap(),
        client.cancel("t").await.unwrap(),
        client.list(ListTasks::default()).await.unwrap().tasks.remove(0),
    ] {
        assert_eq!((task.id.as_str(), task.context_id.as_str(), task.status.state), ("t", "c", TaskState::Canceled));
        let said = task.status.message.unwrap();
        assert_eq!(said.text(), "hi");
        assert_eq!(said.parts[1].content, Content::Data(json!({ "a_b": 1 })));
        assert_eq!(said.parts[2].content, Content::Url("https://e.org/x".to_owned()));
        assert_eq!(said.parts[2].media_type.as_deref(), Some("text/plain"));
        assert_eq!(task.history[0].text(), "hello");
        assert_eq!(task.artifacts[0].parts[0], Part::text("made"));
        assert_eq!(task.metadata["snake_case"], json!({ "stays_so": 1 }));
    }
    assert_eq!(client.get("u", None).await.unwrap().status.state, TaskState::InputRequired);
    let other = client.get("w", None).await.unwrap();
    assert_eq!((other.status.state, other.context_id.as_str()), (TaskState::AuthRequired, "c"));
    let Sent::Message(message) = client.send(hello()).await.unwrap() else { panic!("a message was answered") };
    assert_eq!(message.text(), "hi");
    let config = PushConfig { id: Some("p".to_owned()), url: "https://e.org".to_owned(), ..PushConfig::default() };
    assert_eq!(client.create_push_config("t", config.clone()).await.unwrap(), config);
    assert_eq!(client.list_push_configs("t").await.unwrap(), [config]);
    assert_eq!(client.list_push_configs("u").await.unwrap(), []);
    assert_eq!(client.extended_card().await.unwrap().name, "more");
    let error = client.get("x", None).await.unwrap_err();
    assert_eq!(error.agent().unwrap().kind, ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn a_stream_of_0_3_is_read_in_both_spellings() {
    let agent = agent("0.3", |_| {
        let status = |state: &str| json!({ "state": format!("TASK_STATE_{state}") });
        Reply::stream([
            event("1", &json!({ "task": { "id": "t", "contextId": "c", "status": status("SUBMITTED") } })),
            event("2", &json!({ "status_update": { "task_id": "t", "context_id": "c", "status": status("WORKING") } })),
            event(
                "3",
                &json!({ "artifactUpdate": { "taskId": "t", "contextId": "c", "lastChunk": true,
                "artifact": { "artifactId": "a", "parts": [{ "text": "made" }] } } }),
            ),
            event(
                "4",
                &json!({ "statusUpdate": {
                "taskId": "t", "contextId": "c", "status": status("INPUT_REQUIRED"), "final": true } }),
            ),
        ])
    })
    .await;
    let mut updates = agent.client(quick()).await.stream(hello()).await.unwrap();
    let mut states = Vec::new();
    while let Some(told) = updates.next().await {
        states.push(match told.unwrap().update {
            Update::Task(task) => task.status.state,
            Update::Status(update) => update.status.state,
            Update::Artifact(update) => {
                assert!(update.last_chunk && update.artifact.parts == [Part::text("made")]);
                continue;
            }
            Update::Message(_) => panic!("no message was sent"),
        });
    }
    assert_eq!(states, [TaskState::Submitted, TaskState::Working, TaskState::InputRequired]);
}
