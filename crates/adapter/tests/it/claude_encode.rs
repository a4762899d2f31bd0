//! Commands to Claude's lines, and above all answers to its questions.

use std::collections::BTreeMap;
use std::path::Path;

use multitap_adapter::{ClaudeCodec, Codec, Files, Step};
use multitap_event::{
    AgentKind, Command, Decide, Details, EventKind, Image, PermissionPath, Prompt, Query, Question, QuestionId,
    SessionConfig, option,
};
use serde_json::{Value, json};

use crate::recording::now;

/// One file, whatever it is called.
struct OneFile;

impl Files for OneFile {
    fn read(&self, path: &Path) -> Option<String> {
        (!path.ends_with("new.txt")).then(|| "alpha\nbeta\ngamma\n".to_owned())
    }
}

fn codec_for(permission_path: PermissionPath) -> ClaudeCodec {
    let config = SessionConfig { permission_path, ..SessionConfig::new(AgentKind::Claude) };
    let mut codec = ClaudeCodec::live(&config, Some("11111111-2222-4333-8444-555555555555".into()), Box::new(OneFile));
    codec.begin(now());
    codec.decode(r#"{"type":"control_response","response":{"subtype":"success","request_id":"multitap-init","response":{"commands":[{"name":"help"}],"models":[],"account":{},"current_permission_mode":"default"}}}"#, now());
    codec
}

/// The lines a step writes and what it tells, for reading.
fn shown(step: &Step) -> String {
    let lines = step.lines.iter().map(|line| format!("> {line}"));
    let events = step.events.iter().map(|kind| format!("! {}", serde_json::to_value(kind).unwrap()));
    lines.chain(events).collect::<Vec<_>>().join("\n")
}

/// Asks by the control protocol.
fn ask(codec: &mut ClaudeCodec, tool: &str, input: &Value, suggestions: &Value) -> Question {
    let request = json!({ "subtype": "can_use_tool", "tool_name": tool, "input": input, "permission_suggestions": suggestions, "tool_use_id": "toolu_1" });
    let line = json!({ "type": "control_request", "request_id": "q1", "request": request });
    question(codec.decode(&line.to_string(), now()))
}

/// Asks by our permission tool.
fn call(codec: &mut ClaudeCodec, arguments: &Value) -> Step {
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "approve", "arguments": arguments } });
    let request = json!({ "subtype": "mcp_message", "server_name": "multitap", "message": message });
    codec.decode(&json!({ "type": "control_request", "request_id": "q1", "request": request }).to_string(), now())
}

fn question(step: Step) -> Question {
    let asked = step
        .events
        .into_iter()
        .find_map(|kind| if let EventKind::PermissionAsked(asked) = kind { Some(asked) } else { None });
    asked.unwrap()
}

fn decide(codec: &mut ClaudeCodec, decide: Decide) -> String {
    shown(&codec.encode(Command::Decide(decide), now()))
}

/// Every answer that a question offers, each to a fresh asking of it.
fn all_answers(tool: &str, input: &Value, suggestions: &Value) -> String {
    let question = ask(&mut codec_for(PermissionPath::Stream), tool, input, suggestions);
    let details = serde_json::to_value(&question.details).unwrap();
    let mut text = format!("{}\n{details}\n", question.title);
    for choice in &question.options {
        let mut codec = codec_for(PermissionPath::Stream);
        let question = ask(&mut codec, tool, input, suggestions);
        let answer = decide(&mut codec, Decide::new(&question.question_id, choice.id.clone()));
        text += &format!("\n{} · {}\n{answer}\n", choice.id, choice.name);
    }
    text
}

fn bash_suggestions() -> Value {
    json!([
        { "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "touch made.txt" }], "behavior": "allow", "destination": "localSettings" },
        { "type": "addDirectories", "directories": ["/w"], "destination": "session" },
        { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
    ])
}

fn edit_suggestions() -> Value {
    json!([{ "type": "setMode", "mode": "acceptEdits", "destination": "session" }])
}

#[test]
fn commands() {
    let mut text = String::new();
    let image = Image { media_type: "image/png".into(), data: "iVBORw0K".into() };
    let commands = [
        Command::Prompt(Prompt::text("hi\nthere")),
        Command::Prompt(Prompt { images: vec![image], ..Prompt::text("what is this?") }),
        Command::Cancel,
        Command::SetMode { mode: "auto-edit".into() },
        Command::SetMode { mode: "auto".into() },
        Command::SetMode { mode: "askDangerous".into() },
        Command::SetMode { mode: "sideways".into() },
        Command::SetModel { model: "opus".into() },
        Command::SetThinking { tokens: Some(4000) },
        Command::SetThinking { tokens: None },
        Command::Query { what: Query::Commands },
        Command::Query { what: Query::McpStatus },
        Command::Query { what: Query::Context },
    ];
    let mut codec = codec_for(PermissionPath::Stream);
    for command in commands {
        text += &format!("{}\n{}\n\n", serde_json::to_string(&command).unwrap(), shown(&codec.encode(command, now())));
    }
    insta::assert_snapshot!(text);
}

#[test]
fn nothing_runs_so_nothing_is_cancelled() {
    let step = codec_for(PermissionPath::Stream).encode(Command::Cancel, now());
    assert_eq!(
        shown(&step),
        r#"! {"type":"error","kind":"protocolError","message":"there is no turn to cancel","severity":"warning","agentType":"claude"}"#
    );
}

#[test]
fn answers_to_a_command() {
    let input = json!({ "command": "touch made.txt", "description": "make it" });
    insta::assert_snapshot!(all_answers("Bash", &input, &bash_suggestions()));
}

#[test]
fn answers_to_an_edit() {
    let input =
        json!({ "file_path": "/w/exist.txt", "old_string": "beta", "new_string": "BETA", "replace_all": false });
    insta::assert_snapshot!(all_answers("Edit", &input, &edit_suggestions()));
}

#[test]
fn answers_to_a_new_file() {
    let input = json!({ "file_path": "/w/new.txt", "content": "one\ntwo\n" });
    insta::assert_snapshot!(all_answers("Write", &input, &edit_suggestions()));
}

#[test]
fn answers_to_an_mcp_tool() {
    let suggestions = json!([{ "type": "addRules", "rules": [{ "toolName": "mcp__tiny__echo" }], "behavior": "allow", "destination": "localSettings" }]);
    insta::assert_snapshot!(all_answers("mcp__tiny__echo", &json!({ "message": "hi" }), &suggestions));
}

#[test]
fn answers_to_a_plan() {
    insta::assert_snapshot!(all_answers("ExitPlanMode", &json!({ "plan": "1. do it" }), &json!([])));
}

#[test]
fn answers_to_another_tool() {
    insta::assert_snapshot!(all_answers("WebFetch", &json!({ "url": "https://example.com" }), &json!(null)));
}

fn color(multi: bool) -> Value {
    json!({ "question": "Which color?", "header": "Color", "multiSelect": multi, "options": [{ "label": "Red" }, { "label": "Blue" }] })
}

#[test]
fn answers_to_one_question() {
    insta::assert_snapshot!(all_answers("AskUserQuestion", &json!({ "questions": [color(false)] }), &json!(null)));
}

#[test]
fn answers_to_several_questions() {
    let input = json!({ "questions": [color(true), { "question": "Why?", "options": [{ "label": "Because" }] }] });
    let answer = |change: &dyn Fn(&mut Decide)| {
        let mut codec = codec_for(PermissionPath::Stream);
        let asked = ask(&mut codec, "AskUserQuestion", &input, &json!(null));
        let mut answer = Decide::new(&asked.question_id, option::PROCEED_ONCE);
        change(&mut answer);
        decide(&mut codec, answer)
    };
    let colors = || BTreeMap::from([("Which color?".to_owned(), json!(["Red", "Blue"]))]);
    let text = [
        answer(&|_| {}),
        answer(&|answer| answer.answers = Some(colors())),
        answer(&|answer| answer.feedback = Some("you choose".into())),
        answer(&|answer| {
            answer.answers = Some(colors());
            answer.feedback = Some("no reason".into());
        }),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn answers_that_bring_their_own_content() {
    let answer = |tool: &str, input: Value, change: &dyn Fn(&mut Decide)| {
        let mut codec = codec_for(PermissionPath::Stream);
        let asked = ask(&mut codec, tool, &input, &json!(null));
        let mut answer = Decide::new(&asked.question_id, option::PROCEED_ONCE);
        change(&mut answer);
        format!("{tool}\n{}", decide(&mut codec, answer))
    };
    let content = |text: &'static str| move |answer: &mut Decide| answer.new_content = Some(text.to_owned());
    let edit = json!({ "file_path": "/w/exist.txt", "old_string": "beta", "new_string": "BETA" });
    let text = [
        answer("Bash", json!({ "command": "rm -rf /" }), &content("ls")),
        answer("Write", json!({ "file_path": "/w/a", "content": "x" }), &content("y")),
        answer("Edit", edit, &content("whole\r\nnew\r\n")),
        answer("Edit", json!({ "file_path": "/w/new.txt", "old_string": "a", "new_string": "b" }), &content("x")),
        answer(
            "MultiEdit",
            json!({ "file_path": "/w/a", "edits": [{ "old_string": "alpha", "new_string": "A" }] }),
            &content("new"),
        ),
        answer("NotebookEdit", json!({ "notebook_path": "/w/a.ipynb", "new_source": "1" }), &content("2")),
        answer("WebFetch", json!({ "url": "u" }), &content("x")),
        answer("WebFetch", json!({ "url": "u" }), &|answer| {
            answer.new_input = json!({ "url": "v" }).as_object().cloned()
        }),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn an_answer_that_does_not_fit_leaves_the_question_open() {
    let mut codec = codec_for(PermissionPath::Stream);
    let asked = ask(
        &mut codec,
        "Edit",
        &json!({ "file_path": "/w/a", "old_string": "beta", "new_string": "b" }),
        &edit_suggestions(),
    );
    let text = [
        decide(&mut codec, Decide::new(&"other".into(), option::PROCEED_ONCE)),
        decide(&mut codec, Decide::new(&asked.question_id, "proceed_always_server")),
        decide(&mut codec, Decide::new(&asked.question_id, option::CANCEL).with_feedback("not in this file")),
        decide(&mut codec, Decide::new(&asked.question_id, option::PROCEED_ONCE)),
    ];
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn our_permission_tool() {
    let mut codec = codec_for(PermissionPath::Mcp);
    let message =
        |codec: &mut ClaudeCodec, message: Value| {
            let request = json!({ "subtype": "mcp_message", "server_name": "multitap", "message": message });
            shown(&codec.decode(
                &json!({ "type": "control_request", "request_id": "m", "request": request }).to_string(),
                now(),
            ))
        };
    let bash = json!({ "tool_name": "Bash", "input": { "command": "ls" }, "tool_use_id": "toolu_1" });
    let older = json!({ "tool_name": "Edit", "tool_input": { "file_path": "/w/a", "old_string": "beta", "new_string": "b" }, "context": { "session_id": "s" } });
    let mut text = vec![
        message(
            &mut codec,
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25" } }),
        ),
        message(&mut codec, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
        message(&mut codec, json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })),
        message(&mut codec, json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/list" })),
        shown(&call(&mut codec, &older)),
        decide(&mut codec, Decide::new(&"q1".into(), option::CANCEL).with_feedback("no")),
        shown(&call(&mut codec, &bash)),
        decide(&mut codec, Decide::new(&"q1".into(), option::PROCEED_ALWAYS)),
        // The same command is not asked about again; another one is.
        shown(&call(&mut codec, &bash)),
        shown(&call(&mut codec, &json!({ "tool_name": "Bash", "input": { "command": "rm x" } }))),
        decide(&mut codec, Decide::new(&"q1".into(), "cancel_always")),
        shown(&call(&mut codec, &json!({ "tool_name": "Bash", "input": { "command": "rm x" } }))),
        shown(&call(&mut codec, &json!("nonsense"))),
    ];
    text.push(shown(&call(&mut codec, &json!({ "tool_name": "mcp__tiny__echo", "input": {} }))));
    text.push(decide(&mut codec, Decide::new(&"q1".into(), option::PROCEED_ALWAYS_SERVER)));
    text.push(shown(&call(&mut codec, &json!({ "tool_name": "mcp__tiny__other", "input": {} }))));
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn requests_nobody_here_serves_are_answered_all_the_same() {
    let mut codec = codec_for(PermissionPath::Stream);
    let requests = [
        json!({ "subtype": "hook_callback", "callback_id": "cb1", "input": {} }),
        json!({ "subtype": "request_user_dialog", "dialog_kind": "x" }),
        json!({ "subtype": "mcp_message", "server_name": "other", "message": {} }),
        json!({ "subtype": "something_new" }),
        json!({}),
        json!({ "subtype": "can_use_tool", "tool_name": 7 }),
    ];
    let text = requests.map(|request| {
        let line = json!({ "type": "control_request", "request_id": "r", "request": request });
        shown(&codec.decode(&line.to_string(), now()))
    });
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn an_edited_answer_makes_no_rule() {
    for path in [PermissionPath::Stream, PermissionPath::Mcp] {
        let mut codec = codec_for(path);
        let bash = |command: &str| json!({ "tool_name": "Bash", "input": { "command": command } });
        let id: QuestionId = match path {
            PermissionPath::Mcp => {
                question(call(&mut codec, &bash("rm -rf /")));
                "q1".into()
            }
            PermissionPath::Stream => {
                ask(&mut codec, "Bash", &json!({ "command": "rm -rf /" }), &bash_suggestions()).question_id
            }
        };
        let edited = Decide { new_content: Some("ls".into()), ..Decide::new(&id, option::PROCEED_ALWAYS) };
        let refused = codec.encode(Command::Decide(edited.clone()), now());
        assert!(refused.lines.is_empty(), "Claude waits on: {refused:?}");
        assert!(matches!(&refused.events[..], [EventKind::Error(error)] if error.message.contains("once")));
        let once = Decide { option_id: option::PROCEED_ONCE.into(), ..edited };
        let allowed = codec.encode(Command::Decide(once), now());
        assert!(allowed.lines[0].contains("ls") && !allowed.lines[0].contains("updatedPermissions"), "{allowed:?}");
    }
}

/// R002-44: an edit may change what is written or run, never where it goes or how.
#[test]
fn an_edit_changes_content_and_nothing_else() {
    let edited = |tool: &str, input: &Value, new: &Value| {
        let mut codec = codec_for(PermissionPath::Stream);
        let asked = ask(&mut codec, tool, input, &json!(null));
        let decide =
            Decide { new_input: new.as_object().cloned(), ..Decide::new(&asked.question_id, option::PROCEED_ONCE) };
        let edited = codec.edited(&decide);
        // What is refused here does not reach Claude either.
        let line = codec.encode(Command::Decide(decide), now()).lines.join("");
        assert_eq!(line.contains("updatedInput"), edited.is_ok(), "{line}");
        edited
    };
    let bash = json!({ "command": "make", "description": "d" });
    let runs = edited("Bash", &bash, &json!({ "command": "make all", "timeout": 5 })).unwrap();
    assert!(matches!(&runs.details, Details::Command { command, .. } if command == "make all"));
    assert_eq!(runs.arguments["timeout"], 5);
    let write = json!({ "file_path": "/w/a", "content": "x" });
    let runs = edited("Write", &write, &json!({ "file_path": "/w/a", "content": "y" })).unwrap();
    assert!(matches!(&runs.details, Details::FileEdit { file_path, .. } if file_path == "/w/a"));
    let edit = json!({ "file_path": "/w/exist.txt", "old_string": "beta", "new_string": "B" });
    for (tool, input, new, name) in [
        ("Write", &write, json!({ "file_path": "/etc/passwd", "content": "x" }), "file_path"),
        ("Write", &write, json!({ "content": "x" }), "file_path"),
        ("Write", &write, json!({ "file_path": "/w/a", "content": "x", "mode": 1 }), "mode"),
        ("Edit", &edit, json!({ "file_path": "/w/b", "old_string": "beta", "new_string": "B" }), "file_path"),
        ("Bash", &bash, json!({ "command": "x", "dangerouslyDisableSandbox": true }), "dangerouslyDisableSandbox"),
        ("Bash", &bash, json!({ "command": "x", "run_in_background": true }), "run_in_background"),
    ] {
        let why = edited(tool, input, &new).unwrap_err();
        assert!(why.contains(name), "{why}");
    }
    let mut codec = codec_for(PermissionPath::Stream);
    let fetch = ask(&mut codec, "WebFetch", &json!({ "url": "u" }), &json!(null));
    assert!(fetch.edits.is_empty(), "nobody can tell what is content there");
}

#[test]
fn a_plan_asked_through_our_tool() {
    let mut codec = codec_for(PermissionPath::Mcp);
    let plan = json!({ "tool_name": "ExitPlanMode", "input": { "plan": "1. do it" } });
    question(call(&mut codec, &plan));
    insta::assert_snapshot!(decide(&mut codec, Decide::new(&"q1".into(), option::PROCEED_ALWAYS)));
    // The next plan is another plan.
    question(call(&mut codec, &plan));
}

/// Half a character must not cost the question: nobody could answer it, and Claude would wait for ever.
#[test]
fn a_question_with_half_a_character_is_asked() {
    let mut codec = multitap_adapter::recorded(multitap_event::AgentType::Claude).unwrap();
    let line = r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"echo \ud83d"},"tool_use_id":"t"}}"#;
    let step = codec.decode(line, now());
    let asked = step.events.iter().find_map(|kind| match kind {
        EventKind::PermissionAsked(question) => Some(question.clone()),
        _ => None,
    });
    let Details::Command { command, .. } = asked.unwrap().details else { panic!("{step:#?}") };
    assert_eq!(command, "echo \u{fffd}");
}

/// R002-42: in plan mode nobody can allow a change, nor can an earlier answer. Plans and questions are still asked.
#[test]
fn plan_mode_refuses_changes_without_asking() {
    let edit = json!({ "file_path": "/w/new.txt", "content": "x\n" });
    let (bash, plan) = (json!({ "command": "touch x" }), json!({ "plan": "1. Look" }));
    for path in [PermissionPath::Stream, PermissionPath::Mcp] {
        let mut codec = codec_for(path);
        let mut asks = |tool: &str, input: &Value| {
            let request =
                json!({ "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "toolu_1" });
            let step = match path {
                PermissionPath::Mcp => call(&mut codec, &json!({ "tool_name": tool, "input": input })),
                PermissionPath::Stream => codec.decode(
                    &json!({ "type": "control_request", "request_id": "q1", "request": request }).to_string(),
                    now(),
                ),
            };
            let asked = step.events.iter().find_map(|kind| match kind {
                EventKind::PermissionAsked(asked) => Some(asked.question_id.clone()),
                _ => None,
            });
            if let Some(asked) = &asked {
                codec.encode(Command::Decide(Decide::new(asked, option::PROCEED_ALWAYS)), now());
            }
            if tool == "Bash" {
                codec.decode(r#"{"type":"system","subtype":"status","permissionMode":"plan"}"#, now());
            }
            (asked.is_some(), step.lines.join("\n"))
        };
        assert!(asks("Bash", &bash).0, "before plan mode");
        for (tool, input) in [("Write", &edit), ("Bash", &bash)] {
            let (is_asked, lines) = asks(tool, input);
            assert!(!is_asked && lines.contains("deny") && lines.contains("ExitPlanMode"), "{tool}: {lines}");
        }
        assert!(asks("ExitPlanMode", &plan).0);
    }
}

/// An MCP server's question to the user, as Claude forwards it.
fn elicit(codec: &mut ClaudeCodec, asked: &Value) -> Step {
    let mut request = json!({ "subtype": "elicitation", "mcp_server_name": "tiny", "message": "Who are you?" });
    request.as_object_mut().unwrap().extend(asked.as_object().cloned().unwrap());
    let line = json!({ "type": "control_request", "request_id": "e1", "request": request });
    codec.decode(&line.to_string(), now())
}

#[test]
fn answers_to_a_form_of_an_mcp_server() {
    let schema = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string", "description": "Your name" },
        "age": { "type": "integer", "minimum": 0 },
        "colors": { "type": "array", "items": { "anyOf": [{ "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] } },
    } });
    let form = json!({ "mode": "form", "requested_schema": schema, "property_order": ["name", "age", "colors"] });
    let url = json!({ "mode": "url", "url": "https://example.com/in", "elicitation_id": "x" });
    let mut all = Vec::new();
    for (asked, answers) in [
        (&form, json!({ "Your name": "Ann", "age": "7", "colors": ["Blue"] })),
        (&form, json!({ "Your name": "Ann" })),
        (&form, json!({ "Your name": "Ann", "age": "old" })),
        (&form, json!({ "age": 7 })),
        (&url, json!({})),
    ] {
        let mut codec = codec_for(PermissionPath::Stream);
        let question = question(elicit(&mut codec, asked));
        assert_eq!(question.title, "tiny asks: Who are you?");
        all.push(serde_json::to_string(&question.details).unwrap());
        let given = Decide {
            answers: serde_json::from_value(answers).unwrap(),
            ..Decide::new(&question.question_id, option::PROCEED_ONCE)
        };
        all.push(decide(&mut codec, given));
        for option in ["yes", option::DECLINE] {
            all.push(format!("{option}: {}", decide(&mut codec, Decide::new(&question.question_id, option))));
        }
    }
    insta::assert_snapshot!(all.join("\n"));
}

/// Claude takes its question back when the call or the server ends.
#[test]
fn a_form_that_claude_takes_back_is_withdrawn() {
    let mut codec = codec_for(PermissionPath::Stream);
    let question = question(elicit(&mut codec, &json!({ "requested_schema": {} })));
    let step = codec.decode(&json!({ "type": "control_cancel_request", "request_id": "e1" }).to_string(), now());
    assert!(
        matches!(&step.events[..], [EventKind::PermissionWithdrawn(gone)] if gone.question_id == question.question_id),
        "{:#?}",
        step.events
    );
}
