//! `acpx`, which runs an agent from the command line: it starts `multitap acp` and prints what is on the wire.

use std::path::PathBuf;

use multitap_testkit::interop;
use multitap_testkit::model::{Reply, Tool};
use multitap_testkit::peer::Kind;
use serde_json::{Value, json};

use super::place::words;
use super::wire;
use crate::interop::agent::{Agent, Api};
use crate::interop::seat::nothing_left;
use crate::interop::stage::Place;

/// Its exit code when everything that was asked for was denied.
const DENIED: i32 = 5;

/// A run of it, which prints JSON lines.
#[track_caller]
fn acpx([node, acpx]: &[PathBuf; 2], place: &Place, arguments: &[&str], code: i32) -> Vec<Value> {
    let agent = words(&place.command(&["acp", "--approval-mode", "ask"])).join(" ");
    let mut command = place.scratch.command(node);
    command.arg(acpx).args(["--agent", &agent, "--format", "json"]).args(arguments);
    let output = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}\n{stderr}");
    stdout.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"))).collect()
}

/// Both ways on the wire in one list: what has our answers and our methods is ours.
fn check(messages: &[Value]) {
    let is_ours = |message: &Value| match message["method"].as_str() {
        Some(method) => {
            method == "session/update" || method == "session/request_permission" || method == "$/cancel_request"
        }
        None => message.get("error").is_some() || message["result"].get("outcome").is_none(),
    };
    let told: Vec<Value> = messages
        .iter()
        .map(|message| if is_ours(message) { json!({"got": message}) } else { json!({"sent": message}) })
        .collect();
    wire::check(&told);
}

fn walk(agent: Agent) {
    let Some(program) = interop::acpx() else { return };
    if agent.program().is_none() || interop::peer(Kind::AcpJs).is_none() {
        return; // said loudly, and counted
    }
    let place = Place::new(agent, []);
    for (file, option, code) in [("yes.txt", "--approve-all", 0), ("no.txt", "--deny-all", DENIED)] {
        place.model.push(Reply::call(Tool::write(place.path(file), "words\n")));
        place.model.push(Reply::text("That was it."));
        let told = acpx(&program, &place, &[option, "exec", "please write a file"], code);
        assert!(wire::text(&told, wire::SAID).contains("That was it."), "{told:#?}");
        assert_eq!(place.scratch.path(file).exists(), option == "--approve-all", "{option}: {told:#?}");
        check(&told);
    }
    nothing_left(&place);
}

#[test]
fn interop_acpx_runs_claude() {
    walk(Agent::Claude);
}

#[test]
fn interop_acpx_runs_codex() {
    walk(Agent::Codex);
}

#[test]
fn interop_acpx_runs_gemini() {
    walk(Agent::Gemini);
}

#[test]
fn interop_acpx_runs_the_builtin_agent() {
    walk(Agent::Builtin(Api::Anthropic));
}

/// A session that is kept: another process continues it.
#[test]
fn interop_acpx_keeps_a_session() {
    let Some(program) = interop::acpx() else { return };
    if interop::peer(Kind::AcpJs).is_none() {
        return;
    }
    let place = Place::new(Agent::Builtin(Api::Anthropic), [Reply::text("Hello."), Reply::text("Hello again.")]);
    let run = |words: &[&str]| acpx(&program, &place, &[&["--ttl", "1"], words].concat(), 0);
    run(&["sessions", "new"]);
    for (prompt, said) in [("good morning", "Hello."), ("once more", "Hello again.")] {
        let told = run(&["prompt", prompt]);
        assert!(wire::text(&told, wire::SAID).contains(said), "{told:#?}");
        nothing_left(&place);
    }
    let sent = place.model.conversation().last().unwrap().user_texts().concat();
    assert!(sent.contains("good morning") && sent.contains("once more"), "{sent}");
}
