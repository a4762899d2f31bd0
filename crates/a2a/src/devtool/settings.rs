//! Finds settings of the agent in the metadata of a message.

use crate::devtool::{AgentSettings, Spelling, URI, coder};
use crate::error::Error;
use crate::model::Map;
use crate::read::Node;

/// Settings that a client may not make.
const NOT_TAKEN: [&str; 2] = ["isTrusted", "is_trusted"];
const READ: [&str; 5] = ["workspace_path", "workspacePath", "auto_execute", "autoExecute", "kind"];

impl AgentSettings {
    /// The settings in a `metadata`, and how they were spelled: those under [`URI`], else those under [`coder::KEY`].
    pub fn find(metadata: &Map) -> Result<Option<(Self, Spelling)>, Error> {
        if let Some(value) = metadata.get(URI).filter(|value| !value.is_null()) {
            return Ok(Some((read(&Node::of_client("AgentSettings", value)?)?, Spelling::Specified)));
        }
        match metadata.get(coder::KEY) {
            Some(value) if value.get("kind").is_some_and(|kind| kind == coder::SETTINGS) => {
                Ok(Some((read(&Node::of_client(coder::KEY, value)?)?, Spelling::Coder)))
            }
            _ => Ok(None),
        }
    }
}

fn read(node: &Node<'_>) -> Result<AgentSettings, Error> {
    let mut more = node.value().as_object().cloned().unwrap_or_default();
    more.retain(|key, _| !READ.contains(&key.as_str()) && !NOT_TAKEN.contains(&key.as_str()));
    Ok(AgentSettings {
        workspace_path: node.any_string(&["workspace_path", "workspacePath"])?,
        auto_execute: node.opt_flag("auto_execute")?.or(node.opt_flag("autoExecute")?),
        more,
    })
}
