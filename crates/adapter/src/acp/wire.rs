//! ACP's JSON, as far as we read it. Agents leave out and add a lot: what we do not need is not looked at, and what
//! has another shape than we know counts as absent.
//!
//! Written by hand: the types of `agent-client-protocol-schema` (1.15) are stricter. They refuse a whole message for a
//! content block of an unknown type or as plain text, a call without a title, or a permission option of an unknown kind or
//! without a name; they drop plan entries with an unknown status or without a priority, and do not distinguish
//! the status `cancelled` from none. They also take 2.5 times as long as a plain derive for a piece of text.

use multitap_event::ToolId;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::block::Content;
use crate::glance::Glance;
use crate::line::{Word, soft};

/// What a line is: a request, a notification or a reply. What it says is read once it is known what that is.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(default)]
    pub(super) id: Option<Value>,
    #[serde(borrow)]
    pub(super) method: Option<Word<'a>>,
    /// There even if it is null, which is how some agents say that all is well.
    #[serde(borrow, default, deserialize_with = "present")]
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<RpcError>,
    #[serde(borrow)]
    pub(super) params: Option<HeadParams<'a>>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Head<'a> {
    /// A piece of what the agent says or thinks, at a glance.
    pub(super) fn glance(line: &'a str) -> Option<Self> {
        const UPDATE: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#;
        let mut line = Glance::after(line, UPDATE)?;
        let session_id = line.value()?.word()?;
        line.skip(r#","update":{"sessionUpdate":"#)?;
        let sort = line.value()?.word()?;
        line.skip(r#","content":{"type":"text","text":"#)?;
        let content = Content::Text(line.value()?.into_text()?);
        let update = Update { session_update: Some(sort.into()), content, ..Update::default() };
        let params = HeadParams { session_id: Some(session_id.into()), update: Some(update) };
        let method = Some("session/update".into());
        line.ends("}}}}").then_some(Self { id: None, method, result: None, error: None, params: Some(params) })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HeadParams<'a> {
    #[serde(borrow)]
    pub(super) session_id: Option<Word<'a>>,
    #[serde(borrow)]
    pub(super) update: Option<Update<'a>>,
}

/// What sort of update it is, and all that there is to those that come by the hundred: `agent_message_chunk`,
/// `agent_thought_chunk`, `user_message_chunk`. Others are read again as what they are.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Update<'a> {
    #[serde(borrow)]
    pub(super) session_update: Option<Word<'a>>,
    pub(super) content: Content,
    #[serde(borrow)]
    pub(super) message_id: Option<Word<'a>>,
    #[serde(rename = "_meta", borrow)]
    meta: Option<&'a RawValue>,
}

impl Update<'_> {
    /// The call of the sub-agent that says it.
    pub(super) fn parent(&self) -> Option<ToolId> {
        let meta: Meta = serde_json::from_str(self.meta?.get()).ok()?;
        meta.claude?.parent_tool_use_id.map(Into::into)
    }
}

/// A request or notification whose parameters we read as `P`.
#[derive(Deserialize)]
pub(super) struct Call<P> {
    pub(super) params: P,
}

/// `session/update`, read as one sort of update.
#[derive(Deserialize)]
pub(super) struct Updated<U> {
    pub(super) update: U,
}

/// By what a reply can be told from others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Signs {
    pub(super) protocol_version: Option<IgnoredAny>,
    pub(super) stop_reason: Option<IgnoredAny>,
    pub(super) session_id: Option<IgnoredAny>,
    pub(super) modes: Option<IgnoredAny>,
    pub(super) models: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

/// `tool_call`, `tool_call_update`, and the call that a permission is asked for. What is absent stays as it was.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolCall {
    pub(super) tool_call_id: String,
    pub(super) title: Option<String>,
    pub(super) name: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) content: Option<Vec<ToolContent>>,
    #[serde(deserialize_with = "soft")]
    pub(super) locations: Option<Vec<Location>>,
    pub(super) raw_input: Option<Value>,
    pub(super) raw_output: Option<Value>,
    #[serde(rename = "_meta", deserialize_with = "soft")]
    pub(super) meta: Option<Meta>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Location {
    pub(super) path: String,
}

/// What a tool call shows: a content block, a diff, or a terminal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ToolContent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) content: Option<Value>,
    pub(super) path: Option<String>,
    pub(super) old_text: Option<String>,
    pub(super) new_text: Option<String>,
    #[serde(rename = "_meta", deserialize_with = "soft")]
    pub(super) meta: Option<DiffMeta>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct DiffMeta {
    pub(super) kind: Option<String>,
}

/// What agents say beside the protocol, as far as it helps.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    #[serde(rename = "claudeCode", deserialize_with = "soft")]
    pub(super) claude: Option<ClaudeMeta>,
    #[serde(deserialize_with = "soft")]
    pub(super) terminal_output: Option<TerminalOutput>,
    #[serde(deserialize_with = "soft")]
    pub(super) terminal_exit: Option<TerminalExit>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaudeMeta {
    pub(super) tool_name: Option<String>,
    pub(super) parent_tool_use_id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct TerminalOutput {
    pub(super) data: String,
}

#[derive(Deserialize)]
pub(super) struct TerminalExit {
    pub(super) exit_code: Option<i32>,
}

/// `session/request_permission`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskPermission {
    pub(super) tool_call: ToolCall,
    pub(super) options: Vec<PermissionOption>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption {
    pub(super) option_id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: String,
}

/// `$/cancel_request`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelRequest {
    pub(super) request_id: Value,
}

/// The reply to `initialize`.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Initialized {
    pub(super) protocol_version: Option<u64>,
    #[serde(deserialize_with = "soft")]
    pub(super) agent_info: Option<AgentInfo>,
    #[serde(deserialize_with = "soft")]
    pub(super) agent_capabilities: Option<Capabilities>,
    #[serde(deserialize_with = "soft")]
    pub(super) auth_methods: Option<Vec<AuthMethod>>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct AgentInfo {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct AuthMethod {
    pub(super) name: String,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Capabilities {
    pub(super) load_session: bool,
    #[serde(deserialize_with = "soft")]
    pub(super) prompt_capabilities: Option<PromptCapabilities>,
    #[serde(deserialize_with = "soft")]
    pub(super) mcp_capabilities: Option<McpCapabilities>,
    /// By name; a capability is there if its entry is.
    #[serde(deserialize_with = "soft")]
    pub(super) session_capabilities: Option<Map<String, Value>>,
}

impl Capabilities {
    pub(super) fn images(&self) -> bool {
        self.prompt_capabilities.as_ref().is_some_and(|prompt| prompt.image)
    }

    pub(super) fn mcp_over_http(&self) -> bool {
        self.mcp_capabilities.as_ref().is_some_and(|mcp| mcp.http)
    }

    pub(super) fn session(&self, name: &str) -> bool {
        let entry = self.session_capabilities.as_ref().and_then(|all| all.get(name));
        entry.is_some_and(|entry| !entry.is_null() && *entry != Value::Bool(false))
    }
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct PromptCapabilities {
    pub(super) image: bool,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default)]
pub(super) struct McpCapabilities {
    pub(super) http: bool,
}

/// The reply to `session/new`, `session/load`, `session/resume` and `session/fork`; also what of it changes later.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SessionState {
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "soft")]
    pub(super) modes: Option<Modes>,
    #[serde(deserialize_with = "soft")]
    pub(super) models: Option<Models>,
    #[serde(deserialize_with = "soft")]
    pub(super) config_options: Option<Vec<ConfigOption>>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Modes {
    pub(super) available_modes: Vec<ModeEntry>,
    pub(super) current_mode_id: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct ModeEntry {
    pub(super) id: String,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Models {
    pub(super) available_models: Value,
    pub(super) current_model_id: Option<String>,
}

/// A setting that the agent offers for the session.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConfigOption {
    pub(super) id: String,
    pub(super) category: Option<String>,
    #[serde(default)]
    pub(super) current_value: Value,
    #[serde(default)]
    pub(super) options: Value,
}

/// The reply to `session/list`.
#[derive(Deserialize)]
pub(super) struct Listed {
    pub(super) sessions: Vec<ListedSession>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListedSession {
    pub(super) session_id: String,
    pub(super) cwd: Option<String>,
    pub(super) updated_at: Option<String>,
}

/// The reply to `session/prompt`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PromptDone {
    pub(super) stop_reason: String,
    #[serde(deserialize_with = "soft")]
    pub(super) usage: Option<Usage>,
    #[serde(rename = "_meta", deserialize_with = "soft")]
    pub(super) meta: Option<PromptMeta>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) total_tokens: Option<u64>,
    #[serde(alias = "thoughtTokens")]
    pub(super) thought_tokens: Option<u64>,
    pub(super) cached_read_tokens: Option<u64>,
    pub(super) cached_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptMeta {
    /// How Gemini CLI reports what it used.
    #[serde(deserialize_with = "soft")]
    pub(super) quota: Option<Quota>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Quota {
    pub(super) token_count: TokenCount,
    pub(super) model_usage: Vec<ModelCount>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default)]
pub(super) struct TokenCount {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

#[derive(Deserialize)]
pub(super) struct ModelCount {
    pub(super) model: String,
    #[serde(default)]
    pub(super) token_count: ModelTokens,
}

/// What one model used: in this turn, or so far. Agents report either.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ModelTokens {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    #[serde(rename = "inputTokens")]
    pub(super) input_so_far: Option<u64>,
    #[serde(rename = "outputTokens")]
    pub(super) output_so_far: Option<u64>,
}

/// `plan`.
#[derive(Deserialize)]
pub(super) struct Plan {
    pub(super) entries: Vec<PlanEntry>,
}

#[derive(Deserialize)]
pub(super) struct PlanEntry {
    #[serde(default)]
    pub(super) content: String,
    #[serde(default)]
    pub(super) status: String,
}

#[cfg(test)]
mod tests {
    use multitap_testkit::fixture;

    use super::*;

    /// What a line says, if it is an update.
    fn said(head: Head<'_>) -> Option<(String, String, Content)> {
        assert!(head.id.is_none() && head.result.is_none() && head.error.is_none());
        let params = head.params?;
        let update = params.update?;
        assert!(update.message_id.is_none() && update.meta.is_none());
        Some((params.session_id?.0.into_owned(), update.session_update?.0.into_owned(), update.content))
    }

    #[test]
    fn a_glance_gives_what_reading_gives() {
        let mut glanced = 0;
        for recording in fixture::all("gemini").unwrap() {
            for line in recording.stdout() {
                if let Some(piece) = Head::glance(line) {
                    assert_eq!(said(piece), said(serde_json::from_str(line).unwrap()), "{line}");
                    glanced += 1;
                }
            }
        }
        assert!(glanced > 200, "only {glanced} lines look as expected: has Gemini's form changed?");
    }
}
