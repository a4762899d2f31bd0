//! When something happened, as RFC 3339 text in UTC.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// What the clock says. Only the edges call this; pure code is given the time.
    pub fn now() -> Self {
        Self::cut(jiff::Timestamp::now())
    }

    /// The moment that many milliseconds after 1970, kept within what a calendar can write.
    pub fn from_millis(millis: i64) -> Self {
        let end = if millis < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_millisecond(millis).unwrap_or(end))
    }

    /// Reads RFC 3339 text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::cut)
    }

    /// Finer than that it is not written, and what is read back has to be the same.
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
    /// Every event is written with its time, most of them more than once: so the digits are set by hand.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.as_millis();
        let [year, month, day] = date(millis.div_euclid(DAY));
        if !(0..=9999).contains(&year) {
            return write!(f, "{:.3}", self.0);
        }
        let rest = millis.rem_euclid(DAY);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let places = [(year, 4), (month, 7), (day, 10), (rest / HOUR, 13), (rest / MINUTE % 60, 16)];
        for (number, end) in places.into_iter().chain([(rest / SECOND % 60, 19), (rest % SECOND, 23)]) {
            set(&mut text[..end], number);
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Writes a number at the end of that text, over the zeros that stand there.
fn set(text: &mut [u8], mut number: i64) {
    for digit in text.iter_mut().rev() {
        if number == 0 {
            return;
        }
        *digit += u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

/// Year, month and day of the day that many days after 1 January 1970. Counted in eras of 400 years, which all have the
/// same length, and in years that begin in March, so that the odd day comes last.
fn date(days: i64) -> [i64; 3] {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    [year + 400 * era + i64::from(month <= 2), month, day]
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

    #[test]
    fn any_moment_is_written_as_the_calendar_has_it() {
        let (first, last) = (jiff::Timestamp::MIN.as_millisecond(), jiff::Timestamp::MAX.as_millisecond());
        // A step that meets every day of the year and every time of the day.
        let steps = (first..=last).step_by(7_919_461_337);
        let edges = [-62_167_219_200_001, -62_167_219_200_000, -1, 0, 951_782_399_999, 951_782_400_000, last];
        for millis in steps.chain(edges) {
            let moment = Timestamp::from_millis(millis);
            assert_eq!(moment.to_string(), format!("{:.3}", moment.0));
        }
    }
}
