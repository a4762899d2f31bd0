//! Points in time, as RFC 3339 text in UTC.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The current time. Only the edges call this; pure code gets the time as an argument.
    pub fn now() -> Self {
        Self::cut(jiff::Timestamp::now())
    }

    /// The moment that many milliseconds after 1970, limited to what RFC 3339 can express.
    pub fn from_millis(millis: i64) -> Self {
        let end = if millis < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(end))
    }

    /// Reads RFC 3339 text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::cut)
    }

    /// Drops fractions of milliseconds: they are not written, and a value must equal itself after it is read back.
    fn cut(moment: jiff::Timestamp) -> Self {
        Self::from_millis(moment.as_millisecond())
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// Whole milliseconds from `earlier` to here; zero if the clock went back.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.as_millis().saturating_sub(earlier.as_millis())).unwrap_or(0)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("not an RFC 3339 time: {text}")))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_is_the_same_moment() {
        let finer = Timestamp::parse("2026-11-15T14:41:12.939928695Z").unwrap();
        for moment in [Timestamp::now(), finer, Timestamp::from_millis(-1)] {
            assert_eq!(Timestamp::parse(&moment.to_string()), Some(moment));
        }
        assert_eq!(finer.to_string(), "2026-11-15T14:41:12.939Z");
    }
}
