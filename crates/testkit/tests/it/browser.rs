//! A page in the real browser: a refusal by the server is told from an answer that the browser only keeps from the page.

use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use multitap_testkit::peer::browser::{Attempt, Visit, visit};
use multitap_testkit::peer::{Kind, Peer};
use multitap_testkit::{Scratch, interop, wait};
use serde_json::json;

/// Says no below `/closed` and yes elsewhere, whoever asks.
async fn answer(uri: Uri) -> Response {
    if uri.path().starts_with("/closed") {
        return StatusCode::FORBIDDEN.into_response();
    }
    Html("here").into_response()
}

fn attempts(url: &str) -> Vec<Attempt> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send"});
    vec![
        Attempt::get(url),
        Attempt::get_with_header(url),
        Attempt::post(url, &body),
        Attempt::post_as_text(url, &body),
        Attempt::post_blindly(url, &body),
        Attempt::form(url, &body),
        Attempt::event_source(url),
        Attempt::web_socket(&format!("{url}/ws")),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn interop_a_page_from_elsewhere_is_told_from_our_own() {
    if interop::peer(Kind::Browser).is_none() {
        return;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let upgrade = get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(|_socket| async {}) });
    let router = Router::new().route("/open/ws", upgrade).fallback(answer);
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async { axum::serve(listener, router).await });

    let scratch = Scratch::without_model().unwrap();
    let look = |from: &str, at: &str| -> Visit {
        let mut browser = Peer::start(Kind::Browser, &scratch).unwrap();
        visit(&mut browser, from, &attempts(&format!("{server}/{at}"))).unwrap()
    };
    for from in ["127.0.0.1", "elsewhere.localhost"] {
        let closed = look(from, "closed");
        assert_eq!((closed.status, closed.attempts.len()), (Some(200), 8), "{closed:#?}");
        for outcome in &closed.attempts {
            assert!(outcome.forbidden() && !outcome.works(), "{outcome:#?}");
        }
    }
    let open = look("elsewhere.localhost", "open");
    for outcome in &open.attempts {
        assert!(!outcome.forbidden(), "the server refused nothing: {outcome:#?}");
    }
    // The browser keeps what it may not read from the page: so the page alone proves nothing.
    assert!(!open.attempts[0].works(), "{open:#?}");

    let own = look(&format!("{server}/open"), "open");
    let works: Vec<bool> = own.attempts.iter().map(|outcome| outcome.works()).collect();
    // A form leaves the page; what answers is no source of events.
    assert_eq!(works, [true, true, true, true, true, false, false, true], "{own:#?}");
    wait::until_gone(&scratch, Duration::from_secs(10)).await.unwrap();
}
