//! Push notifications of the real binary: webhooks on this machine hear of tasks whose clients are gone.

use multitap_testkit::wait::until_blocking;
use multitap_testkit::webhook::{Received, Reply, Webhook};
use serde_json::{Value, json};

use super::{Said, Served, answer, ids};
use crate::scene::{PATIENCE, Scene};

/// Waits for that many notifications.
#[track_caller]
fn received(webhook: &Webhook, count: usize) -> Vec<Received> {
    let what = format!("{count} notifications");
    let wanted = || Some(webhook.received()).filter(|received| received.len() >= count);
    until_blocking(&what, PATIENCE, wanted).unwrap()
}

/// Waits for a notification of 0.3 with that state.
#[track_caller]
fn told(webhook: &Webhook, state: &str) -> Value {
    let what = format!("a notification of {state}");
    let is_it =
        |received: Vec<Received>| received.iter().map(Received::json).find(|task| task["status"]["state"] == state);
    until_blocking(&what, PATIENCE, || is_it(webhook.received())).unwrap()
}

fn taking() -> Webhook {
    Webhook::start(|_| Reply::Status(200)).unwrap()
}

/// With a webhook, in 0.3.
fn hooked(said: Said, webhook: &Webhook) -> Said {
    let mut said = said.at_once();
    said.0["configuration"]["pushNotificationConfig"] = json!({ "url": webhook.url(), "token": "t0ken",
        "authentication": { "schemes": ["Bearer"], "credentials": "cr3dentials" } });
    said
}

#[track_caller]
fn kill(mut served: Served, scene: &Scene) {
    served.live.kill();
    served.live.wait();
    scene.nothing_left();
}

/// R000-4, R000-6: the only config comes with the message, the client goes, another one answers.
#[test]
fn a_client_that_left_hears_of_a_question_and_of_the_result() {
    let scene = Scene::bare();
    let (served, webhook) = (scene.a2a(&[]), taking());
    let begun = served.send(&hooked(Said::text("write hello to a.txt").dev(), &webhook));
    let (task, context) = (begun["id"].as_str().unwrap(), begun["contextId"].as_str().unwrap());
    let asks = told(&webhook, "input-required");
    assert_eq!((&asks["kind"], asks["id"].as_str()), (&json!("task"), Some(task)), "{asks:#}");
    let call = &asks["status"]["message"]["parts"][0]["data"];
    assert!(call["confirmation_request"].is_object(), "{asks:#}");
    served.send(&Said::data(&answer(call, "proceed_once")).task(task));
    let done = told(&webhook, "completed");
    assert_eq!(done["status"]["message"], served.task(task)["status"]["message"]);
    assert_eq!(scene.file("a.txt").unwrap().trim_end(), "hello");
    for request in webhook.received() {
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("x-a2a-notification-token"), Some("t0ken"));
        assert_eq!(request.header("authorization"), Some("Bearer cr3dentials"));
    }
    // What became of each is there to be read, and nothing that is secret.
    let shown = || {
        let shown = scene.run(&["sessions", "show", context]).exits(0).stdout;
        (shown.matches("1 attempt, HTTP 200").count() == webhook.received().len()).then_some(shown)
    };
    let shown = until_blocking("the log of deliveries", PATIENCE, shown).unwrap();
    let (talk, log) = shown.split_once("\nPush notifications:\n").expect(&shown);
    assert!(talk.contains("write hello to a.txt") && log.contains("input-required"), "{shown}");
    assert!(log.contains(&format!("http://127.0.0.1:{}  1 attempt", webhook.port())), "{shown}");
    let json = scene.run(&["sessions", "show", context, "--json"]).exits(0).stdout;
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = &lines.last().unwrap()["pushDelivery"];
    assert_eq!(
        (&last["state"], &last["status"], &last["httpStatus"]),
        (&json!("completed"), &json!("delivered"), &json!(200))
    );
    let endpoint = served.http.get(&format!("/multitap/tasks/{task}/pushDeliveries")).unwrap().json().unwrap();
    assert_eq!(endpoint["deliveries"][0], *last, "{endpoint:#}");
    assert!(!scene.run(&["sessions", "export", context]).exits(0).stdout.contains("pushDelivery"));
    for secret in ["t0ken", "cr3dentials", "in-the-url"] {
        assert!(
            !shown.contains(secret) && !json.contains(secret) && !endpoint.to_string().contains(secret),
            "{secret}"
        );
    }
    served.stop(&scene);
}

/// R000-5: set on a running task, in 1.0. Without the extension each turn is a task, which the last notification contains.
#[test]
fn a_webhook_may_be_set_later() {
    let scene = Scene::bare();
    let (served, webhook) = (scene.a2a(&[]), taking());
    let mut running = served.open("message/stream", &Said::text("slow 20").0);
    let (task, context) = ids(&running.until(|frame| frame.kind() == "TEXT_CONTENT"));
    let config = json!({ "taskId": task, "id": "mine", "url": webhook.url() });
    let set = served.result("CreateTaskPushNotificationConfig", &config);
    assert_eq!(set, config);
    running.rest();
    let got = received(&webhook, 2);
    let message = got[0].json();
    let said = message["statusUpdate"]["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(!said.is_empty(), "{message:#}");
    assert_eq!(got[1].json()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(got[1].header("content-type"), Some("application/a2a+json"));
    assert_eq!(served.send(&Said::text("hello").context(&context))["status"]["state"], "completed");
    assert_eq!(webhook.received().len(), 2, "another turn is another task");
    served.stop(&scene);
}

/// A host that is killed before it could deliver leaves that to the next one, which says that it tries again.
#[test]
fn nothing_is_lost_when_the_host_is_killed() {
    let scene = Scene::bare();
    let down = Webhook::start(|_| Reply::Status(503)).unwrap();
    let (served, port) = (scene.a2a(&[]), down.port());
    let task = served.send(&hooked(Said::text("slow 100"), &down))["id"].as_str().unwrap().to_owned();
    let first = received(&down, 1).remove(0);
    kill(served, &scene);
    drop(down);
    let webhook = Webhook::start_at(port, |_| Reply::Status(200)).unwrap();
    let served = scene.a2a(&[]);
    let failed = told(&webhook, "failed");
    assert_eq!(failed["id"], task.as_str(), "{failed:#}");
    let got = webhook.received();
    assert_eq!(got[0].header("x-multitap-delivery"), first.header("x-multitap-delivery"));
    let attempt: u32 = got[0].header("x-multitap-attempt").unwrap().parse().unwrap();
    assert!(attempt > 1, "{got:#?}");
    let ids: std::collections::HashSet<_> = got.iter().map(|got| got.header("x-multitap-delivery")).collect();
    assert_eq!(ids.len(), got.len(), "{got:#?}");
    served.stop(&scene);
}

#[test]
fn private_addresses_need_an_option() {
    let mut scene = Scene::bare();
    let try_it = |served: &Served, url: &str| {
        let mut said = Said::text("hello").at_once();
        said.0["configuration"]["pushNotificationConfig"] = json!({ "url": url });
        served.http.answer("message/send", &said.0).unwrap()
    };
    let served = scene.a2a(&[]);
    let webhook = taking();
    for url in ["http://169.254.169.254/latest/meta-data/", "http://192.168.0.1/", "http://[fd00::1]/"] {
        let refused = try_it(&served, url);
        let why = refused["error"]["message"].as_str().unwrap();
        assert!(refused["error"]["code"] == -32602 && why.contains("--allow-private-webhooks"), "{url}: {refused}");
    }
    assert!(try_it(&served, &webhook.url()).get("result").is_some());
    served.stop(&scene);
    let served = scene.a2a(&["--allow-private-webhooks"]);
    assert!(try_it(&served, "http://192.168.0.1/").get("result").is_some());
    served.stop(&scene);
    // Others can reach this one, so its clients may not call programs of this machine.
    scene.scratch.set("MULTITAP_TOKEN", "env-secret");
    let mut served = scene.a2a(&["--host", "0.0.0.0"]);
    served.http = served.http.clone().with("Authorization", "Bearer env-secret");
    let refused = try_it(&served, &webhook.url());
    assert!(refused["error"]["message"].as_str().unwrap().contains("this machine"), "{refused}");
    served.stop(&scene);
}

#[test]
fn the_card_says_that_there_are_push_notifications() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let card = served.http.get("/.well-known/agent-card.json").unwrap().json().unwrap();
    assert_eq!(card["capabilities"]["pushNotifications"], true, "{card:#}");
    served.stop(&scene);
}

/// The operations on configs over HTTP+JSON, in the paths of both versions.
#[test]
fn configs_can_be_managed_by_paths() {
    let scene = Scene::bare();
    let (served, webhook) = (scene.a2a(&[]), taking());
    let task = served.send(&Said::text("hello").dev())["id"].as_str().unwrap().to_owned();
    let http = served.http.clone().with("Content-Type", "application/json");
    let ask = |verb: &str, path: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = http.send(verb, path, body.as_bytes()).unwrap();
        let (status, text) = (response.status, response.text().unwrap());
        assert_eq!(status, 200, "{verb} {path}: {text}");
        serde_json::from_str::<Value>(&text).unwrap_or_default()
    };
    let (new, old) =
        (format!("/tasks/{task}/pushNotificationConfigs"), format!("/v1/tasks/{task}/pushNotificationConfigs"));
    let config = json!({ "taskId": task, "id": "one", "url": webhook.url(), "token": "t0ken" });
    assert_eq!(ask("POST", &new, &json!({ "id": "one", "url": webhook.url(), "token": "t0ken" })), config);
    assert_eq!(ask("GET", &format!("{new}/one"), &Value::Null), config);
    assert_eq!(ask("GET", &new, &Value::Null)["configs"], json!([config]));
    let seen = ask("GET", &format!("{old}/one"), &Value::Null);
    assert_eq!(seen["name"], format!("tasks/{task}/pushNotificationConfigs/one"), "{seen:#}");
    assert_eq!(seen["pushNotificationConfig"]["url"], webhook.url().as_str(), "{seen:#}");
    served.send(&Said::text("hello").task(&task));
    let done = until_blocking("the end of the turn", PATIENCE, || {
        let last = webhook.received().pop()?.json();
        (last["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED").then_some(())
    });
    done.unwrap();
    ask("DELETE", &format!("{old}/one"), &Value::Null);
    assert_eq!(ask("GET", &new, &Value::Null)["configs"], json!([]));
    let gone = http.send("GET", &format!("{new}/one"), b"").unwrap();
    assert_eq!(gone.status, 404);
    served.stop(&scene);
}

/// A client that knows A2A alone finds the results where it looks for them.
#[test]
fn the_last_notification_brings_the_artifacts() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--approval-mode", "auto-all"]);
    for version in ["0.3", "1.0"] {
        let webhook = taking();
        let said = hooked(Said::text("write hello to a.txt"), &webhook);
        if version == "0.3" {
            served.send(&said);
        } else {
            let mut params = said.v1();
            params["configuration"] =
                json!({ "returnImmediately": true, "taskPushNotificationConfig": { "url": webhook.url() } });
            served.result("SendMessage", &params);
        }
        let last = until_blocking("the end of the turn", PATIENCE, || {
            let last = webhook.received().pop()?.json();
            let task = last.get("task").unwrap_or(&last).clone();
            let state = task["status"]["state"].as_str()?.to_lowercase();
            state.ends_with("completed").then_some(task)
        });
        let last = last.unwrap();
        let names: Vec<&str> =
            last["artifacts"].as_array().unwrap().iter().filter_map(|artifact| artifact["name"].as_str()).collect();
        assert!(names.contains(&"a.txt"), "{version}: {last:#}");
        std::fs::remove_file(scene.scratch.path("a.txt")).unwrap();
    }
    served.stop(&scene);
}
