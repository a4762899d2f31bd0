//! `search_file_content`: lines that match a regular expression, with ripgrep's own crates.

use std::fs::File;
use std::io::{self, Read};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use multitap_event::ToolKind;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::argument::{Filtering, ignored};
use super::files::Files;
use super::pattern::{Case, Pattern};
use super::{BadCall, argument};
use crate::tool::{Outcome, Spec};
use crate::workspace::Inside;
use crate::workspace::open::{Kind, open};
use crate::workspace::walk::{Depth, Ignored, Walk};

pub(crate) const NAME: &str = "search_file_content";

const MOST_MATCHES: usize = 500;
const MOST_BYTES: usize = 64 * 1024;
const LONGEST_LINE: usize = 500;
const MOST_CONTEXT: u64 = 20;
/// Memory for one file; longer lines are not searched.
const MOST_MEMORY: usize = 8 * 1024 * 1024;

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    pattern: String,
    #[serde(default, alias = "dir_path", alias = "directory")]
    path: Option<String>,
    #[serde(default, alias = "include_pattern", alias = "glob")]
    include: Option<String>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    #[serde(default)]
    fixed_strings: Option<bool>,
    #[serde(default, deserialize_with = "argument::whole")]
    context: Option<u64>,
    respect_git_ignore: Option<bool>,
    file_filtering_options: Option<Filtering>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Search {
    sought: SearchPattern,
    places: Vec<Inside>,
    include: Option<Pattern>,
    context: usize,
    ignored: Ignored,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SearchPattern {
    text: String,
    case: Case,
    /// A literal text, not a regular expression.
    fixed: bool,
}

impl SearchPattern {
    fn matcher(&self) -> Result<RegexMatcher, BadCall> {
        let text = &self.text;
        RegexMatcherBuilder::new()
            .case_insensitive(self.case == Case::Ignore)
            .fixed_strings(self.fixed)
            .line_terminator(Some(b'\n'))
            .build(text)
            .map_err(|error| {
                let hint = if self.fixed { "" } else { " (fixed_strings takes it as plain text)" };
                BadCall(format!("'{text}' is nothing to search a line for{hint}: {error}"))
            })
    }
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Search,
        "Searches the text files of the workspace, line by line, for a regular expression; shows the lines with their \
         numbers. Leaves out what git ignores.",
        &json!({
            "pattern": { "type": "string", "description": "Regular expression, as ripgrep takes it." },
            "path": { "type": "string", "description": "Folder or file to search; the whole workspace if absent." },
            "include": { "type": "string", "description": "Only files that fit this pattern, such as *.{ts,tsx}." },
            "case_sensitive": { "type": "boolean", "description": "Whether A and a are different; they are not if absent." },
            "fixed_strings": { "type": "boolean", "description": "Take the pattern as plain text." },
            "context": { "type": "integer", "description": "Lines to show before and after each." }
        }),
        &["pattern"],
    )
}

pub(super) fn prepare(files: &Files, arguments: Arguments) -> Result<Search, BadCall> {
    if arguments.pattern.is_empty() {
        return Err(BadCall("the pattern is empty: it would match every line".to_owned()));
    }
    let sought = SearchPattern {
        text: arguments.pattern,
        case: if arguments.case_sensitive == Some(true) { Case::Heed } else { Case::Ignore },
        fixed: arguments.fixed_strings == Some(true),
    };
    // Reports an invalid pattern before anything runs.
    sought.matcher()?;
    Ok(Search {
        sought,
        places: files.places(arguments.path.as_deref())?,
        include: arguments.include.as_deref().map(Pattern::for_file).transpose()?,
        context: usize::try_from(arguments.context.unwrap_or(0).min(MOST_CONTEXT)).unwrap_or(0),
        ignored: ignored(arguments.respect_git_ignore, arguments.file_filtering_options),
    })
}

impl Search {
    pub(crate) fn title(&self) -> String {
        match &self.include {
            Some(include) => format!("Search for '{}' in {}", self.sought.text, include.text()),
            None => format!("Search for '{}'", self.sought.text),
        }
    }

    pub(super) fn run(self, files: &Files, stop: &CancellationToken) -> Outcome {
        let matcher = match self.sought.matcher() {
            Ok(matcher) => matcher,
            Err(BadCall(why)) => return Outcome::failed(why),
        };
        let mut found = Results::default();
        let mut searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .before_context(self.context)
            .after_context(self.context)
            .heap_limit(Some(MOST_MEMORY))
            .build();
        'all: for place in &self.places {
            if place.path().is_file() {
                found.search(&mut searcher, &matcher, place, files.shown(place), stop);
                continue;
            }
            if let Err(error) = place.path().metadata() {
                return Outcome::failed(format!("cannot search {}: {error}", files.shown(place)));
            }
            let mut walk = Walk::new(place, self.ignored, Depth::All);
            for entry in walk.by_ref() {
                if found.full || stop.is_cancelled() {
                    break 'all;
                }
                let below = entry.place.path().strip_prefix(place.path());
                let wanted = |include: &Pattern| below.is_ok_and(|below| include.fits(below));
                if entry.kind == Kind::File && self.include.as_ref().is_none_or(wanted) {
                    found.search(&mut searcher, &matcher, &entry.place, files.shown(&entry.place), stop);
                }
            }
            found.unread += walk.unread;
        }
        if stop.is_cancelled() {
            return Outcome::cancelled(format!("the search for '{}' was stopped", self.sought.text));
        }
        Outcome::done(found.reported(&self.sought.text))
    }
}

/// A file whose reads fail once the search is cancelled.
struct Stoppable<'a> {
    file: File,
    stop: &'a CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

#[derive(Debug, Default)]
struct Results {
    text: String,
    matches: usize,
    files: usize,
    /// Files and folders that could not be searched.
    unread: usize,
    /// There are more results than are shown.
    full: bool,
}

impl Results {
    fn search(
        &mut self,
        searcher: &mut Searcher,
        matcher: &RegexMatcher,
        file: &Inside,
        shown: String,
        stop: &CancellationToken,
    ) {
        let Ok(file) = open(file) else {
            self.unread += 1;
            return;
        };
        let mut lines = Lines { shown, named: false, found: self };
        if searcher.search_reader(matcher, Stoppable { file, stop }, &mut lines).is_err() {
            self.unread += 1;
        }
    }

    fn reported(self, pattern: &str) -> String {
        let unread = match self.unread {
            0 => String::new(),
            count => format!("\n[Could not be read: {count} files or folders.]"),
        };
        if self.matches == 0 {
            return format!("No line matches '{pattern}'.{unread}");
        }
        let lines = if self.matches == 1 { "1 line fits".to_owned() } else { format!("{} lines fit", self.matches) };
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        let (least, more) = match self.full {
            true => ("At least ", "\n[There is more. Use a narrower pattern, path or include.]"),
            false => ("", ""),
        };
        format!("{least}{lines} '{pattern}' in {files}:\n{}{more}{unread}", self.text.trim_end())
    }
}

/// Collects the lines of one file.
struct Lines<'a> {
    shown: String,
    named: bool,
    found: &'a mut Results,
}

impl Lines<'_> {
    fn push(&mut self, number: Option<u64>, mark: char, line: &[u8]) {
        if !self.named {
            self.named = true;
            self.found.files += 1;
            self.found.text.push_str(&format!("\n{}\n", self.shown));
        }
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches(['\r', '\n']);
        let (line, cut) = match line.char_indices().nth(LONGEST_LINE) {
            Some((at, _)) => (&line[..at], "…"),
            None => (line, ""),
        };
        self.found.text.push_str(&format!("{}{mark} {line}{cut}\n", number.unwrap_or(0)));
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        if self.found.matches == MOST_MATCHES || self.found.text.len() > MOST_BYTES {
            self.found.full = true;
            return Ok(false);
        }
        self.found.matches += 1;
        self.push(line.line_number(), ':', line.bytes());
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        self.push(line.line_number(), '-', line.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.text.push_str("--\n");
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::ToolOutcome;

    use super::super::files::tests::{Scene, peak_memory};
    use super::*;

    async fn search(scene: &Scene, arguments: serde_json::Value) -> String {
        let outcome = scene.call(NAME, arguments).await;
        assert_eq!(outcome.outcome, ToolOutcome::Completed, "{}", outcome.text);
        outcome.text
    }

    #[tokio::test]
    async fn lines_are_found_with_their_numbers() {
        let scene = Scene::new(&[
            (".gitignore", "made"),
            ("made/x.rs", "fn main"),
            ("a.rs", "use x;\n\nfn main() {\r\n}\n"),
            ("src/b.rs", "FN MAIN\n"),
            ("src/c.md", "fn main"),
            ("d.bin", "fn main\0"),
        ]);
        let text = search(&scene, json!({ "pattern": r"fn\s+main", "include": "*.rs" })).await;
        assert_eq!(text, "2 lines fit 'fn\\s+main' in 2 files:\n\na.rs\n3: fn main() {\n\nsrc/b.rs\n1: FN MAIN");
        let text = search(&scene, json!({ "pattern": "fn main", "path": "src", "case_sensitive": true })).await;
        assert_eq!(text, "1 line fits 'fn main' in 1 file:\n\nsrc/c.md\n1: fn main");
        let text =
            search(&scene, json!({ "pattern": "main() {", "fixed_strings": true, "path": "a.rs", "context": 1 }));
        assert_eq!(text.await, "1 line fits 'main() {' in 1 file:\n\na.rs\n2- \n3: fn main() {\n4- }");
        assert_eq!(search(&scene, json!({ "pattern": "nowhere" })).await, "No line matches 'nowhere'.");
    }

    #[tokio::test]
    async fn what_is_shown_is_bounded() {
        let scene = Scene::new(&[("many", &"match\n".repeat(600)), ("wide", &format!("{}wide\n", "x".repeat(900)))]);
        let text = search(&scene, json!({ "pattern": "match" })).await;
        assert!(text.starts_with("At least 500 lines fit 'match' in 1 file:\n"), "{text:.99}");
        assert!(text.ends_with("500: match\n[There is more. Use a narrower pattern, path or include.]"));
        let text = search(&scene, json!({ "pattern": "wide" })).await;
        assert!(text.ends_with(&format!("1: {}…", "x".repeat(500))), "{text}");
        let lines = format!("{}\n", "y".repeat(400)).repeat(400);
        scene.write("large", lines);
        assert!(search(&scene, json!({ "pattern": "yy" })).await.len() < MOST_BYTES + 1000);
    }

    #[tokio::test]
    async fn a_huge_file_is_searched_in_little_memory() {
        let scene = Scene::new(&[("a", "needle\n")]);
        let before = peak_memory();
        scene.write("hole", "");
        File::options().write(true).open(scene.path("hole")).unwrap().set_len(1 << 30).unwrap();
        scene.write("line", vec![b'x'; 3 * MOST_MEMORY]);
        let text = search(&scene, json!({ "pattern": "needle" })).await;
        assert_eq!(text, "1 line fits 'needle' in 1 file:\n\na\n1: needle\n[Could not be read: 1 files or folders.]");
        assert!(peak_memory() < before + 300, "{} MiB", peak_memory());
    }

    #[tokio::test]
    async fn bad_patterns_and_places_are_told() {
        let scene = Scene::new(&[("a", "")]);
        for (arguments, words) in [
            (json!({ "pattern": "(" }), "unclosed group"),
            (json!({ "pattern": "a\\nb" }), "nothing to search a line for"),
            (json!({ "pattern": "" }), "empty"),
            (json!({ "pattern": "x", "include": "[" }), "is not a valid pattern"),
            (json!({ "pattern": "x", "path": "/etc" }), "lies outside"),
            (json!({ "pattern": "x", "path": "none" }), "cannot search none"),
            (json!({ "pattern": ["x"] }), "pattern: invalid type: sequence, expected a string"),
        ] {
            let outcome = scene.call(NAME, arguments).await;
            assert_eq!(outcome.outcome, ToolOutcome::Failed);
            assert!(outcome.text.contains(words), "{}", outcome.text);
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nothing_outside_is_searched() {
        let scene = Scene::new(&[("a", "x")]);
        std::os::unix::fs::symlink("/etc", scene.path("etc")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", scene.path("passwd")).unwrap();
        assert_eq!(search(&scene, json!({ "pattern": "root" })).await, "No line matches 'root'.");
    }

    #[tokio::test]
    async fn a_search_stops_when_it_is_told_to() {
        let scene = Scene::new(&[("a", "x")]);
        let job = scene.prepare(NAME, json!({ "pattern": "x" })).await.unwrap();
        let (progress, _told) = tokio::sync::mpsc::channel(1);
        let stop = CancellationToken::new();
        stop.cancel();
        let outcome =
            scene.tools.run(crate::policy::Approved::in_a_test(job), crate::tool::ToolContext { progress, stop }).await;
        assert_eq!(outcome.outcome, ToolOutcome::Cancelled);
    }
}
