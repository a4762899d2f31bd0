//! Finding an agent, and what to speak with it (R000-10).

use multitap_a2a::Dialect;
use multitap_a2a::card::Binding;
use multitap_a2a::client::{Client, ClientError, ClientOptions, ExtensionUse};
use multitap_a2a::devtool::URI;
use serde_json::{Value, json};

use super::server::{Agent, Asked, Reply, card, quick};

/// Serves that card, wherever it is asked for.
async fn with_card(make: impl Fn(&str) -> Value + Send + Sync + 'static) -> Agent {
    Agent::start(move |_, url| Reply::json(make(url))).await
}

fn not_found() -> Reply {
    Reply::text("text/plain", "nothing here").status(404)
}

#[tokio::test]
async fn the_card_is_looked_for_where_the_protocol_says() {
    let agent = Agent::start(|asked, url| match asked.path.as_str() {
        "/deep/er/.well-known/agent.json" => Reply::json(card(url, &[("JSONRPC", "1.0")])),
        _ => not_found(),
    })
    .await;
    let client = Client::connect(&format!("{}/deep/er/", agent.url), quick()).await.unwrap();
    assert_eq!(client.card().name, "scripted");
    let paths: Vec<String> = agent.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["/deep/er/.well-known/agent-card.json", "/deep/er/.well-known/agent.json"]);
}

#[tokio::test]
async fn the_card_may_be_elsewhere() {
    let agent = Agent::start(|asked, url| match asked.path.as_str() {
        "/cards/mine.json?x=1" | "/a/own" | "/own" => Reply::json(card(url, &[("JSONRPC", "1.0")])),
        _ => not_found(),
    })
    .await;
    Client::connect(&format!("{}/cards/mine.json?x=1", agent.url), quick()).await.unwrap();
    let base = format!("{}/a", agent.url);
    Client::connect(&base, ClientOptions { card_path: Some("own".to_owned()), ..quick() }).await.unwrap();
    assert_eq!(agent.last().path, "/a/own");
    Client::connect(&base, ClientOptions { card_path: Some("/own".to_owned()), ..quick() }).await.unwrap();
    assert_eq!(agent.last().path, "/own");
}

#[tokio::test]
async fn no_card_is_said_with_all_that_was_tried() {
    let agent = Agent::start(|asked, _| match asked.path.as_str() {
        "/.well-known/agent-card.json" => Reply::text("text/html", "<html>"),
        _ => not_found(),
    })
    .await;
    let error = agent.connect(quick()).await.unwrap_err();
    let url = &agent.url;
    assert_eq!(
        error.to_string(),
        format!(
            "no agent card was found: {url}/.well-known/agent-card.json is not a JSON object; \
             {url}/.well-known/agent.json answered 404"
        )
    );
}

#[tokio::test]
async fn credentials_are_shown_only_to_whom_asks_for_them() {
    let script = |asked: &Asked, url: &str| match asked.header("authorization") {
        Some("Bearer s3cret-token") => Reply::json(card(url, &[("JSONRPC", "1.0")])),
        _ => Reply::text("text/plain", "who are you").status(401),
    };
    let agent = Agent::start(script).await;
    agent.client(quick().bearer("s3cret-token")).await;
    let asked = agent.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].header("authorization"), None);
    let error = agent.connect(quick()).await.unwrap_err();
    assert!(matches!(error, ClientError::Http { status: 401, .. }), "{error}");
    assert!(error.to_string().ends_with("answered 401: who are you"), "{error}");
}

#[tokio::test]
async fn the_best_way_that_both_speak_is_taken() {
    async fn check(listed: &'static [(&str, &str)], binding: Binding, dialect: Dialect) {
        let agent = with_card(|url| card(url, listed)).await;
        let client = agent.client(quick()).await;
        assert_eq!((&client.interface().binding, client.dialect()), (&binding, dialect), "{listed:?}");
    }
    check(&[("JSONRPC", "0.3"), ("JSONRPC", "1.0")], Binding::JsonRpc, Dialect::V1_0).await;
    check(&[("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")], Binding::JsonRpc, Dialect::V0_3).await;
    check(&[("GRPC", "1.0"), ("HTTP+JSON", "0.3"), ("HTTP+JSON", "1.1")], Binding::HttpJson, Dialect::V1_0).await;
    check(&[("https://example.org/ws", "1.0"), ("HTTP+JSON", "0.3")], Binding::HttpJson, Dialect::V0_3).await;
}

#[tokio::test]
async fn a_card_of_0_3_and_a_list_that_does_not_serve() {
    let old = json!({ "name": "old", "protocolVersion": "0.3.0", "url": "rpc", "preferredTransport": "JSONRPC" });
    let agent = with_card({
        let old = old.clone();
        move |_| old.clone()
    })
    .await;
    let client = agent.client(quick()).await;
    assert_eq!(client.dialect(), Dialect::V0_3);
    // Its address is relative to the card's.
    assert!(format!("{client:?}").contains("/.well-known/rpc"), "{client:?}");

    let agent = with_card(move |_| {
        let mut hybrid = old.clone();
        hybrid["supportedInterfaces"] = json!([{ "url": "http://x", "protocolBinding": "GRPC" }]);
        hybrid
    })
    .await;
    assert_eq!(agent.client(quick()).await.dialect(), Dialect::V0_3);
}

#[tokio::test]
async fn nothing_in_common_names_what_there_is() {
    let agent = with_card(|url| card(url, &[("GRPC", "1.0"), ("JSONRPC", "2.0")])).await;
    assert_eq!(
        agent.connect(quick()).await.unwrap_err().to_string(),
        "the agent has no interface that this client supports (JSONRPC or HTTP+JSON, 0.3 or 1.0); \
         it lists GRPC 1.0, JSONRPC 2.0"
    );
    let agent = with_card(|_| json!({ "description": "no name" })).await;
    let error = agent.connect(quick()).await.unwrap_err().to_string();
    assert!(error.contains("name: is missing"), "{error}");
}

#[tokio::test]
async fn an_address_that_cannot_be_called_is_refused() {
    let check = async |url: &str, words: &str| {
        let error = Client::connect(url, ClientOptions::default()).await.unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("hunter2"), "{url}: {error}");
    };
    check("localhost:8080", "must begin with http").await;
    check("no address", "invalid agent address").await;
    check("http://me:hunter2@127.0.0.1:1/", "credentials are given as headers").await;
    check("me:hunter2@127.0.0.1", "must begin with http").await;
    check("//me:hunter2@host", "invalid agent address").await;
    check("http://127.0.0.1:1/?key=hunter2", "http://127.0.0.1:1/.well-known/agent-card.json cannot be reached").await;
}

fn with_extensions(url: &str, versions: &[&str]) -> Value {
    let mut card = card(url, &[("JSONRPC", "1.0")]);
    let listed: Vec<Value> =
        versions.iter().map(|version| json!({ "uri": URI.replace("/v0/", &format!("/{version}/")) })).collect();
    card["capabilities"]["extensions"] = listed.into();
    card
}

#[tokio::test]
async fn the_version_of_the_extension_is_judged() {
    async fn connect(versions: &'static [&str], need: ExtensionUse) -> Result<Vec<String>, String> {
        let agent = with_card(|url| with_extensions(url, versions)).await;
        let connected = agent.connect(quick().development_tool(need)).await;
        connected.map(|client| client.extensions().to_vec()).map_err(|error| error.to_string())
    }
    let uri = |version: &str| URI.replace("/v0/", &format!("/{version}/"));
    assert_eq!(connect(&["v0"], ExtensionUse::Required).await, Ok(vec![uri("v0")]));
    assert_eq!(connect(&["v0.3.1"], ExtensionUse::Required).await, Ok(vec![uri("v0.3.1")]));
    assert_eq!(connect(&["v1", "v0.3.1"], ExtensionUse::Required).await, Ok(vec![uri("v0.3.1")]));
    assert_eq!(
        connect(&["v1"], ExtensionUse::Required).await.unwrap_err(),
        "the agent speaks version 1.x of the extension developer-profile, this client speaks 0.x"
    );
    assert_eq!(
        connect(&[], ExtensionUse::Required).await.unwrap_err(),
        format!("the agent does not offer the extension {URI}; it offers none")
    );
    assert_eq!(connect(&["v1"], ExtensionUse::Optional).await, Ok(vec![]));
    assert_eq!(connect(&[], ExtensionUse::Optional).await, Ok(vec![]));
}

#[tokio::test]
async fn headers_do_not_go_to_another_host() {
    // 127.0.0.1 and localhost are one host; any other name is another.
    let elsewhere = |_: &str| card("http://agent.invalid:1/", &[("JSONRPC", "1.0")]);
    let agent = with_card(elsewhere).await;
    let error = agent.connect(quick().bearer("s3cret-token")).await.unwrap_err();
    assert!(matches!(error, ClientError::OtherHost { .. }), "{error}");
    assert!(error.to_string().contains("names an agent at http://agent.invalid:1"), "{error}");
    // Without secrets there is nothing to keep; and one may say that it is right.
    agent.client(quick()).await;
    let allowed_hosts = vec!["agent.invalid".to_owned()];
    agent.client(ClientOptions { allowed_hosts, ..quick().bearer("s3cret-token") }).await;
    let near = with_card(|url| card(&url.replace("127.0.0.1", "localhost"), &[("JSONRPC", "1.0")])).await;
    near.client(quick().bearer("s3cret-token")).await;
}
