//! Push configs: set, shown, listed and deleted in both dialects, and to whom.

use std::fs;

use multitap_serve::{Access, Limits, PushOptions, Scheme, Tokens};
use serde_json::{Value, json};

use super::{Scene, options, taking};
use crate::live::Live;
use crate::scene::{config, port};

const SET: &str = "tasks/pushNotificationConfig/set";
const GET: &str = "tasks/pushNotificationConfig/get";
const LIST: &str = "tasks/pushNotificationConfig/list";
const DELETE: &str = "tasks/pushNotificationConfig/delete";

#[tokio::test]
async fn they_are_set_got_listed_and_deleted_in_0_3() {
    let scene = Scene::new().await;
    let webhook = taking();
    let given = json!({ "id": "one", "url": webhook.url(), "token": "t",
        "authentication": { "schemes": ["Bearer"], "credentials": "c" } });
    let set = json!({ "taskId": scene.task, "pushNotificationConfig": given });
    assert_eq!(scene.result(SET, set.clone()).await, set);
    let other = json!({ "taskId": scene.task, "pushNotificationConfig": { "url": webhook.url() } });
    let other = scene.result(SET, other).await;
    assert!(other["pushNotificationConfig"]["id"].is_string(), "a config without an id gets one");
    // Without an id of a config: the newest.
    assert_eq!(scene.result(GET, json!({ "id": scene.task })).await, other);
    let one = json!({ "id": scene.task, "pushNotificationConfigId": "one" });
    assert_eq!(scene.result(GET, one.clone()).await, set);
    assert_eq!(scene.result(LIST, json!({ "id": scene.task })).await, json!([other, set]));
    assert_eq!(scene.result(DELETE, one.clone()).await, Value::Null);
    assert_eq!(scene.result(DELETE, one.clone()).await, Value::Null, "a repeated request succeeds");
    assert_eq!(scene.call(GET, one).await["error"]["code"], -32001);
    assert_eq!(scene.result(LIST, json!({ "id": scene.task })).await, json!([other]));
}

#[tokio::test]
async fn they_are_created_got_listed_and_deleted_in_1_0() {
    let scene = Scene::new().await;
    let webhook = taking();
    let given = json!({ "taskId": scene.task, "id": "one", "url": webhook.url(), "token": "t",
        "authentication": { "scheme": "Bearer", "credentials": "c" } });
    let created = scene.result("CreateTaskPushNotificationConfig", given.clone()).await;
    assert_eq!(created, given);
    let one = json!({ "taskId": scene.task, "id": "one" });
    assert_eq!(scene.result("GetTaskPushNotificationConfig", one.clone()).await, given);
    let listed = scene.result("ListTaskPushNotificationConfigs", json!({ "taskId": scene.task })).await;
    assert_eq!(listed["configs"], json!([given]));
    // Set in one dialect, seen in the other.
    assert_eq!(scene.result(LIST, json!({ "id": scene.task })).await[0]["pushNotificationConfig"]["id"], "one");
    assert_eq!(scene.result("DeleteTaskPushNotificationConfig", one.clone()).await, json!({}));
    assert_eq!(scene.call("GetTaskPushNotificationConfig", one).await["error"]["code"], -32001);
    let listed = scene.result("ListTaskPushNotificationConfigs", json!({ "taskId": scene.task })).await;
    assert_eq!(listed["configs"], json!([]));
}

#[tokio::test]
async fn an_unknown_task_has_none() {
    let scene = Scene::new().await;
    let webhook = taking();
    let config = json!({ "taskId": "turn-none", "pushNotificationConfig": { "url": webhook.url() } });
    for (method, params) in [
        (SET, config),
        (GET, json!({ "id": "turn-none" })),
        (LIST, json!({ "id": "turn-none" })),
        (DELETE, json!({ "id": "turn-none", "pushNotificationConfigId": "p" })),
    ] {
        assert_eq!(scene.call(method, params).await["error"]["code"], -32001, "{method}");
    }
}

#[tokio::test]
async fn a_deleted_config_gets_nothing_more() {
    let mut scene = Scene::new().await;
    let (gone, stays) = (taking(), taking());
    scene.hook(&gone).await;
    scene.hook(&stays).await;
    scene.turn().await;
    super::received(&gone, 4).await;
    let one = json!({ "taskId": scene.task, "id": gone.port().to_string() });
    scene.result("DeleteTaskPushNotificationConfig", one).await;
    scene.turn().await;
    super::received(&stays, 8).await;
    assert_eq!(gone.received().len(), 4);
}

#[tokio::test]
async fn a_task_has_only_so_many() {
    let scene = Scene::new().await;
    let webhook = taking();
    let set = |id: usize| {
        let given = json!({ "id": id.to_string(), "url": webhook.url() });
        json!({ "taskId": scene.task, "pushNotificationConfig": given })
    };
    for id in 0..16 {
        scene.result(SET, set(id)).await;
    }
    let refused = scene.call(SET, set(16)).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("at most 16"), "{refused}");
    scene.result(SET, set(3)).await;
    // A message whose webhook has no room is not sent.
    let message =
        json!({ "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "go" }] });
    let configuration = json!({ "blocking": false, "pushNotificationConfig": { "id": "16", "url": webhook.url() } });
    let refused = scene.call("message/send", json!({ "message": message, "configuration": configuration })).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("at most 16"), "{refused}");
    assert!(scene.session.snapshot().await.unwrap().queue.is_empty());
    assert_eq!(scene.session.snapshot().await.unwrap().turns, 0);
}

/// A message is not sent, and no session opened, if its webhook cannot be called.
#[tokio::test]
async fn an_address_is_judged_when_it_is_registered() {
    let scene = Scene::new().await;
    for url in ["http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://[fe80::1]/", "ftp://a.example/"]
    {
        let given = json!({ "taskId": scene.task, "pushNotificationConfig": { "url": url } });
        let refused = scene.call(SET, given).await;
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
        let message = json!({ "kind": "message", "messageId": "m", "role": "user",
            "parts": [{ "kind": "text", "text": "go" }] });
        let configuration = json!({ "blocking": false, "pushNotificationConfig": { "url": url } });
        let refused = scene.call("message/send", json!({ "message": message, "configuration": configuration })).await;
        assert_eq!(refused["error"]["code"], -32602, "{url}: {refused}");
        assert_eq!(refused["error"]["data"]["field"], "url", "{url}: {refused}");
    }
    assert_eq!(scene.session.snapshot().await.unwrap().turns, 0);
    let open = Scene::with(PushOptions { allow_private: true, ..options() }).await;
    let given = json!({ "taskId": open.task, "pushNotificationConfig": { "url": "http://10.0.0.1/" } });
    open.result(SET, given).await;
}

/// The secrets of a config are for the client that set it; observers may set none.
#[tokio::test]
async fn other_clients_see_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokens");
    fs::write(&file, "ann-token controller ann\nbob-token owner bob\neve-token observer eve\n").unwrap();
    #[cfg(unix)]
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let access = Access { scheme: Scheme::of(Tokens::read(&file).unwrap()), ..Access::default() };
    let (live, session, _agent) = Live::shared_at(config("127.0.0.1", access, Limits::default())).await;
    let (port, task) = (port(&live.door), format!("task-{}", session.id()));
    let ask = async |token: &str, method: &str, params: Value| {
        let mut line = crate::scene::Line::to(port).await;
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let head = format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n");
        let token =
            format!("Authorization: Bearer {token}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        line.send(&format!("{head}{token}{body}")).await;
        line.rest().await.json()
    };
    let webhook = taking();
    let given = json!({ "id": "p", "url": webhook.url(), "token": "t0ken",
        "authentication": { "schemes": ["Bearer"], "credentials": "cr3dentials" } });
    let set = json!({ "taskId": task, "pushNotificationConfig": given });
    assert_eq!(ask("eve-token", SET, set.clone()).await["error"]["code"], -32012);
    assert_eq!(ask("ann-token", SET, set.clone()).await["result"], set);
    assert_eq!(ask("ann-token", GET, json!({ "id": task })).await["result"], set);
    for other in ["bob-token", "eve-token"] {
        for (method, id) in [(GET, json!({ "id": task })), (LIST, json!({ "id": task }))] {
            let seen = ask(other, method, id).await;
            let text = seen.to_string();
            assert!(text.contains("127.0.0.1"), "{seen}");
            assert!(["t0ken", "cr3dentials", "in-the-url"].iter().all(|secret| !text.contains(secret)), "{seen}");
        }
    }
    // Another client's config is not replaced, whether it has a name or not.
    let taken = ask("bob-token", SET, set.clone()).await;
    assert_eq!(taken["error"]["code"], -32602, "{taken}");
    let unnamed = json!({ "taskId": task, "pushNotificationConfig": { "url": webhook.url() } });
    for who in ["ann-token", "bob-token", "bob-token"] {
        ask(who, SET, unnamed.clone()).await["result"].as_object().unwrap();
    }
    assert_eq!(ask("ann-token", LIST, json!({ "id": task })).await["result"].as_array().unwrap().len(), 3);
    let one = json!({ "id": task, "pushNotificationConfigId": "p" });
    assert_eq!(ask("eve-token", DELETE, one.clone()).await["error"]["code"], -32012);
    assert_eq!(ask("bob-token", DELETE, one).await["result"], Value::Null);
}

/// Nothing could be delivered after a restart, so nothing is promised.
#[tokio::test]
async fn a_session_that_is_not_stored_has_none() {
    let (live, session, _agent) = Live::unkept().await;
    let task = format!("task-{}", session.id());
    let given = json!({ "taskId": task, "pushNotificationConfig": { "url": "http://127.0.0.1:9/" } });
    let refused = super::call(port(&live.door), SET, given).await;
    assert_eq!(refused["error"]["code"], -32003, "{refused}");
}

/// Behind a proxy, a client may be anywhere: it must not have this machine call itself.
#[tokio::test]
async fn a_door_with_another_name_calls_no_webhook_of_this_machine() {
    let access = Access { allow_hosts: vec!["box.example".to_owned()], ..Access::default() };
    let (live, session, _agent) = Live::shared_at(config("127.0.0.1", access, Limits::default())).await;
    let task = format!("task-{}", session.id());
    let given = json!({ "taskId": task, "pushNotificationConfig": { "url": "http://127.0.0.1:9/" } });
    let refused = super::call(port(&live.door), SET, given).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
