//! Forms: requests of an MCP server to the user (elicitations) as questions of the session, and the answers as the
//! content that the server expects. Pure. The adapters and the built-in agent share this module, and `Question::check`
//! refuses an answer that does not fit, so that the question stays open.

mod field;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use self::field::{FieldType, FormField, TextFormat};
use crate::{
    AskedQuestion, Choice, ChoiceKind, Decide, Details, OptionId, Question, QuestionId, ToolId, one_line, option,
    visible_line,
};

/// Maximum number of fields of one form. Further ones are not asked; the server validates the answer.
const MAX_FIELDS: usize = 100;
/// Maximum number of labels of one field.
const MAX_LABELS: usize = 500;

/// A request of an MCP server to the user.
#[derive(Debug, Clone, PartialEq)]
pub struct Elicitation {
    pub server: String,
    pub message: String,
    pub wants: ElicitationWants,
}

/// The data needed to accept an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationWants {
    /// Values for the fields of a flat JSON schema.
    Form(Map<String, Value>),
    /// A visit to an address. Nothing opens it: the user copies it.
    Url(String),
}

/// The user's answer to an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationAnswer {
    Accept(Map<String, Value>),
    Decline,
    /// Dismissed without a choice.
    Cancel,
}

impl Elicitation {
    /// Reads the parameters of `elicitation/create`, or a copy of them in snake case. Never fails: an unknown mode with
    /// an address shows the address, and a schema without fields is a plain confirmation.
    pub fn of(server: &str, params: &Map<String, Value>) -> Self {
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        let schema = params.get("requestedSchema").or_else(|| params.get("requested_schema"));
        let schema = schema.and_then(Value::as_object).cloned();
        let wants = match (text("url"), schema) {
            (Some(url), None) => ElicitationWants::Url(url),
            (Some(url), Some(_)) if text("mode").as_deref() == Some("url") => ElicitationWants::Url(url),
            (_, schema) => ElicitationWants::Form(schema.unwrap_or_default()),
        };
        Self { server: server.to_owned(), message: text("message").unwrap_or_default(), wants }
    }

    /// The question that shows it to people.
    pub fn question(&self, question_id: QuestionId, tool_id: Option<ToolId>) -> Question {
        let questions = match &self.wants {
            ElicitationWants::Form(schema) => questions(schema),
            ElicitationWants::Url(_) => Vec::new(),
        };
        let shown = one_line(&self.message);
        let server = visible_line(&self.server);
        let title = if shown.is_empty() { format!("{server} asks") } else { format!("{server} asks: {shown}") };
        let accept = |id: &str, name: String| Choice::new(id, name, ChoiceKind::AllowOnce);
        let mut options = match (&self.wants, questions.as_slice()) {
            (ElicitationWants::Url(_), _) => vec![accept(option::PROCEED_ONCE, "I have opened the address".to_owned())],
            (_, []) => vec![accept(option::PROCEED_ONCE, "Accept".to_owned())],
            (_, [one]) if one.offers_options() => {
                let labels = one.labels.iter().enumerate();
                let mut options: Vec<_> =
                    labels.map(|(index, label)| accept(&answer_option(index), label.clone())).collect();
                let empty = one.field.as_ref().and_then(|field| match &field.default {
                    Some(_) => Some("Submit the default"),
                    None => (!field.required).then_some("Submit without an answer"),
                });
                options.extend(empty.map(|name| accept(option::PROCEED_ONCE, name.to_owned())));
                options
            }
            _ => vec![accept(option::PROCEED_ONCE, "Submit".to_owned())],
        };
        // The first refusal is chosen by a time limit or Esc: then nobody decided.
        options.push(Choice::new(option::CANCEL, "Cancel", ChoiceKind::RejectOnce));
        options.push(Choice::new(option::DECLINE, "Decline", ChoiceKind::RejectOnce));
        let message = Some(self.message.trim()).filter(|message| !message.is_empty());
        let (details, reason) = if questions.is_empty() {
            let url = match &self.wants {
                ElicitationWants::Url(url) => Some(url.as_str()),
                ElicitationWants::Form(_) => None,
            };
            let text = message.into_iter().chain(url).collect::<Vec<_>>().join("\n");
            (Details::Text { text, arguments: Map::new() }, None)
        } else {
            let reason = message.filter(|message| *message != shown).map(str::to_owned);
            (Details::Input { questions }, reason)
        };
        Question { question_id, tool_id, tool_name: None, title, options, details, edits: Vec::new(), reason }
    }
}

impl ElicitationAnswer {
    /// Converts a decision about the question to an answer. An invalid decision accepts nothing; the error says why.
    pub fn of(question: &Question, decide: &Decide) -> Result<Self, String> {
        let choice = question.check(decide).map_err(|refused| refused.to_string())?;
        if choice.kind.rejects() {
            return Ok(if choice.id.as_str() == option::DECLINE { Self::Decline } else { Self::Cancel });
        }
        match &question.details {
            Details::Input { questions } => content(questions, decide).map(Self::Accept),
            _ => Ok(Self::Accept(Map::new())),
        }
    }

    /// The answer in MCP's format. Only an accepted form has content.
    pub fn result(&self) -> Value {
        match self {
            Self::Accept(content) => json!({ "action": "accept", "content": content }),
            Self::Decline => json!({ "action": "decline" }),
            Self::Cancel => json!({ "action": "cancel" }),
        }
    }
}

/// The option id of the n-th label of a single question.
pub fn answer_option(index: usize) -> String {
    format!("answer_{}", index + 1)
}

/// The label that an option of a single question chooses.
fn chosen<'a>(asked: &'a AskedQuestion, option: &OptionId) -> Option<&'a str> {
    let index = (0..asked.labels.len()).find(|index| option.as_str() == answer_option(*index))?;
    Some(asked.labels[index].as_str())
}

/// The fields of a schema as questions, in the schema's order.
fn questions(schema: &Map<String, Value>) -> Vec<AskedQuestion> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut asked: Vec<AskedQuestion> = Vec::new();
    for (name, property) in properties.into_iter().flatten().take(MAX_FIELDS) {
        let mut one = field::question(name, property, required.contains(&name.as_str()));
        // The text is the key of the answer.
        while asked.iter().any(|other| other.question == one.question) {
            one.question = format!("{} [{name}]", one.question);
        }
        asked.push(one);
    }
    asked
}

/// The content of a filled form: each value of its field's type. An error names the field and what it takes.
pub(crate) fn content(questions: &[AskedQuestion], decide: &Decide) -> Result<Map<String, Value>, String> {
    let given = decide.answers.iter().flatten();
    let fields = || questions.iter().filter_map(|asked| Some((asked, asked.field.as_ref()?)));
    let stray = |key: &&String| !fields().any(|(asked, field)| **key == asked.question || **key == field.name);
    if let Some(stray) = given.map(|(key, _)| key).find(stray) {
        return Err(format!("\"{stray}\" is not a field of this form"));
    }
    let mut content = Map::new();
    for (asked, field) in fields() {
        let answers = decide.answers.as_ref();
        // A name that is also the text of a question means that question.
        let is_text = |name: &str| questions.iter().any(|other| other.question == name);
        let by_text = answers.and_then(|all| all.get(&asked.question));
        let by_name = || answers.filter(|_| !is_text(&field.name)).and_then(|all| all.get(&field.name));
        let named = by_text.or_else(by_name).cloned();
        let alone = questions.len() == 1;
        let by_option = || chosen(asked, &decide.option_id).filter(|_| alone).map(Value::from);
        let words = || decide.feedback.as_deref().filter(|words| alone && !words.is_empty()).map(Value::from);
        let value = match named.or_else(by_option).or_else(words) {
            // Left out on purpose.
            Some(Value::Null) => None,
            Some(given) if !is_blank(&given) => Some(field.value(&given, asked)?),
            _ => field.default.clone(),
        };
        match value {
            Some(value) => content.insert(field.name.clone(), value),
            None if field.required => return Err(format!("it has no answer to \"{}\"", asked.question)),
            None => continue,
        };
    }
    Ok(content)
}

fn is_blank(given: &Value) -> bool {
    match given {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(several) => several.iter().all(is_blank),
        _ => false,
    }
}
