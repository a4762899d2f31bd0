//! A peer and the other end of its pipes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::call::{CallError, UNANSWERED};
use super::message::{Fault, Invalid, Request, RequestId};
use super::peer::{IN_FLIGHT, Incoming, Peer};
use super::stdio::Stdio;
use super::transport::{Disconnected, Transport};

/// Long enough for a busy machine; nothing waits this long when all is well.
const PATIENCE: Duration = Duration::from_secs(20);
const LIMIT: usize = 1024;
const CANCEL: &str = "$/cancel_request";

/// The client.
struct Other {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

fn connected(pipe: usize) -> (Peer<Value>, Other) {
    connected_for(pipe, PATIENCE)
}

fn connected_for(pipe: usize, patience: Duration) -> (Peer<Value>, Other) {
    let (ours, theirs) = duplex(pipe);
    let (reader, writer) = split(ours);
    let transport = Transport::Stdio(Stdio::new(BufReader::new(reader), writer, patience));
    let (reader, writer) = split(theirs);
    (Peer::new(transport, LIMIT, Some(CANCEL)), Other { reader: BufReader::new(reader), writer })
}

impl Other {
    async fn sends(&mut self, line: &str) {
        self.writer.write_all(line.as_bytes()).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn asks(&mut self, id: Value, method: &str) {
        self.sends(&json!({ "jsonrpc": "2.0", "id": id, "method": method }).to_string()).await;
    }

    async fn receives(&mut self) -> Value {
        let mut line = String::new();
        timeout(PATIENCE, self.reader.read_line(&mut line)).await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line:?}"))
    }
}

async fn next(peer: &mut Peer<Value>) -> Incoming<Value> {
    timeout(PATIENCE, peer.next()).await.expect("it comes soon").unwrap()
}

async fn invalid(peer: &mut Peer<Value>) -> (RequestId, Fault) {
    match next(peer).await {
        Incoming::Invalid(Invalid { id, fault }) => (id, fault),
        other => panic!("{other:?}"),
    }
}

async fn request(peer: &mut Peer<Value>) -> Request {
    match next(peer).await {
        Incoming::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

/// Serves until the client is gone: `echo` answers with its id, `ask` asks the client and answers with its answer.
async fn serve(mut peer: Peer<Value>) -> Disconnected {
    loop {
        if let Err(gone) = peer.flush().await {
            return gone;
        }
        match peer.next().await {
            Ok(Incoming::Request(Request { id, method, .. })) if method == "ask" => {
                let calls = peer.calls();
                peer.spawn(id, async move {
                    match calls.call("session/request_permission", &json!({ "may": "I" })).await {
                        Ok(answer) => answer,
                        Err(error) => json!(error.to_string()),
                    }
                });
            }
            Ok(Incoming::Request(Request { id, method, .. })) => peer.spawn(id, async move { json!(method) }),
            Ok(Incoming::Done(id, done)) => peer.respond(&id, &done.to_string()).await.unwrap(),
            Ok(Incoming::Notification { params, .. }) => {
                let id = RequestId::read(&params["requestId"]).unwrap();
                if peer.abort(&id) {
                    peer.refuse(&id, r#"{"code":-32800,"message":"cancelled"}"#).await.unwrap();
                }
            }
            Ok(Incoming::Invalid(Invalid { id, fault })) => {
                let error = json!({ "code": fault.code, "message": fault.message }).to_string();
                peer.refuse_message(&id, &error).await.unwrap();
            }
            Ok(Incoming::Broken { .. }) => panic!("a pipe breaks without a word"),
            Err(gone) => return gone,
        }
    }
}

#[tokio::test]
async fn both_sides_ask_and_answer_at_once() {
    let (peer, mut other) = connected(4096);
    let served = TaskTracker::new().spawn(serve(peer));
    other.asks(json!("a"), "ask").await;
    let asked = other.receives().await;
    assert_eq!(asked["method"], "session/request_permission");
    assert_eq!(asked["params"], json!({ "may": "I" }));
    // Meanwhile requests are answered, even with an id that the other direction uses.
    for id in [asked["id"].clone(), json!(null), json!(-1), json!("")] {
        other.asks(id.clone(), "echo").await;
        assert_eq!(other.receives().await, json!({ "jsonrpc": "2.0", "id": id, "result": "echo" }));
    }
    other.sends(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "yes": true } }).to_string()).await;
    assert_eq!(other.receives().await, json!({ "jsonrpc": "2.0", "id": "a", "result": { "yes": true } }));
    drop(other);
    assert_eq!(timeout(PATIENCE, served).await.unwrap().unwrap(), Disconnected);
}

#[tokio::test]
async fn a_refusal_of_the_client_arrives_and_answers_to_nothing_are_ignored() {
    let (peer, mut other) = connected(4096);
    TaskTracker::new().spawn(serve(peer));
    for stray in [json!(1), json!("x"), json!(null)] {
        other.sends(&json!({ "jsonrpc": "2.0", "id": stray, "result": 1 }).to_string()).await;
    }
    other.asks(json!(1), "ask").await;
    let asked = other.receives().await;
    let refusal = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -1, "message": "no" } }).to_string();
    other.sends(&refusal).await;
    assert_eq!(other.receives().await["result"], "no (-1)");
    // A second answer to the same request as well.
    other.sends(&refusal).await;
    other.asks(json!(2), "echo").await;
    assert_eq!(other.receives().await["id"], 2);
}

#[tokio::test]
async fn a_request_is_cancelled_from_either_side() {
    let (peer, mut other) = connected(4096);
    TaskTracker::new().spawn(serve(peer));
    other.asks(json!(7), "ask").await;
    let asked = other.receives().await;
    other.sends(&json!({ "jsonrpc": "2.0", "method": CANCEL, "params": { "requestId": 7 } }).to_string()).await;
    let (first, second) = (other.receives().await, other.receives().await);
    let answers = if first["id"] == 7 { [first, second] } else { [second, first] };
    assert_eq!(answers[0]["error"]["code"], -32800);
    // What the aborted work had asked is taken back.
    assert_eq!(answers[1], json!({ "jsonrpc": "2.0", "method": CANCEL, "params": { "requestId": asked["id"] } }));
    // Its id may be used again, and cancelling nothing does nothing.
    other.sends(&json!({ "jsonrpc": "2.0", "method": CANCEL, "params": { "requestId": 7 } }).to_string()).await;
    other.asks(json!(7), "echo").await;
    assert_eq!(other.receives().await, json!({ "jsonrpc": "2.0", "id": 7, "result": "echo" }));
}

#[tokio::test]
async fn a_client_that_never_answers_holds_up_nothing() {
    let (mut peer, mut other) = connected(64 * 1024);
    let calls = peer.calls();
    let mut waiting = Vec::new();
    for _ in 0..UNANSWERED {
        let calls = calls.clone();
        waiting.push(TaskTracker::new().spawn(async move { calls.call("never", &Value::Null).await }));
    }
    for _ in 0..UNANSWERED {
        tokio::select! {
            incoming = peer.next() => panic!("{incoming:?}"),
            asked = other.receives() => assert_eq!(asked["method"], "never"),
        }
    }
    assert_eq!(calls.call("never", &Value::Null).await, Err(CallError::TooMany));
    // Meanwhile the client is answered.
    other.asks(json!(1), "echo").await;
    assert_eq!(request(&mut peer).await.id, 1.into());
    // Whoever gives up makes room, and the client learns it.
    waiting.remove(0).abort();
    tokio::select! {
        incoming = peer.next() => panic!("{incoming:?}"),
        cancelled = other.receives() => assert_eq!(cancelled["method"], CANCEL),
    }
    assert!(timeout(Duration::from_millis(20), calls.call("never", &Value::Null)).await.is_err(), "there is room");
    // What was given up before it was sent leaves nothing to send.
    assert!(peer.calls().is_all_sent());
    peer.close(super::CloseReason::SHUT_DOWN).await;
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap(), Err(CallError::Disconnected));
    }
    assert_eq!(calls.call("never", &Value::Null).await, Err(CallError::Disconnected));
}

#[tokio::test]
async fn ids_are_used_once_at_a_time_and_so_many() {
    let (mut peer, mut other) = connected(64 * 1024);
    other.asks(json!(0), "wait").await;
    other.asks(json!(0), "again").await;
    assert_eq!(request(&mut peer).await.method, "wait");
    assert_eq!(invalid(&mut peer).await, (0.into(), Fault::duplicate_id()));
    for id in 1..=IN_FLIGHT {
        other.asks(json!(id), "wait").await;
    }
    for _ in 1..IN_FLIGHT {
        request(&mut peer).await;
    }
    let last = u64::try_from(IN_FLIGHT).unwrap();
    assert_eq!(invalid(&mut peer).await, (last.into(), Fault::too_many(IN_FLIGHT)));
    // Several answers keep a request open, the last one ends it.
    peer.respond_partly(&1.into(), "1").await.unwrap();
    assert!(peer.is_open(&1.into()));
    peer.end(&1.into());
    other.asks(json!(1), "again").await;
    assert_eq!(request(&mut peer).await.method, "again");
}

#[tokio::test]
async fn garbage_is_refused_and_the_connection_goes_on() {
    let (mut peer, mut other) = connected(16 * LIMIT);
    for (garbage, code) in [
        ("{", -32700),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}]", -32600),
        ("7", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":null,\"method\":\"m\"}", -32600),
    ] {
        other.sends(garbage).await;
        let (id, fault) = invalid(&mut peer).await;
        assert_eq!((id, fault.code), (RequestId::Null, code), "{garbage}");
    }
    other.writer.write_all(b"\xff\xfe\n\r\n\n").await.unwrap();
    assert_eq!(invalid(&mut peer).await.1.code, -32600);
    // A line that is too long is skipped, whatever it holds.
    other.sends(&"x".repeat(LIMIT + 1)).await;
    assert_eq!(invalid(&mut peer).await, (RequestId::Null, Fault::too_large(LIMIT)));
    other.sends(&format!("{}{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}}\r", " ".repeat(LIMIT / 2))).await;
    assert_eq!(request(&mut peer).await.id, 1.into());
    other.sends("{\"method\":\"told\",\"params\":[1]}").await;
    assert!(matches!(next(&mut peer).await, Incoming::Notification { method, .. } if method == "told"));
    // Of a client that is killed, half a line may come.
    other.writer.write_all(b"{\"jsonrpc\"").await.unwrap();
    drop(other);
    assert_eq!(invalid(&mut peer).await.1.code, -32700);
    assert_eq!(peer.next().await.unwrap_err(), Disconnected);
}

/// `next` is one arm of a protocol's `select!`: what it has read of a line must not be lost when another arm is faster.
#[tokio::test]
async fn a_line_that_comes_in_pieces_is_read_whole() {
    let (mut peer, mut other) = connected(16);
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": "x".repeat(200) }).to_string();
    let sent = TaskTracker::new().spawn(async move {
        for piece in line.as_bytes().chunks(7) {
            other.writer.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        other.writer.write_all(b"\n").await.unwrap();
        other
    });
    let request = loop {
        tokio::select! {
            biased;
            incoming = peer.next() => break incoming.unwrap(),
            () = tokio::task::yield_now() => {}
        }
    };
    assert!(matches!(request, Incoming::Request(_)), "{request:?}");
    drop(sent.await.unwrap());
}

/// As with `echo REQUEST | multitap acp`: nothing more comes, but somebody reads.
#[tokio::test]
async fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let (peer, mut other) = connected(4096);
    let served = TaskTracker::new().spawn(serve(peer));
    other.asks(json!(1), "first").await;
    other.writer.write_all(br#"{"jsonrpc":"2.0","id":2,"method":"the last line has no end"}"#).await.unwrap();
    other.writer.shutdown().await.unwrap();
    let answers = [other.receives().await, other.receives().await];
    assert_eq!(answers.map(|answer| answer["result"].clone()), [json!("first"), json!("the last line has no end")]);
    assert_eq!(timeout(PATIENCE, served).await.unwrap().unwrap(), Disconnected);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_given_up() {
    let (mut peer, other) = connected_for(64, Duration::from_millis(20));
    peer.respond(&1.into(), &json!("x".repeat(1000)).to_string()).await.unwrap();
    assert_eq!(peer.flush().await, Err(Disconnected));
    drop(other);
}
