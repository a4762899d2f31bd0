//! ACP over `/acp` and `/ws`: stock clients, several on one session, and what no client library would send.

mod question;
mod stream;
mod turn;

use std::time::Duration;

use multitap_event::{
    AgentCapabilities, AgentError, AgentErrorKind, AgentKind, AgentModel, ApprovalMode, ClientRef, ClientRole, Command,
    Door as Way, EventKind, Prompt, SessionConfig, Setting, TurnEnd, TurnStatus,
};
use multitap_hub::{Open, Refusal, Session, WhenBusy};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::live::{Agent, Client, Live, ended, soon, text, turn_started};

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

/// One that has joined the shared session with a token.
async fn editor_with(live: &Live, token: &str, capabilities: Value) -> Client {
    let mut client = Client::with_token(live.port(), "/acp", token).await;
    client.ask("init", "initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities })).await;
    client.answer("init").await;
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

    let levels = |level: &str| {
        EventKind::Capabilities(AgentCapabilities {
            thinking_levels: Some(vec!["low".to_owned(), "high".to_owned()]),
            thinking_level: Some(level.to_owned()),
            ..AgentCapabilities::default()
        })
    };
    agent.tells(levels("low")).await;
    let is_new = |frame: &Value| frame["params"]["update"]["configOptions"][2]["category"] == "thought_level";
    client.until(is_new).await;
    let high = json!({ "sessionId": session.id(), "configId": "thought_level", "value": "high" });
    client.ask("level", "session/set_config_option", high.clone()).await;
    assert!(matches!(agent.hears().await, Command::SetThinkingLevel { level } if level == "high"));
    agent.tells(levels("high")).await;
    assert_eq!(client.answer("level").await["result"]["configOptions"][2]["currentValue"], "high");
    client.ask("level", "session/set_config_option", high).await;
    agent.hears().await;
    let error = AgentError::new(AgentErrorKind::Unknown, "not today").refusing(Setting::Thinking, "high");
    agent.tells(EventKind::Error(error)).await;
    assert_eq!(client.answer("level").await["error"]["code"], -32602);

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
    assert_eq!(updates(&frames), [json!({ "sessionUpdate": "session_info_update", "title": "before" })]);
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

/// The ids of the modes in an answer.
fn offered(answer: &Value) -> Vec<String> {
    let modes = answer["modes"]["availableModes"].as_array().unwrap();
    modes.iter().map(|mode| mode["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_client_is_offered_the_modes_that_it_may_choose() {
    let (live, session, mut agent) = Live::guarded().await;
    agent.tells(models()).await;
    let mut owner = editor_with(&live, "owner", json!({})).await;
    let mut controller = editor_with(&live, "controller", json!({})).await;
    let (of_owner, of_controller) = (new(&mut owner).await, new(&mut controller).await);
    assert_eq!(offered(&of_controller), ["ask", "plan", "dontAsk"]);
    assert!(offered(&of_owner).contains(&"autoEdit".to_owned()), "{of_owner}");
    for mode in offered(&of_controller) {
        controller.ask("mode", "session/set_mode", json!({ "sessionId": session.id(), "modeId": mode })).await;
        assert!(matches!(agent.hears().await, Command::SetMode { .. }), "{mode}");
        let mode = mode.parse().ok();
        agent.tells(EventKind::ModeChanged { mode, native_mode: None, by: None }).await;
        assert!(controller.answer("mode").await["result"].is_object());
    }
    let auto = json!({ "sessionId": session.id(), "modeId": "autoEdit" });
    controller.ask("mode", "session/set_mode", auto.clone()).await;
    assert_eq!(controller.answer("mode").await["error"]["code"], -32012);
    // What an owner chose is open to the others from then on.
    owner.ask("mode", "session/set_mode", auto).await;
    assert!(matches!(agent.hears().await, Command::SetMode { .. }));
    agent.tells(EventKind::ModeChanged { mode: Some(ApprovalMode::AutoEdit), native_mode: None, by: None }).await;
    assert!(owner.answer("mode").await["result"].is_object());
    let has_it = |frame: &Value| {
        let update = &frame["params"]["update"];
        let options = update["configOptions"][0]["options"].as_array();
        update["sessionUpdate"] == "config_option_update"
            && options.is_some_and(|options| options.iter().any(|option| option["value"] == "autoEdit"))
    };
    controller.until(has_it).await;
    let mut observer = hello_observer(&live).await;
    let of_observer = new(&mut observer).await;
    assert_eq!(offered(&of_observer), ["autoEdit"], "the current one");
}

async fn hello_observer(live: &Live) -> Client {
    let mut client = Client::with_token(live.port(), "/acp?role=observer", "controller").await;
    initialize(&mut client, "watcher", json!({})).await;
    client
}

#[tokio::test]
async fn an_owner_deletes_sessions() {
    let mut live = Live::own_guarded().await;
    let mut owner = editor_with(&live, "owner", json!({})).await;
    let mut controller = editor_with(&live, "controller", json!({})).await;
    owner.ask("new", "session/new", json!({ "cwd": "/anywhere", "mcpServers": [] })).await;
    let mut agent = live.agent().await;
    agent.tells(models()).await;
    let session = owner.answer("new").await["result"]["sessionId"].clone();
    let delete = json!({ "sessionId": session });
    controller.ask("delete", "session/delete", delete.clone()).await;
    assert_eq!(controller.answer("delete").await["error"]["code"], -32012);
    owner.ask("delete", "session/delete", delete.clone()).await;
    assert_eq!(soon(agent.end.commands.recv()).await, None, "its agent is asked to end");
    agent.tells(ended()).await;
    drop(agent);
    assert!(owner.answer("delete").await["result"].is_object());
    owner.ask("list", "session/list", json!({})).await;
    assert_eq!(owner.answer("list").await["result"]["sessions"], json!([]));
    owner.ask("again", "session/delete", delete).await;
    assert_eq!(owner.answer("again").await["error"]["code"], -32002);
}

/// A client that closes is answered: it must not take that for a broken connection.
#[tokio::test]
async fn the_end_of_a_connection_is_answered() {
    let (live, _session, _agent) = shared().await;
    for path in ["/acp", "/ws", "/ws?dialect=events", "/ws?dialect=1.0"] {
        let (mut client, _) = Client::at(live.port(), path).await;
        if !path.contains("dialect") {
            initialize(&mut client, "editor", json!({})).await;
        }
        let close = CloseFrame { code: CloseCode::Normal, reason: "bye".into() };
        client.send(Message::Close(Some(close))).await;
        assert_eq!(client.closed().await, "1000 bye", "{path}");
    }
}
