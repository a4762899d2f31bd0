//! Webhooks that do not take what they get: each kind of trouble is defined, recorded, and no trouble of others.

use std::time::Duration;

use multitap_hub::{DeliveryStatus, PushQueue as _, PushScope};
use multitap_serve::PushOptions;
use multitap_testkit::webhook::{Reply, Webhook};
use serde_json::json;

use super::{Scene, door_with, options, received, taking, word};
use crate::live::Live;

#[tokio::test]
async fn what_fails_for_a_while_is_sent_again_and_in_order() {
    let mut scene = Scene::new().await;
    let webhook = Webhook::start(|number| Reply::Status(if number < 2 { 503 } else { 200 })).unwrap();
    scene.hook(&webhook).await;
    scene.turn().await;
    let got = received(&webhook, 6).await;
    let words: Vec<String> = got.iter().map(word).collect();
    assert_eq!(words[..3], ["task submitted", "task submitted", "task submitted"]);
    assert_eq!(words[5], "completed");
    let ids: Vec<_> = got[..3].iter().map(|request| request.header("x-multitap-delivery")).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "one delivery has one id: {ids:?}");
    let attempts: Vec<_> = got[..4].iter().filter_map(|request| request.header("x-multitap-attempt")).collect();
    assert_eq!(attempts, ["1", "2", "3", "1"]);
    assert!(got[2].at - got[1].at >= Duration::from_millis(15), "it waits before it tries again");
    let log = scene.logged("all are delivered", |log| log.iter().all(|entry| entry.http_status == Some(200))).await;
    assert_eq!(log.iter().map(|entry| entry.attempts).collect::<Vec<_>>(), [3, 1, 1, 1]);
}

#[tokio::test]
async fn a_webhook_may_ask_for_time() {
    let scene = Scene::new().await;
    let busy = |number| match number {
        0 => Reply::With(429, "Retry-After", "0.3".to_owned()),
        _ => Reply::Status(204),
    };
    let webhook = Webhook::start(busy).unwrap();
    scene.hook(&webhook).await;
    scene.prompt("go").await;
    let got = received(&webhook, 2).await;
    assert!(got[1].at - got[0].at >= Duration::from_millis(290), "{:?}", got[1].at - got[0].at);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut scene = Scene::new().await;
    let elsewhere = taking();
    let target = elsewhere.url();
    let webhook = Webhook::start(move |_| Reply::With(307, "Location", target.clone())).unwrap();
    scene.hook(&webhook).await;
    scene.turn().await;
    let log = scene.logged("all are given up", |log| log.len() == 4 && log.iter().all(is_given_up)).await;
    assert!(log.iter().all(|entry| entry.http_status == Some(307) && entry.attempts == 1), "{log:#?}");
    assert!(log[0].error.as_deref().unwrap().contains("redirects are not followed"), "{log:#?}");
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn a_webhook_that_refuses_its_credentials_is_recorded_and_keeps_its_config() {
    for status in [401, 403] {
        let mut scene = Scene::new().await;
        let webhook = Webhook::start(move |number| Reply::Status(if number < 3 { status } else { 200 })).unwrap();
        scene.hook(&webhook).await;
        scene.turn().await;
        let log = scene
            .logged("all are over", |log| log.len() == 4 && log.iter().all(|entry| entry.http_status.is_some()))
            .await;
        assert_eq!(log.iter().filter(|entry| is_given_up(entry)).count(), 3, "{log:#?}");
        assert!(log[0].error.as_deref().unwrap().contains("token or credentials"), "{log:#?}");
        assert_eq!(word(&received(&webhook, 4).await[3]), "completed");
        let listed = scene.result("ListTaskPushNotificationConfigs", json!({ "taskId": scene.task })).await;
        assert_eq!(listed["configs"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_webhook_that_is_gone_loses_its_config() {
    let mut scene = Scene::new().await;
    let (gone, stays) = (Webhook::start(|_| Reply::Status(410)).unwrap(), taking());
    scene.hook(&gone).await;
    scene.hook(&stays).await;
    scene.turn().await;
    received(&stays, 4).await;
    let about = |id: String| move |entry: &&multitap_hub::DeliveryRecord| entry.config == id;
    let port = gone.port().to_string();
    let log = scene.logged("it is given up", |log| {
        log.iter().filter(about(port.clone())).count() > 0 && log.iter().filter(about(port.clone())).all(is_given_up)
    });
    let log = log.await;
    assert!(log.iter().filter(about(port)).all(|entry| entry.error.is_some()), "{log:#?}");
    assert_eq!(gone.received().len(), 1, "it is called once");
    let listed = scene.result("ListTaskPushNotificationConfigs", json!({ "taskId": scene.task })).await;
    assert_eq!(listed["configs"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn a_webhook_that_never_answers_is_tried_again_and_given_up() {
    let few = PushOptions { attempts: 2, answer_time: Duration::from_millis(100), ..options() };
    let scene = Scene::with(few).await;
    let webhook = Webhook::start(|_| Reply::Never).unwrap();
    scene.hook(&webhook).await;
    scene.prompt("go").await;
    let log = scene.logged("it is given up", |log| log.first().is_some_and(is_given_up)).await;
    assert_eq!(log[0].attempts, 2);
    assert!(log[0].error.as_deref().unwrap().contains("no answer within 100ms"), "{log:#?}");
}

#[tokio::test]
async fn a_webhook_that_is_down_gets_everything_once_it_is_up() {
    let mut scene = Scene::new().await;
    let reserved = taking();
    let port = reserved.port();
    scene.hook(&reserved).await;
    drop(reserved);
    scene.turn().await;
    scene.logged("it fails", |log| log.len() == 4 && log[0].attempts > 1 && log[0].error.is_some()).await;
    let webhook = Webhook::start_at(port, |_| Reply::Status(200)).unwrap();
    let words: Vec<String> = received(&webhook, 4).await.iter().map(word).collect();
    assert_eq!((words.len(), words[3].as_str()), (4, "completed"));
}

/// An address that was allowed when it was registered is judged again when it is called.
#[tokio::test]
async fn an_address_that_is_not_allowed_is_never_called() {
    let open = PushOptions { allow_private: true, ..options() };
    let (live, session, mut agent) = Live::shared_at(door_with(open)).await;
    let task = format!("task-{}", session.id());
    let set = json!({ "taskId": task, "id": "private", "url": "http://10.255.255.1/" });
    super::call(crate::scene::port(&live.door), "CreateTaskPushNotificationConfig", set).await;
    // A name that leads to an address that is not allowed, and passed because it did not do so then.
    let configs = live.store.push_configs(PushScope::Task(task)).await.unwrap();
    assert_eq!(configs.len(), 1);
    let live = live.reopened(&session, door_with(options())).await;
    let by = multitap_event::ClientRef::new("ann", multitap_event::Door::Terminal);
    session.prompt(multitap_event::Prompt::text("go"), multitap_hub::WhenBusy::Queue, by).await.unwrap();
    agent.answers(1).await;
    let log = async {
        loop {
            let log = super::log(&live, &session).await;
            if log.len() == 4 && log.iter().all(is_given_up) {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let log = crate::live::soon(log).await;
    assert!(log[0].error.as_deref().unwrap().contains("private address"), "{log:#?}");
    assert!(log.iter().all(|entry| entry.attempts == 1 && entry.http_status.is_none()), "{log:#?}");
}

fn is_given_up(entry: &multitap_hub::DeliveryRecord) -> bool {
    entry.status == DeliveryStatus::GivenUp
}
