//! Judges edited answers for agents that have rules of their own.
//!
//! Such an agent checks the call it asks about, and runs an edited one unchecked. So an edit may change content, but
//! not its destination; an edited command is judged here, by the session's own block rules and mode. A command that
//! cannot be parsed with certainty is refused.
//!
//! Must not come in: names of agents and of their arguments; the agent's side reports the call that an edit results in.

use multitap_event::{AgentLink, ApprovalMode, Details, EditReview, EditedCall, Question, REVIEW_QUEUE};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::command::Script;
use crate::job::Access;
use crate::policy::{Policy, Verdict};
use crate::tools::shell;

/// Wraps an agent so that edited answers must pass these block rules (`--block-tool`, as the agent spells them).
pub fn edit_gate(link: AgentLink, blocked: &[String], tasks: &TaskTracker) -> AgentLink {
    let (reviews, edits) = mpsc::channel(REVIEW_QUEUE);
    let gate = Gate { blocked: blocked.to_vec() };
    tasks.spawn(gate.run(edits, link.reviews));
    AgentLink { reviews, ..link }
}

struct Gate {
    blocked: Vec<String>,
}

impl Gate {
    /// Runs until the owner of the session or its agent is gone.
    async fn run(self, mut edits: mpsc::Receiver<EditReview>, agent: mpsc::Sender<EditReview>) {
        while let Some(EditReview { question, decide, mode, reply }) = edits.recv().await {
            let (to_agent, edited) = oneshot::channel();
            let asked = EditReview { question: question.clone(), decide, mode, reply: to_agent };
            if agent.send(asked).await.is_err() {
                // Dropping the queue tells the session that the agent accepts no edits.
                return;
            }
            let Ok(edited) = edited.await else { continue };
            let judged = edited.and_then(|edited| self.judge(&question, &edited, mode).map(|()| edited));
            reply.send(judged).ok(); // the session is gone: nothing was settled
        }
    }

    fn judge(&self, question: &Question, edited: &EditedCall, mode: Option<ApprovalMode>) -> Result<(), String> {
        match (&question.details, &edited.details) {
            // The agent checked this one itself.
            (
                Details::Command { command: asked, directory: from, .. },
                Details::Command { command: now, directory: to, .. },
            ) if (asked, from) == (now, to) => Ok(()),
            _ if mode == Some(ApprovalMode::Plan) => {
                Err("the session is in plan mode: nothing can be edited".to_owned())
            }
            (Details::FileEdit { file_path: asked, .. }, Details::FileEdit { file_path: now, .. }) if asked == now => {
                Ok(())
            }
            (Details::Command { directory: asked, .. }, Details::Command { directory: now, command, .. })
                if asked == now =>
            {
                self.judge_command(command, mode.unwrap_or(ApprovalMode::Ask))
            }
            (Details::FileEdit { file_path, .. }, _) => Err(format!("an edit may change the text, not {file_path}")),
            _ => Err("an edit may change a command or the text of a file, and nothing else".to_owned()),
        }
    }

    fn judge_command(&self, command: &str, mode: ApprovalMode) -> Result<(), String> {
        let policy = Policy::beside_agent(mode, &self.blocked);
        let access = Access::Shell { command, directory: std::path::Path::new("") };
        if let Verdict::Deny(why) = policy.judge_access(shell::NAME, access) {
            return Err(why);
        }
        match Script::parse(command) {
            Ok(script) if !script.hides_commands() => Ok(()),
            Ok(_) => Err("it runs commands that are not visible: write them out".to_owned()),
            Err(_) => Err("it cannot be parsed with certainty: use plain commands".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::{Decide, link, option};
    use serde_json::Map;

    use super::*;

    fn command(command: &str) -> Details {
        Details::Command { command: command.to_owned(), directory: Some("/w".to_owned()), description: None }
    }

    fn file(path: &str) -> Details {
        Details::FileEdit { file_path: path.to_owned(), before: None, after: None, diff: None }
    }

    fn question(details: Details) -> Question {
        Question {
            question_id: "q".into(),
            tool_id: None,
            tool_name: None,
            title: "?".to_owned(),
            options: Vec::new(),
            details,
            edits: Vec::new(),
            reason: None,
        }
    }

    fn judge(blocked: &[&str], mode: ApprovalMode, asked: Details, edited: Details) -> Result<(), String> {
        let blocked: Vec<String> = blocked.iter().map(|rule| (*rule).to_owned()).collect();
        let edited = EditedCall::new("", Map::new(), edited);
        Gate { blocked }.judge(&question(asked), &edited, Some(mode))
    }

    #[test]
    fn an_edited_command_is_read_by_our_own_rules() {
        let edit = |blocked: &[&str], to: &str| judge(blocked, ApprovalMode::Ask, command("echo hi"), command(to));
        assert_eq!(edit(&[], "echo bye && ls -l"), Ok(()));
        let same = || command("echo $HOME > x");
        assert_eq!(judge(&[], ApprovalMode::Plan, same(), same()), Ok(()), "nothing is edited");
        assert_eq!(edit(&["Bash(touch:*)", "Write", "Edit(src/**)", "Read(./.env)"], "touchy x"), Ok(()));
        for rule in ["Bash(* --force)", "Bash(rm", "PowerShell(rm:*)"] {
            assert!(edit(&[rule], "echo bye").unwrap_err().contains(rule), "{rule}");
        }
        for rule in ["Bash(touch:*)", "Bash(touch *)", "Bash(touch)", "run_shell_command(touch:*)", "Bash"] {
            for to in ["touch x", "echo hi; touch x", "/usr/bin/touch x", "env touch x", "sh -c 'touch x'"] {
                assert!(edit(&[rule], to).is_err(), "{rule} against {to}");
            }
            assert_eq!(edit(&[rule], "echo bye").is_ok(), rule != "Bash", "{rule}");
        }
        // Whatever the rules: what cannot be parsed is refused.
        for to in
            ["echo $(touch x)", "echo hi > x", "$CMD", "eval x", "sh -c 'echo'", "if x; then y; fi", "a=1 ls", "'"]
        {
            assert!(edit(&[], to).is_err(), "{to}");
        }
    }

    #[test]
    fn nothing_is_edited_in_plan_mode_and_nothing_goes_elsewhere() {
        use ApprovalMode::{AutoAll, Plan};
        assert!(judge(&[], Plan, command("ls"), command("ls -a")).is_err());
        assert!(judge(&[], Plan, file("/w/a"), file("/w/a")).is_err());
        assert_eq!(judge(&[], AutoAll, file("/w/a"), file("/w/a")), Ok(()));
        assert!(judge(&[], AutoAll, file("/w/a"), file("/w/b")).unwrap_err().contains("/w/a"));
        let elsewhere = Details::Command { command: "ls".to_owned(), directory: None, description: None };
        for (asked, edited) in
            [(command("ls"), elsewhere), (command("ls"), file("/w/a")), (file("/w/a"), command("ls"))]
        {
            assert!(judge(&[], AutoAll, asked, edited).is_err());
        }
        let text = || Details::Text { text: String::new(), arguments: Map::new() };
        assert!(judge(&[], AutoAll, text(), text()).is_err(), "nobody can tell what it would do");
    }

    #[tokio::test]
    async fn the_agent_says_what_an_edit_makes_and_the_gate_whether_it_may_run() {
        let tasks = TaskTracker::new();
        let (link, mut end) = link();
        let gated = edit_gate(link, &["Bash(touch:*)".to_owned()], &tasks);
        for (to, passes) in [("echo bye", true), ("touch x", false)] {
            let (reply, judged) = oneshot::channel();
            let decide = Decide::new(&"q".into(), option::PROCEED_ONCE);
            let review = EditReview { question: Box::new(question(command("echo hi"))), decide, mode: None, reply };
            gated.reviews.send(review).await.unwrap();
            let asked = end.reviews.recv().await.unwrap();
            asked.reply.send(Ok(EditedCall::new(to, Map::new(), command(to)))).unwrap();
            assert_eq!(judged.await.unwrap().is_ok(), passes, "{to}");
        }
        drop(gated);
        tasks.close();
        tasks.wait().await;
    }
}
