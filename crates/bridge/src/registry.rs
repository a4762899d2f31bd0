//! The known agents, by the names that their tools begin with.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use multitap_event::visible_line;
use tokio::sync::watch;

use crate::name::legal;
use crate::remote::{RemoteAgent, Status};
use multitap_event::A2aServer;

/// The most agents at a time, listed and loaded.
const MOST_AGENTS: usize = 128;
/// How long after a failure an agent is tried again; doubled with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LONGEST_RETRY: Duration = Duration::from_secs(5 * 60);

/// The agents of a bridge. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Registry {
    agents: Arc<Mutex<BTreeMap<String, Arc<RemoteAgent>>>>,
    /// Counts changes of the list of tools.
    changes: watch::Sender<u64>,
}

/// The registry is full.
#[derive(Debug, thiserror::Error)]
#[error("there are {MOST_AGENTS} agents already: unload one first")]
pub(crate) struct Full;

impl Default for Registry {
    fn default() -> Self {
        Self { agents: Arc::default(), changes: watch::Sender::new(0) }
    }
}

impl Registry {
    /// All agents in the order of their names.
    pub(crate) fn all(&self) -> Vec<(String, Arc<RemoteAgent>)> {
        self.lock(|agents| agents.iter().map(|(name, agent)| (name.clone(), agent.clone())).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<RemoteAgent>> {
        self.lock(|agents| agents.get(name).cloned())
    }

    /// The agent that was loaded from an address before.
    pub(crate) fn by_url(&self, url: &str) -> Option<(String, Arc<RemoteAgent>)> {
        self.all().into_iter().find(|(_, agent)| agent.entry.url == url)
    }

    /// Adds an agent under a name: the one in its entry, else that of its card, else that of its host.
    pub(crate) fn add(&self, agent: Arc<RemoteAgent>) -> Result<String, Full> {
        let own = own_name(&agent);
        let name = self.lock(|agents| {
            if agents.len() >= MOST_AGENTS {
                return Err(Full);
            }
            let name = legal(&own, |name| agents.contains_key(name));
            agents.insert(name.clone(), agent);
            Ok(name)
        })?;
        self.changed();
        Ok(name)
    }

    pub(crate) fn remove(&self, name: &str) -> Option<Arc<RemoteAgent>> {
        let removed = self.lock(|agents| agents.remove(name));
        if removed.is_some() {
            self.changed();
        }
        removed
    }

    /// Loads an agent again. If its card or status has changed, its name follows the card. Returns the name.
    pub(crate) async fn reload(&self, name: &str, agent: &Arc<RemoteAgent>, deadline: Duration) -> String {
        if !agent.load(deadline).await {
            return name.to_owned();
        }
        let own = own_name(agent);
        let name = self.lock(|agents| {
            // The agent may have been unloaded meanwhile.
            match agents.remove(name) {
                Some(found) if Arc::ptr_eq(&found, agent) => {
                    let name = legal(&own, |name| agents.contains_key(name));
                    agents.insert(name.clone(), found);
                    name
                }
                Some(other) => {
                    agents.insert(name.to_owned(), other);
                    name.to_owned()
                }
                None => name.to_owned(),
            }
        });
        self.changed();
        name
    }

    /// Notified of each later change of the list of tools.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock<T>(&self, act: impl FnOnce(&mut BTreeMap<String, Arc<RemoteAgent>>) -> T) -> T {
        act(&mut self.agents.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How long to wait after this many failures.
pub(crate) fn retry_after(failures: u32) -> Duration {
    FIRST_RETRY.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_RETRY)
}

fn own_name(agent: &RemoteAgent) -> String {
    let A2aServer { name, url, .. } = &agent.entry;
    match (name, agent.status()) {
        (Some(name), _) => name.clone(),
        (None, Status::Ready(client)) if !client.card().name.trim().is_empty() => {
            visible_line(&agent.clean(&client.card().name)).into_owned()
        }
        (None, _) => {
            let host = reqwest::Url::parse(url).ok();
            let host =
                host.as_ref().and_then(|url| Some(format!("{}_{}", url.host_str()?, url.port_or_known_default()?)));
            host.unwrap_or_default()
        }
    }
}
