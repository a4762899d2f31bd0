//! Questions of the agent as requests to the client, and its answers.

use agent_client_protocol_schema::v1::{
    CreateElicitationResponse, ElicitationAction, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse,
};
use multitap_event::{
    AskedQuestion, ChoiceKind, ClientRef, Decide, Details, FieldType, OptionId, Question, TextFormat, option,
};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::encode::asked_about;
use super::features::{ClientFeatures, META};

pub(super) const PERMISSION: &str = "session/request_permission";
pub(super) const ELICITATION: &str = "elicitation/create";

/// A request to the client about a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ask {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

impl Ask {
    /// `None` if that client may choose none of the options.
    pub(super) fn of(session: &str, question: &Question, client: &ClientRef, features: ClientFeatures) -> Option<Self> {
        let as_form = features.forms && matches!(question.details, Details::Input { .. });
        let options = options(question, client, as_form);
        if options.is_empty() {
            return None;
        }
        if let Details::Input { questions } = &question.details
            && as_form
        {
            return Some(form(session, question, questions));
        }
        let request = RequestPermissionRequest::new(session.to_owned(), asked_about(question), options)
            .meta(Map::from_iter([(META.to_owned(), json!({ "questionId": question.question_id }))]));
        Some(Self { method: PERMISSION, params: serde_json::to_value(request).ok()? })
    }

    pub(super) fn is_form(&self) -> bool {
        self.method == ELICITATION
    }

    /// The client's decision; `None` if its answer decides nothing.
    pub(super) fn decision(&self, question: &Question, answer: Value) -> Option<Decide> {
        if self.is_form() { filled(question, answer) } else { chosen(question, answer) }
    }
}

/// The options that the client may choose. Without a form it cannot submit answers, only name one or refuse.
fn options(question: &Question, client: &ClientRef, as_form: bool) -> Vec<PermissionOption> {
    let submits =
        |id: &OptionId| matches!(question.details, Details::Input { .. }) && id.as_str() == option::PROCEED_ONCE;
    let open = question.options.iter().filter(|choice| choice.is_open_to(client) && (as_form || !submits(&choice.id)));
    open.map(|choice| {
        let kind = match choice.kind {
            ChoiceKind::AllowOnce => PermissionOptionKind::AllowOnce,
            ChoiceKind::AllowAlways => PermissionOptionKind::AllowAlways,
            ChoiceKind::RejectOnce => PermissionOptionKind::RejectOnce,
            ChoiceKind::RejectAlways => PermissionOptionKind::RejectAlways,
        };
        PermissionOption::new(choice.id.as_str().to_owned(), choice.name.clone(), kind)
    })
    .collect()
}

fn chosen(question: &Question, answer: Value) -> Option<Decide> {
    match RequestPermissionResponse::deserialize(answer).ok()?.outcome {
        RequestPermissionOutcome::Selected(selected) => {
            Some(Decide::new(&question.question_id, OptionId::from(&*selected.option_id.0)))
        }
        // Dismissed without a choice.
        _ => refusal(question, None),
    }
}

/// The offered answer that refuses: that one if it is offered.
fn refusal(question: &Question, wanted: Option<&str>) -> Option<Decide> {
    let wanted = wanted.and_then(|id| question.choice(&OptionId::from(id)));
    let choice = wanted.or_else(|| question.refusal())?;
    Some(Decide::new(&question.question_id, choice.id.clone()))
}

fn form(session: &str, question: &Question, questions: &[AskedQuestion]) -> Ask {
    let keys = keys(questions);
    let properties = keys.iter().zip(questions).map(|(key, asked)| (key.clone(), property(asked)));
    let required =
        keys.iter().zip(questions).filter(|(_, asked)| asked.field.as_ref().is_none_or(|field| field.required));
    let required: Vec<&String> = required.map(|(key, _)| key).collect();
    let message = match &question.reason {
        Some(reason) => format!("{}\n\n{reason}", question.title),
        None => question.title.clone(),
    };
    let mut params = json!({
        "sessionId": session,
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": properties.collect::<Map<String, Value>>(),
            "required": required,
        },
        "_meta": { META: { "questionId": question.question_id } },
    });
    if let (Value::Object(params), Some(tool)) = (&mut params, &question.tool_id) {
        params.insert("toolCallId".to_owned(), tool.as_str().into());
    }
    Ask { method: ELICITATION, params }
}

/// The names of the form's fields.
fn keys(questions: &[AskedQuestion]) -> Vec<String> {
    let key = |(index, asked): (usize, &AskedQuestion)| match &asked.field {
        Some(field) => field.name.clone(),
        None => format!("answer_{}", index + 1),
    };
    questions.iter().enumerate().map(key).collect()
}

fn property(asked: &AskedQuestion) -> Value {
    let mut schema = match asked.field.as_ref().map(|field| &field.takes) {
        None if asked.labels.is_empty() => json!({ "type": "string" }),
        None if asked.multi_select => json!({ "type": "array", "items": { "type": "string", "enum": asked.labels } }),
        None => json!({ "type": "string", "enum": asked.labels }),
        Some(FieldType::Text { min_length, max_length, format }) => {
            let format = format.map(|format| match format {
                TextFormat::Email => "email",
                TextFormat::Uri => "uri",
                TextFormat::Date => "date",
                TextFormat::DateTime => "date-time",
            });
            json!({ "type": "string", "minLength": min_length, "maxLength": max_length, "format": format })
        }
        Some(FieldType::Number { minimum, maximum }) => {
            json!({ "type": "number", "minimum": minimum, "maximum": maximum })
        }
        Some(FieldType::Integer { minimum, maximum }) => {
            json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
        }
        Some(FieldType::Boolean) => json!({ "type": "boolean" }),
        Some(FieldType::Select { values }) => {
            let titled: Vec<Value> = values
                .iter()
                .enumerate()
                .map(|(index, value)| json!({ "const": value, "title": asked.labels.get(index).unwrap_or(value) }))
                .collect();
            json!({ "type": "string", "oneOf": titled })
        }
        Some(FieldType::MultiSelect { values, min_items, max_items }) => {
            let items = json!({ "type": "string", "enum": values });
            json!({ "type": "array", "items": items, "minItems": min_items, "maxItems": max_items })
        }
    };
    if let Value::Object(schema) = &mut schema {
        schema.retain(|_, value| !value.is_null());
        schema.insert("title".to_owned(), asked.header.as_ref().unwrap_or(&asked.question).as_str().into());
        schema.insert("description".to_owned(), asked.question.as_str().into());
        if let Some(default) = asked.field.as_ref().and_then(|field| field.default.clone()) {
            schema.insert("default".to_owned(), default);
        }
    }
    schema
}

fn filled(question: &Question, answer: Value) -> Option<Decide> {
    let Details::Input { questions } = &question.details else { return None };
    let content = match CreateElicitationResponse::deserialize(answer).ok()?.action {
        ElicitationAction::Accept(accept) => accept.content.unwrap_or_default(),
        ElicitationAction::Decline => return refusal(question, Some(option::DECLINE)),
        _ => return refusal(question, Some(option::CANCEL)),
    };
    let mut answers = std::collections::BTreeMap::new();
    for (key, asked) in keys(questions).iter().zip(questions) {
        if let Some(value) = content.get(key).and_then(|value| serde_json::to_value(value).ok()) {
            answers.insert(asked.question.clone(), value);
        }
    }
    // A question that stands alone may offer only its labels. Without a label nothing is chosen.
    let submit = || question.choice(&OptionId::from(option::PROCEED_ONCE)).map(|choice| choice.id.clone());
    let option = by_label(question, questions, &answers).or_else(submit)?;
    let decide = Decide::new(&question.question_id, option);
    Some(Decide { answers: Some(answers), ..decide })
}

/// The option of a single question that is named as its answer.
fn by_label(
    question: &Question,
    questions: &[AskedQuestion],
    answers: &std::collections::BTreeMap<String, Value>,
) -> Option<OptionId> {
    let [asked] = questions else { return None };
    let label = answers.get(&asked.question)?.as_str()?;
    let choice = question.options.iter().find(|choice| choice.kind.allows() && choice.name == label)?;
    Some(choice.id.clone())
}
