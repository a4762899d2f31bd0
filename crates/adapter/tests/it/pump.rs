//! The loop around a codec, with programs that behave badly.

use std::time::{Duration, Instant};

use multitap_adapter::{LaunchSpec, launch};
use multitap_event::{
    AgentError, AgentErrorKind, AgentKind, AgentLink, AgentProgram, Command, EventKind, LaunchError, Prompt,
    SessionConfig, SessionEndReason, TurnStatus,
};
use multitap_process::Keeper;
use multitap_testkit::fake::Fake;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

const PATIENCE: Duration = Duration::from_secs(20);

fn config(fake: &Fake) -> SessionConfig {
    SessionConfig {
        program: Some(AgentProgram { command: fake.program(), ..AgentProgram::default() }),
        start_timeout: Duration::from_secs(10),
        ..SessionConfig::new(AgentKind::Claude)
    }
}

async fn start(config: SessionConfig) -> Result<AgentLink, LaunchError> {
    let spec = LaunchSpec { config, keeper: Keeper::Group, hidden_env: Vec::new() };
    launch(spec, &TaskTracker::new()).await
}

async fn refused(config: SessionConfig) -> AgentError {
    match start(config).await {
        Err(LaunchError::Agent(error)) => *error,
        Err(LaunchError::Unsupported(unsupported)) => panic!("{unsupported}"),
        Ok(_) => panic!("it started"),
    }
}

async fn rest(link: AgentLink) -> Vec<EventKind> {
    let AgentLink { mut events, commands, .. } = link;
    let mut told = Vec::new();
    while let Some(draft) = timeout(PATIENCE, events.recv()).await.unwrap() {
        told.push(draft.kind);
    }
    drop(commands);
    told
}

fn errors(told: &[EventKind]) -> Vec<AgentError> {
    told.iter().filter_map(|kind| if let EventKind::Error(error) = kind { Some(error.clone()) } else { None }).collect()
}

/// The first line from us, and what a healthy program answers.
const GREET: &str = r#"read -r line
echo '{"type":"control_response","response":{"subtype":"success","request_id":"multitap-init","response":{"commands":[],"current_permission_mode":"default"}}}'
"#;

const TURN: &str = r#"echo '{"type":"system","subtype":"init","session_id":"s","model":"m","permissionMode":"default"}'
"#;

const RESULT: &str = r#"echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s"}'
"#;

#[tokio::test]
async fn programs_that_cannot_start_give_one_clear_error() {
    let missing = refused(config(&Fake::missing().unwrap())).await;
    assert_eq!(missing.kind, AgentErrorKind::ProcessSpawnFailed);
    let not_executable = refused(config(&Fake::not_executable().unwrap())).await;
    assert_eq!(not_executable.kind, AgentErrorKind::ProcessSpawnFailed);
    let exits = refused(config(&Fake::exits(7, "no licence").unwrap())).await;
    assert_eq!((exits.kind, exits.exit_code), (AgentErrorKind::ProcessExitError, Some(7)));
    assert_eq!(exits.native_error.as_deref(), Some("no licence"));
    let folder =
        SessionConfig { working_directory: Some("/does/not/exist".into()), ..config(&Fake::silent().unwrap()) };
    assert!(refused(folder).await.message.contains("/does/not/exist"));
}

#[tokio::test]
async fn a_program_that_says_nothing_is_given_up() {
    let hangs = Fake::hangs().unwrap();
    let config = SessionConfig { start_timeout: Duration::from_millis(300), ..config(&hangs) };
    let error = refused(config).await;
    assert_eq!(error.kind, AgentErrorKind::Timeout);
    assert!(error.message.contains("0.3 s"), "{}", error.message);
}

#[tokio::test]
async fn a_program_that_closes_its_output_is_stopped() {
    let error = refused(config(&Fake::closes_stdout().unwrap())).await;
    assert_eq!(error.kind, AgentErrorKind::ProtocolError);

    let later = Fake::shell("later", &format!("{GREET}{TURN}exec >&-\nwhile :; do sleep 1; done\n")).unwrap();
    let told = rest(start(config(&later)).await.unwrap()).await;
    let [.., EventKind::Error(error), EventKind::TurnCompleted(turn), EventKind::SessionEnded(end)] = told.as_slice()
    else {
        panic!("{told:#?}")
    };
    assert_eq!((error.kind, turn.status), (AgentErrorKind::ProtocolError, TurnStatus::Interrupted));
    assert_eq!((end.reason, errors(&told).len()), (SessionEndReason::Failed, 1));
}

#[tokio::test]
async fn a_program_that_dies_in_a_turn_is_told_with_its_last_words() {
    let dies =
        Fake::shell("dies", &format!("{GREET}read -r line\n{TURN}echo 'out of memory' >&2\nkill -9 $$\n")).unwrap();
    let link = start(config(&dies)).await.unwrap();
    link.commands.send(Command::Prompt(Prompt::text("go"))).await.unwrap();
    let told = rest(link).await;
    let [error] = errors(&told).try_into().unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!((error.kind, error.native_error.as_deref()), (AgentErrorKind::ProcessExitError, Some("out of memory")));
    let [.., EventKind::TurnCompleted(turn), EventKind::SessionEnded(end)] = told.as_slice() else {
        panic!("{told:#?}")
    };
    assert_eq!((turn.status, end.reason), (TurnStatus::Interrupted, SessionEndReason::Failed));
}

/// The memory for a line grows with its values: 3.6 MB of small objects take some 500 MB.
#[tokio::test]
async fn a_line_of_many_values_is_unrecognized_and_the_next_one_is_read() {
    let many = r#"printf '{"type":"assistant","message":{"content":['
yes '{"a":1},' | head -n 450000 | tr -d '\n'
echo '0]}}'
"#;
    let says = r#"echo '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"done"}]}}'
"#;
    let fake = Fake::shell("many", &format!("{GREET}read -r line\n{TURN}{many}{says}{RESULT}")).unwrap();
    let link = start(config(&fake)).await.unwrap();
    link.commands.send(Command::Prompt(Prompt::text("go"))).await.unwrap();
    let told = rest(link).await;
    let unrecognized: Vec<_> = told
        .iter()
        .filter_map(|kind| match kind {
            EventKind::Unrecognized { line, reason, bytes } => Some((line, reason, *bytes)),
            _ => None,
        })
        .collect();
    let [(line, reason, bytes)] = unrecognized.as_slice() else { panic!("{}", unrecognized.len()) };
    assert!(line.starts_with(r#"{"type":"assistant","message":{"content":[{"a":1},"#) && line.len() == 4096);
    assert_eq!(*reason, "line of 3600046 bytes has more than 250000 values");
    assert_eq!(*bytes, Some(3_600_046));
    assert!(told.iter().any(|kind| matches!(kind, EventKind::TextChunk(chunk) if chunk.content == "done")));
}

#[tokio::test]
async fn a_prompt_that_nobody_took_up_still_has_a_turn() {
    let dies = Fake::shell("dies", &format!("{GREET}read -r line\nexit 3\n")).unwrap();
    let link = start(config(&dies)).await.unwrap();
    link.commands.send(Command::Prompt(Prompt::text("go"))).await.unwrap();
    let told = rest(link).await;
    let turns =
        told.iter().filter(|kind| matches!(kind, EventKind::TurnStarted { .. } | EventKind::TurnCompleted(_))).count();
    assert_eq!((turns, errors(&told)[0].exit_code), (2, Some(3)));
}

#[tokio::test]
async fn garbage_and_endless_lines_do_not_stop_a_turn() {
    let noise = r#"echo 'Warning: this is not JSON'
printf '\377\376\n'
echo
echo '[1,2,3]'
head -c 70000000 /dev/zero | tr '\0' x
echo
"#;
    let noisy = Fake::shell("noisy", &format!("{GREET}{TURN}{noise}{RESULT}")).unwrap();
    let told = rest(start(config(&noisy)).await.unwrap()).await;
    let unrecognized: Vec<Option<u64>> = told
        .iter()
        .filter_map(|kind| if let EventKind::Unrecognized { bytes, .. } = kind { Some(*bytes) } else { None })
        .collect();
    assert_eq!(unrecognized, [None, None, None, Some(70_000_000)]);
    let [.., EventKind::TurnCompleted(turn), EventKind::SessionEnded(end)] = told.as_slice() else {
        panic!("{told:#?}")
    };
    assert_eq!((turn.status, end.reason), (TurnStatus::Completed, SessionEndReason::Completed));
}

#[tokio::test]
async fn an_end_shows_even_if_something_else_holds_the_output_open() {
    let leaves = Fake::shell("leaves", &format!("{GREET}{TURN}{RESULT}sleep 60 &\nexit 0\n")).unwrap();
    let started = Instant::now();
    let told = rest(start(config(&leaves)).await.unwrap()).await;
    assert!(matches!(told.last(), Some(EventKind::SessionEnded(end)) if end.reason == SessionEndReason::Completed));
    assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_command_that_is_not_taken_is_an_error_and_the_session_goes_on() {
    let deaf = Fake::shell("deaf", &format!("{GREET}exec <&-\nsleep 1\n{TURN}{RESULT}")).unwrap();
    let link = start(config(&deaf)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    for _ in 0..3 {
        link.commands.send(Command::SetModel { model: "x".into() }).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let told = rest(link).await;
    assert!(errors(&told)[0].message.contains("did not accept a command"), "{told:#?}");
    assert!(told.iter().any(|kind| matches!(kind, EventKind::TurnCompleted(_))));
}

#[tokio::test]
async fn dropping_both_ends_ends_the_program() {
    let hangs = Fake::shell("hangs", &format!("{GREET}{TURN}trap '' INT TERM\nwhile :; do sleep 1; done\n")).unwrap();
    let tasks = TaskTracker::new();
    let spec = LaunchSpec { config: config(&hangs), keeper: Keeper::Group, hidden_env: Vec::new() };
    drop(launch(spec, &tasks).await.unwrap());
    tasks.close();
    timeout(PATIENCE, tasks.wait()).await.unwrap();
}

#[tokio::test]
async fn a_program_that_floods_us_at_its_start_is_stopped() {
    let started = Instant::now();
    let flood = Fake::shell("flood", "exec yes garbage\n").unwrap();
    let error = refused(SessionConfig { start_timeout: Duration::from_secs(60), ..config(&flood) }).await;
    assert_eq!(error.kind, AgentErrorKind::ProtocolError);
    assert!(error.message.ends_with(r#"its last lines are "garbage", "garbage", "garbage""#), "{}", error.message);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

const REFUSE: &str = r#"read -r line
echo '{"type":"control_response","response":{"subtype":"error","request_id":"multitap-init","error":"no licence"}}'
while :; do sleep 1; done
"#;

#[tokio::test]
async fn a_refused_greeting_fails_the_start_at_once() {
    let started = Instant::now();
    let refuses = Fake::shell("refuses", REFUSE).unwrap();
    let error = refused(SessionConfig { start_timeout: Duration::from_secs(60), ..config(&refuses) }).await;
    assert_eq!((error.kind, error.native_error.as_deref()), (AgentErrorKind::ProtocolError, Some("no licence")));
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_start_that_takes_too_long_says_what_went_wrong_before() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"come back later"}}"#;
    let hangs = Fake::shell("hangs", &format!("echo '{error}'\nwhile :; do sleep 1; done\n")).unwrap();
    let error = refused(SessionConfig { start_timeout: Duration::from_secs(1), ..config(&hangs) }).await;
    assert_eq!(error.kind, AgentErrorKind::Timeout);
    assert!(error.message.ends_with("it said: come back later"), "{}", error.message);
}

#[tokio::test]
async fn a_program_that_closes_its_input_and_lives_is_stopped() {
    let deaf = Fake::shell("deaf", &format!("{GREET}exec <&-\nwhile :; do sleep 1; done\n")).unwrap();
    let link = start(config(&deaf)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    link.commands.send(Command::Prompt(Prompt::text("go"))).await.unwrap();
    let told = rest(link).await;
    let [
        ..,
        EventKind::Error(error),
        EventKind::TurnStarted { .. },
        EventKind::TurnCompleted(turn),
        EventKind::SessionEnded(end),
    ] = told.as_slice()
    else {
        panic!("{told:#?}")
    };
    assert_eq!((error.kind, turn.status), (AgentErrorKind::ProtocolError, TurnStatus::Interrupted));
    assert_eq!(end.reason, SessionEndReason::Failed);
}

#[tokio::test]
async fn a_program_that_does_not_read_is_told_once() {
    let deaf = Fake::shell("deaf", &format!("{GREET}sleep 8\n")).unwrap();
    let link = start(config(&deaf)).await.unwrap();
    link.commands.send(Command::Prompt(Prompt::text("x".repeat(1_000_000)))).await.unwrap();
    let told = rest(link).await;
    let unread = errors(&told).into_iter().filter(|error| error.kind == AgentErrorKind::Timeout);
    assert_eq!(unread.count(), 1, "{told:#?}");
}

#[tokio::test]
async fn an_agent_that_ignores_a_cancel_is_ended() {
    // It reads everything, and says now and then that it works.
    let busy = r#"while :; do echo '{"type":"system","subtype":"status","status":"requesting","session_id":"s"}'; sleep 1; done &
while read -r line; do :; done
"#;
    let ignores = Fake::shell("ignores", &format!("{GREET}read -r line\n{TURN}{busy}")).unwrap();
    let link = start(config(&ignores)).await.unwrap();
    link.commands.send(Command::Prompt(Prompt::text("go"))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    link.commands.send(Command::Cancel).await.unwrap();
    let told = rest(link).await;
    let [.., EventKind::Error(error), EventKind::TurnCompleted(turn), EventKind::SessionEnded(end)] = told.as_slice()
    else {
        panic!("{told:#?}")
    };
    assert_eq!((error.kind, turn.status), (AgentErrorKind::Timeout, TurnStatus::Interrupted));
    assert!(error.message.contains("continued a cancelled turn for 10 s"), "{error}");
    assert_eq!(end.reason, SessionEndReason::Timeout);
}

#[tokio::test]
async fn a_cancel_without_a_turn_ends_nothing() {
    let idle = Fake::shell("idle", &format!("{GREET}read -r line\nsleep 12\n{TURN}{RESULT}")).unwrap();
    let link = start(config(&idle)).await.unwrap();
    link.commands.send(Command::Cancel).await.unwrap();
    link.commands.send(Command::Prompt(Prompt::text("go"))).await.unwrap();
    let told = rest(link).await;
    let ends =
        |kind: &&EventKind| matches!(kind, EventKind::TurnCompleted(turn) if turn.status == TurnStatus::Completed);
    assert_eq!(told.iter().filter(ends).count(), 1, "{told:#?}");
}
