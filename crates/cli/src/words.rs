//! Text of agents made fit for people: short, and harmless to a terminal.

/// How much of a tool's arguments or error a line for people shows.
const SHOWN: usize = 200;

/// The first line, cut where it gets long.
pub(crate) fn short(text: &str) -> String {
    let first = text.trim().lines().next().unwrap_or_default();
    let head = head(first, SHOWN);
    let more = if head.len() < text.trim().len() { " …" } else { "" };
    format!("{head}{more}")
}

/// At most so many bytes of the text, and no half characters.
pub(crate) fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Without characters that would move a terminal's cursor or change its state, except for line ends.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
}
