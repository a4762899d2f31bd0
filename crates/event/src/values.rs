//! Bounds the memory that JSON of others takes. Pure, in linear time.

/// Maximum number of values in one line of an agent, or one message of a server. Memory grows with their number rather
/// than with bytes: 64 MiB of `{"a":1}` need several GB as values.
pub const MAX_JSON_VALUES: usize = 250_000;

/// Whether JSON has more than that many values. Counts brackets and commas, so an object counts twice.
pub fn has_more_values(json: &str, most: usize) -> bool {
    // A value needs a byte of its own, so short texts need no look.
    json.len() > most && count(json) > most
}

/// At least as many as there are values, keys aside. In a text that is no JSON, as many as before its first error.
fn count(json: &str) -> usize {
    let (mut values, mut in_string, mut is_escaped) = (1, false, false);
    for byte in json.bytes() {
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
    use serde_json::Value;

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
    fn values_count_and_bytes_do_not() {
        for unit in ["[],", "{\"a\":1},", "[[[[0]]]],", "1,", "\"\","] {
            assert!(has_more_values(&format!("[{}0]", unit.repeat(10)), 10), "{unit}");
        }
        assert!(!has_more_values("[1,1,1,1,1,1,1,1,1]", 10));
        let string = Value::from("[,{\\\"".repeat(100)).to_string();
        assert!(!has_more_values(&string, 1), "a long text is one value");
    }

    proptest! {
        #[test]
        fn no_value_is_missed(value in any_json()) {
            prop_assert!(count(&value.to_string()) >= values(&value));
        }
    }
}
