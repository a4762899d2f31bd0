//! Whole sessions: the library, a real child process, a fake agent.

#![cfg(unix)]

use std::time::Duration;

use multitap_client::{
    AgentClient, AgentErrorKind, AgentKind, AgentProgram, EventKind, Prompt, SessionConfig, StartError, TurnStatus,
};
use multitap_testkit::Scratch;
use multitap_testkit::fake::{Act, Fake, init};
use multitap_testkit::wait::until_gone;

const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the fake in a place whose processes can be found again.
fn config(fake: &Fake, scratch: &Scratch) -> SessionConfig {
    let mut config = SessionConfig::new(AgentKind::Claude);
    let command = scratch.launcher(&fake.program(), &[]).unwrap();
    config.program = Some(AgentProgram { command, ..AgentProgram::default() });
    config.working_directory = Some(scratch.workspace());
    config.start_timeout = PATIENCE;
    config
}

#[tokio::test]
async fn two_turns_in_one_session() {
    let scratch = Scratch::without_model().unwrap();
    let fake = Fake::claude().says("one").says("two").build().unwrap();
    let client = AgentClient::new();
    let mut session = client.start(config(&fake, &scratch).with_prompt("first")).await.unwrap();
    session.prompt(Prompt::text("second")).await.unwrap();
    session.finish().await.unwrap();
    let mut said = Vec::new();
    let mut seqs = Vec::new();
    while let Some(event) = session.events().next().await {
        assert_eq!(event.session_id, *session.id());
        seqs.push(event.seq);
        if let EventKind::TextChunk(chunk) = &event.kind {
            said.push(chunk.content.clone());
        }
    }
    assert_eq!(said, ["one", "two"]);
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert!(session.native_id().is_some());
    client.shutdown().await;
    until_gone(&scratch, Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_prompt_is_a_command_only_for_programs_that_want_it() {
    let scratch = Scratch::without_model().unwrap();
    let fake = Fake::claude().says("words").build().unwrap();
    let plain = AgentClient::new();
    let line = || config(&fake, &scratch).with_prompt("!echo ran > made; cat made");
    assert_eq!(plain.prompt_once(line()).await.unwrap().text, "words");
    assert!(!scratch.path("made").exists());
    let wanting = AgentClient::builder().shell_lines().build();
    let outcome = wanting.prompt_once(line()).await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.status), ("ran", Some(TurnStatus::Completed)));
    assert_eq!(scratch.read("made").unwrap(), "ran\n");
    plain.shutdown().await;
    wanting.shutdown().await;
    until_gone(&scratch, Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn asking_once_gives_the_answer_and_its_price() {
    let scratch = Scratch::without_model().unwrap();
    let fake = Fake::claude().says("forty-two").build().unwrap();
    let client = AgentClient::new();
    let outcome = client.prompt_once(config(&fake, &scratch).with_prompt("what?")).await.unwrap();
    assert_eq!(outcome.text, "forty-two");
    assert_eq!(outcome.status, Some(TurnStatus::Completed));
    assert_eq!(outcome.usage.unwrap().total_tokens, 120);
    assert!(matches!(outcome.events.last().unwrap().kind, EventKind::SessionEnded(_)));
    client.shutdown().await;
}

#[tokio::test]
async fn the_example_runs() {
    let scratch = Scratch::without_model().unwrap();
    let fake = Fake::claude().says("hello").build().unwrap();
    let client = AgentClient::new();
    crate::stream::tour(&client, config(&fake, &scratch), "first", "second").await.unwrap();
    let heard = fake.heard().unwrap().join("\n");
    assert!(heard.contains("first") && heard.contains("second") && heard.contains("--resume"), "{heard}");
    client.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_dies_in_its_turn_is_an_error_with_its_last_words() {
    let scratch = Scratch::without_model().unwrap();
    let acts = [init().into(), Act::Stderr("out of luck".into()), Act::Exit(7)];
    let fake = Fake::claude().turn(acts).build().unwrap();
    let error = AgentClient::new().prompt_once(config(&fake, &scratch).with_prompt("what?")).await.unwrap_err();
    assert_eq!(error.kind, AgentErrorKind::ProcessExitError);
    assert_eq!(error.exit_code, Some(7));
    assert!(error.native_error.unwrap().contains("out of luck"));
}

#[tokio::test]
async fn dropping_a_session_or_the_start_of_one_leaves_nothing() {
    let scratch = Scratch::without_model().unwrap();
    let fake = Fake::claude().turn([init().into(), Act::Hang]).build().unwrap();
    let client = AgentClient::new();
    let mut session = client.start(config(&fake, &scratch).with_prompt("hang")).await.unwrap();
    while !matches!(session.events().next().await.unwrap().kind, EventKind::TurnStarted { .. }) {}
    drop(session);
    until_gone(&scratch, PATIENCE).await.unwrap();

    let silent = Fake::silent().unwrap();
    let start = client.start(config(&silent, &scratch));
    tokio::time::timeout(Duration::from_millis(300), start).await.unwrap_err();
    until_gone(&scratch, PATIENCE).await.unwrap();
}

#[tokio::test]
async fn shutdown_ends_every_session_and_takes_no_new_one() {
    let scratch = Scratch::without_model().unwrap();
    let fake = Fake::claude().turn([init().into(), Act::Hang]).build().unwrap();
    let client = AgentClient::new();
    let session = client.start(config(&fake, &scratch).with_prompt("hang")).await.unwrap();
    client.shutdown().await;
    until_gone(&scratch, Duration::ZERO).await.unwrap();
    let refused = client.start(config(&fake, &scratch)).await.unwrap_err();
    assert!(matches!(refused, StartError::ShutDown), "{refused}");
    drop(session);
}
