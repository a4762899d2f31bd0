//! Push notifications: real webhooks on this machine, with waits of milliseconds where users have seconds.

mod configs;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{ClientRef, Door as Way, EventKind, Prompt, TextChunk};
use multitap_hub::{DeliveriesOf, DeliveryRecord, Hub, PushQueue as _, Session, WhenBusy};
use multitap_serve::{Access, DoorConfig, Limits, PushOptions};
use multitap_store::Store;
use multitap_testkit::agent::ScriptedLaunch;
use multitap_testkit::wait::until;
use multitap_testkit::webhook::{Received, Reply, Webhook};
use serde_json::{Value, json};

use crate::live::{Agent, Live, Sessions, soon, turn_ended, turn_started};
use crate::scene::{PATIENCE, config, port, post};

/// Quick retries, so that nothing waits for seconds.
fn options() -> PushOptions {
    PushOptions {
        first_wait: Duration::from_millis(20),
        longest_wait: Duration::from_millis(500),
        answer_time: Duration::from_millis(400),
        attempts: 1000,
        ..PushOptions::default()
    }
}

fn door_with(push: PushOptions) -> DoorConfig {
    DoorConfig { push, ..config("127.0.0.1", Access::default(), Limits::default()) }
}

/// A shared session whose task has webhooks.
struct Scene {
    live: Live,
    session: Session,
    agent: Agent,
    task: String,
}

impl Scene {
    async fn new() -> Self {
        Self::with(options()).await
    }

    async fn with(push: PushOptions) -> Self {
        let (live, session, agent) = Live::shared_at(door_with(push)).await;
        let task = format!("task-{}", session.id());
        Self { live, session, agent, task }
    }

    /// The answer to a call.
    async fn call(&self, method: &str, params: Value) -> Value {
        call(port(&self.live.door), method, params).await
    }

    async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params).await;
        answer.get("result").unwrap_or_else(|| panic!("{answer:#}")).clone()
    }

    /// Registers a webhook of 0.3.
    async fn hook_0_3(&self, webhook: &Webhook) {
        let config = json!({ "id": webhook.port().to_string(), "url": webhook.url(), "token": "t0ken",
            "authentication": { "schemes": ["Basic", "Bearer"], "credentials": "cr3dentials" } });
        let params = json!({ "taskId": self.task, "pushNotificationConfig": config });
        self.result("tasks/pushNotificationConfig/set", params).await;
    }

    /// Registers a webhook of 1.0.
    async fn hook(&self, webhook: &Webhook) {
        let params = json!({ "taskId": self.task, "id": webhook.port().to_string(), "url": webhook.url(),
            "token": "t0ken", "authentication": { "scheme": "Bearer", "credentials": "cr3dentials" } });
        self.result("CreateTaskPushNotificationConfig", params).await;
    }

    async fn prompt(&self, words: &str) {
        let by = ClientRef::new("ann", Way::Terminal);
        self.session.prompt(Prompt::text(words), WhenBusy::Queue, by).await.unwrap();
    }

    /// A turn that says something in three pieces.
    async fn turn(&mut self) {
        self.prompt("go").await;
        self.works().await;
    }

    /// The agent's part of it.
    async fn works(&mut self) {
        self.agent.hears_prompt().await;
        self.agent.tells(turn_started()).await;
        for words in ["one ", "two ", "three"] {
            self.agent.tells(piece(words)).await;
        }
        self.agent.tells(turn_ended()).await;
    }

    /// The log of deliveries, the oldest first.
    async fn log(&self) -> Vec<DeliveryRecord> {
        log(&self.live, &self.session).await
    }

    /// Waits until the log is as wanted.
    async fn logged(&self, what: &str, is_wanted: impl Fn(&[DeliveryRecord]) -> bool) -> Vec<DeliveryRecord> {
        let mut last = Vec::new();
        for _ in 0..(PATIENCE.as_millis() / 20) {
            last = self.log().await;
            if is_wanted(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{what}: {last:#?}")
    }
}

/// A piece of a message.
fn piece(words: &str) -> EventKind {
    EventKind::TextChunk(TextChunk { message_id: Some("m".into()), ..TextChunk::piece(words) })
}

async fn log(live: &Live, session: &Session) -> Vec<DeliveryRecord> {
    let mut log = live.store.deliveries(DeliveriesOf::Session(session.id().clone()), 1000).await.unwrap();
    log.reverse();
    log
}

async fn call(port: u16, method: &str, params: Value) -> Value {
    post(port, "/", &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).await.json()
}

fn taking() -> Webhook {
    Webhook::start(|_| Reply::Status(200)).unwrap()
}

/// Waits for that many requests.
async fn received(webhook: &Webhook, count: usize) -> Vec<Received> {
    let what = format!("{count} notifications, not {}", webhook.received().len());
    until(&what, PATIENCE, || Some(webhook.received()).filter(|received| received.len() >= count)).await.unwrap()
}

/// A notification of 1.0 in a few words.
fn word(received: &Received) -> String {
    let json = received.json();
    let plain = |state: &Value| state.as_str().unwrap().replace("TASK_STATE_", "").to_lowercase();
    if let Some(task) = json.get("task") {
        // A turn begins with the task, and for clients without the extension it ends with it.
        let state = plain(&task["status"]["state"]);
        return if state == "submitted" { format!("task {state}") } else { state };
    }
    let status = &json["statusUpdate"]["status"];
    let part = &status["message"]["parts"][0];
    let said = part["text"].as_str().or_else(|| part["data"]["status"].as_str()).unwrap_or_default();
    format!("{} {said}", plain(&status["state"])).trim().to_owned()
}

#[tokio::test]
async fn a_webhook_of_1_0_gets_the_items_of_the_stream_that_matter() {
    let mut scene = Scene::new().await;
    let webhook = taking();
    scene.hook(&webhook).await;
    scene.turn().await;
    let got = received(&webhook, 4).await;
    let words: Vec<String> = got.iter().map(word).collect();
    // The pieces of the message come as one.
    assert_eq!(words, ["task submitted", "working", "working one two three", "completed"]);
    for request in &got {
        assert_eq!(request.header("content-type"), Some("application/a2a+json"));
        assert_eq!(request.header("x-a2a-notification-token"), Some("t0ken"));
        assert_eq!(request.header("authorization"), Some("Bearer cr3dentials"));
        assert_eq!(request.header("a2a-version"), Some("1.0"));
        assert_eq!(request.header("x-multitap-attempt"), Some("1"));
        assert_eq!(request.path, "/hook?key=in-the-url");
    }
    let ids: std::collections::HashSet<_> = got.iter().map(|request| request.header("x-multitap-delivery")).collect();
    assert_eq!(ids.len(), 4, "each has an id of its own");
    let log = scene.logged("all are delivered", |log| log.iter().all(|entry| entry.http_status == Some(200))).await;
    let states: Vec<&str> = log.iter().map(|entry| entry.state.as_str()).collect();
    assert_eq!(states, ["submitted", "working", "working", "completed"]);
    assert!(log.iter().all(|entry| entry.origin == format!("http://127.0.0.1:{}", webhook.port())), "{log:#?}");
}

#[tokio::test]
async fn a_webhook_of_0_3_gets_the_whole_task() {
    let mut scene = Scene::new().await;
    let webhook = taking();
    scene.hook_0_3(&webhook).await;
    scene.turn().await;
    let got =
        scene.logged("the end is delivered", |log| log.last().is_some_and(|last| last.state == "completed")).await;
    let got = received(&webhook, got.len()).await;
    assert!(got.iter().all(|request| request.header("content-type") == Some("application/json")));
    assert!(got.iter().all(|request| request.header("authorization") == Some("Bearer cr3dentials")));
    for request in &got {
        let task = request.json();
        assert_eq!((&task["kind"], &task["id"]), (&json!("task"), &json!(scene.task)), "{task:#}");
        assert_eq!(task["contextId"], scene.session.id().as_str());
    }
    let last = got.last().unwrap().json();
    let same = scene.result("tasks/get", json!({ "id": scene.task })).await;
    assert_eq!((&last["status"], &last["history"]), (&same["status"], &same["history"]), "as tasks/get has it");
    assert_eq!(last["status"]["message"]["parts"][0]["text"], "one two three");
}

#[tokio::test]
async fn a_question_is_told_with_its_details_and_so_is_its_answer() {
    let mut scene = Scene::new().await;
    let webhook = taking();
    scene.hook(&webhook).await;
    scene.prompt("go").await;
    scene.agent.asks("q").await;
    let got = received(&webhook, 3).await;
    assert_eq!(got.iter().map(word).collect::<Vec<_>>()[2], "input_required PENDING");
    let data = &got[2].json()["statusUpdate"]["status"]["message"]["parts"][0]["data"];
    assert_eq!(data["tool_call_id"], "q", "{data:#}");
    assert!(data["confirmation_request"]["options"].is_array(), "{data:#}");
    let answer = json!({ "kind": "message", "messageId": "a", "role": "user",
        "parts": [{ "kind": "data", "data": { "tool_call_id": "q", "selected_option_id": "proceed_once" } }] });
    scene.result("message/send", json!({ "message": answer, "configuration": { "blocking": false } })).await;
    scene.agent.tells(turn_ended()).await;
    let words: Vec<String> = received(&webhook, 5).await.iter().map(word).collect();
    assert_eq!((words[3].split(' ').next(), words[4].as_str()), (Some("working"), "completed"), "{words:?}");
}

/// The first message may bring its webhook: then nothing of the turn is missed.
#[tokio::test]
async fn a_webhook_may_come_with_a_message() {
    for version in ["0.3", "1.0"] {
        let mut scene = Scene::new().await;
        let webhook = taking();
        let (method, params) = if version == "0.3" {
            let message = json!({ "kind": "message", "messageId": "m", "role": "user",
                "parts": [{ "kind": "text", "text": "go" }] });
            let push = json!({ "url": webhook.url(), "token": "t0ken" });
            let configuration = json!({ "blocking": false, "pushNotificationConfig": push });
            ("message/send", json!({ "message": message, "configuration": configuration }))
        } else {
            let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
            let push = json!({ "url": webhook.url(), "token": "t0ken" });
            let configuration = json!({ "returnImmediately": true, "taskPushNotificationConfig": push });
            ("SendMessage", json!({ "message": message, "configuration": configuration }))
        };
        scene.result(method, params).await;
        scene.works().await;
        let log = scene.logged("the end", |log| log.last().is_some_and(|last| last.state == "completed")).await;
        assert_eq!(log[0].state, "submitted", "{version}: {log:#?}");
        assert!(!log[0].config.is_empty(), "without an id it gets one");
        let got = received(&webhook, log.len()).await;
        assert_eq!(got[0].header("x-a2a-notification-token"), Some("t0ken"));
        assert_eq!(got[0].header("authorization"), None);
        assert_eq!(got[0].header("a2a-version"), Some(version));
    }
}

/// Each webhook is its own: one that is slow, or that never answers, delays neither streams nor other webhooks.
#[tokio::test]
async fn a_webhook_that_never_answers_has_no_effect_on_others() {
    let patient = PushOptions { answer_time: Duration::from_secs(60), ..options() };
    let mut scene = Scene::with(patient).await;
    let (silent, good) = (Webhook::start(|_| Reply::Never).unwrap(), taking());
    scene.hook(&silent).await;
    scene.hook(&good).await;
    let mut client = scene.live.client("").await;
    client.stream(1, "go").await;
    scene.works().await;
    client.until(crate::live::is_end).await;
    assert_eq!(received(&good, 4).await.len(), 4);
    assert_eq!(silent.received().len(), 1, "the others wait for the first");
}

/// A session that nobody wants to hear of has no work with it.
#[tokio::test]
async fn without_configs_nothing_is_stored() {
    let mut scene = Scene::new().await;
    scene.turn().await;
    let webhook = taking();
    scene.hook(&webhook).await;
    scene.turn().await;
    received(&webhook, 4).await;
    assert_eq!(scene.log().await.len(), 4, "only of the second turn");
}

#[tokio::test]
async fn long_messages_are_sent_without_their_content() {
    let mut scene = Scene::new().await;
    let (new, old) = (taking(), taking());
    scene.hook(&new).await;
    scene.hook_0_3(&old).await;
    scene.prompt("go").await;
    scene.agent.hears_prompt().await;
    scene.agent.tells(turn_started()).await;
    for _ in 0..40 {
        scene.agent.tells(piece(&"x".repeat(10_000))).await;
    }
    scene.agent.tells(turn_ended()).await;
    let got = received(&new, 4).await;
    assert!(got.iter().all(|request| request.body.len() < 256 * 1024));
    let truncated = |json: &Value| json["metadata"].as_object().unwrap().values().any(|ours| ours["truncated"] == true);
    assert!(truncated(&got[2].json()["statusUpdate"]), "{:?}", got[2]);
    assert_eq!(word(&got[3]), "completed");
    let whole = scene.logged("the end", |log| log.iter().filter(|entry| entry.state == "completed").count() == 2).await;
    assert!(whole.iter().all(|entry| entry.status.word() != "givenUp"));
    until("the end in 0.3", PATIENCE, || {
        old.received().last().filter(|last| last.json()["status"]["state"] == "completed").map(|last| {
            assert!(last.body.len() <= 256 * 1024 && truncated(&last.json()));
        })
    })
    .await
    .unwrap();
}

/// What clients may see of deliveries, and who.
#[tokio::test]
async fn the_log_of_deliveries_is_for_those_who_may_control_the_task() {
    let mut scene = Scene::new().await;
    let webhook = Webhook::start(|_| Reply::Status(401)).unwrap();
    scene.hook(&webhook).await;
    scene.turn().await;
    let is_over = |entry: &DeliveryRecord| entry.http_status == Some(401);
    scene.logged("all are given up", |log| log.len() == 4 && log.iter().all(is_over)).await;
    let port = port(&scene.live.door);
    let path = format!("/multitap/tasks/{}/pushDeliveries", scene.task);
    let own = format!("127.0.0.1:{port}");
    let answer = crate::scene::ask(port, &format!("GET {path}"), &[("Host", &own)]).await;
    let listed = answer.json()["deliveries"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 4, "{answer:#?}");
    assert_eq!((&listed[0]["state"], &listed[0]["httpStatus"]), (&json!("completed"), &json!(401)), "newest first");
    for secret in ["in-the-url", "t0ken", "cr3dentials"] {
        assert!(!answer.body.contains(secret), "{answer:#?}");
    }
    let observer = crate::scene::ask(port, &format!("GET {path}?role=observer"), &[("Host", &own)]).await;
    assert_eq!(observer.status, 403);
    let unknown = crate::scene::ask(port, "GET /multitap/tasks/turn-none/pushDeliveries", &[("Host", &own)]).await;
    assert_eq!(unknown.status, 404);
}

/// What a process stored but did not deliver, and what it could not even store, is delivered by the next one.
#[tokio::test]
async fn a_restart_loses_nothing() {
    let mut scene = Scene::new().await;
    let reserved = taking();
    let (task, port) = (scene.task.clone(), reserved.port());
    drop(reserved);
    let url = format!("http://127.0.0.1:{port}/hook");
    scene.result("CreateTaskPushNotificationConfig", json!({ "taskId": task, "id": "p", "url": url })).await;
    scene.turn().await;
    // Nobody listens there.
    let tried = scene.logged("an attempt fails", |log| log.len() == 4 && log[0].attempts > 0).await;
    let (first, attempts) = (tried[0].id.clone(), tried[0].attempts);
    let session = scene.session.id().clone();
    let Scene { live, session: handle, agent, .. } = scene;
    drop((agent, handle));
    let folder = live.stop().await;
    // As if the process had died before it stored the last two.
    let file = rusqlite::Connection::open(folder.path().join("sessions.db")).unwrap();
    let last = "SELECT key FROM push_deliveries ORDER BY key DESC LIMIT 2";
    file.execute(&format!("DELETE FROM push_deliveries WHERE key IN ({last})"), []).unwrap();
    file.execute("UPDATE push_configs SET (seq, part, state) = (SELECT 2, 0, 'working')", []).unwrap();
    drop(file);
    let webhook = Webhook::start_at(port, |_| Reply::Status(200)).unwrap();
    let live = Live::own_at(door_with(options()), folder).await;
    let got = received(&webhook, 4).await;
    assert_eq!(got[0].header("x-multitap-delivery"), Some(first.as_str()), "it is the same one");
    let attempt: u32 = got[0].header("x-multitap-attempt").unwrap().parse().unwrap();
    assert!(attempt > attempts, "and says that it was attempted before");
    let words: Vec<String> = got.iter().map(word).collect();
    assert_eq!(words.first().map(String::as_str), Some("task submitted"), "{words:?}");
    assert_eq!(words.last().map(String::as_str), Some("completed"), "{words:?}");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let ids: Vec<_> =
        webhook.received().iter().map(|got| got.header("x-multitap-delivery").unwrap().to_owned()).collect();
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len(), "none came twice: {ids:?}");
    drop(live);
    assert!(!session.as_str().is_empty());
}

/// The log of a killed process ends within a turn. Its webhooks hear that the task failed.
#[tokio::test]
async fn a_task_that_was_interrupted_is_told_as_failed() {
    let mut scene = Scene::new().await;
    let webhook = taking();
    scene.hook(&webhook).await;
    scene.prompt("go").await;
    scene.agent.hears_prompt().await;
    scene.agent.tells(turn_started()).await;
    let is_over = |entry: &DeliveryRecord| entry.http_status == Some(200);
    scene.logged("both are delivered", |log| log.len() == 2 && log.iter().all(is_over)).await;
    let Scene { live, .. } = scene;
    let copied = tempfile::tempdir().unwrap();
    // The file as a kill would leave it.
    live.log_file().execute("VACUUM INTO ?1", [copied.path().join("sessions.db").display().to_string()]).unwrap();
    let file = rusqlite::Connection::open(copied.path().join("sessions.db")).unwrap();
    file.execute("UPDATE logs SET boot = 'earlier'", []).unwrap();
    drop(file);
    let other = Live::own_at(door_with(options()), copied).await;
    let words: Vec<String> = received(&webhook, 3).await.iter().map(word).collect();
    assert_eq!(words[2], "failed", "{words:?}");
    drop(other);
}

/// A process without a door, such as one that continues a session in a terminal, tells nobody. Another one that has a door
/// does, once the session is free.
#[tokio::test]
async fn what_another_process_left_is_found_while_this_one_runs() {
    let often = PushOptions { search: Duration::from_millis(100), ..options() };
    let live = Live::own_at(door_with(often), tempfile::tempdir().unwrap()).await;
    let store = Arc::new(Store::open(live.path()).unwrap());
    let (launch, mut agents) = ScriptedLaunch::new();
    let other = Hub::new(store.clone(), launch);
    let session = other.open(Sessions::new_session()).await.unwrap();
    let mut agent = Agent { end: soon(agents.recv()).await.unwrap().1 };
    let (task, webhook) = (format!("task-{}", session.id()), taking());
    let set = json!({ "taskId": task, "id": "p", "url": webhook.url() });
    assert_eq!(call(port(&live.door), "CreateTaskPushNotificationConfig", set.clone()).await["result"], set);
    let by = ClientRef::new("ann", Way::Terminal);
    session.prompt(Prompt::text("go"), WhenBusy::Queue, by).await.unwrap();
    agent.answers(1).await;
    soon(async {
        while session.last() < 5 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(webhook.received().is_empty());
    drop((agent, agents));
    other.shutdown().await;
    store.close().await;
    let words: Vec<String> = received(&webhook, 4).await.iter().map(word).collect();
    assert_eq!(words[..4], ["task submitted", "working", "working go 0", "completed"]);
}
