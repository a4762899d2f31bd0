//! One session, at this terminal and through a door at once.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use multitap_testkit::http::HttpClient;
use multitap_testkit::wait::until_blocking;
use multitap_testkit::ws::WsClient;
use serde_json::{Value, json};

use super::{READY, find, log, notes, port, rehearse};
use crate::scene::{PATIENCE, Scene};

fn talk(port: u16, request: &str, body: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!("Host: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
    write!(stream, "{request} HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n{body}")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// An A2A message, and the task it came to.
fn send(port: u16, parts: &Value) -> Value {
    let message =
        json!({ "kind": "message", "messageId": multitap_event::SessionId::fresh(), "role": "user", "parts": parts });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": { "message": message } });
    let text = talk(port, "POST /", &call.to_string()).unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn prompt(port: u16, text: &str) -> Value {
    send(port, &json!([{ "kind": "text", "text": text }]))
}

/// A client that stays.
fn join(port: u16) -> WsClient {
    WsClient::connect(port, "client=phone").unwrap()
}

#[test]
fn a_clients_prompt_is_marked_and_its_question_answered_here() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &["--a2a-port", "0"]) else { return };
    let port = port(&terminal);
    let asked = prompt(port, "write theirs to theirs.txt");
    assert_eq!(asked["result"]["status"]["state"], "input-required", "{asked}");
    let screen = terminal.shows("Esc refuses").unwrap();
    assert!(screen.contains("[A2A]") && screen.contains("write theirs to theirs.txt"), "{screen}");
    terminal.press(&["1"]).unwrap();
    terminal.shows(READY).unwrap();
    assert_eq!(scene.scratch.read("theirs.txt").unwrap().trim(), "theirs");
    let id = &asked["result"]["id"];
    let get = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": { "id": id } }).to_string();
    let settled = || talk(port, "POST /", &get).ok().filter(|text| text.contains(r#""state":"completed""#));
    until_blocking("the client to see it settled", PATIENCE, settled).unwrap();
}

#[test]
fn a_question_of_this_terminal_is_answered_by_a_client() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &["--a2a-port", "0"]) else { return };
    let port = port(&terminal);
    terminal.enter("write ours to ours.txt").unwrap();
    terminal.shows("Esc refuses").unwrap();
    let events = log(&scene);
    let id = &find(&events, "permissionAsked")["questionId"];
    let answer = json!([{ "kind": "data", "data": { "tool_call_id": id, "selected_option_id": "proceed_once" } }]);
    let answered = send(port, &answer);
    assert!(answered.get("error").is_none(), "{answered}");
    terminal.hides("Esc refuses").unwrap();
    terminal.shows(READY).unwrap();
    assert_eq!(scene.scratch.read("ours.txt").unwrap().trim(), "ours");
}

/// R000-2: a question that a client's cancel settled waits for nobody, however the shared task is asked for, and also
/// once another host reads its log.
#[test]
fn a_question_cancelled_by_a_client_waits_for_nobody() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &["--a2a-port", "0"]) else { return };
    let door = HttpClient::to(port(&terminal));
    let asked = prompt(port(&terminal), "write theirs to theirs.txt");
    terminal.shows("Esc refuses").unwrap();
    let id = asked["result"]["id"].as_str().unwrap().to_owned();
    let named = json!({ "id": id });
    door.answer("tasks/cancel", &named).unwrap();
    terminal.hides("Esc refuses").unwrap();
    let settled = |door: &HttpClient| {
        for method in ["tasks/get", "GetTask", "ListTasks"] {
            let answer = door.answer(method, &named).unwrap();
            let listed = answer["result"]["tasks"].as_array().and_then(|tasks| tasks.iter().find(|it| it["id"] == *id));
            let task = listed.unwrap_or(&answer["result"]);
            let state = task["status"]["state"].as_str().unwrap_or_default();
            assert!(["canceled", "TASK_STATE_CANCELED"].contains(&state), "{method}: {answer:#}");
            assert_eq!(task["status"]["message"]["parts"][0]["data"]["status"], "CANCELLED", "{method}: {answer:#}");
            assert!(!answer.to_string().contains("confirmation_request"), "{method}: {answer:#}");
        }
    };
    settled(&door);
    let mut again = door.call("tasks/resubscribe", &named).unwrap();
    let first = again.event().unwrap().unwrap().data;
    assert!(first.contains("CANCELLED") && !first.contains("confirmation_request"), "{first}");
    drop(again);
    terminal.press(&["C-d"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop(terminal);
    scene.nothing_left();
    let mut host = scene.start(&["serve", "--port", "0", "--agent", "builtin", "--model", "rehearsal"]);
    let line = host.line_by(Instant::now() + PATIENCE).unwrap();
    settled(&HttpClient::to(line.rsplit_once(':').unwrap().1.parse().unwrap()));
    host.signal("-TERM", &scene.scratch);
    host.wait().exits(0);
}

#[test]
fn what_is_written_for_a_question_outlives_it_when_a_client_is_first() {
    let mut scene = Scene::bare();
    // It writes once the client has answered.
    let script = "#!/bin/sh\necho editing; until [ -e answered ]; do sleep 0.1; done; echo 'long thoughts' > \"$1\"\n";
    let editor = scene.scratch.write("editor", script).unwrap();
    std::fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();
    scene.scratch.set("EDITOR", editor);
    let kept = scene.scratch.path("kept");
    std::fs::create_dir(&kept).unwrap();
    scene.scratch.set("TMPDIR", &kept);
    let Some(terminal) = rehearse(&scene, &["--a2a-port", "0"]) else { return };
    let port = port(&terminal);
    terminal.enter("write ours to ours.txt").unwrap();
    terminal.shows("Esc refuses").unwrap();
    terminal.press(&["Tab"]).unwrap();
    terminal.say("mind the gap").unwrap();
    terminal.press(&["C-g"]).unwrap();
    terminal.shows("editing").unwrap();
    let id = find(&log(&scene), "permissionAsked")["questionId"].clone();
    let answer = json!([{ "kind": "data", "data": { "tool_call_id": id, "selected_option_id": "proceed_once" } }]);
    let answered = send(port, &answer);
    assert!(answered.get("error").is_none(), "{answered}");
    scene.scratch.write("answered", "").unwrap();
    let is_told = |screen: &str| screen.replace('\n', " ").contains("question was closed: what you wrote is saved in");
    let screen = terminal.until("the file", is_told).unwrap();
    assert!(screen.contains("> mind the gap"), "{screen}");
    assert_eq!(scene.scratch.read("ours.txt").unwrap().trim(), "ours", "what was allowed is what the client saw");
    let files = notes(&kept);
    let [file] = &files[..] else { panic!("{files:?}") };
    assert_eq!(std::fs::read_to_string(file).unwrap().trim_end(), "long thoughts");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    // The key was to answer.
    terminal.press(&["Enter"]).unwrap();
    terminal.shows("Enter again sends this to the agent").unwrap();
    terminal.press(&["Enter"]).unwrap();
    terminal.shows("> mind the gap\n").unwrap();
    terminal.shows(READY).unwrap();
}

#[test]
fn leaving_with_others_connected_keeps_serving_them() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &["--a2a-port", "0"]) else { return };
    let port = port(&terminal);
    let phone = join(port);
    terminal.shows("1 connected").unwrap();
    terminal.press(&["C-d"]).unwrap();
    terminal.shows("another client is connected").unwrap();
    terminal.press(&["Escape"]).unwrap();
    terminal.shows(READY).unwrap();
    terminal.press(&["C-d"]).unwrap();
    terminal.shows("1. keep serving").unwrap();
    terminal.press(&["1"]).unwrap();
    terminal.shows("continues without a terminal").unwrap();
    assert!(!terminal.is_taken().unwrap());
    let told = prompt(port, "hello there");
    assert_eq!(told["result"]["status"]["state"], "completed", "{told}");
    terminal.press(&["C-c"]).unwrap();
    assert_eq!(terminal.ended().unwrap(), 0);
    drop((terminal, phone));
    scene.nothing_left();
}

#[test]
fn a_door_outlives_its_terminal_only_if_that_was_said() {
    for (option, lives) in [(&["--keep-serving"][..], true), (&[], false)] {
        let scene = Scene::bare();
        let Some(terminal) = rehearse(&scene, &[&["--a2a-port", "0"], option].concat()) else { return };
        let (port, pid) = (port(&terminal), terminal.pid().unwrap());
        terminal.close().unwrap();
        if lives {
            let told = prompt(port, "hello there");
            assert_eq!(told["result"]["status"]["state"], "completed", "{told}");
            let killed = scene.scratch.command("kill").args(["-TERM", &pid.to_string()]).status().unwrap();
            assert!(killed.success());
        }
        scene.nothing_left();
        assert!(talk(port, "GET /.well-known/agent-card.json", "").is_err());
    }
}

#[test]
fn the_door_is_opened_and_closed_while_it_runs() {
    let scene = Scene::bare();
    let Some(terminal) = rehearse(&scene, &[]) else { return };
    terminal.enter("/share").unwrap();
    let port = port(&terminal);
    terminal.shows("Join this session").unwrap();
    let card = talk(port, "GET /.well-known/agent-card.json", "").unwrap();
    assert!(card.starts_with("HTTP/1.1 200"), "{card}");
    let listed = || scene.run(&["attach"]).exits(0).stdout;
    until_blocking("the address in the list", PATIENCE, || listed().contains(&format!(":{port}")).then_some(()))
        .unwrap();
    let told = prompt(port, "hello there");
    assert_eq!(told["result"]["status"]["state"], "completed", "{told}");
    terminal.press(&["Escape"]).unwrap();
    // What follows Escape at once is one key with it.
    terminal.hides("Join this session").unwrap();
    terminal.shows("[A2A]").unwrap();
    let phone = join(port);
    terminal.enter("/clients").unwrap();
    terminal.shows("connected clients").unwrap();
    terminal.say("phone").unwrap();
    terminal.press(&["Enter", "Enter"]).unwrap();
    terminal.until("the phone to be gone", |screen| screen.contains("phone left")).unwrap();
    drop(phone);
    terminal.enter("/share off").unwrap();
    terminal.shows("sharing is off").unwrap();
    until_blocking("no address in the list", PATIENCE, || listed().contains("private").then_some(())).unwrap();
    assert!(talk(port, "GET /.well-known/agent-card.json", "").is_err());
}

/// What says how a door is to be may be said without opening it at once.
#[test]
fn the_door_that_is_opened_later_is_as_the_options_say() {
    let scene = Scene::bare();
    let tokens = scene.scratch.write("tokens", "a-secret owner Ada\n").unwrap();
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let tokens = tokens.display().to_string();
    let Some(terminal) = rehearse(&scene, &["--token-file", &tokens]) else { return };
    terminal.enter("/share").unwrap();
    let port = port(&terminal);
    terminal.shows("a token of your --token-file").unwrap();
    let card = talk(port, "GET /.well-known/agent-card.json", "").unwrap();
    assert!(card.starts_with("HTTP/1.1 401"), "{card}");
    drop(terminal);
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o644)).unwrap();
    let Some(terminal) = super::show(&scene, &["--token-file", &tokens]) else { return };
    assert_eq!(terminal.ended().unwrap(), 2, "what is wrong with it is said at once");
}

#[test]
fn another_session_of_this_folder_that_runs_is_named() {
    for door in [&[][..], &["--a2a-port", "0"]] {
        let scene = Scene::bare();
        let args = [&["-p", "--input-format", "stream-json", "--output-format", "stream-json"], door].concat();
        let mut other = scene.start(&args);
        let line = other.line_by(Instant::now() + PATIENCE).expect("it begins");
        let id = serde_json::from_str::<Value>(&line).unwrap()["sessionId"].as_str().unwrap().to_owned();
        let Some(terminal) = rehearse(&scene, &[]) else { return };
        terminal.enter("/sessions").unwrap();
        let shown = if door.is_empty() { "in process ".to_owned() } else { format!("multitap attach {}", &id[..13]) };
        terminal.shows(&shown).unwrap();
        drop(terminal);
        other.end().exits(0);
    }
}
