//! Requests to a host over `dialect=events`: sessions, agents, models, commands, files.

use std::fs;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::scene::{PATIENCE, Scene};

/// Also of a host that has no session yet: an agent is started to be asked.
#[tokio::test]
async fn a_host_opens_sessions_and_lists_agents_models_commands_and_files() {
    let scene = Scene::bare();
    fs::write(scene.scratch.workspace().join("main.rs"), "").unwrap();
    let served = scene.serve(&[]);
    let url = format!("ws://127.0.0.1:{}/ws?dialect=events", served.port);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let mut ask = async |method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        socket.send(Message::text(request.to_string())).await.unwrap();
        loop {
            let frame = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
            let Message::Text(text) = frame else { continue };
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer["id"] == method {
                return answer["result"].clone();
            }
        }
    };
    let agents = ask("agents", json!({})).await;
    let builtin = agents["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == "builtin").unwrap();
    assert_eq!(*builtin, json!({ "name": "builtin", "isDefault": true, "isInstalled": true }));
    // Before there is a session, an agent is started to be asked.
    let listed = ask("commands", json!({})).await;
    assert!(listed["commands"].as_array().unwrap().iter().any(|command| command["name"] == "memory"), "{listed}");

    let opened = ask("open", json!({ "mode": "plan" })).await;
    let session = json!({ "sessionId": opened["sessionId"] });
    let models = ask("models", session.clone()).await;
    assert_eq!(models["models"][0]["id"], "rehearsal", "{models}");
    let files = json!({ "sessionId": opened["sessionId"], "query": "mainrs" });
    assert_eq!(ask("files", files).await, json!({ "files": ["main.rs"] }));
    let sessions = ask("sessions", json!({})).await["sessions"].clone();
    assert_eq!((&sessions[0]["sessionId"], &sessions[0]["status"]), (&opened["sessionId"], &json!("idle")));
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    served.stop("-TERM", &scene);
}
