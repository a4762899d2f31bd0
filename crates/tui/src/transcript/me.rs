//! Who sits at this screen, and so is not named on it. Pure.

use multitap_event::{ClientId, ClientRef, Door};

/// Who sits here.
#[derive(Debug, Default, Clone)]
pub(super) struct Me {
    /// All that a lost connection made of them.
    ids: Vec<ClientId>,
    /// The name of whoever runs the session and sits here.
    host: Option<String>,
    /// They have come: a terminal that is told of now is another one.
    joined: bool,
}

impl Me {
    pub(super) fn is(&self, client: &ClientRef) -> bool {
        // What the program was started with comes before its screen, and so does what was typed when it ran before.
        let is_earlier = client.client_id.is_none() || !self.joined;
        let is_host = client.door == Door::Terminal && self.host.as_ref() == Some(&client.client);
        client.client_id.as_ref().is_some_and(|id| self.ids.contains(id)) || (is_host && is_earlier)
    }

    /// Who sits here now: a connection that was lost and found makes another client of them.
    pub(super) fn know(&mut self, me: &ClientRef, is_host: bool) {
        if let Some(id) = me.client_id.as_ref().filter(|id| !self.ids.contains(id)) {
            self.ids.push(id.clone());
        }
        if is_host && self.host.is_none() {
            self.host = Some(me.client.clone());
        }
    }

    /// That client was told of, and is one of these.
    pub(super) fn came(&mut self, client: &ClientRef) {
        self.joined |= client.client_id.as_ref().is_some_and(|id| self.ids.contains(id));
    }

    /// The same before they came.
    pub(super) fn earlier(&self) -> Self {
        Self { joined: false, ..self.clone() }
    }
}
