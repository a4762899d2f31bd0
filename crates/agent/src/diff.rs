//! The unified diff of two texts.

/// The diff from `before` (`None`: the file does not exist yet) to `after`, with Git's headers; empty if they are
/// equal.
pub(crate) fn unified(path: &str, before: Option<&str>, after: &str) -> String {
    if before == Some(after) {
        return String::new();
    }
    let path = path.trim_start_matches('/');
    let from = if before.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    multitap_diff::unified(&from, before.unwrap_or_default(), &format!("b/{path}"), after)
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
