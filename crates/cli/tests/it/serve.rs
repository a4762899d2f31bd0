//! `multitap serve` as operators and strangers meet it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use serde_json::Value;

use crate::scene::{Live, PATIENCE, Scene};

const BUILTIN: [&str; 4] = ["--agent", "builtin", "--model", "rehearsal"];

/// A host that runs.
struct Served {
    live: Live,
    host: String,
    port: u16,
}

impl Scene {
    /// Starts it and waits for its line.
    #[track_caller]
    fn serve(&self, options: &[&str]) -> Served {
        let mut live = self.start(&[&["serve", "--port", "0"], &BUILTIN[..], options].concat());
        let line = live.line_by(Instant::now() + PATIENCE).expect("it says where it listens");
        let place = line.strip_prefix("multitap listening on http://").expect(&line);
        let (host, port) = place.rsplit_once(':').expect(&line);
        Served { live, host: host.to_owned(), port: port.parse().unwrap() }
    }

    fn tokens(&self, mode: u32) -> String {
        let file = self.scratch.path("tokens");
        fs::write(&file, "# ours\nown-secret owner Ada\nobs-secret observer\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        file.display().to_string()
    }
}

impl Served {
    /// Status and body of an answer.
    #[track_caller]
    fn ask(&self, request: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let own = format!("localhost:{}", self.port);
        let host = if headers.iter().any(|(name, _)| *name == "Host") { None } else { Some(("Host", own.as_str())) };
        let headers = host.iter().chain(headers).map(|(name, value)| format!("{name}: {value}\r\n"));
        let headers: String = headers.collect();
        write!(stream, "{request} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").expect(&text);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Ends it by a signal, and sees that it ends well and printed nothing else.
    #[track_caller]
    fn stop(mut self, signal: &str, scene: &Scene) {
        self.live.signal(signal, &scene.scratch);
        let run = self.live.wait().exits(0);
        assert_eq!(run.stdout.lines().count(), 1, "{run:#?}");
        scene.nothing_left(PATIENCE);
    }
}

#[test]
fn it_says_where_it_is_and_ends_by_a_signal() {
    let scene = Scene::bare();
    for signal in ["-TERM", "-INT"] {
        let served = scene.serve(&[]);
        assert_eq!(served.host, "127.0.0.1");
        assert_eq!(served.ask("GET /healthz", &[]), (200, "ok\n".to_owned()));
        assert_eq!(served.ask("GET /readyz", &[]).0, 200);
        served.stop(signal, &scene);
    }
}

#[test]
fn strangers_are_refused_on_every_path() {
    let scene = Scene::bare();
    let served = scene.serve(&[]);
    for path in ["/", "/healthz", "/.well-known/agent-card.json", "/ws", "/acp", "/v1/card", "/no/such/path", "/*"] {
        for method in ["GET", "POST", "OPTIONS", "DELETE"] {
            let request = format!("{method} {path}");
            for (headers, refused) in [
                (&[("Host", "evil.example")][..], "Host"),
                (&[("Host", "evil.example:4100"), ("Origin", "http://evil.example:4100")], "Host"),
                (&[("Origin", "https://evil.example")], "Origin"),
                (&[("Origin", "null"), ("Access-Control-Request-Method", "POST")], "Origin"),
            ] {
                let (status, body) = served.ask(&request, headers);
                assert_eq!(status, 403, "{request} {headers:?}: {body}");
                let error: Value = serde_json::from_str(&body).unwrap();
                assert_eq!(error["error"]["refused"], refused, "{request} {headers:?}: {body}");
            }
        }
    }
    served.stop("-TERM", &scene);
}

#[test]
fn other_names_and_pages_can_be_allowed() {
    let scene = Scene::bare();
    let served = scene.serve(&["--allow-host", "box.example", "--allow-origin", "https://app.example"]);
    assert_eq!(served.ask("GET /healthz", &[("Host", "box.example")]).0, 200);
    assert_eq!(served.ask("GET /healthz", &[("Origin", "https://app.example")]).0, 200);
    assert_eq!(served.ask("GET /healthz", &[("Origin", "https://other.example")]).0, 403);
    served.stop("-TERM", &scene);
    let run = scene.run(&["serve", "--allow-origin", "*"]).exits(2);
    assert!(run.stderr.contains("--allow-origin *"), "{run:#?}");
}

#[test]
fn a_token_is_needed_as_soon_as_there_is_one() {
    let mut scene = Scene::bare();
    let file = scene.tokens(0o600);
    let served = scene.serve(&["--token-file", &file]);
    for (token, status) in [("own-secret", 200), ("obs-secret", 200), ("secret", 401), ("# ours", 401)] {
        let found = served.ask("GET /healthz", &[("Authorization", &format!("Bearer {token}"))]);
        assert_eq!(found.0, status, "{token}");
    }
    assert_eq!(served.ask("GET /healthz", &[]).0, 401);
    served.stop("-TERM", &scene);
    scene.scratch.set("MULTITAP_TOKEN", "env-secret");
    let served = scene.serve(&[]);
    assert_eq!(served.ask("GET /healthz", &[]).0, 401);
    assert_eq!(served.ask("GET /healthz", &[("Authorization", "Bearer env-secret")]).0, 200);
    served.stop("-TERM", &scene);
}

#[test]
fn a_door_that_others_can_reach_does_not_open_without_a_token() {
    let mut scene = Scene::bare();
    let run = scene.run(&["serve", "--host", "0.0.0.0"]).exits(2);
    assert!(run.stdout.is_empty() && run.stderr.contains("--token-file"), "{run:#?}");
    scene.scratch.set("MULTITAP_TOKEN", "");
    let run = scene.run(&["serve", "--host", "0.0.0.0"]).exits(2);
    assert!(run.stderr.contains("MULTITAP_TOKEN"), "an empty one is none: {run:#?}");
    scene.scratch.set("MULTITAP_TOKEN", "env-secret");
    let served = scene.serve(&["--host", "0.0.0.0"]);
    assert_eq!(served.ask("GET /healthz", &[("Authorization", "Bearer env-secret")]).0, 200);
    served.stop("-TERM", &scene);
}

#[test]
fn what_is_wrong_at_the_start_is_said_and_no_secret_with_it() {
    let scene = Scene::bare();
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let exposed = scene.tokens(0o644);
    let bad = scene.scratch.path("bad");
    fs::write(&bad, "own-secret owner\nother-secret boss\n").unwrap();
    fs::set_permissions(&bad, fs::Permissions::from_mode(0o600)).unwrap();
    let bad = bad.display().to_string();
    for (options, exit, told) in [
        (&["--port", port.as_str()][..], 1, "is in use"),
        (&["--token-file", &exposed], 2, "chmod 600"),
        (&["--token-file", &bad], 2, "line 2"),
        (&["--token-file", "none"], 2, "cannot be read"),
        (&["--root", "none"], 2, "--root none"),
        (&["--approval-mode", "whatever"], 2, "--approval-mode"),
        (&["--max-sessions", "0"], 2, "--max-sessions"),
        (&["--allow-host", "http://box"], 2, "--allow-host"),
    ] {
        let run = scene.run(&[&["serve"], &BUILTIN[..], options].concat()).exits(exit);
        assert!(run.stderr.contains(told) && run.stdout.is_empty(), "{options:?}: {run:#?}");
        assert!(!run.stderr.contains("secret") && !run.stderr.contains("boss"), "{options:?}: {run:#?}");
    }
}
