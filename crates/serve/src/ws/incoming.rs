//! One text frame, taken apart: a request that wants an answer, or a notification that wants none.

use multitap_a2a::{Error, ErrorKind, RequestId};
use serde_json::Value;

use crate::a2a::Envelope;

#[derive(Debug)]
pub(crate) enum Incoming {
    Request(Envelope),
    Notification { method: String, params: Value },
}

impl Incoming {
    /// Reads one; what can be said of its id is said in either case.
    pub(crate) fn read(text: &str) -> Result<Self, Box<(RequestId, Error)>> {
        let mut parsed: Value = serde_json::from_str(text).map_err(|error| {
            let why = format!("not valid JSON: {error}");
            Box::new((RequestId::Null, Error::new(ErrorKind::Parse, why)))
        })?;
        match parsed.as_object_mut() {
            Some(object) if !object.contains_key("id") => {
                let params = object.remove("params").unwrap_or_default();
                match object.remove("method") {
                    Some(Value::String(method)) => Ok(Self::Notification { method, params }),
                    _ => Envelope::of(parsed).map(Self::Request),
                }
            }
            _ => Envelope::of(parsed).map(Self::Request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> (RequestId, i64) {
        let refused = Incoming::read(text).unwrap_err();
        (refused.0.clone(), refused.1.code())
    }

    #[test]
    fn a_frame_is_a_request_a_notification_or_neither() {
        let request = Incoming::read(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#).unwrap();
        assert!(matches!(request, Incoming::Request(Envelope { method, .. }) if method == "tasks/get"));
        let told = Incoming::read(r#"{"method":"cancelStream","params":{"id":1}}"#).unwrap();
        assert!(matches!(told, Incoming::Notification { method, .. } if method == "cancelStream"));
        assert_eq!(code("{"), (RequestId::Null, -32700));
        assert_eq!(code("[]"), (RequestId::Null, -32600));
        assert_eq!(code("7"), (RequestId::Null, -32600));
        assert_eq!(code("{}"), (RequestId::Null, -32600));
        assert_eq!(code(r#"{"method":7}"#), (RequestId::Null, -32600));
        assert_eq!(code(r#"{"id":1,"method":"tasks/get"}"#), (1.into(), -32600));
    }
}
