//! The conversations recorded with Claude Code.

use serde_json::{Value, json};

use super::{Case, Move, Wanted};

/// A session id for runs that a later one resumes.
const SESSION: &str = "0b5e6a52-7a7f-4c8e-9d0e-3f1f5f3a9c11";
/// One red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A hook at the start and one before each tool.
const HOOKS: &str = r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"echo started"}]}],
"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"echo checked"}]}]}}"#;

#[rustfmt::skip] // a table
pub(super) fn cases() -> Vec<Case> {
    vec![
        oneshot("oneshot_text", "-p one-shot, plain text", "[[text:hello one-shot]]"),
        case("stream_text", "both ways, plain text").turn("[[text:hello streaming world]]"),
        case("stream_partial", "thinking and text deltas").partial().turn("[[think:let me think about this]] [[text:the answer is 42]]"),
        case("multi_turn", "three turns in one process").turn("[[text:one]]").turn("[[text:two]]").turn("[[text:three]]"),
        case("text_tool_text", "text, tool, text with deltas").partial().arg("--permission-mode").arg("bypassPermissions")
            .turn("[[text:looking]] [[tool:echo found]] [[next]] [[text:it is there]]"),
        case("control_misc", "control requests and their answers").control("initialize", json!({}))
            .control("set_permission_mode", json!({"mode": "acceptEdits"})).control("set_permission_mode", json!({"mode": "nonsense"}))
            .control("set_model", json!({"model": "sonnet"})).control("mcp_status", json!({})).control("no_such_thing", json!({}))
            .turn("[[text:after control]]"),
        case("perm_allow", "a shell command, asked and allowed").asks().prompt("[[tool:touch made.txt && ls]]").asked(allow).result(),
        case("perm_deny", "denied with a message").asks().prompt("[[tool:touch made.txt]]").asked(deny).result(),
        case("perm_updatedinput", "the host edits the command").asks().prompt("[[tool:touch made.txt]]").asked(edit_command).result(),
        case("perm_always_session", "a rule for the session, the second call not asked").asks()
            .prompt("[[tool:touch a1.txt]]").asked(allow_for_session).result().turn("[[tool:touch a1.txt]]"),
        case("perm_write_allow", "a new file").asks().prompt("[[write:{workspace}/made.txt:first line]]").asked(allow).result(),
        case("perm_edit_allow", "read, then edit with a patch").asks().file("exist.txt", "alpha\nbeta\ngamma\n")
            .prompt("[[read:{workspace}/exist.txt]] [[next]] [[edit:{workspace}/exist.txt:beta=>BETA]]").asked(allow).result(),
        case("perm_parallel", "two calls in one reply, asked one after the other").asks()
            .prompt("[[tool:touch p1.txt]] [[tool:touch p2.txt]]").asked(allow).asked(allow).result(),
        case("parallel_tools", "two calls in one reply, not asked").arg("--permission-mode").arg("bypassPermissions")
            .turn("[[tool:echo one]] [[tool:echo two]]"),
        case("tool_error_exit", "a command that fails").arg("--permission-mode").arg("bypassPermissions").turn("[[tool:echo oops >&2; exit 3]]"),
        case("tool_unknown", "a tool that does not exist").turn("[[call:NoSuchTool:{\"a\":1}]]"),
        case("ask_user_question", "a question with options").asks()
            .prompt("[[call:AskUserQuestion:{\"questions\":[{\"question\":\"Which one?\",\"header\":\"Pick\",\"multiSelect\":false,\
                     \"options\":[{\"label\":\"Red\",\"description\":\"warm\"},{\"label\":\"Blue\",\"description\":\"cold\"}]}]}]]")
            .asked(answer_red).result(),
        case("exit_plan_mode", "a plan put to the person").asks().arg("--permission-mode").arg("plan")
            .prompt("[[call:ExitPlanMode:{\"plan\":\"1. look 2. leap\"}]]").asked(allow).result(),
        case("mcp_call_perm", "a tool of an MCP server, asked").asks().mcp().prompt("[[mcp:tiny:echo:{\"message\":\"hi\"}]]").asked(allow).result(),
        case("mcp_elicitation", "an MCP server asks the user twice by a form: answered, then declined; the second call is cancelled by an interrupt").asking_server()
            .prompt("[[mcp:asking:form:{}]] [[next]] [[mcp:asking:form:{}]]").elicited(fill).elicited(decline).result()
            .prompt("[[mcp:asking:form:{}]]").until("control_request", Some("elicitation")).interrupt().result(),
        case("mcp_elicitation_url", "an MCP server asks the user to open an address").asking_server()
            .prompt("[[mcp:asking:address:{}]]").elicited(accept).result(),
        case("mcp_call_fail", "a tool of an MCP server that fails").mcp().arg("--permission-mode").arg("bypassPermissions").turn("[[mcp:tiny:fail:{}]]"),
        case("interrupt_stream", "interrupt while text streams, then another turn").partial().prompt("[[text:starting now]] [[hang]] [[text:never]]")
            .hanging().interrupt().result().turn("[[text:alive after interrupt]]"),
        case("interrupt_tool", "interrupt while a command runs, then another turn").arg("--permission-mode").arg("bypassPermissions")
            .prompt("[[tool:tail -f /dev/null]]").until("assistant", None).pause(1500).interrupt().result().turn("[[text:alive after interrupt]]"),
        case("interrupt_perm_pending", "interrupt with a question open").asks().prompt("[[tool:touch zz.txt]]")
            .until("control_request", Some("can_use_tool")).interrupt().result(),
        case("queued_message", "a second message during a turn").partial().prompt("[[text:one]] [[slow:10:100]] [[text:one end]]")
            .pause(700).prompt("[[text:queued answer]]").result().result(),
        case("api_429_recover", "429 twice, then well").turn("[[status:429:2]] [[text:recovered]]"),
        case("api_401", "401").turn("[[status:401]]"),
        case("api_500_recover", "500 once, then well").turn("[[status:500:1]] [[text:recovered]]"),
        case("api_stream_error", "an error event in the middle of the stream").partial().turn("[[text:partial words]] [[block]] [[fail:overloaded_error:1]]"),
        case("api_drop", "the connection breaks in the middle of the stream").partial().turn("[[text:partial words]] [[cut:1]]"),
        case("max_turns", "--max-turns 2").arg("--permission-mode").arg("bypassPermissions").arg("--max-turns").arg("2")
            .turn("[[tool:echo 1]] [[next]] [[tool:echo 2]] [[next]] [[tool:echo 3]]"),
        case("resume_b", "--resume in a new process").arg("--resume").arg(SESSION).after(first_run()).turn("[[recall]]"),
        case("resume_continue", "--continue in a new process").arg("--continue").after(first_run()).turn("[[recall]]"),
        case("resume_fork", "--resume with --fork-session").arg("--resume").arg(SESSION).arg("--fork-session").after(first_run()).turn("[[recall]]"),
        case("resume_bad_uuid", "an unknown session").arg("--resume").arg("00000000-0000-4000-8000-000000000000").turn("[[text:never]]"),
        case("slash_context", "/context").turn("/context"),
        case("slash_compact", "/compact after a turn").turn("[[text:first]]").turn("/compact"),
        case("slash_clear", "/clear: another conversation id").turn("[[text:first]]").turn("/clear").turn("[[text:after clear]]"),
        case("slash_unknown", "an unknown slash command goes to the model").turn("/nosuchcommand [[text:told the model]]"),
        case("image", "an image in a message").image("[[text:a red pixel]]"),
        case("subagent", "a sub-agent, whose result comes by itself").arg("--permission-mode").arg("bypassPermissions").arg("--forward-subagent-text")
            .prompt("[[call:Agent:{\"description\":\"sub\",\"prompt\":\"((tool:echo in-sub))\",\"subagent_type\":\"general-purpose\"}]]")
            .result().result(),
        case("subagent_foreground", "a sub-agent that is waited for").arg("--permission-mode").arg("bypassPermissions")
            .turn("[[call:Agent:{\"description\":\"sub\",\"prompt\":\"((tool:echo in-sub))\",\"subagent_type\":\"general-purpose\",\
                   \"run_in_background\":false}]]"),
        case("bash_background", "a command in the background, whose end comes by itself").arg("--permission-mode").arg("bypassPermissions")
            .prompt("[[call:Bash:{\"command\":\"echo behind\",\"description\":\"later\",\"run_in_background\":true}]]").result().result(),
        case("mcp_image", "a tool of an MCP server that answers with a picture").mcp().arg("--permission-mode").arg("bypassPermissions")
            .turn("[[call:mcp__tiny__pic:{}]]"),
        case("hook_session_start", "hooks of the settings, one before the greeting").arg("--include-hook-events").file(".claude/settings.json", HOOKS)
            .control("initialize", json!({})).turn("[[tool:echo hi]]"),
        case("permprompt_sdk", "permission by an MCP tool served over the control protocol, then withdrawn")
            .arg("--permission-prompt-tool").arg("mcp__multitap__approve")
            .send(&request("init-1", "initialize", json!({"sdkMcpServers": ["multitap"]}))).served().served().served()
            .prompt("[[tool:touch s1.txt]] [[tool:touch s2.txt]]").served()
            .until("control_request", Some("mcp_message")).interrupt().result(),
        case("sigint", "SIGINT while text streams: it ends by itself, most often with a result").partial().prompt("[[text:starting]] [[hang]] [[text:never]]").hanging().signal(2).step(Move::UntilEnd),
    ]
}

fn first_run() -> Case {
    case("resume_a", "the session to come back to")
        .arg("--session-id")
        .arg(SESSION)
        .turn("remember the word cobalt [[text:noted]]")
}

fn case(name: &'static str, about: &'static str) -> Case {
    let stream = ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    Case::new(name, about).args(&stream)
}

fn oneshot(name: &'static str, about: &'static str, prompt: &str) -> Case {
    Case::new(name, about).args(&["-p", prompt, "--output-format", "stream-json", "--verbose"])
}

impl Case {
    fn partial(self) -> Self {
        self.arg("--include-partial-messages")
    }

    fn asks(self) -> Self {
        self.arg("--permission-prompt-tool").arg("stdio")
    }

    fn mcp(self) -> Self {
        self.arg("--mcp-config").arg(r#"{"mcpServers":{"tiny":{"command":"{mcp}","args":[]}}}"#)
    }

    /// An MCP server that asks the user, in this case's own folder.
    fn asking_server(self) -> Self {
        self.file("asking.py", include_str!("../../../adapter/tests/it/asking_server.py"))
            .arg("--mcp-config")
            .arg(r#"{"mcpServers":{"asking":{"command":"python3","args":["{workspace}/asking.py"]}}}"#)
            .arg("--permission-mode")
            .arg("bypassPermissions")
    }

    /// Waits for a question of an MCP server and answers it.
    fn elicited(self, answer: fn(&Value) -> Value) -> Self {
        self.until("control_request", Some("elicitation")).step(Move::Answer(answer))
    }

    /// Sends a message of the user.
    fn prompt(self, text: &str) -> Self {
        self.send(&user(&json!([{"type": "text", "text": text}])))
    }

    fn until(self, kind: &'static str, subtype: Option<&'static str>) -> Self {
        self.step(Move::Until(Wanted::Line { kind, subtype }))
    }

    /// Waits for the end of a turn.
    fn result(self) -> Self {
        self.until("result", None)
    }

    /// A message of the user and the whole turn.
    fn turn(self, text: &str) -> Self {
        self.prompt(text).result()
    }

    fn image(self, text: &str) -> Self {
        let source = json!({"type": "base64", "media_type": "image/png", "data": PIXEL});
        self.send(&user(&json!([{"type": "text", "text": text}, {"type": "image", "source": source}]))).result()
    }

    /// Waits for a question and answers it.
    fn asked(self, decision: fn(&Value) -> Value) -> Self {
        self.until("control_request", Some("can_use_tool")).step(Move::Answer(decision))
    }

    /// Answers the next message to our MCP server.
    fn served(self) -> Self {
        self.until("control_request", Some("mcp_message")).step(Move::Answer(serve))
    }

    /// Sends a control request and waits for its answer.
    fn control(self, subtype: &str, fields: Value) -> Self {
        let number = self.moves.len() + 1;
        self.send(&request(&format!("req-{number}"), subtype, fields)).until("control_response", None)
    }

    fn interrupt(self) -> Self {
        self.send(&request("int-1", "interrupt", json!({})))
    }
}

fn user(content: &Value) -> Value {
    let message = json!({"role": "user", "content": content});
    json!({"type": "user", "message": message, "parent_tool_use_id": null, "session_id": ""})
}

fn request(id: &str, subtype: &str, mut fields: Value) -> Value {
    fields["subtype"] = subtype.into();
    json!({"type": "control_request", "request_id": id, "request": fields})
}

fn response(asked: &Value, decision: &Value) -> Value {
    let response = json!({"subtype": "success", "request_id": asked["request_id"], "response": decision});
    json!({"type": "control_response", "response": response})
}

fn allow(asked: &Value) -> Value {
    response(asked, &json!({"behavior": "allow", "updatedInput": asked["request"]["input"]}))
}

fn fill(asked: &Value) -> Value {
    response(asked, &json!({"action": "accept", "content": {"name": "Ann", "ok": true}}))
}

fn decline(asked: &Value) -> Value {
    response(asked, &json!({"action": "decline"}))
}

fn accept(asked: &Value) -> Value {
    response(asked, &json!({"action": "accept", "content": {}}))
}

fn deny(asked: &Value) -> Value {
    response(asked, &json!({"behavior": "deny", "message": "not on a Sunday"}))
}

fn edit_command(asked: &Value) -> Value {
    let mut input = asked["request"]["input"].clone();
    input["command"] = "touch edited.txt".into();
    response(asked, &json!({"behavior": "allow", "updatedInput": input}))
}

fn allow_for_session(asked: &Value) -> Value {
    let suggestions = asked["request"]["permission_suggestions"].as_array().cloned().unwrap_or_default();
    let mut rules: Vec<Value> = suggestions.into_iter().filter(|rule| rule["type"] == "addRules").collect();
    for rule in &mut rules {
        rule["destination"] = "session".into();
    }
    let input = &asked["request"]["input"];
    response(asked, &json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": rules}))
}

fn answer_red(asked: &Value) -> Value {
    let mut input = asked["request"]["input"].clone();
    input["answers"] = json!({"Which one?": "Red"});
    response(asked, &json!({"behavior": "allow", "updatedInput": input}))
}

/// An MCP server with one tool, which allows everything.
fn serve(asked: &Value) -> Value {
    let message = &asked["request"]["message"];
    let result = match message["method"].as_str() {
        Some("initialize") => {
            json!({"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "multitap", "version": "1"}})
        }
        Some("tools/list") => {
            json!({"tools": [{"name": "approve", "description": "d", "inputSchema": {"type": "object", "properties": {}}}]})
        }
        Some("tools/call") => {
            let decision = json!({"behavior": "allow", "updatedInput": message["params"]["arguments"]["input"]});
            json!({"content": [{"type": "text", "text": decision.to_string()}]})
        }
        _ => json!({}),
    };
    let mut answer = json!({"jsonrpc": "2.0", "result": result});
    if let Some(id) = message.get("id") {
        answer["id"] = id.clone();
    }
    response(asked, &json!({"mcp_response": answer}))
}
