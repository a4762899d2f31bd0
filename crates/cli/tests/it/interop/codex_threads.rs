//! What Codex itself lists, reads and archives, beside what we make of its files. R002-55.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use multitap_testkit::model::{Reply, Tool};
use serde_json::{Value, json};

use super::agent::Agent;
use super::scenario::history::{listed, sessions, stored};
use super::stage::Place;

/// A client of `codex app-server` that asks one thing after the other.
struct Server {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    asked: u64,
}

impl Server {
    fn start(place: &Place) -> Self {
        let mut command = place.scratch.command(place.agent.program().unwrap());
        command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut server = Self { child, stdin, lines: BufReader::new(stdout).lines(), asked: 0 };
        server.ask("initialize", &json!({"clientInfo": {"name": "test", "title": "Test", "version": "1"}}));
        writeln!(server.stdin, "{}", json!({"method": "initialized"})).unwrap();
        server
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        writeln!(self.stdin, "{}", json!({"id": self.asked, "method": method, "params": params})).unwrap();
        let lines = self.lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        let mut replies = lines.filter(|line| line["id"] == self.asked && line.get("method").is_none());
        let reply = replies.next().unwrap_or_else(|| panic!("no reply to {method}"));
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }

    fn ids(&mut self, archived: bool) -> Vec<String> {
        let list = self.ask("thread/list", &json!({"limit": 50, "archived": archived}));
        let ids = list["data"].as_array().unwrap().iter().map(|thread| thread["id"].as_str().unwrap().to_owned());
        ids.collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok(); // it may have ended by itself
        self.child.wait().ok();
    }
}

#[test]
fn interop_codex_itself_lists_reads_and_archives_the_same() {
    if Agent::Codex.program().is_none() {
        return; // said loudly, and counted
    }
    let script = [Reply::text("one"), Reply::call(Tool::shell("echo hi")), Reply::text("two")];
    let place = Place::new(Agent::Codex, script);
    place.once("first thing", &[]).exits(0);
    place.once("second thing", &["--approval-mode", "auto-all"]).exits(0);

    let mut server = Server::start(&place);
    let theirs = server.ids(false);
    let ours: Vec<String> = listed(&place).iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ours, theirs, "newest first");

    // The same messages and calls, in the same order.
    let thread = server.ask("thread/read", &json!({"threadId": ours[0], "includeTurns": true}));
    let items = thread["thread"]["turns"].as_array().unwrap().iter().flat_map(|turn| turn["items"].as_array().unwrap());
    let told = items.filter_map(|item| match item["type"].as_str().unwrap() {
        "userMessage" => Some(format!("user {}", item["content"][0]["text"].as_str().unwrap())),
        "agentMessage" => Some(format!("agent {}", item["text"].as_str().unwrap())),
        "commandExecution" => Some(format!("tool {} {}", item["id"].as_str().unwrap(), item["exitCode"])),
        _ => None,
    });
    let again = stored(&place, &ours[0]);
    let read = again.events.iter().filter_map(|event| match event["type"].as_str().unwrap() {
        "userMessage" => Some(format!("user {}", event["content"].as_str().unwrap())),
        "textChunk" => Some(format!("agent {}", event["content"].as_str().unwrap())),
        "toolCompleted" => Some(format!("tool {} {}", event["toolId"].as_str().unwrap(), event["exitCode"])),
        _ => None,
    });
    assert_eq!(read.collect::<Vec<_>>(), told.collect::<Vec<_>>(), "{thread:#}");
    drop(server);

    let (code, _, stderr) = sessions(&place, &["rm", &ours[1]]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("archived") && stderr.contains(&ours[1]), "{stderr}");
    let mut server = Server::start(&place);
    assert_eq!((server.ids(false), server.ids(true)), (vec![ours[0].clone()], vec![ours[1].clone()]));
    assert_eq!(listed(&place).len(), 1, "what was put away is listed no longer");
    assert_eq!(stored(&place, &ours[1]).text(), "one", "and can still be read");
    let (code, _, stderr) = sessions(&place, &["rm", &ours[1]]);
    assert_eq!(code, Some(1), "{stderr}");
}
