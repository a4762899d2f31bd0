//! Collects a command's output, bounded: the part that is not reported yet, and the text for the model. Pure.

use crate::tool::cut_before;

/// Most output reported while it runs. The rest is only counted.
const SHOWN: u64 = 4 * 1024 * 1024;
/// Bytes of the beginning and of the end that the model gets.
const HEAD: usize = 15_000;
const TAIL: usize = 15_000;

#[derive(Debug, Default)]
pub(super) struct Output {
    text: Text,
    /// Not reported yet.
    pub(super) waiting: String,
    shown: u64,
    pub(super) not_shown: u64,
    head: String,
    /// The output after the head, or the end of it.
    tail: String,
    /// Bytes left out between the two.
    left_out: u64,
}

impl Output {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let text = self.text.decode(bytes);
        self.add(&text);
    }

    pub(super) fn finish(&mut self) {
        let text = self.text.finish();
        self.add(text);
    }

    fn add(&mut self, text: &str) {
        let length = text.len() as u64;
        if self.not_shown == 0 && self.shown + length <= SHOWN {
            self.shown += length;
            self.waiting.push_str(text);
        } else {
            self.not_shown += length;
        }
        // Once any output was stored after the head, the head is closed.
        let open = self.tail.is_empty() && self.left_out == 0;
        let room = if open { HEAD.saturating_sub(self.head.len()) } else { 0 };
        let (head, tail) = text.split_at(cut_before(text, room));
        self.head.push_str(head);
        self.tail.push_str(tail);
        if self.tail.len() > 2 * TAIL {
            self.left_out += shorten(&mut self.tail);
        }
    }

    pub(super) fn take(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.waiting)).filter(|text| !text.is_empty())
    }

    /// The whole output for the model, with how the command ended.
    pub(super) fn text(&self, end: &str) -> String {
        let mut tail = self.tail.clone();
        let mut text = match self.left_out + shorten(&mut tail) {
            0 => format!("{}{tail}", self.head),
            left_out => format!("{}\n[… {left_out} bytes of output are left out here …]\n{tail}", self.head),
        };
        let spoken = text.trim_end().len();
        text.truncate(spoken);
        match (text.is_empty(), end.is_empty()) {
            (true, true) => "(no output)".to_owned(),
            (true, false) => format!("(no output)\n[{end}]"),
            (false, true) => text,
            (false, false) => format!("{text}\n[{end}]"),
        }
    }
}

/// Cuts the tail at its beginning to the limit; returns the number of bytes removed.
fn shorten(tail: &mut String) -> u64 {
    let surplus = cut_before(tail, tail.len().saturating_sub(TAIL));
    tail.drain(..surplus);
    surplus as u64
}

/// Decodes UTF-8 that arrives in pieces.
#[derive(Debug, Default)]
struct Text {
    /// An incomplete character at the end of the last piece.
    cut: Vec<u8>,
}

impl Text {
    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.cut);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut chunks = all.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let unfinished = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && unfinished {
                self.cut = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.cut).is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reported(pieces: &[&[u8]]) -> (String, String) {
        let mut output = Output::default();
        let mut reported = String::new();
        for piece in pieces {
            output.push(piece);
            reported.extend(output.take());
        }
        output.finish();
        reported.extend(output.take());
        (reported, output.text(""))
    }

    #[test]
    fn a_character_may_come_in_pieces() {
        let (reported, text) = reported(&[b"a\xe6", b"\xbc", b"\xa2b\xff", b"c\xe6"]);
        assert_eq!(reported, "a漢b\u{fffd}c\u{fffd}");
        assert_eq!(text, reported);
    }

    #[test]
    fn much_output_keeps_its_beginning_and_its_end() {
        let mut output = Output::default();
        output.push(b"first\n");
        for _ in 0..100_000 {
            output.push("0123456789 漢字 abc\n".as_bytes());
            output.take();
        }
        output.push(b"last\n");
        output.finish();
        let text = output.text("exit code 1");
        assert!(text.starts_with("first\n0123") && text.ends_with("\nlast\n[exit code 1]"), "{text}");
        assert!(text.len() < HEAD + TAIL + 100, "{}", text.len());
        assert!(text.contains("bytes of output are left out here"));
        assert!(!text.contains('\u{fffd}'));
    }

    #[test]
    fn what_is_shown_is_bounded_and_the_rest_is_counted() {
        let mut output = Output::default();
        let mut shown = 0;
        for _ in 0..100 {
            output.push(&[b'x'; 64 * 1024]);
            shown += output.take().map_or(0, |text| text.len() as u64);
        }
        assert!(shown <= SHOWN && shown > SHOWN / 2);
        assert_eq!(shown + output.not_shown, 100 * 64 * 1024);
    }

    #[test]
    fn how_it_ended_is_said_even_if_nothing_else_is() {
        let output = Output::default();
        assert_eq!(output.text(""), "(no output)");
        assert_eq!(output.text("exit code 2"), "(no output)\n[exit code 2]");
    }

    proptest! {
        #[test]
        fn pieces_make_the_same_text_as_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1..20_usize) {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(reported(&pieces).0, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
