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

Agents listed as `a2aServers` in your settings need none of this: every agent that
Multitap starts gets them as the MCP server a2a-server.

Logs go to stderr; stdout carries MCP only.";

#[derive(Debug, Args)]
#[command(after_long_help = MCP)]
pub(crate) struct McpArgs {
    /// The A2A agents, as a JSON array
    #[arg(long, value_name = "JSON", conflicts_with = "agents_file")]
    pub(crate) agents: Option<String>,

    /// A file that holds the A2A agents as a JSON array
    #[arg(long, value_name = "FILE")]
    pub(crate) agents_file: Option<PathBuf>,

    /// A session that runs, as one more agent: its id or how that begins, or the address of its door (may be repeated)
    ///
    /// The session must be shared with --a2a-port or run in `multitap serve`. A token is read from `MULTITAP_TOKEN`.
    #[arg(long, value_name = "ID | URL")]
    pub(crate) session: Vec<String>,

    /// Serve over HTTP at this port instead of stdin and stdout, at http://127.0.0.1:PORT/mcp; 0 takes any free one
    #[arg(long, value_name = "PORT")]
    pub(crate) http: Option<u16>,

    /// The name or address to listen at with --http; one that other machines can reach needs tokens
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1", requires = "http")]
    pub(crate) http_host: String,

    #[command(flatten)]
    pub(crate) access: AccessArgs,

    /// How long to wait for the agents at the start, in milliseconds; one that is later appears when it answers
    #[arg(long, value_name = "MS", default_value_t = 5000)]
    pub(crate) load_timeout: u64,

    /// Let `load_agent` reach this machine and the network around it
    #[arg(long)]
    pub(crate) allow_private_addresses: bool,

    /// A file that says how many agents the current prompt has passed through
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) hops_file: Option<PathBuf>,
}
