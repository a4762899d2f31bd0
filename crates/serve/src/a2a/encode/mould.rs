//! Words as agents stream them: what the frames of one place have in common is written once, and the rest put between.
//!
//! The encoder itself writes the common parts, around marks in the place of what differs; so nothing here knows how a
//! frame looks, and nothing can come to look otherwise. Must not come in: names of fields.

use std::io::Write as _;
use std::sync::Arc;

use multitap_event::Timestamp;
use serde::Serialize;

use super::super::cursor::Cursor;
use super::super::frame::{Body, Form, Frame, Place};

/// What stands for a message's id, and for its text.
const ID: &str = "\u{f0001}id";
const TEXT: &str = "\u{f0001}text";
/// A place that no log has.
const CURSOR: Cursor = Cursor { seq: u64::MAX, part: u32::MAX };

/// The frames of one place in one form, when the agent says something.
#[derive(Debug)]
pub(in crate::a2a) struct Mould {
    /// What comes before each part that differs.
    parts: [(Box<str>, Part); 4],
    end: Box<str>,
}

/// What differs.
#[derive(Debug, Clone, Copy)]
enum Part {
    Id,
    Text,
    Time,
    Cursor,
}

impl Mould {
    /// Nothing, if something of the place could be taken for a mark.
    pub(in crate::a2a) fn cast(place: &Arc<Place>, form: Form) -> Option<Self> {
        let body = Body::Text { message_id: ID.into(), text: TEXT.to_owned(), by_user: false, parent: None };
        let at = Timestamp::from_millis(0);
        let json = super::json(&Frame::new(CURSOR, at, place.clone(), body), form);
        let marks = [
            (Part::Id, ID.to_owned()),
            (Part::Text, TEXT.to_owned()),
            (Part::Time, at.to_string()),
            (Part::Cursor, CURSOR.to_string()),
        ];
        let mut places = Vec::new();
        for (part, mark) in marks {
            let mark = format!("\"{mark}\"");
            let at = json.find(&mark).filter(|at| json.rfind(&mark) == Some(*at))?;
            places.push((at, at + mark.len(), part));
        }
        places.sort_unstable_by_key(|(at, ..)| *at);
        let mut from = 0;
        let parts = places.into_iter().map(|(at, end, part)| {
            let before = json[std::mem::replace(&mut from, end)..at].into();
            (before, part)
        });
        let parts: Vec<(Box<str>, Part)> = parts.collect();
        Some(Self { parts: parts.try_into().ok()?, end: json[from..].into() })
    }

    /// Whether a frame tells that the agent says something, and nothing else.
    pub(in crate::a2a) fn fits(frame: &Frame) -> bool {
        let says = matches!(&frame.body, Body::Text { by_user: false, parent: None, .. });
        says && frame.ends.is_none() && frame.question.is_none()
    }

    /// The frame as JSON, if it fits.
    pub(in crate::a2a) fn pour(&self, frame: &Frame) -> Option<String> {
        let Body::Text { message_id, text, .. } = &frame.body else { return None };
        let own = message_id.as_str().len() + text.len() + text.len() / 8 + 64;
        let common = self.parts.iter().map(|(before, _)| before.len()).sum::<usize>() + self.end.len();
        let mut json = Vec::with_capacity(common + own);
        for (before, part) in &self.parts {
            json.extend_from_slice(before.as_bytes());
            match part {
                Part::Id => write(&mut json, message_id.as_str())?,
                Part::Text => write(&mut json, text)?,
                Part::Time => write(&mut json, &frame.at)?,
                Part::Cursor => write!(json, "\"{}\"", frame.cursor).ok()?,
            }
        }
        json.extend_from_slice(self.end.as_bytes());
        String::from_utf8(json).ok()
    }
}

fn write(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> Option<()> {
    serde_json::to_writer(json, value).ok()
}

#[cfg(test)]
mod tests {
    use multitap_a2a::Dialect;
    use multitap_a2a::devtool::Spelling;

    use super::*;

    const FORM: Form = Form { dialect: Dialect::V1_0, spelling: Spelling::Specified };

    #[test]
    fn words_are_poured_as_the_encoder_writes_them() {
        let place = Arc::new(Place::first("session"));
        let mould = Mould::cast(&place, FORM).unwrap();
        for text in ["", "plain", "\"quoted\"\n\\ \u{1} ü", TEXT, ID] {
            let body = Body::Text { message_id: text.into(), text: text.to_owned(), by_user: false, parent: None };
            let frame = Frame::new(Cursor::new(7, 1), Timestamp::from_millis(1_800_000_000_123), place.clone(), body);
            assert!(Mould::fits(&frame));
            assert_eq!(mould.pour(&frame), Some(super::super::json(&frame, FORM)));
        }
    }

    #[test]
    fn a_place_that_could_be_taken_for_a_mark_has_no_mould() {
        let mut place = Arc::new(Place::first("session"));
        Place::leave(&mut place).model = Some(ID.into());
        assert!(Mould::cast(&place, FORM).is_none());
    }
}
