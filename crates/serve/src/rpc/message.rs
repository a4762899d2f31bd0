//! Reads and writes JSON-RPC messages.

use std::fmt::{self, Display};

use multitap_a2a::json::{self, JsonError, MAX_VALUES};
use serde::Deserialize;
use serde_json::{Number, Value};

/// Maximum length of a wrong id in an error.
const REPEATED: usize = 60;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INTERNAL_ERROR: i64 = -32603;

/// The id of a request, echoed as it came: a number stays a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum RequestId {
    String(String),
    /// A whole number, with its original digits.
    Number(Number),
    Null,
}

/// Something that came from the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Value,
    },
    /// To a request of ours.
    Response {
        id: RequestId,
        result: Result<Value, ErrorObject>,
    },
}

/// A request that wants an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
}

/// The body of an HTTP request.
#[derive(Debug, PartialEq)]
pub(crate) enum Posted {
    Request(Request),
    /// Refused, but how depends on what it asks for.
    WithoutId {
        method: String,
        params: Value,
    },
}

/// The `error` of a response.
#[derive(Debug, Clone, PartialEq, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub(crate) struct ErrorObject {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// Why a message cannot be handled. Each protocol writes its own error for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
}

/// An invalid message, and the id for the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid {
    pub(crate) id: RequestId,
    pub(crate) fault: Fault,
}

impl Fault {
    fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub(super) fn binary() -> Self {
        Self::invalid_request("binary frames are not supported: each text frame is one JSON-RPC object")
    }

    pub(super) fn too_large(limit: usize) -> Self {
        Self::invalid_request(format!("a message has at most {limit} bytes"))
    }

    pub(super) fn duplicate_id() -> Self {
        Self::invalid_request("id: a request with this id is still being answered")
    }

    pub(super) fn too_many(limit: usize) -> Self {
        let why = format!("this connection has {limit} running requests: wait for one, or end a stream");
        Self::new(INTERNAL_ERROR, why)
    }
}

impl Message {
    pub(super) fn read(text: &[u8]) -> Result<Self, Invalid> {
        let parsed = json::parse(text).map_err(|error| {
            let fault = match error {
                JsonError::Invalid(error) => Fault::new(PARSE_ERROR, format!("not valid JSON: {error}")),
                JsonError::TooManyValues => {
                    Fault::invalid_request(format!("a message has at most {MAX_VALUES} values"))
                }
            };
            Invalid { id: RequestId::Null, fault }
        })?;
        let invalid = |id: &RequestId, why: &str| Invalid { id: id.clone(), fault: Fault::invalid_request(why) };
        let mut object = match parsed {
            Value::Object(object) => object,
            Value::Array(_) => {
                return Err(invalid(&RequestId::Null, "batches are not supported: send one request at a time"));
            }
            _ => return Err(invalid(&RequestId::Null, "a message is an object")),
        };
        let Some(id) = object.get("id") else {
            let params = object.remove("params").unwrap_or_default();
            return match object.remove("method") {
                Some(Value::String(method)) => Ok(Self::Notification { method, params }),
                _ => Err(invalid(&RequestId::Null, "id: a request must have one")),
            };
        };
        let id = RequestId::read(id).map_err(|fault| Invalid { id: RequestId::Null, fault })?;
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(&id, "jsonrpc: must be \"2.0\""));
        }
        match object.remove("method") {
            Some(Value::String(method)) => Ok(Self::Request(Request { id, method, params: object.remove("params") })),
            Some(Value::Null) => Err(invalid(&id, "method: a request must have one")),
            // Whatever that is, there is no such method.
            Some(_) => Err(Invalid { id, fault: Fault::new(METHOD_NOT_FOUND, "method: must be a string") }),
            None => match (object.remove("error"), object.remove("result")) {
                (Some(error), _) => Ok(Self::Response { id, result: Err(ErrorObject::read(&error)) }),
                (None, Some(result)) => Ok(Self::Response { id, result: Ok(result) }),
                (None, None) => Err(invalid(&id, "method: a request must have one")),
            },
        }
    }
}

impl Posted {
    pub(crate) fn read(text: &[u8]) -> Result<Self, Invalid> {
        match Message::read(text)? {
            Message::Request(request) => Ok(Self::Request(request)),
            Message::Notification { method, params } => Ok(Self::WithoutId { method, params }),
            Message::Response { id, .. } => {
                Err(Invalid { id, fault: Fault::invalid_request("method: a request must have one") })
            }
        }
    }
}

impl ErrorObject {
    /// Never fails: an unreadable error object is quoted as the message.
    fn read(error: &Value) -> Self {
        let quoted = |_| Self { code: INTERNAL_ERROR, message: short(error), data: None };
        Self::deserialize(error).unwrap_or_else(quoted)
    }
}

impl RequestId {
    /// Refuses ids that cannot be echoed exactly.
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        match value {
            Value::Null => Ok(Self::Null),
            Value::String(text) => Ok(Self::String(text.clone())),
            Value::Number(number) if number.is_i64() || number.is_u64() => Ok(Self::Number(number.clone())),
            Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                let why = format!("id: must be a string, a whole number or null, not {}", short(value));
                Err(Fault::invalid_request(why))
            }
        }
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

/// As JSON.
impl Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(text) => Value::from(text.as_str()).fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Null => f.write_str("null"),
        }
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(REPEATED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A response with serialized JSON; `key` is `result` or `error`.
pub(crate) fn response(id: &RequestId, key: &str, json: &str) -> String {
    let mut text = opening(id, key);
    text.reserve_exact(json.len() + CLOSING.len());
    text.push_str(json);
    text.push_str(CLOSING);
    text
}

/// The beginning of such a response, shared by all frames of a request.
pub(crate) fn opening(id: &RequestId, key: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":")
}

/// The end of such a response.
pub(crate) const CLOSING: &str = "}";

/// A notification with serialized JSON.
pub(super) fn notification(method: &str, params: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// A request of ours.
pub(super) fn request(id: u64, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> (RequestId, i64) {
        let Invalid { id, fault } = Message::read(text.as_bytes()).unwrap_err();
        (id, fault.code)
    }

    #[test]
    fn a_message_is_a_request_a_notification_or_a_response() {
        let read = |text: &str| Message::read(text.as_bytes()).unwrap();
        let request = Request { id: 1.into(), method: "tasks/get".to_owned(), params: Some(json!({})) };
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#;
        assert_eq!(read(text), Message::Request(request));
        let told = Message::Notification { method: "cancelStream".to_owned(), params: json!({ "id": 1 }) };
        assert_eq!(read(r#"{"method":"cancelStream","params":{"id":1}}"#), told);
        let answered = Message::Response { id: 7.into(), result: Ok(json!([1])) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":7,"result":[1]}"#), answered);
        let error = ErrorObject { code: -1, message: "no".to_owned(), data: None };
        let refused = Message::Response { id: 7.into(), result: Err(error) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"},"result":null}"#), refused);
        let Message::Response { result: Err(odd), .. } = read(r#"{"jsonrpc":"2.0","id":7,"error":"boom"}"#) else {
            panic!("an error")
        };
        assert_eq!((odd.code, odd.message.as_str()), (INTERNAL_ERROR, "\"boom\""));
    }

    #[test]
    fn what_is_none_of_them_is_refused_under_the_id_it_has() {
        for (text, id, code) in [
            ("{", RequestId::Null, PARSE_ERROR),
            ("", RequestId::Null, PARSE_ERROR),
            ("\u{0}", RequestId::Null, PARSE_ERROR),
            ("[]", RequestId::Null, INVALID_REQUEST),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"m"}]"#, RequestId::Null, INVALID_REQUEST),
            ("7", RequestId::Null, INVALID_REQUEST),
            ("{}", RequestId::Null, INVALID_REQUEST),
            (r#"{"method":7}"#, RequestId::Null, INVALID_REQUEST),
            (r#"{"id":1,"method":"tasks/get"}"#, 1.into(), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, RequestId::String("a".to_owned()), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, 1.into(), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":{}}"#, 1.into(), METHOD_NOT_FOUND),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, 1.into(), METHOD_NOT_FOUND),
            (r#"{"jsonrpc":"2.0","id":1,"method":[]}"#, 1.into(), METHOD_NOT_FOUND),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, RequestId::Null, INVALID_REQUEST),
        ] {
            assert_eq!(refused(text), (id, code), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(refused(&deep), (RequestId::Null, PARSE_ERROR));
        let many = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":[{}0]}}"#, "[],".repeat(MAX_VALUES));
        assert_eq!(refused(&many), (RequestId::Null, INVALID_REQUEST), "its values would take too much memory");
    }

    #[test]
    fn an_id_is_echoed_with_its_type_or_refused() {
        for text in ["1", "-7", "18446744073709551615", "\"1\"", "\"\"", "null"] {
            let id = RequestId::read(&serde_json::from_str(text).unwrap()).unwrap();
            assert_eq!(response(&id, "result", "{}"), format!(r#"{{"jsonrpc":"2.0","id":{text},"result":{{}}}}"#));
        }
        for text in ["1.5", "1e300", "true", "[1]", "{}"] {
            let fault = RequestId::read(&serde_json::from_str(text).unwrap()).unwrap_err();
            assert_eq!(fault.code, INVALID_REQUEST, "{text}");
            assert!(fault.message.starts_with("id: must be a string, a whole number or null, not "), "{fault}");
        }
    }
}
