//! A door on a free port, and requests that are written by hand: what no client library would send has to be refused too.

use std::sync::Arc;
use std::time::Duration;

use multitap_event::{AgentCommand, ClientRef, SessionId};
use multitap_hub::{Journal, JournalError, Refusal, Session, SessionRecord};
use multitap_serve::{
    Access, CardVersions, DoorConfig, DoorError, Host, Hosted, Limits, OpenDoor, Opened, Peer, PeerIdentity,
    PushOptions, Wanted,
};
use multitap_store::Store;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Long enough for a busy machine; nothing waits this long when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A host that never has a session.
#[derive(Debug)]
struct Nobody;

impl Host for Nobody {
    fn shared(&self) -> Option<Session> {
        None
    }

    fn find(&self, _: &SessionId) -> Option<Session> {
        None
    }

    fn open(&self, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::TooManySessions) })
    }

    fn resume(&self, session: SessionId, _: Wanted) -> Hosted<'_, Opened> {
        Box::pin(async { Err(Refusal::UnknownSession { session_id: session }) })
    }

    fn shows(&self, _: &SessionRecord) -> bool {
        true
    }

    fn journal(&self) -> Arc<dyn Journal> {
        Arc::new(Store::unusable(JournalError::Full))
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

pub(crate) fn config(host: &str, access: Access, limits: Limits) -> DoorConfig {
    let (host, remote_agents) = (host.to_owned(), Vec::new());
    DoorConfig {
        host,
        port: 0,
        access,
        limits,
        extension_required: false,
        remote_agents,
        public_url: None,
        card: CardVersions::Hybrid,
        push: PushOptions::default(),
    }
}

pub(crate) async fn try_open(config: DoorConfig) -> Result<OpenDoor, DoorError> {
    OpenDoor::open(config, Arc::new(Nobody)).await
}

pub(crate) async fn open(access: Access) -> OpenDoor {
    try_open(config("127.0.0.1", access, Limits::default())).await.unwrap()
}

pub(crate) fn port(door: &OpenDoor) -> u16 {
    door.addresses()[0].port()
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Self { status: status.unwrap_or_default(), head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:#?}"))
    }
}

/// One connection.
pub(crate) struct Line {
    stream: TcpStream,
}

impl Line {
    pub(crate) async fn to(port: u16) -> Self {
        Self { stream: TcpStream::connect(("127.0.0.1", port)).await.unwrap() }
    }

    /// The port at our end.
    pub(crate) fn port(&self) -> u16 {
        self.stream.local_addr().unwrap().port()
    }

    /// One whose machine takes in little that is not read.
    pub(crate) async fn narrow(port: u16) -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        Self { stream: socket.connect(([127, 0, 0, 1], port).into()).await.unwrap() }
    }

    /// What comes first, while the same text is sent again and again.
    pub(crate) async fn first_while_sending(&mut self, text: &str, pause: Duration) -> Answer {
        let mut bytes = vec![0; 16 * 1024];
        let read = timeout(PATIENCE, async {
            loop {
                tokio::select! {
                    read = self.stream.read(&mut bytes) => return read.unwrap_or_default(),
                    () = tokio::time::sleep(pause) => {}
                }
                self.stream.write_all(text.as_bytes()).await.ok();
            }
        });
        let read = read.await.expect("an answer");
        Answer::read(&bytes[..read])
    }

    /// The first bytes as text.
    pub(crate) async fn first_bytes(&mut self) -> String {
        let mut bytes = vec![0; 1024];
        let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("an answer").unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// All the others, until the other side closes.
    pub(crate) async fn rest_bytes(&mut self) -> String {
        let mut bytes = Vec::new();
        timeout(3 * PATIENCE, self.stream.read_to_end(&mut bytes)).await.expect("the other side closes").ok();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) async fn send(&mut self, text: &str) {
        // A door that has heard enough reads no more; its answer is what the test looks at.
        self.stream.write_all(text.as_bytes()).await.ok();
    }

    /// What comes first.
    pub(crate) async fn first(&mut self) -> Answer {
        let mut bytes = vec![0; 16 * 1024];
        let read = timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("an answer").unwrap();
        Answer::read(&bytes[..read])
    }

    /// All that comes until the other side closes.
    pub(crate) async fn rest(&mut self) -> Answer {
        let mut bytes = Vec::new();
        // A connection that is cut off has still said what it said.
        timeout(PATIENCE, self.stream.read_to_end(&mut bytes)).await.expect("the other side closes").ok();
        Answer::read(&bytes)
    }
}

/// One request with these headers, `Host` among them if it is wanted.
pub(crate) async fn ask(port: u16, request: &str, headers: &[(&str, &str)]) -> Answer {
    let mut line = Line::to(port).await;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    line.send(&format!("{request} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n")).await;
    line.rest().await
}

/// One request with a JSON body.
pub(crate) async fn post(port: u16, path: &str, body: &Value) -> Answer {
    let (mut line, body) = (Line::to(port).await, body.to_string());
    let head = format!("POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n");
    line.send(&format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())).await;
    line.rest().await
}
