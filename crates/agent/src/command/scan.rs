//! Finds the commands in a shell command that cannot be parsed with certainty, to enforce block rules.
//!
//! Reports too many commands rather than too few, and still not all: commands that are built at run time are not
//! visible. So a command that is not found here is asked about, never allowed.

use super::runner::{base, with_arguments};
use super::{RESERVED, Script};

/// The commands that may be in a shell command. Every word is stored a bounded number of times, so that the cost is
/// linear in the length of the input.
#[derive(Debug)]
pub(crate) struct Candidates {
    pieces: Vec<Piece>,
}

/// Words without any shell syntax between them.
#[derive(Debug)]
struct Piece {
    words: Vec<String>,
    /// Indexes at which a command may begin.
    starts: Vec<usize>,
    /// Index of a program that runs others; any word after it may be a command.
    runner: Option<usize>,
}

impl Candidates {
    pub(crate) fn of(script: &Script) -> Self {
        let piece = |words: Vec<String>| Piece { words, starts: vec![0], runner: None };
        let words = script.commands.iter().map(|simple| simple.words.iter().map(|word| word.text.clone()).collect());
        Self { pieces: words.map(piece).collect() }
    }

    /// The possible commands of any other input.
    pub(crate) fn through(line: &str) -> Self {
        // Quoted text may be a command, and quotes within a word only disguise it.
        let unquoted: String = line.chars().filter(|char| !matches!(char, '\\' | '"' | '\'')).collect();
        let apart = line.replace(['"', '\'', '\\'], " ");
        let mut pieces = Vec::new();
        for text in [unquoted, apart] {
            for piece in text.split([';', '|', '&', '(', ')', '`', '{', '}', '\n', '<', '>', '$']) {
                let words: Vec<String> = piece.split_whitespace().map(str::to_owned).collect();
                if !words.is_empty() {
                    pieces.push(Piece::of(words));
                }
            }
        }
        Self { pieces }
    }

    pub(crate) fn begins_with(&self, begin: &[String]) -> bool {
        let Some((name, more)) = begin.split_first() else { return false };
        self.pieces.iter().any(|piece| {
            piece.starts.iter().any(|start| piece.is_called(*start, name) && piece.words[start + 1..].starts_with(more))
        })
    }

    /// Whether any candidate may begin with these words, ignoring options after the program's name, as in `git -C x
    /// push`. Which words are values of options, only the program knows.
    pub(crate) fn may_begin_with(&self, begin: &[String]) -> bool {
        let Some((name, more)) = begin.split_first() else { return false };
        self.pieces.iter().any(|piece| {
            let Some(last) = piece.last_place_before(more) else { return false };
            piece.starts.iter().take_while(|start| **start < last).any(|start| {
                piece.is_called(*start, name) && piece.words.get(start + 1).is_some_and(|word| word.starts_with('-'))
            })
        })
    }

    /// How many words and indexes are stored, for tests of growth.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.pieces.iter().map(|piece| piece.words.len() + piece.starts.len()).sum()
    }
}

impl Piece {
    /// A command may begin at the first word, after shell keywords, and anywhere after a program that runs others.
    fn of(words: Vec<String>) -> Self {
        let (mut starts, mut runner, mut begins) = (Vec::new(), None, true);
        for (place, word) in words.iter().enumerate() {
            if begins || runner.is_some() {
                starts.push(place);
            }
            let shells_own = RESERVED.contains(&word.as_str()) || super::assigns(word);
            // Linear cost: the arguments are searched only for the first word that is not a keyword.
            if begins && runner.is_none() {
                let arguments: Vec<&str> = match shells_own {
                    true => Vec::new(),
                    false => words[place + 1..].iter().map(String::as_str).collect(),
                };
                runner = with_arguments(word, &arguments).then_some(place);
            }
            begins &= shells_own;
        }
        Self { words, starts, runner }
    }

    /// Whether the command that may begin there has that name. After a program that runs others, the name may follow an
    /// option or a setting, as in `alias.x=!rm`.
    fn is_called(&self, start: usize, name: &str) -> bool {
        let word = self.words[start].as_str();
        let is_argument = self.runner.is_some_and(|runner| runner < start);
        base(word) == name || is_argument && word.rsplit(['=', '!', ':', ',']).next().map(base) == Some(name)
    }

    /// The last index from which all these words still follow in this order, with other words between them.
    fn last_place_before(&self, words: &[String]) -> Option<usize> {
        let mut end = self.words.len();
        for word in words.iter().rev() {
            end = self.words[..end].iter().rposition(|there| there == word)?;
        }
        Some(end)
    }
}
