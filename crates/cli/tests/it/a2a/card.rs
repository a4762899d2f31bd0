//! The card: for clients of either version, and only sent again when it changed.

use serde_json::{Value, json};

use super::URI;
use crate::remote_agents::TOKEN;
use crate::scene::Scene;

const PATH: &str = "/.well-known/agent-card.json";

#[test]
fn it_is_for_both_versions_unless_a_client_says_which() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let card = |version: Option<&str>| -> Value {
        let http = version.map_or(served.http.clone(), |version| served.http.clone().with("A2A-Version", version));
        http.get(PATH).unwrap().json().unwrap()
    };
    let both = card(None);
    assert_eq!((&both["protocolVersion"], &both["preferredTransport"]), (&json!("0.3.0"), &json!("JSONRPC")));
    assert_eq!(both["supportedInterfaces"][0]["protocolVersion"], "1.0");
    assert_eq!(both["url"], both["supportedInterfaces"][0]["url"]);
    assert_eq!(both["capabilities"]["streaming"], true);
    let extension = &both["capabilities"]["extensions"][0];
    assert_eq!((&extension["uri"], &extension["required"]), (&json!(URI), &json!(false)));
    assert!(!extension["description"].as_str().unwrap().is_empty());
    let (old, new) = (card(Some("0.3")), card(Some("1.0")));
    assert!(old.get("supportedInterfaces").is_none() && old["url"] == both["url"], "{old}");
    assert!(new.get("url").is_none() && new.get("protocolVersion").is_none(), "{new}");
    assert_eq!(served.http.clone().with("A2A-Version", "9.9").get(PATH).unwrap().status, 400);
    assert_eq!(served.http.get("/.well-known/agent.json").unwrap().json().unwrap(), both);
    assert_eq!(served.http.get("/").unwrap().json().unwrap(), both, "no browser");
    let extended = |method: &str| served.result(method, &json!({}));
    assert_eq!(extended("agent/getAuthenticatedExtendedCard")["url"], both["url"]);
    assert_eq!(extended("GetExtendedAgentCard")["supportedInterfaces"], new["supportedInterfaces"]);
    served.stop(&scene);
}

#[test]
fn a_client_that_has_it_is_not_sent_it_again() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    let response = served.http.get(PATH).unwrap();
    let tag = response.header("ETag").unwrap().to_owned();
    assert!(response.header("Cache-Control").unwrap().contains("max-age"));
    assert!(response.header("Last-Modified").is_some() && response.header("Vary").unwrap().contains("A2A-Version"));
    let known = |tag: &str| served.http.clone().with("If-None-Match", tag).get(PATH).unwrap();
    for header in [tag.clone(), format!("\"other\", {tag}"), format!("W/{tag}"), "*".to_owned()] {
        let same = known(&header);
        assert_eq!((same.status, same.header("ETag")), (304, Some(tag.as_str())), "{header}");
        assert_eq!(same.text().unwrap(), "");
    }
    assert_eq!(known("\"other\"").status, 200);
    let other = served.http.clone().with("A2A-Version", "1.0").get(PATH).unwrap();
    assert_ne!(other.header("ETag"), Some(tag.as_str()), "another card, another tag");
    served.stop(&scene);
}

/// Strict clients of 0.3 refuse a card whose list of interfaces has a word that they do not know.
#[test]
fn interfaces_of_0_3_are_those_that_the_version_names() {
    let scene = Scene::bare();
    let served = scene.a2a(&[]);
    for version in [None, Some("0.3")] {
        let http = version.map_or(served.http.clone(), |version| served.http.clone().with("A2A-Version", version));
        let card = http.get(PATH).unwrap().json().unwrap();
        let listed = card["additionalInterfaces"].as_array().unwrap();
        let words: Vec<&Value> = listed.iter().map(|interface| &interface["transport"]).collect();
        assert_eq!(words, ["JSONRPC", "HTTP+JSON"], "{card:#}");
        assert!(listed.iter().all(|interface| interface["url"] == card["url"]));
        let extensions = card["capabilities"]["extensions"].as_array().unwrap();
        let ours = extensions.iter().find(|extension| extension["uri"] == super::OURS).unwrap();
        let socket = ours["params"]["webSocket"].as_str().unwrap();
        assert!(socket.starts_with("ws://") && socket.ends_with("/ws"), "{card:#}");
    }
    let card = served.http.clone().with("A2A-Version", "1.0").get(PATH).unwrap().json().unwrap();
    let bindings: Vec<(&str, &str)> = card["supportedInterfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|interface| {
            (interface["protocolBinding"].as_str().unwrap(), interface["protocolVersion"].as_str().unwrap())
        })
        .collect();
    assert_eq!(bindings[..4], [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")]);
    assert_eq!(bindings[4], ("GRPC", "1.0"));
    assert!(bindings[5].0.starts_with("https://") && bindings.len() == 6, "{bindings:?}");
    served.stop(&scene);
}

#[test]
fn behind_a_proxy_the_card_has_its_address() {
    let scene = Scene::bare();
    let served = scene.a2a(&["--public-url", "https://box.example/multitap/"]);
    for host in [None, Some("box.example")] {
        let http = host.map_or(served.http.clone(), |host| served.http.clone().with("Host", host));
        let card = http.get(PATH).unwrap().json().unwrap();
        assert_eq!(card["url"], "https://box.example/multitap/");
        let urls: Vec<&Value> =
            card["supportedInterfaces"].as_array().unwrap().iter().map(|interface| &interface["url"]).collect();
        assert_eq!(*urls[4], "wss://box.example/multitap/ws");
        assert!(urls[..4].iter().all(|url| **url == card["url"]), "{card:#}");
    }
    let page = served.http.clone().with("Host", "box.example").with("Origin", "https://box.example");
    assert_eq!(page.get("/healthz").unwrap().status, 200, "its own pages are let in");
    assert_eq!(served.http.clone().with("Host", "other.example").get("/healthz").unwrap().status, 403);
    served.stop(&scene);
    let run = scene.run(&["serve", "--public-url", "box.example"]).exits(2);
    assert!(run.stderr.contains("--public-url") && run.stderr.contains("https://example.org"), "{run:#?}");
}

/// R004-6: the card that everybody sees does not tell what is listed here.
#[test]
fn the_extended_card_lists_the_remote_agents() {
    let scene = Scene::bare();
    let listed = json!([{"url": "http://127.0.0.1:1/x?key=hidden-word", "accessToken": TOKEN}, {"url": "http://127.0.0.1:2", "name": "planner"}]);
    scene.user_settings(&json!({"a2aServers": listed}));
    let served = scene.a2a(&[]);
    let card = served.http.get(PATH).unwrap().json().unwrap();
    assert_eq!(card["skills"].as_array().unwrap().len(), 1, "{card:#}");
    let extended = served.result("GetExtendedAgentCard", &json!({}));
    let skill = &extended["skills"][1];
    assert_eq!(skill["id"], "remote-agents", "{extended:#}");
    assert_eq!(skill["description"], "Calls these A2A agents if asked to: http://127.0.0.1:1/x, planner.");
    assert!(!extended.to_string().contains(TOKEN), "{extended:#}");
    served.stop(&scene);
    // Agents do not get them if the user has a server of that name.
    let own = json!({"a2a-server": {"command": "true"}});
    scene.user_settings(&json!({"a2aServers": listed, "mcpServers": own}));
    let served = scene.a2a(&[]);
    let extended = served.result("GetExtendedAgentCard", &json!({}));
    assert_eq!(extended["skills"].as_array().unwrap().len(), 1, "{extended:#}");
    served.stop(&scene);
}
