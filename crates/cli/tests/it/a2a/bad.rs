//! Requests that are wrong: each gets its own code in its own dialect's shape, with the id it came with, and changes
//! nothing.

use multitap_testkit::http::HttpClient;
use serde_json::{Value, json};

use super::{Said, Served, URI, answer, asked, ids};
use crate::scene::Scene;

/// The shape errors have.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shape {
    /// Data as it is.
    V03,
    /// Data as a list of typed details.
    V10,
}

/// A request as it is sent.
struct Bad<'a> {
    name: &'a str,
    headers: &'a [(&'a str, &'a str)],
    body: Vec<u8>,
    code: i64,
    /// The id that comes back.
    id: Value,
    shape: Shape,
}

impl Bad<'_> {
    fn check(&self, http: &HttpClient) {
        let mut http = http.clone().with("Content-Type", "application/json");
        for (name, value) in self.headers {
            http = http.with(name, value);
        }
        let response = http.send("POST", "/", &self.body).unwrap();
        assert_eq!(response.status, 200, "{}", self.name);
        let answer =
            if response.is_stream() { response.events().unwrap().remove(0).json } else { response.json().unwrap() };
        let error = &answer["error"];
        assert_eq!(error["code"], self.code, "{}: {answer}", self.name);
        assert_eq!(answer["id"], self.id, "{}: {answer}", self.name);
        assert_eq!((&answer["jsonrpc"], answer.get("result")), (&json!("2.0"), None), "{}", self.name);
        assert!(error["message"].as_str().unwrap().len() > 5, "{}: {answer}", self.name);
        match (self.shape, error.get("data")) {
            (Shape::V03, data) => assert!(!data.is_some_and(Value::is_array), "{}: {answer}", self.name),
            (Shape::V10, Some(data)) => {
                let typed = data.as_array().unwrap().iter().all(|detail| detail["@type"].is_string());
                assert!(typed, "{}: {answer}", self.name);
            }
            // Errors of JSON-RPC itself need none; those of A2A have their reason.
            (Shape::V10, None) => assert!(self.code < -32099, "{}: {answer}", self.name),
        }
    }
}

/// How much there is: tasks, and the last event of that one's log.
fn size(served: &Served, task: &str) -> (Value, String) {
    let snapshot = served.open("tasks/resubscribe", &json!({ "id": task })).next();
    let cursor = snapshot.json["metadata"][super::OURS]["cursor"].as_str().unwrap().to_owned();
    (served.result("ListTasks", &json!({}))["totalSize"].clone(), cursor)
}

/// A call with that id.
fn call(id: &Value, method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string().into_bytes()
}

#[test]
fn what_is_no_request() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let task = served.send(&Said::text("hi").dev())["id"].as_str().unwrap().to_owned();
    let before = size(&served, &task);
    let good = json!({ "jsonrpc": "2.0", "id": 7, "method": "message/send", "params": Said::text("hi").dev().0 });
    let with = |key: &str, value: Value| {
        let mut request = good.clone();
        request[key] = value;
        request.to_string()
    };
    let without = |key: &str| {
        let mut request = good.clone();
        request.as_object_mut().unwrap().remove(key);
        request.to_string()
    };
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"params\":{}1{}}}",
        "[".repeat(9000),
        "]".repeat(9000)
    );
    let text = [("Content-Type", "text/plain")];
    for (name, headers, body, code, id) in [
        ("another content type", &text[..], good.to_string(), -32005, Value::Null),
        ("another content type and no JSON", &text, "hello".to_owned(), -32005, Value::Null),
        ("a form", &[("Content-Type", "application/x-www-form-urlencoded")], good.to_string(), -32005, Value::Null),
        ("nothing", &[], String::new(), -32700, Value::Null),
        ("no JSON", &[], "{".to_owned(), -32700, Value::Null),
        ("two values", &[], "{} {}".to_owned(), -32700, Value::Null),
        ("deep nesting", &[], deep, -32700, Value::Null),
        ("a batch", &[], json!([good]).to_string(), -32600, Value::Null),
        ("an empty batch", &[], "[]".to_owned(), -32600, Value::Null),
        ("a number", &[], "5".to_owned(), -32600, Value::Null),
        ("no id", &[], without("id"), -32600, Value::Null),
        (
            "no id and wrong params",
            &[],
            json!({"jsonrpc": "2.0", "method": "message/send", "params": {}}).to_string(),
            -32602,
            Value::Null,
        ),
        (
            "no id and no such method",
            &[],
            json!({"jsonrpc": "2.0", "method": "tasks/send"}).to_string(),
            -32601,
            Value::Null,
        ),
        ("an object for an id", &[], with("id", json!({})), -32600, Value::Null),
        ("a fraction for an id", &[], with("id", json!(1.5)), -32600, Value::Null),
        ("no version", &[], without("jsonrpc"), -32600, json!(7)),
        ("another version", &[], with("jsonrpc", json!("1.0")), -32600, json!(7)),
        ("no method", &[], without("method"), -32600, json!(7)),
        ("a number for a method", &[], with("method", json!(5)), -32601, json!(7)),
        ("nothing for a method", &[], with("method", Value::Null), -32600, json!(7)),
        ("an object for a method", &[], with("method", good.clone()), -32601, json!(7)),
        ("an unknown method", &[], with("method", json!("tasks/send")), -32601, json!(7)),
        ("a list of params", &[], with("params", json!([])), -32602, json!(7)),
        ("params in words", &[], with("params", json!("hi")), -32602, json!(7)),
        ("no params", &[], without("params"), -32602, json!(7)),
        ("an old version", &[("A2A-Version", "0.1")], good.to_string(), -32009, json!(7)),
        ("a future version", &[("A2A-Version", "99.0")], good.to_string(), -32009, json!(7)),
        ("a version that is none", &[("A2A-Version", "one")], good.to_string(), -32009, json!(7)),
    ] {
        Bad { name, headers, body: body.into_bytes(), code, id, shape: Shape::V03 }.check(&served.http);
    }
    let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}".to_vec();
    Bad { name: "no UTF-8", headers: &[], body: bytes, code: -32700, id: Value::Null, shape: Shape::V03 }
        .check(&served.http);
    let huge = vec![b' '; 17 * 1024 * 1024];
    let response = served.http.clone().with("Content-Type", "application/json").send("POST", "/", &huge).unwrap();
    assert_eq!(response.status, 413);
    assert!(response.json().unwrap()["error"]["message"].as_str().unwrap().contains("16777216"));
    assert_eq!(size(&served, &task), before, "nothing changed");
    served.stop(&scene);
}

/// Each in 0.3 and in 1.0, with an id of each type.
#[test]
fn what_cannot_be_done() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let other = served.send(&Said::text("hi").dev());
    let core = served.send(&Said::text("hi"));
    let frames = served.stream(&Said::text("write hello to a.txt").dev());
    let (task, context) = ids(&frames);
    let pending = asked(&frames);
    let before = size(&served, &task);
    let at = |said: Said| said.task(&task).context(&context);
    let decide = |key: &str, value: Value| {
        let mut decision = answer(pending, "proceed_once");
        decision[key] = value;
        at(Said::data(&decision))
    };
    let quoted = |correlation: &str| {
        at(Said::data(&answer(pending, "proceed_once"))).set(URI, json!({ "correlationId": correlation }))
    };
    let missing = "task-01a00000-0000-7000-8000-00000000000a";
    for (name, code, said) in [
        ("a task of the client's own making", -32001, Said::text("hi").task("mine")),
        ("a task that there is not", -32001, Said::text("hi").task(missing)),
        ("a context that there is not", -32602, Said::text("hi").context("mine")),
        (
            "a task of another context",
            -32602,
            Said::text("hi").task(&task).context(other["contextId"].as_str().unwrap()),
        ),
        ("a task that is over", -32004, Said::text("hi").task(core["id"].as_str().unwrap())),
        ("nothing to do", -32602, at(Said::text("  "))),
        ("no parts", -32602, at(Said::parts(&json!([])))),
        ("a number for text", -32602, at(Said::parts(&json!([{ "kind": "text", "text": 5 }])))),
        ("a part of no kind", -32602, at(Said::parts(&json!([{ "kind": "text" }])))),
        ("an option that is not offered", -32602, decide("selected_option_id", json!("proceed_with_care"))),
        ("no option", -32602, decide("selected_option_id", Value::Null)),
        ("true for an option", -32602, decide("selected_option_id", json!(true))),
        ("another tool call", -32602, decide("tool_call_id", json!("call-0"))),
        ("a number for a tool call", -32602, decide("tool_call_id", json!(5))),
        ("new content that is no text", -32602, decide("file_details", json!({ "new_content": 5 }))),
        ("another correlation id", -32602, quoted("question-0")),
        ("a busy word that is none", -32602, at(Said::text("hi")).set(super::OURS, json!({ "whenBusy": "now" }))),
    ] {
        for (id, method) in [(json!(7), "message/send"), (json!("seven"), "message/stream")] {
            let body = call(&id, method, &said.0);
            Bad { name, headers: &[], body, code, id, shape: Shape::V03 }.check(&served.http);
        }
        let v1 = [("A2A-Version", "1.0")];
        for (id, method) in [(json!(-7), "SendMessage"), (json!(""), "SendStreamingMessage")] {
            let body = call(&id, method, &said.v1());
            Bad { name, headers: &v1, body, code, id, shape: Shape::V10 }.check(&served.http);
        }
    }
    let with = |said: &Said, key: &str, value: Value| {
        let mut params = said.0.clone();
        params["message"][key] = value;
        params
    };
    let said = at(Said::text("hi"));
    let video = json!([{ "kind": "video", "url": "x" }]);
    let pdf = json!([{ "kind": "file", "file": { "bytes": "JVBERi0=", "mimeType": "application/pdf" } }]);
    let base64 = json!([{ "kind": "file", "file": { "bytes": "%", "mimeType": "image/png" } }]);
    let by_uri = |uri: &str, mime: &str| json!([{ "kind": "file", "file": { "uri": uri, "mimeType": mime } }]);
    let mut push = said.0.clone();
    push["configuration"] = json!({ "pushNotificationConfig": { "url": "http://10.0.0.1/" } });
    for (name, code, method, params) in [
        ("an agent's words", -32602, "message/send", with(&said, "role", json!("agent"))),
        ("a role that is none", -32602, "message/send", with(&said, "role", json!("root"))),
        ("no id of the message", -32602, "message/send", with(&said, "messageId", Value::Null)),
        ("a kind of part that is none", -32602, "message/send", with(&said, "parts", video)),
        ("a file that agents do not take", -32005, "message/send", with(&said, "parts", pdf)),
        ("a file that is no base64", -32602, "message/send", with(&said, "parts", base64)),
        (
            "an image elsewhere",
            -32602,
            "message/send",
            with(&said, "parts", by_uri("https://a.invalid/b", "image/png")),
        ),
        ("an image by its name", -32602, "message/send", with(&said, "parts", by_uri("http://127.0.0.1:9/b.png", ""))),
        ("a file outside", -32602, "message/send", with(&said, "parts", by_uri("file:///etc/hostname", "image/png"))),
        ("broken data", -32602, "message/send", with(&said, "parts", by_uri("data:image/png;base64,*", ""))),
        ("to be called back in a private network", -32602, "message/send", push),
        ("no task", -32001, "tasks/get", json!({ "id": "mine" })),
        ("no task to cancel", -32001, "tasks/cancel", json!({ "id": "mine" })),
        ("no task to follow", -32001, "tasks/resubscribe", json!({ "id": "mine" })),
        ("a number for a task", -32602, "tasks/get", json!({ "id": 5 })),
        ("less than no history", -32602, "tasks/get", json!({ "id": task, "historyLength": -1 })),
        ("no webhook", -32001, "tasks/pushNotificationConfig/get", json!({ "id": task })),
        ("an idle task to cancel", -32002, "tasks/cancel", json!({ "id": other["id"] })),
    ] {
        let body = call(&json!(7), method, &params);
        Bad { name, headers: &[], body, code, id: json!(7), shape: Shape::V03 }.check(&served.http);
    }
    for (name, code, method, params) in [
        ("no task", -32001, "GetTask", json!({ "id": "mine" })),
        ("no task to follow", -32001, "SubscribeToTask", json!({ "id": "mine" })),
        ("an empty page", -32602, "ListTasks", json!({ "pageSize": 0 })),
        ("too long a page", -32602, "ListTasks", json!({ "pageSize": 101 })),
        ("a page after none", -32602, "ListTasks", json!({ "pageToken": "zzz" })),
        ("a state that is none", -32602, "ListTasks", json!({ "status": "resting" })),
        ("a time that is none", -32602, "ListTasks", json!({ "statusTimestampAfter": "now" })),
    ] {
        let body = call(&json!("seven"), method, &params);
        Bad { name, headers: &[], body, code, id: json!("seven"), shape: Shape::V10 }.check(&served.http);
    }
    let resume = call(&json!(7), "tasks/resubscribe", &json!({ "id": task }));
    let cursor = [("Last-Event-ID", "last")];
    Bad { name: "no cursor", headers: &cursor, body: resume, code: -32602, id: json!(7), shape: Shape::V03 }
        .check(&served.http);
    assert_eq!(size(&served, &task), before, "nothing changed");
    assert_eq!(scene.file("a.txt"), None);
    // And with the right correlation id it is done.
    let correlation = frames.last().unwrap().json["metadata"][URI]["correlationId"].as_str().unwrap();
    assert_eq!(served.send(&quoted(correlation))["status"]["state"], "completed");
    assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"));
    served.stop(&scene);
}

#[test]
fn what_is_refused_opens_no_session() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--max-sessions", "1"]);
    let said = Said::text("hi");
    let nowhere = Said::data(&json!({ "tool_call_id": "call-0", "selected_option_id": "proceed_once" }));
    let help = json!({ "command_path": ["help"], "args": "" });
    for (name, path, code, method, params) in [
        ("an observer's prompt", "/?role=observer", -32012, "message/send", &said.0),
        ("an observer's command", "/?role=observer", -32012, "command/execute", &help),
        ("an answer to nobody", "/", -32602, "message/send", &nowhere.0),
        ("an observer's answer to nobody", "/?role=observer", -32602, "message/send", &nowhere.0),
        (
            "a busy word that is none",
            "/",
            -32602,
            "message/send",
            &said.clone().set(super::OURS, json!({ "whenBusy": 1 })).0,
        ),
    ] {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = served.http.post(path, &request).unwrap().json().unwrap();
        assert_eq!(answer["error"]["code"], code, "{name}: {answer}");
    }
    let shipped = served.http.post("/executeCommand?role=observer", &json!({ "command": "help" })).unwrap();
    assert_eq!(shipped.status, 403);
    // The one place is still free; and whoever looks on does not wake what rests.
    let context = served.send(&said)["contextId"].as_str().unwrap().to_owned();
    served.stop(&scene);
    let served = scene.a2a(&[]);
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "commands/get", "params": { "contextId": context } });
    let answer = served.http.post("/?role=observer", &request).unwrap().json().unwrap();
    assert_eq!(answer["error"]["code"], -32012, "{answer}");
    assert_eq!(served.send(&said.context(&context))["status"]["state"], "completed");
    served.stop(&scene);
}
