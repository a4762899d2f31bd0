//! The options of `multitap mcp`.

use std::path::PathBuf;

use clap::Args;

use super::AccessArgs;

const MCP: &str = "\
Examples:
  multitap mcp --agents '[{\"url\": \"http://127.0.0.1:4100\"}]'
  multitap mcp --agents-file agents.json
  multitap mcp --agents-file agents.json --http 4200
  multitap mcp --session 0199a1               the session of another terminal
  claude mcp add a2a -- multitap mcp --agents-file ~/agents.json

An agent is {\"url\": …} with, if needed, \"name\", \"accessToken\", \"tokenEnv\" (the
variable that holds the token), \"headers\", \"agent_card_path\" and \"timeout\" (in
milliseconds, after which a call returns the id of its task). Put tokens into a file
or a variable: other users of the machine can read arguments.

Agents that Multitap starts do not need this command: they get the `a2aServers` of
your settings as the MCP server a2a-server.

Logs go to stderr; stdout carries MCP only.";

#[derive(Debug, Args)]
#[command(after_long_help = MCP)]
pub(crate) struct McpArgs {
    /// A2A agents as a JSON array
    ///
    /// Other users of this machine can see arguments: give tokens in --agents-file, or in a variable that `tokenEnv` names.
    #[arg(long, value_name = "JSON", conflicts_with = "agents_file")]
    pub(crate) agents: Option<String>,

    /// File with the A2A agents as a JSON array
    #[arg(long, value_name = "FILE")]
    pub(crate) agents_file: Option<PathBuf>,

    /// Running session to serve as an agent: its id or a prefix, or its URL (repeatable)
    ///
    /// The session must be shared with --a2a-port or run on `multitap serve`. The token is read from
    /// `MULTITAP_TOKEN`.
    #[arg(long, value_name = "ID | URL")]
    pub(crate) session: Vec<String>,

    /// Serve over HTTP on this port instead of stdin and stdout, at http://127.0.0.1:PORT/mcp; 0 picks a free port
    #[arg(long, value_name = "PORT")]
    pub(crate) http: Option<u16>,

    /// Name or address to listen on with --http; requires tokens if other machines can reach it
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", requires = "http")]
    pub(crate) http_host: String,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// Milliseconds to wait for the agents at start; the tools of slower agents are added when they answer
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    pub(crate) load_timeout: u64,

    /// Let `load_agent` connect to this machine and its network
    #[arg(long)]
    pub(crate) allow_private_addresses: bool,

    /// File with the number of agents that the current prompt has passed through, and that of cancelled turns
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) hops_file: Option<PathBuf>,
}
