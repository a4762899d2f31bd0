//! What everybody meets at the entrance, whatever door they want.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use multitap_event::ClientRole;
use multitap_serve::{Access, DoorError, Limits, Scheme, Tokens};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::scene::{Line, ask, config, open, port, try_open};

/// Paths that exist, that will, and that never do; with methods that fit and that do not.
const REQUESTS: [&str; 10] = [
    "GET /",
    "POST /",
    "OPTIONS /",
    "GET /healthz",
    "DELETE /readyz",
    "GET /.well-known/agent-card.json",
    "GET /ws",
    "OPTIONS /ws",
    "PUT /no/such/path",
    "OPTIONS /no/such/path",
];

fn with_token() -> Access {
    let mut tokens = Tokens::default();
    tokens.add("con-1", ClientRole::Controller, None).unwrap();
    Access { scheme: Scheme::of(tokens), ..Access::default() }
}

#[tokio::test]
async fn a_foreign_host_is_refused_on_every_path() {
    let door = open(Access::default()).await;
    let port = port(&door);
    for request in REQUESTS {
        for host in [format!("evil.example:{port}"), "localhost:1".to_owned(), "localhost".to_owned()] {
            let answer = ask(port, request, &[("Host", &host)]).await;
            assert_eq!(answer.status, 403, "{request} {host}: {answer:#?}");
            let error = &answer.json()["error"];
            assert_eq!(error["refused"], "Host", "{request} {host}");
            assert_eq!(error["option"], "--allow-host");
        }
    }
    let none = ask(port, "GET /healthz", &[]).await;
    assert_eq!(none.status, 403, "{none:#?}");
}

#[tokio::test]
async fn a_foreign_origin_is_refused_on_every_path() {
    let door = open(Access::default()).await;
    let port = port(&door);
    let host = format!("127.0.0.1:{port}");
    for request in REQUESTS {
        for origin in ["https://evil.example", "null", "http://localhost:1"] {
            let asked = [("Host", host.as_str()), ("Origin", origin), ("Access-Control-Request-Method", "POST")];
            let answer = ask(port, request, &asked).await;
            assert_eq!(answer.status, 403, "{request} {origin}: {answer:#?}");
            assert_eq!(answer.json()["error"]["refused"], "Origin");
            assert_eq!(answer.header("access-control-allow-origin"), None, "{request} {origin}");
        }
    }
    let own = format!("http://localhost:{port}");
    let answer = ask(port, "GET /healthz", &[("Host", &host), ("Origin", &own)]).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn a_listed_page_is_told_that_it_may_ask_and_read() {
    let mut access = with_token();
    access.allow_origins = vec!["https://app.example".to_owned()];
    let door = open(access).await;
    let port = port(&door);
    let host = format!("127.0.0.1:{port}");
    let page = [("Host", host.as_str()), ("Origin", "https://app.example")];
    let asked =
        [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "authorization,content-type")];
    let asked: Vec<_> = page.into_iter().chain(asked).collect();
    let answer = ask(port, "OPTIONS /", &asked).await;
    assert_eq!(answer.status, 204, "{answer:#?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(answer.header("access-control-allow-headers"), Some("authorization,content-type"));
    assert!(answer.header("access-control-allow-methods").unwrap().contains("POST"));
    assert!(answer.header("vary").unwrap().contains("Origin"));

    let answer = ask(port, "GET /healthz", &page).await;
    assert_eq!(answer.status, 401, "a page needs a token like everybody");
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"), "and is let know it");
    let token: Vec<_> = page.into_iter().chain([("Authorization", "Bearer con-1")]).collect();
    let answer = ask(port, "GET /healthz", &token).await;
    assert_eq!(answer.status, 200, "{answer:#?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    let plain = ask(port, "OPTIONS /", &[("Host", &host)]).await;
    assert_eq!(plain.status, 401, "only a browser's own question goes without a token");
}

#[tokio::test]
async fn without_its_token_nothing_is_told() {
    let door = open(with_token()).await;
    let port = port(&door);
    let host = format!("127.0.0.1:{port}");
    for request in REQUESTS {
        for headers in [vec![], vec![("Authorization", "Bearer other")], vec![("Authorization", "Basic con-1")]] {
            let all: Vec<_> = [("Host", host.as_str())].into_iter().chain(headers).collect();
            let answer = ask(port, request, &all).await;
            assert_eq!(answer.status, 401, "{request} {all:?}");
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"), "{answer:#?}");
            assert_eq!(answer.json()["error"]["code"], 401);
        }
    }
    let answer = ask(port, "GET /healthz?role=observer", &[("Host", &host), ("Authorization", "Bearer con-1")]).await;
    assert_eq!(answer.status, 200);
    let answer = ask(port, "GET /healthz?role=boss", &[("Host", &host), ("Authorization", "Bearer con-1")]).await;
    assert_eq!(answer.status, 400, "{answer:#?}");
}

#[tokio::test]
async fn others_come_in_only_with_a_token() {
    for host in ["0.0.0.0", "::"] {
        let error = try_open(config(host, Access::default(), Limits::default())).await.unwrap_err();
        assert!(matches!(error, DoorError::NeedsToken { .. }), "{error}");
        assert!(error.to_string().contains("--token-file"), "{error}");
    }
    let door = try_open(config("0.0.0.0", with_token(), Limits::default())).await.unwrap();
    let host = format!("127.0.0.1:{}", port(&door));
    let answer = ask(port(&door), "GET /healthz", &[("Host", &host), ("Authorization", "Bearer con-1")]).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_port_that_somebody_has_is_named() {
    let door = open(Access::default()).await;
    let mut second = config("localhost", Access::default(), Limits::default());
    second.port = port(&door);
    let error = try_open(second).await.unwrap_err();
    assert!(matches!(error, DoorError::InUse { .. }), "{error}");
    assert!(error.to_string().contains(&port(&door).to_string()), "{error}");
}

#[tokio::test]
async fn an_address_of_another_machine_is_named() {
    let error = try_open(config("192.0.2.1", with_token(), Limits::default())).await.unwrap_err();
    assert!(matches!(error, DoorError::Bind { .. }), "{error}");
    assert!(error.to_string().contains("192.0.2.1"), "{error}");
}

#[tokio::test]
async fn both_loopback_addresses_are_the_same_door() {
    let door = open(Access::default()).await;
    assert!(door.addresses().iter().all(|address| address.port() == port(&door)), "{:?}", door.addresses());
    assert_eq!(door.url(), format!("http://127.0.0.1:{}", port(&door)));
}

#[tokio::test]
async fn a_browser_gets_a_page_and_everybody_else_something_to_read() {
    let door = open(Access::default()).await;
    let port = port(&door);
    let host = format!("localhost:{port}");
    let page = ask(port, "GET /", &[("Host", &host), ("Accept", "text/html,application/xhtml+xml")]).await;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").unwrap().starts_with("text/html"), "{page:#?}");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(page.body.contains("Multitap"));
    for (request, status) in [("GET /no/such", 404), ("DELETE /healthz", 405), ("GET /readyz", 200)] {
        let answer = ask(port, request, &[("Host", &host)]).await;
        assert_eq!(answer.status, status, "{request}: {answer:#?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        if status != 200 {
            assert_eq!(answer.json()["error"]["code"], status);
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let door =
        try_open(config("localhost", Access::default(), Limits { body: 1000, ..Limits::default() })).await.unwrap();
    let host = format!("localhost:{}", port(&door));
    let answer = ask(port(&door), "POST /no/such", &[("Host", &host), ("Content-Length", "1001")]).await;
    assert_eq!(answer.status, 413, "{answer:#?}");
    assert_eq!(answer.json()["error"]["code"], 413);
    // One that does not say how long it is.
    let mut line = Line::to(port(&door)).await;
    let piece = format!("3e9\r\n{}\r\n", "x".repeat(0x3e9));
    let head = format!("POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n");
    line.send(&format!("{head}{piece}0\r\n\r\n")).await;
    let answer = line.first().await;
    assert_eq!(answer.status, 413, "{answer:#?}");
}

#[tokio::test]
async fn who_pauses_in_a_body_is_not_waited_for() {
    let limits = Limits { body_pause: Duration::from_millis(200), ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let mut slow = Line::to(port(&door)).await;
    let head = format!("POST / HTTP/1.1\r\nHost: localhost:{}\r\nContent-Length: 10\r\n\r\n", port(&door));
    slow.send(&format!("{head}{{")).await;
    let answer = slow.first().await;
    assert!((400..600).contains(&answer.status), "{answer:#?}");
}

/// A byte now and then is no pause; but all of it takes too long.
#[tokio::test]
async fn who_lets_a_body_drip_is_not_waited_for() {
    let limits = Limits { body_time: Duration::from_millis(500), ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let mut slow = Line::to(port(&door)).await;
    let head = format!("POST / HTTP/1.1\r\nHost: localhost:{}\r\nContent-Length: 100000\r\n\r\n", port(&door));
    slow.send(&head).await;
    let answer = slow.first_while_sending(" ", Duration::from_millis(20)).await;
    assert!((400..600).contains(&answer.status), "{answer:#?}");
}

/// The connections bound only small bodies: all large ones together have a limit of their own.
#[tokio::test]
async fn large_bodies_wait_for_room_and_then_are_refused() {
    let (body_pause, body_time) = (Duration::from_millis(300), Duration::from_millis(1500));
    let limits = Limits { bodies: 150_000, body_pause, body_time, ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let port = port(&door);
    let head =
        |bytes: usize| format!("POST /nowhere HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: {bytes}\r\n\r\n");
    let large = format!("{}{}", head(100_000), "x".repeat(100_000));
    let mut slow = Line::to(port).await;
    slow.send(&head(100_000)).await;
    let others = async {
        sleep(Duration::from_millis(100)).await;
        let mut refused = Line::to(port).await;
        refused.send(&head(100_000)).await;
        let refused = refused.first().await;
        assert_eq!(refused.status, 503, "{refused:#?}");
        assert_eq!(refused.json()["error"]["message"], "too many large requests at a time: try again later");
        let mut small = Line::to(port).await;
        small.send(&format!("{}{}", head(1000), "x".repeat(1000))).await;
        assert_eq!(small.first().await.status, 404, "a small one needs no room");
    };
    let (slow, ()) = tokio::join!(slow.first_while_sending(" ", Duration::from_millis(50)), others);
    assert_eq!(slow.status, 408, "{slow:#?}");
    let mut next = Line::to(port).await;
    next.send(&large).await;
    assert_eq!(next.first().await.status, 404, "there is room again");
}

/// A query may hold a token or a name: it is in no log, at any level.
#[tokio::test]
async fn a_query_is_not_logged() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let _here = tracing::subscriber::set_default(subscriber);
    let door = open(Access::default()).await;
    let host = format!("localhost:{}", port(&door));
    for request in [
        "GET /healthz?token=sesame",
        "GET /ws?client=sesame",
        "GET /ws?after=sesame",
        "POST /?ext=sesame",
        "GET /nowhere?sesame",
    ] {
        ask(port(&door), request, &[("Host", &host)]).await;
    }
    let text = log.text();
    assert!(text.contains("/healthz"), "{text}");
    assert!(!text.contains("sesame"), "{text}");
}

/// What was logged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let door = open(Access::default()).await;
    let host = format!("localhost:{}", port(&door));
    let long = "x".repeat(300_000);
    let answer = ask(port(&door), "GET /healthz", &[("Host", &host), ("X-Long", &long)]).await;
    // Who is still sending when the connection is closed may not hear why.
    assert!(matches!(answer.status, 431 | 0), "{answer:#?}");
    for (size, status) in [(60_000, 200), (66_000, 431), (100_000, 431)] {
        let answer = ask(port(&door), "GET /healthz", &[("Host", &host), ("X-Long", &"x".repeat(size))]).await;
        assert_eq!(answer.status, status, "{size}");
    }
}

#[tokio::test]
async fn who_does_not_finish_a_head_is_cut_off() {
    let limits = Limits { header_time: Duration::from_millis(200), ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let mut slow = Line::to(port(&door)).await;
    slow.send("GET /healthz HTTP/1.1\r\nHost: loc").await;
    let answer = slow.rest().await;
    assert_ne!(answer.status, 200, "{answer:#?}");
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let door =
        try_open(config("localhost", Access::default(), Limits { connections: 1, ..Limits::default() })).await.unwrap();
    let host = format!("localhost:{}", port(&door));
    let mut first = Line::to(port(&door)).await;
    first.send("GET /healthz HTTP/1.1\r\n").await;
    let second = ask(port(&door), "GET /healthz", &[("Host", &host)]).await;
    assert_eq!(second.status, 503, "{second:#?}");
    assert_eq!(second.header("retry-after"), Some("1"));
    first.send(&format!("Host: {host}\r\nConnection: close\r\n\r\n")).await;
    assert_eq!(first.rest().await.status, 200, "the first is not disturbed");
    for _ in 0..100 {
        if ask(port(&door), "GET /healthz", &[("Host", &host)]).await.status == 200 {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("the place was not given back");
}

#[tokio::test]
async fn who_does_not_read_gives_its_place_back() {
    let limits = Limits { connections: 1, unread: Duration::from_millis(300), ..Limits::default() };
    let door = try_open(config("localhost", Access::default(), limits)).await.unwrap();
    let host = format!("localhost:{}", port(&door));
    // More cards than sockets take in by themselves.
    let mut greedy = Line::to(port(&door)).await;
    greedy.send(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(8000)).await;
    for _ in 0..500 {
        if ask(port(&door), "GET /healthz", &[("Host", &host)]).await.status == 200 {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("the place was not given back");
}

/// A connection whose head is not whole, and which the server has begun to read. The door needs a token, so that the
/// server reads at once: without one it first looks up who is at the other end.
async fn half_a_head(port: u16) -> Line {
    let mut line = Line::to(port).await;
    line.send("GET /readyz HTTP/1.1\r\n").await;
    // A whole request on a connection of its own: when it is answered, the server has got to this one too.
    let headers = [("Host", &*format!("localhost:{port}")), ("Authorization", "Bearer con-1")];
    assert_eq!(ask(port, "GET /readyz", &headers).await.status, 200);
    line
}

#[tokio::test]
async fn while_it_stops_what_is_under_way_ends_and_it_is_not_ready() {
    let door = open(with_token()).await;
    let port = port(&door);
    let mut under_way = half_a_head(port).await;
    let finish = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
        under_way.send(&format!("Host: localhost:{port}\r\nAuthorization: Bearer con-1\r\n\r\n")).await;
        assert_eq!(under_way.rest().await.status, 503);
    };
    tokio::join!(door.stop(), finish);
}

#[tokio::test]
async fn a_door_that_stops_waits_for_nobody_for_ever() {
    let door = open(with_token()).await;
    let mut never_ends = half_a_head(port(&door)).await;
    let began = Instant::now();
    door.stop().await;
    let took = began.elapsed();
    assert!((Duration::from_secs(2)..Duration::from_secs(30)).contains(&took), "{took:?}");
    assert_eq!(never_ends.rest().await.status, 0, "cut off");
}
