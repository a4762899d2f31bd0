//! Conversations over ACP: the steps that every agent shares, and the cases of agents without a codec of their own.

use serde_json::{Value, json};

use super::Case;
use super::rpc::Talk;

pub(super) const ASK: &str = "session/request_permission";
const ELICIT: &str = "elicitation/create";

/// Settings for the scripted model, where opencode looks for those of a project.
const OPENCODE: &str = r#"{"model":"fake/m1","small_model":"fake/m1","share":"disabled","autoupdate":false,
"provider":{"fake":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"{model}/v1","apiKey":"dummy"},"models":{"m1":{"name":"M1"}}}},
"permission":{"edit":"ask","bash":"ask"}}"#;

/// Cases of the agent that is Claude behind the protocol.
#[rustfmt::skip] // a table
pub(super) fn claude() -> Vec<Case> {
    let open = |name, about| plain(name, about).opened();
    vec![
        open("text", "a thought and text").said("[[think:let me think]] [[text:hello acp]]").case,
        open("shell_once", "a command, asked and allowed").say("[[tool:touch made.txt; exit 3]]").asked(ASK, once).replied().case,
        open("shell_reject", "a command, rejected").say("[[tool:touch made.txt]]").asked(ASK, reject).replied().case,
        open("cancel_stream", "cancel while text streams").say("[[text:starting]] [[hang]]").hanging().cancel().replied().said("[[text:alive]]").case,
        open("form", "the model asks the user").say(r#"[[call:AskUserQuestion:{"questions":[{"question":"Which color?","header":"Color","multiSelect":false,"options":[{"label":"red","description":"r"},{"label":"blue","description":"b"}]}]}]]"#)
            .asked(ELICIT, |asked| accepted(asked, &json!({"question_0": "blue"}))).replied().case,
    ]
}

/// Cases of the agent that is Codex behind the protocol. It asks in the mode `read-only`.
#[rustfmt::skip] // a table
pub(super) fn codex() -> Vec<Case> {
    let open = |name, about| plain(name, about).opened().mode("read-only");
    vec![
        open("text", "a thought and text, two turns").said("[[think:let me think]] [[text:hello acp]]").said("[[recall]]").case,
        open("shell_once", "a command, asked and allowed").say(r#"[[call:exec_command:{"cmd":"touch made.txt; echo hi; exit 3","sandbox_permissions":"require_escalated","justification":"Try?"}]]"#).asked(ASK, once).replied().case,
        open("shell_reject", "a command, rejected, which ends the turn").say(r#"[[call:exec_command:{"cmd":"touch made.txt","sandbox_permissions":"require_escalated","justification":"Try?"}]]"#).asked(ASK, reject).replied().case,
        open("write", "a new file").say("[[write:{workspace}/made.txt:first line]]").asked(ASK, once).replied().case,
        open("cancel_stream", "cancel while text streams").say("[[text:starting]] [[hang]]").hanging().cancel().replied().said("[[text:alive]]").case,
        open("form", "the model asks the user, in plan mode").said("/plan").say(r#"[[call:request_user_input:{"questions":[{"id":"color","header":"Color","question":"Which color?","options":[{"label":"red","description":"r"},{"label":"blue","description":"b"}]}]}]]"#)
            .asked(ELICIT, |asked| accepted(asked, &json!({"color": "blue"}))).replied().case,
    ]
}

#[rustfmt::skip] // a table
pub(super) fn opencode() -> Vec<Case> {
    let open = |name, about| plain(name, about).with(|case| case.args(&["acp"]).file("opencode.json", OPENCODE)).opened();
    vec![
        open("text", "a thought and text").said("[[think:let me think]] [[text:hello acp]]").case,
        open("shell_once", "a command, asked and allowed").say(r#"[[call:bash:{"command":"touch made.txt; echo hi; exit 3","description":"Try"}]]"#).asked(ASK, once).replied().case,
        open("shell_reject", "a command, rejected").say(r#"[[call:bash:{"command":"touch made.txt","description":"Try"}]]"#).asked(ASK, reject).replied().case,
        open("write", "a new file, which the client is to write as well").say(r#"[[call:write:{"filePath":"{workspace}/made.txt","content":"first line"}]]"#)
            .asked(ASK, once).asked("fs/write_text_file", refused).replied().case,
        open("cancel_stream", "cancel while text streams").say("[[text:starting]] [[hang]]").hanging().cancel().replied().said("[[text:alive]]").case,
    ]
}

fn plain(name: &'static str, about: &'static str) -> Talk {
    Talk::new(Case::new(name, about), true)
}

impl Talk {
    /// Begins a session as a client that shows everything that the adapter shows.
    fn opened(self) -> Self {
        self.opened_with(&json!({
            "fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false,
            "elicitation": {"form": {}, "url": {}}, "session": {"notices": {}}, "_meta": {"terminal_output": true},
        }))
    }

    pub(super) fn opened_with(self, capabilities: &Value) -> Self {
        let client = json!({"name": "recorder", "version": "1"});
        self.ask("initialize", &json!({"protocolVersion": 1, "clientInfo": client, "clientCapabilities": capabilities}))
            .replied()
            .ask("session/new", &json!({"cwd": "{workspace}", "mcpServers": []}))
            .replied()
            .keep("session", "/result/sessionId")
    }

    pub(super) fn mode(self, mode: &str) -> Self {
        self.ask("session/set_mode", &json!({"sessionId": "{session}", "modeId": mode})).replied()
    }

    pub(super) fn say(self, text: &str) -> Self {
        self.ask("session/prompt", &json!({"sessionId": "{session}", "prompt": [{"type": "text", "text": text}]}))
    }

    /// A prompt and the whole turn.
    pub(super) fn said(self, text: &str) -> Self {
        self.say(text).replied()
    }

    pub(super) fn cancel(self) -> Self {
        self.tell("session/cancel", &json!({"sessionId": "{session}"}))
    }
}

fn reply(asked: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})
}

/// The agent's first option of that kind.
fn chosen(asked: &Value, kind: &str) -> Value {
    let options = asked["params"]["options"].as_array().into_iter().flatten();
    let option = options.into_iter().find(|option| option["kind"] == kind).map(|option| option["optionId"].clone());
    reply(asked, &json!({"outcome": {"outcome": "selected", "optionId": option}}))
}

pub(super) fn once(asked: &Value) -> Value {
    chosen(asked, "allow_once")
}

pub(super) fn always(asked: &Value) -> Value {
    chosen(asked, "allow_always")
}

pub(super) fn reject(asked: &Value) -> Value {
    chosen(asked, "reject_once")
}

pub(super) fn nobody(asked: &Value) -> Value {
    reply(asked, &json!({"outcome": {"outcome": "cancelled"}}))
}

fn accepted(asked: &Value, content: &Value) -> Value {
    reply(asked, &json!({"action": "accept", "content": content}))
}

fn refused(asked: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "not served"}})
}
