//! The commands of the terminal, in one table for sending, completion, help and the documents; and the commands that the
//! agent lists. Pure.

use serde_json::Value;

/// A command of the terminal.
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

/// Other names of commands.
const ALIASES: &[(&str, Own)] = &[("exit", Own::Quit), ("resume", Own::Sessions)];

/// The command of a line, and its argument.
pub(crate) fn find(line: &str) -> Option<(Own, &str)> {
    let rest = line.trim().strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let own = COMMANDS.iter().find(|command| command.name == name).map(|command| command.own);
    let own = own.or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, own)| *own))?;
    Some((own, argument.trim()))
}

/// The name of the command that a line seems to be. A path or a comment is none.
pub(crate) fn name(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('/')?.split(char::is_whitespace).next()?;
    let is_name = |c: char| c.is_alphanumeric() || "-_:.$?".contains(c);
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// A command of the terminal or of the agent.
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

    /// A command as an agent lists it, with the field names of any agent.
    fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = value.as_str().unwrap_or_else(|| text("name")).trim_start_matches('/').to_owned();
        let listed =
            |keys: [&str; 2]| keys.into_iter().find_map(|key| value.get(key)?.as_array()).into_iter().flatten();
        let arguments = listed(["arguments", "args"]).filter_map(|argument| {
            let name = argument.get("name")?.as_str()?;
            let needed = argument.get("isRequired").and_then(Value::as_bool).unwrap_or_default();
            Some(if needed { name.to_owned() } else { format!("[{name}]") })
        });
        let arguments = arguments.collect::<Vec<_>>().join(" ");
        let hint = value.get("argumentHint").or_else(|| value.pointer("/input/hint")).and_then(Value::as_str);
        let argument = if arguments.is_empty() { hint.unwrap_or_default().to_owned() } else { arguments };
        let words = listed(["subCommands", "sub_commands"]).filter_map(Self::read).collect();
        (!name.is_empty()).then(|| Self { name, argument, does: text("description").to_owned(), words })
    }
}

/// The commands that an agent lists.
pub(crate) fn read(data: &serde_json::Map<String, Value>) -> Vec<Offered> {
    let list = data.get("commands").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Offered::read).collect()
}

/// The commands of the terminal, then those of the agent with other names.
pub(crate) fn all(agents: &[Offered]) -> Vec<Offered> {
    let own = COMMANDS.iter().map(Offered::of);
    let others = agents.iter().filter(|offered| COMMANDS.iter().all(|command| command.name != offered.name)).cloned();
    own.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn every_agent_is_understood() {
        let data = json!({ "commands": [
            "/init",
            { "name": "review", "description": "Look", "argumentHint": "FILE" },
            { "name": "memory", "description": "Memory", "subCommands": [{ "name": "add", "arguments": [{ "name": "text", "isRequired": true }] }] },
            { "name": "plan", "input": { "hint": "what" } },
            { "description": "nothing" },
        ] });
        let read = read(data.as_object().unwrap());
        let shown: Vec<_> = read.iter().map(|offered| format!("{} {}", offered.name, offered.argument)).collect();
        assert_eq!(shown, ["init ", "review FILE", "memory ", "plan what"]);
        assert_eq!(read[2].words[0].argument, "text");
        assert!(read[0].is_whole() && !read[1].is_whole() && !read[2].is_whole());
    }
}
