//! `read_file`: a text file, whole or in part, or a picture.

use multitap_event::ToolKind;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::files::Files;
use super::text::{self, Content, LineRange, Page};
use super::{BadCall, argument};
use crate::tool::{Outcome, Spec};
use crate::workspace::Inside;
use crate::workspace::open::open;

pub(crate) const NAME: &str = "read_file";

/// Most lines shown at once.
pub(super) const MOST_LINES: u64 = 2000;
/// Most bytes shown at once.
const MOST_BYTES: usize = 128 * 1024;

#[derive(Debug, Deserialize)]
pub(super) struct Arguments {
    #[serde(alias = "file_path", alias = "path", alias = "filePath", alias = "file")]
    absolute_path: String,
    #[serde(default, deserialize_with = "argument::whole")]
    offset: Option<u64>,
    #[serde(default, deserialize_with = "argument::whole")]
    limit: Option<u64>,
    #[serde(default, deserialize_with = "argument::whole")]
    start_line: Option<u64>,
    #[serde(default, deserialize_with = "argument::whole")]
    end_line: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Read {
    file: Inside,
    shown: String,
    skip: u64,
    lines: u64,
}

pub(super) fn spec() -> Spec {
    super::spec(
        NAME,
        ToolKind::Read,
        "Reads a file of the workspace: text, or a picture (PNG, JPEG, GIF, WebP). Of a long text the first 2000 \
         lines are shown; read on with offset and limit.",
        &json!({
            "absolute_path": { "type": "string", "description": "The file, absolute or relative to the workspace." },
            "offset": { "type": "integer", "description": "Lines to leave out at the beginning." },
            "limit": { "type": "integer", "description": "Lines to show, 2000 at most." }
        }),
        &["absolute_path"],
    )
}

pub(super) fn prepare(files: &Files, arguments: Arguments) -> Result<Read, BadCall> {
    let Arguments { absolute_path, offset, limit, start_line, end_line } = arguments;
    let file = files.place(&absolute_path)?;
    let skip = offset.or(start_line.map(|line| line.saturating_sub(1))).unwrap_or(0);
    let lines = match (limit, end_line) {
        (Some(limit), _) => limit,
        (None, Some(end)) if end > skip => end - skip,
        (None, Some(end)) => return Err(BadCall(format!("end_line {end} comes before the first line to read"))),
        (None, None) => MOST_LINES,
    };
    if lines == 0 {
        return Err(BadCall("limit is 0: there is nothing to read".to_owned()));
    }
    Ok(Read { shown: files.shown(&file), file, skip, lines: lines.min(MOST_LINES) })
}

impl Read {
    pub(crate) fn title(&self) -> String {
        match (self.skip, self.lines) {
            (0, MOST_LINES) => format!("Read {}", self.shown),
            (skip, lines) => format!("Read {} from line {}, {lines} lines at most", self.shown, skip + 1),
        }
    }

    pub(super) fn run(self, files: &Files, stop: &CancellationToken) -> Outcome {
        let shown = &self.shown;
        let file = match open(&self.file) {
            Ok(file) => file,
            Err(error) => return Outcome::failed(format!("cannot read {shown}: {error}")),
        };
        let wanted = LineRange { skip: self.skip, lines: self.lines, bytes: MOST_BYTES };
        let (content, stamp) = match text::read(file, wanted, stop) {
            Ok(read) => read,
            Err(_) if stop.is_cancelled() => return Outcome::cancelled(format!("reading {shown} was stopped")),
            Err(error) => return Outcome::failed(format!("cannot read {shown}: {error}")),
        };
        if matches!(content, Content::Text(_) | Content::Picture(_)) {
            files.seen.note(self.file.path(), stamp);
        }
        match content {
            Content::Text(page) => self.page(&page),
            Content::Picture(image) => {
                let text = format!("{shown} is a picture ({}); it is attached.", image.media_type);
                Outcome { images: vec![image], ..Outcome::done(text) }
            }
            Content::LargePicture(bytes) => {
                Outcome::failed(format!("{shown} is a picture of {bytes} bytes: too large to be shown, 5 MiB at most"))
            }
            Content::Binary => Outcome::failed(format!(
                "{shown} is not a text: it holds binary data. Look at it with a shell command made for its kind"
            )),
        }
    }

    fn page(&self, page: &Page) -> Outcome {
        let shown = &self.shown;
        match page.total {
            Some(0) => Outcome::done(format!("[{shown} is empty.]")),
            Some(total) if page.lines == 0 => {
                Outcome::failed(format!("{shown} has {total} lines: there is none after the first {}", self.skip))
            }
            _ => Outcome::done(format!("{}{}", page.notes(), page.text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use multitap_event::ToolOutcome;

    use super::super::files::tests::{Scene, peak_memory};
    use super::*;

    async fn read(scene: &Scene, arguments: serde_json::Value) -> String {
        let outcome = scene.call(NAME, arguments).await;
        assert_eq!(outcome.outcome, ToolOutcome::Completed, "{}", outcome.text);
        outcome.text
    }

    async fn refusal(scene: &Scene, arguments: serde_json::Value) -> String {
        let outcome = scene.call(NAME, arguments).await;
        assert_eq!(outcome.outcome, ToolOutcome::Failed, "{}", outcome.text);
        outcome.text
    }

    #[tokio::test]
    async fn a_text_is_read_by_any_of_its_names() {
        let scene = Scene::new(&[("src/a.txt", "one\ntwo\n"), ("empty", "")]);
        let absolute = scene.path("src/a.txt").display().to_string();
        for arguments in [
            json!({ "absolute_path": absolute }),
            json!({ "path": "src/a.txt" }),
            json!({ "file_path": "./src/../src/a.txt", "limit": "9", "offset": 0.0 }),
        ] {
            assert_eq!(read(&scene, arguments).await, "one\ntwo\n");
        }
        assert_eq!(read(&scene, json!({ "path": "empty" })).await, "[empty is empty.]");
    }

    #[tokio::test]
    async fn lines_are_chosen_and_what_is_missing_is_said() {
        let lines: String = (1..=5000).map(|line| format!("line {line}\n")).collect();
        let scene = Scene::new(&[("long", &lines)]);
        let text = read(&scene, json!({ "path": "long" })).await;
        assert!(text.starts_with("[Lines 1 to 2000 of 5000. To read on, use offset 2000.]\nline 1\n"), "{text:.99}");
        assert!(text.ends_with("line 2000\n"));
        let text = read(&scene, json!({ "path": "long", "offset": 4998, "limit": 10 })).await;
        assert_eq!(text, "[Lines 4999 to 5000 of 5000.]\nline 4999\nline 5000\n");
        let text = read(&scene, json!({ "path": "long", "start_line": 2, "end_line": 3 })).await;
        assert_eq!(text, "[Lines 2 to 3 of 5000. To read on, use offset 3.]\nline 2\nline 3\n");
        let text = refusal(&scene, json!({ "path": "long", "offset": 9000 })).await;
        assert_eq!(text, "long has 5000 lines: there is none after the first 9000");
        assert!(refusal(&scene, json!({ "path": "long", "limit": 0 })).await.contains("nothing to read"));
    }

    #[tokio::test]
    async fn much_text_is_bounded_in_bytes_and_in_the_length_of_a_line() {
        let wide = format!("{}\n", "x".repeat(1500)).repeat(1000);
        let scene = Scene::new(&[("wide", &wide), ("one", &"ä".repeat(1_000_000)), ("exact", &"x".repeat(2000))]);
        let text = read(&scene, json!({ "path": "wide" })).await;
        assert!(text.len() <= MOST_BYTES + 100, "{}", text.len());
        assert!(text.starts_with("[Lines 1 to 87 of 1000. To read on, use offset 87.]\n"), "{text:.99}");
        let text = read(&scene, json!({ "path": "one" })).await;
        assert!(text.starts_with("[1 line is longer than 2000 characters and cut.]\näää"), "{text:.99}");
        assert!(text.ends_with("ä… [1996000 more bytes in this line]\n"), "{}", &text[text.len() - 80..]);
        assert_eq!(read(&scene, json!({ "path": "exact" })).await, "x".repeat(2000));
    }

    #[tokio::test]
    async fn other_line_ends_and_broken_text_are_told() {
        let scene = Scene::new(&[("crlf", "a\r\nb\r\nc"), ("mixed", "a\r\nb\n"), ("bom", "\u{feff}a\n")]);
        scene.write("latin", b"gr\xfc\xdfe\n");
        let crlf = "[Lines end in CRLF here; replace and write_file keep that.]\na\nb\nc";
        assert_eq!(read(&scene, json!({ "path": "crlf" })).await, crlf);
        assert_eq!(read(&scene, json!({ "path": "mixed" })).await, "a\r\nb\n");
        assert_eq!(read(&scene, json!({ "path": "bom" })).await, "a\n");
        let latin = read(&scene, json!({ "path": "latin" })).await;
        assert_eq!(latin, "[It is not all UTF-8: what is not is shown as \u{fffd}.]\ngr\u{fffd}\u{fffd}e\n");
    }

    #[tokio::test]
    async fn pictures_come_as_pictures_and_other_binary_data_not_at_all() {
        let scene = Scene::new(&[]);
        scene.write("a.png", b"\x89PNG\r\n\x1a\n\0\0");
        scene.write("a.bin", b"abc\0def");
        scene.write("late.bin", [vec![b'x'; 9000], vec![b'\n', 0]].concat());
        let outcome = scene.call(NAME, json!({ "path": "a.png" })).await;
        assert_eq!(outcome.images.len(), 1);
        assert_eq!(outcome.images[0].media_type, "image/png");
        assert_eq!(outcome.images[0].data, "iVBORw0KGgoAAA==");
        for path in ["a.bin", "late.bin"] {
            assert!(refusal(&scene, json!({ "path": path })).await.contains("binary data"), "{path}");
        }
    }

    #[tokio::test]
    async fn a_huge_file_is_read_in_little_memory() {
        let scene = Scene::new(&[]);
        let before = peak_memory();
        let huge = std::fs::File::create(scene.path("huge")).unwrap();
        huge.set_len(1 << 30).unwrap();
        assert!(refusal(&scene, json!({ "path": "huge" })).await.contains("binary data"));
        // A text first, and then the hole: what is wanted comes without what is not.
        scene.write("later", "a line of text\n".repeat(1000));
        std::fs::OpenOptions::new().write(true).open(scene.path("later")).unwrap().set_len(1 << 30).unwrap();
        let text = read(&scene, json!({ "path": "later", "limit": 1 })).await;
        assert_eq!(text, "[Lines 1 to 1. To read on, use offset 1.]\na line of text\n");
        assert!(refusal(&scene, json!({ "path": "later" })).await.contains("binary data"));
        // Nor is the hole taken for lines that can be passed over.
        assert!(refusal(&scene, json!({ "path": "later", "offset": 2000 })).await.contains("binary data"));
        assert!(peak_memory() < before + 300, "{} MiB", peak_memory());
    }

    #[tokio::test]
    async fn wrong_arguments_are_named() {
        let scene = Scene::new(&[("a", "")]);
        for (arguments, words) in [
            (json!({}), "missing field `absolute_path`"),
            (json!({ "absolute_path": 5 }), "absolute_path: invalid type: integer `5`, expected a string"),
            (json!({ "path": ["a"] }), "path: invalid type: sequence"),
            (json!({ "path": "a", "limit": "many" }), "limit: invalid value: \"many\", expected a whole number from 0"),
            (json!({ "path": "a", "offset": -1 }), "offset: invalid value: -1, expected a whole number from 0"),
            (json!("a"), "must be a JSON object"),
            (json!({ "path": "../x" }), "lies outside the workspace"),
            (json!({ "path": "/etc/passwd" }), "lies outside the workspace"),
            (json!({ "path": "." }), "cannot read .: it is a folder"),
            (json!({ "path": "none" }), "cannot read none: it does not exist"),
        ] {
            let text = refusal(&scene, arguments.clone()).await;
            assert!(text.contains(words), "{arguments}: {text}");
        }
    }

    #[tokio::test]
    async fn reading_stops_when_it_is_told_to() {
        let scene = Scene::new(&[("a", "text\n")]);
        let job = scene.prepare(NAME, json!({ "path": "a" })).await.unwrap();
        let (progress, _told) = tokio::sync::mpsc::channel(1);
        let stop = CancellationToken::new();
        stop.cancel();
        let outcome =
            scene.tools.run(crate::policy::Approved::in_a_test(job), crate::tool::ToolContext { progress, stop }).await;
        assert_eq!(outcome.outcome, ToolOutcome::Cancelled);
    }
}
