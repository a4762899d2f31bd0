//! Words for people.

/// Maximum number of characters of a title.
const TITLE: usize = 120;

/// The first line, shortened.
pub fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let shown = shortened(line, TITLE);
    if shown == line && line.len() < text.trim().len() { format!("{line} …") } else { shown }
}

/// The beginning of a text, with an ellipsis in place of what follows so many characters.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
