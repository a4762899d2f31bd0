//! Text with blocks: pasted text and pictures. Blocks are known by their position, never by the words that stand for
//! them, so text that looks like such words is only text. Pure.

use std::ops::Range;

use multitap_event::{Image, Prompt};

const PICTURE: &str = "[Image #";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Piece {
    text: String,
    /// In their order, without overlaps.
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    at: Range<usize>,
    what: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Text(String),
    Picture(Image),
}

impl Piece {
    pub(super) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), blocks: Vec::new() }
    }

    pub(super) fn block(words: String, what: Content) -> Self {
        let at = 0..words.len();
        Self { text: words, blocks: vec![Block { at, what }] }
    }

    pub(super) fn picture(number: usize, name: &str, image: Image) -> Self {
        // The name must not end the words or the line.
        let name: String = name.chars().map(|c| if c.is_control() || c == ']' { '_' } else { c }).collect();
        Self::block(format!("{PICTURE}{number}: {name}]"), Content::Picture(image))
    }

    /// A prompt as it was typed. A picture stands where its words are, or else at the end.
    pub(super) fn of(prompt: &Prompt) -> Self {
        let words = words_of_pictures(&prompt.text);
        let mut piece = Self::plain(&prompt.text);
        let mut images = prompt.images.iter().cloned();
        let placed = words.into_iter().zip(images.by_ref());
        piece.blocks = placed.map(|(at, image)| Block { at, what: Content::Picture(image) }).collect();
        for image in images {
            let media_type = image.media_type.clone();
            let picture = Self::picture(piece.highest() + 1, &media_type, image);
            if piece.text.ends_with(|last: char| !last.is_whitespace()) {
                piece.put(piece.text.len(), Self::plain(" "));
            }
            piece.put(piece.text.len(), picture);
        }
        piece
    }

    /// Another text, with the pictures whose words it still has.
    pub(super) fn rewritten(&self, text: &str) -> Self {
        let mut piece = Self::plain(text);
        for block in &self.blocks {
            let Content::Picture(_) = block.what else { continue };
            let words = &self.text[block.at.clone()];
            let is_free = |at: &Range<usize>| piece.blocks.iter().all(|b| b.at.end <= at.start || at.end <= b.at.start);
            let found = text.match_indices(words).map(|(at, words)| at..at + words.len()).find(is_free);
            piece.blocks.extend(found.map(|at| Block { at, what: block.what.clone() }));
        }
        piece.blocks.sort_by_key(|block| block.at.start);
        piece
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    pub(super) fn highest(&self) -> usize {
        let numbers = words_of_pictures(&self.text).into_iter().filter_map(|at| number(&self.text[at]));
        numbers.max().unwrap_or(0)
    }

    /// The text with pasted text as it was pasted. The words of pictures stay.
    pub(super) fn whole(&self) -> String {
        let (mut whole, mut at) = (String::with_capacity(self.text.len()), 0);
        for block in &self.blocks {
            if let Content::Text(pasted) = &block.what {
                whole.push_str(&self.text[at..block.at.start]);
                whole.push_str(pasted);
                at = block.at.end;
            }
        }
        whole.push_str(&self.text[at..]);
        whole
    }

    /// Removes pictures and their placeholders.
    pub(super) fn without_pictures(mut self) -> Self {
        while let Some(block) = self.blocks.iter().find(|block| matches!(block.what, Content::Picture(_))) {
            let mut at = block.at.clone();
            // One of the spaces around it stays.
            if self.text[at.end..].starts_with(' ') && (at.start == 0 || self.text[..at.start].ends_with(' ')) {
                at.end += 1;
            }
            self.take(at);
        }
        self
    }

    pub(super) fn images(&self) -> Vec<Image> {
        let image = |block: &Block| if let Content::Picture(image) = &block.what { Some(image.clone()) } else { None };
        self.blocks.iter().filter_map(image).collect()
    }

    pub(super) fn around(&self, at: usize) -> Option<Range<usize>> {
        self.blocks.iter().map(|block| block.at.clone()).find(|block| block.start < at && at < block.end)
    }

    /// Removes a range, and with it whole blocks. Returns where it began, and what was removed.
    pub(super) fn take(&mut self, range: Range<usize>) -> (usize, Self) {
        let from = self.around(range.start).map_or(range.start, |block| block.start);
        let to = self.around(range.end).map_or(range.end, |block| block.end);
        let text = self.text.drain(from..to).collect();
        let mut gone = Vec::new();
        self.blocks.retain_mut(|block| {
            if block.at.start >= to {
                block.at = block.at.start - (to - from)..block.at.end - (to - from);
                return true;
            }
            if block.at.start < from {
                return true;
            }
            gone.push(Block { at: block.at.start - from..block.at.end - from, what: block.what.clone() });
            false
        });
        (from, Self { text, blocks: gone })
    }

    /// Inserts a piece. `at` must not be inside a block.
    pub(super) fn put(&mut self, at: usize, piece: Self) {
        let by = piece.text.len();
        self.text.insert_str(at, &piece.text);
        for block in &mut self.blocks {
            if block.at.start >= at {
                block.at = block.at.start + by..block.at.end + by;
            }
        }
        let before = self.blocks.iter().filter(|block| block.at.end <= at).count();
        let moved = piece.blocks.into_iter().map(|block| Block { at: block.at.start + at..block.at.end + at, ..block });
        self.blocks.splice(before..before, moved);
    }
}

/// The ranges of words that look like those of a picture.
fn words_of_pictures(text: &str) -> Vec<Range<usize>> {
    let words = text.match_indices(PICTURE).filter_map(|(from, _)| {
        let length = text[from..].find([']', '\n'])? + 1;
        let at = from..from + length;
        number(&text[at.clone()]).map(|_| at)
    });
    let mut found: Vec<Range<usize>> = Vec::new();
    for at in words {
        if found.last().is_none_or(|last| last.end <= at.start) {
            found.push(at);
        }
    }
    found
}

fn number(words: &str) -> Option<usize> {
    words.strip_prefix(PICTURE)?.strip_suffix(']')?.split_once(": ")?.0.parse().ok()
}
