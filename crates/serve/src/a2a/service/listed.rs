//! The slash commands of agents: of a session's agent, or of the agent that a new session would have.

use multitap_a2a::Error;
use multitap_a2a::devtool::{SlashArgument, SlashCommand};
use multitap_event::{AgentCommand, CommandArgument, Query};
use multitap_hub::Session;

use super::{Call, Service};
use crate::error;
use crate::http::Shared;

impl Service {
    /// The commands of a session's agent; without a session, of the agent that a new one would have.
    pub(crate) async fn list_commands(
        &self,
        door: &Shared,
        call: &Call,
        session: Option<&Session>,
    ) -> Result<Vec<AgentCommand>, Error> {
        let offer = match session {
            Some(session) => session.offered(Query::Commands).await,
            None => door.offers.get(door.host.as_ref(), call.client(), Query::Commands).await,
        };
        Ok(offer.map_err(|error| error::from_refusal(&error))?.commands.unwrap_or_default())
    }
}

/// A command in the form of the `development-tool` extension.
pub(crate) fn slash_command(command: AgentCommand) -> SlashCommand {
    let argument =
        |CommandArgument { name, description, is_required }| SlashArgument { name, description, is_required };
    SlashCommand {
        name: command.name,
        description: command.description,
        arguments: command.arguments.into_iter().map(argument).collect(),
        sub_commands: command.sub_commands.into_iter().map(slash_command).collect(),
    }
}
