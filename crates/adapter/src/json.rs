//! Reads JSON objects of agents field by field: a field that is null or has an unexpected shape counts as absent.

use jsonc_parser::ParseOptions;
use jsonc_parser::errors::ParseError;
use serde_json::{Map, Value};

/// What an object has beside the values of these keys, as `name: value`, for people. False and null are as good as absent.
pub(crate) fn set_fields(object: &Map<String, Value>, except: &[&str]) -> impl Iterator<Item = String> {
    let is_set = move |(name, value): &(&String, &Value)| match value {
        Value::Null | Value::Bool(false) => false,
        // Under a key that holds a text elsewhere, nobody has read these.
        Value::Array(_) | Value::Object(_) => true,
        Value::Bool(true) | Value::Number(_) | Value::String(_) => !except.contains(&name.as_str()),
    };
    object.iter().filter(is_set).map(|(name, value)| format!("{name}: {value}"))
}

/// The fields of an object. Anything but an object has none.
pub(crate) trait JsonFields<'a>: Copy {
    fn field(self, key: &str) -> Option<&'a Value>;

    fn text(self, key: &str) -> Option<&'a str> {
        self.field(key)?.as_str()
    }

    fn string(self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    fn number(self, key: &str) -> Option<u64> {
        self.field(key)?.as_u64()
    }

    /// The number under a key; zero without one.
    fn count(self, key: &str) -> u64 {
        self.number(key).unwrap_or(0)
    }

    /// A number, if it fits the requested type.
    fn small<N: TryFrom<u64>>(self, key: &str) -> Option<N> {
        N::try_from(self.number(key)?).ok()
    }

    /// Whether the field is `true`.
    fn flag(self, key: &str) -> bool {
        self.field(key).is_some_and(|value| *value == Value::Bool(true))
    }

    fn list(self, key: &str) -> &'a [Value] {
        self.field(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn object(self, key: &str) -> Option<&'a Map<String, Value>> {
        self.field(key)?.as_object()
    }
}

impl<'a> JsonFields<'a> for &'a Map<String, Value> {
    fn field(self, key: &str) -> Option<&'a Value> {
        self.get(key).filter(|value| !value.is_null())
    }
}

impl<'a> JsonFields<'a> for &'a Value {
    fn field(self, key: &str) -> Option<&'a Value> {
        self.get(key).filter(|value| !value.is_null())
    }
}

impl<'a> JsonFields<'a> for Option<&'a Value> {
    fn field(self, key: &str) -> Option<&'a Value> {
        self?.field(key)
    }
}

/// An object of one field.
pub(crate) fn one(key: &str, value: impl Into<Value>) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), value.into())])
}

/// The arguments of a tool call, as an object; arguments that are no object are put into one.
pub(crate) fn arguments(given: Option<Value>) -> Map<String, Value> {
    match given {
        Some(Value::Object(arguments)) => arguments,
        Some(Value::Null) | None => Map::new(),
        Some(other) => one("input", other),
    }
}

/// A value as text for people.
pub(crate) fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text of content blocks, if they contain only text.
pub(crate) fn text_of_blocks(blocks: &[Value]) -> Option<String> {
    let text = |block: &'_ Value| block.string("text").filter(|_| block.text("type") == Some("text"));
    Some(blocks.iter().map(text).collect::<Option<Vec<_>>>()?.join("\n"))
}

pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(present(map)),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Removes nulls from an object.
pub(crate) fn present(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key, without_nulls(value))).collect()
}

/// Comments, and nothing else that JSON does not have: what an agent reads in another way must not look harmless.
const WITH_COMMENTS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: false,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Parses JSON with comments, as agents allow them in their settings.
pub(crate) fn with_comments(text: &str) -> Result<Value, ParseError> {
    jsonc_parser::parse_to_serde_value(text, &WITH_COMMENTS)
}
