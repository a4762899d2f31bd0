//! Starts a session, prints everything that happens in it, and resumes it later.
//!
//! `cargo run -p multitap-client --example stream -- FOLDER "PROMPT" "NEXT PROMPT"`
//!
//! The agent runs without asking. The folder is this one and the prompts are harmless if none are given.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::path::PathBuf;

use multitap_client::{
    AgentClient, AgentKind, AgentSession, ApprovalMode, Event, EventKind, Mode, SessionConfig, ToolOutcome,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().map_or_else(std::env::current_dir, |folder| Ok(PathBuf::from(folder)))?;
    let prompt = args.next().unwrap_or_else(|| "Say in one sentence what this folder is.".to_owned());
    let next_prompt = args.next().unwrap_or_else(|| "Now say it in three words.".to_owned());

    let client = AgentClient::new();
    let mut config = SessionConfig::new(AgentKind::Claude);
    config.working_directory = Some(folder);
    config.mode = Some(Mode::Unified(ApprovalMode::AutoAll));
    tour(&client, config, &prompt, &next_prompt).await?;
    client.shutdown().await;
    Ok(())
}

/// One session, followed to its end and then resumed.
pub async fn tour(
    client: &AgentClient,
    config: SessionConfig,
    prompt: &str,
    next_prompt: &str,
) -> Result<(), Box<dyn Error>> {
    let session = client.start(config.clone().with_prompt(prompt)).await?;
    let native_id = follow(session).await?;

    // Resume the session later, in a new process of the agent.
    if let Some(native_id) = native_id {
        let resumed = client.resume(native_id, config.with_prompt(next_prompt)).await?;
        follow(resumed).await?;
    }
    Ok(())
}

/// Prints a session to its end.
async fn follow(mut session: AgentSession) -> Result<Option<String>, Box<dyn Error>> {
    while let Some(event) = session.events().next().await {
        show(&event);
        if matches!(event.kind, EventKind::TurnCompleted(_)) {
            session.finish().await?;
        }
    }
    Ok(session.native_id())
}

/// Every kind of event, with no wildcard: a new kind does not compile until it has a place here.
fn show(event: &Event) {
    match &event.kind {
        EventKind::SessionStarted(start) => println!("Session started: {} ({})", event.session_id, start.agent_type),
        EventKind::TurnStarted { turn_id } => println!("[Turn] {turn_id}"),
        EventKind::TextChunk(chunk) if chunk.is_partial => print!("{}", chunk.content),
        EventKind::TextChunk(chunk) => println!("{}", chunk.content),
        EventKind::Reasoning(thought) => print!("{}", thought.content),
        EventKind::ToolStarted(tool) => println!("\n[Tool] {}: {:?}", tool.tool_name, tool.arguments),
        EventKind::ToolProgress(progress) => println!("[Progress] {}", progress.tool_id),
        EventKind::ToolCompleted(done) => {
            let how = match done.outcome {
                ToolOutcome::Completed => "OK",
                ToolOutcome::Failed => "FAILED",
                ToolOutcome::Denied => "DENIED",
                ToolOutcome::Cancelled => "CANCELLED",
            };
            println!("[Result] {}: {how} - {:?}", done.tool_id, done.result);
        }
        EventKind::FileChanged(change) => println!("[File] {:?}: {}", change.change_type, change.file_path),
        EventKind::TodoList(plan) => println!("[Plan] {} items", plan.items.len()),
        EventKind::TurnCompleted(end) => match end.usage {
            Some(usage) => println!("\n[Tokens] in={} out={}", usage.input_tokens, usage.output_tokens),
            None => println!("\n[Turn] {:?}", end.status),
        },
        EventKind::SessionEnded(end) => match &end.error {
            Some(error) => println!("\n[End] {:?}: {error}", end.reason),
            None => println!("\n[End] {:?}", end.reason),
        },
        EventKind::TextRetracted(text) => println!("[Retracted] {}", text.message_ids.len()),
        EventKind::NativeSessionChanged { native_session_id } => println!("[Session] {native_session_id}"),
        EventKind::Capabilities(agent) => println!("[Capabilities] {agent:?}"),
        EventKind::McpServerStatus(server) => println!("[MCP] {}", server.summary()),
        EventKind::RuleAdded(rule) => println!("[Rule] {}", rule.added_summary()),
        EventKind::RuleRevoked(rule) => println!("[Rule] {}", rule.revoked_summary()),
        EventKind::System(note) => println!("[System] {}", note.subtype),
        EventKind::RawDelta { native_type } => println!("[Raw] {native_type:?}"),
        EventKind::Error(error) => println!("[Error] {error}"),
        EventKind::Retry(retry) => println!("[Retry] attempt {}", retry.attempt),
        EventKind::AuthStatus(status) => println!("[Sign-in] running: {}", status.is_authenticating),
        EventKind::UserMessage(message) => println!("> {}", message.content),
        EventKind::PromptQueued { prompt, .. } => println!("> (waiting) {}", prompt.text),
        EventKind::PromptWithdrawn { prompt_id, .. } => println!("> (withdrawn) {prompt_id}"),
        EventKind::PermissionAsked(question) => println!("[Question] {}", question.title),
        EventKind::PermissionSettled(ruling) => println!("[Ruling] {}", ruling.selected_option_id),
        EventKind::PermissionWithdrawn(gone) => println!("[Question] {} is moot", gone.question_id),
        EventKind::ModeChanged { mode, native_mode, .. } => println!("[Mode] {mode:?} {native_mode:?}"),
        EventKind::ModelChanged { model, .. } => println!("[Model] {model}"),
        EventKind::ClientJoined { client } => println!("[Joined] {}", client.client),
        EventKind::ClientLeft { client, .. } => println!("[Left] {}", client.client),
        EventKind::Unrecognized { reason, .. } => println!("[Unrecognized] {reason}"),
    }
}
