//! The examples of docs/a2a.md work as they stand there, but for the port and the ids.

use multitap_testkit::interop;
use multitap_testkit::peer::Kind;
use multitap_testkit::ws::WsClient;
use serde_json::{Value, json};

use super::Served;
use crate::scene::Scene;

const DOCS: &str = include_str!("../../../../../docs/a2a.md");

/// What each command answers, in the order of the page.
const ANSWERS: [&str; 10] = [
    "supportedInterfaces",
    "confirmation_request",
    "SUCCEEDED",
    "EXECUTING",
    "TASK_STATE_COMPLETED",
    "totalSize",
    "TASK_STATE_COMPLETED",
    r#""status":"STARTED""#,
    r#"{"name":"memory show","data":"The memory is empty.\n"}"#,
    "",
];

/// The fenced blocks of that language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let blocks = DOCS.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    blocks.filter(move |(found, _)| *found == language).map(|(_, block)| block)
}

/// The commands of a block: each begins with `$ `, and ends where its quotes are closed.
fn commands(block: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in block.lines() {
        let is_open = commands.last().is_some_and(|command| command.matches('\'').count() % 2 == 1);
        if is_open {
            let last = commands.last_mut().unwrap();
            last.push('\n');
            last.push_str(line);
        } else if let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.to_owned());
        }
    }
    commands
}

/// The ids that the page has as `01a1…`.
#[derive(Default)]
struct Ids {
    task: String,
    call: String,
}

impl Ids {
    /// From the events of a stream.
    fn learn(&mut self, output: &str) {
        for json in output.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let result = serde_json::from_str::<Value>(json).unwrap()["result"].take();
            if result["kind"] == "task" {
                self.task = result["id"].as_str().unwrap().to_owned();
            }
            let data = &result["status"]["message"]["parts"][0]["data"];
            if let Some(call) = data["tool_call_id"].as_str() {
                self.call = call.to_owned();
            }
        }
    }

    fn put(&self, command: &str) -> String {
        command.replace("task-01a1…", &self.task).replace("01a1…", &self.call)
    }
}

#[test]
fn commands_of_the_page() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let (mut ids, mut variables, mut answers) = (Ids::default(), String::new(), ANSWERS.into_iter());
    for command in blocks("console").flat_map(commands) {
        if command.starts_with("multitap serve") {
            continue; // it runs
        }
        if command.starts_with("EXT=") {
            variables = format!("{command}; ");
            continue;
        }
        let expected = answers.next().unwrap_or_else(|| panic!("no answer is known: {command}"));
        let command = ids.put(&command.replace("4100", &served.http.port().to_string()));
        let output = if command.starts_with("echo ") { socket(&command) } else { shell(&scene, &variables, &command) };
        assert!(output.contains(expected), "{command}\nanswered {output}");
        ids.learn(&output);
    }
    assert_eq!(answers.next(), Some(""), "the page has lost an example");
    assert_eq!(scene.file("a.txt").as_deref(), Some("hello\n"));
    served.stop(&scene);
}

/// Runs a command of curl. The stream of a task that lasts does not end by itself.
fn shell(scene: &Scene, variables: &str, command: &str) -> String {
    let command = command.replacen("curl ", "curl -s -m 3 ", 1);
    let output = scene.scratch.command("sh").args(["-c", &format!("{variables}{command}")]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Sends what websocat would send, and gives back the answer.
fn socket(command: &str) -> String {
    let message: Value = serde_json::from_str(command.split('\'').nth(1).unwrap()).unwrap();
    let (_, address) = command.rsplit_once("websocat --no-close ws://127.0.0.1:").unwrap();
    let (port, path) = address.trim().split_once('/').unwrap();
    assert_eq!((path, &message["jsonrpc"]), ("ws", &json!("2.0")));
    let mut client = WsClient::connect(port.parse().unwrap(), "").unwrap();
    client.call(message["method"].as_str().unwrap(), &message["params"]).unwrap().to_string()
}

/// Runs a block as a file in a folder where its SDK is found.
fn run(scene: &Scene, served: &Served, program: &str, name: &str, block: &str) -> String {
    let block = block.replace("4100", &served.http.port().to_string());
    let file = scene.scratch.write(name, &block).unwrap();
    let output = scene.scratch.command(program).arg(file).output().unwrap();
    assert!(output.status.success(), "{output:#?}");
    String::from_utf8(output.stdout).unwrap()
}

#[cfg(unix)]
#[test]
fn interop_programs_of_the_page() {
    let (Some(js), Some(python)) = (interop::peer(Kind::JsV1), interop::peer(Kind::Python)) else { return };
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let modules = js.ancestors().find(|folder| folder.ends_with("node_modules")).unwrap();
    std::os::unix::fs::symlink(modules, scene.scratch.path("node_modules")).unwrap();
    let said = run(&scene, &served, "node", "example.mjs", blocks("js").next().unwrap());
    assert!(said.contains("TASK_STATE_COMPLETED") && said.contains("You said"), "{said}");
    let said = run(&scene, &served, python.to_str().unwrap(), "example.py", blocks("python").next().unwrap());
    assert!(said.starts_with("You said \"hello\"."), "{said}");
    served.stop(&scene);
}
