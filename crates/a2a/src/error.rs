//! Errors, and how each dialect and each transport writes them ([`wire`]).

mod wire;

use crate::model::Map;

/// A refusal, as it goes to the client.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    /// A message for people: what is wrong and what would be right.
    pub message: String,
    /// For programs.
    pub data: Map,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), data: Map::new() }
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidParams, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The code on JSON-RPC. A caller of 0.3 gets -32008 and -32009 too, though its version does not define them: a
    /// number that can be looked up says more than "internal error".
    pub fn code(&self) -> i64 {
        self.kind.code()
    }

    /// The status on REST.
    pub fn http_status(&self) -> u16 {
        self.kind.written().1
    }

    /// The corresponding word of `google.rpc.Code`.
    pub(crate) fn rpc_status(&self) -> &'static str {
        self.kind.written().2
    }

    /// The corresponding reason in `google.rpc.ErrorInfo`; the errors of JSON-RPC itself have none.
    pub fn reason(&self) -> Option<&'static str> {
        self.kind.reason()
    }
}

/// The kinds of errors: those of JSON-RPC, those of A2A, and two of the shared session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    TaskNotFound,
    TaskNotCancelable,
    PushNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    InvalidAgentResponse,
    ExtendedCardNotConfigured,
    ExtensionRequired,
    VersionNotSupported,
    /// Another client answered first.
    QuestionSettled,
    /// An observer may watch, not decide.
    NotController,
    /// A code that this version does not know.
    Other(i64),
}

impl ErrorKind {
    /// All kinds with a name.
    pub const NAMED: [Self; 16] = [
        Self::Parse,
        Self::InvalidRequest,
        Self::MethodNotFound,
        Self::InvalidParams,
        Self::Internal,
        Self::TaskNotFound,
        Self::TaskNotCancelable,
        Self::PushNotSupported,
        Self::UnsupportedOperation,
        Self::ContentTypeNotSupported,
        Self::InvalidAgentResponse,
        Self::ExtendedCardNotConfigured,
        Self::ExtensionRequired,
        Self::VersionNotSupported,
        Self::QuestionSettled,
        Self::NotController,
    ];

    /// The kind's code on JSON-RPC, its status on REST, the word of `google.rpc.Code`, and the reason in
    /// `google.rpc.ErrorInfo`, which the errors of JSON-RPC itself do not have.
    fn written(self) -> (i64, u16, &'static str, Option<&'static str>) {
        match self {
            Self::Parse => (-32700, 400, "INVALID_ARGUMENT", None),
            Self::InvalidRequest => (-32600, 400, "INVALID_ARGUMENT", None),
            Self::MethodNotFound => (-32601, 404, "UNIMPLEMENTED", None),
            Self::InvalidParams => (-32602, 400, "INVALID_ARGUMENT", None),
            Self::Internal => (-32603, 500, "INTERNAL", None),
            Self::TaskNotFound => (-32001, 404, "NOT_FOUND", Some("TASK_NOT_FOUND")),
            Self::TaskNotCancelable => (-32002, 400, "FAILED_PRECONDITION", Some("TASK_NOT_CANCELABLE")),
            Self::PushNotSupported => (-32003, 400, "FAILED_PRECONDITION", Some("PUSH_NOTIFICATION_NOT_SUPPORTED")),
            Self::UnsupportedOperation => (-32004, 400, "FAILED_PRECONDITION", Some("UNSUPPORTED_OPERATION")),
            Self::ContentTypeNotSupported => (-32005, 400, "INVALID_ARGUMENT", Some("CONTENT_TYPE_NOT_SUPPORTED")),
            Self::InvalidAgentResponse => (-32006, 500, "INTERNAL", Some("INVALID_AGENT_RESPONSE")),
            Self::ExtendedCardNotConfigured => {
                (-32007, 400, "FAILED_PRECONDITION", Some("EXTENDED_AGENT_CARD_NOT_CONFIGURED"))
            }
            Self::ExtensionRequired => (-32008, 400, "FAILED_PRECONDITION", Some("EXTENSION_SUPPORT_REQUIRED")),
            Self::VersionNotSupported => (-32009, 400, "FAILED_PRECONDITION", Some("VERSION_NOT_SUPPORTED")),
            Self::QuestionSettled => (-32011, 409, "ABORTED", Some("QUESTION_SETTLED")),
            Self::NotController => (-32012, 403, "PERMISSION_DENIED", Some("NOT_CONTROLLER")),
            Self::Other(code) => (code, 500, "UNKNOWN", None),
        }
    }

    pub fn code(self) -> i64 {
        self.written().0
    }

    fn reason(self) -> Option<&'static str> {
        self.written().3
    }

    pub fn of_code(code: i64) -> Self {
        Self::NAMED.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Other(code))
    }

    /// The domain that defines the reason.
    fn domain(self) -> &'static str {
        match self {
            Self::QuestionSettled | Self::NotController => "multitap",
            _ => "a2a-protocol.org",
        }
    }
}
