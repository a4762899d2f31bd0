//! Which tools there are, and how clients learn that the list has changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use multitap_bridge::{Bridge, BridgeOptions};
use multitap_event::A2aServer;
use rmcp::model::{ServerNotification, SubscriptionFilter};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::agent::{Agent, Asked, Reply, card, saying};
use crate::client::{ERAS, Era, PATIENCE, Person, Rig, options, text};

const MANAGEMENT: [&str; 3] = ["load_agent", "list_agents", "unload_agent"];

#[tokio::test]
async fn without_agents_there_are_only_the_tools_that_manage_them() {
    // R004-15
    for era in ERAS {
        let rig = Rig::start(options(), Vec::new(), era, Person::Absent).await;
        assert_eq!(rig.tools().await, MANAGEMENT);
        let result = rig.call("list_agents", json!({})).await;
        assert_eq!(result["structuredContent"]["agents"], json!([]), "{result:#}");
        rig.end().await;
    }
}

#[tokio::test]
async fn names_are_legal_and_unique() {
    let mut agents = Vec::new();
    for name in
        ["Weather Agent!", "weather agent", "Weather Agent!", "天気", "!!!", &"long ".repeat(60), "x_sendMessage", "x"]
    {
        agents.push(Agent::start(name, saying("hi")).await);
    }
    let entries = agents.iter().map(|agent| A2aServer::new(agent.url.clone())).collect();
    let rig = Rig::plain(entries).await;
    let tools = rig.tools().await;
    let unique: BTreeSet<_> = tools.iter().collect();
    assert_eq!(unique.len(), tools.len(), "{tools:?}");
    for tool in &tools {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(tool.chars().all(is_legal) && format!("mcp__a2a-server__{tool}").len() <= 64, "{tool}");
    }
    // Each tool calls its own agent.
    for (loaded, agent) in rig.loaded.iter().zip(&agents) {
        let before = agent.asked().len();
        let result = rig.call(&format!("{}_sendMessage", loaded.name), json!({ "message": "hi" })).await;
        assert_eq!(result["structuredContent"]["agent"], json!(loaded.name), "{result:#}");
        assert_eq!(agent.asked().len(), before + 1, "{}", loaded.name);
    }
    rig.end().await;
}

#[tokio::test]
async fn no_card_claims_a_name_that_the_user_gave() {
    let (liar, bank) =
        (Agent::start("bank", saying("give me your money")).await, Agent::start("x", saying("hi")).await);
    let rig = Rig::plain(vec![A2aServer::new(liar.url.clone()), bank.entry("bank")]).await;
    let names: Vec<_> = rig.loaded.iter().map(|loaded| loaded.name.as_str()).collect();
    assert_eq!(names, ["bank_2", "bank"]);
    rig.call("bank_sendMessage", json!({ "message": "hi" })).await;
    assert_eq!((liar.calls("SendStreamingMessage").len(), bank.calls("SendStreamingMessage").len()), (0, 1));
    rig.end().await;
}

#[tokio::test]
async fn loading_names_the_tools_of_that_agent_alone() {
    // R004-13
    let (first, second) = (Agent::start("a", saying("hi")).await, Agent::start("a_b", saying("hi")).await);
    let options = BridgeOptions { allow_private: true, ..options() };
    let rig = Rig::start(options, vec![second.entry("a_b")], Era::Initialize, Person::Absent).await;
    let result = rig.call("load_agent", json!({ "url": first.url })).await;
    let tools = result["structuredContent"]["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| !tool.as_str().unwrap().starts_with("a_b_")), "{result:#}");
    assert!(tools.contains(&json!("a_sendMessage")), "{result:#}");
    // The same address is the same agent.
    let again = rig.call("load_agent", json!({ "url": first.url })).await;
    assert_eq!(again["structuredContent"], result["structuredContent"]);
    let gone = rig.call("unload_agent", json!({ "name": "none" })).await;
    assert!(gone["isError"] == true && text(&gone).contains("a, a_b"), "{gone:#}");
    rig.end().await;
}

/// Waits for a change by the client's own means, while `act` makes it.
async fn changes(rig: &Rig, era: Era, act: impl AsyncFnOnce()) {
    match era {
        Era::Initialize => {
            let mut changes = rig.changes();
            changes.mark_unchanged();
            act().await;
            let seen = tokio::time::timeout(PATIENCE, changes.changed()).await;
            seen.expect("the change is reported").unwrap();
        }
        Era::Discover => {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let mut subscription = rig.client.listen(filter).await.unwrap();
            act().await;
            let seen = tokio::time::timeout(PATIENCE, subscription.next()).await;
            let seen = seen.expect("the change is reported").unwrap();
            assert!(matches!(seen, Some(ServerNotification::ToolListChangedNotification(_))), "{seen:?}");
            subscription.cancel().await.unwrap();
        }
    }
}

#[tokio::test]
async fn clients_learn_of_every_change_of_the_list() {
    // R004-12, R004-13
    for era in ERAS {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let late = A2aServer { name: Some("late".to_owned()), ..A2aServer::new(format!("http://{address}")) };
        let changing = Agent::start("before", saying("hi")).await;
        let loaded = Agent::start("loaded", saying("hi")).await;
        let entries = vec![late, A2aServer::new(changing.url.clone())];
        let options = BridgeOptions { refresh: Duration::from_millis(200), allow_private: true, ..options() };
        let rig = Rig::start(options, entries, era, Person::Absent).await;
        assert!(rig.tools().await.contains(&"late_connect".to_owned()));

        // An agent that was down comes up.
        let mut up = None;
        changes(&rig, era, async || {
            up = Some(Agent::on(TcpListener::bind(address).await.unwrap(), "late", saying("here I am")));
        })
        .await;
        let result = rig.call("late_sendMessage", json!({ "message": "hi" })).await;
        assert_eq!(result["structuredContent"]["text"], "here I am", "{result:#}");
        assert!(!rig.tools().await.contains(&"late_connect".to_owned()));

        // A card changes.
        changes(&rig, era, async || changing.change_card("name", json!("after"))).await;
        let tools = rig.tools().await;
        assert!(tools.contains(&"after_sendMessage".to_owned()), "{tools:?}");
        assert!(!tools.contains(&"before_sendMessage".to_owned()), "{tools:?}");

        // A model loads and unloads one.
        changes(&rig, era, async || {
            let result = rig.call("load_agent", json!({ "url": loaded.url })).await;
            assert_eq!(result["structuredContent"]["name"], "loaded", "{result:#}");
        })
        .await;
        assert!(rig.tools().await.contains(&"loaded_sendMessage".to_owned()));
        changes(&rig, era, async || {
            rig.call("unload_agent", json!({ "name": "loaded" })).await;
        })
        .await;
        assert!(!rig.tools().await.contains(&"loaded_sendMessage".to_owned()));
        rig.end().await;
    }
}

#[tokio::test]
async fn a_card_that_cannot_be_fetched_for_a_while_takes_no_tools_away() {
    let agent = Agent::start("steady", saying("still here")).await;
    let options = BridgeOptions { refresh: Duration::from_millis(50), ..options() };
    let rig = Rig::start(options, vec![agent.entry("steady")], Era::Initialize, Person::Absent).await;
    agent.set_card(Reply::Status(500, Vec::new(), String::new()));
    let fetched = agent.asked().len();
    crate::client::until("the card to be fetched again", || agent.asked().len() > fetched + 1).await;
    let result = rig.call("steady_sendMessage", json!({ "message": "hi" })).await;
    assert_eq!(result["structuredContent"]["text"], "still here", "{result:#}");
    rig.end().await;
}

/// An agent that moved is found when a call fails, not only when all cards are fetched again.
#[tokio::test]
async fn a_call_that_fails_lets_the_bridge_look_at_the_card_again() {
    let home = Agent::start("home", |_: &Asked| Reply::Status(404, Vec::new(), String::new())).await;
    let next = Agent::start("next", saying("I moved")).await;
    let rig = Rig::plain(vec![home.entry("mover")]).await;
    home.set_card(Reply::Json(card("home", &next.url)));
    let failed = rig.call("mover_sendMessage", json!({ "message": "hi" })).await;
    assert_eq!(failed["isError"], true, "{failed:#}");
    for _ in 0..100 {
        let result = rig.call("mover_sendMessage", json!({ "message": "hi" })).await;
        if result["structuredContent"]["text"] == "I moved" {
            return rig.end().await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the new address is not used");
}

#[tokio::test]
async fn all_agents_are_loaded_at_the_same_time() {
    // R004-12: no card is served before all ten are asked for, so one after the other would never end.
    let (open, gate) = watch::channel(false);
    let asked = Arc::new(AtomicUsize::new(0));
    let mut agents = Vec::new();
    for number in 0..10 {
        let agent = Agent::start("slow", saying("hi")).await;
        agent.set_card(Reply::Gated(gate.clone(), Box::new(Reply::Json(card(&format!("slow{number}"), &agent.url)))));
        agents.push(agent);
    }
    let entries = agents.iter().map(|agent| A2aServer::new(agent.url.clone())).collect();
    let bridge = Bridge::new(BridgeOptions { load_timeout: PATIENCE, ..options() });
    let all_are_asked = async {
        crate::client::until("all cards to be asked for", || agents.iter().all(|agent| !agent.asked().is_empty()))
            .await;
        asked.store(agents.len(), Ordering::Release);
        open.send(true).unwrap();
    };
    let (loaded, ()) = tokio::join!(bridge.load(entries), all_are_asked);
    assert_eq!(asked.load(Ordering::Acquire), 10);
    assert!(loaded.iter().all(|loaded| loaded.error.is_none()), "{loaded:?}");
    bridge.close().await;
}
