//! The loop that runs a process for each turn, with programs that behave badly.

use std::time::{Duration, Instant};

use multitap_adapter::{LaunchSpec, launch};
use multitap_event::{
    AgentErrorKind, AgentKind, AgentProgram, ApprovalMode, Command, EventKind, Mode, Prompt, SandboxMode,
    SessionConfig, SessionEndReason, Transport, TurnEnd, TurnStatus,
};
use multitap_process::Keeper;
use multitap_testkit::fake::Fake;
use tokio_util::task::TaskTracker;

use crate::scene::Scene;

const BEGIN: &str = r#"echo '{"type":"thread.started","thread_id":"t1"}'
echo '{"type":"turn.started"}'
"#;
const SAY: &str = r#"echo '{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
"#;
const HANG: &str = "trap '' INT TERM\nwhile :; do sleep 1; done\n";

/// How long a process may say nothing at first: long enough for a busy machine to start it.
const SILENCE: Duration = Duration::from_secs(3);

/// A program of which the first process does one thing and the others another.
fn program(first: &str, others: &str) -> Fake {
    let text = format!(
        "if [ -e \"$(dirname \"$0\")/ran\" ]; then\n{others}\nelse\ntouch \"$(dirname \"$0\")/ran\"\n{first}\nfi\n"
    );
    Fake::shell("codex", &text).unwrap()
}

async fn start(fake: &Fake, start_timeout: Duration) -> Scene {
    let config = SessionConfig {
        program: Some(AgentProgram { command: fake.program(), ..AgentProgram::default() }),
        mode: Some(Mode::Unified(ApprovalMode::AutoAll)),
        // So that nothing but turns is started.
        sandbox: Some(SandboxMode::FullAccess),
        transport: Transport::OneShot,
        start_timeout,
        ..SessionConfig::new(AgentKind::Codex)
    };
    let spec = LaunchSpec { config, keeper: Keeper::Group, hidden_env: Vec::new() };
    Scene { link: launch(spec, &TaskTracker::new()).await.unwrap(), told: Vec::new() }
}

fn reason(told: &[EventKind]) -> SessionEndReason {
    let Some(EventKind::SessionEnded(end)) = told.last() else { panic!("{told:#?}") };
    end.reason
}

#[tokio::test]
async fn a_process_that_says_nothing_ends_its_turn_and_not_the_session() {
    let fake = program(&format!("echo thinking >&2\n{HANG}"), &format!("{BEGIN}{SAY}"));
    let mut scene = start(&fake, SILENCE).await;
    let end = scene.turn("go").await;
    assert_eq!(end.status, TurnStatus::Failed);
    let error = scene.told.iter().find_map(|kind| if let EventKind::Error(error) = kind { Some(error) } else { None });
    let error = error.unwrap_or_else(|| panic!("{:#?}", scene.told));
    assert_eq!((error.kind, error.native_error.as_deref()), (AgentErrorKind::Timeout, Some("thinking")));
    assert!(error.message.contains("reported nothing for 3 s"), "{error}");
    assert_eq!(scene.turn("again").await.status, TurnStatus::Completed);
    assert_eq!(reason(&scene.close().await), SessionEndReason::Completed);
}

/// R002-109.
#[tokio::test]
async fn a_session_whose_last_turn_took_too_long_ended_by_that() {
    let fake = program(HANG, ":");
    let mut scene = start(&fake, Duration::from_millis(300)).await;
    scene.turn("go").await;
    let told = scene.close().await;
    assert_eq!(reason(&told), SessionEndReason::Timeout, "{told:#?}");
}

#[tokio::test]
async fn a_slow_answer_is_no_silence() {
    let fake = program(&format!("{BEGIN}sleep 5\n{SAY}"), ":");
    let mut scene = start(&fake, SILENCE).await;
    assert_eq!(scene.turn("go").await.status, TurnStatus::Completed);
}

#[tokio::test]
async fn a_process_that_does_not_go_keeps_no_prompt_waiting() {
    let fake = program(&format!("{BEGIN}{SAY}{HANG}"), &format!("{BEGIN}{SAY}"));
    let started = Instant::now();
    let mut scene = start(&fake, Duration::from_secs(10)).await;
    let end: TurnEnd = scene.turn("go").await;
    assert_eq!(end.status, TurnStatus::Completed);
    // Both wait for the process to be gone.
    scene.send(Command::SetModel { model: "gpt-6".to_owned() }).await;
    assert_eq!(scene.turn("again").await.status, TurnStatus::Completed);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let told = scene.close().await;
    assert!(!told.iter().any(|kind| matches!(kind, EventKind::Error(_))), "{told:#?}");
    assert_eq!(reason(&told), SessionEndReason::Completed);
}

#[tokio::test]
async fn an_end_shows_even_if_something_else_holds_the_output_open() {
    let fake = program(&format!("{BEGIN}sleep 60 &\nexit 3\n"), ":");
    let started = Instant::now();
    let mut scene = start(&fake, Duration::from_secs(10)).await;
    assert_eq!(scene.turn("go").await.status, TurnStatus::Failed);
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    scene.send(Command::Prompt(Prompt::text("unheard"))).await;
    scene.close().await;
}

/// A process in a session of its own is in no group that ends with the turn's process.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_descendant_that_holds_the_pipes_does_not_hold_the_turn() {
    let leaves = "setsid sleep 40 &\n";
    let fake = program(&format!("{BEGIN}{leaves}exit 3\n"), &format!("{BEGIN}{SAY}{leaves}"));
    let started = Instant::now();
    let mut scene = start(&fake, Duration::from_secs(10)).await;
    assert_eq!(scene.turn("go").await.status, TurnStatus::Failed);
    assert_eq!(scene.turn("again").await.status, TurnStatus::Completed);
    let told = scene.close().await;
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(reason(&told), SessionEndReason::Completed, "{told:#?}");
}
