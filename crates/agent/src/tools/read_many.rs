//! `read_many_files`: the contents of several files, by names, folders and patterns.

use std::collections::BTreeSet;

use multitap_event::{Image, ToolKind};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::argument::{Filtering, ignored};
use super::files::Files;
use super::pattern::{Case, Pattern};
use super::read::MOST_LINES;
use super::text::{self, Content, LineRange};
use super::{BadCall, argument};
use crate::tool::{Outcome, Spec};
use crate::workspace::Inside;
use crate::workspace::open::{Kind, open};
use crate::workspace::walk::{Depth, Ignored, Walk};

pub(crate) const NAME: &str = "read_many_files";

/// Most bytes of all files together.
const MOST_BYTES: usize = 256 * 1024;
/// Most files that are read.
const MOST_FILES: usize = 200;
/// Most pictures that are attached.
const MOST_PICTURES: usize = 8;
/// Most skipped files that are listed by name.
const MOST_TOLD: usize = 20;
/// Folders that are skipped even where Git does not ignore them.
const SELDOM_WANTED: [&str; 9] = [
    "**/node_modules/**",
    "**/target/**",
    "**/dist/**",
    "**/build/**",
    "**/coverage/**",
    "**/__pycache__/**",
    "**/.venv/**",
    "**/.{vscode,idea}/**",
    "**/*.{lock,map,min.js,min.css}",
];

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    #[serde(default, deserialize_with = "argument::strings", alias = "files", alias = "file_paths")]
    paths: Vec<String>,
    #[serde(default, deserialize_with = "argument::strings")]
    include: Vec<String>,
    #[serde(default, deserialize_with = "argument::strings")]
    exclude: Vec<String>,
    recursive: Option<bool>,
    #[serde(alias = "useDefaultExcludes")]
    use_default_excludes: Option<bool>,
    respect_git_ignore: Option<bool>,
    file_filtering_options: Option<Filtering>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadMany {
    named: String,
    wanted: Vec<Choice>,
    without: Vec<Pattern>,
    /// Skipped unless a file is named explicitly.
    seldom: Vec<Pattern>,
    depth: Depth,
    ignored: Ignored,
}

/// The file, folder or pattern that a path resolves to.
#[derive(Debug, Clone, PartialEq)]
enum Choice {
    File(Inside),
    /// All files in it, or those that fit.
    Folder(Inside, Option<Pattern>),
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Read,
        "Reads several files of the workspace at once and shows their texts one after the other. Leaves out what git \
         ignores, binary files, and folders that are made by programs.",
        &json!({
            "paths": { "type": "array", "items": { "type": "string" }, "description": "Files, folders, or patterns such as src/**/*.rs." },
            "include": { "type": "array", "items": { "type": "string" }, "description": "More of the same." },
            "exclude": { "type": "array", "items": { "type": "string" }, "description": "Patterns of files to leave out." },
            "recursive": { "type": "boolean", "description": "False to read only what stands in a folder itself." },
            "useDefaultExcludes": { "type": "boolean", "description": "False to read build folders and lock files as well." }
        }),
        &["paths"],
    )
}

pub(super) fn prepare(files: &Files, arguments: Arguments) -> Result<ReadMany, BadCall> {
    let all: Vec<String> = arguments.paths.into_iter().chain(arguments.include).collect();
    if all.is_empty() {
        return Err(BadCall("no paths are given: there is nothing to read".to_owned()));
    }
    let mut wanted = Vec::new();
    for path in &all {
        choose(files, path, &mut wanted)?;
    }
    let seldom: &[&str] = if arguments.use_default_excludes == Some(false) { &[] } else { &SELDOM_WANTED };
    Ok(ReadMany {
        named: all.join(", "),
        wanted,
        without: arguments.exclude.iter().map(|pattern| Pattern::for_file(pattern)).collect::<Result<_, _>>()?,
        seldom: seldom.iter().map(|pattern| Pattern::for_file(pattern)).collect::<Result<_, _>>()?,
        depth: if arguments.recursive == Some(false) { Depth::One } else { Depth::All },
        ignored: ignored(arguments.respect_git_ignore, arguments.file_filtering_options),
    })
}

fn choose(files: &Files, path: &str, wanted: &mut Vec<Choice>) -> Result<(), BadCall> {
    let is_pattern = path.contains(['*', '?', '[', '{']);
    match files.place(path) {
        Ok(place) if place.path().is_dir() => wanted.push(Choice::Folder(place, None)),
        // A file may be called `[id].ts`.
        Ok(place) if !is_pattern || place.path().is_file() => wanted.push(Choice::File(place)),
        Err(outside) if !is_pattern => return Err(outside),
        _ => {
            for place in files.workspace.places() {
                let whole = place.path().to_str().and_then(|place| path.strip_prefix(place)?.strip_prefix('/'));
                let pattern = Pattern::for_path(whole.unwrap_or(path), Case::Heed)?;
                wanted.push(Choice::Folder(place, Some(pattern)));
            }
        }
    }
    Ok(())
}

impl ReadMany {
    pub(crate) fn title(&self) -> String {
        format!("Read {}", self.named)
    }

    pub(super) fn run(self, files: &Files, stop: &CancellationToken) -> Outcome {
        let stopped = || Outcome::cancelled(format!("reading {} was stopped", self.named));
        let mut all = Gathered::default();
        let mut done = BTreeSet::new();
        for choice in &self.wanted {
            let (place, pattern) = match choice {
                Choice::File(file) => {
                    if done.insert(file.path().to_owned()) {
                        all.read(files, file, stop);
                    }
                    continue;
                }
                Choice::Folder(place, pattern) => (place, pattern),
            };
            for found in Walk::new(place, self.ignored, self.depth) {
                if stop.is_cancelled() {
                    return stopped();
                }
                let Ok(below) = found.place.path().strip_prefix(place.path()) else { continue };
                let fits = pattern.as_ref().is_none_or(|pattern| pattern.fits(below));
                let without = self.without.iter().chain(&self.seldom).any(|pattern| pattern.fits(below));
                if found.kind == Kind::File && fits && !without && done.insert(found.place.path().to_owned()) {
                    all.read(files, &found.place, stop);
                }
            }
        }
        if stop.is_cancelled() {
            return stopped();
        }
        all.reported(&self.named)
    }
}

#[derive(Debug, Default)]
struct Gathered {
    text: String,
    files: usize,
    images: Vec<Image>,
    /// Skipped files, and why.
    left_out: Vec<String>,
    left_out_more: usize,
}

impl Gathered {
    fn read(&mut self, files: &Files, file: &Inside, stop: &CancellationToken) {
        let shown = files.shown(file);
        let room = MOST_BYTES.saturating_sub(self.text.len());
        if room == 0 || self.files == MOST_FILES {
            return self.leave_out(&shown, "it does not fit into the limit");
        }
        let wanted = LineRange { skip: 0, lines: MOST_LINES, bytes: room };
        let read = open(file).map_err(|error| error.to_string());
        let read = read.and_then(|file| text::read(file, wanted, stop).map_err(|error| error.to_string()));
        match read {
            Ok((Content::Text(page), stamp)) => {
                files.seen.note(file.path(), stamp);
                self.files += 1;
                let end = if page.text.is_empty() || page.text.ends_with('\n') { "" } else { "\n" };
                self.text.push_str(&format!("--- {shown} ---\n{}{}{end}\n", page.notes(), page.text));
            }
            Ok((Content::Picture(image), stamp)) if self.images.len() < MOST_PICTURES => {
                files.seen.note(file.path(), stamp);
                self.files += 1;
                self.images.push(image);
                self.text.push_str(&format!("--- {shown} ---\n[A picture, the {}. attached.]\n\n", self.images.len()));
            }
            Ok((Content::Picture(_), _)) => self.leave_out(&shown, "there are too many pictures"),
            Ok((Content::LargePicture(_), _)) => self.leave_out(&shown, "the picture is too large"),
            Ok((Content::Binary, _)) => self.leave_out(&shown, "it is binary"),
            Err(why) => self.leave_out(&shown, &why),
        }
    }

    fn leave_out(&mut self, shown: &str, why: &str) {
        if self.left_out.len() < MOST_TOLD {
            self.left_out.push(format!("{shown}: {why}"));
        } else {
            self.left_out_more += 1;
        }
    }

    fn reported(self, named: &str) -> Outcome {
        let mut text = self.text;
        if !self.left_out.is_empty() {
            text.push_str(&format!("[Left out:\n{}", self.left_out.join("\n")));
            if self.left_out_more > 0 {
                text.push_str(&format!("\nand {} more", self.left_out_more));
            }
            text.push_str("]\n");
        }
        match self.files {
            0 if text.is_empty() => Outcome::done(format!("No file matches {named}.")),
            0 => Outcome::failed(text),
            _ => Outcome { images: self.images, ..Outcome::done(text) },
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::ToolOutcome;

    use super::super::files::tests::Scene;
    use super::*;

    #[tokio::test]
    async fn files_folders_and_patterns_are_read_each_once() {
        let scene = Scene::new(&[
            (".gitignore", "made"),
            ("made/x.rs", "made"),
            ("a.md", "A"),
            ("src/b.rs", "B\n"),
            ("src/deep/c.rs", "C\n"),
            ("src/target/d.rs", "D\n"),
            ("src/[e].rs", "E\n"),
        ]);
        scene.write("src/f.rs", b"\0");
        let read = |arguments| async { scene.call(NAME, arguments).await.text };
        let text = read(json!({ "paths": ["a.md", "**/*.rs", "src"], "exclude": ["[[]*"] })).await;
        let wanted = "--- a.md ---\nA\n\n--- src/b.rs ---\nB\n\n--- src/deep/c.rs ---\nC\n\n\
                      [Left out:\nsrc/f.rs: it is binary]\n";
        assert_eq!(text, wanted);
        let text = read(json!({ "paths": "src", "recursive": false, "include": [], "exclude": "f.rs" })).await;
        assert_eq!(text, "--- src/[e].rs ---\nE\n\n--- src/b.rs ---\nB\n\n");
        assert_eq!(read(json!({ "paths": ["src/[e].rs"] })).await, "--- src/[e].rs ---\nE\n\n");
        assert_eq!(read(json!({ "paths": ["src/target/d.rs"] })).await, "--- src/target/d.rs ---\nD\n\n");
        assert_eq!(read(json!({ "paths": ["*.py"] })).await, "No file matches *.py.");
    }

    #[tokio::test]
    async fn all_together_is_bounded() {
        let scene = Scene::new(&[]);
        (0..40).for_each(|count| scene.write(&format!("{count:02}"), "a line of text\n".repeat(1000)));
        let outcome = scene.call(NAME, json!({ "paths": ["."] })).await;
        assert!(outcome.text.len() < MOST_BYTES + 3000, "{}", outcome.text.len());
        assert!(outcome.text.contains("[Lines 1 to "), "the last one is cut");
        assert!(
            outcome.text.contains("[Left out:\n18: it does not fit into the limit\n"),
            "{}",
            &outcome.text[MOST_BYTES..]
        );
        assert!(outcome.text.ends_with("and 2 more]\n"), "{}", &outcome.text[MOST_BYTES..]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nothing_outside_is_read() {
        let scene = Scene::new(&[("a", "x")]);
        std::os::unix::fs::symlink("/etc", scene.path("etc")).unwrap();
        for paths in [json!(["/etc/passwd"]), json!(["../*"]), json!(["etc/passwd"]), json!(["/etc/*"]), json!([])] {
            let outcome = scene.call(NAME, json!({ "paths": paths })).await;
            assert_eq!(outcome.outcome, ToolOutcome::Failed, "{paths}: {}", outcome.text);
        }
        assert_eq!(scene.call(NAME, json!({ "paths": ["etc/*"] })).await.text, "No file matches etc/*.");
        let outcome = scene.call(NAME, json!({ "paths": ["none"] })).await;
        assert_eq!(outcome.outcome, ToolOutcome::Failed);
        assert_eq!(outcome.text, "[Left out:\nnone: it does not exist]\n");
    }
}
