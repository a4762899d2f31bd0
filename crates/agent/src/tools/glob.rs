//! `glob`: finds files by name, the newest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use multitap_event::ToolKind;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::BadCall;
use super::argument::{Filtering, ignored};
use super::files::Files;
use super::pattern::{Case, Pattern};
use crate::tool::{Outcome, Spec};
use crate::workspace::Inside;
use crate::workspace::open::Kind;
use crate::workspace::walk::{Depth, Ignored, Walk, WalkEntry};

pub(crate) const NAME: &str = "glob";

/// Most files that are shown.
const MOST_FILES: usize = 500;

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    pattern: String,
    #[serde(default, alias = "dir_path", alias = "directory")]
    path: Option<String>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    respect_git_ignore: Option<bool>,
    file_filtering_options: Option<Filtering>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Glob {
    places: Vec<Inside>,
    pattern: Pattern,
    ignored: Ignored,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Search,
        "Finds files of the workspace by a pattern such as src/**/*.rs, the most recently changed first. Leaves out \
         what git ignores.",
        &json!({
            "pattern": { "type": "string", "description": "* within a name, ** over folders, ?, [abc], {a,b}." },
            "path": { "type": "string", "description": "The folder to look in; the whole workspace if absent." },
            "case_sensitive": { "type": "boolean", "description": "Whether A and a are different; they are not if absent." },
            "respect_git_ignore": { "type": "boolean", "description": "False to find what git ignores as well." }
        }),
        &["pattern"],
    )
}

pub(super) fn prepare(files: &Files, arguments: Arguments) -> Result<Glob, BadCall> {
    let places = files.places(arguments.path.as_deref())?;
    let case = if arguments.case_sensitive == Some(true) { Case::Heed } else { Case::Ignore };
    // A pattern may begin with the whole path.
    let below =
        places.iter().find_map(|place| arguments.pattern.strip_prefix(place.path().to_str()?)?.strip_prefix('/'));
    let pattern = Pattern::for_path(below.unwrap_or(&arguments.pattern), case)?;
    Ok(Glob { places, pattern, ignored: ignored(arguments.respect_git_ignore, arguments.file_filtering_options) })
}

impl Glob {
    pub(crate) fn title(&self) -> String {
        format!("Find {}", self.pattern.text())
    }

    pub(super) fn run(self, files: &Files, stop: &CancellationToken) -> Outcome {
        let pattern = self.pattern.text();
        let mut newest: BinaryHeap<Reverse<(SystemTime, Reverse<PathBuf>)>> = BinaryHeap::new();
        let mut count: usize = 0;
        for place in &self.places {
            for found in Walk::new(place, self.ignored, Depth::All) {
                if stop.is_cancelled() {
                    return Outcome::cancelled(format!("the search for {pattern} was stopped"));
                }
                let path = found.place.path();
                if !path.strip_prefix(place.path()).is_ok_and(|below| self.pattern.fits(below))
                    || !is_file(files, &found)
                {
                    continue;
                }
                count += 1;
                newest.push(Reverse((modified(path), Reverse(path.to_owned()))));
                if newest.len() > MOST_FILES {
                    newest.pop();
                }
            }
        }
        if count == 0 {
            return Outcome::done(format!("No file matches {pattern}."));
        }
        let found =
            newest.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(path)))| files.workspace.shown(&path));
        let shown: Vec<_> = found.collect();
        let more = match count - shown.len() {
            0 => String::new(),
            more => format!("\n[{more} older ones are not shown. Use a narrower pattern.]"),
        };
        let files = if count == 1 { "1 file fits".to_owned() } else { format!("{count} files fit") };
        Outcome::done(format!("{files} {pattern}, the newest first:\n{}{more}", shown.join("\n")))
    }
}

/// A file, or a link to one inside the workspace.
fn is_file(files: &Files, found: &WalkEntry) -> bool {
    match found.kind {
        Kind::File => true,
        Kind::Link => {
            let target = found.place.path().to_str().and_then(|path| files.workspace.resolve(path).ok());
            target.is_some_and(|target| target.path().is_file())
        }
        Kind::Folder | Kind::Special => false,
    }
}

fn modified(path: &Path) -> SystemTime {
    path.symlink_metadata().and_then(|metadata| metadata.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::time::Duration;

    use multitap_event::ToolOutcome;
    use proptest::prelude::*;

    use super::super::files::tests::Scene;
    use super::*;

    async fn found(scene: &Scene, arguments: serde_json::Value) -> Vec<String> {
        let outcome = scene.call(NAME, arguments).await;
        assert_eq!(outcome.outcome, ToolOutcome::Completed, "{}", outcome.text);
        outcome.text.lines().skip(1).map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn the_newest_come_first() {
        let scene =
            Scene::new(&[(".gitignore", "d.rs"), ("a.rs", ""), ("src/b.rs", ""), ("src/c.RS", ""), ("d.rs", "")]);
        for (age, path) in [(10, "a.rs"), (30, "src/b.rs"), (20, "src/c.RS")] {
            let file = File::options().write(true).open(scene.path(path)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        assert_eq!(found(&scene, json!({ "pattern": "**/*.rs" })).await, ["a.rs", "src/c.RS", "src/b.rs"]);
        let sensitive = json!({ "pattern": "**/*.rs", "case_sensitive": true });
        assert_eq!(found(&scene, sensitive).await, ["a.rs", "src/b.rs"]);
        assert_eq!(found(&scene, json!({ "pattern": "*.rs", "path": "src" })).await, ["src/c.RS", "src/b.rs"]);
        let whole = scene.path("src/b*").display().to_string();
        assert_eq!(found(&scene, json!({ "pattern": whole })).await, ["src/b.rs"]);
        let outcome = scene.call(NAME, json!({ "pattern": "*.py" })).await;
        assert_eq!(outcome.text, "No file matches *.py.");
        let unignored = found(&scene, json!({ "pattern": "d.rs", "respect_git_ignore": false })).await;
        assert_eq!(unignored, ["d.rs"]);
    }

    #[tokio::test]
    async fn many_are_cut_and_the_newest_stay() {
        let scene = Scene::new(&[]);
        (0..520).for_each(|count| scene.write(&format!("{count:03}"), ""));
        let old = SystemTime::now() - Duration::from_secs(1000);
        for count in 0..20 {
            File::options().write(true).open(scene.path(&format!("{count:03}"))).unwrap().set_modified(old).unwrap();
        }
        let outcome = scene.call(NAME, json!({ "pattern": "*" })).await;
        assert!(outcome.text.starts_with("520 files fit *, the newest first:\n"));
        assert!(outcome.text.ends_with("\n[20 older ones are not shown. Use a narrower pattern.]"));
        assert!(!outcome.text.contains("\n019\n") && outcome.text.contains("\n020\n"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn links_that_lead_out_are_not_found() {
        use std::os::unix::fs::symlink;
        let scene = Scene::new(&[("a", "")]);
        symlink("/etc/passwd", scene.path("b")).unwrap();
        symlink("/etc", scene.path("folder")).unwrap();
        symlink("a", scene.path("c")).unwrap();
        let all: BTreeSet<_> = found(&scene, json!({ "pattern": "**" })).await.into_iter().collect();
        assert_eq!(all, BTreeSet::from(["a".to_owned(), "c".to_owned()]));
        for pattern in ["../*", "/etc/*", "["] {
            assert_eq!(scene.call(NAME, json!({ "pattern": pattern })).await.outcome, ToolOutcome::Failed);
        }
    }

    /// What a pattern means, said the long way.
    fn means(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern, path) {
            ([], path) => path.is_empty(),
            (["**"], path) => !path.is_empty(),
            (["**", rest @ ..], path) => (0..=path.len()).any(|skip| means(rest, &path[skip..])),
            ([first, rest @ ..], [name, deeper @ ..]) => {
                let (first, name): (Vec<_>, Vec<_>) = (first.chars().collect(), name.chars().collect());
                names(&first, &name) && means(rest, deeper)
            }
            (_, []) => false,
        }
    }

    fn names(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], name) => name.is_empty(),
            (['*', rest @ ..], name) => (0..=name.len()).any(|skip| names(rest, &name[skip..])),
            (['?', rest @ ..], [_, more @ ..]) => names(rest, more),
            ([one, rest @ ..], [other, more @ ..]) => one == other && names(rest, more),
            (_, []) => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn exactly_the_files_that_fit_are_found(
            paths in prop::collection::btree_set("[ab]{1,2}(/[ab]{1,2}){0,3}", 1..12),
            pattern in prop::collection::vec("[ab*?]{1,3}|\\*\\*", 1..5),
        ) {
            // `***` is not a thing to agree on.
            prop_assume!(pattern.iter().all(|step| step == "**" || !step.contains("**")));
            let scene = Scene::new(&[]);
            let mut made = BTreeSet::new();
            for path in &paths {
                let whole = scene.path(path);
                // A file cannot contain anything.
                if std::fs::create_dir_all(whole.parent().unwrap()).is_ok() && std::fs::write(&whole, "").is_ok() {
                    made.insert(path.clone());
                }
            }
            let wanted: BTreeSet<String> = made
                .into_iter()
                .filter(|path| {
                    let steps: Vec<&str> = pattern.iter().map(String::as_str).collect();
                    means(&steps, &path.split('/').collect::<Vec<_>>())
                })
                .collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let found = runtime.block_on(found(&scene, json!({ "pattern": pattern.join("/") })));
            prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), wanted);
        }
    }
}
