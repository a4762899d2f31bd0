//! The card: for clients of either version, and only sent again when it changed.

use serde_json::{Value, json};

use super::URI;
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
