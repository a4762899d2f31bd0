//! What a question can be about beside a file: a command, an MCP tool, anything else.

use serde_json::{Value, json};

use super::cast::{Cast, Deed};
use super::client::{Form, Talk};
use super::host::Host;
use crate::interop::scenario::tools::MCP_SERVER;
use crate::interop::stage::Place;

const ASKED: [&str; 4] = ["task submitted", "state working", "tool PENDING, asked", "state input-required, final"];

/// An MCP server with one tool, which asks the user something before it answers.
const CURIOUS_SERVER: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"curious","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"wonder","description":"Wonders","inputSchema":{"type":"object","properties":{}}}]}}\n' "$id" ;;
    *'"method":"tools/call"'*)
      call=$id
      printf '{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"Which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string","enum":["Red","Blue"]}},"required":["colour"]}}}\n' ;;
    *'"action"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"I see"}]}}\n' "$call" ;;
    *'"id":'*) printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

/// R000-22, R000-32, R000-33, R000-35, R000-36.
pub(super) fn every_kind_of_details(cast: Cast) {
    let place = Place::new(cast.agent(), []);
    let mut servers = vec![("echo", MCP_SERVER)];
    servers.extend(cast.is_asked_by_a_server().then_some(("curious", CURIOUS_SERVER)));
    let mut options = Vec::new();
    for (name, script) in servers {
        let script = place.scratch.write(&format!("{name}.sh"), script).unwrap();
        options.extend(cast.agent().mcp_server(&place.scratch, name, &script));
    }
    let host = Host::start(&place, cast, &options.iter().map(String::as_str).collect::<Vec<_>>());
    let mut talk = host.talk(Form::Specified);
    a_command(&mut talk, cast, &place);
    an_mcp_tool(&mut talk, cast, &place);
    something_else(&mut talk, cast, &place);
    host.stop();
}

fn a_command(talk: &mut Talk<'_>, cast: Cast, place: &Place) {
    const COMMAND: &str = "pwd; for n in 1 2 3 4; do echo tick $n; sleep 0.4; done";
    let told = talk.prompt("ann", &cast.prompt(place, Deed::Run(COMMAND)));
    assert_eq!(told.deeds(), ASKED, "{told}");
    let asked = told.asked();
    let details = &asked.tool["confirmation_request"]["execute_details"];
    assert!(details["command"].as_str().is_some_and(|command| command.contains(COMMAND)), "{details:#}");
    let folder = place.scratch.workspace().display().to_string();
    assert_eq!(details["working_directory"], folder, "{details:#}");
    let told = talk.answer("bob", &asked, "proceed_once", &json!({})).unwrap();
    assert_eq!(told.deeds(), ["tool EXECUTING", "tool SUCCEEDED", "state completed, final"], "{told}");
    let tools = told.tools();
    let live: Vec<&str> = tools.iter().filter_map(|tool| tool["live_content"].as_str()).collect();
    assert!(live.windows(2).all(|pair| pair[1].starts_with(pair[0]) && pair[1].len() > pair[0].len()), "{live:?}");
    assert_eq!(live.len() > 1, cast.shows_live_output(), "{live:?}");
    let output = tools.last().unwrap()["output"]["text"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(output.contains(&folder) && output.contains("tick 4"), "{output}");
}

fn an_mcp_tool(talk: &mut Talk<'_>, cast: Cast, place: &Place) {
    let told = talk.prompt("ann", &cast.prompt(place, Deed::Shout));
    assert_eq!(told.deeds(), ASKED, "{told}");
    let asked = told.asked();
    let details = &asked.tool["confirmation_request"]["mcp_details"];
    assert_eq!(*details, json!({"server_name": "echo", "tool_name": "shout"}), "{:#}", asked.tool);
    let told = talk.answer("bob", &asked, "proceed_once", &json!({})).unwrap();
    assert_eq!(told.deeds(), ["tool EXECUTING", "tool SUCCEEDED", "state completed, final"], "{told}");
    let output = &told.tools().last().unwrap()["output"];
    assert!(output.to_string().contains("HELLO FROM MCP"), "{output:#}");
}

/// A page to be fetched, or a question back: it is answered with no, and the turn goes on.
fn something_else(talk: &mut Talk<'_>, cast: Cast, place: &Place) {
    let mut told = talk.prompt("ann", &cast.prompt(place, Deed::Else));
    assert_eq!(told.deeds(), ASKED, "{told}");
    let mut after = vec!["tool CANCELLED", "state completed, final"];
    if cast.is_asked_by_a_server() {
        told = talk.answer("bob", &told.asked(), "proceed_once", &json!({})).unwrap();
        assert_eq!(told.deeds(), ["tool EXECUTING", "tool PENDING, asked", "state input-required, final"], "{told}");
        after.insert(1, "tool SUCCEEDED"); // the call itself
    }
    let asked = told.asked();
    let details: &Value = &asked.tool["confirmation_request"]["generic_details"];
    let about = details["description"].as_str().unwrap_or_else(|| panic!("{:#}", asked.tool));
    assert!(about.contains("page.invalid") || about.contains("Which colour?"), "{about}");
    let told = talk.answer("bob", &asked, "cancel", &json!({})).unwrap();
    assert_eq!(told.deeds(), after, "{told}");
    assert!(cast.says(&told.text()), "{told}");
}
