//! What went over the wire to and from an ACP client, and the JSON Schema of the protocol that all of it must fit.

use std::cell::RefCell;
use std::collections::BTreeMap;

use jsonschema::Validator;
use multitap_testkit::interop;
use multitap_testkit::peer::{Kind, acp_schema};
use serde_json::{Map, Value, json};

/// The updates by which the agent speaks, and those that repeat what somebody said to it.
pub(super) const SAID: &str = "agent_message_chunk";
pub(super) const HEARD: &str = "user_message_chunk";

/// The definitions of the official schema.
struct Schema {
    definitions: Value,
    /// The name of the definition for each method: its requests and notifications, and its responses.
    params: BTreeMap<String, String>,
    results: BTreeMap<String, String>,
    validators: RefCell<BTreeMap<String, Validator>>,
}

impl Schema {
    fn read() -> Self {
        let text = std::fs::read_to_string(acp_schema().unwrap()).unwrap();
        let mut schema: Value = serde_json::from_str(&text).unwrap();
        let definitions = schema["$defs"].take();
        let (mut params, mut results) = (BTreeMap::new(), BTreeMap::new());
        for (name, definition) in definitions.as_object().unwrap() {
            let Some(method) = definition["x-method"].as_str() else { continue };
            let methods = if name.ends_with("Response") { &mut results } else { &mut params };
            assert_eq!(methods.insert(method.to_owned(), name.clone()), None, "{method} is defined twice");
        }
        Self { definitions, params, results, validators: RefCell::default() }
    }

    /// What is wrong with a value.
    fn faults(&self, definition: &str, value: &Value) -> Vec<String> {
        let mut validators = self.validators.borrow_mut();
        let validator = validators.entry(definition.to_owned()).or_insert_with(|| {
            let schema = json!({ "$ref": format!("#/$defs/{definition}"), "$defs": self.definitions });
            jsonschema::draft202012::options().build(&schema).unwrap()
        });
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    #[track_caller]
    fn check(&self, definition: &str, value: &Value, message: &Value) {
        let faults = self.faults(definition, value);
        assert!(faults.is_empty(), "this is no {definition}: {faults:#?}\n{message:#}");
    }
}

/// Every message that we sent fits the official schema, and answers a request if it is an answer. `told` is what a
/// client told: {sent: …} by it, {got: …} from us.
#[track_caller]
pub(super) fn check(told: &[Value]) {
    let schema = Schema::read();
    let mut requests: BTreeMap<String, String> = BTreeMap::new();
    let mut answered = 0;
    for line in told {
        if let Some(sent) = line.get("sent")
            && let (Some(method), Some(id)) = (sent["method"].as_str(), sent.get("id"))
        {
            requests.insert(id.to_string(), method.to_owned());
        }
        let Some(got) = line.get("got") else { continue };
        assert_eq!(got["jsonrpc"], "2.0", "{got:#}");
        let got = got.as_object().unwrap();
        match got.get("method").and_then(Value::as_str) {
            Some(method) => check_params(&schema, method, got),
            None => {
                let method = requests.remove(&got["id"].to_string());
                let method = method.unwrap_or_else(|| panic!("it answers no request: {got:#?}"));
                check_answer(&schema, &method, got);
                answered += 1;
            }
        }
    }
    assert!(answered > 0, "nothing was answered: {told:#?}");
}

fn check_params(schema: &Schema, method: &str, message: &Map<String, Value>) {
    if method.starts_with('_') {
        return; // an extension is described by those who made it
    }
    let definition = schema.params.get(method).unwrap_or_else(|| panic!("{method} is no method of ACP"));
    let is_request = definition.ends_with("Request");
    assert_eq!(message.contains_key("id"), is_request, "{message:#?}");
    schema.check(definition, &message["params"], &Value::Object(message.clone()));
}

fn check_answer(schema: &Schema, method: &str, message: &Map<String, Value>) {
    let whole = Value::Object(message.clone());
    match (message.get("result"), message.get("error")) {
        (Some(result), None) => schema.check(&schema.results[method], result, &whole),
        (None, Some(error)) => schema.check("Error", error, &whole),
        _ => panic!("it is neither a result nor an error: {whole:#}"),
    }
}

/// The update in a message, if it is one.
pub(super) fn update(message: &Value) -> Option<&Value> {
    (message["method"] == "session/update").then(|| &message["params"]["update"])
}

/// The update of that kind in a message, if it is one.
pub(super) fn update_of<'a>(message: &'a Value, kind: &str) -> Option<&'a Value> {
    update(message).filter(|update| update["sessionUpdate"] == kind)
}

/// The text of all chunks of that kind.
pub(super) fn text(messages: &[Value], kind: &str) -> String {
    let chunks = messages.iter().filter_map(|message| update_of(message, kind)?["content"]["text"].as_str());
    chunks.collect()
}

/// The states that tool calls went through, each once.
pub(super) fn statuses(messages: &[Value]) -> Vec<&str> {
    let is_tool = |update: &&Value| {
        update["sessionUpdate"].as_str().is_some_and(|kind| kind == "tool_call" || kind == "tool_call_update")
    };
    let mut statuses: Vec<&str> =
        messages.iter().filter_map(update).filter(is_tool).filter_map(|update| update["status"].as_str()).collect();
    statuses.dedup();
    statuses
}

/// What does not fit is found.
#[test]
fn interop_the_schema_of_acp_finds_faults() {
    if interop::peer(Kind::AcpJs).is_none() {
        return;
    }
    let schema = Schema::read();
    let text = json!({"type": "text", "text": "hello"});
    let chunk =
        |kind: &str, content: &Value| json!({"sessionId": "s", "update": {"sessionUpdate": kind, "content": content}});
    let option = |kind: &str| {
        let options = json!([{"optionId": "o", "name": "Option", "kind": kind}]);
        json!({"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options})
    };
    for (definition, good, bad) in [
        ("PromptResponse", json!({"stopReason": "end_turn"}), json!({"stopReason": "done"})),
        ("SessionNotification", chunk(SAID, &text), chunk("agent_said", &text)),
        ("SessionNotification", chunk(HEARD, &text), chunk(HEARD, &json!("hello"))),
        ("RequestPermissionRequest", option("allow_once"), option("allow")),
        ("Error", json!({"code": -32602, "message": "no"}), json!({"code": "no"})),
    ] {
        assert_eq!(schema.faults(definition, &good), Vec::<String>::new(), "{good:#}");
        assert!(!schema.faults(definition, &bad).is_empty(), "{bad:#}");
    }
}
