//! Errors of agents, classified by what a user can do about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{AgentType, Unsupported};

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentErrorKind {
    /// The program is missing or cannot be run.
    ProcessSpawnFailed,
    /// The program ended unexpectedly, or with an error code.
    ProcessExitError,
    /// The text should be JSON and is not.
    JsonParseError,
    /// The other side violated its protocol, or refused a request.
    ProtocolError,
    PermissionDenied,
    SessionNotFound,
    Timeout,
    Unknown,
}

/// The severity of an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// A warning: nothing ends because of it.
    Warning,
    #[default]
    Error,
}

/// A setting that a client can change while the agent runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Setting {
    Mode,
    Model,
    Thinking,
}

/// An error of an agent; also the body of an `error` event.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "camelCase")]
#[error("{message}")]
pub struct AgentError {
    pub kind: AgentErrorKind,
    /// A message for people: what happened and, if known, what to do.
    pub message: String,
    pub severity: Severity,
    /// The message of the agent, or its stderr, word for word.
    pub native_error: Option<String>,
    /// The agent's own name for this error, such as `rate_limit`.
    pub native_code: Option<String>,
    pub agent_type: Option<AgentType>,
    pub exit_code: Option<i32>,
    /// The error refuses a change of this setting: the old value still holds.
    pub refused_setting: Option<Setting>,
    /// The value that the agent refused, as it was requested or as the agent calls it. Only the session reads it, to
    /// find out whose change was refused: several may be pending, and an answer may overtake another.
    #[serde(skip)]
    pub refused_value: Option<String>,
}

impl AgentError {
    pub fn new(kind: AgentErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            severity: Severity::Error,
            native_error: None,
            native_code: None,
            agent_type: None,
            exit_code: None,
            refused_setting: None,
            refused_value: None,
        }
    }

    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }

    #[must_use]
    pub fn of(mut self, agent: AgentType) -> Self {
        self.agent_type = Some(agent);
        self
    }

    #[must_use]
    pub fn native(mut self, text: impl Into<String>) -> Self {
        self.native_error = Some(text.into());
        self
    }

    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.native_code = Some(code.into());
        self
    }

    /// Marks the error as the refusal of a change of that setting.
    #[must_use]
    pub fn about(mut self, setting: Setting) -> Self {
        self.refused_setting = Some(setting);
        self
    }

    /// Marks the error as the refusal of that value of a setting.
    #[must_use]
    pub fn refusing(mut self, setting: Setting, value: impl Into<String>) -> Self {
        self.refused_value = Some(value.into());
        self.about(setting)
    }

    #[must_use]
    pub fn exited(mut self, code: Option<i32>) -> Self {
        self.exit_code = code;
        self
    }
}

/// The agent did not start.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LaunchError {
    /// The agent does not support a requested setting. Nothing runs: the start was refused, or the agent was ended
    /// again.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Agent(Box<AgentError>),
}

impl From<AgentError> for LaunchError {
    fn from(error: AgentError) -> Self {
        Self::Agent(Box::new(error))
    }
}

impl From<LaunchError> for AgentError {
    fn from(error: LaunchError) -> Self {
        match error {
            LaunchError::Unsupported(unsupported) => {
                Self::new(AgentErrorKind::ProtocolError, unsupported.to_string()).of(unsupported.agent)
            }
            LaunchError::Agent(error) => *error,
        }
    }
}
