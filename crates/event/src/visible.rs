//! Makes text of others safe to show: nothing in it controls a terminal, changes the text direction or is invisible.
//!
//! Agents, tools, clients and cloned folders write text that people read before they approve something. These functions
//! never shorten it: each character that a screen would obey, or would show as nothing, becomes a visible mark, and all
//! that follows stays. The screen, the command line and users of the libraries all call them. Pure, in linear time.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Text of several lines: line ends and tabs stay, everything else without a visible shape becomes a mark.
///
/// C0 controls and DEL become their Unicode pictures (`␛`), other characters their code (`\u202e`). A line end may be
/// `\r\n`; it becomes `\n`. Joiners and variation selectors stay where an emoji or a script needs them.
pub fn visible(text: &str) -> Cow<'_, str> {
    marked(text, Breaks::Stay)
}

/// Text for one line: line ends and tabs become marks as well, so that it cannot look like another line.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    marked(text, Breaks::Mark)
}

/// The output of a program: colours and erased line ends are left out, because they carry no text. A line that was
/// overwritten after `\r` is shown in its last state, after a `␍` that marks it. Otherwise like [`visible`].
pub fn visible_output(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            shown.push('\n');
        }
        let line = without_colours(line);
        let line = line.trim_end_matches('\r');
        match line.rfind('\r') {
            Some(at) => {
                if line[..at].contains(|c| c != '\r') {
                    shown.push('␍');
                }
                shown.push_str(&visible(&line[at + 1..]));
            }
            None => shown.push_str(&visible(line)),
        }
    }
    Cow::Owned(shown)
}

/// A character as a visible mark: a Unicode picture if there is one, else its code.
pub fn push_mark(shown: &mut String, c: char) {
    let code = u32::from(c);
    let picture = match c {
        '\0'..='\u{1f}' => char::from_u32(0x2400 + code),
        '\u{7f}' => Some('\u{2421}'),
        _ => None,
    };
    // Writing to a string cannot fail.
    match picture {
        Some(picture) => shown.push(picture),
        None if code <= 0xffff => write!(shown, "\\u{code:04x}").unwrap_or_default(),
        None => write!(shown, "\\u{{{code:x}}}").unwrap_or_default(),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Stay,
    Mark,
}

fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == b'\n')
}

fn marked(text: &str, breaks: Breaks) -> Cow<'_, str> {
    let is_break = |c| matches!(c, '\n' | '\t');
    if !text.contains(|c| is_hidden(c) || (breaks == Breaks::Mark && is_break(c))) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    let mut before = Before::default();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied();
        let stays = match c {
            '\n' | '\t' => breaks == Breaks::Stay,
            '\r' if after == Some('\n') && breaks == Breaks::Stay => continue,
            c => !is_hidden(c) || before.needs(c, after),
        };
        if stays {
            shown.push(c)
        } else {
            push_mark(&mut shown, c)
        }
        before = before.and(c, stays);
    }
    Cow::Owned(shown)
}

/// The character before one that may combine with it.
#[derive(Default)]
struct Before {
    last: Option<char>,
    /// An emoji, perhaps with its variation selector.
    is_emoji: bool,
    /// Number of joiners between it and the emoji before it.
    joined: usize,
}

/// Maximum number of joiners in one emoji; a family of four has three. A terminal without that emoji draws its parts
/// side by side, so an endless one would cover the screen.
const MOST_JOINED: usize = 4;

impl Before {
    /// The state after the next character.
    fn and(&self, c: char, stays: bool) -> Self {
        let is_joiner = c == '\u{200d}';
        let is_emoji = stays && (is_pictograph(c) || (self.is_emoji && is_selector(c)));
        let goes_on = is_joiner || self.last == Some('\u{200d}') || is_selector(c) || is_skin_tone(c);
        let joined = match stays && goes_on {
            true => self.joined + usize::from(is_joiner),
            false => 0,
        };
        Self { last: Some(c), is_emoji, joined }
    }

    /// Whether the script needs this character here, though it has no visible shape.
    fn needs(&self, c: char, after: Option<char>) -> bool {
        let is_joined = |is: fn(char) -> bool| self.last.is_some_and(is) && after.is_some_and(is);
        match c {
            '\u{200d}' if self.is_emoji => self.joined < MOST_JOINED && after.is_some_and(is_pictograph),
            '\u{200d}' => is_joined(joins),
            '\u{200c}' => is_joined(joins),
            '\u{fe0f}' if after == Some('\u{20e3}') => {
                self.last.is_some_and(|last| matches!(last, '0'..='9' | '#' | '*'))
            }
            '\u{fe0e}' | '\u{fe0f}' => self.last.is_some_and(is_pictograph),
            _ => false,
        }
    }
}

fn is_skin_tone(c: char) -> bool {
    matches!(c, '\u{1f3fb}'..='\u{1f3ff}')
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe0e}' | '\u{fe0f}')
}

/// Whether a terminal would obey the character, change the text direction because of it, or show nothing for it.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        ' '..='~' => false,
        // Soft hyphen, combining grapheme joiner, Arabic letter mark, fillers, inherent vowels and free variations.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{ffa0}' => true,
        // Without width, direction, line and paragraph separators, invisible operators.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => true,
        // Variation selectors, interlinear annotation, shorthand and musical controls, tags.
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        // Blank braille pattern, filler and notehead without a shape, controls of hieroglyphs.
        '\u{2800}' | '\u{16fe4}' | '\u{1d159}' | '\u{13430}'..='\u{1343f}' => true,
        '\u{fdd0}'..='\u{fdef}' => true,
        c => u32::from(c) & 0xfffe == 0xfffe,
    }
}

/// Blocks whose characters emoji sequences are made of.
fn is_pictograph(c: char) -> bool {
    matches!(
        c,
        '©' | '®' | '‼' | '⁉' | '™' | 'ℹ' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2460}'..='\u{24ff}'
            | '\u{25a0}'..='\u{27bf}' | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '〰' | '〽' | '㊗' | '㊙'
            | '\u{1f000}'..='\u{1faff}'
    )
}

/// Arabic and the scripts of India, whose letters take another shape with a joiner between them.
fn joins(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{6d3}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{8b4}' | '\u{900}'..='\u{dff}')
}

/// The line without its colours.
fn without_colours(line: &str) -> Cow<'_, str> {
    if !line.contains(INTRODUCER) {
        return Cow::Borrowed(line);
    }
    output_pieces(line).iter().map(|piece| piece.text).collect()
}

const INTRODUCER: &str = "\u{1b}[";

/// A part of a line of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputPiece<'a> {
    /// The parameters of the colour sequence before the text, `ESC [ … m`; `None` where the colour stays.
    pub colour: Option<&'a str>,
    /// The text as it came: it must be made visible before it is shown.
    pub text: &'a str,
}

/// A line of output, split at `ESC [ … m` and `ESC [ … K`, which contain digits only and no readable text. Any other
/// sequence stays in the text.
pub fn output_pieces(line: &str) -> Vec<OutputPiece<'_>> {
    let (mut pieces, mut colour) = (Vec::new(), None);
    let (mut start, mut from) = (0, 0);
    while let Some(at) = line[from..].find(INTRODUCER) {
        let (end, parameters) = (from + at, from + at + INTRODUCER.len());
        let after = line[parameters..].trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ';' | ':'));
        let last = line.len() - after.len();
        from = parameters;
        if after.starts_with(['m', 'K']) {
            pieces.push(OutputPiece { colour, text: &line[start..end] });
            colour = after.starts_with('m').then_some(&line[parameters..last]);
            (start, from) = (last + 1, last + 1);
        }
    }
    pieces.push(OutputPiece { colour, text: &line[start..] });
    pieces
}
