//! The text that is typed: any number of lines, a cursor, and pasted blocks of text or pictures. The cursor skips a block,
//! and a block is cut and yanked as a whole. Pure.

mod piece;
#[cfg(test)]
mod tests;

use multitap_event::{Image, Prompt};
use unicode_segmentation::UnicodeSegmentation as _;

use self::piece::{Content, Piece};

/// A paste of this many lines, or bytes, is shown as one block.
const BLOCK_LINES: usize = 5;
const BLOCK_BYTES: usize = 2000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Composer {
    piece: Piece,
    /// A byte offset, always between two graphemes and never inside a block.
    cursor: usize,
    cut: Piece,
    /// How many blocks were inserted.
    pasted: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Move {
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Erase {
    Back,
    Forward,
    WordBack,
    WordForward,
    ToLineStart,
    ToLineEnd,
}

impl Composer {
    /// A text, with the cursor at its end.
    pub(crate) fn with(text: &str) -> Self {
        Self { piece: Piece::plain(text), cursor: text.len(), ..Self::default() }
    }

    /// A prompt with its pictures, with the cursor at its end.
    pub(crate) fn of(prompt: &Prompt) -> Self {
        let piece = Piece::of(prompt);
        Self { cursor: piece.text().len(), pasted: piece.highest(), piece, cut: Piece::default() }
    }

    /// Removes images and their placeholders.
    pub(crate) fn without_pictures(self) -> Self {
        let piece = self.piece.without_pictures();
        Self { cursor: piece.text().len(), piece, ..self }
    }

    /// The text as it is shown.
    pub(crate) fn text(&self) -> &str {
        self.piece.text()
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text().is_empty()
    }

    /// The text with blocks as they were pasted.
    pub(crate) fn whole(&self) -> String {
        self.piece.whole()
    }

    /// The text as a prompt, with its pictures.
    pub(crate) fn prompt(&self) -> Prompt {
        Prompt { images: self.piece.images(), ..Prompt::text(self.whole()) }
    }

    pub(crate) fn clear(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        // The cut may be yanked beside new blocks: their numbers must differ.
        let pasted = if cut.has_blocks() { self.pasted } else { 0 };
        *self = Self { cut, pasted, ..Self::default() };
    }

    /// Replaces the text by what the editor wrote. A picture stays if its words do.
    pub(crate) fn rewrite(&mut self, text: &str) {
        self.piece = self.piece.rewritten(text);
        self.cursor = text.len();
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.put(Piece::plain(text));
    }

    fn put(&mut self, piece: Piece) {
        let length = piece.text().len();
        self.piece.put(self.cursor, piece);
        self.cursor += length;
    }

    /// Pastes text. Long text is shown as one block.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines < BLOCK_LINES && text.len() < BLOCK_BYTES {
            return self.insert(&text);
        }
        self.pasted += 1;
        let words = format!("[Pasted text #{}: {lines} lines]", self.pasted);
        self.put(Piece::block(words, Content::Text(text)));
    }

    /// Inserts a picture, shown by its name.
    pub(crate) fn picture(&mut self, name: &str, image: Image) {
        self.pasted += 1;
        self.put(Piece::picture(self.pasted, name, image));
    }

    /// Replaces the text between that byte and the cursor.
    pub(crate) fn replace_from(&mut self, from: usize, text: &str) {
        (self.cursor, _) = self.piece.take(from..self.cursor);
        self.insert(text);
    }

    pub(crate) fn yank(&mut self) {
        self.put(self.cut.clone());
    }

    pub(crate) fn go(&mut self, direction: Move) {
        self.cursor = self.place(direction);
    }

    pub(crate) fn erase(&mut self, what: Erase) {
        let to = self.place(match what {
            Erase::Back => Move::Left,
            Erase::Forward => Move::Right,
            Erase::WordBack => Move::WordLeft,
            Erase::WordForward => Move::WordRight,
            Erase::ToLineStart => Move::LineStart,
            Erase::ToLineEnd => Move::LineEnd,
        });
        // At the end of a line, the line end is erased.
        let to = if to == self.cursor && what == Erase::ToLineEnd { self.place(Move::Right) } else { to };
        let range = if to < self.cursor { to..self.cursor } else { self.cursor..to };
        let gone;
        (self.cursor, gone) = self.piece.take(range);
        if !matches!(what, Erase::Back | Erase::Forward) && !gone.text().is_empty() {
            self.cut = gone;
        }
    }

    /// Whether the cursor can go no further: up from the first line, right from the end.
    pub(crate) fn is_at_edge(&self, direction: Move) -> bool {
        match direction {
            Move::Left => self.cursor == 0,
            Move::Right => self.cursor == self.text().len(),
            Move::Up => !self.text()[..self.cursor].contains('\n'),
            Move::Down => !self.text()[self.cursor..].contains('\n'),
            _ => false,
        }
    }

    /// Where a move ends: behind a block if it would end inside one.
    fn place(&self, direction: Move) -> usize {
        let to = self.letter(direction);
        match self.piece.around(to) {
            Some(block) if to < self.cursor => block.start,
            Some(block) => block.end,
            None => to,
        }
    }

    fn letter(&self, direction: Move) -> usize {
        let text = self.text();
        let (before, after) = text.split_at(self.cursor);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = after.find('\n').map_or(text.len(), |at| self.cursor + at);
        match direction {
            Move::Left => before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at),
            Move::Right => after.graphemes(true).next().map_or(self.cursor, |next| self.cursor + next.len()),
            Move::WordLeft => {
                let mut words = before.split_word_bound_indices().filter(|(_, word)| is_word(word));
                words.next_back().map_or(0, |(at, _)| at)
            }
            Move::WordRight => {
                let mut words = after.split_word_bound_indices().filter(|(_, word)| is_word(word));
                words.next().map_or(text.len(), |(at, word)| self.cursor + at + word.len())
            }
            Move::LineStart => line_start,
            Move::LineEnd => line_end,
            Move::Start => 0,
            Move::End => text.len(),
            Move::Up if line_start == 0 => 0,
            Move::Up => {
                let above = text[..line_start - 1].rfind('\n').map_or(0, |at| at + 1);
                self.beside(above, line_start)
            }
            Move::Down if line_end == text.len() => line_end,
            Move::Down => self.beside(line_end + 1, line_start),
        }
    }

    /// The same column in the line that begins at `line`.
    fn beside(&self, line: usize, own: usize) -> usize {
        let text = self.text();
        let column = text[own..self.cursor].graphemes(true).count();
        let end = text[line..].find('\n').map_or(text.len(), |at| line + at);
        let mut places = text[line..end].grapheme_indices(true).map(|(at, _)| line + at);
        places.nth(column).unwrap_or(end)
    }
}

fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}
