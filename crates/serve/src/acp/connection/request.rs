//! What a request of the client begins.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, AuthenticateRequest, CloseSessionRequest, DeleteSessionRequest, Implementation,
    InitializeRequest, InitializeResponse, ListSessionsRequest, LoadSessionRequest, McpCapabilities, NewSessionRequest,
    PromptCapabilities, PromptRequest, ResumeSessionRequest, SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities, SessionCloseCapabilities, SessionDeleteCapabilities, SessionListCapabilities,
    SessionResumeCapabilities, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, SetSessionModeRequest,
    SetSessionModeResponse, StopReason,
};
use multitap_event::{PromptId, SessionId};
use multitap_hub::Refusal;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{Connection, Waiting};
use crate::acp::attach::{self, Attach, Detach};
use crate::acp::attachment::Start;
use crate::acp::config::{self, Choices};
use crate::acp::features::{ClientFeatures, META};
use crate::acp::join::{Answer, Done, written};
use crate::acp::setting::{self, Setting};
use crate::acp::{INITIALIZE, decode, error};
use crate::rpc::{Disconnected, Peer, Request, RequestId};

const NOT_OPENED_HERE: &str = "configId: the agent can be changed only by the connection that opened the session";

/// Why a request was not begun.
enum Stopped {
    Refused(Refusal),
    Disconnected(Disconnected),
}

impl From<Refusal> for Stopped {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Disconnected> for Stopped {
    fn from(gone: Disconnected) -> Self {
        Self::Disconnected(gone)
    }
}

impl Connection {
    /// Begins to answer a request.
    pub(super) async fn request(&mut self, peer: &mut Peer<Done>, request: Request) -> Result<(), Disconnected> {
        let Request { id, method, params } = request;
        match self.begin(peer, id.clone(), &method, params).await {
            Ok(()) => Ok(()),
            Err(Stopped::Refused(refusal)) => peer.refuse(&id, &error::of(&refusal)).await,
            Err(Stopped::Disconnected(gone)) => Err(gone),
        }
    }

    async fn begin(
        &mut self,
        peer: &mut Peer<Done>,
        id: RequestId,
        method: &str,
        params: Option<Value>,
    ) -> Result<(), Stopped> {
        let joiner = self.joiner();
        match method {
            INITIALIZE => {
                let result = self.initialize(&decode::params(params)?);
                spawn(peer, id, async move { Ok(joiner.hello(result).await) });
            }
            "authenticate" => {
                let AuthenticateRequest { method_id, .. } = decode::params(params)?;
                spawn(peer, id, async move { joiner.authenticate(&method_id.0).await });
            }
            "session/new" => {
                let request: NewSessionRequest = decode::params(params)?;
                spawn(peer, id, async move { joiner.open(request).await });
            }
            "session/load" => {
                let LoadSessionRequest { session_id, mcp_servers, additional_directories, .. } =
                    decode::params(params)?;
                let open = decode::again(mcp_servers, additional_directories)?;
                spawn(
                    peer,
                    id,
                    async move { joiner.resume(SessionId::from(&*session_id.0), open, Start::Replay).await },
                );
            }
            "session/resume" => {
                let ResumeSessionRequest { session_id, mcp_servers, additional_directories, .. } =
                    decode::params(params)?;
                let open = decode::again(mcp_servers, additional_directories)?;
                spawn(peer, id, async move { joiner.resume(SessionId::from(&*session_id.0), open, Start::Now).await });
            }
            "session/list" => {
                let request: ListSessionsRequest = decode::params(params)?;
                spawn(peer, id, async move { joiner.list(request).await });
            }
            "session/prompt" => self.prompt(peer, id, decode::params(params)?)?,
            "session/set_mode" => {
                let SetSessionModeRequest { session_id, mode_id, .. } = decode::params(params)?;
                let (session, client) = self.attached(&SessionId::from(&*session_id.0))?;
                spawn(peer, id, async move {
                    setting::change(&session, Setting::Mode(mode_id.0.to_string()), client).await?;
                    Ok(Done::Answered(written(&SetSessionModeResponse::new())))
                });
            }
            "session/set_config_option" => {
                let SetSessionConfigOptionRequest { session_id, config_id, value, .. } = decode::params(params)?;
                let session_id = SessionId::from(&*session_id.0);
                let (session, client) = self.attached(&session_id)?;
                let value = value.as_value_id().map(|value| value.0.to_string());
                let value = value.ok_or_else(|| error::invalid_params("value: must be one of the option's values"))?;
                if *config_id.0 == *config::AGENT {
                    let opened = self.attachments.get(&session_id).and_then(|joined| joined.opened.clone());
                    let opened = opened.ok_or_else(|| error::invalid_params(NOT_OPENED_HERE))?;
                    // A client that leaves or cancels meanwhile must not leave a session without an agent.
                    let change = self.door.tasks.spawn(joiner.change_agent(session, client, opened, value));
                    spawn(peer, id, async move { change.await.unwrap_or(Err(Refusal::SessionEnded)) });
                    return Ok(());
                }
                let setting = Setting::of(&config_id.0, value)?;
                let agents = self.attachments.get(&session_id).map(|joined| joined.choices().agents);
                spawn(peer, id, async move {
                    setting::change(&session, setting, client.clone()).await?;
                    let state = session.snapshot().await.ok_or(Refusal::SessionEnded)?;
                    let choices = Choices { modes: session.mode_limit(&client), agents: agents.unwrap_or_default() };
                    let options = config::options(&state, &choices);
                    Ok(Done::Answered(written(&SetSessionConfigOptionResponse::new(options))))
                });
            }
            "session/close" => {
                let CloseSessionRequest { session_id, .. } = decode::params(params)?;
                let session_id = SessionId::from(&*session_id.0);
                let (session, client) = self.attached(&session_id)?;
                self.leave(peer, &session_id, Ok(StopReason::Cancelled)).await?;
                spawn(peer, id, async move { joiner.close(&session, &client).await });
            }
            "session/delete" => {
                let DeleteSessionRequest { session_id, .. } = decode::params(params)?;
                spawn(peer, id, async move { joiner.delete(SessionId::from(&*session_id.0)).await });
            }
            attach::ATTACH => {
                let call: Attach = decode::params(params)?;
                if self.attachments.contains_key(&call.session_id) {
                    return Err(error::invalid_params("sessionId: this connection has joined it; detach first").into());
                }
                self.features.attach = true;
                let joiner = self.joiner();
                spawn(peer, id, async move { joiner.attach(call).await });
            }
            attach::DETACH => {
                let Detach { session_id } = decode::params(params)?;
                self.attached(&session_id)?;
                let end = Err(error::cancelled("detached; the turn goes on"));
                self.leave(peer, &session_id, end).await?;
                peer.respond(&id, "{}").await?;
            }
            _ => return Err(Refusal::UnknownMethod { message: format!("there is no method \"{method}\"") }.into()),
        }
        Ok(())
    }

    fn prompt(&mut self, peer: &mut Peer<Done>, id: RequestId, request: PromptRequest) -> Result<(), Refusal> {
        let PromptRequest { session_id, prompt, meta, .. } = request;
        let session_id = SessionId::from(&*session_id.0);
        let (session, client) = self.attached(&session_id)?;
        let when_busy = decode::when_busy(meta.as_ref());
        let sent_as = PromptId::fresh();
        let prompt = decode::prompt(prompt, &sent_as)?;
        let taken = CancellationToken::new();
        let guard = taken.clone().drop_guard();
        self.prompts.insert(sent_as.clone(), Waiting { request: id.clone(), session: session_id, taken });
        spawn(peer, id, async move {
            let _taken = guard;
            let prompt = session.prompt(prompt, when_busy, client).await?;
            Ok(Done::Prompted { sent_as, prompt })
        });
        Ok(())
    }

    fn initialize(&mut self, request: &InitializeRequest) -> InitializeResponse {
        self.features = ClientFeatures::of(&request.client_capabilities);
        if let Some(info) = &request.client_info
            && self.client.account.is_none()
        {
            let name = info.title.as_deref().filter(|title| !title.is_empty()).unwrap_or(&info.name);
            self.client.client = crate::guard::client_name(name).unwrap_or_else(|| self.client.client.clone());
        }
        let sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .delete(SessionDeleteCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::default())
            .resume(SessionResumeCapabilities::new())
            .close(SessionCloseCapabilities::new());
        let own = json!({ "attach": attach::capability(), "promptQueueing": true });
        let capabilities = AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
            .mcp_capabilities(McpCapabilities::new().http(true))
            .session_capabilities(sessions)
            .meta(Map::from_iter([(META.to_owned(), own)]));
        InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(Implementation::new("multitap", env!("CARGO_PKG_VERSION")).title("Multitap".to_owned()))
    }
}

fn spawn(peer: &mut Peer<Done>, id: RequestId, answer: impl Future<Output = Answer> + Send + 'static) {
    peer.spawn(id, async move { answer.await.unwrap_or_else(Done::Refused) });
}
