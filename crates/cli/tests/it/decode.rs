//! `multitap decode`: recorded lines in, events out.

use std::io::Write as _;
use std::process::Stdio;

use multitap_testkit::fixture;
use serde_json::Value;

use crate::scene::{Live, MULTITAP, Scene, of, the, types, whole};

const SEED: &str = r#"{"type":"init","session_id":"sess_123"}
{"type":"tool_use","id":"toolu_01","name":"Edit","input":{"file":"test.txt"}}
{"type":"tool_result","tool_use_id":"toolu_01","content":"OK","is_error":false}
{"type":"result","status":"success","session_id":"sess_123"}
"#;

#[test]
fn recorded_lines_become_events_of_the_native_session() {
    let run = Scene::bare().run_with(&["decode", "--agent", "claude"], SEED).exits(0);
    let events = run.events();
    whole(&events);
    assert_eq!(events[0]["sessionId"], "sess_123");
    let without_turns: Vec<&str> = types(&events).into_iter().filter(|kind| *kind != "turnStarted").collect();
    assert_eq!(without_turns, ["sessionStarted", "toolStarted", "toolCompleted", "turnCompleted", "sessionEnded"]);
    assert!(events.iter().all(|event| event.get("raw").is_none()));
}

#[test]
fn lines_of_every_agent_that_is_driven_are_decoded() {
    let codex = r#"{"type":"thread.started","thread_id":"native"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"hello"}}
{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}
"#;
    let gemini = r#"{"type":"init","timestamp":"2026-11-15T10:00:00.000Z","session_id":"native","model":"m"}
{"type":"message","timestamp":"2026-11-15T10:00:01.000Z","role":"assistant","content":"hello","delta":true}
{"type":"result","timestamp":"2026-11-15T10:00:02.000Z","status":"success"}
"#;
    let acp = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}
{"jsonrpc":"2.0","id":2,"result":{"sessionId":"native"}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"native","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hello"}}}}
{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
"#;
    for (agent, lines) in [("codex", codex), ("gemini", gemini), ("acp", acp), ("gemini", acp)] {
        let events = Scene::bare().run_with(&["decode", "--agent", agent], lines).exits(0).events();
        whole(&events);
        assert_eq!(events[0]["sessionId"], "native", "{agent}");
        assert_eq!(the(&events, "sessionStarted")["nativeSessionId"], "native", "{agent}");
        let text: String = of(&events, "textChunk").iter().map(|chunk| chunk["content"].as_str().unwrap()).collect();
        assert_eq!(text, "hello", "{agent}");
        assert_eq!(the(&events, "turnCompleted")["status"], "completed", "{agent}");
        assert!(of(&events, "unrecognized").is_empty(), "{agent}: {events:#?}");
    }
}

#[test]
fn raw_keeps_every_line_once() {
    let input = format!("{SEED}garbage\n{{\"type\":\"keep_alive\"}}\n");
    let events = Scene::bare().run_with(&["decode", "--agent", "claude", "--raw"], &input).exits(0).events();
    whole(&events);
    let raw: Vec<&str> = events
        .iter()
        .flat_map(|event| event["raw"].as_array().into_iter().flatten())
        .map(|line| line.as_str().unwrap())
        .collect();
    assert_eq!(raw, input.lines().collect::<Vec<_>>());
}

/// The schema of eight types as it was published, which knows the three CLIs.
const PUBLISHED: &str = include_str!("../../../event/tests/it/unified-event.schema.json");

/// What the real CLIs wrote, as somebody would decode it: nothing lost, nothing unknown, in the published shape. One
/// recording was fed nonsense, and one is a list for people.
#[test]
fn every_recording_of_the_real_clis_is_decoded() {
    let published: Value = serde_json::from_str(PUBLISHED).unwrap();
    let types: Vec<Value> = {
        let defs = published["$defs"].as_object().unwrap().values();
        let own = |def: &Value| def["allOf"].as_array().into_iter().flatten().cloned().collect::<Vec<_>>();
        let parts = defs.flat_map(own).filter_map(|part| part.pointer("/properties/type/const").cloned());
        parts.collect()
    };
    assert_eq!(types.len(), 8, "{types:?}");
    let published = jsonschema::draft7::options().build(&published).unwrap();
    for agent in ["claude", "codex", "gemini"] {
        for recording in fixture::all(agent).unwrap() {
            let name = format!("{agent}/{}", recording.case);
            let lines: Vec<&str> = recording.stdout().filter(|line| !line.trim().is_empty()).collect();
            let input = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let run = Scene::bare().run_with(&["decode", "--agent", agent, "--raw"], &input).exits(0);
            let events = run.events();
            whole(&events);
            let raw = events.iter().flat_map(|event| event["raw"].as_array().into_iter().flatten());
            assert_eq!(raw.map(|line| line.as_str().unwrap()).collect::<Vec<_>>(), lines, "{name}");
            if !["codex/as_badinput", "gemini/sj_list_sessions"].contains(&name.as_str()) {
                assert!(of(&events, "unrecognized").is_empty(), "{name}: {events:#?}");
            }
            for event in events.iter().filter(|event| types.contains(&event["type"])) {
                assert!(published.is_valid(event), "{name}: {event:#}");
            }
        }
    }
}

#[test]
fn events_come_while_the_input_is_open() {
    let scene = Scene::bare();
    let mut live = Live::new(scene.command(&["decode", "--agent", "claude"]));
    live.send(SEED);
    live.until_type("turnCompleted");
    live.end().exits(0);
}

#[test]
fn nothing_and_nonsense_end_well() {
    let scene = Scene::bare();
    let events = scene.run_with(&["decode", "--agent", "claude"], "").exits(0).events();
    whole(&events);
    let events = scene.run_with(&["decode", "--agent", "claude"], "\n\nhello\n\u{fffd}\n").exits(0).events();
    whole(&events);
    assert_eq!(of(&events, "unrecognized").len(), 2);
}

#[test]
fn a_line_beyond_all_bounds_is_told_and_skipped() {
    let scene = Scene::bare();
    let mut child = scene.command(&["decode", "--agent", "claude"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..100 {
            stdin.write_all(&chunk).unwrap();
        }
        stdin.write_all(b"\n").unwrap();
        stdin.write_all(SEED.as_bytes()).unwrap();
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let long = the(&events, "unrecognized");
    assert_eq!(long["bytes"], 100 << 20);
    assert_eq!(events[0]["sessionId"], "sess_123", "it waited for the name");
    assert_eq!(of(&events, "toolCompleted").len(), 1);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let scene = Scene::bare();
    let pipe = format!("yes '{{\"type\":\"x\"}}' | head -200000 | {MULTITAP} decode --agent claude | head -1");
    let output = scene.scratch.command("/bin/sh").args(["-c", &pipe]).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.stdout.split(|byte| *byte == b'\n').count(), 2);
}
