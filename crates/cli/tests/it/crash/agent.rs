//! The agent of the crash rounds: it speaks Claude Code's dialect and writes down whatever reaches it.
//!
//! A prompt with `talk` is answered in pieces, one with `ask` asks for permission and does as it is told, one with
//! `hang` works until it is interrupted. Unlike other fakes it goes by the conversation id it was started with, and no
//! two of its questions have the same id.

use std::collections::BTreeMap;

use multitap_testkit::fake::{Fake, assistant, init, result};
use serde_json::{Value, json};

/// Stand in lines for what is only known when they are said.
const QUESTION: &str = "@QUESTION@";
const NATIVE: &str = "@NATIVE@";

/// What reached the agents of all rounds.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) prompts: Vec<String>,
    /// By question: whether it may.
    pub(super) allowed: BTreeMap<String, Vec<bool>>,
}

impl Heard {
    pub(super) fn by(fake: &Fake) -> Self {
        let mut heard = Self::default();
        // The last line may be one that it did not live to write to the end; the arguments are no JSON.
        for line in fake.heard().unwrap().iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            match line["type"].as_str() {
                Some("user") => heard.prompts.push(words(&line["message"]["content"])),
                Some("control_response") => {
                    let question = line["response"]["request_id"].as_str().unwrap().to_owned();
                    let allowed = line["response"]["response"]["behavior"] == "allow";
                    heard.allowed.entry(question).or_default().push(allowed);
                }
                _ => {}
            }
        }
        heard
    }
}

fn words(content: &Value) -> String {
    match content {
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        text => text.as_str().unwrap().to_owned(),
    }
}

pub(super) fn agent() -> Fake {
    let of_session = |mut line: Value| {
        line["session_id"] = NATIVE.into();
        line
    };
    let tool = json!({
        "type": "assistant", "parent_tool_use_id": null, "session_id": NATIVE, "uuid": "u-tool",
        "message": {
            "id": "msg_tool", "type": "message", "role": "assistant", "model": "m", "stop_reason": null,
            "content": [{"type": "tool_use", "id": QUESTION, "name": "Bash", "input": {"command": "touch x"}}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    });
    let question = json!({
        "type": "control_request", "request_id": QUESTION,
        "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "display_name": "Bash", "input": {"command": "touch x"},
            "permission_suggestions": [], "tool_use_id": QUESTION,
        },
    });
    let done = |content: &str, is_error: bool| {
        json!({
            "type": "user", "parent_tool_use_id": null, "session_id": NATIVE, "uuid": "u-result",
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": QUESTION, "content": content, "is_error": is_error},
            ]},
        })
    };
    let mut aborted = of_session(result(""));
    aborted["subtype"] = "error_during_execution".into();
    aborted["is_error"] = true.into();
    aborted["terminal_reason"] = "aborted_streaming".into();
    let initialized = json!({
        "commands": [], "models": [], "account": {}, "claude_code_version": "2.1.325",
        "current_permission_mode": "default",
    });
    let script = format!(
        r#"here=${{0%/*}}
printf '%s\n' "$*" >> "$here/heard"
for word in "$@"; do
  case $before in --session-id|--resume) native=$word ;; esac
  before=$word
done
asked=0
open=no
success() {{
  printf '{{"type":"control_response","response":{{"subtype":"success","request_id":"%s","response":%s}}}}\n' "$1" "$2"
}}
while IFS= read -r line; do
  printf '%s\n' "$line" >> "$here/heard"
  id=${{line#*\"request_id\":\"}}
  id=${{id%%\"*}}
  case $line in
    *'"subtype":"initialize"'*) success "$id" '{initialized}' ;;
    *'"subtype":"interrupt"'*)
      success "$id" '{{}}'
      if [ $open = yes ]; then {withdrawn}; fi
      open=no
      {aborted} ;;
    *'"type":"control_request"'*) success "$id" '{{}}' ;;
    *'"type":"user"'*ask*)
      asked=$((asked + 1))
      question=ask-$$-$asked
      open=yes
      {init}; {hm}; {tool}; {question} ;;
    *'"type":"user"'*hang*) {init}; {hanging} ;;
    *'"type":"user"'*) {init}; {hm}; {hm}; sleep 0.02; {hm}; {end} ;;
    *'"behavior":"allow"'*) open=no; {made}; {hm}; {end} ;;
    *'"behavior":"deny"'*) open=no; {denied}; {hm}; {end} ;;
  esac
done
"#,
        withdrawn = say(&json!({"type": "control_cancel_request", "request_id": QUESTION})),
        aborted = say(&aborted),
        init = say(&of_session(init())),
        hm = say(&of_session(assistant("hm"))),
        hanging = say(&of_session(assistant("hanging"))),
        tool = say(&tool),
        question = say(&question),
        made = say(&done("made it", false)),
        denied = say(&done("denied by you", true)),
        end = say(&of_session(result("hm"))),
    );
    Fake::shell("claude", &script).unwrap()
}

/// The shell command that says this line.
fn say(line: &Value) -> String {
    let text = line.to_string();
    assert!(!text.contains(['\'', '%', '\\']), "no quoting is needed: {text}");
    let mut places: Vec<(usize, &str)> = text.match_indices(QUESTION).map(|(at, _)| (at, "\"$question\"")).collect();
    places.extend(text.match_indices(NATIVE).map(|(at, _)| (at, "\"$native\"")));
    places.sort_unstable();
    let words: Vec<&str> = places.iter().map(|(_, word)| *word).collect();
    format!("printf '{}\\n' {}", text.replace(QUESTION, "%s").replace(NATIVE, "%s"), words.join(" "))
}
