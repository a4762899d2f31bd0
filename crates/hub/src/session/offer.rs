//! Asks the agent of a session for its commands or its models.

use std::time::Duration;

use multitap_event::{AgentCapabilities, ClientRef, Door, EventKind, Query};
use tokio::time::timeout;

use super::{Join, JoinFrom, Joined, Session};
use crate::feed::{Feed, Told};
use crate::protocol::Refusal;

/// How long an agent may take to list them.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

impl Session {
    /// The capabilities of the agent with its commands or models, which is asked for them if it has not listed them
    /// yet. They are absent if it does not answer.
    pub async fn offered(&self, what: Query) -> Result<AgentCapabilities, Refusal> {
        let me = ClientRef::new("multitap", Door::Host);
        let join = Join { client: me.clone(), from: JoinFrom::Now, patience: None, announce: false };
        let Joined { mut feed, snapshot, .. } = self.join(join).await?;
        let known = snapshot.map(|state| state.capabilities).unwrap_or_default();
        if known.lists(what) {
            return Ok(known);
        }
        self.query(what, me).await?;
        Ok(timeout(LIST_PATIENCE, listed(&mut feed, what)).await.ok().flatten().unwrap_or_default())
    }
}

async fn listed(feed: &mut Feed, what: Query) -> Option<AgentCapabilities> {
    while let Some(told) = feed.next().await {
        let Told::Event(entry) = told else { continue };
        match entry.event().map(|event| &event.kind) {
            Some(EventKind::Capabilities(capabilities)) if capabilities.lists(what) => {
                return Some(capabilities.clone());
            }
            _ => {}
        }
    }
    None
}
