//! Arguments as models write them: a number may come as `10.0` or `"10"`, a list with one element as a bare string.
//!
//! For `deserialize_with`. Anything else is refused, in words that say what was expected.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

use crate::workspace::walk::Ignored;

/// A non-negative whole number, or nothing.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = match &value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(of_float)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.map(Some).ok_or_else(|| D::Error::custom(format!("invalid value: {value}, expected a whole number from 0")))
}

fn of_float(number: f64) -> Option<u64> {
    // Above this, a float cannot represent every whole number.
    let is_whole = number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
    is_whole.then_some(number as u64)
}

/// A list of strings, or nothing.
pub(super) fn strings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "invalid type, expected a list of strings")]
    enum Strings {
        Many(Vec<String>),
        One(String),
        Nothing(()),
    }
    Ok(match Strings::deserialize(deserializer)? {
        Strings::Many(strings) => strings,
        Strings::One(string) => vec![string],
        Strings::Nothing(()) => Vec::new(),
    })
}

/// File filters that the model groups in an object.
#[derive(Debug, Deserialize)]
pub(super) struct Filtering {
    respect_git_ignore: Option<bool>,
}

/// Whether files that Git ignores are left out; given directly or in the group.
pub(super) fn ignored(by_itself: Option<bool>, group: Option<Filtering>) -> Ignored {
    let respect = by_itself.or(group.and_then(|group| group.respect_git_ignore));
    if respect.unwrap_or(true) { Ignored::Skip } else { Ignored::Show }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Loose {
        #[serde(default, deserialize_with = "super::whole")]
        count: Option<u64>,
        #[serde(default, deserialize_with = "super::strings")]
        names: Vec<String>,
    }

    #[test]
    fn what_can_be_meant_is_taken_and_the_rest_refused() {
        let read = |value| serde_json::from_value::<Loose>(value);
        for (value, count) in
            [(json!(10), Some(10)), (json!(10.0), Some(10)), (json!(" 10"), Some(10)), (json!(null), None)]
        {
            assert_eq!(read(json!({ "count": value })).unwrap().count, count);
        }
        for (value, names) in [(json!("a"), vec!["a"]), (json!(["a", "b"]), vec!["a", "b"]), (json!(null), vec![])] {
            assert_eq!(read(json!({ "names": value })).unwrap().names, names);
        }
        for value in [json!(-1), json!(1.5), json!(-1.0), json!(1e300), json!("ten"), json!(true), json!([1])] {
            let error = read(json!({ "count": value })).unwrap_err().to_string();
            assert!(error.contains("expected a whole number from 0"), "{error}");
        }
        for value in [json!(1), json!({}), json!([1])] {
            assert!(read(json!({ "names": value })).is_err());
        }
    }
}
