//! An MCP server of an agent: its address, and the rules for its tools.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// An MCP server of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub reach: McpReach,
    /// Time limit of one call.
    pub timeout: Option<Duration>,
    /// Whether its tools run without asking.
    pub trust: bool,
    /// If set, only these of its tools are offered.
    pub include_tools: Option<Vec<String>>,
    /// These tools are left out, even if they are included.
    pub exclude_tools: Vec<String>,
}

impl McpServer {
    /// Whether the agent may see this tool of the server.
    pub fn offers(&self, tool: &str) -> bool {
        let named = |list: &[String]| list.iter().any(|name| name == tool);
        self.include_tools.as_deref().is_none_or(named) && !named(&self.exclude_tools)
    }
}

impl From<McpReach> for McpServer {
    /// A server with all its tools, which ask for permission.
    fn from(reach: McpReach) -> Self {
        Self { reach, timeout: None, trust: false, include_tools: None, exclude_tools: Vec::new() }
    }
}

/// How an MCP server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum McpReach {
    /// A program that Multitap starts; it speaks MCP on stdin and stdout.
    Stdio {
        command: String,
        args: Vec<String>,
        /// Additional variables for its environment.
        env: BTreeMap<String, String>,
        /// Its working folder; relative to the folder of the session, which is also the default.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http { url: String, headers: BTreeMap<String, String> },
}

impl McpReach {
    /// A program without additional environment variables.
    pub fn program(command: impl Into<String>, args: Vec<String>) -> Self {
        Self::Stdio { command: command.into(), args, env: BTreeMap::new(), cwd: None }
    }
}

impl fmt::Debug for McpReach {
    /// Arguments, values of the environment and headers may be secrets; so may everything after the host of an address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, env, cwd, .. } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish_non_exhaustive(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", &place(url))
                .field("headers", &headers.keys())
                .finish_non_exhaustive(),
        }
    }
}

/// An address up to its host, without user and password.
fn place(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{}", host.rsplit('@').next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excluded_is_never_there() {
        let mut server = McpServer::from(McpReach::program("serve", Vec::new()));
        assert!(server.offers("a"));
        server.exclude_tools = vec!["a".to_owned()];
        assert!(!server.offers("a") && server.offers("b"));
        server.include_tools = Some(vec!["a".to_owned(), "b".to_owned()]);
        assert!(!server.offers("a") && server.offers("b") && !server.offers("c"));
        server.include_tools = Some(Vec::new());
        assert!(!server.offers("b"), "none is included");
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        for (url, shown) in [
            ("https://me:secret@example.org:8443/mcp?key=secret", "https://example.org:8443"),
            ("http://127.0.0.1:1/secret", "http://127.0.0.1:1"),
        ] {
            let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer secret".to_owned())]);
            let text = format!("{:?}", McpReach::Http { url: url.to_owned(), headers });
            assert!(text.contains(shown) && text.contains("Authorization") && !text.contains("secret"), "{text}");
        }
    }
}
