//! The slash commands of agents: of a session's agent, or of the agent that a new session would have.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use multitap_a2a::devtool::{SlashArgument, SlashCommand};
use multitap_a2a::{Error, ErrorKind};
use multitap_event::{AgentCommand, ClientRole, CommandArgument, Query};
use multitap_hub::Session;
use tokio::sync::Semaphore;

use super::command::close;
use super::{Call, Service};
use crate::error;
use crate::http::Shared;

/// How long the list of an agent that had to be started is used.
const FRESH: Duration = Duration::from_secs(600);

/// The commands of the agent that a new session would have, as last listed.
#[derive(Debug)]
pub(super) struct Listed {
    known: Mutex<Option<(Instant, Vec<AgentCommand>)>>,
    /// Only one agent at a time is started for its list.
    asking: Semaphore,
}

impl Default for Listed {
    fn default() -> Self {
        Self { known: Mutex::default(), asking: Semaphore::new(1) }
    }
}

impl Listed {
    fn known(&self) -> Option<Vec<AgentCommand>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, commands)| commands.clone())
    }

    fn learn(&self, commands: &[AgentCommand]) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), commands.to_vec()));
    }
}

impl Service {
    /// The commands of a session's agent; without a session, of the agent that a new one would have.
    pub(crate) async fn list_commands(
        &self,
        door: &Shared,
        call: &Call,
        session: Option<&Session>,
    ) -> Result<Vec<AgentCommand>, Error> {
        if let Some(session) = session {
            return Ok(listed_by(session).await?.unwrap_or_default());
        }
        if let Some(known) = door.host().commands().await.map_err(|error| error::from_refusal(&error))? {
            return Ok(known);
        }
        let Ok(_turn) = self.listed.asking.acquire().await else { return Ok(Vec::new()) };
        if let Some(known) = self.listed.known() {
            return Ok(known);
        }
        if call.caller.role == ClientRole::Observer {
            let why = "the agent has to be started to list its commands, and an observer may not start it";
            return Err(Error::new(ErrorKind::NotController, why));
        }
        let session = door.host().ask_agent(call.client()).await.map_err(|error| error::from_refusal(&error))?;
        let listed = listed_by(&session).await;
        close(&session).await;
        let listed = listed?;
        // An agent that did not answer is asked again.
        listed.iter().for_each(|commands| self.listed.learn(commands));
        Ok(listed.unwrap_or_default())
    }
}

/// The commands that the agent of a session lists; none if it does not answer.
async fn listed_by(session: &Session) -> Result<Option<Vec<AgentCommand>>, Error> {
    let offer = session.offered(Query::Commands).await.map_err(|error| error::from_refusal(&error))?;
    Ok(offer.commands)
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
