//! A session such as people have: prompts, thoughts, tools with output, changes to files, answers with code.

use multitap_event::{
    Choice, ChoiceKind, Details, Draft, Event, EventKind, FileChange, FileChangeType, MessageId, Question, Reasoning,
    SessionId, TextChunk, Timestamp, TokenUsage, ToolCompleted, ToolId, ToolKind, ToolOutcome, ToolStarted, TurnEnd,
    TurnStatus, UserMessage,
};

/// How many chunks one message has while events come.
const CHUNKS: u64 = 300;

#[derive(Default)]
pub(crate) struct Session {
    seq: u64,
    turns: u64,
    chunks: u64,
    endless: Option<&'static str>,
}

/// A message in which there is no empty line.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Endless {
    /// Nor any other end of a line.
    Paragraph,
    Lines,
    Code,
}

impl Endless {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Paragraph => "one paragraph",
            Self::Lines => "one list",
            Self::Code => "one block of code",
        }
    }
}

impl Session {
    fn event(&mut self, kind: EventKind) -> Event {
        self.seq += 1;
        Draft::new(Timestamp::from_millis(0), kind).stamp(SessionId::from("bench"), self.seq)
    }

    /// A question about a change of that many lines.
    pub(crate) fn question(&mut self, lines: usize) -> Event {
        let diff: String =
            (0..lines / 2).map(|line| format!("-    let x{line} = old();\n+    let x{line} = new();\n")).collect();
        let option =
            |id: &str, name: &str, kind| Choice { id: id.into(), name: name.to_owned(), kind, owner_only: false };
        let details =
            Details::FileEdit { file_path: "src/main.rs".to_owned(), before: None, after: None, diff: Some(diff) };
        self.event(EventKind::PermissionAsked(Question {
            question_id: "question".into(),
            tool_id: None,
            tool_name: None,
            title: "Edit src/main.rs".to_owned(),
            options: vec![
                option("allow", "Allow once", ChoiceKind::AllowOnce),
                option("deny", "Deny", ChoiceKind::RejectOnce),
            ],
            details,
            edits: Vec::new(),
            reason: None,
        }))
    }

    /// A whole turn, and about how many lines it comes to.
    pub(crate) fn turn(&mut self, mut tell: impl FnMut(Event)) -> usize {
        self.turns += 1;
        let number = self.turns;
        let tool = ToolId::from(format!("tool {number}"));
        let content = format!("Look at module {number} and make it quicker, please.");
        let output: String = (0..12).map(|line| format!("test case_{number}_{line} ... ok\n")).collect();
        let diff: String =
            (1..=10).map(|line| format!("-    let x{line} = old();\n+    let x{line} = new({number});\n")).collect();
        let answer = format!(
            "## Done\n\nThe loop in `module_{number}` was **quadratic**. Now:\n\n- it reads each line once\n- it keeps \
             what it has read\n\n```rust\nfn main() {{\n    // number {number}\n    let text = \"a string\";\n    for line \
             in text.lines() {{\n        println!(\"{{line}}\");\n    }}\n}}\n```\n\nAll tests pass."
        );
        let kinds = [
            EventKind::UserMessage(UserMessage { content, ..UserMessage::default() }),
            EventKind::Reasoning(Reasoning {
                content: "The user wants it quicker.\nI look at the loop first.".to_owned(),
                is_partial: false,
                message_id: None,
                parent_tool_id: None,
            }),
            EventKind::ToolStarted(ToolStarted {
                tool_id: tool.clone(),
                tool_name: "run_shell_command".to_owned(),
                tool_kind: ToolKind::Shell,
                title: Some("cargo test".to_owned()),
                arguments: Default::default(),
                server: None,
                parent_tool_id: None,
            }),
            EventKind::ToolCompleted(ToolCompleted {
                tool_id: tool,
                success: true,
                outcome: ToolOutcome::Completed,
                result: Some(output.into()),
                error: None,
                exit_code: Some(0),
                duration_ms: None,
            }),
            EventKind::FileChanged(FileChange {
                file_path: format!("src/module_{number}.rs"),
                change_type: FileChangeType::Modified,
                diff: Some(format!("@@ -1,10 +1,10 @@\n{diff}")),
                before: None,
                after: None,
                tool_id: None,
                old_path: None,
            }),
            EventKind::TextChunk(chunk(answer, false, MessageId::from(format!("m{number}")))),
            EventKind::TurnCompleted(TurnEnd {
                usage: Some(TokenUsage::of(12_000, 345)),
                duration_ms: Some(8_400),
                cost_usd: Some(0.0123),
                ..TurnEnd::of(TurnStatus::Completed)
            }),
        ];
        for kind in kinds {
            tell(self.event(kind));
        }
        62
    }

    /// A little more of what the agent says, in answers of some length.
    pub(crate) fn chunk(&mut self) -> Event {
        let id = format!("live {}", self.chunks / CHUNKS);
        self.piece(id)
    }

    /// A little more of one long answer.
    pub(crate) fn more(&mut self) -> Event {
        self.piece("long".to_owned())
    }

    /// A little more of a message without an empty line, and how many bytes that is.
    pub(crate) fn endless(&mut self, endless: Endless, mut tell: impl FnMut(Event)) -> usize {
        self.chunks += 1;
        let id = MessageId::from(endless.name().to_owned());
        if self.endless.replace(endless.name()) != Some(endless.name()) && matches!(endless, Endless::Code) {
            tell(self.event(EventKind::TextChunk(chunk("```rust\n".to_owned(), true, id.clone()))));
        }
        let text = match endless {
            Endless::Paragraph => "words that go on and on, `some` of them **bold**, ".to_owned(),
            Endless::Lines => format!("- item {} of a list, with `code`\n", self.chunks),
            Endless::Code => format!("    let x{} = \"text\"; // one more line of it\n", self.chunks),
        };
        let bytes = text.len();
        tell(self.event(EventKind::TextChunk(chunk(text, true, id))));
        bytes
    }

    fn piece(&mut self, id: String) -> Event {
        self.chunks += 1;
        let text = match self.chunks % 12 {
            0 => "\n\n```rust\nfn f(x: u32) -> u32 { x + 1 } // one more\n```\n\n",
            6 => "\n- ",
            _ => "a few words of **it** ",
        };
        self.event(EventKind::TextChunk(chunk(text.to_owned(), true, MessageId::from(id))))
    }
}

fn chunk(content: String, is_partial: bool, id: MessageId) -> TextChunk {
    TextChunk { content, is_partial, role: None, message_id: Some(id), parent_tool_id: None }
}
