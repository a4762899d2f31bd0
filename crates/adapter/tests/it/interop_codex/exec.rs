//! With the real `codex exec`: a process for each turn.

use multitap_event::{
    AgentErrorKind, AgentKind, ApprovalMode, Command, EventKind, Image, McpReach, Prompt, Resume, SandboxMode,
    SessionConfig, Transport, TurnStatus,
};
use multitap_testkit::interop;
use serde_json::json;

use super::{PIXEL, mode, with_server};
use crate::scene::{Place, native_id, results};

#[tokio::test]
async fn interop_codex_exec_runs_a_process_for_each_turn() {
    let place = place!();
    let config = SessionConfig { mode: mode(ApprovalMode::AutoAll), transport: Transport::OneShot, ..place.config() };
    let mut scene = place.start(config.clone()).await;
    let end = scene.turn("remember apple [[tool:touch a.txt]][[next]][[text:done]]").await;
    assert_eq!((end.status, end.text.as_deref()), (TurnStatus::Completed, Some("done")), "{:#?}", scene.told);
    assert_eq!(end.usage.unwrap().total_tokens, 220);
    assert!(place.scratch.path("a.txt").exists());
    let image = Image { media_type: "image/png".to_owned(), data: PIXEL.to_owned() };
    let prompt =
        Prompt { text: "[[tool:touch b.txt]][[next]][[recall]]".to_owned(), images: vec![image], ..Prompt::default() };
    scene.send(Command::Prompt(prompt)).await;
    let end = scene.turn_end().await;
    assert!(end.text.as_deref().is_some_and(|text| text.contains("apple")), "{:#?}", scene.told);
    assert_eq!(end.usage.unwrap().total_tokens, 220);
    assert_eq!(place.model.requests().last().unwrap().images().len(), 1);
    scene.prompt("[[hang]]").await;
    scene.until(|kind| matches!(kind, EventKind::TurnStarted { .. }).then_some(())).await;
    scene.send(Command::Cancel).await;
    assert_eq!(scene.turn_end().await.status, TurnStatus::Cancelled);
    assert_eq!(scene.turn("[[text:alive]]").await.status, TurnStatus::Completed);
    let told = scene.close().await;
    let ends = told.iter().filter(|kind| matches!(kind, EventKind::SessionEnded(_))).count();
    let starts = told.iter().filter(|kind| matches!(kind, EventKind::SessionStarted(_))).count();
    assert_eq!((starts, ends), (1, 1));
    let tools = told.iter().filter(|kind| matches!(kind, EventKind::ToolStarted(_))).count();
    assert_eq!(tools, 2);

    let error = place.try_start(SessionConfig { mode: mode(ApprovalMode::Ask), ..config.clone() }).await.err().unwrap();
    assert!(error.to_string().contains("codex cannot honour approval mode ask"), "{error}");

    let lost = Resume::Session { native_id: "01a1ddd1-b382-75b2-80b5-000000000000".to_owned(), at: None };
    let mut scene = place.start(SessionConfig { resume: lost, ..config }).await;
    assert_eq!(scene.turn("hi").await.status, TurnStatus::Failed);
    assert!(
        scene
            .told
            .iter()
            .any(|kind| matches!(kind, EventKind::Error(error) if error.kind == AgentErrorKind::SessionNotFound)),
        "{:#?}",
        scene.told
    );
    scene.close().await;
}

#[tokio::test]
async fn interop_codex_exec_takes_servers_prompts_and_forks() {
    let place = place!();
    let base = SessionConfig {
        mode: mode(ApprovalMode::AutoAll),
        sandbox: Some(SandboxMode::FullAccess),
        transport: Transport::OneShot,
        system_prompt: Some("You are the base.".to_owned()),
        append_system_prompt: Some("And the \"rest\".".to_owned()),
        ..place.config()
    };
    let mut config = with_server(&place, base);
    if let Some(McpReach::Stdio { env, .. }) = config.mcp_servers.get_mut("tiny").map(|server| &mut server.reach) {
        env.insert("SUFFIX".to_owned(), " from the environment".to_owned());
    }
    let mut scene = place.start(config.clone()).await;
    let end = scene.turn(r#"remember apple [[mcp:tiny:echo:{"message":"hi"}]][[next]][[text:ok]]"#).await;
    assert_eq!(end.status, TurnStatus::Completed, "{:#?}", scene.told);
    let result = results(&scene.told).pop().unwrap();
    assert_eq!(result.result, Some(json!("echo: hi from the environment")), "{:#?}", scene.told);
    let request = place.model.requests().pop().unwrap();
    assert!(request.system().contains("You are the base.") && request.system().contains("And the \"rest\"."));
    let id = native_id(&scene.close().await);

    let resume = Resume::Session { native_id: id.clone(), at: None };
    let mut scene = place.start(SessionConfig { resume, fork: true, ..config.clone() }).await;
    assert!(scene.turn("[[recall]]").await.text.is_some_and(|text| text.contains("apple")), "{:#?}", scene.told);
    let forked = native_id(&scene.close().await);
    assert_ne!(forked, id);
    let mut scene = place.start(SessionConfig { resume: Resume::Latest, ..config }).await;
    assert!(scene.turn("[[recall]]").await.text.is_some_and(|text| text.contains("apple")), "{:#?}", scene.told);
    let latest = native_id(&scene.close().await);
    assert!(latest == forked || latest == id);
}
