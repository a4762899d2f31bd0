//! Long tasks, questions and cancelled calls.

use std::time::Duration;

use multitap_bridge::{BridgeOptions, Hops};
use multitap_event::A2aServer;
use rmcp::model::CallToolResponse;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agent::{After, Agent, Asked, Reply, artifact, card, saying, status, task};
use crate::client::{ERAS, Era, Person, Rig, options, text, until};

fn brief() -> BridgeOptions {
    BridgeOptions { call_budget: Duration::from_millis(300), ..options() }
}

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

/// The agent of the questions: asks for a colour, then for a decision, then is done.
fn asking(asked: &Asked) -> Reply {
    let message = &asked.body["params"]["message"];
    let decision = &message["parts"][0]["data"];
    let call = json!({ "tool_call_id": "call", "status": "PENDING", "tool_name": "shell", "input_parameters": {},
        "confirmation_request": { "options": [{ "id": "proceed_once", "name": "Yes" }, { "id": "cancel", "name": "No" }],
            "execute_details": { "command": "ls" } } });
    let asks = json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING",
        "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "data": call }] } } } });
    match asked.text() {
        "begin" => asked.stream(&[task("t", "WORKING"), status("t", "INPUT_REQUIRED", "Which colour?")]),
        "blue" if message["taskId"] == "t" => {
            asked.stream(&[task("t", "WORKING"), asks, status("t", "INPUT_REQUIRED", "")])
        }
        _ if decision["selected_option_id"] == "proceed_once" && message["taskId"] == "t" => {
            asked.stream(&[task("t", "WORKING"), status("t", "COMPLETED", "painted blue")])
        }
        _ => asked.error(-32602, "not that"),
    }
}

#[tokio::test]
async fn a_person_answers_what_the_agent_asks() {
    for era in ERAS {
        let agent = Agent::start("asking", asking).await;
        let rig = Rig::start(options(), vec![agent.entry("asking")], era, Person::Present).await;
        rig.desk().answers.lock().unwrap().extend([json!({ "answer": "blue" }), json!({ "decision": "proceed_once" })]);
        let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
        assert_eq!(result["structuredContent"]["text"], "painted blue", "{era:?}: {result:#}");
        let asked = rig.desk().asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 2, "{asked:#?}");
        assert!(asked[0]["message"].as_str().unwrap().contains("The remote agent asking asks:\n\nWhich colour?"));
        assert!(asked[1]["message"].as_str().unwrap().contains("run this command: ls"), "{asked:#?}");
        // Nobody answers: the result says so, and which task waits.
        let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
        assert!(text(&result).contains("did not answer"), "{era:?}: {result:#}");
        let how = "call asking_sendMessage with taskId \"t\" and the answer as message";
        assert!(text(&result).contains(how), "{era:?}: {result:#}");
        assert_eq!(result["structuredContent"]["taskId"], "t", "{era:?}: {result:#}");
        rig.end().await;
    }
}

/// An agent that asks for the next number, whatever the answer.
fn insatiable(asked: &Asked) -> Reply {
    let next = asked.text().parse().unwrap_or(0) + 1;
    asked.stream(&[task("t", "WORKING"), status("t", "INPUT_REQUIRED", &format!("What comes after {next}?"))])
}

/// A call takes a number of questions to a person and hands the next one to its caller. No answer is lost.
#[tokio::test]
async fn a_call_that_asks_too_often_returns_the_next_question() {
    let agent = Agent::start("curious", insatiable).await;
    let rig = Rig::start(options(), vec![agent.entry("curious")], Era::Initialize, Person::Present).await;
    rig.desk().answers.lock().unwrap().extend((1..100).map(|number| json!({ "answer": number.to_string() })));
    let result = rig.call("curious_sendMessage", json!({ "message": "0" })).await;
    let (asked, sent) = (rig.desk().asked.lock().unwrap().len(), agent.calls("SendStreamingMessage"));
    assert!((2..50).contains(&asked), "{asked} questions");
    assert_eq!(sent.last().unwrap().text(), asked.to_string(), "the last answer is sent, too");
    let data = &result["structuredContent"];
    assert_eq!((&data["state"], &data["taskId"]), (&json!("input-required"), &json!("t")), "{result:#}");
    assert_eq!(data["question"]["text"], format!("What comes after {}?", asked + 1), "{result:#}");
    assert!(text(&result).contains("call curious_sendMessage with taskId \"t\""), "{result:#}");
    rig.end().await;
}

/// What an agent asks after its call has returned is taken to a person by the call that waits for it.
#[tokio::test]
async fn waiting_for_a_task_asks_a_person_as_well() {
    for era in ERAS {
        let (open, gate) = watch::channel(false);
        let agent = Agent::start("asking", move |asked: &Asked| match (asked.method(), asked.text()) {
            ("SendStreamingMessage", "begin") => {
                let Reply::Stream(rest, _) = asking(&Asked { body: blue(&asked.body), ..asked.clone() }) else {
                    panic!("a stream")
                };
                Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Gate(gate.clone(), rest))
            }
            ("SendStreamingMessage", _) => asking(asked),
            // What is to be decided is not in the state.
            ("GetTask", _) => asked.result(&json!({ "id": "t", "contextId": "c",
                "status": { "state": "TASK_STATE_INPUT_REQUIRED" } })),
            _ => asked.error(-32601, "no"),
        })
        .await;
        let rig = Rig::start(brief(), vec![agent.entry("asking")], era, Person::Present).await;
        let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
        assert_eq!(result["structuredContent"]["state"], "working", "{result:#}");
        open.send(true).unwrap();
        // Nobody is asked by who does not wait.
        until("the question", || agent.open_streams() == 0).await;
        let result = rig.call("asking_getTask", json!({ "taskId": "t", "wait": false })).await;
        assert_eq!(result["structuredContent"]["question"]["kind"], "confirmation", "{era:?}: {result:#}");
        assert!(rig.desk().asked.lock().unwrap().is_empty());
        rig.desk().answers.lock().unwrap().push_back(json!({ "decision": "proceed_once" }));
        let result = rig.call("asking_getTask", json!({ "taskId": "t" })).await;
        assert_eq!(result["structuredContent"]["text"], "painted blue", "{era:?}: {result:#}");
        let asked = rig.desk().asked.lock().unwrap().clone();
        assert!(
            asked.len() == 1 && asked[0]["message"].as_str().unwrap().contains("run this command: ls"),
            "{asked:#?}"
        );
        rig.end().await;
    }
}

/// The same request with another text and task.
fn blue(body: &Value) -> Value {
    let mut body = body.clone();
    body["params"]["message"]["parts"][0]["text"] = json!("blue");
    body["params"]["message"]["taskId"] = json!("t");
    body
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

/// What a person approves is shown to its end, or not put to a person at all.
#[tokio::test]
async fn a_decision_is_shown_whole_or_not_at_all() {
    for era in ERAS {
        let agent = Agent::start("padding", |asked: &Asked| {
            let pad = " ".repeat(asked.text().parse().unwrap_or_default());
            let call = json!({ "tool_call_id": "call", "status": "PENDING", "tool_name": "shell",
                "input_parameters": {}, "confirmation_request": { "options": [{ "id": "proceed_once", "name": "Yes" }],
                    "execute_details": { "command": format!("echo hi{pad}; touch /tmp/x") } } });
            let asks = json!({ "statusUpdate": { "taskId": "t", "contextId": "c", "status": {
                "state": "TASK_STATE_INPUT_REQUIRED",
                "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "data": call }] } } } });
            asked.stream(&[task("t", "WORKING"), asks])
        })
        .await;
        let rig = Rig::start(options(), vec![agent.entry("padding")], era, Person::Present).await;
        for _ in 0..2 {
            rig.desk().answers.lock().unwrap().push_back(json!({ "decision": "proceed_once" }));
            rig.call("padding_sendMessage", json!({ "message": "12000" })).await;
            rig.desk().answers.lock().unwrap().clear();
        }
        let asked = std::mem::take(&mut *rig.desk().asked.lock().unwrap());
        assert!(!asked.is_empty());
        for asked in asked {
            let words = asked["message"].as_str().unwrap();
            assert!(words.ends_with("; touch /tmp/x"), "{}", &words[words.len() - 80..]);
        }
        let result = rig.call("padding_sendMessage", json!({ "message": "40000" })).await;
        assert!(rig.desk().asked.lock().unwrap().is_empty(), "{era:?}: nobody is asked");
        assert_eq!(result["structuredContent"]["question"]["kind"], "oversized", "{result:#}");
        assert!(text(&result).contains("padding_cancelTask"), "{result:#}");
        rig.end().await;
    }
}

#[tokio::test]
async fn a_result_that_asks_is_answered_once_and_by_its_own_tool() {
    let (agent, other) = (Agent::start("asking", asking).await, Agent::start("other", saying("hi")).await);
    let entries = vec![agent.entry("asking"), other.entry("other")];
    let rig = Rig::start(options(), entries, Era::Discover, Person::Present).await;
    let request = Rig::request("asking_sendMessage", json!({ "message": "begin" }));
    let CallToolResponse::InputRequired(asks) = rig.once(request.clone()).await else { panic!("it asks") };
    let handle = asks.request_state.clone().unwrap();
    let answer = |tool: &str, handle: &str| {
        let mut request = Rig::request(tool, json!({ "message": "begin" }));
        request.request_state = Some(handle.to_owned());
        let answer = json!({ "action": "accept", "content": { "answer": "blue" } });
        request.input_responses = Some([("answer".to_owned(), answer)].into());
        request
    };
    for (tool, handle) in [("other_sendMessage", handle.as_str()), ("asking_sendMessage", "guessed")] {
        let CallToolResponse::Complete(result) = rig.once(answer(tool, handle)).await else {
            panic!("no such question")
        };
        assert_eq!(result.is_error, Some(true), "{tool}: {result:#?}");
    }
    let again = rig.once(answer("asking_sendMessage", &handle)).await;
    assert!(matches!(again, CallToolResponse::InputRequired(_)), "{again:?}");
    let CallToolResponse::Complete(result) = rig.once(answer("asking_sendMessage", &handle)).await else {
        panic!("a handle works once")
    };
    assert_eq!(result.is_error, Some(true));
    assert!(other.calls("SendStreamingMessage").is_empty());
    rig.end().await;
}

#[tokio::test]
async fn without_a_person_the_same_tool_answers() {
    let agent = Agent::start("asking", asking).await;
    let rig = Rig::plain(vec![agent.entry("asking")]).await;
    let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
    assert!(text(&result).contains("asking_sendMessage with taskId \"t\""), "{result:#}");
    let result = rig.call("asking_sendMessage", json!({ "message": "blue", "taskId": "t" })).await;
    let question = &result["structuredContent"]["question"];
    assert_eq!(question["options"][0]["optionId"], "proceed_once", "{result:#}");
    // Some clients give the model the text alone.
    let shown = text(&result);
    for part in ["- proceed_once: Yes\n- cancel: No\n", "It wants to run this command: ls", "\"toolCallId\": \"call\""]
    {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    let answer = json!({ "toolCallId": question["toolCallId"], "optionId": "proceed_once" });
    let result = rig.call("asking_sendMessage", json!({ "taskId": "t", "answer": answer })).await;
    assert_eq!(result["structuredContent"]["text"], "painted blue", "{result:#}");
    rig.end().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_cancels_its_task() {
    for era in ERAS {
        // The second agent names its task only after the call was given up.
        let (open, gate) = watch::channel(false);
        let early = Agent::start("early", |asked: &Asked| match asked.method() {
            "SendStreamingMessage" => Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Open),
            _ => asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } })),
        })
        .await;
        let late = Agent::start("late", move |asked: &Asked| match asked.method() {
            "SendStreamingMessage" => {
                let events = vec![asked.event(&task("t", "WORKING"))];
                Reply::Gated(gate.clone(), Box::new(Reply::Stream(events, After::Open)))
            }
            _ => asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } })),
        })
        .await;
        let rig = Rig::start(options(), vec![early.entry("early"), late.entry("late")], era, Person::Present).await;
        for agent in ["early", "late"] {
            let server = if agent == "early" { &early } else { &late };
            let call = rig.client.call_tool(Rig::request(&format!("{agent}_sendMessage"), json!({ "message": "go" })));
            let is_sent = until("the message", || !server.calls("SendStreamingMessage").is_empty());
            tokio::select! {
                result = call => panic!("it ended: {result:?}"),
                // The future is dropped: the client sends `notifications/cancelled`.
                () = is_sent => {}
            }
            // The bridge has seen it by the time it answers the next call.
            rig.call("list_agents", json!({})).await;
            if agent == "late" {
                open.send(true).unwrap();
            }
            until("the task to be cancelled", || !server.calls("CancelTask").is_empty()).await;
            assert_eq!(server.calls("CancelTask")[0].body["params"]["id"], "t");
        }
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
async fn a_person_who_does_not_answer_in_time_has_not_answered() {
    let agent = Agent::start("asking", asking).await;
    let options = BridgeOptions { patience: Duration::from_millis(100), ..options() };
    let rig = Rig::start(options, vec![agent.entry("asking")], Era::Initialize, Person::Asleep).await;
    let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
    assert!(text(&result).contains("did not answer"), "{result:#}");
    assert_eq!(agent.calls("SendStreamingMessage").len(), 1);
    // The client takes the dialog down.
    until("the question to be taken back", || *rig.desk().taken_back.borrow()).await;
    rig.end().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_while_a_person_is_asked_cancels_its_task() {
    let agent = Agent::start("asking", |asked: &Asked| match asked.method() {
        "CancelTask" => {
            asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
        }
        _ => asking(asked),
    })
    .await;
    let rig = Rig::start(options(), vec![agent.entry("asking")], Era::Initialize, Person::Asleep).await;
    let call = rig.client.call_tool(Rig::request("asking_sendMessage", json!({ "message": "begin" })));
    tokio::select! {
        result = call => panic!("it ended: {result:?}"),
        () = until("the question", || !rig.desk().asked.lock().unwrap().is_empty()) => {}
    }
    until("the task to be cancelled", || !agent.calls("CancelTask").is_empty()).await;
    until("the question to be taken back", || *rig.desk().taken_back.borrow()).await;
    rig.end().await;
}

/// The person at the agent's own terminal answers first.
#[tokio::test]
async fn a_question_that_somebody_else_answers_is_taken_back() {
    let (answer, answered) = watch::channel(false);
    let agent = Agent::start("asking", move |asked: &Asked| match asked.method() {
        "GetTask" => {
            let state = if *answered.borrow() { "COMPLETED" } else { "INPUT_REQUIRED" };
            let status = status("t", state, "painted green")["statusUpdate"]["status"].take();
            asked.result(&json!({ "id": "t", "contextId": "c", "status": status }))
        }
        _ => asking(asked),
    })
    .await;
    let rig = Rig::start(options(), vec![agent.entry("asking")], Era::Initialize, Person::Asleep).await;
    let answering = async {
        // It is asked whether it still waits, and the question stays.
        until("a look", || agent.calls("GetTask").len() > 1).await;
        assert!(!*rig.desk().taken_back.borrow());
        answer.send(true).unwrap();
    };
    let (result, ()) = tokio::join!(rig.call("asking_sendMessage", json!({ "message": "begin" })), answering);
    assert_eq!(result["structuredContent"]["state"], "completed", "{result:#}");
    assert!(text(&result).contains("painted green"), "{result:#}");
    until("the question to be taken back", || *rig.desk().taken_back.borrow()).await;
    assert_eq!(rig.desk().asked.lock().unwrap().len(), 1);
    rig.end().await;
}

/// The client says nothing, but whoever prompts the calling agent does.
#[tokio::test]
async fn a_turn_that_is_cancelled_cancels_the_tasks_of_its_calls() {
    for person in [Person::Asleep, Person::Absent] {
        let agent = Agent::start("asking", move |asked: &Asked| match asked.method() {
            "CancelTask" => {
                asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
            }
            _ if person == Person::Asleep => asking(asked),
            _ => Reply::Stream(vec![asked.event(&task("t", "WORKING"))], After::Open),
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hops");
        std::fs::write(&file, "1 1").unwrap();
        let options = BridgeOptions { hops: Hops::File(file.clone()), ..options() };
        let rig = Rig::start(options, vec![agent.entry("asking")], Era::Initialize, person).await;
        let cancel = async {
            match person {
                Person::Asleep => until("the question", || !rig.desk().asked.lock().unwrap().is_empty()).await,
                _ => until("the message", || agent.open_streams() > 0).await,
            }
            assert_eq!(agent.calls("CancelTask").len(), 0);
            std::fs::write(&file, "1 2").unwrap();
        };
        let (result, ()) = tokio::join!(rig.call("asking_sendMessage", json!({ "message": "begin" })), cancel);
        assert!(text(&result).contains("was cancelled"), "{result:#}");
        assert_eq!(agent.calls("CancelTask").len(), 1);
        if person == Person::Asleep {
            until("the question to be taken back", || *rig.desk().taken_back.borrow()).await;
        }
        rig.end().await;
    }
}

/// The call has returned with the question; the client is silent when its turn is cancelled, or leaves.
#[tokio::test]
async fn a_result_that_asks_is_given_up_with_its_turn_or_its_client() {
    for is_left in [false, true] {
        let agent = Agent::start("asking", |asked: &Asked| match asked.method() {
            "CancelTask" => {
                asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
            }
            _ => asking(asked),
        })
        .await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hops");
        let options = BridgeOptions { hops: Hops::File(file.clone()), ..options() };
        let rig = Rig::start(options, vec![agent.entry("asking")], Era::Discover, Person::Present).await;
        let asked = rig.once(Rig::request("asking_sendMessage", json!({ "message": "begin" }))).await;
        assert!(matches!(asked, CallToolResponse::InputRequired(_)), "{asked:?}");
        assert_eq!(agent.calls("CancelTask").len(), 0);
        if is_left {
            rig.leave().await.close().await;
        } else {
            // The wait for the answer has begun by then.
            rig.list().await;
            std::fs::write(&file, "0 1").unwrap();
            until("the task to be cancelled", || !agent.calls("CancelTask").is_empty()).await;
            rig.end().await;
        }
        assert_eq!(agent.calls("CancelTask").len(), 1, "{is_left}");
    }
}

/// Some clients close the dialog before they say that the call is given up.
#[tokio::test]
async fn a_dialog_that_closes_with_its_call_cancels_the_task() {
    let agent = Agent::start("asking", |asked: &Asked| match asked.method() {
        "CancelTask" => {
            asked.result(&json!({ "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_CANCELED" } }))
        }
        _ => asking(asked),
    })
    .await;
    let rig = Rig::start(options(), vec![agent.entry("asking")], Era::Initialize, Person::Leaving).await;
    let call = rig.client.call_tool(Rig::request("asking_sendMessage", json!({ "message": "begin" })));
    tokio::select! {
        biased;
        result = call => panic!("it ended: {result:?}"),
        () = until("the question", || !rig.desk().asked.lock().unwrap().is_empty()) => {}
    }
    until("the task to be cancelled", || !agent.calls("CancelTask").is_empty()).await;
    // A dialog that closes alone means that the person does not want to answer: the task waits on.
    let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
    assert!(text(&result).contains("did not answer"), "{result:#}");
    assert_eq!(agent.calls("CancelTask").len(), 1);
    rig.end().await;
}

/// An answer without words is none.
#[tokio::test]
async fn nothing_is_not_an_answer() {
    let agent = Agent::start("asking", asking).await;
    let rig = Rig::start(options(), vec![agent.entry("asking")], Era::Initialize, Person::Present).await;
    rig.desk().answers.lock().unwrap().push_back(json!({ "answer": " " }));
    let result = rig.call("asking_sendMessage", json!({ "message": "begin" })).await;
    assert!(text(&result).contains("did not answer"), "{result:#}");
    assert_eq!(agent.calls("SendStreamingMessage").len(), 1);
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
