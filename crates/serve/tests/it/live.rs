//! A door to live sessions: a real hub over a real log, agents in the test's hands, WebSocket clients.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use multitap_event::{
    AgentCommand, AgentEnd, AgentKind, ClientRef, ClientRole, Command, Door as Way, Draft, EventKind, Prompt,
    SessionConfig, SessionId, Timestamp,
};
use multitap_hub::{Hub, Journal, Open, Refusal, Session, SessionRecord};
use multitap_serve::{
    Access, DoorConfig, Host, Hosted, Limits, OpenDoor, Opened, Peer, PeerIdentity, Scheme, Tokens, Wanted,
};
use multitap_store::Store;
use multitap_testkit::agent::{LaunchedAgent, ScriptedLaunch};
pub(crate) use multitap_testkit::agent::{asked, ended, text, turn_ended, turn_started};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::scene::{PATIENCE, config, port};

/// What should come soon, and does not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it comes soon")
}

/// The sessions of a hub: one for all, or one for each.
#[derive(Debug)]
pub(crate) struct Sessions {
    hub: Hub,
    journal: Arc<dyn Journal>,
    shared: Option<Session>,
}

impl Sessions {
    pub(crate) fn new_session() -> Open {
        Open::new(SessionConfig::new(AgentKind::Claude), ClientRef::new("opener", Way::Terminal))
    }
}

impl Host for Sessions {
    fn shared(&self) -> Option<Session> {
        self.shared.clone()
    }

    fn live(&self) -> Vec<Session> {
        self.hub.live()
    }

    fn find(&self, session: &SessionId) -> Option<Session> {
        self.hub.find(session)
    }

    fn open(&self, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async {
            let session = self.hub.open(Self::new_session()).await.map_err(|_| Refusal::TooManySessions)?;
            Ok(Opened { session, notices: Vec::new() })
        })
    }

    fn resume(&self, session: SessionId, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::UnknownSession { session_id: session }) })
    }

    fn shows(&self, _: &SessionRecord) -> bool {
        true
    }

    fn journal(&self) -> Arc<dyn Journal> {
        self.journal.clone()
    }

    fn commands(&self) -> Hosted<'_, Option<Vec<AgentCommand>>> {
        Box::pin(async { Ok(Some(Vec::new())) })
    }

    fn ask_agent(&self, _: ClientRef) -> Hosted<'_, Session> {
        Box::pin(async { Err(Refusal::TooManySessions) })
    }

    fn identify(&self, peers: &[Peer]) -> Vec<PeerIdentity> {
        vec![PeerIdentity::User; peers.len()]
    }
}

/// All of it.
pub(crate) struct Live {
    pub(crate) door: OpenDoor,
    pub(crate) hub: Hub,
    pub(crate) store: Arc<Store>,
    agents: mpsc::Receiver<LaunchedAgent>,
    folder: TempDir,
}

impl Live {
    /// A door beside one session, which everybody shares.
    pub(crate) async fn shared() -> (Self, Session, Agent) {
        Self::shared_within(Limits::default()).await
    }

    pub(crate) async fn shared_within(limits: Limits) -> (Self, Session, Agent) {
        Self::shared_with(limits, |store| store).await
    }

    /// One whose tasks are kept in another journal.
    pub(crate) async fn shared_with(
        limits: Limits,
        tasks: impl FnOnce(Arc<dyn Journal>) -> Arc<dyn Journal>,
    ) -> (Self, Session, Agent) {
        let (hub, store, mut agents, folder) = sessions();
        let session = hub.open(Sessions::new_session()).await.unwrap();
        let agent = Agent { end: soon(agents.recv()).await.unwrap().1 };
        let host = Sessions { hub: hub.clone(), journal: tasks(store.clone()), shared: Some(session.clone()) };
        let door = OpenDoor::open(config("127.0.0.1", Access::default(), limits), Arc::new(host)).await.unwrap();
        (Self { door, hub, store, agents, folder }, session, agent)
    }

    /// The same at another door.
    pub(crate) async fn shared_at(config: DoorConfig) -> (Self, Session, Agent) {
        let (hub, store, mut agents, folder) = sessions();
        let session = hub.open(Sessions::new_session()).await.unwrap();
        let agent = Agent { end: soon(agents.recv()).await.unwrap().1 };
        let host = Sessions { hub: hub.clone(), journal: store.clone(), shared: Some(session.clone()) };
        let door = OpenDoor::open(config, Arc::new(host)).await.unwrap();
        (Self { door, hub, store, agents, folder }, session, agent)
    }

    /// Another door to the same session; the first one is closed.
    pub(crate) async fn reopened(self, session: &Session, config: DoorConfig) -> Self {
        let Self { door, hub, store, agents, folder } = self;
        door.stop().await;
        let host = Sessions { hub: hub.clone(), journal: store.clone(), shared: Some(session.clone()) };
        let door = OpenDoor::open(config, Arc::new(host)).await.unwrap();
        Self { door, hub, store, agents, folder }
    }

    /// A door beside a session whose agent takes prompts during a turn.
    pub(crate) async fn steered() -> (Self, Session, Agent) {
        let (hub, store, mut agents, folder) = sessions_with(ScriptedLaunch::steering(), tempfile::tempdir().unwrap());
        let session = hub.open(Sessions::new_session()).await.unwrap();
        let agent = Agent { end: soon(agents.recv()).await.unwrap().1 };
        let host = Sessions { hub: hub.clone(), journal: store.clone(), shared: Some(session.clone()) };
        (Self { door: door(host, Access::default()).await, hub, store, agents, folder }, session, agent)
    }

    /// A door beside one session, for those who have a token: `owner` and `controller`.
    pub(crate) async fn guarded() -> (Self, Session, Agent) {
        let (hub, store, mut agents, folder) = sessions();
        let session = hub.open(Sessions::new_session()).await.unwrap();
        let agent = Agent { end: soon(agents.recv()).await.unwrap().1 };
        let host = Sessions { hub: hub.clone(), journal: store.clone(), shared: Some(session.clone()) };
        (Self { door: door(host, tokens()).await, hub, store, agents, folder }, session, agent)
    }

    /// The same with sessions of the clients' own.
    pub(crate) async fn own_guarded() -> Self {
        let (hub, store, agents, folder) = sessions();
        let host = Sessions { hub: hub.clone(), journal: store.clone(), shared: None };
        Self { door: door(host, tokens()).await, hub, store, agents, folder }
    }

    /// A door beside a session of which nothing is kept.
    pub(crate) async fn unkept() -> (Self, Session, Agent) {
        let (_, store, _, folder) = sessions();
        let (launch, mut agents) = ScriptedLaunch::new();
        let hub = Hub::without_journal(launch);
        let session = hub.open(Sessions::new_session()).await.unwrap();
        let agent = Agent { end: soon(agents.recv()).await.unwrap().1 };
        let host = Sessions { hub: hub.clone(), journal: store.clone(), shared: Some(session.clone()) };
        let door = OpenDoor::open(config("127.0.0.1", Access::default(), Limits::default()), Arc::new(host)).await;
        (Self { door: door.unwrap(), hub, store, agents, folder }, session, agent)
    }

    /// A door to sessions of the clients' own.
    pub(crate) async fn own() -> Self {
        Self::own_at(config("127.0.0.1", Access::default(), Limits::default()), tempfile::tempdir().unwrap()).await
    }

    /// The same at another door, over the log in that folder.
    pub(crate) async fn own_at(config: DoorConfig, folder: TempDir) -> Self {
        let (hub, store, agents, folder) = sessions_in(folder);
        let host = Sessions { hub: hub.clone(), journal: store.clone(), shared: None };
        let door = OpenDoor::open(config, Arc::new(host)).await.unwrap();
        Self { door, hub, store, agents, folder }
    }

    /// Ends everything. Returns the folder of the log.
    pub(crate) async fn stop(self) -> TempDir {
        let Self { door, hub, store, agents, folder } = self;
        drop(agents);
        door.stop().await;
        hub.shutdown().await;
        store.close().await;
        folder
    }

    pub(crate) fn port(&self) -> u16 {
        port(&self.door)
    }

    /// Damages the log under the running host: its events are not to be found any more.
    pub(crate) fn break_log(&self) {
        let file = self.log_file();
        file.execute_batch("ALTER TABLE events RENAME TO gone").unwrap();
    }

    /// Writes other bytes into one event of the log, of the same length.
    pub(crate) fn damage_event(&self, seq: u32) {
        let file = self.log_file();
        let changed = file.execute("UPDATE events SET json = replace(json, '\"', '#') WHERE seq = ?1", [seq]).unwrap();
        assert_eq!(changed, 1);
    }

    /// Nobody else writes to the log until this is dropped.
    pub(crate) fn lock_log(&self) -> rusqlite::Connection {
        let file = self.log_file();
        file.execute_batch("BEGIN IMMEDIATE").unwrap();
        file
    }

    /// Where the log is.
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("sessions.db")
    }

    pub(crate) fn log_file(&self) -> rusqlite::Connection {
        let file = rusqlite::Connection::open(self.path()).unwrap();
        file.busy_timeout(PATIENCE).unwrap();
        file
    }

    pub(crate) async fn agent(&mut self) -> Agent {
        Agent { end: soon(self.agents.recv()).await.unwrap().1 }
    }

    pub(crate) async fn client(&self, query: &str) -> Client {
        Client::connect(self.port(), query).await.unwrap()
    }
}

async fn door(host: Sessions, access: Access) -> OpenDoor {
    OpenDoor::open(config("127.0.0.1", access, Limits::default()), Arc::new(host)).await.unwrap()
}

fn tokens() -> Access {
    let mut tokens = Tokens::default();
    tokens.add("owner", ClientRole::Owner, None).unwrap();
    tokens.add("controller", ClientRole::Controller, None).unwrap();
    Access { scheme: Scheme::of(tokens), ..Access::default() }
}

fn sessions() -> (Hub, Arc<Store>, mpsc::Receiver<LaunchedAgent>, TempDir) {
    sessions_in(tempfile::tempdir().unwrap())
}

fn sessions_in(folder: TempDir) -> (Hub, Arc<Store>, mpsc::Receiver<LaunchedAgent>, TempDir) {
    sessions_with(ScriptedLaunch::new(), folder)
}

fn sessions_with(
    (launch, agents): (Arc<ScriptedLaunch>, mpsc::Receiver<LaunchedAgent>),
    folder: TempDir,
) -> (Hub, Arc<Store>, mpsc::Receiver<LaunchedAgent>, TempDir) {
    let store = Arc::new(Store::open(folder.path().join("sessions.db")).unwrap());
    (Hub::new(store.clone(), launch), store, agents, folder)
}

/// The agent's end of a session.
pub(crate) struct Agent {
    pub(crate) end: AgentEnd,
}

impl Agent {
    pub(crate) async fn tells(&self, kind: EventKind) {
        self.end.events.send(Draft::new(Timestamp::now(), kind)).await.unwrap();
    }

    pub(crate) async fn hears(&mut self) -> Command {
        soon(self.end.commands.recv()).await.unwrap()
    }

    /// Queries before it are not answered.
    pub(crate) async fn hears_prompt(&mut self) -> Prompt {
        loop {
            match self.hears().await {
                Command::Prompt(prompt) => return prompt,
                Command::Query { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// A turn from its prompt to its rest, in so many words.
    pub(crate) async fn answers(&mut self, words: usize) {
        let prompt = self.hears_prompt().await;
        self.tells(turn_started()).await;
        for word in 0..words {
            self.tells(text(&format!("{} {word}", prompt.text))).await;
        }
        self.tells(turn_ended()).await;
    }

    /// Takes a prompt, begins to work, and asks.
    pub(crate) async fn asks(&mut self, question: &str) {
        self.hears_prompt().await;
        self.tells(turn_started()).await;
        self.tells(asked(question)).await;
    }
}

/// One connection to `/ws`.
pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
}

impl Client {
    pub(crate) async fn connect(port: u16, query: &str) -> Result<Self, Box<tungstenite::Error>> {
        Self::over(TcpStream::connect(("127.0.0.1", port)).await.unwrap(), port, query).await
    }

    /// One to another path, and the answer to its upgrade.
    pub(crate) async fn at(port: u16, path: &str) -> (Self, tungstenite::handshake::client::Response) {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let url = format!("ws://127.0.0.1:{port}{path}");
        let (socket, response) = soon(tokio_tungstenite::client_async(url, stream)).await.unwrap();
        (Self { socket }, response)
    }

    /// One to another path, with a token.
    pub(crate) async fn with_token(port: u16, path: &str, token: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let mut request = format!("ws://127.0.0.1:{port}{path}").into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        let (socket, _) = soon(tokio_tungstenite::client_async(request, stream)).await.unwrap();
        Self { socket }
    }

    /// One whose machine takes in little that is not read.
    pub(crate) async fn narrow(port: u16, query: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        let stream = socket.connect(([127, 0, 0, 1], port).into()).await.unwrap();
        Self::over(stream, port, query).await.unwrap()
    }

    async fn over(stream: TcpStream, port: u16, query: &str) -> Result<Self, Box<tungstenite::Error>> {
        let url = format!("ws://127.0.0.1:{port}/ws{query}");
        let (socket, _) = soon(tokio_tungstenite::client_async(url, stream)).await?;
        Ok(Self { socket })
    }

    pub(crate) async fn send(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let request = json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params });
        self.send(Message::text(request.to_string())).await;
    }

    /// Prompts with `message/stream`.
    pub(crate) async fn stream(&mut self, id: impl Into<Value>, words: &str) {
        self.ask(id, "message/stream", said(words)).await;
    }

    /// Refuses a request of the other side.
    pub(crate) async fn refuse(&mut self, request: &Value, code: i64) {
        let error = json!({ "code": code, "message": "no" });
        let response = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
        self.send(Message::text(response.to_string())).await;
    }

    /// Answers a request of the other side.
    pub(crate) async fn reply(&mut self, request: &Value, result: Value) {
        let response = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send(Message::text(response.to_string())).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(Message::text(json!({ "method": method, "params": params }).to_string())).await;
    }

    /// The next frame; or why there are no more.
    pub(crate) async fn next(&mut self) -> Result<Value, String> {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err(format!("{} {}", u16::from(frame.code), frame.reason));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => return Err(format!("{other:?}")),
            }
        }
    }

    pub(crate) async fn frame(&mut self) -> Value {
        self.next().await.expect("another frame")
    }

    /// Frames up to one that is looked for, that one included.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.frame().await);
            if seen.last().is_some_and(&wanted) {
                return seen;
            }
        }
    }

    /// The answer to that request, over whatever comes before it.
    pub(crate) async fn answer(&mut self, id: impl Into<Value>) -> Value {
        let id = id.into();
        self.until(|frame| frame["id"] == id).await.pop().unwrap()
    }

    /// Nothing comes for a while.
    pub(crate) async fn is_silent(&mut self) {
        let came = timeout(Duration::from_millis(200), self.next()).await;
        assert!(came.is_err(), "{came:?}");
    }

    /// Why it was closed.
    pub(crate) async fn closed(&mut self) -> String {
        loop {
            if let Err(why) = self.next().await {
                return why;
            }
        }
    }
}

/// The A2A event in a frame, as an answer or on its own.
pub(crate) fn event(frame: &Value) -> Option<&Value> {
    frame.pointer("/params/event").or_else(|| frame.get("result"))
}

/// Its cursor as it stands in its metadata.
pub(crate) fn cursor(event: &Value) -> (u64, u64) {
    let metadata = event["metadata"].as_object().unwrap();
    let text = metadata.values().find_map(|ours| ours.get("cursor")).and_then(Value::as_str).unwrap();
    let (seq, part) = text.split_once('.').unwrap_or((text, "0"));
    (seq.parse().unwrap(), part.parse().unwrap())
}

pub(crate) fn is_end(frame: &Value) -> bool {
    event(frame).is_some_and(|event| event["status"]["state"] == "completed" && event["final"] == true)
}

pub(crate) fn is_stream_end(frame: &Value, id: impl Into<Value>) -> bool {
    frame["method"] == "streamEnd" && frame["params"]["id"] == id.into()
}

pub(crate) fn said(words: &str) -> Value {
    json!({ "message": {
        "kind": "message", "messageId": "m", "role": "user", "parts": [{ "kind": "text", "text": words }],
    } })
}

/// An answer to a question, as a message.
pub(crate) fn answering(question: &str, option: &str) -> Value {
    json!({ "message": { "kind": "message", "messageId": "m", "role": "user", "parts": [
        { "kind": "data", "data": { "tool_call_id": question, "selected_option_id": option } },
    ] } })
}
