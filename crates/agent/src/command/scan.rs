//! A look at a line that nobody can be sure of, for commands that must not run: what can be seen in it.
//!
//! It sees too much rather than too little, and still not all: what a line makes up while it runs cannot be seen. So
//! what is not seen here is asked about, never waved through.

use super::runner::{base, with_arguments};
use super::{RESERVED, Script};

/// The commands that can be seen in a line. Every word is held a few times at most, however many commands may begin at
/// it, so that the cost is linear in the length of the line.
#[derive(Debug)]
pub(crate) struct Sight {
    pieces: Vec<Piece>,
}

/// Words without anything of the shell's own between them.
#[derive(Debug)]
struct Piece {
    words: Vec<String>,
    /// Places at which a command may begin.
    starts: Vec<usize>,
    /// The place of a program that runs others, behind which any word may be a command.
    runner: Option<usize>,
}

impl Sight {
    /// The commands of a line that reads plainly.
    pub(crate) fn of(script: &Script) -> Self {
        let piece = |words: Vec<String>| Piece { words, starts: vec![0], runner: None };
        let words = script.commands.iter().map(|simple| simple.words.iter().map(|word| word.text.clone()).collect());
        Self { pieces: words.map(piece).collect() }
    }

    /// What may be a command in any other line.
    pub(crate) fn through(line: &str) -> Self {
        // What is quoted may be a line of its own, and quotes within a word only disguise it.
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

    /// Whether some command in sight begins with these words.
    pub(crate) fn begins_with(&self, begin: &[String]) -> bool {
        let Some((name, more)) = begin.split_first() else { return false };
        self.pieces.iter().any(|piece| {
            piece.starts.iter().any(|start| piece.is_called(*start, name) && piece.words[start + 1..].starts_with(more))
        })
    }

    /// Whether some command in sight may begin so once the flags behind its name are left out, as in `git -C x push`.
    /// Which of the words behind a flag are its value, only the program knows.
    pub(crate) fn may_begin_with(&self, begin: &[String]) -> bool {
        let Some((name, more)) = begin.split_first() else { return false };
        self.pieces.iter().any(|piece| {
            let Some(last) = piece.last_place_before(more) else { return false };
            piece.starts.iter().take_while(|start| **start < last).any(|start| {
                piece.is_called(*start, name) && piece.words.get(start + 1).is_some_and(|word| word.starts_with('-'))
            })
        })
    }

    /// How many words and places are held, for tests of growth.
    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.pieces.iter().map(|piece| piece.words.len() + piece.starts.len()).sum()
    }
}

impl Piece {
    /// A command may begin at the first word, behind words of the shell's own, and anywhere behind a program that runs
    /// others.
    fn of(words: Vec<String>) -> Self {
        let (mut starts, mut runner, mut begins) = (Vec::new(), None, true);
        for (place, word) in words.iter().enumerate() {
            if begins || runner.is_some() {
                starts.push(place);
            }
            let shells_own = RESERVED.contains(&word.as_str()) || super::assigns(word);
            // The arguments are looked through for the first word alone that is not the shell's own: a linear cost.
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

    /// Whether the command that may begin there has that name. Among the arguments of a program that runs others it may
    /// stand behind the signs of an option or a setting, as in `alias.x=!rm`.
    fn is_called(&self, start: usize, name: &str) -> bool {
        let word = self.words[start].as_str();
        let is_argument = self.runner.is_some_and(|runner| runner < start);
        base(word) == name || is_argument && word.rsplit(['=', '!', ':', ',']).next().map(base) == Some(name)
    }

    /// The last place before which all these words still stand behind one another, with others between them.
    fn last_place_before(&self, words: &[String]) -> Option<usize> {
        let mut end = self.words.len();
        for word in words.iter().rev() {
            end = self.words[..end].iter().rposition(|there| there == word)?;
        }
        Some(end)
    }
}
