//! Tasks of a session that others use too.

use std::sync::Arc;
use std::time::Duration;

use multitap_a2a::devtool;
use multitap_event::{ClientRef, Command, Door as Way, Prompt, Ruling, SessionId};
use multitap_hub::{
    Batch, Claim, Filter, Journal, Kept, NewSession, Owner, Page, Part, PushQueue, Session, SessionRecord, TaskFilter,
    TaskPage, TaskRecord, WhenBusy,
};
use multitap_serve::Limits;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::live::{Client, Live, asked, is_end, soon, text, turn_ended, turn_started};
use crate::scene::ask;

/// The only task that is listed, which is the session's.
async fn only_task(client: &mut Client, session: &Session) -> Value {
    client.ask(1, "ListTasks", json!({})).await;
    let listed = client.answer(1).await;
    let [task] = listed["result"]["tasks"].as_array().unwrap().as_slice() else { panic!("{listed}") };
    assert_eq!(task["contextId"], session.id().as_str());
    task.clone()
}

#[tokio::test]
async fn a_turn_that_was_typed_before_anybody_came_is_listed() {
    let (live, session, mut agent) = Live::shared().await;
    let by = ClientRef::new("ann", Way::Terminal);
    session.prompt(Prompt::text("first"), WhenBusy::Queue, by).await.unwrap();
    agent.answers(1).await;
    let mut client = live.client("").await;
    let listed = only_task(&mut client, &session).await;
    client.ask(2, "tasks/get", json!({ "id": listed["id"] })).await;
    let task = client.answer(2).await;
    assert_eq!(task["result"]["history"][0]["parts"][0]["text"], "first", "{task}");
}

/// R003-16: it is there from the first moment to the last, so that a client can listen before anybody has prompted.
#[tokio::test]
async fn the_task_that_all_share_is_listed_before_its_first_turn() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("").await;
    let listed = only_task(&mut client, &session).await;
    assert_eq!(listed["status"]["state"], "TASK_STATE_SUBMITTED", "{listed}");
    client.ask(2, "tasks/resubscribe", json!({ "id": listed["id"] })).await;
    assert_eq!(client.answer(2).await["result"]["id"], listed["id"]);
    session.prompt(Prompt::text("first"), WhenBusy::Queue, ClientRef::new("ann", Way::Terminal)).await.unwrap();
    agent.answers(1).await;
    let told = client.until(is_end).await;
    assert!(told.iter().all(|frame| frame["id"] == 2), "{told:#?}");
}

/// Of a task that lasts as long as its session, the results are those of its last turn. A client of the extension has
/// them in its frames.
#[tokio::test]
async fn results_of_the_shared_task_are_those_of_its_last_turn() {
    let (live, session, mut agent) = Live::shared().await;
    let answers = |task: &Value| -> Vec<String> {
        let all = task.get("artifacts").and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter().map(|artifact| artifact["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
    };
    let path = format!("/tasks/task-{}", session.id());
    for turn in ["first", "second"] {
        let by = ClientRef::new("ann", Way::Terminal);
        session.prompt(Prompt::text(turn), WhenBusy::Queue, by).await.unwrap();
        agent.hears_prompt().await;
        agent.tells(turn_started()).await;
        agent.tells(text(&format!("the {turn} answer"))).await;
        agent.tells(turn_ended()).await;
        let host = format!("127.0.0.1:{}", live.port());
        soon(async {
            loop {
                let task = ask(live.port(), &format!("GET {path}"), &[("Host", &host)]).await.json();
                if answers(&task) == [format!("the {turn} answer")] {
                    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        let headers = [("Host", host.as_str()), ("A2A-Extensions", devtool::URI)];
        let task = ask(live.port(), &format!("GET {path}"), &headers).await.json();
        assert!(answers(&task).is_empty(), "{task:#}");
    }
}

/// A journal whose disk writes no task until there is a permit for it.
#[derive(Debug)]
struct SlowTasks {
    inner: Arc<dyn Journal>,
    permits: Semaphore,
}

impl Journal for SlowTasks {
    fn create(&self, session: NewSession) -> Kept<'_, Claim> {
        self.inner.create(session)
    }

    fn claim(&self, session: SessionId) -> Kept<'_, Claim> {
        self.inner.claim(session)
    }

    fn append(&self, batch: Batch) -> Kept<'_, ()> {
        self.inner.append(batch)
    }

    fn page(&self, session: SessionId, part: Part) -> Kept<'_, Page> {
        self.inner.page(session, part)
    }

    fn release(&self, session: SessionId, owner: Owner, told: u64) -> Kept<'_, ()> {
        self.inner.release(session, owner, told)
    }

    fn list(&self, filter: Filter) -> Kept<'_, Vec<SessionRecord>> {
        self.inner.list(filter)
    }

    fn find(&self, name: String) -> Kept<'_, Vec<SessionRecord>> {
        self.inner.find(name)
    }

    fn remove(&self, session: SessionId) -> Kept<'_, ()> {
        self.inner.remove(session)
    }

    fn rulings(&self, session: SessionId) -> Kept<'_, Vec<Ruling>> {
        self.inner.rulings(session)
    }

    fn keep_task(&self, task: TaskRecord) -> Kept<'_, ()> {
        Box::pin(async {
            self.permits.acquire().await.unwrap().forget();
            self.inner.keep_task(task).await
        })
    }

    fn begin_task(&self, task: TaskRecord) -> Kept<'_, ()> {
        self.inner.begin_task(task)
    }

    fn task(&self, id: String) -> Kept<'_, Option<TaskRecord>> {
        self.inner.task(id)
    }

    fn tasks(&self, filter: TaskFilter) -> Kept<'_, TaskPage> {
        self.inner.tasks(filter)
    }

    fn push_queue(&self) -> Option<&dyn PushQueue> {
        self.inner.push_queue()
    }
}

/// The rows of tasks were once written between two frames, and everybody waited for the disk.
#[tokio::test]
async fn a_slow_disk_delays_no_client() {
    let mut slow = None;
    let (live, session, mut agent) = Live::shared_with(Limits::default(), |inner| {
        let journal = Arc::new(SlowTasks { inner, permits: Semaphore::new(0) });
        slow = Some(journal.clone());
        journal
    })
    .await;
    let journal = slow.unwrap();
    let mut client = live.client("").await;
    for turn in 1..=3 {
        client.stream(turn, "go").await;
        agent.answers(5).await;
        client.until(is_end).await;
    }
    let task = format!("task-{}", session.id());
    assert_eq!(journal.task(task.clone()).await.unwrap(), None, "the disk is not slow");
    // One write was under way; what the task became meanwhile is a second one.
    journal.permits.add_permits(2);
    soon(async {
        while journal.task(task.clone()).await.unwrap().is_none_or(|task| task.state != "completed") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// A client that knows no extension answers in a session that it shares, and an id of any length is not kept.
#[tokio::test]
async fn a_word_answers_the_question_of_a_lasting_task() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("?client=ann").await;
    let task = format!("task-{}", session.id());
    let said = |id: &str, text: &str| {
        json!({
            "message": { "kind": "message", "messageId": id, "taskId": task, "role": "user",
                "parts": [{ "kind": "text", "text": text }] },
            "configuration": { "blocking": false },
        })
    };
    client.ask(1, "message/send", said("m1", "go")).await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    client.answer(1).await["result"].as_object().unwrap();
    agent.tells(asked("q1")).await;
    client.until(|frame| frame.to_string().contains("input-required")).await;
    client.ask(2, "message/send", said("m2", " proceed_once\n")).await;
    let Command::Decide(decide) = agent.hears().await else { panic!("no answer") };
    assert_eq!((decide.question_id.as_str(), decide.option_id.as_str()), ("q1", "proceed_once"));
    client.ask(3, "message/send", said(&"x".repeat(2000), "go")).await;
    assert_eq!(client.answer(3).await["error"]["code"], -32602);
}
