//! Words for people.

/// Maximum number of characters of a title.
const TITLE: usize = 120;

/// The first line, shortened.
pub fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if line.len() < text.trim().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}
