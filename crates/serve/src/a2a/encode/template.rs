//! Templates for streamed text: the parts that the frames of one scope have in common are written once.
//!
//! The encoder itself writes the template, with marks instead of the parts that differ, so a rendered frame cannot differ
//! from an encoded one. Must not come in: names of fields.

use std::io::Write as _;
use std::sync::Arc;

use multitap_event::Timestamp;
use serde::Serialize;

use super::super::cursor::Cursor;
use super::super::frame::{Body, Form, Frame, FrameScope};

/// Marks for the id and the text of a message.
const ID: &str = "\u{f0001}id";
const TEXT: &str = "\u{f0001}text";
/// Mark for the cursor: no log is that long.
const CURSOR: Cursor = Cursor { seq: u64::MAX, part: u32::MAX };

/// JSON of the frames of one scope in one form that hold only text of the agent.
#[derive(Debug)]
pub(in crate::a2a) struct TextTemplate {
    /// The parts that differ, each with the JSON before it.
    parts: [(Box<str>, Part); 4],
    end: Box<str>,
}

/// A part that differs.
#[derive(Debug, Clone, Copy)]
enum Part {
    Id,
    Text,
    Time,
    Cursor,
}

impl TextTemplate {
    /// `None` if something in the scope could be mistaken for a mark.
    pub(in crate::a2a) fn compile(scope: &Arc<FrameScope>, form: Form) -> Option<Self> {
        let body = Body::Text { message_id: ID.into(), text: TEXT.to_owned(), by_user: false, parent: None };
        let at = Timestamp::from_millis(0);
        let json = super::json(&Frame::new(CURSOR, at, scope.clone(), body), form);
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

    /// Whether a frame holds only text of the agent.
    pub(in crate::a2a) fn matches(frame: &Frame) -> bool {
        let is_text = matches!(&frame.body, Body::Text { by_user: false, parent: None, .. });
        is_text && frame.ends.is_none() && frame.question.is_none()
    }

    /// The frame as JSON, if it matches.
    pub(in crate::a2a) fn render(&self, frame: &Frame) -> Option<String> {
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
    use multitap_a2a::Encoding;
    use multitap_a2a::devtool::Spelling;

    use super::*;

    const FORM: Form = Form { encoding: Encoding::V1_0, spelling: Spelling::Specified };

    #[test]
    fn text_is_rendered_as_the_encoder_writes_it() {
        let scope = Arc::new(FrameScope::first("session"));
        let template = TextTemplate::compile(&scope, FORM).unwrap();
        for text in ["", "plain", "\"quoted\"\n\\ \u{1} ü", TEXT, ID] {
            let body = Body::Text { message_id: text.into(), text: text.to_owned(), by_user: false, parent: None };
            let frame = Frame::new(Cursor::new(7, 1), Timestamp::from_millis(1_800_000_000_123), scope.clone(), body);
            assert!(TextTemplate::matches(&frame));
            assert_eq!(template.render(&frame), Some(super::super::json(&frame, FORM)));
        }
    }

    #[test]
    fn a_place_that_could_be_taken_for_a_mark_has_no_template() {
        let mut scope = Arc::new(FrameScope::first("session"));
        FrameScope::make_mut(&mut scope).model = Some(ID.into());
        assert!(TextTemplate::compile(&scope, FORM).is_none());
    }
}
