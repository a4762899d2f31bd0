//! Agents that are busy, slow, broken, or not agents at all.

use std::time::{Duration, Instant};

use multitap_a2a::client::{ClientError, ClientOptions, RetryPolicy};
use multitap_a2a::json::MAX_VALUES;
use tokio::net::TcpListener;

use super::calls::hello;
use super::server::{Agent, Piece, Reply, card, quick, task_1_0};

#[tokio::test]
async fn what_does_no_harm_is_asked_again() {
    for status in [429, 502, 503, 504] {
        let agent = Agent::start(move |asked, url| match (asked.method.as_str(), asked.before) {
            (_, 0 | 1) => Reply::text("text/plain", "not now").status(status),
            ("GET", _) => Reply::json(card(url, &[("JSONRPC", "1.0")])),
            _ => asked.result(task_1_0("t", "WORKING")),
        })
        .await;
        let client = agent.client(quick()).await;
        client.get("t", None).await.unwrap();
        assert_eq!(agent.asked().len(), 6, "{status}");
    }
}

#[tokio::test]
async fn not_for_ever_and_not_for_what_stays_wrong() {
    let agent = Agent::speaking("1.0", |_| Reply::text("text/plain", "not now").status(503)).await;
    let error = agent.client(quick()).await.get("t", None).await.unwrap_err();
    assert!(error.to_string().ends_with("answered 503: not now"), "{error}");
    assert_eq!(agent.methods().len(), 4);
    let agent = Agent::speaking("1.0", |_| Reply::text("text/html", "<h1>broken</h1>").status(500)).await;
    let error = agent.client(quick()).await.get("t", None).await.unwrap_err();
    assert!(error.to_string().ends_with("answered 500: <h1>broken</h1>"), "{error}");
    assert_eq!(agent.methods().len(), 1);
    // A task is not cancelled twice.
    let agent = Agent::speaking("1.0", |_| Reply::text("text/plain", "").status(503)).await;
    agent.client(quick()).await.cancel("t").await.unwrap_err();
    assert_eq!(agent.methods().len(), 1);
}

#[tokio::test]
async fn an_agent_may_say_when_to_come_back() {
    let agent = Agent::speaking("1.0", |asked| match asked.before {
        0 => Reply::text("text/plain", "").status(429).with("retry-after", "1"),
        1 => asked.result(task_1_0("t", "WORKING")),
        _ => Reply::text("text/plain", "").status(429).with("retry-after", "3600"),
    })
    .await;
    let client = agent.client(quick()).await;
    let start = Instant::now();
    client.get("t", None).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(1));
    // An hour is no answer.
    let error = client.get("t", None).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 429, .. }), "{error}");
    assert_eq!(agent.methods().len(), 3);
}

#[tokio::test]
async fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let retry = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
    let options = ClientOptions { retry, ..quick() };
    let error = multitap_a2a::client::Client::connect(&url, options).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn too_slow() {
    let slow = |_: &super::server::Asked| Reply {
        body: vec!["{".into(), Piece::Pause(Duration::from_secs(60)), "}".into()],
        ..Reply::text("application/json", "")
    };
    let agent = Agent::speaking("1.0", slow).await;
    let client = agent.client(quick()).await.within(Duration::from_millis(100));
    for error in [client.send(hello()).await.unwrap_err(), client.get("t", None).await.unwrap_err()] {
        assert!(error.to_string().ends_with("did not answer within 100ms"), "{error}");
    }
    assert_eq!(agent.methods(), ["SendMessage", "GetTask"]);
}

#[tokio::test]
async fn too_large() {
    let agent = Agent::speaking("1.0", |asked| match asked.rpc() {
        "GetTask" => Reply::text("application/json", "x".repeat(5000)),
        _ => Reply::stream(vec![Piece::Text(format!("data: {}", "x".repeat(5000))), Piece::Text("\n\n".to_owned())]),
    })
    .await;
    let client = agent.client(ClientOptions { largest: 4096, ..quick() }).await;
    let error = client.get("t", None).await.unwrap_err();
    assert_eq!(error.to_string(), "the agent's response is larger than 4096 bytes");
    let mut updates = client.stream(hello()).await.unwrap();
    let error = updates.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { most: 4096 }), "{error}");
    assert!(updates.next().await.is_none());
}

/// A short text of many values would take a hundred times its size in memory.
#[tokio::test]
async fn too_many_values() {
    let many = || format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}0]}}"#, "[],".repeat(MAX_VALUES));
    let agent = Agent::speaking("1.0", move |asked| match asked.rpc() {
        "GetTask" => Reply::text("application/json", many()),
        _ => Reply::stream(vec![Piece::Text(format!("data: {}\n\n", many()))]),
    })
    .await;
    let client = agent.client(quick()).await;
    let error = client.get("t", None).await.unwrap_err();
    assert!(error.to_string().ends_with("it has more than 250000 values"), "{error}");
    let mut updates = client.stream(hello()).await.unwrap();
    let error = updates.next().await.unwrap().unwrap_err();
    assert!(error.to_string().ends_with("it has more than 250000 values"), "{error}");
}

/// Comments and empty lines make no update, and no event that could be too large.
#[tokio::test]
async fn a_stream_without_end() {
    for nothing in [": still here\n", "\n"] {
        let agent = Agent::speaking("1.0", move |_| {
            Reply::stream(std::iter::repeat_with(|| Piece::Text(nothing.repeat(50))).take(1000).collect::<Vec<_>>())
        })
        .await;
        let client = agent.client(ClientOptions { longest_stream: 4096, ..quick() }).await;
        let mut updates = client.stream(hello()).await.unwrap();
        let error = updates.next().await.unwrap().unwrap_err();
        assert!(matches!(error, ClientError::TooLarge { most: 4096 }), "{error}");
        assert!(updates.next().await.is_none());
        assert_eq!(agent.methods(), ["SendStreamingMessage"], "it is not asked again");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_said_to_be_none() {
    async fn check(reply: fn(&super::server::Asked) -> Reply, words: &str) {
        let agent = Agent::speaking("1.0", reply).await;
        let client = agent.client(quick()).await;
        let of_get = client.get("t", None).await.unwrap_err().to_string();
        let of_stream = client.stream(hello()).await.map(|_| ()).unwrap_err().to_string();
        assert!(of_get.contains(words) && of_stream.contains(words), "{of_get}; {of_stream}");
    }
    check(|_| Reply::text("text/html", "<html>"), "answered text/html instead of JSON").await;
    check(|_| Reply::json(serde_json::json!({})), "neither result nor error").await;
    check(|_| Reply::json(serde_json::json!({ "id": 77, "result": {} })), "it answers request 77 instead of").await;
    check(|asked| asked.result(serde_json::json!({ "x": 1 })), "invalid response from the agent").await;
    check(|_| Reply::text("", ""), "instead of JSON").await;
}

#[tokio::test]
async fn a_redirect_leads_nowhere_else() {
    let agent = Agent::start(|asked, url| match asked.path.as_str() {
        "/.well-known/agent-card.json" => Reply::text("", "").status(302).with("location", "/moved.json"),
        "/moved.json" => Reply::json(card(url, &[("JSONRPC", "1.0")])),
        "/" if asked.rpc() == "GetTask" => Reply::text("", "").status(308).with("location", "/other"),
        "/other" => asked.result(task_1_0("t", "WORKING")),
        // Another port is another place.
        "/" if asked.rpc() == "CancelTask" => Reply::text("", "").status(307).with("location", "http://127.0.0.1:9/x"),
        // A GET would be another request.
        _ => Reply::text("", "").status(302).with("location", "/other"),
    })
    .await;
    let client = agent.client(quick().bearer("s3cret-token")).await;
    client.get("t", None).await.unwrap();
    let error = client.cancel("t").await.unwrap_err();
    assert!(
        error.to_string().contains("answered 307 and redirects to another origin, http://127.0.0.1:9/x"),
        "{error}"
    );
    let error = client.send(hello()).await.unwrap_err();
    assert!(matches!(error, ClientError::Redirected { status: 302, .. }), "{error}");
    assert_eq!(agent.asked().iter().filter(|asked| asked.path == "/other").count(), 1);
    let round = Agent::start(|_, _| Reply::text("", "").status(302).with("location", "/again")).await;
    let error = round.connect(ClientOptions { retry: RetryPolicy::NEVER, ..quick() }).await.unwrap_err();
    assert!(error.to_string().contains("redirects more than 5 times"), "{error}");
}

#[tokio::test]
async fn what_an_agent_repeats_of_a_secret_is_not_shown() {
    let agent = Agent::speaking("1.0", |asked| {
        let secret = asked.header("authorization").unwrap();
        match asked.rpc() {
            "GetTask" => Reply::json(serde_json::json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": {
                "code": -32600, "message": format!("{secret} may not"), "data": { "token": secret } } })),
            _ => Reply::text("text/plain", format!("{} {secret}", "x".repeat(290))).status(403),
        }
    })
    .await;
    let client = agent.client(quick().bearer("s3cret-token")).await;
    let error = client.get("t", None).await.unwrap_err();
    assert_eq!(error.to_string(), "Bearer [hidden] may not");
    assert_eq!(error.agent().unwrap().data["token"], "Bearer [hidden]");
    let error = client.send(hello()).await.unwrap_err();
    assert!(format!("{error} {error:?}").contains("[hidden]") && !format!("{error:?}").contains("s3cret"), "{error:?}");
    assert!(!format!("{error:?}").contains("token"), "{error:?}");
}
