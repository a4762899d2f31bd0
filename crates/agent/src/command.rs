//! Parses a shell command far enough to know which programs it runs, or reports that this is not certain.
//!
//! Pure. Understands words, quotes and separators between commands. Everything else (substitutions, redirections to
//! files, groups, loops, assignments …) makes the command [`Uncertain`], and the caller must ask. Being too careful
//! costs a question; being too sure costs a file.

mod links;
mod read_only;
mod runner;
mod scan;

use std::fmt;

use multitap_process::quote;

pub(crate) use read_only::Trust;
pub(crate) use runner::{is_runner, runs_others};
pub(crate) use scan::Candidates;

/// The simple commands of a shell command, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) commands: Vec<Simple>,
}

/// One command with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Word>,
}

/// One word, as the program receives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Whether the shell expands the word to file names.
    pub(crate) glob: bool,
    /// Whether the word begins with a `~` that the shell replaces by a home folder.
    home: bool,
    /// Whether part of the word was quoted, so that it is not a keyword of the shell.
    quoted: bool,
}

/// Why it is not certain which programs a shell command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{self:?}")]
pub(crate) enum Uncertain {
    /// A variable or a command substitution.
    Substitution,
    Redirection,
    Group,
    Assignment,
    Braces,
    /// Files in its folder decide which program it runs.
    Guess,
    Broken,
}

/// Keywords that begin something other than a simple command.
const RESERVED: [&str; 22] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while",
];

impl Script {
    /// Parses a command as a POSIX shell or bash would.
    pub(crate) fn parse(line: &str) -> Result<Self, Uncertain> {
        let mut reader = Reader { rest: line.chars().peekable(), commands: Vec::new(), simple: Simple::default() };
        reader.read()?;
        if reader.commands.is_empty() {
            return Err(Uncertain::Broken);
        }
        Ok(Self { commands: reader.commands })
    }

    /// Whether commands may be hidden in arguments of a program that runs other programs.
    pub(crate) fn hides_commands(&self) -> bool {
        self.commands.iter().any(Simple::runs_others)
    }
}

impl Simple {
    pub(crate) fn name(&self) -> &str {
        self.words.first().map_or("", |word| word.text.as_str())
    }

    pub(crate) fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether the command begins with these words, each without expansion.
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

/// Parser state: the rest of the input, the commands so far, and the current command.
struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    commands: Vec<Simple>,
    simple: Simple,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    /// Another command must follow.
    Open,
    /// Another command may follow.
    Closed,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Uncertain> {
        let mut joint = Separator::Closed;
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' | '\t' => self.skip(),
                // A line continuation; what follows may still begin a comment.
                '\\' if self.goes_on() => {
                    self.skip();
                    self.skip();
                }
                '\n' => {
                    self.skip();
                    if self.end_command()? {
                        joint = Separator::Closed;
                    }
                }
                '#' => while self.rest.next_if(|char| *char != '\n').is_some() {},
                ';' | '|' => {
                    self.skip();
                    let twice = self.rest.next_if_eq(&next).is_some();
                    if next == ';' && twice {
                        return Err(Uncertain::Group); // of a `case`
                    }
                    if next == '|' && !twice {
                        self.rest.next_if_eq(&'&');
                    }
                    joint = if next == '|' { Separator::Open } else { Separator::Closed };
                    self.must_end_command()?;
                }
                '&' => {
                    self.skip();
                    if self.rest.next_if_eq(&'>').is_some() {
                        self.rest.next_if_eq(&'>');
                        self.target()?;
                        continue;
                    }
                    joint = if self.rest.next_if_eq(&'&').is_some() { Separator::Open } else { Separator::Closed };
                    self.must_end_command()?;
                }
                '(' | ')' => return Err(Uncertain::Group),
                '<' | '>' => self.redirect()?,
                _ => self.word()?,
            }
        }
        match (self.end_command()?, joint) {
            (false, Separator::Open) => Err(Uncertain::Broken),
            _ => Ok(()),
        }
    }

    /// Whether a line continuation (backslash, newline) comes next; the shell removes it before it splits words.
    fn goes_on(&self) -> bool {
        let mut ahead = self.rest.clone();
        ahead.next() == Some('\\') && ahead.next() == Some('\n')
    }

    fn skip(&mut self) {
        self.rest.next();
    }

    /// Ends the current command, if there is one.
    fn end_command(&mut self) -> Result<bool, Uncertain> {
        let simple = std::mem::take(&mut self.simple);
        let Some(first) = simple.words.first() else { return Ok(false) };
        if first.glob || first.text.is_empty() || first.text.starts_with('~') {
            return Err(Uncertain::Guess);
        }
        if RESERVED.contains(&first.text.as_str()) {
            return Err(Uncertain::Group);
        }
        self.commands.push(simple);
        Ok(true)
    }

    fn must_end_command(&mut self) -> Result<(), Uncertain> {
        if self.end_command()? { Ok(()) } else { Err(Uncertain::Broken) }
    }

    /// Reads a word, or the file descriptor number before a redirection.
    fn word(&mut self) -> Result<(), Uncertain> {
        let word = self.take_word()?;
        let number = !word.quoted && !word.text.is_empty() && word.text.chars().all(|char| char.is_ascii_digit());
        if number && matches!(self.rest.peek(), Some('<' | '>')) {
            return self.redirect();
        }
        if self.simple.words.is_empty() && assigns(&word.text) {
            return Err(Uncertain::Assignment);
        }
        self.simple.words.push(word);
        Ok(())
    }

    /// Accepts redirections that touch no file: to another descriptor or to `/dev/null`.
    fn redirect(&mut self) -> Result<(), Uncertain> {
        let into = self.rest.next();
        if self.rest.next_if_eq(&'&').is_some() {
            let stream = self.take_word()?;
            let known = !stream.text.is_empty() && stream.text.chars().all(|char| char.is_ascii_digit());
            return if known { Ok(()) } else { Err(Uncertain::Redirection) };
        }
        match into {
            Some('>') => {
                self.rest.next_if(|char| matches!(char, '>' | '|'));
                self.target()
            }
            _ => self.target(),
        }
    }

    fn target(&mut self) -> Result<(), Uncertain> {
        while self.rest.next_if(|char| matches!(char, ' ' | '\t')).is_some() {}
        let target = self.take_word()?;
        if target.text == "/dev/null" { Ok(()) } else { Err(Uncertain::Redirection) }
    }

    /// Reads up to the end of the word; `None` if there is no word.
    fn take_word(&mut self) -> Result<Word, Uncertain> {
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
                        None => return Err(Uncertain::Broken),
                    }
                }
                '$' | '`' => return Err(Uncertain::Substitution),
                '{' | '}' => return Err(Uncertain::Braces),
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

    fn single(&mut self, word: &mut Word) -> Result<(), Uncertain> {
        word.quoted = true;
        loop {
            match self.rest.next() {
                Some('\'') => return Ok(()),
                Some(char) => word.text.push(char),
                None => return Err(Uncertain::Broken),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Uncertain> {
        word.quoted = true;
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err(Uncertain::Substitution),
                // A dollar sign at the end of a pattern is literal.
                Some('$') if !matches!(self.rest.peek(), Some('"' | ' ' | '|' | ')' | '/')) => {
                    return Err(Uncertain::Substitution);
                }
                Some('\\') => match self.rest.next() {
                    Some('\n') => {}
                    Some(char @ ('$' | '`' | '"' | '\\')) => word.text.push(char),
                    Some(char) => word.text.extend(['\\', char]),
                    None => return Err(Uncertain::Broken),
                },
                Some(char) => word.text.push(char),
                None => return Err(Uncertain::Broken),
            }
        }
    }
}

/// Whether the word is an assignment (`NAME=…`, `NAME+=…` or `NAME[…]=…`), quoted or not.
fn assigns(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests;
