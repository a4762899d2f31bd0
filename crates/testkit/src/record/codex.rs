//! The conversations recorded with Codex: its app-server, and `codex exec`.

use serde_json::{Value, json};

use super::Case;
use super::rpc::Talk;

const ASK_COMMAND: &str = "item/commandExecution/requestApproval";
const ASK_PATCH: &str = "item/fileChange/requestApproval";
const ASK_SERVER: &str = "mcpServer/elicitation/request";

#[rustfmt::skip] // a table
pub(super) fn cases() -> Vec<Case> {
    vec![
        asks("as_text", "initialize, thread/start, a text turn with deltas").turn("[[text:hello app server]]").case,
        asks("as_multi_turn", "three turns").turn("[[text:one]]").turn("[[text:two]]").turn("[[recall]]").case,
        asks("as_reasoning", "deltas of the summary of reasoning").turn("[[think:let me think]] [[text:42]]").case,
        unasked("as_shell_auto", "a command, not asked").turn("[[tool:echo hi; echo err >&2]]").case,
        unasked("as_shell_fail", "a command that fails").turn("[[tool:echo oops; exit 3]]").case,
        unasked("as_long_command", "the output of a command comes in pieces").turn("[[tool:for n in 1 2 3; do echo tick $n; sleep 1; done]]").case,
        asks("as_shell_accept", "a command, asked and accepted").prompt("[[tool:touch made.txt && ls]]").asked(ASK_COMMAND, accept).over().case,
        asks("as_shell_decline", "declined").prompt("[[tool:touch made.txt]]").asked(ASK_COMMAND, decline).over().case,
        asks("as_shell_cancel", "cancelled: the turn is over").prompt("[[tool:touch made.txt]]").asked(ASK_COMMAND, cancel).over().case,
        asks("as_shell_session", "accepted for the session, the second not asked").prompt("[[tool:touch made.txt]]")
            .asked(ASK_COMMAND, accept_for_session).over().turn("[[tool:touch made.txt]]").case,
        asks("as_patch_accept", "a new file and a change of it, asked and accepted").prompt("[[write:new.txt:line one\nline two]]").asked(ASK_PATCH, accept).over()
            .prompt("[[edit:new.txt:line two=>LINE 2]]").asked(ASK_PATCH, accept).over().case,
        asks("as_patch_decline", "a new file, declined").prompt("[[write:{workspace}/made.txt:first line]]").asked(ASK_PATCH, decline).over().case,
        asks("as_patch_cancel", "a new file, cancelled").prompt("[[write:{workspace}/made.txt:first line]]").asked(ASK_PATCH, cancel).over().case,
        with_server("as_mcp_approval", "a tool of an MCP server, asked and accepted").prompt("[[mcp:tiny:echo:{\"message\":\"hi\"}]]")
            .asked(ASK_SERVER, elicited).over().case,
        unasked("as_interrupt_tool", "interrupt while a command runs, then another turn").prompt("[[tool:sleep 1; echo begin; tail -f /dev/null]]")
            .heard("item/commandExecution/outputDelta").pause(1500).interrupt().over().turn("[[text:alive]]").case,
        asks("as_interrupt_stream", "interrupt while text streams").prompt("[[text:starting]] [[hang]]").hanging().interrupt().over().case,
        asks("as_interrupt_approval", "interrupt with a question open").prompt("[[tool:touch zz.txt]]").heard(ASK_COMMAND).interrupt().over().case,
        asks("as_steer", "more words for a running turn").prompt("[[text:one]] [[slow:10:100]]").pause(500)
            .ask("turn/steer", &json!({"threadId": "{thread}", "expectedTurnId": "{turn}", "input": input("and this")})).replied().over().case,
        asks("as_429", "429").turn("[[status:429]]").case,
        asks("as_500_recover", "500 twice, then well").turn("[[status:500:2]] [[text:recovered]]").case,
        opened(server("as_plan", "a plan").with(|case| case.args(&["-c", "tools.update_plan={enabled=true}"])), "untrusted").turn(PLAN).case,
        resumed().case,
        exec("exec_text", "text", "[[text:hello exec]]"),
        exec("exec_shell", "a command", "[[tool:echo hi]]"),
        exec("exec_patch", "a change of a file", "[[write:ex.txt:a\nb]] [[next]] [[edit:ex.txt:b=>B]]"),
        exec("exec_500", "the turn fails, exit code 1", "[[status:500]]"),
        exec("exec_plan", "a list of tasks", PLAN).args(&["-c", "tools.update_plan={enabled=true}"]),
        Case::new("exec_fullauto_flag", "an option that is gone, exit code 2").args(&["exec", "--json", "--full-auto", "hi"]),
        exec("exec_approval_needed", "a policy that would ask is refused", "[[text:never]]").args(&["-c", "approval_policy=\"untrusted\""]),
    ]
}

const PLAN: &str = "[[call:update_plan:{\"plan\":[{\"step\":\"Look\",\"status\":\"in_progress\"},{\"step\":\"Leap\",\"status\":\"pending\"}]}]] [[next]] \
    [[call:update_plan:{\"plan\":[{\"step\":\"Look\",\"status\":\"completed\"},{\"step\":\"Leap\",\"status\":\"in_progress\"}]}]]";

fn input(text: &str) -> Value {
    json!([{"type": "text", "text": text, "text_elements": []}])
}

fn exec(name: &'static str, about: &'static str, prompt: &str) -> Case {
    Case::new(name, about).args(&["exec", "--json", "--skip-git-repo-check", "-s", "danger-full-access", prompt])
}

/// The app-server, greeted.
fn server(name: &'static str, about: &'static str) -> Talk {
    Talk::new(Case::new(name, about).arg("app-server"), false)
}

/// A conversation in it.
fn opened(talk: Talk, policy: &str) -> Talk {
    let start = json!({"cwd": "{workspace}", "approvalPolicy": policy, "sandbox": "danger-full-access"});
    greeted(talk).ask("thread/start", &start).replied().keep("thread", "/result/thread/id")
}

fn greeted(talk: Talk) -> Talk {
    let client = json!({"clientInfo": {"name": "recorder", "title": "Recorder", "version": "1"}});
    talk.ask("initialize", &client).replied().tell("initialized", &json!({}))
}

fn asks(name: &'static str, about: &'static str) -> Talk {
    opened(server(name, about), "untrusted")
}

fn unasked(name: &'static str, about: &'static str) -> Talk {
    opened(server(name, about), "never")
}

fn with_server(name: &'static str, about: &'static str) -> Talk {
    let servers = "mcp_servers.tiny={command=\"{mcp}\"}";
    opened(server(name, about).with(|case| case.args(&["-c", servers])), "untrusted")
}

/// A conversation of an earlier process: listed, read, resumed and forked.
fn resumed() -> Talk {
    let before =
        asks("as_resume_a", "the conversation to come back to").turn("remember the word cobalt [[text:noted]]");
    let thread = json!({"threadId": "{thread}"});
    greeted(
        server("as_resume_b", "thread/list, read, resume and fork in a new process")
            .with(|case| case.after(before.case)),
    )
    .ask("thread/list", &json!({}))
    .replied()
    .keep("thread", "/result/data/0/id")
    .ask("thread/read", &json!({"threadId": "{thread}", "includeTurns": true}))
    .replied()
    .ask("thread/resume", &thread)
    .replied()
    .turn("[[recall]]")
    .ask("thread/fork", &thread)
    .replied()
}

impl Talk {
    fn prompt(self, text: &str) -> Self {
        self.ask("turn/start", &json!({"threadId": "{thread}", "input": input(text)}))
            .replied()
            .keep("turn", "/result/turn/id")
    }

    /// Waits for the end of the turn.
    fn over(self) -> Self {
        self.heard("turn/completed")
    }

    fn turn(self, text: &str) -> Self {
        self.prompt(text).over()
    }

    fn interrupt(self) -> Self {
        self.ask("turn/interrupt", &json!({"threadId": "{thread}", "turnId": "{turn}"}))
    }
}

fn decided(asked: &Value, decision: &str) -> Value {
    json!({"id": asked["id"], "result": {"decision": decision}})
}

fn accept(asked: &Value) -> Value {
    decided(asked, "accept")
}

fn accept_for_session(asked: &Value) -> Value {
    decided(asked, "acceptForSession")
}

fn decline(asked: &Value) -> Value {
    decided(asked, "decline")
}

fn cancel(asked: &Value) -> Value {
    decided(asked, "cancel")
}

fn elicited(asked: &Value) -> Value {
    json!({"id": asked["id"], "result": {"action": "accept", "content": {}}})
}
