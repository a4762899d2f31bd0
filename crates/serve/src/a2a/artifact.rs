//! Results of a turn as artifacts, where clients look for them that know A2A alone: the final answer, structured output
//! and the changed files. Pure.

use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use multitap_a2a::{Artifact, Content, Message, Part};
use multitap_event::{FileChange, FileChangeType, shortened};
use serde_json::Value;

use super::frame::{ToolStatus, ToolView};

/// The id of the artifact with the final answer.
const ANSWER: &str = "answer";
/// The id of the artifact with structured output.
const OUTPUT: &str = "output";
const JSON: &str = "application/json";
const DIFF: &str = "text/x-diff";
const PLAIN: &str = "text/plain";
/// Most bytes of one text; the status message and the tool calls have the whole.
const TEXT_BYTES: usize = 256 * 1024;
/// Most artifacts of a task, and most bytes of them all. The oldest are left out.
const MOST: usize = 100;
const ALL_BYTES: usize = 1024 * 1024;

/// The artifacts of the last turn so far.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    made: Vec<Artifact>,
    /// The agent's output in the form that was asked for.
    output: Option<Value>,
}

impl Artifacts {
    /// Another turn begins.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn output(&mut self, output: &Value) {
        self.output = Some(output.clone());
    }

    /// Adds the files that a finished call changed.
    pub(super) fn add(&mut self, tool: &ToolView) {
        if tool.status != ToolStatus::Succeeded || tool.changes.is_empty() {
            return;
        }
        let names: Vec<&str> = tool.changes.iter().map(|change| file_name(change)).collect();
        let paths: Vec<&str> = tool.changes.iter().map(|change| change.file_path.as_str()).collect();
        self.made.push(Artifact {
            artifact_id: format!("changes-{}", tool.call.tool_id),
            name: Some(shortened(&names.join(", "), 200)),
            description: Some(shortened(&format!("Changes to {}", paths.join(", ")), 1000)),
            parts: tool.changes.iter().map(|change| part(change)).collect(),
            ..Artifact::default()
        });
    }

    /// All of them, with the final answer as the first.
    pub(super) fn finish(self, answer: Option<&Message>) -> Vec<Artifact> {
        let texts = answer.into_iter().flat_map(|answer| &answer.parts).filter_map(|part| match &part.content {
            Content::Text(text) => Some(Part::text(bounded(text))),
            Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
        });
        let parts: Vec<Part> = texts.collect();
        let answer = (!parts.is_empty()).then(|| Artifact {
            artifact_id: ANSWER.to_owned(),
            name: Some("Answer".to_owned()),
            parts,
            ..Artifact::default()
        });
        let output = self.output.filter(|output| output.to_string().len() <= TEXT_BYTES).map(|output| Artifact {
            artifact_id: OUTPUT.to_owned(),
            name: Some("Output".to_owned()),
            parts: vec![Part { media_type: Some(JSON.to_owned()), ..Part::data(output) }],
            ..Artifact::default()
        });
        let mut left = ALL_BYTES;
        let fits = |artifact: &Artifact| {
            let fits = size(artifact) <= left;
            left = left.saturating_sub(size(artifact));
            fits
        };
        let mut last: Vec<Artifact> = self.made.into_iter().rev().take(MOST).take_while(fits).collect();
        last.reverse();
        answer.into_iter().chain(output).chain(last).collect()
    }
}

/// A new file as it is, the diff of a changed one.
fn part(change: &FileChange) -> Part {
    let is_new = change.change_type == FileChangeType::Created;
    let (content, media_type) = match (&change.diff, &change.after) {
        (_, Some(after)) if is_new && after.len() <= TEXT_BYTES => (Content::Raw(BASE64_STANDARD.encode(after)), PLAIN),
        (Some(diff), _) => (Content::Text(bounded(diff)), DIFF),
        (None, after) => (Content::Text(bounded(after.as_deref().unwrap_or_default())), PLAIN),
    };
    let filename = Some(file_name(change).to_owned());
    Part { filename, media_type: Some(media_type.to_owned()), ..Part::of(content) }
}

fn file_name(change: &FileChange) -> &str {
    Path::new(&change.file_path).file_name().and_then(|name| name.to_str()).unwrap_or(&change.file_path)
}

/// A text, or its begin and how much is left out.
fn bounded(text: &str) -> String {
    if text.len() <= TEXT_BYTES {
        return text.to_owned();
    }
    let end = (0..=TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}\n[{} more bytes]", &text[..end], text.len() - end)
}

fn size(artifact: &Artifact) -> usize {
    let texts = artifact.parts.iter().map(|part| match &part.content {
        Content::Text(text) | Content::Raw(text) => text.len(),
        Content::Url(_) | Content::Data(_) => 0,
    });
    texts.sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use multitap_a2a::Map;
    use multitap_event::{ToolKind, ToolStarted};

    use super::*;

    fn changed(id: usize, text: &str) -> ToolView {
        let mut change = FileChange::of("/a/b.txt", FileChangeType::Modified, &"t".into());
        change.diff = Some(text.to_owned());
        ToolView {
            call: Arc::new(ToolStarted {
                tool_id: format!("t{id}").as_str().into(),
                tool_name: "edit".to_owned(),
                tool_kind: ToolKind::Edit,
                title: None,
                arguments: Map::new(),
                server: None,
                parent_tool_id: None,
            }),
            status: ToolStatus::Succeeded,
            live: None,
            asked: None,
            answered: None,
            ruling: None,
            changes: vec![Arc::new(change)],
            end: None,
        }
    }

    #[test]
    fn artifacts_of_a_long_turn_are_bounded() {
        let mut artifacts = Artifacts::default();
        (0..1000).for_each(|id| artifacts.add(&changed(id, "+x")));
        let answer = Message { parts: vec![Part::text("é".repeat(TEXT_BYTES))], ..Message::default() };
        let made = artifacts.finish(Some(&answer));
        assert_eq!(made.len(), MOST + 1);
        assert_eq!((made[0].artifact_id.as_str(), made[MOST].artifact_id.as_str()), (ANSWER, "changes-t999"));
        let Content::Text(text) = &made[0].parts[0].content else { panic!() };
        assert!(text.ends_with(&format!("é\n[{TEXT_BYTES} more bytes]")) && text.len() < TEXT_BYTES + 40);

        let mut artifacts = Artifacts::default();
        (0..10).for_each(|id| artifacts.add(&changed(id, &"x".repeat(TEXT_BYTES * 2))));
        let made = artifacts.finish(None);
        assert!(made.iter().map(size).sum::<usize>() <= ALL_BYTES && made.len() == 3, "{}", made.len());
        assert_eq!(made[2].artifact_id, "changes-t9", "the latest stay");
    }
}
