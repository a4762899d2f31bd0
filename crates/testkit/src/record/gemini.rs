//! The conversations recorded with Gemini CLI: over ACP, and with one process per turn.

use serde_json::json;

use super::Case;
use super::acp::{ASK, always, nobody, once, reject};
use super::rpc::Talk;

#[rustfmt::skip] // a table
pub(super) fn cases() -> Vec<Case> {
    vec![
        acp("acp_text", "initialize, session/new, a thought and text").said("[[think:let me think]] [[text:hello acp]]").case,
        acp("acp_multi", "three prompts").said("[[text:one]]").said("[[text:two]]").said("[[recall]]").case,
        acp("acp_shell_once", "a command, asked and allowed").say("[[tool:touch made.txt && ls]]").asked(ASK, once).replied().case,
        acp("acp_shell_always", "allowed for the session, the next not asked").say("[[tool:touch a.txt]]").asked(ASK, always).replied()
            .said("[[tool:touch b.txt]]").case,
        acp("acp_shell_reject", "a command, rejected").say("[[tool:touch made.txt]]").asked(ASK, reject).replied().case,
        acp("acp_write_nofs", "a new file, with its diff in the question").say("[[write:{workspace}/made.txt:first line]]").asked(ASK, once).replied().case,
        acp("acp_edit", "an edit").with(|case| case.file("exist.txt", "alpha\nbeta\ngamma\n"))
            .say("[[edit:{workspace}/exist.txt:beta=>BETA]]").asked(ASK, once).replied().case,
        acp("acp_edit_reject", "an edit, rejected").with(|case| case.file("exist.txt", "alpha\nbeta\ngamma\n"))
            .say("[[edit:{workspace}/exist.txt:beta=>BETA]]").asked(ASK, reject).replied().case,
        acp("acp_perm_parallel", "two calls in one reply, asked one after the other").say("[[tool:touch p1.txt]] [[tool:touch p2.txt]]")
            .asked(ASK, once).asked(ASK, once).replied().case,
        acp("acp_tool_error", "a command that fails, a file outside, an unknown tool").yolo().said("[[tool:echo out; exit 3]]")
            .said("[[read:/nonexistent]]").said("[[call:no_such_tool:{}]]").case,
        acp("acp_cancel_stream", "cancel while text streams").say("[[text:starting]] [[hang]]").hanging().cancel().replied().said("[[text:alive]]").case,
        acp("acp_cancel_tool", "cancel while a command runs, then another turn").yolo().say("[[tool:tail -f /dev/null]]").pause(2500)
            .cancel().replied().said("[[text:alive]]").case,
        acp("acp_cancel_perm", "cancel with a question open").say("[[tool:touch zz.txt]]").heard(ASK).cancel()
            .with(|case| case.step(super::Move::Answer(nobody))).replied().case,
        acp("acp_mode", "the mode is changed, and then nothing is asked").yolo().said("[[tool:echo hi]]").case,
        acp("acp_400", "the model refuses").said("[[status:400]]").said("[[text:alive]]").case,
        acp("acp_slash", "slash commands").said("/memory show").said("/nosuchcommand").said("/help").case,
        stream("sj_text", "text", "[[text:hello stream]]"),
        stream("sj_shell_default", "without a mode the tool is not there", "[[tool:echo hi]]"),
        stream("sj_shell_yolo", "a command", "[[tool:echo hi; echo err >&2]]").args(&["--approval-mode", "yolo"]),
        stream("sj_write_yolo", "a new file", "[[write:{workspace}/made.txt:first line]]").args(&["--approval-mode", "yolo"]),
        stream("sj_todo", "a list of tasks", "[[call:write_todos:{\"todos\":[{\"description\":\"Look\",\"status\":\"in_progress\"}]}]]").args(&["--approval-mode", "yolo", "--model", "gemini-2.5-flash"]),
        stream("sj_400", "the model refuses", "[[status:400]]"),
        stream("sj_401", "the key is wrong", "[[status:401]]"),
        stream("sj_resume_latest", "--resume latest", "[[recall]]").args(&["--resume", "latest"])
            .after(stream("sj_resume_a", "the conversation to come back to", "remember the word cobalt [[text:noted]]")),
        stream("sj_resume_bad", "an unknown conversation, exit code 42", "hi").args(&["--resume", "00000000-0000-4000-8000-000000000000"]),
        Case::new("sj_list_sessions", "a list for people").args(&["--list-sessions", "--skip-trust"])
            .after(stream("sj_resume_a", "a conversation", "hello [[text:noted]]")),
    ]
}

fn stream(name: &'static str, about: &'static str, prompt: &str) -> Case {
    Case::new(name, about).args(&["-p", prompt, "--output-format", "stream-json", "--skip-trust"])
}

/// A conversation over ACP.
fn acp(name: &'static str, about: &'static str) -> Talk {
    let capabilities = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
    Talk::new(Case::new(name, about).args(&["--acp", "--skip-trust"]), true).opened_with(&capabilities)
}

impl Talk {
    /// From here on, everything is allowed without asking.
    fn yolo(self) -> Self {
        self.mode("yolo")
    }
}
