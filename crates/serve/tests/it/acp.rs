//! ACP over `/acp` and `/ws`: stock clients, several on one session, and what no client library would send.

use std::time::Duration;

use multitap_event::{
    AgentCapabilities, AgentError, AgentErrorKind, AgentKind, AgentModel, ApprovalMode, ClientRef, ClientRole, Command,
    Door as Way, EventKind, Prompt, SessionConfig, Setting, TurnEnd, TurnStatus, Withdrawal,
};
use multitap_hub::{Open, Refusal, Session, WhenBusy};
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::live::{Agent, Client, Live, asked, ended, soon, text, turn_ended, turn_started};

/// What every client is sent alike.
const SHARED: [&str; 3] = ["user_message_chunk", "agent_message_chunk", "session_info_update"];

async fn shared() -> (Live, Session, Agent) {
    let (live, session, agent) = Live::shared().await;
    agent.tells(models()).await;
    (live, session, agent)
}

fn models() -> EventKind {
    let model = |id: &str| AgentModel { id: id.to_owned(), name: None, description: String::new() };
    EventKind::Capabilities(AgentCapabilities {
        model: Some("small".to_owned()),
        models: Some(vec![model("small"), model("large")]),
        ..AgentCapabilities::default()
    })
}

/// One that has said hello.
async fn hello(live: &Live, path: &str, meta: Value) -> Client {
    let (mut client, _) = Client::at(live.port(), path).await;
    initialize(&mut client, "editor", meta).await;
    client
}

async fn initialize(client: &mut Client, name: &str, meta: Value) -> Value {
    let about = json!({
        "protocolVersion": 1,
        "clientInfo": { "name": name, "version": "0" },
        "clientCapabilities": { "_meta": meta },
    });
    client.ask("init", "initialize", about).await;
    client.answer("init").await["result"].clone()
}

/// One that has joined the shared session.
async fn editor(live: &Live) -> Client {
    editor_at(live, "/acp").await
}

async fn editor_at(live: &Live, path: &str) -> Client {
    let mut client = hello(live, path, json!({})).await;
    new(&mut client).await;
    client
}

async fn new(client: &mut Client) -> Value {
    client.ask("new", "session/new", json!({ "cwd": "/anywhere", "mcpServers": [] })).await;
    let answer = client.answer("new").await;
    assert!(answer["result"]["sessionId"].is_string(), "{answer}");
    answer["result"].clone()
}

async fn load(client: &mut Client, id: &str, session: &str) {
    client.ask(id, "session/load", json!({ "sessionId": session, "cwd": "/anywhere", "mcpServers": [] })).await;
}

async fn prompt(client: &mut Client, id: &str, session: &Session, words: &str) {
    let blocks = json!([{ "type": "text", "text": words }]);
    client.ask(id, "session/prompt", json!({ "sessionId": session.id(), "prompt": blocks })).await;
}

/// A session whose log is behind refuses prompts until it has caught up.
async fn types(session: &Session, words: &str) {
    soon(async {
        loop {
            let ann = ClientRef::new("ann", Way::Terminal);
            match session.prompt(Prompt::text(words), WhenBusy::Queue, ann).await {
                Err(Refusal::Busy) => tokio::time::sleep(Duration::from_millis(20)).await,
                taken => break taken.unwrap(),
            }
        }
    })
    .await;
}

/// The updates among these frames that every client is sent alike.
fn updates(frames: &[Value]) -> Vec<Value> {
    let updates = frames.iter().filter(|frame| frame["method"] == "session/update");
    let shared = |update: &Value| SHARED.contains(&update["sessionUpdate"].as_str().unwrap_or_default());
    updates.map(|frame| frame["params"]["update"].clone()).filter(shared).collect()
}

fn words(frames: &[Value], kind: &str) -> Vec<String> {
    let of_kind = updates(frames).into_iter().filter(|update| update["sessionUpdate"] == kind);
    of_kind.map(|update| update["content"]["text"].as_str().unwrap().to_owned()).collect()
}

fn says(words: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| frame["params"]["update"]["content"]["text"] == words
}

fn is(method: &'static str) -> impl Fn(&Value) -> bool {
    move |frame| frame["method"] == method
}

fn asks(frame: &Value) -> bool {
    frame["method"] == "session/request_permission"
}

async fn is_asked(client: &mut Client) -> Value {
    client.until(asks).await.pop().unwrap()
}

fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

async fn stop_reason(client: &mut Client, id: &str) -> Value {
    client.answer(id).await["result"]["stopReason"].clone()
}

fn cancelled() -> EventKind {
    EventKind::TurnCompleted(TurnEnd::of(TurnStatus::Cancelled))
}

#[tokio::test]
async fn both_paths_speak_acp() {
    let (live, session, _agent) = shared().await;
    let mut ids = Vec::new();
    for path in ["/acp", "/acp", "/ws"] {
        let (mut client, response) = Client::at(live.port(), path).await;
        ids.extend(response.headers().get("acp-connection-id").map(|id| id.to_str().unwrap().to_owned()));
        let hello = initialize(&mut client, "Zed", json!({})).await;
        assert_eq!(hello["protocolVersion"], 1);
        let able = &hello["agentCapabilities"];
        assert_eq!(able["loadSession"], true);
        assert_eq!(able["promptCapabilities"]["image"], true);
        assert_eq!(able["_meta"]["multitap"]["attach"]["roles"], json!(["controller", "observer"]));
        let joined = new(&mut client).await;
        assert_eq!(joined["sessionId"], session.id().as_str());
        assert_eq!(joined["configOptions"][1]["currentValue"], "small");
        let state = session.snapshot().await.unwrap();
        let known = state.clients.iter().find(|known| known.door == Way::Acp).unwrap();
        assert_eq!(known.client, "Zed");
    }
    assert_eq!(ids.len(), 2, "of /acp");
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn the_shared_session_is_joined_by_new_load_and_resume() {
    let (live, session, mut agent) = shared().await;
    let (mut prompting, mut loading) = (editor(&live).await, hello(&live, "/acp", json!({})).await);
    let mut resuming = hello(&live, "/ws", json!({})).await;
    load(&mut loading, "load", session.id().as_str()).await;
    loading.answer("load").await;
    resuming.ask("resume", "session/resume", json!({ "sessionId": session.id(), "cwd": "/x" })).await;
    resuming.answer("resume").await;
    loading.ask("list", "session/list", json!({})).await;
    let list = loading.answer("list").await;
    assert_eq!(list["result"]["sessions"][0]["sessionId"], session.id().as_str());

    prompt(&mut prompting, "p", &session, "say two").await;
    agent.answers(2).await;
    let own = prompting.until(|frame| frame["id"] == "p").await;
    assert_eq!(own.last().unwrap()["result"]["stopReason"], "end_turn");
    assert_eq!(words(&own, "user_message_chunk"), [""; 0], "its own prompt is not echoed");
    for other in [&mut loading, &mut resuming] {
        let frames = other.until(says("say two 1")).await;
        assert_eq!(words(&frames, "user_message_chunk"), ["say two"]);
        assert_eq!(words(&frames, "agent_message_chunk"), words(&own, "agent_message_chunk"));
    }
    // The same client once more: it reads the session already, and is sent nothing twice.
    assert_eq!(new(&mut prompting).await["sessionId"], session.id().as_str());
    types(&session, "again").await;
    agent.answers(1).await;
    let frames = prompting.until(says("again 0")).await;
    assert_eq!(words(&frames, "user_message_chunk"), ["again"]);
    prompting.is_silent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_answers_counts_and_the_other_dialogs_close() {
    let (live, session, mut agent) = shared().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(editor(&live).await);
    }
    types(&session, "may I?").await;
    agent.asks("q").await;
    let mut requests = Vec::new();
    for client in &mut clients {
        let request = is_asked(client).await;
        assert_eq!(request["params"]["options"][0]["optionId"], "proceed_once");
        requests.push(request);
    }
    clients[1].reply(&requests[1], selected("proceed_once")).await;
    for loser in [0, 2] {
        let frames = clients[loser].until(is("$/cancel_request")).await;
        assert_eq!(frames.last().unwrap()["params"]["requestId"], requests[loser]["id"]);
        // Too late: it decides nothing any more.
        clients[loser].reply(&requests[loser], selected("cancel")).await;
    }
    let Command::Decide(decide) = agent.hears().await else { panic!("another command") };
    assert_eq!(decide.option_id.as_str(), "proceed_once");
    agent.tells(turn_ended()).await;

    // All at once, with different answers.
    for round in 0..5 {
        types(&session, "and now?").await;
        agent.asks(&format!("q{round}")).await;
        for (at, client) in clients.iter_mut().enumerate() {
            requests[at] = is_asked(client).await;
        }
        for (at, client) in clients.iter_mut().enumerate() {
            client.reply(&requests[at], selected(["cancel", "proceed_once", "cancel"][(at + round) % 3])).await;
        }
        assert!(matches!(agent.hears().await, Command::Decide(_)));
        agent.tells(turn_ended()).await;
    }
    drop(clients);
    types(&session, "that was all").await;
    assert_eq!(agent.hears_prompt().await.text, "that was all", "one ruling each");
}

#[tokio::test]
async fn an_answer_that_was_not_offered_approves_nothing() {
    let (live, session, mut agent) = shared().await;
    let (mut wrong, mut right) = (editor(&live).await, editor(&live).await);
    types(&session, "may I?").await;
    agent.asks("q").await;
    let (request, other) = (is_asked(&mut wrong).await, is_asked(&mut right).await);
    wrong.reply(&request, selected("proceed_always")).await;
    wrong.ask("sync", "session/list", json!({})).await;
    wrong.answer("sync").await;
    assert_eq!(session.snapshot().await.unwrap().questions.open().len(), 1);
    right.reply(&other, selected("cancel")).await;
    let Command::Decide(decide) = agent.hears().await else { panic!("another command") };
    assert_eq!(decide.option_id.as_str(), "cancel");
}

/// An answer counts even if its sender leaves with it.
#[tokio::test]
async fn a_client_may_answer_and_leave() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    types(&session, "may I?").await;
    agent.asks("q").await;
    let request = is_asked(&mut client).await;
    client.reply(&request, selected("proceed_once")).await;
    client.send(Message::Close(None)).await;
    drop(client);
    assert!(matches!(agent.hears().await, Command::Decide(_)));
}

#[tokio::test]
async fn an_observer_watches() {
    let (live, session, mut agent) = shared().await;
    let mut observer = editor_at(&live, "/acp?role=observer").await;
    prompt(&mut observer, "p", &session, "may I?").await;
    assert_eq!(observer.answer("p").await["error"]["code"], -32012);
    observer.ask("mode", "session/set_mode", json!({ "sessionId": session.id(), "modeId": "plan" })).await;
    assert_eq!(observer.answer("mode").await["error"]["code"], -32012);
    observer.ask("delete", "session/delete", json!({ "sessionId": session.id() })).await;
    assert_eq!(observer.answer("delete").await["error"]["code"], -32012);
    types(&session, "you there").await;
    agent.asks("q").await;
    agent.tells(text("and on")).await;
    let frames = observer.until(says("and on")).await;
    assert_eq!(words(&frames, "user_message_chunk"), ["you there"]);
    assert!(!frames.iter().any(asks), "{frames:?}");
    observer.ask("close", "session/close", json!({ "sessionId": session.id() })).await;
    assert!(observer.answer("close").await["result"].is_object());
    assert!(!session.is_over());
}

#[tokio::test]
async fn what_cannot_be_understood_is_refused_and_the_connection_goes_on() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    for (frame, code) in [
        (Message::text("nonsense"), -32700),
        (Message::text(r#"[{"jsonrpc":"2.0","id":1,"method":"session/list"}]"#), -32600),
        (Message::text("7"), -32600),
        (Message::binary(vec![1, 2, 3]), -32600),
    ] {
        client.send(frame).await;
        let error = client.until(|frame| frame.get("error").is_some()).await.pop().unwrap();
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(code), &Value::Null), "{error}");
    }
    let here = json!(session.id());
    for (method, params, code) in [
        ("session/fly", json!({}), -32601),
        ("session/prompt", json!({ "sessionId": "nowhere", "prompt": [{ "type": "text", "text": "x" }] }), -32002),
        ("session/load", json!({ "sessionId": "nowhere", "cwd": "/", "mcpServers": [] }), -32002),
        ("session/close", json!({ "sessionId": "nowhere" }), -32002),
        // That is the owner's.
        ("session/delete", json!({ "sessionId": "nowhere" }), -32012),
        ("session/list", json!({ "cursor": "nowhere" }), -32002),
        ("session/prompt", json!({ "sessionId": here, "prompt": [] }), -32602),
        ("session/prompt", json!({ "sessionId": here, "prompt": "x" }), -32602),
        ("session/prompt", json!({}), -32602),
        ("session/new", json!({ "cwd": "not/absolute", "mcpServers": [] }), -32602),
        ("session/set_config_option", json!({ "sessionId": here, "configId": "colour", "value": "red" }), -32602),
        ("authenticate", json!({ "methodId": "password" }), -32602),
    ] {
        client.ask("bad", method, params.clone()).await;
        assert_eq!(client.answer("bad").await["error"]["code"], code, "{method} {params}");
    }
    // Nobody asked for these.
    client.reply(&json!({ "id": 77 }), selected("proceed_once")).await;
    client.notify("session/cancel", json!({ "sessionId": "nowhere" })).await;
    client.notify("$/cancel_request", json!({ "requestId": 77 })).await;
    client.notify("$/cancel_request", json!({ "requestId": {} })).await;
    client.notify("session/unheard_of", json!(7)).await;
    prompt(&mut client, "p", &session, "and on").await;
    agent.answers(1).await;
    assert_eq!(stop_reason(&mut client, "p").await, "end_turn");
}

#[tokio::test]
async fn each_of_several_prompts_is_answered_at_its_own_end() {
    let (live, session, mut agent) = shared().await;
    let (mut one, mut two) = (editor(&live).await, editor(&live).await);
    prompt(&mut one, "first", &session, "first").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    one.until(|frame| frame["params"]["update"]["sessionUpdate"] == "session_info_update").await;
    prompt(&mut one, "second", &session, "second").await;
    prompt(&mut one, "third", &session, "third").await;
    one.is_silent().await;
    prompt(&mut two, "other", &session, "other").await;
    two.until(|frame| frame["params"]["update"]["content"]["text"] == "first").await;
    // One queued prompt is withdrawn; the others stay, and so does the turn.
    one.notify("$/cancel_request", json!({ "requestId": "second" })).await;
    assert_eq!(stop_reason(&mut one, "second").await, "cancelled");
    agent.tells(turn_ended()).await;
    assert_eq!(stop_reason(&mut one, "first").await, "end_turn");
    assert_eq!(agent.hears_prompt().await.text, "third");
    agent.tells(turn_started()).await;
    agent.tells(turn_ended()).await;
    assert_eq!(stop_reason(&mut one, "third").await, "end_turn");
    agent.answers(1).await;
    assert_eq!(stop_reason(&mut two, "other").await, "end_turn");
}

/// A cancellation right behind its prompt is not lost, whichever the session sees first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_is_cancelled_however_soon() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    for round in 0..20 {
        let id = format!("p{round}");
        prompt(&mut client, &id, &session, "work").await;
        let cancel = if round % 2 == 0 {
            ("session/cancel", json!({ "sessionId": session.id() }))
        } else {
            ("$/cancel_request", json!({ "requestId": id }))
        };
        client.notify(cancel.0, cancel.1).await;
        agent.hears_prompt().await;
        assert!(matches!(agent.hears().await, Command::Cancel), "round {round}");
        agent.tells(turn_started()).await;
        agent.tells(cancelled()).await;
        assert_eq!(stop_reason(&mut client, &id).await, "cancelled");
    }
}

#[tokio::test]
async fn an_answer_after_the_cancellation_decides_nothing() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    prompt(&mut client, "p", &session, "may I?").await;
    agent.asks("q").await;
    let request = is_asked(&mut client).await;
    client.notify("session/cancel", json!({ "sessionId": session.id() })).await;
    assert!(matches!(agent.hears().await, Command::Cancel));
    agent.tells(EventKind::PermissionWithdrawn(Withdrawal { question_id: "q".into(), reason: None })).await;
    agent.tells(cancelled()).await;
    let frames = client.until(|frame| frame["id"] == "p").await;
    assert!(frames.iter().any(is("$/cancel_request")), "{frames:?}");
    assert_eq!(frames.last().unwrap()["result"]["stopReason"], "cancelled");
    client.reply(&request, selected("proceed_once")).await;
    prompt(&mut client, "next", &session, "next").await;
    assert_eq!(agent.hears_prompt().await.text, "next", "no answer came before it");
}

#[tokio::test]
async fn a_large_prompt_arrives_whole() {
    let (live, session, mut agent) = shared().await;
    let (mut client, mut other) = (editor(&live).await, editor(&live).await);
    let large = "0123456789".repeat(1024 * 1024);
    prompt(&mut client, "p", &session, &large).await;
    assert_eq!(agent.hears_prompt().await.text.len(), large.len());
    agent.tells(turn_started()).await;
    agent.tells(turn_ended()).await;
    assert_eq!(stop_reason(&mut client, "p").await, "end_turn");
    let shown = other.until(|frame| frame["params"]["update"]["sessionUpdate"] == "user_message_chunk").await;
    assert_eq!(shown.last().unwrap()["params"]["update"]["content"]["text"], large);
}

/// What a client does not answer is bounded, and holds nothing else up.
#[tokio::test]
async fn a_client_that_never_answers_is_not_asked_without_end() {
    const QUESTIONS: usize = 70;
    let (live, session, mut agent) = shared().await;
    let mut mute = editor(&live).await;
    types(&session, "may I?").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    for question in 0..QUESTIONS {
        agent.tells(asked(&format!("q{question}"))).await;
    }
    agent.tells(text("still there")).await;
    let frames = mute.until(says("still there")).await;
    assert_eq!(frames.iter().filter(|frame| asks(frame)).count(), 64);
    mute.ask("list", "session/list", json!({})).await;
    assert_eq!(mute.answer("list").await["result"]["sessions"][0]["_meta"]["multitap"]["questions"], QUESTIONS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_cut_off_and_harms_nobody() {
    const PIECES: usize = 1500;
    let (live, session, mut agent) = shared().await;
    let mut reading = editor(&live).await;
    let mut deaf = Client::narrow(live.port(), "").await;
    initialize(&mut deaf, "deaf", json!({})).await;
    new(&mut deaf).await;
    types(&session, "a lot").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    let piece = "0123456789".repeat(1024);
    let telling = async {
        for _ in 0..PIECES {
            agent.tells(text(&piece)).await;
        }
        agent.tells(text("the end")).await;
    };
    let (frames, ()) = tokio::join!(reading.until(says("the end")), telling);
    assert_eq!(words(&frames, "agent_message_chunk").len(), PIECES + 1);
    soon(async {
        while session.snapshot().await.unwrap().clients.iter().any(|client| client.client == "deaf") {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    agent.tells(turn_ended()).await;
    prompt(&mut reading, "p", &session, "more").await;
    agent.answers(1).await;
    assert_eq!(stop_reason(&mut reading, "p").await, "end_turn");
}

#[tokio::test]
async fn a_turn_goes_on_without_the_client_that_began_it() {
    let (live, session, mut agent) = shared().await;
    let (mut gone, mut other) = (editor(&live).await, editor(&live).await);
    prompt(&mut gone, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(asked("q")).await;
    is_asked(&mut gone).await;
    drop(gone);
    let request = is_asked(&mut other).await;
    soon(async {
        while session.snapshot().await.unwrap().clients.len() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    other.reply(&request, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)), "no cancellation before it");
    agent.tells(text("done")).await;
    other.until(says("done")).await;
}

#[tokio::test]
async fn a_late_client_is_sent_the_same_in_the_same_order() {
    let (live, session, mut agent) = shared().await;
    let mut early = editor(&live).await;
    for turn in ["one", "two"] {
        types(&session, turn).await;
        agent.answers(3).await;
    }
    types(&session, "may I?").await;
    agent.asks("q").await;
    let seen = early.until(asks).await;
    let mut late = hello(&live, "/acp", json!({})).await;
    load(&mut late, "load", session.id().as_str()).await;
    let replay = late.until(|frame| frame["id"] == "load").await;
    assert_eq!(updates(&replay), updates(&seen));
    assert!(!replay.iter().any(asks), "history asks nothing");
    let request = is_asked(&mut late).await;
    late.reply(&request, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    agent.tells(text("and on")).await;
    let (of_late, of_early) = (late.until(says("and on")).await, early.until(says("and on")).await);
    assert_eq!(updates(&of_late), updates(&of_early));
}

/// What is open is asked even if the events about it can no longer be read.
#[tokio::test]
async fn a_history_with_a_gap_still_ends() {
    const PIECES: usize = 160;
    let (live, session, mut agent) = shared().await;
    types(&session, "may I?").await;
    agent.asks("q").await;
    let piece = "x".repeat(128 * 1024);
    for _ in 0..PIECES {
        agent.tells(text(&piece)).await;
    }
    agent.tells(text("the latest")).await;
    soon(async {
        while session.last() < PIECES as u64 + 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    live.break_log();
    let mut late = hello(&live, "/acp", json!({})).await;
    load(&mut late, "load", session.id().as_str()).await;
    let replay = late.until(|frame| frame["id"] == "load").await;
    assert!(replay.last().unwrap()["result"].is_object(), "{:?}", replay.last());
    assert_eq!(words(&replay, "user_message_chunk"), [""; 0], "that is lost");
    assert_eq!(words(&replay, "agent_message_chunk").last().unwrap(), "the latest");
    let request = is_asked(&mut late).await;
    late.reply(&request, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    agent.tells(text("and on")).await;
    late.until(says("and on")).await;
}

/// A prompt whose end was lost is answered all the same.
#[tokio::test]
async fn a_prompt_whose_end_is_lost_fails() {
    // More than sockets take in, then more than is in memory; little enough that the client is not cut off meanwhile.
    const UNREAD: u64 = 80;
    const PIECES: u64 = 160;
    let (live, session, mut agent) = shared().await;
    let mut slow = Client::narrow(live.port(), "").await;
    initialize(&mut slow, "slow", json!({})).await;
    new(&mut slow).await;
    prompt(&mut slow, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    let piece = "x".repeat(128 * 1024);
    for _ in 0..UNREAD {
        agent.tells(text(&piece)).await;
    }
    agent.tells(turn_ended()).await;
    types(&session, "may I?").await;
    agent.asks("q").await;
    for _ in 0..PIECES {
        agent.tells(text(&piece)).await;
    }
    soon(async {
        while session.last() < UNREAD + PIECES + 8 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    live.break_log();
    let failed = slow.until(|frame| frame["id"] == "p").await.pop().unwrap();
    assert!(failed["error"]["message"].as_str().unwrap().contains("events were lost"), "{failed}");
    is_asked(&mut slow).await;
}

/// What comes from before is not mixed into the replay, and the prompt is answered once.
#[tokio::test]
async fn a_session_is_loaded_anew_during_a_turn() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    prompt(&mut client, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(text("first")).await;
    client.until(says("first")).await;
    agent.tells(asked("q")).await;
    let before = is_asked(&mut client).await;
    load(&mut client, "load", session.id().as_str()).await;
    let frames = client.until(|frame| frame["id"] == "load").await;
    assert_eq!(words(&frames, "user_message_chunk"), ["work"]);
    assert_eq!(words(&frames, "agent_message_chunk"), ["first"]);
    let taken_back = frames.iter().find(|frame| frame["method"] == "$/cancel_request").unwrap();
    assert_eq!(taken_back["params"]["requestId"], before["id"]);
    let again = is_asked(&mut client).await;
    client.reply(&again, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    agent.tells(text("last")).await;
    agent.tells(turn_ended()).await;
    let rest = client.until(|frame| frame["id"] == "p").await;
    assert_eq!(words(&rest, "agent_message_chunk"), ["last"]);
    client.is_silent().await;
    // Two at once: both are answered.
    load(&mut client, "a", session.id().as_str()).await;
    load(&mut client, "b", session.id().as_str()).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let frame = client.frame().await;
        if frame["id"] == "a" || frame["id"] == "b" {
            answers.push(frame);
        }
    }
    assert!(answers.iter().any(|answer| answer["result"].is_object()), "{answers:?}");
}

#[tokio::test]
async fn settings_count_once_the_agent_has_confirmed_them() {
    let (live, session, mut agent) = shared().await;
    let (mut client, mut other) = (editor(&live).await, editor(&live).await);
    client.ask("mode", "session/set_mode", json!({ "sessionId": session.id(), "modeId": "plan" })).await;
    assert!(matches!(agent.hears().await, Command::SetMode { mode } if mode == "plan"));
    client.is_silent().await;
    agent.tells(EventKind::ModeChanged { mode: Some(ApprovalMode::Plan), native_mode: None, by: None }).await;
    assert!(client.answer("mode").await["result"].is_object());
    let frames = other.until(|frame| frame["params"]["update"]["sessionUpdate"] == "current_mode_update").await;
    assert_eq!(frames.last().unwrap()["params"]["update"]["currentModeId"], "plan");

    let large = json!({ "sessionId": session.id(), "configId": "model", "value": "large" });
    client.ask("model", "session/set_config_option", large.clone()).await;
    assert!(matches!(agent.hears().await, Command::SetModel { model } if model == "large"));
    agent.tells(EventKind::ModelChanged { model: "large".to_owned(), by: None }).await;
    assert_eq!(client.answer("model").await["result"]["configOptions"][1]["currentValue"], "large");

    client.ask("refused", "session/set_config_option", large).await;
    agent.hears().await;
    let error = AgentError::new(AgentErrorKind::Unknown, "no such model").refusing(Setting::Model, "large");
    agent.tells(EventKind::Error(error)).await;
    assert_eq!(client.answer("refused").await["error"]["code"], -32602);
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_by_folder() {
    let mut live = Live::own().await;
    let mut open = Vec::new();
    for number in 0..55 {
        let folder = if number % 20 == 0 { "/here" } else { "/there" };
        let config = SessionConfig { working_directory: Some(folder.into()), ..SessionConfig::new(AgentKind::Claude) };
        let session = live.hub.open(Open::new(config, ClientRef::new("ann", Way::Terminal))).await.unwrap();
        open.push((session, live.agent().await));
    }
    let mut client = hello(&live, "/acp", json!({})).await;
    let (mut found, mut cursor) = (Vec::new(), Value::Null);
    loop {
        client.ask("list", "session/list", json!({ "cursor": cursor })).await;
        let page = client.answer("list").await["result"].clone();
        found.extend(page["sessions"].as_array().unwrap().iter().map(|one| one["sessionId"].to_string()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), open.len());
    client.ask("here", "session/list", json!({ "cwd": "/here" })).await;
    let page = client.answer("here").await["result"].clone();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_last_client_that_closes_a_session_ends_it() {
    let mut live = Live::own().await;
    let mut one = hello(&live, "/acp", json!({})).await;
    one.ask("new", "session/new", json!({ "cwd": "/anywhere", "mcpServers": [] })).await;
    let mut agent = live.agent().await;
    agent.tells(models()).await;
    let id = one.answer("new").await["result"]["sessionId"].as_str().unwrap().to_owned();
    let session = live.hub.live().pop().unwrap();
    // Another client of the same name.
    let mut two = hello(&live, "/acp", json!({})).await;
    load(&mut two, "load", &id).await;
    two.answer("load").await;
    prompt(&mut one, "p", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    one.ask("close", "session/close", json!({ "sessionId": id })).await;
    assert_eq!(stop_reason(&mut one, "p").await, "cancelled");
    assert!(one.answer("close").await["result"].is_object());
    agent.tells(text("and on")).await;
    two.until(says("and on")).await;
    assert!(!session.is_over());
    two.ask("close", "session/close", json!({ "sessionId": id })).await;
    assert!(matches!(agent.hears().await, Command::Cancel));
    agent.tells(cancelled()).await;
    assert_eq!(soon(agent.end.commands.recv()).await, None);
    agent.tells(ended()).await;
    drop(agent);
    two.answer("close").await;
    soon(session.over()).await;
    prompt(&mut two, "late", &session, "more").await;
    assert_eq!(two.answer("late").await["error"]["code"], -32002);
}

#[tokio::test]
async fn clients_that_know_of_each_other_attach_with_a_role_and_a_history() {
    let (live, session, mut agent) = shared().await;
    types(&session, "before").await;
    agent.asks("q").await;
    agent.tells(text("running")).await;
    let attach = |role: &str, policy: &str| json!({ "sessionId": session.id(), "role": role, "historyPolicy": policy });

    let mut full = hello(&live, "/acp", json!({})).await;
    full.ask("attach", "_multitap/session/attach", json!({ "sessionId": session.id() })).await;
    let replay = full.until(|frame| frame["id"] == "attach").await;
    assert_eq!(words(&replay, "agent_message_chunk"), ["running"]);
    assert_eq!(replay.last().unwrap()["result"]["role"], "controller", "as at any port without tokens");
    let request = is_asked(&mut full).await;

    let mut pending = hello(&live, "/acp", json!({})).await;
    pending.ask("attach", "_multitap/session/attach", attach("controller", "pending_only")).await;
    let frames = pending.until(asks).await;
    assert_eq!(updates(&frames), [Value::Null; 0]);
    assert_eq!(frames[0]["result"]["role"], "controller");

    let mut unseen = hello(&live, "/acp", json!({})).await;
    unseen.ask("attach", "_multitap/session/attach", attach("observer", "none")).await;
    let result = unseen.answer("attach").await;
    assert_eq!(
        (&result["result"]["role"], &result["result"]["configOptions"][1]["id"]),
        (&json!("observer"), &json!("model"))
    );
    prompt(&mut unseen, "p", &session, "may I?").await;
    assert_eq!(unseen.answer("p").await["error"]["code"], -32012);

    // What is asked for never raises rights.
    let mut observer = hello(&live, "/acp?role=observer", json!({})).await;
    observer.ask("attach", "_multitap/session/attach", attach("controller", "none")).await;
    assert_eq!(observer.answer("attach").await["result"]["role"], "observer");
    let state = session.snapshot().await.unwrap();
    assert_eq!(state.clients.iter().filter(|client| client.role == Some(ClientRole::Observer)).count(), 2);

    full.reply(&request, selected("proceed_once")).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    for client in [&mut full, &mut pending, &mut unseen] {
        let resolved = client.until(is("_multitap/permission_resolved")).await.pop().unwrap();
        let params = &resolved["params"];
        assert_eq!(params["questionId"], "q");
        assert_eq!(params["outcome"], json!({ "outcome": "selected", "optionId": "proceed_once" }));
        assert_eq!(params["resolvedBy"]["door"], "acp");
    }

    full.ask("again", "_multitap/session/attach", attach("observer", "none")).await;
    assert_eq!(full.answer("again").await["error"]["code"], -32602);
    prompt(&mut full, "queued", &session, "later").await;
    full.ask("detach", "_multitap/session/detach", json!({ "sessionId": session.id() })).await;
    let frames = full.until(|frame| frame["id"] == "detach").await;
    let answer = frames.iter().find(|frame| frame["id"] == "queued").unwrap();
    assert_eq!(answer["error"]["code"], -32800);
    assert!(frames.last().unwrap()["result"].is_object());
    agent.tells(text("unheard")).await;
    full.is_silent().await;
    full.ask("detach", "_multitap/session/detach", json!({ "sessionId": session.id() })).await;
    assert_eq!(full.answer("detach").await["error"]["code"], -32002);
}

#[tokio::test]
async fn the_end_of_the_session_answers_what_waits() {
    let (live, session, mut agent) = shared().await;
    let mut client = editor(&live).await;
    prompt(&mut client, "running", &session, "work").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    prompt(&mut client, "queued", &session, "more").await;
    soon(async {
        while session.snapshot().await.unwrap().queue.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    session.end();
    drop(agent);
    let mut answered = Vec::new();
    while answered.len() < 2 {
        let frame = client.frame().await;
        answered.extend(frame.get("id").is_some().then_some(frame));
    }
    assert!(answered[0]["id"] == "running" && answered[0]["error"].is_object(), "{answered:?}");
    assert!(answered[1]["id"] == "queued" && answered[1]["result"]["stopReason"] == "cancelled", "{answered:?}");
    prompt(&mut client, "late", &session, "x").await;
    let late = client.answer("late").await["error"]["code"].clone();
    assert!(late == -32002 || late == -32603, "{late}");
}

/// However fast each reads, all are sent the same in one order.
#[test]
fn any_interleaving_of_reads_shows_the_same() {
    const CLIENTS: usize = 3;
    const PIECES: usize = 30;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(12) });
    // Whose turn it is to read, or that the agent goes on.
    let schedule = vec(0..=CLIENTS, 1..120);
    let run = runner.run(&schedule, |schedule| {
        runtime.block_on(async {
            let (live, session, mut agent) = shared().await;
            let (mut clients, mut seen) = (Vec::new(), vec![Vec::new(); CLIENTS]);
            for _ in 0..CLIENTS {
                clients.push(editor(&live).await);
            }
            types(&session, "go").await;
            agent.hears_prompt().await;
            agent.tells(turn_started()).await;
            let mut told = 0;
            for who in schedule {
                if who == CLIENTS && told < PIECES {
                    agent.tells(text(&format!("{told}"))).await;
                    told += 1;
                } else if who < CLIENTS && seen[who].len() <= told {
                    let frame = clients[who].until(|frame| !updates(std::slice::from_ref(frame)).is_empty()).await;
                    seen[who].extend(updates(&frame));
                }
            }
            agent.tells(text("the end")).await;
            for (client, seen) in clients.iter_mut().zip(&mut seen) {
                seen.extend(updates(&client.until(says("the end")).await));
            }
            assert_eq!(seen[0].len(), told + 3, "the prompt, its title and the end beside the pieces");
            assert!(seen.iter().all(|other| *other == seen[0]));
        });
        Ok(())
    });
    run.unwrap();
}
