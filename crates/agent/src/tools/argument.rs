//! Arguments as models write them: a number may come as `10.0` or `"10"`, a list with one element as a bare string.
//!
//! For `deserialize_with`. Anything else is refused, in words that say what was expected.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};

use crate::workspace::walk::Ignored;

/// A non-negative whole number, or nothing.
pub(super) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserializer.deserialize_any(Whole)
}

/// A list of strings, or nothing.
pub(super) fn strings<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(Strings)
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

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        let number = u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))?;
        Ok(Some(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        // Above this, a float cannot represent every whole number.
        if number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
            return Ok(Some(number as u64));
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        text.trim().parse().map(Some).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

struct Strings;

impl<'de> Visitor<'de> for Strings {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut strings = Vec::new();
        while let Some(item) = items.next_element()? {
            strings.push(item);
        }
        Ok(strings)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }
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
