//! The lines to read: recorded sessions, grown to the size of real work.
//!
//! A recording of the scripted model says a few words; a real session streams pages. So each session is a recording
//! whose streamed pieces are told many times over, with other words, and whose tools answer at length. All else is as
//! the CLI wrote it. The same seed gives the same lines on every machine.

use std::collections::BTreeMap;

use multitap_event::AgentType;
use multitap_testkit::fixture;
use serde_json::Value;

use crate::words::Words;

/// How a CLI speaks, and so how its lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dialect {
    Claude,
    AppServer,
    Exec,
    Acp,
    StreamJson,
}

impl Dialect {
    pub(crate) fn agent(self) -> AgentType {
        match self {
            Self::Claude => AgentType::Claude,
            Self::AppServer | Self::Exec => AgentType::Codex,
            Self::Acp | Self::StreamJson => AgentType::Gemini,
        }
    }

    /// What stands in a line that belongs to the opening of a session, which comes once.
    fn opening(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[r#""control_response""#],
            Self::AppServer => {
                &["userAgent", r#""result":{"thread":"#, "thread/started", "configWarning", "remoteControl"]
            }
            Self::Acp => &["protocolVersion", "availableModes", "available_commands_update"],
            // A process for each turn, and each opens.
            Self::Exec | Self::StreamJson => &[],
        }
    }

    /// What may grow in a line that contains `when`, and where it stands.
    fn rules(self) -> &'static [Rule] {
        match self {
            Self::Claude => &[
                Rule { when: "text_delta", at: "/event/delta/text", part: Part::Piece(Voice::Speech) },
                Rule { when: "thinking_delta", at: "/event/delta/thinking", part: Part::Piece(Voice::Thought) },
                Rule { when: "input_json_delta", at: "/event/delta/partial_json", part: Part::Piece(Voice::Input) },
                Rule { when: r#""assistant","#, at: "/message/content/0/text", part: Part::Whole(Voice::Speech) },
                Rule { when: r#""assistant","#, at: "/message/content/0/thinking", part: Part::Whole(Voice::Thought) },
                Rule { when: r#""stdout":"#, at: "/message/content/0/content", part: Part::Output },
                Rule { when: r#""stdout":"#, at: "/tool_use_result/stdout", part: Part::Output },
                Rule { when: r#""numLines":"#, at: "/message/content/0/content", part: Part::Output },
                Rule { when: r#""numLines":"#, at: "/tool_use_result/file/content", part: Part::Output },
            ],
            Self::AppServer => &[
                Rule { when: "item/agentMessage/delta", at: "/params/delta", part: Part::Piece(Voice::Speech) },
                Rule { when: "summaryTextDelta", at: "/params/delta", part: Part::Piece(Voice::Thought) },
                Rule { when: "item/completed", at: "/params/item/text", part: Part::Whole(Voice::Speech) },
                Rule { when: "item/completed", at: "/params/item/summary/0", part: Part::Whole(Voice::Thought) },
                Rule { when: "outputDelta", at: "/params/delta", part: Part::Output },
                Rule { when: "item/completed", at: "/params/item/aggregatedOutput", part: Part::Output },
            ],
            Self::Exec => &[
                Rule { when: "item.completed", at: "/item/text", part: Part::Whole(Voice::Speech) },
                Rule { when: "item.completed", at: "/item/aggregated_output", part: Part::Output },
            ],
            Self::Acp => &[
                Rule {
                    when: "agent_message_chunk",
                    at: "/params/update/content/text",
                    part: Part::Piece(Voice::Speech),
                },
                Rule {
                    when: "agent_thought_chunk",
                    at: "/params/update/content/text",
                    part: Part::Piece(Voice::Thought),
                },
                Rule { when: "tool_call_update", at: "/params/update/content/0/content/text", part: Part::Output },
            ],
            Self::StreamJson => &[
                Rule { when: r#""delta":true"#, at: "/content", part: Part::Piece(Voice::Speech) },
                Rule { when: "tool_result", at: "/output", part: Part::Output },
            ],
        }
    }
}

struct Rule {
    when: &'static str,
    at: &'static str,
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A piece of a streamed text. It comes many times.
    Piece(Voice),
    /// The whole text, which is all its pieces.
    Whole(Voice),
    /// What a tool wrote.
    Output,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Voice {
    Speech,
    Thought,
    Input,
}

/// The recordings that sessions are made of: text, thoughts, shells, edits, plans, questions, as they go well.
const CASES: &[(Dialect, &[&str])] = &[
    (Dialect::Claude, &["stream_partial", "text_tool_text", "text_tool_text", "perm_edit_allow", "todo_task45"]),
    (
        Dialect::AppServer,
        &["as_shell_accept", "as_patch_accept", "as_reasoning", "as_plan", "as_multi_turn", "as_mcp_approval"],
    ),
    (Dialect::Exec, &["exec_patch", "exec_plan"]),
    (Dialect::Acp, &["acp_text", "acp_shell_noninteractive", "acp_write_nofs", "acp_multi", "acp_load_a"]),
    (Dialect::StreamJson, &["sj_shell_yolo", "sj_text"]),
];

/// How many pieces a streamed text comes in.
const PIECES: std::ops::Range<usize> = 10..100;

/// How many turns a session has: the recording, so many times, with other ids.
const TURNS: std::ops::Range<usize> = 2..10;

/// One session of a CLI, from its first line to its last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) dialect: Dialect,
    pub(crate) lines: Vec<String>,
}

/// Sessions of one agent, at least so many bytes of them.
pub(crate) fn sessions(agent: AgentType, bytes: usize, seed: u64) -> Vec<Session> {
    let cases: Vec<(Dialect, Vec<String>)> = CASES
        .iter()
        .filter(|(dialect, _)| dialect.agent() == agent)
        .flat_map(|(dialect, cases)| cases.iter().map(|case| (*dialect, recorded(agent, case))))
        .collect();
    let mut words = Words::new(seed);
    let (mut sessions, mut size) = (Vec::new(), 0);
    while size < bytes {
        let (dialect, recorded) = &cases[words.below(cases.len())];
        let session = grown(*dialect, recorded, &mut words);
        size += session.lines.iter().map(|line| line.len() + 1).sum::<usize>();
        sessions.push(session);
    }
    sessions
}

fn recorded(agent: AgentType, case: &str) -> Vec<String> {
    let fixture = fixture::case(agent.as_str(), case).unwrap();
    fixture.stdout().filter(|line| line.starts_with('{')).map(str::to_owned).collect()
}

/// A session of several turns, each of them the recording.
fn grown(dialect: Dialect, recorded: &[String], words: &mut Words) -> Session {
    let mut lines = Vec::new();
    for turn in 0..TURNS.start + words.below(TURNS.len()) {
        let opening = |line: &&String| dialect.opening().iter().any(|sign| line.contains(sign));
        let of_turn = recorded.iter().filter(|line| turn == 0 || !opening(line));
        let of_turn: Vec<String> = of_turn.map(|line| with_other_ids(line, turn)).collect();
        grow(dialect, &of_turn, words, &mut lines);
    }
    Session { dialect, lines }
}

/// The line as another turn would write it: calls and messages have ids of their own.
fn with_other_ids(line: &str, turn: usize) -> String {
    let mark = |line: String, prefix: &str| line.replace(prefix, &format!("{prefix}{turn}"));
    ["\"call_", "__call_", "\"msg_", "\"toolu_", "\"rs_"].into_iter().fold(line.to_owned(), mark)
}

fn grow(dialect: Dialect, recorded: &[String], words: &mut Words, lines: &mut Vec<String>) {
    let mut pending: BTreeMap<Voice, String> = BTreeMap::new();
    let mut streaming = None;
    for line in recorded {
        let Some(rule) = rule(dialect, line) else {
            streaming = None;
            lines.push(line.clone());
            continue;
        };
        let mut value: Value = serde_json::from_str(line).unwrap();
        match rule.part {
            // The recording's own further pieces of the same text are in those that were made of the first.
            Part::Piece(voice) if streaming == Some(voice) => {}
            Part::Piece(voice) => {
                streaming = Some(voice);
                for _ in 0..PIECES.start + words.below(PIECES.len()) {
                    let piece = words.piece();
                    pending.entry(voice).or_default().push_str(&piece);
                    put(&mut value, rule.at, &piece);
                    lines.push(value.to_string());
                }
            }
            Part::Whole(voice) => {
                let text = pending.remove(&voice).unwrap_or_else(|| words.text(800));
                put(&mut value, rule.at, &text);
                lines.push(value.to_string());
            }
            Part::Output => {
                let bytes = words.output_length();
                lines.push(with_output(dialect, line, &words.text(bytes)));
            }
        }
        if !matches!(rule.part, Part::Piece(_)) {
            streaming = None;
        }
    }
}

/// A session up to the answer of a tool, and that answer as a line of about so many bytes.
pub(crate) fn long_line(agent: AgentType, bytes: usize) -> (Session, String) {
    let (dialect, case) = match agent {
        AgentType::Claude => (Dialect::Claude, "text_tool_text"),
        AgentType::Codex => (Dialect::AppServer, "as_shell_accept"),
        _ => (Dialect::Acp, "acp_shell_noninteractive"),
    };
    let mut lines = recorded(agent, case);
    let is_output = |line: &String| {
        !line.contains("outputDelta") && rule(dialect, line).is_some_and(|rule| rule.part == Part::Output)
    };
    let at = lines.iter().position(is_output).unwrap();
    let frame = with_output(dialect, &lines[at], "").len();
    // The same text may stand in the line twice.
    let copies = with_output(dialect, &lines[at], "x").len() - frame;
    let text = Words::new(1).text(bytes.saturating_sub(frame) / copies);
    let line = with_output(dialect, &lines[at], &text);
    lines.truncate(at);
    (Session { dialect, lines }, line)
}

/// The rule for a line, if something of it may grow.
fn rule(dialect: Dialect, line: &str) -> Option<&'static Rule> {
    let mut rules = dialect.rules().iter().filter(|rule| line.contains(rule.when)).peekable();
    rules.peek()?;
    let value: Value = serde_json::from_str(line).unwrap();
    rules.find(|rule| value.pointer(rule.at).is_some_and(Value::is_string))
}

/// The line with that text wherever the tool's answer stands in it.
fn with_output(dialect: Dialect, line: &str, text: &str) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    for rule in dialect.rules().iter().filter(|rule| rule.part == Part::Output && line.contains(rule.when)) {
        put(&mut value, rule.at, text);
    }
    value.to_string()
}

fn put(value: &mut Value, at: &str, text: &str) {
    if let Some(place) = value.pointer_mut(at).filter(|place| place.is_string()) {
        *place = text.into();
    }
}
