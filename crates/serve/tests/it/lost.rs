//! A log that cannot be read while a client catches up: its stream ends with an error, and never skips frames.

use multitap_event::{ClientRef, Door as Way, Prompt};
use multitap_hub::{Session, WhenBusy};
use serde_json::{Value, json};

use crate::live::{Agent, Client, Live, asked, cursor, event, soon, text, turn_started};
use crate::scene::Line;

/// Pieces of the turn, and the size of each: together more than the latest frames that are at hand, what a socket takes
/// in, and what is read of the log at a time.
const PIECES: usize = 160;
const PIECE: usize = 128 * 1024;

/// A turn that goes on and has said more than is at hand.
async fn said_much(session: &Session, agent: &mut Agent, client: &mut Client) -> String {
    client.ask(1, "message/send", json!({
        "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": "go" }] },
        "configuration": { "blocking": false },
    })).await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    let task = client.answer(1).await["result"]["id"].as_str().unwrap().to_owned();
    for piece in 0..PIECES {
        agent.tells(text(&format!("{piece} {}", "x".repeat(PIECE)))).await;
    }
    let whole = u64::try_from(PIECES).unwrap();
    soon(async {
        while session.last() < whole {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    task
}

/// The frames of a stream of server-sent events.
fn frames(body: &str) -> Vec<Value> {
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// The number of the piece that a frame has, in either dialect.
fn piece(frame: &Value) -> Option<usize> {
    let event = event(frame)?;
    let event = event.get("statusUpdate").unwrap_or(event);
    event.pointer("/status/message/parts/0/text")?.as_str()?.split(' ').next()?.parse().ok()
}

#[track_caller]
fn rises_without_a_gap(frames: &[Value]) {
    let pieces: Vec<usize> = frames.iter().filter_map(piece).collect();
    let expected: Vec<usize> = (0..pieces.len()).collect();
    assert_eq!(pieces, expected, "pieces were skipped");
    assert!(pieces.len() < PIECES, "all of the log could be read");
}

/// The cursor in the data of an error, in either dialect.
fn error_cursor(error: &Value) -> Option<(u64, u64)> {
    let data = &error["error"]["data"];
    let text = data.get("cursor").or_else(|| data.pointer("/0/value/cursor"))?.as_str()?;
    let (seq, part) = text.split_once('.').unwrap_or((text, "0"));
    Some((seq.parse().unwrap(), part.parse().unwrap()))
}

fn is_error(frame: &Value) -> bool {
    frame["error"]["message"].as_str().is_some_and(|why| why.contains("session's log"))
}

async fn ends_with_an_error(method: &str, wait_for_first: bool) {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("?client=ann").await;
    let task = said_much(&session, &mut agent, &mut client).await;
    if !wait_for_first {
        live.break_log();
    }
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": { "id": task } }).to_string();
    let mut line = Line::narrow(live.port()).await;
    let head = format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n", live.port());
    let more = format!("Accept: text/event-stream\r\nLast-Event-ID: 1\r\nContent-Length: {}\r\n", body.len());
    line.send(&format!("{head}{more}Connection: close\r\n\r\n{body}")).await;
    let mut text = String::new();
    if wait_for_first {
        // Nothing more is read: the rest of the log is still to be gone through when it breaks.
        text = line.first_bytes().await;
        live.break_log();
    }
    text.push_str(&line.rest_bytes().await);
    let found = frames(&unchunked(&text));
    assert!(
        found.last().is_some_and(is_error),
        "{:?}",
        found.last().map(|frame| frame.to_string().chars().take(300).collect::<String>())
    );
    assert_eq!(found.last().unwrap()["id"], 7);
    rises_without_a_gap(&found);
    // The error names the last frame before those that are missing: the client can resume there.
    let [.., last, error] = found.as_slice() else { return };
    let last = event(last).unwrap();
    assert_eq!(error_cursor(error), Some(cursor(last.get("statusUpdate").unwrap_or(last))), "{error}");
}

/// Without the sizes of its pieces; the head as well.
fn unchunked(text: &str) -> String {
    let mut rest = text.split_once("\r\n\r\n").unwrap().1;
    let mut body = String::new();
    while let Some((size, more)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size, 16) else { break };
        let Some(chunk) = more.get(..size) else { break };
        body.push_str(chunk);
        rest = more.get(size + 2..).unwrap_or_default();
    }
    body
}

/// R003-12: a stream goes on without a gap, or says that it cannot.
#[tokio::test]
async fn a_stream_of_events_ends_with_an_error_in_both_dialects() {
    ends_with_an_error("tasks/resubscribe", false).await;
    ends_with_an_error("SubscribeToTask", false).await;
}

/// On HTTP+JSON, where clients know an error by the name of its event.
#[tokio::test]
async fn a_bare_stream_ends_with_an_event_named_error() {
    for (root, code, place) in [("/v1", -32603, ""), ("", 500, "/error")] {
        let (live, session, mut agent) = Live::shared().await;
        let mut client = live.client("?client=ann").await;
        let task = said_much(&session, &mut agent, &mut client).await;
        live.break_log();
        let mut line = Line::narrow(live.port()).await;
        let head = format!("GET {root}/tasks/{task}:subscribe HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", live.port());
        line.send(&format!("{head}Last-Event-ID: 1\r\nConnection: close\r\n\r\n")).await;
        let text = unchunked(&line.rest_bytes().await);
        let (_, last) = text.rsplit_once("event: error\ndata: ").expect(root);
        let error: Value = serde_json::from_str(last.trim()).unwrap();
        let error = error.pointer(place).unwrap();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().unwrap().contains("session's log"), "{error}");
        assert!(error.to_string().contains("\"cursor\""), "it says where to resume: {error}");
    }
}

#[tokio::test]
async fn a_log_that_breaks_in_the_middle_of_a_catch_up_ends_the_stream() {
    ends_with_an_error("tasks/resubscribe", true).await;
    ends_with_an_error("SubscribeToTask", true).await;
}

#[tokio::test]
async fn a_websocket_is_told_and_closed() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("?client=ann").await;
    said_much(&session, &mut agent, &mut client).await;
    let mut late = Client::narrow(live.port(), "?client=eve&after=1").await;
    let first = late.frame().await;
    live.break_log();
    let mut seen = vec![first];
    let why = loop {
        match late.next().await {
            Ok(frame) => seen.push(frame),
            Err(why) => break why,
        }
    };
    assert_eq!(why, "1011 the session's log cannot be read");
    let error = seen.pop().unwrap();
    assert!(is_error(&error) && error["id"].is_null(), "{error}");
    rises_without_a_gap(&seen);
    let cursors: Vec<(u64, u64)> = seen.iter().filter_map(event).map(cursor).collect();
    assert!(cursors.is_sorted());
}

#[tokio::test]
async fn our_own_events_name_the_gap() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("?client=ann").await;
    said_much(&session, &mut agent, &mut client).await;
    live.break_log();
    let mut late = live.client("?dialect=events&client=eve&after=1").await;
    let mut last = 1;
    let gap = loop {
        let frame = late.frame().await;
        if frame["method"] == "replayGap" {
            break frame;
        }
        if frame["method"] == "event" {
            last += 1;
            assert_eq!(frame["params"]["seq"], last, "an event was skipped");
        }
    };
    assert_eq!(gap["params"]["after"], last);
}

/// A log that broke before the first A2A client came: the host cannot go through it, and goes on from what the session
/// is now.
#[tokio::test]
async fn a_host_that_cannot_read_the_log_knows_the_open_question() {
    let (live, session, mut agent) = Live::shared().await;
    let by = ClientRef::new("ann", Way::Terminal);
    session.prompt(Prompt::text("go"), WhenBusy::Queue, by).await.unwrap();
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(asked("q1")).await;
    for piece in 0..PIECES / 8 {
        agent.tells(text(&format!("{piece} {}", "x".repeat(PIECE)))).await;
    }
    let whole = u64::try_from(PIECES / 8).unwrap();
    soon(async {
        while session.last() < whole {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    live.break_log();
    let mut client = live.client("?client=eve").await;
    agent.tells(text("999 more")).await;
    let frames = client.until(|frame| piece(frame) == Some(999)).await;
    let last = frames.last().and_then(event).unwrap();
    assert_eq!(last["status"]["state"], "input-required", "{last}");
}

/// One event in the middle of the log has other bytes than were written: the stream ends there, also in 1.0.
#[tokio::test]
async fn a_damaged_event_ends_the_stream() {
    for (query, closes) in [("dialect=0.3", true), ("dialect=1.0", true), ("dialect=events", false)] {
        let (live, session, mut agent) = Live::shared().await;
        let mut client = live.client("?client=ann").await;
        said_much(&session, &mut agent, &mut client).await;
        live.damage_event(20);
        let mut late = Client::narrow(live.port(), &format!("?client=eve&after=1&{query}")).await;
        let found = soon(async {
            loop {
                let frame = late.next().await.unwrap();
                if is_error(&frame) || frame["method"] == "replayGap" {
                    break frame;
                }
            }
        })
        .await;
        if closes {
            assert!(found["error"]["message"].as_str().unwrap().contains("event 20"), "{found}");
            assert_eq!(late.next().await.unwrap_err(), "1011 the session's log cannot be read");
        } else {
            assert_eq!((&found["params"]["after"], &found["params"]["next"]), (&json!(19), &json!(21)), "{found}");
        }
    }
}

/// Nothing can be written for a while, and readers go on all the same.
#[tokio::test]
async fn a_locked_log_loses_nothing() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("?client=ann").await;
    let lock = live.lock_log();
    said_much(&session, &mut agent, &mut client).await;
    let mut late = Client::narrow(live.port(), "?client=eve&after=1&dialect=1.0").await;
    let mut pieces = Vec::new();
    while pieces.len() < PIECES / 2 {
        pieces.extend(piece(&late.frame().await));
    }
    drop(lock);
    while pieces.len() < PIECES {
        pieces.extend(piece(&late.frame().await));
    }
    assert_eq!(pieces, (0..PIECES).collect::<Vec<_>>());
}
