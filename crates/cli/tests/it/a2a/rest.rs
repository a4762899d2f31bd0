//! HTTP+JSON beside JSON-RPC: the same requests in both dialects and bindings, with the same effects.

use serde_json::{Value, json};

use super::way::{
    CONTENT_TYPE, Fault, INVALID, Item, NOT_CANCELABLE, NOT_FOUND, OBSERVER, SETTLED, UNSUPPORTED, VERSION, Way, Wish,
    state, text,
};
use super::{Said, Served, URI, answer};
use crate::scene::Scene;

/// The question that a stream ended with: the task, its context and the call.
#[track_caller]
fn asked(items: &[Item]) -> (String, String, Value) {
    let first = &items[0].json;
    let mut data = items.iter().rev().filter_map(Item::data);
    let call = data.find(|data| data.get("confirmation_request").is_some()).expect("a question");
    (first["id"].as_str().unwrap().to_owned(), first["contextId"].as_str().unwrap().to_owned(), call)
}

#[track_caller]
fn states(items: &[Item]) -> Vec<String> {
    let mut states: Vec<String> = items.iter().map(Item::state).collect();
    states.dedup();
    states
}

#[test]
fn a_turn_with_a_question_in_every_way() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let http = &served.http;
    for way in Way::ALL {
        let sent = way.result(http, &Wish::Send(Said::text("good morning").dev()));
        assert_eq!(state(&sent), "completed", "{way:?}: {sent}");
        assert!(text(&sent["status"]["message"]).starts_with("You said"), "{way:?}: {sent}");

        let items = way.stream(http, &Wish::Stream(Said::text("write hello to a.txt").dev()));
        assert_eq!(states(&items), ["submitted", "working", "input-required"], "{way:?}: {items:#?}");
        let (task, context, call) = asked(&items);
        assert_eq!(state(&way.result(http, &Wish::Get(task.clone(), Some(0)))), "input-required");
        assert_eq!(scene.file("a.txt"), None);
        let yes = Said::data(&answer(&call, "proceed_once")).task(&task).context(&context);
        let rest = way.stream(http, &Wish::Stream(yes));
        assert_eq!(states(&rest), ["working", "completed"], "{way:?}: {rest:#?}");
        let calls: Vec<Value> = rest.iter().filter_map(|item| item.data()?.get("status").cloned()).collect();
        assert_eq!(calls, ["EXECUTING", "SUCCEEDED"], "{way:?}");
        assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"), "{way:?}");
        std::fs::remove_file(scene.scratch.path("a.txt")).unwrap();

        let all = way.result(http, &Wish::Get(task.clone(), None));
        let history = all["history"].as_array().unwrap();
        assert_eq!(text(&history[0]), "write hello to a.txt", "{way:?}: {all:#}");
        assert!(history.len() > 2, "{way:?}: {all:#}");
        let last = way.result(http, &Wish::Get(task.clone(), Some(1)));
        assert_eq!(last["history"], json!([history.last().unwrap()]), "{way:?}");
    }
    served.stop(&scene);
}

/// The frames of a binding have the same cursors in any other, and only those after a cursor are sent again.
#[test]
fn a_stream_is_resumed_in_every_way() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let items = Way::Rest10.stream(&served.http, &Wish::Stream(Said::text("slow 3").dev()));
    let task = items[0].json["id"].as_str().unwrap();
    let cursors: Vec<&str> = items.iter().map(|item| item.cursor.as_str()).collect();
    assert!(cursors.len() > 4 && cursors.iter().all(|cursor| !cursor.is_empty()), "{cursors:?}");
    let http = served.http.clone().with("Last-Event-ID", cursors[1]);
    for way in Way::ALL {
        let mut response = way.ask(&http, "", &Wish::Subscribe(task.to_owned()));
        for expected in &items[2..] {
            let item = way.item(response.event().unwrap().unwrap());
            assert_eq!((&item.cursor, item.state()), (&expected.cursor, expected.state()), "{way:?}");
        }
    }
    for path in [format!("/tasks/{task}:subscribe"), format!("/v1/tasks/{task}:subscribe")] {
        let event = http.get(&path).unwrap().event().unwrap().unwrap();
        assert_eq!(event.id.as_deref(), Some(cursors[2]), "GET {path}");
        let snapshot = served.http.get(&path).unwrap().event().unwrap().unwrap();
        assert_eq!(snapshot.json["task"]["id"], task, "without a cursor the task comes first");
    }
    served.stop(&scene);
}

#[test]
fn a_running_task_is_cancelled_in_every_way() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    for way in Way::ALL {
        let begun = way.result(&served.http, &Wish::Send(Said::text("slow 300").at_once()));
        assert!(["submitted", "working"].contains(&state(&begun).as_str()), "{way:?}: {begun}");
        let task = begun["id"].as_str().unwrap().to_owned();
        assert_eq!(state(&way.result(&served.http, &Wish::Cancel(task.clone()))), "canceled", "{way:?}");
        assert_eq!(state(&served.task(&task)), "canceled");
    }
    served.stop(&scene);
}

/// Refusals of the shared session: settled 409, an observer 403, not offered 400.
#[test]
fn who_answers_late_or_may_not_answer_is_refused_in_every_way() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let http = &served.http;
    for way in Way::ALL {
        let items = way.stream(http, &Wish::Stream(Said::text("write hello to a.txt").dev()));
        let (task, _, call) = asked(&items);
        let says = |option: &str| Wish::Send(Said::data(&answer(&call, option)).task(&task));
        way.refused(http, "role=observer", &says("proceed_once"), OBSERVER);
        let refused = way.refused(http, "", &says("proceed_with_care"), INVALID);
        assert!(refused.to_string().contains("proceed_once"), "it says what was offered: {refused}");
        assert_eq!(scene.file("a.txt"), None);
        assert_eq!(state(&way.result(http, &says("cancel"))), "completed", "{way:?}");
        let late = way.refused(http, "", &says("proceed_once"), SETTLED);
        assert!(late.to_string().contains("selectedOptionId"), "{way:?}: {late}");
        assert_eq!(scene.file("a.txt"), None);
        way.refused(http, "role=observer", &Wish::Send(Said::text("hi")), OBSERVER);
        way.refused(http, "", &Wish::Get("mine".to_owned(), None), NOT_FOUND);
    }
    served.stop(&scene);
}

#[test]
fn the_media_type_is_the_one_that_a_client_mentions() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let body = Way::Rest10.said(&Said::text("hi")).to_string();
    let plain = "application/json";
    let new = "application/a2a+json";
    for (content, accept, expected) in [
        (plain, None, plain),
        ("application/json; charset=utf-8", Some("*/*"), plain),
        (new, None, new),
        (plain, Some("application/a2a+json, application/json;q=0.9"), new),
    ] {
        let mut http = served.http.clone().with("Content-Type", content);
        http = accept.map_or(http.clone(), |accept| http.with("Accept", accept));
        let answered = http.send("POST", "/message:send", body.as_bytes()).unwrap();
        assert_eq!((answered.status, answered.header("Content-Type")), (200, Some(expected)), "{content} {accept:?}");
        let refused = http.get("/tasks/none").unwrap();
        assert_eq!((refused.status, refused.header("Content-Type")), (404, Some(expected)), "{content} {accept:?}");
        let stream = http.send("POST", "/message:stream", body.as_bytes()).unwrap();
        assert_eq!(stream.header("Content-Type"), Some("text/event-stream"));
    }
    let http = served.http.clone().with("X-A2A-Extensions", URI);
    let answered = http.get("/tasks").unwrap();
    assert_eq!((answered.status, answered.header("X-A2A-Extensions")), (200, Some(URI)), "the extension is echoed");
    served.stop(&scene);
}

#[test]
fn other_paths_stay_what_they_are() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let status = |verb: &str, path: &str| served.http.send(verb, path, b"").unwrap().status;
    for (verb, path, expected) in [
        ("GET", "/healthz", 200),
        ("GET", "/listCommands", 200),
        ("GET", "/ws", 426),
        ("GET", "/acp", 426),
        ("GET", "/nothing", 404),
        ("GET", "/v1", 404),
        ("POST", "/v1/nothing", 404),
        ("GET", "/message:send", 405),
        ("DELETE", "/tasks", 405),
        ("POST", "/v1/tasks/x", 405),
        ("GET", "/%ff/tasks", 404),
        ("GET", "/acme/tasks", 200),
        ("GET", "/extendedAgentCard", 200),
        ("GET", "/v1/card", 200),
    ] {
        assert_eq!(status(verb, path), expected, "{verb} {path}");
    }
    assert_eq!(served.http.send("PUT", "/tasks/x:subscribe", b"").unwrap().header("Allow"), Some("POST, GET"));
    served.stop(&scene);
}

/// An agent card of 0.3 on HTTP+JSON has the shapes of 1.0 where its gRPC message has them.
#[test]
fn the_extended_card_in_every_way() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    for way in Way::ALL {
        let card = way.result(&served.http, &Wish::Card);
        assert_eq!((&card["name"], card["capabilities"]["streaming"].as_bool()), (&json!("Multitap"), Some(true)));
        assert_eq!(card.get("protocolVersion").is_some(), way.is_0_3(), "{way:?}: {card:#}");
        assert_eq!(card.get("supportedInterfaces").is_some(), !way.is_0_3(), "{way:?}: {card:#}");
    }
    served.stop(&scene);
}

#[test]
fn finished_tasks_take_no_message_in_any_way() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let over = served.send(&Said::text("hi"))["id"].as_str().unwrap().to_owned();
    for way in Way::ALL {
        way.refused(&served.http, "", &Wish::Send(Said::text("again").task(&over)), UNSUPPORTED);
        way.refused(&served.http, "", &Wish::Subscribe(over.clone()), UNSUPPORTED);
        way.refused(&served.http, "", &Wish::Cancel(over.clone()), NOT_CANCELABLE);
    }
    served.stop(&scene);
}

impl Served {
    /// The tasks that are listed, by any binding that has a list.
    #[track_caller]
    pub(super) fn listed(&self, way: Way, query: &[(&'static str, &str)]) -> Value {
        way.result(&self.http, &Wish::List(query.iter().map(|(key, value)| (*key, (*value).to_owned())).collect()))
    }
}

#[test]
fn tasks_are_listed_in_every_way() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let first = served.send(&Said::text("hello"));
    let context = first["contextId"].as_str().unwrap();
    let second = served.send(&Said::text("hello").context(context));
    for way in [Way::Rpc10, Way::Rest03, Way::Rest10] {
        let one = served.listed(way, &[("contextId", context), ("pageSize", "1"), ("historyLength", "1")]);
        assert_eq!((&one["tasks"][0]["id"], &one["totalSize"]), (&second["id"], &json!(2)), "{way:?}: {one:#}");
        assert_eq!(one["tasks"][0]["history"].as_array().unwrap().len(), 1, "{way:?}");
        let token = one["nextPageToken"].as_str().unwrap();
        let next = served.listed(way, &[("contextId", context), ("pageSize", "1"), ("pageToken", token)]);
        assert_eq!(next["tasks"][0]["id"], first["id"], "{way:?}");
        assert_eq!(next["nextPageToken"], "", "{way:?}: the last page says so");
        let none = served.listed(way, &[("status", "TASK_STATE_WORKING")]);
        assert_eq!((none["tasks"].as_array().map(Vec::len), &none["totalSize"]), (Some(0), &json!(0)), "{way:?}");
        way.refused(&served.http, "", &Wish::List(vec![("pageSize", "0".to_owned())]), INVALID);
    }
    served.stop(&scene);
}

/// What is no request at all has the same codes as on JSON-RPC, with the statuses of HTTP+JSON.
#[test]
fn what_is_no_request_is_refused_before_anything_is_looked_at() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let many = format!("{{\"message\":[{}0]}}", "[],".repeat(260_000));
    let json = ("Content-Type", "application/json");
    for (way, path) in [(Way::Rest03, "/v1/message:send"), (Way::Rest10, "/message:send")] {
        for (what, headers, body, fault) in [
            ("another content type", &[("Content-Type", "text/plain")][..], "hello", CONTENT_TYPE),
            ("no content type", &[], "{}", CONTENT_TYPE),
            ("no JSON", &[json], "{", Fault(-32700, 400, None)),
            ("too many values", &[json], &many, Fault(-32600, 400, None)),
            ("a list", &[json], "[]", INVALID),
            ("nothing", &[], "", INVALID),
            ("no message", &[json], "{}", INVALID),
            ("a future version", &[json, ("A2A-Version", "99.0")], "{}", VERSION),
        ] {
            let http = headers.iter().fold(served.http.clone(), |http, (name, value)| http.with(name, value));
            way.check_fault(http.send("POST", path, body.as_bytes()).unwrap(), fault, what);
        }
        let wish = Wish::Get("none".to_owned(), None);
        way.refused(&served.http, "A2A-Version=99.0", &wish, VERSION);
        way.refused(&served.http, "A2A-Version=1.0", &wish, NOT_FOUND);
        way.refused(&served.http.clone().with("Last-Event-ID", "last"), "", &wish, INVALID);
    }
    let card = served.http.get("/.well-known/agent-card.json?A2A-Version=1.0").unwrap().json().unwrap();
    assert_eq!(card.get("protocolVersion"), None, "{card:#}");
    served.stop(&scene);
}

/// A host sees the sessions in its own folders only; those of other hosts with the same log do not count either.
#[test]
fn tasks_of_other_folders_are_neither_listed_nor_counted() {
    let scene = Scene::bare();
    let [one, other] = ["one", "other"].map(|name| scene.scratch.path(name).display().to_string());
    for folder in [&one, &other] {
        std::fs::create_dir(folder).unwrap();
    }
    let host = |folder: &String| scene.a2a(&["--root", folder]);
    let say = |served: &Served, folder: &String| {
        served.send(&Said::text("hello").set(URI, json!({ "workspace_path": folder })))["id"].clone()
    };
    let served = host(&one);
    let hidden = served.send(&Said::text("hello").set(URI, json!({ "workspace_path": one })));
    say(&served, &one);
    served.stop(&scene);
    let served = host(&other);
    let task = say(&served, &other);
    for way in [Way::Rpc10, Way::Rest03, Way::Rest10] {
        let page = served.listed(way, &[("pageSize", "1")]);
        assert_eq!((&page["tasks"][0]["id"], &page["totalSize"]), (&task, &json!(1)), "{way:?}: {page:#}");
        assert_eq!(page["nextPageToken"], "", "{way:?}");
        let page = served.listed(way, &[("contextId", hidden["contextId"].as_str().unwrap())]);
        assert_eq!((page["tasks"].as_array().map(Vec::len), &page["totalSize"]), (Some(0), &json!(0)), "{way:?}");
    }
    served.stop(&scene);
}

/// Push configs by their paths, in the form of each dialect.
#[test]
fn webhooks_have_paths_in_both_dialects() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let task = served.send(&Said::text("hello").dev())["id"].as_str().unwrap().to_owned();
    let hook = json!({ "id": "h", "url": "http://127.0.0.1:9/" });
    for (root, body, id) in [
        ("/v1", json!({ "config": { "pushNotificationConfig": hook } }), "/pushNotificationConfig/id"),
        ("", hook, "/id"),
    ] {
        let path = format!("{root}/tasks/{task}/pushNotificationConfigs");
        let one = format!("{path}/h");
        let created = served.http.post(&path, &body).unwrap().json().unwrap();
        assert_eq!(created.pointer(id), Some(&json!("h")), "{created}");
        let got = served.http.get(&one).unwrap().json().unwrap();
        assert_eq!(got.pointer(id), Some(&json!("h")), "{got}");
        if root == "/v1" {
            assert_eq!(got["name"], format!("tasks/{task}/pushNotificationConfigs/h"), "{got}");
        }
        let listed = served.http.get(&path).unwrap().json().unwrap();
        assert_eq!((listed["configs"].as_array().map(Vec::len), &listed["nextPageToken"]), (Some(1), &json!("")));
        let deleted = served.http.send("DELETE", &one, b"").unwrap();
        assert_eq!((deleted.status, deleted.json().unwrap()), (200, json!({})), "{root}");
        let listed = served.http.get(&path).unwrap().json().unwrap();
        assert_eq!(listed["configs"], json!([]), "{root}: {listed}");
        assert_eq!(served.http.get(&one).unwrap().status, 404, "{root}");
    }
    served.stop(&scene);
}
