//! Questions in the agent's words: what is offered, and answers as the asker wants to have them.

use std::collections::BTreeMap;

use multitap_event::{AskedQuestion, Choice, ChoiceKind, Decide, option};
use serde_json::{Map, Value};

use super::wire::Fields;

/// One field of a form that an MCP server sends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    /// The question it is asked by.
    pub(super) question: String,
    kind: Kind,
    required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Whole,
    YesNo,
    Several,
}

/// A form as questions, one for each field.
pub(super) fn read(schema: &Fields, message: &str) -> (Vec<Field>, Vec<AskedQuestion>) {
    let required: Vec<&str> = schema.list("required").iter().filter_map(Value::as_str).collect();
    let properties = schema.fields("properties");
    let one = |(name, property): (&String, &Value)| {
        let property = Fields::of(Some(property));
        let kind = match property.text("type") {
            Some("boolean") => Kind::YesNo,
            Some("integer") => Kind::Whole,
            Some("number") => Kind::Number,
            Some("array") => Kind::Several,
            _ => Kind::Text,
        };
        let question = property.text("description").or_else(|| property.text("title")).unwrap_or(name).to_owned();
        let asked = AskedQuestion {
            question: question.clone(),
            header: Some(property.text("title").unwrap_or(message).to_owned()),
            labels: labels(&property, kind),
            multi_select: kind == Kind::Several,
        };
        (Field { name: name.clone(), question, kind, required: required.contains(&name.as_str()) }, asked)
    };
    properties.0.iter().map(one).unzip()
}

fn labels(property: &Fields, kind: Kind) -> Vec<String> {
    if kind == Kind::YesNo {
        return vec!["yes".to_owned(), "no".to_owned()];
    }
    let items = property.fields("items");
    let from = if kind == Kind::Several { &items } else { property };
    let titled = [from.list("oneOf"), from.list("anyOf")].concat();
    let titled = titled.iter().filter_map(|one| one.get("const")?.as_str());
    from.list("enum").iter().filter_map(Value::as_str).chain(titled).map(str::to_owned).collect()
}

/// The option id of the n-th label of a single question.
fn answer_option(index: usize) -> String {
    format!("answer_{}", index + 1)
}

pub(super) fn options(questions: &[AskedQuestion]) -> Vec<Choice> {
    let mut choices = match questions {
        [one] if !one.multi_select && !one.labels.is_empty() => {
            let label = |(index, label): (usize, &String)| {
                Choice::new(&answer_option(index), label.clone(), ChoiceKind::AllowOnce)
            };
            one.labels.iter().enumerate().map(label).collect()
        }
        _ => vec![Choice::new(option::PROCEED_ONCE, "Answer", ChoiceKind::AllowOnce)],
    };
    choices.push(Choice::new(option::CANCEL, "Do not answer", ChoiceKind::RejectOnce));
    choices
}

pub(super) fn title(questions: &[AskedQuestion]) -> String {
    let first = questions.first().map(|one| super::command::one_line(&one.question));
    first.unwrap_or_else(|| "The agent has a question".to_owned())
}

/// The answer to each question, in order; an error if one has none.
pub(super) fn answers(questions: &[AskedQuestion], decide: &Decide) -> Result<Vec<Vec<String>>, String> {
    let mut known: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let own_words = decide.feedback.as_deref().filter(|text| !text.is_empty());
    if let [one] = questions {
        let chosen = (0..one.labels.len()).find(|index| decide.option_id.as_str() == answer_option(*index));
        if let Some(label) = chosen.map(|index| &one.labels[index]) {
            known.insert(
                &one.question,
                [Some(label.as_str()), own_words].into_iter().flatten().map(str::to_owned).collect(),
            );
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

/// A filled form. A field that need not be filled may be left out.
pub(super) fn fill(fields: &[Field], decide: &Decide) -> Result<Map<String, Value>, String> {
    let mut content = Map::new();
    for field in fields {
        let alone = if fields.len() == 1 { fields } else { &[] };
        let given = given(field, alone, decide);
        let value = match given.as_deref() {
            None | Some([]) if field.required => return Err(format!("no answer to \"{}\"", field.question)),
            None | Some([]) => continue,
            Some(words) => field.value(words)?,
        };
        content.insert(field.name.clone(), value);
    }
    Ok(content)
}

fn given(field: &Field, alone: &[Field], decide: &Decide) -> Option<Vec<String>> {
    let answers = decide.answers.as_ref();
    let named = answers.and_then(|answers| answers.get(&field.question).or_else(|| answers.get(&field.name)));
    let own_words = || decide.feedback.clone().filter(|text| !text.is_empty() && !alone.is_empty());
    // Nothing in the place of an answer leaves the field out.
    let named = named.map(words).map(|words| words.into_iter().filter(|word| !word.is_empty()).collect());
    named.or_else(|| own_words().map(|text| vec![text]))
}

impl Field {
    fn value(&self, words: &[String]) -> Result<Value, String> {
        let text = words.join(", ");
        let wrong = |what: &str| format!("\"{text}\" is no {what}, which \"{}\" wants", self.question);
        match self.kind {
            Kind::Text => Ok(text.into()),
            Kind::Several => Ok(words.into()),
            Kind::Whole => text.trim().parse::<i64>().map(Value::from).map_err(|_| wrong("whole number")),
            Kind::Number => text.trim().parse::<f64>().map(Value::from).map_err(|_| wrong("number")),
            Kind::YesNo => match text.trim().to_lowercase().as_str() {
                "yes" | "true" | "y" => Ok(true.into()),
                "no" | "false" | "n" => Ok(false.into()),
                _ => Err(wrong("yes or no")),
            },
        }
    }

    /// The label of a form's only field, by the option that was chosen.
    pub(super) fn chosen(&self, questions: &[AskedQuestion], decide: &Decide) -> Option<Result<Value, String>> {
        let [one] = questions else { return None };
        let index = (0..one.labels.len()).find(|index| decide.option_id.as_str() == answer_option(*index))?;
        Some(self.value(&[one.labels[index].clone()]))
    }
}
