//! Slash commands: one table for `/help`, for every door and for completion.
//!
//! This module parses them; the runner carries them out.

mod custom;

use std::path::Path;

use multitap_event::{AgentCommand, CommandArgument};

pub(crate) use self::custom::{CustomCommand, load};

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slash {
    Help,
    Tools,
    Mcp,
    MemoryShow,
    MemoryAdd(String),
    MemoryRefresh,
    Model(Option<String>),
    Mode(Option<String>),
    Compress,
    ChatSave(String),
    ChatList,
    ChatResume(String),
    ChatDelete(String),
    Stats,
    Clear,
    Share,
    Quit,
    /// The prompt that a custom command expands to.
    Prompt(String),
}

/// Every built-in command. A command with sub-commands does nothing without one.
const TABLE: &[Entry] = &[
    Entry::plain("help", "Show the commands", &[]),
    Entry::plain("tools", "Show the tools the agent has", &[]),
    Entry::plain("mcp", "Show the MCP servers and their status", &[]),
    Entry::group(
        "memory",
        "What the agent always remembers",
        &[
            Entry::plain("show", "Show it", &[]),
            Entry::plain("add", "Add something to it", &[Argument("text", "What to keep in mind", true)]),
            Entry::plain("refresh", "Read its files again", &[]),
        ],
    ),
    Entry::plain("model", "Show the model, or change it", &[Argument("name", "Such as anthropic/NAME", false)]),
    Entry::plain("mode", "Show the approval mode, or change it", &[Argument("name", "Such as auto-edit", false)]),
    Entry::plain("compress", "Summarize the conversation to make room", &[]),
    Entry::group(
        "chat",
        "Saved conversations",
        &[
            Entry::plain("save", "Keep this conversation", &[Argument("name", "Its name", true)]),
            Entry::plain("list", "List saved conversations", &[]),
            Entry::plain("resume", "Resume a saved conversation", &[Argument("name", "Its name", true)]),
            Entry::plain("delete", "Delete a saved conversation", &[Argument("name", "Its name", true)]),
        ],
    ),
    Entry::plain("stats", "Show what the session has used", &[]),
    Entry::plain("clear", "Forget the conversation", &[]),
    Entry::plain("share", "Show how others can join this session", &[]),
    Entry::plain("quit", "End the session", &[]),
];

struct Entry {
    name: &'static str,
    description: &'static str,
    arguments: &'static [Argument],
    sub: &'static [Entry],
}

struct Argument(&'static str, &'static str, bool);

impl Entry {
    const fn plain(name: &'static str, description: &'static str, arguments: &'static [Argument]) -> Self {
        Self { name, description, arguments, sub: &[] }
    }

    const fn group(name: &'static str, description: &'static str, sub: &'static [Self]) -> Self {
        Self { name, description, arguments: &[], sub }
    }

    fn shown(&self) -> AgentCommand {
        let argument = |Argument(name, description, is_required): &Argument| CommandArgument {
            name: (*name).to_owned(),
            description: (*description).to_owned(),
            is_required: *is_required,
        };
        AgentCommand {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            arguments: self.arguments.iter().map(argument).collect(),
            sub_commands: self.sub.iter().map(Self::shown).collect(),
        }
    }

    fn usage(&self, path: &str) -> String {
        let arguments = self.arguments.iter().map(|Argument(name, _, required)| {
            let name = name.to_uppercase();
            if *required { format!(" {name}") } else { format!(" [{name}]") }
        });
        format!("{path}{}", arguments.collect::<String>())
    }
}

/// Every command, custom ones last.
pub(crate) fn table(own: &[CustomCommand]) -> Vec<AgentCommand> {
    TABLE.iter().map(Entry::shown).chain(own.iter().map(CustomCommand::shown)).collect()
}

/// The commands available in that folder, to show or complete them before a session runs.
pub fn commands(config: Option<&Path>, folder: &Path) -> Vec<AgentCommand> {
    table(&load(config, folder))
}

/// Parses a line; `None` if it is not a command. An error says what is wrong with a command.
pub(crate) fn parse(line: &str, own: &[CustomCommand]) -> Option<Result<Slash, String>> {
    let rest = line.strip_prefix('/')?;
    let (name, rest) = word(rest);
    // Paths and comments are not commands.
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c)) {
        return None;
    }
    if let Some(entry) = TABLE.iter().find(|entry| entry.name == name) {
        return Some(find(entry, rest));
    }
    Some(match own.iter().find(|own| own.name == name) {
        Some(own) => own.prompt(rest).map(Slash::Prompt),
        None => Err(format!("unknown command /{name}; /help lists the commands")),
    })
}

fn find(entry: &Entry, rest: &str) -> Result<Slash, String> {
    if entry.sub.is_empty() {
        return slash(entry, &format!("/{}", entry.name), rest);
    }
    let (name, rest) = word(rest);
    let path = format!("/{} {name}", entry.name);
    match entry.sub.iter().find(|sub| sub.name == name) {
        Some(sub) => slash(sub, &path, rest),
        None => {
            let known = entry.sub.iter().map(|sub| sub.name).collect::<Vec<_>>().join(", ");
            Err(format!("/{} takes one of: {known}", entry.name))
        }
    }
}

fn slash(entry: &Entry, path: &str, rest: &str) -> Result<Slash, String> {
    let given = Some(rest).filter(|rest| !rest.is_empty()).map(str::to_owned);
    let required = entry.arguments.iter().any(|Argument(_, _, required)| *required);
    if required && given.is_none() {
        return Err(format!("say {}", entry.usage(path)));
    }
    if entry.arguments.is_empty() && given.is_some() {
        return Err(format!("{path} takes no arguments"));
    }
    let text = given.clone().unwrap_or_default();
    Ok(match path {
        "/help" => Slash::Help,
        "/tools" => Slash::Tools,
        "/mcp" => Slash::Mcp,
        "/memory show" => Slash::MemoryShow,
        "/memory add" => Slash::MemoryAdd(text),
        "/memory refresh" => Slash::MemoryRefresh,
        "/model" => Slash::Model(given),
        "/mode" => Slash::Mode(given),
        "/compress" => Slash::Compress,
        "/chat save" => Slash::ChatSave(text),
        "/chat list" => Slash::ChatList,
        "/chat resume" => Slash::ChatResume(text),
        "/chat delete" => Slash::ChatDelete(text),
        "/stats" => Slash::Stats,
        "/clear" => Slash::Clear,
        "/share" => Slash::Share,
        "/quit" => Slash::Quit,
        other => return Err(format!("{other} is not done here")),
    })
}

/// The first word, and the rest.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// All commands, for people.
pub(crate) fn help(own: &[CustomCommand]) -> String {
    let mut text = "Commands:\n".to_owned();
    let mut row = |usage: String, description: &str| text.push_str(&format!("  {usage:<24} {description}\n"));
    for entry in TABLE {
        if entry.sub.is_empty() {
            row(entry.usage(&format!("/{}", entry.name)), entry.description);
        }
        for sub in entry.sub {
            row(sub.usage(&format!("/{} {}", entry.name, sub.name)), sub.description);
        }
    }
    for own in own {
        row(format!("/{}", own.name), &own.description);
    }
    text.push_str("Beside them: @PATH puts a file into the prompt, !COMMAND runs a command yourself.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_the_table_is_done() {
        for entry in TABLE {
            for (path, entry) in match entry.sub {
                [] => vec![(format!("/{}", entry.name), entry)],
                subs => subs.iter().map(|sub| (format!("/{} {}", entry.name, sub.name), sub)).collect(),
            } {
                let line = if entry.arguments.is_empty() { path.clone() } else { format!("{path} x y") };
                let parsed = parse(&line, &[]).unwrap_or_else(|| panic!("{line}"));
                parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
                assert!(help(&[]).contains(&path), "{path} is not in /help");
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, error) in [
            ("/nope", "unknown command /nope; /help lists the commands"),
            ("/memory", "/memory takes one of: show, add, refresh"),
            ("/memory add", "say /memory add TEXT"),
            ("/help me", "/help takes no arguments"),
            ("/chat save", "say /chat save NAME"),
        ] {
            assert_eq!(parse(line, &[]), Some(Err(error.to_owned())), "{line}");
        }
        assert_eq!(parse("/memory add x y", &[]), Some(Ok(Slash::MemoryAdd("x y".into()))));
        for line in ["hello", "/usr/bin/ls", "/", "// a comment", ""] {
            assert_eq!(parse(line, &[]), None, "{line}");
        }
    }
}
