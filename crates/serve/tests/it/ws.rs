//! A2A on a WebSocket: many clients on one session, many streams on one connection.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use multitap_event::{ClientRef, ClientRole, Command, Decide, Door as Way, Prompt, option};
use multitap_hub::{Session, WhenBusy};
use multitap_serve::{Access, Limits, Scheme, Tokens};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::live::{
    Client, Live, answering, asked, cursor, ended, event, is_end, is_stream_end, said, soon, text, turn_ended,
    turn_started,
};
use crate::scene::{PATIENCE, open, port, post};

/// Every event that a client was told, in the order in which it was told them.
fn events(frames: &[Value]) -> Vec<Value> {
    frames.iter().filter_map(event).cloned().collect()
}

/// All that is told from the first frame of the session on, up to so many ends of turns.
async fn from_the_start(live: &Live, turns: usize) -> Vec<Value> {
    let mut client = live.client("?after=0&client=late").await;
    until_ends(&mut client, turns).await
}

async fn until_ends(client: &mut Client, turns: usize) -> Vec<Value> {
    let mut frames = Vec::new();
    for _ in 0..turns {
        frames.extend(client.until(is_end).await);
    }
    frames
}

async fn types(session: &Session, words: &str) {
    let by = ClientRef::new("ann", Way::Terminal);
    session.prompt(Prompt::text(words), WhenBusy::Queue, by).await.unwrap();
}

/// R003-7, R003-11, R003-12, R003-16: whoever listens and whoever prompts, all are told the same, each once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_is_told_every_frame_once_in_one_order() {
    const LISTENERS: usize = 10;
    const PROMPTERS: usize = 3;
    const PROMPTS: usize = 5;
    let (live, session, mut agent) = Live::shared().await;
    let (mut here, mut clients) = (Vec::new(), JoinSet::new());
    for number in 0..LISTENERS + PROMPTERS {
        here.push(live.client(&format!("?client=c{number}")).await);
    }
    for (number, mut client) in here.into_iter().enumerate() {
        clients.spawn(async move {
            if number >= LISTENERS {
                for prompt in 0..PROMPTS {
                    client.stream(prompt, &format!("c{number} {prompt}")).await;
                }
            }
            let mut frames = until_ends(&mut client, PROMPTERS * PROMPTS + 1).await;
            // The notification that the last stream ended comes after its last frame.
            while number >= LISTENERS && frames.iter().filter(|frame| frame["method"] == "streamEnd").count() < PROMPTS
            {
                frames.push(client.frame().await);
            }
            (number, frames)
        });
    }
    types(&session, "typed").await;
    for _ in 0..=PROMPTERS * PROMPTS {
        agent.answers(20).await;
    }
    let clients = clients.join_all().await;
    let all = events(&from_the_start(&live, PROMPTERS * PROMPTS + 1).await);
    assert!(all.len() > (PROMPTERS * PROMPTS + 1) * 20);
    assert!(all.iter().map(cursor).is_sorted_by(|one, next| one < next), "cursors rise");
    let tasks: Vec<&Value> = all.iter().map(|event| event.get("taskId").unwrap_or(&event["id"])).collect();
    assert!(tasks.iter().all(|task| *task == tasks[0]), "one task for all");
    for (number, frames) in clients {
        let told = events(&frames);
        assert_eq!(told.iter().map(cursor).collect::<Vec<_>>(), all.iter().map(cursor).collect::<Vec<_>>());
        assert!(told == all, "client {number} was told something else");
        if number >= LISTENERS {
            check_streams(&frames, number, PROMPTS);
        }
    }
}

/// The frames of each of a client's requests are those of the turn it began.
fn check_streams(frames: &[Value], client: usize, prompts: usize) {
    let mut streams: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for frame in frames.iter().filter(|frame| frame.get("result").is_some()) {
        streams.entry(frame["id"].as_u64().unwrap()).or_default().push(&frame["result"]);
    }
    assert_eq!(streams.len(), prompts);
    for (id, frames) in streams {
        assert_eq!(frames[0]["kind"], "task", "{:#?}", frames[0]);
        assert_eq!(frames[0]["history"][0]["parts"][0]["text"], format!("c{client} {id}"));
        let texts = frames.iter().filter_map(|frame| frame.pointer("/status/message/parts/0/text"));
        let texts: Vec<&str> = texts.filter_map(Value::as_str).collect();
        let all: Vec<String> = (0..20).map(|word| format!("c{client} {id} {word}")).collect();
        assert_eq!(texts, all);
        assert_eq!(frames.last().unwrap()["final"], true);
    }
}

#[tokio::test]
async fn a_broadcast_has_its_cursor_and_the_event_of_the_dialect_asked_for() {
    let (live, session, mut agent) = Live::shared().await;
    let mut old = live.client("").await;
    let mut new = live.client("?dialect=1.0").await;
    types(&session, "hello").await;
    agent.answers(1).await;
    let old = until_ends(&mut old, 1).await;
    let ended = |frame: &Value| {
        let update = frame.pointer("/params/event/statusUpdate/status/state");
        update.is_some_and(|state| state == "TASK_STATE_COMPLETED")
    };
    let new = new.until(ended).await;
    assert_eq!(old.len(), new.len());
    for (old, new) in old.iter().zip(&new) {
        assert_eq!((&old["jsonrpc"], &old["method"]), (&json!("2.0"), &json!("tasks/event")));
        assert_eq!(old["params"]["cursor"], new["params"]["cursor"]);
        let (seq, part) = cursor(&old["params"]["event"]);
        let cursor = if part == 0 { seq.to_string() } else { format!("{seq}.{part}") };
        assert_eq!(old["params"]["cursor"], cursor);
    }
}

/// R003-22, R003-26: 64 answers at once through both transports. One counts; the others learn whose it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_answer_wins_and_the_others_learn_who_did() {
    const EACH: usize = 32;
    let (live, session, mut agent) = Live::shared().await;
    let mut listener = live.client("?client=listener").await;
    types(&session, "go").await;
    agent.asks("q").await;
    listener.until(|frame| event(frame).is_some_and(|event| event["status"]["state"] == "input-required")).await;
    let mut answers = JoinSet::new();
    for number in 0..EACH {
        let mut client = live.client(&format!("?client=ws{number}")).await;
        let option = [option::PROCEED_ONCE, option::CANCEL][number % 2];
        answers.spawn(async move {
            client.ask("a", "message/stream", answering("q", option)).await;
            (format!("ws{number}"), client.answer("a").await)
        });
        let port = live.port();
        answers.spawn(async move {
            let params = answering("q", option);
            let request = json!({ "jsonrpc": "2.0", "id": "a", "method": "message/stream", "params": params });
            let answer = post(port, &format!("/?client=sse{number}"), &request).await;
            let data = answer.body.lines().find_map(|line| line.strip_prefix("data: "));
            (format!("sse{number}"), serde_json::from_str(data.unwrap()).unwrap())
        });
    }
    let Command::Decide(decide) = agent.hears().await else { panic!() };
    agent.tells(turn_ended()).await;
    let answers: Vec<(String, Value)> = soon(answers.join_all()).await;
    let (lost, won): (Vec<_>, Vec<_>) = answers.iter().partition(|(_, answer)| answer.get("error").is_some());
    assert_eq!((won.len(), lost.len()), (1, 2 * EACH - 1), "{won:#?}");
    let (winner, frame) = won[0];
    assert!(frame["result"]["metadata"].is_object(), "{frame:#}");
    for (who, answer) in lost {
        let error = &answer["error"];
        assert_eq!(error["code"], -32011, "{who}: {answer:#}");
        assert_eq!(error["data"]["settledBy"], json!({ "client": winner, "door": "a2a" }), "{who}");
        assert_eq!(error["data"]["questionId"], "q");
        assert_eq!(error["data"]["selectedOptionId"], decide.option_id.as_str());
        assert!(error["data"]["at"].is_string());
    }
    assert!(agent.end.commands.try_recv().is_err(), "the agent hears one decision");
    let told = until_ends(&mut listener, 1).await;
    let by = told.iter().filter(|frame| frame.to_string().contains("settledBy")).count();
    assert_eq!(by, 1, "everybody sees it settled, once");
}

#[tokio::test]
async fn whoever_loses_still_hears_what_the_answer_brought() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("").await;
    types(&session, "go").await;
    agent.asks("q").await;
    client.until(|frame| event(frame).is_some_and(|event| event["final"] == true)).await;
    let by = ClientRef::new("ann", Way::Terminal);
    session.decide(Decide::new(&"q".into(), option::PROCEED_ONCE), by).await.unwrap();
    client.ask(1, "message/stream", answering("q", option::CANCEL)).await;
    let mut frames = client.until(|frame| frame.get("error").is_some()).await;
    agent.hears().await;
    agent.tells(text("on")).await;
    agent.tells(turn_ended()).await;
    frames.extend(until_ends(&mut client, 1).await);
    let errors: Vec<&Value> = frames.iter().filter(|frame| frame.get("error").is_some()).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0]["error"]["data"]["settledBy"]["client"], "ann");
    assert!(frames.iter().all(|frame| frame.get("result").is_none()), "the loser has no stream");
    assert!(frames.iter().any(|frame| frame.to_string().contains("settledBy")));
}

#[tokio::test]
async fn a_question_is_answered_in_either_way_and_the_stream_of_the_answer_goes_on() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("").await;
    client.stream(1, "go").await;
    agent.asks("q1").await;
    let frames = client.until(|frame| is_stream_end(frame, 1)).await;
    let last = &frames[frames.len() - 2];
    assert_eq!((&last["id"], &last["result"]["final"]), (&json!(1), &json!(true)));
    assert_eq!(last["result"]["status"]["state"], "input-required");
    client.ask(2, "message/stream", answering("q1", option::PROCEED_ONCE)).await;
    assert!(matches!(agent.hears().await, Command::Decide(_)));
    agent.tells(asked("q2")).await;
    let frames = client.until(|frame| is_stream_end(frame, 2)).await;
    assert!(frames[..frames.len() - 1].iter().all(|frame| frame["id"] == 2), "{frames:#?}");
    let confirmation = json!({ "tool_call_id": "q2", "selected_option_id": option::CANCEL });
    client.ask(3, "toolCall/confirm", confirmation).await;
    let answer = client.answer(3).await;
    let task = format!("task-{}", session.id());
    assert_eq!(answer["result"], json!({ "taskId": task, "status": "CANCELLED" }));
    agent.hears().await;
    agent.tells(turn_ended()).await;
    let rest = until_ends(&mut client, 1).await;
    assert!(rest.iter().all(|frame| frame["method"] == "tasks/event"), "toolCall/confirm has no stream");
}

#[tokio::test]
async fn frames_of_a_cancelled_stream_are_told_without_it() {
    let (live, _, mut agent) = Live::shared().await;
    let mut client = live.client("").await;
    client.stream("s", "go").await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(text("one")).await;
    client.until(|frame| frame.to_string().contains("\"one\"")).await;
    client.notify("cancelStream", json!({ "id": "other" })).await;
    client.notify("cancelStream", json!({ "id": "s" })).await;
    assert!(is_stream_end(&client.frame().await, "s"));
    agent.tells(text("two")).await;
    agent.tells(turn_ended()).await;
    let rest = until_ends(&mut client, 1).await;
    assert_eq!(rest.len(), 2, "the turn went on: {rest:#?}");
    assert!(rest.iter().all(|frame| frame["method"] == "tasks/event"));
    client.stream("s", "again").await;
    agent.answers(1).await;
    client.until(|frame| is_stream_end(frame, "s")).await;
}

#[tokio::test]
async fn who_waits_for_an_answer_hears_the_rest_meanwhile() {
    let (live, session, mut agent) = Live::shared().await;
    let mut client = live.client("").await;
    client.ask(1, "message/send", said("wait")).await;
    agent.hears_prompt().await;
    agent.tells(turn_started()).await;
    agent.tells(text("meanwhile")).await;
    client.until(|frame| frame["method"] == "tasks/event" && frame.to_string().contains("meanwhile")).await;
    client.ask(2, "tasks/get", json!({ "id": format!("task-{}", session.id()) })).await;
    assert_eq!(client.answer(2).await["result"]["status"]["state"], "working");
    agent.tells(turn_ended()).await;
    assert_eq!(client.answer(1).await["result"]["status"]["state"], "completed");
}

#[tokio::test]
async fn who_subscribes_is_told_the_state_first_and_then_everything() {
    let (live, session, mut agent) = Live::shared().await;
    let task = format!("task-{}", session.id());
    let mut client = live.client("").await;
    types(&session, "first").await;
    agent.answers(2).await;
    until_ends(&mut client, 1).await;
    client.ask(1, "tasks/resubscribe", json!({ "id": task })).await;
    let first = client.frame().await;
    assert_eq!((&first["id"], &first["result"]["kind"]), (&json!(1), &json!("task")));
    types(&session, "second").await;
    agent.answers(2).await;
    let rest = until_ends(&mut client, 1).await;
    assert!(rest.iter().all(|frame| frame["id"] == 1), "it stays open across turns: {rest:#?}");
    client.stream(2, "third").await;
    agent.answers(2).await;
    let rest = client.until(|frame| is_stream_end(frame, 2)).await;
    assert!(rest[..rest.len() - 1].iter().all(|frame| frame["id"] == 2), "whoever began a turn has it");
}

/// Two streams on one connection, each of a session of its own; nothing else is told.
#[tokio::test]
async fn sessions_of_ones_own_are_told_to_who_asks() {
    let mut live = Live::own().await;
    let mut client = live.client("").await;
    client.stream(1, "one").await;
    let mut one = live.agent().await;
    client.stream(2, "two").await;
    let mut two = live.agent().await;
    one.hears_prompt().await;
    two.hears_prompt().await;
    for agent in [&one, &two, &one, &two] {
        agent.tells(text("so")).await;
    }
    two.tells(turn_ended()).await;
    let frames = client.until(|frame| is_stream_end(frame, 2)).await;
    let context = |id: u64| {
        let own = frames.iter().filter(move |frame| frame["id"] == id && frame.get("result").is_some());
        own.map(|frame| frame["result"]["contextId"].clone()).collect::<Vec<_>>()
    };
    assert!(context(2).len() == 4 && !context(1).is_empty(), "{frames:#?}");
    assert!(context(1).iter().all(|id| *id == context(1)[0]) && context(2).iter().all(|id| *id == context(2)[0]));
    assert_ne!(context(1)[0], context(2)[0]);
    let session = context(2)[0].as_str().unwrap().to_owned();
    let mut listener = live.client(&format!("?session={session}")).await;
    let by = ClientRef::new("ann", Way::Terminal);
    live.hub.find(&session.as_str().into()).unwrap().prompt(Prompt::text("on"), WhenBusy::Queue, by).await.unwrap();
    two.answers(1).await;
    until_ends(&mut listener, 1).await;
    client.is_silent().await;
    let refused = Client::connect(live.port(), "?session=none").await.err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some("HTTP error: 404 Not Found"));
}

#[tokio::test]
async fn who_comes_back_goes_on_after_the_frame_it_names() {
    let (live, session, mut agent) = Live::shared().await;
    types(&session, "one").await;
    agent.answers(3).await;
    let all = from_the_start(&live, 1).await;
    for at in 0..all.len() - 1 {
        let cursor = all[at]["params"]["cursor"].as_str().unwrap();
        let mut client = live.client(&format!("?after={cursor}&epoch={}", session.epoch())).await;
        assert_eq!(until_ends(&mut client, 1).await, all[at + 1..], "after {cursor}");
    }
    for query in ["?after=100000", "?after=1&epoch=77"] {
        let mut client = live.client(query).await;
        let first = client.frame().await;
        let snapshot = &first["params"]["event"];
        assert_eq!((&first["method"], &snapshot["kind"]), (&json!("tasks/event"), &json!("task")), "{query}");
        let metadata = snapshot["metadata"].as_object().unwrap();
        let gap = metadata.values().find_map(|ours| ours.get("replayGap")).expect("it is said that there is a gap");
        assert_eq!(gap["epoch"], session.epoch());
        types(&session, "more").await;
        agent.answers(1).await;
        until_ends(&mut client, 1).await;
    }
}

/// A client that does not read is cut off, hurts nobody, and goes on where it stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_read_is_cut_off_and_may_come_back() {
    const CHUNKS: usize = 240;
    let (live, session, mut agent) = Live::shared().await;
    let mut slow = Client::narrow(live.port(), "?client=slow").await;
    let mut quick = live.client("?client=quick").await;
    types(&session, "much").await;
    agent.hears_prompt().await;
    let mut reading = JoinSet::new();
    reading.spawn(async move { until_ends(&mut quick, 1).await });
    for chunk in 0..CHUNKS {
        agent.tells(text(&format!("{chunk} {}", "x".repeat(100_000)))).await;
    }
    agent.tells(turn_ended()).await;
    let all = soon(reading.join_all()).await.remove(0);
    let is_here = async |name: &str| {
        let state = session.snapshot().await.unwrap();
        state.clients.iter().any(|client| client.client == name)
    };
    assert!(is_here("slow").await, "nobody waited for it");
    let gone = async {
        while is_here("slow").await {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it is cut off");
    let mut frames = Vec::new();
    while let Ok(frame) = slow.next().await {
        frames.push(frame);
    }
    assert!(frames.len() < all.len(), "it did not get everything");
    let last = frames.last().unwrap()["params"]["cursor"].as_str().unwrap();
    let mut back = live.client(&format!("?after={last}")).await;
    frames.extend(until_ends(&mut back, 1).await);
    assert!(events(&frames) == events(&all), "without a gap, without a repetition");
}

#[tokio::test]
async fn who_is_sent_away_hears_so_and_the_end_is_told_to_all() {
    let (live, session, agent) = Live::shared().await;
    let mut one = live.client("?client=one").await;
    let mut other = live.client("?client=other").await;
    let state = session.snapshot().await.unwrap();
    let found = state.clients.iter().find(|client| client.client == "one").unwrap();
    assert_eq!(found.door, Way::A2a);
    session.kick(found.client_id.clone().unwrap(), ClientRef::new("ann", Way::Terminal)).await.unwrap();
    assert_eq!(one.closed().await, "4001 you were kicked from this session");
    other.ask(1, "tasks/resubscribe", json!({ "id": format!("task-{}", session.id()) })).await;
    other.answer(1).await;
    agent.tells(text("last words")).await;
    agent.tells(ended()).await;
    drop(agent);
    let frames = other.until(|frame| is_stream_end(frame, 1)).await;
    assert!(frames.iter().any(|frame| frame.to_string().contains("last words")), "everything was told first");
    assert_eq!(other.closed().await, "4000 the session is over");
}

#[tokio::test]
async fn a_host_that_stops_says_so_and_does_not_wait() {
    let (live, session, _agent) = Live::shared().await;
    let mut client = live.client("").await;
    let mut events = live.client("?dialect=events&after=0").await;
    let start = Instant::now();
    let (closed, also, ()) = tokio::join!(client.closed(), events.closed(), live.door.stop());
    assert_eq!([closed, also], ["1001 this host is shutting down"; 2]);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(!session.is_over(), "the session goes on");
}

#[tokio::test]
async fn an_observer_listens_and_does_nothing() {
    let (live, session, mut agent) = Live::shared().await;
    let mut observer = live.client("?role=observer").await;
    observer.stream(1, "may I?").await;
    assert_eq!(observer.answer(1).await["error"]["code"], -32012);
    types(&session, "go").await;
    agent.asks("q").await;
    observer.until(|frame| event(frame).is_some_and(|event| event["final"] == true)).await;
    observer.ask(2, "message/stream", answering("q", option::PROCEED_ONCE)).await;
    assert_eq!(observer.answer(2).await["error"]["code"], -32012);
    observer.ask(3, "toolCall/confirm", json!({ "tool_call_id": "q", "selected_option_id": "cancel" })).await;
    assert_eq!(observer.answer(3).await["error"]["code"], -32012);
    assert!(agent.end.commands.try_recv().is_err());
}

#[tokio::test]
async fn what_is_wrong_is_said_and_the_connection_goes_on() {
    let (live, _, mut agent) = Live::shared_within(Limits { body: 4096, ..Limits::default() }).await;
    let mut client = live.client("").await;
    let mut refused = async |message: Message, code: i64, why: &str| {
        client.send(message).await;
        let answer = client.frame().await;
        assert_eq!(answer["error"]["code"], code, "{answer:#}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer:#}");
        answer["id"].clone()
    };
    assert_eq!(refused(Message::binary("{}"), -32600, "binary").await, Value::Null);
    assert_eq!(refused(Message::text("[]"), -32600, "batches").await, Value::Null);
    assert_eq!(refused(Message::text("{"), -32700, "JSON").await, Value::Null);
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    assert_eq!(refused(Message::text(initialize), -32601, "speaks A2A already").await, json!(0));
    assert_eq!(refused(Message::text(r#"{"jsonrpc":"2.0","id":"x","method":"no"}"#), -32601, "no").await, json!("x"));
    client.notify("nothing/known", json!({})).await;
    client.stream(1, "go").await;
    client.answer(1).await;
    client.stream(1, "again").await;
    let again = client.until(|frame| frame.get("error").is_some()).await.pop().unwrap();
    assert_eq!((&again["id"], &again["error"]["code"]), (&json!(1), &json!(-32600)));
    agent.answers(1).await;
    client.until(|frame| is_stream_end(frame, 1)).await;
    client.send(Message::text("x".repeat(5000))).await;
    let large = client.frame().await;
    assert_eq!((&large["id"], &large["error"]["code"]), (&Value::Null, &json!(-32600)));
    assert_eq!(client.closed().await, "1009 the frame is too large");
}

#[tokio::test]
async fn only_so_many_requests_are_under_way_at_once() {
    let (live, _, _agent) = Live::shared().await;
    let mut client = live.client("").await;
    for id in 0..64 {
        client.stream(id, "wait").await;
    }
    client.stream(64, "one too many").await;
    let refused = client.answer(64).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused:#}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("64"), "{refused:#}");
    client.notify("cancelStream", json!({ "id": 7 })).await;
    client.until(|frame| is_stream_end(frame, 7)).await;
    client.ask(65, "agent/getAuthenticatedExtendedCard", json!({})).await;
    assert!(client.answer(65).await.get("result").is_some());
}

/// A browser can bring its token in no other way.
#[tokio::test]
async fn a_token_comes_among_the_subprotocols() {
    let mut tokens = Tokens::default();
    tokens.add("con-1", ClientRole::Controller, None).unwrap();
    let door = open(Access { scheme: Scheme::of(tokens), ..Access::default() }).await;
    for (offered, answer) in [("multitap.v1, bearer.con-1", Ok("multitap.v1")), ("multitap.v1, bearer.no", Err(401))] {
        let mut request = format!("ws://127.0.0.1:{}/ws", port(&door)).into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", offered.parse().unwrap());
        let stream = TcpStream::connect(("127.0.0.1", port(&door))).await.unwrap();
        match (soon(tokio_tungstenite::client_async(request, stream)).await, answer) {
            (Ok((_, response)), Ok(chosen)) => assert_eq!(response.headers()["sec-websocket-protocol"], chosen),
            (Err(tungstenite::Error::Http(response)), Err(status)) => assert_eq!(response.status(), status),
            (other, _) => panic!("{offered}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn wrong_values_in_the_address_are_refused_before_anything_is_upgraded() {
    let (live, ..) = Live::shared().await;
    for query in ["after=x", "dialect=2", "ext=other", "epoch=-1", "role=boss"] {
        let error = Client::connect(live.port(), &format!("?{query}")).await.err().unwrap();
        let tungstenite::Error::Http(response) = *error else { panic!("{error}") };
        assert_eq!(response.status(), 400, "{query}");
        let body: Value = serde_json::from_slice(response.body().as_deref().unwrap_or_default()).unwrap();
        assert!(body["error"]["message"].as_str().unwrap().starts_with(query), "{body:#}");
    }
}
