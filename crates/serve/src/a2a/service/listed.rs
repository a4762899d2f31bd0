//! The slash commands of agents: those of a session, and those of the agent that a session would have now.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use multitap_a2a::devtool::{SlashArgument, SlashCommand};
use multitap_a2a::{Error, ErrorKind};
use multitap_event::{AgentCommand, ClientRef, ClientRole, CommandArgument, Door, EventKind, Query};
use multitap_hub::{Join, JoinFrom, Joined, Session, Told};
use tokio::sync::Semaphore;

use super::command::close;
use super::{Call, Service};
use crate::error;
use crate::http::Shared;

/// How long an agent may take to list its commands.
const LIST_PATIENCE: Duration = Duration::from_secs(10);
/// How long the list of an agent that had to be started is used.
const FRESH: Duration = Duration::from_secs(600);

/// The commands of the agent that a session would have now, from when it was last asked.
#[derive(Debug)]
pub(super) struct Listed {
    known: Mutex<Option<(Instant, Vec<AgentCommand>)>>,
    /// One agent is started at a time to be asked.
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
    /// The commands of a session's agent; without a session, of the agent that one would have now.
    pub(crate) async fn list_commands(
        &self,
        door: &Shared,
        call: &Call,
        session: Option<&Session>,
    ) -> Result<Vec<AgentCommand>, Error> {
        if let Some(session) = session {
            return Ok(told_by(session).await?.unwrap_or_default());
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
        let told = told_by(&session).await;
        close(&session).await;
        let told = told?;
        // An agent that did not answer is asked again.
        told.iter().for_each(|commands| self.listed.learn(commands));
        Ok(told.unwrap_or_default())
    }
}

/// The commands that the agent of a session lists, which is asked if it has not said yet; none if it does not answer.
async fn told_by(session: &Session) -> Result<Option<Vec<AgentCommand>>, Error> {
    let me = ClientRef::new("a2a", Door::Host);
    let join = Join { client: me.clone(), from: JoinFrom::Now, patience: None, announce: false };
    let Joined { mut feed, snapshot, .. } = session.join(join).await.map_err(|error| error::from_refusal(&error))?;
    if let Some(commands) = snapshot.and_then(|state| state.capabilities.commands) {
        return Ok(Some(commands));
    }
    session.query(Query::Commands, me).await.map_err(|error| error::from_refusal(&error))?;
    let answer = async {
        while let Some(told) = feed.next().await {
            let Told::Event(entry) = told else { continue };
            if let Some(EventKind::Capabilities(capabilities)) = entry.event().map(|event| &event.kind)
                && let Some(commands) = &capabilities.commands
            {
                return Some(commands.clone());
            }
        }
        None
    };
    Ok(tokio::time::timeout(LIST_PATIENCE, answer).await.unwrap_or_default())
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
