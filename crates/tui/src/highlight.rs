//! Syntax highlighting: keywords, strings, numbers and comments. Pure.
//!
//! A small lexer with a table of languages, not a grammar: it costs nothing to start, is fast enough to run again for each
//! piece of a text that is still being written, and uses the palette of the terminal.

mod language;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use self::language::{Language, Shape};
use crate::theme::Theme;

pub(crate) fn lines(code: &str, language: &str, theme: Theme) -> Vec<Line<'static>> {
    let mut lines = Code::new(language, theme);
    code.split('\n').map(|line| lines.line(line)).collect()
}

#[derive(Debug, Clone)]
pub(crate) struct Code {
    theme: Theme,
    lexer: Option<Lexer>,
}

impl Code {
    pub(crate) fn new(language: &str, theme: Theme) -> Self {
        let lexer = language::find(language).map(|language| Lexer { language, theme, within: None });
        Self { theme, lexer }
    }

    pub(crate) fn line(&mut self, line: &str) -> Line<'static> {
        match &mut self.lexer {
            Some(lexer) if lexer.language.shape == Shape::Diff => diff(line, self.theme),
            Some(lexer) => lexer.line(line),
            None => Line::raw(line.to_owned()),
        }
    }
}

fn diff(line: &str, theme: Theme) -> Line<'static> {
    let style = match line.chars().next() {
        Some('+') => theme.good(),
        Some('-') => theme.bad(),
        Some('@') => theme.accent(),
        _ => Style::new(),
    };
    // A margin is put before the spans, and the style of the line itself would be lost.
    Line::from(Span::styled(line.to_owned(), style))
}

#[derive(Debug, Clone)]
struct Lexer {
    language: &'static Language,
    theme: Theme,
    /// The construct that the last line left open: its end, and its style.
    within: Option<(&'static str, Style)>,
}

impl Lexer {
    fn line(&mut self, line: &str) -> Line<'static> {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let before = &line[..line.len() - rest.len()];
            let (length, style) = self.token(before, rest);
            let (token, after) = rest.split_at(length);
            match spans.last_mut() {
                Some(last) if last.style == style => last.content.to_mut().push_str(token),
                _ => spans.push(Span::styled(token.to_owned(), style)),
            }
            rest = after;
        }
        Line::from(spans)
    }

    /// The length of the next token, at least one character, and its style.
    fn token(&mut self, before: &str, rest: &str) -> (usize, Style) {
        if let Some((end, style)) = self.within {
            return (self.until(rest, 0, end, style), style);
        }
        if self.comments(before, rest) {
            return (rest.len(), self.theme.thought());
        }
        if let Some((start, end)) = self.language.block_comment
            && rest.starts_with(start)
        {
            let style = self.theme.thought();
            return (self.until(rest, start.len(), end, style), style);
        }
        if let Some(quote) = self.language.quotes.iter().find(|quote| rest.starts_with(**quote)) {
            return self.string(rest, quote);
        }
        let first = rest.chars().next().unwrap_or_default();
        if first.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).unwrap_or(rest.len());
            return (length, self.theme.warning());
        }
        if first.is_alphabetic() || first == '_' {
            return self.word(rest);
        }
        (first.len_utf8(), Style::new())
    }

    fn comments(&self, before: &str, rest: &str) -> bool {
        self.language.line_comments.iter().any(|sign| rest.starts_with(sign))
            // Within a word, `#` begins no comment.
            && (!rest.starts_with('#') || before.is_empty() || before.ends_with([' ', '(', '[', ',', ';']))
    }

    /// The length up to the end of a token that may span lines.
    fn until(&mut self, rest: &str, from: usize, end: &'static str, style: Style) -> usize {
        let found = find_unescaped(&rest[from..], end);
        self.within = if found.is_none() { Some((end, style)) } else { None };
        found.map_or(rest.len(), |at| from + at + end.len())
    }

    fn string(&mut self, rest: &str, quote: &'static str) -> (usize, Style) {
        let style = self.theme.good();
        if quote == "'" && self.language.lifetimes && !is_character(rest) {
            let length = rest[1..].find(|c: char| !c.is_alphanumeric() && c != '_').map_or(rest.len(), |at| at + 1);
            return (length, self.theme.warning());
        }
        let length = match find_unescaped(&rest[quote.len()..], quote) {
            Some(at) => quote.len() + at + quote.len(),
            None if quote.len() > 1 || self.language.long_quotes.contains(&quote) => {
                self.within = Some((quote, style));
                rest.len()
            }
            None => rest.len(),
        };
        if self.language.shape == Shape::Data && is_key(&rest[length..]) {
            return (length, self.theme.accent());
        }
        (length, style)
    }

    fn word(&self, rest: &str) -> (usize, Style) {
        let goes_on = |c: char| c.is_alphanumeric() || c == '_' || (c == '-' && self.language.shape == Shape::Data);
        let length = rest.find(|c| !goes_on(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        let is_own = |known: &str| match self.language.any_case {
            true => known.eq_ignore_ascii_case(word),
            false => known == word,
        };
        let style = if self.language.words.split_ascii_whitespace().any(is_own) {
            self.theme.keyword()
        } else if self.language.shape == Shape::Data && is_key(after) {
            self.theme.accent()
        } else if self.language.constants.contains(&word) {
            self.theme.warning()
        } else {
            Style::new()
        };
        (length, style)
    }
}

fn is_key(after: &str) -> bool {
    after.trim_start().starts_with([':', '=']) && !after.trim_start().starts_with("://")
}

/// Whether a quote begins a character literal, not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut letters = rest.chars().skip(1);
    matches!((letters.next(), letters.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

fn find_unescaped(text: &str, end: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        if !escaped && text[at..].starts_with(end) {
            return Some(at);
        }
        escaped = !escaped && letter == '\\' && end != "*/" && end != "-->";
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preferences::Colours;

    /// Each character as a letter for its kind of token.
    fn kinds(code: &str, language: &str) -> String {
        let theme = Theme::new(Colours::Sixteen);
        let letter = |style: Style| match style {
            style if style == theme.keyword() => 'w',
            style if style == theme.good() => 's',
            style if style == theme.warning() => 'n',
            style if style == theme.thought() => 'c',
            style if style == theme.accent() => 'k',
            _ => '.',
        };
        let line = |line: &Line<'_>| {
            let spans =
                line.spans.iter().map(|span| letter(span.style).to_string().repeat(span.content.chars().count()));
            spans.collect::<String>()
        };
        lines(code, language, theme).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn words_strings_numbers_and_comments_are_told_apart() {
        assert_eq!(kinds("fn f<'a>() -> char { 'x' } // why", "rust"), "ww...nn..............sss...cccccc");
        assert_eq!(kinds("let s = \"a \\\" b\"; 0xff", "rs"), "www.....ssssssss..nnnn");
        assert_eq!(kinds("x = 'it'  # no", "python"), "....ssss..cccc");
        assert_eq!(kinds("echo ${#a}b # yes", "sh"), "wwww........ccccc");
        assert_eq!(kinds("{\"key\": true, \"n\": [1.5]}", "json"), ".kkkkk..nnnn..kkk...nnn..");
        assert_eq!(kinds("SELECT a from B", "sql"), "wwwwww...wwww..");
        assert_eq!(kinds("+new\n-old", "diff").len(), 9);
    }

    #[test]
    fn what_goes_on_over_lines_is_followed() {
        assert_eq!(kinds("a /* one\ntwo */ b", "ts"), "..cccccc\ncccccc..");
        assert_eq!(kinds("\"\"\"doc\nmore\"\"\" x", "py"), "ssssss\nsssssss..");
        assert_eq!(kinds("`a\nb` c", "js"), "ss\nss..");
    }

    #[test]
    fn nothing_is_added_and_nothing_lost() {
        let code = "fn 日本() { '\u{1f600}' }\n\"unfinished \\";
        for language in ["rust", "python", "js", "sh", "json", "toml", "html", "nothing of the sort", ""] {
            let shown: Vec<String> =
                lines(code, language, Theme::new(Colours::Sixteen)).iter().map(ToString::to_string).collect();
            assert_eq!(shown.join("\n"), code, "{language}");
        }
    }
}
