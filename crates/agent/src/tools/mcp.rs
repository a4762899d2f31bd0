//! Calls of tools of MCP servers.

use serde_json::{Map, Value};

use super::BadCall;
use crate::conversation::Call;
use crate::mcp::Servers;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mcp {
    pub(crate) server: String,
    /// The server's own name of the tool.
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
    /// The user trusts the server.
    pub(crate) trusted: bool,
}

/// The call, if a server has the tool.
pub(super) fn prepare(servers: &Servers, call: &Call) -> Option<Result<Mcp, BadCall>> {
    let mcp = servers.find(&call.name)?;
    Some(match &call.arguments {
        Value::Null => Ok(mcp),
        Value::Object(arguments) => Ok(Mcp { arguments: arguments.clone(), ..mcp }),
        other => Err(BadCall(format!("the arguments of {} must be a JSON object, not: {other}", call.name))),
    })
}

impl Mcp {
    pub(crate) fn title(&self) -> String {
        format!("{} ({})", self.tool, self.server)
    }
}
