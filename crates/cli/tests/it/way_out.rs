//! What an agent and its commands cannot reach: the sockets of sessions, and the token of the host.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use multitap_testkit::wait::until_blocking;
use serde_json::{Value, json};

use crate::scene::{Live, PATIENCE, Scene, of};

const BUILTIN: [&str; 4] = ["--agent", "builtin", "--model", "rehearsal"];
const GET: &str = "GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n";

/// A host with one session, and the session's socket.
fn host(scene: &Scene) -> (Live, u16, PathBuf) {
    let mut live = scene.start(&[&["serve", "--port", "0", "--approval-mode", "auto-all"], &BUILTIN[..]].concat());
    let line = live.line_by(std::time::Instant::now() + PATIENCE).unwrap();
    let port = line.rsplit_once(':').unwrap().1.parse().unwrap();
    say(port, "hello");
    let find = || {
        let notes = scene.run(&["attach", "--json"]).stdout;
        let id = serde_json::from_str::<Value>(&notes).ok()?.pointer("/0/id")?.as_str()?.to_owned();
        let run = std::fs::read_dir(scene.scratch.home().join(".local/share/multitap/run")).ok()?;
        let mut paths = run.flatten().map(|entry| entry.path());
        paths.find(|path| path.file_name().is_some_and(|name| *name == *format!("{id}.sock")))
    };
    let socket = until_blocking("the session's socket", PATIENCE, find).unwrap();
    (live, port, socket)
}

/// Sends a prompt to a new session, waits for the end of the turn, and gives back the answer.
fn say(port: u16, text: &str) -> String {
    let message =
        json!({"kind": "message", "messageId": "m-1", "role": "user", "parts": [{"kind": "text", "text": text}]});
    let params = json!({"message": message, "configuration": {"blocking": true}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}).to_string();
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head =
        format!("POST / HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Type: application/json\r\nConnection: close");
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    body.to_owned()
}

/// A command that asks for a page at that socket and prints the answer.
fn connect(peer: &str, kind: &str) -> String {
    format!(
        "perl -MIO::Socket::UNIX -MIO::Socket::INET -e \
         '$s=IO::Socket::{kind}->new({peer}) or die \"no: $!\"; print $s \"{GET}\"; print <$s>' 2>&1; echo asked"
    )
}

/// What a command printed in a session of its own.
fn printed(scene: &Scene, command: &str, options: &[&str]) -> String {
    let prompt = format!("run: {command}");
    let args = ["-p", &prompt, "--output-format", "stream-json", "--approval-mode", "auto-all"];
    let events = scene.run(&[&args[..], &BUILTIN, options].concat()).exits(0).events();
    of(&events, "toolProgress").iter().filter_map(|event| event["output"].as_str()).collect()
}

fn ask(socket: &PathBuf) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(GET.replace("\\r\\n", "\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok(); // a connection that was closed has no answer
    answer
}

#[test]
fn no_command_reaches_the_socket_of_a_session() {
    let scene = Scene::bare();
    let (host, port, socket) = host(&scene);
    assert!(ask(&socket).starts_with("HTTP/1.1 200"), "a program of the user gets there");
    let peer = format!("Peer=>\"{}\"", socket.display());
    let command = connect(&peer, "UNIX");
    for options in [&[][..], &["--sandbox", "workspace-write"], &["--sandbox", "read-only"]] {
        let said = printed(&scene, &command, options);
        assert!(said.contains("asked") && !said.contains("200 OK"), "{options:?}: {said}");
    }
    // Nor after it has detached from everything above it.
    let detached = format!("(setsid env -i PATH=$PATH sh -c '{}' &) | cat", command.replace('\'', "'\\''"));
    let said = printed(&scene, &detached, &[]);
    assert!(said.contains("asked") && !said.contains("200 OK"), "{said}");
    // A command of the session itself neither.
    let said = say(port, &format!("run: {command}"));
    assert!(said.contains("asked") && !said.contains("200 OK"), "{said}");
    assert!(ask(&socket).starts_with("HTTP/1.1 200"));
    drop(host);
}

/// A command must not answer its own question at the door of its host. Another host's door may be the A2A agent that its
/// user listed.
#[test]
fn no_command_reaches_the_open_port_of_its_own_host() {
    let scene = Scene::bare();
    let (host, port, _) = host(&scene);
    let command =
        connect(&format!("PeerAddr=>\"127.0.0.1:{port}\""), "INET").replace("localhost", &format!("localhost:{port}"));
    let said = say(port, &format!("run: {command}"));
    assert!(said.contains("asked") && said.contains("403 Forbidden"), "{said}");
    let detached = format!("(setsid env -i PATH=$PATH sh -c '{}' &) | cat", command.replace('\'', "'\\''"));
    let said = say(port, &format!("run: {detached}"));
    assert!(said.contains("asked") && said.contains("403 Forbidden"), "{said}");
    let said = printed(&scene, &command, &[]);
    assert!(said.contains("200 OK"), "{said}");
    drop(host);
}

/// The built-in agent calls remote agents from the process of its host. A list that names that host lets it answer no
/// question of its host's sessions.
#[test]
fn the_built_in_agent_does_not_reach_its_own_host_as_a_remote_agent() {
    let scene = Scene::bare();
    let (host, port, _) = host(&scene);
    scene.user_settings(&json!({ "a2aServers": [{ "url": format!("http://127.0.0.1:{port}"), "name": "me" }] }));
    let said = say(port, "call a2a-server list_agents {}");
    assert!(said.contains("unreachable") && said.contains("403"), "{said}");
    drop(host);
}

/// Connections that arrive together share a lookup: the command's own stays refused among those of the user.
#[test]
fn no_command_reaches_the_port_among_many_connections_of_its_user() {
    const USERS: usize = 40;
    let scene = Scene::bare();
    let (host, port, _) = host(&scene);
    let request = GET.replace("\\r\\n", "\r\n").replace("localhost", &format!("localhost:{port}"));
    let started = scene.scratch.path("started");
    let many =
        format!("my @s = map {{ IO::Socket::INET->new(PeerAddr=>\"127.0.0.1:{port}\") or die \"no: $!\" }} 1..20");
    let each = format!(
        "foreach my $s (@s) {{ print $s \"{}\"; print <$s> }}",
        GET.replace("localhost", &format!("localhost:{port}"))
    );
    let command = format!("touch {}; perl -MIO::Socket::INET -e '{many}; {each}' 2>&1; echo asked", started.display());
    std::thread::scope(|scope| {
        let agent = scope.spawn(|| say(port, &format!("run: {command}")));
        until_blocking("the command", PATIENCE, || started.exists().then_some(())).unwrap();
        let user = || {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let users: Vec<_> = (0..USERS).map(|_| scope.spawn(user)).collect();
        for user in users {
            let answer = user.join().unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let said = agent.join().unwrap();
        // The tool's output has them all, and the words about it repeat a few.
        assert!(said.contains("asked") && said.matches("403 Forbidden").count() >= 20, "{said}");
        assert!(!said.contains("200 OK"), "{said}");
    });
    drop(host);
}

#[test]
fn the_notes_of_sessions_are_not_readable_in_a_sandbox() {
    let scene = Scene::bare();
    let (host, _, socket) = host(&scene);
    let run = socket.parent().unwrap().display().to_string();
    let command = format!("ls {run}; cat {run}/*.json; echo looked");
    let said = printed(&scene, &command, &["--sandbox", "read-only"]);
    assert!(said.contains("looked") && !said.contains("sessionId") && !said.contains(".sock"), "{said}");
    drop(host);
}

#[cfg(target_os = "linux")]
#[test]
fn no_command_in_a_sandbox_changes_our_own_settings() {
    let scene = Scene::bare();
    let settings = scene.scratch.home().join(".config/multitap/settings.json");
    let beside = scene.scratch.home().join(".config/beside");
    let command = format!("echo x > {}; echo x > {}; echo tried", beside.display(), settings.display());
    let home = scene.scratch.home().display().to_string();
    let said = printed(&scene, &command, &["--sandbox", "workspace-write", "--add-dir", &home]);
    assert!(said.contains("tried") && beside.exists(), "{said}");
    assert!(!settings.exists(), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");
}

#[test]
fn no_command_finds_the_token_in_an_environment_above_it() {
    let mut scene = Scene::bare();
    scene.scratch.set("MULTITAP_TOKEN", "the-secret-token");
    let look = "p=$$; while [ \"$p\" -gt 1 ]; do tr '\\0' '\\n' < /proc/$p/environ | grep secret; \
                p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done; echo looked";
    for options in [&["--a2a-port", "0"][..], &[]] {
        let said = printed(&scene, look, options);
        assert!(said.contains("looked") && !said.contains("secret-token"), "{options:?}: {said}");
    }
}

#[test]
fn a_token_in_the_environment_leaves_stdin_and_arguments_alone() {
    let mut scene = Scene::bare();
    scene.scratch.set("MULTITAP_TOKEN", "the-secret-token");
    let run = scene.run_with(&[&["-p", "-"], &BUILTIN[..]].concat(), "run: echo from stdin").exits(4);
    assert!(run.stderr.contains("from stdin"), "{run:#?}");
    // The variable that says so may come from elsewhere, such as an editor that we started.
    scene.scratch.set("MULTITAP_HANDED_OVER", "MULTITAP_TOKEN");
    let run = scene.run_with(&[&["-p", "-"], &BUILTIN[..]].concat(), "run: echo from stdin").exits(4);
    assert!(run.stderr.contains("from stdin"), "{run:#?}");
}
