//! Long tasks, long answers, and what goes along with a message.

use std::time::Duration;

use multitap_bridge::BridgeOptions;
use multitap_event::A2aServer;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agent::{After, Agent, Asked, Reply, artifact, card, saying, status, task};
use crate::client::{ERAS, Era, Person, Rig, brief, options, text, until};

#[tokio::test]
async fn a_long_task_returns_its_id_and_is_waited_for_later() {
    for era in ERAS {
        let (open, gate) = watch::channel(false);
        let agent = Agent::start("long", move |asked: &Asked| {
            let first = vec![asked.event(&task("t1", "WORKING")), asked.event(&status("t1", "WORKING", "half way"))];
            let rest = vec![
                asked.event(&artifact("t1", "a", &"word ".repeat(10_000), false)),
                asked.event(&status("t1", "COMPLETED", "the answer")),
            ];
            Reply::Stream(first, After::Gate(gate.clone(), rest))
        })
        .await;
        let rig = Rig::start(brief(), vec![agent.entry("long")], era, Person::Absent).await;
        let result = rig.call("long_sendMessage", json!({ "message": "go" })).await;
        let data = &result["structuredContent"];
        assert_eq!((&data["taskId"], &data["state"]), (&json!("t1"), &json!("working")), "{result:#}");
        let next = data["next"].as_str().unwrap();
        assert!(next.contains("long_getTask") && next.contains("\"t1\""), "{next}");
        assert!(rig.desk().progress.lock().unwrap().iter().any(|note| note == "half way"));
        let result = rig.call("long_getTask", json!({ "taskId": "t1" })).await;
        assert_eq!(result["structuredContent"]["state"], "working", "{result:#}");
        open.send(true).unwrap();
        let mut result = rig.call("long_getTask", json!({ "taskId": "t1" })).await;
        while result["structuredContent"]["state"] == "working" {
            result = rig.call("long_getTask", json!({ "taskId": "t1" })).await;
        }
        assert_eq!(result["structuredContent"]["text"], "the answer", "{result:#}");
        assert_eq!(agent.calls("SendStreamingMessage").len(), 1);
        let mut whole = result["structuredContent"]["artifacts"][0]["text"].as_str().unwrap().to_owned();
        while whole.len() < 50_000 {
            let wanted = json!({ "taskId": "t1", "artifactId": "a", "offset": whole.len() });
            let page = text(&rig.call("long_getArtifact", wanted).await);
            whole.push_str(page.split_once('\n').unwrap().1);
        }
        assert_eq!(whole, "word ".repeat(10_000));
        let past = json!({ "taskId": "t1", "artifactId": "a", "offset": 50_000 });
        assert_eq!(rig.call("long_getArtifact", past).await["isError"], true);
        rig.end().await;
    }
}

/// An agent that answers at once with a task that works, and one that says nothing until it is done.
#[tokio::test]
async fn an_agent_that_does_not_stream_is_waited_for() {
    let (open, gate) = watch::channel(false);
    let looked = gate.clone();
    let agent = Agent::start("plain", move |asked: &Asked| match (asked.method(), asked.text()) {
        ("SendMessage", "at once") => asked.result(&task("t1", "WORKING")),
        ("SendMessage", _) => {
            let done = json!({ "task": { "id": "t2", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED",
                "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "at last" }] } } } });
            Reply::Gated(gate.clone(), Box::new(asked.result(&done)))
        }
        ("GetTask", _) => {
            let (state, words) = if *looked.borrow() { ("COMPLETED", "done meanwhile") } else { ("WORKING", "busy") };
            asked.result(&json!({ "id": "t1", "contextId": "c", "status": { "state": format!("TASK_STATE_{state}"),
                "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": words }] } } }))
        }
        _ => asked.error(-32601, "no"),
    })
    .await;
    agent.change_card("capabilities", json!({ "streaming": false }));
    let rig = Rig::start(brief(), vec![agent.entry("plain")], Era::Initialize, Person::Absent).await;
    // What it says later is not lost, though it named no task in time.
    let result = rig.call("plain_sendMessage", json!({ "message": "wait" })).await;
    let handle =
        result["structuredContent"]["taskId"].as_str().unwrap_or_else(|| panic!("no id: {result:#}")).to_owned();
    assert!(text(&result).contains(&handle) && !text(&result).contains("unknown"), "{result:#}");
    // A task that works is still working.
    let result = rig.call("plain_sendMessage", json!({ "message": "at once" })).await;
    assert!(text(&result).contains("still working"), "{result:#}");
    let result = rig.call("plain_getTask", json!({ "taskId": "t1" })).await;
    assert_eq!(result["structuredContent"]["state"], "working", "{result:#}");
    open.send(true).unwrap();
    for (id, words) in [("t1", "done meanwhile"), (handle.as_str(), "at last")] {
        let mut result = rig.call("plain_getTask", json!({ "taskId": id })).await;
        for _ in 0..100 {
            if result["structuredContent"]["state"] == "completed" {
                break;
            }
            result = rig.call("plain_getTask", json!({ "taskId": id })).await;
        }
        assert_eq!(result["structuredContent"]["text"], words, "{id}: {result:#}");
    }
    rig.end().await;
}

#[tokio::test]
async fn an_agent_that_wants_its_user_to_sign_in_is_explained() {
    let agent = Agent::start("locked", |asked: &Asked| {
        asked.stream(&[task("t", "WORKING"), status("t", "AUTH_REQUIRED", "Sign in at the front desk.")])
    })
    .await;
    let rig = Rig::start(options(), vec![agent.entry("locked")], Era::Initialize, Person::Present).await;
    let result = rig.call("locked_sendMessage", json!({ "message": "hi" })).await;
    let data = &result["structuredContent"];
    assert_eq!((&data["state"], &data["text"]), (&json!("auth-required"), &json!("Sign in at the front desk.")));
    let next = data["next"].as_str().unwrap();
    assert!(next.contains("the user to sign in") && next.contains("accessToken"), "{result:#}");
    assert!(text(&result).contains(next), "{result:#}");
    // Credentials are nothing that a form should ask for.
    assert!(rig.desk().asked.lock().unwrap().is_empty());
    rig.end().await;
}

/// The list may change under a call: the call goes on with the agent that it began with.
#[tokio::test]
async fn a_call_outlives_a_change_of_the_list() {
    for change in ["rename", "unload", "unload and load"] {
        let (open, gate) = watch::channel(false);
        let agent = Agent::start("before", move |asked: &Asked| {
            let rest = vec![asked.event(&status("t", "COMPLETED", "still here"))];
            Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Gate(gate.clone(), rest))
        })
        .await;
        let options = BridgeOptions { refresh: Duration::from_millis(100), allow_private: true, ..options() };
        let rig = Rig::start(options, vec![A2aServer::new(agent.url.clone())], Era::Initialize, Person::Absent).await;
        let call = rig.call("before_sendMessage", json!({ "message": "go" }));
        let act = async {
            until("the message", || agent.open_streams() == 1).await;
            match change {
                "rename" => {
                    agent.change_card("name", json!("after"));
                    while !rig.tools().await.contains(&"after_getTask".to_owned()) {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
                _ => {
                    rig.call("unload_agent", json!({ "name": "before" })).await;
                }
            }
            if change == "unload and load" {
                rig.call("load_agent", json!({ "url": agent.url })).await;
            }
            open.send(true).unwrap();
        };
        let (result, ()) = tokio::join!(call, act);
        assert_eq!(result["structuredContent"]["text"], "still here", "{change}: {result:#}");
        let has_tools = rig.tools().await.iter().any(|tool| tool.ends_with("_sendMessage"));
        assert_eq!(has_tools, change != "unload", "{change}");
        rig.end().await;
    }
}

#[tokio::test]
async fn files_contexts_and_hops_go_along() {
    let agent = Agent::start("files", saying("thanks")).await;
    let rig = Rig::plain(vec![agent.entry("files")]).await;
    let files = json!([{ "name": "a.txt", "mimeType": "text/plain", "text": "hello" }]);
    let first = rig.call("files_sendMessage", json!({ "message": "read this", "files": files })).await;
    let context = first["structuredContent"]["contextId"].clone();
    rig.call("files_sendMessage", json!({ "message": "and on", "contextId": context })).await;
    let sent: Vec<Value> =
        agent.calls("SendStreamingMessage").into_iter().map(|asked| asked.body["params"]["message"].clone()).collect();
    assert_eq!(sent[0]["parts"][1]["filename"], "a.txt", "{sent:#?}");
    assert_eq!(sent[1]["contextId"], context, "{sent:#?}");
    assert_eq!(sent[1]["metadata"]["multitap/hops"], 1, "{sent:#?}");
    rig.end().await;
}

#[tokio::test]
async fn a_long_answer_is_read_by_pages() {
    let agent = Agent::start("talker", |asked: &Asked| {
        let words = "word ".repeat(10_000);
        let part = json!({ "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": words }] });
        match asked.text() {
            "message" => asked.stream(&[json!({ "message": part })]),
            _ => asked.stream(&[task("t", "WORKING"), status("t", "COMPLETED", &words)]),
        }
    })
    .await;
    let rig = Rig::plain(vec![agent.entry("talker")]).await;
    for message in ["task", "message"] {
        let result = rig.call("talker_sendMessage", json!({ "message": message })).await;
        let data = &result["structuredContent"];
        assert_eq!((data["text"].as_str().unwrap().len(), &data["rest"]["characters"]), (20_000, &json!(50_000)));
        let words = format!("[20000 of 50000 characters. Call talker_getArtifact with taskId {}", data["taskId"]);
        assert!(text(&result).contains(&words), "{message}: no {words}");
        let mut whole = data["text"].as_str().unwrap().to_owned();
        while whole.len() < 50_000 {
            let wanted =
                json!({ "taskId": data["taskId"], "artifactId": data["rest"]["artifactId"], "offset": whole.len() });
            let page = text(&rig.call("talker_getArtifact", wanted).await);
            whole.push_str(page.split_once('\n').unwrap().1);
        }
        assert_eq!(whole, "word ".repeat(10_000), "{message}");
    }
    rig.end().await;
}

#[tokio::test]
async fn two_clients_have_their_own_calls() {
    let agent = Agent::start("echo", |asked: &Asked| {
        let words = asked.text().to_owned();
        asked.stream(&[task(&words, "WORKING"), status(&words, "COMPLETED", &words)])
    })
    .await;
    let first = Rig::plain(vec![agent.entry("echo")]).await;
    let second = first.another(Era::Discover, Person::Absent).await;
    let (one, two) = tokio::join!(
        first.call("echo_sendMessage", json!({ "message": "one" })),
        second.call("echo_sendMessage", json!({ "message": "two" }))
    );
    assert_eq!((&one["structuredContent"]["text"], &two["structuredContent"]["text"]), (&json!("one"), &json!("two")));
    second.leave().await;
    let again = first.call("echo_sendMessage", json!({ "message": "three" })).await;
    assert_eq!(again["structuredContent"]["text"], "three", "the one that stays is served on");
    first.end().await;
}

/// Agents on this machine are listed by one of its names, and their cards give it another.
#[tokio::test]
async fn an_agent_of_this_machine_may_call_it_by_any_name() {
    for name in ["localhost", "0.0.0.0", "127.0.0.1"] {
        let agent = Agent::start("local", saying("hi")).await;
        agent.set_card(Reply::Json(card("local", &agent.url.replace("127.0.0.1", name))));
        let entry = A2aServer { access_token: Some("token-4715".to_owned()), ..agent.entry("local") };
        let rig = Rig::plain(vec![entry]).await;
        let result = rig.call("local_sendMessage", json!({ "message": "hi" })).await;
        assert_eq!(result["structuredContent"]["text"], "hi", "{name}: {result:#}");
        rig.end().await;
    }
}
