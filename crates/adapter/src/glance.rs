//! Reads lines in their usual exact form without a parser.
//!
//! Streamed pieces of text are frequent and all alike, so a codec may try a glance first. A line that differs at all,
//! even by a space, the order of keys or an additional key, gives `None` and is parsed as usual. So a glance returns
//! what a parser would return, or `None`. Must not come in: what a line means.

use memchr::memchr2;
use serde::de::IgnoredAny;

/// What is left of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Glance<'a>(&'a str);

/// A value that holds no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plain<'a> {
    Null,
    Number(u64),
    /// As it is written, with its quotes.
    Text(&'a str),
}

impl<'a> Glance<'a> {
    /// The line after that beginning.
    pub(crate) fn after(line: &'a str, beginning: &str) -> Option<Self> {
        line.strip_prefix(beginning).map(Self)
    }

    /// Goes on after that.
    pub(crate) fn skip(&mut self, literal: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(literal)?;
        Some(())
    }

    /// Whether nothing is left but that.
    pub(crate) fn ends(self, literal: &str) -> bool {
        self.0 == literal
    }

    /// The members of an object up to its end, each without another object or list in it.
    pub(crate) fn members(&mut self, mut each: impl FnMut(&'a str, Plain<'a>) -> Option<()>) -> Option<()> {
        loop {
            let key = self.value()?.word()?;
            self.skip(":")?;
            each(key, self.value()?)?;
            if self.skip("}").is_some() {
                return Some(());
            }
            self.skip(",")?;
        }
    }

    pub(crate) fn value(&mut self) -> Option<Plain<'a>> {
        match self.0.as_bytes().first()? {
            b'"' => self.text().map(Plain::Text),
            b'n' => self.skip("null").map(|()| Plain::Null),
            _ => self.number().map(Plain::Number),
        }
    }

    fn text(&mut self) -> Option<&'a str> {
        let mut end = 1;
        loop {
            end += memchr2(b'"', b'\\', self.0.as_bytes().get(end..)?)?;
            if self.0.as_bytes()[end] == b'"' {
                break;
            }
            end += 2; // What is escaped does not end it.
        }
        let (text, rest) = self.0.split_at(end + 1);
        self.0 = rest;
        Some(text)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let digits = self.0.bytes().position(|byte| !byte.is_ascii_digit())?;
        let (number, rest) = self.0.split_at(digits);
        // What a reader would not take for a whole number, or for a number at all.
        if (digits > 1 && number.starts_with('0')) || rest.starts_with(['.', 'e', 'E']) {
            return None;
        }
        self.0 = rest;
        number.parse().ok()
    }
}

impl<'a> Plain<'a> {
    /// The text it stands for; nothing if it is none, or not as it should be written.
    pub(crate) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(written) => {
                self.word().map_or_else(|| serde_json::from_str(written).ok(), |word| Some(word.to_owned()))
            }
            Self::Null | Self::Number(_) => None,
        }
    }

    /// Whether a reader would take it, for what nobody looks at.
    pub(crate) fn is_sound(self) -> bool {
        match self {
            Self::Text(written) => self.word().is_some() || serde_json::from_str::<IgnoredAny>(written).is_ok(),
            Self::Null | Self::Number(_) => true,
        }
    }

    /// The word it is, if it is one that stands as it is written.
    pub(crate) fn word(self) -> Option<&'a str> {
        let Self::Text(written) = self else { return None };
        // Without an early end, so that it is done for many bytes at once.
        let altered = written.bytes().fold(false, |found, byte| found | (byte == b'\\') | (byte < b' '));
        if altered { None } else { written.get(1..written.len() - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Option<Vec<(&str, Plain<'_>)>> {
        let mut members = Vec::new();
        let mut line = Glance::after(text, "{")?;
        line.members(|key, value| {
            members.push((key, value));
            Some(())
        })?;
        line.ends("!").then_some(members)
    }

    #[test]
    fn what_looks_as_expected_is_read() {
        let read = members(r#"{"a":"x\"y","b":null,"c":120}!"#).unwrap();
        assert_eq!(read, [("a", Plain::Text(r#""x\"y""#)), ("b", Plain::Null), ("c", Plain::Number(120))]);
        assert_eq!(read[0].1.into_text().as_deref(), Some("x\"y"));
        assert_eq!(read[0].1.word(), None);
        assert_eq!(Plain::Text("\"ä\\u00e4\\n\"").into_text().as_deref(), Some("ää\n"));
        assert_eq!(Plain::Text("\"word\"").word(), Some("word"));
    }

    /// At a size at which a cost that grows with its square takes minutes.
    #[test]
    fn a_line_is_looked_at_in_linear_time() {
        let many = |part: &str| part.repeat(2_000_000 / part.len());
        for part in [r#""a":1,"#, r#""a":"x\\\"",""#, r#""a":null,"#, "1", "\"", "\\", "\\\"", "{", "a"] {
            for beginning in ["{", r#"{"a":"#, r#"{"a":""#] {
                assert_eq!(members(&format!("{beginning}{}", many(part))), None, "{beginning} {part}");
            }
        }
        let read = format!("{{{}\"a\":1}}!", many(r#""a":"x\\","#));
        assert_eq!(members(&read).unwrap().len(), 2_000_000 / r#""a":"x\\","#.len() + 1);
        let text = format!("\"{}\"", many("\\n"));
        assert_eq!(Plain::Text(&text).into_text().unwrap().len(), 1_000_000);
    }

    #[test]
    fn whatever_differs_is_nothing() {
        for odd in [
            r#"{"a": "x"}!"#,
            r#"{"a":"x"}"#,
            r#"{"a":{}}!"#,
            r#"{"a":[]}!"#,
            r#"{"a":true}!"#,
            r#"{"a":1.5}!"#,
            r#"{"a":01}!"#,
            r#"{"a":-1}!"#,
            r#"{"a":99999999999999999999}!"#,
            r#"{"a":"x"#,
            r#"{"a":"x\"#,
            r#"{"a""#,
            r#"{}!"#,
            "{",
        ] {
            assert_eq!(members(odd), None, "{odd}");
        }
        for odd in ["\"a\tb\"", "\"\\x\""] {
            assert_eq!((Plain::Text(odd).into_text(), Plain::Text(odd).is_sound()), (None, false), "{odd}");
        }
    }
}
