//! The commands of the terminal, in one table for sending, completion, help and the documents; and the commands that the
//! agent lists. Pure.

use multitap_event::{AgentCommand, CommandArgument};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Model,
    Mode,
    Agents,
    Sessions,
    New,
    Clear,
    Share,
    Clients,
    Stats,
    Image,
    Copy,
    Help,
    Quit,
}

#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) own: Own,
    /// Without the slash.
    pub(crate) name: &'static str,
    /// The arguments; optional ones in brackets.
    pub(crate) argument: &'static str,
    pub(crate) does: &'static str,
    /// Arguments to choose from, and what each does.
    pub(crate) words: &'static [(&'static str, &'static str)],
}

const fn plain(own: Own, name: &'static str, argument: &'static str, does: &'static str) -> Command {
    Command { own, name, argument, does, words: &[] }
}

/// All commands, in the order in which they are shown.
pub(crate) const COMMANDS: &[Command] = &[
    plain(Own::Model, "model", "[NAME]", "choose a model, or switch to NAME"),
    plain(Own::Mode, "mode", "[MODE]", "choose an approval mode, or switch to MODE"),
    plain(Own::Agents, "agents", "", "list the agents on this machine, and how to install others"),
    plain(Own::Sessions, "sessions", "", "resume an earlier session of this folder"),
    plain(Own::New, "new", "", "start a new session, and end this one"),
    plain(Own::Clear, "clear", "", "clear the conversation: the agent's own /clear, or else a new session"),
    Command {
        own: Own::Share,
        name: "share",
        argument: "[on [PORT] | off]",
        does: "let others join over A2A; shows the address and a QR code",
        words: &[("on", "start sharing, on PORT or any free port"), ("off", "stop sharing")],
    },
    plain(Own::Clients, "clients", "", "list connected clients and their roles; choose one to kick it"),
    plain(Own::Stats, "stats", "", "show turns, tokens and cost of this session"),
    plain(Own::Image, "image", "PATH [WORDS]", "add an image to the prompt, and text before it"),
    plain(Own::Copy, "copy", "", "copy the last answer"),
    plain(Own::Help, "help", "", "list these commands and those of the agent"),
    plain(Own::Quit, "quit", "", "quit"),
];

const ALIASES: &[(&str, Own)] = &[("exit", Own::Quit), ("resume", Own::Sessions)];

pub(crate) fn find(line: &str) -> Option<(Own, &str)> {
    let rest = line.trim().strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let own = COMMANDS.iter().find(|command| command.name == name).map(|command| command.own);
    let own = own.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, own)| *own))?;
    Some((own, argument.trim()))
}

/// The name of the command that a line seems to be. A path or a comment is not a command.
pub(crate) fn name(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name = |c: char| c.is_alphanumeric() || "-_:.$?".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) name: String,
    pub(crate) argument: String,
    pub(crate) does: String,
    pub(crate) words: Vec<Offered>,
}

impl Offered {
    fn of(command: &Command) -> Self {
        let word = |(name, does): &(&str, &str)| Self {
            name: (*name).to_owned(),
            does: (*does).to_owned(),
            argument: String::new(),
            words: Vec::new(),
        };
        Self {
            name: command.name.to_owned(),
            argument: command.argument.to_owned(),
            does: command.does.to_owned(),
            words: command.words.iter().map(word).collect(),
        }
    }

    /// Whether it can be sent without an argument.
    pub(crate) fn is_whole(&self) -> bool {
        self.argument.is_empty() && self.words.is_empty() || self.argument.starts_with('[')
    }
}

impl From<&AgentCommand> for Offered {
    fn from(command: &AgentCommand) -> Self {
        let argument = |CommandArgument { name, is_required, .. }: &CommandArgument| {
            // Hints of agents bring their own brackets.
            if *is_required || name.starts_with(['[', '<']) { name.clone() } else { format!("[{name}]") }
        };
        Self {
            name: command.name.clone(),
            argument: command.arguments.iter().map(argument).collect::<Vec<_>>().join(" "),
            does: command.description.clone(),
            words: command.sub_commands.iter().map(Self::from).collect(),
        }
    }
}

/// The commands of the terminal, then those of the agent with other names.
pub(crate) fn all(agents: &[Offered]) -> Vec<Offered> {
    let own = COMMANDS.iter().map(Offered::of);
    let others = agents.iter().filter(|offered| COMMANDS.iter().all(|command| command.name != offered.name)).cloned();
    own.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_the_table() {
        let document = include_str!("../../../docs/terminal-commands.md");
        for command in COMMANDS {
            let argument = if command.argument.is_empty() { String::new() } else { format!(" {}", command.argument) };
            let row = format!("| `/{}{}` | {} |", command.name, argument.replace('|', "\\|"), command.does);
            assert!(document.contains(&row), "docs/terminal-commands.md lacks: {row}");
        }
    }

    #[test]
    fn a_line_is_a_command_with_what_follows() {
        assert_eq!(find("/model  opus "), Some((Own::Model, "opus")));
        assert_eq!(find("  /exit"), Some((Own::Quit, "")));
        assert_eq!(find("/modelling"), None);
        assert_eq!(find("model"), None);
        for (line, expected) in [
            ("/login now", Some("login")),
            (" /mcp:list", Some("mcp:list")),
            ("/", None),
            ("/etc/passwd", None),
            ("// a comment", None),
            ("/* one */", None),
            ("a /login", None),
        ] {
            assert_eq!(name(line), expected, "{line}");
        }
    }

    #[test]
    fn optional_arguments_are_in_brackets() {
        let argument =
            |name: &str, is_required| CommandArgument { name: name.into(), is_required, ..Default::default() };
        let add = AgentCommand { name: "add".into(), arguments: vec![argument("text", true)], ..Default::default() };
        let review = AgentCommand { name: "review".into(), arguments: vec![argument("file", false)], ..add.clone() };
        let memory = AgentCommand { name: "memory".into(), sub_commands: vec![add], ..Default::default() };
        let [review, memory] = [&review, &memory].map(Offered::from);
        assert_eq!((review.argument.as_str(), memory.words[0].argument.as_str()), ("[file]", "text"));
        assert!(review.is_whole() && !memory.is_whole() && !memory.words[0].is_whole());
    }
}
