//! The unified diff of two texts.

use std::time::Duration;

use similar::TextDiff;

/// After this long a diff need no longer be the shortest.
const PATIENCE: Duration = Duration::from_millis(500);

/// The diff from `before` (nothing: there is no such file yet) to `after`, headed like git's; empty if they are the
/// same.
pub(crate) fn unified(path: &str, before: Option<&str>, after: &str) -> String {
    if before == Some(after) {
        return String::new();
    }
    let path = path.trim_start_matches('/');
    let from = if before.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before.unwrap_or_default(), after);
    diff.unified_diff().context_radius(3).header(&from, &format!("b/{path}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_comes_from_nowhere() {
        assert_eq!(unified("/a.txt", None, "x\n"), "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(unified("a.txt", Some("x\n"), "y\n"), "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n");
        assert_eq!(unified("a.txt", Some("x\n"), "x\n"), "");
    }
}
