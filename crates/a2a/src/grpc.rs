//! gRPC of 1.0: the operation that a method names, its parameters and its answers as protobuf, and the status of an
//! error.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::{Error, ErrorKind};
use crate::model::Map;
use crate::params::{self, Method};
use crate::proto::{DecodeError, EncodeError, MessageType, decode, encode, messages};
use crate::read::Node;
use crate::request::Request;

/// The service, as paths name it.
pub const SERVICE: &str = "lf.a2a.v1.A2AService";

/// An operation, as the method of the service names it.
#[derive(Debug, Clone, Copy)]
pub struct GrpcCall {
    method: Method,
    request: &'static MessageType,
    response: &'static MessageType,
}

impl GrpcCall {
    /// The operation with that name, such as `SendMessage`.
    pub fn find(name: &str) -> Option<Self> {
        let (dialect, method) = Method::of_name(name)?;
        let (request, response) = match method {
            Method::Send => (&messages::SEND_MESSAGE_REQUEST, &messages::SEND_MESSAGE_RESPONSE),
            Method::Stream => (&messages::SEND_MESSAGE_REQUEST, &messages::STREAM_RESPONSE),
            Method::GetTask => (&messages::GET_TASK_REQUEST, &messages::TASK),
            Method::ListTasks => (&messages::LIST_TASKS_REQUEST, &messages::LIST_TASKS_RESPONSE),
            Method::CancelTask => (&messages::CANCEL_TASK_REQUEST, &messages::TASK),
            Method::Subscribe => (&messages::SUBSCRIBE_REQUEST, &messages::STREAM_RESPONSE),
            Method::CreatePush => (&messages::PUSH_CONFIG, &messages::PUSH_CONFIG),
            Method::GetPush => (&messages::PUSH_CONFIG_REQUEST, &messages::PUSH_CONFIG),
            Method::ListPush => (&messages::LIST_PUSH_CONFIGS_REQUEST, &messages::LIST_PUSH_CONFIGS_RESPONSE),
            Method::DeletePush => (&messages::PUSH_CONFIG_REQUEST, &messages::EMPTY),
            Method::GetCard => (&messages::CARD_REQUEST, &messages::CARD),
        };
        (dialect == Dialect::V1_0).then_some(Self { method, request, response })
    }

    /// Reads the message with its parameters.
    pub fn read(&self, message: &[u8]) -> Result<Request, Error> {
        let params = decode(self.request, message).map_err(|error| match error {
            DecodeError::TooManyValues | DecodeError::TooDeep => {
                Error::new(ErrorKind::InvalidRequest, format!("the message: {error}"))
            }
            error => Error::new(ErrorKind::Parse, format!("the message: {error}")),
        })?;
        params::read(Dialect::V1_0, self.method, &Node::of_client("message", &Value::Object(params))?)
    }

    /// The message of an answer whose `result` this is on JSON-RPC, or of an item of a stream.
    pub fn write(&self, result: &str) -> Result<Vec<u8>, Error> {
        write(self.response, result)
    }
}

/// The message of an item of a stream: of any, since all streams have the same.
pub fn write_update(update: &str) -> Result<Vec<u8>, Error> {
    write(&messages::STREAM_RESPONSE, update)
}

fn write(message: &MessageType, text: &str) -> Result<Vec<u8>, Error> {
    let cannot = |why: &dyn std::fmt::Display| Error::internal(format!("the answer cannot be sent as protobuf: {why}"));
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => encode(message, &map).map_err(|error| cannot(&error)),
        // Nothing, such as the answer to a deletion.
        Ok(_) => Ok(Vec::new()),
        Err(error) => Err(cannot(&error)),
    }
}

impl Error {
    /// The number of its `google.rpc.Code`.
    pub fn grpc_code(&self) -> u8 {
        match self.rpc_status() {
            "INVALID_ARGUMENT" => 3,
            "NOT_FOUND" => 5,
            "PERMISSION_DENIED" => 7,
            "FAILED_PRECONDITION" => 9,
            "ABORTED" => 10,
            "UNIMPLEMENTED" => 12,
            "INTERNAL" => 13,
            _ => 2,
        }
    }

    /// Its `google.rpc.Status`, as metadata holds it; `None` if it says no more than the code and the message.
    pub fn grpc_details(&self) -> Option<String> {
        let details = self.details();
        if details.is_empty() {
            return None;
        }
        let any: Result<Vec<Value>, EncodeError> = details.iter().map(any).collect();
        let status = json!({ "code": self.grpc_code(), "message": self.message, "details": any.ok()? });
        let bytes = encode(&messages::STATUS, status.as_object()?).ok()?;
        Some(BASE64_STANDARD_NO_PAD.encode(bytes))
    }
}

/// A typed detail as `google.protobuf.Any`.
fn any(detail: &Value) -> Result<Value, EncodeError> {
    let bytes = match detail.get("value") {
        Some(data) => encode(&messages::STRUCT, &Map::from_iter([("fields".to_owned(), data.clone())]))?,
        None => encode(&messages::ERROR_INFO, detail.as_object().unwrap_or(&Map::new()))?,
    };
    Ok(json!({ "typeUrl": detail.get("@type"), "value": BASE64_STANDARD.encode(bytes) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_details_that_the_official_library_writes() {
        let error = Error::new(ErrorKind::TaskNotFound, "task t is unknown").with("field", "id");
        assert_eq!(error.grpc_code(), 5);
        let written = concat!(
            "CAUSEXRhc2sgdCBpcyB1bmtub3duGlsKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5FcnJvckluZm8SLwoOVEFTS19OT1Rf",
            "Rk9VTkQSEGEyYS1wcm90b2NvbC5vcmcaCwoFZmllbGQSAmlkGj0KKnR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnByb3RvYnVmLlN0",
            "cnVjdBIPCg0KBWZpZWxkEgQaAmlk",
        );
        assert_eq!(error.grpc_details().as_deref(), Some(written));
        assert_eq!(Error::new(ErrorKind::Parse, "no").grpc_details(), None);
    }

    #[test]
    fn every_kind_of_error_has_its_code() {
        for kind in ErrorKind::NAMED {
            let error = Error::new(kind, "");
            let is_known = error.rpc_status() == "UNKNOWN" || error.grpc_code() != 2;
            assert!(is_known, "{kind:?}: {}", error.rpc_status());
        }
    }

    #[test]
    fn methods_are_those_of_1_0() {
        assert!(GrpcCall::find("SendStreamingMessage").is_some());
        for other in ["message/send", "sendMessage", "", "commands/get"] {
            assert!(GrpcCall::find(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_request_is_read_as_its_json() {
        let call = GrpcCall::find("GetTask").unwrap();
        let request = call.read(&[0x12, 1, b't', 0x18, 0]).unwrap();
        assert_eq!(request, Request::GetTask { id: "t".to_owned(), history_length: Some(0) });
        assert_eq!(call.read(&[]).unwrap_err().kind, ErrorKind::InvalidParams);
        assert_eq!(call.read(&[0x12]).unwrap_err().kind, ErrorKind::Parse);
        assert_eq!(call.write(r#"{"id":"t","more":1}"#).unwrap(), [0x0a, 1, b't']);
        let empty: &[u8] = &[];
        assert_eq!(GrpcCall::find("DeleteTaskPushNotificationConfig").unwrap().write("{}").unwrap(), empty);
    }
}
