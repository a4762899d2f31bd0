//! Messages that a server sends on its own: progress of calls, changed tools, and requests to us.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use multitap_event::ElicitationAnswer;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
    FormElicitationCapability, Implementation, ProgressNotificationParam, ProgressToken, ProtocolVersion,
    UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::mpsc;

use super::elicit::Asker;
use crate::tool::Progress;

/// How much of a server's message is shown.
const SHOWN: usize = 2000;

/// The running calls and the listeners to their progress. A slow listener misses messages.
#[derive(Debug, Clone, Default)]
pub(super) struct ProgressListeners(Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<Progress>>>>);

impl ProgressListeners {
    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<Progress>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the call's progress to `listener` until the entry is dropped.
    pub(super) fn enter(&self, token: ProgressToken, listener: mpsc::Sender<Progress>) -> Entry {
        self.calls().insert(token.clone(), listener);
        Entry { board: self.clone(), token }
    }

    fn tell(&self, token: &ProgressToken, progress: Progress) {
        if let Some(listener) = self.calls().get(token) {
            listener.try_send(progress).ok(); // a later message will say more
        }
    }

    /// For messages that belong to no call.
    fn tell_all(&self, message: &str) {
        let message: String = message.chars().take(SHOWN).collect();
        for listener in self.calls().values() {
            listener.try_send(Progress { message: Some(message.clone()), ..Progress::default() }).ok();
        }
    }
}

#[derive(Debug)]
pub(super) struct Entry {
    board: ProgressListeners,
    token: ProgressToken,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.board.calls().remove(&self.token);
    }
}

#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) board: ProgressListeners,
    pub(super) asker: Asker,
    /// Notified when the server's tools change.
    pub(super) changed: mpsc::Sender<()>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("multitap", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let share = said.total.filter(|total| *total > 0.0).map(|total| (said.progress / total).clamp(0.0, 1.0));
        let message = said.message.map(|message| message.chars().take(SHOWN).collect());
        // Without a total, only the number can be shown.
        let message = message.or_else(|| share.is_none().then(|| format!("{}", said.progress)));
        self.board.tell(&said.progress_token, Progress { output: None, share, message });
    }

    #[expect(deprecated, reason = "servers of earlier revisions log in this way")]
    async fn on_logging_message(
        &self,
        said: rmcp::model::LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = said.data.as_str().map_or_else(|| said.data.to_string(), str::to_owned);
        tracing::debug!(target: "mcp", level = ?said.level, "{text}");
        if said.level != rmcp::model::LoggingLevel::Debug {
            self.board.tell_all(&text);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.try_send(()).ok(); // one pending notification is enough
    }

    /// A server asks the user. The owner of the session decides whether the user can be asked now.
    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let answer = tokio::select! {
            // The server withdrew the request, or the connection is gone.
            () = context.ct.cancelled() => ElicitationAnswer::Cancel,
            answer = self.asker.ask(&asked) => answer,
        };
        serde_json::from_value(answer.result()).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}
