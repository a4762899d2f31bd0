//! Environment variables in settings, which may come with somebody else's code.

use serde_json::Value;

use super::LARGEST;

/// Expands `$NAME` and `${NAME}`. Unset variables stay as written.
pub(super) fn expand(text: &str) -> Result<String, TooLong> {
    expand_with(text, |name| std::env::var(name).ok())
}

/// Expands the variables in all strings of a value.
pub(super) fn expanded(value: &Value) -> Result<Value, TooLong> {
    Ok(match value {
        Value::String(text) => Value::String(expand(text)?),
        Value::Array(items) => items.iter().map(expanded).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| Ok((key.clone(), expanded(member)?)));
            members.collect::<Result<_, _>>()?
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// The expanded strings are larger than any settings file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("has more than {LARGEST} bytes with the values of its variables: use fewer of them")]
pub(super) struct TooLong;

/// Subtracts the expanded size of all strings from `left`: a small file may name a large variable many times.
pub(super) fn check_size(value: &Value, left: &mut u64) -> Result<(), TooLong> {
    match value {
        Value::String(text) => {
            *left = left.checked_sub(expand(text)?.len() as u64).ok_or(TooLong)?;
            Ok(())
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_size(item, left)),
        Value::Object(members) => members.values().try_for_each(|member| check_size(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn expand_with(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, TooLong> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    // Searched once: without a closing brace, each opening one would search the whole rest.
    let from_last_brace = text.rfind('}').map_or(usize::MAX, |at| text.len() - at);
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at..];
        let (name, length) = match rest[1..].strip_prefix('{') {
            Some(braced) if braced.len() >= from_last_brace => match braced.find('}') {
                Some(end) => (&braced[..end], end + 3),
                None => ("", 1),
            },
            Some(_) => ("", 1),
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let end = rest[1..].find(|c| !is_name(c)).unwrap_or(rest.len() - 1);
                (&rest[1..=end], end + 1)
            }
        };
        match lookup(name).filter(|_| !name.is_empty()) {
            Some(value) => expanded.push_str(&value),
            None => expanded.push_str(&rest[..length]),
        }
        if expanded.len() as u64 > LARGEST {
            return Err(TooLong);
        }
        rest = &rest[length..];
    }
    Ok(expanded + rest)
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, Source};
    use super::*;

    /// At a size at which a cost that grows with its square takes minutes.
    #[test]
    fn variables_are_put_in_in_linear_time() {
        let size = usize::try_from(LARGEST).unwrap();
        for part in ["$", "${", "${A", "${A}", "$A ", "}", "$é"] {
            let text = part.repeat(size / part.len());
            assert_eq!(expand_with(&text, |_| None).unwrap(), text, "{part}");
        }
    }

    /// A project's file is small and the value of a variable may be large.
    #[test]
    fn variables_do_not_make_a_text_larger_than_a_file() {
        let size = usize::try_from(LARGEST).unwrap();
        let lookup = |_: &str| Some("x".repeat(100_000));
        assert_eq!(expand_with(&"$A".repeat(10), lookup).unwrap().len(), 1_000_000);
        assert!(expand_with(&"$A".repeat(size / 2), lookup).is_err());
        let texts = vec!["$PATH"; size / std::env::var("PATH").unwrap().len() + 1];
        let file = serde_json::json!({ "tools": { "exclude": texts } }).to_string();
        // Values of the environment stay out of the test's output.
        let is_refused = |error: String| error.contains("with the values of its variables");
        let taken = Settings::default().take(&file, Source::Project { trusted: false }, &mut Vec::new());
        assert!(taken.is_err_and(is_refused));
    }

    #[test]
    fn variables_are_put_in() {
        let lookup = |name: &str| (name == "HOME_1").then(|| "/h".to_owned());
        for (text, expected) in [
            ("$HOME_1/bin", "/h/bin"),
            ("${HOME_1}x", "/hx"),
            ("a$HOME_1", "a/h"),
            ("$NOPE ${NOPE} $ ${ $", "$NOPE ${NOPE} $ ${ $"),
            ("5$", "5$"),
            ("$é", "$é"),
            ("plain", "plain"),
        ] {
            assert_eq!(expand_with(text, lookup).unwrap(), expected);
        }
    }
}
