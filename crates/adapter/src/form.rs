//! Questions in the agent's words: their options, and answers in the format that the agent expects.

use std::collections::BTreeMap;

use multitap_event::{AskedQuestion, Choice, ChoiceKind, Decide, answer_option, one_line, option};
use serde_json::Value;

use crate::json::JsonFields as _;

/// Not in the shared words: no to this and its like from now on.
pub(crate) const CANCEL_ALWAYS: &str = "cancel_always";

pub(crate) fn once(name: &str) -> Choice {
    Choice::new(option::PROCEED_ONCE, name, ChoiceKind::AllowOnce)
}

pub(crate) fn always(id: &str, name: impl Into<String>) -> Choice {
    Choice::new(id, name, ChoiceKind::AllowAlways)
}

pub(crate) fn cancel(name: &str) -> Choice {
    Choice::new(option::CANCEL, name, ChoiceKind::RejectOnce)
}

pub(crate) fn cancel_always(name: impl Into<String>) -> Choice {
    Choice::new(CANCEL_ALWAYS, name, ChoiceKind::RejectAlways)
}

pub(crate) fn options(questions: &[AskedQuestion]) -> Vec<Choice> {
    let mut choices = match questions {
        [one] if !one.multi_select && !one.labels.is_empty() => {
            let label = |(index, label): (usize, &String)| {
                Choice::new(&answer_option(index), label.clone(), ChoiceKind::AllowOnce)
            };
            one.labels.iter().enumerate().map(label).collect()
        }
        _ => vec![once("Answer")],
    };
    choices.push(cancel("Do not answer"));
    choices
}

/// The descriptions of the options that have a label; none if no option has one.
pub(crate) fn descriptions(options: &[Value]) -> Vec<String> {
    let labelled = options.iter().filter(|option| option.text("label").is_some());
    let all: Vec<String> = labelled.map(|option| option.string("description").unwrap_or_default()).collect();
    if all.iter().all(String::is_empty) { Vec::new() } else { all }
}

pub(crate) fn title(questions: &[AskedQuestion]) -> String {
    questions.first().map_or_else(|| "The agent has a question".to_owned(), |one| one_line(&one.question))
}

/// The answer to each question, in order; an error if one has none. `commented` makes an answer of a label and the words
/// that the user added to it.
pub(crate) fn answers(
    questions: &[AskedQuestion],
    decide: &Decide,
    commented: impl Fn(&str, &str) -> Vec<String>,
) -> Result<Vec<Vec<String>>, String> {
    let mut known: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let own_words = decide.feedback.as_deref().filter(|text| !text.is_empty());
    if let [one] = questions {
        let chosen = (0..one.labels.len()).find(|index| decide.option_id.as_str() == answer_option(*index));
        if let Some(label) = chosen.map(|index| &one.labels[index]) {
            let answer = own_words.map_or_else(|| vec![label.clone()], |words| commented(label, words));
            known.insert(&one.question, answer);
        }
    }
    for (question, given) in decide.answers.iter().flatten() {
        known.insert(question, words(given));
    }
    let answer = |one: &AskedQuestion| match (known.get(one.question.as_str()), own_words) {
        (Some(answer), _) => Ok(answer.clone()),
        (None, Some(words)) => Ok(vec![words.to_owned()]),
        (None, None) => Err(format!("no answer to \"{}\"", one.question)),
    };
    questions.iter().map(answer).collect()
}

fn words(given: &Value) -> Vec<String> {
    match given {
        Value::Array(list) => list.iter().flat_map(words).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    }
}
