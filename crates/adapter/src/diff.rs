//! Unified diffs of two texts.

use similar::TextDiff;

/// The unified diff from `before` (nothing: there is no such file yet) to `after`, headed like git's; empty if they
/// are the same.
pub(crate) fn unified(path: &str, before: Option<&str>, after: &str) -> String {
    if before.unwrap_or_default() == after {
        return String::new();
    }
    let path = path.trim_start_matches('/');
    let from = if before.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    TextDiff::from_lines(before.unwrap_or_default(), after)
        .unified_diff()
        .context_radius(3)
        .header(&from, &format!("b/{path}"))
        .to_string()
}
