//! Unified diffs of two texts.

use similar::TextDiff;

/// The unified diff from `before` to `after`, headed like git's; empty if they are the same.
pub(crate) fn unified(path: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let path = path.trim_start_matches('/');
    let from = if before.is_empty() { "/dev/null".to_owned() } else { format!("a/{path}") };
    let to = if after.is_empty() { "/dev/null".to_owned() } else { format!("b/{path}") };
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).header(&from, &to).to_string()
}
