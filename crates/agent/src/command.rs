//! A line for the shell, read far enough to be sure of what it runs, or told apart as one that is not.
//!
//! Pure. It knows no more of the shell than it can be certain of: words, quotes, and what stands between commands.
//! Everything else (substitutions, files written to, groups, loops, assignments …) makes the line [`NotSure`], and
//! whoever judges it must ask. Being too careful costs a question; being too sure costs a file.

mod links;
mod looks;
mod runner;
mod scan;

use std::fmt;

pub(crate) use looks::Trust;
pub(crate) use runner::{is_runner, runs_others};
pub(crate) use scan::Sight;

/// What a line runs: its simple commands, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) commands: Vec<Simple>,
}

/// One command with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Word>,
}

/// One word, as the program gets it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// The shell puts names of files in its place.
    pub(crate) glob: bool,
    /// It begins with a `~` that the shell puts a home folder in the place of.
    home: bool,
    /// A part of it was quoted, so it is no word of the shell's own.
    quoted: bool,
}

/// Why nobody can say what a line runs without running it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSure {
    #[error("it puts something in the place of a variable or a command")]
    Substitution,
    #[error("it reads from or writes to a file")]
    Redirection,
    #[error("it has commands within commands")]
    Group,
    #[error("it sets a variable")]
    Assignment,
    #[error("its braces make several words of one")]
    Braces,
    #[error("which program it runs depends on the files around it")]
    Guess,
    #[error("it is not whole")]
    Broken,
}

/// Words that begin something other than a simple command.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while",
];

impl Script {
    /// Reads a line as a POSIX shell or bash would.
    pub(crate) fn parse(line: &str) -> Result<Self, NotSure> {
        let mut reader = Reader { rest: line.chars().peekable(), commands: Vec::new(), simple: Simple::default() };
        reader.read()?;
        if reader.commands.is_empty() {
            return Err(NotSure::Broken);
        }
        Ok(Self { commands: reader.commands })
    }

    /// Whether commands may be hidden in it although it reads plainly: as arguments of a program that runs them.
    pub(crate) fn hides_commands(&self) -> bool {
        self.commands.iter().any(Simple::runs_others)
    }
}

impl Simple {
    /// The name it is called by.
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", |word| word.text.as_str())
    }

    pub(crate) fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether it begins with these words, each of them certain.
    pub(crate) fn begins_with(&self, words: &[String]) -> bool {
        let is = |(word, expected): (&Word, &String)| !word.glob && word.text == *expected;
        self.words.len() >= words.len() && self.words.iter().zip(words).all(is)
    }
}

impl fmt::Display for Simple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| word.text.clone()).collect();
        f.write_str(&quote(&words))
    }
}

/// One line that the shell reads as exactly these words.
pub(crate) fn quote(words: &[String]) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "_-./:@%+,=".contains(char);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// What is read, what was read, and the command that is being read.
struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    commands: Vec<Simple>,
    simple: Simple,
}

/// What stood after a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    /// Another command must follow.
    Open,
    /// Another command may follow.
    Closed,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), NotSure> {
        let mut joint = Joint::Closed;
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' | '\t' => self.skip(),
                // The line goes on, and what comes next may still begin a comment.
                '\\' if self.goes_on() => {
                    self.skip();
                    self.skip();
                }
                '\n' => {
                    self.skip();
                    if self.end_command()? {
                        joint = Joint::Closed;
                    }
                }
                '#' => while self.rest.next_if(|char| *char != '\n').is_some() {},
                ';' | '|' => {
                    self.skip();
                    let twice = self.rest.next_if_eq(&next).is_some();
                    if next == ';' && twice {
                        return Err(NotSure::Group); // of a `case`
                    }
                    if next == '|' && !twice {
                        self.rest.next_if_eq(&'&');
                    }
                    joint = if next == '|' { Joint::Open } else { Joint::Closed };
                    self.must_end_command()?;
                }
                '&' => {
                    self.skip();
                    if self.rest.next_if_eq(&'>').is_some() {
                        self.rest.next_if_eq(&'>');
                        self.target()?;
                        continue;
                    }
                    joint = if self.rest.next_if_eq(&'&').is_some() { Joint::Open } else { Joint::Closed };
                    self.must_end_command()?;
                }
                '(' | ')' => return Err(NotSure::Group),
                '<' | '>' => self.redirect()?,
                _ => self.word()?,
            }
        }
        match (self.end_command()?, joint) {
            (false, Joint::Open) => Err(NotSure::Broken),
            _ => Ok(()),
        }
    }

    /// Whether a backslash and the end of a line come next, which the shell takes out before it looks for words.
    fn goes_on(&self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next() == Some('\\') && ahead.next() == Some('\n')
    }

    fn skip(&mut self) {
        self.rest.next();
    }

    /// Ends the command that is being read, if there is one.
    fn end_command(&mut self) -> Result<bool, NotSure> {
        let simple = std::mem::take(&mut self.simple);
        let Some(first) = simple.words.first() else { return Ok(false) };
        if first.glob || first.text.is_empty() || first.text.starts_with('~') {
            return Err(NotSure::Guess);
        }
        if RESERVED.contains(&first.text.as_str()) {
            return Err(NotSure::Group);
        }
        self.commands.push(simple);
        Ok(true)
    }

    fn must_end_command(&mut self) -> Result<(), NotSure> {
        if self.end_command()? { Ok(()) } else { Err(NotSure::Broken) }
    }

    /// Reads a word, or the number of what is redirected after it.
    fn word(&mut self) -> Result<(), NotSure> {
        let word = self.take_word()?;
        let number = !word.quoted && !word.text.is_empty() && word.text.chars().all(|char| char.is_ascii_digit());
        if number && matches!(self.rest.peek(), Some('<' | '>')) {
            return self.redirect();
        }
        if self.simple.words.is_empty() && assigns(&word.text) {
            return Err(NotSure::Assignment);
        }
        self.simple.words.push(word);
        Ok(())
    }

    /// Lets pass what touches no file: one stream into another, or into nothing.
    fn redirect(&mut self) -> Result<(), NotSure> {
        let into = self.rest.next();
        if self.rest.next_if_eq(&'&').is_some() {
            let stream = self.take_word()?;
            let known = !stream.text.is_empty() && stream.text.chars().all(|char| char.is_ascii_digit());
            return if known { Ok(()) } else { Err(NotSure::Redirection) };
        }
        match into {
            Some('>') => {
                self.rest.next_if(|char| matches!(char, '>' | '|'));
                self.target()
            }
            _ => self.target(),
        }
    }

    fn target(&mut self) -> Result<(), NotSure> {
        while self.rest.next_if(|char| matches!(char, ' ' | '\t')).is_some() {}
        let target = self.take_word()?;
        if target.text == "/dev/null" { Ok(()) } else { Err(NotSure::Redirection) }
    }

    /// The characters up to the next that ends a word; none if there is no word.
    fn take_word(&mut self) -> Result<Word, NotSure> {
        let mut word = Word::default();
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => break,
                '\'' => {
                    self.skip();
                    self.single(&mut word)?;
                }
                '"' => {
                    self.skip();
                    self.double(&mut word)?;
                }
                '\\' => {
                    self.skip();
                    match self.rest.next() {
                        Some('\n') => {}
                        Some(char) => {
                            word.quoted = true;
                            word.text.push(char);
                        }
                        None => return Err(NotSure::Broken),
                    }
                }
                '$' | '`' => return Err(NotSure::Substitution),
                '{' | '}' => return Err(NotSure::Braces),
                char => {
                    self.skip();
                    word.glob |= matches!(char, '*' | '?' | '[');
                    word.home |= char == '~' && word.text.is_empty() && !word.quoted;
                    word.text.push(char);
                }
            }
        }
        Ok(word)
    }

    fn single(&mut self, word: &mut Word) -> Result<(), NotSure> {
        word.quoted = true;
        loop {
            match self.rest.next() {
                Some('\'') => return Ok(()),
                Some(char) => word.text.push(char),
                None => return Err(NotSure::Broken),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), NotSure> {
        word.quoted = true;
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err(NotSure::Substitution),
                // A dollar sign at the end of a pattern stands for itself.
                Some('$') if !matches!(self.rest.peek(), Some('"' | ' ' | '|' | ')' | '/')) => {
                    return Err(NotSure::Substitution);
                }
                Some('\\') => match self.rest.next() {
                    Some('\n') => {}
                    Some(char @ ('$' | '`' | '"' | '\\')) => word.text.push(char),
                    Some(char) => word.text.extend(['\\', char]),
                    None => return Err(NotSure::Broken),
                },
                Some(char) => word.text.push(char),
                None => return Err(NotSure::Broken),
            }
        }
    }
}

/// `NAME=…`, `NAME+=…` or `NAME[…]=…`, whatever is quoted of it.
fn assigns(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests;
