//! The clients that are this user, and so are not named on the screen. Pure.

use multitap_event::{ClientId, ClientRef, Door};

#[derive(Debug, Default, Clone)]
pub(super) struct OwnClients {
    /// One for each connection.
    ids: Vec<ClientId>,
    /// The name of the user, if the session is hosted here.
    host: Option<String>,
    /// This screen has joined: another terminal with that name is another user.
    joined: bool,
}

impl OwnClients {
    pub(super) fn is(&self, client: &ClientRef) -> bool {
        // The prompt of the command line comes before the screen joins, and so do the prompts of an earlier run.
        let is_earlier = client.client_id.is_none() || !self.joined;
        let is_host = client.door == Door::Terminal && self.host.as_ref() == Some(&client.client);
        client.client_id.as_ref().is_some_and(|id| self.ids.contains(id)) || (is_host && is_earlier)
    }

    pub(super) fn know(&mut self, me: &ClientRef, is_host: bool) {
        if let Some(id) = me.client_id.as_ref().filter(|id| !self.ids.contains(id)) {
            self.ids.push(id.clone());
        }
        if is_host && self.host.is_none() {
            self.host = Some(me.client.clone());
        }
    }

    pub(super) fn joined(&mut self, client: &ClientRef) {
        self.joined |= client.client_id.as_ref().is_some_and(|id| self.ids.contains(id));
    }

    /// The same clients, as before this screen joined.
    pub(super) fn earlier(&self) -> Self {
        Self { joined: false, ..self.clone() }
    }
}
