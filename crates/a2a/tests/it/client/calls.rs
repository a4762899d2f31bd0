//! One question, one answer, in both dialects over JSON-RPC.

use multitap_a2a::client::{ClientError, ExtensionUse};
use multitap_a2a::devtool::URI;
use multitap_a2a::{ErrorKind, ListTasks, Message, Part, PushConfig, SendMessage, Sent, TaskState};
use serde_json::{Value, json};

use super::server::{Agent, Asked, Reply, card, quick, task_0_3, task_1_0};

pub(super) fn hello() -> SendMessage {
    let message = Message { parts: vec![Part::text("hello")], ..Message::default() };
    SendMessage { message, ..SendMessage::default() }
}

fn script_1_0(asked: &Asked) -> Reply {
    let params = &asked.body["params"];
    match asked.rpc() {
        "SendMessage" => asked.result(json!({ "task": task_1_0("t", "COMPLETED") })),
        "GetTask" if params["id"] == "t" => asked.result(task_1_0("t", "WORKING")),
        "ListTasks" => asked.result(json!({
            "tasks": [task_1_0("t", "WORKING")], "nextPageToken": "more", "pageSize": 1, "totalSize": 2,
        })),
        "CancelTask" => asked.result(task_1_0("t", "CANCELED")),
        "CreateTaskPushNotificationConfig" => asked.result(params.clone()),
        "GetTaskPushNotificationConfig" => {
            asked.result(json!({ "taskId": "t", "id": params["id"], "url": "https://example.org/hook" }))
        }
        "ListTaskPushNotificationConfigs" => {
            asked.result(json!({ "configs": [{ "taskId": "t", "id": "p", "url": "https://example.org/hook" }] }))
        }
        "DeleteTaskPushNotificationConfig" => asked.result(json!({})),
        "GetExtendedAgentCard" => asked.result(card("http://x", &[("JSONRPC", "1.0")])),
        _ => asked.error(-32001, "there is no such task"),
    }
}

fn script_0_3(asked: &Asked) -> Reply {
    let params = &asked.body["params"];
    match asked.rpc() {
        "message/send" => asked.result(json!({
            "kind": "message", "messageId": "a", "role": "agent", "parts": [{ "kind": "text", "text": "hi" }],
        })),
        "tasks/get" if params["id"] == "t" => asked.result(task_0_3("t", "working")),
        "tasks/cancel" => asked.result(task_0_3("t", "canceled")),
        "tasks/pushNotificationConfig/set" => asked.result(params.clone()),
        "tasks/pushNotificationConfig/get" => {
            asked.result(json!({ "taskId": "t", "pushNotificationConfig": { "id": "p", "url": "https://e.org" } }))
        }
        "tasks/pushNotificationConfig/list" => {
            asked.result(json!([{ "taskId": "t", "pushNotificationConfig": { "id": "p", "url": "https://e.org" } }]))
        }
        "tasks/pushNotificationConfig/delete" => asked.result(Value::Null),
        "agent/getAuthenticatedExtendedCard" => asked.result(json!({ "name": "more", "url": "http://x" })),
        _ => asked.error(-32001, "there is no such task"),
    }
}

#[tokio::test]
async fn everything_can_be_asked_in_1_0() {
    let agent = Agent::speaking("1.0", script_1_0).await;
    let client = agent.client(quick()).await;
    let Sent::Task(task) = client.send(hello()).await.unwrap() else { panic!("a task was answered") };
    assert_eq!((task.id.as_str(), task.status.state), ("t", TaskState::Completed));
    let asked = agent.last();
    assert_eq!((asked.header("a2a-version"), asked.header("x-a2a-extensions")), (Some("1.0"), None));
    assert_eq!(asked.body["params"]["message"]["role"], "ROLE_USER");
    // An id of its own for each.
    assert_eq!(asked.body["params"]["message"]["messageId"].as_str().unwrap().len(), 36);

    assert_eq!(client.get("t", Some(3)).await.unwrap().status.state, TaskState::Working);
    assert_eq!(agent.last().body["params"], json!({ "id": "t", "historyLength": 3 }));
    let wanted = ListTasks { context_id: Some("c".to_owned()), page_size: Some(1), ..ListTasks::default() };
    let list = client.list(wanted).await.unwrap();
    assert_eq!((list.tasks.len(), list.next_page_token.as_str(), list.total_size), (1, "more", 2));
    assert_eq!(agent.last().body["params"], json!({ "contextId": "c", "pageSize": 1 }));
    assert_eq!(client.cancel("t").await.unwrap().status.state, TaskState::Canceled);

    let config = PushConfig { id: Some("p".to_owned()), url: "https://e.org".to_owned(), ..PushConfig::default() };
    assert_eq!(client.create_push_config("t", config.clone()).await.unwrap(), config);
    assert_eq!(client.get_push_config("t", "p").await.unwrap().id.as_deref(), Some("p"));
    assert_eq!(client.list_push_configs("t").await.unwrap().len(), 1);
    client.delete_push_config("t", "p").await.unwrap();
    assert_eq!(agent.last().body["params"], json!({ "taskId": "t", "id": "p" }));
    assert_eq!(client.extended_card().await.unwrap().name, "scripted");
}

#[tokio::test]
async fn everything_can_be_asked_in_0_3() {
    let agent = Agent::speaking("0.3", script_0_3).await;
    let client = agent.client(quick()).await;
    let Sent::Message(message) = client.send(hello()).await.unwrap() else { panic!("a message was answered") };
    assert_eq!(message.text(), "hi");
    assert_eq!(agent.last().header("a2a-version"), None);
    assert_eq!(client.get("t", None).await.unwrap().status.state, TaskState::Working);
    assert_eq!(client.cancel("t").await.unwrap().status.state, TaskState::Canceled);
    let config = PushConfig { id: Some("p".to_owned()), url: "https://e.org".to_owned(), ..PushConfig::default() };
    assert_eq!(client.create_push_config("t", config.clone()).await.unwrap(), config);
    assert_eq!(client.get_push_config("t", "p").await.unwrap(), config);
    assert_eq!(client.list_push_configs("t").await.unwrap(), [config]);
    client.delete_push_config("t", "p").await.unwrap();
    assert_eq!(client.extended_card().await.unwrap().name, "more");
    let before = agent.asked().len();
    assert_eq!(
        client.list(ListTasks::default()).await.unwrap_err().to_string(),
        "A2A 0.3 over JSONRPC has no such method"
    );
    assert_eq!(agent.asked().len(), before);
}

#[tokio::test]
async fn a_refusal_comes_in_the_agents_own_words() {
    for (version, script) in [("1.0", script_1_0 as fn(&Asked) -> Reply), ("0.3", script_0_3)] {
        let agent = Agent::speaking(version, script).await;
        let error = agent.client(quick()).await.get("other", None).await.unwrap_err();
        assert_eq!(error.agent().unwrap().kind, ErrorKind::TaskNotFound);
        assert_eq!(error.to_string(), "there is no such task");
    }
    // Whatever the status is.
    let agent = Agent::speaking("1.0", |asked| asked.error(-32602, "id: is wrong").status(400)).await;
    let error = agent.client(quick()).await.get("t", None).await.unwrap_err();
    assert_eq!(error.agent().unwrap().kind, ErrorKind::InvalidParams);
    // Who is not let in has not come to the agent yet.
    let agent = Agent::speaking("1.0", |asked| asked.error(401, "who are you").status(401)).await;
    let error = agent.client(quick()).await.get("t", None).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 401, .. }), "{error}");
}

#[tokio::test]
async fn calls_can_be_made_from_any_task() {
    let agent = Agent::speaking("1.0", script_1_0).await;
    let client = agent.client(quick()).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        tasks.spawn(async move { client.get("t", None).await.unwrap().id });
    }
    assert_eq!(tasks.join_all().await, ["t"; 8]);
    let ids: std::collections::BTreeSet<String> =
        agent.asked().iter().skip(1).map(|asked| asked.body["id"].to_string()).collect();
    assert_eq!(ids.len(), 8);
}

#[tokio::test]
async fn extensions_and_headers_go_with_every_call() {
    let agent = Agent::start(|asked, url| match asked.method.as_str() {
        "GET" => {
            let mut card = card(url, &[("JSONRPC", "1.0")]);
            card["capabilities"]["extensions"] = json!([{ "uri": URI }]);
            card["supportedInterfaces"][0]["tenant"] = json!("ours");
            Reply::json(card)
        }
        _ => asked.result(task_1_0("t", "WORKING")),
    })
    .await;
    let options =
        quick().bearer("s3cret-token").header("X-Api-Key", "s3cret-key").development_tool(ExtensionUse::Required);
    let client = agent.client(options.clone()).await;
    client.get("t", None).await.unwrap();
    let asked = agent.last();
    for name in ["a2a-extensions", "x-a2a-extensions"] {
        assert_eq!(asked.header(name), Some(URI));
    }
    assert_eq!(asked.header("authorization"), Some("Bearer s3cret-token"));
    assert_eq!(asked.header("x-api-key"), Some("s3cret-key"));
    assert_eq!(asked.body["params"], json!({ "id": "t", "tenant": "ours" }));
    let shown = format!("{client:?} {options:?}");
    assert!(!shown.contains("s3cret") && shown.contains("X-Api-Key"), "{shown}");
    let error = agent.connect(quick().header("X-Api-Key", "s3cret\n")).await.unwrap_err();
    assert_eq!(error.to_string(), "invalid header 'X-Api-Key'");
}

#[tokio::test]
async fn a_message_is_sent_once_unless_it_may_be_sent_again() {
    let agent = Agent::speaking("1.0", |asked| match asked.before {
        0 | 1 => Reply::text("text/plain", "not now").status(503),
        _ => asked.result(json!({ "task": task_1_0("t", "COMPLETED") })),
    })
    .await;
    let client = agent.client(quick()).await;
    let error = client.send(hello()).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 503, .. }), "{error}");
    assert_eq!(agent.methods(), ["SendMessage"]);
    assert!(matches!(client.repeating().send(hello()).await, Err(ClientError::NoMessageId)));
    let mut named = hello();
    named.message.message_id = "mine".to_owned();
    client.repeating().send(named).await.unwrap();
    assert_eq!(agent.methods().len(), 3);
    assert_eq!(agent.last().body["params"]["message"]["messageId"], "mine");
}
