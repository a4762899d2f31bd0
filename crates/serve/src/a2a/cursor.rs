//! The position of a frame in a session: the number of an event, and which of the event's frames.

use std::fmt;
use std::str::FromStr;

/// Written `SEQ` for the first frame of an event and `SEQ.K` for the others. They rise along a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cursor {
    pub(crate) seq: u64,
    pub(crate) part: u32,
}

impl Cursor {
    pub(crate) fn new(seq: u64, part: u32) -> Self {
        Self { seq, part }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            0 => write!(f, "{}", self.seq),
            part => write!(f, "{}.{part}", self.seq),
        }
    }
}

/// The text is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cursor must be a number such as 12 or 12.1, as received with a frame")]
pub(crate) struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then_some(()).ok_or(NoCursor);
        let (seq, part) = text.split_once('.').unwrap_or((text, "0"));
        number(seq)?;
        number(part)?;
        Ok(Self { seq: seq.parse().map_err(|_| NoCursor)?, part: part.parse().map_err(|_| NoCursor)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_read_as_it_is_written_and_rises() {
        for (text, cursor) in [("12", Cursor::new(12, 0)), ("12.1", Cursor::new(12, 1)), ("0", Cursor::default())] {
            assert_eq!(text.parse(), Ok(cursor));
            assert_eq!(cursor.to_string(), text);
        }
        assert!(Cursor::new(9, 7) < Cursor::new(10, 0) && Cursor::new(10, 0) < Cursor::new(10, 1));
    }

    #[test]
    fn anything_else_is_no_cursor() {
        for text in ["", "x", "-1", "+1", "1.", ".1", "1.x", "1.2.3", "99999999999999999999", " 1"] {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }
}
