//! Directives in the user's own message, with which a person at the keyboard can script the model too.
//!
//! `[[text:hello]]` `[[think:hm]]` `[[tool:touch made.txt]]` `[[write:PATH:CONTENT]]` `[[edit:PATH:OLD=>NEW]]`
//! `[[read:PATH]]` `[[mcp:SERVER:TOOL:{json}]]` `[[call:NAME:{json}]]` `[[slow:CHUNKS:MILLIS]]` `[[pause:MILLIS]]`
//! `[[hang]]` `[[block]]` `[[cut:TIMES]]` `[[fail:KIND:TIMES]]` `[[status:CODE:TIMES]]` `[[usage:IN:OUT]]`
//! `[[recall]]` `[[next]]`.
//!
//! Directives before the first `[[next]]` make the first reply; those after it make the reply to the tool results, and
//! so on. `[[recall]]` repeats the user's earlier messages, to show that a session was resumed. `[[block]]` ends a
//! block of text. TIMES is how often something fails before it succeeds; always if left out. In the JSON of a `call`,
//! write `((…))` for `[[…]]`, so that a sub-agent gets its own directives.

use std::time::Duration;

use serde_json::Value;

use super::script::{Reply, Step};
use super::tool::Tool;

/// The context in which a message is answered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Situation<'a> {
    /// The earlier messages of the user.
    pub(super) earlier: &'a [String],
    /// How often this reply was given already: a CLI asks again after an error.
    pub(super) attempt: usize,
}

/// The replies that a message requests, in order; `None` if it contains no directive.
pub(super) fn parse(message: &str, situation: &Situation<'_>) -> Option<Vec<Reply>> {
    let mut replies = vec![Reply::new()];
    let mut found = false;
    let mut rest = message;
    while let Some(start) = rest.find("[[") {
        rest = &rest[start + 2..];
        let Some((directive, after)) = take(rest) else { continue };
        rest = after;
        found = true;
        if matches!(directive, Directive::Next) {
            replies.push(Reply::new());
        } else if let Some(reply) = replies.pop() {
            replies.push(directive.add_to(reply, situation));
        }
    }
    found.then_some(replies)
}

enum Directive {
    Next,
    Recall,
    Refuse {
        status: u16,
        times: Times,
    },
    Usage(u64, u64),
    Do(Vec<Step>),
    /// Interrupts the stream, the first so many times.
    BreakOff(Step, Times),
}

/// The number of times that something happens; always if not given.
type Times = Option<usize>;

impl Directive {
    fn add_to(self, reply: Reply, situation: &Situation<'_>) -> Reply {
        let still = |times: Times| times.is_none_or(|times| situation.attempt < times);
        match self {
            Self::Recall => reply.then_text(&format!("earlier you said: {}", situation.earlier.join(" | "))),
            Self::Refuse { status, times } if still(times) => Reply::status(status),
            Self::Usage(input, output) => reply.usage(input, output),
            Self::Do(steps) => steps.into_iter().fold(reply, Reply::step),
            Self::BreakOff(step, times) if still(times) => reply.step(step),
            Self::Next | Self::Refuse { .. } | Self::BreakOff(..) => reply,
        }
    }
}

/// Reads one directive, up to the first `]]` that completes it: JSON may contain brackets itself.
fn take(text: &str) -> Option<(Directive, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find("]]") {
        let end = from + found;
        if let Some(directive) = read(&text[..end]) {
            return Some((directive, &text[end + 2..]));
        }
        from = end + 1;
    }
    None
}

fn read(directive: &str) -> Option<Directive> {
    let (name, rest) = directive.split_once(':').unwrap_or((directive, ""));
    let step = match name {
        "next" => return Some(Directive::Next),
        "recall" => return Some(Directive::Recall),
        "status" => {
            let (status, times) = rest.split_once(':').unwrap_or((rest, ""));
            return Some(Directive::Refuse { status: status.parse().ok()?, times: times.parse().ok() });
        }
        "usage" => {
            let (input, output) = rest.split_once(':')?;
            return Some(Directive::Usage(input.parse().ok()?, output.parse().ok()?));
        }
        "slow" => {
            let (chunks, millis) = rest.split_once(':')?;
            let pause = Step::Pause(Duration::from_millis(millis.parse().ok()?));
            let chunk = |number| [pause.clone(), Step::Text(vec![format!("chunk {number} ")])];
            return Some(Directive::Do((1..=chunks.parse::<usize>().ok()?).flat_map(chunk).collect()));
        }
        "text" => return Some(Directive::Do(Reply::text(rest).steps)),
        "think" => return Some(Directive::Do(Reply::think(rest).steps)),
        "tool" => Step::Call(Tool::shell(rest)),
        "read" => Step::Call(Tool::read(rest)),
        "write" => {
            let (path, content) = rest.split_once(':')?;
            Step::Call(Tool::write(path, content))
        }
        "edit" => {
            let (path, change) = rest.split_once(':')?;
            let (old, new) = change.split_once("=>")?;
            Step::Call(Tool::edit(path, old, new))
        }
        "mcp" => {
            let (server, rest) = rest.split_once(':')?;
            let (tool, args) = rest.split_once(':')?;
            Step::Call(Tool::mcp(server, tool, json(args)?))
        }
        "call" => {
            let (name, args) = rest.split_once(':')?;
            Step::Call(Tool::native(name, json(args)?))
        }
        "pause" => Step::Pause(Duration::from_millis(rest.parse().ok()?)),
        "hang" => Step::Hang,
        "block" => Step::EndBlock,
        "cut" => return Some(Directive::BreakOff(Step::Cut, rest.parse().ok())),
        "fail" => {
            let (kind, times) = rest.split_once(':').unwrap_or((rest, ""));
            let fail = Step::Fail { kind: kind.to_owned(), message: "scripted failure".to_owned() };
            return Some(Directive::BreakOff(fail, times.parse().ok()));
        }
        _ => return None,
    };
    Some(Directive::Do(vec![step]))
}

fn json(text: &str) -> Option<Value> {
    // Checked before the inner directives are opened, so that their brackets cannot end this one.
    serde_json::from_str::<Value>(text).ok()?;
    serde_json::from_str(&text.replace("((", "[[").replace("))", "]]")).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_without_directives_asks_for_nothing() {
        assert_eq!(parse("please [help] me [[unknown:x]]", &Situation::default()), None);
    }

    #[test]
    fn directives_are_read_in_order() {
        let replies =
            parse("do [[think:hm]] and [[text:hello]] [[tool:touch made.txt]] [[usage:7:8]]", &Situation::default())
                .unwrap();
        let expected = Reply::think("hm").then_text("hello").then_call(Tool::shell("touch made.txt")).usage(7, 8);
        assert_eq!(replies, [expected]);
    }

    #[test]
    fn next_begins_the_reply_after_the_tool_results() {
        let replies = parse("[[tool:ls]] [[next]] [[text:done]]", &Situation::default()).unwrap();
        assert_eq!(replies, [Reply::call(Tool::shell("ls")), Reply::text("done")]);
    }

    #[test]
    fn recall_repeats_what_was_said_earlier() {
        let earlier = ["one".to_owned(), "two".to_owned()];
        let replies = parse("[[recall]]", &Situation { earlier: &earlier, attempt: 0 }).unwrap();
        assert_eq!(replies, [Reply::text("earlier you said: one | two")]);
    }

    #[test]
    fn errors_end_after_so_many_attempts() {
        let attempt = |attempt| parse("[[status:429:1]] [[text:half]] [[cut:2]]", &Situation { earlier: &[], attempt });
        assert_eq!(attempt(0).unwrap(), [Reply::status(429).then_text("half").then_cut()]);
        assert_eq!(attempt(1).unwrap(), [Reply::text("half").then_cut()]);
        assert_eq!(attempt(2).unwrap(), [Reply::text("half")]);
    }

    #[test]
    fn json_may_hold_brackets_and_inner_directives() {
        let replies = parse(r#"[[call:Agent:{"list":[[1]],"prompt":"((tool:ls))"}]]"#, &Situation::default()).unwrap();
        let expected = Tool::native("Agent", json!({"list": [[1]], "prompt": "[[tool:ls]]"}));
        assert_eq!(replies, [Reply::call(expected)]);
    }
}
