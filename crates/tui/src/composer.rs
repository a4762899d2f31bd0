//! What is being typed: text of any number of lines, a cursor, and blocks that were pasted: text or pictures. Pure.

use multitap_event::{Image, Prompt};
use unicode_segmentation::UnicodeSegmentation as _;

/// A paste of so many lines is shown as one block.
const BLOCK_LINES: usize = 5;
/// And one of so many bytes too.
const BLOCK_BYTES: usize = 2000;

/// The text under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Composer {
    text: String,
    /// A byte of the text, always between two graphemes.
    cursor: usize,
    blocks: Vec<Block>,
    /// What was cut last.
    cut: String,
    pasted: usize,
}

/// Something that was put in as a whole, and the words that stand for it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    words: String,
    what: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    Text(String),
    Picture(Image),
}

/// A way to move.
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

/// A piece to take out.
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
    /// With that text, ready to go on at its end.
    pub(crate) fn with(text: &str) -> Self {
        Self { text: text.to_owned(), cursor: text.len(), ..Self::default() }
    }

    /// What is shown.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// What was meant: blocks as they were pasted.
    pub(crate) fn whole(&self) -> String {
        self.blocks.iter().fold(self.text.clone(), |text, block| match &block.what {
            Content::Text(pasted) => text.replacen(&block.words, pasted, 1),
            // The words stay where the picture is meant to be.
            Content::Picture(_) => text,
        })
    }

    /// The same as a prompt, with the pictures that still stand in it.
    pub(crate) fn prompt(&self) -> Prompt {
        let images = self.blocks.iter().filter_map(|block| match &block.what {
            Content::Picture(image) => self.text.contains(&block.words).then(|| image.clone()),
            Content::Text(_) => None,
        });
        Prompt { images: images.collect(), ..Prompt::text(self.whole()) }
    }

    pub(crate) fn clear(&mut self) {
        let cut = std::mem::take(&mut self.cut);
        *self = Self { cut, ..Self::default() };
    }

    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Something that came at once. Long things are shown as one block.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines < BLOCK_LINES && text.len() < BLOCK_BYTES {
            return self.insert(&text);
        }
        self.pasted += 1;
        let words = format!("[Pasted text #{}: {lines} lines]", self.pasted);
        self.insert(&words);
        self.blocks.push(Block { words, what: Content::Text(text) });
    }

    /// Puts a picture in, shown by its name.
    pub(crate) fn picture(&mut self, name: &str, image: Image) {
        self.pasted += 1;
        let words = format!("[Image #{}: {name}]", self.pasted);
        self.insert(&words);
        self.blocks.push(Block { words, what: Content::Picture(image) });
    }

    /// Something else instead of what stands between that byte and the cursor.
    pub(crate) fn replace_from(&mut self, from: usize, text: &str) {
        self.text.replace_range(from..self.cursor, text);
        self.cursor = from + text.len();
    }

    /// Puts back what was cut last.
    pub(crate) fn yank(&mut self) {
        let cut = self.cut.clone();
        self.insert(&cut);
    }

    pub(crate) fn go(&mut self, way: Move) {
        self.cursor = self.place(way);
    }

    pub(crate) fn erase(&mut self, what: Erase) {
        let to = match what {
            Erase::Back => return self.erase_back(),
            Erase::Forward => self.place(Move::Right),
            Erase::WordBack => self.place(Move::WordLeft),
            Erase::WordForward => self.place(Move::WordRight),
            Erase::ToLineStart => self.place(Move::LineStart),
            Erase::ToLineEnd => self.place(Move::LineEnd),
        };
        // At the end of a line its end is what is erased.
        let to = if to == self.cursor && what == Erase::ToLineEnd { self.place(Move::Right) } else { to };
        let (from, to) = if to < self.cursor { (to, self.cursor) } else { (self.cursor, to) };
        let gone: String = self.text.drain(from..to).collect();
        self.cursor = from;
        if what != Erase::Forward {
            self.cut = gone;
        }
    }

    /// A block goes as a whole.
    fn erase_back(&mut self) {
        let before = &self.text[..self.cursor];
        let block = self.blocks.iter().position(|block| before.ends_with(&block.words));
        let from = match block {
            Some(at) => self.cursor - self.blocks.remove(at).words.len(),
            None => self.place(Move::Left),
        };
        self.text.drain(from..self.cursor);
        self.cursor = from;
    }

    /// Whether the cursor can go no further that way: up from the first line, right from the end.
    pub(crate) fn is_at_edge(&self, way: Move) -> bool {
        match way {
            Move::Left => self.cursor == 0,
            Move::Right => self.cursor == self.text.len(),
            Move::Up => !self.text[..self.cursor].contains('\n'),
            Move::Down => !self.text[self.cursor..].contains('\n'),
            _ => false,
        }
    }

    fn place(&self, way: Move) -> usize {
        let (before, after) = self.text.split_at(self.cursor);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = after.find('\n').map_or(self.text.len(), |at| self.cursor + at);
        match way {
            Move::Left => before.grapheme_indices(true).next_back().map_or(0, |(at, _)| at),
            Move::Right => after.graphemes(true).next().map_or(self.cursor, |next| self.cursor + next.len()),
            Move::WordLeft => {
                let mut words = before.split_word_bound_indices().filter(|(_, word)| is_word(word));
                words.next_back().map_or(0, |(at, _)| at)
            }
            Move::WordRight => {
                let mut words = after.split_word_bound_indices().filter(|(_, word)| is_word(word));
                words.next().map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
            }
            Move::LineStart => line_start,
            Move::LineEnd => line_end,
            Move::Start => 0,
            Move::End => self.text.len(),
            Move::Up if line_start == 0 => 0,
            Move::Up => {
                let above = self.text[..line_start - 1].rfind('\n').map_or(0, |at| at + 1);
                self.beside(above, line_start)
            }
            Move::Down if line_end == self.text.len() => line_end,
            Move::Down => self.beside(line_end + 1, line_start),
        }
    }

    /// The place in the line that begins at `line` as far in as the cursor is in its own.
    fn beside(&self, line: usize, own: usize) -> usize {
        let column = self.text[own..self.cursor].graphemes(true).count();
        let end = self.text[line..].find('\n').map_or(self.text.len(), |at| line + at);
        let mut places = self.text[line..end].grapheme_indices(true).map(|(at, _)| line + at);
        places.nth(column).unwrap_or(end)
    }
}

fn is_word(word: &str) -> bool {
    word.chars().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphemes_are_never_cut() {
        let mut composer = Composer::with("a👩‍👩‍👧é");
        composer.erase(Erase::Back);
        composer.erase(Erase::Back);
        assert_eq!(composer.text(), "a");
    }

    #[test]
    fn lines_are_walked_in_the_same_column() {
        let mut composer = Composer::with("one\n日本語 two\nx");
        composer.go(Move::Up);
        assert_eq!(&composer.text()[..composer.cursor()], "one\n日");
        composer.go(Move::LineEnd);
        composer.go(Move::Up);
        assert_eq!(&composer.text()[..composer.cursor()], "one");
        assert!(composer.is_at_edge(Move::Up));
        composer.go(Move::Up);
        assert_eq!(composer.cursor(), 0);
    }

    #[test]
    fn words_are_cut_and_put_back() {
        let mut composer = Composer::with("fix the tests");
        composer.erase(Erase::WordBack);
        assert_eq!(composer.text(), "fix the ");
        composer.go(Move::Start);
        composer.yank();
        assert_eq!(composer.text(), "testsfix the ");
        composer.erase(Erase::ToLineEnd);
        assert_eq!(composer.text(), "tests");
    }

    #[test]
    fn what_is_long_is_pasted_as_one_block() {
        let mut composer = Composer::with("see ");
        let long = "line\n".repeat(20);
        composer.paste(&long);
        assert_eq!(composer.text(), "see [Pasted text #1: 20 lines]");
        assert_eq!(composer.whole(), format!("see {long}"));
        composer.erase(Erase::Back);
        assert_eq!(composer.whole(), "see ");
        composer.paste("short\r\nlines");
        assert_eq!(composer.whole(), "see short\nlines");
    }

    #[test]
    fn a_picture_goes_along_while_its_words_stand() {
        let image = Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
        let mut composer = Composer::with("what is ");
        composer.picture("cat.png", image.clone());
        let prompt = composer.prompt();
        assert_eq!((prompt.text.as_str(), prompt.images), ("what is [Image #1: cat.png]", vec![image]));
        composer.erase(Erase::Back);
        assert_eq!(composer.prompt(), Prompt::text("what is "));
    }
}
