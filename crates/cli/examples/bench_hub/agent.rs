//! A program that plays an agent: it speaks Claude Code's dialect just enough to say something in a turn, and stamps each
//! line with the moment in which it is written.

use std::io::{Write as _, stdin, stdout};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::Outcome;

/// The word that makes this program an agent.
pub(crate) const WORD: &str = "as-agent";
/// Lines a second.
pub(crate) const RATE: u64 = 200;

const SESSION: &str = "6df1cbe0-ffc2-44f2-a7a3-cdc9ab09997b";

/// Answers every request with success, and a prompt with so many pieces of text.
pub(crate) fn run(count: u64) -> Outcome<()> {
    for line in stdin().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        match line["type"].as_str() {
            Some("control_request") => {
                let response = json!({"subtype": "success", "request_id": line["request_id"], "response": {}});
                say(&json!({"type": "control_response", "response": response}))?;
            }
            Some("user") => turn(count)?,
            _ => {}
        }
    }
    Ok(())
}

fn turn(count: u64) -> Outcome<()> {
    say(&json!({
        "type": "system", "subtype": "init", "cwd": "/", "session_id": SESSION, "tools": [], "mcp_servers": [],
        "model": "bench", "permissionMode": "default", "slash_commands": [], "apiKeySource": "none",
        "claude_code_version": "2.1.325", "uuid": "7961d4fe-31f0-4353-9fd2-a0cb255b99b2",
    }))?;
    let message = json!({"id": "msg_01", "type": "message", "role": "assistant", "model": "bench", "content": [],
                         "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    stream(&json!({"type": "message_start", "message": message}))?;
    stream(&json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))?;
    let began = Instant::now();
    for number in 0..count {
        let due = Duration::from_millis(number * 1000 / RATE);
        sleep(due.saturating_sub(began.elapsed()));
        let text = format!("{} {}", now()?, "0123456789".repeat(40));
        let delta = json!({"type": "text_delta", "text": text});
        stream(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))?;
    }
    stream(&json!({"type": "content_block_stop", "index": 0}))?;
    stream(&json!({"type": "message_stop"}))?;
    say(&json!({
        "type": "result", "subtype": "success", "is_error": false, "result": "", "num_turns": 1, "duration_ms": 1,
        "duration_api_ms": 1, "stop_reason": "end_turn", "session_id": SESSION, "total_cost_usd": 0.0,
        "usage": {"input_tokens": 1, "output_tokens": 1}, "uuid": "6edd31d2-be8f-4a57-81b2-2af56dc15328",
    }))
}

fn stream(event: &Value) -> Outcome<()> {
    let uuid = "74c32049-1d0a-4b04-91c2-63b6297a2849";
    say(
        &json!({"type": "stream_event", "event": event, "session_id": SESSION, "parent_tool_use_id": null, "uuid": uuid}),
    )
}

fn say(line: &Value) -> Outcome<()> {
    let mut out = stdout().lock();
    out.write_all(format!("{line}\n").as_bytes())?;
    Ok(out.flush()?)
}

/// Nanoseconds that both processes count from the same moment.
fn now() -> Outcome<u128> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())
}

/// How many milliseconds ago a piece of text was stamped; nothing if it bears no stamp.
pub(crate) fn age_millis(text: &str) -> Option<f64> {
    let stamp: u128 = text.split_whitespace().next()?.parse().ok()?;
    Some(now().ok()?.saturating_sub(stamp) as f64 / 1e6)
}
