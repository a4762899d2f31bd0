//! Recordings of real CLIs: every line on their pipes.
//!
//! A file is JSON lines. The first gives the command line, folder and exit; every further one is a line on a
//! pipe, with its time and direction. They live with the adapters, in `tests/fixtures/AGENT/VERSION/CASE.jsonl`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One recorded run. As JSON, the first line of its file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "dir", rename = "args")]
pub struct Fixture {
    #[serde(skip)]
    pub agent: String,
    /// The CLI's version.
    #[serde(skip)]
    pub version: String,
    #[serde(skip)]
    pub case: String,
    pub argv: Vec<String>,
    pub cwd: String,
    pub exit: Exit,
    pub note: Option<String>,
    #[serde(skip)]
    pub lines: Vec<Line>,
}

/// How a recorded program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Exit {
    Code(i32),
    /// A description, if there is no number.
    Told(String),
    Unknown,
}

/// One line on a pipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Seconds since the start.
    pub t: f64,
    pub dir: Direction,
    /// The line without its line ending.
    pub line: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To the program; the end of input is [`END_OF_INPUT`].
    In,
    /// To the program, which no longer reads.
    InError,
    /// Its stdout.
    Out,
    /// Its stderr.
    Err,
    /// A signal sent to the program, by number.
    Signal,
    /// A remark of the recorder.
    Note,
}

/// The text that stands for the end of input.
pub const END_OF_INPUT: &str = "<EOF>";

impl Fixture {
    /// Reads one file. Its path contains agent, version and case.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let owned = |name: Option<&OsStr>| name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = |depth| owned(path.ancestors().nth(depth).and_then(Path::file_name));
        Self::parse(&text, folder(2), folder(1), owned(path.file_stem())).with_context(|| path.display().to_string())
    }

    fn parse(text: &str, agent: String, version: String, case: String) -> Result<Self> {
        let mut lines = text.lines().enumerate();
        let (_, first) = lines.next().context("empty file")?;
        let head: Self = serde_json::from_str(first).context("line 1 is not a header")?;
        let lines = lines
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(number, line)| serde_json::from_str(line).with_context(|| format!("line {}", number + 1)));
        Ok(Self { agent, version, case, lines: lines.collect::<Result<_>>()?, ..head })
    }

    pub fn text(&self) -> Result<String> {
        let mut text = serde_json::to_string(self)?;
        for line in &self.lines {
            text.push('\n');
            text += &serde_json::to_string(line)?;
        }
        text.push('\n');
        Ok(text)
    }

    /// Writes it below `root`, in the folders that [`Fixture::load`] reads the names from.
    pub fn save(&self, root: &Path) -> Result<PathBuf> {
        let folder = root.join(&self.agent).join(&self.version);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let path = folder.join(format!("{}.jsonl", self.case));
        fs::write(&path, self.text()?).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    /// What the program wrote to stdout.
    pub fn stdout(&self) -> impl Iterator<Item = &str> {
        self.way(Direction::Out)
    }

    /// What was written to the program, without the end of input.
    pub fn stdin(&self) -> impl Iterator<Item = &str> {
        self.way(Direction::In).filter(|line| *line != END_OF_INPUT)
    }

    /// The lines of stdout as JSON; lines that are not JSON are left out.
    pub fn messages(&self) -> impl Iterator<Item = Value> {
        self.stdout().filter_map(|line| serde_json::from_str(line).ok())
    }

    pub fn exit_code(&self) -> Option<i32> {
        match &self.exit {
            Exit::Code(code) => Some(*code),
            Exit::Told(told) => told.split(' ').next()?.parse().ok(),
            Exit::Unknown => None,
        }
    }

    fn way(&self, dir: Direction) -> impl Iterator<Item = &str> {
        self.lines.iter().filter(move |line| line.dir == dir).map(|line| line.line.as_str())
    }
}

/// The folder of this repository's recordings.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapter/tests/fixtures")
}

/// Every recording of an agent in this repository, of every version, by name.
pub fn all(agent: &str) -> Result<Vec<Fixture>> {
    all_below(&root().join(agent))
}

/// One recording of an agent, of its newest version.
pub fn case(agent: &str, case: &str) -> Result<Fixture> {
    let found = all(agent)?.into_iter().rfind(|fixture| fixture.case == case);
    found.with_context(|| format!("no recording {case} of {agent}"))
}

/// Every recording in the version folders below an agent's folder. Other files, such as the log of an MCP server, are
/// skipped.
pub fn all_below(folder: &Path) -> Result<Vec<Fixture>> {
    let mut fixtures = Vec::new();
    for version in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        for path in entries(&version)? {
            if path.extension().is_some_and(|extension| extension == "jsonl") && is_recording(&path)? {
                fixtures.push(Fixture::load(&path)?);
            }
        }
    }
    Ok(fixtures)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort_by_key(|path| version_key(path));
    Ok(paths)
}

/// Sorts 2.1.9 before 2.1.10.
fn version_key(path: &Path) -> (Vec<u64>, PathBuf) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    (name.split('.').map_while(|part| part.parse().ok()).collect(), path.to_owned())
}

fn is_recording(path: &Path) -> Result<bool> {
    let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let head = text.lines().next().and_then(|line| serde_json::from_str::<Value>(line).ok());
    Ok(head.is_some_and(|head| head["dir"] == "args"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = concat!(
        r#"{"dir": "args", "argv": ["claude", "-p"], "cwd": "/workspace", "exit": "0 (killed by driver)", "note": null}"#,
        "\n",
        r#"{"t": 0.007, "dir": "in", "line": "{\"type\":\"user\"}"}"#,
        "\n",
        r#"{"t": 0.5, "dir": "out", "line": "{\"type\":\"result\"}"}"#,
        "\n",
        r#"{"t": 0.6, "dir": "err", "line": "oh"}"#,
        "\n",
        r#"{"t": 0.7, "dir": "in", "line": "<EOF>"}"#,
        "\n",
    );

    fn save(folder: &Path, version: &str, case: &str) {
        let fixture = Fixture::parse(TEXT, "claude".into(), version.into(), case.into()).unwrap();
        fixture.save(folder).unwrap();
    }

    #[test]
    fn a_recording_is_read_by_direction() {
        let fixture = Fixture::parse(TEXT, "claude".into(), "2.1.325".into(), "some".into()).unwrap();
        assert_eq!(fixture.stdin().collect::<Vec<_>>(), [r#"{"type":"user"}"#]);
        assert_eq!(fixture.messages().collect::<Vec<_>>(), [serde_json::json!({"type": "result"})]);
        assert_eq!(fixture.exit_code(), Some(0));
    }

    #[test]
    fn recordings_are_found_again_where_they_were_saved() {
        let folder = tempfile::tempdir().unwrap();
        for (version, case) in [("2.1.10", "new"), ("2.1.9", "old"), ("2.1.9", "another")] {
            save(folder.path(), version, case);
        }
        fs::write(folder.path().join("claude/2.1.9/some_server.jsonl"), "{\"method\":\"ping\"}\n").unwrap();
        let found = all_below(&folder.path().join("claude")).unwrap();
        let names: Vec<_> = found.iter().map(|fixture| (fixture.version.as_str(), fixture.case.as_str())).collect();
        assert_eq!(names, [("2.1.9", "another"), ("2.1.9", "old"), ("2.1.10", "new")]);
        assert_eq!((found[0].agent.as_str(), found[0].lines.len()), ("claude", 4));
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = Fixture::parse(&format!("{TEXT}broken\n"), String::new(), String::new(), String::new());
        assert!(format!("{:#}", error.unwrap_err()).contains("line 6"));
    }
}
