//! The question about a job: what is shown, which answers are offered, and what they mean for the job.

use multitap_event::{Choice, ChoiceKind, Decide, Details, Question, QuestionId, ToolId, option};
use serde_json::Value;

use crate::job::{Access, Job};
use crate::policy::{Rule, always};

pub(crate) fn question(id: QuestionId, tool_id: ToolId, tool_name: &str, job: &Job) -> Question {
    Question {
        question_id: id,
        tool_id: Some(tool_id),
        tool_name: Some(tool_name.to_owned()),
        title: job.title(),
        options: choices(tool_name, job),
        details: job.details(),
        edits: job.edits(),
        reason: None,
    }
}

/// The option id of the n-th answer that the model offers to its own question.
fn answer_option(index: usize) -> String {
    format!("answer_{}", index + 1)
}

fn choices(tool: &str, job: &Job) -> Vec<Choice> {
    let cancel = |name: &str| Choice::new(option::CANCEL, name, ChoiceKind::RejectOnce);
    if let Details::Input { questions } = job.details() {
        let labels = questions.into_iter().flat_map(|asked| asked.labels).enumerate();
        let mut choices: Vec<_> =
            labels.map(|(index, label)| Choice::new(&answer_option(index), label, ChoiceKind::AllowOnce)).collect();
        if choices.is_empty() {
            choices.push(Choice::new(option::PROCEED_ONCE, "Answer", ChoiceKind::AllowOnce));
        }
        choices.push(cancel("Do not answer"));
        return choices;
    }
    let mut choices = vec![Choice::new(option::PROCEED_ONCE, "Allow once", ChoiceKind::AllowOnce)];
    let for_session: &[&str] = match job.access() {
        Access::Mcp { .. } => &[option::PROCEED_ALWAYS_TOOL, option::PROCEED_ALWAYS_SERVER],
        _ => &[option::PROCEED_ALWAYS],
    };
    for option in for_session.iter().copied().chain([option::PROCEED_ALWAYS_AND_SAVE]) {
        // The button says exactly what the rule will be.
        let rules = always(option, tool, job);
        let shown = rules.iter().map(Rule::shown).collect::<Vec<_>>().join(", ");
        let name = match option {
            _ if rules.is_empty() => continue,
            option::PROCEED_ALWAYS_AND_SAVE => format!("Always allow {shown}, and keep it in my settings"),
            _ => format!("Allow {shown} for this session"),
        };
        choices.push(Choice::new(option, name, ChoiceKind::AllowAlways));
    }
    choices.push(cancel("Deny"));
    choices
}

/// The user's answer to the model's own question, in words for the model.
pub(crate) fn answer(question: &Question, decide: &Decide) -> String {
    let chosen = question.choice(&decide.option_id).map(|choice| choice.name.as_str());
    let by_option = chosen.filter(|_| decide.option_id.as_str() != option::PROCEED_ONCE);
    let given = decide.answers.iter().flatten().map(|(_, answer)| match answer {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    let words = decide.feedback.iter().filter(|words| !words.is_empty()).cloned();
    let all: Vec<_> = by_option.map(str::to_owned).into_iter().chain(given).chain(words).collect();
    if all.is_empty() { "The user gave no answer.".to_owned() } else { all.join("\n") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tools::shell::Command;

    #[test]
    fn what_a_button_says_is_what_the_rule_will_be() {
        let names = |command: &str| {
            let job = Job::Shell(Command::of(command, Path::new("/work")));
            let question = question("q".into(), "t".into(), "run_shell_command", &job);
            question.options.into_iter().map(|choice| choice.name).collect::<Vec<_>>()
        };
        let expected = [
            "Allow once",
            "Allow `git log …`, `head …` for this session",
            "Always allow `git log …`, `head …`, and keep it in my settings",
            "Deny",
        ];
        assert_eq!(names("git log | head"), expected);
        assert_eq!(names("rm $X")[1], "Allow exactly this command for this session");
    }
}
