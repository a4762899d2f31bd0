//! Remote agents on SDKs that others wrote, called through `multitap mcp`: both dialects, JSON-RPC and HTTP+JSON.

use multitap_testkit::interop;
use multitap_testkit::peer::{Binding, Kind, SampleAgent};
use serde_json::{Value, json};

use crate::mcp::Client;
use crate::scene::Scene;

const TOKEN: &str = "token-of-the-sample-4713";

fn walk(kind: Kind, dialect: &str, binding: Binding) {
    if interop::peer(kind).is_none() {
        return;
    }
    let (scene, agent) = (Scene::bare(), SampleAgent::speaking(dialect, kind, binding, TOKEN).unwrap());
    let list = json!([
        { "url": agent.url, "name": "painter", "accessToken": TOKEN },
        { "url": agent.url, "name": "headed", "headers": { "Authorization": format!("Bearer {TOKEN}") } },
        { "url": agent.url, "name": "keyed", "headers": { "X-Api-Key": TOKEN }, "timeout": 1000 },
        { "url": agent.url, "name": "stranger" },
    ]);
    let list = scene.scratch.write("agents.json", &list.to_string()).unwrap();
    let args = ["--agents-file", list.to_str().unwrap()];
    let mut client = Client::with(&scene, &args, &json!({ "elicitation": {} }));
    let tools = client.tools();
    assert!(tools.contains(&"painter_sendMessage".to_owned()), "{tools:?}");
    let listed = client.call("list_agents", &json!({}));
    assert_eq!(listed["structuredContent"]["agents"][1]["protocol"], dialect, "{listed:#}");

    let said = client.call("painter_sendMessage", &json!({ "message": "hello" }));
    assert_eq!(said["structuredContent"]["text"], "You said hello.", "{said:#}");
    let said = client.call("headed_sendMessage", &json!({ "message": "hello" }));
    assert_eq!(said["structuredContent"]["state"], "completed", "{said:#}");
    let drawn = client.call("painter_sendMessage", &json!({ "message": "draw" }));
    let made = &drawn["structuredContent"]["artifacts"];
    assert_eq!(made.as_array().map(Vec::len), Some(1), "{drawn:#}");
    assert_eq!((&made[0]["name"], &made[0]["text"]), (&json!("picture.txt"), &json!("first half, second half")));
    let failed = client.call("painter_sendMessage", &json!({ "message": "fail" }));
    assert_eq!((&failed["isError"], &failed["structuredContent"]["state"]), (&json!(true), &json!("failed")));
    assert!(failed.to_string().contains("no paint is left"), "{failed:#}");
    let closed = client.call("painter_sendMessage", &json!({ "message": "vault" }));
    assert_eq!(closed["structuredContent"]["state"], "auth-required", "{closed:#}");
    let words = closed.to_string();
    assert!(words.contains("Show your badge.") && words.contains("needs the user to sign in"), "{closed:#}");

    long(&mut client);

    // A person answers what it asks.
    client.answers.push_back(json!({ "answer": "blue" }));
    let painted = client.call("painter_sendMessage", &json!({ "message": "paint the wall" }));
    assert_eq!(painted["structuredContent"]["text"], "It is painted blue.", "{painted:#}");
    assert_eq!(client.questions, ["The remote agent painter asks:\n\nWhich colour?"]);
    // Nobody does: the result says how to answer, and that works.
    let asked = client.call("painter_sendMessage", &json!({ "message": "paint the door" }));
    assert_eq!(asked["structuredContent"]["state"], "input-required", "{asked:#}");
    let task = asked["structuredContent"]["taskId"].clone();
    let painted = client.call("painter_sendMessage", &json!({ "message": "green", "taskId": task }));
    assert_eq!(painted["structuredContent"]["text"], "It is painted green.", "{painted:#}");
    let got = client.call("painter_getTask", &json!({ "taskId": painted["structuredContent"]["taskId"] }));
    assert_eq!(got["structuredContent"]["state"], "completed", "{got:#}");

    refused(&mut client);
    let run = client.live.end();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(!run.stdout.contains(TOKEN) && !run.stderr.contains(TOKEN), "{run:?}");
}

/// A task that takes longer than a call: what the agent says meanwhile is heard, and the task can be cancelled.
fn long(client: &mut Client) {
    client.progress.clear();
    let working = client.call("keyed_sendMessage", &json!({ "message": "slow" }));
    assert_eq!(working["structuredContent"]["state"], "working", "{working:#}");
    assert!(client.progress.iter().any(|note| note == "looking for a brush"), "{:?}", client.progress);
    let task = working["structuredContent"]["taskId"].clone();
    assert!(working.to_string().contains("Call keyed_getTask with taskId"), "{working:#}");
    let cancelled = client.call("keyed_cancelTask", &json!({ "taskId": task }));
    assert_eq!(cancelled["structuredContent"]["state"], "canceled", "{cancelled:#}");
    let got = client.call("keyed_getTask", &json!({ "taskId": task }));
    assert_eq!(got["structuredContent"]["state"], "canceled", "{got:#}");
}

/// Without its token the agent refuses, and whoever calls hears what to do.
fn refused(client: &mut Client) {
    let refused = client.call("stranger_sendMessage", &json!({ "message": "hello" }));
    let words = refused.to_string();
    assert_eq!(refused["isError"], true, "{refused:#}");
    assert!(words.contains("401") && words.contains("set accessToken, tokenEnv or headers"), "{refused:#}");
    let why: &Value = &refused["structuredContent"]["error"];
    assert!(why.as_str().is_some_and(|why| why.contains("401")), "the data says so too: {refused:#}");
}

#[test]
fn interop_python_agent_of_1_0_over_json_rpc() {
    walk(Kind::Python, "1.0", Binding::JsonRpc);
}

#[test]
fn interop_python_agent_of_1_0_over_http_json() {
    walk(Kind::Python, "1.0", Binding::HttpJson);
}

#[test]
fn interop_python_agent_of_0_3_over_json_rpc() {
    walk(Kind::Python, "0.3", Binding::JsonRpc);
}

#[test]
fn interop_python_agent_of_0_3_over_http_json() {
    walk(Kind::Python, "0.3", Binding::HttpJson);
}

#[test]
fn interop_js_agent_of_1_0() {
    walk(Kind::JsV1, "1.0", Binding::JsonRpc);
}

#[test]
fn interop_js_agent_of_0_3() {
    walk(Kind::JsV03, "0.3", Binding::JsonRpc);
}
