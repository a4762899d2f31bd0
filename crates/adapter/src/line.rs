//! Native lines of any agent: their type, and the event for unknown ones.

use std::borrow::Cow;
use std::ops::Deref;

use multitap_event::{EventKind, MAX_JSON_VALUES, has_more_values};
use multitap_process::{Line, MAX_LINE};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec::Step;
use crate::json::JsonFields as _;

/// Most bytes of an unrecognized line that are reported.
const SHOWN: usize = 64 * 1024;
/// Most bytes of a line of too many values that are reported.
const HEAD: usize = 4 * 1024;

/// What a line is, by its outermost fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head<'a> {
    /// A notification or a request.
    Method(Cow<'a, str>),
    Type(Cow<'a, str>),
    /// It has an id alone, as answers do.
    Reply,
    Other,
}

/// What kind of message a line is, or why it is none. If that comes first, the rest of the line is not parsed.
pub(crate) fn head(line: &str) -> Result<Head<'_>, String> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        method: Option<Word<'a>>,
        #[serde(rename = "type", borrow)]
        kind: Option<Word<'a>>,
        id: Option<Value>,
    }

    let line = line.trim_start();
    if let Some(method) = quoted(line, r#"{"method":""#) {
        return Ok(Head::Method(method.into()));
    }
    if let Some(kind) = quoted(line, r#"{"type":""#) {
        return Ok(Head::Type(kind.into()));
    }
    if !line.starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    match serde_json::from_str(line) {
        Ok(Fields { method: Some(method), .. }) => Ok(Head::Method(method.0)),
        Ok(Fields { kind: Some(kind), .. }) => Ok(Head::Type(kind.0)),
        Ok(Fields { id: Some(_), .. }) => Ok(Head::Reply),
        Ok(_) => Ok(Head::Other),
        Err(error) => Err(error.to_string()),
    }
}

/// The `type` of a JSON line, or why it has none.
pub(crate) fn type_of(line: &str) -> Result<Cow<'_, str>, String> {
    match head(line)? {
        Head::Type(kind) => Ok(kind),
        Head::Method(_) | Head::Reply | Head::Other => Err("a JSON object without a type".to_owned()),
    }
}

/// Like [`type_of`], but reports a line without a type as `unrecognized`.
pub(crate) fn typed<'a>(line: &'a str, out: &mut Step) -> Option<Cow<'a, str>> {
    type_of(line).map_err(|reason| out.events.push(unrecognized(line, reason))).ok()
}

/// The text between `beginning` and the next quote; `None` if it has escapes.
fn quoted<'a>(line: &'a str, beginning: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(beginning)?;
    let end = rest.bytes().position(|byte| byte == b'"' || byte == b'\\')?;
    (rest.as_bytes()[end] == b'"').then(|| &rest[..end])
}

/// Replaces unpaired surrogates in a line with U+FFFD. Programs that use UTF-16 write them, and no JSON parser accepts
/// them: without this, one character would make the whole line unreadable.
pub(crate) fn repaired(line: &str) -> Cow<'_, str> {
    let is_surrogate = |at: usize| matches!(line.as_bytes().get(at + 1..at + 3), Some(b"ud" | b"uD"));
    if !memchr::memchr_iter(b'\\', line.as_bytes()).any(is_surrogate) {
        return line.into();
    }
    let unit = |at: usize| {
        let hex = line.get(at..at + 6)?.strip_prefix(r"\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let (mut repaired, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = memchr::memchr(b'\\', &line.as_bytes()[at..]) {
        at += found;
        match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(0xD800..=0xDFFF), _) => {
                repaired.push_str(&line[kept..at]);
                repaired.push_str(r"\ufffd");
                at += 6;
                kept = at;
            }
            (Some(_), _) => at += 6,
            // Another escape: skip the escaped byte too, which may be a backslash.
            (None, _) => at += 2,
        }
        if at >= line.len() {
            break;
        }
    }
    if kept == 0 {
        return line.into();
    }
    repaired.push_str(&line[kept..]);
    repaired.into()
}

/// A string of a line, copied only if it has escapes. For strings that a decoder inspects but does not keep.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Word<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl<'a> From<&'a str> for Word<'a> {
    fn from(word: &'a str) -> Self {
        Self(word.into())
    }
}

impl Deref for Word<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A value that is ignored if it has an unknown shape.
pub(crate) fn soft<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// The message inside an error that is itself JSON, as model servers write them.
pub(crate) fn message_in(said: &str) -> Option<String> {
    let error: Value = serde_json::from_str(said).ok()?;
    error.field("error").string("message")
}

/// A line of too many values becomes one that is too long: it would take too much memory as well.
pub(crate) fn bounded(line: Line) -> Line {
    match line {
        Line::Text(text) if has_more_values(&text, MAX_JSON_VALUES) => {
            Line::TooLong { head: beginning(&text, HEAD).to_owned(), bytes: text.len() as u64 }
        }
        line => line,
    }
}

/// The event for a line that is too long, or has too many values.
pub(crate) fn too_long(head: &str, bytes: u64) -> EventKind {
    let reason = if bytes > MAX_LINE as u64 {
        format!("line of {bytes} bytes is longer than {MAX_LINE} bytes")
    } else {
        format!("line of {bytes} bytes has more than {MAX_JSON_VALUES} values")
    };
    EventKind::Unrecognized { line: head.to_owned(), reason, bytes: Some(bytes) }
}

pub(crate) fn unrecognized(line: &str, reason: impl Into<String>) -> EventKind {
    let shown = beginning(line, SHOWN);
    let bytes = (shown.len() < line.len()).then_some(line.len() as u64);
    EventKind::Unrecognized { line: shown.to_owned(), reason: reason.into(), bytes }
}

/// The first characters, in at most that many bytes.
fn beginning(line: &str, most: usize) -> &str {
    let end = (0..=line.len().min(most)).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_its_method_its_type_or_its_id() {
        assert_eq!(head(r#"{"method":"turn/started","params":{}}"#), Ok(Head::Method("turn/started".into())));
        assert_eq!(head(r#" {"id":0,"method":"x","params":{}}"#), Ok(Head::Method("x".into())));
        assert_eq!(head(r#"{"timestamp":"","type":"event_msg"}"#), Ok(Head::Type("event_msg".into())));
        assert_eq!(head(r#"{"id":"a","result":{}}"#), Ok(Head::Reply));
        assert_eq!(head(r#"{"error":{"code":1},"id":7}"#), Ok(Head::Reply));
        assert_eq!(head("{}"), Ok(Head::Other));
        assert!(head("[1]").is_err() && head("WARNING: no").is_err());
    }

    #[test]
    fn the_type_is_found_wherever_it_stands() {
        assert_eq!(type_of(r#"{"type":"user","a":1}"#), Ok("user".into()));
        assert_eq!(type_of(r#" {"a":{"type":"no"},"type":"result"}"#), Ok("result".into()));
        assert_eq!(type_of(r#"{"type":"a\u0062"}"#), Ok("ab".into()));
    }

    #[test]
    fn half_a_pair_does_not_cost_the_line() {
        for (line, expected) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\uDE00 x \ud83d\ud83d\ude00"}"#, r#"{"a":"\ufffd x \ufffd\ud83d\ude00"}"#),
            (r#"{"a":"\ud83d\n"}"#, r#"{"a":"\ufffd\n"}"#),
        ] {
            assert_eq!(repaired(line), expected);
            serde_json::from_str::<Value>(&repaired(line)).unwrap();
        }
        for whole in [r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\\ud83d"}"#, "ä\\", r"\ud", r#"{"a":"\u00e4 ü"}"#] {
            assert!(matches!(repaired(whole), Cow::Borrowed(_)), "{whole}");
        }
    }

    #[test]
    fn a_line_without_a_type_says_why() {
        assert_eq!(type_of("Warning: no"), Err("not a JSON object".to_owned()));
        assert_eq!(type_of("[1]"), Err("not a JSON object".to_owned()));
        assert_eq!(type_of("{}"), Err("a JSON object without a type".to_owned()));
        assert!(type_of(r#"{"a":"#).is_err());
    }

    #[test]
    fn a_long_line_is_shown_in_part() {
        let line = "ä".repeat(SHOWN);
        let EventKind::Unrecognized { line: shown, bytes, .. } = unrecognized(&line, "x") else { panic!() };
        assert_eq!((shown.len(), bytes), (SHOWN, Some(2 * SHOWN as u64)));
    }
}
