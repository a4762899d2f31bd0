//! `list_directory`: the entries of a folder.

use multitap_event::ToolKind;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::argument::{Filtering, ignored};
use super::files::Files;
use super::pattern::Pattern;
use super::{BadCall, argument};
use crate::tool::{Outcome, Spec};
use crate::workspace::Inside;
use crate::workspace::open::{Kind, list};
use crate::workspace::walk::{Depth, Ignored, Walk};

pub(crate) const NAME: &str = "list_directory";

/// Most names that are shown.
const MOST_ENTRIES: usize = 1000;

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    #[serde(default, alias = "dir_path", alias = "directory")]
    path: Option<String>,
    #[serde(default, deserialize_with = "argument::strings")]
    ignore: Vec<String>,
    respect_git_ignore: Option<bool>,
    file_filtering_options: Option<Filtering>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct List {
    folder: Inside,
    shown: String,
    without: Vec<Pattern>,
    ignored: Ignored,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Read,
        "Lists the files and folders that stand in a folder of the workspace, without those that git ignores.",
        &json!({
            "path": { "type": "string", "description": "The folder, absolute or relative to the workspace." },
            "ignore": { "type": "array", "items": { "type": "string" }, "description": "Patterns of names to leave out." },
            "respect_git_ignore": { "type": "boolean", "description": "False to show what git ignores as well." }
        }),
        &["path"],
    )
}

pub(super) fn prepare(files: &Files, arguments: Arguments) -> Result<List, BadCall> {
    let folder = files.place(arguments.path.as_deref().unwrap_or("."))?;
    let without = arguments.ignore.iter().map(|pattern| Pattern::for_file(pattern)).collect::<Result<_, _>>()?;
    let ignored = ignored(arguments.respect_git_ignore, arguments.file_filtering_options);
    Ok(List { shown: files.shown(&folder), folder, without, ignored })
}

impl List {
    pub(crate) fn title(&self) -> String {
        format!("List {}", self.shown)
    }

    pub(super) fn run(self, stop: &CancellationToken) -> Outcome {
        let shown = &self.shown;
        // The walk skips what it cannot read; here that is the only thing to report.
        if let Err(error) = list(&self.folder) {
            let why = if self.folder.path().is_file() { "it is a file".to_owned() } else { error.to_string() };
            return Outcome::failed(format!("cannot list {shown}: {why}"));
        }
        let (mut folders, mut others) = (Vec::new(), Vec::new());
        for found in Walk::new(&self.folder, self.ignored, Depth::One) {
            if stop.is_cancelled() {
                return Outcome::cancelled(format!("listing {shown} was stopped"));
            }
            let Some(name) = found.place.path().file_name() else { continue };
            if self.without.iter().any(|pattern| pattern.fits(name.as_ref())) {
                continue;
            }
            let name = name.to_string_lossy();
            match found.kind {
                Kind::Folder => folders.push(format!("[DIR] {name}")),
                Kind::File => others.push(name.into_owned()),
                Kind::Special => others.push(format!("{name} (not a plain file)")),
                Kind::Link => {
                    let target = found.place.path().read_link().unwrap_or_default();
                    others.push(format!("{name} -> {}", target.display()));
                }
            }
        }
        folders.append(&mut others);
        let count = folders.len();
        if count == 0 {
            return Outcome::done(format!("[{shown} is empty.]"));
        }
        folders.truncate(MOST_ENTRIES);
        let more = match count - folders.len() {
            0 => String::new(),
            more => format!("\n[{more} more are not shown. Use glob to find files by name.]"),
        };
        Outcome::done(format!("{shown} holds:\n{}{more}", folders.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::ToolOutcome;

    use super::super::files::tests::Scene;
    use super::*;

    #[tokio::test]
    async fn folders_come_first_and_what_git_ignores_not_at_all() {
        let scene = Scene::new(&[(".gitignore", "*.log"), ("z/x", ""), ("a.rs", ""), ("b.log", ""), ("c.md", "")]);
        let text = |arguments| async { scene.call(NAME, arguments).await.text };
        assert_eq!(text(json!({ "path": "." })).await, ". holds:\n[DIR] z\n.gitignore\na.rs\nc.md");
        let all = ". holds:\n[DIR] z\n.gitignore\na.rs\nb.log\nc.md";
        assert_eq!(text(json!({ "respect_git_ignore": false })).await, all);
        assert_eq!(text(json!({ "file_filtering_options": { "respect_git_ignore": false } })).await, all);
        assert_eq!(text(json!({ "path": "", "ignore": ["*.md", ".*"] })).await, ". holds:\n[DIR] z\na.rs");
        assert_eq!(text(json!({ "path": "z", "ignore": "x" })).await, "[z is empty.]");
    }

    #[tokio::test]
    async fn a_full_folder_is_cut_and_says_so() {
        let scene = Scene::new(&[]);
        (0..1003).for_each(|count| scene.write(&format!("{count:04}"), ""));
        let text = scene.call(NAME, json!({ "path": "." })).await.text;
        assert!(text.ends_with("0999\n[3 more are not shown. Use glob to find files by name.]"), "{text}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_are_named_and_nothing_outside_is_listed() {
        let scene = Scene::new(&[("a", "")]);
        std::os::unix::fs::symlink("/etc", scene.path("out")).unwrap();
        assert_eq!(scene.call(NAME, json!({ "path": "." })).await.text, ". holds:\na\nout -> /etc");
        for (path, words) in [
            ("out", "follows a link out"),
            ("..", "lies outside"),
            ("a", "cannot list a: it is a file"),
            ("none", "cannot list none: it does not exist"),
        ] {
            let outcome = scene.call(NAME, json!({ "path": path })).await;
            assert_eq!(outcome.outcome, ToolOutcome::Failed);
            assert!(outcome.text.contains(words), "{}", outcome.text);
        }
    }
}
