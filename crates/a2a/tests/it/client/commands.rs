//! Slash commands, as specified and as shipped.

use multitap_a2a::client::Executed;
use multitap_a2a::devtool::CommandStatus;
use multitap_a2a::{CommandExecute, ErrorKind};
use serde_json::json;

use super::server::{Agent, Asked, Reply, quick};

fn add() -> CommandExecute {
    CommandExecute {
        command_path: vec!["memory".to_owned(), "add".to_owned()],
        args: "x y".to_owned(),
        context_id: Some("c".to_owned()),
    }
}

#[tokio::test]
async fn as_specified() {
    let agent = Agent::speaking("1.0", |asked| match asked.rpc() {
        "commands/get" => {
            asked.result(json!({ "commands": [{ "name": "memory", "description": "keeps", "sub_commands": [
            { "name": "add", "description": "adds",
              "arguments": [{ "name": "text", "description": "what", "is_required": true }] }] }] }))
        }
        _ => asked.result(json!({ "execution_id": "t", "status": "STARTED" })),
    })
    .await;
    let client = agent.client(quick()).await;
    let commands = client.commands(Some("c")).await.unwrap();
    assert_eq!(agent.last().body["params"], json!({ "context_id": "c" }));
    let below = &commands[0].sub_commands[0];
    assert_eq!((commands[0].name.as_str(), below.name.as_str()), ("memory", "add"));
    assert!(below.arguments[0].is_required);
    let Executed::Started(execution) = client.execute(add()).await.unwrap() else { panic!("it was started") };
    assert_eq!((execution.execution_id.as_str(), execution.status), ("t", CommandStatus::Started));
    let params = json!({ "command_path": ["memory", "add"], "args": "x y", "context_id": "c" });
    assert_eq!(agent.last().body["params"], params);
}

fn shipped(asked: &Asked) -> Reply {
    match asked.path.as_str() {
        "/listCommands" => {
            Reply::json(json!({ "commands": [{ "name": "memory", "description": "keeps", "arguments": [],
            "subCommands": [{ "name": "memory add", "description": "adds", "arguments": [], "subCommands": [] }] }] }))
        }
        "/executeCommand" if asked.body["command"] == "memory add" => {
            Reply::json(json!({ "name": "memory add", "data": { "said": asked.body["args"] } }))
        }
        "/executeCommand" => Reply::json(json!({ "error": "Command not found: nonsense" })).status(404),
        _ => asked.error(-32601, "Method not found"),
    }
}

#[tokio::test]
async fn as_shipped() {
    let agent = Agent::speaking("0.3", shipped).await;
    let client = agent.client(quick()).await;
    let commands = client.commands(None).await.unwrap();
    assert_eq!(commands[0].sub_commands[0].name, "add");
    let Executed::Finished { name, data } = client.execute(add()).await.unwrap() else { panic!("it was run") };
    assert_eq!((name.as_str(), data), ("memory add", json!({ "said": ["x", "y"] })));
    let nonsense = CommandExecute { command_path: vec!["nonsense".to_owned()], ..CommandExecute::default() };
    let error = client.execute(nonsense).await.unwrap_err().to_string();
    assert!(error.contains("Command not found"), "{error}");
}

#[tokio::test]
async fn an_agent_that_has_none_says_so() {
    let agent = Agent::speaking("1.0", |asked| match asked.method.as_str() {
        "POST" if asked.path == "/" => asked.error(-32601, "there is no method"),
        _ => Reply::text("text/plain", "nothing here").status(404),
    })
    .await;
    let client = agent.client(quick()).await;
    for error in [client.commands(None).await.unwrap_err(), client.execute(add()).await.unwrap_err()] {
        assert_eq!(error.agent().unwrap().kind, ErrorKind::MethodNotFound);
    }
}
