//! The offers of the agent that a new session would have. The agent is started to ask it, and its answer is reused for
//! a while.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use multitap_event::{AgentCapabilities, ClientRef, ClientRole, Query};
use multitap_hub::Refusal;
use tokio::sync::Semaphore;

use super::Host;

/// Time for which the answer of an agent that had to be started is reused.
const FRESH: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(crate) struct Offers {
    known: Mutex<HashMap<Query, (Instant, AgentCapabilities)>>,
    /// Only one agent at a time is started to be asked.
    asking: Semaphore,
}

impl Default for Offers {
    fn default() -> Self {
        Self { known: Mutex::default(), asking: Semaphore::new(1) }
    }
}

impl Offers {
    /// The commands or models of the agent that a new session of this client would have.
    pub(crate) async fn get(&self, host: &dyn Host, by: ClientRef, what: Query) -> Result<AgentCapabilities, Refusal> {
        if what == Query::Commands
            && let Some(commands) = host.commands().await?
        {
            return Ok(AgentCapabilities { commands: Some(commands), ..AgentCapabilities::default() });
        }
        let _turn = self.asking.acquire().await.map_err(|_| Refusal::ShuttingDown)?;
        if let Some(known) = self.known(what) {
            return Ok(known);
        }
        // An observer may not start an agent.
        if by.role == Some(ClientRole::Observer) {
            return Err(Refusal::Observer);
        }
        let session = host.ask_agent(by).await?;
        let offer = session.offered(what).await;
        if let Err(error) = session.stop().await {
            tracing::debug!(session = %session.id(), %error, "it has ended already");
        }
        let offer = offer?;
        // An agent that did not answer is asked again.
        if offer.lists(what) {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(what, (Instant::now(), offer.clone()));
        }
        Ok(offer)
    }

    fn known(&self, what: Query) -> Option<AgentCapabilities> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&what).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, offer)| offer.clone())
    }
}
