//! Removes from a recording everything that depends on the machine, and long texts without interest.

use std::path::Path;

use serde_json::Value;

use super::Stage;
use crate::cli::cache_folder;
use crate::fixture::{Direction, Fixture};

/// Number of entries left in a long list.
const KEPT_ENTRIES: usize = 3;
/// Number of characters left of a description.
const KEPT_CHARS: usize = 160;
/// The port that replaces the model server's.
const PORT: &str = "127.0.0.1:8099";

pub(super) fn scrub(mut fixture: Fixture, stage: &Stage) -> Fixture {
    let pairs = replacements(stage);
    let clean = |text: &str| pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    fixture.cwd = clean(&fixture.cwd);
    fixture.argv = fixture.argv.iter().map(|arg| clean(arg)).collect();
    for line in &mut fixture.lines {
        line.line = clean(&line.line);
        if line.dir == Direction::Out {
            line.line = shorten(&line.line);
        }
    }
    fixture
}

/// The texts to replace and their replacements, the longest first where one contains another.
fn replacements(stage: &Stage) -> Vec<(String, &'static str)> {
    let scratch = &stage.scratch;
    let (workspace, home, root) = (scratch.workspace(), scratch.home(), scratch.root().to_owned());
    let mut pairs = Vec::new();
    // The temporary folder may have a longer name on some systems.
    for prefix in ["/private", ""] {
        let prefixed = |path: &Path| format!("{prefix}{}", path.display());
        pairs.extend([
            (prefixed(&workspace), "/workspace"),
            (prefixed(&home), "/home/user"),
            (prefixed(&root.join("tmp")), "/tmp"),
            (prefixed(&root), "/scratch"),
            (prefixed(stage.mcp.path()), "/opt/mcp"),
            (slug(&prefixed(&workspace)), "-workspace"),
            (slug(&prefixed(&home)), "-home-user"),
        ]);
    }
    // Programs name themselves in what they log.
    pairs.extend(cache_folder().map(|cache| (cache.display().to_string(), "/opt/npm")));
    pairs.push((stage.server.address().to_string(), PORT));
    pairs.push((scratch.marker().to_owned(), "marker"));
    pairs
}

/// The name that Claude Code derives from a folder's path.
fn slug(path: &str) -> String {
    path.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// Cuts lists and descriptions of what the CLI offers. A line that is not JSON stays as it is.
fn shorten(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    if cut(&mut value) { value.to_string() } else { line.to_owned() }
}

/// Returns whether anything was cut.
fn cut(value: &mut Value) -> bool {
    const LISTS: [&str; 10] = [
        "commands",
        "slash_commands",
        "models",
        "agents",
        "skills",
        "plugins",
        "tools",
        "terminal_slash_commands",
        "availableCommands",
        "availableModels",
    ];
    match value {
        Value::Object(fields) => {
            let mut changed = false;
            for (name, field) in fields {
                match field {
                    Value::Array(list) if LISTS.contains(&name.as_str()) && list.len() > KEPT_ENTRIES => {
                        list.truncate(KEPT_ENTRIES);
                        changed = true;
                    }
                    Value::String(text) if name == "description" && text.chars().count() > KEPT_CHARS => {
                        *text = text.chars().take(KEPT_CHARS).collect();
                        changed = true;
                    }
                    _ => {}
                }
                changed |= cut(field);
            }
            changed
        }
        Value::Array(list) => list.iter_mut().fold(false, |changed, item| cut(item) | changed),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_with_long_lists_are_rewritten() {
        let same = r#"{"tools": [1, 2], "text": "as it was"}"#;
        assert_eq!(shorten(same), same);
        assert_eq!(shorten(r#"{"a":{"tools":[1,2,3,4,5]}}"#), r#"{"a":{"tools":[1,2,3]}}"#);
        assert_eq!(shorten("no JSON"), "no JSON");
    }
}
