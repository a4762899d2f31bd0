//! The capabilities of an agent, and the status of its MCP servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Query;
use serde_with::skip_serializing_none;

/// The capabilities of the agent, and how it is set up. Emitted when the agent starts, and again when something
/// changes: a field that is absent is unknown, or has not changed since the last event of this kind.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCapabilities {
    /// The agent's name for people, such as `OpenCode`.
    pub agent_name: Option<String>,
    pub model: Option<String>,
    /// Whether a prompt can hold images.
    pub images: Option<bool>,
    /// Whether a prompt can join the running turn.
    pub steering: Option<bool>,
    /// The approval modes the agent offers, in its own words.
    pub modes: Option<Vec<String>>,
    /// Whether the agent stores a conversation before its first prompt, so that even an empty one can be resumed.
    pub stores_empty_conversations: Option<bool>,
    /// Its slash commands.
    pub commands: Option<Vec<AgentCommand>>,
    /// The models it can be switched to.
    pub models: Option<Vec<AgentModel>>,
    /// The levels of thinking (effort) that the agent can be set to with its model, in its own words; empty if there are
    /// none.
    pub thinking_levels: Option<Vec<String>>,
    pub thinking_level: Option<String>,
    /// The agent's own description of itself, in its own words. Nothing in Multitap depends on it.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
}

impl AgentCapabilities {
    /// Whether these capabilities already answer that query. Only commands and models are capabilities.
    pub fn lists(&self, what: Query) -> bool {
        match what {
            Query::Commands => self.commands.is_some(),
            Query::Models => self.models.is_some(),
            Query::McpStatus | Query::Account | Query::Context => false,
        }
    }

    /// Applies the changes of a later event. The agent's own description is dropped, because it can be large.
    pub fn update(&mut self, later: &Self) {
        let Self {
            agent_name,
            model,
            images,
            steering,
            modes,
            stores_empty_conversations,
            commands,
            models,
            thinking_levels,
            thinking_level,
            data: _,
        } = later;
        fn replace<T: Clone>(known: &mut Option<T>, later: &Option<T>) {
            if later.is_some() {
                known.clone_from(later);
            }
        }
        replace(&mut self.agent_name, agent_name);
        replace(&mut self.model, model);
        replace(&mut self.images, images);
        replace(&mut self.steering, steering);
        replace(&mut self.modes, modes);
        replace(&mut self.stores_empty_conversations, stores_empty_conversations);
        replace(&mut self.commands, commands);
        replace(&mut self.models, models);
        replace(&mut self.thinking_levels, thinking_levels);
        replace(&mut self.thinking_level, thinking_level);
    }
}

/// A slash command of an agent. A command with sub-commands is a group: `memory` with `show` and `add`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCommand {
    /// Without the slash.
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<CommandArgument>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_commands: Vec<Self>,
}

/// The arguments that follow the name of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandArgument {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default)]
    pub is_required: bool,
}

/// A model that an agent can be switched to.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentModel {
    /// The id that `setModel` takes.
    pub id: String,
    /// For people, where it differs from the id.
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// The status of one MCP server of the agent.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpServerStatus {
    pub name: String,
    /// In the agent's own word, such as `connected`, `ready` or `failed`.
    pub status: String,
    /// Why it failed.
    pub error: Option<String>,
    /// The names of its tools, where the agent lists them.
    pub tools: Option<Vec<String>>,
}

impl McpServerStatus {
    /// The status of a server whose agent reports only that it accepted it.
    pub const GIVEN: &str = "given";

    pub fn new(name: impl Into<String>, status: impl Into<String>) -> Self {
        Self { name: name.into(), status: status.into(), ..Self::default() }
    }

    /// One line for people.
    pub fn summary(&self) -> String {
        let Self { name, status, error, tools } = self;
        let status = if status == Self::GIVEN { "given to the agent" } else { status };
        let tools = match tools.as_deref().map(<[_]>::len).filter(|_| status == "connected") {
            None => String::new(),
            Some(0) => ", no tools".to_owned(),
            Some(1) => ", 1 tool".to_owned(),
            Some(count) => format!(", {count} tools"),
        };
        let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        format!("MCP server {name}: {status}{tools}{error}")
    }
}
