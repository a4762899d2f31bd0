//! The rules: splits a prompt into steps.

use serde_json::{Map, Value};

use crate::tools::todos;

/// Maximum length of a call's arguments: as values they need up to a hundred times as much memory.
const MAX_JSON: usize = 64 * 1024;

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
    pub(super) fn calls(&self) -> bool {
        !matches!(self, Self::Think(_) | Self::Slow(_) | Self::Fail | Self::Other(_))
    }
}

pub(super) fn steps(text: &str) -> Vec<Step> {
    text.trim().split(" then ").map(|step| step_of(step.trim())).collect()
}

fn step_of(text: &str) -> Step {
    match text {
        _ if text.eq_ignore_ascii_case("list") => Step::List(".".to_owned()),
        _ if text.eq_ignore_ascii_case("fail on purpose") => Step::Fail,
        _ => rule(text).unwrap_or_else(|| Step::Other(text.to_owned())),
    }
}

const KEYWORDS: [&str; 13] = [
    "run",
    "read",
    "list",
    "search for",
    "write",
    "edit",
    "fetch",
    "plan",
    "think about",
    "ask",
    "call",
    "remember",
    "slow",
];

fn rule(text: &str) -> Option<Step> {
    let (keyword, rest) = KEYWORDS.into_iter().find_map(|keyword| Some((keyword, after(text, keyword)?)))?;
    let own = |text: &str| text.trim().to_owned();
    Some(match keyword {
        "run" => Step::Run(own(rest)),
        "read" => Step::Read(own(rest)),
        "list" => Step::List(own(rest)),
        "search for" => match rest.rsplit_once(" in ") {
            Some((text, path)) => Step::Search { text: own(text), path: Some(own(path)) },
            None => Step::Search { text: own(rest), path: None },
        },
        "write" => {
            let (text, path) = rest.rsplit_once(" to ")?;
            Step::Write { text: own(text), path: own(path) }
        }
        "edit" => {
            let (path, change) = rest.split_once(": ")?;
            let (old, new) = change.split_once("=>")?;
            Step::Edit { path: own(path), old: own(old), new: own(new) }
        }
        "fetch" => Step::Fetch(own(rest)),
        "plan" => {
            let items = rest.split(';').map(own).filter(|item| !item.is_empty());
            // One too many is enough for the tool to refuse the plan.
            Step::Plan(items.take(todos::MAX_STEPS + 1).collect())
        }
        "think about" => Step::Think(own(rest)),
        "ask" => Step::Ask(own(rest)),
        "call" => {
            let (server, rest) = rest.split_once(' ')?;
            let (tool, json) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "{}"));
            // Left as it is if it is not JSON: the tool reports what is wrong.
            let parsed = Some(json.trim()).filter(|json| json.len() <= MAX_JSON).map(serde_json::from_str);
            let arguments = parsed.and_then(Result::ok).unwrap_or_else(|| Value::String(own(json)));
            let arguments = if arguments == Value::Null { Value::Object(Map::new()) } else { arguments };
            Step::Call { server: own(server), tool: own(tool), arguments }
        }
        "remember" => Step::Remember(own(rest)),
        _ => Step::Slow(rest.parse().ok()?),
    })
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
