//! An allow or block rule as it is written in settings and on the command line.
//!
//! Forms: a tool (`read_file`), `edit` for all file changes, `run_shell_command(git log:*)` for commands with that
//! prefix, `run_shell_command(git log)` for exactly that command, `web_fetch(example.com)`, an MCP server (`files`)
//! or one of its tools (`files__read`, `mcp__files__read`). Pure.

use std::fmt;
use std::str::FromStr;

use multitap_process::quote;

use crate::command::Script;
use crate::job::Access;
use crate::tools;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// The named tool, with any arguments.
    Tool(String),
    Edits,
    /// Commands that begin with these words.
    Begins(Vec<String>),
    /// Exactly that shell command.
    Line(String),
    /// A host on the web.
    Host(String),
    /// All tools of that MCP server.
    Server(String),
    McpTool {
        server: String,
        tool: String,
    },
}

/// A rule without a meaning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{rule}' is not a rule: {why}")]
pub(crate) struct BadRule {
    rule: String,
    why: &'static str,
}

/// The name for all file changes.
const EDITS: &str = "edit";
const MCP: &str = "mcp__";
/// Suffix of a rule for a command prefix.
const BEGINS: &str = ":*";
/// Prefix of an exact rule that would otherwise be read as another rule.
const EXACTLY: char = '=';

fn is_shell(name: &str) -> bool {
    [tools::shell::NAME, "shell", "ShellTool", "Bash"].contains(&name)
}

impl FromStr for Rule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let text = text.trim();
        let bad = |why| BadRule { rule: text.to_owned(), why };
        let Some((name, rest)) = text.split_once('(') else { return named(text).map_err(bad) };
        let Some(inner) = rest.strip_suffix(')') else { return Err(bad("its bracket is not closed")) };
        let (name, inner) = (name.trim(), inner.trim());
        if is_shell(name) {
            return shell(inner).map_err(bad);
        }
        if name == tools::fetch::NAME {
            let host = inner.strip_prefix("domain:").unwrap_or(inner).to_ascii_lowercase();
            let fits = !host.is_empty() && !host.contains(['/', ' ', '*']);
            return if fits { Ok(Self::Host(host)) } else { Err(bad("a host is meant, such as example.com")) };
        }
        Err(bad("only run_shell_command and web_fetch take something in brackets"))
    }
}

fn named(name: &str) -> Result<Rule, &'static str> {
    if name.is_empty() || name.contains([' ', ')', '*']) && !name.ends_with("__*") {
        return Err("a tool or an MCP server is meant, or run_shell_command(COMMAND:*)");
    }
    if is_shell(name) {
        return Ok(Rule::Tool(tools::shell::NAME.to_owned()));
    }
    if name == EDITS {
        return Ok(Rule::Edits);
    }
    if tools::is_own(name) {
        return Ok(Rule::Tool(name.to_owned()));
    }
    let mcp = name.strip_prefix(MCP).unwrap_or(name);
    match mcp.split_once("__") {
        None => Ok(Rule::Server(mcp.to_owned())),
        Some((server, "*")) if !server.is_empty() => Ok(Rule::Server(server.to_owned())),
        Some((server, tool)) if !server.is_empty() && !tool.is_empty() => {
            Ok(Rule::McpTool { server: server.to_owned(), tool: tool.to_owned() })
        }
        Some(_) => Err("a server and a tool are meant, as in server__tool"),
    }
}

fn shell(inner: &str) -> Result<Rule, &'static str> {
    if inner.is_empty() || inner == "*" || inner == BEGINS {
        return Ok(Rule::Tool(tools::shell::NAME.to_owned()));
    }
    if let Some(line) = inner.strip_prefix(EXACTLY) {
        return Ok(Rule::Line(line.trim().to_owned()));
    }
    let Some(begin) = inner.strip_suffix(BEGINS) else { return Ok(Rule::Line(inner.to_owned())) };
    let script = Script::parse(begin).map_err(|_| "only plain words may come before :*")?;
    match script.commands.as_slice() {
        [simple] if simple.words.iter().all(|word| !word.glob) => {
            Ok(Rule::Begins(simple.words.iter().map(|word| word.text.clone()).collect()))
        }
        _ => Err("only one command may come before :*"),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shell = tools::shell::NAME;
        match self {
            Self::Tool(name) => f.write_str(name),
            Self::Edits => f.write_str(EDITS),
            Self::Begins(words) => write!(f, "{shell}({}{BEGINS})", quote(words)),
            Self::Line(line) => match shell_line(line) {
                true => write!(f, "{shell}({line})"),
                false => write!(f, "{shell}({EXACTLY}{line})"),
            },
            Self::Host(host) => write!(f, "{}({host})", tools::fetch::NAME),
            Self::Server(server) => match named(server) {
                Ok(Self::Server(same)) if same == *server => f.write_str(server),
                _ => write!(f, "{MCP}{server}"),
            },
            Self::McpTool { server, tool } => write!(f, "{MCP}{server}__{tool}"),
        }
    }
}

/// Whether a command in brackets is read back as that command.
fn shell_line(line: &str) -> bool {
    shell(line) == Ok(Rule::Line(line.to_owned()))
}

impl Rule {
    /// A rule in another agent's spelling, where it can be parsed: `Bash(git push *)` is `run_shell_command(git
    /// push:*)`.
    pub(crate) fn of_agent(text: &str) -> Result<Self, BadRule> {
        let text = text.trim();
        let spelled = match text.strip_suffix(" *)") {
            Some(begin) if text.split_once('(').is_some_and(|(name, _)| is_shell(name.trim())) => {
                format!("{begin}{BEGINS})")
            }
            _ => text.to_owned(),
        };
        match spelled.parse()? {
            // A star anywhere else is a pattern, and no command begins with it.
            Self::Line(line) if line.contains('*') => Err(BadRule { rule: text.to_owned(), why: "it is a pattern" }),
            rule => Ok(rule),
        }
    }

    /// Whether the rule alone covers everything that the job would do, so that the job is allowed. [`covers_line`]
    /// decides for shell commands.
    pub(super) fn allows(&self, tool: &str, access: Access<'_>) -> bool {
        match (self, access) {
            (Self::Begins(_) | Self::Line(_), _) => false,
            (Self::Edits, Access::Change { file }) => !super::is_delicate(file),
            (Self::Host(host), Access::Fetch { urls }) => {
                !urls.is_empty() && urls.iter().all(|url| host_of(url).as_ref() == Some(host))
            }
            _ => self.touches(tool, access),
        }
    }

    /// Whether the rule covers part of what the job would do, so that it is blocked.
    pub(super) fn touches(&self, tool: &str, access: Access<'_>) -> bool {
        match (self, access) {
            // A server may give its tools any name, even the name of a built-in tool.
            (Self::Tool(_), Access::Mcp { .. }) => false,
            (Self::Tool(name), _) => name == tool,
            (Self::Edits, access) => matches!(access, Access::Change { .. }),
            (Self::Host(host), Access::Fetch { urls }) => urls.iter().any(|url| host_of(url).as_ref() == Some(host)),
            (Self::Server(name), Access::Mcp { server, .. }) => name == server,
            (Self::McpTool { server: theirs, tool: name }, Access::Mcp { server, tool, .. }) => {
                theirs == server && name == tool
            }
            _ => false,
        }
    }

    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Tool(name) => name.clone(),
            Self::Edits => "all edits".to_owned(),
            Self::Begins(words) => format!("`{} …`", quote(words)),
            Self::Line(_) => "exactly this command".to_owned(),
            Self::Host(host) => format!("fetching from {host}"),
            Self::Server(server) => format!("all tools of {server}"),
            Self::McpTool { server, tool } => format!("{tool} of {server}"),
        }
    }
}

pub(super) fn host_of(url: &str) -> Option<String> {
    reqwest::Url::parse(url).ok()?.host_str().map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &Rule, printed: &str) {
        let rule: Rule = text.parse().unwrap();
        assert_eq!(rule, *expected);
        assert_eq!(rule.to_string(), printed);
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn every_form_is_read_and_printed() {
        let mcp = || Rule::McpTool { server: "files".to_owned(), tool: "read__all".to_owned() };
        reads("read_file", &Rule::Tool("read_file".to_owned()), "read_file");
        reads(" Bash ", &Rule::Tool("run_shell_command".to_owned()), "run_shell_command");
        reads("shell(*)", &Rule::Tool("run_shell_command".to_owned()), "run_shell_command");
        reads("edit", &Rule::Edits, "edit");
        reads("shell(git log:*)", &Rule::Begins(words(&["git", "log"])), "run_shell_command(git log:*)");
        reads("run_shell_command(git log)", &Rule::Line("git log".to_owned()), "run_shell_command(git log)");
        reads("shell(echo (a) )", &Rule::Line("echo (a)".to_owned()), "run_shell_command(echo (a))");
        reads("shell(=echo a:*)", &Rule::Line("echo a:*".to_owned()), "run_shell_command(=echo a:*)");
        reads("web_fetch(domain:Example.com)", &Rule::Host("example.com".to_owned()), "web_fetch(example.com)");
        reads("files", &Rule::Server("files".to_owned()), "files");
        reads("files__*", &Rule::Server("files".to_owned()), "files");
        reads("mcp__web_fetch", &Rule::Server("web_fetch".to_owned()), "mcp__web_fetch");
        reads("files__read__all", &mcp(), "mcp__files__read__all");
        reads("mcp__files__read__all", &mcp(), "mcp__files__read__all");
    }

    #[test]
    fn what_means_nothing_is_refused_with_a_reason() {
        for text in
            ["", "shell(git", "read_file(x)", "shell(a; b:*)", "shell($x:*)", "web_fetch(a b)", "a b", "__x", "*"]
        {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not a rule: ")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_as_the_same(text in "(shell|run_shell_command|web_fetch)\\([ -~]{0,20}\\)|[a-z_]{1,20}") {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
            }
        }

        #[test]
        fn any_line_can_be_a_rule(line in "[^\0 \n][^\0]{0,20}[^\0 \n]") {
            let rule = Rule::Line(line.trim().to_owned());
            prop_assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
        }
    }
}
