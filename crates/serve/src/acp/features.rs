//! What a client can do, as it declared in `initialize`.

use agent_client_protocol_schema::v1::ClientCapabilities;
use serde_json::Value;

/// The key of our own metadata.
pub(super) const META: &str = "multitap";
/// Editors declare by this metadata that they show the output of commands like a terminal.
const TERMINAL_OUTPUT: [&str; 2] = ["terminal_output", "terminal_output_delta"];

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own in the protocol")]
pub(super) struct ClientFeatures {
    /// Shows notices beside the conversation.
    pub(super) notices: bool,
    /// Shows that the agent shortened its conversation.
    pub(super) compaction: bool,
    /// Appends output of commands that comes as metadata.
    pub(super) terminal_output: bool,
    /// Shows forms.
    pub(super) forms: bool,
    /// Uses our multi-client methods: it is told who answered a question.
    pub(super) attach: bool,
}

impl ClientFeatures {
    pub(super) fn of(capabilities: &ClientCapabilities) -> Self {
        let meta = |key: &str| capabilities.meta.as_ref().and_then(|meta| meta.get(key));
        let is_set = |key: &str| meta(key).is_some_and(|value| *value == Value::Bool(true));
        let session = capabilities.session.as_ref();
        Self {
            notices: session.is_some_and(|session| session.notices.is_some()),
            compaction: session.is_some_and(|session| session.compaction.is_some()),
            terminal_output: TERMINAL_OUTPUT.into_iter().any(is_set),
            forms: capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_some()),
            attach: meta(META).is_some_and(|own| own.get("attach").is_some()),
        }
    }
}
