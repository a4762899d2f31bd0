//! Questions of remote agents, and who answers them.

use std::time::Duration;

use multitap_bridge::BridgeOptions;
use rmcp::model::CallToolResponse;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agent::{After, Agent, Asked, Reply, saying, status, task};
use crate::client::{ERAS, Era, Person, Rig, brief, options, text, until};

/// The agent of the questions: asks for a colour, then for a decision, then is done.
pub(crate) fn asking(asked: &Asked) -> Reply {
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
