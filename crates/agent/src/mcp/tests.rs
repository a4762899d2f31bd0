//! With a real server behind real pipes, which behaves and misbehaves in every way.

use std::time::{Duration, Instant};

use multitap_event::{McpReach, ToolOutcome};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::conversation::Call;
use crate::job::{Access, Job};
use crate::tool::Progress;
use crate::tools::Toolbox;
use crate::tools::files::Files;
use crate::workspace::Workspace;

/// Long enough for anything that works.
const LONG: Duration = Duration::from_secs(30);

struct Scene {
    folder: TempDir,
    servers: BTreeMap<String, McpServer>,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.sh"), include_str!("tests/server.sh")).unwrap();
        Self { folder, servers: BTreeMap::new() }
    }

    /// With a server that misbehaves like that.
    fn with(self, name: &str, mode: &str) -> Self {
        self.changed(name, mode, |_| {})
    }

    fn changed(mut self, name: &str, mode: &str, change: impl Fn(&mut McpServer)) -> Self {
        let path = |file: &str| self.folder.path().join(file).display().to_string();
        let heard = path(&format!("{name}.heard"));
        let (args, env) = (vec![path("server.sh"), mode.to_owned()], [("HEARD".to_owned(), heard)].into());
        let mut server = McpServer::from(McpReach::Stdio { command: "/bin/sh".to_owned(), args, env, cwd: None });
        change(&mut server);
        self.servers.insert(name.to_owned(), server);
        self
    }

    fn place(&self) -> ServerContext {
        let folder = self.folder.path().canonicalize().unwrap();
        let (env, pipes) = (BTreeMap::new(), BTreeMap::new());
        // Nobody is there to be asked.
        let (asks, _) = mpsc::channel(1);
        ServerContext { keeper: Keeper::Group, hidden_env: vec!["SECRET".to_owned()], folder, env, pipes, asks }
    }

    async fn start(&self) -> (Toolbox, mpsc::Receiver<ServerChange>) {
        let (mcp, changes) = Servers::start(&self.servers, &self.place());
        timeout(LONG, mcp.settled()).await.unwrap();
        let workspace = Workspace::new(&self.place().folder, &[], None).unwrap();
        (Toolbox { mcp, ..Toolbox::new(Files::new(workspace)) }, changes)
    }

    fn heard(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.heard"))).unwrap_or_default()
    }
}

fn call(name: &str, arguments: Value) -> Call {
    Call { id: "1".to_owned(), name: name.to_owned(), arguments, signature: None }
}

async fn run(toolbox: &Toolbox, name: &str, arguments: Value) -> Outcome {
    let (progress, _nobody) = mpsc::channel(64);
    let job = toolbox.prepare(&call(name, arguments)).await.unwrap();
    timeout(
        LONG,
        toolbox.run(crate::policy::Approved::in_a_test(job), ToolContext { progress, stop: CancellationToken::new() }),
    )
    .await
    .unwrap()
}

fn change<'a>(changes: &'a [ServerChange], name: &str) -> &'a ServerChange {
    changes.iter().find(|change| change.name == name).unwrap()
}

#[tokio::test]
async fn a_tool_of_a_server_is_a_tool_like_any_other() {
    let scene = Scene::new().with("test", "");
    let (toolbox, mut changes) = scene.start().await;
    let spec = toolbox.spec("mcp__test__echo").unwrap();
    assert_eq!(
        (spec.description.as_str(), spec.server.as_deref(), spec.read_only),
        ("Says it again", Some("test"), false)
    );
    let schema = json!({ "type": "object", "properties": { "message": { "type": "string" } } });
    assert_eq!(spec.parameters, schema, "without $schema");
    let job = toolbox.prepare(&call("mcp__test__echo", json!({ "message": "hi" }))).await.unwrap();
    assert_eq!(job.title(), "echo (test)");
    assert_eq!(job.access(), Access::Mcp { server: "test", tool: "echo", trusted: false });
    assert_eq!(job.edits(), [multitap_event::Edit::NewInput]);
    let outcome = run(&toolbox, "mcp__test__echo", json!({ "message": "hi" })).await;
    assert_eq!((outcome.outcome, outcome.text.as_str()), (ToolOutcome::Completed, "echo: hi"));
    let outcome = run(&toolbox, "mcp__test__fail", Value::Null).await;
    assert_eq!((outcome.outcome, outcome.text.as_str()), (ToolOutcome::Failed, "failed on purpose"));
    toolbox.prepare(&call("mcp__test__echo", json!("hi"))).await.unwrap_err();
    toolbox.prepare(&call("mcp__test__nothing", json!({}))).await.unwrap_err();
    let words: Vec<_> =
        std::iter::from_fn(|| changes.try_recv().ok()).map(|change| change.status().summary()).collect();
    assert_eq!(words, ["MCP server test: starting", "MCP server test: connected, 6 tools"]);
    toolbox.mcp.close().await;
}

/// R002-88.
#[tokio::test]
async fn trust_and_the_lists_of_tools_are_honoured() {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let scene = Scene::new()
        .changed("in", "", |server| {
            (server.include_tools, server.exclude_tools) = (Some(names(&["echo", "fail"])), names(&["fail"]));
        })
        .changed("out", "", |server| (server.exclude_tools, server.trust) = (names(&["echo", "die"]), true));
    let (toolbox, _changes) = scene.start().await;
    let tools: Vec<_> = toolbox.mcp.specs().into_iter().map(|spec| spec.name).collect();
    let out = ["fail", "slow", "more", "where"].map(|tool| format!("mcp__out__{tool}"));
    assert_eq!(tools, [vec!["mcp__in__echo".to_owned()], out.to_vec()].concat());
    toolbox.prepare(&call("mcp__in__fail", json!({}))).await.unwrap_err();
    let Job::Mcp(job) = toolbox.prepare(&call("mcp__out__where", json!({}))).await.unwrap() else { panic!("no job") };
    assert!(job.trusted);
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn servers_that_do_not_come_up_say_why_and_hurt_nobody() {
    let soon = |server: &mut McpServer| server.timeout = Some(Duration::from_millis(1500));
    let scene = Scene::new()
        .with("dead", "dead")
        .changed("hangs", "hangs", soon)
        .changed("noisy", "noise_only", soon)
        .with("no-list", "no_list")
        .changed("missing", "", |server| server.reach = McpReach::program("/no/such/program", Vec::new()))
        .changed("nowhere", "", |server| {
            server.reach = McpReach::Http { url: "http://127.0.0.1:1/hunter2".to_owned(), headers: BTreeMap::new() };
        })
        .with("good", "noise");
    let began = Instant::now();
    let (toolbox, _changes) = scene.start().await;
    assert!(began.elapsed() < Duration::from_secs(20), "all at once: {:?}", began.elapsed());
    let changes = toolbox.mcp.changes();
    for (name, words) in [
        ("dead", "it ended (exit code 3): no key is set"),
        ("hangs", "it did not answer within 1500 ms; on its stderr: still thinking"),
        ("noisy", "it did not answer within 1500 ms; its stdout has a line that is not a message: \"Welcome!\""),
        ("no-list", "it ended (exit code 4): lost the list"),
        ("missing", "no such program: /no/such/program"),
        ("nowhere", "Connection refused"),
    ] {
        let state = &change(&changes, name).state;
        assert_eq!(state.status, Status::Failed, "{name}: {state:?}");
        let error = state.error.as_deref().unwrap();
        assert!(error.contains(words) && !error.contains("hunter2"), "{name}: {error}");
    }
    assert_eq!(change(&changes, "good").state.status, Status::Connected);
    assert_eq!(run(&toolbox, "mcp__good__echo", json!({ "message": "x" })).await.text, "echo: x");
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn one_that_dies_in_a_call_is_told_and_comes_back_with_the_next() {
    let scene = Scene::new().with("test", "");
    let (toolbox, _changes) = scene.start().await;
    let outcome = run(&toolbox, "mcp__test__die", json!({})).await;
    assert_eq!(outcome.outcome, ToolOutcome::Failed);
    assert!(
        outcome.text.contains("disconnected during the call: it ended (exit code 9): out of memory"),
        "{outcome:?}"
    );
    let gone = toolbox.mcp.changes().remove(0);
    assert_eq!((Some(gone.status().status.as_str()), gone.state.tool_names().len()), (Some("disconnected"), 6));
    assert_eq!(run(&toolbox, "mcp__test__echo", json!({ "message": "again" })).await.text, "echo: again");
    assert_eq!(toolbox.mcp.changes()[0].state.status, Status::Connected);
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn a_server_that_stays_away_fails_the_call() {
    let scene = Scene::new().with("test", "");
    let (toolbox, _changes) = scene.start().await;
    run(&toolbox, "mcp__test__die", json!({})).await;
    std::fs::write(scene.folder.path().join("server.sh"), "echo 'gone for good' >&2; exit 1").unwrap();
    let outcome = run(&toolbox, "mcp__test__echo", json!({ "message": "again" })).await;
    assert!(outcome.text.contains("test is not available: it ended (exit code 1): gone for good"), "{outcome:?}");
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn a_call_tells_how_it_gets_on_and_can_be_stopped() {
    let scene = Scene::new().with("test", "");
    let (toolbox, _changes) = scene.start().await;
    let (progress, mut reported) = mpsc::channel(64);
    let stop = CancellationToken::new();
    let job = toolbox.prepare(&call("mcp__test__slow", json!({}))).await.unwrap();
    let context = ToolContext { progress, stop: stop.clone() };
    let watch = async {
        let first = reported.recv().await.unwrap();
        assert_eq!(first, Progress { output: None, share: Some(0.25), message: Some("a quarter".to_owned()) });
        assert_eq!(reported.recv().await.unwrap().message.as_deref(), Some("a word on the way"));
        stop.cancel();
    };
    let (outcome, ()) =
        timeout(LONG, async { tokio::join!(toolbox.run(crate::policy::Approved::in_a_test(job), context), watch) })
            .await
            .unwrap();
    assert_eq!(outcome.outcome, ToolOutcome::Cancelled);
    // The server is told, and goes on to serve.
    assert_eq!(run(&toolbox, "mcp__test__echo", json!({ "message": "x" })).await.text, "echo: x");
    assert!(scene.heard("test").contains("notifications/cancelled"), "{}", scene.heard("test"));
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_given_up() {
    let scene = Scene::new().changed("test", "", |server| server.timeout = Some(Duration::from_millis(700)));
    let (toolbox, _changes) = scene.start().await;
    let outcome = run(&toolbox, "mcp__test__slow", json!({})).await;
    assert_eq!(outcome.text, "slow of test did not answer within 700 ms");
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn tools_that_come_later_are_there() {
    let scene = Scene::new().changed("test", "", |server| server.exclude_tools = vec!["die".to_owned()]);
    let (toolbox, mut changes) = scene.start().await;
    assert!(toolbox.spec("mcp__test__late").is_none());
    run(&toolbox, "mcp__test__more", json!({})).await;
    let late = async {
        loop {
            let change = changes.recv().await.unwrap();
            if change.state.tool_names().contains(&"late") {
                break change;
            }
        }
    };
    let late = timeout(LONG, late).await.unwrap();
    assert!(!late.state.tool_names().contains(&"die"), "still excluded");
    there(&toolbox, "mcp__test__late").await;
    toolbox.mcp.close().await;
}

/// The state follows the word about it.
async fn there(toolbox: &Toolbox, tool: &str) {
    multitap_testkit::wait::until("the tool", LONG, || toolbox.spec(tool)).await.unwrap();
}

/// A server of the newest revision, which knows no `initialize`.
#[tokio::test]
async fn a_server_of_the_newest_revision_is_spoken_to_in_its_own_way() {
    let scene = Scene::new().with("modern", "modern");
    let (toolbox, _changes) = scene.start().await;
    let state = toolbox.mcp.changes().remove(0).state;
    assert_eq!(state.status, Status::Connected, "{state:?} {}", scene.heard("modern"));
    assert_eq!(run(&toolbox, "mcp__modern__echo", json!({ "message": "x" })).await.text, "echo: x");
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn a_server_runs_in_its_folder_with_what_it_is_given() {
    let scene = Scene::new().changed("test", "", |server| {
        if let McpReach::Stdio { env, cwd, .. } = &mut server.reach {
            env.insert("GIVEN".to_owned(), "given".to_owned());
            *cwd = Some("sub".into());
        }
    });
    std::fs::create_dir(scene.folder.path().join("sub")).unwrap();
    let (toolbox, _changes) = scene.start().await;
    let sub = scene.place().folder.join("sub");
    let said = run(&toolbox, "mcp__test__where", json!({})).await.text;
    assert_eq!(said.trim_end(), format!("{} given", sub.display()));
    toolbox.mcp.close().await;
}

#[tokio::test]
async fn nothing_is_left_of_them() {
    let scene = Scene::new().with("one", "").with("two", "hangs");
    let (mcp, _changes) = Servers::start(&scene.servers, &scene.place());
    let script = scene.folder.path().join("server.sh").display().to_string();
    let running = || {
        let all = multitap_testkit::wait::descendants(std::process::id());
        all.into_iter().filter(|process| process.command.contains(&script)).count()
    };
    multitap_testkit::wait::until("both", LONG, || (running() == 2).then_some(())).await.unwrap();
    timeout(LONG, mcp.close()).await.unwrap();
    assert_eq!(running(), 0);
}
