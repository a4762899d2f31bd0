//! With a real MCP server, over its pipes and over HTTP.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use multitap_event::{
    ApprovalMode, Command, Decide, Details, EventKind, McpReach, McpServer, Prompt, ToolOutcome, option,
};
use multitap_testkit::cli::MCP_EVERYTHING;
use multitap_testkit::wait::until_blocking;
use multitap_testkit::{Scratch, interop};
use serde_json::json;

use crate::scene::{Scene, completed, progress, server, was_asked};

/// The server as a program, in an environment of its own.
fn everything() -> Option<(Scratch, McpServer)> {
    let program = interop::find(MCP_EVERYTHING)?;
    let scratch = Scratch::without_model().unwrap();
    let launcher = scratch.launcher(&program, &["GIVEN"]).unwrap();
    let server = McpReach::program(launcher.display().to_string(), vec!["stdio".to_owned()]).into();
    Some((scratch, server))
}

/// R002-88: asked about with server and tool, only what is included, nothing that is excluded.
#[tokio::test]
async fn interop_a_real_server_is_asked_about_and_used() {
    let Some((_scratch, server_of)) = everything() else { return };
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (include_tools, exclude_tools) = (Some(names(&["echo", "get-sum", "get-tiny-image"])), names(&["get-sum"]));
    let mut scene = Scene::start([("everything", McpServer { include_tools, exclude_tools, ..server_of })]).await;
    let question = scene.asked(r#"call everything echo {"message":"hi"}"#).await;
    assert_eq!(server(&scene.told, "everything")[1].tools, Some(names(&["echo", "get-tiny-image"])));
    let Details::Mcp { server, tool, arguments } = &question.details else { panic!("{question:?}") };
    assert_eq!((server.as_str(), tool.as_str(), &arguments["message"]), ("everything", "echo", &json!("hi")));
    let done = scene.answer(Decide::new(&question.question_id, option::PROCEED_ALWAYS_SERVER)).await;
    assert_eq!(done.result, Some(json!("Echo: hi")));
    let told = scene.turn("call everything get-tiny-image {} then call everything get-sum {\"a\":1,\"b\":2}").await;
    assert!(!was_asked(&told), "all of the server's tools were allowed");
    let done = completed(&told);
    assert_eq!(done[0].outcome, ToolOutcome::Completed);
    assert!(done[1].error.as_deref().unwrap().contains("there is no tool 'mcp__everything__get-sum'"), "{done:?}");
    scene.close().await;
}

/// R002-88, R002-105: trusted, so not asked about; it tells how far it is, and stops when it is told to.
#[tokio::test]
async fn interop_a_trusted_server_shows_progress_and_can_be_stopped() {
    let Some((_scratch, server)) = everything() else { return };
    let mut scene = Scene::start([("everything", McpServer { trust: true, ..server })]).await;
    let told = scene.turn(r#"call everything trigger-long-running-operation {"duration":1,"steps":4}"#).await;
    assert!(!was_asked(&told));
    assert_eq!(completed(&told)[0].outcome, ToolOutcome::Completed, "{told:#?}");
    let shares: Vec<_> = progress(&told).iter().filter_map(|progress| progress.progress).collect();
    assert_eq!(shares, [0.25, 0.5, 0.75, 1.0]);
    let prompt = r#"call everything trigger-long-running-operation {"duration":60,"steps":300}"#;
    scene.send(Command::Prompt(Prompt::text(prompt))).await;
    scene.until("progress", |kind| matches!(kind, EventKind::ToolProgress(_)).then_some(())).await;
    let began = Instant::now();
    scene.send(Command::Cancel).await;
    scene.end_of_turn().await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(completed(&scene.told).last().unwrap().outcome, ToolOutcome::Cancelled);
    let told = scene.turn(r#"call everything get-structured-content {"location":"New York"}"#).await;
    assert!(completed(&told)[0].result.as_ref().unwrap()["temperature"].is_number(), "{told:#?}");
    scene.close().await;
}

/// The server behind a port; ended when dropped.
struct OverHttp {
    server: Child,
    url: String,
}

impl OverHttp {
    fn start(scratch: &mut Scratch, program: &Path, port: u16) -> Self {
        scratch.set("PORT", port.to_string());
        let mut command = scratch.command(program);
        let server = command.arg("streamableHttp").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let up = || TcpStream::connect(("127.0.0.1", port)).ok();
        until_blocking("the server", Duration::from_secs(30), up).unwrap();
        Self { server, url: format!("http://127.0.0.1:{port}/mcp") }
    }
}

impl Drop for OverHttp {
    fn drop(&mut self) {
        self.server.kill().ok(); // gone already
        self.server.wait().ok();
    }
}

#[tokio::test]
async fn interop_a_real_server_over_http_is_used_lost_and_found() {
    let Some(program) = interop::find(MCP_EVERYTHING) else { return };
    let mut scratch = Scratch::without_model().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let over_http = OverHttp::start(&mut scratch, &program, port);
    let reach = McpReach::Http { url: over_http.url.clone(), headers: [("X-Test".to_owned(), "1".to_owned())].into() };
    let mut scene = Scene::in_mode(ApprovalMode::AutoAll, [("web", reach.into())]).await;
    let told = scene.turn(r#"call web get-sum {"a":1,"b":2}"#).await;
    let done = completed(&told).remove(0);
    assert_eq!(done.result, Some(json!("The sum of 1 and 2 is 3.")));
    let told = scene.turn(r#"call web trigger-long-running-operation {"duration":1,"steps":2}"#).await;
    let shares: Vec<_> = progress(&told).iter().filter_map(|progress| progress.progress).collect();
    assert_eq!(shares, [0.5, 1.0]);
    drop(over_http);
    let told = scene.turn(r#"call web echo {"message":"hi"}"#).await;
    let error = completed(&told).remove(0).error.unwrap();
    assert!(error.contains("MCP server web"), "{error}");
    if server(&scene.told, "web").pop().unwrap().status != "disconnected" {
        let gone = |kind: &EventKind| match kind {
            EventKind::McpServerStatus(server) => (server.status == "disconnected").then_some(()),
            _ => None,
        };
        scene.until("the word about it", gone).await;
    }
    let _again = OverHttp::start(&mut scratch, &program, port);
    let told = scene.turn(r#"call web echo {"message":"back"}"#).await;
    assert_eq!(completed(&told)[0].result, Some(json!("Echo: back")), "{told:#?}");
    scene.close().await;
}
