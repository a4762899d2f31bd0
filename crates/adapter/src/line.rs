//! Native lines as such: what type they claim to be, and what is told of those that nobody understands.

use multitap_event::EventKind;
use multitap_process::MAX_LINE;
use serde::Deserialize;

/// How much of a line that was not understood is told.
const SHOWN: usize = 64 * 1024;

/// The `type` of a JSON line, found without reading the rest where it stands first; or why there is none.
pub(crate) fn type_of(line: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: Option<String>,
    }

    let line = line.trim_start();
    if let Some(rest) = line.strip_prefix(r#"{"type":""#)
        && let Some(end) = rest.find(['"', '\\'])
        && rest.as_bytes()[end] == b'"'
    {
        return Ok(rest[..end].to_owned());
    }
    if !line.starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    match serde_json::from_str::<Head>(line) {
        Ok(Head { kind: Some(kind) }) => Ok(kind),
        Ok(Head { kind: None }) => Err("a JSON object without a type".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The event for a line that is longer than we keep.
pub(crate) fn too_long(head: &str, bytes: u64) -> EventKind {
    EventKind::Unrecognized {
        line: head.to_owned(),
        reason: format!("line of {bytes} bytes is longer than {MAX_LINE} bytes"),
        bytes: Some(bytes),
    }
}

/// The event for a line nobody understands.
pub(crate) fn unrecognized(line: &str, reason: impl Into<String>) -> EventKind {
    let end = (0..=line.len().min(SHOWN)).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
    let bytes = (end < line.len()).then_some(line.len() as u64);
    EventKind::Unrecognized { line: line[..end].to_owned(), reason: reason.into(), bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_found_wherever_it_stands() {
        assert_eq!(type_of(r#"{"type":"user","a":1}"#), Ok("user".to_owned()));
        assert_eq!(type_of(r#" {"a":{"type":"no"},"type":"result"}"#), Ok("result".to_owned()));
        assert_eq!(type_of(r#"{"type":"a\u0062"}"#), Ok("ab".to_owned()));
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
