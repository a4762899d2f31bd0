//! Our own A2A client with `multitap serve`: a file written after a yes, a stream cut on its way, a turn stopped.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use multitap_a2a::client::{Client, ClientOptions, Executed, ExtensionUse, StreamUpdate, Timeouts, Updates};
use multitap_a2a::devtool::{CommandStatus, ToolCall, ToolCallConfirmation, ToolCallStatus};
use multitap_a2a::{
    CommandExecute, Content, Dialect, ErrorKind, ListTasks, Message, Part, SendMessage, TaskState, Update,
};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::scene::{PATIENCE, Scene};

/// A way to the host that can be told to break.
struct Wire {
    /// How many bytes of answers still come through, once it is told; then one connection breaks.
    left: Arc<AtomicUsize>,
    breaks: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Wire {
    fn new(listener: TcpListener, to: String) -> Self {
        let (left, breaks) = (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        let (counted, broken) = (left.clone(), breaks.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (to, left, breaks) = (to.clone(), counted.clone(), broken.clone());
                connections.spawn(async move {
                    // How a connection ends is the client's to see.
                    carry(client, &to, &left, &breaks).await.ok();
                });
            }
        });
        Self { left, breaks, _tasks: tasks }
    }

    fn break_after(&self, bytes: usize) {
        self.left.store(bytes, Ordering::SeqCst);
    }
}

async fn carry(mut client: TcpStream, to: &str, left: &AtomicUsize, breaks: &AtomicUsize) -> io::Result<()> {
    let mut host = TcpStream::connect(to).await?;
    let (mut asked, mut answer) = (vec![0; 4096], vec![0; 4096]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read? {
                0 => return Ok(()),
                count => host.write_all(&asked[..count]).await?,
            },
            read = host.read(&mut answer) => match read? {
                0 => return Ok(()),
                count => {
                    let room = left.load(Ordering::SeqCst);
                    client.write_all(&answer[..count.min(room)]).await?;
                    if count >= room {
                        // In the middle of whatever it was.
                        left.store(usize::MAX, Ordering::SeqCst);
                        breaks.fetch_add(1, Ordering::SeqCst);
                        return Ok(());
                    }
                    if room != usize::MAX {
                        left.store(room - count, Ordering::SeqCst);
                    }
                }
            },
        }
    }
}

/// Something said, in a context and to a task if they are known.
fn say(part: Part, to: Option<&(String, String)>) -> SendMessage {
    let message = Message {
        parts: vec![part],
        context_id: to.map(|(context, _)| context.clone()),
        task_id: to.map(|(_, task)| task.clone()),
        ..Message::default()
    };
    SendMessage { message, ..SendMessage::default() }
}

async fn next(updates: &mut Updates) -> Option<StreamUpdate> {
    let told = timeout(PATIENCE, updates.next()).await.expect("a stream goes on");
    told.map(|told| told.expect("a stream does not fail"))
}

async fn all(mut updates: Updates) -> Vec<StreamUpdate> {
    let mut all = Vec::new();
    while let Some(told) = next(&mut updates).await {
        all.push(told);
    }
    all
}

fn state(told: &StreamUpdate) -> Option<TaskState> {
    match &told.update {
        Update::Task(task) => Some(task.status.state),
        Update::Status(update) => Some(update.status.state),
        Update::Message(_) | Update::Artifact(_) => None,
    }
}

fn parts(told: &[StreamUpdate]) -> impl Iterator<Item = &Part> {
    let messages = told.iter().filter_map(|told| match &told.update {
        Update::Status(update) => update.status.message.as_ref(),
        Update::Task(_) | Update::Message(_) | Update::Artifact(_) => None,
    });
    messages.flat_map(|message| &message.parts)
}

fn tool_calls(told: &[StreamUpdate]) -> Vec<ToolCall> {
    let data = parts(told).filter_map(|part| match &part.content {
        Content::Data(data) => serde_json::from_value(data.clone()).ok(),
        Content::Text(_) | Content::Raw(_) | Content::Url(_) => None,
    });
    data.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_with_our_host() {
    let scene = Scene::bare();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ours = listener.local_addr().unwrap().to_string();
    let args = ["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal", "--allow-host", &ours];
    let mut live = scene.start(&args);
    let line = live.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
    let wire = Wire::new(listener, line.strip_prefix("multitap listening on http://").unwrap().to_owned());
    let timeouts = Timeouts { call: PATIENCE, send: PATIENCE, silence: None };
    let options = ClientOptions { timeouts, ..ClientOptions::default() }.development_tool(ExtensionUse::Required);
    let client = Client::connect(&format!("http://{ours}"), options).await.unwrap();
    assert_eq!((client.dialect(), client.extensions().len()), (Dialect::V1_0, 1));

    let task = write_a_file(&client, &scene).await;
    cut_and_go_on(&client, &wire, &task).await;
    stop_a_turn(&client, &task).await;

    let list = client.list(ListTasks { context_id: Some(task.0.clone()), ..ListTasks::default() }).await.unwrap();
    assert_eq!(list.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), [task.1.as_str()]);
    let commands = client.commands(Some(&task.0)).await.unwrap();
    assert!(commands.iter().any(|command| command.name == "help"), "{commands:?}");
    let help = CommandExecute {
        command_path: vec!["help".to_owned()],
        context_id: Some(task.0.clone()),
        ..CommandExecute::default()
    };
    let Executed::Started(execution) = client.execute(help).await.unwrap() else { panic!("it has a task") };
    assert_eq!(execution.status, CommandStatus::Started);
    live.signal("-TERM", &scene.scratch);
    live.wait().exits(0);
}

/// A card that lists nothing but HTTP+JSON.
async fn card_of(host: &str, version: &str) -> (String, JoinSet<()>) {
    let extension = json!({ "uri": multitap_a2a::devtool::URI });
    let mut card =
        json!({ "name": "host", "version": "1", "capabilities": { "streaming": true, "extensions": [extension] } });
    if version == "0.3" {
        card["url"] = json!(host);
        card["preferredTransport"] = json!("HTTP+JSON");
    } else {
        card["supportedInterfaces"] =
            json!([{ "url": host, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" }]);
    }
    let body = card.to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let read = client.read(&mut [0; 4096]).await.unwrap_or_default();
            if read > 0 {
                client.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    (address, tasks)
}

/// Both sides of HTTP+JSON, in both dialects: what one writes the other reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_with_our_host_over_http_json() {
    let scene = Scene::bare();
    let mut live = scene.start(&["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal"]);
    let line = live.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
    let host = line.strip_prefix("multitap listening on ").unwrap();
    for (version, dialect) in [("0.3", Dialect::V0_3), ("1.0", Dialect::V1_0)] {
        let (address, _tasks) = card_of(host, version).await;
        let options = ClientOptions::default().development_tool(ExtensionUse::Required);
        let client = Client::connect(&address, options).await.unwrap();
        assert_eq!((client.dialect(), client.interface().binding.as_str()), (dialect, "HTTP+JSON"));
        let task = write_a_file(&client, &scene).await;
        fs::remove_file(scene.scratch.path("a.txt")).unwrap();
        stop_a_turn(&client, &task).await;
        let got = client.get(&task.1, Some(1)).await.unwrap();
        assert_eq!((got.status.state, got.history.len()), (TaskState::Canceled, 1), "{version}");
        let list = client.list(ListTasks { context_id: Some(task.0.clone()), ..ListTasks::default() }).await.unwrap();
        assert_eq!((list.tasks[0].id.as_str(), list.total_size), (task.1.as_str(), 1), "{version}");
        let card = client.extended_card().await.unwrap();
        assert_eq!(card.name, "Multitap", "{version}");
        let error = client.get("mine", None).await.unwrap_err();
        assert_eq!(error.agent().unwrap().kind, ErrorKind::TaskNotFound, "{version}");
    }
    live.signal("-TERM", &scene.scratch);
    live.wait().exits(0);
}

/// Asks for a file, says yes, and sees it written. Gives back context and task.
async fn write_a_file(client: &Client, scene: &Scene) -> (String, String) {
    let told = all(client.stream(say(Part::text("write hello to a.txt"), None)).await.unwrap()).await;
    assert_eq!(told.first().and_then(state), Some(TaskState::Submitted));
    assert_eq!(told.last().and_then(state), Some(TaskState::InputRequired));
    let Update::Task(task) = &told[0].update else { panic!("a stream begins with its task") };
    let task = (task.context_id.clone(), task.id.clone());
    let asked = tool_calls(&told).pop().unwrap();
    assert_eq!(asked.status, ToolCallStatus::Pending);
    let option = &asked.confirmation_request.unwrap().options[0];
    assert!(!scene.scratch.path("a.txt").exists());
    let yes = ToolCallConfirmation {
        tool_call_id: asked.tool_call_id,
        selected_option_id: option.id.clone(),
        ..ToolCallConfirmation::default()
    };
    let told = all(client.stream(say(Part::data(yes.write()), Some(&task))).await.unwrap()).await;
    assert_eq!(told.last().and_then(state), Some(TaskState::Completed));
    assert_eq!(tool_calls(&told).pop().unwrap().status, ToolCallStatus::Succeeded);
    assert_eq!(fs::read_to_string(scene.scratch.path("a.txt")).unwrap().trim(), "hello");
    task
}

/// A stream that breaks on its way tells what a whole one tells.
async fn cut_and_go_on(client: &Client, wire: &Wire, task: &(String, String)) {
    wire.break_after(6000);
    let told = all(client.stream(say(Part::text("slow 30"), Some(task))).await.unwrap()).await;
    assert_eq!(wire.breaks.load(Ordering::SeqCst), 1, "it was cut");
    assert_eq!(told.last().and_then(state), Some(TaskState::Completed));
    // The log tells what there was to be told.
    let numbered: Vec<&StreamUpdate> = told.iter().filter(|told| told.cursor.is_some()).collect();
    assert!(numbered.len() > 30, "{}", numbered.len());
    let mut again = client.resubscribe(&task.1, numbered[0].cursor.as_deref()).await.unwrap();
    for expected in &numbered[1..] {
        assert_eq!(next(&mut again).await.as_ref(), Some(*expected));
    }
}

async fn stop_a_turn(client: &Client, task: &(String, String)) {
    let mut updates = client.stream(say(Part::text("slow 50"), Some(task))).await.unwrap();
    let mut told = Vec::new();
    while parts(&told).all(|part| !matches!(&part.content, Content::Text(_))) {
        told.push(next(&mut updates).await.expect("it says something first"));
    }
    assert_eq!(client.cancel(&task.1).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(all(updates).await.last().and_then(state), Some(TaskState::Canceled));
}
