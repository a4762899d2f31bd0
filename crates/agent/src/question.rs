//! The question about a job: what is shown, what can be answered, and what an answer means for the job.

use multitap_event::{Choice, ChoiceKind, Decide, Details, Question, QuestionId, ToolId, option};
use serde_json::Value;

use crate::job::Job;

/// The question that asks for leave to do it.
pub(crate) fn question(id: QuestionId, tool_id: ToolId, tool_name: &str, job: &Job) -> Question {
    let details = job.details();
    Question {
        question_id: id,
        tool_id: Some(tool_id),
        tool_name: Some(tool_name.to_owned()),
        title: job.title(),
        options: choices(&details),
        details,
        edits: job.edits(),
        reason: None,
    }
}

/// The option id of the n-th answer that the model offers to its own question.
fn answer_option(index: usize) -> String {
    format!("answer_{}", index + 1)
}

fn choices(details: &Details) -> Vec<Choice> {
    let once = |name: &str| Choice::new(option::PROCEED_ONCE, name, ChoiceKind::AllowOnce);
    let always = |id: &str, name: String| Choice::new(id, name, ChoiceKind::AllowAlways);
    let cancel = |name: &str| Choice::new(option::CANCEL, name, ChoiceKind::RejectOnce);
    let mut choices = match details {
        Details::Input { questions } => {
            let labels = questions.iter().flat_map(|asked| &asked.labels).enumerate();
            let mut choices: Vec<_> = labels
                .map(|(index, label)| Choice::new(&answer_option(index), label.clone(), ChoiceKind::AllowOnce))
                .collect();
            if choices.is_empty() {
                choices.push(once("Answer"));
            }
            choices.push(cancel("Do not answer"));
            return choices;
        }
        Details::Command { .. } => vec![
            once("Allow once"),
            always(option::PROCEED_ALWAYS, "Allow commands like this for this session".to_owned()),
        ],
        Details::FileEdit { .. } => {
            vec![once("Allow once"), always(option::PROCEED_ALWAYS, "Allow all edits in this session".to_owned())]
        }
        Details::Mcp { server, tool, .. } => vec![
            once("Allow once"),
            always(option::PROCEED_ALWAYS_TOOL, format!("Allow {tool} of {server} for this session")),
            always(option::PROCEED_ALWAYS_SERVER, format!("Allow all tools of {server} for this session")),
        ],
        Details::Plan { .. } | Details::Text { .. } => {
            vec![once("Allow once"), always(option::PROCEED_ALWAYS, "Allow this tool for this session".to_owned())]
        }
    };
    choices.push(always(option::PROCEED_ALWAYS_AND_SAVE, "Always allow, and keep it in my settings".to_owned()));
    choices.push(cancel("Deny"));
    choices
}

/// What the user answered to the model's own question, in words for the model.
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
