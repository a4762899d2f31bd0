//! The queue of push notifications: what a delivery promises across crashes, processes and full queues.

use multitap_event::{SessionId, Timestamp};
use multitap_hub::{
    DeliveriesOf, DeliveryOutcome, DeliveryRecord, DeliveryStatus, Journal as _, NewDelivery, NewPushConfig,
    PUSH_CONFIGS_PER_CLIENT, PUSH_CONFIGS_PER_TASK, PUSH_LOG, PUSH_QUEUE, PUSH_QUEUE_BYTES, PushKey, PushPosition,
    PushQueue, PushScope, PutPushConfig, SettledAttempt, TakePush, TakenDelivery, TaskRecord,
};
use multitap_store::Store;

use crate::scene::{File, begin};

/// A file with one session, whose tasks can have configs.
struct Scene {
    file: File,
    store: Store,
    session: SessionId,
}

impl Scene {
    async fn new() -> Self {
        let file = File::new();
        let store = file.store();
        let session = begin(&store).await.record.id;
        Self { file, store, session }
    }

    async fn config(&self, task: &str, id: &str, client: &str) -> PutPushConfig {
        let (created, updated) = (Timestamp::from_millis(1), Timestamp::from_millis(2));
        let record = TaskRecord {
            id: task.to_owned(),
            session: self.session.clone(),
            state: "working".to_owned(),
            first_seq: 1,
            last_seq: None,
            created,
            updated,
            metadata: serde_json::Map::new(),
        };
        self.store.begin_task(record).await.unwrap();
        self.store.put_config(self.new_config(task, id, client)).await.unwrap()
    }

    fn new_config(&self, task: &str, id: &str, client: &str) -> NewPushConfig {
        NewPushConfig {
            task: task.to_owned(),
            id: id.to_owned(),
            session: self.session.clone(),
            client: client.to_owned(),
            url: format!("http://127.0.0.1/{id}?key=secret"),
            origin: "http://127.0.0.1".to_owned(),
            secrets: Some("{}".to_owned()),
            form: "1.0".to_owned(),
            created: Timestamp::now(),
            after: PushPosition::default(),
            state: None,
            finished: false,
        }
    }

    async fn stored(&self, task: &str, id: &str) -> PushKey {
        match self.config(task, id, "ann").await {
            PutPushConfig::Stored(key) => key,
            refused => panic!("{refused:?}"),
        }
    }

    async fn log(&self) -> Vec<DeliveryRecord> {
        self.store.deliveries(DeliveriesOf::Session(self.session.clone()), 1000).await.unwrap()
    }

    async fn take(&self, key: PushKey) -> Option<TakenDelivery> {
        taken(&self.store, key).await
    }

    async fn settle(&self, taken: &TakenDelivery, outcome: DeliveryOutcome) -> bool {
        settle(&self.store, taken, outcome).await
    }
}

async fn taken(store: &Store, key: PushKey) -> Option<TakenDelivery> {
    match store.take(key, in_a_minute()).await.unwrap() {
        TakePush::Taken(taken) => Some(*taken),
        TakePush::Wait(_) | TakePush::Empty => None,
    }
}

async fn settle(store: &Store, taken: &TakenDelivery, outcome: DeliveryOutcome) -> bool {
    let attempt = SettledAttempt {
        config: taken.config,
        id: taken.id.clone(),
        attempt: taken.attempt,
        at: Timestamp::now(),
        outcome,
        http_status: Some(200),
        error: None,
    };
    store.settle(attempt).await.unwrap().is_some()
}

fn in_a_minute() -> Timestamp {
    Timestamp::from_millis(Timestamp::now().as_millis() + 60_000)
}

fn at(seq: u64) -> PushPosition {
    PushPosition { epoch: 1, seq, part: 0 }
}

fn delivery(config: PushKey, seq: u64) -> NewDelivery {
    NewDelivery { config, at: at(seq), state: "working".to_owned(), body: format!("body {seq}"), last: false }
}

#[tokio::test]
async fn deliveries_are_taken_in_order_and_one_at_a_time() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    let pending = scene.store.enqueue(vec![delivery(key, 1), delivery(key, 2)]).await.unwrap();
    assert!(matches!(pending.as_slice(), [one] if one.config == key && one.session == scene.session), "{pending:?}");
    let first = scene.take(key).await.unwrap();
    assert_eq!((first.body.as_str(), first.attempt), ("body 1", 1));
    assert_eq!(scene.take(key).await, None, "it is being attempted");
    assert!(scene.settle(&first, DeliveryOutcome::Delivered).await, "another one waits");
    let second = scene.take(key).await.unwrap();
    assert_eq!((second.body.as_str(), second.attempt), ("body 2", 1));
    assert_ne!(second.id, first.id);
    assert!(!scene.settle(&second, DeliveryOutcome::Delivered).await);
    assert_eq!(scene.take(key).await, None);
    assert!(scene.store.pending().await.unwrap().is_empty());
    let log = scene.log().await;
    assert!(log.iter().all(|entry| entry.status == DeliveryStatus::Delivered && entry.attempts == 1), "{log:#?}");
    assert_eq!(log[0].id, second.id, "the newest comes first");
}

/// A position is stored with the delivery, so that reading the log again makes no second one.
#[tokio::test]
async fn what_was_stored_before_is_not_stored_again() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    for _ in 0..2 {
        scene.store.enqueue(vec![delivery(key, 1), delivery(key, 2)]).await.unwrap();
    }
    assert_eq!(scene.log().await.len(), 2);
    // In a new epoch the numbers are used again, for other events.
    let again = NewDelivery { at: PushPosition { epoch: 2, ..at(1) }, ..delivery(key, 1) };
    scene.store.enqueue(vec![again]).await.unwrap();
    assert_eq!(scene.log().await.len(), 3);
    scene.store.advance(vec![(key, at(9))]).await.unwrap();
    let config = scene.store.push_configs(PushScope::Session(scene.session.clone())).await.unwrap().remove(0);
    assert_eq!(config.after, PushPosition { epoch: 2, ..at(1) }, "it never moves back");
}

#[tokio::test]
async fn a_retry_waits_for_its_time_and_counts() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    scene.store.enqueue(vec![delivery(key, 1), delivery(key, 2)]).await.unwrap();
    let first = scene.take(key).await.unwrap();
    assert!(scene.settle(&first, DeliveryOutcome::Retry { at: in_a_minute() }).await);
    assert_eq!(scene.take(key).await, None, "it is not due, and the next one waits for it");
    assert!(scene.log().await[1].due.is_some());
    scene.file.sqlite().execute("UPDATE push_configs SET due = 1", []).unwrap();
    let again = scene.take(key).await.unwrap();
    assert_eq!((again.id.as_str(), again.attempt, again.body.as_str()), (first.id.as_str(), 2, "body 1"));
    // The first attempt is long over.
    scene.settle(&first, DeliveryOutcome::Delivered).await;
    assert_eq!(scene.log().await[1].status, DeliveryStatus::Pending);
}

/// The attempt is counted before it is made. If nobody learns its outcome, the next one says that it is a second.
#[tokio::test]
async fn an_attempt_whose_process_died_is_repeated_and_says_so() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    scene.store.enqueue(vec![delivery(key, 1)]).await.unwrap();
    let first = scene.take(key).await.unwrap();
    scene.store.close().await;
    let file = scene.file.sqlite();
    // Another boot of the machine.
    file.execute("UPDATE push_configs SET taker = json_set(taker, '$.boot', 'earlier')", []).unwrap();
    let store = scene.file.store();
    let pending = store.pending().await.unwrap();
    assert!(pending[0].due <= Timestamp::now(), "{pending:?}");
    let again = taken(&store, key).await.unwrap();
    assert_eq!((again.id, again.attempt, again.body), (first.id, 2, first.body));
}

#[tokio::test]
async fn what_another_process_attempts_is_left_to_it_until_its_time_is_over() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    scene.store.enqueue(vec![delivery(key, 1)]).await.unwrap();
    scene.take(key).await.unwrap();
    let other = scene.file.store();
    let TakePush::Wait(waits) = other.take(key, in_a_minute()).await.unwrap() else { panic!("it was taken") };
    assert!(waits.due > Timestamp::now(), "until the other one's time is over");
    assert!(other.pending().await.unwrap()[0].due > Timestamp::now());
    scene.file.sqlite().execute("UPDATE push_configs SET taken_until = 1", []).unwrap();
    assert_eq!(taken(&other, key).await.unwrap().attempt, 2);
}

#[tokio::test]
async fn a_full_queue_gives_up_its_oldest_and_says_so() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    scene.store.enqueue(vec![delivery(key, 1)]).await.unwrap();
    let tried = scene.take(key).await.unwrap();
    let more = PUSH_QUEUE as u64 + 3;
    scene.store.enqueue((2..=more).map(|seq| delivery(key, seq)).collect()).await.unwrap();
    let log = scene.log().await;
    let given_up: Vec<_> = log.iter().filter(|entry| entry.status == DeliveryStatus::GivenUp).collect();
    assert_eq!(given_up.len(), 3);
    assert!(given_up.iter().all(|entry| entry.error.as_deref().unwrap().contains("full")), "{given_up:#?}");
    assert_eq!(log.last().unwrap().id, tried.id, "the one that is attempted stays");
    assert_eq!(log.last().unwrap().status, DeliveryStatus::Pending);
    scene.settle(&tried, DeliveryOutcome::Delivered).await;
    assert_eq!(scene.take(key).await.unwrap().body, "body 5");
}

#[tokio::test]
async fn a_queue_is_bounded_in_bytes_too() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    let large = |seq| NewDelivery { body: "x".repeat(PUSH_QUEUE_BYTES / 4 + 1), ..delivery(key, seq) };
    scene.store.enqueue((1..=5).map(large).collect()).await.unwrap();
    let log = scene.log().await;
    let waiting = log.iter().filter(|entry| entry.status == DeliveryStatus::Pending).count();
    assert_eq!((waiting, log.len()), (3, 5), "{log:#?}");
    assert_eq!(log[0].status, DeliveryStatus::Pending, "the newest stays");
    let whole = NewDelivery { body: "x".repeat(2 * PUSH_QUEUE_BYTES), ..delivery(key, 9) };
    scene.store.enqueue(vec![whole]).await.unwrap();
    assert_eq!(scene.take(key).await.unwrap().body.len(), 2 * PUSH_QUEUE_BYTES, "one is never too many");
}

#[tokio::test]
async fn the_log_of_deliveries_is_bounded_and_holds_no_bodies() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    for seq in 1..=PUSH_LOG as u64 + 5 {
        scene.store.enqueue(vec![delivery(key, seq)]).await.unwrap();
        let taken = scene.take(key).await.unwrap();
        scene.settle(&taken, DeliveryOutcome::GivenUp).await;
    }
    assert_eq!(scene.log().await.len(), PUSH_LOG);
    let bodies = "SELECT count(*) FROM push_deliveries WHERE body IS NOT NULL";
    assert_eq!(scene.file.sqlite().query_row(bodies, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[tokio::test]
async fn a_receiver_that_is_gone_loses_its_config_and_the_log_remembers() {
    let scene = Scene::new().await;
    let (gone, stays) = (scene.stored("t", "gone").await, scene.stored("t", "stays").await);
    scene.store.enqueue(vec![delivery(gone, 1), delivery(gone, 2), delivery(stays, 1)]).await.unwrap();
    let taken = scene.take(gone).await.unwrap();
    assert!(!scene.settle(&taken, DeliveryOutcome::Gone).await);
    let left = scene.store.push_configs(PushScope::Task("t".to_owned())).await.unwrap();
    assert_eq!(left.iter().map(|config| config.key).collect::<Vec<_>>(), [stays]);
    let log = scene.log().await;
    let about = |config: &str| log.iter().filter(|entry| entry.config == config).map(|entry| entry.status).collect();
    let statuses: (Vec<_>, Vec<_>) = (about("gone"), about("stays"));
    assert_eq!(statuses, (vec![DeliveryStatus::GivenUp; 2], vec![DeliveryStatus::Pending]));
    assert!(log.iter().all(|entry| !format!("{entry:?}").contains("secret")), "{log:#?}");
}

#[tokio::test]
async fn a_config_that_is_set_again_is_another_one() {
    let scene = Scene::new().await;
    let before = scene.stored("t", "p").await;
    scene.store.enqueue(vec![delivery(before, 1)]).await.unwrap();
    let after = scene.stored("t", "p").await;
    assert_ne!(before, after);
    assert_eq!(scene.take(after).await, None);
    assert_eq!(scene.log().await[0].status, DeliveryStatus::GivenUp);
    assert!(scene.store.enqueue(vec![delivery(before, 2)]).await.unwrap().is_empty(), "its config is gone");
    assert!(scene.store.remove_config("t".to_owned(), "p".to_owned()).await.unwrap());
    assert!(!scene.store.remove_config("t".to_owned(), "p".to_owned()).await.unwrap());
}

#[tokio::test]
async fn a_task_and_a_client_have_only_so_many() {
    let scene = Scene::new().await;
    for number in 0..PUSH_CONFIGS_PER_TASK {
        scene.stored("t", &format!("p{number}")).await;
    }
    assert_eq!(scene.config("t", "one-more", "bob").await, PutPushConfig::TooManyOfTask);
    assert!(matches!(scene.config("t", "p3", "ann").await, PutPushConfig::Stored(_)), "it replaces one");
    let nowhere = scene.new_config("none", "p", "ann");
    assert_eq!(scene.store.put_config(nowhere).await.unwrap(), PutPushConfig::NoTask);
    for number in PUSH_CONFIGS_PER_TASK..PUSH_CONFIGS_PER_CLIENT {
        scene.stored(&format!("t{number}"), "p").await;
    }
    assert_eq!(scene.config("other", "p", "ann").await, PutPushConfig::TooManyOfClient);
    assert!(matches!(scene.config("other", "p", "bob").await, PutPushConfig::Stored(_)));
    // A task that is over needs its config no more, which makes room.
    let key = scene.store.push_configs(PushScope::Task("t99".to_owned())).await.unwrap()[0].key;
    scene.store.enqueue(vec![NewDelivery { last: true, ..delivery(key, 1) }]).await.unwrap();
    assert!(matches!(scene.config("another", "p", "ann").await, PutPushConfig::Stored(_)));
}

/// Finished configs do not gather, except those that still have something to deliver.
#[tokio::test]
async fn configs_of_finished_tasks_are_deleted_in_time() {
    let scene = Scene::new().await;
    scene.stored("first", "p").await;
    let first = scene.store.push_configs(PushScope::All).await.unwrap()[0].key;
    scene.store.enqueue(vec![NewDelivery { last: true, ..delivery(first, 1) }]).await.unwrap();
    for number in 0..PUSH_CONFIGS_PER_CLIENT + 10 {
        let task = format!("t{number}");
        scene.stored(&task, "p").await;
        scene.file.sqlite().execute("UPDATE push_configs SET finished = 1", []).unwrap();
    }
    let count = || scene.file.sqlite().query_row("SELECT count(*) FROM push_configs", [], |row| row.get::<_, i64>(0));
    assert!(count().unwrap() <= PUSH_CONFIGS_PER_CLIENT as i64 + 2, "{:?}", count());
    assert_eq!(scene.store.push_configs(PushScope::Task("first".to_owned())).await.unwrap().len(), 1);
    assert_eq!(scene.take(first).await.unwrap().body, "body 1");
}

#[tokio::test]
async fn secrets_are_not_in_debug_output() {
    let scene = Scene::new().await;
    let key = scene.stored("t", "p").await;
    scene.store.enqueue(vec![delivery(key, 1)]).await.unwrap();
    let config = scene.store.push_configs(PushScope::Session(scene.session.clone())).await.unwrap().remove(0);
    let (taken, new) = (scene.take(key).await.unwrap(), scene.new_config("t", "p", "ann"));
    assert!(config.url.contains("secret") && taken.url.contains("secret"));
    let shown = format!("{config:?} {taken:?} {new:?}");
    assert!(!shown.contains("secret") && !shown.contains("body"), "{shown}");
}
