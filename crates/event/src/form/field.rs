//! One field of a form: its JSON schema as a question, and an answer as a value of its type.

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use serde_with::skip_serializing_none;

use super::MAX_LABELS;
use crate::AskedQuestion;

const YES: &str = "yes";
const NO: &str = "no";
/// Largest whole number that every JSON parser reads exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The field of a form that a question asks for.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormField {
    /// Its key in the form's content. Answers may use it instead of the question's text.
    pub name: String,
    pub required: bool,
    /// Submitted when the field is left empty.
    pub default: Option<Value>,
    #[serde(flatten)]
    pub takes: FieldType,
}

/// The values a field takes.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FieldType {
    Text {
        min_length: Option<u64>,
        max_length: Option<u64>,
        format: Option<TextFormat>,
    },
    Number {
        minimum: Option<Number>,
        maximum: Option<Number>,
    },
    Integer {
        minimum: Option<Number>,
        maximum: Option<Number>,
    },
    /// The labels are `yes` and `no`.
    Boolean,
    /// One of these. The question's n-th label means the n-th value.
    Select {
        values: Vec<String>,
    },
    /// Several of these; any texts if the list is empty.
    MultiSelect {
        values: Vec<String>,
        min_items: Option<u64>,
        max_items: Option<u64>,
    },
}

/// A format that texts are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

impl AskedQuestion {
    /// Whether a single question is answered by one option for each label.
    pub(super) fn offers_options(&self) -> bool {
        !self.multi_select && !self.labels.is_empty()
    }

    /// Whether only the labels are answers.
    pub fn is_closed(&self) -> bool {
        !self.labels.is_empty() && self.field.is_some()
    }
}

/// A property of a form's schema as a question. An unknown type is asked for as text.
pub(super) fn question(name: &str, property: &Value, required: bool) -> AskedQuestion {
    let none = Map::new();
    let schema = property.as_object().unwrap_or(&none);
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let (takes, labels) = takes(schema);
    let field = FormField { name: name.to_owned(), required, default: None, takes };
    let mut asked = AskedQuestion {
        question: text("description").or_else(|| text("title")).unwrap_or(name).to_owned(),
        header: Some(text("title").unwrap_or(name).to_owned()),
        multi_select: matches!(field.takes, FieldType::MultiSelect { .. }) && !labels.is_empty(),
        labels,
        descriptions: Vec::new(),
        field: None,
    };
    // An invalid default is not submitted without the user's knowledge.
    let default = schema.get("default").filter(|default| !default.is_null());
    let default = default.and_then(|default| field.value(default, &asked).ok());
    let field = FormField { default, ..field };
    let hints: Vec<String> = field.hints(&asked, text("pattern")).collect();
    if !hints.is_empty() {
        asked.question = format!("{} ({})", asked.question, hints.join(", "));
    }
    AskedQuestion { field: Some(field), ..asked }
}

/// The type of a property, and the labels to choose from.
fn takes(schema: &Map<String, Value>) -> (FieldType, Vec<String>) {
    let count = |key: &str| schema.get(key).and_then(Value::as_u64);
    let number = |key: &str| schema.get(key).and_then(Value::as_number).cloned();
    match kind(schema) {
        "boolean" => (FieldType::Boolean, vec![YES.to_owned(), NO.to_owned()]),
        "integer" => (FieldType::Integer { minimum: number("minimum"), maximum: number("maximum") }, Vec::new()),
        "number" => (FieldType::Number { minimum: number("minimum"), maximum: number("maximum") }, Vec::new()),
        "array" => {
            let none = Map::new();
            let (labels, values) = offered(schema.get("items").and_then(Value::as_object).unwrap_or(&none));
            let (min_items, max_items) = (count("minItems"), count("maxItems"));
            (FieldType::MultiSelect { values, min_items, max_items }, labels)
        }
        _ => match offered(schema) {
            (labels, values) if !values.is_empty() => (FieldType::Select { values }, labels),
            _ => {
                let format = schema.get("format").and_then(|format| TextFormat::deserialize(format).ok());
                let (min_length, max_length) = (count("minLength"), count("maxLength"));
                (FieldType::Text { min_length, max_length, format }, Vec::new())
            }
        },
    }
}

/// The type of a schema; of several the first that is not null.
fn kind(schema: &Map<String, Value>) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or(""),
        _ => "",
    }
}

/// The choices: labels, and the values they mean. Titles are in `oneOf`, `anyOf` or `enumNames`.
fn offered(schema: &Map<String, Value>) -> (Vec<String>, Vec<String>) {
    let list = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names = list("enumNames");
    let plain = list("enum").iter().enumerate().map(|(at, value)| (Some(value), names.get(at)));
    let titled = list("oneOf").iter().chain(list("anyOf")).map(|one| (one.get("const"), one.get("title")));
    let (mut labels, mut values): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (value, title) in plain.chain(titled) {
        let Some(value) = value.and_then(Value::as_str).filter(|value| !values.iter().any(|known| known == value))
        else {
            continue;
        };
        let title = title.and_then(Value::as_str).filter(|title| !title.trim().is_empty()).unwrap_or(value);
        let is_new = |label: &str| !label.trim().is_empty() && !labels.iter().any(|known| known == label);
        // A label must name one value.
        let label =
            [title.to_owned(), format!("{title} ({value})"), format!("{title} ({value}) #{}", labels.len() + 1)];
        let Some(label) = label.into_iter().find(|label| is_new(label)) else { continue };
        labels.push(label);
        values.push(value.to_owned());
        if labels.len() == MAX_LABELS {
            break;
        }
    }
    (labels, values)
}

impl FormField {
    /// Converts an answer to the value to submit, or says why it is invalid.
    pub(super) fn value(&self, given: &Value, asked: &AskedQuestion) -> Result<Value, String> {
        let wrong = |takes: String| {
            let given = match given {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            format!("\"{given}\" is not valid for \"{}\": use {takes}", asked.question)
        };
        let value = match (&self.takes, given) {
            (FieldType::Text { .. }, Value::String(text)) => self.takes.fits_text(text).then(|| given.clone()),
            (FieldType::Number { .. } | FieldType::Integer { .. }, Value::Number(number)) => self.takes.number(number),
            (FieldType::Number { .. } | FieldType::Integer { .. }, Value::String(text)) => {
                parsed(text.trim()).and_then(|number| self.takes.number(&number))
            }
            (FieldType::Boolean, Value::Bool(_)) => Some(given.clone()),
            (FieldType::Boolean, Value::String(text)) => match text.trim().to_lowercase().as_str() {
                YES | "true" | "y" => Some(true.into()),
                NO | "false" | "n" => Some(false.into()),
                _ => None,
            },
            (FieldType::Select { values }, Value::String(text)) => {
                selected(text, &asked.labels, values).map(Value::from)
            }
            (FieldType::MultiSelect { .. }, Value::String(text)) => self.takes.several(&[text], &asked.labels),
            (FieldType::MultiSelect { .. }, Value::Array(several)) => {
                let words: Option<Vec<&str>> = several.iter().map(Value::as_str).collect();
                words.and_then(|words| self.takes.several(&words, &asked.labels))
            }
            _ => None,
        };
        value.ok_or_else(|| wrong(self.takes.described(&asked.labels)))
    }

    /// Hints that the label of the question lacks.
    fn hints(&self, asked: &AskedQuestion, pattern: Option<&str>) -> impl Iterator<Item = String> {
        let takes = match &self.takes {
            FieldType::Text { min_length: None, max_length: None, format: None } => None,
            FieldType::Boolean | FieldType::Select { .. } => None,
            FieldType::MultiSelect { min_items: None, max_items: None, .. } => None,
            FieldType::MultiSelect { min_items, max_items, .. } => {
                Some(format!("choose {}", range(min_items.as_ref(), max_items.as_ref())))
            }
            takes => Some(takes.described(&asked.labels)),
        };
        let pattern = pattern.map(|pattern| format!("pattern {pattern}"));
        let default = self.default.as_ref().map(|default| format!("default: {}", self.shown(default, asked)));
        let optional = (!self.required && self.default.is_none()).then(|| "optional".to_owned());
        [takes, pattern, default, optional].into_iter().flatten()
    }

    /// A value in a readable form.
    fn shown(&self, value: &Value, asked: &AskedQuestion) -> String {
        let label = |value: &str| {
            let (FieldType::Select { values } | FieldType::MultiSelect { values, .. }) = &self.takes else {
                return None;
            };
            asked.labels.get(values.iter().position(|known| known == value)?).cloned()
        };
        match value {
            Value::String(text) => label(text).unwrap_or_else(|| text.clone()),
            Value::Bool(value) => (if *value { YES } else { NO }).to_owned(),
            Value::Array(several) => several.iter().map(|one| self.shown(one, asked)).collect::<Vec<_>>().join(" and "),
            other => other.to_string(),
        }
    }
}

impl FieldType {
    fn fits_text(&self, text: &str) -> bool {
        let Self::Text { min_length, max_length, format } = self else { return false };
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        within(&length, min_length.as_ref(), max_length.as_ref()) && format.is_none_or(|format| format.fits(text))
    }

    fn number(&self, given: &Number) -> Option<Value> {
        let value = given.as_f64().filter(|value| value.is_finite())?;
        let (Self::Number { minimum, maximum } | Self::Integer { minimum, maximum }) = self else { return None };
        let limit = |limit: &Option<Number>| limit.as_ref().and_then(Number::as_f64);
        if !within(&value, limit(minimum).as_ref(), limit(maximum).as_ref()) {
            return None;
        }
        match self {
            Self::Integer { .. } if given.is_f64() => {
                let is_whole = value.fract() == 0.0 && value.abs() < EXACT;
                #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
                is_whole.then(|| Value::from(value as i64))
            }
            _ => Some(given.clone().into()),
        }
    }

    fn several<T: AsRef<str>>(&self, words: &[T], labels: &[String]) -> Option<Value> {
        let Self::MultiSelect { values, min_items, max_items } = self else { return None };
        // A label means its own value, even if it equals the value of another label.
        let by_value = values.iter().map(|value| (value.as_str(), value.as_str()));
        let by_label = labels.iter().zip(values).map(|(label, value)| (label.as_str(), value.as_str()));
        let named: HashMap<&str, &str> = by_value.chain(by_label).collect();
        let (mut chosen, mut known) = (Vec::new(), HashSet::new());
        for word in words {
            let value = if values.is_empty() { word.as_ref() } else { *named.get(word.as_ref())? };
            if known.insert(value) {
                chosen.push(value.to_owned());
            }
        }
        let count = u64::try_from(chosen.len()).unwrap_or(u64::MAX);
        within(&count, min_items.as_ref(), max_items.as_ref()).then(|| chosen.into())
    }

    /// The accepted values, to follow "it takes …".
    fn described(&self, labels: &[String]) -> String {
        let one_of = |several: &str| match labels {
            [] => "texts".to_owned(),
            labels => format!("{several} of {}", labels.join(", ")),
        };
        match self {
            Self::Text { min_length, max_length, format } => {
                let kind = format.map_or("text", TextFormat::described);
                match (min_length, max_length) {
                    (None, None) => kind.to_owned(),
                    (min, max) => format!("{kind} of {} characters", range(min.as_ref(), max.as_ref())),
                }
            }
            Self::Number { minimum: None, maximum: None } => "a number".to_owned(),
            Self::Integer { minimum: None, maximum: None } => "a whole number".to_owned(),
            Self::Number { minimum, maximum } => format!("a number {}", range(minimum.as_ref(), maximum.as_ref())),
            Self::Integer { minimum, maximum } => {
                format!("a whole number {}", range(minimum.as_ref(), maximum.as_ref()))
            }
            Self::Boolean => "yes or no".to_owned(),
            Self::Select { .. } => one_of("one"),
            Self::MultiSelect { min_items: None, max_items: None, .. } => one_of("any"),
            Self::MultiSelect { min_items, max_items, .. } => one_of(&range(min_items.as_ref(), max_items.as_ref())),
        }
    }
}

impl TextFormat {
    fn described(self) -> &'static str {
        match self {
            Self::Email => "an email address",
            Self::Uri => "an address such as https://example.com",
            Self::Date => "a date such as 2026-01-31",
            Self::DateTime => "a time such as 2026-01-31T12:00:00Z",
        }
    }

    fn fits(self, text: &str) -> bool {
        let is_solid = || !text.chars().any(|c| c.is_whitespace() || c.is_control());
        match self {
            Self::Email => {
                let parts = text.split_once('@').filter(|(user, host)| !user.is_empty() && !host.is_empty());
                is_solid() && parts.is_some_and(|(_, host)| !host.contains('@'))
            }
            Self::Uri => {
                is_solid() && text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
            }
            Self::Date => text.len() == "2026-01-31".len() && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => text.parse::<jiff::Timestamp>().is_ok(),
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn parsed(text: &str) -> Option<Number> {
    let whole = text.parse::<i64>().ok().map(Number::from);
    whole.or_else(|| Number::from_f64(text.parse::<f64>().ok()?))
}

/// The value of a label; the value itself counts as well.
fn selected(word: &str, labels: &[String], values: &[String]) -> Option<String> {
    let label = labels.iter().position(|label| label == word);
    let label = label.and_then(|at| values.get(at));
    label.or_else(|| values.iter().find(|value| *value == word)).cloned()
}

fn within<T: PartialOrd>(value: &T, min: Option<&T>, max: Option<&T>) -> bool {
    min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
}

fn range<T: ToString>(min: Option<&T>, max: Option<&T>) -> String {
    match (min.map(T::to_string), max.map(T::to_string)) {
        (Some(min), Some(max)) if min == max => min,
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => "any".to_owned(),
    }
}
