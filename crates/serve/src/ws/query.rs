//! Parameters in the address of a WebSocket. Pure. The guard has read `client` and `role` already.

use multitap_a2a::Dialect;
use multitap_a2a::devtool::{Spelling, coder};
use multitap_event::{Door, SessionId};

use crate::a2a::{Cursor, Form, NoCursor};

/// How much of a wrong value is repeated.
const REPEATED: usize = 100;

/// The frames that the client wants, and their form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Wanted {
    pub(super) speech: Speech,
    /// The epoch of `after`.
    pub(super) epoch: Option<u64>,
    /// The session to follow in place of the shared one.
    pub(super) session: Option<SessionId>,
}

/// The dialect of a connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Speech {
    A2a {
        form: Form,
        after: Option<Cursor>,
    },
    /// Our own events. The client may say which kind of client it is.
    Events {
        after: Option<u64>,
        door: Door,
    },
}

/// A parameter has an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}={value}: {why}")]
pub(super) struct Wrong {
    key: &'static str,
    value: String,
    why: String,
}

impl Wanted {
    pub(super) fn read(query: &[(String, String)]) -> Result<Self, Wrong> {
        let given = |key: &str| query.iter().rev().find(|(found, _)| found == key).map(|(_, value)| value.as_str());
        let epoch = given("epoch").map(|text| text.parse().map_err(|_| wrong("epoch", text, "must be a number")));
        Ok(Self { speech: speech(given)?, epoch: epoch.transpose()?, session: given("session").map(SessionId::from) })
    }
}

fn speech<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<Speech, Wrong> {
    if given("dialect") == Some("events") {
        let number = |text: &str| text.parse().map_err(|_| wrong("after", text, "must be the number of an event"));
        let door = match given("door") {
            None => Door::A2a,
            Some("terminal") => Door::Terminal,
            Some("web") => Door::Web,
            Some(word) => return Err(wrong("door", word, "must be terminal or web, or absent")),
        };
        return Ok(Speech::Events { after: given("after").map(number).transpose()?, door });
    }
    if let Some(word) = given("door") {
        return Err(wrong("door", word, "is only for dialect=events"));
    }
    let dialect = match given("dialect") {
        None => Dialect::V0_3,
        Some(word) => Dialect::of_version(word).ok_or_else(|| wrong("dialect", word, "must be 0.3, 1.0 or events"))?,
    };
    let spelling = match given("ext") {
        None => Spelling::Specified,
        Some(coder::KEY) => Spelling::Coder,
        Some(word) => return Err(wrong("ext", word, "must be coderAgent, or absent")),
    };
    let cursor = |text: &str| text.parse().map_err(|error: NoCursor| wrong("after", text, &error.to_string()));
    let after = given("after").map(cursor).transpose()?;
    Ok(Speech::A2a { form: Form::of(dialect, spelling), after })
}

fn wrong(key: &'static str, value: &str, why: &str) -> Wrong {
    Wrong { key, value: value.chars().take(REPEATED).collect(), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &[(&str, &str)]) -> Result<Wanted, String> {
        let query: Vec<_> = query.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Wanted::read(&query).map_err(|wrong| wrong.to_string())
    }

    #[test]
    fn nothing_said_is_a2a_0_3_from_now_on() {
        let form = Form::of(Dialect::V0_3, Spelling::Specified);
        let speech = Speech::A2a { form, after: None };
        assert_eq!(read(&[]), Ok(Wanted { speech, epoch: None, session: None }));
    }

    #[test]
    fn everything_said_is_taken() {
        let all = [("after", "12.1"), ("dialect", "1.0"), ("ext", "coderAgent"), ("epoch", "3"), ("session", "s")];
        let form = Form::of(Dialect::V1_0, Spelling::Coder);
        let speech = Speech::A2a { form, after: Some(Cursor::new(12, 1)) };
        assert_eq!(read(&all), Ok(Wanted { speech, epoch: Some(3), session: Some("s".into()) }));
    }

    #[test]
    fn wrong_values_are_named() {
        for (key, value) in [
            ("after", "x"),
            ("after", ""),
            ("dialect", "2.0"),
            ("dialect", "Events"),
            ("ext", "other"),
            ("epoch", "-1"),
        ] {
            let error = read(&[(key, value)]).unwrap_err();
            assert!(error.starts_with(&format!("{key}={value}: ")), "{error}");
        }
    }
}
