//! Whether a sed script may run commands or write files (`e`, `w`, `s///e`). Only the plainest scripts are known not
//! to.

use std::iter::Peekable;
use std::str::Chars;

pub(super) fn runs_others(arguments: &[&str]) -> bool {
    let mut words = arguments.iter();
    let (mut scripts, mut bare): (Vec<&str>, Option<&str>) = (Vec::new(), None);
    while let Some(word) = words.next() {
        match *word {
            // Scripts before this option were compiled without the sandbox.
            "--sandbox" if scripts.is_empty() => return false,
            "-e" | "--expression" => scripts.extend(words.next().copied()),
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-i" | "--quiet" | "--silent" | "--regexp-extended"
            | "--in-place" | "--separate" | "--unbuffered" | "--null-data" | "--posix" | "--debug" => {}
            text if text.starts_with("-i") || text.starts_with("--in-place=") => {}
            text if text.starts_with('-') && text.len() > 1 => return true,
            _ => {
                bare.get_or_insert(word);
            }
        }
    }
    if scripts.is_empty() {
        scripts.extend(bare);
    }
    scripts.iter().any(|script| !is_plain(script))
}

/// Whether a script only prints, deletes and substitutes.
fn is_plain(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    loop {
        while rest.next_if(|char| char.is_whitespace() || *char == ';').is_some() {}
        if rest.peek().is_none() {
            return true;
        }
        if command(&mut rest).is_none() {
            return false;
        }
    }
}

/// Reads one command with its addresses; `None` if it is not a plain one.
fn command(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    address(rest)?;
    if rest.next_if_eq(&',').is_some() {
        address(rest)?;
    }
    while rest.next_if(|char| matches!(char, ' ' | '!')).is_some() {}
    match rest.next()? {
        'p' | 'd' | 'q' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'P' | 'D' => {}
        letter @ ('s' | 'y') => {
            let delimiter = rest.next()?;
            until(rest, delimiter)?;
            until(rest, delimiter)?;
            let is_flag = |char: &char| letter == 's' && matches!(char, 'g' | 'p' | 'i' | 'I' | '0'..='9');
            while rest.next_if(is_flag).is_some() {}
        }
        _ => return None,
    }
    while rest.next_if(|char| matches!(char, ' ' | '\t')).is_some() {}
    rest.peek().is_none_or(|char| matches!(char, ';' | '\n')).then_some(())
}

fn address(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    if rest.next_if_eq(&'/').is_some() {
        until(rest, '/')?;
        rest.next_if_eq(&'I');
    } else if rest.next_if_eq(&'$').is_none() {
        while rest.next_if(|char| matches!(char, '0'..='9' | '~' | '+')).is_some() {}
    }
    Some(())
}

/// Reads up to and including the next delimiter. Inside brackets a delimiter may be literal, so such brackets are not
/// plain.
fn until(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    let mut in_brackets = false;
    loop {
        match rest.next()? {
            char if char == delimiter => return (!in_brackets).then_some(()),
            '\\' => {
                rest.next()?;
            }
            // A bracket is literal if it comes first, or within `[.x.]` or `[=x=]`.
            '[' if in_brackets && matches!(rest.peek(), Some('.' | '=')) => return None,
            '[' => {
                in_brackets = true;
                rest.next_if_eq(&'^');
                rest.next_if_eq(&']');
            }
            ']' => in_brackets = false,
            _ => {}
        }
    }
}
