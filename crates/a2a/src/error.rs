//! What can go wrong, and how each dialect and each transport says it ([`wire`]).

mod wire;

use crate::model::Map;

/// A refusal, as it goes to the client.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub kind: ErrorKind,
    /// For people: what is wrong and what would be right.
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

    /// The code on JSON-RPC. A caller of 0.3 gets -32008 and -32009 as they are, though its version does not know them:
    /// a number that can be looked up tells more than "internal error".
    pub fn code(&self) -> i64 {
        self.kind.code()
    }

    /// The status on REST.
    pub fn http_status(&self) -> u16 {
        self.kind.http_status()
    }

    /// The word for it in `google.rpc.ErrorInfo`; the errors of JSON-RPC itself have none.
    pub fn reason(&self) -> Option<&'static str> {
        self.kind.reason()
    }
}

/// What kind of refusal it is: those of JSON-RPC, of A2A, and two of the shared session.
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
    /// Somebody else answered first.
    QuestionSettled,
    /// An observer may look on, not decide.
    NotController,
    /// A code that this version does not know.
    Other(i64),
}

impl ErrorKind {
    /// All that have a name.
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

    pub fn code(self) -> i64 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported => -32005,
            Self::InvalidAgentResponse => -32006,
            Self::ExtendedCardNotConfigured => -32007,
            Self::ExtensionRequired => -32008,
            Self::VersionNotSupported => -32009,
            Self::QuestionSettled => -32011,
            Self::NotController => -32012,
            Self::Other(code) => code,
        }
    }

    pub fn of_code(code: i64) -> Self {
        Self::NAMED.into_iter().find(|kind| kind.code() == code).unwrap_or(Self::Other(code))
    }

    pub fn http_status(self) -> u16 {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => 404,
            Self::QuestionSettled => 409,
            Self::NotController => 403,
            Self::Internal | Self::InvalidAgentResponse | Self::Other(_) => 500,
            Self::Parse
            | Self::InvalidRequest
            | Self::InvalidParams
            | Self::TaskNotCancelable
            | Self::PushNotSupported
            | Self::UnsupportedOperation
            | Self::ContentTypeNotSupported
            | Self::ExtendedCardNotConfigured
            | Self::ExtensionRequired
            | Self::VersionNotSupported => 400,
        }
    }

    /// The word of `google.rpc.Code` for it.
    pub fn rpc_status(self) -> &'static str {
        match self {
            Self::TaskNotFound => "NOT_FOUND",
            Self::MethodNotFound => "UNIMPLEMENTED",
            Self::QuestionSettled => "ABORTED",
            Self::NotController => "PERMISSION_DENIED",
            Self::Internal | Self::InvalidAgentResponse => "INTERNAL",
            Self::Other(_) => "UNKNOWN",
            Self::Parse | Self::InvalidRequest | Self::InvalidParams | Self::ContentTypeNotSupported => {
                "INVALID_ARGUMENT"
            }
            Self::TaskNotCancelable
            | Self::PushNotSupported
            | Self::UnsupportedOperation
            | Self::ExtendedCardNotConfigured
            | Self::ExtensionRequired
            | Self::VersionNotSupported => "FAILED_PRECONDITION",
        }
    }

    pub fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported => "CONTENT_TYPE_NOT_SUPPORTED",
            Self::InvalidAgentResponse => "INVALID_AGENT_RESPONSE",
            Self::ExtendedCardNotConfigured => "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
            Self::ExtensionRequired => "EXTENSION_SUPPORT_REQUIRED",
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
            Self::QuestionSettled => "QUESTION_SETTLED",
            Self::NotController => "NOT_CONTROLLER",
            Self::Parse
            | Self::InvalidRequest
            | Self::MethodNotFound
            | Self::InvalidParams
            | Self::Internal
            | Self::Other(_) => return None,
        })
    }

    /// Who gave the reason its name.
    fn domain(self) -> &'static str {
        match self {
            Self::QuestionSettled | Self::NotController => "multitap",
            _ => "a2a-protocol.org",
        }
    }
}
