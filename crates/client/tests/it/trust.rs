//! What the built-in agent may do is said of each session, whatever others of the same client may.

use multitap_client::{AgentClient, AgentKind, ApprovalMode, Event, EventKind, Mode, SessionConfig};
use multitap_testkit::Scratch;

fn config(scratch: &Scratch, mode: ApprovalMode, prompt: &str) -> SessionConfig {
    SessionConfig {
        model: Some("rehearsal".to_owned()),
        mode: Some(Mode::Unified(mode)),
        working_directory: Some(scratch.workspace()),
        ..SessionConfig::new(AgentKind::Builtin).with_prompt(prompt)
    }
}

/// Runs both at once and gives their events.
async fn both(one: SessionConfig, other: SessionConfig) -> [Vec<Event>; 2] {
    let client = AgentClient::new();
    let (one, other) = tokio::join!(client.prompt_once(one), client.prompt_once(other));
    client.shutdown().await;
    [one.unwrap().events, other.unwrap().events]
}

#[tokio::test]
async fn a_folder_is_trusted_for_its_session_alone() {
    let scratch = Scratch::without_model().unwrap();
    let config = || config(&scratch, ApprovalMode::AskDangerous, "run: git status");
    let [trusted, other] = both(SessionConfig { trusted: true, ..config() }, config()).await;
    let asks = |events: &[Event]| events.iter().any(|event| matches!(event.kind, EventKind::PermissionAsked(_)));
    assert!(!asks(&trusted), "what only reads runs where git can be believed");
    assert!(asks(&other), "git runs what the folder tells it to");
}

#[tokio::test]
async fn the_network_around_is_open_to_its_session_alone() {
    let scratch = Scratch::without_model().unwrap();
    let config = || config(&scratch, ApprovalMode::AutoAll, "fetch http://127.0.0.1:1/");
    let [open, other] = both(SessionConfig { private_addresses: true, ..config() }, config()).await;
    let error = |events: &[Event]| {
        let errors = events.iter().filter_map(|event| match &event.kind {
            EventKind::ToolCompleted(done) => done.error.clone(),
            _ => None,
        });
        errors.collect::<String>()
    };
    assert!(error(&other).contains("which is not allowed"), "{}", error(&other));
    assert!(!error(&open).is_empty() && !error(&open).contains("which is not allowed"), "{}", error(&open));
}
