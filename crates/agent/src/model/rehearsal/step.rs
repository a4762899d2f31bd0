//! The rules: splits a prompt into steps.

use serde_json::{Map, Value};

use crate::tools::todos;

/// Maximum length of a call's arguments: as values they need up to a hundred times as much memory.
const MAX_JSON: usize = 64 * 1024;

/// One thing the rehearsal does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Run(String),
    Read(String),
    List(String),
    Search {
        text: String,
        path: Option<String>,
    },
    Write {
        text: String,
        path: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Fetch(String),
    Plan(Vec<String>),
    Think(String),
    Ask(String),
    Call {
        server: String,
        tool: String,
        arguments: Value,
    },
    Remember(String),
    Slow(u32),
    Fail,
    /// No rule matches.
    Other(String),
}

impl Step {
    /// Whether it calls a tool.
    pub(super) fn calls(&self) -> bool {
        !matches!(self, Self::Think(_) | Self::Slow(_) | Self::Fail | Self::Other(_))
    }
}

/// Splits a prompt into its steps.
pub(super) fn steps(text: &str) -> Vec<Step> {
    text.trim().split(" then ").map(|step| step_of(step.trim())).collect()
}

fn step_of(text: &str) -> Step {
    rule(text).unwrap_or_else(|| Step::Other(text.to_owned()))
}

fn rule(text: &str) -> Option<Step> {
    let own = |text: &str| text.to_owned();
    if let Some(command) = after(text, "run") {
        return Some(Step::Run(own(command)));
    }
    if text.eq_ignore_ascii_case("list") {
        return Some(Step::List(".".to_owned()));
    }
    if text.eq_ignore_ascii_case("fail on purpose") {
        return Some(Step::Fail);
    }
    if let Some(path) = after(text, "read") {
        return Some(Step::Read(own(path)));
    }
    if let Some(path) = after(text, "list") {
        return Some(Step::List(own(path)));
    }
    if let Some(rest) = after(text, "search for") {
        return Some(match rest.rsplit_once(" in ") {
            Some((text, path)) => Step::Search { text: own(text.trim()), path: Some(own(path.trim())) },
            None => Step::Search { text: own(rest), path: None },
        });
    }
    if let Some(rest) = after(text, "write") {
        let (text, path) = rest.rsplit_once(" to ")?;
        return Some(Step::Write { text: own(text.trim()), path: own(path.trim()) });
    }
    if let Some(rest) = after(text, "edit") {
        let (path, change) = rest.split_once(": ")?;
        let (old, new) = change.split_once("=>")?;
        return Some(Step::Edit { path: own(path.trim()), old: own(old.trim()), new: own(new.trim()) });
    }
    if let Some(url) = after(text, "fetch") {
        return Some(Step::Fetch(own(url)));
    }
    if let Some(rest) = after(text, "plan") {
        let items = rest.split(';').map(|item| own(item.trim())).filter(|item| !item.is_empty());
        // One too many is enough for the tool to refuse the plan.
        return Some(Step::Plan(items.take(todos::MAX_STEPS + 1).collect()));
    }
    if let Some(about) = after(text, "think about") {
        return Some(Step::Think(own(about)));
    }
    if let Some(question) = after(text, "ask") {
        return Some(Step::Ask(own(question)));
    }
    if let Some(rest) = after(text, "call") {
        let (server, rest) = rest.split_once(' ')?;
        let (tool, json) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "{}"));
        // Left as it is if it is not JSON: the tool reports what is wrong.
        let parsed = Some(json.trim()).filter(|json| json.len() <= MAX_JSON).map(serde_json::from_str);
        let arguments = parsed.and_then(Result::ok).unwrap_or_else(|| Value::String(own(json)));
        let arguments = if arguments == Value::Null { Value::Object(Map::new()) } else { arguments };
        return Some(Step::Call { server: own(server), tool: own(tool), arguments });
    }
    if let Some(fact) = after(text, "remember") {
        return Some(Step::Remember(own(fact)));
    }
    after(text, "slow").and_then(|count| count.parse().ok()).map(Step::Slow)
}

/// The text after a keyword, with or without a colon; must not be empty.
fn after<'a>(text: &'a str, keyword: &str) -> Option<&'a str> {
    let head = text.get(..keyword.len())?;
    let rest = text.get(keyword.len()..)?;
    if !head.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let rest = match rest.strip_prefix(':') {
        Some(rest) => rest,
        None => rest.strip_prefix(' ')?,
    };
    Some(rest.trim()).filter(|rest| !rest.is_empty())
}
