//! Slash commands: one table for `/help`, for every door and for completion.
//!
//! This module parses them; the runner carries them out.

mod custom;

use std::path::Path;

use multitap_event::{AgentCommand, CommandArgument};

use self::Does::{Group, May, Run, Take};
pub(crate) use self::custom::{CustomCommand, load};

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

const TABLE: &[Entry] = &[
    Entry("help", "Show the commands", Run(Slash::Help)),
    Entry("tools", "Show the tools the agent has", Run(Slash::Tools)),
    Entry("mcp", "Show the MCP servers and their status", Run(Slash::Mcp)),
    Entry(
        "memory",
        "What the agent always remembers",
        Group(&[
            Entry("show", "Show it", Run(Slash::MemoryShow)),
            Entry("add", "Add something to it", Take("text", "What to keep in mind", Slash::MemoryAdd)),
            Entry("refresh", "Read its files again", Run(Slash::MemoryRefresh)),
        ]),
    ),
    Entry("model", "Show the model, or change it", May("name", "Such as anthropic/NAME", Slash::Model)),
    Entry("mode", "Show the approval mode, or change it", May("name", "Such as auto-edit", Slash::Mode)),
    Entry("compress", "Summarize the conversation to make room", Run(Slash::Compress)),
    Entry(
        "chat",
        "Saved conversations",
        Group(&[
            Entry("save", "Keep this conversation", Take("name", "Its name", Slash::ChatSave)),
            Entry("list", "List saved conversations", Run(Slash::ChatList)),
            Entry("resume", "Resume a saved conversation", Take("name", "Its name", Slash::ChatResume)),
            Entry("delete", "Delete a saved conversation", Take("name", "Its name", Slash::ChatDelete)),
        ]),
    ),
    Entry("stats", "Show what the session has used", Run(Slash::Stats)),
    Entry("clear", "Forget the conversation", Run(Slash::Clear)),
    Entry("share", "Show how others can join this session", Run(Slash::Share)),
    Entry("quit", "End the session", Run(Slash::Quit)),
];

/// A command: its name, its description, and what it does.
struct Entry(&'static str, &'static str, Does);

enum Does {
    Run(Slash),
    /// Takes an argument: its name and description.
    Take(&'static str, &'static str, fn(String) -> Slash),
    /// Takes an argument or none.
    May(&'static str, &'static str, fn(Option<String>) -> Slash),
    /// Has sub-commands, and does nothing by itself.
    Group(&'static [Entry]),
}

impl Entry {
    fn sub(&self) -> &'static [Self] {
        if let Group(sub) = self.2 { sub } else { &[] }
    }

    fn shown(&self) -> AgentCommand {
        let argument = |name: &str, description: &str, is_required| CommandArgument {
            name: name.to_owned(),
            description: description.to_owned(),
            is_required,
        };
        AgentCommand {
            name: self.0.to_owned(),
            description: self.1.to_owned(),
            arguments: match self.2 {
                Take(name, description, _) => vec![argument(name, description, true)],
                May(name, description, _) => vec![argument(name, description, false)],
                Run(_) | Group(_) => Vec::new(),
            },
            sub_commands: self.sub().iter().map(Self::shown).collect(),
        }
    }

    fn usage(&self, path: &str) -> String {
        match self.2 {
            Take(name, ..) => format!("{path} {}", name.to_uppercase()),
            May(name, ..) => format!("{path} [{}]", name.to_uppercase()),
            Run(_) | Group(_) => path.to_owned(),
        }
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
    if let Some(entry) = TABLE.iter().find(|entry| entry.0 == name) {
        return Some(slash(entry, &format!("/{name}"), rest));
    }
    Some(match own.iter().find(|own| own.name == name) {
        Some(own) => own.prompt(rest).map(Slash::Prompt),
        None => Err(format!("unknown command /{name}; /help lists the commands")),
    })
}

fn slash(entry: &Entry, path: &str, rest: &str) -> Result<Slash, String> {
    let given = Some(rest).filter(|rest| !rest.is_empty()).map(str::to_owned);
    match (&entry.2, given) {
        (Run(slash), None) => Ok(slash.clone()),
        (Run(_), Some(_)) => Err(format!("{path} takes no arguments")),
        (Take(_, _, slash), Some(argument)) => Ok(slash(argument)),
        (Take(..), None) => Err(format!("say {}", entry.usage(path))),
        (May(_, _, slash), given) => Ok(slash(given)),
        (Group(sub), _) => {
            let (name, rest) = word(rest);
            match sub.iter().find(|sub| sub.0 == name) {
                Some(sub) => slash(sub, &format!("{path} {name}"), rest),
                None => {
                    Err(format!("{path} takes one of: {}", sub.iter().map(|sub| sub.0).collect::<Vec<_>>().join(", ")))
                }
            }
        }
    }
}

fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

pub(crate) fn help(own: &[CustomCommand]) -> String {
    let mut text = "Commands:\n".to_owned();
    let mut row = |usage: String, description: &str| text.push_str(&format!("  {usage:<24} {description}\n"));
    for entry @ Entry(name, description, does) in TABLE {
        match does {
            Group(sub) => sub.iter().for_each(|sub| row(sub.usage(&format!("/{name} {}", sub.0)), sub.1)),
            _ => row(entry.usage(&format!("/{name}")), description),
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
            for (path, entry) in match entry.sub() {
                [] => vec![(format!("/{}", entry.0), entry)],
                subs => subs.iter().map(|sub| (format!("/{} {}", entry.0, sub.0), sub)).collect(),
            } {
                let line = if matches!(entry.2, Run(_)) { path.clone() } else { format!("{path} x y") };
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
