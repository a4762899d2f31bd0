//! The same request in each dialect and binding, and what the four answers have in common.

use multitap_testkit::http::{HttpClient, Response, SseEvent};
use serde_json::{Map, Value, json};

use super::Said;

/// A dialect and a binding of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Way {
    Rpc03,
    Rpc10,
    Rest03,
    Rest10,
}

/// What a client wants, in any of them.
#[derive(Debug, Clone)]
pub(super) enum Wish {
    Send(Said),
    Stream(Said),
    Get(String, Option<u32>),
    Cancel(String),
    Subscribe(String),
    /// With the parameters of 1.0. JSON-RPC of 0.3 has none.
    List(Vec<(&'static str, String)>),
    Card,
}

/// An error: its code on JSON-RPC, and its status and reason on HTTP+JSON.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fault(pub(super) i64, pub(super) u16, pub(super) Option<&'static str>);

pub(super) const INVALID: Fault = Fault(-32602, 400, None);
pub(super) const NOT_FOUND: Fault = Fault(-32001, 404, Some("TASK_NOT_FOUND"));
pub(super) const NOT_CANCELABLE: Fault = Fault(-32002, 400, Some("TASK_NOT_CANCELABLE"));
pub(super) const UNSUPPORTED: Fault = Fault(-32004, 400, Some("UNSUPPORTED_OPERATION"));
pub(super) const CONTENT_TYPE: Fault = Fault(-32005, 400, Some("CONTENT_TYPE_NOT_SUPPORTED"));
pub(super) const VERSION: Fault = Fault(-32009, 400, Some("VERSION_NOT_SUPPORTED"));
pub(super) const SETTLED: Fault = Fault(-32011, 409, Some("QUESTION_SETTLED"));
pub(super) const OBSERVER: Fault = Fault(-32012, 403, Some("NOT_CONTROLLER"));

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::Rpc03, Self::Rpc10, Self::Rest03, Self::Rest10];

    fn is_rest(self) -> bool {
        matches!(self, Self::Rest03 | Self::Rest10)
    }

    pub(super) fn is_0_3(self) -> bool {
        matches!(self, Self::Rpc03 | Self::Rest03)
    }

    /// The answer as it comes. `query` is added to the address.
    #[track_caller]
    pub(super) fn ask(self, http: &HttpClient, query: &str, wish: &Wish) -> Response {
        if self.is_rest() {
            let (verb, path, body) = self.rest(wish);
            let join = if path.contains('?') { "&" } else { "?" };
            let path = if query.is_empty() { path } else { format!("{path}{join}{query}") };
            let body = body.map(|body| body.to_string()).unwrap_or_default();
            let http = if body.is_empty() { http.clone() } else { as_json(http) };
            return http.send(verb, &path, body.as_bytes()).unwrap();
        }
        let (method, params) = self.rpc(wish);
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let path = if query.is_empty() { "/".to_owned() } else { format!("/?{query}") };
        as_json(http).send("POST", &path, body.to_string().as_bytes()).unwrap()
    }

    fn rpc(self, wish: &Wish) -> (&'static str, Value) {
        let (old, new, params) = match wish {
            Wish::Send(said) => ("message/send", "SendMessage", self.said(said)),
            Wish::Stream(said) => ("message/stream", "SendStreamingMessage", self.said(said)),
            Wish::Get(id, length) => ("tasks/get", "GetTask", json!({ "id": id, "historyLength": length })),
            Wish::Cancel(id) => ("tasks/cancel", "CancelTask", json!({ "id": id })),
            Wish::Subscribe(id) => ("tasks/resubscribe", "SubscribeToTask", json!({ "id": id })),
            Wish::List(given) => ("ListTasks", "ListTasks", typed(given)),
            Wish::Card => ("agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard", json!({})),
        };
        (if self.is_0_3() { old } else { new }, params)
    }

    fn rest(self, wish: &Wish) -> (&'static str, String, Option<Value>) {
        let root = if self.is_0_3() { "/v1" } else { "" };
        match wish {
            Wish::Send(said) => ("POST", format!("{root}/message:send"), Some(self.said(said))),
            Wish::Stream(said) => ("POST", format!("{root}/message:stream"), Some(self.said(said))),
            Wish::Get(id, None) => ("GET", format!("{root}/tasks/{id}"), None),
            Wish::Get(id, Some(length)) => ("GET", format!("{root}/tasks/{id}?historyLength={length}"), None),
            Wish::Cancel(id) => ("POST", format!("{root}/tasks/{id}:cancel"), None),
            Wish::Subscribe(id) => ("POST", format!("{root}/tasks/{id}:subscribe"), None),
            Wish::List(given) => {
                let query: Vec<String> = given.iter().map(|(key, value)| format!("{key}={value}")).collect();
                ("GET", format!("{root}/tasks?{}", query.join("&")), None)
            }
            Wish::Card if self.is_0_3() => ("GET", "/v1/card".to_owned(), None),
            Wish::Card => ("GET", "/extendedAgentCard".to_owned(), None),
        }
    }

    /// A message as this way has it.
    pub(super) fn said(self, said: &Said) -> Value {
        match self {
            Self::Rpc03 => said.0.clone(),
            Self::Rpc10 | Self::Rest10 => {
                let mut params = said.v1();
                let at_once = params["configuration"]["blocking"] == false;
                params["configuration"] = json!({ "returnImmediately": at_once });
                params
            }
            Self::Rest03 => {
                let mut body = said.v1();
                let mut message = body["message"].take();
                let parts = message.as_object_mut().unwrap().remove("parts").unwrap_or_default();
                message["content"] = parts.as_array().into_iter().flatten().map(grpc_part).collect();
                body["message"] = message;
                body["configuration"]["blocking"] = (body["configuration"]["blocking"] != false).into();
                body
            }
        }
    }

    /// What JSON-RPC would have as its `result`.
    #[track_caller]
    pub(super) fn result(self, http: &HttpClient, wish: &Wish) -> Value {
        let response = self.ask(http, "", wish);
        let status = response.status;
        let body = response.json().unwrap();
        assert_eq!(status, 200, "{self:?} {wish:?}: {body}");
        let result = if self.is_rest() { body } else { body["result"].clone() };
        ["task", "message", "msg"].iter().find_map(|key| result.get(*key)).unwrap_or(&result).clone()
    }

    /// The items of a stream, until it ends.
    #[track_caller]
    pub(super) fn stream(self, http: &HttpClient, wish: &Wish) -> Vec<Item> {
        let response = self.ask(http, "", wish);
        assert!(response.is_stream(), "{self:?} {wish:?}: {}", response.text().unwrap());
        response.events().unwrap().into_iter().map(|event| self.item(event)).collect()
    }

    #[track_caller]
    pub(super) fn item(self, event: SseEvent) -> Item {
        assert_eq!(event.name, None, "{}", event.data);
        let json = if self.is_rest() { event.json } else { event.json["result"].clone() };
        let kinds = ["task", "msg", "message", "statusUpdate", "artifactUpdate"];
        let inner = kinds.iter().find_map(|key| json.get(*key)).unwrap_or(&json).clone();
        Item { cursor: event.id.unwrap_or_default(), json: inner }
    }

    /// Is refused with that error, in the shape that this way has.
    #[track_caller]
    pub(super) fn refused(self, http: &HttpClient, query: &str, wish: &Wish, fault: Fault) -> Value {
        self.check_fault(self.ask(http, query, wish), fault, &format!("{self:?} {query} {wish:?}"))
    }

    #[track_caller]
    pub(super) fn check_fault(self, response: Response, Fault(code, status, reason): Fault, what: &str) -> Value {
        let found = response.status;
        let body =
            if response.is_stream() { response.events().unwrap().remove(0).json } else { response.json().unwrap() };
        let error = body.get("error").unwrap_or(&body);
        assert!(error["message"].as_str().is_some_and(|text| text.len() > 5), "{what}: {body}");
        let info = |details: &str| {
            let list = error[details].as_array().cloned().unwrap_or_default();
            list.iter().find_map(|detail| detail["reason"].as_str().map(str::to_owned))
        };
        match self {
            Self::Rpc03 => assert_eq!((found, error["code"].as_i64()), (200, Some(code)), "{what}: {body}"),
            Self::Rpc10 => {
                assert_eq!((found, error["code"].as_i64()), (200, Some(code)), "{what}: {body}");
                assert_eq!(info("data").as_deref(), reason, "{what}: {body}");
            }
            Self::Rest03 => assert_eq!((found, body["code"].as_i64()), (status, Some(code)), "{what}: {body}"),
            Self::Rest10 => {
                assert_eq!((found, error["code"].as_u64()), (status, Some(status.into())), "{what}: {body}");
                assert_eq!(info("details").as_deref(), reason, "{what}: {body}");
                assert!(error["status"].is_string(), "{what}: {body}");
            }
        }
        body
    }
}

/// An item of a stream.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) cursor: String,
    pub(super) json: Value,
}

impl Item {
    pub(super) fn state(&self) -> String {
        state(&self.json)
    }

    /// The first data of its message.
    pub(super) fn data(&self) -> Option<Value> {
        datum(&self.json["status"]["message"])
    }
}

fn datum(message: &Value) -> Option<Value> {
    let parts = message.get("parts").or(message.get("content"))?.as_array()?;
    let data = parts.first()?.get("data")?;
    Some(data.get("data").unwrap_or(data).clone())
}

/// The state of a task or an update, in the words of 0.3.
pub(super) fn state(json: &Value) -> String {
    let word = json["status"]["state"].as_str().unwrap_or_default();
    let word = word.strip_prefix("TASK_STATE_").unwrap_or(word).replace('_', "-").to_lowercase();
    word.replace("cancelled", "canceled")
}

/// The text of a message.
pub(super) fn text(message: &Value) -> String {
    let parts = message.get("parts").or(message.get("content")).and_then(Value::as_array);
    parts.into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

fn as_json(http: &HttpClient) -> HttpClient {
    http.clone().with("Content-Type", "application/json")
}

fn grpc_part(part: &Value) -> Value {
    match part.get("data") {
        Some(data) => json!({ "data": { "data": data } }),
        None => part.clone(),
    }
}

/// Parameters of a query with the types of JSON.
fn typed(given: &[(&'static str, String)]) -> Value {
    let value = |text: &String| match text.parse::<u64>() {
        Ok(number) => json!(number),
        Err(_) if text == "true" => json!(true),
        Err(_) => json!(text),
    };
    given.iter().map(|(key, text)| ((*key).to_owned(), value(text))).collect::<Map<_, _>>().into()
}
