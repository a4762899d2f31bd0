//! What conformance suites and strict clients of others expect, as a table: each line over JSON-RPC and HTTP+JSON, in both
//! dialects where both have it. What other files of this folder show already is not repeated.

use std::time::Duration;

use multitap_testkit::http::HttpClient;
use serde_json::{Value, json};

use super::way::{CONTENT_TYPE, Fault, INVALID, NOT_FOUND, UNSUPPORTED, VERSION, Way, Wish, state, text};
use super::{Said, Served, URI};
use crate::scene::Scene;

/// An expectation, and how it is checked in one way.
type Line = (&'static str, fn(&Served, Way));

const LINES: [Line; 23] = [
    ("a message without its id, role, parts or a known part is -32602, not -32600", wrong_messages),
    ("an unknown task is -32001, also for a message: clients do not invent ids", unknown_tasks),
    ("a context that is not the task's is -32602", other_context),
    ("a message to a finished task is -32004, and so is following it", finished_task),
    ("the content type is checked before the body is parsed", content_type_first),
    ("an unknown version is -32009, by header and by query", unknown_version),
    ("no version and the other version are accepted: the method or the path decides", any_known_version),
    ("unknown fields are ignored", unknown_fields),
    ("a message waits for the end of the turn, unless it says otherwise", waits),
    ("a question ends the wait: interrupted states do too", waits_until_asked),
    ("historyLength 0 leaves the history out", no_history),
    ("a stream begins with the task, and ends by itself after its last event", stream_begins_and_ends),
    ("in 0.3 the last event is final, also with input-required", last_is_final),
    ("times are UTC with milliseconds", times),
    ("an event has one line of data, an id and no name", plain_events),
    ("the headers of a stream let no proxy hold it back", stream_headers),
    ("a follower gets the whole task first", snapshot_first),
    ("two followers get the same events, and one that leaves disturbs nobody", followers_are_independent),
    ("an error before a stream begins comes in the form that clients read", error_before_stream),
    ("a list has all its fields, 50 tasks a page, the newest first", list_defaults),
    ("a page has 1 to 100 tasks, and a token of our own", list_limits),
    ("the extension is confirmed by the header", extension_is_confirmed),
    ("the extended card is there for everybody who may use the door", extended_card),
];

#[test]
fn what_suites_expect_over_every_binding() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    for (line, check) in LINES {
        for way in Way::ALL {
            eprintln!("{line} ({way:?})");
            check(&served, way);
        }
    }
    served.stop(&scene);
}

fn hello() -> Said {
    Said::text("hello")
}

fn done(served: &Served, way: Way) -> Value {
    way.result(&served.http, &Wish::Send(hello()))
}

fn id(task: &Value) -> String {
    task["id"].as_str().unwrap().to_owned()
}

fn wrong_messages(served: &Served, way: Way) {
    let parts = if way == Way::Rest03 { "content" } else { "parts" };
    for (key, value) in [
        ("messageId", Value::Null),
        ("role", json!("root")),
        ("role", Value::Null),
        (parts, json!([])),
        (parts, json!([{ "video": "x" }])),
        (parts, json!([{ "kind": "video", "video": "x" }])),
        (parts, json!("hello")),
    ] {
        let mut body = way.said(&hello());
        body["message"][key] = value;
        way.check_fault(post(&served.http, way, &body), INVALID, &body.to_string());
    }
    way.check_fault(post(&served.http, way, &json!({})), INVALID, "no message");
}

/// Sends that as the parameters of a message.
fn post(http: &HttpClient, way: Way, body: &Value) -> multitap_testkit::http::Response {
    match way {
        Way::Rpc03 => http.call("message/send", body),
        Way::Rpc10 => http.call("SendMessage", body),
        Way::Rest03 => http.post("/v1/message:send", body),
        Way::Rest10 => http.post("/message:send", body),
    }
    .unwrap()
}

fn unknown_tasks(served: &Served, way: Way) {
    let none = "task-01a00000-0000-7000-8000-00000000000a".to_owned();
    for wish in [
        Wish::Send(hello().task("mine")),
        Wish::Stream(hello().task(&none)),
        Wish::Get(none.clone(), None),
        Wish::Cancel(none.clone()),
        Wish::Subscribe(none),
    ] {
        way.refused(&served.http, "", &wish, NOT_FOUND);
    }
}

fn other_context(served: &Served, way: Way) {
    let task = way.result(&served.http, &Wish::Send(hello().dev()));
    let wish = Wish::Send(hello().task(&id(&task)).context("another"));
    way.refused(&served.http, "", &wish, INVALID);
    way.refused(&served.http, "", &Wish::Send(hello().context("another")), INVALID);
}

fn finished_task(served: &Served, way: Way) {
    let over = id(&done(served, way));
    way.refused(&served.http, "", &Wish::Stream(hello().task(&over)), UNSUPPORTED);
    way.refused(&served.http, "", &Wish::Subscribe(over), UNSUPPORTED);
}

fn content_type_first(served: &Served, way: Way) {
    let (path, http) = match way {
        Way::Rpc03 => ("/", served.http.clone()),
        Way::Rpc10 => ("/", served.http.clone().with("A2A-Version", "1.0")),
        Way::Rest03 => ("/v1/message:send", served.http.clone()),
        Way::Rest10 => ("/message:send", served.http.clone()),
    };
    for kind in ["text/plain", "application/xml", "multipart/form-data"] {
        let response = http.clone().with("Content-Type", kind).send("POST", path, b"not json").unwrap();
        way.check_fault(response, CONTENT_TYPE, kind);
    }
}

fn unknown_version(served: &Served, way: Way) {
    for version in ["99.0", "0.1", "2.0", "one"] {
        way.refused(&served.http.clone().with("A2A-Version", version), "", &Wish::Get("x".to_owned(), None), VERSION);
    }
    way.refused(&served.http, "A2A-Version=99.0", &Wish::Get("x".to_owned(), None), VERSION);
}

fn any_known_version(served: &Served, way: Way) {
    for version in ["0.3", "0.3.0", "1.0", "1.0.1", ""] {
        let http = served.http.clone().with("A2A-Version", version);
        assert_eq!(state(&way.result(&http, &Wish::Send(hello()))), "completed", "{way:?} {version}");
    }
}

fn unknown_fields(served: &Served, way: Way) {
    let mut body = way.said(&hello());
    body["someday"] = json!({ "a": [1] });
    body["message"]["someday"] = json!(null);
    assert_eq!(post(&served.http, way, &body).json().unwrap().get("error"), None, "{way:?}");
}

fn waits(served: &Served, way: Way) {
    let waited = way.result(&served.http, &Wish::Send(Said::text("slow 2")));
    assert_eq!(state(&waited), "completed", "{way:?}");
    let at_once = way.result(&served.http, &Wish::Send(Said::text("slow 300").at_once()));
    assert!(["submitted", "working"].contains(&state(&at_once).as_str()), "{way:?}: {at_once}");
    assert_eq!(state(&way.result(&served.http, &Wish::Cancel(id(&at_once)))), "canceled", "{way:?}");
}

fn waits_until_asked(served: &Served, way: Way) {
    let asked = way.result(&served.http, &Wish::Send(Said::text("run: true")));
    assert_eq!(state(&asked), "input-required", "{way:?}: {asked}");
    assert_eq!(state(&way.result(&served.http, &Wish::Cancel(id(&asked)))), "canceled", "{way:?}");
}

fn no_history(served: &Served, way: Way) {
    let task = id(&done(served, way));
    let bare = way.result(&served.http, &Wish::Get(task.clone(), Some(0)));
    assert_eq!(bare.get("history"), None, "{way:?}: {bare}");
    let whole = way.result(&served.http, &Wish::Get(task, None));
    assert_eq!(text(&whole["history"][0]), "hello", "{way:?}: {whole}");
}

fn stream_begins_and_ends(served: &Served, way: Way) {
    // It is read until the connection ends.
    let items = way.stream(&served.http, &Wish::Stream(hello()));
    let first = &items[0].json;
    assert!(first["id"].is_string() && first["contextId"].is_string(), "{way:?}: {first}");
    assert_eq!((items[0].state().as_str(), items.last().unwrap().state().as_str()), ("submitted", "completed"));
    for item in &items[1..] {
        assert_eq!((&item.json["taskId"], &item.json["contextId"]), (&first["id"], &first["contextId"]), "{way:?}");
    }
}

fn last_is_final(served: &Served, way: Way) {
    for (said, last) in [(hello(), "completed"), (Said::text("run: true"), "input-required")] {
        let items = way.stream(&served.http, &Wish::Stream(said));
        let finals: Vec<bool> = items.iter().map(|item| item.json["final"] == true).collect();
        let expected: Vec<bool> = (1..=items.len()).map(|at| way.is_0_3() && at == items.len()).collect();
        assert_eq!((items.last().unwrap().state().as_str(), finals), (last, expected), "{way:?}: {items:#?}");
    }
}

fn times(served: &Served, way: Way) {
    let task = done(served, way);
    let time = task["status"]["timestamp"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.len() == "2026-11-20T00:00:00.000Z".len(), "{way:?}: {time}");
}

fn plain_events(served: &Served, way: Way) {
    let events = way.ask(&served.http, "", &Wish::Stream(hello())).events().unwrap();
    for event in &events {
        assert_eq!(event.name, None, "{way:?}: {event:?}");
        let is_result = event.json.to_string().contains("artifactUpdate");
        assert_eq!(event.id.is_some(), !is_result, "{way:?}: {event:?}");
    }
    let is_rpc = matches!(way, Way::Rpc03 | Way::Rpc10);
    assert!(events.iter().all(|event| (event.json["jsonrpc"] == "2.0") == is_rpc), "{way:?}: {events:?}");
}

fn stream_headers(served: &Served, way: Way) {
    let response = way.ask(&served.http, "", &Wish::Stream(hello()));
    assert!(response.header("Content-Type").unwrap().starts_with("text/event-stream"), "{way:?}");
    assert_eq!(
        (response.header("Cache-Control"), response.header("X-Accel-Buffering")),
        (Some("no-cache"), Some("no"))
    );
}

/// A task that runs until it is cancelled.
fn running(served: &Served, way: Way) -> String {
    id(&way.result(&served.http, &Wish::Send(Said::text("slow 300").at_once())))
}

fn snapshot_first(served: &Served, way: Way) {
    let task = running(served, way);
    let mut response = way.ask(&served.http, "", &Wish::Subscribe(task.clone()));
    let first = way.item(response.event().unwrap().unwrap());
    assert_eq!((first.json["id"].as_str(), first.json["status"].is_object()), (Some(task.as_str()), true), "{way:?}");
    way.result(&served.http, &Wish::Cancel(task));
    let rest: Vec<_> = response.events().unwrap().into_iter().map(|event| way.item(event)).collect();
    assert_eq!(rest.last().unwrap().state(), "canceled", "{way:?}");
}

fn followers_are_independent(served: &Served, way: Way) {
    let task = running(served, way);
    let follow = || {
        let mut response = way.ask(&served.http, "", &Wish::Subscribe(task.clone()));
        response.event().unwrap().unwrap();
        response
    };
    let (one, leaves, other) = (follow(), follow(), follow());
    drop(leaves);
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(state(&way.result(&served.http, &Wish::Get(task.clone(), Some(0)))), "working", "{way:?}");
    way.result(&served.http, &Wish::Cancel(task));
    let [one, other] = [one, other].map(|stream| stream.events().unwrap());
    // The later one joined with a later snapshot.
    let common = one.len().min(other.len());
    assert!(common > 1, "{way:?}");
    assert_eq!(one[one.len() - common..], other[other.len() - common..], "{way:?}");
}

fn error_before_stream(served: &Served, way: Way) {
    for wish in [Wish::Stream(hello().task("mine")), Wish::Subscribe("mine".to_owned())] {
        let response = way.ask(&served.http, "", &wish);
        // Clients of 0.3 accept nothing but a stream on JSON-RPC.
        assert_eq!(response.is_stream(), way == Way::Rpc03, "{way:?} {wish:?}");
        way.check_fault(response, NOT_FOUND, "before a stream");
    }
}

fn list_defaults(served: &Served, way: Way) {
    if way == Way::Rpc03 {
        return; // has no list
    }
    let task = id(&done(served, way));
    let page = served.listed(way, &[]);
    assert_eq!((&page["pageSize"], page["nextPageToken"].is_string()), (&json!(50), true), "{way:?}: {page:#}");
    let tasks = page["tasks"].as_array().unwrap();
    assert!(tasks.len() <= 50 && page["totalSize"].as_u64().unwrap() >= tasks.len() as u64, "{way:?}");
    assert_eq!(tasks[0]["id"], task, "{way:?}");
    let times: Vec<&str> = tasks.iter().map(|task| task["status"]["timestamp"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|one, next| one >= next), "{way:?}: {times:#?}");
    assert!(tasks.iter().all(|task| task.get("artifacts").is_none() && task.get("history").is_none()), "{way:?}");
    let after = times[0].to_owned();
    let newest = served.listed(way, &[("statusTimestampAfter", &after)]);
    assert!(newest["totalSize"].as_u64() >= Some(1) && newest["totalSize"].as_u64() < page["totalSize"].as_u64());
    let both = [("contextId", page["tasks"][0]["contextId"].as_str().unwrap()), ("status", "TASK_STATE_COMPLETED")];
    assert_eq!(served.listed(way, &both)["totalSize"], 1, "{way:?}");
}

fn list_limits(served: &Served, way: Way) {
    if way == Way::Rpc03 {
        return;
    }
    for (key, value) in [
        ("pageSize", "0"),
        ("pageSize", "101"),
        ("pageSize", "-1"),
        ("pageToken", "none"),
        ("status", "TASK_STATE_RESTING"),
        ("statusTimestampAfter", "yesterday"),
        ("historyLength", "-1"),
    ] {
        let wish = Wish::List(vec![(key, value.to_owned())]);
        // JSON-RPC of 0.3 has no list, so its list is one of 1.0.
        way.refused(&served.http, "", &wish, INVALID);
    }
}

fn extension_is_confirmed(served: &Served, way: Way) {
    for name in ["A2A-Extensions", "X-A2A-Extensions"] {
        let http = served.http.clone().with(name, URI);
        let response = way.ask(&http, "", &Wish::Get("x".to_owned(), None));
        assert_eq!(response.header(name), Some(URI), "{way:?}: on errors too");
    }
    let response = way.ask(&served.http, "", &Wish::Get("x".to_owned(), None));
    assert_eq!(response.header("A2A-Extensions"), None, "{way:?}");
}

fn extended_card(served: &Served, way: Way) {
    let card = way.result(&served.http, &Wish::Card);
    assert!(card["skills"].is_array() && card["defaultInputModes"].is_array(), "{way:?}: {card:#}");
}

/// The card is at its own path and at its own address, and may be kept.
#[test]
fn what_suites_expect_of_the_card() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let response = served.http.get("/.well-known/agent-card.json").unwrap();
    for name in ["ETag", "Last-Modified"] {
        assert!(response.header(name).is_some(), "{name}");
    }
    assert!(response.header("Cache-Control").unwrap().contains("max-age="));
    assert!(response.header("Vary").unwrap().contains("A2A-Version"));
    let card = response.json().unwrap();
    assert_eq!((&card["preferredTransport"], &card["protocolVersion"]), (&json!("JSONRPC"), &json!("0.3.0")));
    assert_eq!(served.http.get("/").unwrap().json().unwrap(), card, "GET of the card's own address");
    for key in ["name", "description", "version", "url", "skills", "capabilities", "defaultInputModes"] {
        assert!(card.get(key).is_some(), "{key}");
    }
    served.stop(&scene);
}

/// The id of a response has the type of the request's: strict clients compare both.
#[test]
fn an_id_comes_back_as_it_was_sent() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    for id in [json!(7), json!("7"), json!(-1), json!("")] {
        for method in ["message/stream", "SendStreamingMessage"] {
            let way = if method.contains('/') { Way::Rpc03 } else { Way::Rpc10 };
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": way.said(&hello()) });
            let events = served.http.post("/", &request).unwrap().events().unwrap();
            assert!(events.len() > 2 && events.iter().all(|event| event.json["id"] == id), "{method} {id}");
        }
    }
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {} });
    let answer = served.http.post("/", &list).unwrap().json().unwrap();
    assert_eq!(answer["error"]["code"], -32601, "JSON-RPC of 0.3 has no list");
    served.stop(&scene);
}

/// Clients that must use the extension and do not are told so, except those that only look.
#[test]
fn a_required_extension_is_required_in_every_way() {
    let scene = Scene::bare();
    scene.user_settings(&json!({ "a2a": { "extensionRequired": true } }));
    let served = scene.a2a(&[]);
    let required = Fault(-32008, 400, Some("EXTENSION_SUPPORT_REQUIRED"));
    for way in Way::ALL {
        way.refused(&served.http, "", &Wish::Send(hello()), required);
        way.refused(&served.http, "", &Wish::Stream(hello()), required);
        let http = served.http.clone().with("A2A-Extensions", URI);
        assert_eq!(state(&way.result(&http, &Wish::Send(hello()))), "completed", "{way:?}");
    }
    served.stop(&scene);
}
