//! Directives in the user's own message, so that a person at the keyboard scripts the model too.
//!
//! `[[text:hello]]` `[[think:hm]]` `[[tool:touch made.txt]]` `[[write:PATH:CONTENT]]` `[[edit:PATH:OLD=>NEW]]`
//! `[[read:PATH]]` `[[mcp:SERVER:TOOL:{json}]]` `[[call:NAME:{json}]]` `[[slow:CHUNKS:MILLIS]]` `[[pause:MILLIS]]`
//! `[[hang]]` `[[cut]]` `[[fail:KIND]]` `[[status:CODE:TIMES]]` `[[usage:IN:OUT]]` `[[next]]`.
//!
//! Directives before the first `[[next]]` make the first reply, those after it the one after the tool
//! results are in, and so on. In the JSON of a `call`, `((…))` stands for `[[…]]`: so a sub-agent gets its own.

use std::time::Duration;

use serde_json::Value;

use super::script::{Reply, Step};
use super::tool::Tool;

/// The replies a message asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Directives {
    pub(super) replies: Vec<Reply>,
    /// Refuse with this status first, so many times (or always).
    pub(super) refuse: Option<(u16, Option<usize>)>,
}

/// Reads the directives in a message; none if there are none.
pub(super) fn parse(message: &str) -> Option<Directives> {
    let mut directives = Directives::default();
    let mut reply = Reply::new();
    let mut found = false;
    let mut rest = message;
    while let Some(start) = rest.find("[[") {
        rest = &rest[start + 2..];
        let Some((directive, after)) = take(rest) else { continue };
        rest = after;
        found = true;
        match directive {
            Directive::Next => directives.replies.push(std::mem::take(&mut reply)),
            Directive::Refuse(status, times) => directives.refuse = Some((status, times)),
            Directive::Usage(input, output) => reply = reply.usage(input, output),
            Directive::Do(steps) => reply.steps.extend(steps),
        }
    }
    directives.replies.push(reply);
    found.then_some(directives)
}

enum Directive {
    Next,
    Refuse(u16, Option<usize>),
    Usage(u64, u64),
    Do(Vec<Step>),
}

/// Reads one directive, up to the first `]]` that makes it whole: JSON may hold brackets itself.
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
        "status" => {
            let (status, times) = rest.split_once(':').unwrap_or((rest, ""));
            return Some(Directive::Refuse(status.parse().ok()?, times.parse().ok()));
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
        "cut" => Step::Cut,
        "fail" => Step::Fail { kind: rest.to_owned(), message: "scripted failure".to_owned() },
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
        assert_eq!(parse("please [help] me [[unknown:x]]"), None);
    }

    #[test]
    fn directives_are_read_in_order() {
        let directives = parse("do [[think:hm]] and [[text:hello]] [[tool:touch made.txt]] [[usage:7:8]]").unwrap();
        let expected = Reply::think("hm").then_text("hello").then_call(Tool::shell("touch made.txt")).usage(7, 8);
        assert_eq!(directives.replies, [expected]);
    }

    #[test]
    fn next_begins_the_reply_after_the_tool_results() {
        let directives = parse("[[tool:ls]] [[next]] [[text:done]]").unwrap();
        assert_eq!(directives.replies, [Reply::call(Tool::shell("ls")), Reply::text("done")]);
    }

    #[test]
    fn json_may_hold_brackets_and_inner_directives() {
        let directives = parse(r#"[[call:Agent:{"list":[[1]],"prompt":"((tool:ls))"}]] [[status:429:2]]"#).unwrap();
        let expected = Tool::native("Agent", json!({"list": [[1]], "prompt": "[[tool:ls]]"}));
        assert_eq!(directives.replies, [Reply::call(expected)]);
        assert_eq!(directives.refuse, Some((429, Some(2))));
    }
}
