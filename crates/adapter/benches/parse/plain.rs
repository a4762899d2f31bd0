//! What we are measured against: the same lines read by a plain derive, as most programs would do it.
//!
//! Typed structs, an enum for each tag, owned strings, and nothing made of them: no event, no books. What a line may
//! hold in any shape is a `Value`. It lives in the bench alone; no codec reads like this.

#![expect(dead_code, reason = "reading the fields is the work; nobody looks at them")]

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::corpus::Dialect;

/// Reads one line; false if it does not read.
pub(crate) fn reads(dialect: Dialect, line: &str) -> bool {
    match dialect {
        Dialect::Claude => kept(serde_json::from_str::<Claude>(line)),
        Dialect::Exec => kept(serde_json::from_str::<Exec>(line)),
        Dialect::StreamJson => kept(serde_json::from_str::<StreamJson>(line)),
        // A reply has no tag.
        Dialect::AppServer => kept(serde_json::from_str::<AppServer>(line)) || reply(line),
        Dialect::Acp => kept(serde_json::from_str::<Acp>(line)) || reply(line),
    }
}

fn reply(line: &str) -> bool {
    kept(serde_json::from_str::<Reply>(line))
}

fn kept<T>(read: serde_json::Result<T>) -> bool {
    std::hint::black_box(read).is_ok()
}

#[derive(Deserialize)]
struct Reply {
    id: Value,
    result: Option<Value>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Claude {
    System(ClaudeSystem),
    StreamEvent(ClaudeStream),
    Assistant(ClaudeAssistant),
    User(ClaudeUser),
    Result(ClaudeResult),
    ControlRequest { request_id: String, request: Value },
    ControlResponse { response: Value },
    ControlCancelRequest { request_id: String },
}

#[derive(Deserialize)]
struct ClaudeSystem {
    subtype: String,
    session_id: String,
    uuid: Option<String>,
    cwd: Option<String>,
    tools: Option<Vec<String>>,
    mcp_servers: Option<Vec<Value>>,
    model: Option<String>,
    #[serde(rename = "permissionMode")]
    permission_mode: Option<String>,
    slash_commands: Option<Vec<String>>,
    agents: Option<Vec<String>>,
    skills: Option<Vec<String>>,
    plugins: Option<Vec<Value>>,
    claude_code_version: Option<String>,
    status: Option<String>,
    estimated_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ClaudeStream {
    event: ClaudeEvent,
    session_id: String,
    parent_tool_use_id: Option<String>,
    uuid: String,
    api_message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ClaudeEvent {
    MessageStart { message: ClaudeMessage },
    ContentBlockStart { index: u64, content_block: ClaudeBlock },
    ContentBlockDelta { index: u64, delta: ClaudeDelta },
    ContentBlockStop { index: u64 },
    MessageDelta { delta: Value, usage: ClaudeUsage },
    MessageStop,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum ClaudeDelta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ClaudeBlock {
    Text { text: String },
    Thinking { thinking: String, signature: Option<String> },
    ToolUse { id: String, name: String, input: Map<String, Value> },
    ToolResult { tool_use_id: String, content: Value, is_error: Option<bool> },
}

#[derive(Deserialize)]
struct ClaudeMessage {
    id: Option<String>,
    role: String,
    model: Option<String>,
    content: Vec<ClaudeBlock>,
    stop_reason: Option<String>,
    usage: Option<ClaudeUsage>,
}

#[derive(Deserialize)]
struct ClaudeUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct ClaudeAssistant {
    message: ClaudeMessage,
    parent_tool_use_id: Option<String>,
    session_id: String,
    uuid: String,
    timestamp: Option<String>,
    request_id: Option<String>,
}

#[derive(Deserialize)]
struct ClaudeUser {
    message: ClaudeMessage,
    parent_tool_use_id: Option<String>,
    session_id: String,
    uuid: String,
    timestamp: Option<String>,
    tool_use_result: Option<Value>,
    tool_result_meta: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct ClaudeResult {
    subtype: String,
    is_error: bool,
    duration_ms: u64,
    duration_api_ms: Option<u64>,
    num_turns: u64,
    result: Option<String>,
    session_id: String,
    total_cost_usd: f64,
    usage: ClaudeUsage,
    #[serde(rename = "modelUsage")]
    model_usage: Map<String, Value>,
    permission_denials: Vec<Value>,
    terminal_reason: Option<String>,
    uuid: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "method")]
enum AppServer {
    #[serde(rename = "item/agentMessage/delta")]
    AgentMessageDelta { params: CodexDelta },
    #[serde(rename = "item/reasoning/summaryTextDelta")]
    SummaryDelta { params: CodexDelta },
    #[serde(rename = "item/commandExecution/outputDelta")]
    OutputDelta { params: CodexDelta },
    #[serde(rename = "item/started")]
    ItemStarted { params: CodexItemParams },
    #[serde(rename = "item/completed")]
    ItemCompleted { params: CodexItemParams },
    #[serde(rename = "turn/started")]
    TurnStarted { params: CodexTurnParams },
    #[serde(rename = "turn/completed")]
    TurnCompleted { params: CodexTurnParams },
    #[serde(rename = "thread/tokenUsage/updated")]
    TokenUsage { params: CodexUsageParams },
    #[serde(rename = "item/commandExecution/requestApproval", alias = "item/fileChange/requestApproval")]
    #[serde(alias = "mcpServer/elicitation/request")]
    Approval { id: Value, params: Map<String, Value> },
    #[serde(rename = "thread/started", alias = "thread/status/changed", alias = "account/rateLimits/updated")]
    #[serde(alias = "configWarning", alias = "remoteControl/status/changed", alias = "serverRequest/resolved")]
    #[serde(alias = "turn/diff/updated", alias = "turn/plan/updated", alias = "mcpServer/startupStatus/updated")]
    #[serde(alias = "item/reasoning/summaryPartAdded", alias = "deprecationNotice")]
    Notice { params: Map<String, Value> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexDelta {
    thread_id: String,
    turn_id: String,
    item_id: String,
    delta: String,
    summary_index: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexItemParams {
    item: CodexItem,
    thread_id: String,
    turn_id: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum CodexItem {
    UserMessage {
        id: String,
        content: Vec<Value>,
    },
    AgentMessage {
        id: String,
        text: String,
        phase: Option<String>,
    },
    Reasoning {
        id: String,
        summary: Vec<String>,
        content: Vec<String>,
    },
    CommandExecution {
        id: String,
        command: String,
        cwd: String,
        status: String,
        process_id: Option<String>,
        command_actions: Vec<Value>,
        aggregated_output: Option<String>,
        exit_code: Option<i32>,
        duration_ms: Option<u64>,
    },
    FileChange {
        id: String,
        changes: Vec<Value>,
        status: String,
    },
    McpToolCall {
        id: String,
        server: String,
        tool: String,
        status: String,
        arguments: Value,
        result: Option<Value>,
        error: Option<Value>,
        duration_ms: Option<u64>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexTurnParams {
    thread_id: String,
    turn: CodexTurn,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexTurn {
    id: String,
    items: Vec<CodexItem>,
    status: String,
    error: Option<Value>,
    duration_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexUsageParams {
    thread_id: String,
    turn_id: String,
    token_usage: CodexUsageReport,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexUsageReport {
    total: CodexUsage,
    last: CodexUsage,
    model_context_window: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CodexUsage {
    total_tokens: u64,
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
    reasoning_output_tokens: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Exec {
    #[serde(rename = "thread.started")]
    ThreadStarted { thread_id: String },
    #[serde(rename = "turn.started")]
    TurnStarted,
    #[serde(rename = "turn.completed")]
    TurnCompleted { usage: Map<String, Value> },
    #[serde(rename = "item.started", alias = "item.updated", alias = "item.completed")]
    Item { item: ExecItem },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ExecItem {
    AgentMessage { id: String, text: String },
    FileChange { id: String, changes: Vec<Value>, status: String },
    TodoList { id: String, items: Vec<Value> },
}

#[derive(Deserialize)]
#[serde(tag = "method")]
enum Acp {
    #[serde(rename = "session/update")]
    Update { params: AcpUpdateParams },
    #[serde(rename = "session/request_permission")]
    Permission { id: Value, params: AcpPermission },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcpUpdateParams {
    session_id: String,
    update: AcpUpdate,
}

#[derive(Deserialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum AcpUpdate {
    AgentMessageChunk { content: AcpContent },
    AgentThoughtChunk { content: AcpContent },
    UserMessageChunk { content: AcpContent },
    ToolCall(AcpToolCall),
    ToolCallUpdate(AcpToolCall),
    AvailableCommandsUpdate { available_commands: Vec<Value> },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AcpContent {
    Text { text: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcpToolCall {
    tool_call_id: String,
    title: Option<String>,
    kind: Option<String>,
    status: Option<String>,
    content: Option<Vec<AcpToolContent>>,
    locations: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum AcpToolContent {
    Content { content: AcpContent },
    Diff { path: String, old_text: Option<String>, new_text: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcpPermission {
    session_id: String,
    options: Vec<Value>,
    tool_call: AcpToolCall,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StreamJson {
    Init { timestamp: String, session_id: String, model: String },
    Message { timestamp: String, role: String, content: String, delta: Option<bool> },
    ToolUse { timestamp: String, tool_name: String, tool_id: String, parameters: Map<String, Value> },
    ToolResult { timestamp: String, tool_id: String, status: String, output: Option<String>, error: Option<Value> },
    Result { timestamp: String, status: String, stats: Option<Value>, error: Option<Value> },
}
