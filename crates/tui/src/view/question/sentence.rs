//! What a question asks, in one sentence. Pure.

use multitap_event::{AgentType, Details, Question};

use crate::app::Dialog;
use crate::clean::{clean, clean_line};
use crate::transcript::relative;

/// The question as a sentence: `Allow Claude to edit src/main.rs? (+3 −1)`.
pub(super) fn sentence(dialog: &Dialog, agent: Option<AgentType>, folder: Option<&str>) -> String {
    let question = &dialog.question;
    let agent = agent_name(agent);
    let what = match &question.details {
        Details::Plan { .. } | Details::Input { .. } => return one_line(&question.title),
        Details::Command { .. } => {
            permitted(&question.title).unwrap_or_else(|| format!("run {}", one_line(&question.title)))
        }
        Details::FileEdit { file_path, before, .. } => {
            let verb = match question.title.split(' ').next().unwrap_or_default() {
                "Write" | "Writing" | "Create" if before.is_none() => "create",
                "Delete" => "delete",
                _ => "edit",
            };
            let several = question.title.split_once(' ').map(|(_, rest)| rest).filter(|rest| names_several(rest));
            let changes = counted(dialog.counts);
            let target = clean_line(relative(several.unwrap_or(file_path), folder));
            return format!("Allow {agent} to {verb} {target}?{changes}");
        }
        Details::Mcp { server, tool, .. } => format!("use {tool} of {server}"),
        Details::Text { .. } => match permitted(&question.title) {
            Some(what) => what,
            // The agent's own words, which may be a sentence already.
            None => return one_line(&question.title),
        },
    };
    format!("Allow {agent} to {}?", clean_line(&what))
}

fn agent_name(agent: Option<AgentType>) -> &'static str {
    match agent {
        Some(AgentType::Claude) => "Claude",
        Some(AgentType::Codex) => "Codex",
        Some(AgentType::Gemini) => "Gemini",
        Some(AgentType::Builtin | AgentType::Acp) | None => "the agent",
    }
}

/// What a title says would be done, if it begins with the name of an action.
fn permitted(title: &str) -> Option<String> {
    const ACTIONS: [(&str, &str); 12] = [
        ("Connect to ", "connect to "),
        ("Fetch ", "fetch "),
        ("WebFetch ", "fetch "),
        ("WebSearch ", "search the web for "),
        ("Read ", "read "),
        ("List ", "list "),
        ("Find ", "find "),
        ("Search for ", "search for "),
        ("Grep ", "search for "),
        ("Glob ", "find "),
        ("Remember: ", "remember: "),
        ("Run ", "run "),
    ];
    let action = ACTIONS.iter().find_map(|(begins, verb)| Some((verb, title.strip_prefix(begins)?)));
    action.map(|(verb, what)| format!("{verb}{what}"))
}

/// Whether a title names one of several files.
fn names_several(target: &str) -> bool {
    target.ends_with(" more file") || target.ends_with(" more files")
}

/// ` (+3 −1)`
fn counted((added, removed): (usize, usize)) -> String {
    let sign = |sign: char, count: usize| (count > 0).then(|| format!("{sign}{count}"));
    let parts: Vec<String> = [sign('+', added), sign('−', removed)].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(" ")) }
}

/// The first line of a text, and a mark if there are more.
pub(super) fn one_line(text: &str) -> String {
    let text = clean(text);
    let more = if text.trim().contains('\n') { " …" } else { "" };
    format!("{}{more}", text.trim().lines().next().unwrap_or_default())
}

/// Whether the sentence says all that the question's own title does.
pub(super) fn is_said(question: &Question, words: &str) -> bool {
    words.trim() == question.title.trim() && permitted(&question.title).is_some()
}
