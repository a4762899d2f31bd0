//! Writes errors for each dialect, on JSON-RPC and on REST, and reads them.

use serde_json::{Value, json};

use super::{Error, ErrorKind};
use crate::dialect::Dialect;
use crate::model::Map;
use crate::write::{filled, present};

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const STRUCT: &str = "type.googleapis.com/google.protobuf.Struct";

impl Dialect {
    /// The `error` of a JSON-RPC answer.
    ///
    /// 0.3 has the data as it is. 1.0 has a list of typed details: why, for errors that A2A or we name, and the data.
    pub fn write_error(self, error: &Error) -> Value {
        let details = || Some(error.details()).filter(|details| !details.is_empty());
        Value::Object(present(json!({
            "code": error.code(),
            "message": error.message,
            "data": match self {
                Self::V0_3 => filled(&error.data).map(|data| json!(data)),
                Self::V1_0 => details().map(Value::Array),
            },
        })))
    }

    /// The body of an error on REST; [`Error::http_status`] is its status.
    pub fn write_rest_error(self, error: &Error) -> Value {
        match self {
            Self::V0_3 => self.write_error(error),
            Self::V1_0 => json!({ "error": {
                "code": error.http_status(),
                "status": error.rpc_status(),
                "message": error.message,
                "details": error.details(),
            } }),
        }
    }

    /// Reads an agent's error in any of these shapes. Never fails: a value that cannot be parsed is quoted.
    pub fn read_error(value: Value) -> Error {
        match value {
            Value::Object(mut map) => match map.shift_remove("error") {
                Some(Value::Object(inner)) => read(inner),
                Some(Value::String(message)) => Error::internal(message),
                Some(other) => Error::internal(other.to_string()),
                None => read(map),
            },
            Value::String(message) => Error::internal(message),
            other => Error::internal(other.to_string()),
        }
    }
}

impl Error {
    /// The details of 1.0, each with its type.
    pub(crate) fn details(&self) -> Vec<Value> {
        let mut details = Vec::new();
        if let Some(reason) = self.reason() {
            let metadata: Map = self.data.iter().map(|(key, value)| (key.clone(), json!(plain(value)))).collect();
            details.push(json!({
                "@type": ERROR_INFO,
                "reason": reason,
                "domain": self.kind.domain(),
                "metadata": metadata,
            }));
        }
        if !self.data.is_empty() {
            details.push(json!({ "@type": STRUCT, "value": self.data }));
        }
        details
    }
}

/// The metadata of an `ErrorInfo` has only strings.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn read(mut map: Map) -> Error {
    let message = match map.shift_remove("message") {
        Some(Value::String(message)) => message,
        Some(other) => other.to_string(),
        None => "the agent gave no reason".to_owned(),
    };
    let data = map.shift_remove("data").or_else(|| map.shift_remove("details"));
    let code = map.get("code").and_then(Value::as_i64);
    match data {
        Some(Value::Array(details)) => read_details(code, message, &details),
        Some(Value::Object(data)) => Error { kind: kind(code, None), message, data },
        None | Some(Value::Null) => Error::new(kind(code, None), message),
        Some(other) => Error::new(kind(code, None), message).with("data", other),
    }
}

fn read_details(code: Option<i64>, message: String, details: &[Value]) -> Error {
    let of_type = |name: &str| details.iter().find(|detail| detail.get("@type").and_then(Value::as_str) == Some(name));
    let info = of_type(ERROR_INFO);
    let reason = info.and_then(|info| info.get("reason")).and_then(Value::as_str);
    let data = of_type(STRUCT).and_then(|detail| detail.get("value"));
    let data = data.or_else(|| info.and_then(|info| info.get("metadata"))).and_then(Value::as_object);
    Error { kind: kind(code, reason), message, data: data.cloned().unwrap_or_default() }
}

/// The kind, by the reason if there is one, else by the code, which on REST is an HTTP status.
fn kind(code: Option<i64>, reason: Option<&str>) -> ErrorKind {
    let named = reason.and_then(|reason| ErrorKind::NAMED.into_iter().find(|kind| kind.reason() == Some(reason)));
    named.unwrap_or(match code {
        Some(400) => ErrorKind::InvalidParams,
        Some(404) => ErrorKind::MethodNotFound,
        Some(500) | None => ErrorKind::Internal,
        Some(code) => ErrorKind::of_code(code),
    })
}
