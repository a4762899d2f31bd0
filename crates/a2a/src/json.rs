//! Reads JSON of others in bounded memory.

use std::fmt;

use serde_json::Value;

/// Maximum number of values in one text. Memory grows with their number rather than with bytes: 16 MiB of `[[]]` or
/// `{"a":1}` need up to 2 GB as values. This many take 60 MB, and the longest tasks have a tenth.
pub const MAX_VALUES: usize = 250_000;

/// The text is no JSON, or not one to hold in memory.
#[derive(Debug)]
pub enum JsonError {
    Invalid(serde_json::Error),
    TooManyValues,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::TooManyValues => write!(f, "it has more than {MAX_VALUES} values"),
        }
    }
}

impl std::error::Error for JsonError {}

/// Parses a text that somebody else wrote.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    if text.len() > MAX_VALUES && count(text) > MAX_VALUES {
        return Err(JsonError::TooManyValues);
    }
    serde_json::from_slice(text).map_err(JsonError::Invalid)
}

/// At least as many as there are values, keys aside. In a text that is no JSON, as many as before its first error.
fn count(text: &[u8]) -> usize {
    let (mut values, mut in_string, mut is_escaped) = (1, false, false);
    for byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
            Value::Object(members) => 1 + members.values().map(values).sum::<usize>(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i32>().prop_map(Value::from),
            "[\\[{,\"\\\\a]{0,6}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec(("[\\[{,\"\\\\a]{0,6}", inner), 0..6)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    #[test]
    fn many_values_are_refused_however_they_are_written() {
        for unit in ["[],", "{\"a\":1},", "[[[[0]]]],", "1,", "\"\","] {
            let text = format!("[{}0]", unit.repeat(MAX_VALUES));
            assert!(matches!(parse(text.as_bytes()), Err(JsonError::TooManyValues)), "{unit}");
        }
        assert!(parse(format!("[{}0]", "1,".repeat(MAX_VALUES - 2)).as_bytes()).is_ok());
        let string = Value::from("[,{\\\"".repeat(MAX_VALUES));
        assert_eq!(parse(string.to_string().as_bytes()).unwrap(), string, "a long text is one value");
    }

    proptest! {
        #[test]
        fn no_value_is_missed(value in any_json()) {
            prop_assert!(count(value.to_string().as_bytes()) >= values(&value));
        }
    }
}
