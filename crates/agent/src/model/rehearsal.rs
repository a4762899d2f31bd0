//! A stand-in for a model: follows simple requests by fixed rules, without a network, and so exercises every part of
//! Multitap.
//!
//! Deterministic: its reply depends on the conversation alone. It says in each conversation that it is no real model.

mod step;
#[cfg(test)]
mod tests;

use std::time::Duration;

use multitap_event::TokenUsage;
use serde_json::json;
use tokio::time::sleep;

use self::step::{Step, steps};
use super::{Delta, Deltas, ModelError, ModelErrorKind, Reply, Request};
use crate::conversation::{Answer, Call, Message};
use crate::tool::Spec;

pub(crate) const NAME: &str = "rehearsal";

/// Delay between the chunks of `slow N`.
const SLOW: Duration = Duration::from_millis(100);
/// The most chunks that `slow N` sends.
const SLOW_MOST: u32 = 10_000;
/// Approximate length of a piece of text.
const PIECE: usize = 24;
/// How many lines of a tool's result it repeats.
const REPEATED_LINES: usize = 12;

/// What the rehearsal is, and the alternatives to it; said once in a conversation.
const WHAT_THIS_IS: &str = "This is a rehearsal: I follow rules, there is no model behind me. For a real agent install \
Claude Code, Codex or Gemini CLI (`multitap doctor` says how), or set ANTHROPIC_API_KEY, OPENAI_API_KEY or \
GEMINI_API_KEY.";

/// The rules, as shown to the user.
const RULES: &str = "  run: COMMAND              read PATH                 list [PATH]
  search for TEXT [in PATH] write TEXT to PATH        edit PATH: OLD => NEW
  fetch URL                 plan A; B; C              think about TEXT
  ask QUESTION              call SERVER TOOL {JSON}   remember TEXT
  slow N                    fail on purpose
Join steps with \" then \": write hello to a.txt then read a.txt";

#[derive(Debug, Clone, PartialEq)]
enum Act {
    Say(String),
    Think(String),
    Slow(u32),
    Call(Call),
    Fail,
}

pub(crate) async fn ask(request: Request, deltas: Deltas) -> Result<Reply, ModelError> {
    let mut said = 0;
    for act in acts(&request) {
        let made: Vec<Delta> = match act {
            Act::Say(text) => pieces(&text).into_iter().map(Delta::Text).collect(),
            Act::Think(text) => pieces(&text).into_iter().map(Delta::Thought).collect(),
            Act::Call(call) => vec![Delta::Call(call)],
            Act::Slow(count) => {
                for number in 1..=count {
                    said += 1;
                    send(&deltas, Delta::Text(format!("{number} "))).await?;
                    sleep(SLOW).await;
                }
                continue;
            }
            Act::Fail => {
                let why = "the rehearsal failed on purpose, as it was told to";
                return Err(ModelError::new(ModelErrorKind::Refused, why.to_owned()));
            }
        };
        for delta in made {
            said += 1;
            send(&deltas, delta).await?;
        }
    }
    let heard = request.messages.iter().map(|message| format!("{message:?}").len() as u64 / 4).sum();
    Ok(Reply { usage: Some(TokenUsage::of(heard, said)), cut_short: None })
}

/// The receiver is gone: there is nothing left to send.
async fn send(deltas: &Deltas, delta: Delta) -> Result<(), ModelError> {
    let gone = "the rehearsal has no receiver any more";
    deltas.send(delta).await.map_err(|_| ModelError::new(ModelErrorKind::Connection, gone.to_owned()))
}

/// A text in small pieces, as a model would stream it.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in text.split_inclusive(char::is_whitespace) {
        match pieces.last_mut() {
            Some(last) if last.len() + word.len() <= PIECE => last.push_str(word),
            _ => pieces.push(word.to_owned()),
        }
    }
    pieces
}

fn acts(request: &Request) -> Vec<Act> {
    let messages = &request.messages;
    let Some(at) = messages.iter().rposition(|message| matches!(message, Message::User(_))) else { return Vec::new() };
    let Message::User(said) = &messages[at] else { return Vec::new() };
    let is_first = !messages[..at].iter().any(|message| matches!(message, Message::Assistant { .. }));
    let steps = steps(&said.text);
    let mut rounds = rounds(&steps);
    let done = messages[at..].iter().filter(|message| matches!(message, Message::Assistant { .. })).count();
    let mut acts = Vec::new();
    if let Some(Message::Results { answers }) = messages.last() {
        acts.extend(answers.iter().map(|answer| Act::Say(repeat(answer))));
    }
    let is_last = done + 1 >= rounds.len();
    if done < rounds.len() {
        for step in rounds.swap_remove(done) {
            acts.extend(perform(step, request, done));
        }
    }
    if is_last && is_first && !matches!(acts.last(), Some(Act::Fail)) {
        acts.push(Act::Say(format!("\n{WHAT_THIS_IS}")));
    }
    acts
}

/// The steps of each reply: a call ends a reply, since its result comes first. The last one ends the turn.
fn rounds(steps: &[Step]) -> Vec<Vec<&Step>> {
    let mut rounds = vec![Vec::new()];
    for step in steps {
        if let Some(round) = rounds.last_mut() {
            round.push(step);
        }
        if step.calls() {
            rounds.push(Vec::new());
        }
    }
    rounds
}

fn perform(step: &Step, request: &Request, done: usize) -> Vec<Act> {
    let call = |say: String, name: &str, arguments: serde_json::Value| {
        let call = Call { id: format!("rehearsal-{}", done + 1), name: name.to_owned(), arguments, signature: None };
        vec![Act::Say(format!("{say}\n")), Act::Call(call)]
    };
    match step {
        Step::Run(command) => call("I run it.".to_owned(), "run_shell_command", json!({ "command": command })),
        Step::Read(path) => call(format!("I read {path}."), "read_file", json!({ "absolute_path": path })),
        Step::List(path) => call(list_of(path), "list_directory", json!({ "path": path })),
        Step::Search { text, path } => {
            let mut arguments = json!({ "pattern": escape(text) });
            if let Some(path) = path {
                arguments["path"] = path.as_str().into();
            }
            call(format!("I search for {text}."), "search_file_content", arguments)
        }
        Step::Write { text, path } => {
            let arguments = json!({ "file_path": path, "content": format!("{text}\n") });
            call(format!("I write {path}."), "write_file", arguments)
        }
        Step::Edit { path, old, new } => {
            let arguments = json!({ "file_path": path, "old_string": old, "new_string": new });
            call(format!("I edit {path}."), "replace", arguments)
        }
        Step::Fetch(url) => {
            let arguments = json!({ "url": url, "prompt": format!("Read {url}") });
            call(format!("I fetch {url}."), "web_fetch", arguments)
        }
        Step::Plan(items) => {
            let status = |at: usize| if at == 0 { "in_progress" } else { "pending" };
            let todos: Vec<_> = items
                .iter()
                .enumerate()
                .map(|(at, item)| json!({ "description": item, "status": status(at) }))
                .collect();
            call("I write down a plan.".to_owned(), "write_todos", json!({ "todos": todos }))
        }
        Step::Ask(question) => call("I have to ask.".to_owned(), "ask_user", json!({ "question": question })),
        Step::Remember(fact) => call("I keep that in mind.".to_owned(), "save_memory", json!({ "fact": fact })),
        Step::Call { server, tool, arguments } => {
            let name = tool_name(&request.tools, server, tool);
            call(format!("I call {tool} of {server}."), &name, arguments.clone())
        }
        Step::Think(text) => vec![
            Act::Think(format!("**Thinking it over**\n\nThe user wants me to think about {text}. ")),
            Act::Think("I weigh it from every side, as far as rules can weigh.".to_owned()),
            Act::Say(format!("I thought about {text}.\n")),
        ],
        Step::Slow(count) => vec![Act::Slow((*count).min(SLOW_MOST)), Act::Say("\n".to_owned())],
        Step::Fail => vec![Act::Say("I am about to fail.\n".to_owned()), Act::Fail],
        Step::Other(text) => {
            let heard = if text.is_empty() { "nothing".to_owned() } else { format!("\"{text}\"") };
            vec![Act::Say(format!("You said {heard}. I can follow these:\n{RULES}\n"))]
        }
    }
}

fn list_of(path: &str) -> String {
    if path == "." { "I list this folder.".to_owned() } else { format!("I list {path}.") }
}

/// Full name of an MCP tool: as listed, or built from server and tool if it is not listed.
fn tool_name(tools: &[Spec], server: &str, tool: &str) -> String {
    let own = |spec: &&Spec| spec.server.as_deref() == Some(server) && spec.name.ends_with(tool);
    tools.iter().find(own).map_or_else(|| format!("mcp__{server}__{tool}"), |spec| spec.name.clone())
}

fn repeat(answer: &Answer) -> String {
    if answer.failed {
        return format!("That did not work: {}\n", answer.text.trim_end());
    }
    let lines: Vec<_> = answer.text.lines().collect();
    let more = lines.len().saturating_sub(REPEATED_LINES);
    let shown = lines[..lines.len() - more].join("\n");
    match more {
        0 => format!("{shown}\n"),
        more => format!("{shown}\n… and {more} more lines\n"),
    }
}

/// Escapes a text so that the pattern matches exactly that text.
fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}
