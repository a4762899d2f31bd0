//! One connection: dials, joins the session, and then carries frames both ways.

use std::io;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use multitap_event::Door;
use multitap_hub::{JoinCall, JoinReply, SessionRequest};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::http::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::address::Way;
use crate::attach::{Attach, AttachError};
use crate::wire::{Frame, parse, request};

/// Time limit for connecting and joining.
const CONNECT: Duration = Duration::from_secs(15);
/// How long the other side may be silent: it sends a ping every 20 s.
const SILENCE: Duration = Duration::from_secs(60);
/// How long the other side may leave our frames unread.
const STUCK: Duration = Duration::from_secs(10);
/// Time limit for closing the connection.
const GOODBYE: Duration = Duration::from_secs(1);
/// The largest frame: a page of large events.
const LARGEST: usize = 64 * 1024 * 1024;
/// The id of the request to join; later requests have higher ones.
pub(crate) const JOIN: u64 = 0;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(crate) struct Line {
    socket: WebSocketStream<Box<dyn Stream>>,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// The other side closed it, with this code and for this reason.
    Closed {
        code: u16,
        reason: String,
    },
    Broken(String),
}

impl Line {
    /// Connects and joins the session, at its end or after the events that are known (`join`).
    pub(crate) async fn open(to: &Attach, join: JoinCall) -> Result<(Self, JoinReply), AttachError> {
        let opened = async {
            let mut line = Self { socket: connect(to).await? };
            let joined = line.join(join).await?;
            Ok((line, joined))
        };
        match timeout(CONNECT, opened).await {
            Ok(opened) => opened,
            Err(_) => Err(AttachError::Silent { at: to.address.way.to_string(), seconds: CONNECT.as_secs() }),
        }
    }

    /// Joins again: frames before the answer belong to the previous join.
    pub(crate) async fn join(&mut self, join: JoinCall) -> Result<JoinReply, AttachError> {
        self.say(request(JOIN, &SessionRequest::Join(join))).await.map_err(AttachError::Cut)?;
        loop {
            match self.hear().await.map_err(AttachError::Cut)? {
                Frame::Answer { id: JOIN, answer: Ok(joined) } => {
                    return parse(joined.get()).map_err(|error| AttachError::Unreadable(error.to_string()));
                }
                Frame::Answer { id: JOIN, answer: Err(refusal) } => return Err(AttachError::NotJoined(refusal)),
                Frame::Event(_) | Frame::Gap(_) | Frame::Answer { .. } | Frame::Other => {}
            }
        }
    }

    pub(crate) async fn say(&mut self, text: String) -> Result<(), Cut> {
        match timeout(STUCK, self.socket.send(Message::text(text))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Cut::Broken(error.to_string())),
            Err(_) => Err(Cut::Broken("the other side does not read".to_owned())),
        }
    }

    /// The next frame. Cancel safe.
    pub(crate) async fn hear(&mut self) -> Result<Frame, Cut> {
        loop {
            let Ok(heard) = timeout(SILENCE, self.socket.next()).await else {
                return Err(Cut::Broken("the other side is silent".to_owned()));
            };
            match heard {
                Some(Ok(Message::Text(text))) => return Ok(Frame::read(&text)),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Err(Cut::Closed { code: frame.code.into(), reason: frame.reason.to_string() });
                }
                Some(Ok(Message::Close(None))) | None => return Err(Cut::Broken("it was closed".to_owned())),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_))) => {}
                Some(Err(error)) => return Err(Cut::Broken(error.to_string())),
            }
        }
    }

    pub(crate) async fn close(mut self) {
        timeout(GOODBYE, self.socket.close(None)).await.ok(); // the other side may not answer
    }
}

async fn connect(to: &Attach) -> Result<WebSocketStream<Box<dyn Stream>>, AttachError> {
    match connect_as(to, to.door).await {
        // Version 0.1.0 knows terminals only.
        Err(AttachError::Refused { status: 400, .. }) if to.door != Door::Terminal => {
            connect_as(to, Door::Terminal).await
        }
        connected => connected,
    }
}

async fn connect_as(to: &Attach, door: Door) -> Result<WebSocketStream<Box<dyn Stream>>, AttachError> {
    let way = &to.address.way;
    let unreachable = |source| AttachError::Unreachable { at: way.to_string(), source };
    let stream = stream(way).await.map_err(unreachable)?;
    let config = WebSocketConfig::default().max_message_size(Some(LARGEST)).max_frame_size(Some(LARGEST));
    let request = upgrade(to, door)?;
    match tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => Err(refused(&response)),
        Err(tungstenite::Error::Io(error)) => Err(unreachable(error)),
        Err(error) => Err(unreachable(io::Error::other(error))),
    }
}

async fn stream(way: &Way) -> io::Result<Box<dyn Stream>> {
    match way {
        Way::Tcp { host, port, tls } => {
            let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
            let stream = TcpStream::connect((bare, *port)).await?;
            stream.set_nodelay(true).ok(); // slower without it, not wrong
            if *tls { Ok(Box::new(crate::tls::over(stream, host).await?)) } else { Ok(Box::new(stream)) }
        }
        #[cfg(unix)]
        Way::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        #[cfg(not(unix))]
        Way::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn upgrade(to: &Attach, door: Door) -> Result<Request<()>, AttachError> {
    let scheme = if matches!(to.address.way, Way::Tcp { tls: true, .. }) { "wss" } else { "ws" };
    let (host, client) = (to.address.way.host(), encoded(&to.client));
    let mut url = format!("{scheme}://{host}/ws?dialect=events&door={door}&client={client}");
    if let Some(session) = &to.address.session {
        url.push_str("&session=");
        url.push_str(&encoded(session.as_str()));
    }
    let unusable = |error: tungstenite::Error| AttachError::Unreachable {
        at: to.address.way.to_string(),
        source: io::Error::other(error),
    };
    let mut request = url.into_client_request().map_err(unusable)?;
    if let Some(token) = &to.token {
        let mut bearer = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| AttachError::Token)?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, bearer);
    }
    Ok(request)
}

/// The door refused before the WebSocket was open, in JSON.
fn refused(response: &Response<Option<Vec<u8>>>) -> AttachError {
    let body = response.body().as_deref().unwrap_or_default();
    let told = serde_json::from_slice::<Value>(body).ok();
    let message = told.as_ref().and_then(|told| told.pointer("/error/message")).and_then(Value::as_str);
    let status = response.status();
    let message =
        message.map_or_else(|| status.canonical_reason().unwrap_or("no reason given").to_owned(), str::to_owned);
    AttachError::Refused { status: status.as_u16(), message }
}

/// Percent-encodes a value for a query.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").ok(); // a string takes everything
        }
    }
    out
}
