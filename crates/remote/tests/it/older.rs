//! Hosts and clients of version 0.1.0, whose refusals have no codes.

use std::collections::VecDeque;

use futures_util::{SinkExt as _, StreamExt as _};
use multitap_event::{Door, Refused, Ruling};
use multitap_hub::{Reach, Refusal};
use multitap_remote::{Address, Attach, attach};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async, accept_hdr_async};
use tokio_util::task::TaskTracker;

use crate::refusals::{every_refusal, refusing};
use crate::stage::{ann, attached, soon};

/// What a host of 0.1.0 wrote: its answer to `session/join`, then one refusal per line.
const HOST: &str = include_str!("../fixtures/host-0.1.0.jsonl");

fn recorded() -> (Value, Vec<Value>) {
    let mut lines = HOST.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let joined = lines.next().unwrap()["answer"].take();
    (joined, lines.map(|mut line| line["error"].take()).collect())
}

/// Plays that host to one client: a refusal for each request, then the end of the session.
async fn host() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let played = TaskTracker::new().spawn(async move {
        let (joined, refusals) = recorded();
        let (last, mut refusals) = (joined["last"].as_u64().unwrap(), VecDeque::from(refusals));
        let session = joined["sessionId"].clone();
        let mut socket = accept_async(listener.accept().await.unwrap().0).await.unwrap();
        let join = next(&mut socket).await;
        send(&mut socket, &json!({ "jsonrpc": "2.0", "id": join["id"], "result": joined })).await;
        while let Some(error) = refusals.pop_front() {
            let asked = next(&mut socket).await;
            send(&mut socket, &json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
        }
        let ended = json!({
            "id": "e", "sessionId": session, "timestamp": "2026-11-16T18:06:01Z", "seq": last + 1,
            "type": "sessionEnded", "reason": "completed",
        });
        send(&mut socket, &json!({ "jsonrpc": "2.0", "method": "event", "params": ended })).await;
        let close = CloseFrame { code: 1001.into(), reason: "the session is over".into() };
        socket.send(Message::Close(Some(close))).await.unwrap();
        while socket.next().await.is_some_and(|heard| heard.is_ok()) {}
    });
    (url, played)
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Value {
    serde_json::from_str(soon(socket.next()).await.unwrap().unwrap().to_text().unwrap()).unwrap()
}

async fn send(socket: &mut WebSocketStream<TcpStream>, message: &Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

#[tokio::test]
async fn refusals_of_an_older_host_arrive_with_their_messages_and_so_does_its_end() {
    let (url, played) = host().await;
    let far = attached(&url).await;
    let (_, refusals) = recorded();
    assert!(refusals.len() > 30);
    for refusal in refusals {
        let message = refusal["message"].as_str().unwrap().to_owned();
        let arrived = soon(far.session.cancel(ann())).await.unwrap_err();
        assert_eq!(arrived, Refusal::Unknown { code: None, message });
    }
    let mut reaches = far.session.reaches();
    let reach = loop {
        match soon(reaches.changed()).await {
            Reach::Gone(why) => break why,
            Reach::Here => {}
            Reach::Lost(why) => panic!("it tries to reconnect: {why}"),
        }
    };
    assert_eq!(&*reach, "the session is over");
    far.leave().await;
    played.await.unwrap();
}

/// Clients of 0.1.0 recognize a refusal by its number and its data, and show the message of all others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_client_recognizes_refusals_by_number_and_data() {
    let refusing = refusing().await;
    let stream = TcpStream::connect(refusing.door.addresses()[0]).await.unwrap();
    let url = format!("{}/ws?dialect=events", refusing.door.url().replace("http://", "ws://"));
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    send(&mut socket, &json!({ "jsonrpc": "2.0", "id": 0, "method": "session/join", "params": {} })).await;
    while next(&mut socket).await["id"] != 0 {}
    for (id, refusal) in every_refusal().into_iter().enumerate() {
        send(&mut socket, &json!({ "jsonrpc": "2.0", "id": id + 1, "method": "cancel", "params": {} })).await;
        let error = loop {
            let mut heard = next(&mut socket).await;
            if heard["id"] == id + 1 {
                break heard["error"].take();
            }
        };
        assert_eq!(error["message"], refusal.to_string());
        let (number, data) = (error["code"].as_i64().unwrap(), &error["data"]);
        match &refusal {
            Refusal::NoTurn => assert_eq!(number, -32002),
            Refusal::Observer | Refusal::Kicked | Refusal::NotOwner | Refusal::HostClient | Refusal::RuleOfOther => {
                assert_eq!((number, data.get("offered")), (-32012, None), "{refusal}");
            }
            Refusal::PromptNotQueued { .. } | Refusal::UnknownRule { .. } | Refusal::UnknownClient { .. } => {
                assert_eq!(number, -32602, "{refusal}");
            }
            Refusal::Answer(Refused::OwnerOnly { offered, .. }) => {
                assert_eq!((number, &data["offered"]), (-32012, &json!(offered)));
            }
            Refusal::Answer(Refused::NotOffered { offered, .. }) => {
                assert_eq!((number, &data["offered"], data.get("editRefused")), (-32602, &json!(offered), None));
            }
            Refusal::Answer(Refused::EditRefused { offered, why, .. }) => {
                assert_eq!(number, -32602);
                assert_eq!((&data["offered"], &data["editRefused"]), (&json!(offered), &json!(why)));
            }
            Refusal::Answer(Refused::AlreadySettled(ruling)) => {
                assert_eq!(number, -32011);
                let read: Ruling = serde_json::from_value(data.clone()).unwrap();
                assert_eq!(
                    (&read.settled_by, &read.selected_option_id),
                    (&ruling.settled_by, &ruling.selected_option_id)
                );
            }
            // Another number that means something to them would hide the message.
            other => {
                let recognized =
                    [-32002, -32011, -32012].contains(&number) && !matches!(other, Refusal::BeyondCeiling { .. });
                assert!(!recognized, "{other:?}: {number}");
            }
        }
    }
    socket.close(None).await.unwrap();
    refusing.end().await;
}

/// That host knows no editors: they attach as terminals.
#[tokio::test]
async fn an_editor_attaches_to_a_host_that_knows_only_terminals() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Address::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let played = TaskTracker::new().spawn(async move {
        let mut doors = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            #[expect(clippy::result_large_err, reason = "the type of the library")]
            let check = |request: &Request, response: Response| {
                let query = request.uri().query().unwrap_or_default();
                doors.extend(query.split('&').find_map(|part| part.strip_prefix("door=")).map(str::to_owned));
                let refused = Response::builder().status(400).body(None).unwrap();
                if query.contains("door=terminal") { Ok(response) } else { Err(refused) }
            };
            let Ok(mut socket) = accept_hdr_async(stream, check).await else { continue };
            let join = next(&mut socket).await;
            send(&mut socket, &json!({ "jsonrpc": "2.0", "id": join["id"], "result": recorded().0 })).await;
            while socket.next().await.is_some_and(|heard| heard.is_ok()) {}
            return doors;
        }
    });
    let editor = Attach { address, client: "editor".to_owned(), door: Door::Acp, token: None };
    soon(attach(editor)).await.unwrap().leave().await;
    assert_eq!(soon(played).await.unwrap(), ["acp", "terminal"]);
}
